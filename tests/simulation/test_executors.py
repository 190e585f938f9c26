"""Sweeps on other processes: a pool, and a Dask cluster of real workers; some of them die."""

import contextlib
import itertools
import os
import signal
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdp
from jaxdp.simulation import Run
from jaxdp.simulation.store.chunks import chunks
from jaxdp.simulation.sweeps import worker
from jaxdp.simulation.sweeps.plan import Plan
from tests.simulation.store_worker import NUM_LANES, SWEEP, build


@pytest.fixture(scope="module")
def expected():
    return jaxdp.sweep(build, **SWEEP, key=jax.random.key(0))


@contextlib.contextmanager
def dask_client(*, processes):
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=processes, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def pool():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


def test_a_dask_cluster_gives_the_same_bits(expected):
    """Uses threads here; the next test has processes."""
    with dask_client(processes=False) as client, client.get_executor() as executor:
        assert jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), executor=executor).identical(expected)


def test_a_dask_worker_is_killed_and_its_chunks_are_retried(expected, tmp_path):
    with dask_client(processes=True) as client:
        kill_a_worker(client, expected, tmp_path / "s.zarr")
    again = jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), store=tmp_path / "s.zarr")  # it is the same sweep here
    assert again.identical(expected)


def kill_a_worker(client, expected, store):
    workers = list(client.run(os.getpid).values())
    killed = threading.Event()

    def kill(progress):
        if progress.lanes > NUM_LANES / 4 and not killed.is_set():
            os.kill(workers[0], signal.SIGKILL)
            killed.set()
        time.sleep(0.05)

    with client.get_executor() as executor:
        found = jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), executor=executor, store=store, progress=kill)
    assert killed.is_set()
    assert found.identical(expected)
    assert workers[0] not in client.run(os.getpid).values()


def test_frames_that_a_profiler_holds_do_not_change_the_program():
    """Dask holds sampled frames of the threads that run tasks; traced there, programs get inputs that nobody uses."""
    plan = Plan(
        build, SWEEP["axes"], SWEEP["static_axes"], num_seeds=2, key=jax.random.key(0), tile_size=4, devices=None
    )
    packed, frames = worker.pack(plan), []

    def hold(frame, event, argument):
        if "partial_eval" in frame.f_code.co_filename:
            frames.append(frame)

    sys.setprofile(hold)  # of this thread alone, as Dask samples the task's thread alone
    try:
        worker.describe(packed)
    finally:
        sys.setprofile(None)
    assert worker.describe(packed)[0]["programs"] == plan.identity()["programs"]


def test_a_pool_of_processes(pool, expected):
    assert jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), executor=pool).identical(expected)


def test_a_pool_of_threads(expected):
    with ThreadPoolExecutor(2) as threads:
        assert jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), executor=threads).identical(expected)


def products() -> Run:
    return Run(
        simulate=lambda key, params: {"value": jnp.dot(*jax.random.normal(key, (2, 3), np.float32)) / params},
        params=lambda *, scale: np.float32(scale),
        guarantee=lambda **_: {},
        dims={"value": ()},
    )


def test_options_of_a_with_block_reach_the_workers():
    arguments: dict = {"axes": {"scale": [1.0]}, "num_seeds": 4, "tile_size": 4, "key": jax.random.key(0)}
    with (
        ThreadPoolExecutor(1) as threads,
        jax.default_matmul_precision("highest"),
        jax.threefry_partitionable(False),
        jax.enable_x64(True),
    ):
        expected = jaxdp.sweep(products, **arguments)
        assert jaxdp.sweep(products, **arguments, executor=threads).identical(expected)


def test_a_pool_that_breaks_keeps_what_is_done(pool, expected, tmp_path):
    store = tmp_path / "s.zarr"
    pool.submit(os.getpid).result()
    pids = list(pool._processes)

    def kill(progress):
        if progress.lanes > NUM_LANES / 4:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            pids.clear()

    with pytest.raises(RuntimeError, match="the executor gave up: BrokenProcessPool") as caught:
        jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), executor=pool, store=store, progress=kill)
    computed = int(xr.open_zarr(store).computed.sum())
    assert NUM_LANES / 4 < computed < NUM_LANES
    assert (
        f"{computed} lanes of the sweep are safe in {store}; the same call computes the rest"
        in caught.value.__notes__[0]
    )
    with pytest.raises(RuntimeError, match="the executor gave up"):  # it is broken for good
        jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), executor=pool, store=store)
    assert jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), store=store).identical(expected)


SHIFTS = itertools.count()


def program(shift: int) -> Run:
    return Run(
        simulate=lambda key, params: {"value": jax.random.normal(key, dtype=np.float32) + params + np.float32(shift)},
        params=lambda *, scale: np.float32(scale),
        guarantee=lambda **_: {},
        dims={"value": ()},
    )


def one_program() -> Run:
    return program(0)


def another_program() -> Run:
    """Returns another program at each call, as a worker does that keeps a module's old code."""
    return program(next(SHIFTS))


def test_workers_that_do_not_have_the_same_program():
    arguments: dict = {"axes": {"scale": [1.0]}, "num_seeds": 64, "tile_size": 1, "key": jax.random.key(0)}
    with (
        ThreadPoolExecutor(1) as threads,
        pytest.raises(RuntimeError, match=r"workers must have the code of this process; restart .*program differs"),
    ):
        jaxdp.sweep(another_program, **arguments, executor=threads)


def test_a_worker_that_differs_from_the_first():
    axes = {"scale": [1.0]}
    plan = Plan(one_program, axes, {}, num_seeds=4, key=jax.random.key(0), tile_size=4, devices=None)
    packed = worker.pack(plan)
    identity, devices = worker.describe(packed)
    assert devices == ["cpu: cpu"]
    (chunk,) = chunks((), (1, 4), (1, 4))
    assert worker.compute(packed, chunk, identity)["value"].shape == (4,)
    with pytest.raises(RuntimeError, match=r"workers must run the same program, got one where device is 'gpu' there"):
        worker.compute(packed, chunk, {**identity, "device": "gpu"})


def test_what_is_no_executor_or_forks():
    arguments: dict = {**SWEEP, "key": jax.random.key(0)}
    with pytest.raises(ValueError, match=r"executor must have submit, .* got 4"):
        jaxdp.sweep(build, **arguments, executor=4)  # pyright: ignore[reportArgumentType]
    with (
        ProcessPoolExecutor(2, mp_context=get_context("fork")) as forks,
        pytest.raises(ValueError, match=r"executor must start new processes, got start method fork"),
    ):
        jaxdp.sweep(build, **arguments, executor=forks)


def raises_at_two(scale):
    raise ValueError(f"scale must be 1, got {scale}")


def test_errors_of_a_value_come_before_anything_is_sent(pool):
    run = another_program()
    wrong = Run(simulate=run.simulate, params=lambda *, scale: raises_at_two(scale), guarantee=run.guarantee, dims={})
    with pytest.raises(ValueError, match="scale must be 1, got 2"):
        jaxdp.sweep(lambda: wrong, axes={"scale": [2]}, num_seeds=1, key=jax.random.key(0), executor=pool)
    assert not pool._processes
    with pytest.raises(ValueError, match="devices must be None with an executor"):
        jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), executor=pool, devices=jax.devices())


def test_what_cannot_be_pickled(pool):
    lock = threading.Lock()

    def locked(num_experts):
        with lock:
            return build(num_experts)

    with pytest.raises(ValueError, match=r"build and the grid's values must be picklable by cloudpickle"):
        jaxdp.sweep(locked, **SWEEP, key=jax.random.key(0), executor=pool)
