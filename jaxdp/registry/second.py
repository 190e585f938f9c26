"""The second point at which auditors attack an entry."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

NONE: Mapping[str, Any] = MappingProxyType({})


class Second(NamedTuple):
    """What an entry has at its second point in place of what it has at its first one.

    Attributes:
        sizes: those that are other.
        values: those that are other.
        neighbours: as the entry's; None keeps these.
    """

    sizes: Mapping[str, Any] = NONE
    values: Mapping[str, float] = NONE
    neighbours: Any = None

    def __str__(self) -> str:
        """The sizes and values, as in "horizon=24, max_switches=2"."""
        told = [f"{name}={value}" for name, value in (*self.sizes.items(), *self.values.items())]
        return ", ".join(told) or "other neighbours"
