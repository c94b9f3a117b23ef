"""What a submission may use is bounded, and a neighbour's score never changes."""

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time

import class_factory
import numpy as np
import psutil
import pytest

from grading import apart, runner, sandbox, session
from tools.model.chapters import ROOT

pytestmark = class_factory.NEEDS_SANDBOX

LIMITS = sandbox.Limits(
    cell_seconds=20, call_seconds=10, total_seconds=60, memory_bytes=2**28
)
FORK = "if os.fork() == 0:\n        "
# More than the memory and less than the disk, never more than a piece of it at a time.
FILL = "for n in range(3 * 2**7): f.write(bytes(2**20))\nf.flush()"


def worker(limits: sandbox.Limits = LIMITS):
    """A worker, ended at the end."""
    return contextlib.closing(session.Session(limits))


def graded(*sources: str, limits: sandbox.Limits = LIMITS) -> runner.Result:
    """What a notebook of these cells gets."""
    return class_factory.grading(*sources, limits=limits)[1]


def loses(code: str, limits: sandbox.Limits = LIMITS) -> str:
    """Why the worker is lost that runs some code and then sleeps."""
    code = f"import mmap, os, socket, time\n{code}\ntime.sleep(15)"
    with worker(limits) as inside, pytest.raises(session.WorkerLost) as lost:
        inside.run(code, 20)
    return str(lost.value)


# Memory.

