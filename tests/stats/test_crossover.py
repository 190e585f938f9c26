"""Where curves cross: coverage, and reports at the edges."""

import math

import numpy as np
import pytest
import xarray as xr

from jaxdp.stats import crossover
from tests.stats.coverage import DATASETS, SEEDS, check_coverage, covered

EPSILONS = np.array([0.1, 0.3, 1.0, 3.0, 10.0])
TRUTH = 0.5  # between two places of the grid


def two_curves(num_seeds, spread, datasets=DATASETS, slope=1.0):
    """Draws two curves with a mean difference that is a straight line in ln epsilon; both share their seed's world."""
    rng = np.random.default_rng(6)
    sizes = (datasets, len(EPSILONS), num_seeds)
    world = rng.gamma(2.0, 1.0, (datasets, 1, num_seeds))
    along_seed = rng.normal(size=(datasets, 1, num_seeds))
    own = spread * (along_seed + rng.normal(size=sizes))
    centre = slope * np.log(EPSILONS / TRUTH)[:, None]
    labels = ({"epsilon": EPSILONS}, ("dataset", "epsilon", "seed"))
    return xr.DataArray(world + centre + own, *labels), xr.DataArray(world + np.zeros(sizes), *labels)


@pytest.mark.parametrize("num_seeds", SEEDS)
def test_the_interval_covers(num_seeds):
    for spread in (0.3, 1.0, 3.0):
        a, b = two_curves(num_seeds, spread)
        found = crossover(a, b)
        check_coverage(found.low, found.high, TRUTH)
        within = (found.low <= found.estimate) & (found.estimate <= found.high)
        assert bool(within.where(found.estimate.notnull(), True).all())
        if spread == 0.3:  # a hull of points that are not rejected; exact if it is one piece within the grid
            check_coverage(found.low, found.high, TRUTH, exact=True)
            assert bool((found.crossings == 1).all())
            assert abs(float(np.log(found.estimate).mean()) - math.log(TRUTH)) < 0.01
            if num_seeds > 8:
                assert bool(((found.low > 0) & np.isfinite(found.high)).all())


def test_wrong_intervals_do_not_cover():
    a, b = two_curves(8, 0.3)
    right = crossover(a, b, confidence=0.95)
    narrow = crossover(a, b, confidence=1 - 2 * 0.04545)  # planted: the normal quantile, 1.96, in place of 2.36
    assert covered(right.low, right.high, TRUTH) >= 0.945
    with pytest.raises(AssertionError):
        check_coverage(narrow.low, narrow.high, TRUTH)
    linear = crossover(a, b, scale="linear")  # planted: the means are straight in ln epsilon
    with pytest.raises(AssertionError):
        check_coverage(linear.low, linear.high, TRUTH)


def test_seeds_are_paired():
    """Permutes the seeds of one curve: the interval is much wider, as their world does not cancel."""
    a, b = two_curves(20, 0.3, datasets=2000)
    found, apart = crossover(a, b), crossover(a, b.isel(seed=slice(None, None, -1)))
    bounded = (apart.low > 0) & np.isfinite(apart.high)
    width = np.log(apart.high / apart.low).where(bounded)
    assert float((width / np.log(found.high / found.low)).median()) > 2


def curve(means, spread=0.0, places=EPSILONS, seeds=6):
    noise = spread * np.resize([-1.0, 1.0], seeds) * np.ones((len(means), 1))
    return xr.DataArray(np.array(means)[:, None] + noise, {"epsilon": places[: len(means)]}, ("epsilon", "seed"))


def ends(found):
    return [float(found[name]) for name in ("estimate", "low", "high", "crossings")]


def test_the_interval_is_where_students_interval_contains_zero():
    """Tests each point of a fine grid separately."""
    a, b = two_curves(9, 2.5, datasets=40)
    found = crossover(a, b, confidence=0.9)
    steps = np.linspace(np.log(EPSILONS[0]), np.log(EPSILONS[-1]), 4001)
    difference = (a - b).assign_coords(epsilon=np.log(EPSILONS)).interp(epsilon=steps)
    half = 1.859548 * difference.std("seed", ddof=1) / 3
    contains = abs(difference.mean("seed")) <= half
    low = np.exp(contains.epsilon.where(contains).min("epsilon"))
    high = np.exp(contains.epsilon.where(contains).max("epsilon"))
    step = math.exp(steps[1] - steps[0])
    within_low, within_high = ~contains.isel(epsilon=0), ~contains.isel(epsilon=-1)
    assert 10 < int(within_low.sum()) < 40
    np.testing.assert_allclose(found.low.where(within_low), low.where(within_low), rtol=2 * (step - 1))
    np.testing.assert_allclose(found.high.where(within_high), high.where(within_high), rtol=2 * (step - 1))
    np.testing.assert_array_equal(found.low.where(~within_low, 0), 0)
    np.testing.assert_array_equal(found.high.where(~within_high, math.inf), math.inf)


