"""Worlds of the benchmark. Answers with few levels do not depend on JAX's version, the precision or the processor."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.bandits.contextual import generalized_linear_contexts, linear_contexts
from jaxdp.core import Environment, Problem, Sample, Space, Visits, add_visits, default_float
from jaxdp.core.params import pytree_dataclass
from jaxdp.estimation import gaussian_rewards
from jaxdp.experts._comparators import Comparison, add_round, init_comparison, metrics
from jaxdp.experts._losses import losses_interface
from jaxdp.numerics.lookup import entry, nearest_entry
from jaxdp.random._simulation_bits import simulation_bits
from jaxdp.random.key_bits import own_word

PER_MILLE = 2**32 // 1000  # threshold of a probability of 1/1000, rounded down


@pytree_dataclass
class Frozen:
    """An instance: the integer thresholds that decide answers, and the parameters from which outcomes are computed.

    Attributes:
        thresholds: [num_stages, ...] uint32.
        starts: [num_stages] int32, increasing from 0, the first round of each stage.
        base: parameters of the world that computes outcomes.
    """

    thresholds: np.ndarray
    starts: np.ndarray
    base: Any = ()


class Losses(NamedTuple):
    """The state of `experts_world`: rounds played, the expert played last (-1 at the start), and sums of losses."""

    round: jax.Array
    last: jax.Array
    comparison: Comparison


def thresholds_of(per_mille: Any) -> np.ndarray:
    """Returns the uint32 thresholds of probabilities that are given as integers in thousandths, to within 7e-8.

    Raises:
        ValueError: if an entry is not an integer in [0, 1000].
    """
    parts = np.asarray(per_mille)
    if not np.issubdtype(parts.dtype, np.integer) or parts.min() < 0 or parts.max() > 1000:
        raise ValueError(f"per_mille must be integers in [0, 1000], got {per_mille!r}")
    return (parts.astype(np.uint64) * np.uint64(PER_MILLE)).astype(np.uint32)


def _stage(params: Frozen, round_: jax.Array) -> jax.Array:
    """Returns the thresholds of the stage to which a round belongs."""
    stage = jnp.sum((round_ >= jnp.asarray(params.starts)).astype(jnp.int32)) - 1
    return jnp.asarray(params.thresholds)[stage]


def arms_world(base: Environment, per_mille: Any, starts: tuple[int, ...] = (0,)) -> Environment:
    """Returns a bandit with rewards in {0, 1/n, ..., 1}: the fraction of an arm's n thresholds above a random word.

    Args:
        base: the bandit with the means of the first stage, which computes outcomes; gaps are the same in all stages.
        per_mille: [num_stages, num_arms, n] integers in thousandths, not increasing along the last axis.
        starts: the first round of each stage.
    """
    levels = np.shape(per_mille)[-1]

    def answer(word, thresholds, action):
        level = jnp.sum((word < nearest_entry(thresholds, action)).astype(jnp.int32))
        return level if levels == 1 else level.astype(default_float()) / levels

    space = Space("integers", (), 0, 1) if levels == 1 else Space("numbers", (), 0, 1)
    world = _frozen(base, thresholds_of(per_mille), starts, answer)
    return world._replace(interface=world.interface and world.interface._replace(feedback=space))


def duels_world(base: Environment, per_mille: Any, starts: tuple[int, ...] = (0,)) -> Environment:
    """Returns duels in which the arm with the lower index wins if a random word is below the pair's threshold.

    Args:
        base: the duels with the same preferences, which compute outcomes.
        per_mille: [num_stages, num_arms, num_arms] integers in thousandths; entries on and above the diagonal are used.
        starts: the first round of each stage.
    """

    def answer(word, thresholds, action):
        left, right = action[0], action[1]
        wins = word < nearest_entry(thresholds, jnp.minimum(left, right), jnp.maximum(left, right))
        return (wins == (left <= right)).astype(jnp.int32)

    return _frozen(base, thresholds_of(per_mille), starts, answer)


def _frozen(base: Environment, thresholds: np.ndarray, starts: tuple[int, ...], answer: Any) -> Environment:
    """Replaces the answers of a stateless world by `answer(random word, thresholds of the stage, action)`.

    Outcomes do not change, except `left_wins`, which becomes the new answer.
    """
    frozen = Frozen(thresholds=thresholds, starts=np.asarray(starts, np.int32), base=base.params())

    def feedback(key, params: Frozen, round_, action):
        reply = answer(own_word(key), _stage(params, round_), action)
        _, _, outcome = base.feedback(key, params.base, (), action)
        replaced = {"left_wins": reply} if "left_wins" in outcome else {}
        return round_ + 1, reply, {**outcome, **replaced}

    def block(keys, params: Frozen, round_, contexts: None, actions):
        del contexts
        rounds = round_ + jnp.arange(len(keys), dtype=round_.dtype)
        return jax.vmap(lambda key, at, action: feedback(key, params, at, action))(keys, rounds, actions)

    means, base_unheard = base.means, base.unheard

    def unheard(params: Frozen, round_, action, rounds):
        assert base_unheard is not None
        _, totals = base_unheard(params.base, (), action, rounds)
        return round_ + rounds.astype(round_.dtype), totals

    return base._replace(
        params=lambda: frozen,
        init=lambda key, params: jnp.zeros((), jnp.int32),
        feedback=feedback,
        evaluate=base.evaluate and (lambda params, world, arm: base.evaluate(params.base, (), arm)),  # pyright: ignore
        block=block,
        feedback_totals=None,
        means=means and (lambda params: means(params.base)),
        unheard=base_unheard and unheard,
        made_by=None,
    )


def first_arm(size: int) -> int:
    """Returns the arm that becomes arm 0 in `with_people`, for an instance with this number of arms."""
    return size // 2


def _number_of_arms(world: Environment) -> int:
    """Returns the number of arms, or 0 if the actions are experts or points."""
    if world.interface is None:
        return 0
    actions, feedback = world.interface.action, world.interface.feedback
    is_for_arms = (
        isinstance(actions, Space) and actions.kind == "integers" and isinstance(feedback, Space) and not feedback.shape
    )
    return int(actions.high) + 1 if is_for_arms else 0


def with_people(world: Environment, visits: Visits) -> Environment:
    """Returns the world with a public schedule of people, and without the outcomes in `world.drawn`.

    A learner hears only the first visit of each person. The outcomes in `world.drawn` are random in each round, so a
    run that has them cannot sum the unheard rounds between two heard rounds. Arms, unlike experts, get other numbers:
    the new arm 0 is `first_arm`, and the other arms follow cyclically. The reason is that many learners play arm 0 in
    unheard rounds before their first release, and arm 0 is the best arm of several instances.

    Raises:
        ValueError: if the world has contexts or no interface.
    """
    evaluate, means, world_unheard = world.evaluate, world.means, world.unheard
    size = _number_of_arms(world)

    def arm_of(action: Any) -> Any:
        """Returns the instance's arms for a learner's action, which may be a pair; invalid numbers are not changed."""
        if not size:
            return action
        return jnp.where((action >= 0) & (action < size), (action + first_arm(size)) % size, action)

    def feedback(key, params, state, action):
        state, answer, outcome = world.feedback(key, params, state, arm_of(action))
        return state, answer, {name: value for name, value in outcome.items() if name not in world.drawn}

    def unheard(params, state, action, rounds):
        assert world_unheard is not None
        return world_unheard(params, state, arm_of(action), rounds)

    changed = world._replace(
        feedback=feedback,
        evaluate=evaluate and (lambda params, state, arm: evaluate(params, state, arm_of(arm))),
        means=means and ((lambda params: np.roll(means(params), -first_arm(size))) if size else means),
        unheard=world_unheard and unheard,
        block=None,
        feedback_totals=None,
        drawn=(),
        made_by=None,
    )
    return add_visits(changed, visits)


def experts_world(
    per_mille: Any, starts: tuple[int, ...] = (0,), *, switches: int | None = None, punish: bool = False
) -> Environment:
    """Returns losses of 0 or 1: an expert has the loss 1 if its random word is below its threshold.

    Args:
        per_mille: [num_stages, num_experts] integers in thousandths.
        starts: the first round of each stage.
        switches: `dynamic_regret` compares with sequences of experts that switch at most this number of times; None
            omits this metric.
        punish: whether the expert that was played in the previous round always has the loss 1.
    """
    frozen = Frozen(thresholds=thresholds_of(per_mille), starts=np.asarray(starts, np.int32))
    size = frozen.thresholds.shape[-1]

    def feedback(key, params: Frozen, world: Losses, action):
        loses = simulation_bits(key, size) < _stage(params, world.round)
        if punish:
            loses |= jnp.arange(size, dtype=jnp.int32) == world.last
        losses = loses.astype(default_float())
        loss = entry(losses, action)
        comparison = add_round(world.comparison, losses, loss)
        return Losses(world.round + 1, action.astype(jnp.int32), comparison), losses, {"loss": loss}

    return Environment(
        params=lambda: frozen,
        init=lambda key, params: Losses(jnp.int32(0), jnp.int32(-1), init_comparison(size, switches)),
        context=None,
        feedback=feedback,
        hindsight=lambda params, world: metrics(world.comparison, is_switching=switches is not None),
        interface=losses_interface(size),
    )


def _uniforms(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Draws multiples of 2^-24 in [0, 1), equal in both precisions."""
    return (simulation_bits(key, shape) >> 8).astype(default_float()) * 2**-24


