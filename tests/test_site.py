"""The built site in a real browser, served as GitHub Pages would serve it.

`make book` builds the site first. Each page is opened once, in light and dark, at
desktop and phone width; the tests then look at what was found.
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import html.parser
import http.server
import itertools
import json
import os
import re
import threading
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlencode, urljoin, urlsplit

import bs4
import pytest
from axe_playwright_python.sync_playwright import Axe
from book_site.measured import stated
from fontTools import ttLib
from markdown_it import MarkdownIt
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from grading.assignment import Assignment
from grading.author import masters
from tools import chromium
from tools.model import address, chapters, outcomes, questions

SITE = Path(os.environ.get("SITE_ROOT", chapters.ROOT))  # where _config.yml lies
HTML = SITE / "_build" / "html"
REPOSITORY = address.repository(SITE)
PREFIX = urlsplit(REPOSITORY.pages).path
NOT_BUILT = f"{HTML} has no sitemap. Fix: run `make book` first."
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
FORMULAS = MarkdownIt().use(dollarmath_plugin).use(amsmath_plugin)
FONT = HTML / "_static" / "vendor" / "latin-modern-math" / "formulas.woff"
ITALIC = {chr(0x61 + n): chr(0x1D44E + n) for n in range(26)}
ITALIC |= {chr(0x41 + n): chr(0x1D434 + n) for n in range(26)}
ITALIC |= {chr(0x3B1 + n): chr(0x1D6FC + n) for n in range(25)} | {"h": "\u210e"}
SERIOUS = ("serious", "critical")
PICTURES = (".svg", ".png", ".webp")

OVERFLOW = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const boxed = (node) => {
    const box = node.parentElement;
    if (!box || box === document.body) return false;
    return getComputedStyle(box).overflowX !== "visible" || boxed(box);
  };
  const wide = (node) => node.getBoundingClientRect().right > width + 1;
  const found = [...document.querySelectorAll("main *")]
    .filter((node) => wide(node) && ![...node.children].some(wide) && !boxed(node))
    .map((node) => node.outerHTML.slice(0, 120));
  return [`${document.documentElement.scrollWidth} px wide`, ...found];
}"""

# A page has thousands of coloured words of code, in a few colours on a few grounds. One
# that can be seen of each is kept; the others lose their colour and nothing else.
UNWRAP_REPEATED = """() => {
  const words = [...document.querySelectorAll(".highlight pre span")];
  const visible = words.map((word) => word.checkVisibility());
  const seen = new Set();
  const repeated = words.filter((word, index) => {
    const kind = [word, word.closest("div[class*=cell_]"), word.closest(".claim")]
      .map((node) => node?.className).join("/");
    if (!visible[index] || seen.has(kind)) return true;
    seen.add(kind);
  });
  for (const word of repeated) word.replaceWith(...word.childNodes);
}"""


def sitemap() -> list[str]:
    """The pages of the site by their paths below its address."""
    path = HTML / "sitemap.xml"
    if not path.exists():
        return []
    locations = ElementTree.parse(path).iter(
        "{http://www.sitemaps.org/schemas/sitemap/0.9}loc"
    )
    return [location.text.removeprefix(REPOSITORY.pages) for location in locations]


PAGES = sitemap() or ["the site is not built"]  # an empty list would skip the tests
CHAPTERS = [page for page in PAGES if page.startswith("notebooks/")] or PAGES[:1]
EVERYTHING = [*PAGES, "", "404.html", "search.html"]
ASSIGNMENTS = [page for page in PAGES if page.startswith("assignments/")]
every_page = pytest.mark.parametrize("page", EVERYTHING, ids=lambda page: page or "/")
every_chapter = pytest.mark.parametrize("page", CHAPTERS)


def notebook(page: str) -> Path:
    """The notebook that a chapter's page shows."""
    return SITE / Path(page).with_suffix(".ipynb")


class Pages(http.server.SimpleHTTPRequestHandler):
    """Serves the site below its prefix, and 404.html for what is missing."""

    def translate_path(self, path: str) -> str:
        if not path.startswith(PREFIX):
            return str(HTML / "outside the site")
        return super().translate_path(path.removeprefix(PREFIX.rstrip("/")))

    def list_directory(self, path) -> None:
        self.send_error(http.HTTPStatus.NOT_FOUND)

    def send_error(self, code, message=None, explain=None) -> None:
        body = (HTML / "404.html").read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments) -> None:
        pass


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    """The address at which the built site is served."""
    if not (HTML / "sitemap.xml").exists():
        pytest.fail(NOT_BUILT)
    handler = functools.partial(Pages, directory=str(HTML))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{PREFIX}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**chromium.launch_options())
        yield browser
        browser.close()


