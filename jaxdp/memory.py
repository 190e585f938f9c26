"""How much memory there is, and whether an error says that it was not enough."""

import contextlib
import os
from pathlib import Path
from typing import Any

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")
LIMITS = {  # by the controllers that a line of OWN_CGROUPS names: a folder, what is allowed and what is used
    "": ("", "memory.max", "memory.current"),
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
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
            folder, limit, usage = LIMITS[controller]
            own = Path(path.lstrip("/"))
            for group in {CGROUPS / folder / own, *(CGROUPS / folder / outer for outer in own.parents)}:
                with contextlib.suppress(OSError, ValueError):  # not limited, or no such file
                    found.append(max(0, int((group / limit).read_text()) - int((group / usage).read_text())))
    return found


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of JAX or Python says that memory ran out."""
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)