class Rounds(NamedTuple):
    """The state of `contexts_world`: rounds played, and the key of all contexts."""

    round: jax.Array
    key: jax.Array


def contexts_world(theta: Any, *, num_arms: int, logistic: bool = False, turn: int | None = None) -> Environment:
    """Returns arms with contexts uniform in a cube inside the unit ball, and uniform noise in [-1/2, 1/2].

    Args:
        theta: [dim], not zero, of norm at most 1.
        num_arms: number of arms.
        logistic: whether means are logistic(x^T theta) instead of x^T theta.
        turn: the first coordinate of all contexts is 0 from this round on, where the first round is 0. None never sets
            the coordinate to 0.
    """
    make = generalized_linear_contexts if logistic else linear_contexts
    base = make("cube", num_arms=num_arms, dim=len(theta), theta=theta, rewards="uniform")
    frozen, dim, dtype = base.params(), len(theta), default_float()

    def context(key, params, world: Rounds):
        del key
        points = 2 * _uniforms(jax.random.fold_in(world.key, world.round), (num_arms, dim)) - 1
        points = points / np.sqrt(dim).astype(dtype)
        return points if turn is None else jnp.where((world.round >= turn) & (np.arange(dim) == 0)[None], 0, points)

    def feedback(key, params, world: Rounds, action):
        scores = jnp.sum(context(key, params, world) * jnp.asarray(params.theta)[None], axis=-1)
        means = jax.nn.sigmoid(scores) if logistic else scores
        mean = entry(means, action)
        reward = mean + _uniforms(key, (1,))[0] - dtype.type(0.5)
        gap = jnp.max(means) - mean
        return world._replace(round=world.round + 1), reward, {"pseudo_regret": gap, "best_arm_plays": gap == 0}

    return base._replace(
        params=lambda: frozen,
        init=lambda key, params: Rounds(jnp.int32(0), key),
        context=context,
        feedback=feedback,
        evaluate=None,
        block=None,
        contexts=None,
        interface=base.interface and base.interface._replace(recommendation=None),
        made_by=None,
    )


