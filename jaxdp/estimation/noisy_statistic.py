"""Releases a sufficient statistic of labels with noise, and computes the scale of the noise and the claim.

The sum and the noise are computed in 64 bits, even in 32-bit mode. Each term is rounded to a multiple of a public step,
and the sum is an integer number of steps. The noise covers the change that rounding can add to the terms of one privacy
unit. "The paper" is DP-Reward (Chowdhury, Zhou & Natarajan, 2023).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp.core import Guarantee, Scalar, default_float, leaf_rounded_down, only, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.estimation.constraints import radius_leaf, rate_leaf
from jaxdp.estimation.exact_sums import exact_statistic
from jaxdp.estimation.label_noise import CONSTANTS, noise_multiplier
from jaxdp.estimation.label_params import TOLERANCE
from jaxdp.estimation.persons import PERSON, check_unit, most_labels, person_index, person_norms
from jaxdp.estimation.public_weights import (
    NOISES,
    WithCut,
    check_weights,
    cut_leaf,
    cut_weights,
    effective_cut,
    feature_norms,
    noise_variance,
)
from jaxdp.estimation.whitening import check_geometry
from jaxdp.mechanisms import gaussian, k_norm, round_up
from jaxdp.mechanisms.least_budgets import check_k_norm
from jaxdp.mechanisms.numerical import MAX_DIM, vector_delta
from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.validation import check_above, check_at_least, check_choice, check_count, check_epsilon


@pytree_dataclass
class Params:
    """Values that a sweep may vary.

    Attributes:
        epsilon: [] float > 0, privacy budget; used only for K-norm noise.
        noise_multiplier: [] float >= 0, standard deviation of Gaussian noise divided by the sensitivity, or by L with
            the paper's constants (`sensitivity_unit`); 0 at epsilon = inf, and for K-norm noise.
        feature_norm: [] float > 0, bound L on the norm of an action's features, used only for the paper's constants.
            Infinity, or an L below half the largest |x_i|, is replaced by this half. x_i is the difference between the
            features of two actions.
        cut: [] float >= 0, maximum weighted norm w_i |x_i| of a sample's features, used only if samples are weighted. 0
            selects the cut with the least predicted error, and infinity leaves all weights 1. If the unit of privacy is
            one person, the bounds from `lengths` replace |x_i|.
        regularization: [] float >= 0, beta, on the scale of the sum over samples.
        radius: [] float > 0, bound B on the parameter's norm; infinity means no bound.
        learning_rate: [] float > 0, used only by SGD.
        tolerance: [] float > 0, maximum norm of the projected gradient of the mean objective at a converged point, for
            features scaled to a root mean square in [1, 2); used only by full-batch solvers.
        persons: [num_samples] int32, the index of the person who gave each label; None if the unit of privacy is one
            label.
        margin_stddev: [] float > 0, a guess of the margins' standard deviation. It determines the ridge if
            regularization is 0 (infinity gives no ridge); None if the ridge is always `regularization`.
    """

    epsilon: Scalar
    noise_multiplier: Scalar
    feature_norm: Scalar
    cut: Scalar
    regularization: Scalar
    radius: Scalar
    learning_rate: Scalar
    tolerance: Scalar
    persons: np.ndarray | jax.Array | None = None
    margin_stddev: Scalar | None = None

    def lengths(self, features: jax.Array) -> jax.Array:
        """Returns [num_samples] bounds on the L2 sensitivity of sum_i y_i x_i to each sample's privacy unit."""
        if self.persons is None:
            return feature_norms(features)
        return person_norms(features, jnp.asarray(self.persons))


class Weighted(NamedTuple):
    """Weights of samples and the weighted statistic, both divided by the mean weight.

    Attributes:
        weights: [num_samples] float, of mean 1.
        statistic: [dim] float, also divided by a scale (see `of`).
        mean: [] float, the mean weight before the division.
    """

    weights: jax.Array
    statistic: jax.Array
    mean: jax.Array

    @classmethod
    def of(cls, lengths: jax.Array, report: WithCut, scale: jax.Array) -> "Weighted":
        """Builds weights from `lengths`; divides the statistic by their mean and by `scale` ([] or [dim] float)."""
        weights = cut_weights(lengths, report.cut)
        mean = jnp.mean(weights)
        return cls(weights / mean, report.report / scale / mean, mean)


