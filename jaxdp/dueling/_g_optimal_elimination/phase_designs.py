"""Designs for all arms (on the host) and for active arms (within the program), and the number of duels in a phase.

"The paper" is DP-Dueling (Saha & Asi, 2024).
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Scalar, default_float
from jaxdp.core.params import pytree_dataclass
from jaxdp.design import g_optimal_differences, masked_difference_design

HOST_GAP = 1e-3  # largest fraction by which the value of the first design may exceed its minimum
MOST_STEPS = 4096


@pytree_dataclass
class Design:
    """A design for differences of arms.

    Attributes:
        pairs: [num_slots, 2] int32, the arm with the larger index first; pairs of weight 0 are padding.
        weights: [num_slots] float >= 0, with sum 1; all 0 if rank is 0.
        value: [] float, the largest z.V(weights)^-1.z over differences z; 0 if rank is 0.
        rank: [] int32, dimension of the span of the differences.
    """

    pairs: jax.Array | np.ndarray
    weights: jax.Array | np.ndarray
    value: jax.Array | np.floating
    rank: jax.Array | np.integer


def most_pairs(num_arms: int, dim: int) -> int:
    """Returns the number of slots for pairs: the maximum for an optimal design, plus spare slots for the search."""
    rank = min(dim, num_arms - 1)
    return rank * (rank + 1) // 2 + rank


def first_design(arms: np.ndarray) -> Design:
    """Computes the design for all arms on the host, from their features [num_arms, dim] float64."""
    dtype, design = default_float(), g_optimal_differences(arms, gap=HOST_GAP)
    spare = most_pairs(*arms.shape) - len(design.weights)
    weights = design.weights.astype(dtype)
    value = dtype.type(design.value * (design.weights / weights).max())  # a bound for the rounded weights
    return Design(
        pairs=np.pad(design.pairs.astype(np.int32), ((0, spare), (0, 0))),
        weights=np.pad(weights, (0, spare)),
        value=np.nextafter(value, dtype.type(np.inf)),
        rank=np.int32(design.rank),
    )


def next_design(arms: jax.Array, active: jax.Array, gap: float) -> Design:
    """Computes the design for the active arms within the program; `active` is [num_arms] bool."""
    slots = most_pairs(*arms.shape)
    design = masked_difference_design(arms, active, num_slots=slots, max_steps=MOST_STEPS, gap=gap)
    return Design(pairs=design.pairs, weights=design.weights, value=design.value, rank=design.rank)


def duels_tight(
    design: Design, phase: jax.Array, xi: jax.Array, *, epsilon: Scalar, failure_prob: Scalar, slope: Scalar
) -> jax.Array:
    """Returns the N of `g_optimal_elimination`, [] float: the root of sampling / sqrt(N) + private / N = xi.

    The margin is xi > 0, slope is kappa, and `phase` = l - 1 phases have ended.
    """
    number = (phase + 1).astype(xi.dtype)  # l
    tail = jnp.log(4 * number**2 / failure_prob)  # x
    support = jnp.sum(design.weights > 0, dtype=jnp.int32).astype(xi.dtype)  # m
    spread = jnp.sqrt(design.rank.astype(xi.dtype)) + jnp.sqrt(2 * tail)  # A
    noise = support + jnp.sqrt(2 * support * tail) + tail  # B
    sampling = spread * jnp.sqrt(design.value) / (2 * slope)  # design.value is g
    private = design.value * noise / (slope * epsilon)
    root = sampling + jnp.sqrt(sampling**2 + 4 * private * xi)  # 2 xi sqrt(N)
    return (root / (2 * xi)) ** 2


def duels_paper(
    xi: jax.Array, *, dim: int, horizon: int, epsilon: Scalar, failure_prob: Scalar, slope: Scalar
) -> jax.Array:
    """Returns the paper's N ([] float) for the margin xi; `slope` is kappa in `g_optimal_elimination`."""
    tail = math.log(horizon) - jnp.log(failure_prob)  # ln(T / q)
    private = 16 * dim**5 * (math.log(dim) + tail) / (slope * epsilon * xi)
    return private + 64 * dim * tail / (slope * xi) ** 2


def explored_paper(*, dim: int, horizon: int, failure_prob: Scalar, slope: Scalar) -> jax.Array:
    """Returns the paper's t0 ([] float) with C1 = C2 = 1; `g_optimal_elimination` has the formula."""
    tail = -jnp.log(failure_prob)  # ln(1 / q)
    explored = 16 * dim * (dim**2 + math.log(horizon) + tail) / slope**4
    return 2 * (dim**1.5 + dim * jnp.sqrt(tail)) ** 2 + explored
