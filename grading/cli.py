"""The commands of the class: make assignments, grade them, mark what a person reads."""

from __future__ import annotations

import argparse
import contextlib
import re
import secrets
import signal
import sys
import webbrowser
from collections.abc import Iterator
from pathlib import Path

from grading import batch, probe, sandbox, similar, submissions
from grading.author import masters, questions
from grading.parallel import ENDS
from grading.reports import marking, marks, pages, roster
from grading.submissions import Submission
from tools import machine
from tools.model import files
from tools.model.chapters import ROOT
from tools.model.errors import UserError, command

OUT = "grades"
SEED_FILE = "seed.txt"
COLAB = re.compile(r"https://colab\.research\.google\.com/(?:drive|github)/[\w./%+@-]+")
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


def find(options: argparse.Namespace, assignment: str, out: Path) -> list[Submission]:
    """The submissions, called as an earlier run has called them."""
    return submissions.find(options.submissions, assignment, *batch.known(out))


def add_grade(commands) -> None:
    """The command `grade`."""
    parser = commands.add_parser(
        "grade",
        help="grade a folder of notebooks",
        description="Grade a folder of notebooks as downloaded from a learning "
        "platform. A second run grades only what changed, and takes up the marks.",
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
        help="a table with the columns number, name and mail: whose each file is",
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
        ("cell-seconds", usual.cell_seconds, "wall time of a cell"),
        ("call-seconds", usual.call_seconds, "wall time of a call that a check makes"),
        ("total-seconds", usual.total_seconds, "wall time of a submission"),
        ("memory-gib", usual.memory_bytes / 2**30, "memory of a submission"),
    ):
        parser.add_argument(
            f"--{name}",
            type=float,
            default=default,
            help=f"{text} (default: {default:g})",
        )
    parser.set_defaults(run=grade)


def grade(options: argparse.Namespace) -> int:
    """Grade a folder of submissions and write the reports."""
    if options.jobs is not None and options.jobs < 1:
        raise UserError(f"--jobs {options.jobs}: at least one is needed.")
    path = masters.find_master(options.assignment)
    out = results(options, path.stem)
    people = roster.read(options.roster) if options.roster else None
    found = find(options, path.stem, out)
    batch.check_same_class(out, found)
    probe.check()
    assignment = masters.build(path)
    out.mkdir(parents=True, exist_ok=True)
    marks.read(out / marks.FILE, assignment)  # if broken, say so before
    limits = sandbox.Limits(
        cell_seconds=options.cell_seconds,
        call_seconds=options.call_seconds,
        total_seconds=options.total_seconds,
        memory_bytes=int(options.memory_gib * 2**30),
    )
    progress(bounds())
    jobs = options.jobs or machine.workers(limits.memory_bytes)
    if not options.jobs and jobs < machine.cores():
        progress(f"{jobs} at a time: each may take {options.memory_gib:g} GiB.")
    work = (found, assignment, out, limits, seed(out, options.seed), jobs)
    try:
        with ends_on_signals():
            all_graded = batch.grade_all(*work, progress)
    except KeyboardInterrupt:
        progress(
            "interrupted: what is graded is kept; the same command goes on from it"
        )
        return 130
    for name in batch.remove_stale(out, found):
        progress(f"{name}: no longer there, its results are removed")
    chosen = pages.Options(people, not options.no_extras, options.reveal)
    standings, lines = pages.write(out, all_graded, assignment, chosen)
    for line in lines:
        progress(line)
    scores = [one.score for one in standings if one.graded and one.counts]
    many = "submission" if len(scores) == 1 else "submissions"
    print(
        f"{len(scores)} {many}, {sum(scores) / len(scores):.1f} of "
        f"{assignment.points:g} points on average: {out / 'summary.html'}"
    )
    return 0


def progress(line: str) -> None:
    """Say how far it is, beside what the command prints."""
    print(line, file=sys.stderr, flush=True)


