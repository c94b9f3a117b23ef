"""The system calls that a worker may make, as filters that the kernel keeps.

Two filters hold at once. The first allows what Docker allows a container that has no
privileges, and nothing else: `seccomp.json` is the file `seccomp/default.json` of
https://github.com/moby/profiles, of 6 May 2026 (3c28324), under the Apache License 2.0.
The second, `seccomp-refused.json`, is ours, in the same form. It refuses a few calls
more, which a worker on its own has no use for, and says of each why.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path

PROFILES = ("seccomp.json", "seccomp-refused.json")
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}  # as the profiles name them
# Values of libseccomp's seccomp.h.
ACTIONS = {"SCMP_ACT_ALLOW": 0x7FFF0000, "SCMP_ACT_ERRNO": 0x00050000}
COMPARISONS = ("", "NE", "LT", "LE", "EQ", "GE", "GT", "MASKED_EQ")


class Comparison(ctypes.Structure):
    """libseccomp's scmp_arg_cmp: what an argument must be."""

    _fields_ = (
        ("place", ctypes.c_uint),
        ("how", ctypes.c_int),
        ("first", ctypes.c_uint64),  # a mask, or what it is compared with
        ("second", ctypes.c_uint64),  # the value below the mask
    )


# What happens to a call, its name, and what its arguments must be.
Rule = tuple[int, str, list[Comparison]]


def rules(profile: dict) -> Iterator[Rule]:
    """A profile's rules about a process without any privilege, on this machine."""
    machine = MACHINES.get(platform.machine(), platform.machine())
    for rule in profile["syscalls"]:
        included, excluded = rule.get("includes") or {}, rule.get("excludes") or {}
        if (
            "caps" in included
            or machine not in included.get("arches", [machine])
            or machine in excluded.get("arches", [])
        ):
            continue
        action = ACTIONS[rule["action"]] | rule.get("errnoRet", 0)
        compared = []
        for argument in rule.get("args") or []:
            how = COMPARISONS.index(argument["op"].removeprefix("SCMP_CMP_"))
            values = argument["value"], argument.get("valueTwo", 0)
            compared.append(Comparison(argument["index"], how, *values))
        for name in rule["names"]:
            yield action, name, compared


def program(profile: dict) -> bytes:
    """A filter as the kernel takes it; libseccomp makes it, and bubblewrap loads it.

    Args:
        profile: as Docker writes it. What is about calls that this machine does not
            have is left out.

    Raises:
        OSError: libseccomp is missing, or too old.
    """
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    otherwise = ACTIONS[profile["defaultAction"]] | profile.get("defaultErrnoRet", 0)
    context = ctypes.c_void_p(library.seccomp_init(otherwise))
    for action, name, compared in rules(profile):
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
def filters() -> tuple[bytes, ...]:
    """Both filters.

    Raises:
        OSError: libseccomp is missing, or too old.
    """
    folder = Path(__file__).parent
    return tuple(program(json.loads((folder / p).read_text())) for p in PROFILES)
