"""The directive `downloads`: links to the files that the site offers, with their sizes.

A site that is built while files lie in `_build/downloads` holds them and links them;
any other says how to make them.
"""

import shutil
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from tools.model import address, files

KINDS = {  # what a file is, by the end of its name, in the order of the list
    ".pdf": "PDF on A4, to print or for a tablet",
    ".epub": "EPUB, for an e-reader or a phone",
    "-site.zip": "this site in a folder, to read without a network",
    "-notebooks.zip": "all notebooks, to run",
}
HOW = (
    "The book as a PDF or an EPUB, this site as a folder and all notebooks: "
    "[the published site]({pages}) offers them, and in a clone of "
    "[the repository]({url}) `make pdf`, `make epub` and `make zip` make them."
)


def offered(root: Path) -> dict[Path, str]:
    """The files that can be offered, each with what the list says of it."""
    return {
        path: f": {about}, {files.size_in_words(path)}"
        for end, about in KINDS.items()
        for path in sorted((root / files.DOWNLOADS).glob(f"*{end}"))
    }


class Downloads(SphinxDirective):
    """A list of links, or a sentence that says how to make the files."""

    def run(self) -> list[nodes.Node]:
        """Write what can be said of the files that are there."""
        root = Path(self.env.srcdir)
        links = offered(root)
        if not links:
            repository = address.repository(root)
            text = HOW.format(pages=repository.pages, url=repository.url)
            return [nodes.container("", *self.parse_text_to_nodes(text))]
        listing = nodes.bullet_list(classes=["downloads"])
        for path, about in links.items():
            aim = "../" * self.env.docname.count("/") + f"downloads/{path.name}"
            line = nodes.paragraph("", "", nodes.reference("", path.name, refuri=aim))
            line += nodes.Text(about)
            listing += nodes.list_item("", line)
        return [listing]


def copy(app: Sphinx, exception: Exception | None) -> None:
    """Put the files that pages link into the site, and no others."""
    if exception is None and app.builder.name == "html":
        folder = Path(app.outdir, "downloads")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for path in offered(Path(app.srcdir)):
            shutil.copy2(path, folder)


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_directive("downloads", Downloads)
    app.connect("build-finished", copy)
