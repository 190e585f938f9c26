"""Comparisons of all pairs: names of dimensions that the result has itself."""

import numpy as np
import pytest
import xarray as xr

from jaxdp.stats import all_pairs


def test_a_dimension_or_coordinate_named_against():
    values = xr.DataArray(np.ones((2, 3)), {"against": ["a", "b"]}, ("against", "seed"))
    for wrong, along in ((values, "against"), (values.rename(against="x").assign_coords(against=1), "x")):
        with pytest.raises(ValueError, match="values must have no dimension or coordinate named against"):
            all_pairs(wrong, along)
