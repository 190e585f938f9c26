"""Results can be summarized and drawn for any names of the swept values."""

import functools
import inspect
import math
from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import jaxdp
from jaxdp import plotting, stats
from jaxdp.registry import ESTIMATORS, LEARNERS
from jaxdp.validation import RESULT_NAMES

EPSILONS = [1.0, 2.0, math.inf]


@functools.cache
def _names():
    """Returns every name that an axis of a sweep of a registered entry can have."""
    names = set()
    for entry in (*LEARNERS.values(), *ESTIMATORS.values()):
        names |= {*inspect.signature(entry.make().params).parameters, *entry.sizes, *entry.variant, *entry.values}
    for entry in LEARNERS.values():
        names |= {*inspect.signature(entry.make_environment().params).parameters}
    return sorted(names - {"epsilon"})


def _values(names):
    """Makes [2 for each name, epsilon, seed] numbers, and 0 or 1 of the same dimensions."""
    shape = (*(2 for _ in names), len(EPSILONS), 4)
    numbers = np.random.default_rng(3).gamma(3.0, size=shape) + 5 * np.arange(3)[:, None]
    coords = {**{name: [-7.0, 9.0] for name in names}, "epsilon": EPSILONS, "seed": range(4)}
    return [xr.DataArray(part, coords, (*names, "epsilon", "seed"), name="regret") for part in (numbers, numbers > 8)]


def _groups(size):
    return [_names()[start : start + size] for start in range(0, len(_names()), size)]


def test_names_are_not_those_of_results():
    assert not set(_names()) & {*RESULT_NAMES, "seed", "round"}
    assert len(_names()) > 50
    assert "reward_low" in _names()


@pytest.mark.parametrize("squeezed", [False, True], ids=["axis", "squeezed"])
def test_statistics_do_not_depend_on_names(squeezed):
    """Compares the names of values with other names, which cannot clash."""

    def tables(names):
        numbers, hits = (part.isel(dict.fromkeys(names, 0)) if squeezed else part for part in _values(names))
        return (
            stats.mean_interval(numbers),
            stats.share_interval(hits),
            stats.paired(numbers, "epsilon", math.inf),
            stats.power_law(numbers.sel(epsilon=[1.0, 2.0]), "epsilon"),
            stats.smallest_epsilon(numbers, at_most=12.0).to_dataset(),
        )

    for names in _groups(6):
        plain = {name: f"plain_{name}" for name in names}
        for expected, found in zip(tables([*plain.values()]), tables(names), strict=True):
            xr.testing.assert_identical(expected, found.rename(plain))


def test_names_of_results_are_refused():
    for name in RESULT_NAMES:
        numbers, hits = _values([name])
        for array in (numbers, numbers.isel({name: 0})):
            with pytest.raises(ValueError, match=f"must not have the name of a result .*, got {name}: rename it"):
                stats.mean_interval(array)
            with pytest.raises(ValueError, match=f", got {name}: rename it"):
                stats.paired(array, "epsilon", math.inf)
        with pytest.raises(ValueError, match=f", got {name}: rename it"):
            stats.share_interval(hits)
        with pytest.raises(ValueError, match=f", got {name}: rename it"):
            plotting.curves(numbers.isel({name: 0}), x="epsilon")


def test_every_variable_of_statistics_is_a_name_of_a_result():
    numbers, hits = (part.isel(plain=0) for part in _values(["plain"]))
    found = {*stats.mean_interval(numbers), *stats.share_interval(hits), *stats.paired(numbers, "epsilon", math.inf)}
    finite = numbers.sel(epsilon=[1.0, 2.0])
    both = xr.concat([finite, finite + 1], "learner")
    found |= {
        *stats.power_law(finite, "epsilon"),
        *stats.crossover(both.isel(learner=0), both.isel(learner=1), "epsilon"),
    }
    assert found <= {*RESULT_NAMES}


def test_figures_of_values_with_every_name():
    for names in _groups(12):
        numbers = _values(names)[0]
        plotting.cost_of_privacy(numbers.isel(dict.fromkeys(names, 0)))
        for name in names:
            others = {other: 0 for other in names if other != name}
            plotting.curves(numbers.isel({**others, "epsilon": 0}), x=name)
        plt.close("all")


def test_a_sweep_of_the_ends_to_which_rewards_are_clipped():
    learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4, rewards="bounded")
    run = jaxdp.simulator(learner, jaxdp.bandits.gaussian_bandit([0.9, 0.1]), 8, engine="rounds")
    axes = {"epsilon": [1.0, math.inf], "reward_low": [-1.0, 0.0], "reward_high": [1.0]}
    regret = jaxdp.sweep(run, axes=axes, num_seeds=3, key=jax.random.key(0)).pseudo_regret.isel(round=-1)
    found = stats.mean_interval(regret)
    assert found.low.dims == ("epsilon", "reward_low", "reward_high")
    np.testing.assert_array_equal(found.reward_low, [-1.0, 0.0])
    assert bool((found.low <= found["mean"]).all())


@pytest.mark.parametrize("name", ["low", "mean", "quantile"])
def test_a_sweep_refuses_the_names_of_results(name):
    plain = jaxdp.bandits.bernoulli_bandit([0.9, 0.1])
    learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4)

    def build(**static):
        del static
        return jaxdp.simulator(learner, plain, 8)

    axes: dict[str, Any] = {"axes": {name: [0.5]}}
    static_axes: dict[str, Any] = {"axes": {"epsilon": [1.0]}, "static_axes": {name: [0.5]}}
    for more in (axes, static_axes):
        with pytest.raises(ValueError, match=f"axes and static_axes must not have the name of a result .*, got {name}"):
            jaxdp.sweep(build, **more, num_seeds=2, key=jax.random.key(0))
    record = {"kept": lambda snapshot: jax.numpy.zeros(2)}
    run = jaxdp.simulator(learner, plain._replace(dims={**plain.dims, "kept": (name,)}), 8, record=record)
    with pytest.raises(ValueError, match=f"dims and coords must not have the name of a result .*, got {name}"):
        jaxdp.sweep(run, axes={"epsilon": [1.0]}, num_seeds=2, key=jax.random.key(0))
