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
FORBIDDEN = HIDDEN_MEMORY + CORES + TEACHERS
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM  # SCMP_ACT_ALLOW, SCMP_ACT_ERRNO
NEW = ("memfd_secret",)  # a libseccomp that is older than the call does not know it


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


def forbid(names: tuple[str, ...] = FORBIDDEN) -> None:
    """Have the kernel refuse system calls, to this process and all that it starts.

    Raises:
        OSError: libseccomp is missing or too old, or the kernel takes no filter.
    """
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(ALLOW)))
    for name in names:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number == -1 and name in NEW:
            continue
        rule = (context, ctypes.c_uint32(REFUSE), number, 0, None)
        if number == -1 or library.seccomp_rule_add_array(*rule):
            raise OSError(f"libseccomp has no rule for {name}")
    if library.seccomp_load(context):
        raise OSError("the kernel takes no filter of system calls")
