"""The share of planted mistakes that audits flag: five kinds in each central learner, at its second audited point.

`python benchmarks/planted_kinds.py [NAME ...]` wraps a registered learner's functions, so that each kind is the same
mistake in all learners. All but the last kind keep every noise scale as it is:

- twice: a datum is counted in its round, and once more in the next one;
- cap: one use more than `budget` or `max_switches` allows; of learners without, the datum before is counted again
  in place of a datum where the exact sum so far is above a threshold;
- phase: the public state stays as it was where the exact sum of all data so far is above a threshold;
- noise: every round's update draws by the key of the first one, and all reports by one key;
- sensitivity: noise is drawn for half the sensitivity, which is for twice the budget, or at half the scale.

Sums weigh the numbers of a datum differently. The threshold lies between the sums of the two neighbours, where they
stay on different sides of it in most rounds: a mistake that neither of them reaches cannot be found. A grey box
looks first; outputs are attacked where it finds nothing. Rounds alone are played. The right learner, so wrapped, is
not to be flagged.
"""

import argparse
import dataclasses
import functools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from jaxdp.audit import Target, scoreboard
from jaxdp.audit.adversary import UserData, example
from jaxdp.audit.play import play
from jaxdp.core import Learner, State
from jaxdp.registry import LEARNERS
from jaxdp.registry.claims import target
from jaxdp.registry.entries import LearnerEntry
from jaxdp.registry.registered import claim_of

KINDS = ("right", "twice", "cap", "phase", "noise", "sensitivity")
CAPS = ("budget", "max_switches")
LOUDER = ("epsilon", "local_epsilon", "monitor_epsilon", "learning_rate")
QUIETER = ("noise_stddev",)
TRIALS = 100_000
LANES = 256  # of the runs that choose a threshold


def added(report: Any, more: Any, action: Any) -> Any:
    """Returns `report` plus the data of the report `more`; if a report starts with the action, the action stays."""
    return _with_play_of(report, jax.tree.map(jnp.add, report, more), action)


def replaced(report: Any, last: Any, is_replaced: jax.Array, action: Any) -> Any:
    """Returns `report`, or if `is_replaced`, the data of the report `last`.

    If a report starts with the action, the action of `report` stays.
    """
    return _with_play_of(report, jax.tree.map(lambda new, old: jnp.where(is_replaced, old, new), report, last), action)


def _with_play_of(report: Any, data: Any, action: Any) -> Any:
    if not _has_play(report, action):
        return data
    parts = (report[0], *data[1:])
    return report._make(parts) if hasattr(report, "_make") else parts


def total(report: Any, action: Any) -> jax.Array:
    """Returns the sum of a report's data, [] float; the i-th number of an array counts 1 / (i + 1), and NaN 0."""
    data = tuple(report[1:]) if _has_play(report, action) else report
    sums = [jnp.nansum(leaf.ravel().astype(float) / jnp.arange(1, leaf.size + 1)) for leaf in jax.tree.leaves(data)]
    return sum(sums, jnp.zeros(()))


def _has_play(report: Any, action: Any) -> bool:
    parts: Any = report
    return isinstance(report, tuple) and jax.tree.structure(parts[0]) == jax.tree.structure(action)


def sums_so_far(entry: LearnerEntry, users: UserData) -> np.ndarray:
    """Returns the sum of all reports' data after each round, [LANES, rounds], if the entry's learner plays `users`."""
    learner = entry.make()
    params = learner.params(**entry.values)

    def one(key: jax.Array) -> jax.Array:
        happened = play(learner, entry.users_answer, key, params, users)
        return jnp.cumsum(jax.vmap(total)(happened.reports, happened.actions))

    return np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(2), LANES)))


def threshold_between(entry: LearnerEntry, *, before: bool) -> float:
    """Returns a threshold that lies between the two neighbours' sums of data in as many rounds and lanes as possible.

    Sums are taken before or after each round.

    Raises:
        ValueError: if the sums are equal in all rounds, so that the mistake is never made.
    """
    first, second = (sums_so_far(entry, users)[:, : -1 if before else None] for users in entry.make_neighbours())
    middles = np.unique((first + second)[first != second] / 2)
    if not len(middles):
        raise ValueError("the neighbours' sums must differ in a round")
    tried = middles[np.linspace(0, len(middles) - 1, min(len(middles), 200)).astype(int)]
    return float(max(tried, key=lambda at: np.mean((first > at) != (second > at))))


