"""The law of a shuffled batch of binary reports, by enumeration: nothing here is shared with the accounting."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import binom

from jaxdp.audit.exact import Law
from jaxdp.validation import check_above, check_within


def law_of_ones(bits: Sequence[int] | np.ndarray, local_epsilon: float) -> Law:
    """How many of the randomized responses of these bits are 1, exactly.

    The reports of ones and those of zeros are two binomial counts; the law of their sum adds up over all pairs. As
    shuffled reports tell no more than this count, two such laws give the exact budget of the batch.

    Args:
        bits: [batch] of 0 and 1, what the users hold.
        local_epsilon: of each report, > 0; infinity reports the bits.

    Returns:
        Probabilities of 0, ..., batch; each to about 1e-12 of itself.

    Raises:
        ValueError: if bits are not a vector of 0 and 1, or local_epsilon is not > 0.

    Examples:
        >>> law = law_of_ones([1, 1], math.log(3))  # each is kept with probability 3/4
        >>> [round(law[count], 12) for count in range(3)]
        [0.0625, 0.375, 0.5625]
    """
    held = check_within("bits", bits, 0, 1)
    if held.ndim != 1:
        raise ValueError(f"bits must be a vector, got shape {held.shape}")
    if not np.all((held == 0) | (held == 1)):
        raise ValueError(f"bits must be 0 or 1, got {held.tolist()}")
    local_epsilon = check_above("local_epsilon", local_epsilon, 0.0)
    ones = int(held.sum())
    zeros = held.size - ones
    # A rare event by its own probability: 1 - 1 / (1 + x) would lose the digits of a small x.
    move = math.exp(-local_epsilon) / (1 + math.exp(-local_epsilon))
    moved_ones = binom.pmf(np.arange(ones + 1), ones, move)
    moved_zeros = binom.pmf(np.arange(zeros + 1), zeros, move)
    law = np.convolve(moved_ones[::-1], moved_zeros)
    return dict(enumerate(law.tolist()))
