"""The book as a PDF: `make pdf`, or `make pdf ARGS=--ereader` for small screens."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.model import files
from tools.model.chapters import ROOT
from tools.model.errors import command
from tools.paper import check_pdf, contents, downloads, edition, one_page, printing
from tools.paper.sheets import A4, E_READER, Sheet


def make(folder: Path, root: Path, sheet: Sheet, only: tuple[str, ...] = ()) -> Path:
    """Print pages that `edition.build` wrote, and check what was printed.

    Args:
        folder: with the pages.
        root: the repository's folder.
        sheet: what to print on.
        only: the pages that were built; all, if there are none.

    Returns:
        The PDF, beside the pages.

    Raises:
        UserError: it could not be printed, or is not whole.
    """
    book = contents.read(root, only)
    page = folder / f"book{sheet.name}.xhtml"
    pdf = folder / f"{book.slug}{sheet.name}.pdf"
    text = one_page.join(folder, book, sheet, edition.edition_date(root))
    files.write_text(page, text)
    printing.print_pdf(page, pdf, sheet)
    check_pdf.check(pdf, page)
    return pdf


@command
def main(arguments: list[str], root: Path = ROOT) -> None:
    """Make the PDF and say where it is."""
    parser = argparse.ArgumentParser(prog="make pdf")
    parser.add_argument(
        "--ereader", action="store_true", help="pages of 120 × 160 mm, in place of A4"
    )
    sheet = E_READER if parser.parse_args(arguments).ereader else A4
    folder = edition.build(root, root / edition.FOLDER / (sheet.name[1:] or "a4"))
    downloads.put(root, make(folder, root, sheet))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
