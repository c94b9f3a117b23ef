"""The form of a chapter: what every notebook has, and what no notebook may have."""

import functools
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode

from tools.model import chapters, questions
from tools.model.assertions import unasserted
from tools.model.chapters import ROOT, Chapter
from tools.model.errors import UserError, command
from tools.notebooks import normalise, sync

GOALS = "**You will**"
NUMBER = re.compile(r"^\*\*(\d+)\. ", re.MULTILINE)  # of an exercise
HINT = "<details><summary>Hint</summary>"
SECTIONS = ["What breaks", "On a GPU", "Exercises", "What you proved", "Go further"]
FORBIDDEN_TAGS = {"nbval-skip", "skip-execution", "raises-exception"}
CELL_LINES = 25
COLUMNS = 88
OUTPUT_BYTES = 150_000

SHELL = re.compile(
    r"^%%(bash|sh|script|system|sx|cmd|!)|^\s*(\w+\s*=\s*)?(!|%(system|sx)\b)", re.M
)
# In a text as HTML: directives, roles and targets of MyST, which Colab shows raw.
MYST = re.compile(
    r'(?<=class="language-)\{[^"]+'
    r"|\{[a-zA-Z][\w:+-]*\}(?=<code>)"
    r"|(?:^|(?<=<p>))(?::::+ *\{.*|\([\w.:-]+\)=(?=$|</p>))",
    re.M,
)
ADDRESS = re.compile(r"""<[^<>]*\b(href|src)\s*=\s*["']([^"']+)""", re.I)
PORTABLE = {  # what others are, the fix, and how those begin that all readers reach
    "href": (
        "a relative link",
        "write the full https:// address",
        ("http:", "https:", "mailto:"),
    ),
    "src": ("an image from elsewhere", "draw it in a code cell", ("data:",)),
}
MACHINE_PATH = re.compile(
    r"/(?:home|Users)/[^\s/:\"]+|/root/|[A-Za-z]:\\+Users\\+\w+"
    r"|[/\\](?:site|dist)-packages[^\s:\"]*"
)

# A text as HTML; what stands in code is escaped.
html = functools.cache(questions.MARKDOWN.render)
# Where it is (a cell's index, or None for the whole file), what it is, how to fix it.
Problem = tuple[int | None, str, str]


def code_cells(chapter: Chapter) -> Iterator[tuple[int, NotebookNode]]:
    """The code cells with their indices."""
    return (pair for pair in enumerate(chapter.cells) if pair[1].cell_type == "code")


def texts(chapter: Chapter) -> Iterator[tuple[int, str]]:
    """The text cells as HTML, with their indices."""
    for index, cell in enumerate(chapter.cells):
        if cell.cell_type == "markdown":
            yield index, html(cell.source)


def headings(chapter: Chapter, level: int) -> list[tuple[int, str]]:
    """The headings of a level: index of the cell, text."""
    heading = re.compile(rf"<h{level}>(.*?)</h{level}>")
    return [(index, x) for index, text in texts(chapter) for x in heading.findall(text)]


def title(chapter: Chapter) -> Iterator[Problem]:
    """There is one title, at the top of the first cell."""
    titles = headings(chapter, 1)
    if not chapter.title or not titles or titles[0][0] != 0:
        yield 0, "no title at the top", "start the first cell with `# Title`"
    for index, _ in titles[1:]:
        yield index, "a second title", "make it a section: `## ...`"


def goals(chapter: Chapter) -> Iterator[Problem]:
    """The reader is told in three to five points what they will do."""
    for index, cell in enumerate(chapter.cells):
        if cell.cell_type == "markdown" and GOALS in cell.source:
            points = len(re.findall(r"^[-*] ", cell.source.partition(GOALS)[2], re.M))
            if not 3 <= points <= 5:
                yield index, f"{GOALS} has {points} points", "list 3 to 5 below it"
            return
    yield None, f"no {GOALS}", f"write {GOALS} and 3 to 5 points below it"


def sections(chapter: Chapter) -> Iterator[Problem]:
    """The closing sections are there, once and in order."""
    titles = [text for _, text in headings(chapter, 2) if text in SECTIONS]
    if titles != SECTIONS:
        problem = f"the closing sections are: {', '.join(titles) or 'none'}"
        yield None, problem, f"have each once, in this order: {', '.join(SECTIONS)}"
    for index, text in headings(chapter, 2):
        at_the_top = chapter.cells[index].source.startswith(sync.PROVED)
        if f"## {text}" == sync.PROVED and not at_the_top:
            yield index, f"`{sync.PROVED}` is not at the top", "give it its own cell"


