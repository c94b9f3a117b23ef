"""Whether an EPUB of the book is whole: `python -m tools.paper.check_epub FILE`.

This is the cheap part of what EPUBCheck looks at: the archive, XHTML, links, contents.
Debian's package `epubcheck` tells more.
"""

from __future__ import annotations

import posixpath
import sys
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tools.model.errors import UserError, command

XHTML = "{http://www.w3.org/1999/xhtml}"
OPF = "{http://www.idpf.org/2007/opf}"
SCREEN = ("button", "details", "form", "input", "script")
WEB_ONLY = frozenset(f"{XHTML}{x}" for x in SCREEN)


def problems(epub: Path) -> Iterator[str]:
    """What is wrong with an EPUB."""
    try:
        archive = zipfile.ZipFile(epub)
    except (OSError, zipfile.BadZipFile) as error:
        yield f"it can't be read ({error})"
        return
    with archive:
        first = archive.infolist()[0]
        if first.filename != "mimetype" or first.compress_type != zipfile.ZIP_STORED:
            yield "its first entry is not `mimetype`, uncompressed"
        held = {name: archive.read(name) for name in archive.namelist()}
    trees = {}
    for name, data in held.items():
        if name.endswith((".xhtml", ".opf", ".ncx", ".svg")):
            try:
                trees[name] = ElementTree.fromstring(data)
            except ElementTree.ParseError as error:
                yield f"{name} is no XML: {error}"
    yield from manifest_problems(trees["content.opf"], set(held))
    ids = {
        (name, element.get("id"))
        for name, tree in trees.items()
        for element in tree.iter()
    }
    for name, tree in trees.items():
        for element in tree.iter():
            if element.tag in WEB_ONLY:
                yield f"{name}: <{element.tag.removeprefix(XHTML)}>, of no use there"
            aim = element.get("href", element.get("src", ""))
            if name.endswith(".xhtml") and aim:
                yield from link_problems(name, aim, set(held), ids)


def manifest_problems(package: ElementTree.Element, held: set[str]) -> Iterator[str]:
    """What the list of files has too much, or not."""
    listed = {unquote(item.get("href")) for item in package.iter(f"{OPF}item")}
    known = {"mimetype", "META-INF/container.xml", "content.opf"}
    for name in sorted(listed - held):
        yield f"{name} is listed and not there"
    for name in sorted(held - listed - known):
        yield f"{name} is there and not listed"
    ids = {item.get("id") for item in package.iter(f"{OPF}item")}
    for item in package.iter(f"{OPF}itemref"):
        if item.get("idref") not in ids:
            yield f"the order of reading names {item.get('idref')}, which is nothing"


def link_problems(
    name: str, aim: str, held: set[str], ids: set[tuple[str, str | None]]
) -> Iterator[str]:
    """Whether a link or a picture of a page is there."""
    parts = urlsplit(aim)
    if parts.scheme:
        return
    path = posixpath.join(posixpath.dirname(name), unquote(parts.path))
    path = posixpath.normpath(path) if parts.path else name
    if path not in held:
        yield f"{name}: {aim} is not there"
    elif parts.fragment and (path, unquote(parts.fragment)) not in ids:
        yield f"{name}: {aim} is no place in {path}"


def check(epub: Path) -> None:
    """Raise UserError if something is wrong with an EPUB."""
    found = list(problems(epub))
    if found:
        told = "\n".join(f"  {problem}" for problem in found[:20])
        raise UserError(
            f"{epub.name} is not whole: {len(found)} problems\n{told}\n"
            "Fix: mend the pages that are named, or tools/paper/form.py"
        )


@command
def main(epub: str) -> None:
    """Check an EPUB."""
    check(Path(epub))
    print(f"{epub}: whole")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
