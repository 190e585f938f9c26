"""Locks on a store: who writes which part of it. The operating system lets go of them when their process dies."""

import contextlib
import os
import socket
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None


_held: set[IO[str]] = set()


class UnwritableError(OSError):
    """No file can be written beside a store."""


def _let_go() -> None:
    """A forked child does not hold its parent's locks, which would outlive the parent in it."""
    for file in _held:
        file.close()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


@contextlib.contextmanager
def creation_lock(store: Path) -> Iterator[None]:
    """Waits until no other process is creating the store."""
    with _opened(store, "creation") as file:
        _lock(file, wait=True)
        yield


def can_lock(store: Path) -> bool:
    """Returns whether files can be written beside a store, as locks need."""
    try:
        with creation_lock(store):
            return True
    except UnwritableError:
        return False


@contextlib.contextmanager
def share_lock(store: Path, index: int, count: int) -> Iterator[None]:
    """Claims one of `count` shares of a store, for as long as the block lasts.

    The locks are in a folder beside the store, so that they outlive its being replaced.

    Args:
        store: its path.
        index: of the share, in [0, count).
        count: number of shares.

    Raises:
        BlockingIOError: if another writer has the share, or writes to the store in shares of another number.
    """
    with contextlib.ExitStack() as held:
        with creation_lock(store):  # those who look for other splits must not take one another for one
            for other in sorted(lock_folder(store).glob("split-*")):
                if other.name != f"split-{count}":
                    with other.open("a+") as file:
                        if not _lock(file):
                            number = other.name.removeprefix("split-")
                            raise BlockingIOError(
                                f"store {store} is being written in shares of {number}, this would be one of {count}"
                            )
            _lock(held.enter_context(_opened(store, f"split-{count}")), shared=True)
        share = held.enter_context(_opened(store, f"share-{index}-of-{count}"))
        if not _lock(share):
            share.seek(0)
            raise BlockingIOError(
                f"store {store} is being written by {share.read() or 'another process'} (share {index} of {count})"
            )
        share.truncate(0)
        share.write(f"process {os.getpid()} on {socket.gethostname()}")
        share.flush()
        yield


def check_unwritten(store: Path) -> None:
    """Checks that no process writes a store. The caller has the creation lock, so that none can begin.

    Raises:
        BlockingIOError: if one does.
    """
    for file in sorted(lock_folder(store).glob("share-*")):
        with file.open("a+") as share:
            if not _lock(share):
                share.seek(0)
                raise BlockingIOError(
                    f"store {store} is being written by {share.read() or 'another process'}; it can grow when that is "
                    "done"
                )


def lock_folder(store: Path) -> Path:
    """Where a store's locks are: beside it, and out of the way of what reads it."""
    return store.with_name(f"{store.name}.locks")


@contextlib.contextmanager
def _opened(store: Path, name: str) -> Iterator[IO[str]]:
    try:
        lock_folder(store).mkdir(parents=True, exist_ok=True)
        opened = (lock_folder(store) / name).open("a+")
    except OSError as error:
        raise UnwritableError(
            f"store must be where files can be written, got {store}: {error.strerror or error}"
        ) from error
    with opened as file:
        _held.add(file)
        try:
            yield file
        finally:
            _held.discard(file)


def _lock(file: IO[str], *, wait: bool = False, shared: bool = False) -> bool:
    """Locks a file. Returns False if another has it."""
    if fcntl is None:
        warnings.warn("this system has no file locks: do not let two writers share a store", stacklevel=3)
        return True
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(file, kind if wait else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
