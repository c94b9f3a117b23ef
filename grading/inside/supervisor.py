"""The first process of a sandbox: it starts the worker, holds it still and wakes it.

    python -I -S supervisor.py CONTROL LIMITS COMMAND...

CONTROL is the descriptor of a socket, LIMITS is JSON: {"memory": bytes, "sockets": 500,
"folders": ["/tmp"], "process": {"NPROC": 400}}, COMMAND starts the worker. As process 1
of its namespace it can tell all others something by one call, none can end it or stop
it, and when it ends, the kernel ends them all. Nobody can look into it.

The grader writes one letter at a time: `g`, go on; `s`, stop (answered with a dot when
all processes have stopped). A line that starts with `!` says which limit was broken;
all is then ended. So it is when the worker has ended, or the grader.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import sys
import time

WATCH = 0.1  # seconds between two looks at what is used
STOPPING = 10.0  # seconds in which all must have stopped
AWAKE = (b"R", b"S")  # states of a process that is not held still
RESTLESS = b"!it did not hold still while nothing was asked of it\n"
KILLED = b"!it was killed, as when memory or processor time is at its end\n"
INODE = 1024  # bytes that the kernel keeps for a file in memory, about
PR_SET_DUMPABLE = 4


def processes() -> list[str]:
    """The numbers of all other processes in the sandbox."""
    return [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]


def tell(number: int) -> None:
    """Send a signal to all of them: one call, so none can fork away from it."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, number)


def start(command: list[str], limits: dict[str, int]) -> int:
    """Start the worker; its hard limits can't be raised again. Returns its number."""
    worker = os.fork()
    if worker:
        return worker
    os.setsid()
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        most = resource.getrlimit(kind)[1]
        if most != resource.RLIM_INFINITY:
            value = min(value, most)
        resource.setrlimit(kind, (value, value))
    os.execv(command[0], command)


def ended(worker: int) -> int | None:
    """Take leave of processes that have ended; the status of the worker if it has."""
    with contextlib.suppress(ChildProcessError):
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == worker:
                return status
            if not process:
                return None
    return None


def fields(path: str) -> dict[str, int]:
    """The sizes in a file below /proc, such as `VmRSS: 12 kB`, in bytes."""
    sizes = {}
    with contextlib.suppress(OSError), open(path, "rb") as file:
        for line in file:
            name, _, value = line.partition(b":")
            if value.endswith(b" kB\n"):
                sizes[name.decode()] = 1024 * int(value[:-3])
    return sizes


def memory(number: str, shared_out: bool = False) -> int:
    """Bytes that a process holds; its first thread may be gone, others not.

    Args:
        number: of the process.
        shared_out: count a page that several processes share in part for each.
    """
    sizes = fields(f"/proc/{number}/status")
    if "VmRSS" not in sizes:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{number}/task"):
                sizes |= fields(f"/proc/{number}/task/{thread}/status")
    resident = sizes.get("VmRSS", 0)
    if shared_out:
        resident = fields(f"/proc/{number}/smaps_rollup").get("Pss", resident)
    return resident + sizes.get("VmSwap", 0) + sizes.get("VmPTE", 0)


def in_files(folders: list[str]) -> int:
    """Bytes of the files in folders that lie in memory."""
    used = 0
    for folder in folders:
        with contextlib.suppress(OSError):
            room = os.statvfs(folder)
            used += (room.f_blocks - room.f_bfree) * room.f_frsize
            used += (room.f_files - room.f_ffree) * INODE
    return used


def uses_more(limits: dict) -> bool:
    """Whether processes and files together hold more memory than they may.

    Pages that several processes share count once. The sum in which they count for each
    is looked at first: it is cheap and never too small. Then all are held still, since
    the shares of the others grow when a process ends.
    """
    left = limits["memory"] - in_files(limits["folders"])
    if sum(memory(number) for number in processes()) <= left:
        return False
    stop()
    shares = sum(memory(number, shared_out=True) for number in processes())
    tell(signal.SIGCONT)
    return shares > left


def broken(limits: dict) -> str:
    """Which limit is broken, or an empty text."""
    if uses_more(limits):
        return f"it used more than {limits['memory'] / 2**30:g} GiB of memory"
    with contextlib.suppress(OSError), open("/proc/net/sockstat", "rb") as file:
        if int(file.readline().split()[-1]) > limits["sockets"]:
            return f"it opened more than {limits['sockets']} sockets"
    return ""


def awake() -> bool:
    """Whether a process in the sandbox is not held still."""
    for number in processes():
        with contextlib.suppress(OSError), open(f"/proc/{number}/stat", "rb") as file:
            if file.read().rpartition(b")")[2].split()[0] in AWAKE:
                return True
    return False


def stop() -> bool:
    """Hold all processes still; whether they are."""
    deadline = time.monotonic() + STOPPING
    tell(signal.SIGSTOP)
    while awake():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.0005)
    return True


def serve(control: int, limits: dict, worker: int) -> bytes:
    """Do what the grader asks, until it is gone or the worker is to be ended.

    Returns:
        The line that tells the grader why the worker is ended, if it is to know.
    """
    running = True
    while True:
        ready = select.select([control], [], [], WATCH)[0]
        if ready:
            asked = os.read(control, 1)
            if not asked:
                return b""
            if asked == b"g":
                running = True
                tell(signal.SIGCONT)
            elif asked == b"s":
                running = False
                if not stop():
                    return RESTLESS
                os.write(control, b".")
        status = ended(worker)
        if status is not None:
            killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
            return KILLED if killed else b""
        if running and (reason := broken(limits)):
            return f"!{reason}\n".encode()
        if not running and not ready and awake():
            return RESTLESS


def main() -> None:
    """Start the worker and watch over it."""
    control, limits, command = int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:]
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    # Process 1 gets no signal from within that it does not handle, as Python does this.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.set_inheritable(control, False)
    worker = start(command, limits["process"])
    for descriptor in map(int, os.listdir("/proc/self/fd")):  # they are the worker's
        if descriptor != control:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    try:
        os.write(control, serve(control, limits, worker))
    finally:
        tell(signal.SIGKILL)


if __name__ == "__main__":
    main()
