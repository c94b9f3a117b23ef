"""The claims ledger: every claim of the book, made from the notebooks at build time.

The directive `claims-ledger` gives the counts, then for each chapter what its claims
were verified with, and the claims, each with a link to the cell that asserts it. One
that its verified run could not check is marked, with the reason. A table and marks say
with which versions the claims held, from `book/versions.json`.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from book_site import version_marks
from book_site.chapter_pages import site_chapters
from book_site.markup import link, section, sentence_nodes
from book_site.words import date_in_words, joined
from tools.model import chapters, outcomes
from tools.model.chapters import KINDS, Chapter, Claim
from tools.model.claims_file import why_not_checked
from tools.versions.record import VersionSet

HEAD = (
    *("Set", "Date"),
    *(outcome.capitalize() for outcome in version_marks.GLYPHS),
)


def compared(chapter: Chapter) -> tuple[int, int]:
    """How many cells have their stored text compared, and how many have text."""
    cells = [cell for cell in chapter.cells if chapters.has_text_output(cell)]
    return sum(map(chapters.is_compared, cells)), len(cells)


def counts(found: list[Chapter]) -> nodes.container:
    """The numbers at the top."""
    reasons = [why_not_checked(x, claim) for x in found for claim in x.claims]
    unchecked = sum(map(bool, reasons))
    same = sum(compared(chapter)[0] for chapter in found)
    outputs = sum(compared(chapter)[1] for chapter in found)
    share = f"{100 * same // outputs} %" if outputs else "none"
    kinds = [claim.kind for chapter in found for claim in chapter.claims]
    tiles = [
        (len(reasons), "claims asserted", ""),
        *((kinds.count(x), f"{x}: {words}", f"kind-{x}") for x, words in KINDS.items()),
        (unchecked, "not checked in the verified run", ""),
        (share, f"of outputs compared ({same} of {outputs} cells)", ""),
    ]
    box = nodes.container(classes=["ledger-counts"])
    for number, text, kind in tiles:
        tile = nodes.paragraph("", "", nodes.strong("", str(number)))
        tile["classes"] = ["ledger-count", *filter(None, [kind])]
        tile += [nodes.Text(" "), nodes.inline("", text)]
        box += tile
    return box


def version_table(sets: list[VersionSet], claims: list[Claim]) -> nodes.table:
    """A row for each set of versions: when it was tried, and its counts."""
    lines = [HEAD]
    for one in sets:
        date = date_in_words(one.run["date"]) if one.run else ""
        numbers = map(str, version_marks.count(one, claims))
        lines.append((one.title, date, *numbers))
    rows = [
        nodes.row("", *(nodes.entry("", nodes.paragraph("", x)) for x in line))
        for line in lines
    ]
    group = nodes.tgroup(cols=len(HEAD))
    group += [nodes.colspec(colwidth=1) for _ in HEAD]
    group += [nodes.thead("", rows[0]), nodes.tbody("", *rows[1:])]
    return nodes.table("", group, classes=["versions"])


def verified(chapter: Chapter) -> nodes.paragraph:
    """With what, and when, a chapter was verified."""
    known = chapter.notebook.metadata.get("book", {}).get("verified")
    text = "Not verified yet."
    if known:
        packages = ", ".join(f"{k} {v}" for k, v in known.get("packages", {}).items())
        text = (
            f"Verified on {date_in_words(known['date'])} with Python {known['python']} "
            f"on {known['platform']}{': ' if packages else ''}{packages}."
        )
    return nodes.paragraph("", text, classes=["ledger-verified"])


def not_checked_nodes(reason: str) -> nodes.inline:
    """What is said of a claim that the verified run could not check, for a reason."""
    text = nodes.inline(classes=["ledger-unchecked"])
    text += nodes.strong("", "Not checked")
    text += nodes.Text(f" in this run: {reason}.")
    return text


def not_held_nodes(claim: Claim, sets: list[VersionSet]) -> list[nodes.inline]:
    """What is said of a claim that did not hold, or was not checked, with some sets."""
    groups: dict[tuple[str, str], list[str]] = {}
    for one in sets:
        tried = one.tried(claim.sentence)
        if tried.outcome in (outcomes.BROKEN, outcomes.UNCHECKED):
            groups.setdefault((tried.outcome, tried.reason), []).append(one.title)
    lines = []
    for (outcome, reason), names in groups.items():
        line = nodes.inline(classes=["ledger-unchecked"])
        line += nodes.strong("", outcome.capitalize())
        line += nodes.Text(f" with {joined(names)}: ")
        if outcome == outcomes.BROKEN:
            line += nodes.literal("", reason or "no message")
        else:
            line += sentence_nodes(f"{reason or 'no reason was given'}.")
        lines.append(line)
    return lines


class ClaimsLedger(SphinxDirective):
    """Write the ledger where the directive stands."""

    def run(self) -> list[nodes.Node]:
        """The counts, the versions, then a section for each chapter."""
        self.sets = version_marks.known_sets(self.env)
        found = site_chapters(self.env)
        parts = [counts(found), self.other_versions(found)]
        return parts + [self.chapter(chapter) for chapter in found]

    def other_versions(self, found: list[Chapter]) -> nodes.section:
        """With which versions the claims were tried, and how many held."""
        part = section(self, "versions", "With other versions")
        part += version_table(self.sets, [x for y in found for x in y.claims])
        numbers = {chapter.number for chapter in found}
        rows = nodes.bullet_list(classes=["versions"])
        for one in self.sets:
            text = sentence_nodes(version_marks.about(one, numbers))
            title = nodes.strong("", one.title)
            line = nodes.paragraph("", "", title, nodes.Text(": "), *text)
            rows += nodes.list_item("", line)
        part += [rows, nodes.paragraph("", version_marks.LEGEND)]
        return part

    def chapter(self, chapter: Chapter) -> nodes.section:
        """A chapter's claims, each with a link to its cell."""
        title = f"{chapter.number}. {chapter.title}"
        part = section(self, f"chapter-{chapter.number}", title)
        part += verified(chapter)
        rows = nodes.bullet_list(classes=["ledger"])
        for claim in chapter.claims:
            rows += self.claim(chapter, claim)
        part += rows
        return part

    def claim(self, chapter: Chapter, claim: Claim) -> nodes.list_item:
        """A claim: its link, its sentence, and where it did not hold."""
        anchor, docname = f"ledger-{claim.anchor}", self.env.docname
        text = nodes.paragraph()
        text += link(claim.anchor, claim.label, docname, "ledger-label")
        text += [nodes.Text(" "), *sentence_nodes(claim.sentence)]
        text += [nodes.Text(" "), nodes.inline("", claim.kind, classes=["claim-kind"])]
        text += version_marks.marks(claim, self.sets)
        if reason := why_not_checked(chapter, claim):
            text += not_checked_nodes(reason)
        text += not_held_nodes(claim, self.sets)
        labels = self.env.get_domain("std").anonlabels
        labels[anchor] = (docname, anchor)
        return nodes.list_item("", text, ids=[anchor], classes=[f"kind-{claim.kind}"])


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_directive("claims-ledger", ClaimsLedger)
