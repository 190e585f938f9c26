"""Continual counters: private prefix sums of a stream."""

from jaxdp.mechanisms.continual_counting.arity import best_arity, tree_variance
from jaxdp.mechanisms.continual_counting.counter import Counter
from jaxdp.mechanisms.continual_counting.doubling import doubling_counter
from jaxdp.mechanisms.continual_counting.radii import laplace_sum_radius, tree_radius
from jaxdp.mechanisms.continual_counting.toeplitz import toeplitz_counter
from jaxdp.mechanisms.continual_counting.tree import tree_counter

__all__ = [
    "Counter",
    "best_arity",
    "doubling_counter",
    "laplace_sum_radius",
    "toeplitz_counter",
    "tree_counter",
    "tree_radius",
    "tree_variance",
]
