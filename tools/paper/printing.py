"""Print a page with Chromium."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tools.errors import UserError
from tools.paper.sheets import Sheet
from tools.setup import chromium

PIXELS = 96 / 25.4  # of CSS, in a millimetre
LIMIT = 600_000  # milliseconds for all pages
NEEDED = "CSS.supports('content', 'target-counter(attr(href url), page)')"
# Tables that are too wide get smaller type, down to what can be read, and then words
# are broken. What is still too wide is named.
FIT = """(width) => {
  const wide = (node) => node.scrollWidth > width + 1
    || node.getBoundingClientRect().right > width + 1;
  for (const table of document.querySelectorAll("table")) {
    for (let size = 0.8; wide(table) && size > 0.59; size -= 0.04)
      table.style.fontSize = `${size}em`;
    if (wide(table)) table.style.overflowWrap = "anywhere";
  }
  return [...document.querySelectorAll("body *")]
    .filter((node) => node.getBoundingClientRect().right > width + 1)
    .filter((node) => ![...node.children].some(
      (child) => child.getBoundingClientRect().right > width + 1))
    .map((node) => `<${node.tagName}> in ${node.closest("[id]")?.id}: `
      + node.textContent.slice(0, 60));
}"""


def print_pdf(page_file: Path, pdf: Path, sheet: Sheet) -> None:
    """Print a page of XHTML.

    Args:
        page_file: the page.
        pdf: the file to write.
        sheet: what is printed on.

    Raises:
        UserError: Chromium is too old, or something is wider than the page.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**chromium.launch_options())
        try:
            page = browser.new_page()
            page.set_default_timeout(LIMIT)
            if not page.evaluate(NEEDED):
                raise UserError(
                    f"Chromium {browser.version} can't print page numbers in the "
                    "contents. Fix: install a newer one, or set CHROMIUM to its path"
                )
            load(page, page_file, sheet)
            page.pdf(
                path=pdf,
                prefer_css_page_size=True,
                print_background=True,
                outline=True,
                tagged=True,
            )
        finally:
            browser.close()


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