@dataclasses.dataclass
class Watched:
    """A tab whose console and requests are watched."""

    tab: Page
    problems: list[str]
    loaded: list[str]  # addresses

    def open(self, url: str) -> None:
        """Go to a page, and forget what the last one did wrong."""
        self.problems.clear()
        self.loaded.clear()
        self.tab.goto(url, wait_until="load")


def watch(browser: Browser, local: str, **options) -> Watched:
    """Open a tab that reaches addresses starting with `local` only."""
    tab = browser.new_context(color_scheme="light", **options).new_page()
    problems: list[str] = []
    loaded: list[str] = []

    def route(route) -> None:
        if route.request.url.startswith((local, "data:", "blob:")):
            route.continue_()
        else:
            problems.append(f"asks another host: {route.request.url}")
            route.abort()

    def response(response) -> None:
        loaded.append(response.url)
        if response.status >= 400:
            problems.append(f"{response.status}: {response.url}")

    def failed(request) -> None:
        if request.failure != "net::ERR_ABORTED":  # the tab went on to another page
            problems.append(f"failed: {request.url}")

    def console(message) -> None:
        if message.type == "error":
            problems.append(f"console: {message.text}")

    tab.route("**/*", route)
    tab.on("response", response)
    tab.on("requestfailed", failed)
    tab.on("console", console)
    tab.on("pageerror", lambda error: problems.append(f"script: {error}"))
    return Watched(tab, problems, loaded)


def host(base: str) -> str:
    """The part of the site's address before its prefix."""
    return base.removesuffix(PREFIX)


@pytest.fixture(scope="module")
def desktop(browser: Browser, base: str) -> Watched:
    """A tab as wide as a desktop's."""
    return watch(browser, host(base), viewport=DESKTOP)


@pytest.fixture(scope="module")
def phone(browser: Browser, base: str) -> Watched:
    """A tab as narrow as a phone's."""
    return watch(browser, host(base), viewport=PHONE, has_touch=True, is_mobile=True)


@dataclasses.dataclass
class Findings:
    """What a page showed when it was opened."""

    problems: list[str]
    overflow: list[str]
    violations: dict[str, list[str]]  # by theme
    headings: list[str]
    colab: dict[str, list[str]]  # by place
    claims: list[str]
    unchecked: list[str]
    text: str
    formulas: list[str]  # in TeX
    loaded: list[str]  # addresses, on a phone, before anything is done
    blocking: list[str]  # addresses without which nothing is drawn


def violations(tab: Page) -> list[str]:
    """The serious accessibility faults of the page that a tab shows."""
    tab.evaluate(UNWRAP_REPEATED)
    options = {"resultTypes": ["violations"], "preload": False}
    found = Axe().run(tab, options=options).response["violations"]
    return [
        f"{fault['id']} at {node['target']}: {node['html'][:120]}"
        for fault in found
        if fault["impact"] in SERIOUS
        for node in fault["nodes"]
    ]


# Formulas whose mark stands on another line, at widths where lines end differently.
LINES_OF_FORMULAS = """() => {
  const torn = new Set();
  for (let width = 300; width < 380; width += 8) {
    document.querySelector(".bd-article").style.width = `${width}px`;
    for (const formula of document.querySelectorAll("span.math")) {
      const mark = formula.nextSibling;
      if (!/^[,.;:!?)]/.test(mark?.data ?? "")) continue;
      const range = document.createRange();
      range.setStart(mark, 0);
      range.setEnd(mark, 1);
      const { left } = formula.getBoundingClientRect();
      if (range.getBoundingClientRect().left < left) torn.add(formula.textContent);
    }
  }
  return [...torn];
}"""


BLOCKING = """() => performance.getEntriesByType("resource")
  .filter((entry) => entry.renderBlockingStatus === "blocking")
  .map((entry) => entry.name)"""

OPEN_ALL = """() => {
  document.querySelectorAll("button.guess-show").forEach((button) => button.click());
  document.querySelectorAll("details.fold").forEach((fold) => (fold.open = true));
}"""


