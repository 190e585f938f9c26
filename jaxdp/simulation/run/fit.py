"""Checks that a learner and an environment fit together, by tracing shapes before anything is compiled."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.checks import check_leaves
from jaxdp.core import BlockPlan, Blocks, CountPlan, Environment, Interface, Learner, State
from jaxdp.core.interface import fits, text
from jaxdp.simulation.run.blocks import privatize_block
from jaxdp.simulation.run.rounds import Keys

NOT_IN_LOOPS = ("params", "guarantee", "init", "clip", "hindsight", "means", "made_by")


class Shown(NamedTuple):
    """The shapes of a round's context, action and outcomes.

    Attributes:
        context: pytree, or None if the environment has no contexts.
        action: pytree.
        outcome: dict from name to a scalar.
    """

    context: Any
    action: Any
    outcome: Any


def begin(who: str, init: Callable[..., Any], key: jax.Array, params: Any) -> Any:
    """Returns `init(key, params)`.

    Raises a ValueError with `who` if `init` raises a TypeError or AttributeError, or returns a leaf that is neither a
    number nor an array or has an integer that JAX's type cannot hold. A `jax.errors.JAXTypeError` is raised as it is.
    """
    try:
        initial = init(key, params)
    except jax.errors.JAXTypeError:  # JAX's message is better
        raise
    except (TypeError, AttributeError) as error:
        raise ValueError(f"{who} must take (key, params), but does not accept its arguments: {error}") from error
    return check_leaves(f"the result of {who}", initial, allow_keys=True)


def check_state(state: Any) -> State:
    """Returns the learner's state, after checking its type."""
    if not isinstance(state, State):
        raise ValueError(f"init must return a State(private, public), got {type(state).__name__}")
    return state


def trace_once(part: Any) -> Any:
    """Returns the learner or environment with functions that are traced only once, for both checks and loops.

    The compiled program does not change. Every call returns new functions, so that traces for one kind of device are
    not used for another kind.
    """

    def convert(name: str, value: Any) -> Any:
        if name == "blocks":
            return tuple(trace_once(blocks) for blocks in value)
        if name == "counts" and value is not None:
            return trace_once(value)
        return jax.jit(partial(value), inline=True) if callable(value) and name not in NOT_IN_LOOPS else value

    return part._replace(**{name: convert(name, value) for name, value in part._asdict().items()})


def check_round(learner: Learner, environment: Environment, keys: Keys, params: Any, state: State, world: Any) -> Shown:
    """Traces one round, function by function. Returns the shapes of the round's context, action and outcomes.

    Args:
        learner: the learner that plays.
        environment: the environment that the learner plays.
        keys: keys of a round.
        params: parameters, with the entries "learner" and "environment".
        state: state of the learner, from its `init`.
        world: state of the environment, from its `init`.

    Raises:
        ValueError: if a function does not accept the result of another function; if actions, feedback, contexts or
            recommendations do not match the declared interface; if a round changes the structure, a shape or a dtype of
            the learner's state or of the world; if outcomes are not scalars, or `done` does not return a scalar bool.
        jax.errors.JAXTypeError: if JAX cannot trace a function, for example because it branches on a traced value.
    """
    learner_params, env_params = params["learner"], params["environment"]
    context = None
    if environment.context:
        context = _trace("the environment's context", environment.context, keys.context, env_params, world)
    action = _trace("the learner's act", learner.act, keys.act, learner_params, state.public, context)
    triple = _trace("the environment's feedback", environment.feedback, keys.feedback, env_params, world, action)
    next_world, feedback, outcome = _check_triple("the environment's feedback", "(world, feedback", triple)
    for who, interface in (("the learner", learner.interface), ("the environment", environment.interface)):
        _check_interface(who, interface, context, action, feedback)
    for name, leaf in outcome.items():
        if not isinstance(leaf, jax.ShapeDtypeStruct) or leaf.shape != () or not _is_real(leaf):
            raise ValueError(f"outcomes must be real scalars, got {_type_names(leaf)} for {name}")
    report = _trace(
        "the learner's privatize", learner.privatize, keys.user, learner_params, state.public, context, action, feedback
    )
    next_state = _trace("the learner's update", learner.update, keys.update, learner_params, state, report)
    _check_stable("the learner's update", "state", state, next_state)
    _check_stable("the environment's feedback", "world", world, next_world)
    _check_recommendation(learner, environment, params, state, world)
    if learner.done is not None:
        done = _trace("the learner's done", learner.done, learner_params, state.public)
        if not isinstance(done, jax.ShapeDtypeStruct) or done.shape != () or done.dtype != bool:
            raise ValueError(f"done must return one truth value, got {_type_names(done)}")
    return Shown(context, action, outcome)


def _check_recommendation(learner: Learner, environment: Environment, params: Any, state: State, world: Any) -> None:
    if learner.recommend is None:
        return
    recommendation = _trace("the learner's answer", learner.recommend, params["learner"], state.public)
    for who, interface in (("the learner", learner.interface), ("the environment", environment.interface)):
        if interface is not None:
            _check_fits("recommendation", interface.recommendation, who, recommendation)
    if environment.evaluate is not None:
        _trace("the environment's evaluate", environment.evaluate, params["environment"], world, recommendation)


