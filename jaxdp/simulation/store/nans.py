"""Counts and reports lanes with NaN, which stay in the results."""

import warnings
from collections import Counter
from collections.abc import Mapping

import numpy as np


class NanCount:
    """A counter of lanes with NaN, for each output."""

    def __init__(self) -> None:
        self.lanes = 0
        self.found: Counter[str] = Counter()

    def add(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Counts the lanes with NaN in outputs that have a leading axis of lanes."""
        self.lanes += len(next(iter(arrays.values()), ()))
        for name, values in arrays.items():
            if values.dtype.kind in "fc":
                lanes = np.isnan(values).reshape(len(values), -1).any(axis=1).sum()
                if lanes:
                    self.found[name] += int(lanes)

    def report(self) -> None:
        """Warns with a RuntimeWarning if a lane has NaN."""
        if self.found:
            warnings.warn(f"NaN in {self.text()}; the results keep them", RuntimeWarning, stacklevel=3)

    def text(self) -> str:
        """Returns the counts as text."""
        return ", ".join(f"{name} of {count} of {self.lanes} lanes" for name, count in self.found.items())
