"""Public schedules of looks, in numbers of pairs of users. They are fixed before the first user arrives."""

from collections.abc import Iterator
from typing import NamedTuple

LOCAL_GROWTH = 100  # the number of pairs grows by 1 / 100 from look to look, and by at least one pair


def local_looks() -> Iterator[int]:
    """Yields the number of pairs at each look without a curator's noise: 1, 2, ..., 200, then each about 1% more."""
    pairs = 0
    while True:
        pairs += max(1, pairs // LOCAL_GROWTH)
        yield pairs


class Schedule(NamedTuple):
    """The looks of a curator; each look releases S and D (see `AnytimeCentral`) of the pairs since the previous look.

    Attributes:
        first: number of pairs at the first look, >= 1.
        growth: relative growth of the number of pairs from look to look, > 0.
        slope_share: the e-value's first slope divided by half the planned log odds ratio, before slopes are bounded
            (see `central_evidence`). Smaller slopes reduce the e-value's correction for the noise.
    """

    first: int
    growth: float
    slope_share: float = 1.0

    def looks(self) -> Iterator[int]:
        """Yields the number of pairs at each look."""
        exact, pairs = float(self.first), self.first
        while True:
            yield pairs
            exact *= 1 + self.growth
            pairs = max(pairs + 1, round(exact))
