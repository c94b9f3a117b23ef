"""Grades a folder of submissions; what an earlier run graded is taken from it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

from grading import parallel, runner, sandbox, submissions
from grading.masters import Assignment
from grading.runner import Result
from grading.submissions import Content, Submission
from tools import files

GRADED = "graded.json"


@dataclasses.dataclass(frozen=True)
class Graded:
    """A submission with what became of it."""

    submission: Submission
    result: Result
    answers: dict[str, str]  # to the questions that a person grades
    fresh: bool  # graded now, not on an earlier run


def key(submission: Submission, assignment: Assignment, settings: dict) -> str:
    """What a result depends on: if none of it changed, the result is still good."""
    digest = hashlib.sha256()
    for path in sorted(sandbox.GRADING.glob("*.py")):
        digest.update(path.read_bytes())
    parts = {**assignment.tests, **settings}
    digest.update(json.dumps(parts, sort_keys=True).encode())
    try:
        if not submission.path.is_symlink():
            size = submission.path.stat().st_size
            digest.update(f"{size}".encode())
            if size <= submissions.MAX_FILE:
                digest.update(submission.path.read_bytes())
    except OSError as error:
        digest.update(str(error.errno).encode())
    return digest.hexdigest()


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
    """
    settings = {"limits": dataclasses.asdict(limits), "seed": seed}
    done: dict[Submission, Graded] = {}
    todo: list[tuple[Submission, Content, str]] = []
    for submission in found:
        content = submissions.read(submission.path, assignment)
        wanted = key(submission, assignment, settings)
        old = _earlier(out / submission.folder / GRADED, wanted)
        if old is not None:
            done[submission] = Graded(submission, old, content.answers, False)
        elif content.problem:
            result = runner.empty_result(assignment, content.problem)
            done[submission] = Graded(submission, result, content.answers, True)
            _keep(out, submission, wanted, result)
            progress(f"{submission.student}: {content.problem}")
        else:
            todo.append((submission, content, wanted))
    again = sum(not one.fresh for one in done.values())
    progress(f"{again} graded before, {len(todo)} to grade")
    work = [(content.cells, assignment, limits, seed) for _, content, _ in todo]
    for number, (index, result) in enumerate(parallel.grade(work, jobs), start=1):
        submission, content, wanted = todo[index]
        done[submission] = Graded(submission, result, content.answers, True)
        _keep(out, submission, wanted, result)
        problem = f"  {result.problem}" if result.problem else ""
        progress(
            f"[{number}/{len(todo)}] {submission.student}: {result.score:g} points, "
            f"{result.seconds:.1f} s{problem}"
        )
    return [done[submission] for submission in found]


def _keep(out: Path, submission: Submission, wanted: str, result: Result) -> None:
    """Keep a result for the next run."""
    folder = out / submission.folder
    folder.mkdir(parents=True, exist_ok=True)
    data = {"key": wanted, "result": dataclasses.asdict(result)}
    files.write_text(folder / GRADED, json.dumps(data, indent=1) + "\n")


def _earlier(path: Path, wanted: str) -> Result | None:
    """The result of an earlier run, if it is still good."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Result.from_json(data["result"]) if data["key"] == wanted else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remove_stale(out: Path, found: list[Submission]) -> list[str]:
    """Remove the results of submissions that are no longer there; their names."""
    names = {one.folder for one in found}
    stale = [
        path.parent
        for path in sorted(out.glob(f"*/{GRADED}"))
        if path.parent.name not in names
    ]
    for folder in stale:
        shutil.rmtree(folder)
    return [folder.name for folder in stale]
