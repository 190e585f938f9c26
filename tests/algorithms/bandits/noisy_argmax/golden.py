"""An independent version of `noisy_argmax`, in NumPy."""

import numpy as np


def noisy_argmax(generator, epsilon, *, means, num_rounds, lanes):
    """Returns the recommended arm of each lane, by permute-and-flip.

    Arms are visited in random order, and the first is taken that a coin accepts. Its bias is exp(-epsilon (largest
    total - total)): a reward moves one total, by at most 1.
    """
    totals = generator.binomial(num_rounds // len(means), means, (lanes, len(means)))
    accepted = generator.random(totals.shape) < np.exp(-epsilon * (totals.max(1, keepdims=True) - totals))
    return np.argmin(np.where(accepted, generator.random(totals.shape), np.inf), axis=1)
