"""The store of a sweep: its content, its refusals, and that it changes no result."""

import functools
import json
import math
import os
import subprocess
import sys
import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdp
from jaxdp.preferences import logistic, probit
from jaxdp.simulation import Run, sweep
from jaxdp.simulation.store.chunks import chunk_shape, chunks, share
from jaxdp.simulation.store.files import COMPUTED
from jaxdp.simulation.sweeps.lanes import Program
from jaxdp.simulation.sweeps.plan import Plan
from tests.lazily import Lazy
from tests.simulation.processes import REPOSITORY

CLAIM = jaxdp.Guarantee.pure(0.5, trust_model="local", privacy_unit="one label", argument="for a test")


def walk(*, steps=5, bad=None, name="walk"):
    """Builds a short random walk with numbers, integers and truth values; some lanes can be NaN."""

    def simulate(key, params):
        draws = jax.random.normal(key, (steps, 2), jnp.float32)
        path = jnp.cumsum(draws, axis=0)[:, 0] / params
        broken = jnp.logical_and(draws[0, 0] > 1.0, bad is not None)
        return {
            name: jnp.where(broken, jnp.nan, path),
            "count": jnp.sum(draws > 0).astype(jnp.int32),
            "first": draws[0, 0] > 0,
        }

    def params(*, epsilon, link=None):
        if not epsilon > 0:
            raise ValueError(f"epsilon must be > 0, got {epsilon}")
        return np.float32(epsilon)

    return Run(
        simulate=simulate,
        params=params,
        guarantee=lambda **values: {"walk": CLAIM},
        dims={name: ("round",), "count": (), "first": ()},
        coords={"round": list(range(1, steps + 1))},
    )


AXES = {"epsilon": [0.5, 1.0, math.inf], "link": [logistic, probit]}
SWEEP: Callable[[], dict] = functools.cache(
    lambda: {"axes": AXES, "num_seeds": 11, "tile_size": 4, "key": jax.random.key(3)}
)


def test_the_store_is_the_dataset(tmp_path):
    expected = sweep(walk, **SWEEP(), static_axes={"steps": [5]})
    found = sweep(walk, **SWEEP(), static_axes={"steps": [5]}, store=tmp_path / "new" / "s.zarr", chunk_size=7)
    assert found.identical(expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = xr.open_zarr(tmp_path / "new" / "s.zarr", chunks=None)
    assert read.computed.all()
    assert read["count"].dtype == expected["count"].dtype
    assert read["first"].dtype == bool
    assert read.walk.dims == ("steps", "epsilon", "link", "seed", "round")
    assert read.epsilon.values.tolist() == [0.5, 1.0, math.inf]
    assert read.link.values.tolist() == ["logistic", "probit"]
    assert json.loads(read.attrs["provenance"]) == json.loads(expected.attrs["provenance"])
    xr.testing.assert_equal(read[["walk", "count", "first"]].assign_coords(expected.coords), expected)
    assert found.sel(epsilon=0.5, link="probit").walk.mean("seed").shape == (1, 5)


def test_what_is_done_is_not_done_again(tmp_path):
    done = []
    sweep(walk, **SWEEP(), store=tmp_path / "s.zarr", progress=done.append)
    assert done[-1].lanes == done[-1].num_lanes == 66
    again = []
    sweep(walk, **SWEEP(), store=tmp_path / "s.zarr", progress=again.append)
    assert again == []


def test_an_unfinished_store_says_what_is_computed(tmp_path):
    found = sweep(walk, **SWEEP(), store=tmp_path / "s.zarr", process_index=1, num_processes=3, chunk_size=4)
    assert 0 < int(found.computed.sum()) < 66
    assert found.walk.where(~found.computed).isnull().all()
    assert found.walk.where(found.computed, 0.0).notnull().all()
    whole = sweep(walk, **SWEEP())
    xr.testing.assert_equal(whole.walk.where(found.computed), found.walk)


CHANGED = Lazy(
    {
        "seeds": lambda: ({"num_seeds": 12}, "num_seeds is 11 there, 12 here"),
        "grid": lambda: (
            {"axes": {**AXES, "epsilon": [0.5, 1.0, 2.0]}},
            r"axes.epsilon is \[0.5, 1.0, 'inf'\] there, \[0.5,",
        ),
        "another axis": lambda: (
            {"axes": {"epsilon": [0.5]}},
            r"axes.link is \['logistic', 'probit'\] there, None here",
        ),
        "tile": lambda: ({"tile_size": 5}, "tile_size is 4 there, 5 here"),
        "key": lambda: ({"key": jax.random.key(4)}, r"key.data is \[0, 3\] there, \[0, 4\] here"),
        "checkpoints": lambda: ({"static_axes": {"steps": [6]}}, r"static_axes.steps is None there, \[6\] here"),
    }
)


@pytest.mark.parametrize("case", CHANGED)
def test_the_store_of_another_sweep_is_refused_with_the_difference(tmp_path, case):
    changed, message = CHANGED[case]
    store = tmp_path / "s.zarr"
    before = sweep(walk, **SWEEP(), store=store).load()
    with pytest.raises(
        ValueError, match=f"store must hold the same sweep, got .*{message}.*overwrite=True replaces its results$"
    ):
        sweep(walk, **{**SWEEP(), **changed}, store=store)
    assert sweep(walk, **SWEEP(), store=store).identical(before)
    other = sweep(walk, **{**SWEEP(), **changed}, store=store, overwrite=True)
    assert other.identical(sweep(walk, **{**SWEEP(), **changed}))


def total(table):
    """Builds a run that closes over an array."""

    def simulate(key, params):
        def step(total, index):
            return total + jnp.sum(jnp.asarray(table)) * index, None

        return {"sum": jax.lax.scan(step, params, jnp.arange(3, dtype=jnp.float32))[0]}

    return Run(simulate=simulate, params=lambda *, shift: np.float32(shift), guarantee=lambda **_: {}, dims={"sum": ()})


def tables(size):
    table = np.ones(size, np.float32)
    other = table.copy()
    other[size // 2] = 3.0
    return table, other


@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray])
@pytest.mark.parametrize("size", [2, 5000])
def test_builds_that_differ_in_an_array_that_they_close_over(tmp_path, size, kind):
    table, other = map(kind, tables(size))
    arguments: dict = {"axes": {"shift": [0.0, 1.0]}, "num_seeds": 2, "key": jax.random.key(0), "tile_size": 2}
    arguments["store"] = tmp_path / "s.zarr"
    first = sweep(lambda: total(table), **arguments)
    with pytest.raises(ValueError, match=r"programs.program.program differs .* an array that it closes over"):
        sweep(lambda: total(other), **arguments)
    assert sweep(lambda: total(table.copy()), **arguments).identical(first)