def inspect(desktop: Watched, phone: Watched, url: str) -> Findings:
    """Open a page at both widths and in both themes, and note what there is to see.

    Folds are opened and answers shown: what can be read is looked at.
    """
    tab = desktop.tab
    faults = {}
    for theme in ("light", "dark"):
        tab.emulate_media(color_scheme=theme)
        if theme == "light":
            desktop.open(url)
            tab.evaluate(OPEN_ALL)
        tab.wait_for_function(f"document.documentElement.dataset.theme === '{theme}'")
        tab.wait_for_timeout(250)  # colours fade from one theme to the other
        faults[theme] = violations(tab)
    phone.open(url)
    phone.tab.evaluate("document.fonts.ready")
    loaded, blocking = [*phone.loaded], phone.tab.evaluate(BLOCKING)
    phone.tab.evaluate(OPEN_ALL)

    def links(selector: str) -> list[str]:
        selector += " a[href^='https://colab.research.google.com/github/']"
        return [link.get_attribute("href") for link in tab.locator(selector).all()]

    return Findings(
        problems=desktop.problems + phone.problems,
        overflow=phone.tab.evaluate(OVERFLOW),
        violations=faults,
        headings=tab.locator("h1:visible").all_inner_texts(),
        colab={"header": links(".bd-header-article"), "text": links(".bd-article p")},
        claims=[claim.get_attribute("id") for claim in tab.locator(".claim[id]").all()],
        unchecked=[
            claim.get_attribute("id") for claim in tab.locator(".claim-unchecked").all()
        ],
        text=tab.locator("main").inner_text(),
        formulas=tab.locator("math annotation").all_text_contents(),
        loaded=loaded,
        blocking=blocking,
    )


@pytest.fixture(scope="module")
def findings(desktop: Watched, phone: Watched, base: str):
    """What each page shows; each is opened once."""

    @functools.cache
    def look(page: str) -> Findings:
        return inspect(desktop, phone, base + page)

    return look


@every_page
def test_a_page_loads_whole_and_from_the_site_alone(findings, page):
    assert not findings(page).problems


@functools.cache
def weight(path: Path) -> tuple[int, int]:
    """The bytes of a file, plain and as a server sends them."""
    data = path.read_bytes()
    return len(data), min(len(data), len(gzip.compress(data)))


@every_page
def test_a_page_is_light(findings, base, page):
    names = [unquote(urlsplit(url).path) for url in findings(page).loaded]
    files = [HTML / (name.removeprefix(PREFIX) or "index.html") for name in names]
    weights = {x: weight(x) for x in files if x.suffix not in PICTURES}
    assert any(path.suffix == ".css" for path in weights)
    plain, sent = (sum(sizes) for sizes in zip(*weights.values(), strict=True))
    assert plain <= 600_000, weights
    assert sent <= 200_000, weights
    indexed = any(path.name == "searchindex.js" for path in weights)
    assert indexed == (page == "search.html")


@every_page
def test_a_page_waits_for_one_style_sheet_alone(findings, page):
    blocking = [urlsplit(url).path for url in findings(page).blocking]
    assert blocking == [f"{PREFIX}_static/book.css"]


@every_page
def test_a_page_has_one_heading_of_the_first_rank(findings, page):
    assert len(findings(page).headings) == 1


@every_page
def test_a_page_does_not_scroll_sideways_on_a_phone(findings, page):
    assert not findings(page).overflow


@every_page
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_is_accessible(findings, page, theme):
    faults = findings(page).violations[theme]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("page", [*CHAPTERS, *ASSIGNMENTS])
def test_a_notebook_opens_in_colab_from_its_header_and_its_text(findings, page):
    wanted = [REPOSITORY.colab(notebook(page))]
    assert findings(page).colab == {"header": wanted, "text": wanted}


@every_chapter
def test_a_chapter_shows_its_claims(findings, page):
    shown = findings(page)
    claims, cells = chapters.claims(notebook(page)), chapters.read(notebook(page)).cells
    assert shown.claims == [claim.anchor for claim in claims]
    assert shown.unchecked == [
        claim.anchor for claim in claims if outcomes.reasons(cells[claim.cell].outputs)
    ]
    assert chapters.CLAIM not in shown.text


