"""Faults while a sweep writes its store: real processes, killed, interrupted, starved of disk and memory."""

import contextlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

import jax
import pytest
import xarray as xr

import jaxdp
from tests.simulation.processes import finish, start, wait_for
from tests.simulation.store_worker import NUM_LANES, SWEEP, build


@pytest.fixture(scope="module")
def expected():
    return jaxdp.sweep(build, **SWEEP, key=jax.random.key(0))


def resumed(store):
    return jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), store=store)


def kill_and_resume(store, kills, seed=0):
    """Kills writers at random moments: starting, creating the store, writing it. Returns the lanes seen on the way."""
    moments, seen = random.Random(seed), []
    for number in range(kills):
        process = start(store, pause=0.1)
        with contextlib.suppress(AssertionError):  # a kill may come late
            if number % 4:
                wait_for(process, "lanes")
            else:
                time.sleep(moments.uniform(0, 4.0))
        time.sleep(moments.uniform(0, 8.0 / kills))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if store.exists():
            found = xr.open_zarr(store, chunks=None)
            assert not (found.regret.isnull().any("round") & found.computed).any()  # marked means there
            seen.append(int(found.computed.sum()))
    return seen


def test_killed_at_random_moments_and_resumed(tmp_path, expected):
    seen = kill_and_resume(tmp_path / "s.zarr", kills=2)
    assert seen == sorted(seen)
    assert resumed(tmp_path / "s.zarr").identical(expected)


def test_killed_twenty_times_and_resumed(tmp_path, expected):
    seen = kill_and_resume(tmp_path / "s.zarr", kills=20)
    assert len(seen) > 10
    assert 0 < seen[len(seen) // 2] < NUM_LANES  # they were at work
    assert resumed(tmp_path / "s.zarr").identical(expected)
    assert not list((tmp_path / "s.zarr").rglob("*.partial"))


@pytest.mark.parametrize("count", [2, 3])
def test_processes_share_one_store(tmp_path, expected, count):
    store = tmp_path / "s.zarr"
    processes = [start(store, process_index=index, num_processes=count) for index in range(count)]
    for process in processes:
        code, out, err = finish(process)
        assert (code, out.splitlines()[-1:]) == (0, ["done"]), err
    found = xr.open_zarr(store)
    assert found.computed.all()
    assert resumed(store).identical(expected)


def test_two_processes_one_after_the_other(tmp_path, expected):
    arguments = {**SWEEP, "key": jax.random.key(0), "store": tmp_path / "s.zarr", "num_processes": 2}
    half = jaxdp.sweep(build, **arguments, process_index=0)
    assert 0.4 * NUM_LANES < int(half.computed.sum()) < 0.6 * NUM_LANES
    whole = jaxdp.sweep(build, **arguments, process_index=1)
    assert "computed" not in whole
    assert whole.identical(expected)


def test_a_second_writer_is_refused_until_the_first_dies(tmp_path, expected):
    store = tmp_path / "s.zarr"
    first = start(store, pause=60)
    wait_for(first, "lanes")
    with pytest.raises(BlockingIOError, match=rf"being written by process {first.pid} on .* \(share 0 of 1\)"):
        resumed(store)
    with pytest.raises(BlockingIOError, match="being written in 1 shares, but num_processes is 2"):
        jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), store=store, process_index=1, num_processes=2)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert resumed(store).identical(expected)


def test_control_c_finishes_cleanly_and_says_how_to_resume(tmp_path, expected):
    store = tmp_path / "s.zarr"
    process = start(store, pause=0.2)
    for _ in range(8):
        wait_for(process, "lanes")
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert code == -signal.SIGINT
    assert "done" not in out
    computed = int(xr.open_zarr(store).computed.sum())
    assert 0 < computed < NUM_LANES
    assert f"{computed} lanes of the sweep are safe in {store}; the same call computes the rest" in err
    assert not list(store.rglob("*.partial"))
    assert resumed(store).identical(expected)


def test_a_full_disk(tmp_path, expected):
    """Mounts a file system of 128 KiB in a namespace of its own, where the system lets users have one."""
    script = """
set -e
mount -t tmpfs -o size=128k tmpfs "$1"
if "$2" -m tests.simulation.store_worker "$1/s.zarr" '{}'; then exit 9; fi
cp -r "$1/s.zarr" "$3"
"""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["unshare", "-Urm", "true"], capture_output=True).returncode:
        pytest.skip("no mount namespaces here")
    result = subprocess.run(
        ["unshare", "-Urm", "bash", "-c", script, "bash", folder, sys.executable, tmp_path / "s.zarr"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "No space left on device" in result.stderr
    computed = int(xr.open_zarr(tmp_path / "s.zarr").computed.sum())
    assert 0 < computed < NUM_LANES
    assert f"{computed} lanes of the sweep are safe" in result.stderr
    assert resumed(tmp_path / "s.zarr").identical(expected)


@contextlib.contextmanager
def files_of_at_most(size):
    """Makes the system cut this process's writes short."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_cannot_be_written_whole(tmp_path, expected):
    """Limits files to a few bytes, once the store is made."""
    store = tmp_path / "s.zarr"
    jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), store=store, process_index=0, num_processes=40)
    before = int(xr.open_zarr(store).computed.sum())
    with files_of_at_most(40), pytest.raises(OSError, match="File too large") as caught:
        resumed(store)
    assert f"{before} lanes of the sweep are safe" in caught.value.__notes__[0]
    assert resumed(store).identical(expected)


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    store = tmp_path_factory.mktemp("complete") / "s.zarr"
    resumed(store)
    return store


@pytest.mark.parametrize("damage", ["flipped", "short", "empty", "gone"])
@pytest.mark.parametrize("name", ["regret", "computed"])
def test_a_damaged_chunk_is_named_and_computed_again(tmp_path, expected, complete, damage, name):
    store = tmp_path / "s.zarr"
    shutil.copytree(complete, store)
    file = sorted((store / name / "c").rglob("*"))[-1]
    raw = bytearray(file.read_bytes())
    if damage == "gone":
        file.unlink()
    else:
        raw[len(raw) // 2] ^= 4
        file.write_bytes({"flipped": raw, "short": raw[:-3], "empty": b""}[damage])
    done = []
    if (name, damage) == ("computed", "gone"):  # as if it had not been written
        found = jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), store=store, progress=done.append)
    else:
        with pytest.warns(
            RuntimeWarning, match=f"a chunk is damaged: {file} (cannot be read|is missing).*; it is computed again"
        ):
            found = jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), store=store, progress=done.append)
    assert found.identical(expected)
    assert sum(1 for _ in done) <= 3  # tiles: that chunk alone
