"""A sweep that grows: more seeds and values in a store, with the bits of one sweep of the whole."""

import dataclasses
import json
import math
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr
import zarr

import jaxdp
from jaxdp.simulation import Run, sweep
from jaxdp.simulation.store import processor
from jaxdp.simulation.store.inspection import describe
from jaxdp.simulation.store.locks import share_lock
from jaxdp.simulation.store.metadata import METADATA
from tests.lazily import Lazy
from tests.simulation import store_worker
from tests.simulation.growing import KEY, LARGE, SMALL, as_before_checksums, content, run
from tests.simulation.processes import REPOSITORY, finish, start, wait_for


def planted(store: Path, value: float) -> None:
    """Replaces every stored result by another."""
    array = zarr.open_array(store / "x", mode="r+")
    array[...] = np.full(array.shape, value, np.float32)


def test_what_is_there_is_not_computed_again(tmp_path):
    store = tmp_path / "s.zarr"
    sweep(run, **SMALL(), store=store)
    planted(store, 7.0)
    grown = sweep(run, **{**SMALL(), "num_seeds": 9}, store=store, grow=True)
    assert (grown.x.isel(seed=slice(6)) == 7.0).all()
    assert grown.x.isel(seed=slice(6, None)).equals(
        sweep(run, **{**SMALL(), "num_seeds": 9}).x.isel(seed=slice(6, None))
    )
    with pytest.raises(ValueError, match=r"store must have the bits that .* where x of 4 lanes differs"):
        sweep(run, **LARGE(), store=store, grow=True)  # more values: a tile is compared


REFUSED = Lazy(
    {
        "another program": lambda: (lambda: run(2.0), {}, r"programs\.program\.program differs"),
        "another output": lambda: (lambda: run(parts=3), {}, r"coords\.part is \[0, 1\] there, \[0, 1, 2\] here"),
        "another key": lambda: (run, {"key": jax.random.key(1)}, r"key\.data is \[0, 0\] there, \[0, 1\] here"),
        "another tile": lambda: (run, {"tile_size": 8}, "tile_size is 16 there, 8 here"),
        "fewer seeds": lambda: (run, {"num_seeds": 5}, "num_seeds is 6 there, 5 here"),
        "a value that is gone": lambda: (run, {"axes": {"a": [0.5, 1.0, 2.0]}}, r"axes\.a has 3\.0 there and not here"),
        "no value": lambda: (run, {"axes": {"a": [1.0, 3.0, 1.0]}}, "axes must not repeat a value"),
    }
)


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_not_be_one_sweep_is_refused_and_nothing_is_written(tmp_path, case):
    build, changed, message = REFUSED[case]
    store = tmp_path / "s.zarr"
    sweep(run, **SMALL(), store=store)
    before = content(store)
    with pytest.raises(ValueError, match=message):
        sweep(build, **{**LARGE(), **changed}, store=store, grow=True)
    with pytest.raises(ValueError, match="got") as refusal:
        sweep(build, **{**LARGE(), **changed}, store=store)
    assert "grow=True" not in str(refusal.value)  # advice that would be refused
    assert content(store) == before


def test_another_processor_is_refused(tmp_path, monkeypatch):
    store = tmp_path / "s.zarr"
    sweep(run, **SMALL(), store=store)
    monkeypatch.setattr(processor, "host_processor", lambda: "another-model avx")
    with pytest.raises(
        ValueError, match=r"store must be of a part of this sweep to grow, .* processor is .* there, ano"
    ):
        sweep(run, **LARGE(), store=store, grow=True)


def test_it_is_asked_for(tmp_path):
    store = tmp_path / "s.zarr"
    assert sweep(run, **SMALL(), store=store, grow=True).identical(sweep(run, **SMALL()))  # there was none
    with pytest.raises(
        ValueError,
        match=r"store must hold the same sweep, .*; grow=True keeps its results and adds the missing",
    ):
        sweep(run, **LARGE(), store=store)
    with pytest.raises(ValueError, match=r"num_seeds is 6 there, 5 here; overwrite=True replaces its results$"):
        sweep(run, **{**LARGE(), "num_seeds": 5}, store=store)
    with pytest.raises(ValueError, match="grow must be False without a store, got True"):
        sweep(run, **LARGE(), grow=True)
    with pytest.raises(ValueError, match="grow must be False with overwrite, got True"):
        sweep(run, **LARGE(), grow=True, overwrite=True, store=store)
    reordered: dict = {**SMALL(), "axes": {"a": [3.0, 1.0]}, "store": store}
    with pytest.raises(ValueError, match=r"axes\.a is \[1\.0, 3\.0\] there, \[3\.0, 1\.0\] here"):
        sweep(run, **reordered)
    assert sweep(run, **reordered, grow=True).identical(sweep(run, **{**reordered, "store": None}))


