"""The smallest number of repetitions with which a lower bound on a share can be shown."""

import math

from jaxdp.validation import check_probability


def seeds_needed(at_least: float, *, confidence: float = 0.95, sides: int = 1) -> int:
    """Returns the fewest seeds that can show a share of at least `at_least`: they show it if all of them are hits.

    Use it before a sweep: with fewer seeds no outcome is an answer, neither yes nor no. To show a share of at most p
    takes as many as to show a share of at least 1 - p. If some seeds may miss, more are needed.

    Args:
        at_least: the share to be shown, in (0, 1).
        confidence: confidence of the conclusion, in (0, 1).
        sides: 1 for a one-sided limit, as in `smallest_epsilon`; 2 for the lower limit of `share_interval`.

    Raises:
        ValueError: if an argument is out of its range.

    Source:
        Clopper & Pearson (1934): with n hits of n the lower limit is error^(1 / n).

    Examples:
        >>> seeds_needed(0.95), seeds_needed(0.95, sides=2)
        (59, 72)
    """
    check_probability("at_least", at_least)
    check_probability("confidence", confidence)
    if sides not in (1, 2):
        raise ValueError(f"sides must be 1 or 2, got {sides}")
    return max(1, math.ceil(math.log((1 - confidence) / sides) / math.log(at_least)))
