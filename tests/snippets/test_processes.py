"""What the chapters' magics and processes do, fresh ones and forks."""

import contextlib
import os
import re
import shlex
import signal
import threading
import time

import psutil
import pytest
from IPython.utils.capture import capture_output
from shells import fresh_shell

from tools.model import chapters

SANITIZE = chapters.ROOT / "tests/sanitize.cfg"


def wait_until(true, seconds=10):
    """Wait for something that happens in another process."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.02)


def is_running(pid):
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


# --- %%process and run_process -----------------------------------------------------


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """An IPython shell in this process, after a set-up cell with the magics."""
    folder = tmp_path_factory.mktemp("ipython")
    with fresh_shell(folder, "processes", "raises_magic") as shell:
        yield shell


@pytest.fixture
def run_process(shell):
    return shell.user_ns["run_process"]


def run(shell, cell):
    """Run a cell in the shell; what it printed, and its error if any."""
    with capture_output() as printed:
        result = shell.run_cell(cell)
    return printed, result.error_in_exec


def test_process_relays_what_the_cell_prints(shell):
    printed, error = run(
        shell,
        "%%process\nimport os, sys\nprint('to stdout')\n"
        "print('to stderr', file=sys.stderr)\nos.write(2, b'I0000 logged by C++')",
    )
    assert error is None
    assert printed.stdout == "to stdout\n"
    assert printed.stderr == "to stderr\n"


def test_a_process_is_fresh_and_its_names_stay_in_it(shell):
    shell.user_ns["mine"] = 1
    printed, error = run(
        shell,
        "%%process\nimport os, sys\nprint('mine' in globals(), len(sys.argv))\n"
        f"assert os.getpid() != {os.getpid()}\nnew = 1",
    )
    assert error is None and printed.stdout == "False 1\n"
    assert "new" not in shell.user_ns


def test_the_environment_of_the_line_is_set_in_the_child_only(shell, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    printed, error = run(
        shell,
        "%%process KERAS_BACKEND=jax XLA_FLAGS='--a=1 --b' EMPTY=\nimport os\n"
        "print([os.environ[x] for x in ('KERAS_BACKEND', 'XLA_FLAGS', 'EMPTY')])",
    )
    assert error is None
    assert printed.stdout == "['jax', '--a=1 --b', '']\n"
    assert os.environ["KERAS_BACKEND"] == "tensorflow"
    assert "XLA_FLAGS" not in os.environ and "EMPTY" not in os.environ


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("KERAS_BACKEND", "KERAS_BACKEND"),
        ("A=1 =2", "=2"),
        ("timeout=soon", "timeout=soon"),
        ("timeout=-1", "timeout=-1"),
    ],
)
def test_a_bad_word_on_the_line_is_named_with_the_form_wanted(shell, line, word):
    printed, error = run(shell, f"%%process {line}\nprint('ran')")
    message = f"%%process {word}: write NAME=value or timeout=SECONDS"
    assert isinstance(error, ValueError) and str(error) == message
    assert "\nran" not in printed.stdout


def test_an_error_in_the_cell_is_raised_with_the_lines_of_the_cell_only(shell):
    cell = (
        "%%process\nprint('before')\n\ndef f(x):\n    return 1 / x\n\n"
        "import json\njson.loads('1', parse_int=lambda text: f(0))"
    )
    printed, error = run(shell, cell)
    assert type(error).__name__ == "ProcessError"
    assert str(error) == "ZeroDivisionError: division by zero"
    assert printed.stdout.startswith("before\n")
    report = "\n".join(error._render_traceback_())
    assert re.findall(r'File "(.+?)", line (\d+)', report) == [
        ("cell", "7"),
        ("cell", "7"),
        ("cell", "4"),
    ]
    assert "    return 1 / x\n" in report and report.endswith(str(error))
    assert shell.user_ns["process"].returncode == 1
    assert "<string>" not in printed.stdout and "subprocess.py" not in printed.stdout


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def", "SyntaxError: invalid syntax"),
        ("import sys; sys.exit(3)", "the process died: exit status 3"),
        ("import os; os.abort()", "the process died: exit status -6"),
        (
            "import os; os.write(2, b'F0000 Check failed: x\\n'); os.abort()",
            "the process died: F0000 Check failed: x",
        ),
    ],
)
def test_the_message_is_the_last_line_of_the_child(shell, source, message):
    _, error = run(shell, f"%%process\n{source}")
    assert type(error).__name__ == "ProcessError" and str(error) == message


def test_a_time_out_shows_what_was_printed_so_far(shell):
    start = time.monotonic()
    printed, error = run(
        shell,
        "%%process timeout=1.5\nimport sys, time\nprint('so far')\n"
        "print('half a line', end='', file=sys.stderr, flush=True)\ntime.sleep(60)",
    )
    assert time.monotonic() - start < 10
    assert type(error).__name__ == "ProcessError"
    assert str(error) == "TimeoutError: stopped after 1.5 s"
    assert error.report == "half a line\nTimeoutError: stopped after 1.5 s"
    assert printed.stdout.startswith("so far\n")


def test_an_interrupt_kills_the_process_and_the_shell_lives(shell, tmp_path):
    note = tmp_path / "pid"
    cell = (
        "%%process\nimport os, pathlib, time\n"
        f"pathlib.Path({str(note)!r}).write_text(str(os.getpid()))\ntime.sleep(60)"
    )

    def interrupt():
        wait_until(lambda: note.exists() and note.read_text())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    _, error = run(shell, cell)
    assert isinstance(error, KeyboardInterrupt)
    assert not is_running(int(note.read_text()))
    assert run(shell, "%%process\nprint('alive')")[0].stdout == "alive\n"


# --- forks -------------------------------------------------------------------------

ON_JAX = {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
SAYS = """
import keras, jax, numpy, os, random
print(len(jax.devices()), numpy.random.rand(), random.random(), os.environ.get("HINT"))
"""


def test_forks_have_one_parent_and_share_neither_devices_nor_random_numbers(
    shell, run_process
):
    shell.user_ns["warm_parents"].clear()
    three = {"JAX_NUM_CPU_DEVICES": "3", "SLURM_JOB_ID": "1"}
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    found = [run_process(SAYS, **ON_JAX, **more) for more in (three, {}, flags)]
    devices, *drawn, hints = zip(*(x.stdout.split() for x in found), strict=True)
    assert devices == ("3", "1", "2") and {*hints} == {"None"}
    assert [len({*numbers}) for numbers in drawn] == [3, 3]
    assert len(shell.user_ns["warm_parents"]) == 1
    other = run_process(SAYS, **ON_JAX, HINT="an import may have read it")
    assert "may" in other.stdout and len(shell.user_ns["warm_parents"]) == 2


TELL = "\nimport keras, os\nprint(keras.backend.backend(), os.getppid())"
PARENT = "\nimport os\nprint('not', os.getppid())  # a word on keras, and no import"


@pytest.mark.parametrize(
    ("source", "fresh", "said"),
    [
        ("import os\nos.environ['KERAS_BACKEND'] = 'numpy'" + TELL, False, "numpy"),
        ("import sys\nassert 'keras' not in sys.modules" + PARENT, False, "not"),
        (PARENT, True, "not"),
    ],
)
def test_what_is_about_the_start_of_a_process_is_no_fork(
    run_process, source, fresh, said
):
    done = run_process(source, fresh=fresh, **ON_JAX)
    assert done.stdout == f"{said} {os.getpid()}\n"


ENDS = {
    "an error": "# keras\ndef f(x):\n    return 1 / x\n\nf(0)",
    "a process that stays": "import subprocess\nsubprocess.Popen(['sleep', '4321'])",
    "a status": "import sys; print('so far'); sys.exit(3)",
    "abort": "import os; os.write(2, b'F0000 logged\\n'); os.abort()",
    "a kill": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "atexit": "import atexit; atexit.register(print, 'at the end'); print(__name__)",
    "a loop": "import subprocess, time\nsubprocess.Popen(['sleep', '4321'])\n"
    "time.sleep(60)",
}


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(end, id=name, marks=[pytest.mark.slow] * (name != "an error"))
        for name, end in ENDS.items()
    ],
)
def test_a_fork_ends_as_a_fresh_process_does(run_process, end):
    seconds = 3 if "4321" in end else 60
    source = end if "keras" in end else f"import keras\n{end}"
    both = [run_process(source, seconds, fresh, **ON_JAX) for fresh in (False, True)]
    fork, fresh = ((x.returncode, x.stdout, x.stderr, x.log) for x in both)
    assert fork == fresh
    late = "TimeoutError: stopped after 3 s" in fork[2]
    assert late == (seconds == 3) and (fork[0] or not late)
    left = [x for x in psutil.process_iter(["cmdline"]) if x.info["cmdline"]]
    wait_until(
        lambda: not any("4321" in x.info["cmdline"] for x in left if x.is_running())
    )


@pytest.mark.slow
def test_without_its_parent_a_process_imports_itself(shell, run_process):
    run_process("import keras", **ON_JAX)
    for _, parent in shell.user_ns["warm_parents"].values():
        parent.kill()
        parent.wait()
    said = run_process("import keras\nprint('here')", **ON_JAX)
    assert (said.returncode, said.stdout, said.stderr) == (0, "here\n", "")


@pytest.mark.parametrize(
    "name", ["libcuda.so.1", pytest.param("another.so", marks=pytest.mark.slow)]
)
def test_where_the_driver_of_a_gpu_is_loaded_nothing_is_forked(
    run_process, tmp_path, name
):
    """CUDA survives no fork; Keras on PyTorch looks for a card when it is imported."""
    path = tmp_path / name
    path.write_bytes(bytes(4096))
    load = f"import mmap\nf = open({str(path)!r})\nm = mmap.mmap(f.fileno(), 0, prot=1)"
    (tmp_path / "sitecustomize.py").write_text(load)
    said = run_process(PARENT, PYTHONPATH=tmp_path, **ON_JAX).stdout
    assert (said == f"not {os.getpid()}\n") == name.startswith("libcuda")


@pytest.mark.slow
@pytest.mark.parametrize("chapter", chapters.book(), ids=lambda x: x.path.stem)
def test_a_chapters_cells_say_the_same_as_forks_and_as_fresh_processes(
    run_process, chapter
):
    """Each alone: one that wants what an earlier cell left fails alike in both."""
    sanitized = re.findall(r"(?m)^regex: (.+)\nreplace: (.+)$", SANITIZE.read_text())
    sanitized += [
        (r"[IWEF]\d{4} [\d:.]+ +\d+ ", ""),  # a log's time and process
        (r' +File "<string>", line .*\n', ""),  # the snippet's own lines
    ]
    for cell in chapter.cells:
        magic = re.search(r"(?m)^%%process(.*)\n", cell.source)
        if cell.cell_type != "code" or not magic or "{" in magic[1]:
            continue
        words = [word for word in shlex.split(magic[1]) if word != "fresh"]
        settings = {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "2"}
        settings |= dict(word.split("=", 1) for word in words)
        settings.pop("timeout", None)
        told = []
        for fresh in (False, True):
            done = run_process(cell.source[magic.end() :], 120, fresh, **settings)
            text = f"{done.returncode}\n{done.stdout}\n{done.stderr}\n{done.log}"
            for pattern, put in sanitized:
                text = re.sub(pattern, put, text)
            told.append(text)
        if "nbval-ignore-output" not in chapters.tags(cell):
            assert told[0] == told[1], cell.source


# --- %%raises -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("%%raises ValueError\nint('1')", AssertionError),
        ("%%raises TypeError\nint('a')", ValueError),
        ("%%raises ValueError: another message\nint('a')", ValueError),
    ],
)
def test_no_error_or_another_one_stops_the_notebook(shell, cell, kind):
    assert type(run(shell, cell)[1]) is kind


# --- StandingProcess ---------------------------------------------------------------


@pytest.fixture
def standing(shell):
    """A standing process with a name."""
    process = shell.user_ns["StandingProcess"](
        name="jax", start="begun = 1\n", COLOUR="blue"
    )
    yield process, shell.user_ns["ProcessError"]
    process.process.kill()
    process.process.communicate()


def test_a_standing_process_keeps_its_variables(standing):
    process, _ = standing
    assert process.run("x = begun + 1\nprint('x is', x)") == (None, "x is 2\n")
    assert process.run("import os\nanswer = [x, os.environ['COLOUR']]") == (
        [2, "blue"],
        "",
    )
    assert process.run("y = 3") == (None, "")  # the answer of before is gone


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1 / 0", "jax: ZeroDivisionError: division by zero"),
        ("answer = {1}", "jax: TypeError: Object of type set is not JSON serializable"),
        ("import os\nos._exit(3)", "jax: died, status 3"),
    ],
)
def test_an_error_in_a_standing_process_is_raised_here(standing, source, message):
    process, error = standing
    with pytest.raises(error) as raised:
        process.run(source)
    assert str(raised.value) == raised.value.report == message
