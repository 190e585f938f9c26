"""The next programs are compiled while one runs, and run if cores are idle; their errors wait for their turn."""

import contextlib
import threading
import time

import jax
import pytest
import xarray as xr

import jaxdp
from jaxdp.simulation.sweeps import local
from jaxdp.simulation.sweeps.lanes import Program
from jaxdp.simulation.sweeps.progress import listen_to_chunks


def build(num_arms):
    learner = jaxdp.bandits.explore_then_commit(num_arms=num_arms, explore_rounds=num_arms)
    return jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit([0.2] * (num_arms - 1) + [0.8]), 6)


def sweep(num_arms=(2, 3, 4), **options) -> xr.Dataset:
    return jaxdp.sweep(
        build,
        axes={"epsilon": [1.0]},
        static_axes={"num_arms": list(num_arms)},
        num_seeds=2,
        key=jax.random.key(3),
        tile_size=4,
        **options,
    )


@pytest.fixture(scope="module")
def full_results():
    return sweep()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_as_many_programs_are_compiled_at_once_as_there_are_cores(monkeypatch, full_results, number):
    compiling, most, lock, compile_it = [], [], threading.Lock(), Program.compile
    all_started = threading.Event()

    def together(program):
        with lock:
            compiling.append(program)
            most.append(len(compiling))
            if len(compiling) == number:
                all_started.set()
        assert all_started.wait(60)
        compiled = compile_it(program)
        with lock:
            compiling.remove(program)
        return compiled

    monkeypatch.setattr(local, "cores", lambda: number)
    monkeypatch.setattr(Program, "compile", together)
    assert sweep().identical(full_results)
    assert max(most) == number


def test_an_error_of_a_later_program_loses_no_earlier_result(monkeypatch, tmp_path):
    compile_it, calls = Program.compile, []

    def second_fails(program):
        calls.append(program)
        if len(calls) == 2:
            raise RuntimeError("planted")
        return compile_it(program)

    monkeypatch.setattr(local, "cores", lambda: 2)
    monkeypatch.setattr(Program, "compile", second_fails)
    with pytest.raises(RuntimeError, match="planted") as error:
        sweep(store=tmp_path / "store")
    assert "2 lanes of the sweep are safe" in " ".join(error.value.__notes__)
    assert jaxdp.open(tmp_path / "store").computed.sum() == 2
    monkeypatch.setattr(Program, "compile", compile_it)
    assert sweep(store=tmp_path / "store").load().equals(sweep())


def test_this_thread_traces_all_programs_while_the_first_is_compiled(monkeypatch):
    compile_it, lower_it, traced, first = Program.compile, Program.trace, [], []

    def trace(program):
        lower_it(program)
        traced.append(program)
        if len(traced) == 3:
            all_traced.set()

    def waits(program):
        first.append(program)
        assert all_traced.wait(60)
        return compile_it(program)

    all_traced = threading.Event()
    monkeypatch.setattr(local, "cores", lambda: 2)
    monkeypatch.setattr(Program, "trace", trace)
    monkeypatch.setattr(Program, "compile", waits)
    regions = []
    with listen_to_chunks(
        lambda results, region: regions.append((region, float(results.pseudo_regret[region].isnull().sum())))
    ):
        sweep()
    assert [region[0] for region, _ in regions] == [slice(0, 1), slice(1, 2), slice(2, 3)]
    assert all(missing == 0 for _, missing in regions)
    assert traced == first


def test_programs_that_still_wait_for_a_thread_are_compiled_by_a_later_call(monkeypatch):
    compile_it, trace_it, chunks = Program.compile, Program.trace, local.LocalSource.chunks
    all_traced, is_closed, traced = threading.Event(), threading.Event(), []

    def trace(program):
        trace_it(program)
        traced.append(program)
        if len(traced) == 4:
            all_traced.set()

    def compile_later(program):  # the last of four programs waits for one of the two threads
        assert (all_traced if program is traced[0] else is_closed).wait(60)
        return compile_it(program)

    def chunks_again(source, requested):
        with contextlib.closing(chunks(source, requested)) as computed:
            next(computed)
        is_closed.set()
        yield from chunks(source, requested)

    expected = sweep((2, 3, 4, 5))
    monkeypatch.setattr(local, "cores", lambda: 2)
    monkeypatch.setattr(Program, "trace", trace)
    monkeypatch.setattr(Program, "compile", compile_later)
    monkeypatch.setattr(local.LocalSource, "chunks", chunks_again)
    assert sweep((2, 3, 4, 5)).identical(expected)


def record_tiles(monkeypatch, run_tile):
    """Calls `run_tile(number of the program, function that runs the tile)` for each tile of a sweep."""
    make_runner = local.LocalSource._make_runner

    def make(source, program):
        runner = make_runner(source, program)
        monkeypatch.setattr(runner, "_run", lambda lanes, run=runner._run: run_tile(program, lambda: run(lanes)))
        return runner

    monkeypatch.setattr(local.LocalSource, "_make_runner", make)


def test_tiles_of_programs_with_a_single_tile_run_on_all_cores(monkeypatch, full_results):
    started = [threading.Event() for _ in range(3)]

    def run_tile(program, run):  # the first tile ends after the second has started, the second after the third
        started[program].set()
        assert started[min(program + 1, 2)].wait(60)
        return run()

    monkeypatch.setattr(local, "cores", lambda: 2)
    monkeypatch.setattr(local, "tiles_in_flight", lambda devices: 2)
    record_tiles(monkeypatch, run_tile)
    assert sweep().identical(full_results)


@pytest.mark.parametrize("limit", ["cores", "memory"])
def test_programs_run_one_after_another(monkeypatch, full_results, limit):
    running, most = [], []

    def run_tile(program, run):
        running.append(program)
        most.append(len(running))
        time.sleep(0.05)
        running.remove(program)
        return run()

    monkeypatch.setattr(local, "cores", lambda: 2)
    monkeypatch.setattr(local, "tiles_in_flight", lambda devices: 1 if limit == "cores" else 2)
    if limit == "memory":
        monkeypatch.setattr(local, "free_bytes", lambda device: 1024)
    record_tiles(monkeypatch, run_tile)
    assert sweep().identical(full_results)
    assert max(most) == 1


def test_an_error_of_a_tile_that_started_early_loses_no_earlier_result(monkeypatch, full_results, tmp_path):
    has_failed = threading.Event()

    def run_tile(program, run):
        if program == 1:
            has_failed.set()
            raise RuntimeError("planted")
        if program == 0:
            assert has_failed.wait(60)
        return run()

    monkeypatch.setattr(local, "cores", lambda: 2)
    monkeypatch.setattr(local, "tiles_in_flight", lambda devices: 2)
    with monkeypatch.context() as planted:
        record_tiles(planted, run_tile)
        with pytest.raises(RuntimeError, match="planted"):
            sweep(store=tmp_path / "store")
    assert jaxdp.open(tmp_path / "store").computed.sum() == 2
    assert sweep(store=tmp_path / "store").load().equals(full_results)


def test_an_interrupted_sweep_leaves_no_tile_running(monkeypatch):
    running = []

    def run_tile(program, run):
        running.append(program)
        time.sleep(0.05)
        outputs = run()
        running.remove(program)
        return outputs

    def stop(progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(local, "cores", lambda: 2)
    monkeypatch.setattr(local, "tiles_in_flight", lambda devices: 2)
    record_tiles(monkeypatch, run_tile)
    with pytest.raises(KeyboardInterrupt):
        sweep((2, 3, 4, 5), progress=stop)
    assert running == []
