"""Reading a store later, as lazy results do: only as long as it is the store that was opened."""

from pathlib import Path
from typing import Any

from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import LocalStore


class LastingStore(LocalStore):
    """A local store that refuses to read from another one that took its place, or from a folder that is gone."""

    def __init__(self, root: Path | str, *, read_only: bool = False) -> None:
        """Takes note of which store is there."""
        super().__init__(root, read_only=read_only)
        self._first = self._stamp()

    def _stamp(self) -> tuple[int, int]:
        try:
            status = (self.root / "zarr.json").stat()  # written once, with the store
        except OSError as error:
            raise OSError(f"results must still be where they were written, but {self.root} is gone") from error
        return status.st_ino, status.st_mtime_ns

    def _check_same(self) -> None:
        if self._stamp() != self._first:
            raise OSError(
                f"results must still be where they were written, but {self.root} was overwritten since; "
                "results.load() before that keeps them"
            )

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """As `LocalStore.get`, of the same store."""
        self._check_same()
        return await super().get(key, prototype, byte_range)

    def get_sync(self, key: str, **keywords: Any) -> Buffer | None:
        """As `LocalStore.get_sync`, of the same store."""
        self._check_same()
        return super().get_sync(key, **keywords)
