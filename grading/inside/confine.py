"""What a worker gives up before a student's code runs in it; it can't be had back.

This file is copied into the sandbox; it imports nothing of the book.
"""

from __future__ import annotations

import ctypes
import errno
import resource

# Memory that belongs to no process and no folder, so that nobody could count it.
HIDDEN_MEMORY = (
    "memfd_create",
    "memfd_secret",
    "shmget",
    "msgget",
    "semget",
    "mq_open",
)
HIDDEN_MEMORY += ("vmsplice", "io_uring_setup", "userfaultfd")
# The cores of others.
CORES = ("sched_setaffinity",)
# What the teacher's session keeps in the kernel, and what the kernel tells of it.
TEACHERS = ("add_key", "keyctl", "request_key", "syslog", "perf_event_open", "bpf")
# Other processes of the sandbox: the first of them is not the worker's.
OTHERS = ("ptrace", "process_vm_readv", "process_vm_writev")
# A timer can send the signal that wakes what is held still.
WAKING = ("timer_create",)
FORBIDDEN = HIDDEN_MEMORY + CORES + TEACHERS + OTHERS + WAKING
# Refused with one argument only: its place, how it is compared, and two numbers.
F_SETSIG = 10  # the signal of a file that is ready; it could wake, too
SHARED_ANONYMOUS = 0x21  # MAP_SHARED | MAP_ANONYMOUS: it stays when nobody maps it
# Values of libseccomp's seccomp.h.
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
EQUAL, GREATER, MASKED_EQUAL = 4, 6, 7
FORBIDDEN_WITH = [
    ("fcntl", 1, MASKED_EQUAL, 0xFFFFFFFF, F_SETSIG),
    ("mmap", 3, MASKED_EQUAL, SHARED_ANONYMOUS, SHARED_ANONYMOUS),
]
# Sockets of these families alone: AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK. AF_VSOCK
# would reach the hypervisor, and AF_ALG has let programs write into files that they may
# only read (CVE-2026-31431).
FAMILIES = (1, 2, 10, 16)
for _call in ("socket", "socketpair"):
    FORBIDDEN_WITH.append((_call, 0, GREATER, max(FAMILIES), 0))
    for _family in set(range(max(FAMILIES))) - set(FAMILIES):
        FORBIDDEN_WITH.append((_call, 0, EQUAL, _family, 0))
NEW = ("memfd_secret",)  # a libseccomp that is older than the call does not know it


class Comparison(ctypes.Structure):
    """libseccomp's scmp_arg_cmp: what an argument must be."""

    _fields_ = (
        ("place", ctypes.c_uint),
        ("how", ctypes.c_int),
        ("first", ctypes.c_uint64),  # a mask, or what it is compared with
        ("second", ctypes.c_uint64),  # the value below the mask
    )


def limit(limits: dict[str, int]) -> None:
    """Set hard limits that an unprivileged process can't raise again.

    Args:
        limits: by resource name, such as {"NPROC": 400}.
    """
    for name, value in limits.items():
        number = getattr(resource, f"RLIMIT_{name}")
        most = resource.getrlimit(number)[1]
        if most != resource.RLIM_INFINITY:
            value = min(value, most)
        resource.setrlimit(number, (value, value))


def forbid() -> None:
    """Have the kernel refuse system calls, to this process and all that it starts.

    Raises:
        OSError: libseccomp is missing or too old, or the kernel takes no filter.
    """
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(ALLOW)))
    for name, *compared in [*((name,) for name in FORBIDDEN), *FORBIDDEN_WITH]:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number == -1 and name in NEW:
            continue
        argument = ctypes.byref(Comparison(*compared)) if compared else None
        rule = (context, ctypes.c_uint32(REFUSE), number, len(compared) > 0, argument)
        if number == -1 or library.seccomp_rule_add_array(*rule):
            raise OSError(f"libseccomp has no rule for {name}")
    if library.seccomp_load(context):
        raise OSError("the kernel takes no filter of system calls")
