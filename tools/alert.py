"""The alert of the weekly check: which claims broke, from the JUnit XML of its runs.

    python -m tools.alert report NAME=RESULTS/junit.xml ... > issue.md

Each NAME is a variant, such as `newest`. Beside its junit.xml may lie `versions.txt`
(what `pip freeze` printed) and `outcome.txt` (how `make test` ended: `success` or
`failure`). A claim counts as holding only if its cell ran and passed: a file that is
missing or unreadable, and a claim that no test case covers, are reported too.

Exit status: 0 all claims of all variants hold, 1 a report was written, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

from tools import chapters
from tools.errors import UserError

ENGINES = ("tensorflow", "keras", "jax", "torch", "openvino", "numpy")
LONGEST = 300  # characters of an error that the report shows
MOST = 40  # findings of one kind that the report lists
# A colour as a terminal gets it, and as pytest writes it into XML.
COLOUR = re.compile(r"(?:\x1b|#x1B)\[[0-9;]*m")
EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Warning)\b.*")
HUNG = "Previous cell timed out"


@dataclasses.dataclass(frozen=True)
class Case:
    """One test case of a run: a notebook's cell, or any other test."""

    module: str  # such as `notebooks.03-list-devices.ipynb`
    name: str  # such as `Cell 4`
    outcome: str  # `passed`, `failed` or `skipped`
    text: str  # what the test said when it did not pass

    @property
    def notebook(self) -> str | None:
        """The notebook's path from the root, or None for a test of another kind."""
        if not self.module.endswith(".ipynb") or self.code_cell is None:
            return None
        return self.module.removesuffix(".ipynb").replace(".", "/") + ".ipynb"

    @property
    def code_cell(self) -> int | None:
        """The number of the cell among the notebook's code cells, from 0."""
        match = re.fullmatch(r"Cell (\d+)", self.name)
        return int(match[1]) if match else None


def read_cases(path: Path) -> list[Case]:
    """The test cases in a JUnit XML file; a `UserError` if there are none."""
    try:
        tree = ElementTree.parse(path)
    except FileNotFoundError:
        raise UserError("no test results: the run ended before its tests") from None
    except (OSError, ElementTree.ParseError) as error:
        raise UserError(f"the test results can't be read ({error})") from None
    cases = [_case(element) for element in tree.iter("testcase")]
    if not cases:
        raise UserError("the test results are empty: no test ran")
    return cases


def _case(element: ElementTree.Element) -> Case:
    outcome, text = "passed", ""
    for child in element:
        if child.tag in ("failure", "error", "skipped"):
            text = COLOUR.sub("", child.text or child.get("message", ""))
            # A cell after one that hung is no evidence, whether it passed or not.
            hung = HUNG in child.get("message", "")
            outcome = "skipped" if child.tag == "skipped" or hung else "failed"
    return Case(element.get("classname", ""), element.get("name", ""), outcome, text)


