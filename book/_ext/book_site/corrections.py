"""The list of corrections: popular statements that are false or out of date.

The directive `corrections` reads corrections.yml beside the page: a list of entries:

    statement:  what is said, in our words and in Markdown
    where:      a list of the pages that say it, each with
      page, url:  its title and its address
      date:       the page's date, `2023-07`, or `read 2026-11` where it has none
    since:      the version or date since which it is false; if it was true once
    truth:      what is true, in Markdown
    claim:      how the sentence of the claim begins that proves it
    found:      true where the page is only a comment or an article
    costly:     true for those that stand first

What is wrong with an entry stops the build and is named.
"""

from collections.abc import Iterator
from typing import ClassVar

from docutils import nodes
from sphinx.application import Sphinx

from book_site.proved_list import Proved, ProvedList, wrong_fields
from book_site.words import date_in_words


def readable(date: str) -> str:
    """A page's date in words: `read 2026-11` is `read in November 2026`.

    Raises:
        ValueError: it is no such date.
    """
    day = date.removeprefix("read ")
    if day == date:
        return date_in_words(day)
    return f"read {'on' if day.count('-') == 2 else 'in'} {date_in_words(day)}"


def page_problem(page: dict) -> str:
    """What is wrong with a page that an entry names, or nothing."""
    if wrong := wrong_fields(page, {"page", "url", "date"}, set()):
        return f"a page has page, url and date. Fix: mend {wrong}"
    if not page["url"].startswith("https://"):
        return f"no address of a page. Fix: mend {page['url']!r}"
    try:
        readable(str(page["date"]))
    except ValueError:
        return f"no date like 2023-07 or read 2026-11. Fix: mend {page['date']!r}"
    return ""


class Corrections(ProvedList):
    """Write the list where the directive stands."""

    kind = "corrections"
    required: ClassVar = {"statement", "where", "truth"}
    optional: ClassVar = {"since", "found", "costly"}

    @staticmethod
    def problem(entry: Proved) -> str:
        """What is wrong with the pages that an entry names, or nothing."""
        return next(filter(None, map(page_problem, entry.fields["where"])), "")

    def part(self, entry: Proved) -> tuple[int, str]:
        """What costs most first, then a part for each chapter."""
        if entry.fields.get("costly"):
            return 0, "Those that do most harm"
        return super().part(entry)

    def row(self, entry: Proved) -> Iterator[nodes.Node]:
        """One statement."""
        fields = entry.fields
        yield from self.parse_text_to_nodes(f"**{fields['statement']}**")
        verb = "Found in " if fields.get("found") else "Said in "
        pages = nodes.paragraph("", verb, classes=["proved-where"])
        for number, page in enumerate(fields["where"]):
            pages += nodes.Text("; " if number else "")
            pages += nodes.reference("", page["page"], refuri=page["url"])
            pages += nodes.Text(f" ({readable(str(page['date']))})")
        pages += nodes.Text(".")
        yield pages
        verdict = f"False since {fields['since']}." if "since" in fields else "False."
        yield from self.parse_text_to_nodes(f"*{verdict}* {fields['truth']}")
        proof = self.where("Proved by", entry)
        proof += nodes.Text(".")
        yield proof


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_directive("corrections", Corrections)
