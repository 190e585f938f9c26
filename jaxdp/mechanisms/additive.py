"""Additive noise: the Laplace and Gaussian mechanisms, and isotropic K-norm noise for pure privacy."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp.mechanisms._arrays import Scalar, positive_scalar, wide_scalars, widen
from jaxdp.mechanisms._grid import (
    Exact,
    Grid,
    exact_values,
    float_type,
    is_integer,
    k_norm_grid,
    laplace_grid,
    noisy_values,
    normal_grid,
    shape_of,
    whole_grid,
    wide,
)
from jaxdp.mechanisms._integer_noise import draw_isotropic, geometric_of, laplace_of, normal_of, power_below
from jaxdp.mechanisms._traced import traced_once
from jaxdp.mechanisms.least_budgets import check_k_norm, check_laplace, check_laplace_release
from jaxdp.mechanisms.tape import Entry, amend, is_open, record
from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.validation import check_at_least


def laplace(key: jax.Array, values: ArrayLike | Exact, epsilon: Scalar, *, l1_sensitivity: Scalar) -> jax.Array:
    r"""Adds independent Laplace(l1_sensitivity / epsilon) noise to each value.

    Args:
        key: a PRNG key.
        values: [...] float or integer, the exact values. Keep counts as integers: float32 would round a count beyond
            2^24 before noise is added, and the claim would not hold. A `jaxdp.numerics.fixed_point.Sum` represents sums
            of real data exactly. In 64-bit mode integers and sums beyond 2^53 are clipped.
        epsilon: [] float > 0, may be traced; infinity adds no noise. A traced NaN, zero or negative number gives NaN.
        l1_sensitivity: [] float > 0, may be traced: the L1 sensitivity of the vector of all `values`.

    Returns:
        [...] the noisy values, in the dtype of `values`; for integers and sums, in JAX's default float type, rounded
        after the noise is added. NaN and infinite values are returned without noise, so they are not protected.

    Raises:
        ValueError: if values are neither floats nor integers nor a sum, or have an integer dtype that the default dtype
            cannot represent; if epsilon or l1_sensitivity is not a scalar, or is a Python or NumPy number that is not >
            0; if such an l1_sensitivity is infinite; or if epsilon is a Python or NumPy number below about 1e-11 times
            the number of values (for integers, below about 1e-11 or l1_sensitivity / 1.4e14), because the noise would
            overflow integers.

    Privacy:
        - epsilon-DP in the central model for one release of `values`, for the unit and adjacency of the sensitivity.
        - The density at any output changes by a factor of at most exp(|change|_1 / scale).

    Source:
        Dwork & Roth (2014), Definition 3.3 and Theorem 3.6.

    Deviations:
        - Values are rounded to a public grid, and noise is rounded down to it; both are integers in float64. The
          release equals the output of the Laplace mechanism on the rounded values, rounded down. Rounding adds at most
          one step to the change of a value, and the noise is calibrated for this larger change. The step is a
          power of two, 2^-16 to 2^-15 of sensitivity / epsilon, but not below a lower limit and not above an upper
          limit; if these conflict, the upper limit applies. Let p be the largest power of two that is at most the
          sensitivity. The lower limit is 2^-16 p. The upper limit is 1 for integers. For n floats it is 2^-10 p / n,
          with n rounded up to a power of two; for a `Sum` it is at least the smaller of 2^-20 and the lower limit.
        - Noise is computed from float64 logarithms of 64-bit words. For epsilon up to 10, this adds a delta below 2e-8
          for each value. It is below 1e-9 for each value if at most 64 floats are released together, or if values are
          integers and the sensitivity is below 2^17. No noise beyond 44.4 scales is drawn. A traced sensitivity that is
          not positive or not finite, or a scale beyond 2^47 steps, gives NaN.
        - The generator, Threefry with 20 rounds, is not cryptographic.

    Math:
        The mechanism adds independent noise $Z_i \sim \mathrm{Lap}(b)$ to the values, with the density and the scale

        $$
        \frac{1}{2 b} e^{-|z| / b}
        $$

        $$
        b = \frac{\Delta}{\varepsilon}
        $$

        where $\Delta$ is the $L_1$ sensitivity.

    Examples:
        >>> counts = jnp.array([10.0, 20.0], jnp.float32)
        >>> print(laplace(jax.random.key(0), counts, float("inf"), l1_sensitivity=1.0))  # no privacy, no noise
        [10. 20.]
    """
    exact = exact_values("values", values)
    sensitivity, budget = wide_scalars(l1_sensitivity=l1_sensitivity, epsilon=epsilon)
    check_laplace_release(exact, epsilon, l1_sensitivity)
    return add_laplace(key, exact, budget, sensitivity, float_type(exact), None)


@in_64_bits
@traced_once("dtype", "num_rounded")
def add_laplace(
    key: jax.Array, exact: Exact, epsilon: jax.Array, sensitivity: jax.Array, dtype: jnp.dtype, num_rounded: int | None
) -> jax.Array:
    """Adds the noise of `laplace` to values; `num_rounded` is as for `laplace_grid`."""
    grid = laplace_grid(exact, sensitivity, epsilon, num_rounded)
    return _add_and_record(
        laplace_of, grid, dtype, Entry("laplace", exact, "l1", key, sensitivity, epsilon, distribution="laplace")
    )


def geometric(key: jax.Array, values: ArrayLike, epsilon: Scalar) -> jax.Array:
    r"""Adds independent two-sided geometric noise to integers with an L1 sensitivity of at most 1.

    Args:
        key: a PRNG key.
        values: [...] integer, the exact values; in 64-bit mode integers beyond 2^53 are clipped.
        epsilon: [] float > 0, may be traced; infinity adds no noise. A traced NaN, zero or negative number gives NaN.

    Returns:
        [...] the noisy integers, in JAX's default float type; float32 rounds them beyond 2^24.

    Raises:
        ValueError: if values are not integers, or have a dtype that the default dtype cannot represent; if epsilon is
            not a scalar, or is a Python or NumPy number that is not > 0 or so small that the noise would overflow.

    Privacy:
        - epsilon-DP in the central model for one release of `values`, for the unit and adjacency under which their L1
          sensitivity is at most 1.
        - The probability of any output changes by a factor of at most exp(epsilon * |change|_1)
          (docs/proofs/noisy_totals.md).

    Source:
        Ghosh, Roughgarden & Sundararajan (2009), "Universally utility-maximizing privacy mechanisms", for the geometric
        mechanism.

    Deviations:
        Noise is the difference of two geometric variates, each computed from a float64 logarithm of a 64-bit word;
        `geometric_delta` bounds the delta that this adds. No variate beyond 44.4 / epsilon is drawn. The noise is drawn
        for an epsilon that is smaller by a factor of 1 - 2^-50, to cover rounding.

    Math:
        The mechanism adds independent noise $Z_i$ with

        $$
        P(Z_i = k) = \frac{1 - a}{1 + a} a^{|k|}, \quad a = e^{-\varepsilon}
        $$

        to the values. The variance of $Z_i$ is $1 / (2 \sinh^2(\varepsilon / 2))$. It is less than the variance $2 /
        \varepsilon^2$ of Laplace noise: by 8% at epsilon 1, and by 70% at epsilon 4.

    Examples:
        >>> print(geometric(jax.random.key(0), jnp.array([10, 20]), float("inf")))  # no privacy, no noise
        [10. 20.]
    """
    exact = exact_values("values", values)
    if not is_integer(exact):
        got = f"dtype {exact.dtype}" if isinstance(exact, jax.Array) else "a Sum"
        raise ValueError(f"values must be integers, got {got}")
    (budget,) = wide_scalars(epsilon=epsilon)
    if not isinstance(epsilon, jax.Array):
        check_laplace(float(epsilon))
    return _geometric(key, exact, budget, float_type(exact))


@in_64_bits
@traced_once("dtype")
def _geometric(key: jax.Array, exact: Exact, epsilon: jax.Array, dtype: jnp.dtype) -> jax.Array:
    entry = Entry("geometric", exact, "l1", key, jnp.float64(1), epsilon, distribution="geometric")
    return _add_and_record(geometric_of, whole_grid(epsilon), dtype, entry)


def _add_and_record(draw: Callable[..., jax.Array], grid: Grid, dtype: jnp.dtype, entry: Entry) -> jax.Array:
    """Adds noise on a grid to the values, and records the release if a tape is open."""
    shape = shape_of(entry.value)

    def noisy(noise: jax.Array, scale: jax.Array, exact: Exact, grid: Grid) -> jax.Array:
        del scale
        return noisy_values(exact, noise, grid, dtype)

    if not is_open():  # adds the noise within one kernel
        return draw(noisy, entry.key, shape, grid.drawn, jax.tree.map(jnp.ravel, entry.value), grid)
    noise = draw(lambda noise, scale: noise, entry.key, shape, grid.drawn)
    recorded = record(entry._replace(noise=(noise / grid.drawn).astype(dtype)))
    released = noisy_values(recorded, noise, grid, dtype)
    amend(released=released)
    return released


def gaussian(
    key: jax.Array,
    values: ArrayLike | Exact,
    noise_stddev: Scalar,
    *,
    l2_sensitivity: Scalar | None = None,
) -> jax.Array:
    r"""Adds independent N(0, noise_stddev^2) noise to each value.

    Args:
        key: a PRNG key.
        values: as for `laplace`.
        noise_stddev: [] float >= 0, may be traced, from `analytic_gaussian` or `zcdp_gaussian`; if you cast
            it, use `round_up`. Zero adds no noise. Infinity gives NaN, as does a traced NaN or negative number.
        l2_sensitivity: [] float > 0, may be traced: the sensitivity for which noise_stddev was calibrated. Rounding
            enlarges the sensitivity, and the noise is enlarged by the same factor. Auditors compare changes of the
            values with l2_sensitivity. None assumes a sensitivity of noise_stddev / 128.

    Returns:
        [...] the noisy values, in the dtype of `values`; for integers and sums, in JAX's default float type, rounded
        after the noise is added. NaN and infinite values are returned without noise, so they are not protected.

    Raises:
        ValueError: if values are not as for `laplace`; or if noise_stddev or l2_sensitivity is not a scalar, or is a
            Python or NumPy number that is not >= 0 (noise_stddev), or not finite and > 0 (l2_sensitivity).

    Privacy:
        - For one release of `values` in the central model, with the unit and adjacency of the L2 sensitivity D:
          (epsilon, delta)-DP with delta = gaussian_delta(epsilon, noise_stddev, D), and zCDP with
          rho = D^2 / (2 * noise_stddev^2).
        - If l2_sensitivity is not given and noise_stddev > 128 D, replace D by D + sqrt(n) * 2^-24 * noise_stddev for
          n floats, because floats are rounded. Integers are not rounded if noise_stddev <= 2^24, nor is a `Sum` if
          noise_stddev <= 2^4.

    Source:
        Dwork & Roth (2014), Appendix A; Balle & Wang (2018), Theorem 8; Bun & Steinke (2016), Proposition 1.6.

    Deviations:
        Values and noise are integers on a grid, as in `laplace`, with a step between 2^-25 and 2^-24 of noise_stddev.
        The noise is calibrated for the change of the rounded values. No noise beyond 9.5 standard deviations is drawn.

    Math:
        The mechanism adds independent noise $Z_i \sim N(0, \sigma^2)$ to the values. With $\Delta$ the $L_2$
        sensitivity it is $\rho$-zCDP with

        $$
        \rho = \frac{\Delta^2}{2 \sigma^2}
        $$

        and $(\varepsilon, \delta)$-DP with (Balle & Wang, 2018, Theorem 8)

        $$
        \delta = \Phi\Big( \frac{\Delta}{2 \sigma} - \frac{\varepsilon \sigma}{\Delta} \Big) -
        e^{\varepsilon} \Phi\Big( -\frac{\Delta}{2 \sigma} - \frac{\varepsilon \sigma}{\Delta} \Big)
        $$
    """
    exact = exact_values("values", values)
    if np.ndim(noise_stddev) != 0:
        raise ValueError(f"noise_stddev must be a scalar, got shape {jnp.shape(noise_stddev)}")
    with jax.enable_x64(True):
        if not isinstance(noise_stddev, jax.Array):
            noise_stddev = jnp.asarray(check_at_least("noise_stddev", noise_stddev, 0.0))
        scale = widen(noise_stddev)
        is_declared = l2_sensitivity is not None
        sensitivity = positive_scalar("l2_sensitivity", l2_sensitivity, jnp.float64) if is_declared else None
    return add_gaussian(key, exact, scale, sensitivity, float_type(exact), None)


@in_64_bits
@traced_once("dtype", "num_rounded")
def add_gaussian(
    key: jax.Array,
    exact: Exact,
    stddev: jax.Array,
    sensitivity: jax.Array | None,
    dtype: jnp.dtype,
    num_rounded: int | None,
) -> jax.Array:
    """Adds the noise of `gaussian` to values; `num_rounded` is as for `laplace_grid`."""
    grid = normal_grid(exact, stddev, sensitivity, num_rounded)
    entry = Entry("gaussian", exact, "l2", key, sensitivity, noise_stddev=stddev, distribution="normal")
    return _add_and_record(normal_of, grid, dtype, entry)


def k_norm(
    key: jax.Array,
    value: ArrayLike | Exact,
    epsilon: Scalar,
    *,
    sensitivity: Scalar,
    basis: jax.Array | None = None,
) -> jax.Array:
    r"""Adds G u, with u uniform on the unit sphere and G ~ Gamma(d, sensitivity / epsilon): pure privacy for vectors.

    The noise has a density proportional to exp(-epsilon * |z| / sensitivity) in R^d, with the Euclidean norm |z|. In
    one dimension it is Laplace noise. Each coordinate has the variance (d + 1) * (sensitivity / epsilon)^2; Laplace
    noise on every coordinate would need 2 * d * (sensitivity / epsilon)^2 for the same L2 sensitivity.

    Args:
        key: a PRNG key.
        value: [...] float or integer, one vector of d entries, in any shape; see `laplace`.
        epsilon: [] float > 0, may be traced; infinity adds no noise. Invalid traced values give NaN, as in `laplace`.
        sensitivity: [] float > 0, may be traced: the L2 sensitivity of the whole vector.
        basis: [size, rank] float, orthonormal columns that span all changes of `value`, which then must be a vector
            [size]. It must be public; orthonormality is not checked. The noise lies in the span, and d is the rank.
            None means all of R^d.

    Returns:
        [...] the noisy value, in the dtype of `value`; for integers and sums, in JAX's default float type, rounded
        after the noise is added. With a basis it is the noisy projection onto the span.

    Raises:
        ValueError: if value is not as for `laplace` or is empty; if epsilon or sensitivity is not a scalar, or is a
            Python or NumPy number that is not > 0; if such a sensitivity is infinite, or such an epsilon is below about
            2.3e-10 times sqrt(d), because the noise would overflow integers; or if basis is not a matrix with one row
            for each entry of a vector.

    Privacy:
        - epsilon-DP in the central model for one release of `value`, for the unit and adjacency of the sensitivity.
        - The density at any output changes by a factor of at most exp(epsilon * |change| / sensitivity), by the
          triangle inequality.
        - With a basis, private data must change the value only within the span.

    Source:
        Hardt & Talwar (2010), for the Euclidean ball; Chaudhuri, Monteleoni & Sarwate (2011), Algorithm 1,
        uses the same noise.

    Deviations:
        Value and noise are integers on a grid, as in `laplace`, with a step of at most 2^-14 of the noise's scale (for
        epsilon up to 2^16).
        Arithmetic adds a delta below 1e-9 * d^(3/2), for epsilon from 0.01 to 10. With a basis, the mechanism rounds
        the coordinates of `value` in the basis, adds noise to them as to a vector of d entries, and multiplies by the
        basis. The noise is calibrated for a sensitivity larger by a factor of 1 + 2^-11, which covers rounding of the
        coordinates and of the basis. Entries beyond about 2^36 / sqrt(size) sensitivities are clipped.

    Math:
        The mechanism adds noise $Z$ to a vector in $\mathbb{R}^d$, with a density proportional to

        $$
        \exp\Big( -\frac{\varepsilon |z|}{\Delta} \Big)
        $$

        where $\Delta$ is the $L_2$ sensitivity. Each coordinate of the noise has the variance

        $$
        (d + 1) \frac{\Delta^2}{\varepsilon^2}
        $$

    Examples:
        >>> sums = jnp.array([10.0, 20.0], jnp.float32)
        >>> print(k_norm(jax.random.key(0), sums, float("inf"), sensitivity=1.0))  # no privacy, no noise
        [10. 20.]
    """
    exact = exact_values("value", value)
    shape = shape_of(exact)
    if math.prod(shape) < 1 or (basis is not None and (basis.ndim != 2 or shape != basis.shape[:1])):
        basis_shape = "" if basis is None else f" and a basis of shape {basis.shape}"
        raise ValueError(
            "value must have at least one entry and, with a basis, be a vector with one entry for each row of the "
            f"basis, got {shape}{basis_shape}"
        )
    unit, budget = wide_scalars(sensitivity=sensitivity, epsilon=epsilon)
    if not isinstance(epsilon, jax.Array):
        check_k_norm(float(epsilon), numbers=math.prod(shape) if basis is None else max(basis.shape[1], 1))
    dtype = float_type(exact)
    if basis is None:
        return _k_norm(key, exact, budget, unit, dtype)
    coordinates, unit = _coordinates(exact, basis, budget, unit)
    noisy = _k_norm(key, coordinates, budget, unit, dtype)
    return jnp.matmul(basis.astype(dtype), noisy, precision="highest")


@in_64_bits
@traced_once("dtype")
def _k_norm(key: jax.Array, exact: Exact, epsilon: jax.Array, sensitivity: jax.Array, dtype: jnp.dtype) -> jax.Array:
    grid, shape = k_norm_grid(exact, sensitivity, epsilon), shape_of(exact)
    noise = draw_isotropic(key, math.prod(shape)).reshape(shape)
    entry = Entry("k_norm", exact, "l2", key, sensitivity, epsilon, noise=noise.astype(dtype))
    return noisy_values(record(entry), jnp.floor(grid.drawn * noise), grid, dtype)


@in_64_bits
def _coordinates(
    exact: Exact, basis: jax.Array, epsilon: jax.Array, sensitivity: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Returns a vector's coordinates ([rank] float64) in a basis, and their sensitivity."""
    # Rounding the vector itself would change it outside of the span, where no noise hides the change. So `_k_norm`
    # rounds the coordinates. They are computed from the vector rounded to multiples of `unit`, by products and sums
    # that are exact up to 2^-50 of its norm. All this changes the coordinates by at most 2^-12 sensitivities.
    values, factors = wide(exact), basis.astype(jnp.float64)
    unit = power_below(sensitivity) * 2.0 ** -(16 + math.ceil(math.log2(len(values)) / 2))
    units = jnp.clip(jnp.round(values / unit), -(2.0**53), 2.0**53)
    coarse = jnp.round(factors * 2.0**20) * 2.0**-20
    bits = 33 - math.ceil(math.log2(len(values)))  # bits of a digit, so that its sums of products are below 2^53
    coordinates = _dot(factors - coarse, units)
    digits = []
    for shift in range(0, 54, bits):
        higher = jnp.floor(units * 2.0**-bits)
        digits.append((2.0**shift, units - higher * 2.0**bits if shift + bits < 54 else units))
        units = higher
    for power, digit in reversed(digits):
        coordinates = coordinates + power * _dot(coarse, digit)
    without_noise = jnp.isinf(epsilon)
    return jnp.where(without_noise, _dot(factors, values), coordinates * unit), sensitivity * (1 + 2.0**-11)


def _dot(basis: jax.Array, vector: jax.Array) -> jax.Array:
    # `jnp.matmul` states the dtype of its result, which JAX replaces by float32 if it batches a traced program.
    return jax.lax.dot(basis.T, vector, precision=jax.lax.Precision.HIGHEST)
