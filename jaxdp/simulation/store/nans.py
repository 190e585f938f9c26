"""Counts and reports lanes with NaN. NaNs stay in the results."""

import warnings
from collections import Counter
from collections.abc import Mapping

import numpy as np


class NanCount:
    """A counter of the lanes with NaN in each output.

    Attributes:
        lanes: number of lanes that were searched.
        found: number of lanes with NaN, keyed by the output's name; outputs without NaN are left out.
    """

    def __init__(self) -> None:
        self.lanes = 0
        self.found: Counter[str] = Counter()

    def add(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Adds the lanes with NaN in `arrays`, which have a leading axis of lanes, to the counts."""
        self.lanes += len(next(iter(arrays.values()), ()))
        for name, values in arrays.items():
            if values.dtype.kind in "fc":
                lanes = np.isnan(values).reshape(len(values), -1).any(axis=1).sum()
                if lanes:
                    self.found[name] += int(lanes)

    def report(self) -> None:
        """Reports the counts in a RuntimeWarning if a lane has NaN."""
        if self.found:
            warnings.warn(f"NaN in {self.text()}; the results keep them", RuntimeWarning, stacklevel=3)

    def text(self) -> str:
        """Returns the counts as text."""
        return ", ".join(f"{name} of {count} of {self.lanes} lanes" for name, count in self.found.items())
