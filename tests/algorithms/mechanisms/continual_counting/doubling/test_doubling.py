"""Tests of `doubling` alone."""

import numpy as np
import pytest

from jaxdp.mechanisms import (
    doubling_counter,
    tree_variance,
)
from tests.algorithms.mechanisms.continual_counting.streams import check_variance, errors


def test_doubling_epochs():
    """Checks variances by the epochs' trees, and simulated; a tree of the wrong height fails."""
    length = 13
    times = np.arange(1, length + 1)
    for noise, arity, combine in (("laplace", 2, True), ("gaussian", 3, False)):
        counter = doubling_counter(horizon=length, arity=arity, noise=noise, combine=combine)
        params = counter.params(**({"epsilon": 1.0} if noise == "laplace" else {"rho": 1.0}))
        expected, closed, start, height = np.zeros(length), 0.0, 1, 1
        while start <= length:  # an epoch is a tree of as many levels as its first entry's number has digits
            size = (arity - 1) * arity ** (height - 1)
            inside = np.arange(1, min(size, length - start + 1) + 1)
            own = {"horizon": arity**height - 1, "arity": arity, "noise": noise, "combine": combine}
            expected[start - 1 : start - 1 + len(inside)] = closed + tree_variance(inside, **own)
            closed += tree_variance(size, **own)
            start, height = start + size, height + 1
        np.testing.assert_allclose(counter.variance(params, times), expected, rtol=1e-5)
        found = errors(counter, params, length)
        check_variance(found, expected)
        with pytest.raises(AssertionError):
            check_variance(found, np.concatenate([expected[:3], expected[2:-1]]))
    long = doubling_counter()
    assert long.variance(long.params(epsilon=1.0), 1) == pytest.approx(2.0)
    assert long.variance(long.params(epsilon=1.0), 10**6) < 3 * tree_variance(10**6, horizon=10**6, arity=2)
