"""Pictures that are small, and that say how large they are before they are there.

The PNG files of outputs become WebP without a loss, a third of the size. The notebooks
keep PNG. A picture that exists already is not made again.
"""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

from PIL import Image

PICTURE = re.compile(r"<img\b[^>]*>")
SOURCE = re.compile(r'\bsrc="([^"]+)"')
STATED = re.compile(r' style="width: (\d+)px; height: (\d+)px;"')
PNG = re.compile(r"(\b_images/[^\"/]+)\.png\b")
ARTICLE = '<article class="bd-article'
MARK = "logo__image"  # the book's, above all pages
UNITS = {
    "": 1.0,
    "px": 1.0,
    "pt": 96 / 72,
    "in": 96.0,
    "cm": 96 / 2.54,
    "mm": 96 / 25.4,
}
LENGTH = re.compile(r"([\d.]+)([a-z]*)")


def convert(png: Path) -> None:
    """Make the WebP file beside a PNG file, unless it is there and newer."""
    webp = png.with_suffix(".webp")
    if webp.exists() and webp.stat().st_mtime >= png.stat().st_mtime:
        return
    with Image.open(png) as image:
        image.save(webp, lossless=True, method=4, quality=80)
    told = png.stat()
    os.utime(webp, ns=(told.st_atime_ns, told.st_mtime_ns))


def convert_all(out: Path) -> None:
    """Make WebP files of the PNG files that pages show.

    Args:
        out: the folder of the site. Sphinx has copied the pictures to `_images` in it.
    """
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(convert, sorted((out / "_images").glob("*.png"))))


def clear(out: Path) -> None:
    """Remove the PNG files that no page shows any more."""
    for webp in (out / "_images").glob("*.webp"):
        webp.with_suffix(".png").unlink(missing_ok=True)


def size(path: Path) -> tuple[int, int]:
    """Width and height of a picture, in pixels as CSS counts them."""
    if path.suffix != ".svg":
        with Image.open(path) as image:
            return image.size
    top = ElementTree.parse(path).getroot()
    found = [LENGTH.fullmatch(top.get(side, "")) for side in ("width", "height")]
    if all(found):
        width, height = (float(one[1]) * UNITS[one[2]] for one in found)
    else:
        width, height = map(float, top.get("viewBox").split()[2:])
    return round(width), round(height)


def state_sizes(html: str, page: Path) -> str:
    """Show WebP for PNG, state sizes, and leave pictures until they come into sight.

    The first picture of the text and the book's mark, which are seen first, don't wait.
    Those of menus have their size from the style sheet.

    Args:
        html: a page.
        page: where it is written.
    """
    html = PNG.sub(r"\1.webp", html)
    text = html.find(ARTICLE)
    first = PICTURE.search(html, text) if text >= 0 else None

    def dress(tag: re.Match[str]) -> str:
        source, stated = SOURCE.search(tag[0]), STATED.search(tag[0])
        path = page.parent / (source[1] if source else "")
        if not path.is_file():
            return tag[0]
        added = ""
        if MARK in tag[0] or tag.start() > text >= 0:
            width, height = stated.groups() if stated else size(path)
            added = f' width="{width}" height="{height}"'
        if MARK not in tag[0] and (first is None or tag.start() != first.start()):
            added += ' loading="lazy"'
        return "<img" + added + STATED.sub("", tag[0]).removeprefix("<img")

    return PICTURE.sub(dress, html)