HOISTED = """
import jax, numpy as np
from jaxdp.simulation.sweeps.lanes import Program
from tests.simulation.test_store import tables, total
for table in (*tables(5000), tables(5000)[0].copy()):
    program = Program(total(jax.numpy.asarray(table)), jax.random.key(0), [np.float32(0)], 2, jax.devices())
    print(program.hashes()["program"])
"""


def test_arrays_that_are_hoisted_out_of_a_programs_text():
    """Sets the variable that lets JAX move constants out of the text, into separate arguments."""
    result = subprocess.run(
        [sys.executable, "-c", HOISTED], cwd=REPOSITORY, capture_output=True, text=True, check=True,
        env={**os.environ, "JAX_USE_SIMPLIFIED_JAXPR_CONSTANTS": "1"},
    )  # fmt: skip
    first, second, again = result.stdout.split()
    assert first == again != second


def test_builds_that_differ_in_a_parameter_that_has_no_label(tmp_path):
    def build(scale):
        run = walk()
        return Run(
            simulate=run.simulate,
            params=lambda *, epsilon: run.params(epsilon=scale * epsilon),
            guarantee=run.guarantee,
            dims=run.dims,
            coords=run.coords,
        )

    arguments = {**SWEEP(), "axes": {"epsilon": [0.5]}, "store": tmp_path / "s.zarr"}
    sweep(lambda: build(1.0), **arguments)
    with pytest.raises(ValueError, match=r"programs.program.params differ"):
        sweep(lambda: build(2.0), **arguments)


def test_what_is_no_store_is_neither_used_nor_replaced(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "text").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for overwrite in [False, True]:
        with pytest.raises(
            ValueError, match=r"store must be the store of a sweep, got .*notes, which is something else$"
        ):
            sweep(walk, **SWEEP(), store=tmp_path / "notes", overwrite=overwrite)
        with pytest.raises(ValueError, match=r"store must be a folder or a free path, got .*file"):
            sweep(walk, **SWEEP(), store=tmp_path / "file", overwrite=overwrite)
    assert (tmp_path / "notes" / "text").read_text() == (tmp_path / "file").read_text() == "mine"
    with pytest.raises(ValueError, match=r"store must be a path in a file system, .* got s3://bucket/runs"):
        sweep(walk, **SWEEP(), store="s3://bucket/runs")