def test_an_unfinished_sweep_grows_again_and_again(tmp_path):
    store = tmp_path / "s.zarr"
    sweep(run, **SMALL(), store=store, process_index=1, num_processes=3)
    steps: list[dict] = [{"num_seeds": 7}, {**LARGE(), "num_seeds": 7}, {**LARGE(), "num_seeds": 40}]
    for changed in steps:
        found = sweep(run, **{**SMALL(), **changed}, store=store, grow=True, process_index=0, num_processes=2)
        assert "computed" in found  # the other share's
    last = {**SMALL(), **steps[-1]}
    assert sweep(run, **last, store=store).identical(sweep(run, **last))


def test_a_reader_sees_the_sweep_as_it_was_opened(tmp_path):
    store = tmp_path / "s.zarr"
    first = sweep(run, **SMALL(), store=store)
    second, opened = jaxdp.open(store), xr.open_zarr(store, chunks=None)
    sweep(run, **LARGE(), store=store, grow=True)
    small = sweep(run, **SMALL())
    assert first.identical(small)  # read now, with the file of metadata replaced
    assert opened.x.equals(small.x)
    shutil.rmtree(store)
    sweep(run, **LARGE(), store=store)
    with pytest.raises(OSError, match="was overwritten"):
        second.path.load()


@pytest.mark.filterwarnings("ignore:NaN in")
def test_values_of_every_kind(tmp_path):
    """Checks integers that floats join, truth values, text, and NaN, which is equal to nothing."""
    given = {
        "numbers": ([1, 2], [1, 0.5, 2, math.inf, math.nan]),
        "with nan": ([math.nan, 1.0], [1.0, 2.0, math.nan]),
        "text": (["one", "two"], ["a longer word", "two", "one"]),
        "truth": ([True], [False, True]),
        "truth that numbers join": ([True], [2.0, True, 0.5]),
        "single precision that double joins": ([np.float32(0.5)], [0.1, np.float32(0.5)]),
        "bytes that larger numbers join": ([np.int8(1)], [1000, np.int8(1), -3]),
    }

    def build() -> Run:
        def params(a):
            return np.float32(len(a) if isinstance(a, str) else a)

        return dataclasses.replace(run(), params=params)

    for name, (few_values, more_values) in given.items():
        store = tmp_path / name
        arguments: dict = {**SMALL(), "store": store}
        sweep(build, **{**arguments, "axes": {"a": few_values}})
        grown = sweep(build, **{**arguments, "axes": {"a": more_values}}, grow=True)
        assert grown.identical(sweep(build, **{**arguments, "axes": {"a": more_values}, "store": None})), name
        read = xr.open_zarr(store, chunks=None)
        assert set(map(str, read.a.values.tolist())) == set(map(str, grown.a.values.tolist())), name
        assert jaxdp.open(store).x.equals(grown.x), name


@pytest.mark.filterwarnings("ignore:NaN in")
def test_labels_that_a_store_has_no_room_for(tmp_path):
    """Checks that a coordinate can change its kind once, and that no number becomes a text that looks like it."""
    store = tmp_path / "s.zarr"
    arguments: dict = {**SMALL(), "store": store}
    sweep(run, **{**arguments, "axes": {"a": [np.int8(1), np.int8(2)]}})
    sweep(run, **{**arguments, "axes": {"a": [np.int8(1), np.int8(2), 300]}}, grow=True)
    before = content(store)
    with pytest.raises(
        ValueError, match=r"a type for a that holds the new values, .* where it is int64, for \[0\.5, 1\.0, "
    ):
        sweep(run, **{**arguments, "axes": {"a": [0.5, 1, 2, 300]}}, grow=True)
    assert content(store) == before

    other: dict = {**SMALL(), "store": tmp_path / "other"}
    build = dataclasses.replace(run(), params=lambda a: np.float32("nan" if a is None else a))
    sweep(build, **{**other, "axes": {"a": [math.nan]}})
    with pytest.raises(ValueError, match="where it is float64, for \\['None', 'nan'\\]"):
        sweep(build, **{**other, "axes": {"a": [None, math.nan]}}, grow=True)


