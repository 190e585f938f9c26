"""Prediction from experts' advice: adversaries, and one file per algorithm."""

from jaxdp.experts.adversaries import adaptive_losses, loss_sequence, stochastic_losses
from jaxdp.experts.exponential_weights import exponential_weights

__all__ = ["adaptive_losses", "exponential_weights", "loss_sequence", "stochastic_losses"]
