"""The commands of the class: make assignments, grade them, mark what a person reads."""

from __future__ import annotations

import argparse
import contextlib
import secrets
import shutil
import signal
import sys
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import nbformat

from grading import batch, probe, sandbox, submissions
from grading.assignment import Assignment
from grading.author import masters, questions
from grading.parallel import ENDS
from grading.reports import marking, marks, pages, roster
from grading.reports.scores import Standing
from grading.submissions import Person, Submission
from tools import machine
from tools.model import files
from tools.model.chapters import ROOT
from tools.model.errors import UserError, command

OUT = "grades"
SEED_FILE = "seed.txt"
ASSIGNMENTS = ROOT / "assignments"


def add_place(parser: argparse.ArgumentParser) -> None:
    """What `grade` and `mark` both take: the submissions, and where results lie."""
    parser.add_argument("submissions", type=files.home, metavar="SUBMISSIONS")
    parser.add_argument(
        "assignment", help="its number or name, or the path of your own master"
    )
    parser.add_argument(
        "--out",
        type=files.home,
        help=f"the folder of results (default: {OUT}/ASSIGNMENT/SUBMISSIONS' name)",
    )


def results(options: argparse.Namespace, assignment: str) -> Path:
    """The folder of results: of an assignment and of a folder of submissions.

    Raises:
        UserError: it would lie among the submissions.
    """
    inside = options.submissions.resolve()
    out = options.out or Path(OUT, assignment, submissions.folder_name(inside.name))
    if out.resolve() == inside or inside in out.resolve().parents:
        raise UserError(
            f"{out}: the results can't lie in the folder of the submissions. "
            "Fix: name another folder with --out."
        )
    return out


def add_grade(commands) -> None:
    """The command `grade`."""
    parser = commands.add_parser(
        "grade",
        help="grade a folder of notebooks as downloaded from a learning platform; a "
        "second run grades only what has changed, and takes up the marks",
    )
    add_place(parser)
    parser.add_argument(
        "--seed",
        help="a secret, any text, from which the hidden inputs are drawn (default: "
        f"drawn once, and kept in {SEED_FILE} beside the results)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        help="how many at a time (default: one a core, as far as memory goes)",
    )
    parser.add_argument(
        "--roster",
        type=files.home,
        help="a table with the columns number, name and mail: whose each file is; a "
        "copy is kept beside the results, for the runs that come",
    )
    parser.add_argument(
        "--no-extras",
        action="store_true",
        help="extras make up for nothing that was lost in the core",
    )
    parser.add_argument(
        "--reveal",
        action="store_true",
        help="after the deadline: feedback names each hidden check and its message",
    )
    usual = sandbox.Limits()
    for name, default, text in (
        ("--cell-seconds", usual.cell_seconds, "wall time of a cell"),
        (
            "--call-seconds",
            usual.call_seconds,
            "wall time of a call that a check makes",
        ),
        ("--total-seconds", usual.total_seconds, "wall time of a submission"),
        ("--memory-gib", usual.memory_bytes / 2**30, "memory of a submission"),
    ):
        text = f"{text} (default: {default:g})"
        parser.add_argument(name, type=float, default=default, help=text)
    parser.set_defaults(run=grade)


def grade(options: argparse.Namespace) -> int:
    """Grade a folder of submissions and write the reports."""
    if options.jobs is not None and options.jobs < 1:
        raise UserError(f"--jobs {options.jobs}: at least one is needed.")
    path = masters.find_master(options.assignment)
    out = results(options, path.stem)
    found, lines, people = settled(options, path.stem, out)
    for line in lines:
        progress(line)
    counting = [one for one in found if not one.instead]
    if not counting:
        raise UserError(f"{options.submissions}: no file counts. Fix: see above.")
    probe.check()
    assignment = masters.build(path)
    out.mkdir(parents=True, exist_ok=True)
    kept = out / roster.FILE
    if options.roster and not (kept.exists() and kept.samefile(options.roster)):
        shutil.copyfile(options.roster, kept)
    marks.read(out / marks.FILE, assignment)  # if broken, say so before
    limits = sandbox.Limits(
        cell_seconds=options.cell_seconds,
        call_seconds=options.call_seconds,
        total_seconds=options.total_seconds,
        memory_bytes=int(options.memory_gib * 2**30),
    )
    jobs = options.jobs or machine.workers(limits.memory_bytes)
    progress(f"{bounds()}; {jobs} at a time")
    work = (counting, assignment, out, limits, seed(out, options.seed), jobs)
    try:
        with ends_on_signals():
            all_graded = batch.grade_all(*work, progress)
    except KeyboardInterrupt:
        progress(
            "interrupted: what is graded is kept; the same command goes on from it"
        )
        return 130
    for name in batch.remove_stale(out, counting):
        progress(f"{name}: no longer there, its results are removed")
    chosen = pages.Options(people, not options.no_extras, options.reveal)
    report(out, *pages.write(out, found, all_graded, assignment, chosen), assignment)
    return 0