def check_many(
    learner: Learner,
    environment: Environment,
    engine: str,
    keys: Keys,
    params: Any,
    state: State,
    world: Any,
    shapes: Shown,
) -> None:
    """Traces the functions of the engine "blocks" or "counts", after `check_round` returned `shapes`.

    Raises:
        ValueError: if a function does not accept the result of another function, or returns the wrong type; if
            contexts, actions, states or worlds differ from single rounds in structure, shape or dtype; if outcomes
            differ from single rounds in names, shape or kind; if `switch_when` is given for the last blocks, or missing
            for other blocks; if `slot_rounds` is given in a problem with contexts.
        jax.errors.JAXTypeError: as for `check_round`.
    """
    if engine == "counts":
        _check_counts(learner, environment, keys, params, state, world, shapes.outcome)
        return
    for index, blocks in enumerate(learner.blocks):
        last = index == len(learner.blocks) - 1
        if (blocks.switch_when is None) != last:
            rule = "must be None for the last blocks" if last else "must be given for all blocks except the last"
            raise ValueError(
                f"switch_when {rule}, got {blocks.switch_when} for blocks {index + 1} of {len(learner.blocks)}"
            )
        _check_blocks(blocks, learner, environment, keys, params, state, world, shapes)


def _check_counts(
    learner: Learner, environment: Environment, keys: Keys, params: Any, state: State, world: Any, outcome: Any
) -> None:
    counts, feedback_totals = learner.counts, environment.feedback_totals
    assert counts is not None
    assert feedback_totals is not None
    learner_params, limit = params["learner"], jax.ShapeDtypeStruct((), jnp.result_type(int))
    plan = _trace("the learner's counts.plan", counts.plan, keys.act, learner_params, state.public, limit)
    if not (isinstance(plan, CountPlan) and _is_integer(plan.counts, 1)):
        raise ValueError(f"counts.plan must return a CountPlan of [num_actions] integers, got {plan}")
    who = "the environment's feedback_totals"
    triple = _trace(who, feedback_totals, keys.feedback, params["environment"], world, plan.counts)
    after, totals, sums = _check_triple(who, "(world, totals", triple)
    _check_stable(who, "world", world, after)
    _check_outcomes(who, outcome, sums, ())
    report = _trace(
        "the learner's counts.privatize", counts.privatize, keys.user, learner_params, state.public, plan, totals
    )
    _check_stable(
        "the learner's counts.update_counts",
        "state",
        state,
        _trace(
            "the learner's counts.update_counts", counts.update_counts, keys.update, learner_params, state, plan, report
        ),
    )


def _check_blocks(
    blocks: Blocks,
    learner: Learner,
    environment: Environment,
    keys: Keys,
    params: Any,
    state: State,
    world: Any,
    shapes: Shown,
) -> None:
    context, action, outcome = shapes
    block = environment.block
    assert block is not None
    learner_params, limit = params["learner"], jax.ShapeDtypeStruct((), jnp.result_type(int))
    lead = (blocks.length,)
    all_keys = _add_axes(keys, lead)
    contexts = None
    if environment.context:
        assert environment.contexts is not None
        contexts = _trace(
            "the environment's contexts", environment.contexts, all_keys.context, params["environment"], world
        )
        _check_stable("the environment's contexts", "contexts", _add_axes(context, lead), contexts)
    if blocks.slot_rounds and environment.context:
        raise ValueError("slot_rounds must be None in a problem with contexts, got a function")
    if blocks.slot_rounds:
        order = _trace("the learner's blocks.slot_rounds", blocks.slot_rounds, learner_params, state.public)
        if not isinstance(order, jax.ShapeDtypeStruct):
            raise ValueError(f"blocks.slot_rounds must return integers of shape {lead}, got {type(order).__name__}")
        if order.shape != lead or not _is_integer(order, 1):
            raise ValueError(
                f"blocks.slot_rounds must return integers of shape {lead}, got {order.dtype}{list(order.shape)}"
            )
    plan = _trace("the learner's blocks.plan", blocks.plan, all_keys.act, learner_params, state.public, contexts, limit)
    if not (isinstance(plan, BlockPlan) and _is_integer(plan.length, 0)):
        raise ValueError(f"blocks.plan must return a BlockPlan with one integer length, got {plan}")
    _check_stable("the learner's blocks.plan", "actions", _add_axes(action, lead), plan.actions)
    who = "the environment's block"
    triple = _trace(who, block, all_keys.feedback, params["environment"], world, contexts, plan.actions)
    worlds, feedback, sums = _check_triple(who, "(worlds, feedback", triple)
    _check_stable(who, "worlds", _add_axes(world, lead), worlds)
    _check_outcomes(who, outcome, sums, lead)
    privatize = partial(privatize_block, learner)
    report = _trace(
        "the learner's privatize", privatize, all_keys.user, learner_params, state.public, contexts, plan, feedback
    )
    state_and_used = _trace(
        "the learner's blocks.update_block", blocks.update_block, all_keys.update, learner_params, state, plan, report
    )
    if isinstance(state_and_used, State) or not isinstance(state_and_used, tuple) or len(state_and_used) != 2:
        raise ValueError(f"blocks.update_block must return (State, rounds_used), got {type(state_and_used).__name__}")
    after, used = state_and_used
    if not _is_integer(used, 0):
        raise ValueError(f"blocks.update_block must return one integer of rounds used, got {_type_names(used)}")
    _check_stable("the learner's blocks.update_block", "state", state, after)
    if blocks.switch_when is not None:
        switch_when = _trace("the learner's blocks.switch_when", blocks.switch_when, learner_params, state.public)
        if not isinstance(switch_when, jax.ShapeDtypeStruct) or switch_when.shape != () or switch_when.dtype != bool:
            raise ValueError(f"blocks.switch_when must return one truth value, got {switch_when}")


