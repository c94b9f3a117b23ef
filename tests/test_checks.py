"""`make test`: each part runs and is reported whatever became of the others."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time

import notebook_factory as factory
import psutil
import pytest

from tools import machine
from tools.checks import parts as checks
from tools.checks import processes
from tools.model import files
from tools.model.chapters import ROOT
from tools.site import build

GIB = 2**30
ONE_TEST = "def test(): pass"


def step(code, name="a step", **report):
    """A step that is a few lines of Python."""
    return checks.Step(name, (sys.executable, "-c", code), **report)


def part(name, *codes):
    return checks.Part(name, [step(code) for code in codes])


@pytest.fixture
def no_orphans(monkeypatch):
    """Steps run without `processes.run`, which would wait for pytest's own children."""

    def run(words, folder):
        return subprocess.run(words, cwd=folder, check=False).returncode

    monkeypatch.setattr(processes, "run", run)


@pytest.fixture
def run(no_orphans, tmp_path, capfd):
    """Runs parts; what it returns has status, results, and what was printed."""

    def call(*parts):
        reports = checks.Reports(tmp_path / "reports")
        reports.clear()
        status = checks.run_parts(parts, reports, tmp_path)
        out, err = capfd.readouterr()
        text = (tmp_path / "reports/parts.json").read_text()
        return status, json.loads(text), out, err

    return call


# Parts


def test_a_red_part_keeps_no_other_from_running(run, tmp_path):
    status, results, out, _ = run(
        part("claims", "raise SystemExit(3)"),
        checks.Part("lint", [checks.Step("nothing", ("/nowhere/program",))]),
        part("tests", "open('ran', 'w')"),
    )
    assert status == 1
    assert (tmp_path / "ran").exists()
    assert {name: one["outcome"] for name, one in results.items()} == {
        "claims": "failed",
        "lint": "could not run",
        "tests": "passed",
    }
    assert results["claims"]["said"] == "a step ended with status 3"
    assert results["lint"]["said"] == "nothing: No such file or directory"
    summary = out.partition("== all checks ==\n")[2].splitlines()
    assert [line.split()[0] for line in summary] == ["claims", "lint", "tests"]
    assert re.fullmatch(
        r"claims  failed +\d+ s  a step ended with status 3", summary[0]
    )
    assert re.fullmatch(r"tests   passed +\d+ s", summary[2])


def test_all_steps_of_a_part_run(run, tmp_path):
    status, results, *_ = run(
        part("lint", "raise SystemExit(1)", "open('ran', 'w')", "raise SystemExit(2)")
    )
    assert status == 1
    assert (tmp_path / "ran").exists()
    assert results["lint"]["said"] == (
        "a step ended with status 1; a step ended with status 2"
    )


def test_all_is_well_only_if_every_part_is(run):
    status, results, *_ = run(part("claims", "pass"), part("site", "pass"))
    assert status == 0
    assert results["claims"] == {
        "outcome": "passed",
        "seconds": results["claims"]["seconds"],
        "said": "",
    }


def test_a_program_that_is_killed_is_named_with_its_signal(run):
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    status, results, *_ = run(part("site", code))
    assert status == 1
    assert results["site"]["said"] == "a step was ended by SIGKILL"


def test_what_is_known_is_written_while_a_part_runs(run, tmp_path):
    copy = "import shutil; shutil.copy('reports/parts.json', 'seen.json')"
    run(part("claims", "pass"), part("tests", copy))
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert seen["claims"]["outcome"] == "passed"
    assert seen["tests"]["outcome"] == "interrupted"


# What pytest says


