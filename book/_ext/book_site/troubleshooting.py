"""The list of failures: each with its message, cause, fix, chapter and thread.

The directive `troubles` reads troubleshooting.yml beside the page: a list of entries:

    claim:    how the sentence of the claim begins that shows the failure
    message:  what is printed, or
    symptom:  what is seen, of a failure without a message
    cause, fix:  in Markdown
    thread:   address of a public thread where users met it; if there is one

A message must stand in the notebook of the claim, in an output or in the code of a
claim, so that it can't drift from what the libraries really say. What is wrong with an
entry stops the build and is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx

from book_site.claims_ledger import Entry
from book_site.proved_list import Proved, ProvedList, fields_problem, proved
from tools.model.errors import UserError

THREAD = re.compile(r"https://github\.com/[^/]+/([^/]+)/(?:issues|pull)/(\d+).*")
REQUIRED = {"claim", "cause", "fix"}
OPTIONAL = {"message", "symptom", "thread"}


def check(entry: dict, found: list[Entry]) -> Proved:
    """Find the claim of an entry, and hold its message against the notebook.

    Raises:
        UserError: the entry is incomplete, or no claim or message is like that.
    """
    name = f"troubleshooting.yml, {str(entry.get('message', entry.get('symptom')))!r}"
    problem = fields_problem(entry, REQUIRED, OPTIONAL)
    if problem or ("message" in entry) == ("symptom" in entry):
        raise UserError(
            f"{name}: an entry has claim, cause, fix, and either message or symptom. "
            f"{problem or 'Fix: mend message'}"
        )
    trouble = proved(name, entry, found)
    message = " ".join(entry.get("message", "").split())
    if message not in trouble.chapter.said:
        raise UserError(
            f"{name}: chapter {trouble.chapter.number} neither prints nor asserts it. "
            "Fix: write the message as the chapter shows it"
        )
    return trouble


class Troubles(ProvedList):
    """Write the list where the directive stands."""

    kind = "troubles"
    check = staticmethod(check)

    def row(self, entry: Proved) -> Iterator[nodes.Node]:
        """One failure."""
        texts = entry.fields
        if "message" in texts:
            block = nodes.literal_block(texts["message"], texts["message"])
            block["language"] = "none"
            yield block
        else:
            yield from self.markdown(f"**{texts['symptom']}**")
        yield from self.markdown(f"*Cause.* {texts['cause']}")
        yield from self.markdown(f"*Fix.* {texts['fix']}")
        where = self.where("Shown in", entry)
        if "thread" in texts:
            where += nodes.Text("; users met it in ")
            name = THREAD.sub(r"\1#\2", texts["thread"])
            where += nodes.reference("", name, refuri=texts["thread"])
        where += nodes.Text(".")
        yield where


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_directive("troubles", Troubles)