def test_arrays_of_others_along_an_axis_that_grows(tmp_path):
    """Checks that nothing of the store could be read with another size of the same dimension beside it."""
    store = tmp_path / "s.zarr"
    first = sweep(run, **SMALL(), store=store)
    xr.Dataset({"mine": ("seed", np.arange(6.0)), "part_names": ("part", np.zeros(2))}).to_zarr(store, mode="a")
    before = content(store)
    with pytest.raises(ValueError, match=r"no arrays except the sweep's along seed to grow, .* with mine"):
        sweep(run, **{**SMALL(), "num_seeds": 9}, store=store, grow=True)
    assert content(store) == before
    assert jaxdp.open(store)[list(first.data_vars)].equals(sweep(run, **SMALL()))
    grown = sweep(run, **{**SMALL(), "axes": {"a": [1.0, 3.0, 4.0]}}, store=store, grow=True)  # along none of theirs
    assert (grown.mine == np.arange(6.0)).all()


@pytest.mark.parametrize("lost", [False, True])
def test_a_damaged_file_is_not_what_bits_are_compared_with(tmp_path, lost):
    store = tmp_path / "s.zarr"
    sweep(run, **SMALL(), store=store)
    file = store / "x" / "c" / "0" / "0"
    text = file.read_bytes()
    file.unlink()
    if not lost:
        file.write_bytes(text[:-3])
    with pytest.warns(RuntimeWarning, match=f"a chunk is damaged: {file} .*; it is computed again"):
        assert sweep(run, **LARGE(), store=store, grow=True).identical(sweep(run, **LARGE()))


def test_a_file_across_old_and_new_lanes_that_is_damaged(tmp_path):
    store = tmp_path / "s.zarr"
    sweep(run, **SMALL(), store=store)
    file = store / "x" / "c" / "0" / "1"  # seeds 4 and 5, and then 6 and 7
    file.write_bytes(file.read_bytes()[:-3])
    large = {**SMALL(), "num_seeds": 9}
    with pytest.warns(RuntimeWarning, match=f"a chunk is damaged: {file} cannot be read.*; it is computed again"):
        assert sweep(run, **large, store=store, grow=True).identical(sweep(run, **large))


def test_by_an_executor(tmp_path):
    store = tmp_path / "s.zarr"
    with ThreadPoolExecutor(2) as pool:
        sweep(run, **SMALL(), store=store, executor=pool)
        assert sweep(run, **LARGE(), store=store, grow=True, executor=pool).identical(sweep(run, **LARGE()))
        planted(store, 7.0)
        with pytest.raises(ValueError, match="store must have the bits"):
            sweep(
                run, **{**LARGE(), "axes": {"a": [0.5, 1.0, math.inf, 3.0, 4.0]}}, store=store, grow=True, executor=pool
            )


def test_the_store_says_which_part_came_when(tmp_path):
    store = tmp_path / "s.zarr"
    sweep(run, **SMALL(), store=store)
    assert "parts" not in describe(store)
    sweep(run, **LARGE(), store=store, grow=True)
    lines = describe(store).splitlines()
    first, second = lines[lines.index("parts") + 1 : lines.index("parts") + 3]
    assert first.endswith(": a 1.0, 3.0; seed 0 to 5; 12 lanes")
    assert second.endswith(": also a 0.5, inf; seed 6 to 8; 24 lanes")
    assert first.split()[0][:4] >= "2026"
    assert f"jax {jax.__version__}" in first


def test_a_store_of_a_version_that_could_not_grow(tmp_path):
    store = tmp_path / "s.zarr"
    sweep(run, **SMALL(), store=store)
    as_before_checksums(store, lost="parts")
    assert sweep(run, **LARGE(), store=store, grow=True).identical(sweep(run, **LARGE()))
    assert "at an unrecorded time: a 1.0, 3.0; seed 0 to 5; 12 lanes" in describe(store)
    assert "checksum" in zarr.open_group(store)["computed"].attrs


