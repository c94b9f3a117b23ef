"""Lists of entries, each of which stands on a claim of the book.

A page's directive reads the file beside the page that is named like it, a list of
entries in YAML, and writes one list for each chapter that proves some. `claim` is how
the sentence of the claim begins; the other fields are the directive's own. An entry
that is incomplete, or whose claim is not there, stops the build and is named.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from book_site.chapter_pages import link, sentence_nodes
from book_site.claims_ledger import Entry, entries
from tools.model import chapters
from tools.model.errors import UserError

LOGGER = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Proved:
    """An entry's fields, and the chapter and the claim that prove it."""

    chapter: Entry
    claim: chapters.Claim
    fields: dict


def fields_problem(entry: dict, required: set[str], optional: set[str]) -> str:
    """What is wrong with an entry's fields, or nothing."""
    wrong = (required - entry.keys()) | (entry.keys() - required - optional)
    return f"Fix: mend {', '.join(sorted(wrong))}" if wrong else ""


def proved(name: str, entry: dict, found: list[Entry]) -> Proved:
    """Find the one claim whose sentence begins as the entry says.

    Args:
        name: the entry's file and subject, for messages.
        entry: its fields, `claim` among them.
        found: the chapters to look in.

    Raises:
        UserError: no claim begins like that, or several do.
    """
    pairs = [
        (chapter, claim)
        for chapter in found
        for claim in chapter.claims
        if claim.sentence.startswith(entry["claim"])
    ]
    if len(pairs) != 1:
        raise UserError(
            f"{name}: {len(pairs)} claims begin with {entry['claim']!r}. "
            "Fix: write the beginning of one, from the claims ledger"
        )
    ((chapter, claim),) = pairs
    return Proved(chapter, claim, entry)


class ProvedList(SphinxDirective):
    """Writes the lists where the directive stands; subclasses know their entries."""

    kind = ""  # the page's name, the class of its lists, the beginning of its anchors
    # Holds an entry against the chapters; a UserError says what is wrong.
    check: Callable[[dict, list[Entry]], Proved]

    def row(self, entry: Proved) -> Iterator[nodes.Node]:
        """The nodes of one entry."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """A list for each chapter, with a place for the filter before the first."""
        path = Path(self.env.doc2path(self.env.docname)).with_suffix(".yml")
        self.env.note_dependency(str(path))
        found = entries(self.env)
        for chapter in found:
            self.env.note_dependency(self.env.doc2path(chapter.docname))
        lists: dict[int, list[Proved]] = {}
        for fields in yaml.safe_load(path.read_text(encoding="utf-8")):
            try:
                entry = self.check(fields, found)
            except UserError as error:
                LOGGER.warning("%s", error, type="book", subtype=self.kind)
                continue
            lists.setdefault(entry.chapter.number, []).append(entry)
        return [
            nodes.container(classes=["filter-start"]),
            *(self.section(list_) for _, list_ in sorted(lists.items())),
        ]

    def section(self, list_: list[Proved]) -> nodes.section:
        """What one chapter proves."""
        chapter = list_[0].chapter
        section = nodes.section(ids=[f"{self.kind}-{chapter.number}"])
        title = nodes.title("", f"{chapter.number}. ")
        title += sentence_nodes(chapter.title)
        section += title
        self.state.document.note_explicit_target(section, section)
        rows = nodes.bullet_list(classes=["proved", self.kind])
        for entry in list_:
            rows += nodes.list_item("", *self.row(entry))
        section += rows
        return section

    def where(self, text: str, entry: Proved) -> nodes.paragraph:
        """A line that leads to the claim, to which more may be added."""
        line = nodes.paragraph("", f"{text} ", classes=["proved-where"])
        claim = entry.claim
        line += link(
            claim.anchor, f"claim {claim.label}", self.env.docname, "proved-claim"
        )
        return line

    def markdown(self, text: str) -> list[nodes.Node]:
        """A text as parsed Markdown."""
        part = nodes.container()
        self.state.nested_parse(StringList(text.splitlines(), self.kind), 0, part)
        return part.children
