"""Compares means that are paired by seed, with Holm's correction."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import stdtr

from jaxdp.stats.arrays import check_array, check_different, check_distinct_labels, means, student_quantile
from jaxdp.validation import check_choice, check_probability


def paired(
    values: xr.DataArray,
    along: str,
    against: Any,
    *,
    over: str = "seed",
    confidence: float = 0.95,
    adjust: str | None = "holm",
) -> xr.Dataset:
    """Compares the means at all labels of a dimension with the mean at one label, paired by seed.

    In a sweep, all learners and all epsilons meet the same world at the same seed. The effect of the world cancels in
    differences, so Student's t interval of a difference is narrower than two separate intervals suggest. To measure the
    cost of privacy, compare along "epsilon" against infinity. Learners that are simulated by counts meet different
    worlds; intervals of their differences are valid, but not narrower.

    Args:
        values: numbers with the dimensions `along` and `over`; seeds are independent.
        along: the dimension with the labels to compare, such as "learner" or "epsilon".
        against: the label with which all other labels are compared.
        over: the dimension of independent repetitions.
        confidence: confidence, in (0, 1), of each single interval, not of all intervals together.
        adjust: "holm" to return `p_adjusted`; None to leave it out.

    Returns:
        A Dataset along the other labels. Its variables are `difference` (label minus `against`) and the limits `low`
        and `high` of its confidence interval; `p_value`, the two-sided p-value of the hypothesis of no difference (1 if
        all differences are 0); and `p_adjusted`, which is corrected by Holm's method for all comparisons in the result,
        along all dimensions. If every mean with p_adjusted <= 0.05 is declared different, the probability that any of
        these declarations is wrong is at most 5% if differences are normally distributed. Limits and p-values are NaN
        for a single seed, and for a comparison with a value that is NaN or infinite. Such a comparison counts in the
        correction.

    Raises:
        ValueError: if values lack a dimension, a label is repeated, `against` is not a label or is the only label, or
            if another argument is out of its range.

    Source:
        Holm (1979), the step-down procedure, which makes no assumption on the dependence between comparisons.

    Examples:
        >>> regret = xr.DataArray([[5.0, 6.0, 9.0], [4.0, 5.0, 7.0]], {"epsilon": [1.0, np.inf]}, ("epsilon", "seed"))
        >>> cost = paired(regret, "epsilon", against=np.inf)
        >>> print(f"{cost.difference.item():.2f} in [{cost.low.item():.2f}, {cost.high.item():.2f}]")
        1.33 in [-0.10, 2.77]
    """
    check_array("values", values, along, over)
    check_probability("confidence", confidence)
    if adjust is not None:
        check_choice("adjust", adjust, ("holm",))
    check_different("along", along, over)
    labels = check_distinct_labels(values, along)
    if np.ndim(against):
        raise ValueError(f"against must be one label of {along}, got {against!r}")
    (indices,) = np.nonzero(labels == against)
    if len(indices) != 1 or len(labels) < 2:
        raise ValueError(f"against must be one label of {along}, of two or more, got {against!r} of {labels.tolist()}")
    others, reference = values.isel({along: labels != against}), values.isel({along: indices[0]}, drop=True)
    results = differences(others.astype(np.float64) - reference.astype(np.float64), over, confidence)
    if adjust is not None:
        p_value = results["p_value"]
        results["p_adjusted"] = p_value.copy(data=_holm(p_value.values))
    return xr.Dataset(results)


def differences(pairs: xr.DataArray, over: str, confidence: float) -> dict[str, xr.DataArray]:
    """Returns `difference`, `low`, `high` and `p_value` of `paired` for float64 differences of values."""
    difference, error, count = means(pairs, over)
    half = student_quantile((1 + confidence) / 2, count) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = abs(difference) / error
    p_value = xr.full_like(difference, np.nan) if count < 2 else ratio.copy(data=2 * stdtr(count - 1, -ratio.values))
    p_value = p_value.where((difference != 0) | (error != 0), 1.0)
    return {"difference": difference, "low": difference - half, "high": difference + half, "p_value": p_value}


def _holm(p_values: np.ndarray) -> np.ndarray:
    """Returns Holm's adjusted p-values over all entries. A NaN is sorted last, but counts as a comparison."""
    order = np.argsort(p_values, axis=None)
    steps = np.arange(p_values.size, 0, -1) * p_values.flat[order]
    adjusted = np.empty(p_values.shape)
    adjusted.flat[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted
