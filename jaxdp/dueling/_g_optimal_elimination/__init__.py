"""Elimination of arms that have features, by G-optimal designs."""

from jaxdp.dueling._g_optimal_elimination._g_optimal_elimination import g_optimal_elimination as g_optimal_elimination
