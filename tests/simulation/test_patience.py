"""Executors that never answer, are shut down in the middle, or hand back something else."""

import logging
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from types import SimpleNamespace
from typing import Any, cast

import jax
import numpy as np
import pytest
import xarray as xr

import jaxdp
from jaxdp.simulation.sweeps import patience, worker
from jaxdp.simulation.sweeps.remote import RemoteSource
from tests.simulation.store_worker import NUM_LANES, SWEEP, build

LIMIT = 120  # seconds; a test that would wait for ever fails


@pytest.fixture(autouse=True)
def limit():
    def stop(*_):
        raise AssertionError(f"still waiting after {LIMIT} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def expected():
    return jaxdp.sweep(build, **SWEEP, key=jax.random.key(0))


def swept(executor: Executor, **more) -> xr.Dataset:
    return jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), executor=executor, **more)


class Silent(Executor):
    """Computes the first tasks, and then takes tasks without ever answering."""

    def __init__(self, answers: int, *, running: bool = False) -> None:
        self.left, self._running = answers, running
        self.given: list[Future[Any]] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.given.append(future)
        if self.left > 0:
            self.left -= 1
            future.set_result(function(*args))
        elif self._running:
            future.set_running_or_notify_cancel()
        return future


@pytest.mark.parametrize("answers", [0, 1, 4])
def test_an_executor_that_never_answers_is_given_up_after_a_time(tmp_path, expected, answers):
    store, executor, start = tmp_path / "s.zarr", Silent(answers), time.monotonic()
    what = "a first worker" if answers == 0 else r"\d+ chunks"
    with pytest.raises(
        TimeoutError, match=rf"return a result within timeout = 0\.5 seconds; still waiting for {what}"
    ) as e:
        swept(executor, store=store, timeout=0.5)
    assert time.monotonic() - start < LIMIT / 2
    assert all(future.done() for future in executor.given)  # no task is left that would be computed for nobody
    if answers:
        computed = int(xr.open_zarr(store).computed.sum())
        assert (answers > 1) == (computed > 0)
        assert (
            f"{computed} lanes of the sweep are safe in {store}; the same call computes the rest"
            in e.value.__notes__[0]
        )
        assert jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), store=store).identical(expected)


def test_it_is_said_what_is_waited_for(monkeypatch, caplog):
    monkeypatch.setattr(patience, "HEARTBEAT", 0.3)
    monkeypatch.setattr(patience, "POLL", 0.1)
    with caplog.at_level(logging.WARNING, "jaxdp"), pytest.raises(TimeoutError):
        swept(Silent(2, running=True), timeout=1.0)
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) in (2, 3)
    assert "finished nothing for 0 s; waiting for 35 chunks (35 of 35 running, 0 not started)" in texts[0]


def test_time_before_a_first_worker_is_asked_is_not_the_executors():
    with ThreadPoolExecutor(1) as threads:
        source = SimpleNamespace(_executor=threads, _patience=patience.Patience(5.0))
        source._patience._since -= 100
        threads.submit(time.sleep, 0.05)
        with pytest.raises(RuntimeError, match="the executor gave up"):  # nothing was packed, which a worker finds
            RemoteSource._first_description(cast("Any", source), b"")


def test_time_that_writing_takes_is_not_the_executors(expected):
    assert swept(Silent(10**6), timeout=0.2, progress=lambda now: time.sleep(0.05)).identical(expected)
    with ThreadPoolExecutor(1) as threads:
        slow = [True]

        def pause(now):
            if slow:
                slow.pop()
                time.sleep(3)

        assert swept(threads, timeout=2.5, progress=pause).identical(expected)


@pytest.mark.parametrize("kind", ["threads", "processes"])
@pytest.mark.parametrize("cancel", [True, False])
def test_an_executor_that_is_shut_down_in_the_middle(tmp_path, expected, kind, cancel):
    store, done = tmp_path / "s.zarr", threading.Event()
    pool = ThreadPoolExecutor(1) if kind == "threads" else ProcessPoolExecutor(1, mp_context=get_context("spawn"))

    def stop(progress):
        if progress.lanes > NUM_LANES / 8 and not done.is_set():
            done.set()
            pool.shutdown(wait=False, cancel_futures=cancel)

    if not cancel:  # it still does the tasks that it was given
        assert swept(pool, store=store, progress=stop).identical(expected)
        with pytest.raises(RuntimeError, match="the executor gave up: RuntimeError: cannot schedule new futures"):
            swept(pool)
        return
    with pytest.raises(
        RuntimeError, match="the executor gave up: CancelledError: tasks were cancelled before"
    ) as caught:
        swept(pool, store=store, progress=stop)
    computed = int(xr.open_zarr(store).computed.sum())
    assert NUM_LANES / 8 < computed < NUM_LANES
    assert f"{computed} lanes of the sweep are safe in {store}" in caught.value.__notes__[0]
    assert jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), store=store).identical(expected)


def test_pools_that_end_their_processes_are_refused():
    with (
        ProcessPoolExecutor(2, mp_context=get_context("spawn"), max_tasks_per_child=3) as pool,
        pytest.raises(ValueError, match=r"executor must not have max_tasks_per_child, got 3: "),
    ):
        swept(pool)


class Other(Executor):
    """Hands back something other than what workers return."""

    def __init__(self, change: Callable[[Any], Any], function: Callable[..., Any] = worker.compute) -> None:
        self._change, self._function = change, function

    def submit(self, function: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        found = function(*args)
        future.set_result(self._change(found) if function is self._function else found)
        return future


OTHER: dict[str, tuple[Callable[[Any], Any], str]] = {
    "lists": (lambda found: {name: values.tolist() for name, values in found.items()}, "'regret': 'list'"),
    "text": (str, "got str"),
    "nothing": (lambda found: None, "got NoneType"),
    "transposed": (lambda found: {name: values.T for name, values in found.items()}, r"'regret': 'float\d\d \(3, 8\)'"),
    "of another type": (lambda found: {n: values.astype(np.float16) for n, values in found.items()}, "float16"),
    "of fewer lanes": (lambda found: {name: values[1:] for name, values in found.items()}, r"\(7, 3\)"),
    "one more": (lambda found: {**found, "more": np.zeros(8)}, r"'more': 'float64 \(8,\)'"),
    "one less": (lambda found: dict(list(found.items())[1:]), "got {"),
}


@pytest.mark.parametrize("case", OTHER)
def test_results_that_come_back_as_something_else(tmp_path, case):
    change, message = OTHER[case]
    store = tmp_path / "s.zarr"
    with pytest.raises(
        RuntimeError, match=rf"^the executor gave up: .* return workers' results unchanged, .*{message}"
    ) as e:
        swept(Other(change), store=store)
    assert "\n" not in str(e.value)
    assert int(xr.open_zarr(store).computed.sum()) == 0


def test_a_description_that_comes_back_as_something_else():
    for change in (lambda found: None, lambda found: [1, 2], lambda found: found[:1]):
        with pytest.raises(RuntimeError, match="executor must return workers' results unchanged, got"):
            swept(Other(change, worker.describe))


def test_wrong_timeouts():
    for wrong, message in {
        0: "timeout must be > 0, got 0",
        float("nan"): "timeout must be > 0, got nan",
        "soon": "timeout must be a number, got 'soon'",
    }.items():
        with pytest.raises(ValueError, match=message):
            swept(Silent(0), timeout=wrong)
    with pytest.raises(ValueError, match="timeout must be None without an executor, got 5"):
        jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), timeout=5)
