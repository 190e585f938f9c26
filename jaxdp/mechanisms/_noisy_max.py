"""Private selection: report noisy max, with Laplace, Gumbel or one-sided exponential noise."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from jaxdp.mechanisms._arrays import Scalar, positive_scalar
from jaxdp.mechanisms.noisy_sums import exact_sums, float_type, leads
from jaxdp.mechanisms.tape import Entry, record
from jaxdp.random import ties
from jaxdp.validation import check_choice, refuse_private

_SAMPLERS = {"laplace": jax.random.laplace, "gumbel": jax.random.gumbel, "exponential": jax.random.exponential}


def noisy_max(
    key: jax.Array,
    scores: ArrayLike,
    epsilon: Scalar,
    *,
    sensitivity: Scalar = 1.0,
    noise: str = "exponential",
) -> jax.Array:
    """Index of the largest score after noise: argmax(scores + noise of scale 2 * sensitivity / epsilon).

    The noise names the mechanism: "exponential" (one-sided) is permute-and-flip, never worse in utility than the
    exponential mechanism and the default for pure DP; "gumbel" is the exponential mechanism,
    P(j) proportional to exp(epsilon * scores[j] / (2 * sensitivity)); "laplace" is the textbook's report noisy max.

    Exponential and Gumbel noise must be *added to what is maximised*. argmin(scores + exponential noise) looks alike
    and is not private: its log ratio reaches (K - 1) * epsilon. For losses use `noisy_min`, which negates them first.

    Args:
        key: a PRNG key.
        scores: [..., K] float or integer, none of them NaN: with one among traced scores, which cannot be refused, the
            index is 0 for every key, and not private. Counts are best left integers: one beyond 2^24 that is cast to
            float32 is rounded before it meets the noise, which then hides a user less than claimed.
        epsilon: [] float > 0, may be traced; infinity is the exact argmax, with ties broken at random. Zero or NaN
            traced gives meaningless indices, and a negative one turns the noise around, which is not private.
        sensitivity: [] float > 0, may be traced: the largest change of any one score, where the scores may move in
            different directions (replace-one adjacency). If neighbours' scores all move in one direction
            (monotone, such as counts when a user joins), half the noise does: pass half the sensitivity.
        noise: "exponential", "gumbel" or "laplace".

    Returns:
        [...] int32 in [0, K): of equal noisy scores any, each as likely.

    Raises:
        ValueError: if scores are neither floats nor integers, have no axis or, where they are not traced, hold NaN; if
            noise has another name; or if epsilon or sensitivity is not a scalar, or is a Python or NumPy number that is
            not > 0.

    Privacy:
        - epsilon-DP in the central model for one index (one per vector of scores: budgets of the leading axes add up
          unless their data are disjoint), for the unit and adjacency that the sensitivity refers to.
        - Given the others' noise, j wins where its noise exceeds a threshold that moves by at most 2 * sensitivity, and
          the noise's upper tail changes by a factor of at most exp(epsilon) over that distance.
        - As zCDP, rho = epsilon^2 / 8 for "gumbel" only (an epsilon-bounded-range mechanism); for the other two charge
          epsilon^2 / 2, since permute-and-flip costs up to four times epsilon^2 / 8 and Laplace more than it.

    Source:
        Dwork & Roth (2014), Claim 3.9 and Theorem 3.10; McKenna & Sheldon (2020), with Ding et al. (2021) for
        permute-and-flip as exponential noise; Cesar & Rogers (2021) for zCDP.

    Deviations:
        floating-point noise: in float32 an index of probability below about 1e-7 is never drawn.

    Examples:
        >>> scores = jnp.array([1.0, 3.0, 2.0], jnp.float32)
        >>> int(noisy_max(jax.random.key(0), scores, float("inf")))  # no privacy, no noise
        1
    """
    scores = _scores(scores)
    if scores.ndim == 0 or scores.shape[-1] == 0:
        raise ValueError(f"scores must have a last axis of at least one score, got shape {scores.shape}")
    if not isinstance(scores, Tracer):
        refuse_private("scores", "numbers other than NaN", np.isnan(scores))
    sampler = _SAMPLERS[check_choice("noise", noise, tuple(_SAMPLERS))]
    dtype = float_type(scores)
    sensitivity = positive_scalar("sensitivity", sensitivity, dtype)
    epsilon = positive_scalar("epsilon", epsilon, dtype)
    draws = sampler(key, scores.shape, dtype)
    rho = jnp.square(epsilon) / 8 if noise == "gumbel" else None
    entry = Entry("noisy_max", scores, "spread", key, sensitivity, epsilon, rho, noise=draws, law=noise)
    scores = record(entry)
    draws = 2 * sensitivity / epsilon * draws
    noisy_scores = scores + draws if jnp.issubdtype(scores.dtype, jnp.floating) else leads(scores, draws)
    order = ties.ranks(ties.word_beside(key), scores.size).reshape(scores.shape)
    return ties.largest(noisy_scores, order)


def noisy_min(
    key: jax.Array,
    scores: ArrayLike,
    epsilon: Scalar,
    *,
    sensitivity: Scalar = 1.0,
    noise: str = "exponential",
) -> jax.Array:
    """Index of the smallest score after noise: `noisy_max` of -scores, so that the noise has the private sign.

    Args:
        key: a PRNG key.
        scores: [..., K] float or integer, for example losses.
        epsilon: as for `noisy_max`.
        sensitivity: as for `noisy_max`.
        noise: as for `noisy_max`.

    Returns:
        [...] int32 in [0, K): of equal noisy scores any, each as likely.

    Raises:
        ValueError: as `noisy_max`.

    Privacy:
        - As `noisy_max`: negation changes no sensitivity.

    Source:
        As `noisy_max`.

    Deviations:
        As `noisy_max`.
    """
    scores = _scores(scores)
    # Of integers all that is one more, and does not overflow: only differences count.
    turned = ~scores if jnp.issubdtype(scores.dtype, jnp.integer) else -scores
    return noisy_max(key, turned, epsilon, sensitivity=sensitivity, noise=noise)


def _scores(scores: ArrayLike) -> jax.Array:
    """Scores as floats or as integers of the default type."""
    return jnp.asarray(exact_sums("scores", scores))
