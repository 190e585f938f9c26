"""Refuses to read or write a store once it was moved, removed or replaced since it was opened."""

from pathlib import Path
from typing import Any

from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import LocalStore


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
            status = (self.root / "zarr.json").stat()  # written once, with the store
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

    def check_same(self) -> None:
        """Checks that the store that was opened is still there.

        Raises:
            OSError: if not.
        """
        now = self._stamp()
        if now == self._first:
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
