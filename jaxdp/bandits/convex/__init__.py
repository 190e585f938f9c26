"""Convex bandits on a ball: environments, and one file per algorithm."""

from jaxdp.bandits.convex._environments import huber_losses, linear_losses, logistic_losses, quadratic_losses
from jaxdp.core import Probe

__all__ = ["Probe", "huber_losses", "linear_losses", "logistic_losses", "quadratic_losses"]
