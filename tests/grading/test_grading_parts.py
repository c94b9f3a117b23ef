"""Parts of the grader: the sandbox, remote objects, cells, the command."""

import contextlib
import dataclasses
import signal
import subprocess
import sys
import time

import class_factory
import numpy as np
import pytest

from grading import cli, probe, runner, sandbox, session
from grading.answers import Answers, Remote
from grading.inside.protocol import Handle
from tools.model.chapters import ROOT
from tools.model.errors import UserError

pytestmark = class_factory.NEEDS_SANDBOX

LIMITS = sandbox.Limits(cell_seconds=20, call_seconds=10, total_seconds=60)


def run_cells(*sources: str, limits: sandbox.Limits = LIMITS) -> runner.Result:
    """Grade a notebook with these cells."""
    return class_factory.grading(*sources, limits=limits)[1]


# The sandbox.


@pytest.fixture(scope="module")
def worker():
    """A worker for what harms none."""
    with contextlib.closing(session.Session(LIMITS)) as worker:
        yield worker


def inside(worker: session.Session, code: str) -> str:
    """What Python prints in the sandbox."""
    error = worker.run(code, 20)
    return error["message"] if error else worker.printed.decode().strip()


def test_the_student_has_a_name_of_its_own_and_the_machine_an_address(worker):
    assert inside(worker, "import getpass; print(getpass.getuser())") == "student"
    address = "import socket; print(socket.gethostbyname(socket.gethostname()))"
    assert inside(worker, address) == "127.0.0.1"


def refusal() -> str:
    """Why there can be no sandbox, so that nothing may run."""
    probe.check.cache_clear()
    try:
        with pytest.raises(sandbox.NoSandbox) as error:
            probe.check()
    finally:
        probe.check.cache_clear()
    return str(error.value)


def test_without_bubblewrap_nothing_runs(monkeypatch, handed_in, capsys):
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    probe.check.cache_clear()
    assert class_factory.grade(handed_in) == 1
    probe.check.cache_clear()
    said = capsys.readouterr().err
    assert "bubblewrap is not installed, so no student's code is run" in said
    assert "apt-get install bubblewrap" in said
    assert not (handed_in / "out").exists()


def test_a_sandbox_that_fails_says_why(monkeypatch, tmp_path):
    false = tmp_path / "bwrap"
    false.write_text("#!/bin/sh\necho 'bwrap: No permissions to create' >&2; exit 1\n")
    false.chmod(0o755)
    monkeypatch.setattr(sandbox, "find", lambda: str(false))
    said = refusal()
    assert "makes no sandbox here (" in said
    assert "(bwrap: No permissions to create))" in said
    assert "Fix: " in said


class NoSandboxAtAll(sandbox.Sandbox):
    """Runs a program as it is: what a broken sandbox would be."""

    def start(self, program, descriptors, output):
        folder = str(sandbox.OWN)
        self.process = subprocess.Popen(
            [one.replace(sandbox.INSIDE, folder) for one in program],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=descriptors,
        )

    def go(self):
        pass

    stop = go

    def why(self):
        return ""


def test_a_sandbox_that_keeps_less_than_it_promises_is_refused(monkeypatch):
    monkeypatch.setattr(sandbox, "Sandbox", NoSandboxAtAll)
    said = refusal()
    assert "no student's code is run" in said
    assert "it runs as root" in said or "namespace ipc is the grader's own" in said


# Remote objects.


class NoAnswers:
    def ask(self, request, values):
        raise AssertionError("the worker was asked")


@pytest.mark.parametrize(
    "use",
    [
        lambda it: it == 1,
        lambda it: it < 1,
        lambda it: bool(it),
        lambda it: len(it),
        lambda it: 1 in it,
        lambda it: int(it),
        lambda it: abs(it),
        lambda it: it + 1,
        lambda it: np.ones(2) * it,
        lambda it: np.allclose(it, 1),
        lambda it: {it: 1},
        lambda it: round(it),
    ],
)
def test_a_remote_object_passes_no_assertion_by_itself(use):
    with pytest.raises(TypeError):
        assert use(Remote(NoAnswers(), Handle(1, "Sly"))) is not None


# Functions of a test, which the student's code calls.


def call_here(worker: session.Session, source: str, use, seconds=5):
    """What `use` makes of a notebook's names; it may send functions."""
    assert worker.run(source, 20) is None
    return use(Answers(worker, seconds))


