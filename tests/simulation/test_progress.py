"""Progress: a bar for terminals, silence elsewhere, and a function for notebooks."""

import io
import sys

import jax
import pytest

import jaxdp
from jaxdp.simulation.progress import Progress
from tests.simulation.store_worker import NUM_LANES, SWEEP, build

pytestmark = pytest.mark.once


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_quiet_where_there_is_no_terminal(capsys):
    jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), progress=True)
    assert capsys.readouterr().err == ""


def test_a_bar_where_there_is_one(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    jaxdp.sweep(build, **SWEEP, key=jax.random.key(0))
    assert terminal.getvalue() == ""
    jaxdp.sweep(build, **SWEEP, key=jax.random.key(0), progress=True)
    last = terminal.getvalue().rstrip("\n").split("\r")[-1]
    assert f"{NUM_LANES}/{NUM_LANES}" in last
    assert "num_experts=5" in last
    assert "rounds/s, 1 x cpu: cpu" in last


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
