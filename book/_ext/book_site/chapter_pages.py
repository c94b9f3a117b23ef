"""How a chapter's page differs from its notebook: its number, its claims, its set-up.

- The title carries the chapter's number, which stands in the file's name.
- A cell tagged `claim` shows its sentence in a banner above the code that asserts it.
  Its address is made of its cell's id, and prose refers to it with {ref}`claim-03-056`;
  the number that readers see is drawn.
- The directive `chapter-figure` shows a figure of a chapter on another page.
- A claim that is broken with other versions has a note in the margin.
- A folded cell says what it holds: the set-up, a figure's code, what its title says.
- A cell that writes a file which is not Python is coloured as what it writes.
- A link to another page of the site, which a notebook must write in full, leads to that
  page wherever the site is read, offline too.
- Proofs, solutions and answers wait for the reader: `learner_form.py`.

An assignment's page has the last and the folded cells of it.
"""

import os
import posixpath
import re
from base64 import b64decode
from pathlib import Path

import nbformat
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from book_site import version_marks
from book_site.learner_form import LearnerForm
from book_site.markup import input_code, is_code_cell, link, rewrite, sentence_nodes
from tools.model import address, chapters
from tools.model.chapters import Chapter, Claim
from tools.model.claims_file import why_not_checked
from tools.model.errors import UserError

LOGGER = logging.getLogger(__name__)
TITLED = re.compile(r"# @title (.+)")
WRITTEN = re.compile(r"%%writefile (?:-a )?\S+(\.\w+)\n")
LANGUAGES = {".sbatch": "bash", ".yaml": "yaml"}  # by the file's suffix


def site_chapters(env: BuildEnvironment) -> list[Chapter]:
    """The chapters that are part of the site, for a page that is made from them.

    The page that is read depends on them; a broken chapter is a warning.
    """
    root = Path(env.srcdir)
    env.note_dependency(str(root / "_toc.yml"))
    found = []
    for path in chapters.chapter_paths(root):
        if env.path2doc(str(path)) not in env.found_docs:
            continue
        env.note_dependency(str(path))
        try:
            chapter = chapters.chapter(path)
            _ = chapter.number, chapter.claims  # one that is broken says so here
        except UserError as error:
            LOGGER.warning("%s", error, type="book", subtype="claim")
        else:
            found.append(chapter)
    return found


