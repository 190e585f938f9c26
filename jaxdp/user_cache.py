"""The user's cache directory, and texts that are stored in it until the package's sources change."""

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

PACKAGE = Path(__file__).parent
TEXTS = "texts.json"


def user_cache() -> Path:
    """Returns the user's cache directory. Raises a RuntimeError if it would be in a home directory that is unknown."""
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"])
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    xdg_folder = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification allows only absolute paths.
    return Path(xdg_folder) if os.path.isabs(xdg_folder) else Path.home() / ".cache"


def stored_text(name: str, make: Callable[[], str]) -> str:
    """Returns the text with this name from the user's cache directory. A missing text is made and stored.

    Stored texts are dropped if the name, size or modification time of any source file of the package has changed. If
    the folder cannot be read or written, each call makes the text, without an error.
    """
    try:
        file = user_cache() / "jaxdp" / TEXTS
    except RuntimeError:
        return make()
    sources, texts = _sources(), {}
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        stored = json.loads(file.read_text(encoding="utf-8"))
        if stored["sources"] == sources:
            texts = dict(stored["texts"])
    if not isinstance(texts.get(name), str):
        texts[name] = make()
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            new_file = file.with_name(f"{file.name}.{os.getpid()}")
            try:
                new_file.write_text(json.dumps({"sources": sources, "texts": texts}), encoding="utf-8")
                os.replace(new_file, file)  # another process reads the old file or the new one
            finally:
                new_file.unlink(missing_ok=True)
    return texts[name]


def _sources() -> str:
    """Returns a hash of the names, sizes and modification times of all source files of the package."""
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*.py")):
        status = file.stat()
        digest.update(f"{file} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
