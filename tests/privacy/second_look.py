"""A second look at right code whose attack exceeds the claim, so that chance fails hardly any test.

Many attacks reach all of a claim. At a confidence of 95% each, some of so many right claims would be called violated
whenever bits change. So such an attack is made again, on fresh outputs, with more trials and a higher confidence.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

FALSE_ALARM = 1e-3  # probability that a test's right claims are not all called consistent
FIRST = 0.95  # confidence of the first look
MORE = 10  # times the trials of the first look


class Found(Protocol):
    @property
    def verdict(self) -> str: ...


Look = TypeVar("Look", bound=Found)


def confidence_among(count: int) -> float:
    """Returns the confidence of each second look at `count` right claims."""
    return 1 - FALSE_ALARM / count


def look_twice(look: Callable[[int, int, float], Look], trials: int, *, among: int, more: int = MORE) -> Look:
    """Returns the first look, unless it finds a violation: then the second one.

    Args:
        look: (number of the look, trials, confidence) -> result; each number has its own key.
        trials: of the first look.
        among: number of right claims that are looked at.
        more: times the trials of the first look that the second one has.
    """
    found = look(0, trials, FIRST)
    return found if found.verdict != "violated" else look(1, more * trials, confidence_among(among))
