"""The list of failures: each with its message, cause, fix, chapter and thread.

The directive `troubles` reads troubleshooting.yml beside the page: a list of entries:

    claim:    how the sentence of the claim begins that shows the failure
    message:  what is printed, or
    symptom:  what is seen, of a failure without a message
    cause, fix:  in Markdown
    thread:   address of a public thread where users met it; if there is one
    also:     a list of other messages of the same failure that this book does not print
    ask:      a list of questions that the entry answers, in the words of who asks them
    must, never:  lists of words: all of the first and none of the second are in what
              somebody types who is shown the entry

The page's field reads the last three, and shows them to nobody.
What a CPU cannot show has no claim, but a thread, and `chapter` and `id`: the number of
the chapter that it belongs to, and a short name for its address.

A claim's message must stand in its notebook, in an output or in the code of a claim, so
that it can't drift from what the libraries really say. What is wrong with an entry
stops the build and is named.
"""

import html
import re
from collections.abc import Iterator
from typing import ClassVar

from docutils import nodes
from sphinx.application import Sphinx

from book_site.proved_list import Proved, ProvedList
from tools.model import chapters
from tools.model.chapters import Chapter
from tools.model.outcomes import COLOUR

THREAD = re.compile(r"https://github\.com/[^/]+/([^/]+)/(?:issues|pull)/(\d+).*")


def printed(chapter: Chapter) -> str:
    """What a chapter prints, and the code of its claims, with single spaces."""
    texts = []
    for cell in chapter.cells:
        if "claim" in chapters.tags(cell):
            texts.append(re.sub(r"\"\s*\n\s*f?\"", "", cell.source))
        for output in cell.get("outputs", []):
            data = output.get("data", {}).get("text/plain", "")
            texts += [output.get("text", ""), data, output.get("evalue", "")]
            texts += output.get("traceback", [])
    return " ".join(COLOUR.sub("", " ".join(texts)).split())


class Troubles(ProvedList):
    """Write the list where the directive stands."""

    kind = "troubles"
    required: ClassVar = {"cause", "fix"}
    hints: ClassVar = ("ask", "must", "never")
    optional: ClassVar = {"message", "symptom", "thread", "also", *hints}
    cited: ClassVar = {"chapter", "id", "thread"}

    @staticmethod
    def problem(entry: Proved) -> str:
        """Whether the entry's message does not stand in the chapter of the claim."""
        if ("message" in entry.fields) == ("symptom" in entry.fields):
            return "an entry has either message or symptom. Fix: mend message"
        message = " ".join(entry.fields.get("message", "").split())
        if not entry.claim or message in printed(entry.chapter):
            return ""
        return (
            f"chapter {entry.chapter.number} neither prints nor asserts "
            f"{message!r}. Fix: write the message as the chapter shows it"
        )

    def row(self, entry: Proved) -> Iterator[nodes.Node]:
        """One failure."""
        texts = entry.fields
        if "message" in texts:
            block = nodes.literal_block(texts["message"], texts["message"])
            block["language"] = "none"
            yield block
        else:
            yield from self.parse_text_to_nodes(f"**{texts['symptom']}**")
        if "also" in texts:
            listed = ", ".join(f"`` {message} ``" for message in texts["also"])
            (also,) = self.parse_text_to_nodes(
                f"*Also, not printed by this book:* {listed}"
            )
            also["classes"].append("also")
            yield also
        hints = "".join(
            f'<li class="{name}">{html.escape(str(hint))}</li>'
            for name in self.hints
            for hint in texts.get(name, ())
        )
        if hints:
            yield nodes.raw("", f'<ul hidden="hidden">{hints}</ul>', format="html")
        yield from self.parse_text_to_nodes(f"*Cause.* {texts['cause']}")
        yield from self.parse_text_to_nodes(f"*Fix.* {texts['fix']}")
        if entry.claim:
            where = self.where("Shown in", entry)
        else:
            text = f"Not shown by this book, see chapter {entry.chapter.number}"
            where = nodes.paragraph("", text, classes=["proved-where"])
        if "thread" in texts:
            where += nodes.Text("; users met it in ")
            name = THREAD.sub(r"\1#\2", texts["thread"])
            where += nodes.reference("", name, refuri=texts["thread"])
        where += nodes.Text(".")
        yield where


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_directive("troubles", Troubles)
    for script in ("vendor/minisearch/minisearch.min.js", "finder.js", "search.js"):
        app.add_js_file(script, priority=900, defer="defer")  # behind site.js
