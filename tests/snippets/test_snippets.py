"""What the helpers of the chapters' set-up cells do."""

import contextlib
import importlib.metadata
import operator
import os
import re
import signal
import subprocess
import sys
import threading
import time
import types

import psutil
import pytest
from IPython.utils.capture import capture_output
from shells import fresh_shell, snippet


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
    """An IPython shell in this process, after a set-up cell with the magic."""
    folder = tmp_path_factory.mktemp("ipython")
    with fresh_shell(folder, "process_magic", "raises_magic") as shell:
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


@pytest.mark.parametrize("end", ["time.sleep(60)", "pass  # the child ends before"])
def test_a_time_out_kills_grandchildren(run_process, tmp_path, end):
    note = tmp_path / "pid"
    result = run_process(
        "import pathlib, subprocess, sys, time\n"
        "wait = 'import time; time.sleep(60)'\n"
        "other = subprocess.Popen([sys.executable, '-c', wait])\n"
        f"pathlib.Path({str(note)!r}).write_text(str(other.pid))\n{end}",
        timeout=2,
    )
    assert result.returncode and "TimeoutError: stopped after 2 s" in result.stderr
    wait_until(lambda: not is_running(int(note.read_text())))


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


# --- %%raises -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (
            "%%raises ValueError\ndef number(x):\n    return int(x)\n\nnumber('a')",
            "  File \"cell\", line 4, in <module>\n    number('a')\n"
            '  File "cell", line 2, in number\n    return int(x)\n'
            "ValueError: invalid literal for int() with base 10: 'a'\n",
        ),
        (
            "%%raises KeyError or RuntimeError: Two\n%%process\n"
            "raise RuntimeError('One. Two is here. Three')",
            '  File "cell", line 1, in <module>\n'
            "    raise RuntimeError('One. Two is here. Three')\n"
            "RuntimeError: Two is here\n",
        ),
    ],
)
def test_an_error_that_has_to_come_is_shown_and_stops_nothing(shell, cell, shown):
    shell.user_ns.pop("raised", None)
    printed, error = run(shell, cell)
    assert (error, printed.stderr) == (None, shown)
    assert isinstance(shell.user_ns["raised"], Exception)


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


# --- requirements ------------------------------------------------------------------


def install(folder, name, version):
    """Put a package with metadata into a folder, as pip does."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").touch()
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    (info / "top_level.txt").write_text(f"{name}\n")


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A folder of packages that Python sees, with somepackage 2.1rc1."""
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "somepackage", "2.1rc1")
    return tmp_path


@pytest.fixture
def require(monkeypatch):
    namespace = {}
    exec(compile(snippet("requirements"), "requirements.py", "exec"), namespace)
    monkeypatch.delitem(sys.modules, "google.colab", raising=False)
    return namespace["require"]


@pytest.fixture
def pip(packages, monkeypatch):
    """Colab, with a pip that notes its calls and installs version 3.0."""
    calls = []

    def run(command, **_):
        calls.append(command)
        name = re.match(r"\w+", command[-1])[0]
        if name != "nosuchpackage":
            install(packages, name, "3.0")
        return subprocess.CompletedProcess(command, int(name == "nosuchpackage"))

    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    monkeypatch.setattr(subprocess, "run", run)
    return calls


def test_satisfied_requirements_pass_without_a_word(require, packages, capsys):
    require("somepackage>=2.0", "somepackage", "packaging>=20,<1000")
    assert capsys.readouterr() == ("", "")


def test_all_that_is_wrong_stands_in_one_line_with_the_fix(require, packages):
    with pytest.raises(ImportError) as error:
        require("packaging>=20", "somepackage>=2.5", "nosuchpackage>=1")
    assert str(error.value) == (
        "this chapter needs somepackage>=2.5 (here: 2.1rc1) and "
        "nosuchpackage>=1 (here: missing). Fix: pip install 'packaging>=20' "
        "'somepackage>=2.5' 'nosuchpackage>=1', then restart the kernel."
    )


def test_colab_installs_only_what_is_missing(require, pip):
    require("somepackage>=2.0", "newpackage>=2.5", "packaging")
    command = [sys.executable, "-m", "pip", "install", "-q", "newpackage>=2.5"]
    assert pip == [command]
    assert importlib.metadata.version("newpackage") == "3.0"


