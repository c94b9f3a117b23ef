"""Run all checks, the claims first, with one summary at the end.

    python -m tools.checks [--part NAME] [--tests PATH ...] [-- OPTION-OF-PYTEST ...]

The parts: `claims` (the notebooks), `lint`, `site` (a clean build) and `tests`. One
that is red keeps no other from running. Where `--tests` names some paths only, the
parts run that these need. What is known lies in `_build/reports`: `claims.xml` and
`tests.xml` (JUnit), `claims.json`, which `tools/drift/claims.py` describes, and
`parts.json`, which is written whenever a part begins and ends.

Exit status: 0 all is well, 1 a part is red, 130 interrupted.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import signal
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from tools import machine
from tools.checks import processes
from tools.model import files
from tools.model.chapters import ROOT
from tools.model.errors import UserError, command

REPORTS = Path("_build", "reports")
NAMES = ("claims", "lint", "site", "tests")
TESTED = ("claims", "tests")  # by pytest
WHOLE = ("notebooks", "tests")
CODE = (
    *("grading", "tools", "tests", "snippets"),
    *("book/_ext", "conftest.py"),
)
SITE_TESTS = ("calculators", "quick_pages", "run_menu", "site", "what_changed")
NEEDS_SITE = tuple(Path("tests", f"test_{name}.py") for name in SITE_TESTS)
IN_MEMORY = Path("/dev/shm")  # room for pytest's reports where a disk may be full
NOTHING_RAN = 5  # the exit status of pytest
MOST = 2  # failed tests that the summary names

PASSED = "passed"
FAILED = "failed"
UNABLE = "could not run"
INTERRUPTED = "interrupted"
LEFT_OUT = "left out"  # the options of pytest choose no test of this part
GREEN = (PASSED, LEFT_OUT)


@dataclasses.dataclass(frozen=True)
class Step:
    """One program of a part. If it is pytest, it writes a report."""

    name: str
    words: tuple[str, ...]  # the program and its arguments
    report: Path | None = None
    chosen: str = ""  # the options of pytest, if there are any

    def run(self, root: Path) -> tuple[str, str]:
        """Run it; the outcome, and what is to be said of it."""
        try:
            status = processes.run(self.words, root)
        except OSError as error:
            return UNABLE, f"{self.name}: {error.strerror}"
        return self.judge(status)

    def judge(self, status: int) -> tuple[str, str]:
        """The outcome that an exit status means, and what is to be said of it."""
        if status == 0:
            return PASSED, ""
        if status < 0:
            return FAILED, f"{self.name} was ended by {signal.Signals(-status).name}"
        said = f"{self.name} ended with status {status}"
        if self.report is None:
            return FAILED, said
        if failures := failed_tests(self.report):
            return FAILED, failures
        if status == NOTHING_RAN and self.chosen:
            return LEFT_OUT, f"no test in it is chosen by {self.chosen}"
        if status == NOTHING_RAN:
            return UNABLE, "no test was found"
        return (FAILED if status == 1 else UNABLE), said


def failed_tests(report: Path) -> str:
    """How many tests of a JUnit file failed and which, or nothing if none did."""
    try:
        cases = list(ElementTree.parse(report).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return ""
    names = [
        "::".join(filter(None, (case.get("classname"), case.get("name"))))
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    if not names:
        return ""
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return f"{len(names)} of {len(cases)} failed: {', '.join(names[:MOST])}{more}"


@dataclasses.dataclass(frozen=True)
class Part:
    """Steps that all run, one after the other."""

    name: str
    steps: Sequence[Step]


@dataclasses.dataclass
class Result:
    """What is known of a part. Until it ends, it counts as interrupted."""

    outcome: str = INTERRUPTED
    seconds: float = 0
    said: str = ""


class Reports:
    """The files that say how the checks went.

    A file that can't be written is noted in `fault`, and stops nothing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fault = ""

    def clear(self) -> None:
        """Remove what an earlier run left: nobody shall take it for this one's."""
        reports = (f"{part}.xml" for part in TESTED)
        for name in (*reports, "parts.json", "claims.json"):
            try:
                (self.folder / name).unlink(missing_ok=True)
            except OSError as error:
                self._note(name, error)

    def write(self, name: str, text: str) -> None:
        """Write a file, whole or not at all."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            files.write_text(self.folder / name, text)
        except OSError as error:
            self._note(name, error)

    def keep(self, steps: Sequence[Step]) -> None:
        """Copy what pytest has reported."""
        for report in filter(None, (step.report for step in steps)):
            for path in (report, report.with_suffix(".json")):
                if path.exists():
                    self.write(path.name, path.read_text(encoding="utf-8"))

    def _note(self, name: str, error: OSError) -> None:
        self.fault = self.fault or (
            f"{self.folder / name} can't be written ({error.strerror}). "
            "Fix: make room on the disk and see whose the folder is, then run it again"
        )


def run_part(part: Part, result: Result, root: Path) -> None:
    """Run all steps of a part, each whatever became of those before it."""
    print(f"\n== {part.name} ==", flush=True)
    began = time.monotonic()
    found = []
    try:
        for step in part.steps:
            found.append(step.run(root))
        outcomes = {outcome for outcome, _ in found}
        order = (FAILED, UNABLE, LEFT_OUT, PASSED)
        result.outcome = next(x for x in order if x in outcomes)
    finally:
        result.seconds = round(time.monotonic() - began, 1)
        result.said = "; ".join(said for _, said in found if said)


def run_parts(
    parts: Sequence[Part], reports: Reports | None = None, root: Path = ROOT
) -> int:
    """Run parts and print the summary.

    Args:
        parts: what to run, in this order.
        reports: where it is written what became of them.
        root: the folder in which they run.

    Returns:
        The exit status.
    """
    results: dict[str, Result] = {}

    def write() -> None:
        if reports:
            known = {name: dataclasses.asdict(one) for name, one in results.items()}
            reports.write("parts.json", json.dumps(known, indent=1) + "\n")

    interrupted = False
    try:
        for part in parts:
            result = results[part.name] = Result()
            write()
            try:
                run_part(part, result, root)
            finally:
                if reports:
                    reports.keep(part.steps)
            write()
    except KeyboardInterrupt:
        interrupted = True
        for part in parts:
            later = Result(UNABLE, said="the run was interrupted before it began")
            results.setdefault(part.name, later)
        write()
    print(summary(results), flush=True)
    if reports and reports.fault:
        print(f"error: {reports.fault}", file=sys.stderr)
    if interrupted:
        return 130
    return 0 if is_green(results) and not (reports and reports.fault) else 1


def summary(results: dict[str, Result]) -> str:
    """One line a part."""
    lines = ["", "== all checks =="]
    for name, one in results.items():
        line = f"{name:<8}{one.outcome:<14}{one.seconds:>6.0f} s  {one.said}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def is_green(results: dict[str, Result]) -> bool:
    """Whether no part is red, and options of pytest have not left out all tests."""
    tested = [results[name].outcome for name in TESTED if name in results]
    return all(one.outcome in GREEN for one in results.values()) and (
        not tested or PASSED in tested
    )


def module(*words: str, name: str = "") -> Step:
    """A step that is a module of Python."""
    return Step(name or words[0], (sys.executable, "-m", *words))


def pytest_step(
    part: str, paths: Sequence[str], options: Sequence[str], folder: Path
) -> Step:
    """Run pytest over some paths, with as many workers as this machine can feed."""
    report = folder / f"{part}.xml"
    words = ("pytest", "-n", str(machine.workers()), "--dist", "loadscope")
    step = module(*words, f"--junitxml={report}", *paths, *options)
    return dataclasses.replace(step, report=report, chosen=" ".join(options))


def beside(name: str) -> str:
    """The path of a program that is installed beside this Python."""
    return str(Path(sysconfig.get_path("scripts"), name))


def workflows(root: Path) -> list[Step]:
    """Steps that look at the GitHub workflows, offline.

    actionlint finds mistakes in them and, with shellcheck, in scripts. zizmor finds
    what makes them unsafe: actions that are not pinned, input that ends up in a script,
    permissions and credentials that nothing needs.
    """
    shellcheck = beside("shellcheck")
    files = sorted(map(str, root.glob(".github/workflows/*.y*ml")))
    settings = map(str, root.glob(".github/dependabot.y*ml"))
    actionlint = (beside("actionlint"), "-shellcheck", shellcheck, "-pyflakes", "")
    zizmor = (beside("zizmor"), "--offline", "--strict-collection", "--no-progress")
    scripts = [".ci/run", "tools/setup/bootstrap.sh"]
    scripts += map(str, root.glob(".github/scripts/*.sh"))
    return [
        Step("actionlint", (*actionlint, "-no-color", *files)),
        Step("zizmor", (*zizmor, "--quiet", *files, *settings)),
        Step("shellcheck", (shellcheck, *scripts)),
    ]


def lint(root: Path = ROOT) -> Part:
    """What `make lint` runs."""
    steps = (
        module("ruff", "check", "-q", *CODE, "notebooks", name="ruff check"),
        module("ruff", "format", "-q", "--check", *CODE, name="ruff format"),
        module("codespell_lib", name="codespell"),
        module("tools.notebooks.form"),
        module("tools.notebooks.sync", "--check"),
        *workflows(root),
    )
    return Part("lint", steps)


def is_notebook(path: str) -> bool:
    """Whether pytest finds notebooks in a path such as `notebooks/a.ipynb::Cell 3`."""
    return Path(path).parts[:1] == ("notebooks",) or ".ipynb" in path


def needs_site(path: str) -> bool:
    """Whether a test in this path looks at the built site."""
    file = Path(path.partition("::")[0])
    return any(file == test or file in test.parents for test in NEEDS_SITE)


def relative(path: str, root: Path) -> str:
    """A path from the root of the repository.

    Raises:
        UserError: nothing is there.
    """
    file, separator, test = path.partition("::")
    if not (root / file).exists():
        raise UserError(f"there is no {file} to test. Fix: TESTS=tests/test_form.py")
    if Path(file).is_absolute() and Path(file).is_relative_to(root):
        file = str(Path(file).relative_to(root))
    return file + separator + test


def choose(
    tests: Sequence[str], options: Sequence[str], folder: Path, root: Path = ROOT
) -> list[Part]:
    """The parts that some paths need; all of them for the whole.

    Args:
        tests: what pytest is to run; nothing means everything.
        options: of pytest.
        folder: where pytest writes its reports.
        root: of the repository.
    """
    paths = [relative(path, root) for path in tests or WHOLE]
    whole = {Path(path) for path in paths} >= {Path(path) for path in WHOLE}
    notebooks = [path for path in paths if is_notebook(path)]
    others = [path for path in paths if not is_notebook(path)]
    parts = []
    if notebooks:
        step = pytest_step("claims", notebooks, options, folder)
        parts.append(Part("claims", (step,)))
    if whole:
        parts.append(lint(root))
    if any(map(needs_site, others)):
        parts.append(Part("site", (module("tools.site.build", "--anew"),)))
    if others:
        steps = (
            module("tools.setup.programs"),
            module("tools.setup.chromium"),
            module("grading", "sandbox", "--get", name="grading sandbox"),
            pytest_step("tests", others, options, folder),
        )
        parts.append(Part("tests", steps))
    return parts


def parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options of this program, and after `--` those of pytest."""
    own, options = list(arguments), []
    if "--" in own:
        at = own.index("--")
        own, options = own[:at], own[at + 1 :]
    parser = argparse.ArgumentParser(
        prog="python -m tools.checks", description="Run all checks, the claims first."
    )
    parser.add_argument("--tests", nargs="*", default=[], metavar="PATH")
    parser.add_argument("--part", choices=NAMES, help="only this one, with no report")
    return parser.parse_args(own), options


@command
def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Run the parts that the command line asks for."""
    given, options = parse(sys.argv[1:] if arguments is None else arguments)
    processes.watch()
    place = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="checks-", dir=place) as folder:
        parts = choose(given.tests, options, Path(folder), root)
        if given.part:
            return run_parts([x for x in parts if x.name == given.part], root=root)
        reports = Reports(root / REPORTS)
        reports.clear()
        return run_parts(parts, reports, root)