@pytest.fixture
def lost():
    """A worker that will be lost."""
    with contextlib.closing(session.Session(LIMITS)) as worker:
        yield worker


def test_a_function_of_a_test_is_called_there(worker):
    seen = []

    def note(*arguments, **named):
        seen.append((arguments, named))
        return np.float32(len(seen)), [len(seen)]

    source = (
        "def twice(note):\n    note(1, [2], text='x')\n    return note()\n"
        "def held(note):\n    return note"
    )

    def use(env):
        assert type(env["held"](note)) is Remote  # it is no value
        return env["twice"](note)

    assert call_here(worker, source, use) == (2, [2])
    assert seen == [((1, [2]), {"text": "x"}), ((), {})]


def test_a_function_is_called_from_threads_one_after_the_other(worker):
    source = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def all_of(f):\n"
        "    with ThreadPoolExecutor(8) as pool: return list(pool.map(f, range(200)))"
    )
    found = call_here(worker, source, lambda env: env["all_of"](lambda n: n * n))
    assert found == [n * n for n in range(200)]


def test_a_wrong_call_is_an_error_of_the_students(worker):
    source = "def f(g): return g(1, 2)"
    with pytest.raises(session.RemoteError, match="can't be called so"):
        call_here(worker, source, lambda env: env["f"](lambda x: x))


def test_a_function_is_gone_with_its_test(lost):
    kept = "kept = []\ndef keep(f): kept.append(f)\ndef late(): return kept[0]()"

    def use(env):
        env["keep"](lambda: "a secret of this test")
        env._session.functions.clear()  # the next test is another process
        return env["late"]()

    with pytest.raises(session.WorkerLost, match="what is not there"):
        call_here(lost, kept, use)


def test_calls_without_end_come_to_an_end(lost):
    endless = "def f(g):\n    while True: g()"
    with pytest.raises(session.WorkerLost, match="still running after 1 s"):
        call_here(lost, endless, lambda env: env["f"](lambda: None), seconds=1)


@pytest.mark.parametrize(
    "message",
    [
        "'call': 1000, 'arguments': {'$': 'no'}",
        "'call': 1000, 'arguments': [], 'named': {'$': 'function', 'number': 1}",
    ],
)
def test_a_forged_call_ends_the_worker(message, lost):
    forge = (
        "import worker, protocol, os, sys\n"
        "def f(g):\n"
        "    pipe = int(sys.argv[1])\n"
        f"    text = {{'number': 1, {message}}}\n"
        "    os.write(pipe, protocol.pack(text))\n"
        "    return 1"
    )
    with pytest.raises(session.WorkerLost, match="broke the protocol"):
        call_here(lost, forge, lambda env: env["f"](lambda: None))


def test_only_plain_data_and_functions_can_be_sent(worker):
    with pytest.raises(TypeError, match="can't send object"):
        call_here(worker, "f = print", lambda env: env["f"](object()))


# Cells.


def test_cells_run_in_order_and_an_error_stops_none():
    result = run_cells("a = 1", "raise ValueError('first')", "bytes_q3 = a + 3")
    assert result.score == 1
    assert [cell.error for cell in result.cells] == ["", "ValueError: first", ""]


def test_a_cell_that_ends_the_worker_costs_only_itself():
    lost = "import os\ndef softmax(x): ...\nos._exit(1)"
    result = run_cells("bytes_q3 = 4", lost, "def dense(i, u): return None")
    assert result.score == 1
    assert "ended the process" in result.cells[1].error
    said = "no 'softmax' in the notebook: cell 2, which defines it, was left out"
    assert said in result.questions[0].tests[0].message
    assert not result.problem


def test_harm_that_shows_late_is_laid_to_its_cell():
    result = run_cells(
        "bytes_q3 = 4",
        "import os, signal, subprocess, sys\n"
        "code = f'import os, time; time.sleep(0.05); os.kill({os.getpid()}, 9)'\n"
        "subprocess.Popen([sys.executable, '-c', code])",
        "import time; time.sleep(0.5)",
    )
    assert result.score == 1


