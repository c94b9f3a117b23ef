"""What this machine is, what is installed, and how many processes may work here."""

import contextlib
import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

ENGINES = ("tensorflow", "keras", "jax", "torch", "openvino", "numpy")
VARIANTS = {"tensorflow": ("tensorflow", "tensorflow-cpu")}
MEMORY_OF_ONE = 3 * 2**30  # bytes: a chapter with TensorFlow, JAX and PyTorch in use
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")  # only a container has this file


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
        line = re.search(r"^model name\s*:\s*(.+)$", information.read_text(), re.M)
        name = line[1] if line else name
    elif platform.system() == "Darwin":
        ask = ["sysctl", "-n", "machdep.cpu.brand_string"]
        name = subprocess.run(ask, capture_output=True, text=True).stdout or name
    cpu = {"name": " ".join(name.split()), "cores": cores()}
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ()):
        cpu["memory_bytes"] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return cpu


def versions(packages: Iterable[str] = ENGINES) -> dict[str, str]:
    """The versions of those packages that are installed beside this program.

    Args:
        packages: their names; a variant counts as the package.
    """
    installed: dict[str, str] = {}
    for package in packages:
        for name in VARIANTS.get(package, (package,)):
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                installed.setdefault(package, importlib.metadata.version(name))
    return installed


def memory() -> int:
    """The bytes that may be used: what is free, within the limit of a container."""
    import psutil  # a machine that only measures may lack it

    free = psutil.virtual_memory().available
    limit = CONTAINER_LIMIT.read_text().strip() if CONTAINER_LIMIT.exists() else "max"
    return free if limit == "max" else min(free, int(limit))


def workers(memory_of_one: int = MEMORY_OF_ONE) -> int:
    """How many processes: at least one, even where memory is short.

    Args:
        memory_of_one: bytes that each may need.
    """
    return max(1, min(cores(), memory() // memory_of_one))
