"""Calibrates elimination by effective Borda scores: the noise of the counters, and the widths of the bounds.

"The paper" is DP-Dueling (Saha & Asi, 2024).
"""

import math
from typing import NamedTuple

import jax
import numpy as np

from jaxdp.core import leaf_rounded_down, scalar_leaf
from jaxdp.dueling._ebs_elimination.arms import Params
from jaxdp.dueling._ebs_elimination.counters import Trees
from jaxdp.dueling._ebs_elimination.radii import NoiseLines, noise_lines, on_lattice, score_radii
from jaxdp.mechanisms._grid import LARGEST_SCALE
from jaxdp.validation import WITH_X64, check_epsilon, check_positive, check_probability, largest_integer

LATTICE_BITS = 12  # noisy nodes are multiples of about 2^-12 times the noise's scale; of 2^-12 if the scale is <= 1
TAILS = {"laplace": 44, "gaussian": 10}  # the noise is almost never larger than this number times its scale


class Sizes(NamedTuple):
    """The sizes that a learner's factory fixes.

    Attributes:
        num_arms: number of arms K.
        horizon: rounds T.
        entries: T + K, an upper bound on the number of entries of an arm's counter.
        is_paper: whether bounds use the paper's constants.
    """

    num_arms: int
    horizon: int
    entries: int
    is_paper: bool


def calibrate(
    trees: Trees, sizes: Sizes, *, epsilon: float, delta: float, failure_prob: float, confidence_multiplier: float
) -> Params:
    """Computes the traced values of a grid point.

    Args:
        trees: the shape and the noise of the counters' trees.
        sizes: sizes of the problem.
        epsilon: the privacy budget.
        delta: delta of the privacy budget, for Gaussian noise.
        failure_prob: the failure probability of all bounds together.
        confidence_multiplier: factor that multiplies the bounds' widths.

    Raises:
        ValueError: if a value is out of its range, failure_prob underflows when all arms and entries share it (not with
            the paper's constants), the noise would overflow JAX's integers, or a bound is not within the range of JAX's
            default float type.
    """
    budget = leaf_rounded_down("epsilon", check_epsilon(epsilon))
    check_probability("failure_prob", failure_prob)
    check_positive("confidence_multiplier", confidence_multiplier)
    # An outcome enters one counter at most twice, with opposite signs: L1 sensitivity 2, L2 sensitivity sqrt(2).
    if trees.name == "gaussian":
        node = trees.noise.params(epsilon=epsilon, delta=delta, l2_sensitivity=math.sqrt(2))
        scale = float(node.noise_stddev)
    else:
        node = trees.noise.params(epsilon=epsilon / 2)
        scale = float(node.l1_sensitivity) / float(node.epsilon)
    limit = min(largest_integer() / TAILS[trees.name], LARGEST_SCALE / 2)
    if scale > limit:  # noise of this scale would be clipped, and would not hide the sums
        raise ValueError(
            f"epsilon must be larger: integers hold noise of scale <= {limit:.3g}, got {epsilon}, which needs "
            f"{scale:.3g}{'' if jax.config.read('jax_enable_x64') else WITH_X64}"
        )
    quantum = 2.0 ** (math.ceil(math.log2(max(scale, 1.0))) - LATTICE_BITS)
    if sizes.is_paper:
        squared, lines = _paper_radii(trees, sizes, epsilon, failure_prob)
    else:
        squared, lines = _tight_radii(trees, sizes, scale, quantum, failure_prob)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        squared = (confidence_multiplier * confidence_multiplier * squared).astype(budget.dtype)
        intercepts, slopes = (on_lattice(confidence_multiplier * line, confidence_multiplier * scale) for line in lines)
    if not all(np.isfinite(table).all() for table in (squared, intercepts, slopes)) or not (squared[2:] > 0).all():
        raise ValueError(
            f"epsilon and confidence_multiplier must give bounds within the range of {budget.dtype}, got {epsilon} and "
            f"{confidence_multiplier}"
        )
    return Params(
        epsilon=budget,
        noise=node,
        quantum=scalar_leaf("the lattice of nodes", quantum),
        squared_radius=squared,
        intercepts=intercepts,
        slopes=slopes,
    )


def _paper_radii(trees: Trees, sizes: Sizes, epsilon: float, failure_prob: float) -> tuple[np.ndarray, NoiseLines]:
    """Returns the paper's `Params.squared_radius` and noise line, from n r = sqrt(x n) + 16 x (ln T)^2.5 / epsilon."""
    # x = ln(K T / failure_prob)
    log_events = math.log(sizes.num_arms) + math.log(sizes.horizon) - math.log(failure_prob)
    intercepts = np.asarray([16 * log_events * math.log(sizes.horizon) ** 2.5 / epsilon])
    return np.full(sizes.num_arms + 1, log_events), NoiseLines(intercepts, np.zeros((trees.levels, 1)))


def _tight_radii(
    trees: Trees, sizes: Sizes, scale: float, quantum: float, failure_prob: float
) -> tuple[np.ndarray, NoiseLines]:
    """Returns the proven `Params.squared_radius` and noise lines, each with half of failure_prob."""
    failure_prob_each = failure_prob / (2 * sizes.num_arms * sizes.entries)  # for one arm's counter after one entry
    if not failure_prob_each > 0:
        raise ValueError(f"failure_prob must be larger: all arms and rounds share it, got {failure_prob}")
    lines = noise_lines(
        arity=trees.arity,
        levels=trees.levels,
        combine=True,
        noise=trees.name,
        scale=scale,
        quantum=quantum,
        failure_prob=failure_prob_each,
    )
    return score_radii(sizes.num_arms, sizes.horizon, failure_prob / 2), lines