WRONG = {
    "shares without a store": ({"process_index": 0, "num_processes": 2}, "store must be given with num_processes > 1"),
    "overwrite without a store": ({"overwrite": True}, "store must be given .* or overwrite"),
    "overwrite by one of several": (
        {"store": "s.zarr", "overwrite": True, "process_index": 0, "num_processes": 2},
        "overwrite must be False if several processes write, got 2",
    ),
    "a share beyond": ({"process_index": 2, "num_processes": 2, "store": "s.zarr"}, "process_index must be < num_proc"),
    "half a share": ({"process_index": 2, "store": "s.zarr"}, "must be given together, got 2 and None"),
    "chunk": ({"chunk_size": 0, "store": "s.zarr"}, "chunk_size must be an integer >= 1, got 0"),
    "a value": ({"axes": {"epsilon": [1.0, -1.0]}, "store": "s.zarr"}, "epsilon must be > 0, got -1.0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_leave_nothing_behind(tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Program, "compile", None)
    changed, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        sweep(walk, **{**SWEEP(), **changed})
    assert not list(tmp_path.iterdir())


def test_nan_is_kept_counted_and_reported(tmp_path):
    def build():
        return walk(bad=True)

    with pytest.warns(RuntimeWarning, match=r"NaN in walk of \d+ of 66 lanes; the results keep them") as told:
        expected = sweep(build, **SWEEP())
    count = int(expected.walk.isnull().any("round").sum())
    assert 0 < count < 33
    assert f"walk of {count} of 66" in str(told[0].message)
    for _ in range(2):  # written, and then read
        with pytest.warns(RuntimeWarning, match=f"NaN in walk of {count} of 66 lanes"):
            assert sweep(build, **SWEEP(), store=tmp_path / "s.zarr").identical(expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sweep(walk, **SWEEP())


def test_an_output_named_as_the_mark(tmp_path):
    with pytest.raises(ValueError, match="outputs and axes must not be named computed in a sweep with a store"):
        sweep(lambda: walk(name=COMPUTED), **SWEEP(), store=tmp_path / "s.zarr")
    assert COMPUTED in sweep(lambda: walk(name=COMPUTED), **SWEEP())


def test_replay_from_a_store(tmp_path):
    def build():
        learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4)
        return jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit([0.1, 0.9]), 8)

    arguments: dict = {"axes": {"epsilon": [1.0]}, "num_seeds": 3, "key": jax.random.key(0)}
    results = sweep(build, **arguments, store=tmp_path / "s.zarr")
    lane = jaxdp.replay(results, seed=2)
    assert lane.equals(jaxdp.replay(xr.open_zarr(tmp_path / "s.zarr"), seed=2, build=build))


@pytest.mark.parametrize("sizes", [(3, 4, 7), (5,), (2, 1, 3), (1, 1, 1), (4, 100)])
@pytest.mark.parametrize("lanes", [1, 2, 5, 7, 20, 64, 1000])
@pytest.mark.parametrize("static_sizes", [(), (2, 3)])
def test_chunks_are_runs_of_lanes_and_blocks_of_arrays(sizes, lanes, static_sizes):
    shape = chunk_shape(sizes, lanes)
    assert math.prod(shape) <= lanes
    found = chunks(static_sizes, sizes, shape)
    numbers = np.arange(math.prod(static_sizes) * math.prod(sizes)).reshape(*static_sizes, *sizes)
    num_lanes = math.prod(sizes)
    seen = []
    for number, chunk in enumerate(found):
        assert chunk.number == number
        assert all(bounds[0] % part == 0 for bounds, part in zip(chunk.block[len(static_sizes) :], shape, strict=True))
        own = numbers[chunk.region].ravel()
        assert own.tolist() == [chunk.program * num_lanes + lane for lane in chunk.lanes]
        assert len(chunk.runs) == 1
        seen += own.tolist()
    assert seen == list(range(numbers.size))
    for count in [1, 2, 3, 50]:
        shares = [share(found, index, count) for index in range(count)]
        assert sorted(chunk.number for own in shares for chunk in own) == list(range(len(found)))
        assert max(map(len, shares)) <= min(map(len, shares)) + math.prod(static_sizes)


def test_the_identity_is_the_same_in_every_process_and_whatever_the_scheduling():
    plan = Plan(walk, {"epsilon": [0.5]}, {}, num_seeds=2, key=jax.random.key(0), tile_size=4, devices=None)
    assert plan.identity() == plan.identity()
    assert json.loads(json.dumps(plan.identity())) == plan.identity()
