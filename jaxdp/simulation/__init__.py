"""Simulation: one lane as a run, many lanes as a sweep. It knows no algorithm."""

from jaxdp.simulation.offline import estimation_run
from jaxdp.simulation.run import Run
from jaxdp.simulation.sweep import sweep

__all__ = ["Run", "estimation_run", "sweep"]
