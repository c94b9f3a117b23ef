"""The resident memory of this process, as Linux counts it (see man 5 proc)."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def reset_peak() -> None:
    """Set the peak to what is used now, where the system has a file for it."""
    with contextlib.suppress(OSError):
        CLEAR.write_text("5")


def peak_bytes() -> int | None:
    """The highest resident memory since `reset_peak`, or None on other systems."""
    with contextlib.suppress(OSError):
        found = re.search(r"VmHWM:\s*(\d+) kB", STATUS.read_text())
        return int(found[1]) * 1024 if found else None
    return None
