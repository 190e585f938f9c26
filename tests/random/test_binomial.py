"""Binomial and multinomial counts against SciPy's exact probabilities; every check also rejects a wrong sampler."""

import importlib
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxdp.random import binomial, multinomial

module = importlib.import_module("jaxdp.random._binomial")  # the package's attribute of this name is the function

X64 = jax.config.read("jax_enable_x64")
DRAWS = 2**16
LEVEL = 1e-5  # of chi-square tests with fixed keys
LARGE = 2**30
TRIALS = [1, 2, 5, 20, 1000, 2**20, 2**25, LARGE, 2**31 - 1] + ([2**37] if X64 else [])
CASES = [(n, p) for n in TRIALS for p in (0.5, 0.3, 1e-3, 1 - 1e-3, 1e-6, 10 / n) if p <= 1]
draw = jax.jit(binomial)


def dtypes(n):
    return (np.int32, np.float32) if n < 2**31 else (np.int64, np.float64)


def sample(n, p, seed=0, sampler=draw):
    """DRAWS counts as int64, and the probability that the sampler saw."""
    integer, floating = dtypes(n)
    counts = sampler(jax.random.key(seed), jnp.full(DRAWS, n, integer), jnp.full(DRAWS, p, floating))
    return np.asarray(counts).astype(np.int64), float(floating(p))


