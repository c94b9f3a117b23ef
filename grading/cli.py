"""The commands of the class: make assignments, grade them, pack them for Gradescope."""

from __future__ import annotations

import argparse
import contextlib
import secrets
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from grading import batch, cgroup, probe, sandbox, shards, similar, submissions
from grading.assignment import Assignment
from grading.author import bank, colab, masters
from grading.course import counting, decisions, export, lateness, roster, times, totals
from grading.parallel import ENDS
from grading.reports import by_hand, gradescope, manual, pages
from tools import machine
from tools.model import files
from tools.model.chapters import ROOT
from tools.model.errors import UserError, command

OUT = "grades"
SEED_FILE = "seed.txt"
ASSIGNMENTS = ROOT / "assignments"


def add_grade(commands) -> None:
    """The command `grade`."""
    parser = commands.add_parser(
        "grade",
        help="grade a folder of notebooks",
        description="Grade a folder of notebooks as downloaded from a learning "
        "platform. A second run grades only what changed, and takes up what was filled "
        "in by hand.",
    )
    parser.add_argument("submissions", type=files.home, metavar="SUBMISSIONS")
    parser.add_argument(
        "assignment", help="its number or name, or the path of your own master"
    )
    parser.add_argument(
        "--out",
        type=files.home,
        help=f"the folder of results (default: {OUT}/ASSIGNMENT)",
    )
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
        "--shard",
        type=shards.parse,
        metavar="K/N",
        help="grade a part of the folder, such as 2/8, and write no reports; after all "
        "parts, the same command without --shard writes them",
    )
    parser.add_argument(
        "--only",
        metavar="QUESTION",
        help="grade all afresh, and take over the points of this question alone, such "
        "as q3; the others keep theirs",
    )
    add_course(parser)
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


def add_course(parser: argparse.ArgumentParser) -> None:
    """The options around an assignment: who is who, and what counts."""
    parser.add_argument(
        "--roster",
        type=files.home,
        help="a table with the columns number, name and mail: whose each file is",
    )
    parser.add_argument(
        "--decisions",
        type=files.home,
        help="a table with the columns student, kind, value and reason (default: "
        f"{decisions.FILE} beside the results, if it is there)",
    )
    parser.add_argument(
        "--times",
        type=files.home,
        help="a table that says when each person handed in, such as Moodle's grading "
        "worksheet (default: the times of the files)",
    )
    parser.add_argument(
        "--deadline", help="when it is due, in local time, such as 2026-12-01T23:59"
    )
    parser.add_argument(
        "--late",
        metavar="10%%/day",
        help="what each day begun costs (default: nothing)",
    )
    parser.add_argument(
        "--late-days", type=int, help="after how many days nothing counts any more"
    )


def course(options: argparse.Namespace, out: Path) -> counting.Course:
    """What the options say of the course.

    Raises:
        UserError: one of them, or a table that they name, is broken.
    """
    people = roster.read(options.roster) if options.roster else None
    return counting.Course(
        people,
        decisions.read(
            options.decisions or out / decisions.FILE, bool(options.decisions)
        ),
        lateness.rule(options.deadline, options.late, options.late_days),
        times.read(options.times, people) if options.times else None,
        submissions.others(options.submissions),
    )


