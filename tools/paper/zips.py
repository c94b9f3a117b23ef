"""The site, to read without a network, and all notebooks, each as a zip."""

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

from tools.paper import pages

# Of no use without a server, or made for one.
LEFT_OUT = ("downloads", ".buildinfo", "objects.inv", "sitemap.xml", "404.html")
DOWNLOAD_LINK = re.compile(r'href="(?:\.\./)?downloads/')
NEEDED = ("LICENSE*", "requirements*.txt", "assignments/*.ipynb", "notebooks/*.ipynb")
README = Path(__file__).parent / "static" / "notebooks.txt"


def pack(
    path: Path, folder: Path, contained: Iterable[Path], texts: dict[str, str]
) -> Path:
    """Write a zip.

    Args:
        path: of the zip; all that it holds lies in a folder of that name.
        folder: where the files are.
        contained: the files.
        texts: what is in a file instead, or in one that is not there, by name.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in contained:
            name = file.relative_to(folder).as_posix()
            if name not in texts:
                archive.write(file, f"{path.stem}/{name}")
        for name, text in texts.items():
            archive.writestr(f"{path.stem}/{name}", text)
    return path


def site(root: Path, folder: Path, book: pages.Book) -> Path:
    """Pack the site. Links to downloads, which it does not hold, lead to the web."""
    html = pages.site(root)
    texts = {}
    for name in ("index.html", "book/welcome.html"):
        text = (html / name).read_text(encoding="utf-8")
        texts[name] = DOWNLOAD_LINK.sub(f'href="{book.web}downloads/', text)
    contained = [
        path
        for path in html.rglob("*")
        if not path.relative_to(html).as_posix().startswith(LEFT_OUT)
    ]
    return pack(folder / f"{book.slug}-site.zip", html, contained, texts)


def notebooks(root: Path, folder: Path, book: pages.Book) -> Path:
    """Pack the notebooks with what they need, and say how to run them."""
    line = "=" * len(book.title)
    readme = README.read_text(encoding="utf-8")
    texts = {
        "README.txt": readme.format(title=book.title, line=line, web=book.web),
        "constraints.txt": (root / "constraints" / "latest.txt").read_text("utf-8"),
    }
    contained = [path for pattern in NEEDED for path in root.glob(pattern)]
    return pack(folder / f"{book.slug}-notebooks.zip", root, contained, texts)
