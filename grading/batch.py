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


def folder(out: Path, submission: Submission) -> Path:
    """A student's folder of results: among the students' only, whatever its name."""
    return out / STUDENTS / submission.folder


def versions() -> list[str]:
    """The packages that a submission's cells import, as they are installed here."""
    packages = importlib.metadata.packages_distributions()
    names = {name for module in MODULES for name in packages.get(module, [])}
    return sorted(f"{name}=={importlib.metadata.version(name)}" for name in names)


def key(digest: str, assignment: Assignment, settings: dict) -> str:
    """What a result depends on: if none of it changed, the result is still good."""
    parts = hashlib.sha256(digest.encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        parts.update(path.read_bytes())
    data = {**settings, "questions": assignment.questions, "tests": assignment.tests}
    text = json.dumps(data, sort_keys=True, default=dataclasses.asdict)
    parts.update(text.encode())
    return parts.hexdigest()


def grade_all(
    handed_in: list[Submission],
    assignment: Assignment,
    out: Path,
    limits: sandbox.Limits,
    seed: str,
    jobs: int,
    progress: Callable[[str], None],
) -> list[Graded]:
    """Grade what is new or has changed, and say a line of progress about each.

    Returns:
        One Graded for each submission, in their order.

    Raises:
        UserError: the students' results have no place.
    """
    students = out / STUDENTS
    if students.is_symlink() or (students.exists() and not students.is_dir()):
        raise UserError(
            f"{students}: not a folder. Fix: remove it, or name another --out."
        )
    students.mkdir(parents=True, exist_ok=True)

    def say(line: str) -> None:
        progress(text.one_line(line))

    settings = {"limits": dataclasses.asdict(limits), "seed": seed}
    settings["versions"] = versions()
    done: dict[Submission, Graded] = {}
    todo: list[tuple[Submission, Content, str]] = []
    before = 0
    for submission in handed_in:
        problem = submission.problem
        content = (
            submissions.unreadable(problem)
            if problem
            else submissions.read(submission.path, assignment)
        )
        wanted = key(content.digest, assignment, settings)
        result = _earlier(folder(out, submission) / GRADED, wanted)
        before += result is not None
        if result is None and content.problem:
            result = runner.empty_result(assignment, content.problem)
            say(f"{submission.student}: {content.problem}")
            _keep(out, submission, wanted, result, say)
        if result is None:
            todo.append((submission, content, wanted))
        else:
            done[submission] = Graded(submission, result, content.answers)
    say(f"{before} graded before, {len(todo)} to grade")
    notebooks = [content.cells for _, content, _ in todo]
    results = parallel.grade(notebooks, assignment, limits, seed, jobs)
    for number, (index, result) in enumerate(results, start=1):
        submission, content, wanted = todo[index]
        done[submission] = Graded(submission, result, content.answers)
        again = "" if result.failed else wanted  # no key is that of a good result
        _keep(out, submission, again, result, say)
        problem = f"  {result.problem}" if result.problem else ""
        say(
            f"[{number}/{len(todo)}] {submission.student}: {result.score:g} points, "
            f"{result.seconds:.1f} s{problem}"
        )
    return [done[submission] for submission in handed_in]


def _keep(
    out: Path,
    submission: Submission,
    wanted: str,
    result: Result,
    say: Callable[[str], None],
) -> None:
    """Keep a result for the next run; that it can't be kept harms nobody else."""
    record = {"key": wanted, "result": dataclasses.asdict(result)}
    place = folder(out, submission)
    try:
        place.mkdir(parents=True, exist_ok=True)
        files.write_text(place / GRADED, json.dumps(record, indent=1) + "\n")
    except OSError as error:
        say(
            f"{submission.student}: the result can't be kept for the next run "
            f"({error.strerror}). Fix: remove {place}."
        )


def _earlier(path: Path, wanted: str) -> Result | None:
    """The result that an earlier run kept, if it can be read and is still good."""
    try:
        record = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return Result.from_json(record["result"]) if record["key"] == wanted else None
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return None


def stale(out: Path, handed_in: list[Submission]) -> list[Path]:
    """The folders with results of submissions that are no longer there."""
    names = {submission.folder for submission in handed_in}
    folders = [path.parent for path in sorted(out.glob(f"{STUDENTS}/*/{GRADED}"))]
    return [f for f in folders if f.name not in names and not f.is_symlink()]


def check_same_class(out: Path, handed_in: list[Submission]) -> None:
    """See that the results in a folder are those of these submissions.

    Raises:
        UserError: most of them would have to be removed.
    """
    kept = len(list(out.glob(f"{STUDENTS}/*/{GRADED}")))
    gone = len(stale(out, handed_in))
    if gone > 1 and 2 * gone > kept:
        raise UserError(
            f"{out}: {gone} of the {kept} results in it are of files that are not "
            "there any more: is it another group's folder? Fix: name another folder of "
            f"results with --out, or remove {out} if it is not needed any more."
        )


def remove_stale(out: Path, handed_in: list[Submission]) -> list[str]:
    """Remove the results of submissions that are no longer there; their names."""
    gone = stale(out, handed_in)
    for path in gone:
        shutil.rmtree(path, ignore_errors=True)
    return [text.file_name(path.name) for path in gone if not path.exists()]
