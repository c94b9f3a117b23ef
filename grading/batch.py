"""Grades a folder of submissions; what an earlier run graded is taken from it."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
import shutil
from collections.abc import Callable
from pathlib import Path

from grading import parallel, runner, sandbox, submissions, text
from grading.assignment import Assignment
from grading.runner import Result
from grading.submissions import Content, Submission
from tools.model import files
from tools.model.errors import UserError

STUDENTS = "students"  # a folder of their own: no name can hide another result
GRADED = "graded.json"
# The packages that the assignments' cells import.
MODULES = ("jax", "keras", "numpy", "openvino", "sklearn", "tensorflow", "torch")


@dataclasses.dataclass(frozen=True)
class Graded:
    """A submission with what became of it."""

    submission: Submission
    result: Result
    answers: dict[str, str]  # to the questions that a person grades
    fresh: bool  # graded now, not on an earlier run


def folder(out: Path, submission: Submission) -> Path:
    """A student's folder of results: among the students' only, whatever its name."""
    return out / STUDENTS / submission.folder


def versions() -> list[str]:
    """The packages that a submission's cells import, as they are installed here."""
    found = importlib.metadata.packages_distributions()
    names = {name for module in MODULES for name in found.get(module, [])}
    return sorted(f"{name}=={importlib.metadata.version(name)}" for name in names)