def test_an_installation_that_fails_on_colab_is_an_error(require, pip):
    with pytest.raises(ImportError, match=r"nosuchpackage>=1 \(here: missing\)"):
        require("nosuchpackage>=1")


# --- optional ----------------------------------------------------------------------


@pytest.fixture
def have(require):
    """`have`, in a set-up cell after `require`."""
    namespace = {"require": require}
    exec(compile(snippet("optional"), "optional.py", "exec"), namespace)
    return namespace["have"]


def test_an_optional_package_that_is_missing_is_named_with_the_fix(have, capsys):
    assert have("nosuchpackage>=1") is False
    assert capsys.readouterr().out == (
        "Left out: the cells that need nosuchpackage>=1 (here: missing). "
        "Fix: pip install 'nosuchpackage>=1', then restart the kernel.\n"
    )


# --- waiting and timing --------------------------------------------------------------


@pytest.fixture
def stopwatch():
    """The names that a set-up cell has after the snippets that time."""
    namespace = {}
    for name in ("outcome", "waiting", "timing", "turns", "ratio"):
        exec(snippet(name), namespace)
    return namespace


class Promise:
    """An array in the way of JAX: it is ready once somebody has waited for it."""

    ready = False

    def block_until_ready(self):
        self.ready = True


def result_of(framework, **attributes):
    """A result whose class says that it comes from a framework."""
    return type("Result", (), {"__module__": f"{framework}.core", **attributes})()


@pytest.mark.parametrize(
    "nest", [list, tuple, lambda parts: {"a": parts[0], "b": parts}]
)
def test_every_part_of_a_nest_is_waited_for(stopwatch, nest):
    parts = [Promise(), Promise()]
    result = nest(parts)
    assert stopwatch["wait_for"](result) is result
    assert all(part.ready for part in parts)


@pytest.mark.parametrize(
    ("device", "synchronous", "waits"),
    [
        ("/job:localhost/replica:0/task:0/device:CPU:0", True, 0),
        ("/job:localhost/replica:0/task:0/device:CPU:0", False, 1),
        ("/job:localhost/replica:0/task:0/device:GPU:0", True, 1),
    ],
)
def test_tensorflow_is_waited_for_unless_it_waits_itself(
    stopwatch, monkeypatch, device, synchronous, waits
):
    waited = []
    experimental = types.SimpleNamespace(
        get_synchronous_execution=lambda: synchronous,
        sync_devices=lambda: waited.append(1),
    )
    part = types.SimpleNamespace(experimental=experimental)
    fake = types.SimpleNamespace(config=part, test=part)
    monkeypatch.setitem(sys.modules, "tensorflow", fake)
    stopwatch["wait_for"](result_of("tensorflow.python", device=device))
    assert len(waited) == waits


@pytest.mark.parametrize(("kind", "waits"), [("cpu", 0), ("cuda", 1), ("xpu", 1)])
def test_torch_is_waited_for_on_an_accelerator(stopwatch, monkeypatch, kind, waits):
    waited = []
    accelerator = types.SimpleNamespace(synchronize=waited.append)
    fake = types.SimpleNamespace(accelerator=accelerator)
    monkeypatch.setitem(sys.modules, "torch", fake)
    device = types.SimpleNamespace(type=kind)
    stopwatch["wait_for"](result_of("torch", device=device))
    assert waited == [device] * waits


@pytest.mark.parametrize("result", [None, "done", [], {}, [None], result_of("keras")])
def test_what_cannot_be_waited_for_is_an_error_with_the_fix(stopwatch, result):
    with pytest.raises(
        TypeError, match=r"cannot wait for .*: return what was computed"
    ):
        stopwatch["wait_for"](result)


@pytest.fixture
def clock(stopwatch, monkeypatch):
    """A clock that stands still, as a list of one number, and is read by measure."""
    now = [100.0]
    fake = types.SimpleNamespace(perf_counter=lambda: now[0])
    monkeypatch.setitem(stopwatch, "time", fake)
    return now


