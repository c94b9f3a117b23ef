"""What the helpers of the chapters' set-up cells do."""

import importlib.metadata
import operator
import re
import subprocess
import sys
import types

import pytest
from shells import snippet

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


def test_an_optional_package_that_is_missing_is_told_and_no_error(require, capsys):
    namespace = {"require": require}
    exec(snippet("optional"), namespace)
    assert namespace["have"]("nosuchpackage>=1") is False
    assert "nosuchpackage>=1 (here: missing)" in capsys.readouterr().out


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
    assert "".join(order) == "ab" * 2 + "abb" + "bba" + "abb"
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
