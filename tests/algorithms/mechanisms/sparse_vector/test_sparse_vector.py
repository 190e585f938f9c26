import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from jaxdp.audit import exact_epsilon, g_test
from jaxdp.mechanisms import above_threshold, above_threshold_init, above_threshold_step
from jaxdp.mechanisms.sparse_vector import LARGEST_SCALE, AboveThreshold, Grid, _query_scale, _reaches, grid_of
from jaxdp.numerics.fixed_point import Sum

NUM_DRAWS = 40_000
QUERIES = np.array([0.0, 1.0, -0.5, 2.0])
SPLITS = {"even": 0.5, "optimal": 1 / (1 + 2 ** (2 / 3))}


def distribution(queries, epsilon, *, threshold, sensitivity=1.0, split="even"):
    """Computes P(first above = k) by quadrature over the noisy threshold, Gauss-Legendre between the kinks."""
    e1 = epsilon * SPLITS[split]
    e2 = epsilon - e1
    scale, query_scale = sensitivity / e1, 2 * sensitivity / e2
    gaps = np.asarray(queries) - threshold
    edges = np.union1d(np.linspace(-40 * scale, 40 * scale, 201), np.append(gaps, 0.0))
    nodes, weights = np.polynomial.legendre.leggauss(12)
    z = (edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1) / 2).ravel()
    dz = (np.diff(edges)[:, None] * weights / 2).ravel() * scipy.stats.laplace.pdf(z / scale) / scale
    below = scipy.stats.laplace.cdf((z[:, None] - gaps) / query_scale)
    survived = np.cumprod(np.concatenate([np.ones((len(z), 1)), below], axis=1), axis=1)
    halts = survived[:, :-1] * (1 - below)
    return {k: float(p) for k, p in enumerate(dz @ np.concatenate([halts, survived[:, -1:]], axis=1))}


def draw(queries, epsilon, **arguments):
    keys = jax.random.split(jax.random.key(3), NUM_DRAWS)
    queries = jnp.asarray(queries, jnp.float32)
    return np.asarray(jax.vmap(lambda key: above_threshold(key, queries, epsilon, **arguments))(keys)).tolist()


@pytest.mark.precision
@pytest.mark.parametrize(
    "arguments",
    [
        {"threshold": 0.8},
        {"threshold": 0.8, "split": "optimal"},
        {"threshold": -1.0, "sensitivity": 2.0, "split": "optimal"},
    ],
)
def test_the_index_has_its_distribution(arguments):
    samples = draw(QUERIES, 2.0, **arguments)
    assert g_test(samples, distribution(QUERIES, 2.0, **arguments)) > 1e-6
    for wrong in [0.7, 1.4]:
        assert g_test(samples, distribution(QUERIES, wrong * 2.0, **arguments)) < 1e-6


@pytest.mark.precision
@pytest.mark.parametrize("split", SPLITS)
def test_the_claimed_epsilon_is_kept_and_nearly_spent(split):
    """Moves many queries just below, and one above, against each other."""
    first, second = [0.0] * 40 + [1.0], [1.0] * 40 + [0.0]
    spent = exact_epsilon(*[distribution(q, 1.0, threshold=3.0, split=split) for q in (first, second)], delta=0.0)
    assert 0.8 < spent <= 1.0
    too_little = exact_epsilon(
        *[distribution(q, 1.0, threshold=3.0, sensitivity=0.5, split=split) for q in (first, second)], delta=0.0
    )
    assert too_little > 1.0


def test_a_scan_gives_the_same():
    queries = jnp.asarray(np.random.default_rng(0).normal(size=30), jnp.float32)

    def scanned(key):
        key_threshold, key_queries = jax.random.split(key)
        start = above_threshold_init(key_threshold, jnp.float32(1.0), threshold=4.0)
        keys = jax.random.split(key_queries, len(queries))
        _, above = jax.lax.scan(lambda state, x: above_threshold_step(x[0], state, x[1]), start, (keys, queries))
        return above

    keys = jax.random.split(jax.random.key(1), 200)
    above = np.asarray(jax.vmap(scanned)(keys))
    first = jax.vmap(lambda key: above_threshold(key, queries, jnp.float32(1.0), threshold=4.0))(keys)
    assert above.sum(1).max() == 1
    assert 0 < above.sum() < 200
    np.testing.assert_array_equal(np.where(above.any(1), above.argmax(1), len(queries)), first)


@pytest.mark.precision
def test_no_privacy_is_the_exact_comparison():
    queries = np.array([0.0, 3.0, 4.0, 9.0], np.float32)
    key = jax.random.key(0)
    assert above_threshold(key, queries, math.inf, threshold=4.0) == 2
    assert above_threshold(key, queries, math.inf, threshold=9.5) == 4
    assert above_threshold(key, np.full(3, np.nan, np.float32), math.inf, threshold=0.0) == 3


def test_one_compilation_for_every_epsilon_and_vmap_equals_loop():
    queries = jnp.asarray([-1.0, 0.9, 0.2, 1.5, 3.0], jnp.float32)
    epsilons = jnp.array([0.1, 1.0, 20.0, np.inf], jnp.float32)
    traces = []

    @jax.jit
    def select(epsilon):
        traces.append(epsilon)
        return above_threshold(jax.random.key(6), queries, epsilon, threshold=epsilon**0, sensitivity=epsilon**0)

    loop = np.stack([select(epsilon) for epsilon in epsilons])
    assert len(traces) == 1
    np.testing.assert_array_equal(jax.vmap(select)(epsilons), loop)
    assert loop[-1] == 3


