"""The table of failures: each with its message, cause, fix, chapter and thread.

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

import dataclasses
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import yaml
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from chapter_pages import link
from claims_ledger import Entry, entries

from tools import chapters
from tools.errors import UserError

LOGGER = logging.getLogger(__name__)
THREAD = re.compile(r"https://github\.com/[^/]+/([^/]+)/(?:issues|pull)/(\d+).*")
COLOURS = re.compile(r"\x1b\[[\d;]*m")
REQUIRED = {"claim", "cause", "fix"}
OPTIONAL = {"message", "symptom", "thread"}


@dataclasses.dataclass(frozen=True)
class Trouble:
    """A failure: the chapter and the claim that show it, and the entry's texts."""

    chapter: Entry
    claim: chapters.Claim
    texts: dict[str, str]


def said(notebook: nbformat.NotebookNode) -> str:
    """What a notebook prints, and the code of its claims, with single spaces."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        if "claim" in chapters.tags(cell):
            parts.append(re.sub(r"\"\s*\n\s*f?\"", "", cell.source))
        for output in cell.outputs:
            data = output.get("data", {}).get("text/plain", "")
            parts += [output.get("text", ""), data, output.get("evalue", "")]
            parts += output.get("traceback", [])
    return " ".join(COLOURS.sub("", " ".join(parts)).split())


def check(entry: dict, found: list[Entry]) -> Trouble:
    """Find the claim of an entry, and hold its message against the notebook.

    Raises:
        UserError: the entry is incomplete, or no claim or message is like that.
    """
    name = f"troubleshooting.yml, {str(entry.get('message', entry.get('symptom')))!r}"
    missing = REQUIRED - entry.keys()
    unknown = entry.keys() - REQUIRED - OPTIONAL
    if missing or unknown or ("message" in entry) == ("symptom" in entry):
        raise UserError(
            f"{name}: an entry has claim, cause, fix, and either message or symptom. "
            f"Fix: mend {', '.join(sorted(missing | unknown)) or 'message'}"
        )
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
    if "message" in entry and " ".join(entry["message"].split()) not in said(
        chapter.notebook
    ):
        raise UserError(
            f"{name}: chapter {chapter.number} neither prints nor asserts it. "
            "Fix: write the message as the chapter shows it"
        )
    return Trouble(chapter, claim, entry)


class Troubles(SphinxDirective):
    """Write the table where the directive stands."""

    def run(self) -> list[nodes.Node]:
        """A list for each chapter, with a place for the filter before the first."""
        path = Path(self.env.doc2path(self.env.docname)).with_name(
            "troubleshooting.yml"
        )
        self.env.note_dependency(str(path))
        found = entries(self.env)
        for chapter in found:
            self.env.note_dependency(self.env.doc2path(chapter.docname))
        troubles: dict[int, list[Trouble]] = {}
        for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
            try:
                trouble = check(entry, found)
            except UserError as error:
                LOGGER.warning("%s", error, type="book", subtype="trouble")
                continue
            troubles.setdefault(trouble.chapter.number, []).append(trouble)
        return [
            nodes.container(classes=["troubles-start"]),
            *(self.section(list_) for _, list_ in sorted(troubles.items())),
        ]

    def section(self, troubles: list[Trouble]) -> nodes.section:
        """The failures of one chapter."""
        chapter = troubles[0].chapter
        section = nodes.section(ids=[f"troubles-{chapter.number}"])
        section += nodes.title("", f"{chapter.number}. {chapter.title}")
        self.state.document.note_explicit_target(section, section)
        rows = nodes.bullet_list(classes=["troubles"])
        for trouble in troubles:
            rows += nodes.list_item("", *self.row(trouble))
        section += rows
        return section

    def row(self, trouble: Trouble) -> Iterator[nodes.Node]:
        """One failure."""
        texts, claim = trouble.texts, trouble.claim
        if "message" in texts:
            block = nodes.literal_block(texts["message"], texts["message"])
            block["language"] = "none"
            yield block
        else:
            yield from self.markdown(f"**{texts['symptom']}**")
        yield from self.markdown(f"*Cause.* {texts['cause']}")
        yield from self.markdown(f"*Fix.* {texts['fix']}")
        where = nodes.paragraph("", "Shown in ", classes=["troubles-where"])
        label = f"claim {claim.label}"
        where += link(claim.anchor, label, self.env.docname, "troubles-claim")
        if "thread" in texts:
            where += nodes.Text("; users met it in ")
            name = THREAD.sub(r"\1#\2", texts["thread"])
            where += nodes.reference("", name, refuri=texts["thread"])
        where += nodes.Text(".")
        yield where

    def markdown(self, text: str) -> list[nodes.Node]:
        """A text as parsed Markdown."""
        part = nodes.container()
        self.state.nested_parse(StringList(text.splitlines(), "trouble"), 0, part)
        return part.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_directive("troubles", Troubles)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
