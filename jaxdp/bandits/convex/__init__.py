"""Convex bandits on a ball: environments, and one file per algorithm."""

from jaxdp.bandits.convex._environments import huber_losses, linear_losses, logistic_losses, quadratic_losses
from jaxdp.bandits.convex._one_point import fkm, strongly_convex_one_point
from jaxdp.bandits.convex._two_point import two_point
from jaxdp.core import Probe

__all__ = [
    "Probe",
    "fkm",
    "huber_losses",
    "linear_losses",
    "logistic_losses",
    "quadratic_losses",
    "strongly_convex_one_point",
    "two_point",
]
