"""Differences of all pairs of means, with Bonferroni's correction."""

from functools import partial

import xarray as xr

from jaxdp.stats._paired import paired
from jaxdp.stats.arrays import check_array
from jaxdp.validation import check_probability


def all_pairs(values: xr.DataArray, along: str, *, over: str = "seed", confidence: float = 0.95) -> xr.Dataset:
    """Compares the means at every two labels of a dimension, paired by seed.

    The pairs to read may be chosen after a look at the means, for example all labels beside the smallest mean: at each
    point of the other dimensions, if every pair with p_adjusted <= 1 - confidence is called different, one or more of
    these calls are wrong with probability at most 1 - confidence.

    Args:
        values: numbers with the dimensions `along` and `over`; seeds are independent.
        along: the dimension with the labels to compare, such as "learner".
        over: the dimension of independent repetitions.
        confidence: confidence of all ranges of one point of the other dimensions together, in (0, 1).

    Returns:
        Along the labels and `against`, the same labels: `difference` (label minus `against`); `low` and `high`; and
        `p_adjusted`, two-sided, of no difference. A range excludes 0 if and only if p_adjusted < 1 - confidence, up to
        rounding. All are corrected by Bonferroni for the pairs of one point of the other dimensions. On the diagonal
        differences are 0 and p_adjusted is 1.

    Raises:
        ValueError: if values lack a dimension, a label is repeated, or another argument is out of its range.

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
    labels = values[along].values
    if len(labels) == 1:
        zeros = xr.zeros_like(values.isel({over: 0}, drop=True), dtype=float).expand_dims(against=labels)
        return xr.Dataset({"difference": zeros, "low": zeros, "high": zeros, "p_adjusted": zeros + 1.0})
    num_pairs = len(labels) * (len(labels) - 1) // 2
    compare = partial(paired, values, along, over=over, confidence=1 - (1 - confidence) / num_pairs, adjust=None)
    tables = [
        compare(against=label).reindex({along: labels}).expand_dims(against=labels[index : index + 1])
        for index, label in enumerate(labels)
    ]
    pairs = xr.concat(tables, "against", coords="minimal", compat="override", join="outer").reindex(against=labels)
    is_same = pairs[along] == pairs.against
    adjusted = (pairs.p_value * num_pairs).clip(max=1.0).where(~is_same, 1.0)
    return pairs[["difference", "low", "high"]].where(~is_same, 0.0).assign(p_adjusted=adjusted)