def test_a_submission_that_loses_worker_after_worker_comes_to_an_end():
    limits = dataclasses.replace(LIMITS, restarts=2)
    ends = ["import os; os._exit(1)"] * 4
    result = run_cells(*ends, "bytes_q3 = 4", limits=limits)
    assert result.score == 0
    assert "3 workers were lost" in result.problem
    assert all(t.message for q in result.questions for t in q.tests)


@pytest.mark.slow
def test_the_time_of_a_submission_ends():
    start = time.monotonic()
    limits = dataclasses.replace(LIMITS, total_seconds=4)
    sleeps = "import time\ndef softmax(logits): time.sleep(60)\nbytes_q3 = 4"
    result = run_cells(sleeps, limits=limits)
    assert time.monotonic() - start < 10
    assert "used up its 4 s" in result.problem


def test_installations_are_left_out_and_what_stands_below_runs(worker):
    left_out = "an installation, left out at grading"
    assert inside(worker, "  !python -m pip install x") == left_out
    source = "!pip install a \\\n    b\n%pip install c\nprint('goes on')"
    assert inside(worker, source) == f"{left_out}\n{left_out}\ngoes on"
    assert inside(worker, "print('%pip install')") == "%pip install"


def test_magics_processes_and_plots_work():
    result = run_cells(
        "%matplotlib inline\nimport matplotlib.pyplot as plt\n"
        "plt.plot([1]); plt.show()",
        "from IPython.display import display\ndisplay(1)",
        "import subprocess, sys\n"
        "command = [sys.executable, '-c', 'print(4)']\n"
        "done = subprocess.run(command, capture_output=True)",
        "bytes_q3 = int(done.stdout)",
        "!echo hello",
    )
    assert [cell.error for cell in result.cells] == [""] * 5
    assert result.score == 1


# The command.


def test_the_seed_is_drawn_once_and_kept_to_its_owner(tmp_path):
    first = cli.seed(tmp_path, None)
    assert len(first) == 32
    assert cli.seed(tmp_path, None) == first
    assert cli.seed(tmp_path, "mine") == "mine"
    assert (tmp_path / cli.SEED_FILE).stat().st_mode & 0o077 == 0
    for broken in (b"", b"\n", b"\xff"):
        (tmp_path / cli.SEED_FILE).write_bytes(broken)
        with pytest.raises(UserError, match="holds no secret"):
            cli.seed(tmp_path, None)


@pytest.mark.slow
def test_interrupted_grading_keeps_what_is_done(handed_in):
    (handed_in / "in" / "zz_mini.ipynb").write_text(
        class_factory.case("import time; time.sleep(100)").text
    )
    process = subprocess.Popen(
        class_factory.command(handed_in, "--jobs=1"),
        stderr=subprocess.PIPE,
        text=True,
        # A run in the background ignores Ctrl-C, and so would what it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        cwd=ROOT,
    )
    said = []
    for line in process.stderr:
        said.append(line)
        if "wrong:" in line:
            process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    assert "interrupted: what is graded is kept" in said[-1]
    assert (handed_in / "out" / "students" / "correct" / "graded.json").exists()


@pytest.mark.slow
def test_a_submission_on_which_the_grader_fails_is_tried_again(
    handed_in, monkeypatch, capsys
):
    honest = runner.Grading.grade

    def fails(self, seed):
        if any("np.exp(logits)" in cell.source for cell in self.cells):
            raise OSError(28, "No space left on device")
        return honest(self, seed)

    monkeypatch.setattr(runner.Grading, "grade", fails)
    assert class_factory.grade(handed_in) == 0
    said = capsys.readouterr().err
    assert "wrong: 0 points" in said
    assert "the grader failed on it (OSError: [Errno 28] No space left" in said
    assert "correct: 8 points" in said
    monkeypatch.undo()
    assert class_factory.grade(handed_in) == 0
    assert "2 graded before, 1 to grade" in capsys.readouterr().err


def test_python_may_lie_below_tmp(monkeypatch, tmp_path):
    (tmp_path / "packages").touch()
    (tmp_path / "pip.conf").write_text("a password")
    tmp_path.chmod(0o755)
    monkeypatch.setattr(sys, "exec_prefix", str(tmp_path))
    listed = f"import os; print(os.listdir({str(tmp_path)!r}))"
    with contextlib.closing(session.Session(LIMITS)) as own:
        assert "packages" in inside(own, listed)
        assert inside(own, f"print(open({str(tmp_path / 'pip.conf')!r}).read())") == ""
