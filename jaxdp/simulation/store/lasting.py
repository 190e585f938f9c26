"""Refuses to read or write a store once it was moved, removed or replaced since it was opened, and damaged chunks."""

import json
import os
from pathlib import Path
from typing import Any

from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
from zarr.storage import LocalStore

from jaxdp.simulation.store.seal import COMPUTES_AGAIN, METADATA

try:
    from google_crc32c import value as crc32c
except ImportError:  # Zarr 3.1.3 comes with another package for the same sum
    from crc32c import crc32c  # pyright: ignore[reportMissingImports]


def stamp(root: Path) -> tuple[int, int]:
    """What tells a store from another that takes its place, and from itself once its sweep grew.

    Raises:
        OSError: if there is none.
    """
    return _stamp_of((root / METADATA).stat())  # written with the store, and when its sweep grows


def _stamp_of(status: os.stat_result) -> tuple[int, int]:
    return status.st_ino, status.st_mtime_ns


class LastingStore(LocalStore):
    """A local store that refuses to go on once its folder is gone, or another store has taken its place.

    Zarr makes folders as it needs them: after a move, writing would begin a second folder at the old path, with some
    results and nothing that says what they are.

    Attributes:
        description: the parsed content of the store's file of metadata, which is read once; None if it is no JSON.
    """

    def __init__(self, root: Path | str, *, read_only: bool = False) -> None:
        """Takes note of which store is there.

        Raises:
            OSError: if there is none.
        """
        super().__init__(root, read_only=read_only)
        try:
            with (self.root / METADATA).open("rb") as file:
                self._first: tuple[int, int] | None = _stamp_of(os.fstat(file.fileno()))
                self._text = file.read()
        except OSError as error:
            raise OSError(f"results must be where they were written, but {self.root} is gone") from error
        self.description, self._summed = None, frozenset()
        try:
            self.description = json.loads(self._text)
            arrays = self.description["consolidated_metadata"]["metadata"]
            self._summed = frozenset(name for name in arrays if arrays[name]["codecs"][-1]["name"] == "crc32c")
        except (ValueError, KeyError, TypeError, IndexError):  # whoever opens the store finds out
            pass

    def _stamp(self) -> tuple[int, int] | None:
        try:
            return stamp(self.root)
        except OSError:
            return None

    def _grew(self) -> bool:
        """Whether the store that is there now is the one that was opened, with a larger sweep."""
        try:
            arrays = json.loads((self.root / METADATA).read_text())["consolidated_metadata"]["metadata"]
            layout = json.loads(arrays["computed"]["attributes"]["layout"])
        except (OSError, KeyError, ValueError):
            return False
        return self._first is not None and list(self._first) in layout.get("before", [])

    def check_same(self) -> None:
        """Checks that the store that was opened is still there.

        A reader may go on when the sweep grows: files that were there keep what they held.

        Raises:
            OSError: if not.
        """
        now = self._stamp()
        if now == self._first:
            return
        if self.read_only and self._grew():
            self._first = now
            return
        if not self.read_only:
            raise OSError(
                f"store must stay at its path while a sweep writes it, but {self.root} was moved, removed or replaced; "
                "the same call goes on from what was written, with store= where it is now"
            )
        if now is None:
            raise OSError(f"results must still be where they were written, but {self.root} is gone")
        raise OSError(
            f"results must still be where they were written, but {self.root} was overwritten since; results.load() "
            "before that keeps them"
        )

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """As `LocalStore.get`, of the same store."""
        self.check_same()
        if key == METADATA and byte_range is None:  # all of one moment
            return (prototype or default_buffer_prototype()).buffer.from_bytes(self._text)
        return self._check_sum(key, await super().get(key, prototype, byte_range), byte_range)

    def get_sync(self, key: str, **keywords: Any) -> Buffer | None:
        """As `LocalStore.get_sync`, of the same store."""
        self.check_same()
        if key == METADATA and keywords.get("byte_range") is None:
            return (keywords.get("prototype") or default_buffer_prototype()).buffer.from_bytes(self._text)
        return self._check_sum(key, super().get_sync(key, **keywords), keywords.get("byte_range"))

    async def set(self, key: str, value: Buffer) -> None:
        """As `LocalStore.set`, of the same store."""
        self.check_same()
        await super().set(key, value)

    def set_sync(self, key: str, value: Buffer) -> None:
        """As `LocalStore.set_sync`, of the same store."""
        self.check_same()
        super().set_sync(key, value)

    def _check_sum(self, key: str, value: Buffer | None, byte_range: ByteRequest | None) -> Buffer | None:
        """Checks that a whole chunk ends with its checksum: Zarr's own error does not name the file.

        Raises:
            OSError: if not.
        """
        name, _, rest = key.partition("/")
        if value is None or byte_range is not None or name not in self._summed or not rest.startswith("c"):
            return value
        content = value.as_numpy_array()
        if len(content) < 4 or crc32c(content[:-4]) != int.from_bytes(content[-4:].tobytes(), "little"):
            advice = COMPUTES_AGAIN if self.read_only else ""
            raise OSError(f"{self.root / key} cannot be read: its checksum is wrong{advice}")
        return value
