"""The site and the notebooks as archives: `make zip`.

The site is read from its folder, without a server. Each archive is the same, byte for
byte, if what it holds is.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from tools.model.chapters import ROOT
from tools.model.errors import UserError, command
from tools.paper import archives, contents, downloads

HTML = Path("_build", "html")
# Of no use without a server, or made for one.
LEFT_OUT = ("downloads/", ".buildinfo", "objects.inv", "sitemap.xml", "404.html")
WELCOME = ("index.html", "book/welcome.html")
README = """\
{title}
{line}

The notebooks of the book: chapters in notebooks/, the class's assignments in
assignments/. Each one runs from its own file.

Without installing anything: open a notebook on https://colab.research.google.com
(File, Upload notebook).

On your own machine, with Python 3.11 to 3.13:

    python -m venv .venv
    .venv/bin/python -m pip install -r requirements.txt -c constraints.txt
    .venv/bin/python -m jupyterlab notebooks

On Windows, do so in WSL2.

The book, and how it is tested: {pages}
Code: Apache License 2.0. Text and figures: CC BY 4.0.
"""


def site(root: Path, folder: str) -> Iterator[tuple[str, Path | bytes]]:
    """The files of the site by their names in the archive.

    Links to downloads, which the archive does not hold, lead to the web.
    """
    html = root / HTML
    pages = contents.read(root).pages
    for path in sorted(x for x in html.rglob("*") if x.is_file()):
        name = path.relative_to(html).as_posix()
        if name.startswith(LEFT_OUT):
            continue
        held: Path | bytes = path
        if name in WELCOME:
            text = path.read_text(encoding="utf-8")
            text = re.sub(
                r'href="(?:\.\./)?downloads/', f'href="{pages}downloads/', text
            )
            held = text.encode()
        yield posixpath.join(folder, name), held


def notebooks(root: Path, folder: str) -> Iterator[tuple[str, Path | bytes]]:
    """The notebooks, what they need and how to run them."""
    book = contents.read(root)
    text = README.format(title=book.title, line="=" * len(book.title), pages=book.pages)
    yield f"{folder}/README.txt", text.encode()
    for name in ("LICENSE", "LICENSE-TEXT", "requirements.txt"):
        yield f"{folder}/{name}", root / name
    yield f"{folder}/requirements-book.txt", root / "requirements-book.txt"
    yield f"{folder}/constraints.txt", root / "constraints" / "latest.txt"
    for kind in ("assignments", "notebooks"):
        for path in sorted((root / kind).glob("*.ipynb")):
            yield f"{folder}/{kind}/{path.name}", path


@command
def main(root: Path = ROOT) -> None:
    """Write both archives and say where they are."""
    if not (root / HTML / "index.html").is_file():
        raise UserError(f"{HTML} holds no site. Fix: make book")
    book = contents.read(root)
    folder = root / downloads.FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for kind, held in (("site", site), ("notebooks", notebooks)):
        path = folder / f"{book.slug}-{kind}.zip"
        archives.write(path, held(root, f"{book.slug}-{kind}"))
        downloads.put(root, path)


if __name__ == "__main__":
    raise SystemExit(main())
