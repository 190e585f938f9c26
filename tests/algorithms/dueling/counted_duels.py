"""Duels that count how often each arm is on each side, and the statistics to compare with the independent versions."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

import jaxdp
from jaxdp.core import Environment, Learner
from jaxdp.dueling import matrix_duels
from tests.algorithms.dueling.make_duels_reference import statistics


def counted_duels(matrix: ArrayLike) -> Environment:
    """Returns `matrix_duels` with the outcomes left_i and right_i: whether arm i is on that side."""
    num_arms = len(np.asarray(matrix))
    duels = matrix_duels(matrix)
    plain_feedback_totals = duels.feedback_totals
    assert plain_feedback_totals is not None

    def feedback(key, params, world, action):
        world, won, outcome = duels.feedback(key, params, world, action)
        sides = {f"{side}_{i}": action[k] == i for k, side in enumerate(("left", "right")) for i in range(num_arms)}
        return world, won, {**outcome, **sides}

    def block(keys, params, world, contexts, actions):
        del contexts
        return jax.vmap(lambda key, action: feedback(key, params, world, action))(keys, actions)

    def feedback_totals(key, params, world, counts):
        world, won, outcome = plain_feedback_totals(key, params, world, counts)
        each = counts.reshape(num_arms, num_arms)
        totals = {"left": each.sum(1, dtype=each.dtype), "right": each.sum(0, dtype=each.dtype)}
        sides = {f"{side}_{i}": total[i] for side, total in totals.items() for i in range(num_arms)}
        return world, won, {**outcome, **sides}

    return duels._replace(feedback=feedback, block=block, feedback_totals=feedback_totals)


def program(
    learner: Learner, matrix: ArrayLike, horizon: int, *, engine: str, looks: Any = None
) -> tuple[Any, Callable[..., Any]]:
    """Returns a run, and a compiled function of a key for each lane and of params for each grid point."""
    num_arms = len(np.asarray(matrix))
    sides = [f"{side}_{i}" for side in ("left", "right") for i in range(num_arms)]
    run = jaxdp.simulator(
        learner,
        counted_duels(matrix),
        horizon,
        checkpoints=None if looks is None else list(looks),
        record=None if looks is None else {"active": lambda snapshot: snapshot.public.active},
        engine=engine,
        outcomes=["strong_regret", "best_duels", *sides],
    )
    return run, jax.jit(jax.vmap(jax.vmap(run, (0, None)), (None, 0)))


def play(run: Any, go: Callable[..., Any], seed: int, lanes: int, values: list[dict]) -> list[dict[str, np.ndarray]]:
    """Returns, for each of some values, the statistics to compare: [lanes] each."""
    params = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[run.params(**each) for each in values])
    outputs = go(jax.random.split(jax.random.key(seed), lanes), params)
    outputs = {name: np.asarray(value) for name, value in outputs.items()}
    last = {name: value[:, :, -1] for name, value in outputs.items() if name != "active"}
    found = []
    for point in range(len(values)):
        left, right = (
            np.stack([last[name][point] for name in sorted(last) if name.startswith(side)], axis=1)
            for side in ("left_", "right_")
        )
        active = outputs["active"][point] if "active" in outputs else None
        found.append(statistics(last["strong_regret"][point], left, right, last["best_duels"][point], active))
    return found
