"""Tiles in memory: how many at a time, and what happens when they do not fit."""

import concurrent.futures
import threading
import time
import warnings
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from jaxdp import memory
from jaxdp.simulation import sweep
from jaxdp.simulation.store.chunks import chunks
from jaxdp.simulation.sweeps import plan, schedule, source
from jaxdp.simulation.sweeps.lanes import Compiled, Program
from jaxdp.simulation.sweeps.schedule import Lanes, Runner, max_tiles
from tests.simulation.growing import SMALL, run

TILE, LANES = 4, 50


class Machine:
    """Tiles that need memory: more than `fits` at a time run out of it."""

    def __init__(self, fits):
        self.fits, self.running, self.most = fits, 0, 0
        self.lock = threading.Lock()

    def __call__(self, point, seed):
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
            full = self.running > self.fits
        time.sleep(0.01)
        with self.lock:
            self.running -= 1
        if full:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 4096 bytes.")
        return {"lane": 10 * point + seed}


def runner(machine, at_a_time, monkeypatch):
    monkeypatch.setattr(schedule, "tiles_in_flight", lambda devices: at_a_time)
    return Runner(Compiled([machine], jax.devices("cpu")[:1], TILE, 4096), Lanes(10, LANES))


@pytest.mark.parametrize("size", [1, 3, 4, 11, 50])
def test_out_of_memory_halves_what_runs_at_a_time_and_goes_on(monkeypatch, size):
    machine = Machine(fits=2)
    found, done = runner(machine, 8, monkeypatch), []
    with pytest.warns(RuntimeWarning, match="memory ran out with .* tiles at once; continuing with"):
        parts = list(found.chunks(chunks((), (LANES,), (size,)), done.append))
    assert machine.most > 2
    assert found.at_a_time <= 2
    assert sum(done) == LANES
    assert np.concatenate([arrays["lane"] for _, arrays in parts]).tolist() == list(range(LANES))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(found.chunks(chunks((), (LANES,), (size,)), done.append))


def test_a_single_tile_that_does_not_fit(monkeypatch):
    found = runner(Machine(fits=0), 4, monkeypatch)
    with (
        pytest.warns(RuntimeWarning, match="memory ran out"),
        pytest.raises(
            MemoryError, match=r"a tile of 4 lanes does not fit in memory .* tile_size=2 is the largest that should"
        ),
    ):
        list(found.chunks(chunks((), (LANES,), (10,)), lambda lanes: None))


def test_other_errors_are_not_taken_for_memory(monkeypatch):
    def broken(point, seed):
        raise jax.errors.JaxRuntimeError("INTERNAL: something else")

    with pytest.raises(jax.errors.JaxRuntimeError, match="something else"):
        list(runner(broken, 4, monkeypatch).chunks(chunks((), (LANES,), (10,)), lambda lanes: None))