def test_the_time_ends_when_the_result_is_there(stopwatch, clock):
    class Slow(Promise):
        def block_until_ready(self):
            clock[0] += 0.5

    timing = stopwatch["measure"](Slow, repeats=2)
    assert timing[:5] == pytest.approx([0.5] * 5)


def lasting(clock, *seconds):
    """A function whose calls last so many seconds, one after the other."""
    left = iter(seconds)

    def function(argument=0.0):
        clock[0] += next(left)
        return argument

    return function


def test_the_first_call_is_apart_and_the_second_is_no_sample(stopwatch, clock):
    function = lasting(clock, 9.0, 5.0, 1.0, 4.0, 2.0, 3.0, 7.0)
    timing = stopwatch["measure"](function, 1, repeats=5, budget=99.0)
    assert timing[:5] == pytest.approx((9.0, 1.0, 1.5, 3.0, 5.5))
    assert timing.samples == pytest.approx([1.0, 4.0, 2.0, 3.0, 7.0])


def test_a_short_call_is_repeated_until_a_sample_is_long_enough(stopwatch, clock):
    calls = []

    def function():
        calls.append(1)
        clock[0] += 0.001
        return 0

    timing = stopwatch["measure"](function, repeats=3, at_least=0.0105)
    assert len(calls) == 2 + 3 * 11
    assert timing[:5] == pytest.approx([0.001] * 5)


def test_functions_take_turns(stopwatch, clock):
    order = []

    def rival(name, seconds):
        def function():
            order.append(name)
            clock[0] += seconds
            return 0

        return function

    rivals = rival("a", 0.02), rival("b", 0.01)
    one, other = stopwatch["measure_in_turns"](*rivals, repeats=3, at_least=0.015)
    assert "".join(order) == "ab" * 2 + "abb" * 3
    assert (one.median, other.median) == pytest.approx((0.02, 0.01))


@pytest.mark.parametrize(
    ("call", "budget", "calls", "said"),
    [
        (0.1, 2.0, 2 + 9, ""),
        (
            1.5,
            2.0,
            2 + 1,
            "Measured less: 1 of 9 samples, because a call takes 1.5 s\n",
        ),
        (1.5, 1.4, 1, "Measured less: 1 of 9 samples, because a call takes 1.5 s\n"),
    ],
)
def test_a_measurement_keeps_to_its_budget_and_says_so(
    stopwatch, clock, capsys, call, budget, calls, said
):
    function = lasting(clock, *[call] * calls)
    timing = stopwatch["measure"](function, budget=budget)
    assert timing[:5] == pytest.approx([call] * 5)
    assert len(timing.samples) == max(1, calls - 2)
    assert clock[0] == pytest.approx(100 + calls * call)
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    ("slow", "more", "less"),
    [
        ([4.0, 5.0, 6.0, 5.0], True, False),
        ([1.0, 1.1, 1.2, 1.1], False, True),
        ([1.0, 1.0, 3.0, 3.0], None, None),
        ([5.0, 5.0], None, None),
    ],
    ids=["clearly more", "clearly less", "noisy", "two samples"],
)
def test_a_ratio_decides_where_its_spread_leaves_no_doubt(
    stopwatch, capsys, slow, more, less
):
    ratio = stopwatch["Ratio"](slow, [1.0] * len(slow))
    for compare, expected in ((operator.gt, more), (operator.lt, less)):
        answer = compare(ratio, 2)
        said = capsys.readouterr().out
        assert answer is (expected is not False)
        told = said.startswith("Not checked: too slow or noisy here to tell from 2 (")
        assert told == (expected is None), said


def test_not_checked_says_why_in_one_line(stopwatch, capsys):
    stopwatch["not_checked"]("no XPU\n is here")
    assert capsys.readouterr().out == "Not checked: no XPU is here\n"


# --- standing_process ----------------------------------------------------------------


@pytest.fixture
def standing():
    """A standing process with a name; ProcessError is one of this test's."""
    namespace = {"ProcessError": type("ProcessError", (Exception,), {}), "LEAN": ""}
    code = compile(snippet("standing_process"), "standing_process.py", "exec")
    exec(code, namespace)
    process = namespace["StandingProcess"](
        name="jax", start="begun = 1\n", COLOUR="blue"
    )
    yield process, namespace["ProcessError"]
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
