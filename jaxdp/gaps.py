"""Makes bandit instances with a given smallest gap, by scaling all gaps by the same factor."""

import numpy as np

from jaxdp.core import scalar_leaf
from jaxdp.validation import check_number, check_positive, check_within

ROUNDING = 1e-12  # a mean may lie outside its interval by this amount


def with_smallest(gap: float | None, gaps: np.ndarray) -> np.ndarray:
    """Scales the gaps so that the smallest positive gap is `gap`.

    Args:
        gap: the smallest positive gap; None if gaps are not scaled.
        gaps: float64 >= 0, of any shape.

    Raises:
        ValueError: if gap is neither None nor a finite number > 0; or, for a given gap, if all gaps are zero, the
            scaled gaps overflow in float64, or gap is outside the range of JAX's default float type.

    Examples:
        >>> with_smallest(0.1, np.array([0.0, 0.25, 0.5])).tolist()
        [0.0, 0.1, 0.2]
    """
    if gap is None:
        return gaps
    check_positive("gap", gap)
    if not gaps.any():
        raise ValueError(f"gap must be None if all gaps are zero, got {gap}")
    with np.errstate(over="ignore"):
        scaled = gap * (gaps / gaps[gaps > 0].min())
    if not np.isfinite(scaled).all():
        raise ValueError(f"gap must leave all gaps in the range of float64, got {gap}")
    scalar_leaf("gap", gap)  # a gap that underflows to 0 would make all arms the best
    return scaled


def instance(
    means: np.ndarray, gap: float | None, best_mean: float | None, *, losses: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the arms' means, adapted to a smallest gap and a best mean, and their gaps, both [num_arms] float64.

    Args:
        means: [num_arms] finite numbers.
        gap: the smallest positive gap; all gaps are scaled by the same factor. None if gaps are not scaled.
        best_mean: new mean of the best arms; all other arms keep their gaps to this mean. None if it does not change.
        losses: whether means are losses, so that the smallest mean is best; otherwise the largest mean is best.

    Raises:
        ValueError: if `with_smallest` raises, or best_mean is not finite.

    Examples:
        >>> [array.tolist() for array in instance(np.array([0.5, 0.75]), 0.5, 1.0)]
        [[0.5, 1.0], [0.5, 0.0]]
    """
    exact = means.astype(np.float64)
    best = exact.min() if losses else exact.max()
    with np.errstate(over="ignore"):
        gaps = with_smallest(gap, np.abs(exact - best))
        if gap is None and best_mean is None:
            return exact, gaps
        best = best if best_mean is None else check_number("best_mean", best_mean)
        return (best + gaps if losses else best - gaps), gaps


def unit_instance(
    means: np.ndarray, gap: float | None, best_mean: float | None, *, losses: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the results of `instance`; if gap or best_mean is given, all means are clipped to [0, 1].

    The arguments are the same as for `instance`. Raises a ValueError in the same cases as `instance`, and if best_mean
    is outside [0, 1], or a changed mean is outside [0, 1] by more than `ROUNDING`.
    """
    if best_mean is not None:
        check_within("best_mean", check_number("best_mean", best_mean), 0.0, 1.0)
    new_means, gaps = instance(means, gap, best_mean, losses=losses)
    if gap is None and best_mean is None:
        return new_means, gaps
    if new_means.min() < -ROUNDING or new_means.max() > 1 + ROUNDING:
        raise ValueError(
            f"gap and best_mean must leave all means in [0, 1], got {gap} and {best_mean}, which give the means "
            f"{new_means.tolist()}"
        )
    return new_means.clip(0.0, 1.0), gaps
