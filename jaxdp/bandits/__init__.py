"""Bandits: environments, learners (one factory for each algorithm), and evaluation from logged data."""

from jaxdp.bandits import contextual, convex
from jaxdp.bandits._adap_klucb import adap_klucb
from jaxdp.bandits._drifting import drifting_bandit
from jaxdp.bandits._exp3 import exp3
from jaxdp.bandits._explore_then_commit import explore_then_commit
from jaxdp.bandits._imed_central import imed_central
from jaxdp.bandits._lil_ucb import lil_ucb
from jaxdp.bandits._logged_rewards import logged_rewards
from jaxdp.bandits._noisy_argmax import noisy_argmax
from jaxdp.bandits._other_distributions import bounded_bandit, heavy_tailed_bandit
from jaxdp.bandits._pairwise_elimination import pairwise_elimination
from jaxdp.bandits._pairwise_elimination_central import pairwise_elimination_central
from jaxdp.bandits._policy_value import PolicyValue, evaluate_policy
from jaxdp.bandits._replay import LoggedFeedback, on_logged
from jaxdp.bandits._reward_sequence import reward_sequence
from jaxdp.bandits._successive_elimination import successive_elimination
from jaxdp.bandits._successive_elimination_central import successive_elimination_central
from jaxdp.bandits._thompson import thompson
from jaxdp.bandits._thompson_central import thompson_central
from jaxdp.bandits._tsallis_inf import tsallis_inf
from jaxdp.bandits._ucb import ucb
from jaxdp.bandits._ucb_central import ucb_central
from jaxdp.bandits.environments import bernoulli_bandit, gaussian_bandit

__all__ = [
    "LoggedFeedback",
    "PolicyValue",
    "adap_klucb",
    "bernoulli_bandit",
    "bounded_bandit",
    "contextual",
    "convex",
    "drifting_bandit",
    "evaluate_policy",
    "exp3",
    "explore_then_commit",
    "gaussian_bandit",
    "heavy_tailed_bandit",
    "imed_central",
    "lil_ucb",
    "logged_rewards",
    "noisy_argmax",
    "on_logged",
    "pairwise_elimination",
    "pairwise_elimination_central",
    "reward_sequence",
    "successive_elimination",
    "successive_elimination_central",
    "thompson",
    "thompson_central",
    "tsallis_inf",
    "ucb",
    "ucb_central",
]
