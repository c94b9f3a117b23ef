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
from collections.abc import Iterator
from pathlib import Path

PROFILE = Path(__file__).with_name("seccomp.json")
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}  # as the profile names them
# Values of libseccomp's seccomp.h.
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
COMPARISONS = ("", "NE", "LT", "LE", "EQ", "GE", "GT", "MASKED_EQ")

# Memory that belongs to no process and to no folder, so that nobody could count it.
REFUSED = ["memfd_create", "memfd_secret", "shmget", "msgget", "semget", "mq_open"]
REFUSED += ["vmsplice"]
# Cores that are others', a timer that wakes what is held still, and other processes.
REFUSED += ["sched_setaffinity", "timer_create", "ptrace"]
REFUSED += ["process_vm_readv", "process_vm_writev"]
F_SETSIG = 10  # of fcntl: the signal of a file that is ready; it could wake, too
SHARED_ANONYMOUS = 0x21  # of mmap: such memory stays when nobody maps it any more
INT = 0xFFFFFFFF
# Refused with one argument only: its place, how it is compared, and with what.
REFUSED_WITH = [
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
    REFUSED_WITH.append((_call, 0, "GT", max(FAMILIES), 0))
    for _family in set(range(max(FAMILIES))) - set(FAMILIES):
        REFUSED_WITH.append((_call, 0, "EQ", _family, 0))


class Comparison(ctypes.Structure):
    """libseccomp's scmp_arg_cmp: what an argument must be."""

    _fields_ = (
        ("place", ctypes.c_uint),
        ("how", ctypes.c_int),
        ("first", ctypes.c_uint64),  # a mask, or what it is compared with
        ("second", ctypes.c_uint64),  # the value below the mask
    )

    @classmethod
    def of(cls, place: int, how: str, first: int, second: int) -> Comparison:
        """A comparison by its name, such as `EQ`."""
        return cls(place, COMPARISONS.index(how), first, second)


# What happens to a call, its name, and what its arguments must be.
Rule = tuple[int, str, list[Comparison]]


def allowed() -> Iterator[Rule]:
    """The profile's rules about a process without any privilege, on this machine."""
    machine = MACHINES.get(platform.machine(), platform.machine())
    for rule in json.loads(PROFILE.read_text())["syscalls"]:
        included, excluded = rule.get("includes") or {}, rule.get("excludes") or {}
        if (
            "caps" in included
            or machine not in included.get("arches", [machine])
            or machine in excluded.get("arches", [])
        ):
            continue
        refused = rule["action"] == "SCMP_ACT_ERRNO"
        action = REFUSE | rule["errnoRet"] if refused else ALLOW
        compared = []
        for argument in rule.get("args") or []:
            how = argument["op"].removeprefix("SCMP_CMP_")
            values = argument["value"], argument.get("valueTwo", 0)
            compared.append(Comparison.of(argument["index"], how, *values))
        for name in rule["names"]:
            yield action, name, compared


def refused() -> Iterator[Rule]:
    """The rules about what is refused beyond."""
    for name in REFUSED:
        yield REFUSE | errno.EPERM, name, []
    for name, *comparison in REFUSED_WITH:
        yield REFUSE | errno.EPERM, name, [Comparison.of(*comparison)]


def program(otherwise: int, rules: Iterator[Rule]) -> bytes:
    """A filter as the kernel takes it; libseccomp makes it, and bubblewrap loads it.

    Args:
        otherwise: what happens to a call that no rule is about.
        rules: those about calls that this machine does not have are left out.

    Raises:
        OSError: libseccomp is missing, or too old.
    """
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(otherwise))
    for action, name, compared in rules:
        number = library.seccomp_syscall_resolve_name(name.encode())
        array = (Comparison * len(compared))(*compared)
        rule = (context, ctypes.c_uint32(action), number, len(compared), array)
        if number >= 0 and library.seccomp_rule_add_array(*rule):
            raise OSError(f"libseccomp takes no rule for {name}")
    file = os.memfd_create("filter")
    try:
        if library.seccomp_export_bpf(context, file):
            raise OSError("libseccomp writes no filter")
        return os.pread(file, os.fstat(file).st_size, 0)
    finally:
        os.close(file)
        library.seccomp_release(context)


@functools.cache
def filters() -> tuple[bytes, bytes]:
    """Both filters.

    Raises:
        OSError: libseccomp is missing, or too old.
    """
    return program(REFUSE | errno.EPERM, allowed()), program(ALLOW, refused())
