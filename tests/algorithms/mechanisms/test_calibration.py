import itertools
import math

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant

from jaxdp.mechanisms import (
    analytic_gaussian,
    classical_gaussian,
    gaussian_delta,
    gaussian_epsilon,
    round_up,
    zcdp_epsilon,
    zcdp_gaussian,
    zcdp_rho,
)

pytestmark = pytest.mark.precision

INF = math.inf
EPSILONS = np.geomspace(1e-3, 1e3, 13).tolist()
DELTAS = [1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-6]
GRID = list(itertools.product(EPSILONS, DELTAS))


def exact_delta(epsilon: float, ratio: float) -> mpmath.mpf:
    """Computes Balle & Wang's Theorem 8 as printed, with digits to spare."""
    with mpmath.workdps(80):
        e, s = mpmath.mpf(epsilon), mpmath.mpf(ratio)
        return mpmath.ncdf(1 / (2 * s) - e * s) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * s) - e * s)


def exact_zcdp_epsilon(rho: float, delta: float) -> mpmath.mpf:
    """Finds the infimum over orders, by golden section on log(order - 1): no derivative, unlike the code."""
    with mpmath.workdps(50):
        rho_, delta_ = mpmath.mpf(rho), mpmath.mpf(delta)

        def bound(log_b):
            b = mpmath.exp(log_b)
            return (1 + b) * rho_ + (-mpmath.log(delta_) - mpmath.log(1 + b)) / b + mpmath.log(b / (1 + b))

        low, high, golden = mpmath.mpf(-60), mpmath.mpf(60), (mpmath.sqrt(5) - 1) / 2
        for _ in range(60):  # the bound is flat at its optimum: an error of 1e-11 in log b costs 1e-21
            left, right = high - golden * (high - low), low + golden * (high - low)
            low, high = (low, right) if bound(left) < bound(right) else (left, high)
        return max(mpmath.mpf(0), bound((low + high) / 2))


def test_analytic_gaussian_is_private_and_smallest_over_its_whole_range():
    for epsilon, delta in GRID:
        ratio = analytic_gaussian(epsilon, delta)
        assert exact_delta(epsilon, ratio) <= delta, (epsilon, delta)
        assert exact_delta(epsilon, ratio * (1 - 1e-9)) > delta, (epsilon, delta)


@pytest.mark.parametrize("ratio", [1e-2, 0.1, 0.5, 0.999, 1.0, 1.001, 3.0, 100.0, 1e6, 1e11])
def test_gaussian_delta_is_exact(ratio):
    for x in [0.0, 1e-6, 1e-2, 0.3, 1.0, 3.0, 10.0, 30.0]:  # in standard deviations above the mean loss or so
        epsilon = x / ratio + min(x, 1) / (2 * ratio**2)
        exact = float(exact_delta(epsilon, ratio))
        # u carries the rounding of its terms, of up to epsilon * ratio; log delta has slope -u in u
        tolerance = 1e-13 + 1e-15 * (1 + x) * (epsilon * ratio + 1 / ratio)
        assert gaussian_delta(epsilon, ratio) == pytest.approx(exact, rel=tolerance)


def test_gaussian_delta_and_epsilon_at_the_ends():
    assert gaussian_delta(INF, 1.0) == gaussian_delta(INF, 0.0) == gaussian_delta(1.0, INF) == 0.0
    assert gaussian_delta(1.0, 0.0) == 1.0
    assert gaussian_epsilon(1e-5, 0.0) == INF
    assert gaussian_epsilon(1e-5, INF) == gaussian_epsilon(0.5, 10.0) == 0.0
    assert gaussian_delta(1.0, 6.0, 3.0) == gaussian_delta(1.0, 2.0)
    assert gaussian_epsilon(1e-5, 6.0, 3.0) == gaussian_epsilon(1e-5, 2.0)


def test_gaussian_epsilon_inverts_gaussian_delta_from_above():
    for epsilon, delta in GRID:
        ratio = analytic_gaussian(epsilon, delta)
        back = gaussian_epsilon(delta, ratio)
        slack = 1e-11 * (epsilon + 1 / ratio + 1 / ratio**2)
        assert epsilon - slack <= back <= epsilon + slack, (epsilon, delta)
        assert exact_delta(back, ratio) <= delta, (epsilon, delta)


