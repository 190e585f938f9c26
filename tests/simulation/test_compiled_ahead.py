"""Programs of a sweep that are compiled before their turn: the same bits, one trace each, and errors that arrive."""

import threading

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.core import default_float
from jaxdp.simulation.sweeps import local
from jaxdp.simulation.sweeps.lanes import Program

pytestmark = pytest.mark.once


def sweep(num_programs=4, **scheduling):
    def build(shift):
        return jaxdp.simulation.Run(
            simulate=lambda key, params: {"value": params["scale"] * jax.random.normal(key) + shift},
            params=lambda *, scale: {"scale": np.asarray(scale, default_float())},
            guarantee=lambda **_: {},
            dims={"value": ()},
        )

    return jaxdp.sweep(
        build,
        axes={"scale": [1.0, 2.0]},
        static_axes={"shift": list(range(num_programs))},
        num_seeds=2,
        key=jax.random.key(0),
        tile_size=2,
        **scheduling,
    )


@pytest.fixture
def compiled(monkeypatch):
    """Names of the threads that compiled, in the order in which they began."""
    threads, original = [], Program.compile

    def watched(self):
        threads.append(threading.current_thread())
        return original(self)

    monkeypatch.setattr(Program, "compile", watched)
    return threads


def test_results_are_those_of_programs_one_by_one(monkeypatch, compiled):
    monkeypatch.setattr(local, "cores", lambda: 2)
    ahead = sweep()
    assert len(compiled) == 4
    assert threading.main_thread() not in compiled
    monkeypatch.setattr(local, "BYTES_AHEAD", -1)  # as parameters that are too large
    one_by_one = sweep()
    assert len(compiled) == 8
    assert set(compiled[4:]) == {threading.main_thread()}
    assert ahead.identical(one_by_one)


def test_the_next_programs_begin_while_one_is_compiled(monkeypatch):
    monkeypatch.setattr(local, "cores", lambda: 2)
    both, original = threading.Barrier(2, timeout=60), Program.compile

    def together(self):
        both.wait()  # breaks where one is compiled after the other
        return original(self)

    monkeypatch.setattr(Program, "compile", together)
    sweep()


def test_settings_of_the_callers_thread_are_those_of_every_program(monkeypatch, compiled):
    monkeypatch.setattr(local, "cores", lambda: 2)
    with jax.enable_x64(True):
        results = sweep(3)
    assert results.value.dtype == np.float64
    assert len(compiled) == 3


def test_an_error_of_a_later_program_arrives(monkeypatch):
    monkeypatch.setattr(local, "cores", lambda: 2)
    original, count = Program.compile, iter(range(9))

    def failing(self):
        if next(count) == 2:
            raise MemoryError("the third does not fit")
        return original(self)

    monkeypatch.setattr(Program, "compile", failing)
    before = threading.active_count()
    with pytest.raises(MemoryError, match="the third does not fit"):
        sweep()
    assert threading.active_count() <= before  # nothing goes on behind the caller's back


def test_a_store_is_the_same(tmp_path, monkeypatch, compiled):
    monkeypatch.setattr(local, "cores", lambda: 2)
    stored = sweep(store=tmp_path / "store").load()
    assert threading.main_thread() in compiled  # the first program, which a chunk's size depends on
    np.testing.assert_array_equal(stored.value, sweep().value)
