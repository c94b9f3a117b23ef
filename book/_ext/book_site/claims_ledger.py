"""The claims ledger: every claim of the book, made from the notebooks at build time.

The directive `claims-ledger` gives the counts, then for each chapter what its claims
were verified with, and the claims, each with a link to the cell that asserts it. One
that its verified run could not check is marked, with the reason and with the machines
on which it held, from `book/machines.json`. A table and marks say with which versions
the claims held, from `book/versions.json`.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import re
from pathlib import Path

import nbformat
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from book_site import version_marks
from book_site.chapter_pages import link, sentence_nodes
from tools.drift import machines, versions
from tools.model import chapters, outcomes
from tools.model.errors import UserError

LOGGER = logging.getLogger(__name__)
COLOURS = re.compile(r"\x1b\[[\d;]*m")
HEAD = (
    *("Set", "Date"),
    *(outcome.capitalize() for outcome in version_marks.GLYPHS),
)
MARK = "claims-ledger"  # the metadata of a page that holds the ledger


@dataclasses.dataclass(frozen=True)
class Entry:
    """A chapter in the ledger."""

    docname: str
    number: int
    notebook: nbformat.NotebookNode
    claims: list[chapters.Claim]

    @property
    def title(self) -> str:
        """The notebook's first heading."""
        for cell in self.notebook.cells:
            for line in cell.source.splitlines():
                if cell.cell_type == "markdown" and line.startswith("# "):
                    return line.removeprefix("# ").strip()
        return self.docname

    @property
    def compared(self) -> tuple[int, int]:
        """How many cells have their stored text compared, and how many have text."""
        cells = [cell for cell in self.notebook.cells if chapters.has_text_output(cell)]
        return sum(chapters.is_compared(cell) for cell in cells), len(cells)

    def why_not_checked(self, claim: chapters.Claim) -> str:
        """The reason that the verified run gave, or nothing if the claim held there."""
        return "; ".join(outcomes.reasons(self.notebook.cells[claim.cell].outputs))

    @functools.cached_property
    def said(self) -> str:
        """What the notebook prints, and the code of its claims, with single spaces."""
        parts = []
        for cell in self.notebook.cells:
            if cell.cell_type != "code":
                continue
            if "claim" in chapters.tags(cell):
                parts.append(re.sub(r"\"\s*\n\s*f?\"", "", cell.source))
            for output in cell.outputs:
                data = output.get("data", {}).get("text/plain", "")
                parts += [output.get("text", ""), data, output.get("evalue", "")]
                parts += output.get("traceback", [])
        return " ".join(COLOURS.sub("", " ".join(parts)).split())


def entries(env: BuildEnvironment) -> list[Entry]:
    """The chapters that are part of the site, in order; a broken one is a warning."""
    found = []
    for path in chapters.chapter_paths(Path(env.srcdir)):
        docname = env.path2doc(str(path))
        if docname not in env.found_docs:
            continue
        try:
            notebook = chapters.read(path)
            claims = chapters.claims(path, notebook)
            number = chapters.chapter_number(path)
        except UserError as error:
            LOGGER.warning("%s", error, type="book", subtype="claim")
            continue
        found.append(Entry(docname, number, notebook, claims))
    return found


def readable(date: str) -> str:
    """An ISO date as `21 November 2026`."""
    day = datetime.date.fromisoformat(date)
    return f"{day.day} {day:%B %Y}"