# --- the learner's form, on the chapter that is the model for all ---------------------

MODEL = "notebooks/04-place-operations.html"


def first_question(tab: Page) -> tuple[Locator, Locator, questions.Question]:
    """The model's first question, its answer, and what the notebook says."""
    path = notebook(MODEL)
    found = next(questions.questions(chapters.read(path)))
    name = tab.locator("ul.guess").first.get_attribute("id")
    return tab.locator(f"#{name} + .guess-box"), tab.locator(f".{name}-answer"), found


@pytest.fixture
def reader(browser, base) -> Iterator[Watched]:
    """A tab of somebody who was never here."""
    watched = watch(browser, host(base), viewport=DESKTOP)
    yield watched
    watched.tab.context.close()


def test_an_answer_waits_for_a_guess(reader, base):
    reader.open(base + MODEL)
    box, answer, question = first_question(reader.tab)
    assert answer.count() == 2  # the output, and the text with its claim
    for part in answer.all():
        assert not part.locator("p, pre").first.is_visible()
    shown = box.get_by_role("button").all_inner_texts()
    assert shown == [*question.options, "Show me"]
    wrong = (question.right + 1) % len(question.options)
    box.get_by_role("button", name=question.options[wrong]).click()
    for part in answer.all():
        assert part.locator("p, pre").first.is_visible()
    said = box.get_by_role("status").inner_text()
    assert said.startswith(f"Not this one. {question.options[question.right]}")
    assert not reader.problems


def test_the_right_guess_is_called_right_and_is_kept(reader, base):
    reader.open(base + MODEL)
    box, answer, question = first_question(reader.tab)
    box.get_by_role("button", name=question.options[question.right]).click()
    reader.tab.reload()
    assert box.get_by_role("status").inner_text().startswith("Right. ")
    assert answer.last.locator("p").first.is_visible()
    box.get_by_role("button", name="Guess again").click()
    reader.tab.reload()
    assert box.get_by_role("status").inner_text() == ""
    assert not answer.last.locator("p").first.is_visible()


def test_a_guess_is_made_with_the_keyboard_and_read_aloud(reader, base):
    reader.open(base + MODEL)
    box, _, question = first_question(reader.tab)
    group = box.get_by_role("group")
    labelled = reader.tab.locator(f"#{group.get_attribute('aria-labelledby')}")
    assert labelled.inner_text() == question.text
    box.get_by_role("button").first.focus()
    for _ in range(question.right):
        reader.tab.keyboard.press("Tab")
    reader.tab.keyboard.press("Enter")
    assert box.get_by_role("status").inner_text().startswith("Right. ")
    chosen = box.locator("[aria-pressed=true]")
    assert chosen.inner_text() == question.options[question.right]
    assert chosen.evaluate("node => node === document.activeElement")


def test_show_me_shows_without_a_verdict(reader, base):
    reader.open(base + MODEL)
    box, answer, question = first_question(reader.tab)
    box.get_by_role("button", name="Show me").click()
    said = box.get_by_role("status").inner_text()
    assert said.startswith(question.options[question.right])
    assert answer.last.locator("p").first.is_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_folded_and_hidden_is_accessible_too(reader, base, theme):
    reader.tab.emulate_media(color_scheme=theme)
    reader.open(base + MODEL)
    assert not violations(reader.tab)


def test_proofs_solutions_and_the_recap_are_folded(reader, base):
    reader.open(base + MODEL)
    tab = reader.tab
    folds = tab.locator("details.fold")
    assert folds.evaluate_all("all => all.every(fold => !fold.open)")
    cells = chapters.read(notebook(MODEL)).cells
    claims = chapters.claims(notebook(MODEL))
    assert tab.locator("details.proof").count() == len(claims)
    solutions = [x for x in cells if "solution" in chapters.tags(x)]
    assert tab.locator("details.solution").count() == len(solutions) >= 3
    assert tab.locator("details:has-text('Hint')").count() >= 3
    recap = tab.locator("section#what-you-proved details")
    assert not recap.locator("li").first.is_visible()
    recap.locator("summary").click()
    assert recap.locator("li").all_inner_texts()[0].startswith(f"{claims[0].label} ")


