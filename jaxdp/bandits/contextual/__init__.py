"""Contextual bandits: environments, and one file per algorithm."""

from jaxdp.bandits.contextual._linear_ucb import linear_ucb

__all__ = ["linear_ucb"]
