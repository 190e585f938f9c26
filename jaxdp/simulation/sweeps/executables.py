"""Caches the programs that this process has compiled, so that rerunning a notebook's cell compiles nothing."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

MOST_KEPT = 32
MOST_BYTES = 2**28


class _Entry(NamedTuple):
    executable: Any
    num_bytes: int


class Executables:
    """A cache of the most recently used executables, limited in number and size."""

    def __init__(self, most: int = MOST_KEPT, most_bytes: int = MOST_BYTES) -> None:
        """Creates an empty cache for at most `most` executables with at most `most_bytes` bytes of arrays in total."""
        self._max_entries, self._max_bytes = most, most_bytes
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, num_bytes: int, make: Callable[[], Any]) -> Any:
        """Returns the executable for a key; `make` compiles the executable if it is not stored.

        The key contains everything that the executable depends on. The arrays in the executable take `num_bytes` bytes
        in total. Two threads that request the same key may both compile.
        """
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key].executable
        entry = _Entry(make(), num_bytes)
        with self._lock:
            self._entries[key] = entry
            while (
                len(self._entries) > self._max_entries
                or sum(stored.num_bytes for stored in self._entries.values()) > self._max_bytes
            ):
                self._entries.popitem(last=False)
        return entry.executable

    def clear(self) -> None:
        """Removes all executables."""
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)


EXECUTABLES = Executables()
