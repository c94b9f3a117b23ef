"""The directive `downloads`: links to the files that the site offers, with their sizes.

`make pdf`, `make epub` and `make zip` put files into `_build/downloads`. A site that is
built while they are there holds them and links them; any other says how to make them.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from tools.model import address
from tools.paper import downloads

# What a file is, by the end of its name, in the order in which readers see them.
KINDS = (
    (r"(?<!-ereader)\.pdf", "PDF on A4, to print or for a tablet"),
    (r"-ereader\.pdf", "PDF on small pages, for an e-reader"),
    (r"\.epub", "EPUB, for an e-reader or a phone"),
    (r"-site\.zip", "this site in a folder, to read without a network"),
    (r"-notebooks\.zip", "all notebooks, to run"),
)
HOW = (
    "The book as a PDF or an EPUB, this site as a folder and all notebooks: "
    "[the published site]({pages}) offers them, and in a clone of "
    "[the repository]({url}) `make pdf`, `make epub` and `make zip` make them."
)


def there(root: Path) -> list[tuple[Path, str]]:
    """The files that can be offered, each with what it is."""
    found = sorted((root / downloads.FOLDER).glob("*.*"))
    return [
        (path, about)
        for end, about in KINDS
        for path in found
        if re.search(f"{end}$", path.name)
    ]


class Downloads(SphinxDirective):
    """A list of links, or a sentence that says how to make the files."""

    def run(self) -> list[nodes.Node]:
        """Write what can be said of the files that are there."""
        root = Path(self.env.srcdir)
        box = nodes.container(classes=["downloads"])
        self.env.metadata[self.env.docname]["downloads"] = told(root)
        depth = "../" * self.env.docname.count("/")
        files = there(root)
        repository = address.repository(root)
        if files:
            listing = nodes.bullet_list()
            for path, about in files:
                line = nodes.paragraph()
                aim = f"{depth}downloads/{path.name}"
                line += nodes.reference("", path.name, refuri=aim)
                line += nodes.Text(f": {about}, {downloads.size(path)}")
                listing += nodes.list_item("", line)
            box += listing
        else:
            text = HOW.format(pages=repository.pages, url=repository.url)
            self.state.nested_parse(StringList([text], "downloads"), 0, box)
        return [box]


def told(root: Path) -> str:
    """What a page says of the files, as a fingerprint."""
    return repr([(path.name, downloads.size(path)) for path, _ in there(root)])


def outdated(app: Sphinx, env: BuildEnvironment, *_: set[str]) -> list[str]:
    """Pages that say of the files what is no longer so."""
    now = told(Path(app.srcdir))
    return [
        name
        for name, known in env.metadata.items()
        if known.get("downloads", now) != now
    ]


def copy(app: Sphinx, exception: Exception | None) -> None:
    """Put the files that pages link into the site, and no others."""
    if exception is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir, "downloads")
    shutil.rmtree(folder, ignore_errors=True)
    files = there(Path(app.srcdir))
    if files:
        folder.mkdir()
    for path, _ in files:
        shutil.copy2(path, folder / path.name)


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_directive("downloads", Downloads)
    app.connect("env-get-outdated", outdated)
    app.connect("build-finished", copy)
