"""The site, to read without a network, and all notebooks, each as a zip."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from tools.paper import contents

# Of no use without a server, or made for one.
LEFT_OUT = ("downloads", ".buildinfo", "objects.inv", "sitemap.xml", "404.html")
DOWNLOAD_LINK = re.compile(r'href="(?:\.\./)?downloads/')
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

The book, and how it is tested: {web}
Code: Apache License 2.0. Text and figures: CC BY 4.0.
"""


def pack(source: Path, folder: Path, name: str) -> Path:
    """Pack what a folder holds as `NAME.zip`, below a folder of that name."""
    source.rename(source.with_name(name))
    made = shutil.make_archive(str(source.parent / "made"), "zip", source.parent, name)
    return Path(shutil.move(made, folder / f"{name}.zip"))


def site(root: Path, folder: Path, slug: str) -> Path:
    """Pack the site. Links to downloads, which it does not hold, lead to the web."""
    html, web = contents.built_site(root), contents.read(root).web
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        copy = Path(temporary, "copy")
        shutil.copytree(html, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
        for page in (copy / "index.html", copy / "book" / "welcome.html"):
            if page.exists():
                text = page.read_text(encoding="utf-8")
                text = DOWNLOAD_LINK.sub(f'href="{web}downloads/', text)
                page.write_text(text, encoding="utf-8")
        return pack(copy, folder, f"{slug}-site")


def notebooks(root: Path, folder: Path, slug: str) -> Path:
    """Pack the notebooks with what they need, and say how to run them."""
    book = contents.read(root)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        copy = Path(temporary, "copy")
        for kind in ("assignments", "notebooks"):
            (copy / kind).mkdir(parents=True)
            for path in (root / kind).glob("*.ipynb"):
                shutil.copy(path, copy / kind)
        for path in (*root.glob("LICENSE*"), *root.glob("requirements*.txt")):
            shutil.copy(path, copy)
        shutil.copy(root / "constraints" / "latest.txt", copy / "constraints.txt")
        line = "=" * len(book.title)
        text = README.format(title=book.title, line=line, web=book.web)
        (copy / "README.txt").write_text(text, encoding="utf-8")
        return pack(copy, folder, f"{slug}-notebooks")
