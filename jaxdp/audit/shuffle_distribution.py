"""Computes the exact distribution of a shuffled batch of binary reports, as an independent check of the accounting."""

import math
from collections.abc import Sequence

import numpy as np

from jaxdp.audit.exact import OutputDistribution
from jaxdp.validation import check_above, check_within


def distribution_of_ones(bits: Sequence[int] | np.ndarray, local_epsilon: float) -> OutputDistribution:
    """Returns the exact distribution of the number of ones among the randomized responses of these bits.

    The number of ones is the sum of two binomial counts: the ones reported by users with bit 1, and the ones reported
    by users with bit 0. Shuffled reports reveal only this sum, so its distributions for two neighbouring batches give
    the exact budget.

    Args:
        bits: [batch] numbers 0 or 1, the users' values.
        local_epsilon: epsilon of each report, > 0; at infinity the reports are the bits.

    Returns:
        Probabilities of 0, ..., batch, with relative errors of about 1e-12.

    Raises:
        ValueError: if bits are not a vector of 0 and 1, or local_epsilon is not > 0.

    Examples:
        >>> distribution = distribution_of_ones([1, 1], math.log(3))  # each is kept with probability 3/4
        >>> [round(distribution[count], 12) for count in range(3)]
        [0.0625, 0.375, 0.5625]
    """
    from scipy.stats import binom  # imported here because SciPy is slow to import

    values = check_within("bits", bits, 0, 1)
    if values.ndim != 1:
        raise ValueError(f"bits must be a vector, got shape {values.shape}")
    if not np.all((values == 0) | (values == 1)):
        raise ValueError(f"bits must be 0 or 1, got {values.tolist()}")
    local_epsilon = check_above("local_epsilon", local_epsilon, 0.0)
    ones = int(values.sum())
    zeros = values.size - ones
    # Not 1 - 1 / (1 + x), which would lose the digits of a small x.
    move = math.exp(-local_epsilon) / (1 + math.exp(-local_epsilon))
    moved_ones = binom.pmf(np.arange(ones + 1), ones, move)
    moved_zeros = binom.pmf(np.arange(zeros + 1), zeros, move)
    distribution = np.convolve(moved_ones[::-1], moved_zeros)
    return dict(enumerate(distribution.tolist()))
