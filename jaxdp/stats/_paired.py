"""Differences of paired means, with Holm's correction."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import stdtr

from jaxdp.stats.arrays import check_array, means, student_quantile
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
    """Compares the mean at every label of a dimension with the mean at one of them, paired by seed.

    In a sweep each seed draws one world for all learners and all epsilons. The effect of this world on all of them
    cancels in their difference, so its interval (Student's, of the differences) is narrower than two separate intervals
    suggest. Along "epsilon" against infinity the differences are the cost of privacy. Where worlds differ the interval
    is still valid, but no narrower: learners that play by counts have worlds of their own.

    Args:
        values: numbers with the dimensions `along` and `over`; seeds are independent.
        along: the dimension with the labels to compare, such as "learner" or "epsilon".
        against: the label that the others are compared with.
        over: the dimension of independent repetitions.
        confidence: confidence of each interval alone, in (0, 1), not of all comparisons together.
        adjust: "holm" for `p_adjusted`, or None for none.

    Returns:
        Along the other labels: `difference` (label minus `against`), `low` and `high`; `p_value`, two-sided, of no
        difference, 1 if all differences are 0; and `p_adjusted`, by Holm over all comparisons of the result, including
        those along further dimensions. If all with p_adjusted <= 0.05 are called different, one or more of these calls
        are wrong with probability at most 5%. A comparison that is NaN is counted, and stays NaN.

    Raises:
        ValueError: if values lack a dimension, a label is repeated, `against` is not a label or is the only one, or
            another argument is out of its range.

    Source:
        Holm (1979), the step-down procedure; it needs no assumption on the dependence of comparisons.

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
    if along == over:
        raise ValueError(f"along must be another dimension than over, got {along!r} for both")
    labels = values[along].values
    if np.ndim(against):
        raise ValueError(f"against must be one label of {along}, got {against!r}")
    (indices,) = np.nonzero(labels == against)
    if len(indices) != 1 or len(labels) < 2:
        raise ValueError(f"against must be one label of {along}, of two or more, got {against!r} of {labels.tolist()}")
    others, reference = values.isel({along: labels != against}), values.isel({along: indices[0]}, drop=True)
    difference, error, count = means(others.astype(np.float64) - reference.astype(np.float64), over)
    half = student_quantile((1 + confidence) / 2, count) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = abs(difference) / error
    p_value = xr.full_like(difference, np.nan) if count < 2 else ratio.copy(data=2 * stdtr(count - 1, -ratio.values))
    p_value = p_value.where((difference != 0) | (error != 0), 1.0)
    results = {"difference": difference, "low": difference - half, "high": difference + half, "p_value": p_value}
    if adjust is not None:
        results["p_adjusted"] = p_value.copy(data=_holm(p_value.values))
    return xr.Dataset(results)


def _holm(p_values: np.ndarray) -> np.ndarray:
    """Returns Holm's adjusted p-values over all entries. NaN comes last, so that it counts as a comparison."""
    order = np.argsort(p_values, axis=None)
    steps = np.arange(p_values.size, 0, -1) * p_values.flat[order]
    adjusted = np.empty(p_values.shape)
    adjusted.flat[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted
