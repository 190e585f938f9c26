"""Learners, adversaries and losses for prediction with expert advice."""

from jaxdp.experts import classes
from jaxdp.experts._adaptive import adaptive_losses, punish_repeats
from jaxdp.experts._counter_parameters import CounterParameters, counter_weights_parameters
from jaxdp.experts._counter_weights import counter_weights
from jaxdp.experts._exponential_weights import exponential_weights
from jaxdp.experts._fixed_share import fixed_share
from jaxdp.experts._hard_sequences import alternating_losses, lower_bound_losses, sample_losses
from jaxdp.experts._hedge import hedge
from jaxdp.experts._lazy_weights import lazy_weights
from jaxdp.experts._lazy_weights.parameters import LazyParameters, lazy_weights_parameters
from jaxdp.experts._limited_updates import limited_updates
from jaxdp.experts._limited_updates_oblivious import limited_updates_oblivious
from jaxdp.experts._loss_files import read_losses
from jaxdp.experts._mirror_descent import mirror_descent
from jaxdp.experts._mirror_descent.parameters import MirrorParameters, mirror_descent_parameters
from jaxdp.experts._oblivious import loss_sequence
from jaxdp.experts._shifting import shifting_losses
from jaxdp.experts._stochastic import stochastic_losses
from jaxdp.experts._svt_lazy import svt_lazy
from jaxdp.experts._svt_restarts import svt_restarts

__all__ = [
    "CounterParameters",
    "LazyParameters",
    "MirrorParameters",
    "adaptive_losses",
    "alternating_losses",
    "classes",
    "counter_weights",
    "counter_weights_parameters",
    "exponential_weights",
    "fixed_share",
    "hedge",
    "lazy_weights",
    "lazy_weights_parameters",
    "limited_updates",
    "limited_updates_oblivious",
    "loss_sequence",
    "lower_bound_losses",
    "mirror_descent",
    "mirror_descent_parameters",
    "punish_repeats",
    "read_losses",
    "sample_losses",
    "shifting_losses",
    "stochastic_losses",
    "svt_lazy",
    "svt_restarts",
]
