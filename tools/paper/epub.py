"""The book as an EPUB: Sphinx's own builder, with the site's settings and pages."""

import posixpath
import re
from pathlib import Path
from urllib.parse import urljoin

from jupyter_book.config import get_final_config
from sphinx.application import Sphinx
from sphinx.builders.epub3 import Epub3Builder
from sphinx.cmd.build import build_main

from tools.model import address, files
from tools.model.errors import UserError
from tools.paper import pages

HERE = Path(__file__).parent
STATIC = (
    HERE / "static" / "epub.css",
    HERE / "static" / "cover.png",
    HERE.parents[1] / "book/_static/vendor/latin-modern-math/formulas.woff",
)
EXTENSIONS = [  # those of the site's that write something which stays in a book
    "jupyter_book",
    "myst_nb",
    "sphinx_design",
    "sphinx_external_toc",
    "book_site",
    "tools.paper.epub",
]
# What the package must say of a page that holds one of these.
PROPERTIES = {"mathml": "<math", "svg": "<svg"}
LOCAL_FILE = re.compile(r"^([^:#]+)\.(\w+)(?=#|$)")
ITEM = re.compile(r'(<item id="[^"]+" href="([^"]+\.xhtml)" media-type="[^"]+") />')


def make(root: Path, folder: Path, book: pages.Book) -> Path:
    """Write the EPUB into an empty folder.

    Raises:
        UserError: Sphinx warns of something.
    """
    text = "".join(f"{k} = {v!r}\n" for k, v in settings(root, book.slug).items())
    files.write_text(folder / "conf.py", text)
    options = ["-b", "epub", "-c", str(folder), "-d", str(folder / "doctrees")]
    if build_main([*options, "-Wnq", "--keep-going", str(root), str(folder / "epub")]):
        raise UserError("the EPUB can't be written. Fix: see Sphinx's words above")
    return folder / "epub" / f"{book.slug}.epub"


def settings(root: Path, slug: str) -> dict[str, object]:
    """The settings of the site, with those that an EPUB needs in place of some."""
    site, _ = get_final_config(
        user_yaml=root / "_config.yml",
        sourcedir=root,
        cli_config={"latex_individualpages": False},
    )
    return site | {
        "extensions": EXTENSIONS,
        "external_toc_path": str(root / "_toc.yml"),
        "templates_path": [],
        "html_static_path": [str(path) for path in STATIC],
        "html_css_files": ["epub.css"],
        "html_js_files": [],
        "html_favicon": None,
        "html_copy_source": False,
        "html_extra_path": [],
        "pygments_style": "bw",
        "epub_basename": slug,
        "epub_cover": ("_static/cover.png", ""),
        "epub_description": "An executable book: what a Keras model does on a GPU.",
        "epub_identifier": slug,
        "epub_show_urls": "no",
        "epub_tocscope": "includehidden",
        "epub_uid": slug,
        "epub_use_index": False,
        "version": "1",  # Sphinx warns if there is none
    }


class ValidEpub(Epub3Builder):
    """Sphinx's builder, less what EPUBCheck finds wrong with this book."""

    name = "epub"

    def get_toc(self) -> None:
        """Name each page as the list of files does: not `book/../notebooks/…`."""
        super().get_toc()
        for node in self.refnodes:
            node["refuri"] = posixpath.normpath(node["refuri"])

    def build_content(self) -> None:
        """Write the list of files, which says what holds formulas or drawings."""
        super().build_content()
        package = Path(self.outdir, "content.opf")
        text = ITEM.sub(self.with_properties, package.read_text(encoding="utf-8"))
        package.write_text(text, encoding="utf-8")

    def with_properties(self, item: re.Match[str]) -> str:
        """An entry of the list, with what the page holds."""
        page = Path(self.outdir, item[2]).read_text(encoding="utf-8")
        held = " ".join(name for name, tag in PROPERTIES.items() if tag in page)
        return f'{item[1]} properties="{held}" />' if held else item[0]


def unfold(
    app: Sphinx, pagename: str, template: str, context: dict, *_: object
) -> None:
    """Give a page the form of a book, as XHTML, before Sphinx writes it."""
    if app.builder.name == "epub" and context.get("body"):
        page = pages.parse(context["body"])
        for kind, space in (("math", "1998/Math/MathML"), ("svg", "2000/svg")):
            for element in page.find_all(kind):
                element["xmlns"] = f"http://www.w3.org/{space}"
        web = address.repository(Path(app.srcdir)).pages + posixpath.dirname(pagename)
        for link in page.find_all("a", href=LOCAL_FILE):
            kind = LOCAL_FILE.match(link["href"])[2]
            if kind == "html":  # site_address.py made it
                link["href"] = LOCAL_FILE.sub(r"\1.xhtml", link["href"])
            elif kind != "xhtml":  # only the site has it
                link["href"] = urljoin(f"{web}/", link["href"])
        context["body"] = page.decode(formatter="minimal")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what is above."""
    app.add_builder(ValidEpub, override=True)
    app.connect("html-page-context", unfold, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
