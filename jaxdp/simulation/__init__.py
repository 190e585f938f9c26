"""Simulation: one lane as a run, many lanes as a sweep. It knows no algorithm."""

from jaxdp.simulation.checkpoints import log_spaced
from jaxdp.simulation.claims import claims
from jaxdp.simulation.compilation import cache_compilations
from jaxdp.simulation.keys import lane_keys
from jaxdp.simulation.look import Look
from jaxdp.simulation.loop import simulator
from jaxdp.simulation.offline import estimation_run
from jaxdp.simulation.opening import open
from jaxdp.simulation.replay import replay
from jaxdp.simulation.run import Run
from jaxdp.simulation.sweep import sweep

__all__ = [
    "Look",
    "Run",
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
