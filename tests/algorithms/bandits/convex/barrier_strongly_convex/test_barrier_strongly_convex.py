"""Tests of `barrier_strongly_convex` alone."""

import pytest

from jaxdp.bandits.convex import barrier_strongly_convex


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"smoothness": 0.5}, "smoothness must be >= 1, got 0.5"),
        ({"strong_convexity": 0.0}, "strong_convexity must be > 0, got 0.0"),
    ],
)
def test_bad_values(values, message):
    with pytest.raises(ValueError, match=message):
        barrier_strongly_convex(dim=2, horizon=9).params(epsilon=1.0, **values)
