"""Bandits: environments, and one file per algorithm."""

from jaxdp.bandits._thompson import thompson
from jaxdp.bandits._tsallis_inf import tsallis_inf
from jaxdp.bandits._ucb import ucb
from jaxdp.bandits.environments import bernoulli_bandit, gaussian_bandit
from jaxdp.bandits.explore_then_commit import explore_then_commit

__all__ = ["bernoulli_bandit", "explore_then_commit", "gaussian_bandit", "thompson", "tsallis_inf", "ucb"]