def test_edges_are_open():
    zero = curve([0.0] * 5)
    assert ends(crossover(curve([2, 1, -1, -2, -3], 0.5), zero))[3] == 1
    estimate, low, high, count = ends(crossover(curve([0.1, -1, -2, -3, -4], 0.5), zero))
    assert (low, count) == (0, 1)
    assert 0.1 < estimate < high < 0.3
    estimate, low, high, count = ends(crossover(curve([4, 3, 2, 1, 0.1], 0.5), zero))
    assert math.isnan(estimate)
    assert 3 < low < 10
    assert (high, count) == (math.inf, 0)
    linear = crossover(curve([0.1, -1, -2, -3, -4], 0.5), zero, scale="linear")
    assert float(linear.low) == -math.inf


def test_none_and_several():
    zero = curve([0.0] * 5)
    np.testing.assert_equal(ends(crossover(curve([3, 2, 1, 1, 1], 0.1), zero)), [math.nan, math.nan, math.nan, 0])
    twice = crossover(curve([1, -1, -1, 1, 2], 0.1), zero)
    assert float(twice.crossings) == 2
    assert float(twice.estimate) == pytest.approx(math.sqrt(0.1 * 0.3))
    assert 0.1 < float(twice.low) < float(twice.estimate)
    assert math.sqrt(1 * 3) < float(twice.high) < 3
    touches = ends(crossover(curve([2, 0, 1, 1, 1], 0.0), zero))
    np.testing.assert_allclose(touches, [math.nan, 0.3, 0.3, 0])
    through = ends(crossover(curve([2, 0, -1, -1, -1], 0.0), zero))
    np.testing.assert_allclose(through, [0.3, 0.3, 0.3, 1])
    same = ends(crossover(zero, zero))
    np.testing.assert_equal(same, [math.nan, 0, math.inf, 0])


def test_without_spread_the_crossing_is_the_interval():
    found = crossover(curve([1.0, 0.7, -0.1, -0.2, -0.3]), curve([0.0] * 5))
    expected = math.exp(np.interp(0, [-0.7, 0.1], np.log([0.3, 1.0])))
    np.testing.assert_allclose(ends(found), [expected, expected, expected, 1], rtol=1e-9)


def test_infinity_is_left_out_and_any_order_will_do():
    a, b = two_curves(20, 0.5, datasets=3)
    expected = crossover(a, b)
    more, others = (each.reindex(epsilon=[3.0, math.inf, 0.1, 10.0, 1.0, 0.3]) for each in (a, b))
    xr.testing.assert_allclose(crossover(more, others), expected)
    turned = a.transpose("seed", "dataset", "epsilon").assign_coords(learner="mine")
    xr.testing.assert_allclose(crossover(turned, b.assign_coords(learner="theirs")), expected)


def test_nan_and_a_single_seed():
    a, b = two_curves(20, 0.5, datasets=3)
    gone = a.copy()
    for value in (math.nan, math.inf, -math.inf):
        gone[1, 4, 7] = value
        found = crossover(gone, b)
        for name in found:
            np.testing.assert_array_equal(np.isnan(found[name]), [False, True, False])
    single = crossover(a.isel(seed=[0]), b.isel(seed=[0]))
    assert bool((single.crossings >= 1).all())
    assert bool((np.isnan(single.low) & np.isnan(single.high)).all())


def test_lazy_arrays():
    pytest.importorskip("dask.array")
    a, b = two_curves(5, 0.5, datasets=4)
    xr.testing.assert_allclose(crossover(a.chunk({"epsilon": 2}), b.chunk({"seed": 3})), crossover(a, b))


A = curve([1.0, -1.0])


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda: crossover(A, A.isel(seed=slice(3))), "a and b must have the same labels and sizes, got "),
        (
            lambda: crossover(A, A.assign_coords(epsilon=[1.0, 2.0])),
            "a and b must have the same labels and sizes, got ",
        ),
        (lambda: crossover(A, A.to_dataset(name="regret")), "b must be one variable of the Dataset: regret"),  # pyright: ignore[reportArgumentType]
        (lambda: crossover(A, A, "round"), "a must have at least one value along 'round'"),
        (lambda: crossover(A[:1], A[:1]), r"epsilon must have at least two finite values, all > 0 .*, got \[0.1\]"),
        (lambda: crossover(-A.assign_coords(epsilon=[0.0, 1.0]), A.assign_coords(epsilon=[0.0, 1.0])), "all > 0 "),
        (lambda: crossover(A, A, "epsilon", over="epsilon"), "along and over must be different dimensions"),
        (lambda: crossover(A, A, scale="sqrt"), "scale must be one of log, linear, got 'sqrt'"),
        (lambda: crossover(A, A, confidence=2.0), r"confidence must be in \(0, 1\), got 2"),
    ],
)
def test_wrong_arguments(wrong, text):
    with pytest.raises(ValueError, match=text):
        wrong()
