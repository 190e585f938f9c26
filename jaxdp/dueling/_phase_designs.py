"""The designs of phases: of all arms on the host, and of those that are left within the program."""

from dataclasses import dataclass

import jax
import numpy as np

from jaxdp.core import default_float
from jaxdp.design import g_optimal_differences, masked_difference_design

HOST_GAP = 1e-3  # how far above its least a design's value may be
MOST_STEPS = 4096


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Design:
    """A design for differences of arms.

    Attributes:
        pairs: [num_slots, 2] int32, the arm with the larger index first; those of weight 0 are padding.
        weights: [num_slots] float >= 0, which add up to 1.
        value: [] float, the largest squared norm of a difference, in the metric of V(weights)^-1.
        rank: [] int32, dimensions that the differences span.
    """

    pairs: jax.Array | np.ndarray
    weights: jax.Array | np.ndarray
    value: jax.Array | np.floating
    rank: jax.Array | np.integer


def most_pairs(num_arms: int, dim: int) -> int:
    """Slots for the pairs of a design: as many as an optimal one may need, and some that join in a search."""
    rank = min(dim, num_arms - 1)
    return rank * (rank + 1) // 2 + rank


def first_design(arms: np.ndarray) -> Design:
    """On the host, for all arms, [num_arms, dim] float64."""
    dtype, found = default_float(), g_optimal_differences(arms, gap=HOST_GAP)
    spare = most_pairs(*arms.shape) - len(found.weights)
    weights = found.weights.astype(dtype)
    value = dtype.type(found.value * (found.weights / weights).max())  # as rounding leaves the weights
    return Design(
        pairs=np.pad(found.pairs.astype(np.int32), ((0, spare), (0, 0))),
        weights=np.pad(weights, (0, spare)),
        value=np.nextafter(value, dtype.type(np.inf)),
        rank=np.int32(found.rank),
    )


def next_design(arms: jax.Array, active: jax.Array, gap: float) -> Design:
    """Within the program, for the arms that are active, [num_arms] bool."""
    slots = most_pairs(*arms.shape)
    found = masked_difference_design(arms, active, num_slots=slots, max_steps=MOST_STEPS, gap=gap)
    return Design(pairs=found.pairs, weights=found.weights, value=found.value, rank=found.rank)
