"""Defines `LastingStore`, a Zarr store that raises an error if it is damaged, moved, removed or replaced while open."""

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
except ImportError:  # Zarr 3.1.3 depends on another package for the same checksum
    from crc32c import crc32c  # pyright: ignore[reportMissingImports]


def stamp(root: Path) -> tuple[int, int]:
    """Returns the inode and mtime (ns) of a store's `zarr.json`, which identify the store until this file changes."""
    return _stamp_of((root / METADATA).stat())


def _stamp_of(status: os.stat_result) -> tuple[int, int]:
    return status.st_ino, status.st_mtime_ns


class LastingStore(LocalStore):
    """A local store that raises an OSError if a chunk is damaged or the store is no longer at its path.

    Zarr creates missing folders. After a store is moved, Zarr would create a second folder at the old path, with some
    results and no description.

    Attributes:
        description: the parsed content of the store's metadata file, which is read once; None if it is not JSON.
    """

    def __init__(self, root: Path | str, *, read_only: bool = False) -> None:
        """Opens the store at `root` and records its stamp; raises an OSError if there is no store."""
        super().__init__(root, read_only=read_only)
        try:
            with (self.root / METADATA).open("rb") as file:
                self._opened_stamp: tuple[int, int] | None = _stamp_of(os.fstat(file.fileno()))
                self._text = file.read()
        except OSError as error:
            raise OSError(f"results must be where they were written, but {self.root} is gone") from error
        self.description, self._checked_arrays = None, frozenset()
        try:
            self.description = json.loads(self._text)
            arrays = self.description["consolidated_metadata"]["metadata"]
            self._checked_arrays = frozenset(name for name in arrays if arrays[name]["codecs"][-1]["name"] == "crc32c")
        except (ValueError, KeyError, TypeError, IndexError):  # `find_fault` reports it
            pass

    def _stamp(self) -> tuple[int, int] | None:
        try:
            return stamp(self.root)
        except OSError:
            return None

    def _grew(self) -> bool:
        """Returns whether the path has the opened store, which has grown or got its checksum since it was opened."""
        try:
            arrays = json.loads((self.root / METADATA).read_text())["consolidated_metadata"]["metadata"]
            layout = json.loads(arrays["computed"]["attributes"]["layout"])
        except (OSError, KeyError, ValueError):
            return False
        return self._opened_stamp is not None and list(self._opened_stamp) in layout.get("before", [])

    def check_same(self) -> None:
        """Raises an OSError if the opened store no longer exists at its path, or its description was replaced.

        A reader may continue after the sweep has grown or the checksum has been added, because stored lanes do not
        change.
        """
        current = self._stamp()
        if current == self._opened_stamp:
            return
        if self.read_only and self._grew():
            self._opened_stamp = current
            return
        if not self.read_only:
            raise OSError(
                f"store must stay at its path while a sweep writes it, but {self.root} was moved, removed or replaced; "
                "if it was moved, the same call with the new path as store= computes the missing lanes"
            )
        if current is None:
            raise OSError(f"results must still be where they were written, but {self.root} is gone")
        raise OSError(
            f"results must still be where they were written, but {self.root} was overwritten; to keep results, call "
            "results.load() before you overwrite the store"
        )

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Returns the content of a file as `LocalStore.get` does, after checking that the store still exists.

        The store's `zarr.json` is returned as it was when the store was opened. Raises an OSError if a chunk that is
        read as a whole has a wrong checksum.
        """
        self.check_same()
        if key == METADATA and byte_range is None:  # one consistent snapshot: metadata is consolidated in one file
            return (prototype or default_buffer_prototype()).buffer.from_bytes(self._text)
        return self._check_sum(key, await super().get(key, prototype, byte_range), byte_range)

    def get_sync(self, key: str, **keywords: Any) -> Buffer | None:
        """Returns the content of a file as `get` does, but synchronously."""
        self.check_same()
        if key == METADATA and keywords.get("byte_range") is None:
            return (keywords.get("prototype") or default_buffer_prototype()).buffer.from_bytes(self._text)
        return self._check_sum(key, super().get_sync(key, **keywords), keywords.get("byte_range"))

    async def set(self, key: str, value: Buffer) -> None:
        """Writes a file as `LocalStore.set` does, after checking that the store still exists."""
        self.check_same()
        await super().set(key, value)

    def set_sync(self, key: str, value: Buffer) -> None:
        """Writes a file as `LocalStore.set_sync` does, after checking that the store still exists."""
        self.check_same()
        super().set_sync(key, value)

    def _check_sum(self, key: str, value: Buffer | None, byte_range: ByteRequest | None) -> Buffer | None:
        """Returns `value`, the content of file `key`; raises an OSError for a whole chunk with a wrong checksum."""
        name, _, chunk_key = key.partition("/")
        if value is None or byte_range is not None or name not in self._checked_arrays or not chunk_key.startswith("c"):
            return value
        content = value.as_numpy_array()
        if len(content) < 4 or crc32c(content[:-4]) != int.from_bytes(content[-4:].tobytes(), "little"):
            advice = COMPUTES_AGAIN if self.read_only else ""
            raise OSError(f"{self.root / key} cannot be read: its checksum is wrong{advice}")
        return value