def test_nothing_is_above_where_noise_is_too_large_to_draw():
    """Checks both sides of the largest scale, in a run whose threshold the query reaches."""
    with jax.enable_x64(True):
        one, noise = jnp.asarray(1.0), jnp.asarray(LARGEST_SCALE)
        threshold = Sum(jnp.asarray(0), jnp.asarray(2))
        run = AboveThreshold(threshold, one, one, one, jnp.asarray(False))
        for scale, reaches in ((LARGEST_SCALE, True), (np.nextafter(LARGEST_SCALE, np.inf), False)):
            grid = Grid(one, jnp.asarray(scale), noise)
            assert bool(_reaches(noise, grid.drawn, one, grid, run)) == reaches


@pytest.mark.precision
@pytest.mark.parametrize(("epsilon", "threshold"), [(1.0, 1.5 * 2**30), (1e-9, 0.0), (1e-9, 2.0**30), (100.0, -2e9)])
def test_noise_of_a_threshold_is_never_clipped(epsilon, threshold):
    """Draws noisy thresholds. One clipped with its noise is the same for every noise, which hides nothing."""
    keys = jax.random.split(jax.random.key(5), 500)
    run = jax.vmap(lambda key: above_threshold_init(key, epsilon, threshold=threshold))(keys)
    whole, part = (np.asarray(word, object) for word in run.noisy_threshold)
    steps, per_one = whole * 2**20 + part, int(grid_of(jax.tree.map(lambda leaf: leaf[0], run)).per_one)
    assert len(set(steps)) > 490
    assert max(map(abs, steps)) < 2**51 - 1
    clipped = np.clip(steps, -(2**30) * per_one, 2**30 * per_one)  # planted
    assert len(set(clipped)) < 400


@pytest.mark.precision
def test_a_threshold_near_the_largest_horizon_is_compared_with_its_noise():
    key = jax.random.key(2)
    for threshold, above in ((1.5 * 2**30, False), (2.0**30, True)):
        run = above_threshold_init(key, 8.0, threshold=threshold)
        query = jnp.int32(2**30 + 100)
        assert bool(above_threshold_step(key, run, query)[1]) == above


def test_the_scale_of_queries_is_never_rounded_down():
    falls = 0
    for epsilon in np.linspace(0.1, 3, 100, dtype=np.float32):
        exact = 2 / Fraction(float(epsilon)) / Fraction(1 - SPLITS["optimal"])
        falls += Fraction(float(np.float32(float(exact)))) < exact * (1 - Fraction(1, 2**50))
        scale = _query_scale(jnp.float32(1), jnp.asarray(epsilon), SPLITS["optimal"], jnp.float32)
        assert Fraction(float(scale)) >= exact * (1 - Fraction(1, 2**50))
    assert falls > 20  # rounded to nearest


@pytest.mark.precision
def test_budgets_are_rounded_down_and_sensitivities_up():
    for epsilon, sensitivity in ((0.1, 0.7), (np.float64(0.3), np.float64(1.1))):
        run = above_threshold_init(jax.random.key(0), epsilon, threshold=0.0, sensitivity=sensitivity)
        assert float(run.epsilon) <= epsilon
        assert float(run.sensitivity) >= sensitivity


@pytest.mark.precision
def test_dtypes():
    for dtype in [jnp.float32, float]:
        state = above_threshold_init(jax.random.key(0), jnp.asarray(1.0, dtype), threshold=0.0)
        after, above = above_threshold_step(jax.random.key(1), state, jnp.zeros((), jnp.float32))
        assert jax.tree.map(lambda x: (x.dtype, x.shape), after) == jax.tree.map(lambda x: (x.dtype, x.shape), state)
        assert (above.dtype, above.shape) == (jnp.bool_, ())
        index = above_threshold(jax.random.key(0), jnp.zeros(3, dtype), 1.0, threshold=0.0)
        assert (index.dtype, index.shape) == (jnp.int32, ())


def test_errors():
    key, queries = jax.random.key(0), np.zeros(3, np.float32)
    with pytest.raises(ValueError, match="queries must be floats, got dtype int32"):
        above_threshold(key, np.zeros(3, np.int32), 1.0, threshold=0.0)
    for bad in [np.float32(1), np.zeros((2, 2), np.float32), np.zeros(0, np.float32)]:
        with pytest.raises(ValueError, match="queries must have shape"):
            above_threshold(key, bad, 1.0, threshold=0.0)
    with pytest.raises(ValueError, match="split must be one of even, optimal, got 'best'"):
        above_threshold(key, queries, 1.0, threshold=0.0, split="best")
    with pytest.raises(ValueError, match="threshold must be a scalar"):
        above_threshold(key, queries, 1.0, threshold=jnp.zeros(3))
    for bad in [math.nan, "x", np.zeros(3)]:
        with pytest.raises(ValueError, match="threshold must be"):
            above_threshold(key, queries, 1.0, threshold=bad)
    with pytest.raises(ValueError, match="query must be floats or integers, got dtype bool"):
        above_threshold_step(key, above_threshold_init(key, 1.0, threshold=0.0), jnp.asarray(True))
    with pytest.raises(ValueError, match=r"query must be a single number, got shape \(2,\)"):
        above_threshold_step(key, above_threshold_init(key, 1.0, threshold=0.0), jnp.asarray([-100.0, 100.0]))
    for bad in [0.0, -1.0, math.nan]:
        with pytest.raises(ValueError, match=f"epsilon must be > 0, got {bad}"):
            above_threshold(key, queries, bad, threshold=0.0)
        with pytest.raises(ValueError, match=f"sensitivity must be > 0, got {bad}"):
            above_threshold(key, queries, 1.0, threshold=0.0, sensitivity=bad)
