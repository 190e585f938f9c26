"""Computes the exact distribution of a learner's releases, by enumerating every transcript of a tiny world.

A call of a learner's function draws one result and does not return its probability. So the caller gives the
distribution of each random function, from the algorithm's definition. Deterministic functions are called. This module
only checks that drawn results are possible under these distributions. Use `g_test` to compare sampled transcripts with
the computed distribution.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from numbers import Rational
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.adversary import Answer, History, UserData, feedback_of_action, num_rounds
from jaxdp.audit.exact import TOLERANCE, OutputDistribution
from jaxdp.audit.quick_programs import jit_quickly
from jaxdp.audit.seen import Parts, rounds_seen, visible_history
from jaxdp.audit.steps import at
from jaxdp.checks import check_made
from jaxdp.core import Guarantee, Learner
from jaxdp.validation import check_count

DIGITS = 5  # significant digits of floats in outcomes, so that outcomes agree if float32 arithmetic is reordered
NUM_KEYS = 64  # number of keys with which each function is called, for each combination of its arguments
MOST = 2**20  # maximum number of distinct transcripts of one round, after merging

Values = Sequence[tuple[Any, float]]
ValuesOf = Callable[..., Values | None]


def as_outcome(output: Any, *, digits: int = DIGITS) -> Hashable:
    """Converts an output to a hashable outcome, a key of a distribution.

    Args:
        output: pytree of arrays.
        digits: significant digits to which floats are rounded, >= 1, so that a float32 result equals the number that a
            distribution gives in float64. Floats that round to the same number are one outcome. Rounding is
            post-processing: it can only make an exact epsilon smaller. 17 digits change nothing.

    Returns:
        A single array becomes its number, or nested tuples of numbers; any other pytree becomes a tuple with the
        outcome of each leaf. NaN becomes the string "nan", which equals itself.

    Raises:
        ValueError: if digits is not an integer >= 1.

    Examples:
        >>> as_outcome(np.int32(3)), as_outcome((np.float32(0.1), np.asarray([True, False])))
        (3, (0.1, (True, False)))
    """
    check_count("digits", digits)
    leaves, structure = jax.tree.flatten(output)
    frozen = tuple(_freeze(np.asarray(leaf).tolist(), digits) for leaf in leaves)
    return frozen[0] if jax.tree_util.treedef_is_leaf(structure) else frozen


def outcomes(outputs: Any, *, digits: int = DIGITS) -> list[Hashable]:
    """Converts outputs to hashable outcomes for `g_test`, converting duplicates once.

    Args:
        outputs: pytree of [num_outputs, ...] arrays.
        digits: as for `as_outcome`.

    Returns:
        A list of num_outputs outcomes.

    Raises:
        ValueError: if digits is not an integer >= 1.

    Examples:
        >>> outcomes((np.asarray([2, 1, 2]), np.asarray([0.5, 0.5, 0.5])))
        [(2, 0.5), (1, 0.5), (2, 0.5)]
    """
    distinct, which = _distinct(outputs)
    converted = [as_outcome(output, digits=digits) for output in distinct]
    return [converted[k] for k in which]


def transcript_distribution(
    learner: Learner,
    params: Any,
    users: UserData,
    *,
    guarantee: Guarantee,
    changed: int | None = None,
    answer: Answer = feedback_of_action,
    adaptive: bool = False,
    init_distribution: ValuesOf | None = None,
    act_distribution: ValuesOf | None = None,
    report_distribution: ValuesOf | None = None,
    update_distribution: ValuesOf | None = None,
    digits: int = DIGITS,
) -> OutputDistribution:
    """Enumerates the exact distribution of an adversary's view of a learner's transcript.

    Each of the four distributions takes the arguments of its function except the key (`params` as given here, all
    others as NumPy arrays). It returns a list of all possible values with their probabilities, [(value, probability),
    ...]. A distribution that is None marks a function as deterministic. A distribution that returns None marks its
    function as deterministic at these arguments.

    After each round, transcripts with the same state and the same view are merged. So the time grows with the number
    of different states and views, not with the number of transcripts.

    Args:
        learner: the learner. Its stopping time is not used.
        params: the learner's params, as `params(**values)` returns them.
        users: [rounds, ...], one user for each round.
        guarantee: the learner's claim, which determines the view (`jaxdp.audit.seen.rounds_seen`).
        changed: the round of the user who differs between neighbours; only the local and the joint model need it.
        answer: (answers, history, action) -> feedback.
        adaptive: whether `answer` reads its `History`, in which `reports` is None. Transcripts with different pasts are
            then not merged.
        init_distribution: the distribution of `init`: (params) -> values.
        act_distribution: the distribution of `act`: (params, public, context) -> values.
        report_distribution: the distribution of `privatize`: (params, public, context, action, feedback) -> values.
        update_distribution: the distribution of `update`: (params, state, report) -> values.
        digits: significant digits to which floats of the view are rounded, as for `as_outcome`.

    Returns:
        A probability > 0 for each possible view, converted by `as_outcome`. If all given probabilities are fractions,
        each result is the float nearest to the exact one.

    Raises:
        ValueError: if a function returns different results with 64 keys, and its distribution is None or returns None;
            if a function returns a value that its distribution lacks; if a distribution's values differ from the
            function's results in structure or shapes, or are fractions where these are integers; if probabilities are
            negative or do not sum to 1 within 1e-6; if `answer` reads the past and adaptive is False; if one round has
            more than 2^20 transcripts after merging; if changed is not a round in the local or the joint model; if
            learner is not a Learner, users have no rounds or different numbers of rounds, or digits is not an integer
            >= 1.

    Deviations:
        Where no distribution is given, a function that returns the same result with 64 keys is taken to be
        deterministic. The initial public state, which `init` may draw, is not in the view, except in the local model
        if changed is 0 and the claim shows `public`: the view then has the state before the report.

    Examples:
        >>> from jaxdp.audit import exact_epsilon
        >>> from jaxdp.bandits import explore_then_commit
        >>> learner = explore_then_commit(num_arms=2, explore_rounds=2)
        >>> params, claim = learner.params(epsilon=1.0), learner.guarantee(epsilon=1.0)
        >>> def commit(params, state, report):  # Laplace noise of scale 1 on both totals, which differ by 1 at most
        ...     if state.public.round == 0:
        ...         return None  # deterministic here
        ...     totals = state.private.totals + np.arange(2) * report[1]  # the second arm was played
        ...     ahead = 1 - 1.5 / 2 * math.exp(-1) if totals[0] > totals[1] else 0.5
        ...     return [(state._replace(private=type(state.private)(totals), public=type(state.public)(2, arm)), chance)
        ...             for arm, chance in ((0, ahead), (1, 1 - ahead))]
        >>> distributions = [
        ...     transcript_distribution(learner, params, UserData(np.asarray([[paid, 0], [0, 0]])), guarantee=claim,
        ...                             update_distribution=commit)
        ...     for paid in (0, 1)]
        >>> distributions[0]  # plays, round, best arm
        {((0, 1), (1, 2), (-1, 0)): 0.5, ((0, 1), (1, 2), (-1, 1)): 0.5}
        >>> round(exact_epsilon(*distributions), 3)
        0.595
    """
    check_made("learner", learner, Learner)
    check_count("digits", digits)
    rounds = num_rounds(users)
    visible = rounds_seen(guarantee, changed, rounds)
    # In the local model the transcript ends with the changed user's report: later values follow from others' data.
    last = visible.reports[0] if guarantee.trust_model == "local" else None
    users = jax.tree.map(lambda x: np.asarray(jnp.asarray(x)), users)
    init = _values_function("init", learner.init, "init_distribution", init_distribution)
    act = _values_function("act", learner.act, "act_distribution", act_distribution)
    privatize = _values_function("privatize", learner.privatize, "report_distribution", report_distribution)
    update = _values_function("update", learner.update, "update_distribution", update_distribution)

    def ask(answers: Any, history: Any, action: Any) -> Any:
        history = history if adaptive else _Forgotten()
        return answer(answers, history, action)

    answer_on_host = jit_quickly(ask)

    nodes: _Nodes = {}
    for state, chance in init(params):
        _add(nodes, _Node(state, (), ()), chance)
    for round_ in range(rounds if last is None else last + 1):
        answers, context = at(users, round_)
        next_nodes: _Nodes = {}
        for node, probability in _merge(nodes):
            public = node.state.public
            for action, action_chance in act(params, public, context):
                history = _history(guarantee, changed, node.earlier, public, action, rounds) if adaptive else None
                feedback = jax.tree.map(np.asarray, answer_on_host(answers, history, action))
                for report, report_chance in privatize(params, public, context, action, feedback):
                    states = [(node.state, 1)] if round_ == last else update(params, node.state, report)
                    for after, state_chance in states:
                        step = Parts(action, report, public, after.public)
                        earlier = (*node.earlier, step) if adaptive else ()
                        grown_node = _Node(after, earlier, (*node.records, _record(step, visible, round_, digits)))
                        _add(next_nodes, grown_node, probability * action_chance * report_chance * state_chance)
        nodes = next_nodes

    distribution: dict[Any, list[Any]] = {}
    for node, probability in _merge(nodes):
        distribution.setdefault(_assemble(node.records), []).append(probability)
    return {key: float(_sum(chances)) for key, chances in distribution.items()}


class _Node(NamedTuple):
    """A state that a transcript may reach, and the view of the rounds before this state."""

    state: Any
    earlier: tuple[Parts, ...]  # one for each round so far; empty if answers do not read the past
    records: tuple[Any, ...]  # `_record` of each round so far


_Nodes = dict[Any, tuple[_Node, list[Any]]]  # by content: a node, and the probabilities of the paths to it


class _Forgotten:
    """A past that was not stored; reading it raises an error."""

    def __getattr__(self, name: str) -> Any:
        raise ValueError(f"adaptive must be True for an answer that reads the past, got False, and it reads {name!r}")


def _add(nodes: _Nodes, node: _Node, chance: Any) -> None:
    if chance:
        nodes.setdefault((_content(node[:2]), node.records), (node, []))[1].append(chance)
        if len(nodes) > MOST:
            raise ValueError(f"one round must have at most {MOST} transcripts, got more: take fewer rounds or actions")


def _merge(nodes: _Nodes) -> Iterable[tuple[_Node, Any]]:
    return ((node, _sum(chances)) for node, chances in nodes.values())


def _sum(chances: Sequence[Any]) -> Any:
    """Sums probabilities, exactly for fractions."""
    return sum(chances) if all(isinstance(chance, Rational) for chance in chances) else math.fsum(chances)


def _values_function(
    name: str, function: Callable[..., Any], argument: str, distribution: ValuesOf | None
) -> Callable[..., Values]:
    """Returns a memoized function (params, ...) -> all (value, probability) pairs of `function(key, params, ...)`."""
    draw = jit_quickly(lambda keys, *arguments: jax.vmap(lambda key: function(key, *arguments))(keys))
    keys = jax.random.split(jax.random.key(0), NUM_KEYS)
    cache: dict[Any, Values] = {}

    def values_of(*arguments: Any) -> Values:
        content = _content(arguments)
        if content not in cache:
            distinct, _ = _distinct(draw(keys, *arguments))
            cache[content] = _values(
                name, argument, None if distribution is None else distribution(*arguments), distinct
            )
        return cache[content]

    return values_of


def _values(name: str, argument: str, given_values: Values | None, distinct: list[Any]) -> Values:
    """Returns (value, probability) pairs, after comparing the caller's pairs with the sampled `distinct` values.

    If the caller gives None, there must be a single sampled value, which gets probability 1.
    """
    if given_values is None:
        if len(distinct) > 1:
            raise ValueError(
                f"{argument} must give the distribution of {name} where it is random, got None where {NUM_KEYS} keys "
                f"give {len(distinct)} different results"
            )
        return [(distinct[0], 1)]
    values = [(_cast(argument, value, distinct[0]), chance) for value, chance in given_values]
    chances = [chance for _, chance in values]
    if not all(chance >= 0 for chance in chances) or not abs(_sum(chances) - 1) <= TOLERANCE:
        raise ValueError(f"{argument} must have probabilities >= 0 that sum to 1, got {chances}")
    possible = {as_outcome(value) for value, chance in values if chance}
    for value in distinct:
        if as_outcome(value) not in possible:
            raise ValueError(
                f"{argument} must list every value that {name} can return, got no probability for {as_outcome(value)}"
            )
    return values


def _cast(argument: str, value: Any, like: Any) -> Any:
    """Converts the leaves of a value to the dtypes of `like`.

    Raises a ValueError if structures or shapes differ, or if an integer or a truth value would change.
    """

    def sketch(tree: Any) -> Any:
        return jax.tree.structure(tree), [np.shape(leaf) for leaf in jax.tree.leaves(tree)]

    if sketch(value) != sketch(like):
        raise ValueError(
            f"{argument} must have values of the structure and shapes of its function's results, {sketch(like)}, got "
            f"{sketch(value)}"
        )

    def convert(leaf: Any, leaf_like: np.ndarray) -> np.ndarray:
        given, dtype = np.asarray(leaf), leaf_like.dtype
        with np.errstate(invalid="ignore"):
            converted = given.astype(dtype)
        if not jnp.issubdtype(dtype, jnp.inexact) and not (converted == given).all():
            raise ValueError(f"{argument} must have values of dtype {dtype} where its function has, got {leaf}")
        return converted

    return jax.tree.map(convert, value, like)


def _record(step: Parts, visible: Parts, round_: int, digits: int) -> tuple[Any, ...]:
    """Returns, for each part of one round, the part's leaves as hashable values; None for an unobserved part."""
    return tuple(
        tuple(_freeze(leaf.tolist(), digits) for leaf in jax.tree.leaves(part)) if round_ in rounds_of_part else None
        for part, rounds_of_part in zip(step, visible, strict=True)
    )


