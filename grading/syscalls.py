"""The system calls that a worker may make, as filters that the kernel keeps.

Two filters hold at once. The first allows what Docker allows a container that has no
privileges, and nothing else: `seccomp.json` is the file `seccomp/default.json` of
https://github.com/moby/profiles, of 6 May 2026 (3c28324), under the Apache License 2.0.
The second refuses a few calls more, which a worker on its own has no use for.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import json
import os
import platform
from pathlib import Path

PROFILE = Path(__file__).with_name("seccomp.json")
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}  # as the profile names them
# Values of libseccomp's seccomp.h.
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
COMPARISONS = {
    name: number
    for number, name in enumerate(("NE", "LT", "LE", "EQ", "GE", "GT", "MASKED_EQ"), 1)
}

# Memory that belongs to no process and to no folder, so that nobody could count it.
HIDDEN_MEMORY = ("memfd_create", "memfd_secret", "shmget", "msgget", "semget")
HIDDEN_MEMORY += ("mq_open", "vmsplice")
# Cores that are others', a timer that wakes what is held still, and other processes.
OTHERS = ("sched_setaffinity", "timer_create", "ptrace")
OTHERS += ("process_vm_readv", "process_vm_writev")
F_SETSIG = 10  # of fcntl: the signal of a file that is ready; it could wake, too
SHARED_ANONYMOUS = 0x21  # of mmap: such memory stays when nobody maps it any more
INT = 0xFFFFFFFF
# Refused with one argument only: its place, how it is compared, and with what.
WITH = [
    ("fcntl", 1, "MASKED_EQ", INT, F_SETSIG),
    ("mmap", 3, "MASKED_EQ", SHARED_ANONYMOUS, SHARED_ANONYMOUS),
    # The limits and the priority of the sandbox's first process.
    ("prlimit64", 0, "NE", 0, 0),
    ("setpriority", 0, "NE", 0, 0),
    ("setpriority", 1, "NE", 0, 0),
    ("sched_setscheduler", 0, "NE", 0, 0),
    ("sched_setparam", 0, "NE", 0, 0),
    ("sched_setattr", 0, "NE", 0, 0),
]
# Sockets of these families alone: AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK. AF_VSOCK
# would reach the hypervisor, and AF_ALG has let programs write into files that they may
# only read (CVE-2026-31431).
FAMILIES = (1, 2, 10, 16)
for _call in ("socket", "socketpair"):
    WITH.append((_call, 0, "GT", max(FAMILIES), 0))
    WITH += [(_call, 0, "EQ", n, 0) for n in range(max(FAMILIES)) if n not in FAMILIES]


class Comparison(ctypes.Structure):
    """libseccomp's scmp_arg_cmp: what an argument must be."""

    _fields_ = (
        ("place", ctypes.c_uint),
        ("how", ctypes.c_int),
        ("first", ctypes.c_uint64),  # a mask, or what it is compared with
        ("second", ctypes.c_uint64),  # the value below the mask
    )


class Filter:
    """A filter that libseccomp puts together.

    Args:
        otherwise: what happens to a call that no rule is about.

    Raises:
        OSError: libseccomp is missing.
    """

    def __init__(self, otherwise: int) -> None:
        self.library = ctypes.CDLL("libseccomp.so.2")
        self.library.seccomp_init.restype = ctypes.c_void_p
        self.context = ctypes.c_void_p(self.library.seccomp_init(otherwise))

    def add(self, action: int, name: str, compared: list[tuple] = ()) -> bool:
        """Add a rule; False if this libseccomp or this machine has no such call."""
        number = self.library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:
            return False
        comparisons = (Comparison * len(compared))()
        for comparison, (place, how, first, second) in zip(
            comparisons, compared, strict=True
        ):
            comparison.place, comparison.how = place, COMPARISONS[how]
            comparison.first, comparison.second = first, second
        rule = (self.context, ctypes.c_uint32(action), number, len(compared))
        if self.library.seccomp_rule_add_array(*rule, comparisons):
            raise OSError(f"libseccomp takes no rule for {name}")
        return True

    def program(self) -> bytes:
        """The filter as the kernel takes it; bubblewrap loads it."""
        file = os.memfd_create("filter")
        try:
            if self.library.seccomp_export_bpf(self.context, file):
                raise OSError("libseccomp writes no filter")
            return os.pread(file, os.fstat(file).st_size, 0)
        finally:
            os.close(file)
            self.library.seccomp_release(self.context)


def applies(rule: dict) -> bool:
    """Whether a rule of the profile is about a process without any privilege, here."""
    machine = MACHINES.get(platform.machine(), platform.machine())
    included, excluded = rule.get("includes") or {}, rule.get("excludes") or {}
    return (
        "caps" not in included
        and machine in included.get("arches", [machine])
        and machine not in excluded.get("arches", [])
    )


def allowed() -> bytes:
    """The filter of what the profile allows."""
    profile = json.loads(PROFILE.read_text())
    made = Filter(REFUSE | profile["defaultErrnoRet"])
    for rule in filter(applies, profile["syscalls"]):
        action = ALLOW
        if rule["action"] == "SCMP_ACT_ERRNO":
            action = REFUSE | rule["errnoRet"]
        compared = [
            (
                argument["index"],
                argument["op"].removeprefix("SCMP_CMP_"),
                argument["value"],
                argument.get("valueTwo", 0),
            )
            for argument in rule.get("args") or []
        ]
        for name in rule["names"]:
            made.add(action, name, compared)
    return made.program()


def refused() -> bytes:
    """The filter of what is refused beyond."""
    made, refuse = Filter(ALLOW), REFUSE | errno.EPERM
    for name in HIDDEN_MEMORY + OTHERS:
        made.add(refuse, name)
    for name, *comparison in WITH:
        made.add(refuse, name, [tuple(comparison)])
    return made.program()


@functools.cache
def filters() -> tuple[bytes, bytes]:
    """Both filters.

    Raises:
        OSError: libseccomp is missing, or too old.
    """
    return allowed(), refused()
