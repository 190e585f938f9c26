"""Checks that a learner and an environment fit: from shapes alone, before anything is compiled."""

from collections.abc import Callable
from typing import Any

import jax

from jaxdp.interface import Interface, Space
from jaxdp.learner import Environment, Learner, State
from jaxdp.simulation.rounds import Keys


def check_round(learner: Learner, environment: Environment, keys: Keys, params: Any, state: State, world: Any) -> None:
    """Traces one round, function by function.

    Args:
        learner: who plays.
        environment: what it plays against.
        keys: of a round.
        params: with the entries "learner" and "environment".
        state: the learner's, from `init`.
        world: the environment's, from `init`.

    Raises:
        ValueError: if a function does not take what another one gives; if actions, feedback or contexts are not of the
            declared interface; if a round changes the structure, a shape or a dtype of the learner's state or of
            the world; if outcomes are not scalars.
    """
    mine, theirs = params["learner"], params["environment"]
    if not isinstance(state, State):
        raise ValueError(f"init must return a State(private, public), got {type(state).__name__}")
    context = None
    if environment.context:
        context = _stage("the environment's context", environment.context, keys.context, theirs, world)
    action = _stage("the learner's act", learner.act, keys.act, mine, state.public, context)
    next_world, feedback, outcome = _stage(
        "the environment's feedback", environment.feedback, keys.feedback, theirs, world, action
    )
    for who, interface in (("the learner", learner.interface), ("the environment", environment.interface)):
        _check_interface(who, interface, context, action, feedback)
    for name, leaf in outcome.items():
        if leaf.shape != ():
            raise ValueError(f"outcomes must be scalars, got shape {leaf.shape} for {name}")
    report = _stage(
        "the learner's privatize", learner.privatize, keys.user, mine, state.public, context, action, feedback
    )
    next_state = _stage("the learner's update", learner.update, keys.update, mine, state, report)
    _check_stable("the learner's update", "state", state, next_state)
    _check_stable("the environment's feedback", "world", world, next_world)
    if learner.done is not None:
        done = _stage("the learner's done", learner.done, mine, state.public)
        if done.shape != () or done.dtype != bool:
            raise ValueError(f"done must return one truth value, got {done.dtype} of shape {done.shape}")


def _stage(who: str, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return jax.eval_shape(function, *arguments)
    except jax.errors.JAXTypeError:  # a branch on a traced value, say: its own message is better
        raise
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise ValueError(f"learner and environment must fit, but {who} cannot take what it gets: {error}") from error


def _check_interface(who: str, interface: Interface | None, context: Any, action: Any, feedback: Any) -> None:
    if interface is None:
        return
    for name, space, value in (
        ("action", interface.action, action),
        ("feedback", interface.feedback, feedback),
        ("context", interface.context, context),
    ):
        if space is not None and not _fits(space, value):
            found = jax.tree.map(lambda leaf: f"{leaf.dtype} of shape {leaf.shape}", value)
            raise ValueError(f"{name} must be {space}, as {who} declares, got {found}")


def _fits(space: Space, value: Any) -> bool:
    return isinstance(value, jax.ShapeDtypeStruct) and space.fits(value)


def _check_stable(who: str, what: str, before: Any, after: Any) -> None:
    before = jax.eval_shape(lambda: before)  # it may start with Python numbers
    first, second = (jax.tree_util.tree_flatten_with_path(tree) for tree in (before, after))
    if first[1] != second[1]:
        raise ValueError(f"{who} must keep the structure of the {what}, got {first[1]} and then {second[1]}")
    for (path, old), (_, new) in zip(first[0], second[0], strict=True):
        if (old.shape, old.dtype) != (new.shape, new.dtype):
            name = jax.tree_util.keystr(path)
            raise ValueError(
                f"{who} must keep shapes and dtypes of the {what}, got {old.dtype}{list(old.shape)} and then "
                f"{new.dtype}{list(new.shape)} at {name}"
            )