def test_neighbouring_chunks_share_a_tile(monkeypatch):
    calls = []

    def tile(point, seed):
        calls.append(point)
        return {"lane": 10 * point + seed}

    list(runner(tile, 2, monkeypatch).chunks(chunks((), (LANES,), (10,)), lambda lanes: None))
    assert len(calls) == -(-LANES // TILE)


def test_other_work_is_done_while_a_tile_is_not(monkeypatch):
    steps = []

    def tile(point, seed):
        while len(steps) < 3:  # waits for the other work
            time.sleep(0.001)
        return {"lane": 10 * point + seed}

    def work_until_done(awaited):
        while len(steps) < 3:
            assert not awaited.done()
            steps.append(1)

    ready = runner(tile, 2, monkeypatch)
    list(ready.chunks(chunks((), (LANES,), (10,)), lambda lanes: None, work_until_done))
    assert len(steps) == 3


def test_tiles_that_were_started_before_are_not_run_again(monkeypatch):
    calls, requested = [], chunks((), (LANES,), (10,))

    def tile(point, seed):
        calls.append(point)
        return {"lane": 10 * point + seed}

    ready = runner(tile, 2, monkeypatch)
    started = ready.start(requested)
    concurrent.futures.wait(started.running)
    assert len(calls) == 4  # twice the number of tiles at a time
    parts = list(ready.chunks(requested, lambda lanes: None, started=started))
    assert np.concatenate([arrays["lane"] for _, arrays in parts]).tolist() == list(range(LANES))
    assert len(calls) == -(-LANES // TILE)
    assert started.running == []


@pytest.mark.parametrize(("free", "expected"), [(10**9, 6), (4096 * 4, 3), (4096, 1), (None, 6)])
def test_free_memory_says_how_many_tiles_run_at_a_time(monkeypatch, free, expected):
    monkeypatch.setattr(schedule, "free_bytes", lambda device: free)
    monkeypatch.setattr(schedule, "tiles_in_flight", lambda devices: 6)
    assert max_tiles(Compiled([], jax.devices("cpu")[:1], TILE, 4096)) == expected


def test_a_tile_that_is_known_not_to_fit_is_not_run(monkeypatch):
    compiled = Compiled([], jax.devices("cpu")[:1], TILE, 3 * 2**20)
    monkeypatch.setattr(schedule, "free_bytes", lambda device: 2 * 2**20)
    with pytest.raises(
        MemoryError,
        match=r"^a tile of 4 lanes must fit .* 2 MiB are free, got 3 MiB; tile_size=2 is the largest that should",
    ):
        Runner(compiled, Lanes(10, LANES))
    assert schedule.smaller_tile(100, 10**18, 10**9) == "make the run smaller", "one lane does not fit either"
    done = []
    monkeypatch.setattr(schedule, "free_bytes", lambda device: 10)
    with pytest.raises(MemoryError, match="a tile of 16 lanes must fit in memory"):
        sweep(run, **SMALL(), progress=done.append)
    assert not done


@pytest.mark.parametrize(("free", "lanes"), [(0, 0), (4 * 16, 1), (None, 2 * LANES)])
def test_free_memory_limits_the_lanes_of_a_chunk(free, lanes, monkeypatch):
    monkeypatch.setattr(source, "free_host_bytes", lambda: free)
    planned: Any = SimpleNamespace(lane_bytes=16, lanes=Lanes(1, 2 * LANES))
    assert source.fitting_lanes(planned, part=4) == lanes


def test_results_that_do_not_fit_are_refused_before_anything_is_compiled(monkeypatch, tmp_path):
    monkeypatch.setattr(Program, "compile", None)
    monkeypatch.setattr(plan, "free_host_bytes", lambda: 2**30)
    many = {**SMALL(), "num_seeds": 10**8}
    for store, text in [
        (None, "4,5.. MiB; .*keep them on disk by store="),
        (tmp_path / "s.zarr", "2,6.. MiB; use fewer seeds"),
    ]:
        with pytest.raises(
            MemoryError, match=f"^results of 200,000,000 lanes must fit in .* 1,024 MiB are free, got {text}"
        ):
            sweep(run, **many, store=store)
    assert not (tmp_path / "s.zarr").exists()


@pytest.mark.parametrize("version", [1, 2])
def test_limits_of_this_process_and_of_what_is_around_it(monkeypatch, tmp_path, version):
    own = tmp_path / "own"
    own.write_text("3:cpu:/else\n4:memory:/job/step\n0::/\n" if version == 1 else "0::/job/step\n")
    files = {1: ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"), 2: ("", "memory.max", "memory.current")}
    folder, limit, usage = files[version]
    for group, allowed, used in [("", "max", 9), ("job", 1000, 300), ("job/step", 900, 100), ("else", 5, 0)]:
        (tmp_path / folder / group).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / group / limit).write_text(f"{allowed}\n")
        (tmp_path / folder / group / usage).write_text(f"{used}\n")
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    monkeypatch.setattr(memory, "OWN_CGROUPS", own)
    assert memory.free_host_bytes() == 700
    (tmp_path / folder / "job" / "step" / usage).write_text("850")
    assert memory.free_host_bytes() == 50
    total = "total_" if version == 1 else ""  # files that are cached there can be given up
    (tmp_path / folder / "job" / "step" / "memory.stat").write_text(
        f"anon 600\n{total}inactive_file 150\n{total}active_file 100\nshmem 3\n"
    )
    assert memory.free_host_bytes() == 300


def test_an_unreadable_list_of_control_groups_means_the_outermost(monkeypatch, tmp_path):
    own = tmp_path / "own"
    own.write_text("no colons\n")
    (tmp_path / "memory.max").write_text("1000")
    (tmp_path / "memory.current").write_text("300")
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    monkeypatch.setattr(memory, "OWN_CGROUPS", own)
    assert memory.free_host_bytes() == 700


def test_this_machine_has_memory():
    free = memory.free_host_bytes()
    assert free is None or 2**20 < free < 2**50
    assert memory.is_out_of_memory(MemoryError())
    assert not memory.is_out_of_memory(ValueError("no"))