def key(digest: str, assignment: Assignment, settings: dict) -> str:
    """What a result depends on: if none of it changed, the result is still good.

    Args:
        digest: of the submission's file.
        assignment: gives the tests.
        settings: the limits, the seed and the versions of packages.
    """
    parts = hashlib.sha256(digest.encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        parts.update(path.read_bytes())
    data = {**assignment.tests, **settings}
    parts.update(json.dumps(data, sort_keys=True).encode())
    return parts.hexdigest()


def known(out: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Whose each file was on the last run, and where its results lie.

    Args:
        out: the folder of results; what can't be read in it is left out.

    Returns:
        The students, and the names of their folders, both by the file's path below the
        submissions.
    """
    students: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path in sorted(out.glob(f"{STUDENTS}/*/{GRADED}")):
        record = _record(path)
        place, student = record.get("place"), record.get("student")
        if isinstance(place, str) and isinstance(student, str):
            student = text.one_line(student).strip()
            if place and student and place not in students:
                students[place] = student
                folders[place] = path.parent.name
    return students, folders


def grade_all(
    found: list[Submission],
    assignment: Assignment,
    out: Path,
    limits: sandbox.Limits,
    seed: str,
    jobs: int,
    progress: Callable[[str], None],
) -> list[Graded]:
    """Grade what is new or has changed.

    Args:
        found: the submissions.
        assignment: what they answer.
        out: the folder of results; what an earlier run left there is used again.
        limits: what a submission may use.
        seed: the secret of the hidden inputs.
        jobs: how many to grade at the same time; the cores are shared out.
        progress: called with a line after each submission.

    Returns:
        One Graded for each submission, in their order.

    Raises:
        UserError: the students' results have no place.
    """
    _make_room(out)

    def say(line: str) -> None:
        progress(text.one_line(line))

    settings = {"limits": dataclasses.asdict(limits), "seed": seed}
    settings["versions"] = versions()
    done: dict[Submission, Graded] = {}
    todo: list[tuple[Submission, Content, str]] = []
    for submission in found:
        content = _content(submission, assignment)
        wanted = key(content.digest, assignment, settings)
        at_once = _without_grading(out, submission, content, wanted, assignment, say)
        if at_once:
            done[submission] = at_once
        else:
            todo.append((submission, content, wanted))
    before = sum(not one.fresh for one in done.values())
    say(f"{before} graded before, {len(todo)} to grade")
    work = [(content.cells, assignment, limits, seed) for _, content, _ in todo]
    results = parallel.grade(work, jobs)
    for number, (index, result) in enumerate(results, start=1):
        submission, content, wanted = todo[index]
        result = fit(result)
        done[submission] = Graded(submission, result, content.answers, True)
        again = "" if result.failed else wanted  # no key is that of a good result
        _keep(out, submission, again, result, say)
        problem = f"  {result.problem}" if result.problem else ""
        say(
            f"[{number}/{len(todo)}] {submission.student}: {result.score:g} points, "
            f"{result.seconds:.1f} s{problem}"
        )
    for one in done.values():
        _tell_extras(one.result, assignment)
    return [done[submission] for submission in found]


def _tell_extras(result: Result, assignment: Assignment) -> None:
    """Say of the questions of a result, maybe an earlier one, which are extras now."""
    extras = {one.name for one in assignment.extras}
    for question in result.questions:
        question.extra = question.name in extras


def _make_room(out: Path) -> None:
    """Make the folder of the students' results.

    Raises:
        UserError: something else has its name.
    """
    students = out / STUDENTS
    if students.is_symlink() or (students.exists() and not students.is_dir()):
        raise UserError(
            f"{students}: not a folder. Fix: remove it, or name another --out."
        )
    students.mkdir(parents=True, exist_ok=True)


def _without_grading(
    out: Path,
    submission: Submission,
    content: Content,
    wanted: str,
    assignment: Assignment,
    say: Callable[[str], None],
) -> Graded | None:
    """What an earlier run found, or that a file can't be read; None if it is to grade.

    Args:
        out: the folder of results.
        submission: the file.
        content: what is in it.
        wanted: the key of a result that is still good.
        assignment: what it answers.
        say: called with a line if it can't be read.
    """
    record = _record(folder(out, submission) / GRADED)
    old = _earlier(record, wanted)
    if old is not None:
        if (record.get("place"), record.get("student")) != _whose(submission):
            _keep(out, submission, wanted, old, say)
        return Graded(submission, old, content.answers, fresh=False)
    if not content.problem:
        return None
    result = runner.empty_result(assignment, content.problem)
    _keep(out, submission, wanted, result, say)
    say(f"{submission.student}: {content.problem}")
    return Graded(submission, result, content.answers, fresh=True)


def _content(submission: Submission, assignment: Assignment) -> Content:
    """What a submission holds."""
    if submission.problem:
        return submissions.unreadable(submission.problem)
    return submissions.read(submission.path, assignment)


def fit(result: Result) -> Result:
    """A result with all texts made fit: any file and any page can hold them."""
    return Result.from_json(text.everywhere(dataclasses.asdict(result)))


def _keep(
    out: Path,
    submission: Submission,
    wanted: str,
    result: Result,
    say: Callable[[str], None],
) -> None:
    """Keep a result for the next run; that it can't be kept harms nobody else."""
    data = dataclasses.asdict(result)
    place, student = _whose(submission)
    record = {"key": wanted, "place": place, "student": student}
    record |= {"sum": _sum(data), "result": data}
    try:
        _write(out, submission, record)
    except OSError as error:
        say(
            f"{submission.student}: the result can't be kept for the next run "
            f"({error.strerror}). Fix: remove {folder(out, submission)}."
        )


def _write(out: Path, submission: Submission, record: dict) -> None:
    """Write what the next run shall know of a submission."""
    folder(out, submission).mkdir(parents=True, exist_ok=True)
    path = folder(out, submission) / GRADED
    files.write_text(path, json.dumps(record, indent=1) + "\n")


def _whose(submission: Submission) -> tuple[str, str]:
    """What a file is known by on the next run."""
    return submission.place, submission.student


def _sum(data: dict) -> str:
    """What shows that a kept result was changed or damaged."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _record(path: Path) -> dict:
    """What an earlier run kept; nothing if it can't be read."""
    try:
        data = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _earlier(record: dict, wanted: str) -> Result | None:
    """The result of an earlier run, if it is still good."""
    try:
        good = record["key"] == wanted and record["sum"] == _sum(record["result"])
        return Result.from_json(record["result"]) if good else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def stale(out: Path, found: list[Submission]) -> list[Path]:
    """The folders with results of submissions that are no longer there."""
    names = {one.folder for one in found}
    folders = [path.parent for path in sorted(out.glob(f"{STUDENTS}/*/{GRADED}"))]
    return [one for one in folders if one.name not in names and not one.is_symlink()]


def check_same_class(out: Path, found: list[Submission]) -> None:
    """See that the results in a folder are those of these submissions.

    Raises:
        UserError: most of them would have to be removed.
    """
    kept = len(list(out.glob(f"{STUDENTS}/*/{GRADED}")))
    gone = len(stale(out, found))
    if gone > 1 and 2 * gone > kept:
        raise UserError(
            f"{out}: {gone} of the {kept} results in it are of files that are not "
            "there any more: is it another group's folder? Fix: name another folder of "
            f"results with --out, or remove {out} if it is not needed any more."
        )


def remove_stale(out: Path, found: list[Submission]) -> list[str]:
    """Remove the results of submissions that are no longer there; their names."""
    removed = []
    for path in stale(out, found):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            removed.append(text.file_name(path.name))
    return removed
