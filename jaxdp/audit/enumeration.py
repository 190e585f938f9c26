"""The exact distribution of a learner's releases, by enumeration of every transcript of a tiny world.

A learner's functions draw from keys, and a call does not return the probability of its result. So the caller gives the
distribution of each function that draws, from the algorithm's definition; every other function is called. These
distributions are checked against draws only roughly here: compare sampled transcripts with the result by `g_test`.
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
from jaxdp.audit.play import Transcript
from jaxdp.audit.seen import Parts, rounds_seen, visible_history
from jaxdp.audit.steps import at
from jaxdp.checks import check_made
from jaxdp.core import Guarantee, Learner
from jaxdp.validation import check_count

DIGITS = 5  # digits of floats in outcomes that agree even if float32 arithmetic is reordered
NUM_KEYS = 64  # for the calls of each function at each of its arguments
MOST = 2**20  # distinct transcripts of one round, after merging

Values = Sequence[tuple[Any, float]]
Told = Callable[..., Values | None]


def as_outcome(output: Any, *, digits: int = DIGITS) -> Hashable:
    """Converts an output to a hashable outcome, a key of a distribution.

    Args:
        output: pytree of arrays.
        digits: to which floats are rounded, >= 1, so that a float32 result equals the number that a distribution gives
            in float64. Floats that differ by less are one outcome. This is post-processing: it can only make an exact
            epsilon smaller. 17 rounds nothing.

    Returns:
        For one array its number, or nested tuples of numbers; for any other pytree the tuple of these for its leaves.
        NaN is the string "nan", which equals itself.

    Examples:
        >>> as_outcome(np.int32(3)), as_outcome((np.float32(0.1), np.asarray([True, False])))
        (3, (0.1, (True, False)))
    """
    leaves, structure = jax.tree.flatten(output)
    frozen = tuple(_freeze(np.asarray(leaf).tolist(), digits) for leaf in leaves)
    return frozen[0] if jax.tree_util.treedef_is_leaf(structure) else frozen


def outcomes(outputs: Any, *, digits: int = DIGITS) -> list[Hashable]:
    """Converts outputs to hashable outcomes for `g_test`, converting duplicates once.

    Args:
        outputs: pytree of [num_outputs, ...] arrays.
        digits: as for `as_outcome`.

    Returns:
        num_outputs outcomes.

    Examples:
        >>> outcomes((np.asarray([2, 1, 2]), np.asarray([0.5, 0.5, 0.5])))
        [(2, 0.5), (1, 0.5), (2, 0.5)]
    """
    distinct, which = _distinct(outputs)
    converted = [as_outcome(output, digits=digits) for output in distinct]
    return [converted[k] for k in which]


def observed_parts(transcript: Transcript, claim: Guarantee, changed: int | None = None) -> Parts:
    """Selects the parts of a transcript of single rounds that an adversary sees, by `jaxdp.audit.seen.rounds_seen`.

    Arrays are [rounds seen, ...]; a part that is not seen is None.
    """
    whole = Parts(transcript.actions, transcript.reports, transcript.before, transcript.after)
    return Parts(
        *(
            jax.tree.map(lambda x, shown=shown: x[np.asarray(shown)], part) if shown else None
            for part, shown in zip(whole, rounds_seen(claim, changed, len(transcript.length)), strict=True)
        )
    )


def transcript_distribution(
    learner: Learner,
    params: Any,
    users: UserData,
    *,
    guarantee: Guarantee,
    changed: int | None = None,
    answer: Answer = feedback_of_action,
    adaptive: bool = False,
    init_distribution: Told | None = None,
    act_distribution: Told | None = None,
    report_distribution: Told | None = None,
    update_distribution: Told | None = None,
    digits: int = DIGITS,
) -> OutputDistribution:
    """Enumerates the exact distribution of an adversary's view of a learner's transcript, round after round.

    Each of the four distributions takes the arguments of its function except the key, as NumPy arrays, and returns all
    possible values with their probabilities: [(value, probability), ...]. None, in place of the distribution or as its
    result, means that the function is deterministic, everywhere or at these arguments.

    Transcripts with the same state and the same view are merged, so that the time grows with the number of these and
    not with the number of all transcripts.

    Args:
        learner: whose transcripts are enumerated. Its stopping time is not used.
        params: the learner's, as `params(**values)` makes them.
        users: one for each round.
        guarantee: the learner's: it determines the view, see `observed_parts`.
        changed: the round of the user who differs between neighbours; only the local and the joint model need it.
        answer: how users answer; see `jaxdp.audit.play.play`.
        adaptive: whether `answer` reads the past. Transcripts with different pasts are then not merged.
        init_distribution: of `init`: (params) -> values.
        act_distribution: of `act`: (params, public, context) -> values.
        report_distribution: of `privatize`: (params, public, context, action, feedback) -> values.
        update_distribution: of `update`: (params, state, report) -> values.
        digits: to which floats of the view are rounded; see `as_outcome`.

    Returns:
        Probabilities > 0 by outcome, that of `observed_parts` of the transcript. If all given probabilities are
        fractions, each is the float next to the exact one.

    Raises:
        ValueError: if a function without a given distribution gives different results with 64 keys; if it gives a value
            that its distribution does not have, or the distribution's values have another structure or other shapes
            than its results, or its probabilities are negative or do not sum to 1; if `answer` reads the past and
            adaptive is False; if there are more than 2^20 transcripts; or as `observed_parts`.

    Deviations:
        A function that gives the same result with all of 64 keys is taken to be deterministic. A draw of `init` in
        `public` counts as seen only in states after rounds, and before the report in the local model.

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
        update_distribution=commit) ...     for paid in (0, 1) ... ]
        >>> distributions[0]  # plays, round, best arm
        {((0, 1), (1, 2), (-1, 0)): 0.5, ((0, 1), (1, 2), (-1, 1)): 0.5}
        >>> round(exact_epsilon(*distributions), 3)
        0.595
    """
    check_made("learner", learner, Learner)
    check_count("digits", digits)
    rounds = num_rounds(users)
    visible = rounds_seen(guarantee, changed, rounds)
    last = visible.reports[0] if guarantee.trust_model == "local" else None  # later values follow from others' data
    users = jax.tree.map(lambda x: np.asarray(jnp.asarray(x)), users)
    init = _values_function("init", learner.init, "init_distribution", init_distribution)
    act = _values_function("act", learner.act, "act_distribution", act_distribution)
    privatize = _values_function("privatize", learner.privatize, "report_distribution", report_distribution)
    update = _values_function("update", learner.update, "update_distribution", update_distribution)

    def ask(answers: Any, history: Any, action: Any) -> Any:
        history = history if adaptive else _Forgotten()
        return answer(answers, history, action)

    answer_on_host = jax.jit(ask)

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
                        grown_node = _Node(after, earlier, (*node.seen, _record(step, visible, round_, digits)))
                        _add(next_nodes, grown_node, probability * action_chance * report_chance * state_chance)
        nodes = next_nodes

    distribution: dict[Any, list[Any]] = {}
    for node, probability in _merge(nodes):
        distribution.setdefault(_assemble(node.seen), []).append(probability)
    return {key: float(_sum(chances)) for key, chances in distribution.items()}


class _Node(NamedTuple):
    """A state that a transcript may reach.

    Attributes:
        state: the learner's.
        earlier: the rounds so far; empty if nobody reads the past.
        seen: for each round and each part of the transcript, the leaves as parts of outcomes; None for an unseen part.
    """

    state: Any
    earlier: tuple[Parts, ...]
    seen: tuple[Any, ...]


_Nodes = dict[Any, tuple[_Node, list[Any]]]  # by content: a node, and the probabilities of the paths to it


class _Forgotten:
    """Stands for a past that is not stored."""

    def __getattr__(self, name: str) -> Any:
        raise ValueError(f"adaptive must be True for an answer that reads the past, got False, and it reads {name!r}")


def _add(nodes: _Nodes, node: _Node, chance: Any) -> None:
    if chance:
        nodes.setdefault((_content(node[:2]), node.seen), (node, []))[1].append(chance)
        if len(nodes) > MOST:
            raise ValueError(f"transcripts of one round must be at most {MOST}, got more: take fewer rounds or actions")


def _merge(nodes: _Nodes) -> Iterable[tuple[_Node, Any]]:
    return ((node, _sum(chances)) for node, chances in nodes.values())


def _sum(chances: Sequence[Any]) -> Any:
    """Sums probabilities, exactly for fractions."""
    return sum(chances) if all(isinstance(chance, Rational) for chance in chances) else math.fsum(chances)


def _values_function(
    name: str, function: Callable[..., Any], argument: str, distribution: Told | None
) -> Callable[..., Values]:
    """Returns a memoized function (params, ...) -> the values of a function of (key, params, ...)."""
    drawn = jax.jit(lambda keys, *arguments: jax.vmap(lambda key: function(key, *arguments))(keys))
    keys = jax.random.split(jax.random.key(0), NUM_KEYS)
    cache: dict[Any, Values] = {}

    def values_of(*arguments: Any) -> Values:
        content = _content(arguments)
        if content not in cache:
            distinct, _ = _distinct(drawn(keys, *arguments))
            cache[content] = _values(
                name, argument, None if distribution is None else distribution(*arguments), distinct
            )
        return cache[content]

    return values_of


def _values(name: str, argument: str, given_values: Values | None, distinct: list[Any]) -> Values:
    """Returns a function's values at some arguments, from the caller's distribution and from sampled values."""
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
            raise ValueError(f"{argument} must have all that {name} returns, got nothing for {as_outcome(value)}")
    return values


def _cast(argument: str, value: Any, like: Any) -> Any:
    """Converts a value to the types of another."""

    def sketch(tree: Any) -> Any:
        return jax.tree.structure(tree), [np.shape(leaf) for leaf in jax.tree.leaves(tree)]

    if sketch(value) != sketch(like):
        raise ValueError(
            f"{argument} must have values of the structure and shapes of its function's results, {sketch(like)}, got "
            f"{sketch(value)}"
        )
    return jax.tree.map(lambda x, y: np.asarray(x, y.dtype), value, like)


def _record(step: Parts, shown: Parts, round_: int, digits: int) -> tuple[Any, ...]:
    """Returns the observed leaves of each part of one round, or None."""
    return tuple(
        tuple(_freeze(leaf.tolist(), digits) for leaf in jax.tree.leaves(part)) if round_ in rounds_of_part else None
        for part, rounds_of_part in zip(step, shown, strict=True)
    )


def _assemble(records: tuple[Any, ...]) -> Hashable:
    """Concatenates the observed values of every leaf over rounds: the outcome of `observed_parts` of the transcript."""
    parts = zip(*records, strict=True)
    return tuple(leaf for part in parts for leaf in zip(*(x for x in part if x is not None), strict=True))


def _history(
    claim: Guarantee, changed: int | None, earlier: tuple[Parts, ...], public: Any, action: Any, rounds: int
) -> History:
    """Returns the past that an adversary may react to, as `play` does, except for reports."""

    def pad(like: np.ndarray, *played: np.ndarray) -> np.ndarray:
        return np.stack([*played, *[np.zeros_like(like)] * (rounds - len(played))])

    actions = jax.tree.map(pad, action, *(step.actions for step in earlier))
    after = jax.tree.map(pad, public, *(step.after for step in earlier))
    return visible_history(claim, changed, History(np.int32(len(earlier)), actions, after))  # pyright: ignore[reportArgumentType]


def _distinct(many: Any) -> tuple[list[Any], np.ndarray]:
    """Returns the distinct rows of a pytree of [number, ...] arrays, and for each row the index of its equal."""
    leaves, structure = jax.tree.flatten(jax.tree.map(np.asarray, many))
    if not leaves:
        return [many], np.zeros(0, np.intp)
    raw = [np.ascontiguousarray(leaf.reshape(len(leaf), -1)).view(np.uint8) for leaf in leaves]
    bits = np.concatenate(raw, axis=1)
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
    """Returns a key that is equal for pytrees of the same arrays."""
    leaves, structure = jax.tree.flatten(tree)
    arrays = map(np.asarray, leaves)
    return structure, tuple((array.dtype.str, array.shape, array.tobytes()) for array in arrays)
