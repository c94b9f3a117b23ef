"""The parts of the site's extensions that need no build."""

from __future__ import annotations

import pytest
from book_site import landing_page, page_description
from docutils import nodes


@pytest.mark.parametrize(
    ("link", "moved"),
    [
        ("../_static/site.css?v=1", "_static/site.css?v=1"),
        ("../notebooks/03.html#claim-3-1", "notebooks/03.html#claim-3-1"),
        ("glossary.html", "book/glossary.html"),
        ("#a-section", "#a-section"),
        ("", ""),
        ("https://keras.io/", "https://keras.io/"),
        ("mailto:a@b.c", "mailto:a@b.c"),
        ("/book/index.html", "/book/index.html"),
    ],
)
def test_a_page_that_moves_up_turns_its_links(link, moved):
    page = '<a class="x" href="{}">'
    assert landing_page.move(page.format(link), "book") == page.format(moved)


def test_the_root_of_a_page_that_moves_up_keeps_its_slash():
    page = '<html lang="en" data-content_root="../">'
    moved = landing_page.move(page, "book")
    assert moved == '<html lang="en" data-content_root="./">'


def test_only_links_are_turned():
    page = '<meta name="x" content="../a"><p>href="../a"</p>'
    assert landing_page.move(page, "book") == page


def test_a_page_is_described_by_how_its_text_begins():
    page = nodes.document(None, None)
    colab = nodes.strong("", "", nodes.reference("", "Open in Colab"))
    page += nodes.paragraph("", "", colab)
    page += nodes.paragraph("", "", nodes.emphasis("", "Ten seconds on a CPU."))
    page += nodes.paragraph("", "The list is empty.")
    page += nodes.paragraph("", "Why? " * 60)
    text = page_description.describe(page)
    assert text.startswith("The list is empty. Why? Why?")
    assert text.endswith("Why? …")
    assert len(text) <= page_description.LIMIT
