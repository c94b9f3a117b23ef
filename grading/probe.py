"""Tries the sandbox before any student's code runs: it must keep what it promises."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from grading import sandbox
from grading.sandbox import NoSandbox
from grading.session import Session, WorkerLost

# Root needs none for users: it becomes another one.
NAMESPACES = ("ipc", "mnt", "net", "pid", "uts", *(["user"] if os.geteuid() else []))
CANARY = "GRADING_CANARY"  # a variable that nothing inside may see
PROBE = """
import os, socket
assert os.getuid() != 0, "it runs as root"
try:
    open("/usr/probe", "w")
    raise AssertionError("the system can be written")
except OSError:
    pass
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
seen = [name for name in os.listdir("/proc") if name.isdigit()]
for number in seen:
    try:
        told = open(f"/proc/{number}/environ", "rb").read()
    except OSError:
        continue
    assert b"GRADING_" not in told, "the grader's environment can be read"
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
    os.environ[CANARY] = "a secret"
    session = None
    try:
        session = Session(sandbox.Limits())
        own = Path("/proc/self/ns")
        outside = {name: str((own / name).readlink()) for name in NAMESPACES}
        error = session.run(f"OUTSIDE = {outside}\n{PROBE}", 60)
    except WorkerLost as lost:
        error = {"message": str(lost)}
    except OSError as refused:
        error = {"message": str(refused)}
    finally:
        os.environ.pop(CANARY, None)
        if session:
            session.close()
    if error is None:
        return
    said = error["message"] or "no reason given"
    raise NoSandbox(
        f"bubblewrap makes no sandbox here ({said}), so no student's code is run. "
        f"Fix: {_remedy(said)}"
    )


def _remedy(said: str) -> str:
    """What to do about a message of bubblewrap's."""
    restricted = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
    if restricted.exists() and restricted.read_text().strip() == "1":
        return (
            "this system keeps ordinary users from making sandboxes; allow it with "
            "`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or grade as "
            "root."
        )
    if "libseccomp" in said:
        return "install libseccomp (Debian, Ubuntu: apt-get install libseccomp2)."
    if "unknown option" in said.lower():
        return "install bubblewrap 0.8 or later."
    if Path("/.dockerenv").exists() or "ermi" in said or "perat" in said:
        return (
            "this looks like a container, or a system without user namespaces; grade "
            "on the machine itself or in a virtual machine."
        )
    return "see the message in brackets."