def test_a_link_to_a_claim_opens_its_proof_and_its_answer(reader, base):
    reader.open(f"{base}book/claims.html")
    reader.tab.locator("a[href$='#claim-4-1']").first.click()
    claim = reader.tab.locator("#claim-4-1")
    claim.wait_for()
    assert claim.is_visible()
    assert reader.tab.locator("#claim-4-1 + details pre").is_visible()
    answered = [claim.is_visible() for claim in reader.tab.locator(".claim").all()]
    assert not all(answered), "the other answers still wait"
    reader.tab.evaluate("location.hash = 'claim-4-5'")
    reader.tab.locator("#claim-4-5 + details pre").wait_for()


def test_a_search_opens_what_it_found(reader, base):
    tab = reader.tab
    search(reader, base, "get_soft_device_placement", "04-place-operations").click()
    proof = tab.locator("details.proof pre", has_text="get_soft_device_placement")
    proof.first.wait_for()  # visible
    tab.reload()
    assert not proof.first.is_visible()
    search(reader, base, "soft placement has no kernel", "04-place-operations").click()
    answer = tab.locator(".guess-answer > p", has_text="has no kernel for it")
    answer.first.wait_for()
    assert not reader.problems


def test_without_scripts_and_on_paper_everything_is_open(browser, base, tmp_path):
    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto(base + MODEL)
    question = next(questions.questions(chapters.read(notebook(MODEL))))
    option = plain.locator("ul.guess").first.locator("li").first
    assert option.inner_text() == question.options[0]
    for selector in ("details.fold pre", "details.fold li", ".guess-answer"):
        parts = plain.locator(selector).all()
        assert len(parts) > 9 and all(part.is_visible() for part in parts), selector
    plain.context.close()
    tab = browser.new_page()
    tab.goto(base + MODEL)
    tab.emulate_media(media="print")
    for selector in ("details.fold pre", ".guess-answer > p", "ul.guess li"):
        parts = tab.locator(selector).all()
        assert len(parts) > 9 and all(part.is_visible() for part in parts), selector
    assert not tab.locator(".guess-box").first.is_visible()
    tab.close()


def test_the_ledger_lists_every_claim(desktop, base):
    desktop.open(f"{base}book/claims.html")
    listed = desktop.tab.locator("ul.ledger > li").evaluate_all(
        "rows => rows.map(row => row.querySelector('a').getAttribute('href'))"
    )
    claims = [claim for page in CHAPTERS for claim in chapters.claims(notebook(page))]
    assert claims, "the book makes no claims"
    assert [urldefrag(link).fragment for link in listed] == [x.anchor for x in claims]
    counts = desktop.tab.locator(".ledger-count strong").all_inner_texts()
    assert counts[:2] == [str(len(claims)), str(len(CHAPTERS))]


def test_the_ledger_is_filtered_by_words(desktop, base):
    desktop.open(f"{base}book/claims.html")
    rows = desktop.tab.locator("ul.ledger > li:visible")
    everything = rows.count()
    desktop.tab.locator(".row-filter").fill(rows.last.inner_text().split("\n")[-1])
    assert 1 <= rows.count() < everything
    desktop.tab.locator(".row-filter").fill("")
    assert rows.count() == everything


def test_failures_are_filtered_by_a_part_of_the_message(desktop, base):
    desktop.open(f"{base}book/troubleshooting.html")
    rows = desktop.tab.locator("ul.troubles > li:visible")
    assert rows.count() > 20
    desktop.tab.locator(".row-filter").fill("ATen_xpu generator")
    assert rows.count() == 1
    assert "claim 11." in rows.first.inner_text()


def test_a_pasted_message_finds_the_failures_that_share_its_rare_words(desktop, base):
    desktop.open(f"{base}book/troubleshooting.html")
    desktop.tab.locator(".row-filter").fill(
        'File "/home/me/train.py", line 9, in <module>\n'
        "RuntimeError: Cannot get XPU generator without ATen_xpu library. (me/train)"
    )
    rows = desktop.tab.locator("ul.troubles > li:visible")
    assert 1 <= rows.count() <= 3
    assert "ATen_xpu library" in "".join(rows.all_inner_texts())
    assert "None has all" in desktop.tab.locator(".row-filter-note").inner_text()


