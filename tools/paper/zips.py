"""The site, to read without a network, and all notebooks, each as a zip."""

import re
import shutil
from pathlib import Path

from tools.paper import pages

# Of no use without a server, or made for one.
LEFT_OUT = shutil.ignore_patterns(
    "downloads", ".buildinfo*", "objects.inv", "sitemap.xml", "404.html"
)
DOWNLOAD_LINK = re.compile(r'href="(?:\.\./)?downloads/')
NEEDED = ("LICENSE*", "requirements*.txt", "assignments/*.ipynb", "notebooks/*.ipynb")
README = Path(__file__).parent / "static" / "notebooks.txt"


def pack(folder: Path) -> Path:
    """Write a zip that holds a folder, beside it."""
    return Path(shutil.make_archive(str(folder), "zip", folder.parent, folder.name))


def site(root: Path, folder: Path, book: pages.Book) -> Path:
    """Pack the site. Links to downloads, which it does not hold, lead to the web."""
    copy = folder / f"{book.slug}-site"
    shutil.copytree(pages.site(root), copy, ignore=LEFT_OUT)
    for page in (copy / "index.html", copy / "book" / "welcome.html"):
        text = page.read_text(encoding="utf-8")
        text = DOWNLOAD_LINK.sub(f'href="{book.web}downloads/', text)
        page.write_text(text, encoding="utf-8")
    return pack(copy)


def notebooks(root: Path, folder: Path, book: pages.Book) -> Path:
    """Pack the notebooks with what they need, and say how to run them."""
    copy = folder / f"{book.slug}-notebooks"
    for path in [path for pattern in NEEDED for path in root.glob(pattern)]:
        place = copy / path.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    shutil.copy(root / "constraints" / "latest.txt", copy / "constraints.txt")
    readme = README.read_text(encoding="utf-8")
    line = "=" * len(book.title)
    readme = readme.format(title=book.title, line=line, web=book.web)
    (copy / "README.txt").write_text(readme, encoding="utf-8")
    return pack(copy)
