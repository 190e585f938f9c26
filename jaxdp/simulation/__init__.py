"""Simulation of algorithms. `simulator` and `estimation_run` make runs; `sweep` computes runs for grids and seeds."""

from jaxdp.simulation.run.checkpoints import log_spaced
from jaxdp.simulation.run.lane_run import Run
from jaxdp.simulation.run.loop import simulator
from jaxdp.simulation.run.offline import estimation_run
from jaxdp.simulation.run.snapshot import Snapshot
from jaxdp.simulation.store.opening import open
from jaxdp.simulation.sweeps._claims import claims
from jaxdp.simulation.sweeps._replay import replay
from jaxdp.simulation.sweeps._sweep import sweep
from jaxdp.simulation.sweeps.compilation import cache_compilations
from jaxdp.simulation.sweeps.keys import lane_keys

__all__ = [
    "Run",
    "Snapshot",
    "cache_compilations",
    "claims",
    "estimation_run",
    "lane_keys",
    "log_spaced",
    "open",
    "replay",
    "simulator",
    "sweep",
]
