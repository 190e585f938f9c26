"""Trees against their formulas, an explicit tree in NumPy, and dense least squares."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.mechanisms import best_arity, laplace, tree_counter, tree_variance
from jaxdp.mechanisms.continual_counting.arity import level_variances, num_digits
from jaxdp.mechanisms.continual_counting.gaussian_tree import fresh_stddevs
from tests.algorithms.mechanisms.continual_counting import streams
from tests.algorithms.mechanisms.continual_counting.streams import check_variance, errors, fed_one_by_one, keys_of

VALUES = {"laplace": {"epsilon": 1.0}, "gaussian": {"rho": 0.5}}


@pytest.mark.parametrize(
    ("horizon", "arity", "combine", "mean"),
    [
        (2**10 - 1, 2, False, 1001),
        (2**10 - 1, 2, True, 581),
        (2**10 - 1, 12, True, 240),
        (2**10, 2, False, 1210),
        (2**10, 2, True, 702),
        (2**20 - 1, 2, False, 8000),
        (2**20 - 1, 2, True, 4321),
        (2**20 - 1, 16, True, 1783),
    ],
)
def test_mean_variances_at_epsilon_1(horizon, arity, combine, mean):
    variance = tree_variance(np.arange(1, horizon + 1), horizon=horizon, arity=arity, combine=combine)
    assert round(variance.mean()) == mean


def test_variances_at_rho_1():
    times = np.arange(1, 2**20)
    options = {"horizon": 2**20 - 1, "arity": 2, "noise": "gaussian"}
    plain = tree_variance(times, **options, combine=False)
    combined = tree_variance(times, **options)
    assert [round(v) for v in (plain.mean(), plain.max(), combined.mean(), combined.max())] == [100, 200, 54, 108]
    # digit sum times (number of digits)^2 twice, or half of it
    assert tree_variance(27, horizon=30, arity=3, combine=False) == 1 * 2 * 4**2
    assert tree_variance(26, horizon=30, arity=3, noise="gaussian", combine=False) == 6 * 4 / 2


@pytest.mark.parametrize("objective", ["mean", "max"])
@pytest.mark.parametrize(("noise", "combine"), list(itertools.product(VALUES, [False, True])))
def test_best_arity_is_that_of_all_times(noise, combine, objective):
    for horizon in (1, 2, 7, 100, 1000):
        times, summary = np.arange(1, horizon + 1), getattr(np, objective)
        costs = {
            b: summary(tree_variance(times, horizon=horizon, arity=b, noise=noise, combine=combine))
            for b in range(2, min(horizon + 1, 60) + 1)
        } or {2: 0}
        found = best_arity(horizon, noise=noise, combine=combine, objective=objective)
        assert costs[found] <= min(costs.values()) * (1 + 1e-12)
    assert best_arity(2**20 - 1) == 16


def explicit(noise, values, arity, combine):
    """Computes [T] estimates from a tree written out.

    Noise [T, levels] is for the block of each level that ends then.
    """
    levels, length = noise.shape[1], len(values)
    weights = level_variances(arity, levels, combine)

    def estimate(h, end):
        own = values[end - arity**h : end].sum() + noise[end - 1, h]
        if h == 0 or not combine:
            return own
        step = arity ** (h - 1)
        return weights[h] * own + (1 - weights[h]) * sum(estimate(h - 1, end - i * step) for i in range(arity))

    found = []
    for time in range(1, length + 1):
        total, position = 0.0, 0
        for h in reversed(range(levels)):
            for _ in range(time // arity**h % arity):
                position += arity**h
                total += estimate(h, position)
        assert position == time
        found.append(total)
    return np.asarray(found)


def mixing(length, arity, combine, stddevs=fresh_stddevs):
    """Returns errors by the noise of every block, [T, T * levels], and by the new noise in a block that ends, [T,
    T].
    """
    levels, weights = num_digits(length, arity), level_variances(arity, num_digits(length, arity), combine)
    units = np.eye(length * levels).reshape(-1, length, levels)
    blocks = np.stack([explicit(unit, np.zeros(length), arity, combine) for unit in units], axis=1)
    fresh, at_once = np.zeros((levels, length)), []
    for h, stddev in enumerate(stddevs(weights)):
        fresh[h] = stddev
    for time in range(1, length + 1):
        row, position = np.zeros(length), 0
        for h in reversed(range(levels)):
            for _ in range(time // arity**h % arity):
                position += arity**h
                row += _error(h, position, weights, fresh, arity, combine)
        at_once.append(row)
    return blocks, np.stack(at_once)


def _error(h, end, weights, fresh, arity, combine, new=True):
    """Returns the error of a block by the one draw of each entry, [T], without its own end's draw if not new."""
    row = np.zeros(fresh.shape[1])
    if new:
        row[end - 1] = fresh[h, end - 1]
    if h and combine:
        step = arity ** (h - 1)
        for i in range(arity):
            child = _error(h - 1, end - i * step, weights, fresh, arity, combine, new=i > 0)
            row += (1 - weights[h]) * child
    return row


@pytest.mark.parametrize(("arity", "combine"), [(2, True), (3, True), (2, False)])
def test_one_draw_an_entry_has_the_distribution_of_a_draw_for_each_block(arity, combine):
    blocks, at_once = mixing(20, arity, combine)
    np.testing.assert_allclose(at_once @ at_once.T, blocks @ blocks.T, atol=1e-12)
    if combine:  # as if only the largest block had noise of its own
        wrong = mixing(20, arity, combine, lambda weights: weights)[1]
        assert np.abs(wrong @ wrong.T - blocks @ blocks.T).max() > 0.1


