"""From an assignment's master to its student notebook, its solutions and its tests.

A master is a text file in MyST format with otter-grader's marks. otter-grader takes it
apart; this module adds what the book needs on top: the folded set-up cell that carries
the snippets and the public tests, the address on Colab, and a canonical form.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import jupytext
import nbformat
import yaml

from grading import runner
from grading.assignment import PLACEHOLDER, Assignment, Question
from grading.author import about
from tools.model import address
from tools.model.chapters import ROOT
from tools.model.errors import UserError
from tools.notebooks import normalise, sync

MASTERS = ROOT / "assignments" / "masters"
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
ANSWER = "<!-- answer: {question} -->"
OTTER_PLACEHOLDER = "_Type your answer here, replacing this text._"
METADATA = {key: normalise.METADATA[key] for key in ("kernelspec", "language_info")}
CHECKS = "# >>> checks"
CLASS = "\n\n\nclass "  # what follows a hidden test, for all hidden tests of a question
SECRETS = re.compile(r"(?i)#\s*(?:BEGIN|END)\s+(?:SOLUTION|TESTS?)|#\s*SOLUTION")
# What otter-grader leaves in a solution: a prompt, which is the starter's, and marks.
PROMPT = re.compile(
    r"(?ms)^[ \t]*(\"\"\"|\'\'\')[ \t]*# BEGIN PROMPT[ \t]*$"
    r".*?\1[ \t]*# END PROMPT[ \t]*(?:\n|\Z)",
)
MARK = r"#[ \t]*(?:BEGIN |END )?(?:SOLUTION(?: NO PROMPT)?|IGNORE|SEED)[ \t]*"
MARKS = re.compile(rf"(?m)^[ \t]*{MARK}(?:\n|\Z)|[ \t]*{MARK}$")
CONFIG = """# ASSIGNMENT CONFIG
init_cell: false
check_all_cell: false
export_cell: false
generate: false
run_tests: false
show_question_points: false
python_version: "3.11"
tests: {files: true, ok_format: false}"""
# The tests go into a folder of their own: a student may have one called `tests`.
WRITE_CHECKS = """
_checks = pathlib.Path(tempfile.mkdtemp(prefix="checks-"))
for _name, _text in CHECKS.items():
    (_checks / f"{_name}.py").write_text(_text, encoding="utf-8")
if importlib.util.find_spec("otter") is None:
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "otter-grader>=7,<8"])
    importlib.invalidate_caches()
if importlib.util.find_spec("otter") is None:
    raise ImportError(
        "the checks need otter-grader, which is missing and could not be installed. "
        "Fix: connect to the network and run this cell again, "
        "or pip install 'otter-grader>=7,<8'."
    )
import otter