def setup(chapter: Chapter) -> Iterator[Problem]:
    """The first code cell is the set-up."""
    for index, cell in itertools.islice(code_cells(chapter), 1):
        if not chapters.is_setup(cell):
            fix = "start it with `# @title Set-up: ...`"
            yield index, "the first code cell is not the set-up cell", fix


def claims(chapter: Chapter) -> Iterator[Problem]:
    """There are claims, at the top of their cells, and each is asserted."""
    for claim in chapter.claims:
        _, code = chapters.split_claim(chapter.cells[claim.cell].source)
        yield from ((claim.cell, *problem) for problem in unasserted(code))
    if not chapter.claims:
        yield None, "no claim", "add a cell that starts with `# Claim: ...`"
    for index, cell in code_cells(chapter):
        at_the_top = chapters.split_claim(cell.source)[0]
        if re.search(rf"^{chapters.CLAIM}", cell.source, re.M) and not at_the_top:
            yield index, "a claim that is not at the top", "give it a cell of its own"


def guesses(chapter: Chapter) -> Iterator[Problem]:
    """Each question in italics has options, an output, an answer and an assertion."""
    for question in questions.questions(chapter.notebook):
        if isinstance(question, questions.Unclear):
            yield question.args
    for index, text in questions.unanswered(chapter.notebook):
        fix = "give it options and a `predict` cell, or ask without italics"
        yield index, f"nothing answers {text[:50]!r}", fix


def exercises(chapter: Chapter) -> list[tuple[int, int, list[int]]]:
    """The exercises: number, index of the text, indices of the solution's cells."""
    exercises: list[tuple[int, int, list[int]]] = []
    inside = False
    for index, cell in enumerate(chapter.cells):
        if cell.cell_type == "markdown":
            if cell.source.startswith("## "):
                inside = cell.source.startswith("## Exercises")
            numbers = NUMBER.findall(cell.source) if inside else []
            exercises += [(int(number), index, []) for number in numbers]
        elif inside and exercises:
            exercises[-1][2].append(index)
    return exercises


def exercise(chapter: Chapter) -> Iterator[Problem]:
    """There are three exercises or more, with hints and asserted solutions."""
    cells, all_exercises = chapter.cells, exercises(chapter)
    numbers = [number for number, _, _ in all_exercises]
    if len(numbers) < 3 or numbers != [*range(1, len(numbers) + 1)]:
        written = ", ".join(map(str, numbers)) or "none"
        yield None, f"the exercises are: {written}", "have 3 or more, counted from 1"
    for number, text, solution in all_exercises:
        if HINT not in cells[text].source:
            yield text, f"exercise {number} has no hint", f"write `{HINT}`"
        if not solution:
            yield text, f"exercise {number} has no solution", "add a cell below"
        for index in solution:
            if not chapters.titled(cells[index], f"Solution {number}"):
                fix = f"start it with `# @title Solution {number}`"
                yield index, "a solution without its title", fix
        for index in solution[-1:]:
            for problem, _ in unasserted(cells[index].source, "solution"):
                yield index, problem, "let it assert its own result"


def canonical(chapter: Chapter) -> Iterator[Problem]:
    """The file's text is the canonical one."""
    text = chapter.path.read_text(encoding="utf-8")
    if text != normalise.dumps(chapter.notebook):
        yield None, "not in canonical form", "make sync"


def executed(chapter: Chapter) -> Iterator[Problem]:
    """Every code cell was executed, and the versions were noted."""
    for index, cell in code_cells(chapter):
        if not cell.source.strip():
            yield index, "an empty code cell", "remove it"
        elif cell.execution_count is None:
            yield index, "not executed", "make refresh"
            return
    if not chapter.notebook.metadata.get("book", {}).get("verified"):
        yield None, "no `verified` in the metadata", "make refresh"


def portable_text(chapter: Chapter) -> Iterator[Problem]:
    """The text reads the same on the site, on Colab and in a lone copy of the file."""
    for index, text in texts(chapter):
        for markup in MYST.findall(text):
            yield index, f"MyST: {markup}", "write CommonMark"
        for kind, target in ADDRESS.findall(text):
            what, fix, portable = PORTABLE[kind.lower()]
            if not target.lower().startswith(portable):
                yield index, f"{what}: {target}", fix


