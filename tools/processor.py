"""Which processor this is."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> dict:
    """The CPU: name, how many cores this process may use, memory in bytes."""
    name = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", information.read_text(), re.M)
        name = found[1] if found else name
    elif platform.system() == "Darwin":
        ask = ["sysctl", "-n", "machdep.cpu.brand_string"]
        name = subprocess.run(ask, capture_output=True, text=True).stdout or name
    found = {"name": " ".join(name.split()), "cores": cores()}
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" in names:
        found["memory_bytes"] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return found
