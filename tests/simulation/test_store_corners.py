"""Corners of the store: outputs that are all zero, names that are no folders, claims, links, neighbours."""

import dataclasses
import errno
import functools
import io
import json
import os
import pickle
import shutil
import signal
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdp
from jaxdp.simulation import Run, sweep
from jaxdp.simulation.store.inspection import describe
from jaxdp.simulation.store.locks import lock_folder, share_lock
from tests.simulation.growing import as_before_checksums

CLAIM = jaxdp.Guarantee.pure(0.5, trust_model="local", privacy_unit="one label", argument="for a test")
SWEEP: Callable[[], dict] = functools.cache(
    lambda: {"axes": {"a": [1.0, 2.0]}, "num_seeds": 6, "tile_size": 4, "key": jax.random.key(0)}
)


def run(
    simulate=lambda key, a: {"x": jax.random.normal(key, dtype=jnp.float32) + a}, dims=None, params: Any = np.float32
):
    return Run(
        simulate=simulate,
        params=lambda a: params(a),
        guarantee=lambda a: {"walk": CLAIM},
        dims={"x": ()} if dims is None else dims,
    )


@pytest.mark.parametrize(
    "value", [np.int32(0), np.bool_(False), np.float32(np.nan), np.zeros((2, 0), np.float32)], ids=str
)
def test_outputs_that_look_empty_are_kept(tmp_path, value):
    def build():
        return run(lambda key, a: {"x": jnp.asarray(value)}, {"x": ("u", "v")[: np.ndim(value)]})

    done = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="NaN in x of 12 of 12 lanes")
        first = sweep(build, **SWEEP(), store=tmp_path / "s.zarr").load()
        again = sweep(build, **SWEEP(), store=tmp_path / "s.zarr", progress=done.append)
    assert again.identical(first)
    assert done == []
    assert "damaged" not in describe(tmp_path / "s.zarr")
    if value.size:
        next(file for file in (tmp_path / "s.zarr" / "x" / "c").rglob("*") if file.is_file()).unlink()
        assert "damaged" in describe(tmp_path / "s.zarr")


def test_the_old_store_stays_until_the_new_one_is_made(tmp_path):
    store = tmp_path / "s.zarr"
    before = sweep(run, **SWEEP(), store=store).load()
    for build, more in {
        lambda: run(lambda key, a: {"computed": a}, {"computed": ()}): {},
        lambda: run(lambda key, a: {"x": a.astype(jnp.bfloat16)}): {},
        run: {"chunk_size": 0},
    }.items():
        with pytest.raises(ValueError, match="must"):
            sweep(build, **SWEEP(), **more, store=store, overwrite=True)
        assert sweep(run, **SWEEP(), store=store).identical(before)

    def fails(key, a):
        raise MemoryError("as if")

    broken = dataclasses.replace(run(), simulate=fails)
    with pytest.raises(MemoryError):
        sweep(lambda: broken, **SWEEP(), store=store, overwrite=True)
    assert sweep(run, **SWEEP(), store=store).identical(before)


