"""Contextual bandits: environments, learners (one factory for each algorithm), and replay of logged data."""

from jaxdp.bandits._replay import LoggedFeedback, on_logged
from jaxdp.bandits.contextual._context_sequence import context_sequence
from jaxdp.bandits.contextual._environments import generalized_linear_contexts, linear_contexts
from jaxdp.bandits.contextual._generalized_linear import generalized_linear
from jaxdp.bandits.contextual._greedy_sgd import greedy_sgd
from jaxdp.bandits.contextual._linear_ucb import linear_ucb
from jaxdp.bandits.contextual._linear_ucb_joint import linear_ucb_joint
from jaxdp.bandits.contextual._logged_contexts import logged_contexts

__all__ = [
    "LoggedFeedback",
    "context_sequence",
    "generalized_linear",
    "generalized_linear_contexts",
    "greedy_sgd",
    "linear_contexts",
    "linear_ucb",
    "linear_ucb_joint",
    "logged_contexts",
    "on_logged",
]
