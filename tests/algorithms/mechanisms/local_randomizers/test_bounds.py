"""A randomizer's bounds on the size and spread of its estimates are never too small, and at most twice the observed
ones.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.mechanisms import moment_randomizer, scalar_randomizer, vector_randomizer
from jaxdp.numerics.small_linear_algebra import symmetric_matrix
from tests.algorithms.mechanisms.local_randomizers.randomizers import CASES, DRAWS, params_of, sampler, stacked

KEY = partial(jax.random.key, 13)
LANES, HORIZON, FAILURE_PROB = DRAWS // 100, 100, 0.05
EPSILONS = (0.1, 1.0, 8.0)


def seen(name, epsilon):
    """Returns estimates of the two worst values, [draws, values, coordinates]."""
    estimates = sampler(name, DRAWS)(KEY(), params_of(name, epsilon), stacked(CASES[name].data))
    return np.asarray(estimates, float)[:, :2]


def check_range(bound, estimates):
    largest = np.abs(estimates).max(-1).reshape(LANES, HORIZON, -1).max(1)  # [lanes, values]
    error = 5 * math.sqrt(FAILURE_PROB * (1 - FAILURE_PROB) / LANES)
    assert np.all((largest > bound).mean(0) <= FAILURE_PROB + error)
    assert bound <= 2 * np.quantile(largest, 1 - FAILURE_PROB, axis=0).max()


def check_second_moment(bound, estimates):
    squares = estimates**2
    found, error = squares.mean(0), squares.std(0) / math.sqrt(DRAWS)
    assert np.all(found <= bound + 5 * error)
    assert bound <= 2 * found.max()


def check_proxy(bound, estimates):
    """Checks 2 ln E exp(x (Z - E Z)) / x^2 at several x, where Z estimates a value that is random itself."""
    # Half of one and half of the other value, and all of one: labels are then 1 half the time, or as rarely as ever.
    size = min(2 * DRAWS, len(estimates) * 2)
    mixtures = [estimates.reshape(size, -1), estimates[:, 0], estimates[:, 1]]
    proxies, errors = [], []
    for mixed in mixtures:
        centred = mixed - mixed.mean(0)
        spread = np.where(centred.std(0) > 1e-9, centred.std(0), 1)
        for steps in (-2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0):
            x = steps / spread
            grown = np.exp(x * centred)
            proxies.append(2 * np.log(grown.mean(0)) / x**2)
            errors.append(2 / x**2 * grown.std(0) / grown.mean(0) / math.sqrt(len(mixed)))
    assert np.all(np.asarray(proxies) <= bound + 5 * np.asarray(errors) + 1e-6)
    assert bound <= 2 * np.max(proxies)


CHECKS = {"second_moment": check_second_moment, "variance_proxy": check_proxy}


@pytest.mark.parametrize("name", CASES)
def test_bounds_hold_and_are_at_most_twice_what_is_seen(name):
    case = CASES[name]
    for epsilon in (*EPSILONS, math.inf):
        estimates = seen(name, epsilon)
        values = {**case.values, "epsilon": epsilon}
        check_range(case.randomizer.range_bound(HORIZON, FAILURE_PROB, **values), estimates)
        check_second_moment(case.randomizer.second_moment(**values), estimates)
        proxy = case.randomizer.variance_proxy(**values)
        if epsilon < math.inf and name in ("laplace", "binary_laplace", "l1"):
            assert proxy == math.inf
        else:
            check_proxy(proxy, estimates)
        if epsilon == 1.0:  # planted: bounds of a third and of three times the budget
            for wrong in (3.0, 1 / 3):
                others = {**values, "epsilon": wrong}
                with pytest.raises(AssertionError):
                    check_range(case.randomizer.range_bound(HORIZON, FAILURE_PROB, **others), estimates)
                with pytest.raises(AssertionError):
                    check_second_moment(case.randomizer.second_moment(**others), estimates)
                if proxy < math.inf:
                    with pytest.raises(AssertionError):
                        check_proxy(case.randomizer.variance_proxy(**others), estimates)


@pytest.mark.precision
def test_golden():
    """Checks SPEC's sizes of a report for B = 1 and delta = 1e-5."""
    for epsilon, rr, laplace, gaussian in ((0.5, 4.08, 5.66, 14.06), (1.0, 2.16, 2.83, 7.46), (4.0, 1.04, 0.71, 2.16)):
        unit = {"epsilon": epsilon, "low": -1.0}
        assert math.sqrt(scalar_randomizer().second_moment(**unit)) == pytest.approx(rr, abs=6e-3)
        assert scalar_randomizer().range_bound(10**6, 1e-3, **unit) == pytest.approx(rr, abs=6e-3)
        for kind, size, more in (("laplace", laplace, {}), ("gaussian", gaussian, {"delta": 1e-5})):
            moment = scalar_randomizer(kind).second_moment(**unit, **more)
            assert math.sqrt(moment - 1) == pytest.approx(size, abs=6e-3)
    users = {"epsilon": 1.0, "delta": 1e-5, "reward_bound": 2.0}
    assert moment_randomizer(5).variance_proxy(**users) == pytest.approx(4 * (1 + 7.914**2), rel=1e-3)
    entries = 5 * 6 / 2 + 5
    expected = 2 * (1 + 7.914 * math.sqrt(2 * math.log(2 * entries * 1000 / 0.05)))
    assert moment_randomizer(5).range_bound(1000, 0.05, **users) == pytest.approx(expected, rel=1e-3)