def code_style(chapter: Chapter) -> Iterator[Problem]:
    """Cells are short, hide nothing, call no shell and are never skipped."""
    for index, cell in code_cells(chapter):
        lines = cell.source.splitlines()
        count = sum(not line.startswith(sync.MARKERS) for line in lines)
        if count > CELL_LINES and not chapters.is_setup(cell):
            yield index, f"{count} lines", f"split it: at most {CELL_LINES}"
        for number, line in enumerate(lines, start=1):
            if len(line) > COLUMNS:  # ruff does not read the cells of %%process
                problem = f"line {number} has {len(line)} columns"
                yield index, problem, f"break it: at most {COLUMNS}"
        if cell.source.rstrip().endswith(";"):
            yield index, "the last line ends with `;`", "show the output or assign it"
        if SHELL.search(cell.source):
            yield index, "a shell command", "write it in Python"
        for tag in FORBIDDEN_TAGS & set(chapters.tags(cell)):
            fix = "remove it: every cell runs, and an error is shown by %%raises"
            yield index, f"the tag `{tag}`", fix


def outputs(chapter: Chapter) -> Iterator[Problem]:
    """Outputs are small, figures are described, and no output names a machine."""
    for index, cell in code_cells(chapter):
        image = cell.metadata.get("mystnb", {}).get("image", {})
        figures = [x for x in cell.outputs if "image/png" in x.get("data", {})]
        if figures and not str(image.get("alt", "")).strip():
            fix = "metadata `mystnb: {image: {alt: ...}}`"
            yield index, "a figure without alternative text", fix
        for output in cell.outputs:
            text = json.dumps(output, ensure_ascii=False)
            size = len(text.encode())
            if size > OUTPUT_BYTES:
                problem = f"an output of {size / 1000:.0f} kB"
                yield index, problem, f"at most {OUTPUT_BYTES / 1000:.0f} kB: show less"
            path = MACHINE_PATH.search(text) if output not in figures else None
            if path:
                fix = "print what does not depend on the machine"
                yield index, f"an output names a path of this machine: {path[0]}", fix


RULES = [
    title,
    goals,
    setup,
    claims,
    guesses,
    exercise,
    sections,
    canonical,
    executed,
    portable_text,
    code_style,
    outputs,
]


def problems(chapter: Chapter) -> Iterator[str]:
    """Everything that is wrong with a chapter's form, one message each."""
    for rule in RULES:
        for index, problem, fix in rule(chapter):
            place = chapter.path.name
            if index is not None and index < len(chapter.cells):
                place = chapters.where(chapter.path, index, chapter.cells[index])
            yield f"{place}: {problem}. Fix: {fix}."


def unlisted(root: Path = ROOT) -> Iterator[str]:
    """The chapters that `_toc.yml` leaves out, and the site with it."""
    contents = (root / "_toc.yml").read_text(encoding="utf-8")
    for path in chapters.chapter_paths(root):
        entry = f"notebooks/{path.stem}"
        if not re.search(rf"{entry}(?![\w-])", contents):
            yield f"{path.name}: not in _toc.yml. Fix: add `- file: {entry}` to it."


def book_problems(root: Path = ROOT) -> Iterator[str]:
    """Everything that is wrong with the form of the book, one message each."""
    numbers: dict[int, str] = {}
    sentences: dict[str, str] = {}
    for path in chapters.chapter_paths(root):
        try:
            chapter = chapters.chapter(path)
            other = numbers.setdefault(chapter.number, path.name)
            if other != path.name:
                yield f"{path.name}: {other} has its number. Fix: give it another."
            yield from problems(chapter)
        except UserError as error:
            yield str(error)
            continue
        for claim in chapter.claims:
            place = chapters.where(path, claim.cell, chapter.cells[claim.cell])
            words = re.sub(r"[\W_]+", " ", claim.sentence).strip().casefold()
            other = sentences.setdefault(words, place)
            if other != place:
                yield f"{place}: the claim of {other} again. Fix: say it once."
    yield from unlisted(root)


@command
def main(root: Path = ROOT) -> int:
    """Check the form of the chapters and that `_toc.yml` lists them all."""
    messages = list(book_problems(root))
    for message in messages:
        print(message)
    return int(bool(messages))


if __name__ == "__main__":
    raise SystemExit(main())
