"""Tries the sandbox before any student's code runs: it must keep what it promises."""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path

from grading import sandbox
from grading.sandbox import NoSandbox
from grading.session import Session, WorkerLost

# Root needs none for users: it becomes another one.
NAMESPACES = ("ipc", "mnt", "net", "pid", "uts", *(["user"] if os.geteuid() else []))
CANARY = "GRADING_CANARY"  # a variable that nothing inside may see
REMEDY = (
    "have bubblewrap 0.8 or later and libseccomp2; on Ubuntu 24.04 or later also run "
    "`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or grade as root. "
    "In a container there may be no way: grade on the machine itself."
)
PROBE = """
import glob, os, socket
assert os.getuid() != 0, "it runs as root"
assert not os.access("/usr", os.W_OK), "the system can be written"
try:
    socket.create_connection(("192.0.2.1", 80), timeout=1)
    raise AssertionError("the network can be reached")
except OSError as error:
    assert not isinstance(error, TimeoutError), "the network may be reached"
for name, outside in OUTSIDE.items():
    try:
        shared = os.readlink(f"/proc/self/ns/{name}") == outside
    except OSError:
        shared = True
    assert not shared, f"the namespace {name} is the grader's own"
for name in glob.glob("/proc/[0-9]*/environ"):
    try:
        content = open(name, "rb").read()
    except OSError:
        continue
    assert b"GRADING_" not in content, "the grader's environment can be read"
try:
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    raise AssertionError("the cores of others can be taken")
except PermissionError:
    pass
"""


@functools.cache
def check() -> None:
    """Try the sandbox once.

    Raises:
        NoSandbox: it can't be had, or it keeps less than it promises; says why.
    """
    sandbox.find()
    own = Path("/proc/self/ns")
    outside = {name: str((own / name).readlink()) for name in NAMESPACES}
    os.environ[CANARY] = "a secret"
    try:
        with contextlib.closing(Session(sandbox.Limits())) as session:
            error = session.run(f"OUTSIDE = {outside}\n{PROBE}", 60)
            reason = error and (error["message"] or "no reason given")
    except (WorkerLost, OSError) as lost:
        reason = str(lost)
    finally:
        del os.environ[CANARY]
    if reason:
        raise NoSandbox(
            f"bubblewrap makes no sandbox here ({reason}), so no student's code is "
            f"run. Fix: {REMEDY}"
        )