def test_randomized_response_has_the_least_second_moment():
    for epsilon in np.geomspace(0.01, 20, 50):
        rr, laplace = (scalar_randomizer(kind).second_moment(epsilon=epsilon, low=-1.0) for kind in ("rr", "laplace"))
        assert rr < laplace


@pytest.mark.precision
def test_moments_move_by_at_most_their_sensitivity():
    """Searches pairs of users; the bound is reached at an angle of 60 degrees."""
    randomizer = moment_randomizer(3)
    params = randomizer.params(epsilon=math.inf, delta=0.1, reward_bound=5.0)

    @jax.jit
    @jax.vmap
    def noised(x, y):
        outer, cross = randomizer.report(KEY(), params, (x, y))
        return jnp.concatenate([symmetric_matrix(outer, 3).ravel(), cross / 5])

    rng = np.random.default_rng(0)
    count = 20_000
    x, z = rng.normal(size=(2, count, 3)) * rng.choice([0.2, 1, 3], size=(2, count, 1))
    y = rng.choice([-9.0, 9.0, 1.0], size=count)
    z[0], x[0], y[0] = [1, 0, 0], [0.5, math.sqrt(0.75), 0], 9.0
    there, here = (np.asarray(noised(*(jnp.asarray(p, jnp.float32) for p in q)), float) for q in ((x, y), (z, -y)))
    moved = np.linalg.norm(there - here, axis=1)
    assert moved[0] == pytest.approx(math.sqrt(4.5), rel=1e-5)
    assert moved.max() <= math.sqrt(4.5) * (1 + 1e-5)


def test_the_noise_of_moments_is_isometric():
    stddev = float(params_of("moments", 1.0).noise_stddev)
    found = seen("moments", 1.0)[:, 0].std(0)
    triangle, cross = found[:6], found[6:]
    expected = np.where(np.eye(3, dtype=bool), stddev, stddev / math.sqrt(2))[np.triu_indices(3)]
    np.testing.assert_allclose(triangle, expected, rtol=5 / math.sqrt(2 * DRAWS))
    np.testing.assert_allclose(cross, 2 * stddev, rtol=5 / math.sqrt(2 * DRAWS))


def test_vectors_are_bounded_by_coordinate():
    assert vector_randomizer((1,), "l2").second_moment(epsilon=1.0, delta=0.1) == pytest.approx(
        vector_randomizer((9, 9), "l2").second_moment(epsilon=1.0, delta=0.1), rel=1e-4
    )


@pytest.mark.parametrize("bound", [1e200, 1e-200])
def test_squares_beyond_float64_are_refused(bound):
    randomizer = scalar_randomizer()
    with jax.enable_x64(True):
        for function in (randomizer.second_moment, randomizer.variance_proxy):
            with pytest.raises(
                ValueError, match="squares of reports must be within the range of float64, got epsilon=1"
            ):
                function(epsilon=1.0, low=-bound, high=bound)