@pytest.fixture
def with_pytest(run, tmp_path, monkeypatch):
    """Runs pytest over a text as the part `tests`."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # some are slow to load

    def call(text, *options, beside=()):
        (tmp_path / "test_some.py").write_text(text)
        words = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
        report = tmp_path / "tests.xml"
        words += (f"--junitxml={report}", "test_some.py", *options)
        pytests = checks.Step("pytest", words, report, " ".join(options))
        return run(*beside, checks.Part("tests", [pytests]))

    return call


def test_failed_tests_are_counted_and_named(with_pytest, tmp_path):
    lines = [f"def test_{n}(): assert {n} > 3" for n in range(6)]
    status, results, *_ = with_pytest("\n".join(lines))
    assert status == 1
    assert results["tests"]["outcome"] == "failed"
    assert results["tests"]["said"] == (
        "4 of 6 failed: test_some::test_0, test_some::test_1 and 2 more"
    )
    assert (tmp_path / "reports/tests.xml").exists()


@pytest.mark.parametrize(
    ("text", "options", "outcome", "said"),
    [
        ("", (), "could not run", "no test was found"),
        (
            "def test(): pass",
            ("--what",),
            "could not run",
            "pytest ended with status 4",
        ),
        ("import nothing", (), "failed", "1 of 1 failed: test_some"),
    ],
    ids=["no test", "a wrong option", "no import"],
)
def test_what_is_no_test_run_is_red(with_pytest, text, options, outcome, said):
    status, results, *_ = with_pytest(text, *options)
    assert status == 1
    assert (results["tests"]["outcome"], results["tests"]["said"]) == (outcome, said)


@pytest.mark.parametrize("others", [0, 1], ids=["alone", "beside another"])
def test_a_choice_of_tests_may_leave_out_a_part_but_not_all(with_pytest, others):
    beside = [part("lint", "pass"), part("claims", "pass")][: 1 + others]
    status, results, *_ = with_pytest(ONE_TEST, "-knone", beside=beside)
    assert results["tests"]["outcome"] == "left out"
    assert results["tests"]["said"] == "no test in it is chosen by -knone"
    assert status == 1 - others


# Reports


def test_a_full_disk_is_one_line_and_the_other_results_stay(run, monkeypatch, tmp_path):
    write = files.write_text

    def full(path, text):
        if path.name == "tests.xml":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, text)

    monkeypatch.setattr(files, "write_text", full)
    for name in ("claims", "tests"):
        (tmp_path / f"{name}.xml").write_text("<testsuites/>")
    parts = [
        checks.Part(name, [step("pass", report=tmp_path / f"{name}.xml")])
        for name in checks.TESTED
    ]
    status, results, out, err = run(*parts, part("site", "pass"))
    assert status == 1
    path = tmp_path / "reports/tests.xml"
    assert err == (
        f"error: {path} can't be written (No space left on device). Fix: make room on "
        "the disk and see whose the folder is, then run it again\n"
    )
    assert {one["outcome"] for one in results.values()} == {"passed"}
    assert out.count("passed") == 3
    assert (tmp_path / "reports/claims.xml").read_text() == "<testsuites/>"


def test_a_disk_that_is_full_from_the_start_is_one_line(
    no_orphans, monkeypatch, tmp_path, capfd
):
    def full(path, text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "write_text", full)
    reports = checks.Reports(tmp_path / "reports")
    assert checks.run_parts([part("claims", "pass")], reports, tmp_path) == 1
    out, err = capfd.readouterr()
    assert "claims  passed" in out
    assert err.count("\n") == 1 and "No space left on device" in err


def test_reports_of_an_earlier_run_are_removed(tmp_path):
    for name in ("claims.xml", "tests.xml", "parts.json", "of another"):
        (tmp_path / name).write_text("old")
    checks.Reports(tmp_path).clear()
    assert [path.name for path in tmp_path.iterdir()] == ["of another"]


def test_a_clean_build_keeps_the_reports(tmp_path):
    for name in ("html/a.html", "reports/claims.xml", "install.log"):
        path = tmp_path / "_build" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    build.clean(tmp_path)
    left = [path.name for path in (tmp_path / "_build").rglob("*")]
    assert sorted(left) == ["claims.xml", "reports"]


# Interrupted

STARTED = "started"
# A part that starts a process which leaves it, as a notebook's kernel does, and a child
# of which its parent is gone.
SPREADING = f"""
import os, pathlib, subprocess, sys, time
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
leave = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True)"
kernel = subprocess.Popen(sleep, start_new_session=True)
subprocess.run([sys.executable, "-c", leave, *sleep])
pathlib.Path({STARTED!r}).touch()
"""
PROGRAM = """
import sys
from pathlib import Path
from tools.checks import parts as checks, processes

def part(name, code):
    return checks.Part(name, [checks.Step(name, (sys.executable, "-c", code))])