def chi_square(observed, probabilities):
    """Returns the p-value, with cells of expectation below 10 merged with their neighbours."""
    expected = np.asarray(probabilities) * observed.sum()
    group = np.minimum(np.cumsum(expected) // 10, max(expected.sum() // 10 - 1, 0)).astype(int)
    expected, observed = np.bincount(group, expected), np.bincount(group, observed)
    kept = expected > 0
    return stats.chi2.sf(np.sum((observed - expected)[kept] ** 2 / expected[kept]), max(kept.sum() - 1, 1))


def quantile_cells(counts, n, p):
    """Returns the p-value of the counts in about 64 cells of equal probability."""
    edges = np.unique(stats.binom.ppf(np.linspace(0, 1, 65)[1:-1], n, p)).astype(np.int64)
    probabilities = np.diff(np.concatenate([[0], stats.binom.cdf(edges, n, p), [1]]))
    return chi_square(np.bincount(np.searchsorted(edges, counts), minlength=len(edges) + 1), probabilities)


def moments(counts, n, p):
    """Returns the distance of mean and variance from the exact ones, in standard errors."""
    deviations, variance = counts - n * p, n * p * (1 - p)
    fourth = variance * (1 + 3 * (n - 2) * p * (1 - p))
    mean_error, variance_error = np.sqrt(variance / counts.size), np.sqrt((fourth - variance**2) / counts.size)
    return deviations.mean() / mean_error, (np.mean(deviations**2) - variance) / max(variance_error, 1e-300)


def low_bits(counts):
    """Returns the p-value of the counts' last four bits, uniform if the standard deviation is much larger than 16."""
    return chi_square(np.bincount(counts % 16, minlength=16), np.full(16, 1 / 16))


@pytest.mark.precision
@pytest.mark.parametrize(("n", "p"), CASES)
def test_counts_are_binomial(n, p):
    counts, p = sample(n, p)
    assert counts.min() >= 0
    assert counts.max() <= n
    assert quantile_cells(counts, n, p) > LEVEL
    mean, variance = moments(counts, n, p)
    assert abs(mean) < 5
    if n * p * (1 - p) * DRAWS > 100 and n > 1:  # else the fourth moment's normal approximation is poor
        assert abs(variance) < 5


@pytest.mark.precision
@pytest.mark.parametrize("n", [n for n in TRIALS if n >= 2**20])
@pytest.mark.parametrize("p", [0.5, 0.3, 0.7, 0.01])
def test_low_bits_are_uniform_at_large_n(n, p):
    counts, _ = sample(n, p, seed=1)
    assert low_bits(counts) > LEVEL
    assert abs(np.mean(counts % 2) - 0.5) < 5 * 0.5 / np.sqrt(DRAWS)


@pytest.mark.parametrize("n", [24, 1000])
def test_single_counts_in_a_million_draws(n):
    counts = np.concatenate([sample(n, 0.45, seed)[0] for seed in range(16)])
    p = float(np.float32(0.45))
    assert chi_square(np.bincount(counts, minlength=n + 1), stats.binom.pmf(np.arange(n + 1), n, p)) > LEVEL


@pytest.mark.parametrize("n", [20, 23, 1000, 10**5 + 1, 2**25 + 7, 2**31 - 2])
def test_the_acceptance_ratio_in_float32(n):
    """Compares with log-gammas in float64, which have an error below 1e-5."""

    @jax.jit
    def evaluate(p, offsets):
        mode, fraction, log_ratio = module._density(jnp.int32(n), p)
        return mode, fraction, log_ratio(offsets)

    def log_density(k, p):
        return k * math.log(p) + (n - k) * math.log1p(-p) - math.lgamma(k + 1) - math.lgamma(n - k + 1)

    for target in (10, 12.3, math.sqrt(10 * n / 2), n / 7, n / 2):
        p = np.float32(min(target / n, 0.5))
        stddev = math.sqrt(n * float(p) * (1 - float(p)))
        expected_mode = n * Fraction(float(p)) + Fraction(float(p))
        offsets = np.round(np.linspace(-6, 6, 25) * stddev).astype(np.float32)
        offsets = offsets[(offsets >= -int(expected_mode)) & (offsets <= n - int(expected_mode))]
        mode, fraction, ratios = evaluate(p, offsets)
        assert abs(int(mode) + Fraction(float(fraction)) - expected_mode) < 1e-6
        expected = [
            log_density(int(mode) + int(offset), float(p)) - log_density(int(mode), float(p)) for offset in offsets
        ]
        np.testing.assert_allclose(ratios, expected, atol=3e-5)


def share_of_the_hat(n, p, slack):
    """Returns the largest density / hat over all cells."""
    p = np.float32(p)
    mode = math.floor((n + 1) * float(p))
    stddev = np.float32(math.sqrt(n * float(p) * (1 - float(p))))
    centre = np.float32((n + 1) * float(p) - mode - float(p) + 0.5)
    boundary, spacing, scale = module._hat(jnp.asarray(stddev), jnp.asarray(p), jnp.asarray(centre))
    spacing = float(spacing)
    boundaries = np.asarray(boundary(jnp.arange(2**module.CELL_BITS + 1)), np.float64)
    first, last = np.floor(boundaries[:-1] * spacing), np.floor((boundaries[1:] - 1) * spacing)
    highest = mode + np.where((first <= 0) & (last >= 0), 0, np.where(first > 0, first, last))
    log_ratio = stats.binom.logpmf(highest, n, float(p)) - stats.binom.logpmf(mode, n, float(p))
    return np.max(np.exp(log_ratio) * np.diff(boundaries)) / float(scale) * module.SLACK / slack


@pytest.mark.parametrize("p", [0.5, 0.4, 0.1, 1e-3, 1e-6])
def test_the_hat_is_nowhere_below_the_density(p):
    means = (10, 10.3, 11, 11.5, 12.7, 15, 20, 40, 100, 1e3, 1e5, 1e8)
    cases = [math.ceil(mean / p) for mean in means if mean / p < 2**31]
    assert max(share_of_the_hat(n, p, module.SLACK) for n in cases) < 1


def test_the_hat_is_nowhere_below_the_density_of_few_trials():
    """Checks 24 trials, where the hat comes nearest."""
    cases = [(n, p) for n in range(20, 30) for p in np.linspace(10 / n, 0.5, 12)]
    assert max(share_of_the_hat(n, p, module.SLACK) for n, p in cases) < 1


def test_a_hat_without_slack_would_be_below_the_density():
    assert share_of_the_hat(LARGE, 0.3, 1.0) > 1


@pytest.mark.parametrize("n", [1000, 2**25, LARGE])
def test_a_probability_that_is_slightly_off_fails(n):
    p = 0.3
    shift = 20 * math.sqrt(p * (1 - p) / n / DRAWS)
    counts, seen = sample(n, p + shift)
    assert seen != float(np.float32(p))
    assert abs(moments(counts, n, p)[0]) > 10
    assert quantile_cells(counts, n, p) < LEVEL**2


@pytest.mark.parametrize("n", [2**26, LARGE])
def test_counts_rounded_to_float32_fail(n):
    counts, _ = sample(n, 0.5)
    assert low_bits(counts) > LEVEL
    assert low_bits(counts.astype(np.float32).astype(np.int64)) < LEVEL**4


@pytest.mark.parametrize(("n", "p"), [(20, 0.3), (1000, 0.02), (2**25, 20 / 2**25)])
def test_a_rounded_normal_fails(n, p):
    normal = np.random.default_rng(0).normal(size=DRAWS)
    counts = np.clip(np.round(n * p + np.sqrt(n * p * (1 - p)) * normal), 0, n).astype(np.int64)
    assert quantile_cells(counts, n, p) < LEVEL**2


def test_a_hat_below_the_density_fails(monkeypatch):
    monkeypatch.setattr(module, "SLACK", 0.8)
    monkeypatch.setattr(module, "_binomial", module._binomial.__wrapped__)  # compiled programs have the old one
    counts, p = sample(LARGE, 0.3, sampler=jax.jit(lambda *arguments: module.binomial(*arguments)))
    assert quantile_cells(counts, LARGE, p) < LEVEL**2


def test_jax_random_binomial_in_float32_fails():
    def sampler(key, n, p):
        return jax.random.binomial(key, n.astype(p.dtype), p, dtype=p.dtype)

    counts, p = sample(LARGE, 0.3, sampler=jax.jit(sampler))
    assert low_bits(counts) < LEVEL**4
    assert quantile_cells(counts, LARGE, p) < LEVEL**4


def test_neighbours_are_uncorrelated():
    for n, p in ((5, 0.3), (LARGE, 0.3)):
        counts, p = sample(n, p)
        scores = (counts - n * p) / math.sqrt(n * p * (1 - p))
        for other in (np.roll(scores, 1), (sample(n, p, seed=1)[0] - n * p) / math.sqrt(n * p * (1 - p))):
            assert abs(np.mean(scores * other)) < 5 / math.sqrt(DRAWS)


def test_certain_counts():
    n = jnp.array([0, 0, 0, 7, 7, 2**31 - 1, 2**31 - 1, 2**31 - 1], jnp.int32)
    p = jnp.array([0.0, 0.5, 1.0, 0.0, 1.0, 0.0, 1.0, 1e-40], jnp.float32)
    assert draw(jax.random.key(0), n, p).tolist() == [0, 0, 0, 0, 7, 0, 2**31 - 1, 0]


def test_impossible_parameters_give_minus_one():
    n = jnp.array([5, 5, 5, -1, 2**30, 2**30], jnp.int32)
    p = jnp.array([np.nan, -0.1, 1.1, 0.5, np.nan, np.inf], jnp.float32)
    assert draw(jax.random.key(0), n, p).tolist() == [-1] * 6


@pytest.mark.precision
def test_rare_successes_have_their_probability():
    """Checks means far below float32's spacing next to 1, where one trial's `uniform < p` would be wrong."""
    counts, p = sample(2**20, 1e-9)
    assert abs(moments(counts, 2**20, p)[0]) < 5
    counts, p = sample(10, 3e-7, seed=2)
    assert counts.sum() < 5


@pytest.mark.parametrize("shape", [(2, 3), *(shape for shape in [(), (0,)])])
def test_jit_is_eager_and_vmap_is_a_loop(shape):
    n = jnp.resize(jnp.array([3, 1000, 2**30], jnp.int32), shape)
    p = jnp.full(shape, 0.3, jnp.float32)
    eager = binomial(jax.random.key(3), n, p)
    assert eager.shape == shape
    assert eager.dtype == jnp.int32
    np.testing.assert_array_equal(eager, draw(jax.random.key(3), n, p))
    keys = jax.random.split(jax.random.key(4), 5)
    loop = jnp.stack([draw(key, n, p) for key in keys])
    np.testing.assert_array_equal(jax.jit(jax.vmap(binomial, (0, None, None)))(keys, n, p), loop)


def test_no_key_is_used_twice():
    with jax.debug_key_reuse(True):
        binomial(jax.random.key(0), jnp.array([3, 1000], jnp.int32), jnp.full(2, 0.3, jnp.float32))
        multinomial(jax.random.key(0), jnp.int32(1000), jnp.full(3, 0.3, jnp.float32))


@pytest.mark.precision
@pytest.mark.skipif(not X64, reason="64-bit counts need x64")
def test_64_bit_arguments():
    key, p = jax.random.key(0), jnp.float32(0.25)
    assert binomial(key, jnp.int64(2**40), p).dtype == jnp.int64
    assert binomial(key, jnp.int32(2**20), jnp.float64(0.25)).dtype == jnp.int32
    assert int(binomial(key, jnp.int64(2**40), p)) == int(binomial(key, jnp.int64(2**40), jnp.float64(0.25)))
    n = 2**62 + 1
    count = int(binomial(key, jnp.int64(n), jnp.float64(0.25)))
    assert abs(count - n / 4) < 5 * math.sqrt(n * 3 / 16)
    assert int(binomial(key, jnp.int64(2**63 - 1), jnp.float64(1))) == 2**63 - 1


def test_wrong_arguments_are_refused():
    key, n, p = jax.random.key(0), jnp.zeros(3, jnp.int32), jnp.zeros(3, jnp.float32)
    with pytest.raises(ValueError, match=r"n and p must have the same shape, got \(3,\) and \(1,\)"):
        binomial(key, n, p[:1])
    with pytest.raises(ValueError, match="n must be int32 or int64, got dtype float32"):
        binomial(key, p, p)
    with pytest.raises(ValueError, match="p must be float32 or float64, got dtype int32"):
        binomial(key, n, n)
    with pytest.raises(ValueError, match="probabilities must be float32 or float64, got dtype int32"):
        multinomial(key, n, n)
    for shape in ((3,), (1, 2), (3, 0)):
        with pytest.raises(ValueError, match="probabilities must have the shape of n and a last axis"):
            multinomial(key, n, jnp.zeros(shape, jnp.float32))


draw_multinomial = jax.jit(multinomial)


def sample_multinomial(n, probabilities, seed=0):
    integer, floating = dtypes(n)
    probabilities = np.asarray(probabilities, floating)
    rows = jnp.asarray(np.broadcast_to(probabilities, (DRAWS, len(probabilities))))
    counts = draw_multinomial(jax.random.key(seed), jnp.full(DRAWS, n, integer), rows)
    exact = probabilities.astype(np.float64)
    return np.asarray(counts).astype(np.int64), exact / exact.sum()


@pytest.mark.precision
@pytest.mark.parametrize("n", [1, 20, 1000, LARGE] + ([2**37] if X64 else []))
@pytest.mark.parametrize("probabilities", [(0.1, 0.2, 0.3, 0.4), (3.0, 1.0, 0.0, 6.0), (0.97, 0.01, 0.01, 0.01)])
def test_multinomial_marginals_sums_and_covariances(n, probabilities):
    counts, probabilities = sample_multinomial(n, probabilities)
    assert counts.min() >= 0
    assert np.all(counts.sum(axis=1) == n)
    deviations = counts - n * probabilities
    for i, p in enumerate(probabilities):
        if p == 0:
            assert np.all(counts[:, i] == 0)
            continue
        assert quantile_cells(counts[:, i], n, p) > LEVEL
        assert abs(moments(counts[:, i], n, p)[0]) < 5
        for j in range(i):
            products = deviations[:, i] * deviations[:, j] / n
            assert abs(products.mean() + p * probabilities[j]) <= 5 * products.std() / math.sqrt(DRAWS)


@pytest.mark.precision
def test_a_rare_last_category_keeps_its_digits():
    rare = 1.01e-6
    counts, probabilities = sample_multinomial(LARGE, (1.0, rare))
    assert quantile_cells(counts[:, 1], LARGE, probabilities[1]) > LEVEL
    assert abs(moments(counts[:, 1], LARGE, probabilities[1])[0]) < 5
    common, _ = sample(LARGE, np.float32(1) / (np.float32(1) + np.float32(rare)))  # rounds 1 - p to 2^-24
    assert abs(moments(LARGE - common, LARGE, probabilities[1])[0]) > 20


def test_multinomial_edges():
    key = jax.random.key(0)
    assert multinomial(key, jnp.int32(7), jnp.ones(1, jnp.float32)).tolist() == [7]
    n = jnp.array([0, 7, 7, -1, 7, 7, 7], jnp.int32)
    nan, inf = np.nan, np.inf
    rows = [[1, 1, 1], [0, 1, 0], [0, 0, 0], [1, 1, 1], [1, nan, 1], [1, -1, 1], [1, inf, 1]]
    counts = draw_multinomial(key, n, jnp.array(rows, jnp.float32)).tolist()
    assert counts == [[0, 0, 0], [0, 7, 0]] + [[-1, -1, -1]] * 5


def test_multinomial_vmap_is_a_loop():
    keys = jax.random.split(jax.random.key(5), 4)
    n, probabilities = jnp.int32(LARGE), jnp.array([0.2, 0.3, 0.5], jnp.float32)
    together = jax.jit(jax.vmap(multinomial, (0, None, None)))(keys, n, probabilities)
    assert together.dtype == jnp.int32
    np.testing.assert_array_equal(together, jnp.stack([draw_multinomial(key, n, probabilities) for key in keys]))