def wrong(right: Learner, kind: str, threshold: float) -> Learner:
    """Returns the learner `right` with a mistake of this kind, without blocks and counts.

    The mistake "phase" happens while the sum of data is above `threshold`. So does "cap", except for a learner with a
    parameter in `CAPS`: its cap is always one larger. The private state also has the key data of the first round, the
    last report, the sum of data, and the number of rounds played.
    """

    def shapes(params: Any, public: Any) -> tuple[Any, Any]:
        assert right.interface is not None
        space = right.interface
        action, feedback, context = (example(each) for each in (space.action, space.feedback, space.context))
        report = jax.eval_shape(right.privatize, jax.random.key(0), params, public, context, action, feedback)
        return action, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), report)

    def init(key, params) -> State:
        state = right.init(key, params)
        none = shapes(params, state.public)[1]
        own = jnp.zeros_like(jax.random.key_data(key)), none, jnp.zeros(()), jnp.int32(0)
        return State((state.private, *own), state.public)

    def update(key, params, state: State, report) -> State:
        private, first, last, so_far, rounds = state.private
        action = shapes(params, state.public)[0]
        first = jnp.where(rounds == 0, jax.random.key_data(key), first)
        used, given = params, report
        if kind == "noise":
            key = jax.random.wrap_key_data(first)
        if kind == "sensitivity":
            used = with_less_noise(params)
        if kind == "cap":
            if _names(params, CAPS):
                used = _changed(params, CAPS, lambda leaf: leaf + 1)
            else:
                given = replaced(report, last, so_far > threshold, action)
        if kind == "twice":
            given = added(report, last, action)
        so_far, rounds = so_far + total(report, action), rounds + 1
        after = right.update(key, used, State(private, state.public), given)
        public = after.public
        if kind == "phase":
            stays = so_far > threshold
            public = jax.tree.map(lambda old, new: jnp.where(stays, old, new), state.public, public)
        return State((after.private, first, report, so_far, rounds), public)

    def privatize(key, params, public, context, action, feedback):
        """Draws the noise of users' reports, as in the shuffle model; central learners have none here."""
        used = with_less_noise(params) if kind == "sensitivity" else params
        return right.privatize(jax.random.key(0) if kind == "noise" else key, used, public, context, action, feedback)

    return right._replace(init=init, privatize=privatize, update=update, blocks=(), counts=None)


def _names(params: Any, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if hasattr(params, name)]


def with_less_noise(params: Any) -> Any:
    """Returns params with doubled budgets, and noise of half the scale, in all parts.

    Raises:
        ValueError: if there is nothing to change.
    """
    changed = _parts_changed(params)
    if changed is params:
        raise ValueError(f"params must have one of {', '.join(LOUDER + QUIETER)}, got {type(params).__name__}")
    return changed


def _parts_changed(params: Any) -> Any:
    fields = params._fields if hasattr(params, "_fields") else [field.name for field in dataclasses.fields(params)]
    new = {}
    for name in fields:
        part = getattr(params, name)
        if name in LOUDER + QUIETER:
            new[name] = part * 2 if name in LOUDER else part / 2
        elif hasattr(part, "_fields") or dataclasses.is_dataclass(part):
            inner = _parts_changed(part)
            if inner is not part:
                new[name] = inner
    if not new:
        return params
    return params._replace(**new) if hasattr(params, "_replace") else dataclasses.replace(params, **new)


def _changed(params: Any, names: tuple[str, ...], change: Callable[[Any], Any]) -> Any:
    return dataclasses.replace(params, **{name: change(getattr(params, name)) for name in _names(params, names)})


def planted(name: str, kind: str) -> Target:
    """Returns the audit's target for a registered learner with a planted mistake, at its second point if it has one."""
    entry = LEARNERS[name]
    with_threshold = kind == "phase" or (kind == "cap" and not _names(entry.make().params(**entry.values), CAPS))
    threshold = threshold_between(entry.at_second() or entry, before=kind == "cap") if with_threshold else np.inf

    @functools.wraps(entry.factory)
    def factory(**arguments: Any) -> Learner:
        return wrong(entry.factory(**arguments), kind, threshold)

    made = target(dataclasses.replace(entry, factory=factory, distribution=None))
    return made if made.second is None else made.second


def verdict(name: str, kind: str) -> tuple[str, str]:
    """Audits a learner with a planted mistake; returns "flagged" or "not flagged", and the attack with its finding."""
    made = planted(name, kind)
    if made.grey_box is not None:
        found = made.grey_box(jax.random.key(0))
        if found.verdict == "violated":
            return "flagged", f"grey box: {found.faults[0]}"
    given = dataclasses.replace(made, grey_box=None)
    (row,) = scoreboard(jax.random.key(1), {name: given}, trials=TRIALS, searched=False, confidence=0.999)
    bound = f"outputs: {row.lower_bound:.3g} of {row.claimed:.3g} {'; '.join(row.notes)}"
    return "flagged" if row.verdict == "violated" else "not flagged", bound


def main() -> None:
    """Prints a line for each mistake, and the share that was flagged."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    central = [name for name, entry in LEARNERS.items() if claim_of(entry).trust_model != "local"]
    central = [name for name in central if LEARNERS[name].proof != "none"]
    parser.add_argument("names", nargs="*", choices=[[], *central], default=[])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    given = parser.parse_args()
    flagged, right, start = [], [], time.process_time()
    for name in given.names or central:
        for kind in given.kinds:
            try:
                told, by = verdict(name, kind)
            except Exception as error:
                told, by = "not tried", f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
            print(f"{name:32}{kind:12}{told:12}{by}", flush=True)
            if told != "not tried":
                (right if kind == "right" else flagged).append(told == "flagged")
    print(f"flagged: {sum(flagged)} of {len(flagged)} mistakes, {sum(right)} of {len(right)} right learners")
    print(f"{time.process_time() - start:.0f} s of a processor")


if __name__ == "__main__":
    main()
