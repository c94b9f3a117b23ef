"""Pages that open at once: they load what they use, and nothing waits for scripts.

- A page loads the scripts that it uses, once it is shown. The theme's own list of
  scripts, without that of all icons, is `_templates/static/webpack-macros.html`.
- Its pictures are WebP, state their size, and come when they are near.
- Words of code that have the colour of plain text have no tag.
- Its style sheets are one, which holds what some page or script can use.
"""

import re
import shutil
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image
from sphinx.application import Sphinx

# What stands on a page that uses a script; others do not load it.
RESULTS = '<div id="search-results">'  # on the page of the search alone
TROUBLES = '<ul class="proved troubles'  # on that of Troubleshooting
USED_BY = {
    "calculators.js": '<form class="calculator"',
    "clipboard.min.js": "<pre",
    "copybutton.js": "<pre",
    "design-tabs.js": 'class="sd-tab-set',
    "doctools.js": RESULTS,
    "finder.js": TROUBLES,
    "minisearch.min.js": TROUBLES,
    "search.js": RESULTS,
    "documentation_options.js": "no page: webpack-macros.html has it",
    "sphinx_highlight.js": RESULTS,
}
SCRIPT_NAME = re.compile(r'src="[^"]*?([^/"?]+)(?:\?[^"]*)?"')

PNG = re.compile(r'(?<=_images/)([^"/]+)\.png(?=")')
PICTURE_SIZE = re.compile(r' style="width: (\d+)px; height: (\d+)px;"')

# Pygments's names for code that the site's two styles show in the colour of text.
PLAIN_CODE = re.compile(r'<span class="(?:n|nn|nx|p|pm|w|x|g)">([^<]*)</span>')
# It names each part of a string by itself; all have one colour.
STRING = '<span class="s[12adi]">'
SAME_COLOUR = re.compile(rf"{STRING}[^<]*(?:</span>\s*{STRING}[^<]*)+")

CLASSES = re.compile(r'\sclass="([^"]*)"')
WORD = re.compile(r"[A-Za-z_][\w-]*")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
RULE = re.compile(r"([^{}@;]+)\{[^{}]*\}")
EMPTY_GROUP = re.compile(r"@media[^{}]*\{\s*\}")
NO_CLASS = re.compile(r"\[[^]]*\]|:not\([^)]*\)")  # what need not be on a page
CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
FONT_OF_ALL_ICONS = "vendor/fontawesome/"
SHEET = "book.css"
FIRST_SHEETS = ("basic.css", "styles/pydata-sphinx-theme.css")  # no page lists them
NOT_LOADED = ("*.css", "styles", "vendor/fontawesome", "scripts/*.map")


def script_tag(plain: Callable[[Any], str], body: str, script: Any) -> str:
    """The tag of a script that waits for the page; none for one that it does not use.

    Args:
        plain: Sphinx's own function that makes the tag.
        body: the HTML of the page's text.
        script: what Sphinx knows of the script.
    """
    tag = plain(script)
    name = SCRIPT_NAME.search(tag)
    if name and USED_BY.get(name[1], "") not in body:
        return ""
    if not name or " defer" in tag or body == RESULTS:  # of these, one calls another
        return tag
    return tag.replace("<script", "<script defer", 1)


def write_webp(png: Path, webp: Path) -> None:
    """Write a picture as WebP, without a loss and a third of the size."""
    webp.parent.mkdir(exist_ok=True)
    with Image.open(png) as image:
        image.save(webp, lossless=True, method=4, quality=80)


def lighter_pictures(body: str, sources: dict[str, Path], folder: Path) -> str:
    """Show WebP for PNG, with its size; leave all but the first until they are near.

    Args:
        body: the HTML of a page's text.
        sources: the pictures that pages show, by their names there.
        folder: that of the site's pictures.
    """
    for name in set(PNG.findall(body)):
        write_webp(sources[f"{name}.png"], folder / f"{name}.webp")
    body = PICTURE_SIZE.sub(r' width="\1" height="\2"', PNG.sub(r"\1.webp", body))
    first, tag, rest = body.partition("<img")
    return first + tag + rest.replace("<img", '<img loading="lazy"')


