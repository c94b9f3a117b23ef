"""What makes pages light, by parts and in the built site, in a real browser.

That each page keeps to its budget is held in `test_site.py`.
"""

from __future__ import annotations

import base64
import io
import re

import bs4
import pytest
import test_site
from book_site.quick_pages import highlighting, icons, pages, pictures, styles
from fontTools import ttLib
from PIL import Image, ImageChops
from pygments.lexers import PythonLexer
from pygments.styles import get_style_by_name
from pygments.token import STANDARD_TYPES, Text
from test_site import DESKTOP, HTML, PHONE, host, search, watch

base, browser, reader = test_site.base, test_site.browser, test_site.reader  # fixtures
CHAPTER = "notebooks/06-mixed-precision.html"
LIGHT = get_style_by_name("a11y-high-contrast-light")
DARK = get_style_by_name("a11y-high-contrast-dark")

SHEET = """\
/*! A licence */
@import "../more.css";
/* gone */
.used, .unused { color: var(--read); --read: red; --unread: blue }
p .used > a:hover, P::before { background: url(../a.png) ; animation: turn 1s }
.unused:not(.used) { color: red }
div:is(.unused, .used) { margin: calc(1px + 2px) }
@media print { .used { --deep: var(--deeper); top: 0 !important } }
@media print { .unused { top: 0 } }
@keyframes turn { to { left: 0 } }
@keyframes never { to { left: 0 } }
"""


@pytest.fixture
def static(tmp_path):
    """A folder with style sheets."""
    (tmp_path / "styles").mkdir()
    (tmp_path / "styles" / "theme.css").write_text(SHEET)
    (tmp_path / "more.css").write_text("ul, table { background: url(b.png) }")
    return tmp_path


def test_a_style_sheet_keeps_what_pages_can_use(static):
    reader = styles.Reader(static, {"p", "a", "div", "ul", "used"})
    rules = styles.without_unread(reader.sheet("styles/theme.css"), {"--deep"})
    assert "".join(map(str, rules)).splitlines() == [
        "ul{background:url(b.png)}",
        "/*! A licence */",
        ".used{color:var(--read);--read:red}",
        "p .used>a:hover,P::before{background:url(a.png);animation:turn 1s}",
        "div:is(.unused,.used){margin:calc(1px + 2px)}",
        "@media print{.used{--deep:var(--deeper);top:0!important}",
        "}",
        "@keyframes turn { to { left: 0 } }",
    ]


def test_a_style_sheet_that_cannot_be_read_stops_the_build(static):
    (static / "more.css").write_text("ul { li { top: 0 } }")
    with pytest.raises(styles.UserError, match=r"more\.css: line 1: a rule in a rule"):
        styles.Reader(static, {"ul"}).sheet("more.css")


def test_words_of_scripts_count_as_classes_and_bootstraps_where_a_page_uses_its_part():
    html = '<p class="a b"><button data-bs-toggle="dropdown">'
    scripts = {
        "x.js": "add('made')",
        "bootstrap.js": '"dropdown-menu" "modal" "show"',
    }
    used = pages.used_names([html], scripts)
    assert used >= {"p", "button", "a", "b", "made", "dropdown-menu", "show"}
    assert "modal" not in used


SCRIPTS = """\
<script src="../_static/documentation_options.js?v=1"></script>
<script src="../_static/one.js?v=1"></script>
<script defer="defer" src="../_static/two.js"></script>
<script src="../searchindex.js"></script>
"""


def test_scripts_wait_for_the_page_and_those_it_does_not_use_are_gone(static):
    (static / "documentation_options.js").write_text("const OPTIONS = {}")
    wait = [
        "<script>const OPTIONS = {}</script>",
        '<script defer src="../_static/one.js?v=1"></script>',
        '<script defer="defer" src="../_static/two.js"></script>',
    ]
    assert pages.script_tags(SCRIPTS, static).splitlines() == wait
    found = '<div id="search-results">'
    assert pages.script_tags(SCRIPTS + found, static).splitlines() == [
        *wait,
        '<script defer src="../searchindex.js"></script>',
        found,
    ]


def test_code_with_fewer_tags_looks_the_same():
    like = highlighting.looks(LIGHT, DARK)
    for kind in STANDARD_TYPES:
        for style in (LIGHT, DARK):
            look = style.style_for_token(kind)
            plain = style.style_for_token(Text)
            assert style.style_for_token(like[kind]) == (
                look if any(look.values()) else plain
            ), kind
    code = "import numpy as np\nx = f(1) + 'a'  # why\n"
    formatter = highlighting.LeanFormatter(like, nowrap=True)
    written = io.StringIO()
    formatter.format(PythonLexer().get_tokens(code), written)
    tags = bs4.BeautifulSoup(f"<pre>{written.getvalue()}</pre>", "html.parser")
    assert tags.get_text() == code
    assert [tag.get_text() for tag in tags.find_all("span")] == [
        *("import", "as", "=", "1", "+", "'a'", "# why")
    ]