def _check_triple(who: str, first_two: str, triple: Any) -> tuple[Any, Any, Mapping[str, Any]]:
    if not isinstance(triple, tuple) or len(triple) != 3 or not isinstance(triple[2], Mapping):
        raise ValueError(f"{who} must return a tuple {first_two}, dict of outcomes), got {_type_names(triple)}")
    return triple


def _check_outcomes(who: str, single: Any, in_block: Any, lead: tuple[int, ...]) -> None:
    """Raises a ValueError unless outcomes of many rounds have the shape `lead` and the same names as in one round.

    Each outcome must also have the same kind (float or not) as in one round.
    """
    if set(single) != set(in_block):
        raise ValueError(f"{who} must keep the names of the outcomes, got {sorted(single)} and then {sorted(in_block)}")
    for name, leaf in in_block.items():
        if not isinstance(leaf, jax.ShapeDtypeStruct) or not _is_real(leaf):
            raise ValueError(f"{who} must give real outcomes, got {_type_names(leaf)} for {name}")
        kinds = {jnp.issubdtype(outcome.dtype, jnp.floating) for outcome in (single[name], leaf)}
        if leaf.shape != lead or len(kinds) > 1:
            raise ValueError(
                f"{who} must give outcomes of shape {lead}, as floats if single rounds give floats, got "
                f"{leaf.dtype}{list(leaf.shape)} for {name}, and {single[name].dtype} in single rounds"
            )


def _is_integer(leaf: Any, num_axes: int) -> bool:
    is_array = isinstance(leaf, jax.ShapeDtypeStruct) and len(leaf.shape) == num_axes
    return is_array and jnp.issubdtype(leaf.dtype, jnp.integer)


def _is_real(leaf: jax.ShapeDtypeStruct) -> bool:
    return leaf.dtype == bool or any(jnp.issubdtype(leaf.dtype, kind) for kind in (jnp.integer, jnp.floating))


def _add_axes(tree: Any, lead: tuple[int, ...]) -> Any:
    tree = jax.eval_shape(lambda: tree)
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((*lead, *leaf.shape), leaf.dtype), tree)


def _trace(who: str, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return jax.eval_shape(function, *arguments)
    except jax.errors.JAXTypeError:  # for example a branch on a traced value: JAX's message is better
        raise
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise ValueError(
            f"learner and environment must fit, but {who} does not accept its arguments: {error}"
        ) from error


def _type_names(value: Any) -> str:
    """Returns dtype and shape of an array, and otherwise the names of the types of the value and its entries."""
    if isinstance(value, jax.ShapeDtypeStruct):
        return f"{value.dtype} of shape {value.shape}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_type_names, value))})"
    return type(value).__name__


def _check_interface(who: str, interface: Interface | None, context: Any, action: Any, feedback: Any) -> None:
    if interface is None:
        return
    for name, space, value in (
        ("action", interface.action, action),
        ("feedback", interface.feedback, feedback),
        ("context", interface.context, context),
    ):
        _check_fits(name, space, who, value)


def _check_fits(name: str, space: Any, who: str, value: Any) -> None:
    if space is not None and not fits(space, value):
        shapes = jax.tree.map(lambda leaf: f"{leaf.dtype} of shape {leaf.shape}", value)
        raise ValueError(f"{name} must be {text(space)}, as {who} declares, got {shapes}")


def _check_stable(who: str, what: str, before: Any, after: Any) -> None:
    before = jax.eval_shape(lambda: before)  # the first state may have Python numbers
    first, second = (jax.tree_util.tree_flatten_with_path(tree) for tree in (before, after))
    if first[1] != second[1]:
        raise ValueError(f"{who} must keep the structure of the {what}, got {first[1]} and then {second[1]}")
    for (path, old_leaf), (_, new_leaf) in zip(first[0], second[0], strict=True):
        if (old_leaf.shape, old_leaf.dtype) != (new_leaf.shape, new_leaf.dtype):
            name = jax.tree_util.keystr(path)
            raise ValueError(
                f"{who} must keep shapes and dtypes of the {what}, got {old_leaf.dtype}{list(old_leaf.shape)} and then "
                f"{new_leaf.dtype}{list(new_leaf.shape)} at {name}"
            )
