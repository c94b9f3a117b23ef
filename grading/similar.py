"""The students' own code as plain files, for a tool that looks for copies."""

from __future__ import annotations

import argparse
import sys

from grading import submissions, text
from grading.assignment import Assignment
from grading.author import masters
from grading.runner import Cell
from tools.model import files
from tools.model.errors import UserError

STUDENTS, GIVEN = "students", "given"


def own_code(cells: list[Cell], assignment: Assignment) -> str:
    """The code cells that are not the master's to the word."""
    given = {_words(source) for source in _given(assignment)}
    sources = [cell.source for cell in cells if _words(cell.source) not in given]
    return _joined(sources)


def _given(assignment: Assignment) -> list[str]:
    """The code cells that each student got."""
    return [one.source for one in assignment.student.cells if one.cell_type == "code"]


def _joined(sources: list[str]) -> str:
    """Code cells as the text of a file, which UTF-8 can hold."""
    return "".join(f"{text.several_lines(one).strip()}\n\n\n" for one in sources)


def _words(source: str) -> str:
    return " ".join(source.split())


def add_code(commands) -> None:
    """The command `code`."""
    parser = commands.add_parser(
        "code",
        help="write the students' own code as plain files, to look for copies",
        description="Write the students' own code as plain files, without the cells "
        "that the assignment gives them. Nothing is run.",
    )
    parser.add_argument("submissions", type=files.home, metavar="SUBMISSIONS")
    parser.add_argument(
        "assignment", help="its number or name, or the path of your own master"
    )
    parser.add_argument(
        "--to",
        type=files.home,
        required=True,
        metavar="FOLDER",
        help=f"a new folder: {STUDENTS}/ holds a file for each student, {GIVEN}/ what "
        "all of them got",
    )
    parser.set_defaults(run=code)


def code(options: argparse.Namespace) -> int:
    """Write the students' own code as plain files."""
    path = masters.find_master(options.assignment)
    found = submissions.find(options.submissions, path.stem)
    if options.to.exists() and (options.to.is_file() or any(options.to.iterdir())):
        raise UserError(
            f"{options.to}: is there already, and not empty. Fix: name a new folder."
        )
    assignment = masters.build(path)
    students, given = options.to / STUDENTS, options.to / GIVEN
    for folder in (students, given):
        folder.mkdir(parents=True, exist_ok=True)
    files.write_text(given / "given.py", _joined(_given(assignment)))
    written = 0
    for one in found:
        content = submissions.Content(problem=one.problem)
        if not one.problem:
            content = submissions.read(one.path, assignment)
        source = own_code(content.cells, assignment)
        if source:
            files.write_text(students / f"{one.folder}.py", source)
            written += 1
        else:
            why = content.problem or "holds no code of the student's own"
            print(text.one_line(f"{one.student}: {why}"), file=sys.stderr)
    print(f"the code of {written} of {len(found)} submissions: {students}")
    return 0
