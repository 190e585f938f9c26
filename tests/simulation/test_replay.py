"""A lane again: replay records the terms of the sweep's sums."""

import math
import pickle

import jax
import numpy as np
import pytest
import xarray as xr

import jaxdp
from jaxdp.simulation.sweeps._replay import _dataset

HORIZON = 12


def build(num_arms):
    learner = jaxdp.bandits.explore_then_commit(num_arms=num_arms, explore_rounds=2 * num_arms)
    environment = jaxdp.bandits.bernoulli_bandit(np.linspace(0.2, 0.8, num_arms))
    return jaxdp.simulator(
        learner,
        environment,
        HORIZON,
        checkpoints=[3, HORIZON],
        record={"arm": lambda snapshot: snapshot.public.best_arm},
    )


def counted(num_arms):
    learner = jaxdp.bandits.explore_then_commit(num_arms=num_arms, explore_rounds=2 * num_arms)
    environment = jaxdp.bandits.bernoulli_bandit(np.linspace(0.2, 0.8, num_arms))
    return jaxdp.simulator(learner, environment, HORIZON, engine="counts")


def swept(build, **changes):
    arguments = {"axes": {"epsilon": [0.5, math.inf]}, "static_axes": {"num_arms": [2]}, "num_seeds": 3}
    return jaxdp.sweep(build, **{**arguments, "key": jaxdp.random.key(7), **changes})


@pytest.fixture(scope="module")
def results():
    return swept(build)


@pytest.mark.parametrize("epsilon", [0.5, math.inf])
@pytest.mark.parametrize("seed", [0, 2])
def test_every_round_adds_up_to_the_results(results, epsilon, seed):
    lane = jaxdp.replay(results, seed=seed, epsilon=epsilon)
    assert lane["round"].values.tolist() == list(range(1, HORIZON + 1))
    gaps = np.array([0.6, 0.0])
    np.testing.assert_allclose(lane.pseudo_regret, np.cumsum(gaps[lane.action.values]), rtol=1e-6)
    point = results.sel(num_arms=2, epsilon=epsilon, seed=seed)
    for name in ("pseudo_regret", "best_arm_plays", "arm"):
        np.testing.assert_array_equal(lane[name].sel(round=[3, HORIZON]), point[name])
    assert lane.action.values[:4].tolist() == [0, 1, 0, 1]
    assert (lane["public.best_arm"].values[:3] == -1).all()
    assert (lane.action.values[4:] == lane["public.best_arm"].values[3]).all()
    np.testing.assert_array_equal(lane["report[0]"], lane.action)
    np.testing.assert_array_equal(lane["report[1]"], lane.feedback)


def test_the_first_rounds_alone(results):
    lane = jaxdp.replay(results, seed=0, epsilon=0.5, num_rounds=2)
    assert lane.sizes["round"] == 2
    xr.testing.assert_identical(lane, jaxdp.replay(results, seed=0, epsilon=0.5).isel(round=slice(0, 2)))


def test_a_stopped_lane_ends_where_it_stopped():
    learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4)
    stops = learner._replace(done=lambda params, public: public.best_arm >= 0, blocks=(), counts=None)

    def stopping():
        return jaxdp.simulator(stops, jaxdp.bandits.bernoulli_bandit([0.2, 0.8]), HORIZON)

    results = jaxdp.sweep(stopping, axes={"epsilon": [1.0]}, num_seeds=2, key=jax.random.key(0))
    assert results.rounds.values.tolist() == [[4, 4]]
    assert jaxdp.replay(results, seed=1).sizes["round"] == 4


def test_values_are_as_given_not_their_labels():
    class Link:
        name = "a link"

    seen = []

    def linked(link):
        seen.append(link)
        return build(2)

    link = Link()
    results = swept(linked, static_axes={"link": [link]})
    jaxdp.replay(results, seed=0, epsilon=0.5)
    jaxdp.replay(results, seed=0, epsilon=0.5, link=link)
    read = pickle.loads(pickle.dumps(results))  # has the label only
    with pytest.raises(ValueError, match=r"values must have link, one of \['a link'\], got epsilon"):
        jaxdp.replay(read, seed=0, epsilon=0.5, build=linked)
    jaxdp.replay(read, seed=0, epsilon=0.5, link=link, build=linked)
    assert all(one is link for one in seen)


def test_values_of_an_axis_of_numbers_and_others():
    results = swept(build, axes={"epsilon": [0.5], "gap": [None, 0.1]})
    assert results.gap.values.tolist() == ["None", "0.1"]
    assert jaxdp.replay(results, seed=0, gap=0.1).sizes["round"] == HORIZON
    with pytest.raises(ValueError, match=r"gap must be one of \['None', '0\.1'\], got 0\.3"):
        jaxdp.replay(results, seed=0, gap=0.3)