class Release(NamedTuple):
    """Options of the release of a statistic, fixed at compile time.

    Attributes:
        constants: "analytic", "classical" or "paper", for Gaussian noise.
        weights: "none" or "cut".
        noise: "gaussian" or "k_norm".
        of_persons: whether the unit of privacy is one person.
        whitened: whether noise is added in coordinates that whiten the features.
        max_dim: maximum dimension of the statistic.
    """

    constants: str
    weights: str
    noise: str
    of_persons: bool = False
    whitened: bool = False
    max_dim: int = MAX_DIM["gaussian"]

    @property
    def is_weighted(self) -> bool:
        """Whether samples are weighted, so that a cut is released with the statistic."""
        return self.weights == "cut"

    def check_dim(self, dim: int) -> None:
        """Raises a ValueError if there are more features than `max_dim`."""
        check_dim(dim, self.max_dim)

    def check_budget(self, epsilon: float) -> float:
        """Returns epsilon; raises a ValueError if it is not > 0, or too small for integers to hold the noise."""
        return check_epsilon(epsilon) if self.noise == "gaussian" else check_k_norm(epsilon, numbers=self.max_dim)


def check_dim(dim: int, max_dim: int, name: str = "features", things: str = "columns") -> None:
    """Raises a ValueError if a vector has more than `max_dim` entries; the claim covers rounding only up to there."""
    if dim > max_dim:
        raise ValueError(
            f"{name} must have at most max_dim={max_dim} {things}, since the claim covers rounding errors up to there, "
            f"got {dim}: make the estimator with max_dim={dim}"
        )


def check_release(
    constants: str,
    weights: str,
    noise: str,
    among: tuple[str, ...] = CONSTANTS,
    *,
    privacy_unit: str = "label",
    geometry: str = "isotropic",
    max_dim: int | None = None,
) -> Release:
    """Builds a `Release`; raises a ValueError if max_dim < 1, or a name is unknown or does not fit the other names.

    `among` are the constants that the estimator supports; `max_dim` None means the default for the noise.
    """
    check_choice("constants", constants, among)
    check_weights(weights)
    check_choice("noise", noise, NOISES)
    if noise != "gaussian" and constants != "analytic":
        raise ValueError(f"constants must be left at 'analytic' with noise={noise!r}, got {constants!r}")
    if weights != "none" and constants == "paper":
        raise ValueError(f"constants must not be 'paper' with weights={weights!r}, as the paper has no weights")
    of_persons, whitened = check_unit(privacy_unit), check_geometry(geometry)
    if of_persons and constants == "paper":
        raise ValueError("constants must not be 'paper' with privacy_unit='person', as the paper protects one label")
    if whitened and constants == "paper":
        raise ValueError("constants must not be 'paper' with geometry='whitened', as the paper's noise is isotropic")
    max_dim = MAX_DIM[noise] if max_dim is None else check_count("max_dim", max_dim)
    return Release(constants, weights, noise, of_persons, whitened, max_dim)


def statistic_params(owner: str, release: Release, reads: str) -> Callable[..., Params]:
    """Builds the `params` of the estimator `owner`; `reads` is the solver's option, "tolerance" or "learning_rate"."""

    def params(
        *,
        epsilon: float,
        delta: float = 0.0,
        feature_norm: float = np.inf,
        cut: float = 0.0,
        regularization: float = 0.0,
        radius: float = np.inf,
        learning_rate: float = 0.1,
        tolerance: float = TOLERANCE,
        persons: ArrayLike | None = None,
        margin_stddev: float = 1.0,
    ) -> Params:
        multiplier = noise_multiplier(epsilon, delta, release.constants) if release.noise == "gaussian" else 0.0
        return Params(
            epsilon=leaf_rounded_down("epsilon", release.check_budget(epsilon)),
            noise_multiplier=round_up(multiplier, default_float()),
            feature_norm=scalar_leaf("feature_norm", check_above("feature_norm", feature_norm, 0.0)),
            cut=cut_leaf(cut),
            regularization=scalar_leaf("regularization", check_at_least("regularization", regularization, 0.0)),
            radius=radius_leaf(radius),
            learning_rate=rate_leaf(learning_rate),
            tolerance=scalar_leaf("tolerance", check_above("tolerance", tolerance, 0.0)),
            persons=person_index(persons) if release.of_persons else None,
            margin_stddev=scalar_leaf("margin_stddev", check_above("margin_stddev", margin_stddev, 0.0))
            if release.whitened
            else None,
        )

    params.__qualname__ = f"{owner}.params"  # shown in errors
    read = {"epsilon", "regularization", "radius", reads}  # `only` rejects all other values
    read |= {"delta"} if release.noise == "gaussian" else set()
    read |= {"feature_norm"} if release.constants == "paper" else set()
    read |= {"persons"} if release.of_persons else set()
    read |= {"margin_stddev"} if release.whitened else set()
    return only(params, read | ({"cut"} if release.is_weighted else set()))


