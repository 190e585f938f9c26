"""How often intervals contain the truth, over 20,000 simulated datasets."""

import numpy as np
import xarray as xr

DATASETS = 20_000
SEEDS = (8, 20, 100)


def covered(low, high, truth):
    share = float(((low <= truth) & (truth <= high)).mean())
    print(f"covered: {share:.4f}")
    return share


def check_coverage(low, high, truth, *, exact=False):
    """Checks for at least 94.5%, where 95% is meant, and at most 96%, where the interval is exact.

    The standard error is 0.15%.
    """
    share = covered(low, high, truth)
    assert share >= 0.945
    assert share <= 0.96 or not exact


def datasets(draw, *sizes, dims=("seed",), **coords):
    """Draws 20,000 datasets by `draw(rng, shape)`, always the same ones."""
    values = draw(np.random.default_rng(22), (DATASETS, *sizes))
    return xr.DataArray(values, coords, ("dataset", *dims))