def test_results_from_a_file_need_the_build(results, tmp_path):
    results.to_zarr(tmp_path / "results.zarr", consolidated=False)
    read = xr.open_zarr(tmp_path / "results.zarr", consolidated=False).load()
    pickled = pickle.loads(pickle.dumps(results))
    for other in (read, pickled):
        with pytest.raises(ValueError, match="build must be given for results that come from a file"):
            jaxdp.replay(other, seed=1, epsilon=0.5)
        lane = jaxdp.replay(other, seed=1, epsilon=0.5, build=build)
        xr.testing.assert_identical(lane, jaxdp.replay(results, seed=1, epsilon=0.5))


@pytest.mark.parametrize(
    "select",
    [
        lambda results: results.sel(epsilon=0.5, num_arms=2),
        lambda results: results.isel(seed=1),
        lambda results: results.isel(seed=[0]),
        lambda results: results.isel(epsilon=0, drop=True),
        lambda results: results.isel(round=-1),
        lambda results: results[["pseudo_regret"]],
    ],
)
def test_a_selection_can_be_replayed(results, select):
    lane = jaxdp.replay(select(results), seed=1, epsilon=0.5)
    xr.testing.assert_identical(lane, jaxdp.replay(results, seed=1, epsilon=0.5))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "select",
    [
        lambda results: results.isel(round=[0, 1, 0, 1]).drop_vars("round"),
        lambda results: results.isel(round=-1).drop_vars("round"),
        lambda results: results.drop_vars("epsilon"),
        lambda results: results.drop_vars("seed").isel(seed=[2, 0]),
    ],
)
def test_results_without_labels_are_not_compared(results, select):
    lane = jaxdp.replay(select(results), seed=1, epsilon=0.5, num_rounds=3)
    assert lane.sizes["round"] == 3


def test_records_with_the_names_of_events():
    def build():
        learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4)
        bandit = jaxdp.bandits.bernoulli_bandit([0.2, 0.8])
        record = {"action": lambda snapshot: 10 * snapshot.action, "public": lambda snapshot: snapshot.public.round}
        return jaxdp.simulator(learner, bandit, HORIZON, record=record)

    lane = jaxdp.replay(swept(build, static_axes={}), seed=0, epsilon=math.inf)
    assert lane.action.values[:4].tolist() == [0, 1, 0, 1]
    assert lane["results.action"].values[:4].tolist() == [0, 10, 0, 10]
    assert lane["public.round"].values[:2].tolist() == [1, 2]
    assert lane["public"].values[:2].tolist() == [1, 2]


def test_records_with_the_names_of_dimensions_of_events():
    events, sums = {"action": np.zeros((3, 2))}, {"action_0": np.arange(3)}
    lane = _dataset({"stopped": None, "events": events, "sums": sums}, 3)
    assert {name: lane[name].dims for name in lane} == {"action": ("round", "action_0"), "results.action_0": ("round",)}


def test_another_build_is_told(results):
    def other(num_arms):
        learner = jaxdp.bandits.explore_then_commit(num_arms=num_arms, explore_rounds=4 * num_arms)
        return jaxdp.simulator(
            learner,
            jaxdp.bandits.bernoulli_bandit([0.9, 0.1]),
            HORIZON,
            record={"arm": lambda snapshot: snapshot.public.best_arm},
        )

    with pytest.warns(RuntimeWarning, match="the replay differs from the results in"):
        jaxdp.replay(results, seed=0, epsilon=math.inf, build=other)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": 3, "epsilon": 0.5}, "seed must be < 3, got 3"),
        ({"seed": -1, "epsilon": 0.5}, "seed must be an integer >= 0, got -1"),
        ({"seed": 0}, r"values must have epsilon, one of \[0.5, inf\], got none"),
        ({"seed": 0, "epsilon": 0.6}, r"epsilon must be one of \[0.5, inf\], got 0.6"),
        ({"seed": 0, "epsilon": 0.5, "delta": 1.0}, "values must be among num_arms, epsilon, got delta"),
        ({"seed": 0, "epsilon": 0.5, "num_rounds": 0}, "num_rounds must be an integer >= 1, got 0"),
        ({"seed": 0, "epsilon": 0.5, "num_rounds": 13}, "num_rounds must be <= the horizon 12, got 13"),
    ],
)
def test_bad_arguments(results, arguments, message):
    with pytest.raises(ValueError, match=message):
        jaxdp.replay(results, **arguments)


def test_what_cannot_be_told_by_round():
    with pytest.raises(ValueError, match="results must be of a run with separate rounds"):
        jaxdp.replay(swept(counted), seed=0, epsilon=0.5)
    with pytest.raises(ValueError, match="results must be the Dataset of a sweep"):
        jaxdp.replay(xr.Dataset(), seed=0)
