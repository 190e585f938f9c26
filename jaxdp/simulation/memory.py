"""How much memory there is, and whether an error says that it was not enough."""

import os
from pathlib import Path
from typing import Any

CGROUPS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))


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
    for limit, usage in CGROUPS:
        try:
            root = Path("/sys/fs/cgroup")
            found.append(max(0, int((root / limit).read_text()) - int((root / usage).read_text())))
        except (OSError, ValueError):  # not limited, or no such file
            continue
    return min(found) if found else None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of JAX or Python says that memory ran out."""
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)