KINDS = {
    "of a process whose first thread is gone": (
        "import ctypes, threading\n"
        "def run():\n"
        "    time.sleep(1)\n    hoard = bytearray(2**29)\n    time.sleep(99)\n"
        "if os.fork() == 0:\n"
        "    threading.Thread(target=run).start()\n"
        "    ctypes.CDLL(None).syscall(60, 0)"
    ),
    "files in /dev/shm": "f = open('/dev/shm/x', 'wb')\n" + FILL,
    "deleted files": "f = open('/tmp/x', 'wb')\nos.unlink('/tmp/x')\n" + FILL,
    "empty files": "for n in range(10**6): open(f'/tmp/{n}', 'w').close()",
    "page tables, of pages that are not there": (
        "for n in range(8):\n    " + FORK + "block = mmap.mmap(-1, 2**35, 34, 1)\n"
        "        for n in range(0, 2**35, 2**21): block[n]\n        time.sleep(99)"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("code", KINDS.values(), ids=KINDS)
def test_memory_of_each_kind_is_bounded(code):
    assert loses(code) == "it used more than 0.25 GiB of memory"


def test_pages_that_processes_share_count_once(spared):
    code = (
        "import os, time\nhoard = bytearray(2**26)\n"
        "children = []\n"
        "for n in range(8):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n        time.sleep(1)\n        os._exit(0)\n"
        "    children.append(child)\n"
        "for child in children: os.waitpid(child, 0)"
    )
    assert spared.run(code, 20) is None


HIDDEN = {
    "memfd": "os.memfd_create('x')",
    "System V shared memory": "call(29, 0, 2**20, 0o600)",
    "System V messages": "call(68, 0, 0o600)",
    "System V semaphores": "call(64, 0, 9, 0o600)",
    "secret memory": "call(447, 0)",
    "a ring of requests": "call(425, 8, ctypes.create_string_buffer(120))",
    "pages given to a pipe": "call(278, 1, None, 0, 0)",
    "shared and anonymous memory": "import mmap; mmap.mmap(-1, 2**20)",
    "a timer that could wake": "call(222, 1, None, ctypes.create_string_buffer(8))",
    "a file that could wake": "import fcntl; fcntl.fcntl(0, 10, 18)",
    "another process": "call(101, 16, 1, 0, 0)",
    "another process's memory": "call(310, 1, 0, 0, 0, 0, 0)",
    "other cores": "os.sched_setaffinity(0, range(os.cpu_count()))",
    "keys": "call(248, b'user', b'x', b'x', 1, -3)",
    "a namespace of its own": "call(272, 0x10000000)",
    "what lies in no list": "call(430, b'tmpfs', 0)",
    "the kernel's log": "call(103, 3, ctypes.create_string_buffer(99), 99)",
}


CALL = """import ctypes, os
def call(*arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), 'refused')
"""


@pytest.fixture(scope="module")
def spared():
    """A worker for what harms none."""
    with worker() as inside:
        yield inside


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the calls' numbers differ")
@pytest.mark.parametrize("code", HIDDEN.values(), ids=HIDDEN)
def test_what_nobody_could_count_and_the_cores_of_others_are_refused(code, spared):
    error = spared.run(CALL + code, 20)
    assert error and error["type"] == "PermissionError", error


def test_sockets_of_other_families_are_refused(spared):
    """AF_VSOCK would reach the hypervisor; AF_ALG has had holes in the kernel."""
    code = (
        "import socket\n"
        "def opens(make, family, kind):\n"
        "    try: make(family, kind)\n"
        "    except OSError as error: return not isinstance(error, PermissionError)\n"
        "    return True\n"
        "kinds = (1, 2, 3, 5)\n"
        "found = {f for f in range(60) for kind in kinds\n"
        "         for make in (socket.socket, socket.socketpair)\n"
        "         if opens(make, f, kind)}\n"
        "raise RuntimeError(sorted(found))"
    )
    assert spared.run(code, 20)["message"] == "[1, 2, 10, 16]"


def test_memory_of_a_device_that_would_stay_is_not_to_be_had(spared):
    code = (
        "import mmap\n"
        "with open('/dev/zero', 'r+b') as file:\n"
        "    print(file.read(4))\n"
        "    mmap.mmap(file.fileno(), 2**20)"
    )
    error = spared.run(code, 20)
    assert spared.printed.startswith(b"b'\\x00\\x00\\x00\\x00'\n")
    assert error["type"] == "OSError"


def test_every_process_inside_is_confined(spared):
    """The first one, too: a student's code could take it over."""
    code = (
        "import glob, os, re\n"
        "for name in glob.glob('/proc/[0-9]*'):\n"
        "    try: open(f'{name}/environ').close()\n"
        "    except PermissionError: continue  # out of reach\n"
        "    status = open(f'{name}/status').read()\n"
        "    limits = open(f'{name}/limits').read()\n"
        "    print(re.findall(r'Seccomp:.(.)|NoNewPrivs:.(.)', status),\n"
        "          re.findall(r'Max processes +(\\d+)', limits))"
    )
    assert spared.run(code, 20) is None
    lines = set(spared.printed.decode().splitlines())
    assert lines == {"[('', '1'), ('2', '')] ['400']"}


def test_the_number_of_sockets_is_bounded():
    many = (
        "held = []\n"
        "for n in range(4):\n"
        "    " + FORK + "held = [socket.socket() for n in range(400)]\n"
        "        time.sleep(99)"
    )
    assert loses(many) == "it opened more than 500 sockets"


@pytest.mark.parametrize("refused, lost", [(2, None), (99, OSError)])
def test_a_sandbox_that_does_not_start_costs_nobody_points(refused, lost, monkeypatch):
    """As after a fork bomb, whose processes are still being ended."""
    honest, tries = sandbox.Sandbox.start, []

    def start(self, program, *others):
        tries.append(program)
        honest(self, ["/bin/false"] if len(tries) <= refused else program, *others)

    monkeypatch.setattr(sandbox.Sandbox, "start", start)
    monkeypatch.setattr(session, "WAITS", (0, 0, 0))
    with pytest.raises(lost) if lost else contextlib.nullcontext():
        assert graded("bytes_q3 = 4").score == 1
    assert len(tries) == min(refused, 3) + 1


def test_a_worker_that_did_not_come_up_leaves_nothing():
    """Else the first process of a sandbox that is not set up would wait for ever."""
    output = os.open(os.devnull, os.O_RDWR)
    for _ in range(6):
        place = sandbox.Sandbox(LIMITS)
        place.start([sys.executable, "-c", "1"], [], output)
        started = place.process.pid
        children = psutil.Process(started).children(recursive=True)
        place.end()
        _, alive = psutil.wait_procs(children, timeout=5)
        assert alive == []
    os.close(output)


# What the grader itself needs to look at an answer.


@pytest.mark.slow
@pytest.mark.parametrize(
    "action, seconds, said",
    [
        (lambda: np.ones((2**20, 2**12)).sum(), 60, "too much memory"),
        (lambda: sum(iter(int, 1)), 60, "too much processor time"),
        (lambda: time.sleep(100), 3, "still running after 3 s"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), 60, "crashed"),
    ],
)
def test_an_answer_harms_only_itself_when_it_is_looked_at(action, seconds, said):
    with pytest.raises(apart.Ended, match=said):
        apart.run(lambda: {"a": action()}, seconds, 1, 2**30)


def test_a_test_that_takes_too_much_costs_its_own_points():
    column = (
        "import numpy as np\n"
        "def softmax(logits):\n"
        "    column = np.zeros((6_000_000, 1))\n"
        "    return column if len(logits) > 3 else np.full(3, 1 / 3)"
    )
    start = time.monotonic()
    result = graded(column, "bytes_q3 = 4")
    assert result.score == 1  # of q3
    message = result.questions[0].tests[1].message
    assert "MemoryError" in message or "can't use" in message
    assert time.monotonic() - start < 40


@pytest.mark.slow
def test_numbers_chosen_to_be_slow_cost_their_own_question():
    slow = (
        "import numpy as np\n"
        "def softmax(logits):\n"
        "    e = np.exp(logits - np.max(logits))\n    return e / e.sum()\n"
        "bytes_q3 = {n * (2**61 - 1) for n in range(1)}\n"
        "import protocol\n"
        "honest = protocol.encode\n"
        "def encode(value, keep):\n"
        "    if not isinstance(value, set): return honest(value, keep)\n"
        "    items = [protocol.marked('int', text=hex(n * (2**61 - 1)))\n"
        "             for n in range(60_000)]\n"
        "    return protocol.marked('set', items=items)\n"
        "protocol.encode = encode"
    )
    result = graded(slow, limits=dataclasses.replace(LIMITS, check_seconds=3))
    assert result.score == 4
    assert "too much processor time" in result.questions[2].tests[0].message


def test_what_this_machine_lacks_is_no_wrong_answer():
    grading = runner.Grading(class_factory.mini(), [], LIMITS)
    case = grading.cases["q3"][0]

    def lacks(env):
        raise OSError(28, "No space left on device")

    case.run = lacks
    with pytest.raises(OSError, match="No space left"):
        grading.grade()
    assert grading.session is None


@pytest.mark.slow
def test_what_cells_say_carries_no_hidden_input():
    """They run again when a hidden check has ended the worker, and could tell when."""
    stamp = "import time\nraise RuntimeError(time.time())"
    tell = (
        "import numpy as np, os, time\n"
        "def softmax(logits):\n"
        "    if len(logits) > 3:\n        time.sleep(3)\n        os._exit(0)\n"
        "    return np.full(3, 1 / 3)"
    )
    result = graded(stamp, tell)
    assert result.questions[0].tests[0].passed and result.score == 0
    assert result.questions[0].tests[1].kind == "lost"
    told = float(result.cells[0].error.removeprefix("RuntimeError: "))
    assert time.time() - told > 3


# Processor time, and neighbours.

BURNERS = (
    "import os\n"
    "for n in range(40):\n"
    "    if os.fork() == 0:\n"
    "        try: os.setsid()\n"
    "        except OSError: pass\n"
    "        try: os.sched_setaffinity(0, range(os.cpu_count()))\n"
    "        except OSError: pass\n"
    "        while True: pass\n"
)
# How much longer a computation takes than its own processor time.
STRETCH = (
    "import time\n"
    "clock, own = time.perf_counter(), time.process_time()\n"
    "while time.process_time() - own < 1: sum(range(1000))\n"
    "stretch = time.perf_counter() - clock\n"
)


@pytest.mark.slow
def test_nothing_runs_while_nothing_is_asked():
    """A check may measure on its own: the worker's children can't slow that down."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # the worker's and ours
    try:
        with worker(dataclasses.replace(LIMITS, cell_seconds=60)) as inside:
            assert inside.run(BURNERS, 60) is None
            told = {}
            exec(STRETCH, told)
            assert told["stretch"] < 10  # beside forty that run it is about 40
            assert inside.run("x = 1", 60) is None
    finally:
        os.sched_setaffinity(0, cores)


def test_what_was_held_still_goes_on(spared):
    count = (
        "import threading, time\nn = 0\n"
        "def run():\n    global n\n    while True:\n        n += 1\n"
        "        time.sleep(0.01)\n"
        "threading.Thread(target=run, daemon=True).start()\ntime.sleep(0.2)"
    )
    assert spared.run(count, 20) is None
    before = spared.ask({"do": "get", "name": "n"}, {}, 5, None)
    time.sleep(1)
    after = spared.ask({"do": "get", "name": "n"}, {}, 5, None)
    assert 0 < before <= after < before + 20  # running, it would be 100 further
    assert spared.run("m = n\ntime.sleep(0.5)\nm = n - m", 20) is None
    assert spared.ask({"do": "get", "name": "m"}, {}, 5, None) > 5


def test_the_first_process_can_be_neither_ended_nor_slowed_nor_read(spared):
    code = (
        "import os, resource, signal\n"
        "for number in range(1, 65):\n"
        "    try: os.kill(1, number)\n"
        "    except OSError: pass\n"
        "tries = {\n"
        "    'priority': lambda: os.setpriority(os.PRIO_PROCESS, 1, 19),\n"
        "    'priority of a group': lambda: os.setpriority(os.PRIO_PGRP, 0, 19),\n"
        "    'priority of a user': lambda: os.setpriority(os.PRIO_USER, 0, 19),\n"
        "    'idle': lambda: os.sched_setscheduler(1, 5, os.sched_param(0)),\n"
        "    'limit': lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)),\n"
        "    'memory': lambda: open('/proc/1/mem', 'rb'),\n"
        "    'descriptors': lambda: os.listdir('/proc/1/fd'),\n"
        "}\n"
        "done = []\n"
        "for name, attempt in tries.items():\n"
        "    try: attempt(); done.append(name)\n"
        "    except PermissionError: pass\n"
        "raise RuntimeError(done)"
    )
    assert spared.run(code, 20)["message"] == "[]"
    assert spared.run("x = 1", 20) is None


@pytest.mark.parametrize("children", [0, 1])
def test_a_worker_that_is_killed_is_missed_at_once(children):
    """Children that hold its pipes open would otherwise have the grader wait."""
    start = time.monotonic()
    code = children * (FORK + "time.sleep(99)\n") + "os.kill(os.getpid(), 9)"
    assert loses(code).startswith("it was killed")
    assert time.monotonic() - start < 10


@pytest.mark.skipif(not sandbox.scope(), reason="no systemd gives control groups here")
def test_the_kernel_bounds_the_memory_where_systemd_runs(monkeypatch):
    monkeypatch.setattr(sandbox, "RESERVE", -(2**27))  # sooner than the supervisor
    with worker() as inside:
        assert inside.run("x = bytearray(2**26)", 20) is None
        with pytest.raises(session.WorkerLost, match="it was killed"):
            inside.run("y = bytearray(2**29)", 20)


@pytest.mark.slow
@pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="one core has no neighbour"
)
def test_a_neighbour_that_burns_changes_no_score(tmp_path):
    honest = STRETCH + "bytes_q3 = 4 if stretch < 10 else 5"  # unbound, about 20
    cases = {"burner": class_factory.case(BURNERS + "import time\ntime.sleep(6)")}
    for number in range(3):  # one of them starts when the burner is at its work
        cases[f"honest-{number}"] = class_factory.case(honest)
    class_factory.write_all(tmp_path / "in", cases)
    done = class_factory.run(tmp_path, "--jobs=2", "--seed=1")
    rows = class_factory.rows(tmp_path / "out" / "grades.csv")
    scores = {rows[f"honest-{number}"]["score"] for number in range(3)}
    assert (scores, rows["burner"]["score"]) == ({"5"}, "4"), done.stderr


# However the grader ends, its children end with it.


def workers(marker: str) -> list[psutil.Process]:
    """The processes whose command line holds a marker: the limits of one test's."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(marker in part for part in process.info["cmdline"] or [])
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "number, through_make",
    [(signal.SIGTERM, True), (signal.SIGKILL, False), (signal.SIGKILL, True)],
)
def test_children_end_with_the_grader(number, through_make, tmp_path):
    cases = {name: class_factory.case("while True: pass") for name in ("a", "b")}
    class_factory.write_all(tmp_path / "in", cases)
    total = 1000 + os.getpid() % 10_000 + 7 * number + through_make
    marker = f'"CPU": {int(total * max(2, len(os.sched_getaffinity(0))))},'
    program = class_factory.command(tmp_path, f"--total-seconds={total}", "--jobs=2")
    if through_make:
        makefile = tmp_path / "Makefile"
        makefile.write_text(f"all:\n\t@exec {' '.join(program)}\n")
        program = ["make", "-f", str(makefile)]
    process = subprocess.Popen(
        program, cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 60
        while len(workers(marker)) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert len(workers(marker)) >= 2
        process.send_signal(number)
        process.wait(20)
        deadline = time.monotonic() + 10
        while workers(marker) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert workers(marker) == []
    finally:
        process.kill()
        for left in workers(marker):
            with contextlib.suppress(psutil.Error):
                left.kill()