def test_gaussian_agrees_with_dp_accounting():
    points = [(e, d) for e in np.geomspace(0.01, 50, 10) for d in [1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 0.2]]
    assert len(points) >= 50
    for epsilon, delta in points:
        ratio = analytic_gaussian(epsilon, delta)
        assert ratio == pytest.approx(dp_accounting.get_sigma_gaussian(epsilon, delta), rel=1e-6)
        assert gaussian_epsilon(delta, ratio) == pytest.approx(
            dp_accounting.get_epsilon_gaussian(ratio, delta), rel=1e-6
        )


@pytest.mark.parametrize(
    ("epsilon", "delta", "sensitivity", "expected"),
    [(1, 1e-5, 1, 3.731), (0.1, 1e-3, 1, 17.4), (0.5, 1e-5, 2, 14.06), (1, 1e-5, 2, 7.46), (4, 1e-5, 2, 2.16)],
)
def test_analytic_gaussian_golden(epsilon, delta, sensitivity, expected):  # SPEC 0.1 and 0.4
    assert analytic_gaussian(epsilon, delta, sensitivity) == pytest.approx(expected, rel=2e-3)


def test_classical_gaussian_golden():
    assert classical_gaussian(0.1, 1e-3) == pytest.approx(37.8, rel=2e-3)
    assert classical_gaussian(0.5, 1e-5, 2.0) == pytest.approx(19.4, rel=2e-3)
    assert classical_gaussian(INF, 1e-5) == analytic_gaussian(INF, 1e-5) == 0.0
    assert gaussian_delta(8, math.sqrt(2 * math.log(1250)) / 8) == pytest.approx(1.31e-3, rel=5e-3)


def test_classical_gaussian_is_private_below_one():
    for epsilon, delta in itertools.product([0.01, 0.1, 0.5, 0.999], DELTAS):
        assert gaussian_delta(epsilon, classical_gaussian(epsilon, delta)) <= delta


def test_zcdp_epsilon_is_accurate_and_conservative():
    for rho, delta in itertools.product(np.geomspace(1e-6, 1e4, 11).tolist(), [1e-12, 1e-6, 1e-2, 0.5, 0.99]):
        exact, ours = exact_zcdp_epsilon(rho, delta), zcdp_epsilon(rho, delta)
        assert exact <= ours <= exact * (1 + 1e-9) + 1e-11, (rho, delta)


def test_zcdp_rho_is_accurate_and_conservative():
    for epsilon, delta in GRID:
        rho = zcdp_rho(epsilon, delta)
        assert exact_zcdp_epsilon(rho, delta) <= epsilon < exact_zcdp_epsilon(rho * (1 + 1e-9), delta), (epsilon, delta)


def test_zcdp_agrees_with_dp_accounting():
    orders = (1 + np.geomspace(0.02, 1e5, 12_000)).tolist()  # steps of 0.13%; the bound is flat at its optimum
    points = [(r, d) for r in np.geomspace(1e-3, 20, 10) for d in [1e-10, 1e-8, 1e-6, 1e-4, 1e-2]]
    assert len(points) >= 50
    for rho in sorted({rho for rho, _ in points}):
        accountant = RdpAccountant(orders).compose(dp_accounting.ZCDpEvent(rho))
        for delta in [d for r, d in points if r == rho]:
            assert zcdp_epsilon(rho, delta) == pytest.approx(accountant.get_epsilon(delta), rel=1e-6)


def test_zcdp_golden():
    assert zcdp_rho(1, 1e-6) == pytest.approx(0.0244, abs=5e-5)  # SPEC 0.2
    assert zcdp_rho(INF, 1e-6) == zcdp_epsilon(INF, 1e-6) == INF
    assert zcdp_gaussian(INF) == 0.0
    assert zcdp_gaussian(0.5) == 1.0
    assert zcdp_gaussian(0.02, 3.0) == pytest.approx(15.0)
    assert zcdp_epsilon(1e-9, 0.5) == 0.0


def test_zcdp_gaussian_never_rounds_down():
    for rho in np.random.default_rng(0).uniform(0, 3, 200).tolist():
        with mpmath.workdps(50):
            assert 1 / (2 * mpmath.mpf(zcdp_gaussian(rho)) ** 2) <= rho
        assert zcdp_gaussian(rho) == pytest.approx(1 / math.sqrt(2 * rho), rel=1e-15)