def _assemble(records: tuple[Any, ...]) -> Hashable:
    """Joins the `_record` of every round: for each observed leaf, a tuple of its values over the rounds."""
    parts = zip(*records, strict=True)
    return tuple(leaf for part in parts for leaf in zip(*(x for x in part if x is not None), strict=True))


def _history(
    claim: Guarantee, changed: int | None, earlier: tuple[Parts, ...], public: Any, action: Any, rounds: int
) -> History:
    """Returns the past, without reports, that an adversary may react to; arrays are zero in rounds not yet played."""

    def pad(like: np.ndarray, *played: np.ndarray) -> np.ndarray:
        return np.stack([*played, *[np.zeros_like(like)] * (rounds - len(played))])

    actions = jax.tree.map(pad, action, *(step.actions for step in earlier))
    after = jax.tree.map(pad, public, *(step.after for step in earlier))
    return visible_history(claim, changed, History(np.int32(len(earlier)), actions, after))  # pyright: ignore[reportArgumentType]


def _distinct(values: Any) -> tuple[list[Any], np.ndarray]:
    """Returns the distinct rows of a pytree of [number, ...] arrays, and for each row its index in this list."""
    leaves, structure = jax.tree.flatten(jax.tree.map(np.asarray, values))
    if not leaves:
        return [values], np.zeros(0, np.intp)
    raw = [np.ascontiguousarray(leaf.reshape(len(leaf), math.prod(leaf.shape[1:]))).view(np.uint8) for leaf in leaves]
    bits = np.concatenate(raw, axis=1)
    if not len(bits):
        return [], np.zeros(0, np.intp)
    if (bits == bits[0]).all():  # the fast case: most functions are deterministic
        first, which = np.zeros(1, np.intp), np.zeros(len(bits), np.intp)
    else:
        _, first, which = np.unique(bits, axis=0, return_index=True, return_inverse=True)
    return [jax.tree.unflatten(structure, [leaf[k] for leaf in leaves]) for k in first], which.ravel()


def _freeze(value: Any, digits: int) -> Hashable:
    if isinstance(value, list):
        return tuple(_freeze(item, digits) for item in value)
    if not isinstance(value, float):
        return value
    return float(f"{value:.{digits}g}") + 0.0 if value == value else "nan"  # -0.0 is 0.0


def _content(tree: Any) -> Hashable:
    """Returns a hashable object that is equal for pytrees with the same structure, dtypes, shapes and bits."""
    leaves, structure = jax.tree.flatten(tree)
    arrays = map(np.asarray, leaves)
    return structure, tuple((array.dtype.str, array.shape, array.tobytes()) for array in arrays)
