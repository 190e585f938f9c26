"""Computes the smallest number of seeds that can show a lower bound on a proportion."""

import math

from jaxdp.validation import check_probability


def seeds_needed(at_least: float, *, confidence: float = 0.95, sides: int = 1) -> int:
    """Returns the smallest number of seeds that can show that a proportion is at least `at_least`.

    This number suffices only if all seeds are hits; if some seeds miss, more seeds are needed. Call the function before
    a sweep, because fewer seeds cannot show the proportion. To show that a proportion is at most p, the same number of
    seeds is needed as to show that a proportion is at least 1 - p.

    Args:
        at_least: the proportion to show, in (0, 1).
        confidence: confidence of the conclusion, in (0, 1).
        sides: 1 for the one-sided limit of `smallest_epsilon`, or 2 for the lower limit of `share_interval`.

    Raises:
        ValueError: if an argument is out of its range.

    Source:
        Clopper & Pearson (1934): with n hits in n seeds, the lower limit is ((1 - confidence) / sides)^(1 / n).

    Examples:
        >>> seeds_needed(0.95), seeds_needed(0.95, sides=2)
        (59, 72)
    """
    check_probability("at_least", at_least)
    check_probability("confidence", confidence)
    if sides not in (1, 2):
        raise ValueError(f"sides must be 1 or 2, got {sides}")
    return max(1, math.ceil(math.log((1 - confidence) / sides) / math.log(at_least)))
