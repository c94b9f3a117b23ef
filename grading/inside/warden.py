"""Watches over a worker from a place that it can't reach; stops it and wakes it.

    python -I -S warden.py CONTROL LIMITS COMMAND...

CONTROL is the descriptor of a socket, LIMITS is JSON: {"memory": bytes, "sockets": 500,
"files": 8192, "folders": ["/tmp"], "process": {"NPROC": 400}}, COMMAND starts the inner
sandbox. The warden lives in the outer one, so it sees the processes inside, and they
can't reach it. All of them, the inner bubblewrap included, have what confine.py leaves.

The grader writes one letter at a time: `g`, go on; `s`, stop (every process inside is
told so at once, by one call, and a dot is the answer when all have stopped); `q`, wait
until all is quiet (answered with a dot). A line that starts with `!` says which limit
was broken; all inside is then ended. So it is when the grader is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))

import confine

WATCH = 0.1  # seconds between two looks at what is used
QUIET = 0.1  # seconds in which nothing may have happened
AT_MOST = 3.0  # seconds to wait for that
STOPPING = 10.0  # seconds in which all must have stopped
AWAKE = (b"R", b"S")  # states of a process that is not held still
FEW = 64  # open files for which the kernel makes room at first
RESTLESS = b"!it did not hold still while nothing was asked of it\n"
INODE = 1024  # bytes that the kernel keeps for a file in memory, about


def processes() -> list[str]:
    """The processes in the sandbox, by number, the warden and the first left out."""
    own = str(os.getpid())
    return [n for n in os.listdir("/proc") if n.isdigit() and n not in ("1", own)]


def tell(number: int) -> None:
    """Send a signal to all of them: one call, so none can fork away from it."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, number)


def fields(path: str) -> dict[str, int]:
    """Numbers in a file below /proc, `VmRSS: 12 kB` in bytes and `FDSize: 64`."""
    found = {}
    with contextlib.suppress(OSError), open(path, "rb") as file:
        for line in file:
            name, _, value = line.partition(b":")
            if value.endswith(b" kB\n"):
                found[name.decode()] = 1024 * int(value[:-3])
            elif name == b"FDSize":
                found["FDSize"] = int(value)
    return found


def memory(number: str) -> dict[str, int]:
    """What a process's status tells; its first thread may be gone, others not."""
    told = fields(f"/proc/{number}/status")
    if "VmRSS" not in told:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{number}/task"):
                told |= fields(f"/proc/{number}/task/{thread}/status")
    return told


def in_files(folders: list[str]) -> int:
    """Bytes of the files in folders that lie in memory."""
    used = 0
    for folder in folders:
        with contextlib.suppress(OSError):
            one = os.statvfs(folder)
            used += (one.f_blocks - one.f_bfree) * one.f_frsize
            used += (one.f_files - one.f_ffree) * INODE
    return used


def uses_more(limits: dict, told: dict[str, dict[str, int]]) -> bool:
    """Whether processes and files together hold more memory than they may.

    Pages that several processes share count once. The sum in which they count for each
    is looked at first: it is cheap and never too small. Then all are held still, since
    the shares of the others grow when a process ends.
    """
    files = in_files(limits["folders"])
    names = ("VmRSS", "VmSwap", "VmPTE")
    total = sum(one.get(name, 0) for one in told.values() for name in names)
    if total + files <= limits["memory"]:
        return False
    stop()
    total = 0
    for number in processes():
        one, shared_out = memory(number), fields(f"/proc/{number}/smaps_rollup")
        resident = shared_out.get("Pss", one.get("VmRSS", 0))
        total += resident + one.get("VmSwap", 0) + one.get("VmPTE", 0)
    tell(signal.SIGCONT)
    return total + files > limits["memory"]


def sockets() -> int:
    """How many sockets are open in the sandbox, of all kinds."""
    with contextlib.suppress(OSError), open("/proc/net/sockstat", "rb") as file:
        return int(file.readline().split()[-1])
    return 0


def broken(limits: dict) -> str:
    """Which limit is broken, or an empty text."""
    told = {number: memory(number) for number in processes()}
    if uses_more(limits, told):
        return f"it used more than {limits['memory'] / 2**30:g} GiB of memory"
    if sockets() > limits["sockets"]:
        return f"it opened more than {limits['sockets']} sockets"
    rooms = [one.get("FDSize", 0) for one in told.values()]
    if sum(room for room in rooms if room > FEW) > limits["files"]:
        return f"its processes opened more than {limits['files']} files together"
    return ""


def activity() -> tuple[int, int]:
    """Ticks of processor time that all have used, and how many threads want more."""
    ticks = wanting = 0
    for number in processes():
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{number}/task"):
                with open(f"/proc/{number}/task/{thread}/stat", "rb") as file:
                    told = file.read().rpartition(b")")[2].split()
                ticks += int(told[11]) + int(told[12])
                wanting += told[0] in (b"R", b"D")
    return ticks, wanting


def settle() -> None:
    """Wait until nothing happens in the sandbox."""
    deadline = time.monotonic() + AT_MOST
    before = (-1, 1)
    while time.monotonic() < deadline:
        now = activity()
        if now == before and now[1] == 0:
            return
        before = now
        time.sleep(QUIET)


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


def serve(control: int, limits: dict) -> None:
    """Do what the grader asks, and watch, until it is gone or a limit is broken."""
    running = True
    while True:
        ready = select.select([control], [], [], WATCH)[0]
        if ready:
            asked = os.read(control, 1)
            if not asked:
                return
            if asked == b"g":
                running = True
                tell(signal.SIGCONT)
            elif asked == b"s":
                running = False
                if not stop():
                    os.write(control, RESTLESS)
                    return
                os.write(control, b".")
            elif asked == b"q":
                settle()
                os.write(control, b".")
        if running and (reason := broken(limits)):
            os.write(control, f"!{reason}\n".encode())
            return
        if not running and not ready and awake():
            os.write(control, RESTLESS)
            return


def main() -> None:
    """Start the inner sandbox and watch over it."""
    control, limits, command = int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:]
    os.set_inheritable(control, False)
    if os.fork() == 0:
        confine.limit(limits["process"])
        confine.forbid()
        os.execv(command[0], command)
    for descriptor in map(int, os.listdir("/proc/self/fd")):  # they are the worker's
        if descriptor > 2 and descriptor != control:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    try:
        serve(control, limits)
    finally:
        tell(signal.SIGKILL)


if __name__ == "__main__":
    main()