def test_the_corrections_are_filtered_and_lead_to_their_claims(desktop, base):
    desktop.open(f"{base}book/corrections.html")
    rows = desktop.tab.locator("ul.corrections > li:visible")
    everything = rows.count()
    assert everything > 20
    desktop.tab.locator(".row-filter").fill("tf.cast kernel")
    assert 1 <= rows.count() < everything
    rows.first.locator(".proved-where a", has_text="claim 3.").click()
    desktop.tab.wait_for_url("**/notebooks/03-list-devices.html#claim-3-*")


def test_the_measured_results_are_drawn_and_every_row_can_be_linked(desktop, base):
    desktop.open(f"{base}book/measured-results.html")
    pictures = desktop.tab.locator(".bd-article img[src$='.svg']").evaluate_all(
        """images => Promise.all(images.map(async (image) => {
          image.loading = "eager";
          await image.decode();
          return image.naturalWidth;
        }))"""
    )
    assert len(pictures) >= 5
    assert all(pictures)
    rows = desktop.tab.locator("[id^='m-']").evaluate_all("all => all.map(x => x.id)")
    assert set(rows) == stated.stated().keys()


def search(desktop: Watched, base: str, words: str, page: str) -> Locator:
    """Search the site; return the first result that leads to the page."""
    desktop.open(f"{base}search.html?{urlencode({'q': words})}")
    result = desktop.tab.locator(f"#search-results a[href*='{page}']").first
    result.wait_for()
    return result


def test_the_search_finds_a_term(desktop, base):
    desktop.open(f"{base}book/how-to-use.html")
    desktop.tab.locator(".search-button__button:visible").first.click()
    field = desktop.tab.locator("dialog input[name=q]")
    field.fill("arithmetic intensity")
    field.press("Enter")
    desktop.tab.wait_for_url("**/search.html?q=*")
    desktop.tab.locator("#search-results a[href*='glossary']").first.wait_for()
    assert not desktop.problems


@pytest.mark.parametrize(
    "message",
    [
        "Cannot dlopen some GPU libraries",
        "Skipping registering GPU devices",
        "CUDA_ERROR_INVALID_PTX",
        "Trying to access resource located in device",
        "'LossScaleOptimizer' object has no attribute 'get_scaled_loss'",
        "'str' object has no attribute 'name'",
        "oneDNN supports DT_HALF only on platforms with AVX-512",
        "Physical devices cannot be modified after being initialized",
        "Virtual devices cannot be modified after being initialized",
        "CUDA_ERROR_OUT_OF_MEMORY",
        "triggered tf.function retracing",
        "'NoneType' object has no attribute 'list_devices'",
        "IndexError: pop from empty list",
        "Attempt to convert a value (PerReplica",
        "Torch not compiled with XPU enabled",
        "`fit` is not supported with openvino backend",
        "'SparseCategoricalAccuracy' object has no attribute 'reset_states'",
    ],
)
def test_who_searches_a_message_lands_on_its_cure(desktop, base, message):
    search(desktop, base, message, "troubleshooting").click()
    desktop.tab.wait_for_url("**/troubleshooting.html*")
    rows = desktop.tab.locator("ul.troubles > li:visible")
    assert 1 <= rows.count() <= 3
    assert "Fix." in rows.first.inner_text()
    assert not desktop.problems


def test_the_menu_of_a_phone_leads_to_a_page(phone, base):
    phone.open(f"{base}book/welcome.html")
    link = phone.tab.locator("#pst-primary-sidebar-modal a", has_text="Glossary")
    assert link.count() == 0 or not link.is_visible()
    phone.tab.locator(".primary-toggle:visible").first.click()
    link.click()
    phone.tab.wait_for_url("**/glossary.html")
    assert not phone.problems


def test_the_theme_switch_changes_the_theme(desktop, base):
    desktop.tab.emulate_media(color_scheme="light")
    desktop.open(f"{base}book/how-to-use.html")
    seen = set()
    for _ in range(3):
        desktop.tab.locator(".theme-switch-button:visible").first.click()
        seen.add(desktop.tab.evaluate("document.documentElement.dataset.theme"))
    desktop.tab.evaluate("localStorage.clear()")
    assert seen == {"light", "dark"}


