"""The one style sheet of all pages."""

from book_site import quick_pages

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
