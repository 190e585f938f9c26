"""How much memory there is, and whether an error says that it was not enough."""

import contextlib
import os
from pathlib import Path
from typing import Any

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")
# By the controllers that a line of OWN_CGROUPS names: a folder, what is allowed, what is used, and what of that is
# cached content of files, which the kernel gives up before it ends a process.
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
    """Memory that is free on a device, in bytes; None where nothing tells.

    Args:
        device: a GPU, which tells itself; or a CPU, whose memory is the host's.
    """
    stats = device.memory_stats() if device.platform != "cpu" else None
    if stats and "bytes_limit" in stats:
        return max(0, stats["bytes_limit"] - stats.get("bytes_in_use", 0))
    return free_host_bytes()


def free_host_bytes() -> int | None:
    """The host's free memory in bytes, or what is left of this container's; None where nothing tells."""
    found = []
    try:
        fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        found.append(int(fields["MemAvailable"].split()[0]) * 1024)
    except (OSError, KeyError, ValueError):
        if hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
            found.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    found += _cgroup_bytes()
    return min(found) if found else None


def _cgroup_bytes() -> list[int]:
    """What is left under every limit on this process's control groups, and on those around them."""
    found = []
    try:
        groups = [line.split(":", 2)[1:] for line in OWN_CGROUPS.read_text().splitlines()]
    except (OSError, ValueError):
        groups = [["", "/"], ["memory", "/"]]
    for controllers, path in groups:
        for controller in {"", "memory"} & set(controllers.split(",")):
            folder, limit, usage, cached = LIMITS[controller]
            own = Path(path.lstrip("/"))
            for group in {CGROUPS / folder / own, *(CGROUPS / folder / outer for outer in own.parents)}:
                with contextlib.suppress(OSError, ValueError):  # not limited, or no such file
                    left = int((group / limit).read_text()) - int((group / usage).read_text())
                    found.append(max(0, left + _cached_bytes(group / "memory.stat", cached)))
    return found


def _cached_bytes(file: Path, names: tuple[str, ...]) -> int:
    """Returns how much of a control group's memory is cached content of files; 0 where nothing tells."""
    try:
        counts = dict(line.split() for line in file.read_text().splitlines())
        return sum(int(counts.get(name, 0)) for name in names)
    except (OSError, ValueError):
        return 0


def check_room(what: str, needed: int, free: int | None, advice: str) -> None:
    """Checks that something fits in free memory, before the system ends the process without a word.

    Raises:
        MemoryError: if not, with both sizes.
    """
    if free is not None and needed > free:
        sizes = f"of which {free / 2**20:,.0f} MiB are free, got {needed / 2**20:,.0f} MiB"
        raise MemoryError(f"{what} must fit in memory, {sizes}; {advice}")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of JAX or Python says that memory ran out."""
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)