def statistic_claim(release: Release) -> Callable[..., Guarantee]:
    """Returns (epsilon, delta) -> claim, for an estimator that uses labels only through one noisy statistic."""
    longest = "weighted norm" if release.is_weighted else "norm"
    reach = f"the largest {longest} of a public differential feature as L2 sensitivity"
    if release.whitened:
        reach = f"the largest {longest} of a public feature in whitened coordinates as L2 sensitivity"
    if release.of_persons:
        reach = f"the largest {longest} of a change of one person's part of it, bounded from public features"

    def claim(epsilon: float, delta: float = 0.0) -> Guarantee:
        kind = "Gaussian" if release.noise == "gaussian" else "K-norm"
        return Guarantee.approximate(
            epsilon,
            delta,
            trust_model="central",
            privacy_unit=PERSON if release.of_persons else "one label",
            unit="person" if release.of_persons else "record",
            argument="none: epsilon is infinite, so that no noise is added"
            if np.isinf(epsilon)
            else f"labels enter only one sum, at {reach}; the sum is released once with {kind} noise, and the "
            f"estimate is post-processing; rounding is counted for at most {release.max_dim} features",
            numerical_delta=vector_delta(
                epsilon, delta if release.noise == "gaussian" else None, numbers=release.max_dim
            ),
        )

    return claim


@in_64_bits
def noise_stddev(multiplier: Scalar, sensitivity: Scalar) -> jax.Array:
    """Returns multiplier * sensitivity, the standard deviation of Gaussian noise, [] float64.

    If this product is 0 although the multiplier is > 0, the result is NaN, so that nothing is released without noise.
    """
    multiplier, sensitivity = (jnp.asarray(factor, jnp.float64) for factor in (multiplier, sensitivity))
    product = multiplier * sensitivity
    return jnp.where((multiplier > 0) & ~(product > 0), jnp.nan, product)


def sensitivity_unit(params: Params, lengths: jax.Array, release: Release) -> jax.Array:
    """Returns the factor of `noise_multiplier` if samples have no weights: the sensitivity, or the paper's L.

    Args:
        params: parameters of the estimator.
        lengths: [num_samples] float, for each sample the L2 sensitivity of the statistic to its label or, if the unit
            of privacy is one person, to all labels of its person.
        release: the options of the release.

    Returns:
        [] float.
    """
    longest = jnp.max(lengths)
    if release.constants != "paper":
        return longest
    bound = jnp.asarray(params.feature_norm, lengths.dtype)
    # An L below half the largest norm would not protect labels.
    return jnp.where(jnp.isinf(bound), longest / 2, jnp.maximum(bound, longest / 2))


def cut_of(params: Params, lengths: jax.Array, rows: jax.Array, release: Release, basis: jax.Array | None) -> jax.Array:
    """Returns the cut c of the weights min(1, c / length), at most the largest length.

    The cut is `params.cut` or, if that is 0, the cut with the least predicted error. `rows` and `basis` are as for
    `effective_cut`.
    """
    dtype, rank = lengths.dtype, rows.shape[-1] if basis is None else basis.shape[1]
    multiplier, epsilon = jnp.asarray(params.noise_multiplier, dtype), jnp.asarray(params.epsilon, dtype)
    return effective_cut(params.cut, lengths, rows, noise_variance(multiplier, epsilon, release.noise, rank), basis)


