"""A store that is moved while it is written, and one with a damaged chunk that is being computed again."""

import functools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.simulation import Run, sweep
from tests.simulation.processes import REPOSITORY

SWEEP: Callable[[], dict] = functools.cache(
    lambda: {"axes": {"a": [1.0, 2.0]}, "num_seeds": 16, "tile_size": 4, "chunk_size": 4, "key": jax.random.key(0)}
)


def run() -> Run:
    def simulate(key, a):
        draw = jax.random.normal(key, dtype=jnp.float32) + a
        return {"x": draw, "count": draw.astype(jnp.int32), "path": jnp.stack([draw, draw])}

    return Run(
        simulate=simulate,
        params=lambda a: np.float32(a),
        guarantee=lambda a: {},
        dims={"x": (), "count": (), "path": ("part",)},
    )


@pytest.mark.parametrize("what", ["parent", "store", "removed", "replaced"])
def test_a_store_that_is_moved_while_it_is_written(tmp_path, what):
    (tmp_path / "runs").mkdir()
    store, moved = tmp_path / "runs" / "s.zarr", tmp_path / "moved"
    done = []

    def move(now):
        if now.lanes > 12 and not done:
            done.append(now.lanes)
            while int(jaxdp.open(store).computed.sum()) < now.lanes - 4:  # so that no file is being written
                time.sleep(0.01)
            if what == "parent":
                store.parent.rename(moved)
            elif what == "store":
                store.rename(moved)
            elif what == "removed":
                shutil.rmtree(store)
            else:
                store.rename(moved)
                shutil.copytree(moved, store)

    message = rf"^store must stay at its path while a sweep writes it, but {store} was moved, removed or replaced; if"
    with pytest.raises(OSError, match=message) as caught:
        sweep(run, **SWEEP(), store=store, progress=move)
    assert not any("safe in" in note for note in getattr(caught.value, "__notes__", ()))  # not at that path
    assert store.exists() == (what == "replaced")  # nothing was written beside the store
    whole = sweep(run, **SWEEP())
    if what != "removed":
        there = moved / "s.zarr" if what == "parent" else moved
        before = int(jaxdp.open(there).computed.sum())
        assert 0 < before < 32
        assert sweep(run, **SWEEP(), store=there).identical(whole)


def test_what_a_moved_store_left_behind_is_named(tmp_path):
    """Leaves the files as earlier versions did."""
    store = tmp_path / "s.zarr"
    sweep(run, **SWEEP(), store=store)
    (store / "zarr.json").unlink()
    for overwrite in (False, True):
        with pytest.raises(
            ValueError, match=r"store must be complete, got .*s\.zarr, which has results but no description"
        ):
            sweep(run, **SWEEP(), store=store, overwrite=overwrite)
    assert (store / "x" / "c").exists()


def damaged(store, damage: str) -> None:
    """Damages the second chunk of a store."""
    for name in ("computed",) if damage == "mark" else ("x", "path"):
        file = sorted(file for file in (store / name / "c").rglob("*") if file.is_file())[1]
        if damage == "gone":
            file.unlink()
        else:
            raw = bytearray(file.read_bytes())
            raw[len(raw) // 2] ^= 4
            file.write_bytes(raw)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")
def test_a_writer_that_is_killed_at_every_step_while_it_repairs_a_chunk(tmp_path):
    sweep(run, **SWEEP(), store=tmp_path / "flipped")
    for name in ("gone", "mark", "careless"):
        shutil.copytree(tmp_path / "flipped", tmp_path / name)
    for name in ("flipped", "gone", "mark", "careless"):
        damaged(tmp_path / name, name)
    stores = [tmp_path / name for name in ("flipped", "gone", "mark", "careless")]
    result = subprocess.run(
        [sys.executable, "-m", "tests.simulation.store_steps", tmp_path / "copies", *stores],
        cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    told = json.loads(result.stdout)
    assert all(one["marked"] == 32 and one["steps"] >= 8 for one in told.values()), told  # files are opened and renamed
    assert any("marked and not there" in text for text in told.pop("careless")["wrong"])  # a wrong writer is caught
    assert not any(one["wrong"] for one in told.values()), told
