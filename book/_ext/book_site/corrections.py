"""The list of corrections: popular statements that are false or out of date.

The directive `corrections` reads corrections.yml beside the page: a list of entries:

    statement:  what is said, in our words and in Markdown
    where:      a list of the pages that say it, each with
      page, url:  its title and its address
      date:       the page's date, `2023-07`, or `read 2026-11` where it has none
    since:      the version or date since which it is false; if it was true once
    truth:      what is true, in Markdown
    claim:      how the sentence of the claim begins that proves it

What is wrong with an entry stops the build and is named.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx

from book_site.claims_ledger import Entry
from book_site.proved_list import Proved, ProvedList, fields_problem, proved
from tools.model.errors import UserError

DATE = re.compile(r"(read )?(\d{4})(?:-(0[1-9]|1[0-2])(?:-(0[1-9]|[12]\d|3[01]))?)?")


def readable(date: str) -> str:
    """A date as a reader writes it: `read 2026-11` is `read in November 2026`.

    Raises:
        ValueError: it is no date of one of these forms.
    """
    parts = DATE.fullmatch(date)
    if not parts:
        raise ValueError(f"{date!r} is neither like 2023-07 nor like 'read 2026-11'")
    read, year, month, day = parts.groups()
    name = f"{datetime.date(int(year), int(month or 1), 1):%B} " if month else ""
    number = f"{int(day)} " if day else ""
    before = ("read on " if day else "read in ") if read else ""
    return f"{before}{number}{name}{year}"


def check(entry: dict, found: list[Entry]) -> Proved:
    """Find the claim of an entry, and look at the pages that it names.

    Raises:
        UserError: the entry is incomplete, or no claim begins as it says.
    """
    name = f"corrections.yml, {str(entry.get('statement'))!r}"
    required = {"statement", "where", "truth", "claim"}
    if problem := fields_problem(entry, required, {"since"}):
        raise UserError(
            f"{name}: an entry has statement, where, truth, claim, and perhaps since. "
            f"{problem}"
        )
    for page in entry["where"]:
        problem = fields_problem(page, {"page", "url", "date"}, set())
        if not problem and not page["url"].startswith("https://"):
            problem = f"Fix: mend the address {page['url']!r}"
        if not problem:
            try:
                readable(str(page["date"]))
            except ValueError as error:
                problem = f"Fix: mend the date: {error}"
        if problem:
            raise UserError(f"{name}: a page has page, url and date. {problem}")
    return proved(name, entry, found)


class Corrections(ProvedList):
    """Write the list where the directive stands."""

    kind = "corrections"
    check = staticmethod(check)

    def row(self, entry: Proved) -> Iterator[nodes.Node]:
        """One statement."""
        fields = entry.fields
        yield from self.markdown(f"**{fields['statement']}**")
        pages = nodes.paragraph("", "Said in ", classes=["proved-where"])
        for number, page in enumerate(fields["where"]):
            pages += nodes.Text("; " if number else "")
            pages += nodes.reference("", page["page"], refuri=page["url"])
            pages += nodes.Text(f" ({readable(str(page['date']))})")
        pages += nodes.Text(".")
        yield pages
        verdict = f"False since {fields['since']}." if "since" in fields else "False."
        yield from self.markdown(f"*{verdict}* {fields['truth']}")
        proof = self.where("Proved by", entry)
        proof += nodes.Text(".")
        yield proof


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_directive("corrections", Corrections)