processes.watch()
processes.GRACE = 3
parts = [part("claims", "pass"), part("tests", sys.argv[1]), part("site", "pass")]
sys.exit(checks.run_parts(parts, checks.Reports(Path("reports")), Path.cwd()))
"""
ENDS = "time.sleep(600)"
STUBBORN = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
time.sleep(600)
"""


def interrupted(folder, code, *numbers):
    """Start three parts and send signals in the second; the run, and its processes."""
    run = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, SPREADING + code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until((folder / STARTED).exists)
    time.sleep(0.3)
    started = psutil.Process(run.pid).children(recursive=True)
    for number in numbers:
        run.send_signal(number)
        time.sleep(0.3)
    out, err = run.communicate(timeout=60)
    return run.returncode, out, err, started


def wait_until(true, seconds=60):
    latest = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < latest
        time.sleep(0.05)


ON_LINUX = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux lets a process adopt orphans"
)


@ON_LINUX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_says_what_is_known_and_leaves_no_process(tmp_path, number):
    status, out, err, started = interrupted(tmp_path, ENDS, number)
    assert status == 130
    assert len(started) == 3  # the part, what is like a kernel, and the orphan
    assert not [process for process in started if process.is_running()]
    results = json.loads((tmp_path / "reports/parts.json").read_text())
    assert {name: one["outcome"] for name, one in results.items()} == {
        "claims": "passed",
        "tests": "interrupted",
        "site": "could not run",
    }
    assert results["site"]["said"] == "the run was interrupted before it began"
    assert re.search(r"(?m)^tests   interrupted +\d+ s$", out)
    assert "stopping; Ctrl-C again stops at once" in err


@ON_LINUX
@pytest.mark.parametrize("times", [1, 2], ids=["after a while", "at once"])
def test_a_part_that_does_not_listen_is_killed(tmp_path, times):
    began = time.monotonic()
    status, *_, started = interrupted(tmp_path, STUBBORN, *[signal.SIGINT] * times)
    assert status == 130
    assert time.monotonic() - began < 30
    assert not [process for process in started if process.is_running()]


# Workers


@pytest.mark.parametrize(
    ("cores", "gib", "count"),
    [(1, 64, 1), (2, 16, 2), (4, 15.5, 4), (4, 7, 2), (16, 30, 10), (2, 0.5, 1)],
)
def test_workers_are_as_many_as_cores_and_memory_allow(monkeypatch, cores, gib, count):
    monkeypatch.setattr(machine, "cores", lambda: cores)
    monkeypatch.setattr(machine, "memory", lambda: int(gib * GIB))
    assert machine.workers() == count


def test_cores_are_those_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5}, raising=False)
    assert machine.cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert machine.cores() == 1


@pytest.mark.parametrize(
    ("own", "file", "text", "limits"),
    [
        ("0::/a/b\n", "a/b/memory.max", f"{2 * GIB}\n", [2 * GIB]),
        ("0::/a/b\n", "memory.max", f"{5 * GIB}\n", [5 * GIB]),
        ("0::/a/b\n", "a/memory.max", "max\n", []),
        ("4:memory:/c\n", "memory/c/memory.limit_in_bytes", f"{GIB}\n", [GIB]),
        ("4:cpu,cpuacct:/c\n", "cpu/c/memory.max", f"{GIB}\n", []),
    ],
    ids=["own", "in a container", "none", "version 1", "another controller"],
)
def test_limits_of_control_groups_are_found(tmp_path, own, file, text, limits):
    (tmp_path / "own").write_text(own)
    path = tmp_path / "top" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert list(machine.limits(tmp_path / "own", tmp_path / "top")) == limits


def test_memory_is_what_is_free_within_the_limit(monkeypatch):
    monkeypatch.setattr(machine, "limits", lambda: [4 * GIB, 3 * GIB])
    assert machine.memory() <= 3 * GIB
    monkeypatch.setattr(machine, "limits", lambda: [])
    assert 0 < machine.memory() <= psutil.virtual_memory().total


# Which parts


