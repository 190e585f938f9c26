"""A sweep that grows has the bits of one sweep of the whole, or is refused where lanes must keep their places."""

import math

import numpy as np
import pytest
import xarray as xr

import jaxdp
from jaxdp.simulation import Run, sweep
from jaxdp.simulation.sweeps.local import LocalSource
from tests.simulation import store_worker
from tests.simulation.growing import KEY, SMALL, content, run
from tests.simulation.learners import linear_bandit
from tests.simulation.worlds import linear_rewards

MOVED = "lanes must have the same bits in every position of a tile"


def contextual() -> Run:
    learner, world = linear_bandit(num_arms=5, dim=3), linear_rewards([0.7, -0.2, 0.4], num_arms=5)
    return jaxdp.simulator(learner, world, 30, checkpoints=2)


def estimators() -> Run:
    compared = {"mle": jaxdp.estimation.mle(), "debiased_rr": jaxdp.estimation.debiased_rr()}
    return jaxdp.estimation_run(compared, jaxdp.estimation.gaussian_rewards(num_samples=60, dim=3))


LEARNERS = {
    "a softmax": (store_worker.build, {"static_axes": {"num_experts": [3]}}, {"static_axes": {"num_experts": [4, 3]}}),
    "a Cholesky factor": (contextual, {}, {}),
    "a minimisation": (estimators, {}, {}),  # with bits that depend on places in tiles of 33
}


def grown_if_lanes_stay(build, options: dict, **more) -> xr.Dataset | None:
    """Returns the grown sweep, or None if this processor's lanes have other bits in other places and nothing was
    written.
    """
    before = content(options["store"])
    try:
        return sweep(build, **options, grow=True, **more)
    except ValueError as error:
        if MOVED not in str(error):
            raise
    assert content(options["store"]) == before
    return None


@pytest.mark.parametrize("case", LEARNERS)
@pytest.mark.parametrize("tile", [16, 48, 256])
def test_the_bits_of_one_sweep_of_the_whole(tmp_path, case, tile):
    build, few_static, more_static = LEARNERS[case]
    common = {"tile_size": tile, "chunk_size": 8, "key": KEY(), "store": tmp_path / "s.zarr"}
    small: dict = {**few_static, "axes": {"epsilon": [2.0]}, "num_seeds": 7, **common}  # one point: all leaves alike
    large: dict = {**more_static, "axes": {"epsilon": [0.5, 2.0, math.inf]}, "num_seeds": 12, **common}
    sweep(build, **small)
    lanes = []
    grown = grown_if_lanes_stay(build, large, progress=lambda now: lanes.append(now.lanes))
    if grown is None and case == "a Cholesky factor":
        return
    assert grown is not None
    whole = sweep(build, **{**large, "store": None})
    assert grown.identical(whole)
    assert lanes[0] > 7  # those that were there
    assert sweep(build, **large).identical(whole)  # the store is the whole sweep's now
    assert jaxdp.open(common["store"]).identical(whole)


def test_tiles_in_which_places_matter(tmp_path):
    store, small = tmp_path / "s.zarr", {**SMALL(), "tile_size": 5}
    sweep(run, **small, store=store)
    for changed in ({"num_seeds": 9}, {"axes": {"a": [0.5, 1.0, 3.0]}}):
        with pytest.raises(ValueError, match="tile_size must be a multiple of 16 for this growth, got 5"):
            sweep(run, **{**small, **changed}, store=store, grow=True)
        with pytest.raises(ValueError, match=r"store must hold the same sweep, .* here; overwrite=True"):
            sweep(run, **{**small, **changed}, store=store)
    appended = {**small, "axes": {"a": [1.0, 3.0, 0.5]}}
    assert sweep(run, **appended, store=store, grow=True).identical(sweep(run, **appended))


def test_lanes_that_move_with_their_places_are_noticed(tmp_path, monkeypatch):
    """Checks that nothing is written then.

    Planted: the last lanes of a tile, which some processors compute otherwise.
    """
    store, small, right = tmp_path / "s.zarr", {**SMALL(), "chunk_size": None}, LocalSource.sample
    sweep(run, **small, store=store)
    before = content(store)

    def moved(self, chunk):
        arrays = right(self, chunk)
        return {**arrays, "x": np.where(np.arange(len(arrays["x"])) % 16 == 15, arrays["x"] + 1, arrays["x"])}

    monkeypatch.setattr(LocalSource, "sample", moved)
    with pytest.raises(ValueError, match=f"{MOVED} for the store to grow, .* of 256 lanes"):
        sweep(run, **{**small, "num_seeds": 9}, store=store, grow=True)
    assert content(store) == before


@pytest.mark.optimised
def test_lanes_whose_bits_can_depend_on_their_places(tmp_path):
    """Plays `linear_ucb`, which grows on some processors only where lanes keep their places."""
    world = jaxdp.bandits.contextual.linear_contexts(num_arms=5, dim=5)
    learner = jaxdp.bandits.contextual.linear_ucb(num_arms=5, dim=5, horizon=30)
    bandit, store = jaxdp.simulator(learner, world, 30), tmp_path / "s.zarr"
    small: dict = {"axes": {"epsilon": [1.0, 2.0], "delta": [1e-3]}, "num_seeds": 20, "tile_size": 16, "key": KEY()}
    sweep(bandit, **small, store=store)
    large: dict = {**small, "num_seeds": 27, "store": store}
    if (grown := grown_if_lanes_stay(bandit, large)) is None:
        large = {**small, "axes": {"epsilon": [1.0, 2.0, 4.0], "delta": [1e-3]}, "store": store}
        grown = sweep(bandit, **large, grow=True)
    assert grown.identical(sweep(bandit, **{**large, "store": None}))
