"""Programs that this process has compiled: the same program, as of a notebook's cell run again, is compiled once."""

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
    """The executables that were used last, as many as their number and size allow."""

    def __init__(self, most: int = MOST_KEPT, most_bytes: int = MOST_BYTES) -> None:
        """Starts with none.

        Args:
            most: how many to keep.
            most_bytes: of the arrays that they hold, all together.
        """
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, num_bytes: int, make: Callable[[], Any]) -> Any:
        """The executable of this key, made if it is not kept.

        Args:
            key: of all that the executable depends on.
            num_bytes: of the arrays that it holds.
            make: compiles it. Two threads that ask for one key at a time may both compile.
        """
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key].executable
        entry = _Entry(make(), num_bytes)
        with self._lock:
            self._kept[key] = entry
            while (
                len(self._kept) > self._most or sum(kept.num_bytes for kept in self._kept.values()) > self._most_bytes
            ):
                self._kept.popitem(last=False)
        return entry.executable

    def clear(self) -> None:
        """Forgets all."""
        with self._lock:
            self._kept.clear()

    def __len__(self) -> int:
        return len(self._kept)


EXECUTABLES = Executables()
