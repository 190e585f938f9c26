"""Outputs recorded at a checkpoint: sums, metrics in hindsight, evaluated answers, the user's records."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxdp.core import Environment, Learner
from jaxdp.simulation.run import outcomes
from jaxdp.simulation.run.rounds import Play

STOPPING = ("rounds", "censored")
AT_STOP = "_at_stop"  # suffix of the names of outputs that are read where a learner stops


class Look(NamedTuple):
    """The state of one lane, passed to functions that record something.

    Attributes:
        params: the run's, with the entries "learner" and "environment".
        public: the learner's released state.
        world: the environment's state.
        action: the latest; None by counts.
        round: [] integer, rounds played.
    """

    params: Mapping[str, Any]
    public: Any
    world: Any
    action: Any
    round: jax.Array


RecordFn = Callable[[Look], jax.Array]  # reads an array from a look, inside the compiled program


def evaluate_answer(learner: Learner, environment: Environment, params: Any, play: Play) -> dict[str, jax.Array]:
    """Returns the environment's evaluation of the learner's answer; nothing if either has no function for it."""
    if learner.answer is None or environment.judge is None:
        return {}
    answer = learner.answer(params["learner"], play.state.public)
    return _check_outputs("judge", environment.judge(params["environment"], play.world, answer))


def read_checkpoint(
    learner: Learner, environment: Environment, record: Mapping[str, RecordFn], params: Any, play: Play
) -> dict[str, jax.Array]:
    """Returns all outputs of a checkpoint, by name."""
    look = Look(params, play.state.public, play.world, play.action, play.round)
    outputs = merge_outputs(
        outcomes.totals(play.outcomes),
        _check_outputs("summary", environment.summary(params["environment"], play.world))
        if environment.summary
        else {},
        evaluate_answer(learner, environment, params, play),
        _check_outputs("record", {name: function(look) for name, function in record.items()}),
        taken=STOPPING,
    )
    for name in outputs:
        if is_at_stop(name, outputs):
            raise ValueError(f"names must not be those of other outputs with {AT_STOP} appended, got {name}")
    return outputs


def _check_outputs(who: str, outputs: Any) -> dict[str, jax.Array]:
    """Returns the result of a user's function as a dict, once it is known to be a dict of arrays."""
    if not isinstance(outputs, Mapping):
        raise ValueError(f"{who} must return a dict of arrays, got {type(outputs).__name__}")
    for name, value in outputs.items():
        if not isinstance(value, jax.Array | np.ndarray | np.generic | int | float):
            raise ValueError(f"{who} must give an array for {name}, got {type(value).__name__}")
    return dict(outputs)


def is_at_stop(name: str, names: Collection[str]) -> bool:
    """Returns whether an output is read where the learner stops, and so has no dimension of checkpoints."""
    return name in STOPPING or (name.endswith(AT_STOP) and name.removesuffix(AT_STOP) in names)


def at_stop(learner: Learner, environment: Environment, params: Any, play: Play) -> dict[str, jax.Array]:
    """Returns the outputs that are read where the learner stops, or at the end of the horizon."""
    assert play.stopped is not None
    answers = evaluate_answer(learner, environment, params, play)
    return {
        **dict(zip(STOPPING, (play.round, ~play.stopped), strict=True)),
        **{f"{name}{AT_STOP}": value for name, value in answers.items()},
    }


def merge_outputs(*groups: Mapping[str, jax.Array], taken: Collection[str] = ()) -> dict[str, jax.Array]:
    """Merges dicts of outputs.

    Raises:
        ValueError: if a name occurs twice, or is in `taken`.
    """
    outputs: dict[str, jax.Array] = {}
    for group in groups:
        twice = set(group) & {*outputs, *taken}
        if twice:
            raise ValueError(
                "names of outcomes, summaries, judged answers and records must differ, got "
                f"{', '.join(sorted(twice))} twice"
            )
        outputs |= group
    return outputs
