"""From an assignment's master to its student notebook, its solutions and its tests.

A master is a text file in MyST format with the marks of parts.py. This module makes
notebooks of its parts: with the folded set-up cell that carries the snippets and the
public tests, the address on Colab, and a canonical form.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import jupytext
import nbformat

from grading import runner
from grading.assignment import Assignment
from grading.author import about
from grading.author.parts import Parts
from tools.model import address
from tools.model.chapters import ROOT
from tools.model.errors import UserError
from tools.notebooks import normalise, sync

MASTERS = ROOT / "assignments" / "masters"
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
METADATA = {key: normalise.METADATA[key] for key in ("kernelspec", "language_info")}
CHECKS = "# >>> checks"
SECRETS = re.compile(r"(?i)#\s*(?:BEGIN|END)\s+(?:SOLUTION|PROMPT|TESTS?)|#\s*SOLUTION")
CHECK = "# >>> snippets/check.py\n# <<<\n"


def master_paths() -> list[Path]:
    """The masters of all assignments, in order."""
    return sorted(MASTERS.glob("*.md"))


def find_master(name: str) -> Path:
    """The master that `2`, `2-make-it-fast` or a path, maybe elsewhere, stands for.

    Raises:
        UserError: there is no such master.
    """
    path = Path(name).expanduser()
    if path.suffix == ".md" and path.is_file():
        return path
    masters = {path.stem: path for path in master_paths()}
    masters |= {stem.split("-")[0]: masters[stem] for stem in list(masters)}
    if name not in masters:
        raise UserError(
            f"no assignment {name!r}. Fix: name one of {', '.join(masters)}, "
            "or give the path of your own master."
        )
    return masters[name]


def colab(path: Path) -> str:
    """Where Colab opens the notebook of a master; nowhere, if it is not the book's."""
    if path.resolve().parent != MASTERS.resolve():
        return ""
    return address.repository(ROOT).colab(f"assignments/{path.stem}.ipynb")


def build(path: Path) -> Assignment:
    """Make an assignment from its master.

    Raises:
        UserError: the master is broken; the message names the place and the fix.
    """
    if not NAME.fullmatch(path.stem):
        raise UserError(
            f"{path.name}: not an assignment's name. "
            "Fix: call it N-slug.md, in lower case with hyphens."
        )
    master = read(path)
    questions = about.read(path, master)
    about.write_lines(master, questions)
    parts = Parts(path, master, questions)
    set_up = _set_up(path, parts)
    student = _notebook(parts.student, set_up)
    _refuse_secrets(path, student)
    title = student.cells[0].source.partition("\n")[0].removeprefix("# ")
    assignment = Assignment(
        name=path.stem,
        title=title,
        questions=questions,
        student=student,
        solution=_notebook(parts.solution, set_up),
        tests=parts.tests,
    )
    _check_points(path, assignment)
    for notebook in (assignment.student, assignment.solution):
        _put_head(notebook, colab(path), about.summary(assignment))
    return assignment


def dumps(notebook: nbformat.NotebookNode) -> str:
    """The canonical text of a student's or a solutions notebook.

    It asks Colab for no GPU: the assignments are made for a CPU.
    """
    notebook = nbformat.from_dict(notebook)
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return nbformat.writes(notebook, ensure_ascii=False) + "\n"


def read(path: Path) -> nbformat.NotebookNode:
    """A master as a notebook.

    Raises:
        UserError: it can't be read, or does not start with a title.
    """
    text = path.read_text(encoding="utf-8")
    try:
        master = jupytext.reads(text, fmt="md:myst")
    except Exception as error:  # jupytext has no error of its own
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{path}: not a MyST notebook ({reason}). Fix: see CONTRIBUTING.md."
        ) from None
    first = next((cell for cell in master.cells if cell.source.strip()), None)
    if first is None or not first.source.startswith("# "):
        raise UserError(
            f"{path}: does not start with a title. Fix: write `# Title` first."
        )
    return master


def _check_points(path: Path, assignment: Assignment) -> None:
    """See that the points of a question are those of its tests together.

    Raises:
        UserError: they are not.
    """
    for question in assignment.questions:
        if question.manual:
            continue
        try:
            cases = runner.load_tests(assignment, question.name)
        except (SyntaxError, NameError) as error:
            raise UserError(
                f"{path}: the tests of {question.name} can't be read ({error}). "
                "Fix: write them as Python that runs by itself."
            ) from None
        points = sum({case.name: case.points for case in cases}.values())
        if points != question.points:
            raise UserError(
                f"{path}: {question.name} has {question.points:g} points, its tests "
                f"have {points:g} together. Fix: write the same into both."
            )


def _set_up(path: Path, parts: Parts) -> str:
    """The set-up cell: snippets, then the public tests."""
    places = [cell.source for cell in parts.student if CHECKS in cell.source]
    if len(places) != 1:
        raise UserError(
            f"{path}: {len(places)} cells hold the line `{CHECKS}`. "
            "Fix: write it, and `# <<<` below it, at the end of the set-up cell."
        )
    place = f"{path.name}, set-up cell"
    before, _, after = places[0].partition(f"{CHECKS}\n# <<<")
    source = sync.insert_snippets(before + CHECK, place, ROOT) + CHECKS
    source += "\nCHECKS = {}"
    for name, tests in parts.tests.items():
        text = "\n\n\n".join(test.source for test in tests if not test.hidden)
        if "'''" in text:
            raise UserError(f"{path}: a test of {name} holds '''. Fix: use \"\"\".")
        if text:
            source += f"\nCHECKS[{json.dumps(name)}] = r'''\n{text}\n'''"
    return f"{source}\n# <<<{after}"


def _notebook(cells: list[nbformat.NotebookNode], set_up: str) -> nbformat.NotebookNode:
    """A notebook of these cells in the book's form."""
    for number, cell in enumerate(cells, start=1):
        if CHECKS in cell.source:
            cell.source = set_up
        cell.id = f"cell-{number}"
        cell.metadata = normalise.cell_metadata(cell)  # folds the set-up cell
    return nbformat.v4.new_notebook(cells=cells)


def _put_head(notebook: nbformat.NotebookNode, opens: str, size: str) -> None:
    """Write where Colab opens it below the title, and last how large it is."""
    first = notebook.cells[0]
    title, _, rest = first.source.partition("\n")
    link = f"**[Open in Colab]({opens})**" if opens else ""
    first.source = "\n\n".join(filter(None, (title, link, rest.strip(), size)))


def _refuse_secrets(path: Path, notebook: nbformat.NotebookNode) -> None:
    """Stop if a mark of the master is left in the student's notebook."""
    for cell in notebook.cells:
        if match := SECRETS.search(cell.source):
            raise UserError(
                f"{path}: {match[0]!r} is left in the student's notebook, in the cell "
                f"that starts with {cell.source[:40]!r}. "
                "Fix: put it between BEGIN SOLUTION and END SOLUTION."
            )
