"""How many processes may work here: one a core, as far as memory goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil

from tools.processor import cores

MEMORY_OF_ONE = 3 * 2**30  # bytes: a chapter with TensorFlow, JAX and PyTorch in use
TOP = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")  # which control groups this process is in


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
    return min(psutil.virtual_memory().available, *limits(), 2**63)


def count(memory_of_one: int = MEMORY_OF_ONE) -> int:
    """How many processes: at least one, even where memory is short.

    Args:
        memory_of_one: bytes that each may need.
    """
    return max(1, min(cores(), memory() // memory_of_one))
