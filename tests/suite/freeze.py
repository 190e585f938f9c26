"""Adds new instances to jaxdp/suite/frozen.json: `python tests/suite/freeze.py`.

It does not compute the numbers of an instance that the file already has.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from jaxdp.core import Guarantee, Learner, Problem, State
from jaxdp.estimation import ballot_mle, estimate, mle
from jaxdp.estimation.solver import Estimate
from jaxdp.preferences import baseball1987
from jaxdp.suite import v1

PATH = Path(v1.__file__).with_name("frozen.json")
FIRST = 32  # real-valued answers that are committed


def uniform_player(world) -> Learner:
    """Returns the learner whose every action is uniform on the space of actions."""

    def draw(space, key):
        if space.kind == "integers":
            return jax.random.randint(key, space.shape, 0, int(space.high) + 1)
        key_direction, key_radius = jax.random.split(key)
        direction = jax.random.normal(key_direction, space.shape)
        radius = space.radius * jax.random.uniform(key_radius) ** (1 / space.shape[-1])
        return direction / jnp.linalg.norm(direction) * radius

    def act(key, params, public, context):
        space = world.interface.action
        if hasattr(space, "centre"):
            return type(space)(draw(space.centre, key), jnp.zeros(space.offset.shape))
        return draw(space, key)

    return Learner(
        params=lambda: {},
        guarantee=lambda: Guarantee.none(trust_model="local", privacy_unit="nothing", argument="plays at random"),
        init=lambda key, params: State((), ()),
        act=act,
        privatize=lambda key, params, public, context, action, feedback: (),
        update=lambda key, params, state, report: State((), ()),
        interface=world.interface,
    )


def uniform(instance: v1.Instance, quick: bool) -> float:
    """Returns the mean metric of uniform play, which needs no feedback, over the seeds of the protocol."""
    made, keys = instance.make(), jax.random.split(jax.random.key(v1.ROOT_SEEDS["scores"]), v1.SEEDS)
    if isinstance(made, Problem):
        params = made.params()

        def error(key):
            sample = made.sample(jax.random.split(key)[0], params)
            dim = sample.features.shape[-1] if sample.truth is None else len(sample.truth)
            zero = Estimate(jnp.zeros(dim), jnp.zeros(()), jnp.int32(0), jnp.bool_(True))
            return made.metrics(params, sample, zero)[instance.metric]

        return float(np.mean(jax.lax.map(jax.jit(error), keys)))
    made = made._replace(delays=None)  # otherwise actions would be repeated until their reports arrive
    run = jaxdp.simulator(uniform_player(made), made, instance.horizon(quick), engine="rounds")
    params = run.params()
    return float(np.mean(jax.jit(jax.vmap(lambda key: run(key, params)[instance.metric][-1]))(keys)))


def abilities(name: str) -> list[float]:
    """Returns the estimate without privacy, of mean zero."""
    if name == "rewards.ballots":
        features, labels = v1._ballots().design()
        estimator = ballot_mle()
    else:
        features, labels = baseball1987().design()
        estimator = mle()
    theta = estimate(estimator, features, labels, key=jax.random.key(0), radius=10.0).theta
    return [round(float(each), 6) for each in theta - theta.mean()]


def lines_of(text: str) -> dict[str, str]:
    """Returns the JSON text of each instance, by name, from the text of the file."""
    names = json.loads(text)
    rows = text.splitlines()[1:-1]
    return {name: row.removeprefix(f"{json.dumps(name)}: ").rstrip(",") for name, row in zip(names, rows, strict=True)}


def write(lines: dict[str, str]) -> None:
    """Writes the file, a line for each instance, sorted by name."""
    rows = [f"{json.dumps(name)}: {text}" for name, text in sorted(lines.items())]
    PATH.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    v1.frozen.cache_clear()


def main() -> None:
    """Computes the numbers of every instance that the file lacks, and writes the file."""
    lines = lines_of(PATH.read_text())
    for name, instance in v1.INSTANCES.items():
        if name in lines:
            continue
        print(name, file=sys.stderr)
        record: dict[str, Any] = (
            {"abilities": abilities(name)} if name in ("rewards.ballots", "rewards.baseball") else {}
        )
        lines[name] = json.dumps(record)
        write(lines)
        if instance.exact:
            record["answers"] = hashlib.sha256(v1.answers(instance).tobytes()).hexdigest()
            params = instance.make().params()
            if hasattr(params, "thresholds"):
                record["thresholds"] = hashlib.sha256(params.thresholds.tobytes()).hexdigest()
        else:
            record["first"] = [round(float(each), 7) for each in v1.answers(instance, FIRST).ravel()[: 8 * FIRST]]
        delays = getattr(instance.make(), "delays", None)
        if delays is not None:
            record["delay"] = int(delays.table(1)[0])
        record["uniform"] = {kind: float(f"{uniform(instance, kind == 'quick'):.5g}") for kind in ("quick", "full")}
        lines[name] = json.dumps(record, sort_keys=True)
        write(lines)


if __name__ == "__main__":
    main()
