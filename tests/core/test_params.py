"""Numbers as leaves of `Params`: rounded, never beyond a budget, and never subnormal."""

from fractions import Fraction

import numpy as np
import pytest

from jaxdp.core import default_float, leaf_rounded_down, scalar_leaf

LEAST = float(np.finfo(default_float()).smallest_normal)


@pytest.mark.parametrize("count", [2, 3, 7, 10, 49])
def test_shares_of_a_budget_are_at_most_the_budget_together(count):
    for epsilon in (1.0, 0.3, 9.1):
        share = float(leaf_rounded_down("epsilon", Fraction(epsilon) / count))
        assert Fraction(share) * count <= Fraction(epsilon)
        assert share == pytest.approx(epsilon / count, rel=3e-7)


def test_no_leaf_is_subnormal():
    assert float(scalar_leaf("rate", LEAST)) == LEAST
    for to_leaf in (scalar_leaf, leaf_rounded_down):
        with pytest.raises(ValueError, match="rate must be within the range of float"):
            to_leaf("rate", LEAST / 2)
    below = Fraction(LEAST) * (1 - Fraction(1, 2**60))  # rounded to nearest, it is the least normal number
    assert float(scalar_leaf("rate", below)) == LEAST
    with pytest.raises(ValueError, match="rate must be within the range of float"):
        leaf_rounded_down("rate", below)