def last_words(text: str) -> str:
    """The one line of a failure that tells most: the exception, or what differs."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reason = next((x for x in lines if re.match(r"Cell \d+: ", x)), "")
    if "Timeout" in reason:
        return reason.partition(": ")[2]
    if "outputs differ" in reason:
        start = "assert reference_output == test_output failed:"
        after = lines[lines.index(start) + 1 :] if start in lines else lines[-1:]
        return "stored output differs: " + " ".join(after[:1])
    exceptions = [line for line in lines if EXCEPTION.match(line)]
    return (exceptions or lines or ["no message"])[-1]


def quote(text: str) -> str:
    """Text from a run as one line of code, so that nothing in it acts as Markdown."""
    line = " ".join(text.split()).replace("`", "'")
    return f"`{line[:LONGEST]}…`" if len(line) > LONGEST else f"`{line}`"


def listed(title: str, lines: list[str]) -> list[str]:
    """A titled list in Markdown, cut when it gets too long; nothing for no lines."""
    if not lines:
        return []
    rest = len(lines) - MOST
    more = [f"- … and {rest} more"] if rest > 0 else []
    return [f"**{title}**", "", *lines[:MOST], *more, ""]


class Book:
    """The chapters, to look up which claim or cell a test case is about."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.unread: list[str] = []
        self.cells: dict[tuple[str, int], str] = {}
        self.claims: dict[tuple[str, int], str] = {}
        for path in chapters.chapter_paths(root):
            try:
                self._add(path)
            except UserError as error:
                self.unread.append(f"- {error}")

    def _add(self, path: Path) -> None:
        name = path.relative_to(self.root).as_posix()
        notebook = chapters.read(path)
        claims = {claim.cell: claim for claim in chapters.claims(path, notebook)}
        code = [i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
        for number, index in enumerate(code):
            where = chapters.where(path, index, notebook.cells[index])
            self.cells[name, number] = where
            if index in claims:
                claim, place = claims[index], f"{path.name}, cell {index + 1}"
                self.claims[name, number] = (
                    f"**{claim.label}** {claim.sentence} ({place})"
                )


def findings(path: Path, book: Book) -> list[str]:
    """What one variant's run found wrong, in Markdown; empty if all is well."""
    try:
        cases = read_cases(path)
    except UserError as error:
        return [f"{error}. Its log in this workflow run says more.", ""]
    held = {(c.notebook, c.code_cell) for c in cases if c.outcome == "passed"}
    broken: list[str] = []
    cells: list[str] = []
    others: list[str] = []
    failed = set()
    for case in cases:
        if case.outcome != "failed":
            continue
        key = (case.notebook or "", case.code_cell or 0)
        failed.add(key)
        said = quote(last_words(case.text))
        if key in book.claims:
            broken.append(f"- {book.claims[key]}: {said}")
        elif case.notebook:
            name = f"{case.notebook}, code cell {case.code_cell}"
            cells.append(f"- {quote(book.cells.get(key, name))}: {said}")
        else:
            name = "::".join(filter(None, (case.module, case.name)))
            others.append(f"- {quote(name)}: {said}")
    unchecked = [
        f"- {text}" for key, text in book.claims.items() if key not in held | failed
    ]
    found = [
        *listed("Claims that broke", broken),
        *listed("Claims that were not checked", unchecked),
        *listed("Other cells that failed", cells),
        *listed("Other checks that failed", others),
        *listed("Chapters that can't be read", book.unread),
    ]
    outcome = beside(path, "outcome.txt") or "success"
    if not found and outcome != "success":
        found = [f"All tests passed, but `make test` ended with {quote(outcome)}.", ""]
    return found


def beside(path: Path, name: str) -> str:
    """The text of a file beside a variant's results, or nothing if it is not there."""
    try:
        text = path.with_name(name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.strip()


def versions(path: Path) -> str:
    """The versions that a variant ran with, as one line, or nothing if unknown."""
    lines = beside(path, "versions.txt").splitlines()
    python = [line for line in lines if line.startswith("Python ")]
    pins = dict(line.split("==", 1) for line in lines if "==" in line)
    return ", ".join(python + [f"{x} {pins[x]}" for x in ENGINES if x in pins])


def report(variants: dict[str, Path], root: Path = chapters.ROOT) -> str | None:
    """The text of the alert in Markdown, or None if all claims of all variants hold."""
    book = Book(root)
    found = {name: findings(path, book) for name, path in variants.items()}
    red = [name for name in variants if found[name]]
    if not red:
        return None
    lines = [
        f"The weekly check is red in {len(red)} of {len(variants)} variants: "
        "what the book says no longer holds there, or could not be checked.",
        "",
    ]
    for name in red:
        used = versions(variants[name])
        lines += [f"## {name}", "", *([f"With {used}.", ""] if used else [])]
        lines += found[name]
    green = [name for name in variants if name not in red]
    if green:
        lines += [f"Green: {', '.join(green)}.", ""]
    return "\n".join(lines)


def _variant(argument: str) -> tuple[str, Path]:
    name, equals, path = argument.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(
            f"{argument!r} is not NAME=FILE, such as newest=results/newest/junit.xml"
        )
    return name, Path(path)


def main(arguments: list[str] | None = None) -> int:
    """Print the report of the variants that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tools.alert")
    command = parser.add_subparsers(required=True).add_parser(
        "report", help="print which claims broke, in Markdown"
    )
    command.add_argument("variants", nargs="+", type=_variant, metavar="NAME=FILE")
    given = parser.parse_args(arguments).variants
    variants = dict(given)
    if len(variants) < len(given):
        parser.error("a variant is named twice")
    text = report(variants)
    if text is None:
        return 0
    print(text, end="")
    return 1


if __name__ == "__main__":
    sys.exit(main())
