"""Measures free memory, and detects out-of-memory errors."""

import contextlib
import os
from pathlib import Path
from typing import Any

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")
# For each controller in a line of OWN_CGROUPS ("" in version 2 of control groups): a folder in CGROUPS, the file with
# the limit, the file with the usage, and the fields of memory.stat that count cached contents of files. This cache is
# part of the usage, but the kernel frees it before it kills a process.
LIMITS = {
    "": ("", "memory.max", "memory.current", ("inactive_file", "active_file")),
    "memory": (
        "memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        ("total_inactive_file", "total_active_file"),
    ),
}


def free_bytes(device: Any) -> int | None:
    """Returns the free memory of a device in bytes; None if it is unknown.

    For a CPU, and for a device that does not report its memory, this is the host's free memory.
    """
    stats = device.memory_stats() if device.platform != "cpu" else None
    if stats and "bytes_limit" in stats:
        return max(0, stats["bytes_limit"] - stats.get("bytes_in_use", 0))
    return free_host_bytes()


def free_host_bytes() -> int | None:
    """Returns the free memory of the host or of this container, if that is less, in bytes; None if it is unknown."""
    sizes = []
    try:
        fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        sizes.append(int(fields["MemAvailable"].split()[0]) * 1024)
    except (OSError, KeyError, ValueError):
        if hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
            sizes.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    sizes += _cgroup_bytes()
    return min(sizes) if sizes else None


def _cgroup_bytes() -> list[int]:
    """Returns the free memory under each limit of this process's control groups and of their parents."""
    sizes = []
    try:
        lines = (line.split(":", 2) for line in OWN_CGROUPS.read_text().splitlines())
        groups = [(controllers, path) for _, controllers, path in lines]
    except (OSError, ValueError):
        groups = [("", "/"), ("memory", "/")]
    for controllers, path in groups:
        for controller in {"", "memory"} & set(controllers.split(",")):
            folder, limit, usage, cached = LIMITS[controller]
            group_path = Path(path.lstrip("/"))
            for group in {CGROUPS / folder / group_path, *(CGROUPS / folder / outer for outer in group_path.parents)}:
                with contextlib.suppress(OSError, ValueError):  # no limit, or no such file
                    unused = int((group / limit).read_text()) - int((group / usage).read_text())
                    sizes.append(max(0, unused + _cached_bytes(group / "memory.stat", cached)))
    return sizes


def _cached_bytes(file: Path, names: tuple[str, ...]) -> int:
    """Returns the number of bytes of a control group that are cached contents of files; 0 if it is unknown."""
    try:
        counts = dict(line.split() for line in file.read_text().splitlines())
        return sum(int(counts.get(name, 0)) for name in names)
    except (OSError, ValueError):
        return 0


def check_room(what: str, needed: int, free: int | None, advice: str) -> None:
    """Raises a MemoryError if `needed` exceeds `free`, before the system would kill the process.

    Both are in bytes. None means that the free memory is unknown, and raises no error.
    """
    if free is not None and needed > free:
        sizes = f"where {free / 2**20:,.0f} MiB are free, got {needed / 2**20:,.0f} MiB"
        raise MemoryError(f"{what} must fit in memory, {sizes}; {advice}")


def is_out_of_memory(error: BaseException) -> bool:
    """Returns whether an error of JAX or Python says that memory ran out."""
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)