def rewards_problem(spectrum: Any, num_samples: int) -> Problem:
    """Returns a problem of comparisons with a random parameter of norm 1 and normal features of norm at most 2.

    Args:
        spectrum: [dim] in (0, 1], standard deviation of each feature, before vectors with a norm above 2 are rescaled
            to norm 2.
        num_samples: number of comparisons.
    """
    factors = np.asarray(spectrum, np.float32)
    base = gaussian_rewards(num_samples=num_samples, dim=len(factors), feature_norm=1.0, parameter_norm=1.0)

    def sample(key, params) -> Sample:
        del params
        keys = jax.random.split(key, 3)
        theta = jax.random.normal(keys[0], factors.shape, jnp.float32)
        points = jax.random.normal(keys[1], (num_samples, len(factors)), jnp.float32) * factors[None]
        theta = (theta / jnp.sqrt(jnp.sum(theta * theta))).astype(default_float())
        norms = jnp.sqrt(jnp.sum(points * points, axis=-1, keepdims=True))
        features = (points / jnp.maximum(norms / 2, 1)).astype(default_float())
        chances = jax.nn.sigmoid(jnp.sum(features * theta[None], axis=-1))
        labels = (_uniforms(keys[2], (num_samples,)) < chances).astype(jnp.int32)
        one = jnp.ones_like(theta[0])  # the norm of every parameter, and the largest norm of an action's features
        return Sample(features, labels, theta, {"radius": one, "feature_norm": one})

    return base._replace(sample=sample, made_by=None)


def ranking_problem(base: Problem, reference: Any) -> Problem:
    """Adds a metric to a problem of ranking: `ability_error`, the L2 distance from the reference abilities."""
    exact = np.asarray(reference, default_float())

    def metrics(params, sample, estimate):
        values = dict(base.metrics(params, sample, estimate))
        difference = values["ability"] - exact
        return {**values, "ability_error": jnp.sqrt(jnp.sum(difference * difference))}

    return base._replace(metrics=metrics, dims={**base.dims, "ability_error": ()}, made_by=None)
