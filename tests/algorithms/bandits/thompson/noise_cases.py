"""The noise that the docstring of `thompson` displays."""

from jaxdp.bandits import thompson
from tests.contract.noise_cases import defines, reach_of_reports

NOISES = {"thompson": defines(thompson, "c", reach_of_reports(thompson(num_arms=2)))}
