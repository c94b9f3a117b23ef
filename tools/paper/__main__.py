"""The command line: `python -m tools.paper pdf`, `epub` or `zip`."""

import argparse
import sys
import tempfile
from pathlib import Path

from tools.model import files
from tools.model.chapters import ROOT
from tools.model.errors import command
from tools.paper import epub, pages, pdf, zips

MAKERS = {"pdf": (pdf.make,), "epub": (epub.make,), "zip": (zips.site, zips.notebooks)}


@command
def main(arguments: list[str], root: Path = ROOT) -> None:
    """Make the book in the chosen form, and say where it lies."""
    parser = argparse.ArgumentParser(prog="python -m tools.paper", description=__doc__)
    parser.add_argument("form", choices=MAKERS)
    form = parser.parse_args(arguments).form
    downloads, book = root / files.DOWNLOADS, pages.book(root)
    downloads.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=downloads.parent) as folder:
        for make in MAKERS[form]:
            whole = make(root, Path(folder), book)
            path = whole.replace(downloads / whole.name)
            print(f"{path.relative_to(root)}: {files.size_in_words(path)}")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