class ChapterPage(SphinxTransform):
    """Dress a chapter's page."""

    default_priority = 400

    def apply(self) -> None:
        """Number the title and mark the claims of a chapter, once it is parsed."""
        path = Path(self.env.doc2path(self.env.docname))
        assignment = path.suffix == ".ipynb" and path.parent.name == "assignments"
        if not assignment and not chapters.NAME.fullmatch(path.name):
            return
        self.shorten_links(address.repository(Path(self.env.srcdir)).pages)
        try:
            chapter = chapters.chapter(path)
            claims = {} if assignment else {x.cell: x for x in chapter.claims}
        except UserError as error:
            LOGGER.warning("%s", error, type="book", subtype="claim")
            return
        self.sets = [] if assignment else version_marks.known_sets(self.env)
        for node in self.document.findall(is_code_cell):
            index = node["cell_index"]
            self.label_fold(node, chapter.cells[index])
            self.colour(node)
            if index in claims:
                self.mark(node, chapter, claims[index])
        if not assignment:
            self.number_title(chapter.number)
            LearnerForm(self.document, chapter).apply()

    def mark(self, node: nodes.container, chapter: Chapter, claim: Claim) -> None:
        """Move a claim's sentence from the code to a banner above it."""
        code = input_code(node)
        rewrite(code, chapters.split_claim(code.astext())[1])
        node.insert(0, self.banner(claim, bool(why_not_checked(chapter, claim))))
        ledger = self.to_ledger(claim, "see the ledger")
        if note := version_marks.margin_note(claim, self.sets, ledger):
            node.insert(0, note)

    def number_title(self, number: int) -> None:
        """Put the chapter's number in front of its title."""
        title = self.document.next_node(nodes.title)
        if title is not None:
            title.insert(0, nodes.inline("", f"{number}. ", classes=["chapter-number"]))

    def shorten_links(self, pages: str) -> None:
        """Make links to the site's own address relative to this page."""
        here = posixpath.dirname(self.env.docname)
        for reference in self.document.findall(nodes.reference):
            uri = reference.get("refuri", "")
            if uri.startswith(pages):
                reference["refuri"] = posixpath.relpath(uri.removeprefix(pages), here)

    def label_fold(self, node: nodes.container, cell: nbformat.NotebookNode) -> None:
        """Say on a fold what it hides."""
        if "hide_mode" in node:
            what = hidden(cell)
            node["prompt_show"] = f"Show {what}"
            node["prompt_hide"] = f"Hide {what}"

    def colour(self, cell: nodes.container) -> None:
        """Name the language of a file that a cell writes."""
        for code in cell.findall(nodes.literal_block):
            written = WRITTEN.match(code.astext())
            if written and written[1] in LANGUAGES:
                code["language"] = LANGUAGES[written[1]]
                code["force"] = True  # the first line is not of that language

    def to_ledger(self, claim: Claim, text: str) -> addnodes.pending_xref:
        """A link to a claim's place in the ledger."""
        target = f"ledger-{claim.anchor}"
        return link(target, text, self.env.docname, "claim-ledger")

    def banner(self, claim: Claim, unchecked: bool) -> nodes.container:
        """The banner: a label that links to itself, the sentence, the ledger.

        It says so if the run that made the page did not check the claim.
        """
        docname = self.env.docname
        label = nodes.reference(
            "", f"Claim {claim.label}:", refid=claim.anchor, classes=["claim-label"]
        )
        text = nodes.paragraph("", "", label, nodes.Text(" "), classes=["claim-text"])
        text += sentence_nodes(claim.sentence)
        text += nodes.Text(" ")
        classes = ["claim"]
        if unchecked:
            classes.append("claim-unchecked")
            text += [nodes.strong("", "Not checked in this run."), nodes.Text(" ")]
        if claim.kind != "library":
            text += nodes.inline("", claim.kind, classes=["claim-kind"])
            text += nodes.Text(" ")
        text += self.to_ledger(claim, "ledger")
        banner = nodes.container("", text, classes=classes, ids=[claim.anchor])
        standard = self.env.get_domain("std")
        standard.labels[claim.anchor] = (docname, claim.anchor, f"Claim {claim.label}")
        standard.anonlabels[claim.anchor] = (docname, claim.anchor)
        return banner


class ShownFigure(SphinxDirective):
    """Show a chapter's figure on another page, as the chapter's cell drew it.

    The argument is the id of the cell; an id that no such cell has stops the build.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The figure, with its text for readers who do not see it."""
        cells = [cell for one in site_chapters(self.env) for cell in one.cells]
        cells = [cell for cell in cells if cell.id == self.arguments[0]]
        outputs = [o.get("data", {}) for cell in cells for o in cell.get("outputs", [])]
        drawn = [data["image/png"] for data in outputs if "image/png" in data]
        if not drawn:
            raise self.error(
                f"no cell {self.arguments[0]!r} of a chapter draws a figure"
            )
        path = Path(self.env.doctreedir, f"figure-{cells[0].id}.png")
        path.write_bytes(b64decode(drawn[0]))
        place = "/" + Path(os.path.relpath(path, self.env.srcdir)).as_posix()
        alt = cells[0].metadata["mystnb"]["image"]["alt"]
        shown = nodes.image(uri=place, alt=alt)
        return [nodes.container("", shown, classes=["cell_output"])]


def hidden(cell: nbformat.NotebookNode) -> str:
    """What a folded cell holds, in words: its own title, or what it is."""
    if chapters.is_setup(cell):
        return "the set-up code"
    titled = TITLED.match(cell.source)
    if titled:
        return f"the code: {titled[1]}"
    draws = any("image/png" in output.get("data", {}) for output in cell.outputs)
    return "the code of the figure" if draws else "the code"


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_transform(ChapterPage)
    app.add_directive("chapter-figure", ShownFigure)