def bounds() -> str:
    """What bounds the memory of a submission here, in a line."""
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
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # as nohup has it
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
        help="open the page on which a person marks written answers",
        description="Open the page on which a person marks written answers: question, "
        "rubric, model answer, and each student's answer with its pictures. The marks "
        f"are written into {marks.FILE} beside the results, which `grade` takes up.",
    )
    add_place(parser)
    parser.add_argument(
        "--no-browser", action="store_true", help="only print the page's address"
    )
    parser.set_defaults(run=mark)


def mark(options: argparse.Namespace) -> int:
    """Serve the page to mark on until Ctrl-C."""
    path = masters.find_master(options.assignment)
    out = results(options, path.stem)
    found = find(options, path.stem, out)
    batch.check_same_class(out, found)
    out.mkdir(parents=True, exist_ok=True)
    server, address = marking.server(marking.Marking(found, masters.build(path), out))
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
        "assign",
        help="make the students' notebooks from the masters",
        description="Make the students' notebooks from the masters.",
    )
    parser.add_argument(
        "--check", action="store_true", help="only report, change nothing"
    )
    parser.add_argument(
        "--solutions",
        type=files.home,
        help="also write the solutions, into this folder",
    )
    parser.add_argument("masters", nargs="*", help="which (default: all)")
    parser.add_argument(
        "--to",
        type=files.home,
        default=ASSIGNMENTS,
        help="where to (default: assignments)",
    )
    parser.add_argument(
        "--colab",
        metavar="ADDRESS",
        help="where Colab opens a notebook of your own, as your browser shows it, for "
        "its Open in Colab link (default: no link, but in the book's own)",
    )
    parser.set_defaults(run=assign)


def assign(options: argparse.Namespace) -> int:
    """Make the students' notebooks."""
    named = [masters.find_master(name) for name in options.masters]
    paths = named or masters.master_paths()
    links = {path: link(path, options.colab, len(paths)) for path in paths}
    changed = 0
    for path in paths:
        assignment = masters.build(path, opens=links[path])
        target = options.to / assignment.file_name
        text = masters.dumps(assignment.student)
        old = target.read_text(encoding="utf-8") if target.exists() else ""
        if options.solutions and not options.check:
            solution = masters.dumps(assignment.solution)
            write(options.solutions / assignment.file_name, solution)
        if text == old:
            continue
        changed += 1
        if options.check:
            print(f"{target.name}: not what its master makes. Fix: make assignments.")
        else:
            write(target, text)
            print(f"{target.name}: made from its master{said(path, links[path])}.")
    if not named and options.to == ASSIGNMENTS:
        changed += questions.write_tables(options.check)
    return int(options.check and changed > 0)


def write(path: Path, text: str) -> None:
    """Write a notebook, and its folder where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_text(path, text)


def link(path: Path, given: str | None, count: int) -> str:
    """Where Colab opens the notebook of a master.

    Args:
        path: the master.
        given: the address, if it was said.
        count: of the masters.

    Raises:
        UserError: Colab has no such address, or there are several masters.
    """
    if given is None:
        return masters.colab(path)
    address = re.split("[?#]", given)[0]
    if not COLAB.fullmatch(address) or count > 1:
        raise UserError(
            f"--colab {given!r}: not where Colab opens a notebook. Fix: open it there, "
            "copy the address that your browser shows, and name its master alone."
        )
    return address


def said(path: Path, link: str) -> str:
    """What became of the link, if a teacher has to know."""
    if link == masters.colab(path) and link:
        return ""
    if not link:
        return "; it has no Open in Colab link, unless --colab says where it will lie"
    return f"; Open in Colab leads to {link}"


def commands() -> argparse.ArgumentParser:
    """What the command line may say."""
    parser = argparse.ArgumentParser(prog="python -m grading", description=main.__doc__)
    added = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (add_grade, add_mark, add_assign, similar.add_code):
        add(added)
    return parser


@command
def main(argv: list[str] | None = None) -> int:
    """Make and grade the assignments of the book."""
    options = commands().parse_args(argv)
    return options.run(options)