def test_neighbours_of_a_store_are_left_alone(tmp_path):
    for name in ("s.zarr.unfinished", "s.zarr.replaced"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine").write_text("mine")
    sweep(run, **SWEEP(), store=tmp_path / "s.zarr")
    (tmp_path / "s.zarr" / "mine.partial").write_text("mine")
    sweep(run, **SWEEP(), store=tmp_path / "s.zarr")
    assert (tmp_path / "s.zarr" / "mine.partial").exists()
    sweep(run, **SWEEP(), store=tmp_path / "s.zarr", overwrite=True)
    assert (tmp_path / "s.zarr.unfinished" / "mine").exists()
    assert (tmp_path / "s.zarr.replaced" / "mine").exists()


def other_dims():
    simulate = run().simulate
    return [
        run(lambda key, a: {"x": simulate(key, a)["x"] * jnp.ones((2, 2), jnp.float32)}, {"x": dims})
        for dims in (("u", "v"), ("v", "u"))
    ]


def test_labels_and_claims_are_part_of_what_a_store_is(tmp_path):
    first, second = other_dims()
    sweep(lambda: first, **SWEEP(), store=tmp_path / "dims.zarr")
    with pytest.raises(ValueError, match=r"outputs\.x is .*'u', 'v'.* there, .*'v', 'u'.* here"):
        sweep(lambda: second, **SWEEP(), store=tmp_path / "dims.zarr")
    sweep(run, **SWEEP(), store=tmp_path / "claim.zarr")
    corrected = dataclasses.replace(run(), guarantee=lambda a: {"walk": dataclasses.replace(CLAIM, epsilon=8.0)})
    with pytest.raises(ValueError, match=r"program\.guarantees differ \(the privacy claims\)"):
        sweep(lambda: corrected, **SWEEP(), store=tmp_path / "claim.zarr")


def test_static_parts_of_params_do_not_refuse_the_same_sweep(tmp_path):
    """Puts a function among the params, which prints with its address, another one in every process."""

    def build():
        def scaled(x):
            return 2 * x

        return run(
            lambda key, params: {"x": params["f"](params["a"])},
            params=lambda a: {"f": jax.tree_util.Partial(scaled), "a": np.float32(a)},
        )

    single = {**SWEEP(), "axes": {"a": [1.0]}}  # the functions of two grid points are not the same
    first = sweep(build, **single, store=tmp_path / "s.zarr")
    assert sweep(build, **single, store=tmp_path / "s.zarr").identical(first)


def test_callbacks_are_refused(tmp_path):
    def simulate(key, a):
        shape = jax.ShapeDtypeStruct((), jnp.float32)
        return {"x": jax.pure_callback(lambda x: np.float32(x), shape, a, vmap_method="sequential")}

    assert sweep(lambda: run(simulate), **SWEEP()).x.shape == (2, 6)
    with pytest.raises(ValueError, match=r"build must not call back to Python in a sweep with a store .*pure_callback"):
        sweep(lambda: run(simulate), **SWEEP(), store=tmp_path / "s.zarr")


@pytest.mark.parametrize("name", ["m/b", "/lead", "a\\b", "zarr.json", ".", "..", "", "computed"])
def test_names_that_are_no_folders(tmp_path, name):
    with pytest.raises(ValueError, match="outputs and axes must not be named"):
        sweep(lambda: run(lambda key, a: {name: a}, {name: ()}), **SWEEP(), store=tmp_path / "s.zarr")
    assert not (tmp_path / "s.zarr").exists()


def test_whole_numbers_of_any_type(tmp_path):
    expected = sweep(run, **SWEEP())
    for number in (float, np.int64):
        numbers: dict = {"num_seeds": number(6), "tile_size": number(4), "chunk_size": number(5)}
        found = sweep(run, **{**SWEEP(), **numbers}, store=tmp_path / "s.zarr")
        assert found.identical(expected)
        assert sweep(run, **{**SWEEP(), **numbers}).identical(expected)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"overwrite": "no"}, "overwrite must be True or False, got 'no'"),
        ({"progress": "bar"}, "progress must be True, False or a function, got 'bar'"),
        ({"store": ""}, "store must be a path, got ''"),
        ({"store": 5}, "store must be a path, got 5"),
        ({"store": Path("s3://bucket/runs")}, "store must be a path in a file system, .* got s3:/bucket/runs"),
        ({"store": "/"}, "store must be a folder with a name, got /"),
    ],
)
def test_wrong_arguments(tmp_path, wrong, message):
    with pytest.raises(ValueError, match=message):
        sweep(run, **{**SWEEP(), "store": tmp_path / "s.zarr", **wrong})
    assert not list(tmp_path.iterdir())


def test_a_link_to_a_store_is_the_store(tmp_path):
    (tmp_path / "link.zarr").symlink_to(tmp_path / "s.zarr")
    first = sweep(run, **SWEEP(), store=tmp_path / "link.zarr").load()
    assert (tmp_path / "s.zarr").is_dir()
    with share_lock(tmp_path / "s.zarr", 0, 1), pytest.raises(BlockingIOError, match="being written"):
        sweep(run, **SWEEP(), store=tmp_path / "link.zarr")
    assert sweep(run, **SWEEP(), store=tmp_path / "link.zarr", overwrite=True).identical(first)
    assert (tmp_path / "link.zarr").is_symlink()


def test_a_relative_path_keeps_its_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    found = sweep(run, **SWEEP(), store="s.zarr", chunk_size=4, progress=lambda now: os.chdir(tmp_path / "other"))
    assert found.identical(sweep(run, **SWEEP()))
    assert (tmp_path / "s.zarr").is_dir()