def short(date: str) -> str:
    """An ISO date as `21 Nov 2026`, which is not broken into lines."""
    day = datetime.date.fromisoformat(date)
    return f"{day.day} {day:%b %Y}".replace(" ", "\u00a0")


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural where it takes one."""
    return noun if number == 1 else f"{noun}s"


def held_elsewhere(env: BuildEnvironment) -> dict[str, list[str]]:
    """On which machines each claim held, by its label; a bad record is a warning.

    Where there is no record, the page *Other machines* says so.
    """
    if not (Path(env.srcdir) / machines.RECORD).exists():
        return {}
    try:
        return machines.held_anywhere(Path(env.srcdir))
    except UserError as error:
        LOGGER.warning("%s", error, type="book", subtype="claim")
        return {}


def not_checked_nodes(reason: str, held: list[str]) -> nodes.inline:
    """What is said of a claim that the verified run could not check.

    Args:
        reason: why it could not be checked.
        held: the machines on which the claim held.
    """
    said = nodes.inline(classes=["ledger-unchecked"])
    said += nodes.strong("", "Not checked")
    said += nodes.Text(f" in this run: {reason}. ")
    where = " and ".join(held)
    said += nodes.Text(
        f"It held on: {where}." if where else "It never held anywhere yet."
    )
    return said


def not_held_nodes(
    claim: chapters.Claim, sets: list[versions.Results]
) -> list[nodes.inline]:
    """What is said of a claim that did not hold, or was not checked, with some sets."""
    said: dict[tuple[str, str], list[str]] = {}
    for one in sets:
        tried = one.claim(claim.sentence)
        if tried.outcome in (outcomes.BROKEN, outcomes.UNCHECKED):
            said.setdefault((tried.outcome, tried.reason), []).append(one.row.title)
    lines = []
    for (outcome, reason), titles in said.items():
        line = nodes.inline(classes=["ledger-unchecked"])
        line += nodes.strong("", outcome.capitalize())
        line += nodes.Text(f" with {version_marks.joined(titles)}: ")
        if outcome == outcomes.BROKEN:
            line += nodes.literal("", reason or "no message")
        else:
            line += sentence_nodes(f"{reason or 'no reason was given'}.")
        lines.append(line)
    return lines


def version_table(
    sets: list[versions.Results], claims: list[chapters.Claim]
) -> nodes.table:
    """A row for each set of versions: when it was tried, and its counts."""
    lines = [HEAD]
    for one in sets:
        date = [short(one.entry["date"])] if one.entry else [""]
        counts = version_marks.count(one, claims)
        lines.append((one.row.title, *date, *map(str, counts)))
    table = nodes.table(classes=["versions"])
    group = nodes.tgroup(cols=len(HEAD))
    group += [nodes.colspec(colwidth=1) for _ in HEAD]
    rows = [
        nodes.row("", *(nodes.entry("", nodes.paragraph("", x)) for x in line))
        for line in lines
    ]
    group += [nodes.thead("", rows[0]), nodes.tbody("", *rows[1:])]
    table += group
    return table


class ClaimsLedger(SphinxDirective):
    """Write the ledger where the directive stands."""

    def run(self) -> list[nodes.Node]:
        """The counts, then a section for each chapter."""
        found = entries(self.env)
        self.env.metadata[self.env.docname][MARK] = "yes"
        self.env.note_dependency(str(Path(self.env.srcdir, machines.RECORD)))
        self.sets = version_marks.known(self.env)
        for entry in found:
            self.env.note_dependency(self.env.doc2path(entry.docname))
        parts = [self.other_versions(found), *(self.section(entry) for entry in found)]
        return [self.counts(found), *parts]

    @functools.cached_property
    def held(self) -> dict[str, list[str]]:
        """On which machines each claim held: read once, and only if it is asked for."""
        return held_elsewhere(self.env)

    def counts(self, found: list[Entry]) -> nodes.container:
        """The numbers at the top."""
        claims = sum(len(entry.claims) for entry in found)
        unchecked = sum(
            bool(entry.why_not_checked(claim))
            for entry in found
            for claim in entry.claims
        )
        compared = sum(entry.compared[0] for entry in found)
        outputs = sum(entry.compared[1] for entry in found)
        share = f"{100 * compared // outputs} %" if outputs else "none"
        tiles = [
            (str(claims), f"{counted(claims, 'claim')} asserted"),
            (str(len(found)), counted(len(found), "chapter")),
            (str(unchecked), "not checked in the verified run"),
            (share, f"of outputs compared ({compared} of {outputs} cells)"),
        ]
        box = nodes.container(classes=["ledger-counts"])
        for number, text in tiles:
            tile = nodes.paragraph(classes=["ledger-count"])
            tile += nodes.strong("", number)
            tile += nodes.Text(" ")
            tile += nodes.inline("", text)
            box += tile
        return box

    def other_versions(self, found: list[Entry]) -> nodes.section:
        """With which versions the claims were tried, and how many held."""
        section = nodes.section(ids=[version_marks.SECTION])
        section += nodes.title("", "With other versions")
        self.state.document.note_explicit_target(section, section)
        if not any(one.entry for one in self.sets):
            section += nodes.paragraph("", "Not run yet; ", classes=["ledger-verified"])
            section[-1] += [nodes.literal("", "make versions"), nodes.Text(" does it.")]
            return section
        claims = [claim for entry in found for claim in entry.claims]
        section += version_table(self.sets, claims)
        numbers = {entry.number for entry in found}
        rows = nodes.bullet_list(classes=["versions"])
        for one in self.sets:
            line = nodes.paragraph("", "", nodes.strong("", one.row.title))
            line += nodes.Text(": ")
            line += sentence_nodes(version_marks.about(one, numbers))
            rows += nodes.list_item("", line)
        section += rows
        section += nodes.paragraph("", version_marks.LEGEND)
        return section

    def section(self, entry: Entry) -> nodes.section:
        """One chapter's part of the ledger."""
        section = nodes.section(ids=[f"chapter-{entry.number}"])
        title = nodes.title("", f"{entry.number}. ")
        title += sentence_nodes(entry.title)
        section += title
        self.state.document.note_explicit_target(section, section)
        section += self.verified(entry)
        section += self.claims(entry)
        return section

    def verified(self, entry: Entry) -> nodes.paragraph:
        """With what, and when, the chapter was verified."""
        known = entry.notebook.metadata.get("book", {}).get("verified")
        line = nodes.paragraph(classes=["ledger-verified"])
        if not known:
            line += nodes.Text("Not verified yet.")
            return line
        packages = ", ".join(f"{k} {v}" for k, v in known.get("packages", {}).items())
        where = f"Python {known['python']} on {known['platform']}"
        text = f"Verified on {readable(known['date'])} with {where}"
        line += nodes.Text(f"{text}: {packages}." if packages else f"{text}.")
        return line

    def claims(self, entry: Entry) -> nodes.Node:
        """The chapter's claims, each with a link to its cell."""
        if not entry.claims:
            return nodes.paragraph("", "This chapter makes no claims.")
        standard = self.env.get_domain("std")
        rows = nodes.bullet_list(classes=["ledger"])
        for claim in entry.claims:
            anchor = f"ledger-{claim.anchor}"
            text = nodes.paragraph()
            text += link(claim.anchor, claim.label, self.env.docname, "ledger-label")
            text += nodes.Text(" ")
            text += sentence_nodes(claim.sentence)
            text += version_marks.marks(claim, self.sets)
            reason = entry.why_not_checked(claim)
            if reason:
                text += not_checked_nodes(reason, self.held.get(claim.label, []))
            text += not_held_nodes(claim, self.sets)
            rows += nodes.list_item("", text, ids=[anchor])
            standard.anonlabels[anchor] = (self.env.docname, anchor)
        return rows


def outdated(
    app: Sphinx,
    env: BuildEnvironment,
    added: set[str],
    changed: set[str],
    removed: set[str],
) -> list[str]:
    """Make the ledger anew when a notebook joins; Sphinx sees those that change."""
    if not any(docname.startswith("notebooks/") for docname in added):
        return []
    return [doc for doc in env.found_docs if MARK in env.metadata[doc]]


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_directive("claims-ledger", ClaimsLedger)
    app.connect("env-get-outdated", outdated)
