"""The book as an EPUB: `make epub`."""

from __future__ import annotations

from pathlib import Path

from tools.model.chapters import ROOT
from tools.model.errors import command
from tools.paper import check_epub, contents, downloads, edition


@command
def main(root: Path = ROOT) -> None:
    """Make the EPUB, check it and say where it is."""
    book = contents.read(root)
    folder = edition.build(root, root / edition.FOLDER / "epub")
    epub = folder / f"{book.slug}.epub"
    check_epub.check(epub)
    downloads.put(root, epub)


if __name__ == "__main__":
    raise SystemExit(main())
