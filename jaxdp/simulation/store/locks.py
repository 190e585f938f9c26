"""Locks the part of a store that a process writes. The operating system releases a lock when its process ends."""

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
    """The error of a call that has to write in the folder that contains a store, but cannot."""


def _release_locks() -> None:
    """Closes a forked child's copies of its parent's lock files, which would keep the locks after the parent ends."""
    for file in _held:
        file.close()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_locks)


@contextlib.contextmanager
def creation_lock(store: Path) -> Iterator[None]:
    """Takes the lock for creating, growing or repairing a store during a `with` block.

    It waits until the lock is free, and would wait forever inside another `with` block of the same store.

    Raises:
        UnwritableError: if the lock's file cannot be written.
    """
    with _open_lock_file(store, "creation") as file:
        _lock(file, wait=True)
        yield


def can_lock(store: Path) -> bool:
    """Returns whether lock files can be written beside a store."""
    try:
        with creation_lock(store):
            return True
    except UnwritableError:
        return False


@contextlib.contextmanager
def share_lock(store: Path, index: int, count: int) -> Iterator[None]:
    """Locks share `index` of `count` shares of a store during a `with` block.

    A share is the part of the chunks that one process computes. The locks are in a folder beside the store, so that
    they still exist after the store is replaced.

    Raises:
        BlockingIOError: if another process writes the share, or writes the store with another number of shares.
        UnwritableError: if a lock's file cannot be written.
    """
    with contextlib.ExitStack() as held:
        # Testing a lock of another number of shares takes that lock for a moment, so no other process may test
        # meanwhile.
        with creation_lock(store):
            for other in sorted(lock_folder(store).glob("split-*")):
                if other.name != f"split-{count}":
                    with other.open("a+") as file:
                        if not _lock(file):
                            number = other.name.removeprefix("split-")
                            raise BlockingIOError(
                                f"store {store} is being written in {number} shares, but num_processes is {count} here"
                            )
            _lock(held.enter_context(_open_lock_file(store, f"split-{count}")), shared=True)
        share = held.enter_context(_open_lock_file(store, f"share-{index}-of-{count}"))
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
    """Raises a BlockingIOError if a process writes the store. The caller must hold the creation lock."""
    for file in sorted(lock_folder(store).glob("share-*")):
        with file.open("a+") as share:
            if not _lock(share):
                share.seek(0)
                raise BlockingIOError(
                    f"store {store} is being written by {share.read() or 'another process'}; it can grow when that "
                    "process has finished"
                )


def lock_folder(store: Path) -> Path:
    """Returns the folder of a store's locks, which is beside the store."""
    return store.with_name(f"{store.name}.locks")


@contextlib.contextmanager
def _open_lock_file(store: Path, name: str) -> Iterator[IO[str]]:
    try:
        lock_folder(store).mkdir(parents=True, exist_ok=True)
        opened = (lock_folder(store) / name).open("a+")
    except OSError as error:
        raise UnwritableError(f"store must be in a writable folder, got {store}: {error.strerror or error}") from error
    with opened as file:
        _held.add(file)
        try:
            yield file
        finally:
            _held.discard(file)


def _lock(file: IO[str], *, wait: bool = False, shared: bool = False) -> bool:
    """Locks an open file, exclusively unless `shared`; returns False if another process holds the lock.

    If `wait` is true, it waits for the lock. On a system without file locks it only warns, and returns True.
    """
    if fcntl is None:
        warnings.warn("this system has no file locks: do not let two processes write the same store", stacklevel=3)
        return True
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(file, kind if wait else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