def tex_of(texts: Iterable[str]) -> list[str]:
    """The formulas in Markdown, in order."""
    found = []
    for text in texts:
        tokens = FORMULAS.parse(text)
        for token in itertools.chain(tokens, *(one.children or () for one in tokens)):
            if token.type.startswith(("math_", "amsmath")):
                found.append(token.content.strip())
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_formula_is_mathml_and_keeps_its_tex(findings, page):
    source = SITE / page
    if source.with_suffix(".md").exists():
        texts = [source.with_suffix(".md").read_text(encoding="utf-8")]
    else:
        cells = chapters.read(notebook(page)).cells
        texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    missing = Counter(tex_of(texts)) - Counter(findings(page).formulas)
    assert not missing, "shown without their TeX"


def test_formulas_are_drawn_with_their_font(desktop, base):
    desktop.open(f"{base}notebooks/14-many-hosts.html")
    tab = desktop.tab
    tab.evaluate("document.fonts.ready")
    assert tab.evaluate("document.fonts.check('1em Formulas')")
    fraction = tab.locator("math mfrac").first
    over, under = (part.bounding_box() for part in fraction.locator("> *").all())
    assert over["y"] + over["height"] <= under["y"]


def test_no_line_starts_with_the_mark_behind_a_formula(phone, base):
    phone.open(f"{base}notebooks/14-many-hosts.html")
    phone.tab.evaluate(OPEN_ALL)
    assert phone.tab.locator(".unbroken").count() > 5
    assert phone.tab.evaluate(LINES_OF_FORMULAS) == []


def test_the_font_has_every_character_of_a_formula():
    """A letter that stands alone is drawn in italics: that is another character."""
    font = ttLib.TTFont(FONT).getBestCmap()
    missing = {}
    for page in PAGES:
        shown = bs4.BeautifulSoup((HTML / page).read_bytes(), "html.parser")
        for part in shown.select("math :is(mi, mn, mo, mtext)"):
            for letter in ITALIC.get(part.text, part.text):
                if ord(letter) not in font:
                    missing[letter] = f"U+{ord(letter):X} on {page}"
    assert not missing, f"{missing}. Fix: CONTRIBUTING.md, Formulas"


def test_a_page_reads_from_a_folder_offline(browser, base):
    reader = watch(browser, "file://", viewport=DESKTOP, offline=True)
    reader.open((HTML / "book" / "glossary.html").as_uri())
    reader.tab.locator("math mfrac").first.wait_for()
    assert reader.tab.evaluate("document.fonts.ready.then(() => document.fonts.size)")
    assert not reader.problems


@pytest.mark.parametrize(
    "missing", ["nothing.html", "a/b/c/nothing.html", "notebooks/"]
)
def test_a_missing_page_at_any_depth_is_dressed_and_leads_back(desktop, base, missing):
    desktop.open(base + missing)
    unexpected = [
        problem
        for problem in desktop.problems
        if missing not in problem and "status of 404" not in problem
    ]
    assert not unexpected
    heading = desktop.tab.locator("h1:visible")
    assert heading.inner_text() == "Page not found"
    sidebar = desktop.tab.locator(".bd-sidebar-primary")
    style = "node => getComputedStyle(node).borderRightWidth"
    assert sidebar.evaluate(style) == "1px"
    desktop.tab.locator("main a", has_text="welcome page").click()
    desktop.tab.wait_for_url(f"{base}book/welcome.html")


