"""Worlds for bandits that find the best arm."""

from jaxdp import bandits
from jaxdp.core import Environment
from jaxdp.registry.draws import spread


def bernoulli(num_arms: int) -> Environment:
    return bandits.bernoulli_bandit(spread(0.9, 0.1, num_arms))


def gaussian(num_arms: int) -> Environment:
    return bandits.gaussian_bandit(spread(0.9, 0.1, num_arms), stddev=0.5)


REPORTED = "on reports as in Zheng, Cai, Huang, Li & Wang (2020), Appendix B.2"