def settled(
    options: argparse.Namespace, assignment: str, out: Path
) -> tuple[list[Submission], list[str], list[Person] | None]:
    """What was handed in, lines for what is to be looked at, and the roster if any."""
    kept = out / roster.FILE  # of the run before
    table = options.roster or (kept if kept.exists() else None)
    people = roster.read(table) if table else None
    found = submissions.find(options.submissions, assignment)
    batch.check_same_class(out, found)
    return *roster.settle(found, people, assignment), people


def report(
    out: Path, standings: list[Standing], lines: list[str], assignment: Assignment
) -> None:
    """Say what is to be looked at, and where the reports lie."""
    for line in lines:
        progress(line)
    counted = [one for one in standings if one.graded and one.counts]
    mean = sum(one.score for one in counted) / len(counted)
    many = "submission" if len(counted) == 1 else "submissions"
    problems = sum(bool(one.problem) for one in counted)
    print(
        f"{len(counted)} {many}, {problems} with a problem, {mean:.1f} of "
        f"{assignment.points:g} points on average: {out / 'summary.html'}"
    )


def progress(line: str) -> None:
    """Say how far it is, beside what the command prints."""
    print(line, file=sys.stderr, flush=True)


def bounds() -> str:
    """What bounds the memory of a submission here, in words."""
    if sandbox.scope():
        return "bounds: the kernel bounds memory and processes of a submission"
    return (
        "bounds: a submission's memory is looked at ten times a second; there is no "
        "systemd here that has the kernel bound it"
    )


@contextlib.contextmanager
def ends_on_signals() -> Iterator[None]:
    """Take a request to end, such as SIGTERM, for a Ctrl-C."""

    def end(number, frame):
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in ENDS}
    before = {number: old for number, old in before.items() if old != signal.SIG_IGN}
    for number in before:  # what nohup has ignored stays so
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def seed(out: Path, given: str | None) -> str:
    """The secret of the hidden inputs: as given, as kept, or drawn and kept."""
    path = out / SEED_FILE
    if given:
        return given
    if not path.exists():
        files.write_text(path, secrets.token_hex(16) + "\n")
        path.chmod(0o600)
    try:
        kept = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        kept = ""
    if not kept:
        raise UserError(
            f"{path}: holds no secret. Fix: restore it, or remove it; then a new one "
            "is drawn, and all are graded again."
        )
    return kept


def add_mark(commands) -> None:
    """The command `mark`."""
    parser = commands.add_parser(
        "mark",
        help="open the page on which a person marks written answers; the marks are "
        f"written into {marks.FILE} beside the results, which `grade` takes up",
    )
    add_place(parser)
    parser.add_argument(
        "--no-browser", action="store_true", help="only print the page's address"
    )
    parser.add_argument(
        "--anonymous", action="store_true", help="name nobody on the page"
    )
    parser.set_defaults(run=mark, roster=None)


def mark(options: argparse.Namespace) -> int:
    """Serve the page to mark on until Ctrl-C."""
    path = masters.find_master(options.assignment)
    out = results(options, path.stem)
    found = [one for one in settled(options, path.stem, out)[0] if not one.instead]
    out.mkdir(parents=True, exist_ok=True)
    answers = marking.Marking(found, masters.build(path), out, options.anonymous)
    server, address = marking.server(answers)
    print(f"mark at {address} (Ctrl-C when you are done)", flush=True)
    if not options.no_browser:
        webbrowser.open(address)
    with ends_on_signals(), server, contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
    print(f"the marks are in {out / marks.FILE}; grade again to count them")
    return 0


def add_assign(commands) -> None:
    """The command `assign`."""
    parser = commands.add_parser(
        "assign", help="make the students' notebooks from the masters"
    )
    parser.add_argument("masters", nargs="*", help="which (default: all)")
    for name, default, text in (
        ("--to", ASSIGNMENTS, "where to (default: assignments)"),
        ("--solutions", None, "also write the solutions, into this folder"),
    ):
        parser.add_argument(name, type=files.home, default=default, help=text)
    parser.set_defaults(run=assign)


def assign(options: argparse.Namespace) -> int:
    """Make the students' notebooks."""
    named = [masters.find_master(name) for name in options.masters]
    for path in named or masters.master_paths():
        assignment = masters.build(path)
        file = f"{assignment.name}.ipynb"
        write(options.to / file, assignment.student)
        if options.solutions:
            write(options.solutions / file, assignment.solution)
    if not named and options.to == ASSIGNMENTS:
        questions.write_tables()
    return 0


def write(path: Path, notebook: nbformat.NotebookNode) -> None:
    """Write a notebook if it has changed, and its folder where there is none."""
    text = masters.dumps(notebook)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_text(path, text)
        print(f"{path}: made from its master.")


def commands() -> argparse.ArgumentParser:
    """What the command line may say."""
    parser = argparse.ArgumentParser(prog="python -m grading", description=main.__doc__)
    added = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (add_grade, add_mark, add_assign):
        add(added)
    return parser


@command
def main(argv: list[str] | None = None) -> int:
    """Make and grade the assignments of the book."""
    options = commands().parse_args(argv)
    return options.run(options)
