"""Intervals of replay: the errors of rounds that seeds share, and of seeds."""

import math

import numpy as np
import pytest
import xarray as xr

from jaxdp.stats import mean_interval, replay_interval

ROUNDS, SEEDS, DATASETS = 400, 10, 400


def replays(coin, datasets=DATASETS, seed_stddev=0.0):
    """Draws totals of logs with rewards N(0, 1), whose rounds each seed keeps by coins of its own."""
    rng = np.random.default_rng(1)
    rewards = rng.normal(size=(datasets, 1, ROUNDS)) + seed_stddev * rng.normal(size=(datasets, SEEDS, 1))
    kept = rng.random((datasets, SEEDS, ROUNDS)) < coin
    powers = {"matched": np.ones_like(rewards), "reward": rewards, "squared_reward": rewards**2}
    totals = {name: (("dataset", "seed"), (kept * values).sum(axis=2)) for name, values in powers.items()}
    shared = {f"shared_{name}": (dims, coin * values) for name, (dims, values) in totals.items()}
    return xr.Dataset({**totals, **shared})


def test_rewards_with_a_large_offset_are_warned_of():
    """Checks the warning where sums in 32 bits lose the variance. A mean of 100 standard deviations leaves 1 %."""
    rewards = np.random.default_rng(2).normal(size=(5, ROUNDS))

    def half_width(offset, dtype):
        powers = {"matched": rewards**0, "reward": rewards + offset, "squared_reward": (rewards + offset) ** 2}
        sums = {name: ("seed", values.sum(axis=1).astype(dtype)) for name, values in powers.items()}
        interval = replay_interval(xr.Dataset(sums))
        return (interval.high - interval.low).item() / 2

    right = half_width(0.0, np.float64)
    assert half_width(1e4, np.float64) == pytest.approx(right, rel=1e-4)
    assert half_width(100.0, np.float32) == pytest.approx(right, rel=0.01)
    with pytest.warns(RuntimeWarning, match="sums in float32 may not show their variance"):
        assert half_width(1e4, np.float32) != pytest.approx(right, rel=0.1)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_sums_of_integers_and_of_binary_rewards_are_exact(dtype):
    """Checks that neither integers nor rewards of 0 and 1 are warned of, although all rewards but one are 1."""
    sums = {"matched": 10**6, "reward": 10**6 - 1, "squared_reward": 10**6 - 1}
    interval = replay_interval(xr.Dataset({name: ("seed", np.full(5, total, dtype)) for name, total in sums.items()}))
    assert (interval.high - interval.low).item() == pytest.approx(2 * 1.96e-6, rel=0.01)


def share_covered(low, high):
    return float(((low < 0) & (high > 0)).mean())


@pytest.mark.parametrize("seed_stddev", [0.0, 0.3])
@pytest.mark.parametrize("coin", [0.2, 1.0])
def test_intervals_cover(coin, seed_stddev):
    """Checks coverage. Planted: errors of rounds as if no round were shared."""
    results, error = replays(coin, seed_stddev=seed_stddev), math.sqrt(0.95 * 0.05 / DATASETS)
    interval = replay_interval(results)
    assert 0.95 - 5 * error <= share_covered(interval.low, interval.high) <= 0.985
    alone = mean_interval(results.reward / results.matched)
    if coin == 1 and seed_stddev == 0:
        assert share_covered(alone.low, alone.high) < 0.1
    elif seed_stddev == 0:
        assert share_covered(alone.low, alone.high) < 0.95 - 5 * error
    if coin < 1:
        without = replay_interval(results[["matched", "reward", "squared_reward"]])
        wider = (without.high - without.low) / (interval.high - interval.low)
        assert float(wider.mean()) > 1.3, "if all errors of rounds were shared"


def test_the_effective_sample_size():
    interval = replay_interval(replays(1.0, datasets=1))
    assert float(interval.effective_sample_size[0]) == pytest.approx(ROUNDS)
    interval = replay_interval(replays(0.2, datasets=1))
    kept = 0.2 * ROUNDS
    expected = kept / (0.2 + 0.8 / SEEDS)  # seeds share a fifth of their rounds
    assert float(interval.effective_sample_size[0]) == pytest.approx(expected, rel=0.1)


def test_one_seed_is_warned_of_and_bad_input_refused():
    results = replays(0.2, datasets=2)
    with pytest.warns(RuntimeWarning, match="one seed does not show how seeds differ"):
        replay_interval(results.isel(seed=[0]))
    with pytest.raises(ValueError, match="totals must be an xarray Dataset, got DataArray"):
        replay_interval(results.matched)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="totals must have the outcomes of a replay, got none named squared_reward"):
        replay_interval(results.drop_vars("squared_reward"))
    with pytest.raises(ValueError, match="matched must have at least one value along 'lane'"):
        replay_interval(results, "lane")
    with pytest.raises(ValueError, match="confidence must be in"):
        replay_interval(results, confidence=95)
    none = results.assign(matched=results.matched * 0)
    assert bool(replay_interval(none)["mean"].isnull().all())


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("squared_reward", [200.0, math.nan, 210.0]),
        ("squared_reward", [math.nan] * 3),
        ("shared_reward", [200.0, math.nan, 210.0]),
        ("matched", [1.0, 400.0, 420.0]),
        ("matched", [400.0, math.nan, 420.0]),
    ],
)
def test_a_seed_without_an_error_is_not_skipped(name, values):
    sums = {"matched": [400.0, 410.0, 420.0], "reward": [200.0, 190.0, 210.0], "squared_reward": [200.0, 190.0, 210.0]}
    shared = {f"shared_{total}": [0.5 * value for value in sums[total]] for total in sums}
    totals = xr.Dataset({total: ("seed", row) for total, row in {**sums, **shared}.items()})
    assert all(map(math.isfinite, replay_interval(totals).to_array().values))
    interval = replay_interval(totals.assign({name: ("seed", values)}))
    assert interval[["low", "high", "effective_sample_size"]].to_array().isnull().all()