def test_a_picture_becomes_smaller_without_a_loss(tmp_path):
    folder = tmp_path / "_images"
    for one in (folder, tmp_path / "x"):
        one.mkdir()
    png = Image.effect_noise((60, 40), 90).convert("RGBA")
    png.putalpha(120)
    png.save(folder / "a.png")
    (folder / "b.svg").write_text('<svg width="72pt" height="36pt"/>')
    pictures.convert_all(tmp_path)
    with Image.open(folder / "a.webp") as webp:
        assert webp.format == "WEBP"
        assert not ImageChops.difference(png, webp.convert("RGBA")).getbbox()
    html = (
        '<img src="../_images/b.svg"><article class="bd-article">'
        '<img src="../_images/a.png" style="width: 30px; height: 20px;">'
        '<img src="../_images/a.png"><img src="../_images/b.svg">'
    )
    shown = bs4.BeautifulSoup(
        pictures.state_sizes(html, tmp_path / "x" / "page.html"), "html.parser"
    )
    assert [
        [tag.get(x) for x in ("src", "width", "height", "loading")]
        for tag in shown.find_all("img")
    ] == [
        ["../_images/b.svg", None, None, "lazy"],
        ["../_images/a.webp", "30", "20", None],
        ["../_images/a.webp", "60", "40", "lazy"],
        ["../_images/b.svg", "96", "48", "lazy"],
    ]


# --- the built site -------------------------------------------------------------------


def icon_fonts() -> set[str]:
    """The characters of the icons in the site's style sheet."""
    text = (HTML / "_static" / "book.css").read_text(encoding="utf-8")
    fonts = re.findall(r"data:font/woff;base64,([\w+/=]+)", text)
    found = set()
    for font in fonts:
        font = ttLib.TTFont(io.BytesIO(base64.b64decode(font)))
        assert str(font["name"].getDebugName(1)) == icons.NAME
        found |= {chr(code) for code in font.getBestCmap()}
    return found


@pytest.mark.parametrize("page", [CHAPTER, "book/welcome.html", "search.html"])
def test_every_icon_of_a_page_is_in_its_style_sheet(reader, base, page):
    reader.open(base + page)
    shown = reader.tab.locator("[class*=fa-]").evaluate_all(
        "all => all.map(x => getComputedStyle(x, '::before').content)"
    )
    wanted = {value.strip('"') for value in shown}
    assert len(wanted) >= 5
    assert wanted <= icon_fonts()


def test_menus_and_hints_that_scripts_open_are_dressed(reader, base):
    reader.open(base + CHAPTER)
    tab = reader.tab
    menu = tab.locator(".dropdown-download-buttons .dropdown-menu")
    assert not menu.is_visible()
    tab.locator(".dropdown-download-buttons > button").click()
    menu.get_by_text(".ipynb").wait_for()
    place = "node => getComputedStyle(node).position"
    assert menu.evaluate(place) == "absolute"
    tab.keyboard.press("Escape")
    tab.locator(".theme-switch-button:visible").hover()
    hint = tab.locator(".tooltip")
    hint.wait_for()
    assert hint.evaluate(place) == "absolute"
    inner = hint.locator(".tooltip-inner")
    drawn = inner.evaluate("node => getComputedStyle(node).backgroundColor")
    assert drawn not in ("rgba(0, 0, 0, 0)", "transparent")
    assert not reader.problems


def test_code_is_copied_whole(browser, base):
    granted = ["clipboard-read", "clipboard-write"]
    copying = watch(browser, host(base), viewport=DESKTOP, permissions=granted)
    copying.open(base + CHAPTER)
    cell = copying.tab.locator(".cell_input:visible div.highlight").first
    cell.hover()
    cell.locator("button.copybtn").click()
    copied = copying.tab.evaluate("navigator.clipboard.readText()")
    assert copied == cell.locator("pre").inner_text().rstrip("\n")
    assert not copying.problems
    copying.tab.context.close()


def test_the_search_is_asked_with_a_key_without_a_network(browser, base):
    reader = watch(browser, "file://", viewport=DESKTOP, offline=True)
    reader.open((HTML / CHAPTER).as_uri())
    reader.tab.keyboard.press("Control+k")
    field = reader.tab.locator("dialog input[name=q]")
    field.fill("arithmetic intensity")
    field.press("Enter")
    reader.tab.wait_for_url("**/search.html?q=*")
    reader.tab.locator("#search-results a[href*='glossary']").first.wait_for()
    reader.tab.context.close()


def test_the_field_of_the_search_page_searches(reader, base):
    search(reader, base, "roofline", "01-why-gpus")
    field = reader.tab.locator("main form.bd-search input[name=q]")
    field.fill("log10")
    field.press("Enter")
    reader.tab.locator("#search-results a[href*='12-openvino']").first.wait_for()
    assert not reader.problems


SHIFTS = """() => new Promise((resolve) => {
  let sum = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) sum += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
  setTimeout(() => resolve(sum), 300);
})"""


def test_pictures_come_when_they_are_near_and_move_nothing(browser, base):
    watched = watch(browser, host(base), viewport=PHONE, has_touch=True, is_mobile=True)
    watched.open(base + CHAPTER)
    tab = watched.tab
    last = tab.locator("article img:visible").last
    name = last.get_attribute("src").rpartition("/")[2]
    assert name not in " ".join(watched.loaded)
    before = last.bounding_box()
    with tab.expect_response(f"**/{name}"):
        last.scroll_into_view_if_needed()
    last.evaluate("image => image.decode()")
    after = last.bounding_box()
    assert after["width"] == before["width"]
    assert abs(after["height"] - before["height"]) < 1
    assert before["height"] > 50
    assert tab.evaluate(SHIFTS) < 0.05
    assert not watched.problems
    tab.context.close()


def test_the_site_has_no_picture_and_no_style_that_no_page_loads():
    assert not list((HTML / "_images").glob("*.png"))
    assert len(list((HTML / "_images").glob("*.webp"))) > 20
    assert not list((HTML / "_static").glob("vendor/fontawesome"))
    assert not list((HTML / "_static" / "styles").glob("*.css"))
