"""Sums of labels' terms and their noise where floats round, overflow or vanish."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.estimation import objective_perturbation, plackett_luce_objective_perturbation
from jaxdp.estimation.noisy_statistic import (
    check_release,
    exact_statistic,
    noise_multiplier,
    noise_stddev,
    release_statistic,
)
from jaxdp.estimation.public_weights import effective_cut, feature_norms
from jaxdp.numerics.fixed_point import in_64_bits

DTYPE = jax.dtypes.canonicalize_dtype(float)
TINY = float(jnp.finfo(DTYPE).smallest_normal)
VANISHES = TINY**0.55  # a number with a square far below the least float
NOISES = ("gaussian", "k_norm")
ESTIMATORS = (objective_perturbation, plackett_luce_objective_perturbation)


def made(estimator, noise, weights="none", **values):
    """Builds (key, features, labels) -> the noisy statistic."""
    model = estimator(noise=noise, weights=weights)
    params = model.params(**values, **({"delta": 1e-3} if noise == "gaussian" else {}))

    def release(key, features, labels):
        report = model.privatize(key, params, features, labels)
        return getattr(report, "report", report)

    return jax.jit(release)


def rows(estimator, values):
    """Makes features [len(values), 2] of these sizes, alike for both estimators: choices from x and 0."""
    features = jnp.asarray(values, DTYPE)[:, None] * jnp.asarray([[1.0, -1.0]], DTYPE)
    return features if estimator is objective_perturbation else jnp.stack([0 * features, features], 1)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_label_of_a_short_feature_beside_a_long_one(estimator, noise):
    """Checks a feature whose square vanishes beside the longest one's: its weight was 1, and it moved the sum by
    its length.
    """
    cut = VANISHES / 1024
    release = made(estimator, noise, "cut", epsilon=1.0, cut=cut)
    features, labels = rows(estimator, [1.0, VANISHES, VANISHES]), jnp.asarray([0, 0, 1], jnp.int32)
    moved = [np.asarray(release(jax.random.key(0), features, labels.at[1].set(y)), float) for y in (0, 1)]
    assert np.linalg.norm((moved[1] - moved[0]) / cut) == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("size", "epsilon"), [(3e-20, 1.0), (TINY * 8, 1.0), (TINY * 8, 1e5)])
def test_tiny_features_have_noise(estimator, noise, size, epsilon):
    """Checks noise with a scale below the least normal float: at the last budget the statistic was released exactly."""
    release = made(estimator, noise, epsilon=epsilon)
    features, labels = rows(estimator, [size] * 4), jnp.ones(4, jnp.int32)
    keys = jax.random.split(jax.random.key(0), 64)
    reports = np.asarray(jax.vmap(release, (0, None, None))(keys, features, labels), float)[:, 0]
    assert np.isnan(reports).all() if np.float64 == DTYPE and size < 1e-300 else np.isfinite(reports).all()
    assert np.isnan(reports).all() or len(np.unique(reports)) > 48
    if epsilon == 1.0 and size > TINY * 1e10:
        spread = np.std(reports) / size
        least = math.sqrt(3 * 2) if noise == "k_norm" else 2.0  # sqrt(d + 1) and |x| = sqrt(2); analytic: 2.6 at 1e-3
        assert least * 0.6 < spread < 10


@pytest.mark.parametrize("noise", NOISES)
def test_a_sensitivity_of_zero(noise):
    """Checks that data that are 0 are released as they are, and others become NaN, for any label."""
    none = rows(objective_perturbation, [0.0] * 3)
    report = made(objective_perturbation, noise, epsilon=1.0)(jax.random.key(0), none, jnp.ones(3, jnp.int32))
    assert report.tolist() == [0.0, 0.0]
    delta = {"delta": 1e-3} if noise == "gaussian" else {}
    params = objective_perturbation(noise=noise).params(epsilon=1.0, **delta)
    terms, release = jnp.ones((3, 2), DTYPE), check_release("analytic", "none", noise)
    lengths = jnp.zeros(3, DTYPE)  # wrong: the terms are longer
    released = jax.jit(release_statistic, static_argnums=(5, 6))(
        jax.random.key(0), params, terms, terms, lengths, lambda: terms[:, None], release
    )
    assert np.isnan(released).all()


@pytest.mark.parametrize(
    ("multiplier", "sensitivity", "product"),
    [
        (2.0, 3.0, 6.0),
        (0.0, 3.0, 0.0),  # epsilon is infinite
        (2.0, 0.0, math.nan),
        (1e-200, 1e-200, math.nan),
        (math.nan, 1.0, math.nan),
    ],
)
def test_the_scale_of_gaussian_noise(multiplier, sensitivity, product):
    np.testing.assert_array_equal(noise_stddev(multiplier, sensitivity), product)


def test_sums_are_exact():
    """Checks that sums of terms on the grid are exact, and that others change by their own term, to 2^-46 of the
    largest.
    """
    generator = np.random.default_rng(3)
    terms = generator.uniform(-1, 1, size=(2**14, 3)) * [1.0, 1e-30, 0.0]
    terms[:, 0] = np.round(terms[:, 0] * 2**30) / 2**30
    total = jax.jit(in_64_bits(lambda x: exact_statistic(jnp.asarray(x, jnp.float64), jnp.max(jnp.abs(x), 0))))

    def summed(values):
        with jax.enable_x64(True):
            return np.asarray(total(values)[0])

    exact = [float(sum(map(Fraction, column))) for column in terms.T]
    np.testing.assert_array_equal(summed(terms)[[0, 2]], np.asarray(exact)[[0, 2]])
    np.testing.assert_allclose(summed(terms)[1], exact[1], atol=1e-30 * 2**14 * 2.0**-46)


def test_norms_are_never_rounded_down():
    generator = np.random.default_rng(0)
    exponents = generator.integers(-100, 100, size=(4000, 1))
    features = np.ldexp(generator.normal(size=(4000, 3)), exponents).astype(DTYPE)
    found = np.asarray(jax.jit(feature_norms)(features)).astype(np.longdouble)
    exact = np.sqrt(np.sum(np.square(features.astype(np.longdouble)), axis=1))
    assert np.all(found >= exact)
    assert np.all(found <= exact * (1 + 6 * np.finfo(DTYPE).eps))
    with np.errstate(over="ignore"):
        plain = np.sqrt(np.sum(np.square(features), axis=1), dtype=DTYPE)
    assert np.any(plain < exact)
    assert np.asarray(feature_norms(jnp.zeros((2, 3), DTYPE))).tolist() == [0.0, 0.0]


def test_the_chosen_cut_has_the_unit_of_the_features():
    features = np.random.default_rng(0).normal(size=(80, 2))
    features[0] = 0  # the fallback of a choice among infinite errors

    def cut(exponent):
        scaled = jnp.asarray(np.ldexp(features, exponent), DTYPE)
        lengths, variance = feature_norms(scaled), jnp.asarray(30.0, DTYPE)
        return float(effective_cut(0.0, lengths, scaled[:, None] / 2, variance, None)) * 2.0**-exponent

    assert cut(0) > 0.1
    for exponent in (-100, 100) if np.float32 == DTYPE else (-900, 900):
        assert cut(exponent) == pytest.approx(cut(0), rel=1e-5)


def test_the_error_of_an_exact_sum_bounds_what_its_rounding_adds():
    """Compares the sum's change with the exact change of one term, for terms that need all bits of a float64."""
    thirds = np.random.default_rng(0).uniform(1.5, 3, (1000, 1)).astype(np.float32)
    changed = thirds.copy()
    changed[0] = -3.0

    @jax.jit
    @in_64_bits
    def run(thirds):
        return exact_statistic(thirds.astype(jnp.float64) / 3, jnp.ones(1, jnp.float64))

    (total, error), (other, _) = run(thirds), run(changed)
    change = Fraction(float(other[0])) - Fraction(float(total[0])) + 1 + Fraction(float(thirds[0, 0]) / 3)
    assert 2.0**-60 < abs(change) <= float(error)


def test_the_papers_multiplier_at_extreme_budgets():
    assert noise_multiplier(1e200, 1e-6, "paper") == pytest.approx(2e-100)
    assert noise_multiplier(1e-200, 1e-6, "paper") == pytest.approx(math.sqrt(8 * math.log(2e6)) * 1e200)
    assert noise_multiplier(math.inf, 1e-6, "paper") == 0
    with pytest.raises(ValueError, match="epsilon must be large enough for the noise to be finite, got 1e-310"):
        noise_multiplier(1e-310, 1e-6, "paper")
