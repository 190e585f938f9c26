"""The contract of all counters, and refusals of their factories."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.mechanisms import (
    analytic_gaussian,
    best_arity,
    doubling_counter,
    toeplitz_counter,
    tree_counter,
    tree_variance,
    zcdp_gaussian,
)
from tests.algorithms.mechanisms.continual_counting.streams import fed_one_by_one, keys_of

LENGTH = 12
MAKE = {
    "tree": lambda horizon: tree_counter(horizon=horizon, arity=2),
    "plain tree": lambda horizon: tree_counter(horizon=horizon, arity=3, combine=False),
    "gaussian tree": lambda horizon: tree_counter(horizon=horizon, noise="gaussian"),
    "toeplitz": lambda horizon: toeplitz_counter(horizon=horizon),
    "doubling": lambda horizon: doubling_counter(horizon=horizon),
    "gaussian doubling": lambda horizon: doubling_counter(horizon=horizon, noise="gaussian", arity=3, combine=False),
}
PURE = ("tree", "plain tree", "doubling")
FLOAT = jnp.result_type(float)


def values_of(name, budget=1.0):
    return {"epsilon": budget} if name in PURE else {"rho": budget}


@pytest.mark.parametrize("name", MAKE)
def test_the_contract(name):
    """Checks exact sums without noise; one compilation for every budget; many counters; whole streams.

    NaN at the end.
    """
    counter = MAKE[name](LENGTH - 1)
    values = jax.random.randint(jax.random.key(0), (LENGTH, 2), 0, 4)
    keys, totals = keys_of(1, LENGTH), np.cumsum(np.asarray(values), axis=0)
    traces = []

    def run(keys, params, values):
        traces.append(values)

        def step(state, now):
            state = counter.feed(now[0], params, state, now[1])
            return state, counter.read(params, state)

        start = counter.init(keys[0], params, values.shape[1:])
        return jax.lax.scan(step, start, (keys, values))[1]

    jitted = jax.jit(run)
    exact = np.asarray(jitted(keys, counter.params(**values_of(name, math.inf)), values))
    params = counter.params(**values_of(name))
    noisy = np.asarray(jitted(keys, params, values))
    assert len(traces) == 1
    np.testing.assert_array_equal(exact[:-1], totals[:-1])
    assert np.all(np.isnan(exact[-1]))
    assert np.all(np.isnan(noisy[-1]))
    assert np.all(noisy[:-1] != totals[:-1])
    assert noisy.dtype == FLOAT
    whole = np.asarray(jax.jit(counter.prefixes)(keys[:-1], params, values[:-1]))
    np.testing.assert_allclose(whole, noisy[:-1], rtol=1e-5, atol=1e-4)
    if "doubling" in name:
        np.testing.assert_array_equal(whole, noisy[:-1])
    # a batch of streams, each with keys of its own
    stacked = jnp.stack([keys, keys_of(2, LENGTH)])
    batch = jax.jit(jax.vmap(run, in_axes=(0, None, None)))(stacked, params, values)
    np.testing.assert_allclose(np.asarray(batch)[0], noisy, rtol=1e-5, atol=1e-4)
    assert np.all(np.asarray(batch)[1, :-1] != noisy[:-1])
    assert float(counter.read(params, counter.init(keys[0], params))) == 0


@pytest.mark.parametrize("name", ["tree", "plain tree", "toeplitz"])
def test_counters_with_clocks_of_their_own(name):
    """Feeds counters in turns: each equals a counter alone at those times, and stands still in between."""
    counter = MAKE[name](LENGTH)
    params = counter.params(**values_of(name, math.inf))
    feed = jax.jit(counter.feed)
    state = counter.init(jax.random.key(0), params, (3, 2), clocks=(3,))
    played = [0, 1, 1, 0, 2, 1, 1, 0, 1]
    after = np.zeros((3, 2))
    for t, arm in enumerate(played):
        before, fed = after, jnp.arange(3) == arm
        state = feed(jax.random.key(t), params, state, jnp.full((3, 2), t, int), fed)
        after = np.asarray(counter.read(params, state))
        np.testing.assert_array_equal(np.delete(after, arm, axis=0), np.delete(before, arm, axis=0))
    sums = [sum(t for t, arm in enumerate(played) if arm == i) for i in range(3)]
    np.testing.assert_array_equal(after, np.repeat(np.asarray(sums, float)[:, None], 2, axis=1))
    np.testing.assert_array_equal(state.clock, [3, 5, 1])


@pytest.mark.precision
@pytest.mark.parametrize("name", ["tree", "toeplitz", "doubling"])
def test_integers_do_not_stall_and_floats_do_not_drift(name):
    counter = MAKE[name](64)
    params = counter.params(**values_of(name, math.inf))
    values = jnp.asarray([2**24] + [1] * 63)
    found = fed_one_by_one(counter, keys_of(0, 64), params, values)
    if name == "toeplitz" or jnp.float64 == FLOAT:  # an integer total
        np.testing.assert_array_equal(found, np.cumsum(np.asarray(values)).astype(found.dtype))
    assert np.all(
        np.abs(found - np.cumsum(np.asarray(values))) <= 4
    )  # 2 is the last place; plain addition is off by 63
    fractions = jnp.asarray(np.asarray([2.0**20] + [0.01] * 63), FLOAT)
    found = fed_one_by_one(counter, keys_of(0, 64), params, fractions)
    exact = np.cumsum(np.asarray(fractions, np.float64))
    assert abs(found[-1] - exact[-1]) <= 0.13  # two last places; plain addition stays at 2^20, and is off by 0.63


def mean_squared_errors(counter, params, length, num_streams):
    """Returns mean squared errors over all times, [num_streams], fed entry by entry."""

    @jax.jit
    def run(key, params):
        def step(state, time):
            state = counter.feed(jax.random.fold_in(key, time), params, state, jnp.ones(num_streams, int))
            return state, counter.read(params, state) - (time + 1).astype(FLOAT)

        start = counter.init(key, params, (num_streams,), dtype=int)
        return jax.lax.scan(step, start, jnp.arange(length))[1]

    return np.square(np.asarray(run(jax.random.key(5), params), np.float64)).mean(axis=0)


@pytest.mark.parametrize("name", ["tree", "best tree", "toeplitz", "doubling"])
@pytest.mark.parametrize(("length", "num_streams"), [(2**10 - 1, 500), (2**20 - 1, 64)])
def test_variances_of_long_streams(name, length, num_streams):
    """Simulates variances, within 5 standard errors; half as much again is rejected."""
    make = tree_counter if name == "best tree" else MAKE[name]
    counter = make(horizon=length)
    params = counter.params(**({"rho": 1.0} if name == "toeplitz" else {"epsilon": 1.0}))
    expected = np.asarray(counter.variance(params, np.arange(1, length + 1))).mean()
    found = mean_squared_errors(counter, params, length, num_streams)
    error = found.std(ddof=1) / math.sqrt(num_streams)
    assert abs(found.mean() - expected) <= 5 * error
    assert abs(found.mean() - 1.5 * expected) > 5 * error


def test_calibration():
    tree = tree_counter(horizon=7, arity=2)
    params = tree.params(epsilon=0.1, l1_sensitivity=2.0)
    assert float(params.epsilon) <= 0.1
    assert float(params.l1_sensitivity) >= 6.0
    assert tree.variance(params, 1) == pytest.approx(2 * 60.0**2)
    gaussian = tree_counter(horizon=7, arity=2, noise="gaussian")
    by_rho, by_delta = gaussian.params(rho=0.3, l2_sensitivity=2.0), gaussian.params(epsilon=1.0, delta=1e-4)
    assert float(by_rho.noise_stddev) == pytest.approx(zcdp_gaussian(0.3, 2 * math.sqrt(3)), rel=1e-6)
    assert float(by_rho.noise_stddev) >= zcdp_gaussian(0.3, 2 * math.sqrt(3))
    assert float(by_delta.noise_stddev) == pytest.approx(analytic_gaussian(1.0, 1e-4, math.sqrt(3)), rel=1e-6)
    epochs = doubling_counter(horizon=7, noise="gaussian").params(rho=0.3)
    np.testing.assert_allclose(epochs.noise_stddev, [zcdp_gaussian(0.3, math.sqrt(m)) for m in (1, 2, 3)], rtol=1e-6)


def test_errors():
    makers: Any = (tree_counter, toeplitz_counter, doubling_counter)
    for make in makers:
        for bad in (0, -1, 1.5, math.nan, 2**63):
            with pytest.raises(ValueError, match=r"horizon must be (an integer >= 1|<= )"):
                make(horizon=bad)
    bad: Any
    for bad in (1, 0, 2.5, math.nan):
        with pytest.raises(ValueError, match="arity must be an integer >= 2"):
            tree_counter(horizon=3, arity=bad)
        with pytest.raises(ValueError, match="arity must be an integer >= 2"):
            doubling_counter(horizon=3, arity=bad)
    with pytest.raises(ValueError, match="noise must be one of laplace, gaussian, got 'cauchy'"):
        tree_counter(horizon=3, noise="cauchy")
    make: Any
    for make in (tree_counter, doubling_counter):
        with pytest.raises(ValueError, match="combine must be True or False, got 'yes'"):
            make(horizon=3, combine="yes")
    with pytest.raises(ValueError, match="objective must be one of mean, max"):
        best_arity(3, objective="median")
    with pytest.raises(ValueError, match="num_buffers must be an integer >= 1"):
        toeplitz_counter(horizon=3, num_buffers=0)
    with pytest.raises(ValueError, match="num_buffers must be at most 16, got 17"):
        toeplitz_counter(horizon=3, num_buffers=17)
    pure, gaussian = tree_counter(horizon=3), toeplitz_counter(horizon=3)
    for bad in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match=f"epsilon must be > 0, got {bad}"):
            pure.params(epsilon=bad)
        with pytest.raises(ValueError, match=r"l1_sensitivity must be (> 0|finite)"):
            pure.params(epsilon=1.0, l1_sensitivity=bad)
        with pytest.raises(ValueError, match=f"rho must be > 0, got {bad}"):
            gaussian.params(rho=bad)
        with pytest.raises(ValueError, match=r"l2_sensitivity must be (> 0|finite)"):
            gaussian.params(rho=1.0, l2_sensitivity=bad)
    for values in ({}, {"epsilon": 1.0}, {"delta": 0.1}, {"rho": 1.0, "epsilon": 1.0, "delta": 0.1}):
        with pytest.raises(ValueError, match="rho, or epsilon and delta, must be given"):
            gaussian.params(**values)
    for counter, params in ((pure, pure.params(epsilon=1.0)), (gaussian, gaussian.params(rho=1.0))):
        key = jax.random.key(0)
        state = counter.init(key, params, (2,))
        with pytest.raises(ValueError, match="value must have shape"):
            counter.feed(key, params, state, 1)
        with pytest.raises(ValueError, match="value must be integers"):
            counter.feed(key, params, state, np.zeros(2, np.float32))
        with pytest.raises(ValueError, match="fed must be booleans of shape"):
            counter.feed(key, params, state, np.zeros(2, np.int32), np.ones(2, bool))
        with pytest.raises(ValueError, match="clocks must be leading axes of shape"):
            counter.init(key, params, (2,), clocks=(3,))
        with pytest.raises(ValueError, match="dtype must be integers or floats"):
            counter.init(key, params, dtype=complex)
        with pytest.raises(ValueError, match="values must be"):
            counter.prefixes(keys_of(0, 4), params, np.zeros(4, np.int32))
        with pytest.raises(ValueError, match=r"times must be in \[1, 3\], got 0 to 3"):
            counter.variance(params, np.arange(4))
        with pytest.raises(ValueError, match="times must be integers"):
            counter.variance(params, 1.0)
    doubling = doubling_counter(horizon=3)
    with pytest.raises(ValueError, match=r"clocks must be \(\)"):
        doubling.init(jax.random.key(0), doubling.params(epsilon=1.0), (2,), clocks=(2,))


@pytest.mark.parametrize("make", [tree_counter, toeplitz_counter, doubling_counter])
def test_what_is_no_number(make):
    """Checks text, truth values, lists and None: refused on the host, by name."""
    for bad in (True, "3", None, [3]):
        with pytest.raises(ValueError, match=r"horizon must be an integer >= 1, got"):
            make(horizon=bad)
    counter: Any = make(horizon=3)
    name = "rho" if make is toeplitz_counter else "epsilon"
    sensitivity = "l2_sensitivity" if make is toeplitz_counter else "l1_sensitivity"
    for bad in (True, "1", [1.0], 1j):
        with pytest.raises(ValueError, match=rf"{name} must be a number, got"):
            counter.params(**{name: bad})
        with pytest.raises(ValueError, match=rf"{sensitivity} must be a number, got"):
            counter.params(**{name: 1.0, sensitivity: bad})
    params, key = counter.params(**{name: 1.0}), jax.random.key(0)
    for shape in (2, None):
        with pytest.raises(ValueError, match=r"shape must be a list, got"):
            counter.init(key, params, shape)
    for shape in ((2.5,), (-1,), (True,), "ab"):
        with pytest.raises(ValueError, match=r"shape\[0\] must be an integer >= 0, got"):
            counter.init(key, params, shape)
    with pytest.raises(ValueError, match=r"dtype must be integers or floats, got 'x'"):
        counter.init(key, params, dtype="x")
    state = counter.init(key, params)
    for bad in ("one", None, 2**70):
        with pytest.raises(ValueError, match=r"value must be an array of numbers, got"):
            counter.feed(key, params, state, bad)
    with pytest.raises(ValueError, match=r"dtype must be integers or floats, got complex"):
        counter.feed(key, params, state, 1j)
    with pytest.raises(ValueError, match=r"fed must be an array of numbers, got None"):
        counter.feed(key, params, state, 1, None)
    for bad, got in (([0, 1], r"\[0, 1\]"), (jnp.arange(2), "Array")):
        with pytest.raises(ValueError, match=f"keys must be an array of typed PRNG keys, .*, got {got}"):
            counter.prefixes(bad, params, [1, 0])
    with pytest.raises(ValueError, match=r"values must be an array of numbers, got \[\[1, 2\], \[3\]\]"):
        counter.prefixes(keys_of(0, 2), params, [[1, 2], [3]])
    for times, message in (([[1], [1, 2]], "an array of numbers"), ("1", "numbers"), ([True], "numbers")):
        with pytest.raises(ValueError, match=rf"times must be {message}, got"):
            counter.variance(params, times)


def test_arities_beyond_the_integers():
    for make in (tree_counter, doubling_counter):
        with pytest.raises(ValueError, match=r"arity must be <= "):
            make(horizon=3, arity=2**63)
    with pytest.raises(ValueError, match=r"arity must be <= "):
        tree_variance(1, horizon=3, arity=2**63)
