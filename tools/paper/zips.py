"""The site, to read without a network, and all notebooks, each as a zip."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

from tools.paper import contents

# Of no use without a server, or made for one.
LEFT_OUT = ("downloads", ".buildinfo", "objects.inv", "sitemap.xml", "404.html")
WITH_LINKS = {"index.html", "book/welcome.html"}  # pages that offer downloads
DOWNLOAD_LINK = re.compile(r'href="(?:\.\./)?downloads/')
NOTEBOOKS = ("assignments/*.ipynb", "notebooks/*.ipynb")
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


def pack(path: Path, contained: Iterable[tuple[str, Path | str]]) -> Path:
    """Write a zip, or none after an error.

    Args:
        path: of the zip; all that it holds lies in a folder of that name.
        contained: names in that folder, each with a file or with a text.
    """
    part = path.with_suffix(".part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, source in contained:
                if isinstance(source, Path):
                    archive.write(source, f"{path.stem}/{name}")
                else:
                    archive.writestr(f"{path.stem}/{name}", source)
        return part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def site(root: Path, folder: Path, slug: str) -> Path:
    """Pack the site. Links to downloads, which it does not hold, lead to the web."""
    html, web = contents.built_site(root), contents.read(root).web
    contained: dict[str, Path | str] = {
        path.relative_to(html).as_posix(): path
        for path in sorted(html.rglob("*"))
        if path.is_file() and path.relative_to(html).parts[0] not in LEFT_OUT
    }
    for name in WITH_LINKS & set(contained):
        text = (html / name).read_text(encoding="utf-8")
        contained[name] = DOWNLOAD_LINK.sub(f'href="{web}downloads/', text)
    return pack(folder / f"{slug}-site.zip", contained.items())


def notebooks(root: Path, folder: Path, slug: str) -> Path:
    """Pack the notebooks with what they need, and say how to run them."""
    book = contents.read(root)
    readme = README.format(title=book.title, line="=" * len(book.title), web=book.web)
    contained: dict[str, Path | str] = {
        "README.txt": readme,
        "constraints.txt": root / "constraints" / "latest.txt",
    }
    for pattern in ("LICENSE*", "requirements*.txt", *NOTEBOOKS):
        for path in sorted(root.glob(pattern)):
            contained[path.relative_to(root).as_posix()] = path
    return pack(folder / f"{slug}-notebooks.zip", contained.items())
