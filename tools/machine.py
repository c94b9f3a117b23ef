"""What this machine is, and how many processes may work on it."""

import os
import platform
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

MEMORY_OF_ONE = 3 * 2**30  # bytes: a chapter with TensorFlow, JAX and PyTorch in use
TOP = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")  # which control groups this process is in


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


def limits(own: Path = OWN, top: Path = TOP) -> Iterator[int]:
    """The bytes that this process's control groups may take, of version 2 or 1.

    A group is bound by those above it, too. In a container the group's own folder may
    not be there, but the one at the top is.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, group = line.split(":", 2)
        if number == "0":
            mount, name = top, "memory.max"
        elif "memory" in controllers.split(","):
            mount, name = top / "memory", "memory.limit_in_bytes"
        else:
            continue
        inner = mount / group.lstrip("/")
        for folder in (inner, *inner.parents):
            if folder.is_relative_to(mount):
                yield from _number(folder / name)


def _number(path: Path) -> Iterator[int]:
    try:
        text = path.read_text().strip()
    except OSError:
        return
    if text.isdigit():  # not `max`
        yield int(text)


def memory() -> int:
    """The bytes that may be used: what is free, but no more than a group's limit."""
    import psutil  # a machine that only measures may lack it

    return min(psutil.virtual_memory().available, *limits(), 2**63)


def workers(memory_of_one: int = MEMORY_OF_ONE) -> int:
    """How many processes: at least one, even where memory is short.

    Args:
        memory_of_one: bytes that each may need.
    """
    return max(1, min(cores(), memory() // memory_of_one))