def release_statistic(
    key: jax.Array,
    params: Params,
    terms: jax.Array,
    sizes: jax.Array,
    lengths: jax.Array,
    rows: Callable[[], jax.Array],
    release: Release,
    basis: jax.Array | None = None,
) -> jax.Array | WithCut:
    """Releases the sum of terms; each term depends on one label.

    Args:
        key: key of the noise.
        params: parameters of the estimator.
        terms: [num_samples, dim] float; NaN counts as 0 where `sizes` are finite.
        sizes: [num_samples, dim] float, public: the maximum absolute value of each entry of `terms`, over all labels.
        lengths: [num_samples] float, public: the L2 sensitivity of each term to its label. If the unit of privacy is
            one person, the L2 sensitivity of the sum of a person's terms to the person's labels.
        rows: () -> [num_samples, num_rows, dim] float; see `effective_cut`.
        release: the options of the release.
        basis: [dim, rank] float, orthonormal columns that span the changes of all terms; None means the whole space.
            Used by K-norm noise, and to predict errors for the cut.

    Returns:
        [dim] float, the noisy sum; if samples are weighted, a `WithCut` of the noisy weighted sum and the cut. The sum
        is 0 if all lengths and sizes are 0, and NaN if all lengths but not all sizes are 0.
    """
    release.check_dim(terms.shape[-1])
    terms = jnp.where(jnp.isfinite(sizes) & jnp.isnan(terms), 0, terms)  # a NaN label must not show
    if not release.is_weighted:
        unit = sensitivity_unit(params, lengths, release)
        return _release_sum(key, params, terms, sizes, lengths, None, unit, release, basis)
    cut = cut_of(params, lengths, rows(), release, basis)
    return WithCut(_release_sum(key, params, terms, sizes, lengths, cut, cut, release, basis), cut)


@in_64_bits
def _release_sum(
    key, params: Params, terms, sizes, lengths, cut: jax.Array | None, unit: jax.Array, release: Release, basis
) -> jax.Array:
    dtype = terms.dtype
    terms, sizes, lengths, unit = (array.astype(jnp.float64) for array in (terms, sizes, lengths, unit))
    reach = jnp.max(lengths)
    if cut is not None:
        weights, reach = cut_weights(lengths, unit)[:, None], unit
        terms, sizes = terms * weights, sizes * weights
    bounds = jnp.max(sizes, axis=0)
    changed = 1 if params.persons is None else most_labels(jnp.asarray(params.persons))
    statistic, error = exact_statistic(terms, bounds, changed)
    noisy = add_noise(key, params, statistic, error, reach, unit, release, basis)
    return jnp.where((reach == 0) & jnp.all(bounds == 0), 0, noisy).astype(dtype)


@in_64_bits
def add_noise(
    key: jax.Array,
    params: Params,
    statistic: jax.Array,
    error: jax.Array,
    reach: jax.Array,
    unit: jax.Array,
    release: Release,
    basis: jax.Array | None = None,
) -> jax.Array:
    """Adds the noise to an exact statistic, and returns the noisy statistic. The result is [dim] float64.

    Args:
        key: key of the noise.
        params: parameters of the estimator.
        statistic: [dim] float64.
        error: [] float64, a bound on how much rounding can increase the L2 sensitivity of the statistic.
        reach: [] float64, the L2 sensitivity to one privacy unit, without rounding.
        unit: [] float64, the factor of `noise_multiplier` (or of 1 / epsilon): the cut if samples have weights,
            otherwise the result of `sensitivity_unit`.
        release: the options of the release.
        basis: [dim, rank] float, orthonormal columns that span the changes; None means the whole space. Only K-norm
            noise uses it, and then returns the noisy projection onto the span.
    """
    larger = 1 + jnp.where(reach > 0, error / reach, 0)
    if release.noise == "k_norm":
        epsilon = jnp.asarray(params.epsilon, jnp.float64)
        return k_norm(key, statistic, epsilon, sensitivity=unit * larger, basis=basis)
    stddev = noise_stddev(params.noise_multiplier, unit * larger)
    return gaussian(key, statistic, stddev, l2_sensitivity=reach * larger)