class Anchors(html.parser.HTMLParser):
    """The links of a page, the places in it that can be linked to, and its head."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.meta: dict[str, str] = {}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list) -> None:
        values = dict(attributes)
        self.places |= {values[key] for key in ("id", "name") if values.get(key)}
        if tag == "meta" and values.get("content"):
            self.meta[values.get("name") or values.get("property")] = values["content"]
        if values.get("rel") == "canonical":
            self.meta["canonical"] = values["href"]
        else:
            self.links += [values[key] for key in ("href", "src") if values.get(key)]


@pytest.fixture(scope="module")
def anchors(base) -> dict[Path, Anchors]:
    """Every HTML file of the site, taken apart."""
    files = (path for path in HTML.rglob("*.html") if "_static" not in path.parts)
    return {path: Anchors(path) for path in files}


def test_internal_links_lead_to_a_page_and_a_place(anchors):
    broken = []
    for path, page in anchors.items():
        here = f"http://site{PREFIX}{path.relative_to(HTML).as_posix()}"
        for link in page.links:
            url, place = urldefrag(urljoin(here, link))
            if not url.startswith(f"http://site{PREFIX}"):
                if url.startswith("http://site"):
                    broken.append(f"{path.name}: {link} leaves the site's folder")
                continue
            target = HTML / unquote(urlsplit(url).path.removeprefix(PREFIX))
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                broken.append(f"{path.name}: {link} leads nowhere")
            elif place and target in anchors and place not in anchors[target].places:
                broken.append(f"{path.name}: {link}: no such place")
    assert not broken, "\n".join(broken)


def test_no_page_loads_mathjax():
    pages = [path for path in HTML.rglob("*.html") if "_static" not in path.parts]
    assert len(pages) > len(PAGES)
    script = re.compile(rb"(?i)<script[^>]*mathjax|window.MathJax")
    assert [path.name for path in pages if script.search(path.read_bytes())] == []
    shipped = (SITE / "book" / "_static").rglob("*")
    assert not [path for path in shipped if "mathjax" in path.name.lower()]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_what_it_is(anchors, page):
    meta = anchors[HTML / page].meta
    assert len(meta["description"]) > 50
    assert meta["canonical"] == meta["og:url"] == REPOSITORY.pages + page
    card = meta["og:image"].removeprefix(REPOSITORY.pages)
    assert (HTML / card).exists()


def test_chapters_link_the_sites_own_pages_relatively():
    absolute = f'<a class="reference external" href="{REPOSITORY.pages}'
    for page in sorted((HTML / "notebooks").glob("*.html")):
        text = page.read_text(encoding="utf-8")
        assert 'href="../book/glossary.html#term-' in text, page.name
        assert absolute not in text, page.name


@functools.cache
def text_of(path: Path) -> str:
    """What a file of the site says, without the tags that colour code."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".ipynb":
        return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return html.unescape(re.sub(r"<[^>]*>", "", text))


def secrets_of(assignment: Assignment) -> set[str]:
    """Lines of hidden tests and solutions that no student is meant to see.

    Those that stand in the student's notebook or in a chapter are none.
    """
    notebooks = [assignment.student]
    notebooks += [chapters.read(path) for path in chapters.chapter_paths(SITE)]
    given = "\n".join(cell.source for one in notebooks for cell in one.cells)
    parts = [cell.source for cell in assignment.solution.cells]
    parts += assignment.tests.values()
    lines = {line.strip() for part in parts for line in part.splitlines()}
    return {line for line in lines if len(line) > 25 and line not in given}


def given_away(files: list[Path], secrets: set[str]) -> list[str]:
    """The secret lines that stand in files."""
    texts = {path: text_of(path) for path in files}
    return [
        f"{path.name}: {line}"
        for path, text in texts.items()
        for line in secrets
        if line in text
    ]


def site_files() -> list[Path]:
    """The files of the site that hold text."""
    kinds = {".html", ".ipynb", ".md", ".txt", ".js", ".json", ".py"}
    found = [path for path in HTML.rglob("*") if path.suffix in kinds]
    return [path for path in found if "vendor" not in path.parts]


@pytest.mark.parametrize("path", masters.master_paths(), ids=lambda path: path.stem)
def test_no_solution_and_no_hidden_test_is_in_the_site(path):
    assignment = masters.build(path)
    secrets = secrets_of(assignment)
    assert len(secrets) > 100
    assert given_away(site_files(), secrets) == []
    hidden = set(re.findall(r"hidden=True.*?\ndef (\w+)", "\n".join(
        assignment.tests.values()), re.S))  # fmt: skip
    assert hidden
    index = (HTML / "searchindex.js").read_text()
    assert [name for name in hidden if name in index] == []


def test_what_is_given_away_is_found(tmp_path):
    assignment = masters.build(masters.master_paths()[0])
    line = next(iter(secrets_of(assignment)))
    page = tmp_path / "page.html"
    page.write_text(
        "<pre>" + html.escape(line).replace(" ", " <span></span>") + "</pre>"
    )
    notebook = tmp_path / "page.ipynb"
    notebook.write_text(json.dumps({"cells": [{"source": ["x = 1\n", line]}]}))
    assert len(given_away([page, notebook], {line})) == 2


def test_assignments_link_the_sites_own_pages_relatively():
    absolute = f'<a class="reference external" href="{REPOSITORY.pages}'
    pages = sorted((HTML / "assignments").glob("*.html"))
    assert len(pages) == 6
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert 'href="../notebooks/' in text, page.name
        assert absolute not in text, page.name