def grade(options: argparse.Namespace) -> int:
    """Grade a folder of submissions and write the reports."""
    if options.jobs is not None and options.jobs < 1:
        raise UserError(f"--jobs {options.jobs}: at least one is needed.")
    groups, bounds = kernel_bounds() if options.program else (None, "")
    path = masters.find_master(options.assignment)
    out = options.out or Path(OUT, path.stem)
    around = course(options, out)
    if options.shard:
        check_secret(out, options.seed)
    found = submissions.find(options.submissions, path.stem, *batch.known(out))
    probe.check()
    assignment = masters.build(path)
    if options.only:
        check_question(assignment, options.only)
    inside = options.submissions.resolve()
    if out.resolve() == inside or inside in out.resolve().parents:
        raise UserError(
            f"{out}: the results can't lie in the folder of the submissions. "
            "Fix: name another folder with --out."
        )
    out.mkdir(parents=True, exist_ok=True)
    if not options.shard:
        manual.read(out / "manual.csv", assignment)  # if broken, say so before
    limits = sandbox.Limits(
        cell_seconds=options.cell_seconds,
        call_seconds=options.call_seconds,
        total_seconds=options.total_seconds,
        memory_bytes=int(options.memory_gib * 2**30),
    )

    def progress(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    if bounds:
        progress(bounds)
    jobs = options.jobs or machine.workers(limits.memory_bytes)
    if not options.jobs and jobs < machine.cores():
        progress(f"{jobs} at a time: each may take {options.memory_gib:g} GiB.")
    part = options.shard.of(found) if options.shard else found
    work = (part, assignment, out, limits, seed(out, options.seed), jobs)
    try:
        with ends_on_signals():
            all_graded = batch.grade_all(*work, progress, groups, options.only or "")
    except KeyboardInterrupt:
        progress(
            "interrupted: what is graded is kept; the same command goes on from it"
        )
        return 130
    if options.shard:
        print(
            f"part {options.shard}: {len(part)} of {len(found)} submissions. When all "
            "parts are done, the same command without --shard writes the reports."
        )
        return 0
    for name in batch.remove_stale(out, found):
        progress(f"{name}: no longer there, its results are removed")
    written = pages.write(out, all_graded, assignment, around)
    scores = [one.score for one in written.standings if one.graded and one.counts]
    few = f", of which {len(scores)} count" if len(scores) < len(all_graded) else ""
    print(
        f"{len(all_graded)} submissions{few}, {sum(scores) / len(scores):.1f} of "
        f"{counting.maximum(assignment):g} points on average: {out / 'summary.html'}"
    )
    more = by_hand.write(out, all_graded, assignment, written.marks)
    for line in [*written.lines, *more]:
        progress(line)
    return 0


def kernel_bounds() -> tuple[cgroup.Groups | None, str]:
    """What bounds the submissions: control groups, if they can be had, and a line."""
    try:
        groups = cgroup.acquire(["-m", "grading", *sys.argv[1:]])
    except cgroup.Unavailable as reason:
        return None, (
            "bounds: the memory of a submission is looked at ten times a second, since "
            f"the kernel can't bound it here (control groups: {reason})"
        )
    named = {"memory": "memory", "pids": "processes", "cpu": "processor time"}
    kept = ", ".join(named[one] for one in groups.controllers)
    return groups, f"bounds: the kernel bounds {kept} of a submission (control groups)"


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


def check_secret(out: Path, given: str | None) -> None:
    """See that all parts of a folder draw the same hidden inputs.

    Raises:
        UserError: there is no secret yet, so each part would draw its own.
    """
    if not given and not (out / SEED_FILE).exists():
        raise UserError(
            f"--shard: there is no secret in {out / SEED_FILE}, so each part would "
            "draw its own hidden inputs. Fix: name the same secret for all parts with "
            "--seed, or write that file first."
        )


def check_question(assignment: Assignment, name: str) -> None:
    """See that a question can be graded again.

    Raises:
        UserError: it is none, or one that a person grades.
    """
    graded = [one.name for one in assignment.questions if not one.manual]
    if name not in graded:
        raise UserError(
            f"--only {name}: no question that is graded here ({', '.join(graded)}). "
            "Fix: name one; a mark by hand is mended in manual.csv."
        )


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
        metavar="PLACE",
        help="where a notebook of your own will lie, for its Open in Colab link: a "
        "folder in a public repository on GitHub, or a file in Google Drive (default: "
        "no link, but in the book's own)",
    )
    parser.set_defaults(run=assign)


def assign(options: argparse.Namespace) -> int:
    """Make the students' notebooks."""
    named = [masters.find_master(name) for name in options.masters]
    paths = named or masters.master_paths()
    links = {path: link(path, options.colab, len(paths)) for path in paths}
    stale = 0
    for path in paths:
        assignment = masters.build(path, opens=links[path])
        target = options.to / assignment.file_name
        text = masters.dumps(assignment.student)
        old = target.read_text(encoding="utf-8") if target.exists() else ""
        if options.solutions and not options.check:
            options.solutions.mkdir(parents=True, exist_ok=True)
            files.write_text(
                options.solutions / assignment.file_name,
                masters.dumps(assignment.solution),
            )
        if text == old:
            continue
        stale += 1
        if options.check:
            print(f"{target.name}: not what its master makes. Fix: make assignments.")
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            files.write_text(target, text)
            print(f"{target.name}: made from its master{said(path, links[path])}.")
    if not named and options.to == ASSIGNMENTS:
        stale += bank.write_tables(options.check)
    return int(options.check and stale > 0)


def link(path: Path, given: str | None, count: int) -> str:
    """Where Colab opens the notebook of a master.

    Args:
        path: the master.
        given: where its notebook will lie, if that was said.
        count: of the masters.

    Raises:
        UserError: there is no such place, or not one for each master.
    """
    if given is None:
        return colab.default(path)
    found, is_file = colab.find(given, f"{path.stem}.ipynb")
    if is_file and count > 1:
        raise UserError(
            f"--colab {given!r}: one notebook, and there are {count} masters. "
            "Fix: name one master, or a folder on GitHub for all of them."
        )
    return found


def said(path: Path, link: str) -> str:
    """What became of the link, if a teacher has to know."""
    if link == colab.default(path) and link:
        return ""
    if not link:
        return "; it has no Open in Colab link, unless --colab says where it will lie"
    return f"; Open in Colab leads to {link}"


def add_sandbox(commands) -> None:
    """The command `sandbox`."""
    parser = commands.add_parser(
        "sandbox",
        help="say whether students' code can be run safely here",
        description="Say whether students' code can be run safely on this machine.",
    )
    parser.set_defaults(run=try_sandbox)


def try_sandbox(options: argparse.Namespace) -> int:
    """Try the sandbox."""
    probe.check()
    print("The sandbox works: this machine can grade.")
    return 0


def commands() -> argparse.ArgumentParser:
    """What the command line may say."""
    parser = argparse.ArgumentParser(prog="python -m grading", description=main.__doc__)
    added = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (
        *(add_grade, export.add_export, totals.add_totals),
        *(bank.add_bank, add_assign),
        *(similar.add_code, gradescope.add_zip, add_sandbox),
    ):
        add(added)
    return parser


@command
def main(argv: list[str] | None = None) -> int:
    """Make, grade and pack the assignments of the book."""
    options = commands().parse_args(argv)
    options.program = argv is None  # not called by a test
    return options.run(options)
