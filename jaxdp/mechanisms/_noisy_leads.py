"""Noisy totals minus the largest noisy total."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp.mechanisms import _grid
from jaxdp.mechanisms._arrays import Scalar, wide_scalars
from jaxdp.mechanisms._integer_noise import laplace_of
from jaxdp.mechanisms._traced import traced_once
from jaxdp.mechanisms.least_budgets import check_laplace_release
from jaxdp.mechanisms.tape import Entry, record
from jaxdp.numerics.fixed_point import Sum, in_64_bits


def noisy_leads(
    key: jax.Array,
    totals: ArrayLike | Sum,
    epsilon: Scalar,
    *,
    l1_sensitivity: Scalar,
    among: jax.Array | None = None,
) -> jax.Array:
    r"""Adds Laplace(l1_sensitivity / epsilon) noise to each total, and subtracts the largest noisy total.

    Selection needs only differences of totals, the leads. Floats distinguish small leads even if the totals are large:
    counts of 2^30 and 2^30 + 1 have leads -1 and 0, but are the same float32.

    Args:
        key: a PRNG key.
        totals: [..., num_totals] integer, or a `jaxdp.numerics.fixed_point.Sum` of real data.
        epsilon: [] float > 0, may be traced; infinity adds no noise. Invalid traced values give NaN, as in `laplace`.
        l1_sensitivity: [] float > 0, may be traced: the L1 sensitivity of the vector of all `totals`.
        among: [..., num_totals] bool, public: the totals that take part. If None, all totals take part.

    Returns:
        [..., num_totals] float <= 0: each noisy total minus the largest noisy total that takes part. Entries of totals
        that do not take part have no meaning.

    Raises:
        ValueError: if totals are empty, are neither integers nor a `Sum`, or have an integer dtype that the default
            dtype cannot represent; if epsilon or l1_sensitivity is not a scalar, or is a Python or NumPy number that is
            not > 0; or if such an l1_sensitivity is infinite, or such an epsilon is too small, as for `laplace`.

    Privacy:
        - epsilon-DP in the central model for one release, for the unit and adjacency of the sensitivity.
        - Leads are differences of totals to which the Laplace mechanism has added noise: post-processing.
        - Slack: with only two totals, the privacy loss approaches epsilon only in the limit of rare outcomes: the noise
          of their difference exceeds t noise scales with probability (2 + t) * exp(-t) / 4, and the logarithm of this
          probability falls with slope 1 - 1 / (2 + t). With more totals, audits find nearly all of epsilon.

    Source:
        Dwork & Roth (2014), Theorem 3.6.

    Deviations:
        Noise is rounded down to a multiple of a step, as in `laplace`, so leads may be equal. Totals beyond 2^61
        steps or beyond 2^53 are clipped before noise is added. Totals up to 2^41, or up to 2^44 sensitivities if this
        is less, are not clipped. Without noise a step is 1 for integers and 2^-20 for sums.

    Math:
        With totals $X_i$ of $L_1$ sensitivity $\Delta$, the leads are

        $$
        X_i + Z_i - \max_j (X_j + Z_j), \quad Z_i \sim \mathrm{Laplace}(b), \quad b = \frac{\Delta}{\varepsilon}
        $$

    Examples:
        >>> counts = jnp.array([2**30, 2**30 + 1], jnp.int32)
        >>> print(noisy_leads(jax.random.key(0), counts, float("inf"), l1_sensitivity=1.0))  # no privacy, no noise
        [-1.  0.]
    """
    exact = _grid.exact_values("totals", totals)
    shape = _grid.shape_of(exact)
    if len(shape) == 0 or shape[-1] == 0:
        raise ValueError(f"totals must have a last axis of at least one total, got shape {shape}")
    if isinstance(exact, jax.Array) and not _grid.is_integer(exact):
        raise ValueError(f"totals must be integers or a sum in fixed point, got dtype {exact.dtype}")
    sensitivity, budget = wide_scalars(l1_sensitivity=l1_sensitivity, epsilon=epsilon)
    check_laplace_release(exact, epsilon, l1_sensitivity)
    return _noisy_leads(key, exact, budget, sensitivity, among, _grid.float_type(exact))


@in_64_bits
@traced_once("dtype")
def _noisy_leads(
    key: jax.Array,
    exact: _grid.Exact,
    epsilon: jax.Array,
    sensitivity: jax.Array,
    among: jax.Array | None,
    dtype: jnp.dtype,
) -> jax.Array:
    grid = _grid.laplace_grid(exact, sensitivity, epsilon)
    noise = laplace_of(lambda noise, scale: noise, key, _grid.shape_of(exact), grid.drawn)
    drawn = (noise / grid.drawn).astype(dtype)
    recorded = record(Entry("laplace", exact, "l1", key, sensitivity, epsilon, noise=drawn, distribution="laplace"))
    return _grid.noisy_leads(recorded, noise, grid, among, dtype)
