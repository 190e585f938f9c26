"""The noise that the docstring of `ucb` displays."""

from jaxdp.bandits import ucb
from tests.contract.noise_cases import defines, reach_of_reports

NOISES = {"ucb": defines(ucb, "c", reach_of_reports(ucb(num_arms=2)))}
