"""Convex bandits on a ball or a box: environments, and learners (one factory for each algorithm)."""

from jaxdp.bandits.convex._barrier_smooth import barrier_smooth
from jaxdp.bandits.convex._barrier_strongly_convex import barrier_strongly_convex
from jaxdp.bandits.convex._environments import huber_losses, linear_losses, logistic_losses, quadratic_losses
from jaxdp.bandits.convex._one_point import fkm, strongly_convex_one_point
from jaxdp.bandits.convex._stochastic_1d import stochastic_1d
from jaxdp.bandits.convex._two_point import two_point
from jaxdp.core import Probe

__all__ = [
    "Probe",
    "barrier_smooth",
    "barrier_strongly_convex",
    "fkm",
    "huber_losses",
    "linear_losses",
    "logistic_losses",
    "quadratic_losses",
    "stochastic_1d",
    "strongly_convex_one_point",
    "two_point",
]
