"""Write the pages of an e-book in the form of paper: Sphinx's EPUB builder, and more.

`tools/paper` starts it. The pages that Sphinx writes get the form of paper before they
are packed, the contents name the parts of the book, and the same sources give the same
file, byte for byte.
"""

from __future__ import annotations

import html
import posixpath
import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.builders.epub3 import Epub3Builder

from tools.paper import archives, contents, form

OPF = "http://www.idpf.org/2007/opf"
DC = "http://purl.org/dc/elements/1.1/"
STYLES = ("epub.css", "cover.png", "formulas.woff")  # all that is used of `_static`
PROPERTIES = {"mathml": "<math", "svg": "<svg"}


class PaperBuilder(Epub3Builder):
    """Sphinx's builder for EPUB 3, for the pages that paper has."""

    name = "paper"

    def handle_finish(self) -> None:
        """Dress the pages, then pack them."""
        out, config = Path(self.outdir), self.config
        self.contents = contents.read(Path(self.srcdir), config.paper_pages)
        self.sections = form.dress(out, self.contents)
        for name in self.contents.left_out:
            (out / f"{name}.xhtml").unlink(missing_ok=True)
        for path in sorted((out / "_static").rglob("*"), reverse=True):
            if path.is_dir():
                path.rmdir()
            elif path.relative_to(out / "_static").as_posix() not in STYLES:
                path.unlink()
        shutil.rmtree(out / "assignments", ignore_errors=True)
        super().handle_finish()

    def get_toc(self) -> None:
        """Collect titles as Sphinx does, below the parts of the book."""
        super().get_toc()
        found: dict[str, list[dict[str, Any]]] = {}
        for node in self.refnodes:
            page = re.sub(r"\.xhtml(#.*)?$", "", posixpath.normpath(node["refuri"]))
            refuri = posixpath.normpath(node["refuri"])
            found.setdefault(page, []).append({**node, "refuri": refuri})
        self.refnodes = []
        for number, part in enumerate(self.contents.parts, start=1):
            deeper = 1 if part.title else 0
            if part.title:
                part_file = f"part-{number}.xhtml"
                self.refnodes.append(
                    {"level": 1, "refuri": part_file, "text": part.title}
                )
            for name in part.names:
                self.refnodes += [
                    {**node, "level": node["level"] + deeper} for node in found[name]
                ]
                self.refnodes += [
                    {
                        "level": 2 + deeper,
                        "refuri": f"{name}.xhtml#{anchor}",
                        "text": html.escape(title),
                    }
                    for anchor, title in self.sections.get(name, ())
                ]
        for name, title in form.APPENDIX_TITLES.items():
            node = {"level": 1, "refuri": f"{name}.xhtml", "text": title}
            self.refnodes.append(node)

    def toc_metadata(self, level: int, navpoints: list[Any]) -> dict[str, Any]:
        """What older readers take the contents from; it names the book as the rest."""
        known = super().toc_metadata(level, navpoints)
        return known | {"uid": html.escape(self.config.epub_identifier)}

    def build_content(self) -> None:
        """Write the list of files, and say which hold formulas or drawings."""
        super().build_content()
        out = Path(self.outdir)
        path = out / "content.opf"
        ElementTree.register_namespace("", OPF)
        ElementTree.register_namespace("dc", DC)
        tree = ElementTree.parse(path)
        for item in tree.iter(f"{{{OPF}}}item"):
            if not item.get("href").endswith(".xhtml") or item.get("properties"):
                continue
            text = (out / item.get("href")).read_text(encoding="utf-8")
            held = [name for name, tag in PROPERTIES.items() if tag in text]
            if held:
                item.set("properties", " ".join(held))
        tree.write(path, encoding="utf-8", xml_declaration=True)

    def build_epub(self) -> None:
        """Pack the files, so that the same files make the same EPUB."""
        out = Path(self.outdir)
        first = ["META-INF/container.xml", "content.opf", "toc.ncx"]
        archives.write(
            out / f"{self.config.epub_basename}.epub",
            [(name, out / name) for name in (*first, *self.files)],
            stored=[("mimetype", out / "mimetype")],
        )


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_builder(PaperBuilder)
    app.add_config_value("paper_pages", (), "")
