"""Duels of arms with utilities linear in their features."""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import Environment, Interface, Scalar, Space, arms, default_float, factory, pairs, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.dueling._arm_features import check_features
from jaxdp.numerics.kernels import any_lane
from jaxdp.numerics.lookup import entry, nearest_entry
from jaxdp.preferences import Link, logistic
from jaxdp.preferences.links import check_link
from jaxdp.random import binomial, uniform_from_key
from jaxdp.validation import check_finite, check_positive

FEW = 16  # number of played pairs for which one step of a loop draws the wins


@pytree_dataclass
class Params:
    """A problem instance.

    Attributes:
        gaps: [num_arms] float >= 0, the largest utility minus each arm's utility, at scale 1.
        scale: [] float > 0, the factor of all utilities.
    """

    gaps: np.ndarray
    scale: Scalar


@factory
def linear_duels(features: ArrayLike, weights: ArrayLike, *, link: Link | str = logistic) -> Environment:
    """Plays duels of arms with features: the left arm wins with probability F(r[left] - r[right]).

    The utility of an arm with features x is r = scale x.weights.

    Args:
        features: [num_arms, dim] with num_arms >= 2 and 1 <= dim <= num_arms; the rows are distinct, with norms of at
            most 1.
        weights: w*, [dim] finite numbers, with any norm.
        link: F, a `Link` or the name of a link; for example `logistic` (Bradley-Terry-Luce) or `probit` (Thurstone).

    Returns:
        An environment with blocks and feedback totals. Actions are pairs of arms ([2] int32 in [0, num_arms): left,
        right), and feedback is [] int32, 1 if the left arm wins, else 0. Feedback totals are for ordered pairs, in the
        order of a flattened matrix. Outcomes: `pseudo_regret`, 2 max r - r[left] - r[right] (DP-Dueling, Saha & Asi,
        2024, equation 2), NaN for an arm outside [0, num_arms); `best_duels`, the number of rounds with a pseudo-regret
        of zero; `left_wins`. Recommendations are arms: `simple_regret` is the pseudo-regret of a duel of the arm with
        itself, and `correct` says whether it is zero.

        `feedback_totals` draws one binomial variate for each pair that is played. But each call reads and writes, in
        every lane, the counts of all num_arms^2 pairs: 40,000 for 200 arms, 4 million for 2,000.

    Raises:
        ValueError: if features are not as above, weights have another shape, are not finite or make differences of
            utilities overflow JAX's default float type, or the link is unknown. The result's `params` raises this error
            if scale is not > 0 or outside the range of this type, or if the regret of a duel overflows it.

    Values:
        scale: > 0, by default 1: the factor of the weights, and so of utilities and of regret. The true weights are
            scale * weights, and a learner's assumption on their norm must hold for this product.

    Source:
        DP-Dueling (Saha & Asi, 2024), section 1.2.

    Deviations:
        In float32 the uniform number that decides a duel, and so the probability of a win, is a multiple of 2^-23.
        Feedback totals draw binomial numbers instead.

    Examples:
        >>> import jax, jaxdp
        >>> duels = linear_duels([[1.0, 0.0], [0.0, 1.0], [-0.6, 0.0]], [0.6, 0.2])
        >>> print(duels.params(scale=0.5).gaps.round(3))
        [0.   0.4  0.96]
    """
    points, link = check_features(features), check_link(link)
    num_arms, dim = points.shape
    model = check_finite("weights", weights).astype(np.float64)
    if model.shape != (dim,):
        raise ValueError(f"weights must be [{dim}], one number for each of the features, got shape {model.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        utilities = points @ model
        gaps = utilities.max() - utilities
        leaf = gaps.astype(default_float())
    if not np.isfinite(leaf).all():
        raise ValueError(
            f"weights must make differences of utilities within the range of {default_float()}, got {model.tolist()}"
        )

    def params(*, scale: float = 1.0) -> Params:
        factor = scalar_leaf("scale", check_positive("scale", scale))
        with np.errstate(over="ignore"):
            if not np.isfinite(2 * (factor * leaf)).all():
                raise ValueError(
                    f"scale must make twice the largest difference of utilities, the largest regret, within the range "
                    f"of {leaf.dtype}, got {scale} and a largest difference of {float(leaf.max()):g}"
                )
        return Params(gaps=leaf, scale=factor)

    def chance(params: Params, left: jax.Array, right: jax.Array) -> jax.Array:
        """Returns the probability that the left arm wins."""
        gaps = jnp.asarray(params.gaps)
        return link.cdf(params.scale * (nearest_entry(gaps, right) - nearest_entry(gaps, left)))

    def regret_of(params: Params, left: jax.Array, right: jax.Array) -> jax.Array:
        """Returns the pseudo-regret of a duel; NaN for an arm outside [0, num_arms)."""
        gaps = jnp.asarray(params.gaps)
        return params.scale * (entry(gaps, left) + entry(gaps, right))

    def left_wins(key, params: Params, action) -> jax.Array:
        """Returns 1 if the left arm wins, else 0. The winner of a pair does not depend on which arm is on the left."""
        left, right = action[0], action[1]
        lower, higher = jnp.minimum(left, right), jnp.maximum(left, right)  # arms by number
        lower_wins = uniform_from_key(key, jnp.asarray(params.gaps).dtype) < chance(params, lower, higher)
        return (lower_wins == (left <= right)).astype(jnp.int32)

    def feedback(key, params: Params, world, action):
        won = left_wins(key, params, action)
        regret = regret_of(params, action[0], action[1])
        return world, won, {"pseudo_regret": regret, "best_duels": regret == 0, "left_wins": won}

    def block(keys, params: Params, world, contexts: None, actions):
        del contexts
        _, won, outcome = jax.vmap(lambda key, action: feedback(key, params, world, action))(keys, actions)
        return world, won, outcome

    def feedback_totals(key, params: Params, world, counts):
        # num_played[p] is the number of played pairs among the pairs 0, ..., p of the flattened matrix.
        gaps, num_played = jnp.asarray(params.gaps), jnp.cumsum(counts != 0, dtype=jnp.int32)

        def draw_few(drawn):
            """Draws the wins of the next `FEW` pairs that are played."""
            turn, won, regret, best = drawn
            rank = turn * FEW + jnp.arange(FEW, dtype=jnp.int32)  # index among the pairs that are played
            pair = jnp.minimum(jnp.searchsorted(num_played, rank + 1).astype(jnp.int32), len(counts) - 1)
            count = jnp.where(rank < num_played[-1], counts[pair], 0)
            left, right = pair // num_arms, pair % num_arms
            wins = binomial(jax.random.fold_in(key, turn), count, jax.vmap(chance, (None, 0, 0))(params, left, right))
            cost = params.scale * (gaps[left] + gaps[right])
            regret = regret + jnp.sum(count.astype(cost.dtype) * cost)
            best = best + jnp.sum(jnp.where(cost == 0, count, 0), dtype=counts.dtype)
            return turn + 1, won.at[pair].add(wins), regret, best

        zero = jnp.zeros((), counts.dtype)
        start = jnp.int32(0), jnp.zeros_like(counts), jnp.zeros((), gaps.dtype), zero
        _, won, regret, best = jax.lax.while_loop(
            lambda drawn: any_lane(drawn[0] * FEW < num_played[-1]), draw_few, start
        )
        return world, won, {"pseudo_regret": regret, "best_duels": best, "left_wins": won.sum(dtype=won.dtype)}

    def evaluate(params: Params, world, recommendation) -> dict[str, jax.Array]:
        del world
        regret = regret_of(params, recommendation, recommendation)
        return {"correct": regret == 0, "simple_regret": regret}

    return Environment(
        params=params,
        init=lambda key, params: (),
        context=None,
        feedback=feedback,
        evaluate=evaluate,
        block=block,
        feedback_totals=feedback_totals,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1), recommendation=arms(num_arms)),
    )