def test_what_went_wrong_is_told_even_if_the_store_is_gone(tmp_path):
    def interrupt(now):
        (tmp_path / "s.zarr").rename(tmp_path / "gone.zarr")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(run, **SWEEP(), store=tmp_path / "s.zarr", chunk_size=4, progress=interrupt)


def test_going_on_after_an_overwrite_is_another_call(tmp_path):
    def interrupt(now):
        if now.lanes > 6:
            raise KeyboardInterrupt

    for overwrite, text in [(False, "the same call computes"), (True, "the same call without overwrite computes")]:
        with pytest.raises(KeyboardInterrupt) as caught:
            sweep(run, **SWEEP(), store=tmp_path / "s.zarr", chunk_size=4, overwrite=overwrite, progress=interrupt)
        assert str(caught.value).startswith("interrupted: ")
        assert text in str(caught.value)
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert [frame.name for frame in frames] == ["test_going_on_after_an_overwrite_is_another_call", "sweep"]
        assert caught.value.__suppress_context__


def test_an_interruption_without_a_store(capsys):
    def interrupt(now):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"^interrupted after \d+ of 12 lanes, which are lost; a sweep with"):
        sweep(run, **SWEEP(), progress=interrupt)


def unwritable(monkeypatch, folder, number):
    """Makes the system refuse every change of files in a folder, and of the folder."""
    real_open, real_mkdir = io.open, os.mkdir

    def refuse(path, *arguments, **keywords):
        raise OSError(number, os.strerror(number), str(path))

    def opened(file, mode="r", *arguments, **keywords):
        is_inside = isinstance(file, str | os.PathLike) and folder in Path(file).parents
        return (refuse if is_inside and set(mode) & set("wax+") else real_open)(file, mode, *arguments, **keywords)

    def made(path, *arguments, **keywords):
        is_new = folder in Path(path).parents and not os.path.exists(path)
        return (refuse if is_new else real_mkdir)(path, *arguments, **keywords)

    monkeypatch.setattr(io, "open", opened)
    monkeypatch.setattr(os, "mkdir", made)


def test_a_finished_store_on_a_read_only_file_system_is_asked_for(tmp_path, monkeypatch):
    first = sweep(run, **SWEEP(), store=tmp_path / "s.zarr").load()
    sweep(run, **SWEEP(), store=tmp_path / "half.zarr", process_index=0, num_processes=2, chunk_size=4)
    for name in ("s.zarr", "half.zarr"):
        shutil.rmtree(lock_folder(tmp_path / name))
    unwritable(monkeypatch, tmp_path, errno.EROFS)
    done = []
    for grow in (False, True):
        assert sweep(run, **SWEEP(), store=tmp_path / "s.zarr", grow=grow, progress=done.append).identical(first)
    assert not done
    with pytest.raises(ValueError, match=r"store must hold the same sweep, got .* num_seeds is 6 there, 7 here"):
        sweep(run, **{**SWEEP(), "num_seeds": 7}, store=tmp_path / "s.zarr")
    with pytest.raises(
        OSError, match=r"in a writable folder to grow, got .*s\.zarr, where num_seeds is 6 there, 7 here$"
    ):
        sweep(run, **{**SWEEP(), "num_seeds": 7}, store=tmp_path / "s.zarr", grow=True)
    with pytest.raises(ValueError, match=r"must hold the same sweep, got .*; overwrite=True replaces its results$"):
        sweep(run, **{**SWEEP(), "num_seeds": 5}, store=tmp_path / "s.zarr", grow=True)
    with pytest.raises(OSError, match=rf"in a writable folder, got {tmp_path}/half.zarr, where \d lanes are mis"):
        sweep(run, **SWEEP(), store=tmp_path / "half.zarr")


def test_a_folder_that_cannot_be_written_is_named_as_it_was_given(tmp_path, monkeypatch):
    unwritable(monkeypatch, tmp_path, errno.EACCES)
    store = tmp_path / "runs" / "s.zarr"
    with pytest.raises(OSError, match=rf"^store must be in a writable folder, got {store}: Permission denied$"):
        sweep(run, **SWEEP(), store=store)


