"""Compares all pairs of means, with Bonferroni's correction."""

import numpy as np
import xarray as xr

from jaxdp.stats._paired import differences
from jaxdp.stats.arrays import check_array, check_different, check_distinct_labels
from jaxdp.validation import check_probability

CELLS = 2**22  # largest number of differences that are in memory together (32 MB), unless one label has more


def all_pairs(values: xr.DataArray, along: str, *, over: str = "seed", confidence: float = 0.95) -> xr.Dataset:
    """Compares the means at all pairs of labels of a dimension, paired by seed.

    You may look at the means first and then choose pairs, for example all pairs that include the smallest mean. Suppose
    that every pair with p_adjusted <= 1 - confidence is declared different. At each point of the other dimensions, the
    probability that any of these declarations is wrong is then at most 1 - confidence if differences are normally
    distributed.

    Args:
        values: numbers with the dimensions `along` and `over`; seeds are independent.
        along: the dimension with the labels to compare, such as "learner".
        over: the dimension of independent repetitions.
        confidence: simultaneous confidence, in (0, 1), of all intervals at one point of the other dimensions.

    Returns:
        A Dataset along `along` and along `against`, which has the same labels. Its variables are `difference` (label
        minus `against`), the limits `low` and `high` of its confidence interval, and `p_adjusted`, the two-sided
        p-value of the hypothesis of no difference. Intervals and p-values have Bonferroni's correction for the number
        of pairs. Up to rounding, an interval excludes 0 if and only if p_adjusted < 1 - confidence. For a label against
        itself, the difference and its limits are 0, and p_adjusted is 1.

    Raises:
        ValueError: if values lack a dimension, or have one named against; if a label is repeated, or another argument
            is out of its range.

    Examples:
        >>> regret = xr.DataArray(
        ...     [[5.0, 6.0, 9.0], [4.0, 5.0, 7.0], [9.0, 9.0, 12.0]], {"learner": ["a", "b", "c"]}, ("learner", "seed")
        ... )
        >>> pair = all_pairs(regret, "learner").sel(learner="c", against="b")
        >>> print(f"{pair.difference:.2f} in [{pair.low:.2f}, {pair.high:.2f}], p = {pair.p_adjusted:.3f}")
        4.67 in [2.12, 7.22], p = 0.015
    """
    check_array("values", values, along, over)
    check_probability("confidence", confidence)
    check_different("along", along, over)
    if "against" in {*values.dims, *values.coords}:
        raise ValueError("values must have no dimension or coordinate named against, which the result has: rename it")
    labels = check_distinct_labels(values, along)
    num_pairs = max(1, len(labels) * (len(labels) - 1) // 2)
    numbers = values.astype(np.float64)
    labels_only = [name for name, coordinate in numbers.coords.items() if along in coordinate.dims and name != along]
    references = numbers.drop_vars(labels_only).rename({along: "against"}).assign_coords(against=labels)
    step = max(1, CELLS // max(1, numbers.size))
    tables: list[xr.Dataset] = []
    for start in range(0, len(labels), step):
        reference = references.isel(against=slice(start, start + step))
        less_reference = numbers.expand_dims(against=reference.against) - reference
        tables.append(xr.Dataset(differences(less_reference, over, 1 - (1 - confidence) / num_pairs)))
    pairs = tables[0]
    if len(tables) > 1:
        pairs = xr.concat(tables, "against", coords="minimal", join="exact", compat="override")
    is_same = pairs[along] == pairs.against
    adjusted = (pairs.p_value * num_pairs).clip(max=1.0).where(~is_same, 1.0)
    return pairs[["difference", "low", "high"]].where(~is_same, 0.0).assign(p_adjusted=adjusted)
