"""Tests of `label` alone."""

import math

import numpy as np
import pytest

from jaxdp.mechanisms import label_randomizer


@pytest.mark.precision
@pytest.mark.parametrize("num_labels", [2, 3, 10, 100])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 8.0])
def test_the_proxy_of_labels_by_their_exact_distribution(num_labels, epsilon):
    """Checks the least proxy for every probability of the larger estimate between its least and its most."""
    decay = math.exp(-epsilon)
    keep = 1 / (1 + (num_labels - 1) * decay)
    gap = 1 / (keep - decay * keep)
    x = np.concatenate([-np.geomspace(1e-2, 60, 3000), np.geomspace(1e-2, 60, 3000)])
    least = 0.0
    for p in np.linspace(decay * keep, keep, 101):
        least = max(least, np.max(2 * (np.log1p(p * np.expm1(x)) - p * x) / x**2))
    found = label_randomizer(num_labels).variance_proxy(epsilon=epsilon) / gap**2
    assert least * (1 - 1e-6) <= found <= least * (1 + 1e-3)
