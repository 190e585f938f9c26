"""Bandits: environments, and one file per algorithm."""

from jaxdp.bandits._lil_ucb import lil_ucb
from jaxdp.bandits._successive_elimination import successive_elimination
from jaxdp.bandits.environments import bernoulli_bandit, gaussian_bandit
from jaxdp.bandits.explore_then_commit import explore_then_commit

__all__ = ["bernoulli_bandit", "explore_then_commit", "gaussian_bandit", "lil_ucb", "successive_elimination"]