def test_huge_budgets_give_noise():
    assert zcdp_gaussian(1e308) == pytest.approx(1 / (math.sqrt(2e300) * 1e4), rel=1e-15)
    assert analytic_gaussian(1e308, 1e-5) == pytest.approx(zcdp_gaussian(1e308), rel=1e-9)


def test_zcdp_costs_the_gaussian_more_than_its_exact_profile():
    for rho, delta in itertools.product([1e-3, 0.1, 1.0, 10.0], [1e-9, 1e-3]):
        assert gaussian_epsilon(delta, zcdp_gaussian(rho)) < zcdp_epsilon(rho, delta)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_round_up(dtype):
    step = 2 * float(np.finfo(dtype).eps)
    for value in np.random.default_rng(0).uniform(1e-3, 9.0, 200).tolist():
        cast = round_up(value, dtype)
        assert cast.dtype == dtype
        assert value <= float(cast) <= value * (1 + step)
        assert round_up(float(cast), dtype) == cast
    assert round_up(0.0, dtype) == 0
    assert round_up(INF, dtype) == INF
    assert float(round_up(1e-310, dtype)) == float(np.finfo(dtype).smallest_normal)  # XLA takes subnormals for zero


@pytest.mark.parametrize("function", [analytic_gaussian, classical_gaussian, zcdp_rho])
@pytest.mark.parametrize("epsilon", [0.0, -1.0, -INF, math.nan])
def test_bad_epsilon(function, epsilon):
    with pytest.raises(ValueError, match=f"epsilon must be > 0, got {epsilon}"):
        function(epsilon, 1e-5)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_bad_delta(delta):
    for call in [
        lambda: analytic_gaussian(0.5, delta),
        lambda: classical_gaussian(0.5, delta),
        lambda: gaussian_epsilon(delta, 1.0),
        lambda: zcdp_epsilon(1.0, delta),
        lambda: zcdp_rho(1.0, delta),
    ]:
        with pytest.raises(ValueError, match=rf"delta must be in \(0, 1\), got {delta}"):
            call()


@pytest.mark.parametrize("epsilon", [1.0, 8.0, 1e300])
def test_classical_gaussian_refuses_large_epsilon(epsilon):
    with pytest.raises(ValueError, match=r"epsilon must be < 1 .*proved only below 1"):
        classical_gaussian(epsilon, 1e-3)


def test_results_beyond_float64_are_refused():
    for call in (lambda: zcdp_rho(1e-300, 1e-300), lambda: zcdp_rho(5e-324, 1e-308)):
        with pytest.raises(ValueError, match="epsilon must be larger, as rho is below the range of float64"):
            call()
    for sensitivity, epsilon in ((1.0, 5e-324), (1e305, 1e-10)):
        with pytest.raises(ValueError, match="epsilon must be larger, as the noise exceeds float64"):
            analytic_gaussian(epsilon, 1e-308, sensitivity)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, INF])
def test_bad_sensitivity(bad):
    for call in [
        lambda: analytic_gaussian(0.5, 1e-5, bad),
        lambda: classical_gaussian(0.5, 1e-5, bad),
        lambda: gaussian_delta(1.0, 1.0, bad),
        lambda: gaussian_epsilon(1e-5, 1.0, bad),
        lambda: zcdp_gaussian(1.0, bad),
    ]:
        with pytest.raises(ValueError, match="l2_sensitivity must be"):
            call()


@pytest.mark.parametrize("bad", [-1.0, math.nan])
def test_other_bad_values(bad):
    for call, name in [
        (lambda: gaussian_delta(bad, 1.0), "epsilon must be >= 0"),
        (lambda: gaussian_delta(1.0, bad), "noise_stddev must be >= 0"),
        (lambda: gaussian_epsilon(1e-5, bad), "noise_stddev must be >= 0"),
        (lambda: zcdp_epsilon(bad, 1e-5), "rho must be > 0"),
        (lambda: zcdp_gaussian(bad), "rho must be > 0"),
        (lambda: round_up(bad), "value must be >= 0"),
    ]:
        with pytest.raises(ValueError, match=name):
            call()
    with pytest.raises(ValueError, match="the largest float32"):
        round_up(1e39)
