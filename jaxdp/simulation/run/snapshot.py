"""Reads outputs at a checkpoint: sums of outcomes, hindsight metrics, evaluated recommendations, and `record`."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxdp.core import Environment, Learner
from jaxdp.simulation.run import outcomes
from jaxdp.simulation.run.rounds import Play

STOPPING = ("rounds", "censored")
AT_STOP = "_at_stop"  # suffix of names of outputs that are read when a learner stops


class Snapshot(NamedTuple):
    """The state of one lane at a checkpoint, which is the argument of functions in `record`.

    Attributes:
        params: parameters of the run, with the entries "learner" and "environment". With late feedback, the parameters
            of the learner that you passed are `params["learner"].learner`.
        public: the learner's released state. With late feedback, the released state of the learner that you passed
            is `public.learner`.
        world: the environment's state.
        action: the latest action; None with the engine "counts".
        round: [] integer, number of rounds played.
    """

    params: Mapping[str, Any]
    public: Any
    world: Any
    action: Any
    round: jax.Array


RecordFn = Callable[[Snapshot], jax.Array]  # reads an array from a snapshot, inside the compiled program


def evaluate_recommendation(
    learner: Learner, environment: Environment, params: Any, play: Play
) -> dict[str, jax.Array]:
    """Returns the environment's evaluation of the learner's recommendation; empty if one of the functions is None."""
    if learner.recommend is None or environment.evaluate is None:
        return {}
    recommendation = learner.recommend(params["learner"], play.state.public)
    return _check_outputs("evaluate", environment.evaluate(params["environment"], play.world, recommendation))


def read_checkpoint(
    learner: Learner, environment: Environment, record: Mapping[str, RecordFn], params: Any, play: Play
) -> dict[str, jax.Array]:
    """Returns all outputs of a checkpoint, keyed by name."""
    snapshot = Snapshot(params, play.state.public, play.world, play.action, play.round)
    outputs = merge_outputs(
        outcomes.totals(play.outcomes),
        _check_outputs("hindsight", environment.hindsight(params["environment"], play.world))
        if environment.hindsight
        else {},
        evaluate_recommendation(learner, environment, params, play),
        _check_outputs("record", {name: function(snapshot) for name, function in record.items()}),
        taken=STOPPING,
    )
    for name in outputs:
        if is_at_stop(name, outputs):
            raise ValueError(f"names must not be the name of another output followed by {AT_STOP}, got {name}")
    return outputs


def _check_outputs(who: str, outputs: Any) -> dict[str, jax.Array]:
    """Returns the outputs of the function `who` as a dict; raises a ValueError unless they map names to arrays.

    `who` is "evaluate", "hindsight" or "record".
    """
    if not isinstance(outputs, Mapping):
        raise ValueError(f"{who} must return a dict of arrays, got {type(outputs).__name__}")
    for name, value in outputs.items():
        if not isinstance(value, jax.Array | np.ndarray | np.generic | int | float):
            raise ValueError(f"{who} must give an array for {name}, got {type(value).__name__}")
    return dict(outputs)


def is_at_stop(name: str, names: Collection[str]) -> bool:
    """Returns whether an output is read when the learner stops, and therefore has no dimension `round`."""
    return name in STOPPING or (name.endswith(AT_STOP) and name.removesuffix(AT_STOP) in names)


def at_stop(learner: Learner, environment: Environment, params: Any, play: Play) -> dict[str, jax.Array]:
    """Returns the outputs that are read when the learner stops, or at the horizon if it does not stop."""
    assert play.stopped is not None
    recommendations = evaluate_recommendation(learner, environment, params, play)
    return {
        **dict(zip(STOPPING, (play.round, ~play.stopped), strict=True)),
        **{f"{name}{AT_STOP}": value for name, value in recommendations.items()},
    }


def merge_outputs(*groups: Mapping[str, jax.Array], taken: Collection[str] = ()) -> dict[str, jax.Array]:
    """Merges dicts of outputs. Raises a ValueError if a name occurs twice or is in `taken`."""
    outputs: dict[str, jax.Array] = {}
    for group in groups:
        repeated = set(group) & {*outputs, *taken}
        if repeated:
            raise ValueError(
                "names of outcomes, metrics in hindsight, evaluated recommendations and records must differ, got "
                f"{', '.join(sorted(repeated))} twice"
            )
        outputs |= group
    return outputs
