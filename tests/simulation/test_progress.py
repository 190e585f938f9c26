"""Progress: a bar for terminals and notebooks, silence elsewhere, and a function for all else."""

import contextlib
import io
import re
import sys
import time
import types
from concurrent.futures import ThreadPoolExecutor

import jax
import pytest

import jaxdp
from jaxdp.simulation.sweeps import lanes, local
from jaxdp.simulation.sweeps.compilation import CACHE_HIT, count_hits
from jaxdp.simulation.sweeps.lanes import Program
from jaxdp.simulation.sweeps.progress import Progress
from tests.simulation.store_worker import NUM_LANES, SWEEP, build


class Terminal(io.StringIO):
    def isatty(self):
        return True


def phases(text):
    """Returns the bar's messages, each once."""
    return list(dict.fromkeys(line.split(":")[0] for line in text.strip().split("\r") if ":" in line))


def test_quiet_where_there_is_no_terminal(capsys):
    jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), progress=True)
    assert capsys.readouterr().err == ""


def test_a_bar_where_there_is_one(monkeypatch, tmp_path):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(local, "cores", lambda: 2)
    jaxdp.sweep(build, **SWEEP, key=jax.random.key(0))
    assert terminal.getvalue() == ""
    for where in ({}, {"store": tmp_path / "s.zarr"}):
        jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), progress=True, **where)
        traced = [f"tracing, num_experts={n}" for n in (3, 5)]  # the second program is compiled while the first runs
        played = ["compiling, num_experts=3", "num_experts=3", "num_experts=5"]
        shown = phases(terminal.getvalue().strip("\0"))
        assert [phase for phase in shown if phase != "compiling, num_experts=5"] == ["tracing", *traced, *played]
        last = terminal.getvalue().rstrip("\n").split("\r")[-1]
        assert f"{NUM_LANES}/{NUM_LANES}" in last
        assert "00:00 left" in last
        assert "lanes/s" in last
        assert re.search(
            r"rounds/s, 1 x cpu: cpu, tiles of \d+ lanes( \(\d+% unused\))?, program compiled in \d+.\d s", last
        )
        terminal.truncate(0)
    jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), progress=True, store=tmp_path / "s.zarr")
    assert phases(terminal.getvalue().strip("\0")) == ["tracing", "complete"]


def test_a_bar_of_text_in_a_kernel_that_is_no_terminal(monkeypatch):
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    shell = types.SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))  # pyright: ignore
    jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), progress=True)
    assert f"{NUM_LANES}/{NUM_LANES}" in stderr.getvalue()
    shell.config = {}  # plain IPython, with a piped stderr
    stderr.truncate(0)
    jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), progress=True)
    assert stderr.getvalue().strip("\0") == ""


def test_a_function_is_told(tmp_path):
    told: list[Progress] = []
    jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), store=tmp_path / "s.zarr", process_index=0, num_processes=2)
    jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), store=tmp_path / "s.zarr", progress=told.append)
    assert [now.lanes for now in told] == sorted(now.lanes for now in told)
    assert told[0].lanes > NUM_LANES / 3  # those that were there
    assert told[-1].lanes == told[-1].num_lanes == NUM_LANES
    assert told[-1].seconds_left == 0
    assert all(now.rounds_per_second == pytest.approx(60 * now.lanes_per_second) for now in told)
    assert told[0].devices == ("cpu: cpu",)


@pytest.mark.parametrize("stored", [False, True])
def test_compiling_is_in_no_rate(stored, monkeypatch, tmp_path):
    """Checks the first program and the second, while `told` counts the lanes and seconds in which they ran."""
    told: list[Progress] = []
    seconds, compile_it = 3.0, Program.compile

    def slowly(program):
        time.sleep(seconds)
        return compile_it(program)

    where = {"store": tmp_path / "s.zarr"} if stored else {}
    jaxdp.sweep(build, **SWEEP, key=jax.random.key(0))  # compiles what takes time, and is kept
    monkeypatch.setattr(Program, "compile", slowly)
    jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), progress=told.append, **where)
    assert all(now.lanes / now.lanes_per_second < seconds for now in told)
    assert all(now.seconds_left is not None and now.seconds_left < NUM_LANES * seconds for now in told)


def test_workers_rates_start_with_the_first_chunk():
    told: list[Progress] = []
    with ThreadPoolExecutor(1) as threads:
        jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), executor=threads, progress=told.append)
    assert told[0].lanes > 0
    assert told[0].lanes_per_second == 0
    assert told[0].seconds_left is None
    assert told[-1].seconds_left == 0
    assert told[-1].lanes_per_second > 0


def test_a_program_from_the_cache_is_named(monkeypatch, tmp_path):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(lanes, "count_hits", lambda: contextlib.nullcontext(["hit"]))
    jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), progress=True)
    assert "program from the cache" in terminal.getvalue()


def test_hits_of_the_cache_are_counted():
    with count_hits() as hits:
        jax.monitoring.record_event(CACHE_HIT)
        jax.monitoring.record_event("/jax/compilation_cache/cache_misses")
    jax.monitoring.record_event(CACHE_HIT)
    assert hits == [CACHE_HIT]


def test_hits_of_other_threads_are_not_counted():
    with count_hits() as hits, ThreadPoolExecutor(1) as threads:
        threads.submit(jax.monitoring.record_event, CACHE_HIT).result()
    assert hits == []


@pytest.mark.parametrize(("engine", "announced"), [("rounds", True), ("blocks", False)])
def test_a_tile_that_takes_minutes_is_announced(monkeypatch, caplog, engine, announced):
    """Checks runs without blocks: the number of blocks is unknown before they are played."""
    monkeypatch.setattr(local, "tile_seconds", lambda *numbers: 125.0)
    learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=2)
    run = jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit([0.2, 0.8]), 3, engine=engine)
    jaxdp.sweep(run, axes={"epsilon": [1.0]}, num_seeds=2, key=jax.random.key(0), tile_size=4)
    text = "a tile of 4 lanes plays 3 rounds; this may take 2 minutes"
    assert caplog.messages == ([text] if announced else [])