grader = otter.Notebook(tests_dir=str(_checks))"""


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
    parts = _otter(path, master, _take_classes(path, master))
    set_up = _set_up_cell(path, parts["student"], parts["public_tests"])
    for kind in ("student", "solution"):
        notebook = parts[kind]
        for cell in notebook.cells:
            if CHECKS in cell.source:
                cell.source = set_up
        _finish(notebook, questions)
    _unmark(parts["solution"])
    _refuse_secrets(path, parts["student"])
    title = parts["student"].cells[0].source.partition("\n")[0].removeprefix("# ")
    assignment = Assignment(path.stem, title, questions, **parts)
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


def _take_classes(path: Path, master: nbformat.NotebookNode) -> dict[str, str]:
    """Take the classes out of hidden tests, in place: otter-grader loses them.

    Returns:
        The classes of each question, as text.
    """
    taken: dict[str, str] = {}
    name = ""
    for cell in master.cells:
        if cell.cell_type == "raw" and cell.source.startswith(about.BEGIN):
            name = yaml.safe_load(cell.source)["name"]
        if cell.cell_type == "code" and "# END TEST CONFIG" in cell.source:
            cell.source, found, text = cell.source.partition(CLASS)
            if found and "\nhidden: true\n" not in cell.source:
                raise UserError(
                    f"{path}: a class stands below a public test of {name}. "
                    "Fix: put it below a hidden one, which sees it."
                )
            taken[name] = taken.get(name, "") + found + text
    return taken


def _otter(path: Path, master: nbformat.NotebookNode, classes: dict[str, str]) -> dict:
    """Let otter-grader take a master apart; the grader's tests get their classes."""
    from otter.assign import main  # slow to import

    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, f"{path.stem}.ipynb"), Path(folder, "made")
        master.cells.insert(0, nbformat.v4.new_raw_cell(CONFIG))
        master.metadata = nbformat.from_dict(METADATA)
        nbformat.write(master, source)
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                main(str(source), str(made), no_run_tests=True, no_pdfs=True)
        except Exception as error:  # otter raises all kinds, some without a class
            raise UserError(
                f"{path}: otter-grader refuses it ({type(error).__name__}: {error}). "
                "Fix: see CONTRIBUTING.md, A day: an assignment."
            ) from None

        for name, text in classes.items():
            with (made / "autograder/tests" / f"{name}.py").open("a") as file:
                file.write(text)
        # A failed check shows its line to the student: long ones are broken.
        command = ["ruff", "format", "--isolated", "--no-cache", "-q"]
        command = [sys.executable, "-m", *command, *made.glob("*/tests")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            reason = " ".join(done.stderr.split())[-200:]
            raise UserError(f"{path}: ruff can't format its tests ({reason}).")
        kinds = {"tests": "autograder", "public_tests": "student"}
        tests = {
            kind: {
                test.stem: test.read_text() for test in made.glob(f"{name}/tests/*.py")
            }
            for kind, name in kinds.items()
        }
        return {
            "student": nbformat.read(made / "student" / source.name, 4),
            "solution": nbformat.read(made / "autograder" / source.name, 4),
            "tests": dict(sorted(tests["tests"].items())),
            "public_tests": {
                name: text
                for name, text in sorted(tests["public_tests"].items())
                if "@test_case" in text
            },
        }


def _check_points(path: Path, assignment: Assignment) -> None:
    """See that the points of a question are those of its tests together.

    Raises:
        UserError: they are not.
    """
    for question in assignment.questions:
        if question.manual:
            continue
        tests = runner.load_tests(assignment, question.name).test_cases
        points = sum(test.points for test in tests)
        if points != question.points:
            raise UserError(
                f"{path}: {question.name} has {question.points:g} points, its tests "
                f"have {points:g} together. Fix: write the same into both."
            )


def _set_up_cell(
    path: Path, notebook: nbformat.NotebookNode, tests: dict[str, str]
) -> str:
    """The set-up cell: snippets, then the public tests, then otter-grader."""
    places = [cell.source for cell in notebook.cells if CHECKS in cell.source]
    if len(places) != 1:
        raise UserError(
            f"{path}: {len(places)} cells hold the line `{CHECKS}`. "
            "Fix: write it, and `# <<<` below it, at the end of the set-up cell."
        )
    place = f"{path.name}, set-up cell"
    before, _, after = places[0].partition(f"{CHECKS}\n# <<<")
    source = sync.insert_snippets(before, place, ROOT) + CHECKS
    for module in ("importlib.util", "pathlib", "subprocess", "sys", "tempfile"):
        source += f"\nimport {module}"
    source += "\n\nCHECKS = {}"
    for name, text in tests.items():
        if "'''" in text:
            raise UserError(f"{path}: a test of {name} holds '''. Fix: use \"\"\".")
        text = text.replace("\\", "\\\\")
        source += f"\nCHECKS[{json.dumps(name)}] = '''\\\n{text}'''"
    return source + WRITE_CHECKS + "\n# <<<" + after


def _finish(notebook: nbformat.NotebookNode, questions: list[Question]) -> None:
    """Give a notebook of otter's the book's form, in place."""
    manual = iter([question.name for question in questions if question.manual])
    answered = ""  # the manual question whose answer comes next
    for cell in notebook.cells:
        cell.source = cell.source.removeprefix("<!-- END QUESTION -->").strip()
        if cell.source.startswith("<!-- BEGIN QUESTION -->"):
            cell.source = cell.source.removeprefix("<!-- BEGIN QUESTION -->").lstrip()
            answered = next(manual)
        if cell.source == OTTER_PLACEHOLDER:
            cell.source = f"{ANSWER.format(question=answered)}\n{PLACEHOLDER}"
    notebook.cells = [cell for cell in notebook.cells if cell.source]
    for number, cell in enumerate(notebook.cells, start=1):
        cell.id = f"cell-{number}"
        cell.metadata = {}
        cell.metadata = normalise.cell_metadata(cell)  # folds the set-up cell


def _put_head(notebook: nbformat.NotebookNode, opens: str, size: str) -> None:
    """Write where Colab opens it below the title, and last how large it is."""
    first = notebook.cells[0]
    title, _, rest = first.source.partition("\n")
    link = f"**[Open in Colab]({opens})**" if opens else ""
    first.source = "\n\n".join(filter(None, (title, link, rest.strip(), size)))


def _unmark(notebook: nbformat.NotebookNode) -> None:
    """Take otter-grader's marks and all prompts out of the solutions, in place."""
    for cell in notebook.cells:
        if cell.cell_type == "code" and CHECKS not in cell.source:
            cell.source = MARKS.sub("", PROMPT.sub("", cell.source)).strip("\n")


def _refuse_secrets(path: Path, notebook: nbformat.NotebookNode) -> None:
    """Stop if a mark of the master is left in the student's notebook."""
    for cell in notebook.cells:
        if match := SECRETS.search(cell.source):
            raise UserError(
                f"{path}: {match[0]!r} is left in the student's notebook, in the cell "
                f"that starts with {cell.source[:40]!r}. "
                "Fix: put it between BEGIN SOLUTION and END SOLUTION."
            )
