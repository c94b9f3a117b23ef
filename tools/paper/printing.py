"""Print a page with Chromium."""

from __future__ import annotations

from pathlib import Path

import pikepdf
from playwright.sync_api import Page, sync_playwright

from tools import chromium
from tools.model.errors import UserError
from tools.paper import check_pdf, pages
from tools.paper.pages import HEADING, words
from tools.paper.sheets import Sheet

PIXELS = 96 / 25.4  # of CSS, in a millimetre
LIMIT = 600_000  # milliseconds for all pages
# Tables that are too wide get smaller type, down to what can be read, and then words
# are broken. What is still too wide is named.
FIT = """(width) => {
  const wide = (node) => node.scrollWidth > width + 1
    || node.getBoundingClientRect().right > width + 1;
  const fit = (node, from) => {
    for (let size = from; wide(node) && size > 0.59; size -= 0.04)
      node.style.fontSize = `${size}em`;
  };
  for (const table of document.querySelectorAll("table")) {
    fit(table, 0.8);
    if (wide(table)) table.style.overflowWrap = "anywhere";
  }
  for (const formula of document.querySelectorAll("math")) fit(formula, 1);
  return [...document.querySelectorAll("body *")]
    .filter((node) => node.getBoundingClientRect().right > width + 1)
    .filter((node) => ![...node.children].some(
      (child) => child.getBoundingClientRect().right > width + 1))
    .map((node) => `<${node.tagName}> in ${node.closest("[id]")?.id}: `
      + node.textContent.slice(0, 60));
}"""

# Put the numbers of pages in their places; what has none is named.
FILL = """(numbers) => [...document.querySelectorAll("[data-page-of]")]
  .filter((node) => !(node.textContent = numbers[node.dataset.pageOf] ?? ""))
  .map((node) => node.dataset.pageOf)"""


def print_pdf(page_file: Path, pdf: Path, sheet: Sheet) -> None:
    """Print a page of XHTML, twice: the first time tells the numbers of the pages.

    Args:
        page_file: the page.
        pdf: the file to write.
        sheet: what is printed on.

    Raises:
        UserError: something is wider than the page, or no number can be told.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**chromium.launch_options())
        try:
            page = browser.new_page()
            page.set_default_timeout(LIMIT)
            load(page, page_file, sheet)
            print_out(page, pdf)
            numbers = page_numbers(pdf)
            missing = page.evaluate(FILL, numbers)
            if missing:
                raise UserError(
                    f"{pdf.name}: no page is known for {', '.join(missing[:3])}. "
                    f"Fix: see whether Chromium {browser.version} prints links"
                )
            print_out(page, pdf)
            if page_numbers(pdf) != numbers:
                raise UserError(
                    f"{pdf.name}: the numbers in the contents moved the pages. "
                    "Fix: give .page-number more room in tools/paper/static/pdf.css"
                )
        finally:
            browser.close()
    finish(pdf, page_file)


def print_out(page: Page, pdf: Path) -> None:
    """Write what is open as a PDF, with its bookmarks and a description of its text."""
    page.pdf(
        path=pdf,
        prefer_css_page_size=True,
        print_background=True,
        outline=True,
        tagged=True,
    )


def page_numbers(pdf: Path) -> dict[str, int]:
    """The numbers of the pages, from 1, of all places that links lead to."""
    with pikepdf.open(pdf) as book:
        return check_pdf.places(book)


def finish(pdf: Path, page_file: Path) -> None:
    """Mend a PDF's bookmarks, and make it smaller.

    Chromium loses the space where a title goes on in a second line, and leaves the
    description of the text as large as it is.
    """
    titles = {
        "".join(words(element).split()): words(element)
        for element in pages.read(page_file).iter()
        if HEADING.fullmatch(element.tag)
    }
    with pikepdf.open(pdf, allow_overwriting_input=True) as book:
        with book.open_outline() as outline:
            waiting = list(outline.root)
            while waiting:
                entry = waiting.pop()
                entry.title = titles.get("".join(entry.title.split()), entry.title)
                waiting += entry.children
        book.save(
            pdf,
            object_stream_mode=pikepdf.ObjectStreamMode.generate,
            recompress_flate=True,
        )


def load(page: Page, page_file: Path, sheet: Sheet) -> None:
    """Open a page as wide as the lines on paper, and see that all fits."""
    width = round(sheet.measure * PIXELS)
    page.set_viewport_size({"width": width, "height": 1000})
    page.emulate_media(media="print")
    page.goto(page_file.as_uri())
    page.evaluate("document.fonts.ready.then(() => null)")
    wide = page.evaluate(FIT, width)
    if wide:
        raise UserError(
            f"{len(wide)} things are wider than the page, the first: {wide[0]}. "
            "Fix: let them wrap, in tools/paper/static/pdf.css"
        )
