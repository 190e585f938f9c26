"""The second point at which an entry is attacked."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

NONE: Mapping[str, Any] = MappingProxyType({})


class Second(NamedTuple):
    """A second point at which audits attack an entry, given by the differences from the entry's fields.

    Attributes:
        sizes: the sizes that differ.
        values: the values that differ.
        neighbours: other neighbours, as for the entry; None keeps the entry's neighbours.
    """

    sizes: Mapping[str, Any] = NONE
    values: Mapping[str, float] = NONE
    neighbours: Any = None

    def __str__(self) -> str:
        """Returns the sizes and values, for example "horizon=24, max_switches=2"."""
        parts = [f"{name}={value}" for name, value in (*self.sizes.items(), *self.values.items())]
        return ", ".join(parts) or "other neighbours"
