"""The alert of the weekly check: which claims broke, from the reports of its runs.

    python -m tools.drift.alert report NAME=FOLDER ... > issue.md

Each NAME is a variant, such as `newest`, and its folder holds the reports of `make
test`: `claims.xml`, `tests.xml` and `parts.json`, and beside them what `pip freeze`
printed, `versions.txt`, and how the run ended, `outcome.txt` (`success` or `failure`).

A claim *held* only if its cell ran and an assertion in it passed. A broken claim is
red, and so is one of which the run says nothing: its reports are missing or unreadable,
or no test case covers it. One that says itself that it was *not checked*, and why, is
counted and named, but is not red. Parts of the run that did not pass are.

Exit status: 0 nothing is red, 1 a report was written, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from xml.etree import ElementTree

from tools.installed import ENGINES
from tools.model import chapters, outcomes
from tools.model.errors import UserError

LONGEST = 300  # characters of an error that the report shows
MOST = 40  # findings of one kind that the report lists


@dataclasses.dataclass(frozen=True)
class Case:
    """One test case of a run: a notebook's cell, or any other test."""

    name: str  # such as `tests.test_site::test_links`
    notebook: str  # its path from the root, or nothing for a test of another kind
    cell: int  # the cell's index in the notebook, from 0
    outcome: str  # `held`, `broken` or `not checked`
    reason: str


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
    known = {x.get("name", ""): x.get("value", "") for x in element.iter("property")}
    outcome, text = outcomes.HELD, ""
    for child in element:
        if child.tag in ("failure", "error", "skipped"):
            skipped = child.tag == "skipped"
            outcome = outcomes.UNCHECKED if skipped else outcomes.BROKEN
            text = child.text or child.get("message", "")
    name = "::".join(filter(None, (element.get("classname"), element.get("name"))))
    return Case(
        name,
        known.get("notebook", ""),
        int(known.get("cell", "0")),
        known.get("outcome", outcome),
        known.get("reason") or (outcomes.last_words(text) if text else ""),
    )


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
        for claim in chapters.claims(path, notebook):
            place = f"{path.name}, cell {claim.cell + 1}"
            self.claims[name, claim.cell] = (
                f"**{claim.label}** {claim.sentence} ({place})"
            )
        for index, cell in enumerate(notebook.cells):
            self.cells[name, index] = chapters.where(path, index, cell)


@dataclasses.dataclass
class Result:
    """What one variant's run says."""

    red: list[str]  # what is wrong, in Markdown
    rest: list[str]  # what was not checked, in Markdown
    counts: str  # such as `440 held, 2 broken, 13 not checked`


def result(folder: Path, book: Book) -> Result:
    """Read one variant's reports."""
    try:
        cases = read_cases(folder / "claims.xml")
    except UserError as error:
        return Result([f"{error}. Its log in this workflow run says more.", ""], [], "")
    said = {(case.notebook, case.cell): case for case in cases if case.notebook}
    lists: dict[str, list[str]] = {outcome: [] for outcome in outcomes.ALL}
    silent, cells = [], []
    for key, claim in book.claims.items():
        if key in said:
            lists[said[key].outcome].append(f"- {claim}: {quote(said[key].reason)}")
        else:
            silent.append(f"- {claim}")
    for key, case in said.items():
        if key not in book.claims and case.outcome == outcomes.BROKEN:
            name = book.cells.get(key, f"{case.notebook}, cell {case.cell + 1}")
            cells.append(f"- {quote(name)}: {quote(case.reason)}")
    broken, unchecked = lists[outcomes.BROKEN], lists[outcomes.UNCHECKED]
    red = [
        *listed("Claims that broke", broken),
        *listed("Claims that the run says nothing of", silent),
        *listed("Other cells that failed", cells),
        *listed("Other checks that failed", others(cases, folder)),
        *listed("Chapters that can't be read", book.unread),
        *listed("Parts of the run that did not pass", parts(folder)),
    ]
    ended = beside(folder, "outcome.txt") or "success"
    if not red and ended != "success":
        red = [f"All tests passed, but `make test` ended with {quote(ended)}.", ""]
    rest = listed("Claims that were not checked", unchecked)
    counts = ", ".join(f"{len(lists[x])} {x}" for x in outcomes.ALL)
    return Result(red, rest, counts)


def others(cases: list[Case], folder: Path) -> list[str]:
    """The test cases that failed and are no cells of a notebook."""
    if (folder / "tests.xml").exists():
        try:
            cases = cases + read_cases(folder / "tests.xml")
        except UserError as error:
            return [f"- tests: {error}"]
    return [
        f"- {quote(case.name)}: {quote(case.reason)}"
        for case in cases
        if not case.notebook and case.outcome == outcomes.BROKEN
    ]


def parts(folder: Path) -> list[str]:
    """The parts of `make test` that did not pass, apart from the claims."""
    text = beside(folder, "parts.json")
    try:
        known = json.loads(text) if text else {}
        return [
            f"- {name}: {part['outcome']}" + (f", {quote(said)}" if said else "")
            for name, part in known.items()
            for said in [part.get("said", "")]
            if name != "claims" and part["outcome"] != "passed"
        ]
    except (ValueError, KeyError, AttributeError, TypeError):
        return ["- `parts.json` can't be read"]


def beside(folder: Path, name: str) -> str:
    """The text of a file in a variant's folder, or nothing if it is not there."""
    try:
        text = (folder / name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.strip()


def versions(folder: Path) -> str:
    """The versions that a variant ran with, as one line, or nothing if unknown."""
    lines = beside(folder, "versions.txt").splitlines()
    python = [line for line in lines if line.startswith("Python ")]
    pins = dict(line.split("==", 1) for line in lines if "==" in line)
    return ", ".join(python + [f"{x} {pins[x]}" for x in ENGINES if x in pins])


def report(variants: dict[str, Path], root: Path = chapters.ROOT) -> tuple[str, bool]:
    """The text of the report in Markdown, and whether anything is red."""
    book = Book(root)
    found = {name: result(folder, book) for name, folder in variants.items()}
    red = [name for name in variants if found[name].red]
    lines = [
        f"The weekly check is red in {len(red)} of {len(variants)} variants: "
        "what the book says no longer holds there, or nobody can tell."
        if red
        else "All claims that were checked hold.",
        "",
    ]
    for name in [*red, *(name for name in variants if name not in red)]:
        used, this = versions(variants[name]), found[name]
        lines += [f"## {name}" + ("" if this.red else ": green"), ""]
        about = [f"With {used}." if used else "", f"Claims: {this.counts}."]
        lines += [" ".join(filter(None, about if this.counts else about[:1])), ""]
        lines += [*this.red, *this.rest]
    return "\n".join(lines), bool(red)


def _variant(argument: str) -> tuple[str, Path]:
    name, equals, path = argument.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(
            f"{argument!r} is not NAME=FOLDER, such as newest=results/newest"
        )
    return name, Path(path)


def main(arguments: list[str] | None = None) -> int:
    """Print the report of the variants that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tools.drift.alert")
    command = parser.add_subparsers(required=True).add_parser(
        "report", help="print what became of the claims, in Markdown"
    )
    command.add_argument("variants", nargs="+", type=_variant, metavar="NAME=FOLDER")
    given = parser.parse_args(arguments).variants
    variants = dict(given)
    if len(variants) < len(given):
        parser.error("a variant is named twice")
    text, red = report(variants)
    print(text, end="")
    return int(red)


if __name__ == "__main__":
    sys.exit(main())
