"""Elimination of arms with features, by optimal designs."""

from jaxdp.dueling._g_optimal_elimination._g_optimal_elimination import g_optimal_elimination as g_optimal_elimination