@pytest.mark.parametrize("content", [None, "", "{", "{}"])
def test_the_file_of_an_array_is_restored(tmp_path, content):
    store = tmp_path / "s.zarr"
    first = sweep(run, **SWEEP(), store=store).load()
    for name in ("x", "computed", "seed"):
        file = store / name / "zarr.json"
        before = json.loads(file.read_text())
        file.unlink() if content is None else file.write_text(content)
        assert jaxdp.open(store).identical(first)
        assert sweep(run, **SWEEP(), store=store).identical(first)
        assert json.loads(file.read_text()) == before


def test_a_store_with_a_damaged_description_keeps_its_tile_size(tmp_path):
    store = tmp_path / "s.zarr"
    first = sweep(run, **SWEEP(), store=store).load()
    (store / "zarr.json").write_text("{")
    with pytest.warns(RuntimeWarning, match=r"zarr\.json was damaged .* it is written again"):
        assert sweep(run, **{**SWEEP(), "tile_size": None}, store=store).identical(first)


def test_unreadable_marks_without_checksums_do_not_count(tmp_path):
    """Changes the store to one of an earlier version, whose files have no checksums."""
    store = tmp_path / "s.zarr"
    sweep(run, **SWEEP(), store=store, chunk_size=6)
    as_before_checksums(store)
    for file in store.rglob("*"):
        if file.name == "zarr.json":
            text = json.dumps(json.loads(file.read_text()))
            file.write_text(text.replace(', {"name": "crc32c"}', ""))
        elif file.is_file():
            file.write_bytes(file.read_bytes()[:-4])
    assert jaxdp.open(store).equals(sweep(run, **SWEEP()))
    file = next(file for file in (store / "computed" / "c").rglob("*") if file.is_file())
    file.write_bytes(file.read_bytes()[:-3])
    assert describe(store).startswith(f"{store}: 6 of 12 lanes computed")
    assert "computed" in jaxdp.open(store)


def test_a_store_whose_two_descriptions_are_damaged_is_refused_and_not_replaced(tmp_path):
    store = tmp_path / "s.zarr"
    sweep(run, **SWEEP(), store=store)
    (store / "zarr.json").write_text("{")
    (store / "x" / "zarr.json").write_text("{")
    for overwrite in (False, True):
        with pytest.raises(ValueError, match=r"got .*s\.zarr, where .*zarr\.json is damaged .* move the store away"):
            sweep(run, **SWEEP(), store=store, overwrite=overwrite)
    assert (store / "x" / "c").exists()


def test_processes_that_start_together_do_not_refuse_one_another(tmp_path):
    """Starts with a store that one process once wrote, whose lock file is still there."""
    store, refused = tmp_path / "s.zarr", []
    with share_lock(store, 0, 1):
        pass
    assert (lock_folder(store) / "split-1").exists()

    def claim(index):
        for _ in range(100):
            try:
                with share_lock(store, index, 4):
                    pass
            except BlockingIOError as error:
                refused.append(error)

    threads = [threading.Thread(target=claim, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not refused


def test_results_that_were_not_read_before_an_overwrite_are_refused(tmp_path):
    store = tmp_path / "s.zarr"
    first = sweep(run, **SWEEP(), store=store)
    second = sweep(run, **{**SWEEP(), "key": jax.random.key(1)}, store=store, overwrite=True)
    with pytest.raises(OSError, match=r"results must still be where they were written, but .*s.zarr was overwritten"):
        first.load()
    copy = pickle.loads(pickle.dumps(second))
    second.load()
    shutil.rmtree(store)
    with pytest.raises(OSError, match=r"but .*s.zarr is gone"):
        copy.load()


def test_a_part_of_the_results_is_no_store(tmp_path):
    store, part = tmp_path / "s.zarr", tmp_path / "part.zarr"
    results = sweep(run, **SWEEP(), store=store)
    for saved in (results, xr.open_zarr(store).isel(seed=slice(4)), xr.open_zarr(store).chunk(seed=1)):
        for variable in saved.variables.values():
            variable.encoding = {}
        saved.to_zarr(part, mode="w")
        with pytest.raises(ValueError, match=r"store must be .*, got .*part.zarr"):
            sweep(run, **SWEEP(), store=part)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")
def test_a_forked_child_does_not_hold_a_lock_of_its_parent(tmp_path):
    store = tmp_path / "s.zarr"
    read, write = os.pipe()
    with share_lock(store, 0, 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # JAX's threads
            child = os.fork()
        if child == 0:
            os.write(write, b"x")
            signal.pause()
    try:
        os.read(read, 1)
        with share_lock(store, 0, 1):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