@pytest.mark.parametrize(
    ("tests", "names"),
    [
        ([], "claims lint site tests"),
        (["notebooks", "tests"], "claims lint site tests"),
        (["notebooks"], "claims"),
        (["notebooks/05-tiny.ipynb::Cell 1"], "claims"),
        (["tests/test_form.py"], "tests"),
        (["notebooks/05-tiny.ipynb", "tests/test_form.py"], "claims tests"),
        (["tests/test_site.py::test_x"], "site tests"),
        (["tests/test_calculators.py"], "site tests"),
        (["tests"], "site tests"),
        (["./tests/"], "site tests"),
    ],
)
def test_only_the_parts_run_that_the_paths_need(house, tests, names):
    (house / "tests").mkdir()
    for name in ("test_form.py", "test_site.py", "test_calculators.py"):
        (house / "tests" / name).write_text("")
    parts = checks.choose(tests, ["-x"], house, house)
    assert [part.name for part in parts] == names.split()
    assert parts[0].name == "claims" or "claims" not in names
    for one in parts:
        if one.name not in checks.TESTED:
            continue
        words = one.steps[-1].words
        chosen = [x for x in tests or checks.WHOLE if checks.is_notebook(x)]
        if one.name == "tests":
            chosen = [x for x in tests or checks.WHOLE if not checks.is_notebook(x)]
        assert words[-len(chosen) - 1 :] == (*chosen, "-x")
        assert f"--junitxml={house / one.name}.xml" in words
        assert words[3:7] == ("-n", str(machine.workers()), "--dist", "loadscope")


def test_an_absolute_path_is_one_of_the_repository(house):
    path = house / "notebooks" / "05-tiny.ipynb"
    (one,) = checks.choose([str(path)], [], house, house)
    assert one.name == "claims"
    assert one.steps[0].words[-1] == "notebooks/05-tiny.ipynb"


def test_what_is_not_there_is_one_line(house, monkeypatch, capsys):
    monkeypatch.setattr(processes, "watch", lambda: None)
    assert checks.main(["--tests", "tests/none.py"], house) == 1
    assert capsys.readouterr().err == (
        "error: there is no tests/none.py to test. Fix: TESTS=tests/test_form.py\n"
    )


def test_what_stands_after_two_dashes_is_for_pytest():
    given, options = checks.parse(["--tests", "a", "b", "--", "-k", "x y", "--", "-x"])
    assert given.tests == ["a", "b"]
    assert options == ["-k", "x y", "--", "-x"]


def test_lint_alone_leaves_the_reports_as_they_are(house, monkeypatch):
    reports = house / checks.REPORTS
    reports.mkdir(parents=True)
    (reports / "parts.json").write_text("of a test run")
    ran = []
    monkeypatch.setattr(processes, "watch", lambda: None)
    monkeypatch.setattr(processes, "run", lambda words, folder: ran.append(words) or 0)
    (house / "tests").mkdir()
    assert checks.main(["--part", "lint"], house) == 0
    python, others = ran[:5], ran[5:]
    assert [words[2] for words in python] == [
        *("ruff", "ruff", "codespell_lib"),
        *("tools.notebooks.form", "tools.notebooks.sync"),
    ]
    assert [checks.Path(words[0]).name for words in others] == [
        *("actionlint", "zizmor", "shellcheck"),
    ]
    assert (reports / "parts.json").read_text() == "of a test run"


# A whole run, of notebooks


def test_claims_are_checked_and_reported(house):
    claim = "# Claim: one is two.\nassert 1 == 2"
    factory.save(house, factory.chapter(claim=claim))
    (house / "pytest.ini").write_text("[pytest]\naddopts = --nbval\n")
    before = set(checks.IN_MEMORY.glob("checks-*"))  # a run that this one is part of
    words = ["-m", "tools.checks", "--tests", "notebooks", "--", "--nbval-current-env"]
    done = subprocess.run(
        [sys.executable, *words], cwd=house, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    (line,) = done.stdout.partition("== all checks ==\n")[2].splitlines()
    assert re.fullmatch(
        r"claims  failed +\d+ s  1 of 6 failed: notebooks.05-tiny.ipynb::Cell 2", line
    )
    assert "Cell 2" in (house / checks.REPORTS / "claims.xml").read_text()
    assert set(checks.IN_MEMORY.glob("checks-*")) == before
