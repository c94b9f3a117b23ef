"""Run programs that install something, and install Debian's packages as root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

TIME_LIMIT = 600  # seconds for an installation
STDERR = 2


def succeeds(*arguments: str) -> bool:
    """Run a program, its output on stderr; whether it worked within the time limit."""
    print("+", *arguments, file=sys.stderr, flush=True)
    try:
        done = subprocess.run(
            arguments, stdout=STDERR, stdin=subprocess.DEVNULL, timeout=TIME_LIMIT
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def install_package(name: str) -> bool:
    """Install a package of Debian's; that needs root."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return False
    succeeds("apt-get", "update", "-qq")
    return succeeds("apt-get", "install", "-y", "-qq", "--no-install-recommends", name)
