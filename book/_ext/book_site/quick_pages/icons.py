"""The icons that pages show, and no others, in the style sheet itself.

The theme's icons are fonts of Font Awesome (SIL OFL 1.1), of which the site shows some
thirty characters. The part that holds them has a name of its own, as the licence asks.
"""

from __future__ import annotations

import base64
import io
import logging
import re
from collections.abc import Iterable
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

from book_site.quick_pages.styles import Rule, flat

logging.getLogger("fontTools").setLevel(logging.WARNING)  # it tells of each table

FILE = re.compile(r"url\((vendor/fontawesome/[^)]+\.ttf)\)")
PRIVATE = re.compile("[\ue000-\uf8ff]")  # the characters that are icons
OUTLINE = {"far", "fa-regular"}  # classes of icons from the font of weight 400
NAME, LICENCE = "Book icons", "SIL Open Font License 1.1, https://openfontlicense.org"


def part(path: Path, characters: Iterable[str]) -> bytes:
    """A font with these characters only, as WOFF.

    Args:
        path: the whole font, TrueType.
        characters: those to keep; what the font lacks is passed over.
    """
    font = TTFont(path, recalcTimestamp=False)
    options = subset.Options(
        layout_features=[], hinting=False, name_IDs=[0, 1, 2, 4, 6], notdef_outline=True
    )
    cut = subset.Subsetter(options)
    cut.populate(text="".join(characters))
    cut.subset(font)
    for number, text in {
        1: NAME,
        4: NAME,
        6: NAME.replace(" ", ""),
        13: LICENCE,
    }.items():
        font["name"].setName(text, number, 3, 1, 0x409)
    font.flavor = "woff"
    written = io.BytesIO()
    font.save(written, reorderTables=False)
    return written.getvalue()


def with_used_icons(rules: list[Rule], static: Path, used: set[str]) -> list[Rule]:
    """Put a part of each font of icons in place of the font.

    Args:
        rules: a sheet.
        static: the folder that the addresses in it start from.
        used: the classes that pages have.
    """
    values = (value for rule in flat(rules) for _, value in rule.lines or ())
    shown = sorted(set(PRIVATE.findall("".join(values))))
    kept = []
    for rule in rules:
        lines = dict(rule.lines or ())
        file = FILE.search(lines.get("src", ""))
        if file:
            outline = "Free" in lines["font-family"] and lines["font-weight"] == "400"
            if outline and not used & OUTLINE:
                continue
            data = base64.b64encode(part(static / file[1], shown)).decode()
            lines["src"] = f'url(data:font/woff;base64,{data}) format("woff")'
            rule.lines = list(lines.items())
        kept.append(rule)
    return kept
