"""The form of a chapter: what every notebook has, and what no notebook may have."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import yaml
from markdown_it.token import Token

from tools.model import address, chapters, exercises, questions
from tools.model.address import Repository
from tools.model.assertions import unasserted
from tools.model.chapters import ROOT
from tools.model.errors import UserError, command
from tools.notebooks import normalise, sync

GOALS = "**You will**"
SECTIONS = ["What breaks", "On a GPU", "Exercises", "What you proved", "Go further"]
FORBIDDEN_TAGS = ("nbval-skip", "skip-execution")
CELL_LINES = 25
COLUMNS = 88
OUTPUT_BYTES = 150_000

SHELL = re.compile(
    r"^%%(bash|sh|script|system|sx|cmd|!)|^\s*(\w+\s*=\s*)?(!|%(system|sx)\b)", re.M
)
ROLE = re.compile(r"\{[a-zA-Z][\w:+-]*\}$")
MYST_LINE = re.compile(r"^(:::+|\([\w.:-]+\)=\s*$)")
HTML_ADDRESS = re.compile(r"""\b(href|src)\s*=\s*["']?([^"'\s>]+)""", re.I)
ABSOLUTE = re.compile(r"(https?:|mailto:)", re.I)
HOME = re.compile(r"/(?:home|Users)/[^\s/:]+|/root/|[A-Za-z]:\\Users\\\w+")
PACKAGES = re.compile(r"[/\\](?:site|dist)-packages[^\s:]*")

# Where it is (a cell's index, or None for the whole file), what it is, how to fix it.
Problem = tuple[int | None, str, str]


@dataclasses.dataclass(frozen=True)
class Chapter:
    """A notebook as the rules see it."""

    path: Path
    text: str
    notebook: nbformat.NotebookNode
    repository: Repository

    @property
    def cells(self) -> list[nbformat.NotebookNode]:
        """The notebook's cells."""
        return self.notebook.cells

    def code(self) -> Iterator[tuple[int, nbformat.NotebookNode]]:
        """The code cells with their indices."""
        return (pair for pair in enumerate(self.cells) if pair[1].cell_type == "code")

    def markdown(self) -> Iterator[tuple[int, list[Token]]]:
        """The text cells as Markdown tokens, with their indices."""
        for index, cell in enumerate(self.cells):
            if cell.cell_type == "markdown":
                yield index, questions.tokens(cell.source)


def name(chapter: Chapter) -> Iterator[Problem]:
    """The file is called NN-slug.ipynb."""
    if not chapters.NAME.fullmatch(chapter.path.name):
        yield None, "not a chapter's name", "call it NN-slug.ipynb, in lower case"


def opening(chapter: Chapter) -> Iterator[Problem]:
    """One title, in the first cell, and below it the link that opens it in Colab."""
    titles = [index for index, level, _ in headings(chapter) if level == 1]
    if not titles:
        yield 0, "no title", "start the first cell with `# Title`"
    elif titles[0] != 0 or chapter.cells[0].source[:2] != "# ":
        yield titles[0], "the title is not at the top", "start the first cell with it"
    for index in titles[1:]:
        yield index, "a second title", "make it a section: `## ...`"
    line = sync.colab_line(chapter.repository, chapter.path)
    lines = chapter.cells[0].source.splitlines() if chapter.cells else []
    if lines.count(line) != 1:
        yield 0, "no correct Open in Colab line", "make sync"


def goals(chapter: Chapter) -> Iterator[Problem]:
    """The reader is told in three to five points what they will do."""
    for index, tokens in chapter.markdown():
        for position, token in enumerate(tokens):
            if token.type != "inline" or not token.content.startswith(GOALS):
                continue
            after = tokens[position + 2 :]  # past the end of the paragraph
            points = 0
            if after and after[0].type == "bullet_list_open":
                for inner in after[1:]:
                    if inner.type == "bullet_list_close" and inner.level == 0:
                        break
                    points += inner.type == "list_item_open" and inner.level == 1
            if not 3 <= points <= 5:
                yield index, f"{GOALS} has {points} points", "list 3 to 5 below it"
            return
    yield None, f"no {GOALS}", f"write {GOALS} and 3 to 5 points below it"


def sections(chapter: Chapter) -> Iterator[Problem]:
    """The closing sections are there, once and in order."""
    found = [(index, text) for index, level, text in headings(chapter) if level == 2]
    titles = [text for _, text in found if text in SECTIONS]
    for section in SECTIONS:
        count = titles.count(section)
        if count != 1:
            problem = (
                f"{count} sections `## {section}`" if count else f"no `## {section}`"
            )
            yield None, problem, "have exactly one"
    if sorted(set(titles)) == sorted(titles) and titles != [
        section for section in SECTIONS if section in titles
    ]:
        yield None, "the closing sections are out of order", f"{', '.join(SECTIONS)}"
    for index, text in found:
        if text == "What you proved" and not chapter.cells[index].source.startswith(
            sync.PROVED
        ):
            yield index, f"`{sync.PROVED}` is not at the top", "give it its own cell"


def setup(chapter: Chapter) -> Iterator[Problem]:
    """The first code cell is the set-up cell, folded here and on Colab.

    A second one may follow if it sets up another process, with a cell magic.
    """
    code = list(chapter.code())
    found = [index for index, cell in code if chapters.is_setup(cell)]
    if not found:
        yield (
            None,
            "no set-up cell",
            "start the first code cell with `# @title Set-up: ...`",
        )
        return
    if found[0] != code[0][0]:
        yield found[0], "the set-up cell is not the first code cell", "move it up"
    for place, index in enumerate(found):
        cell = chapter.cells[index]
        elsewhere = place == 1 and cell.source.startswith("%%") and index == code[1][0]
        if place and not elsewhere:
            yield index, "a second set-up cell", "join it with the first"
            continue
        missing = {"hide-input", "setup"} - set(chapters.tags(cell))
        if missing:
            tags = " and ".join(f"`{tag}`" for tag in sorted(missing))
            yield index, f"the set-up cell lacks the tag {tags}", "add it"
        if cell.metadata.get("cellView") != "form":
            yield index, "the set-up cell is open on Colab", "metadata `cellView: form`"


def claims(chapter: Chapter) -> Iterator[Problem]:
    """There are claims, and each is tagged, asserted and made once."""
    seen: dict[str, int] = {}
    found = 0
    for index, cell in chapter.code():
        sentence, code = chapters.split_claim(cell.source)
        tagged = "claim" in chapters.tags(cell)
        if tagged and not sentence:
            yield (
                index,
                "tagged `claim` without a claim",
                "start it with `# Claim: ...`",
            )
        elif not tagged and re.search(rf"^{chapters.CLAIM}", cell.source, re.M):
            if sentence:
                yield index, "a claim without the tag `claim`", "add the tag"
            else:
                yield (
                    index,
                    "a claim that is not at the top",
                    "give it a cell and the tag",
                )
        elif tagged:
            found += 1
            yield from ((index, *problem) for problem in unasserted(code))
            if sentence_key(sentence) in seen:
                number = seen[sentence_key(sentence)] + 1
                yield index, f"the claim of cell {number} again", "say it once"
            seen.setdefault(sentence_key(sentence), index)
    if not found:
        yield None, "no claim", "add a cell with the tag `claim` and `# Claim: ...`"


def guesses(chapter: Chapter) -> Iterator[Problem]:
    """Each question in italics has options, an output, an answer and an assertion."""
    found = list(questions.questions(chapter.notebook))
    yield from (x.args for x in found if isinstance(x, questions.Unclear))
    for index, text in questions.unanswered(chapter.notebook):
        fix = "give it options and a `predict` cell, or ask without italics"
        yield index, f"nothing answers {text[:50]!r}", fix


def exercise(chapter: Chapter) -> Iterator[Problem]:
    """The exercises have hints, and solutions that are asserted."""
    yield from exercises.problems(chapter.cells)


def canonical(chapter: Chapter) -> Iterator[Problem]:
    """The file's text is the canonical one."""
    if chapter.text != normalise.dumps(chapter.notebook):
        yield None, "not in canonical form", "python -m tools.notebooks.form --fix"


def executed(chapter: Chapter) -> Iterator[Problem]:
    """Every code cell was executed, in order, and the versions were noted."""
    if all(cell.execution_count is None for _, cell in chapter.code()):
        yield None, "no cell was executed", "make refresh"
        return
    for count, (index, cell) in enumerate(chapter.code(), start=1):
        if not cell.source.strip():
            yield index, "an empty code cell", "remove it"
        elif cell.execution_count is None:
            problem = (
                "outputs without an execution count" if cell.outputs else "not executed"
            )
            yield index, problem, "make refresh"
        elif cell.execution_count != count:
            problem = f"execution count {cell.execution_count} where {count} is due"
            yield index, problem, "make refresh"
    if not chapter.notebook.metadata.get("book", {}).get("verified"):
        yield None, "no `verified` in the metadata", "make refresh"


def portable_text(chapter: Chapter) -> Iterator[Problem]:
    """The text reads the same on the site, on Colab and in a lone copy of the file."""
    for index, tokens in chapter.markdown():
        yield from ((index, *problem) for problem in myst(tokens))
        for kind, target in targets(tokens):
            if kind == "image" and not target.startswith("data:"):
                fix = "draw it in a code cell"
                yield index, f"an image from elsewhere: {target}", fix
            elif kind == "link" and not ABSOLUTE.match(target):
                yield (
                    index,
                    f"a relative link: {target}",
                    "write the full https:// address",
                )


def myst(tokens: list[Token]) -> Iterator[tuple[str, str]]:
    """Directives, roles and targets of MyST, which Colab shows raw."""
    fix = "write CommonMark"
    for token in tokens:
        if token.type == "fence" and token.info.startswith("{"):
            yield f"a MyST directive: {token.info}", fix
        if token.type != "inline":
            continue
        lines = [line for line in token.content.splitlines() if MYST_LINE.match(line)]
        if lines:
            yield f"MyST: {lines[0][:40]}", fix
        for before, code in itertools.pairwise(token.children):
            if code.type == "code_inline" and before.type == "text":
                role = ROLE.search(before.content)
                if role:
                    yield f"a MyST role: {role[0]}`{code.content}`", fix


def targets(tokens: list[Token]) -> Iterator[tuple[str, str]]:
    """Every link and image of a text: ("link" or "image", address)."""
    for token in tokens:
        for part in [token, *(token.children or [])]:
            if part.type == "link_open":
                yield "link", str(part.attrs["href"])
            elif part.type == "image":
                yield "image", str(part.attrs["src"])
            elif part.type in ("html_block", "html_inline"):
                for attribute, target in HTML_ADDRESS.findall(part.content):
                    yield "link" if attribute.lower() == "href" else "image", target


def code_style(chapter: Chapter) -> Iterator[Problem]:
    """Cells are short, hide nothing, call no shell and are never skipped."""
    for index, cell in chapter.code():
        lines = cell.source.splitlines()
        count = sum(not line.startswith(sync.MARKERS) for line in lines)
        if count > CELL_LINES and not chapters.is_setup(cell):
            yield index, f"{count} lines", f"split it: at most {CELL_LINES}"
        for number, line in enumerate(lines, start=1):
            if len(line) > COLUMNS:
                problem = f"line {number} has {len(line)} columns"
                yield index, problem, f"break it: at most {COLUMNS}"
        code = [line for line in lines if line.strip() and line.strip()[0] != "#"]
        if code and code[-1].rstrip().endswith(";"):
            yield index, "the last line ends with `;`", "show the output or assign it"
        if SHELL.search(cell.source):
            yield index, "a shell command", "write it in Python"
    for index, cell in enumerate(chapter.cells):
        for tag in FORBIDDEN_TAGS:
            if tag in chapters.tags(cell):
                yield index, f"the tag `{tag}`", "remove it: every cell runs"


def outputs(chapter: Chapter) -> Iterator[Problem]:
    """Outputs are small, figures are described, and compared text names no machine."""
    for index, cell in chapter.code():
        kinds = {kind for output in cell.outputs for kind in output.get("data", {})}
        described = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        if (
            any(kind.startswith("image/") for kind in kinds)
            and not str(described).strip()
        ):
            fix = "metadata `mystnb: {image: {alt: ...}}`"
            yield index, "a figure without alternative text", fix
        for output in cell.outputs:
            size = len(json.dumps(output, ensure_ascii=False).encode())
            if size > OUTPUT_BYTES:
                problem = f"an output of {size / 1000:.0f} kB"
                yield index, problem, f"at most {OUTPUT_BYTES / 1000:.0f} kB: show less"
        path = machine_path(cell)
        if path:
            fix = "print what does not depend on the machine"
            yield index, f"an output names a path of this machine: {path}", fix


def machine_path(cell: nbformat.NotebookNode) -> str | None:
    """The first path in a cell's outputs that differs from machine to machine.

    In a traceback, which is not compared, only home folders count.
    """
    for output in cell.outputs:
        texts = [output.get("text", ""), output.get("evalue", "")]
        texts += [
            x for kind, x in output.get("data", {}).items() if kind[:5] == "text/"
        ]
        text = "\n".join(str(text) for text in texts)
        found = HOME.search(text) or PACKAGES.search(text)
        found = found or HOME.search("\n".join(output.get("traceback", [])))
        if found:
            return found[0]
    return None


RULES = [
    name,
    opening,
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


def headings(chapter: Chapter) -> Iterator[tuple[int, int, str]]:
    """The headings of a chapter: index of the cell, level, text."""
    for index, tokens in chapter.markdown():
        for opened, inline in itertools.pairwise(tokens):
            if opened.type == "heading_open":
                yield index, int(opened.tag[1]), inline.content


def sentence_key(sentence: str) -> str:
    """A claim's sentence, without what makes no difference to a reader."""
    return re.sub(r"[\W_]+", " ", sentence).strip().casefold()


def problems(chapter: Chapter) -> list[str]:
    """Everything that is wrong with a chapter's form, one message each."""
    messages = []
    for rule in RULES:
        for index, problem, fix in rule(chapter):
            place = chapter.path.name
            if index is not None and index < len(chapter.cells):
                place = chapters.where(chapter.path, index, chapter.cells[index])
            messages.append(f"{place}: {problem}. Fix: {fix}.")
    return messages


def toc_problems(root: Path = ROOT) -> list[str]:
    """Where `_toc.yml` and the files disagree, one message each."""
    try:
        toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ["_toc.yml: no such file. Fix: git checkout -- _toc.yml."]
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        return [f"_toc.yml: not valid YAML ({reason}). Fix: mend that line."]
    listed = list(toc_files(toc))
    messages = []
    for entry, count in collections.Counter(listed).items():
        if not any((root / f"{entry}{end}").exists() for end in (".md", ".ipynb", "")):
            messages.append(
                f"_toc.yml: there is no file {entry}. Fix: remove the entry."
            )
        if count > 1:
            messages.append(
                f"_toc.yml: lists {entry} {count} times. Fix: list it once."
            )
    listed = [entry.removesuffix(".ipynb") for entry in listed]
    for path in chapters.chapter_paths(root):
        entry = f"notebooks/{path.stem}"
        if entry not in listed:
            messages.append(
                f"{path.name}: not in _toc.yml. Fix: add `- file: {entry}` to it."
            )
    return messages


def toc_files(node: object) -> Iterator[str]:
    """The files that a table of contents lists, from the top."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("root", "file"):
                yield str(value)
            else:
                yield from toc_files(value)
    elif isinstance(node, list):
        for item in node:
            yield from toc_files(item)


def book_problems(root: Path = ROOT) -> list[str]:
    """Everything that is wrong with the form of the book, one message each."""
    repository = address.repository(root)
    messages: list[str] = []
    numbers: dict[str, str] = {}
    sentences: dict[str, str] = {}
    for path in chapters.chapter_paths(root):
        number = path.name[:2]
        if number.isdigit() and number in numbers:
            messages.append(
                f"{path.name}: {numbers[number]} has its number. Fix: give it another."
            )
        numbers.setdefault(number, path.name)
        try:
            notebook = chapters.read(path)
        except UserError as error:
            messages.append(str(error))
            continue
        text = path.read_text(encoding="utf-8")
        messages += problems(Chapter(path, text, notebook, repository))
        for index, cell in enumerate(notebook.cells):
            sentence = (
                "claim" in chapters.tags(cell) and chapters.split_claim(cell.source)[0]
            )
            if not sentence:
                continue
            place = chapters.where(path, index, cell)
            other = sentences.setdefault(sentence_key(sentence), path.name)
            if other != path.name:
                messages.append(f"{place}: a claim of {other} again. Fix: say it once.")
    return messages + toc_problems(root)


def fix(root: Path = ROOT) -> list[str]:
    """Write every notebook in canonical form; return the names of the changed."""
    readable = []
    for path in chapters.chapter_paths(root):
        notebook = chapters.read(path)
        if path.read_text(encoding="utf-8") != normalise.dumps(notebook):
            readable.append((path, notebook))
    for path, notebook in readable:
        normalise.write(path, notebook)
    return [path.name for path, _ in readable]


@command
def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Check the form of the chapters and that `_toc.yml` lists them all."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.notebooks.form", description=main.__doc__
    )
    parser.add_argument(
        "--fix", action="store_true", help="first write the canonical form"
    )
    parser.add_argument("--toc", action="store_true", help="only check _toc.yml")
    options = parser.parse_args(argv)
    if options.fix:
        for changed in fix(root):
            print(f"{changed}: written in canonical form")
    found = toc_problems(root) if options.toc else book_problems(root)
    for message in found:
        print(message)
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