def test_a_store_that_has_no_checksum_is_read_and_gets_one(tmp_path):
    """Checks a call that is the only writer; readers that opened the store before go on."""
    store = tmp_path / "s.zarr"
    sweep(run, **SMALL(), store=store, process_index=0, num_processes=2)
    as_before_checksums(store)
    half = jaxdp.open(store)
    assert 0 < int(half.computed.sum()) < 12
    whole = sweep(run, **SMALL())
    assert sweep(run, **SMALL(), store=store, process_index=1, num_processes=2).identical(whole)
    assert "checksum" not in zarr.open_group(store)["computed"].attrs
    assert jaxdp.open(store).identical(whole)
    zarr.open_array(store / "a", mode="r+")[0] = 1.25  # nothing shows it
    assert jaxdp.open(store).a[0] == 1.25
    with pytest.warns(RuntimeWarning, match=f"labels are damaged: files in {store}/a; they are written again"):
        assert sweep(run, **SMALL(), store=store).identical(whole)
    assert "checksum" in zarr.open_group(store)["computed"].attrs
    assert half.load().drop_vars("computed").x.equals(whole.x)
    assert jaxdp.open(store).identical(whole)
    assert "12 of 12 lanes" in describe(store)
    assert sweep(run, **LARGE(), store=store, grow=True).identical(sweep(run, **LARGE()))


def test_a_store_that_has_no_checksum_and_a_layout_that_cannot_be(tmp_path):
    store = tmp_path / "s.zarr"
    sweep(run, **SMALL(), store=store)
    as_before_checksums(store)
    layout = str(zarr.open_group(store)["computed"].attrs["layout"])
    damaged = layout.replace('"chunk": [1, 4]', '"chunk": [1, 0]')
    assert damaged != layout
    root = store / METADATA
    root.write_text(root.read_text().replace(json.dumps(layout)[1:-1], json.dumps(damaged)[1:-1]))
    for action in (jaxdp.open, describe):
        with pytest.raises(
            ValueError, match=rf"^store must be as a sweep made it, got {store}, where {root} is damaged"
        ):
            action(store)


# ---- processes -------------------------------------------------------------------------------------------------------
def test_a_store_that_is_being_written_does_not_grow(tmp_path):
    store = tmp_path / "s.zarr"
    sweep(run, **SMALL(), store=store)
    with (
        share_lock(store, 1, 2),
        pytest.raises(BlockingIOError, match=r"being written by process .*; it can grow when"),
    ):
        sweep(run, **LARGE(), store=store, grow=True)
    assert sweep(run, **SMALL(), store=store).identical(sweep(run, **SMALL()))


def test_job_arrays_and_a_writer_at_work(tmp_path):
    store = tmp_path / "s.zarr"
    small: dict = {**store_worker.SWEEP, "num_seeds": 17, "key": KEY(), "store": store}
    sweep(store_worker.build, **small)
    writer = start(store, num_seeds=41, grow=True, pause=60)
    wait_for(writer, "lanes")
    with pytest.raises(BlockingIOError, match=rf"being written by process {writer.pid} on .*; it can grow when that"):
        sweep(store_worker.build, **{**small, "num_seeds": 50}, grow=True)
    writer.kill()
    writer.wait()
    both = [start(store, num_seeds=45, grow=True, process_index=index, num_processes=2) for index in range(2)]
    for process in both:
        code, out, err = finish(process)
        assert (code, out.splitlines()[-1:]) == (0, ["done"]), err
    large = {**small, "num_seeds": 45}
    assert sweep(store_worker.build, **large).identical(sweep(store_worker.build, **{**large, "store": None}))


def test_the_store_is_whole_at_every_step_while_it_grows(tmp_path):
    """Kills a process at every step."""
    sweep(run, **{**SMALL(), "axes": {"a": [1.0]}, "num_seeds": 3}, store=tmp_path / "small")
    sweep(run, **{**SMALL(), "axes": {"a": [0.5, 1.0]}}, store=tmp_path / "large")
    result = subprocess.run(
        [sys.executable, "-m", "tests.simulation.growth_steps", tmp_path, tmp_path / "small", tmp_path / "large"],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    careful, careless = told["careful"], told["careless"]
    assert careful["kept"] >= 4, told  # before the one step that counts
    assert careful["grown"] >= 20, told
    assert not careful["wrong"], told
    assert any("lost" in text for text in careless["wrong"]), told  # a wrong writer is caught
