"""Dueling bandits: environments and learners."""

from jaxdp.dueling._ballot_duels import ballot_duels, ballot_matrix
from jaxdp.dueling._double_thompson import double_thompson
from jaxdp.dueling._ebs_elimination import ebs_elimination
from jaxdp.dueling._ebs_local import ebs_local
from jaxdp.dueling._ebs_phased import ebs_phased
from jaxdp.dueling._ebs_shuffle import ebs_shuffle
from jaxdp.dueling._g_optimal_elimination import g_optimal_elimination
from jaxdp.dueling._linear_duels import linear_duels
from jaxdp.dueling._rucb import rucb
from jaxdp.dueling._versatile_sparring import versatile_sparring
from jaxdp.dueling.environments import matrix_duels, utility_duels
from jaxdp.dueling.switching import switching_duels

__all__ = [
    "ballot_duels",
    "ballot_matrix",
    "double_thompson",
    "ebs_elimination",
    "ebs_local",
    "ebs_phased",
    "ebs_shuffle",
    "g_optimal_elimination",
    "linear_duels",
    "matrix_duels",
    "rucb",
    "switching_duels",
    "utility_duels",
    "versatile_sparring",
]
