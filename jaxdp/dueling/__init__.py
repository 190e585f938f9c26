"""Dueling bandits: environments, and one file per algorithm."""

from jaxdp.dueling._ebs_shuffle import ebs_shuffle
from jaxdp.dueling._rucb import rucb
from jaxdp.dueling.double_thompson import double_thompson
from jaxdp.dueling.ebs_elimination import ebs_elimination
from jaxdp.dueling.ebs_local import ebs_local
from jaxdp.dueling.ebs_phased import ebs_phased
from jaxdp.dueling.environments import matrix_duels, utility_duels
from jaxdp.dueling.switching import switching_duels
from jaxdp.dueling.versatile_sparring import versatile_sparring

__all__ = [
    "double_thompson",
    "ebs_elimination",
    "ebs_local",
    "ebs_phased",
    "ebs_shuffle",
    "matrix_duels",
    "rucb",
    "switching_duels",
    "utility_duels",
    "versatile_sparring",
]
