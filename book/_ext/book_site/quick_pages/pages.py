"""What a page of the site loads, put right once all pages are written.

- Its style sheets become one, which holds what pages use: `styles.py` and `icons.py`.
- It loads the scripts that it uses, and none keeps the page from being shown.
- Its pictures are small, and state their size: `pictures.py`.

What was in pages' style sheets, and is in that one now, leaves the site.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from sphinx.application import Sphinx

from book_site.quick_pages import icons, pictures
from book_site.quick_pages.styles import Reader, without_unread

SHEET = "book.css"
LINK = re.compile(
    r'[ \t]*<link(?=[^>]* rel="stylesheet")[^>]* href="(?P<to>[^"]*?/?_static/)'
    r'(?P<name>[^"?]+)(?:\?[^"]*)?"[^>]*>\n?'
)
ONE_LINK = re.compile(rf"(?<=_static/{SHEET}\?v=)\w*")
SCRIPT = re.compile(
    r'[ \t]*<script(?P<before>[^>]*) src="(?P<to>[^"?]+)(?:\?[^"]*)?"'
    r"(?P<after>[^>]*)></script>\n?"
)
PRELOAD = re.compile(r'[ \t]*<link rel="preload" as="script"[^>]*>\n?')
TAG = re.compile(r"<([a-z][a-z0-9]*)")
CLASSES = re.compile(r'\sclass="([^"]*)"')
TOGGLES = re.compile(r'data-bs-toggle="([^"]*)"')
WORD = re.compile(r"[A-Za-z_][\w-]*")
VARIABLE = re.compile(r"--[\w-]+")

SEARCHES = 'id="search-results"'
# What stands on a page that uses a script; others do not load it.
USED_BY = {
    "clipboard.min.js": "<pre",
    "copybutton.js": "<pre",
    "design-tabs.js": 'class="sd-tab-set',
    "doctools.js": SEARCHES,
    "fontawesome.js": "never: the style sheet has the icons",
    "language_data.js": SEARCHES,
    "searchindex.js": SEARCHES,
    "searchtools.js": SEARCHES,
    "sphinx_highlight.js": SEARCHES,
}
INLINE = "documentation_options.js"  # a few words that those behind it ask for
BOOTSTRAP = "bootstrap.js"
STATES = {"show", "fade", "active", "disabled"}  # what Bootstrap says of its parts
NOT_LOADED = ("styles/*.map", "vendor/fontawesome", "scripts/fontawesome.js*")
# Before anything is drawn: without it, the page takes its colours from a script.
THEME = (
    "<script>{const root=document.documentElement.dataset;"
    'if(root.theme==="auto")root.theme='
    'matchMedia("(prefers-color-scheme: dark)").matches?"dark":"light"}</script>\n'
)


def script_tags(html: str, static: Path) -> str:
    """Leave out scripts that a page does not use, and have the others wait for it.

    Args:
        html: a page.
        static: the folder of scripts.
    """

    def put(tag: re.Match[str]) -> str:
        name = tag["to"].rpartition("/")[2]
        if USED_BY.get(name, "") not in html:
            return ""
        if name == INLINE:
            return f"<script>{(static / name).read_text(encoding='utf-8')}</script>\n"
        if re.search(r"\b(defer|async|module)\b", tag["before"] + tag["after"]):
            return tag[0]
        return tag[0].replace("<script", "<script defer", 1)

    return SCRIPT.sub(put, PRELOAD.sub("", html))


def used_names(pages: Iterable[str], scripts: dict[str, str]) -> set[str]:
    """The elements and classes of pages, and the words of scripts, which may be such.

    Of Bootstrap's words, those of the parts that pages use.

    Args:
        pages: their HTML.
        scripts: texts by file name.
    """
    used, toggles = {"html", "body"}, set()
    for html in pages:
        used.update(TAG.findall(html))
        toggles.update(TOGGLES.findall(html))
        for names in set(CLASSES.findall(html)):
            used.update(names.split())
    for name, text in scripts.items():
        words = set(WORD.findall(text))
        if name == BOOTSTRAP:
            of_parts = {x for x in words if any(part in x for part in toggles)}
            words = of_parts | words & STATES
        used |= words
    return used


def linked(pages: Iterable[str], tag: re.Pattern[str], part: str) -> list[str]:
    """What pages link, in order, each once."""
    return list(dict.fromkeys(m[part] for html in pages for m in tag.finditer(html)))


def one_sheet(static: Path, names: list[str], pages: list[str]) -> str:
    """The style sheet of all pages.

    Args:
        static: the folder of style sheets and scripts.
        names: the sheets that pages link, by their paths in it.
        pages: all pages' HTML.
    """
    paths = (to.partition("_static/")[2] for to in linked(pages, SCRIPT, "to"))
    files = (static / path for path in dict.fromkeys(paths) if path)
    scripts = {x.name: x.read_text(encoding="utf-8") for x in files if x.is_file()}
    used = used_names(pages, scripts)
    reader = Reader(static, used)
    rules = [rule for name in names for rule in reader.sheet(name)]
    read = {word for text in scripts.values() for word in VARIABLE.findall(text)}
    rules = without_unread(rules, read)
    rules = icons.with_used_icons(rules, static, used)
    return '@charset "UTF-8";\n' + "".join(map(str, rules))


def with_sheet(html: str, version: str) -> str:
    """A page with one style sheet in place of those that it links.

    Args:
        html: a page; one that has been put right before gets the new version only.
        version: what changes when the sheet does.
    """
    first = LINK.search(html)
    if first and first["name"] != SHEET:
        one = f'<link rel="stylesheet" href="{first["to"]}{SHEET}?v=" />\n'
        start = first.start()
        html = html[:start] + THEME + one + LINK.sub("", html[start:])
    return ONE_LINK.sub(version, html)


def clear(static: Path, names: list[str]) -> None:
    """Remove what no page loads any more.

    Args:
        static: the folder of style sheets and scripts.
        names: the sheets that became one, by their paths in it.
    """
    for pattern in (*names, *NOT_LOADED):
        for path in static.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def lighten(out: Path) -> None:
    """Put right the pages that were just written, and the style sheet of all.

    Args:
        out: the folder of the site.
    """
    static = out / "_static"
    paths = (x for x in out.rglob("*.html") if "_static" not in x.parts)
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(paths)}
    names = [x for x in linked(pages.values(), LINK, "name") if x != SHEET]
    if not names:
        return  # no page was written
    pictures.convert_all(out)
    now = dict(pages)
    for path, html in pages.items():
        if not ONE_LINK.search(html):
            now[path] = pictures.state_sizes(script_tags(html, static), path)
    sheet = one_sheet(static, names, list(now.values()))
    (static / SHEET).write_text(sheet, encoding="utf-8")
    version = hashlib.sha256(sheet.encode()).hexdigest()[:8]
    for path, html in now.items():
        html = with_sheet(html, version)
        if html != pages[path]:
            path.write_text(html, encoding="utf-8")
    clear(static, names)
    pictures.clear(out)


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Put the site right once it is written whole, the theme's last files too."""
    if exception is None and app.builder.name == "html":
        lighten(Path(app.outdir))


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.connect("build-finished", finish, priority=900)
