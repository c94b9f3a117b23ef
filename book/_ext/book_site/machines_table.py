"""The page Other machines: where the book's claims held, made from book/machines.json.

The directive `machines-table` gives a table with a row for each machine, then a section
for each with the claims that did not hold there and why. A record that is missing or
invalid is a warning that names the fix, and so an error of the build.
"""

from __future__ import annotations

import collections
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from book_site.chapter_pages import link, sentence_nodes
from book_site.claims_ledger import MARK, counted, entries, readable, short
from book_site.version_marks import joined, listed
from tools.drift import machines
from tools.model import outcomes
from tools.model.errors import UserError

LOGGER = logging.getLogger(__name__)
HEAD = ("Machine", "Processor or versions", "Date", "Held", "Broken", "Not checked")


def difference(entry: dict, first: dict) -> str:
    """What a row's machine has and the first row's has not.

    The versions if they differ, otherwise the processor.
    """
    if "same as" in entry:
        return "the versions of the first row"
    usual = first.get("versions", {})
    other = {x: v for x, v in entry["versions"].items() if usual.get(x) != v}
    return listed(other) if other and entry is not first else entry["processor"]


class MachinesTable(SphinxDirective):
    """Write the table and the sections where the directive stands."""

    def run(self) -> list[nodes.Node]:
        """The table, then a section for each row."""
        self.env.metadata[self.env.docname][MARK] = "yes"
        root = Path(self.env.srcdir)
        self.env.note_dependency(str(root / machines.RECORD))
        try:
            self.rows = machines.load(root)
        except UserError as error:
            where = (self.env.docname, self.lineno)
            kind = {"type": "book", "subtype": "machines"}
            LOGGER.warning("%s", error, location=where, **kind)
            return []
        self.claims = {}
        self.chapters = set()
        for entry in entries(self.env):
            self.env.note_dependency(self.env.doc2path(entry.docname))
            self.chapters.add(entry.number)
            for claim in entry.claims:
                self.claims[machines.fingerprint(claim.sentence)] = claim
        return [self.table(), *map(self.section, machines.ROWS)]

    # The table

    def table(self) -> nodes.table:
        """A row for each machine."""
        table = nodes.table(classes=["machines"])
        group = nodes.tgroup(cols=len(HEAD))
        group += [nodes.colspec(colwidth=1) for _ in HEAD]
        head = nodes.row()
        head += [cell(nodes.Text(text)) for text in HEAD]
        group += nodes.thead("", head)
        body = nodes.tbody()
        body += map(self.row, machines.ROWS)
        group += body
        table += group
        return table

    def row(self, row: machines.Row) -> nodes.row:
        """One machine: what it has, when it was tried, and its counts."""
        title = nodes.reference("", row.title, refid=f"machine-{row.name}")
        cells = self.cells_of(self.rows.get(row.name))
        return nodes.row("", cell(title), *cells)

    def cells_of(self, entry: dict | None) -> list[nodes.entry]:
        """The cells beside a machine's name."""
        if entry is None:
            return [cell(), cell(), words("not run yet")]
        date = cell(nodes.Text(short(entry["date"])))
        if "could not run" in entry:
            return [cell(), date, words("could not run")]
        usual = self.rows.get(machines.ROWS[0].name, {})
        first = cell(nodes.Text(difference(entry, usual)))
        if "same as" in entry:
            return [first, date, words("as in the first row")]
        counts = [cell(nodes.Text(str(entry["counts"][what]))) for what in outcomes.ALL]
        if entry["counts"]["broken"]:
            counts[1]["classes"].append("machine-broken")
        return [first, date, *counts]

    # The sections

    def section(self, row: machines.Row) -> nodes.section:
        """What one machine stands for, and what did not hold there."""
        section = nodes.section(ids=[f"machine-{row.name}"])
        section += nodes.title("", row.title)
        self.state.document.note_explicit_target(section, section)
        section += nodes.paragraph("", "", *sentence_nodes(row.about))
        entry = self.rows.get(row.name)
        if entry is None:
            section += self.command("Not run yet; to run it:", row)
        elif "could not run" in entry:
            text = f"Could not run on {readable(entry['date'])}: "
            section += nodes.paragraph("", text + entry["could not run"])
        elif "same as" in entry:
            section += self.nothing_new(entry)
        else:
            section += self.provenance(entry)
            for what in ("broken", "not checked"):
                section += self.claims_that_are(what, entry)
            section += self.cells(entry)
            section += self.newer(entry)
        return section

    def command(self, text: str, row: machines.Row) -> nodes.paragraph:
        """How to run a row."""
        line = nodes.paragraph("", f"{text} ", classes=["ledger-verified"])
        line += nodes.literal("", f'make machines ROWS="{row.name}"')
        return line

    def nothing_new(self, entry: dict) -> nodes.paragraph:
        """That a row's versions are those of the first one."""
        others = entry.get("other versions", {})
        text = f"On {readable(entry['date'])} these were the versions of the first row"
        if others:
            text += f"; only packages below them were newer ({listed(others)})"
        return nodes.paragraph("", f"{text}. So nothing was run twice.")

    def provenance(self, entry: dict) -> nodes.paragraph:
        """When, where and with what a row was run, and how long it took."""
        ran = entry["chapters"]
        minutes = max(1, round(entry["seconds"] / 60))
        text = (
            f"Run on {readable(entry['date'])} in {minutes} "
            f"{counted(minutes, 'minute')} on {entry['processor']}, with Python "
            f"{entry['python']}, {listed(entry['versions'])}: "
            f"{entry['cells']} {counted(entry['cells'], 'cell')}"
        )
        if self.chapters - set(ran):
            text += f" of {counted(len(ran), 'chapter')} {joined(map(str, ran))}"
        return nodes.paragraph("", f"{text}.", classes=["ledger-verified"])

    def claims_that_are(self, what: str, entry: dict) -> list[nodes.Node]:
        """The claims with one outcome, below each reason that they share."""
        groups = collections.defaultdict(list)
        for claim in entry["not held"]:
            if claim["outcome"] == what:
                groups[claim["reason"]].append(claim)
        if not groups:
            return []
        rows = nodes.bullet_list(classes=["machine-claims"])
        for reason, claims in groups.items():
            item = nodes.list_item()
            item += [self.claim(claim) for claim in claims]
            item += why(reason, what == "broken")
            rows += item
        return [nodes.rubric("", what.capitalize()), rows]

    def claim(self, known: dict) -> nodes.paragraph:
        """A claim of a run: a link to it if the book still makes it."""
        claim = self.claims.get(machines.fingerprint(known["sentence"]))
        text = nodes.paragraph()
        if claim is None:
            text += nodes.inline("", known["label"], classes=["ledger-label"])
            text += nodes.emphasis("", " (worded otherwise by now)")
        else:
            docname = self.env.docname
            text += link(claim.anchor, claim.label, docname, "ledger-label")
        text += nodes.Text(" ")
        text += sentence_nodes(known["sentence"])
        return text

    def cells(self, entry: dict) -> list[nodes.Node]:
        """The cells that failed and assert no claim."""
        if not entry["failed cells"]:
            return []
        rows = nodes.bullet_list(classes=["machine-claims"])
        for failed in entry["failed cells"]:
            name = nodes.paragraph("", "", nodes.literal("", failed["cell"]))
            rows += nodes.list_item("", name, why(failed["reason"], broken=True))
        return [nodes.rubric("", "Other cells that failed"), rows]

    def newer(self, entry: dict) -> list[nodes.Node]:
        """How many claims the row's chapters make that it has not seen."""
        seen = machines.held_fingerprints(entry)
        seen |= {machines.fingerprint(x["sentence"]) for x in entry["not held"]}
        chapter_numbers = set(entry["chapters"])
        unseen = sum(
            claim.chapter in chapter_numbers and name not in seen
            for name, claim in self.claims.items()
        )
        if not unseen:
            return []
        text = (
            f"{unseen} {counted(unseen, 'claim')} of today's book came after this run."
        )
        return [nodes.paragraph("", text, classes=["ledger-verified"])]


def cell(*content: nodes.Node) -> nodes.entry:
    """A cell of the table."""
    return nodes.entry("", nodes.paragraph("", "", *content))


def words(text: str) -> nodes.entry:
    """Words in place of the counts."""
    entry = cell(nodes.Text(text))
    entry["morecols"] = len(outcomes.ALL) - 1
    return entry


def why(reason: str, broken: bool) -> nodes.paragraph:
    """A reason: what a program said as code, what a chapter says as a sentence."""
    text = nodes.paragraph(classes=["machine-reason"])
    if not reason:
        text += nodes.Text("No reason was given.")
    elif broken:
        text += nodes.literal("", reason)
    else:
        text += [nodes.Text("Why: "), *sentence_nodes(reason)]
    return text


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_directive("machines-table", MachinesTable)
