"""Peers of one-pass SGD on randomized labels, as a good engineer writes them: one scalar loop per seed, in parallel."""

import numpy as np
from numba import njit, prange


@njit(fastmath=True, parallel=True)
def sgd_rr(features, labels, epsilon, learning_rate, radius, estimates):  # pragma: no cover  compiled
    """Writes estimates [num_seeds, 5] from features [num_seeds, num_samples, 5] and radius [num_seeds], all float32."""
    num_seeds, num_samples, _ = features.shape
    lie = np.float32(1 / (1 + np.exp(epsilon)))
    gain = np.float32(1) - np.float32(2) * lie
    one, rate = np.float32(1), np.float32(learning_rate)
    for seed in prange(num_seeds):
        np.random.seed(seed)  # noqa: NPY002  Numba's own generator, one per thread
        a = b = c = d = e = np.float32(0)
        sum_a = sum_b = sum_c = sum_d = sum_e = np.float32(0)
        bound = radius[seed]
        for t in range(num_samples):
            x = features[seed, t]
            margin = a * x[0] + b * x[1] + c * x[2] + d * x[3] + e * x[4]
            label = labels[seed, t]
            if np.random.random() < lie:  # noqa: NPY002
                label = 1 - label
            target = (np.float32(label) - lie) / gain
            step = rate * gain * (one / (one + np.exp(-margin)) - target)
            a -= step * x[0]
            b -= step * x[1]
            c -= step * x[2]
            d -= step * x[3]
            e -= step * x[4]
            norm = a * a + b * b + c * c + d * d + e * e
            if norm > bound * bound:
                shrink = bound / np.sqrt(norm)
                a *= shrink
                b *= shrink
                c *= shrink
                d *= shrink
                e *= shrink
            if t >= num_samples // 2:
                sum_a += a
                sum_b += b
                sum_c += c
                sum_d += d
                sum_e += e
        kept = np.float32(num_samples - num_samples // 2)
        estimates[seed, 0] = sum_a / kept
        estimates[seed, 1] = sum_b / kept
        estimates[seed, 2] = sum_c / kept
        estimates[seed, 3] = sum_d / kept
        estimates[seed, 4] = sum_e / kept