def lighten_page(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: object,
) -> None:
    """Lighten the text of a page, and choose its scripts."""
    if app.builder.name != "html":
        return
    context["css_files"] = ()  # in place of them, webpack-macros.html names `SHEET`
    body = RESULTS if pagename == "search" else context.get("body") or ""
    context["js_tag"] = partial(script_tag, context["js_tag"], body)
    if "body" in context:
        folder = Path(app.outdir, app.builder.imagedir)
        sources = {
            name: Path(app.srcdir, path) for path, name in app.builder.images.items()
        }
        body = PLAIN_CODE.sub(r"\1", body)
        body = SAME_COLOUR.sub(in_one_span, body)
        context["body"] = lighter_pictures(body, sources, folder)


def in_one_span(spans: re.Match[str]) -> str:
    """Spans of one colour, one after the other, as one."""
    return re.sub(rf"</span>(\s*){STRING}", r"\1", spans[0])


def without_unused_rules(sheet: str, used: set[str]) -> str:
    """Leave out the rules of a style sheet that match nothing on any page.

    A rule goes if each of its selectors asks for a class that is not used. So do the
    theme's fonts of all icons.

    Args:
        sheet: the text of the style sheet. Licences in it stay, other comments go.
        used: the classes of pages, and the words of scripts, which may be classes.
    """

    def rule_if_used(rule: re.Match[str]) -> str:
        selectors = NO_CLASS.sub("", rule[1]).split(",")
        matches = any(used.issuperset(CLASS.findall(one)) for one in selectors)
        return rule[0] if matches and FONT_OF_ALL_ICONS not in rule[0] else ""

    licences = [text for text in COMMENT.findall(sheet) if text.startswith("/*!")]
    rules = RULE.sub(rule_if_used, COMMENT.sub("", sheet))
    return "\n".join([*licences, EMPTY_GROUP.sub("", rules)])


def used_classes(pages: Iterable[str], scripts: Iterable[str]) -> set[str]:
    """The classes of pages, and the words of scripts.

    Args:
        pages: the HTML of all pages.
        scripts: the texts of all scripts.
    """
    lists = {names for html in pages for names in CLASSES.findall(html)}
    words = {word for text in scripts for word in WORD.findall(text)}
    return words.union(*(names.split() for names in lists))


def one_sheet(app: Sphinx) -> str:
    """All style sheets of the site as one, in the order in which pages would load them.

    Its place is the folder `_static`: addresses in the theme's sheets are not turned.
    """
    out = Path(app.outdir)
    static = out / "_static"
    used = used_classes(
        (path.read_text(encoding="utf-8") for path in out.rglob("*.html")),
        (path.read_text(encoding="utf-8") for path in static.rglob("*.js")),
    )
    listed = sorted(app.builder._css_files, key=lambda sheet: sheet.priority)
    paths = [static / name for name in FIRST_SHEETS]
    paths += [out / str(sheet.filename) for sheet in listed]
    sheets = (path.read_text(encoding="utf-8") for path in paths)
    return "\n".join(without_unused_rules(sheet, used) for sheet in sheets)


def lighten_site(app: Sphinx, exception: Exception | None) -> None:
    """Write the one style sheet, and remove the files that no page loads."""
    if exception is not None or app.builder.name != "html":
        return
    static = Path(app.outdir, "_static")
    remove(static, "scripts/fontawesome.js")
    sheet = one_sheet(app)
    for pattern in NOT_LOADED:
        remove(static, pattern)
    for path in Path(app.outdir).glob("_images/*.webp"):
        path.with_suffix(".png").unlink(missing_ok=True)
    (static / SHEET).write_text(sheet, encoding="utf-8")


def remove(folder: Path, pattern: str) -> None:
    """Remove files and folders, by the pattern of their paths in a folder."""
    for path in folder.glob(pattern):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.connect("html-page-context", lighten_page, priority=900)
    app.connect("build-finished", lighten_site, priority=900)
