"""What a simulation records at a checkpoint: sums, metrics in hindsight, judged answers, the user's records."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxdp.core import Environment, Learner
from jaxdp.simulation.run import outcomes
from jaxdp.simulation.run.rounds import Play

STOPPING = ("rounds", "censored")
AT_STOP = "_at_stop"  # ends the names of what is read where a learner stops


class Look(NamedTuple):
    """One lane of a simulation, as functions that record something see it.

    Attributes:
        params: the run's, with the entries "learner" and "environment".
        public: what the learner has released.
        world: the environment's.
        action: the latest; None by counts.
        round: [] integer, rounds played.
    """

    params: Mapping[str, Any]
    public: Any
    world: Any
    action: Any
    round: jax.Array


RecordFn = Callable[[Look], jax.Array]  # reads an array from a look, inside the compiled program


def judged(learner: Learner, environment: Environment, params: Any, play: Play) -> dict[str, jax.Array]:
    """What the learner's answer is worth, where it has one and the environment judges it."""
    if learner.answer is None or environment.judge is None:
        return {}
    answer = learner.answer(params["learner"], play.state.public)
    return _checked("judge", environment.judge(params["environment"], play.world, answer))


def seen(
    learner: Learner, environment: Environment, record: Mapping[str, RecordFn], params: Any, play: Play
) -> dict[str, jax.Array]:
    """All that is read at a checkpoint, by name."""
    look = Look(params, play.state.public, play.world, play.action, play.round)
    found = merged(
        outcomes.totals(play.outcomes),
        _checked("summary", environment.summary(params["environment"], play.world)) if environment.summary else {},
        judged(learner, environment, params, play),
        _checked("record", {name: function(look) for name, function in record.items()}),
        taken=STOPPING,
    )
    for name in found:
        if is_at_stop(name, found):
            raise ValueError(f"names must not end in {AT_STOP} beside the one without it, got {name}")
    return found


def _checked(who: str, found: Any) -> dict[str, jax.Array]:
    """What a function of the user's returned.

    Raises:
        ValueError: if it is no dict of arrays.
    """
    if not isinstance(found, Mapping):
        raise ValueError(f"{who} must return a dict of arrays, got {type(found).__name__}")
    for name, value in found.items():
        if not isinstance(value, jax.Array | np.ndarray | np.generic | int | float):
            raise ValueError(f"{who} must give an array for {name}, got {type(value).__name__}")
    return dict(found)


def is_at_stop(name: str, names: Collection[str]) -> bool:
    """Whether an output is read where the learner stops, and so has no dimension of checkpoints.

    Args:
        name: of the output.
        names: of all outputs.
    """
    return name in STOPPING or (name.endswith(AT_STOP) and name.removesuffix(AT_STOP) in names)


def at_stop(learner: Learner, environment: Environment, params: Any, play: Play) -> dict[str, jax.Array]:
    """What is read where the learner stops, or the horizon ends."""
    assert play.stopped is not None
    answers = judged(learner, environment, params, play)
    return {
        **dict(zip(STOPPING, (play.round, ~play.stopped), strict=True)),
        **{f"{name}{AT_STOP}": value for name, value in answers.items()},
    }


def merged(*groups: Mapping[str, jax.Array], taken: Collection[str] = ()) -> dict[str, jax.Array]:
    """All of them by name.

    Raises:
        ValueError: if two have one name, or one has a name that is taken.
    """
    found: dict[str, jax.Array] = {}
    for group in groups:
        twice = set(group) & {*found, *taken}
        if twice:
            raise ValueError(
                "names of outcomes, summaries, judged answers and records must differ, got "
                f"{', '.join(sorted(twice))} twice"
            )
        found |= group
    return found