@pytest.mark.parametrize(("arity", "combine"), [(2, True), (3, True), (2, False)])
def test_gaussian_trees_draw_once_an_entry(arity, combine):
    length = 20
    counter = tree_counter(horizon=length, arity=arity, noise="gaussian", combine=combine)
    params, keys = counter.params(rho=0.5), keys_of(1, length)
    values = jax.random.randint(jax.random.key(2), (length,), -1, 5)
    drawn = streams.drawn_noise(counter, keys, params, values) * float(params.noise_stddev)
    expected = np.cumsum(np.asarray(values)) + mixing(length, arity, combine)[1] @ drawn
    np.testing.assert_allclose(fed_one_by_one(counter, keys, params, values), expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(jax.jit(counter.prefixes)(keys, params, values), expected, rtol=1e-5, atol=1e-4)


def test_clocks_of_gaussian_trees_count_in_digits():
    """Checks that a block of three ends at each third entry, and a block of nine at each ninth."""
    counter = tree_counter(horizon=12, arity=3, noise="gaussian")
    params = counter.params(rho=0.5)

    @jax.jit
    def run(keys):
        feed = lambda state, key: (after := counter.feed(key, params, state, 1), after.digits)  # noqa: E731
        return jax.lax.scan(feed, counter.init(keys[0], params), keys)[1]

    digits = np.asarray(run(keys_of(1, 12)))
    np.testing.assert_array_equal(digits, [[t % 3, t // 3 % 3, t // 9] for t in range(1, 13)])


def drawn_noise(keys, params, levels, combine):
    """Returns the noise [T, levels] that `feed` draws for one counter."""
    zeros = jnp.zeros(levels if combine else (), int)
    draw = lambda key: laplace(key, zeros, jnp.asarray(params.epsilon), l1_sensitivity=params.l1_sensitivity)  # noqa: E731
    noise = np.asarray(jax.vmap(draw)(keys), np.float64)
    return noise if combine else np.broadcast_to(noise[:, None], (len(keys), levels))


@pytest.mark.precision
@pytest.mark.parametrize(("combine", "arity"), [(True, 3), (False, 2)])
def test_estimates_are_those_of_an_explicit_tree(combine, arity):
    length = 20
    counter = tree_counter(horizon=length, arity=arity, combine=combine)
    params, keys = counter.params(epsilon=1.0), keys_of(1, length)
    values = jax.random.randint(jax.random.key(2), (length,), -1, 5)
    expected = explicit(
        drawn_noise(keys, params, num_digits(length, arity), combine), np.asarray(values), arity, combine
    )
    np.testing.assert_allclose(fed_one_by_one(counter, keys, params, values), expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(jax.jit(counter.prefixes)(keys, params, values), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.precision
def test_combined_estimates_are_least_squares():
    """Checks ordinary least squares on all blocks that have ended, at every time; a plain tree's estimates are not."""
    length, levels = 13, 4
    counter = tree_counter(horizon=length, arity=2)
    params, keys = counter.params(epsilon=1.0), keys_of(3, length)
    values = np.ones(length, np.int32)
    noise = drawn_noise(keys, params, levels, True)
    found = fed_one_by_one(counter, keys, params, jnp.asarray(values))
    plain = explicit(noise, values, 2, False)
    variance = counter.variance(params, np.arange(1, length + 1))
    for time in range(1, length + 1):
        rows, noisy = [], []
        for end in range(1, time + 1):
            for h in range(levels):
                if end % 2**h == 0:
                    row = np.zeros(time)
                    row[end - 2**h : end] = 1
                    rows.append(row)
                    noisy.append(row.sum() + noise[end - 1, h])
        design = np.asarray(rows)
        best = np.linalg.lstsq(design, np.asarray(noisy), rcond=None)[0].sum()
        np.testing.assert_allclose(found[time - 1], best, rtol=1e-5, atol=1e-4)
        square = np.ones(time) @ np.linalg.inv(design.T @ design) @ np.ones(time)
        np.testing.assert_allclose(variance[time - 1], square * 2 * levels**2, rtol=1e-5)
    assert np.abs(plain - found).max() > 1


@pytest.mark.parametrize(
    ("noise", "combine", "arity"), [("laplace", True, 2), ("laplace", False, 3), ("gaussian", True, 3)]
)
def test_simulated_variances(noise, combine, arity):
    length = 13
    counter = tree_counter(horizon=length, arity=arity, noise=noise, combine=combine)
    params = counter.params(**VALUES[noise])
    variance = counter.variance(params, np.arange(1, length + 1))
    unit = tree_variance(np.arange(1, length + 1), horizon=length, arity=arity, noise=noise, combine=combine)
    np.testing.assert_allclose(variance, unit * (2 if noise == "gaussian" else 1), rtol=1e-5)
    check_variance(errors(counter, params, length), variance)
    with pytest.raises(AssertionError):  # every block has the same noise
        check_variance(errors(counter, params, length, keys_of(8, 1)[jnp.zeros(length, int)]), variance)
    levels = num_digits(length, arity)
    share = (levels - 1) / levels if noise == "laplace" else np.sqrt((levels - 1) / levels)
    fewer = jax.tree.map(lambda x: x * np.asarray(share, x.dtype), params)
    fewer = fewer if noise == "gaussian" else dataclasses.replace(fewer, epsilon=params.epsilon)
    with pytest.raises(AssertionError):  # noise for one level less
        check_variance(errors(counter, fewer, length), variance)
