"""Lists of entries, each of which stands on a claim of the book.

A page's directive reads the file beside the page that is named like it, a list of
entries in YAML, and writes one list for each chapter that has some. `claim` is how
the sentence of the claim begins; the other fields are the directive's own. An entry
that is incomplete, or whose claim is not there, stops the build and is named.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import yaml
from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from book_site.chapter_pages import site_chapters
from book_site.markup import link, section
from tools.model.chapters import Chapter, Claim
from tools.model.errors import UserError

LOGGER = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Proved:
    """An entry's fields, and the chapter and the claim that prove it, if one does."""

    chapter: Chapter
    claim: Claim | None
    fields: dict

    @property
    def name(self) -> str:
        """What its address is made of: the claim's id, or the entry's own."""
        return self.claim.id if self.claim else self.fields["id"]


def wrong_fields(entry: dict, required: set[str], optional: set[str]) -> str:
    """The fields that an entry lacks, or has and may not have, in words."""
    wrong = (required - entry.keys()) | (entry.keys() - required - optional)
    return ", ".join(sorted(wrong))


def claims_that_begin(begin: str, chapters: list[Chapter]) -> list[tuple]:
    """The claims whose sentence begins so, each behind its chapter."""
    return [
        (chapter, claim)
        for chapter in chapters
        for claim in chapter.claims
        if claim.sentence.startswith(begin)
    ]


class ProvedList(SphinxDirective):
    """Writes the lists where the directive stands; subclasses know their entries."""

    kind = ""  # the class of its lists and the beginning of its anchors
    required: ClassVar[set[str]] = set()  # the fields of an entry, beside `claim`
    optional: ClassVar[set[str]] = set()
    cited: ClassVar[set[str]] = set()  # those in place of `claim`, if it may lack

    @classmethod
    def check(cls, fields: dict, chapters: list[Chapter]) -> Proved:
        """Find the one claim whose sentence begins as an entry says, or its chapter.

        Raises:
            UserError: none or several do, or another field is wrong.
        """
        name = f"{cls.kind}, {fields.get('id', next(iter(fields.values())))!r}"
        proved = "claim" in fields or not cls.cited
        required = cls.required | ({"claim"} if proved else cls.cited)
        if wrong := wrong_fields(fields, required, cls.optional):
            raise UserError(f"{name}: not as the list wants it. Fix: mend {wrong}")
        if proved:
            claims = claims_that_begin(fields["claim"], chapters)
            found = [Proved(*claim, fields) for claim in claims]
        else:
            found = [
                Proved(chapter, None, fields)
                for chapter in chapters
                if chapter.number == fields["chapter"]
            ]
        if proved and len(found) != 1:
            raise UserError(
                f"{name}: {len(found)} claims begin with {fields['claim']!r}. "
                "Fix: write the beginning of one, from the claims ledger"
            )
        if not found:
            raise UserError(f"{name}: no such chapter. Fix: mend chapter")
        if problem := cls.problem(found[0]):
            raise UserError(f"{name}: {problem}")
        return found[0]

    @staticmethod
    def problem(entry: Proved) -> str:
        """What else is wrong with an entry and how to fix it, or nothing."""
        raise NotImplementedError

    def row(self, entry: Proved) -> Iterator[nodes.Node]:
        """The nodes of one entry."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """The lists, with a place for the filter before the first."""
        path = Path(self.env.doc2path(self.env.docname)).with_suffix(".yml")
        self.env.note_dependency(str(path))
        found = site_chapters(self.env)
        lists: dict[tuple[int, str], list[Proved]] = {}
        self.names: Counter[str] = Counter()  # of the entries, which are to be unique
        for fields in yaml.safe_load(path.read_text(encoding="utf-8")):
            try:
                entry = self.check(fields, found)
            except UserError as error:
                LOGGER.warning("%s", error, type="book", subtype=self.kind)
            else:
                lists.setdefault(self.part(entry), []).append(entry)
        parts = [self.list_of(*part, lists[part]) for part in sorted(lists)]
        return [nodes.container(classes=["filter-start"]), *parts]

    def part(self, entry: Proved) -> tuple[int, str]:
        """The number and the title of the list that an entry stands in."""
        chapter = entry.chapter
        return chapter.number, f"{chapter.number}. {chapter.title}"

    def list_of(self, number: int, title: str, entries: list[Proved]) -> nodes.section:
        """One list with its title."""
        part = section(self, f"{self.kind}-{number}", title)
        rows = nodes.bullet_list(classes=["proved", self.kind])
        for entry in entries:
            name = f"{self.kind}-{entry.name}"
            self.names[name] += 1
            name += f"-{self.names[name]}" if self.names[name] > 1 else ""
            row = nodes.list_item("", *self.row(entry), ids=[name])
            row[-1] += [nodes.Text(" "), nodes.reference("", "Link", refid=name)]
            rows += row
        part += rows
        return part

    def where(self, text: str, entry: Proved) -> nodes.paragraph:
        """A line that leads to the claim, to which more may be added."""
        claim, docname = entry.claim, self.env.docname
        line = nodes.paragraph("", f"{text} ", classes=["proved-where"])
        line += link(claim.anchor, f"claim {claim.label}", docname, "proved-claim")
        return line
