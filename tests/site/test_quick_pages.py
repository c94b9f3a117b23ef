"""What makes pages light, and the first page, by parts."""

import re

import pytest
from book_site import landing_page, page_description, quick_pages
from docutils import nodes
from PIL import Image, ImageChops
from pygments.styles import get_style_by_name
from pygments.token import STANDARD_TYPES, Text

SHEET = """\
/*! A licence */
/* gone: v1.2 */
@charset "UTF-8";.used, .unused { color: red }
p .used > a:hover { top: 0 }
.unused:not(.used) { color: red }
.used:not(.unused) { color: blue }
a[href^="https://x.org/"] { left: 0 }
div:is(.unused, .used) { margin: calc(1px + 2px) }
@media print { .unused { top: 0 } }
@font-face { src: url(../vendor/fontawesome/a.ttf) }
"""


def test_a_style_sheet_keeps_what_pages_can_use():
    sheet = quick_pages.without_unused_rules(SHEET, {"used"})
    assert [line.strip() for line in sheet.splitlines() if line.strip(" @")] == [
        "/*! A licence */",
        '@charset "UTF-8";.used, .unused { color: red }',
        "p .used > a:hover { top: 0 }",
        ".used:not(.unused) { color: blue }",
        'a[href^="https://x.org/"] { left: 0 }',
        "div:is(.unused, .used) { margin: calc(1px + 2px) }",
    ]


@pytest.mark.parametrize(
    ("name", "body", "tag"),
    [
        ("site.js", "", '<script defer src="../_static/site.js?v=1"></script>'),
        ("copybutton.js", "", ""),
        ("doctools.js", "<pre>", ""),
        (
            "doctools.js",
            quick_pages.RESULTS,
            '<script src="../_static/doctools.js?v=1"></script>',
        ),
    ],
)
def test_a_page_loads_the_scripts_that_it_uses_and_does_not_wait(name, body, tag):
    plain = '<script src="../_static/{}?v=1"></script>'.format
    assert quick_pages.script_tag(plain, body, name) == tag


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_code_without_a_tag_has_the_colour_that_it_would_have(mode):
    style = get_style_by_name(f"a11y-high-contrast-{mode}")
    plain = style.style_for_token(Text)["color"]
    for kind, name in STANDARD_TYPES.items():
        if quick_pages.PLAIN_CODE.fullmatch(f'<span class="{name}">x</span>'):
            assert style.style_for_token(kind)["color"] in (plain, None), kind
    strings = [
        style.style_for_token(kind)
        for kind, name in STANDARD_TYPES.items()
        if re.fullmatch(quick_pages.STRING, f'<span class="{name}">')
    ]
    assert len(strings) > 2 and all(each == strings[0] for each in strings)


def test_pictures_are_smaller_without_a_loss_and_state_their_size(tmp_path):
    png = Image.effect_noise((60, 40), 90).convert("RGB")
    png.save(tmp_path / "source.png")
    style = ' style="width: 30px; height: 20px;"'
    body = (
        f'<a href="../_images/a.png"><img src="../_images/a.png"{style}></a>'
        '<img src="../_images/b.svg">'
    )
    sources = {"a.png": tmp_path / "source.png", "b.svg": tmp_path / "b.svg"}
    assert quick_pages.lighter_pictures(body, sources, tmp_path / "_images") == (
        '<a href="../_images/a.webp">'
        '<img src="../_images/a.webp" width="30" height="20"></a>'
        '<img loading="lazy" src="../_images/b.svg">'
    )
    with Image.open(tmp_path / "_images" / "a.webp") as webp:
        assert not ImageChops.difference(png, webp.convert("RGB")).getbbox()


@pytest.mark.parametrize(
    ("link", "moved"),
    [
        ("../_static/site.css?v=1", "_static/site.css?v=1"),
        ("../", "./"),
        ("glossary.html#x", "book/glossary.html#x"),
        ("#a-section", "#a-section"),
        ("mailto:a@b.c", "mailto:a@b.c"),
    ],
)
def test_the_first_page_turns_its_links_when_it_moves_up(link, moved):
    page = '<a class="x" href="{}"><p>href="../a"</p>'
    assert landing_page.move_up(page.format(link), "book") == page.format(moved)


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
