"""Refuses to read or write a store once it was moved, removed or replaced since it was opened."""

import json
from pathlib import Path
from typing import Any

from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import LocalStore


def stamp(root: Path) -> tuple[int, int]:
    """What tells a store from another that takes its place, and from itself once its sweep grew.

    Raises:
        OSError: if there is none.
    """
    status = (root / "zarr.json").stat()  # written with the store, and when its sweep grows
    return status.st_ino, status.st_mtime_ns


class LastingStore(LocalStore):
    """A local store that refuses to go on once its folder is gone, or another store has taken its place.

    Zarr makes folders as it needs them: after a move, writing would begin a second folder at the old path, with some
    results and nothing that says what they are.
    """

    def __init__(self, root: Path | str, *, read_only: bool = False) -> None:
        """Takes note of which store is there.

        Raises:
            OSError: if there is none.
        """
        super().__init__(root, read_only=read_only)
        self._first = self._stamp()
        if self._first is None:
            raise OSError(f"results must be where they were written, but {self.root} is gone")

    def _stamp(self) -> tuple[int, int] | None:
        try:
            return stamp(self.root)
        except OSError:
            return None

    def _grew(self) -> bool:
        """Whether the store that is there now is the one that was opened, with a larger sweep."""
        try:
            arrays = json.loads((self.root / "zarr.json").read_text())["consolidated_metadata"]["metadata"]
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
        return await super().get(key, prototype, byte_range)

    def get_sync(self, key: str, **keywords: Any) -> Buffer | None:
        """As `LocalStore.get_sync`, of the same store."""
        self.check_same()
        return super().get_sync(key, **keywords)

    async def set(self, key: str, value: Buffer) -> None:
        """As `LocalStore.set`, of the same store."""
        self.check_same()
        await super().set(key, value)

    def set_sync(self, key: str, value: Buffer) -> None:
        """As `LocalStore.set_sync`, of the same store."""
        self.check_same()
        super().set_sync(key, value)
