"""Private selection: report noisy max, with Laplace, Gumbel or one-sided exponential noise."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from jaxdp.mechanisms._arrays import Scalar, wide_scalars
from jaxdp.mechanisms._grid import Exact, exact_values, float_type, shape_of, split
from jaxdp.mechanisms._integer_noise import exponentials, gumbels, laplaces
from jaxdp.mechanisms._traced import traced_once
from jaxdp.mechanisms.tape import Entry, record
from jaxdp.numerics import fixed_point
from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.random import ties
from jaxdp.validation import check_choice, refuse_private

_SAMPLERS = {"laplace": laplaces, "gumbel": gumbels, "exponential": exponentials}


def noisy_max(
    key: jax.Array,
    scores: ArrayLike | fixed_point.Sum,
    epsilon: Scalar,
    *,
    sensitivity: Scalar = 1.0,
    noise: str = "exponential",
) -> jax.Array:
    r"""Returns the index of the largest score after noise: argmax(scores + noise of scale 2 * sensitivity / epsilon).

    `noise` selects the mechanism. "exponential" (one-sided, the default) is permute-and-flip; its utility is never
    worse than the utility of the exponential mechanism. "gumbel" is the exponential mechanism: P(j) is proportional to
    exp(epsilon * scores[j] / (2 * sensitivity)). "laplace" is the textbook report noisy max.

    Exponential and Gumbel noise must be *added to the maximised scores*. argmin(scores + exponential noise) looks
    similar but is not epsilon-DP: its privacy loss reaches (K - 1) * epsilon. For losses use `noisy_min`, which negates
    the losses first.

    Args:
        key: a PRNG key.
        scores: [..., K] float, integer or `jaxdp.numerics.fixed_point.Sum`, without NaN; infinite scores of one sign
            are equal. Traced scores cannot be checked: if one is NaN, the index is 0 for every key, and not private.
            Keep counts as integers: float32 would round a count beyond 2^24 before noise is added, and the claim would
            not hold.
        epsilon: [] float > 0, may be traced; infinity gives the exact argmax, with ties broken at random. A traced NaN,
            zero or negative number gives meaningless indices.
        sensitivity: [] float > 0, may be traced: the maximum change of any single score, if scores may change in
            different directions (replace-one adjacency). If all scores change in the same direction (monotone scores,
            such as counts when a user joins), half the noise suffices: pass half the sensitivity.
        noise: "exponential", "gumbel" or "laplace".

    Returns:
        [...] int32 in [0, K); ties of noisy scores are broken uniformly.

    Raises:
        ValueError: if scores are not floats, integers or a `Sum`; if JAX's default integer dtype cannot hold all
            integers of their dtype; if they have no axis or no entry; or if they contain NaN and are not traced. Also
            if noise is unknown, or if epsilon or sensitivity is not a scalar, or is a Python or NumPy number that is
            NaN, zero or negative.

    Privacy:
        - epsilon-DP in the central model for one index, for the unit and adjacency of the sensitivity. Each vector of
          scores gives one index: over the leading axes budgets add up, unless the data are disjoint.
        - Given the noise of the other scores, j wins if its noise exceeds a threshold. The threshold moves by at most
          2 * sensitivity, and the noise's upper tail changes by a factor of at most exp(epsilon) over that distance.
        - As zCDP, "gumbel" has rho = epsilon^2 / 8 (it is an epsilon-bounded-range mechanism). For "exponential" and
          "laplace" use epsilon^2 / 2: permute-and-flip costs up to four times epsilon^2 / 8, and Laplace more than
          epsilon^2 / 8.

    Source:
        Dwork & Roth (2014), Claim 3.9 and Theorem 3.10; McKenna & Sheldon (2020), with Ding et al. (2021) for
        permute-and-flip as exponential noise; Cesar & Rogers (2021) for zCDP.

    Deviations:
        Noise from words of 64 bits is added to scores in 64 bits: a probability is off by a factor of at most 1 +
        2^-36, except that an index of probability below 2^-53 may never be drawn. Integers and sums beyond 2^53 are
        clipped before noise is added.

    Math:
        With scores $q_i$ of sensitivity $\Delta$, the index is

        $$
        \operatorname{argmax}_i ( q_i + b Z_i ), \quad b = \frac{2 \Delta}{\varepsilon}
        $$

        where $Z_i$ is standard exponential, Gumbel or Laplace noise. For "gumbel"

        $$
        P(i) = \frac{e^{q_i / b}}{\sum_j e^{q_j / b}}, \quad \rho = \frac{\varepsilon^2}{8}
        $$

    Examples:
        >>> scores = jnp.array([1.0, 3.0, 2.0], jnp.float32)
        >>> int(noisy_max(jax.random.key(0), scores, float("inf")))  # no privacy, no noise
        1
    """
    exact, shape = exact_values("scores", scores), shape_of(exact_values("scores", scores))
    if len(shape) == 0 or shape[-1] == 0:
        raise ValueError(f"scores must have a last axis of at least one score, got shape {shape}")
    if not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(exact)):
        refuse_private("scores", "numbers other than NaN", np.isnan(jax.tree.leaves(exact)[0]))
    check_choice("noise", noise, tuple(_SAMPLERS))
    unit, budget = wide_scalars(sensitivity=sensitivity, epsilon=epsilon)
    return _noisy_max(key, exact, budget, unit, noise)


@in_64_bits
@traced_once("noise")
def _noisy_max(key: jax.Array, exact: Exact, epsilon: jax.Array, sensitivity: jax.Array, noise: str) -> jax.Array:
    draws = _SAMPLERS[noise](key, shape_of(exact))
    rho = jnp.square(epsilon) / 8 if noise == "gumbel" else None
    recorded = draws.astype(float_type(exact))
    entry = Entry("noisy_max", exact, "spread", key, sensitivity, epsilon, rho, noise=recorded, distribution=noise)
    base, remainder = split(record(entry))
    finite = jnp.finfo(jnp.float64)
    remainder = jnp.clip(remainder, finite.min, finite.max)  # the difference of two infinite scores would be NaN
    largest = jnp.max(base, -1, keepdims=True)
    largest_remainder = jnp.max(jnp.where(base == largest, remainder, -jnp.inf), -1, keepdims=True)
    # Differences of scores are computed before noise is added: near the largest score they are exact, and small.
    behind = (base - largest) + (remainder - largest_remainder)
    scale = 2 * sensitivity / epsilon
    is_scale = jnp.isinf(epsilon) | (scale >= jnp.finfo(jnp.float64).tiny)
    noisy = behind + jnp.where(is_scale, scale, jnp.nan) * draws  # with NaN the index does not depend on the scores
    order = ties.ranks(ties.word_beside(key), behind.size).reshape(behind.shape)
    return ties.largest(noisy, order)


def noisy_min(
    key: jax.Array,
    scores: ArrayLike | fixed_point.Sum,
    epsilon: Scalar,
    *,
    sensitivity: Scalar = 1.0,
    noise: str = "exponential",
) -> jax.Array:
    """Returns the index of the smallest score after noise: `noisy_max` of -scores.

    Args:
        key: a PRNG key.
        scores: [..., K] float, integer or `jaxdp.numerics.fixed_point.Sum`, for example losses.
        epsilon: as for `noisy_max`.
        sensitivity: as for `noisy_max`.
        noise: as for `noisy_max`.

    Returns:
        [...] int32 in [0, K); ties of noisy scores are broken uniformly.

    Raises:
        ValueError: as for `noisy_max`.

    Privacy:
        - As for `noisy_max`: negation changes no sensitivity.

    Source:
        As for `noisy_max`.

    Deviations:
        As for `noisy_max`.
    """
    exact = exact_values("scores", scores)
    if isinstance(exact, fixed_point.Sum):
        negated = fixed_point.negative(exact)
    elif isinstance(exact, jax.Array) and jnp.issubdtype(exact.dtype, jnp.integer):
        negated = ~exact  # the negatives minus 1, which do not overflow; only differences count
    else:
        negated = jax.tree.map(jnp.negative, exact)
    return noisy_max(key, negated, epsilon, sensitivity=sensitivity, noise=noise)
