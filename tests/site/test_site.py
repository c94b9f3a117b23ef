"""What a reader meets on the built site: `make book` builds it first."""

import dataclasses
import gzip
import html
import itertools
import re
import zlib
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qs, unquote, urldefrag, urlencode, urljoin, urlsplit

import bs4
import pytest
import yaml
from playwright.sync_api import Locator
from site_browser import (
    DESKTOP,
    HTML,
    OPEN_ALL,
    OVERFLOW,
    PHONE,
    PREFIX,
    REPOSITORY,
    SITE,
    Watched,
    choose_theme,
    host,
    sitemap,
    violations,
    watch,
)

from tools.model import chapters, outcomes, questions

MESSAGES = Path(__file__).with_name("messages.yml")
PAGES = sitemap()
CHAPTERS = [page for page in PAGES if page.startswith("notebooks/")]
NOTEBOOKS = [*CHAPTERS, *(page for page in PAGES if page.startswith("assignments/"))]
MODEL = "notebooks/04-place-operations.html"  # the chapter that is the model for all
WITHOUT_OUTLINE = """all => all.map((icon) => icon.className).filter((name, index) =>
  getComputedStyle(all[index], "::before").maskImage === "none")"""
DISTORTED = """all => all.map((picture) => {
  const { width, height } = picture.getBoundingClientRect();
  const stated = picture.getAttribute("width") / picture.getAttribute("height");
  return width / height / stated - 1;
}).filter((change) => Math.abs(change) > 0.02)"""
CUT_OFF = """() => [...document.querySelectorAll(".bd-article .cell pre")]
  .filter((box) => box.clientWidth && box.scrollWidth > box.clientWidth + 1)
  .map((box) => box.textContent.slice(0, 60))"""
VISIBLE = "all => all.map((x) => x.checkVisibility({ visibilityProperty: true }))"
LOOKED_AT = (MODEL, "book/welcome.html", "book/what-will-it-take.html")


def notebook(page: str) -> Path:
    """The notebook that a page shows."""
    return SITE / Path(page).with_suffix(".ipynb")


@pytest.fixture(scope="module")
def phone(browser, base) -> Watched:
    """A tab as narrow as a phone's."""
    return watch(browser, host(base), viewport=PHONE, has_touch=True, is_mobile=True)


# --- every page -----------------------------------------------------------------------


@pytest.mark.parametrize("page", [*PAGES, "", "404.html", "search.html"])
def test_a_page_loads_whole_from_the_site_alone_and_fits_on_a_phone(phone, base, page):
    phone.open(base + page)
    phone.tab.evaluate(OPEN_ALL)
    assert not phone.tab.evaluate(OVERFLOW)
    assert not phone.problems
    pictures = phone.tab.locator("article img[width][height]:visible")
    assert not pictures.evaluate_all(DISTORTED)
    icons = phone.tab.locator("[class*=' fa-'], a.github")
    assert icons.count() >= 5
    assert not icons.evaluate_all(WITHOUT_OUTLINE)
    if page in NOTEBOOKS:
        for place in (".run-panel", ".bd-article p"):
            link = phone.tab.locator(
                f"{place} a[href*='//colab.research.google.com/g']"
            )
            assert link.get_attribute("href") == REPOSITORY.colab(notebook(page))
    if page in CHAPTERS:
        claims = chapters.chapter(notebook(page)).claims
        cells = chapters.read(notebook(page)).cells
        unchecked = [x for x in claims if outcomes.reasons(cells[x.cell].outputs)]
        for selector, wanted in (
            (".claim[id]", claims),
            (".claim-unchecked", unchecked),
        ):
            shown = phone.tab.locator(selector).evaluate_all(
                "all => all.map(x => x.id)"
            )
            assert shown == [claim.anchor for claim in wanted]


@pytest.mark.parametrize(
    "page",
    [x if x in LOOKED_AT else pytest.param(x, marks=pytest.mark.slow) for x in PAGES],
)
def test_a_page_is_accessible_in_both_themes(reader, base, page):
    reader.open(base + page)
    for theme in ("light", "dark"):
        choose_theme(reader.tab, theme)
        assert not violations(reader.tab), theme
        if page == MODEL:  # folds and answers, too
            reader.tab.evaluate(OPEN_ALL)
    if page in CHAPTERS:
        reader.tab.evaluate(OPEN_ALL)
        assert not reader.tab.evaluate(CUT_OFF)


def test_a_chapter_is_light(reader, base):
    reader.open(f"{base}notebooks/05-memory.html")
    reader.tab.evaluate("document.fonts.ready")
    names = [unquote(urlsplit(url).path).removeprefix(PREFIX) for url in reader.loaded]
    data = {name: (HTML / name).read_bytes() for name in names}
    assert any(name.endswith(".css") for name in data)
    sizes = {name: len(gzip.compress(content)) for name, content in data.items()}
    assert sum(sizes.values()) <= 200_000, sizes
    assert sum(map(len, data.values())) <= 700_000, sizes


def test_links_within_the_site_lead_to_a_page_and_a_place():
    address = f"http://site{PREFIX}"
    places, links = {}, []
    tag = re.compile(r'<\w[^>]* (?:href|src|id|name)="[^>]*>')
    attribute = re.compile(r' (href|src|id|name)="([^"]*)"')
    for path in HTML.rglob("*.html"):
        if "_static" in path.parts:
            continue
        name = path.relative_to(HTML).as_posix()
        found = [
            (key, html.unescape(value))
            for element in tag.findall(path.read_text(encoding="utf-8"))
            if 'rel="canonical"' not in element
            for key, value in attribute.findall(element)
        ]
        places[name] = {value for key, value in found if key in ("id", "name")}
        links += [(name, x) for key, x in found if key in ("href", "src") and x]
    broken = []
    for name, link in links:
        url, place = urldefrag(urljoin(address + name, link))
        if not url.startswith("http://site"):
            if name in NOTEBOOKS and url.startswith(REPOSITORY.pages):
                broken.append(f"{name}: {link} is not relative")
            continue
        target = unquote(urlsplit(url).path.removeprefix(PREFIX)) or "index.html"
        exists = url.startswith(address) and (HTML / target).is_file()
        if not exists or (place and place not in places.get(target, {place})):
            broken.append(f"{name}: {link}")
    assert not broken, "\n".join(broken)


def test_a_page_says_what_it_is_to_search_engines_and_link_previews():
    for page in PAGES:
        head = (HTML / page).read_text(encoding="utf-8").partition("</head>")[0]
        shown = bs4.BeautifulSoup(head, "html.parser")
        tags = shown.find_all("meta")
        meta = {x.get("name") or x.get("property"): x.get("content") for x in tags}
        assert len(meta["description"]) > 50, page
        assert "Open in Colab" not in meta["description"]
        assert meta["og:url"] == REPOSITORY.pages + page
        assert shown.find(rel="canonical")["href"] == REPOSITORY.pages + page
        assert (HTML / meta["og:image"].removeprefix(REPOSITORY.pages)).exists()


def test_no_formula_shows_its_dollars():
    """MyST took each for a formula; one that cannot be shown stops the build."""
    code = re.compile(r"(?s)<(code|math|pre|script)\b.*?</\1>")
    for page in PAGES:
        text = code.sub("", (HTML / page).read_text(encoding="utf-8"))
        assert not re.search(r"\$[^$]*\$", text), page


@pytest.mark.slow
def test_no_solution_and_no_hidden_test_is_in_the_site():
    from grading.author import masters

    files = [
        x for x in HTML.rglob("*") if x.suffix in {".html", ".ipynb", ".js", ".md"}
    ]
    tags = re.compile(r"<[^>]*>")
    site = "\n".join(html.unescape(tags.sub("", x.read_text("utf-8"))) for x in files)
    for path in masters.master_paths():
        tests = itertools.chain(*masters.build(path).tests.values())
        hidden = [test.name for test in tests if test.hidden]
        assert hidden
        assert [name for name in hidden if name in site] == []


# --- the learner's form ---------------------------------------------------------------


def first_question(watched: Watched) -> tuple[Locator, Locator, questions.Question]:
    """The model's first question, its answer, and what the notebook says."""
    question = next(questions.questions(chapters.read(notebook(MODEL))))
    shown = [option.replace("`", "") for option in question.options]
    question = dataclasses.replace(question, options=shown)
    name = watched.tab.locator("ul.guess").first.get_attribute("id")
    tab = watched.tab
    return (
        tab.locator(f"#{name} + .guess-box"),
        tab.locator(f".{name}-answer"),
        question,
    )


def test_an_answer_waits_for_a_guess_and_is_called_wrong(reader, base):
    reader.open(base + MODEL)
    box, answer, question = first_question(reader)
    assert answer.count() == 2  # the output, and the text with its claim
    assert not any(x.locator("p, pre").first.is_visible() for x in answer.all())
    shown = box.get_by_role("button").all_inner_texts()
    assert shown == [*question.options, "Show me"]
    wrong = (question.right + 1) % len(question.options)
    box.get_by_role("button", name=question.options[wrong]).click()
    assert all(x.locator("p, pre").first.is_visible() for x in answer.all())
    verdict = box.get_by_role("status").inner_text()
    assert verdict.startswith(f"Not this one. {question.options[question.right]}")


def test_the_right_guess_by_keyboard_is_called_right_and_is_kept(reader, base):
    reader.open(base + MODEL)
    box, answer, question = first_question(reader)
    box.get_by_role("button").first.focus()
    for _ in range(question.right):
        reader.tab.keyboard.press("Tab")
    reader.tab.keyboard.press("Enter")
    chosen = box.locator("[aria-pressed=true]")
    assert chosen.inner_text() == question.options[question.right]
    reader.tab.reload()
    assert box.get_by_role("status").inner_text().startswith("Right. ")
    assert answer.last.locator("p").first.is_visible()
    box.get_by_role("button", name="Guess again").click()
    reader.tab.reload()
    assert box.get_by_role("status").inner_text() == ""
    assert not answer.last.locator("p").first.is_visible()
    box.get_by_role("button", name="Show me").click()
    verdict = box.get_by_role("status").inner_text()
    assert verdict.startswith(question.options[question.right])
    reader.tab.get_by_label("Show all answers").check()
    reader.tab.reload()
    hidden = reader.tab.locator(".guess-answer[hidden]")
    assert hidden.count() == 0
    reader.tab.get_by_label("Show all answers").uncheck()
    assert hidden.count() > 0
    assert not reader.problems


def test_proofs_and_solutions_are_folded_and_a_link_opens_its_own(reader, base):
    reader.open(f"{base}book/claims.html")
    anchor = f"#{chapters.chapter(notebook(MODEL)).claims[0].anchor}"
    reader.tab.locator(f"a[href$='{anchor}']").first.click()
    reader.tab.locator(anchor).wait_for()
    reader.tab.locator(f"{anchor} + details pre").wait_for()
    proofs = reader.tab.locator("details.proof")
    assert proofs.count() == len(chapters.chapter(notebook(MODEL)).claims)
    assert proofs.evaluate_all("all => all.filter(fold => fold.open).length") == 1
    solutions = reader.tab.locator("details.solution")
    assert solutions.count() >= 3
    assert not solutions.locator("pre").first.is_visible()


def test_without_scripts_and_on_paper_everything_is_open(browser, base):
    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto(base + MODEL)
    printed = browser.new_page()
    printed.goto(base + MODEL)
    printed.emulate_media(media="print")
    for tab in (plain, printed):
        for selector in ("details.fold pre", ".guess-answer > p", "ul.guess li"):
            seen = tab.locator(selector).evaluate_all(VISIBLE)
            assert len(seen) > 9 and all(seen), selector
    assert not printed.locator(".guess-box").first.is_visible()
    plain.locator(".run-menu summary").click()
    assert plain.locator(".run-panel a", has_text="Kaggle").is_visible()
    plain.context.close()
    printed.context.close()


# --- lists and the search -------------------------------------------------------------


def test_the_ledger_lists_every_claim(reader, base):
    reader.open(f"{base}book/claims.html")
    listed = reader.tab.locator("ul.ledger > li").evaluate_all(
        "rows => rows.map(row => row.querySelector('a').getAttribute('href'))"
    )
    claims = [
        claim for page in CHAPTERS for claim in chapters.chapter(notebook(page)).claims
    ]
    assert [urldefrag(link).fragment for link in listed] == [x.anchor for x in claims]
    counts = reader.tab.locator(".ledger-count strong").all_inner_texts()
    assert counts[0] == str(len(claims))
    reader.tab.get_by_role("button", name="arithmetic on given figures").click()
    shown = reader.tab.locator("ul.ledger > li:visible").count()
    assert shown == sum(claim.kind == "calculated" for claim in claims) > 0


@pytest.mark.parametrize(
    ("page", "words", "most", "text"),
    [
        ("claims", "soft placement", 9, "soft placement"),
        ("corrections", "tf.cast kernel", 9, "claim 3."),
    ],
)
def test_a_list_is_filtered_by_words(reader, base, page, words, most, text):
    reader.open(f"{base}book/{page}.html")
    rows = reader.tab.locator(":is(ul.ledger, ul.proved) > li:visible")
    everything = rows.count()
    assert everything > 20
    reader.tab.locator(".row-filter").fill(words)
    assert 1 <= rows.count() <= most
    assert text in "".join(rows.all_inner_texts()).replace("Soft", "soft")
    reader.tab.locator(".row-filter").fill("")
    assert rows.count() == everything


# The ids of the rows that Troubleshooting shows for a text, the best first.
TYPED = """text => {
  const field = document.querySelector(".row-filter");
  field.value = text;
  field.dispatchEvent(new Event("input"));
  const rows = [...document.querySelectorAll("ul.troubles > li")];
  const shown = rows.filter((row) => row.checkVisibility());
  return shown.map((row) => row.id.replace("troubles-", ""));
}"""


def verdict(wanted: str | None, rows: list[str]) -> str:
    """What the rows for a message are worth: `wanted` is the right one's beginning."""
    if not rows:
        return "none" if wanted else "rightly empty"
    right = wanted and any(row.startswith(str(wanted)) for row in rows[:3])
    return "right" if right else "wrong row"


def test_a_pasted_message_gets_its_row_or_not_here(reader, base):
    reader.open(f"{base}book/troubleshooting.html")
    halves = [Counter(), Counter()]  # looked at while the matching is tuned, and not
    missed = []
    for case in yaml.safe_load(MESSAGES.read_text(encoding="utf-8")):
        rows = reader.tab.evaluate(TYPED, case["message"])
        key = case.get("thread", case["message"]).encode()
        half, found = zlib.crc32(key) % 2, verdict(case["row"], rows)
        halves[half][found] += 1
        if half == 0 and found in ("none", "wrong row"):
            missed.append(f"{found}: {case['message'][:80]!r}: {rows[:3]}")
    print("looked at:", dict(halves[0]), "not looked at:", dict(halves[1]), *missed)
    for counts in halves:
        good = counts["right"] + counts["rightly empty"]
        assert good >= 0.85 * counts.total(), (halves, missed)
        assert counts["wrong row"] <= 0.03 * counts.total(), (halves, missed)


def test_no_row_leads_to_the_search_and_to_an_issue(reader, base):
    reader.open(f"{base}book/troubleshooting.html")
    note = reader.tab.locator(".row-filter-note")
    for text in ("用GPU训练比CPU慢", "the fan of my GPU is loud"):  # slow, in Chinese
        assert reader.tab.evaluate(TYPED, text) == []
        assert ("reads English" in note.inner_text()) == (not text.isascii())
        ask = note.locator("a").last.get_attribute("href")
        assert ask.startswith(f"{REPOSITORY.url}/issues/new?")
        assert text in parse_qs(urlsplit(ask).query)["body"][0]
    assert note.locator("a").count() == 2  # all that it can have
    assert not violations(reader.tab, ".row-filter-note")


def test_british_american_and_a_slip_find_one_row_and_no_word_finds_all(reader, base):
    reader.open(f"{base}book/troubleshooting.html")
    everything = reader.tab.evaluate(TYPED, "")
    british, american, slip = (
        reader.tab.evaluate(TYPED, f"GPU {word}")
        for word in ("utilisation", "utilization", "uitlization")
    )
    assert british and british == american == slip
    assert reader.tab.evaluate(TYPED, "") == everything


def search(watched: Watched, base: str, words: str, page: str) -> Locator:
    """Search the site; return the first result that leads to the page."""
    watched.open(f"{base}search.html?{urlencode({'q': words})}")
    result = watched.tab.locator(f"#search-results a[href*='{page}']").first
    result.wait_for()
    return result


@pytest.mark.parametrize(
    ("question", "page"),
    [
        ("how much memory to train 7B", "what-will-it-take"),
        ("RuntimeError: No such thing: Memory growth cannot differ", "troubleshooting"),
    ],
)
def test_the_search_names_first_the_page_that_answers_a_question(
    reader, base, question, page
):
    search(reader, base, question, page)
    first = reader.tab.locator("#search-results a").first
    assert page in first.get_attribute("href")
    reader.tab.get_by_role("link", name="Ask Troubleshooting").click()
    assert reader.tab.locator(".row-filter").input_value() == question


def test_who_searches_a_message_lands_on_its_cure(reader, base):
    message = "'LossScaleOptimizer' object has no attribute 'get_scaled_loss'"
    search(reader, base, message, "troubleshooting").click()
    reader.tab.wait_for_url("**/troubleshooting.html*")
    rows = reader.tab.locator("ul.troubles > li:visible")
    assert 1 <= rows.count() <= 3
    assert "Fix." in rows.first.inner_text()
    assert not reader.problems


def test_a_search_opens_the_proof_that_it_found(reader, base):
    search(reader, base, "get_soft_device_placement", "04-place-operations").click()
    proof = reader.tab.locator(
        "details.proof pre", has_text="get_soft_device_placement"
    )
    proof.first.wait_for()  # visible
    reader.tab.reload()
    assert not proof.first.is_visible()
    assert not reader.problems


def test_the_site_is_read_and_searched_from_a_folder_without_a_network(browser):
    reader = watch(browser, "file://", viewport=DESKTOP, offline=True)
    tab = reader.tab
    reader.open((HTML / "book" / "glossary.html").as_uri())
    tab.locator("math mfrac").first.wait_for()
    assert tab.evaluate("document.fonts.load('1em Formulas').then(x => x.length)")
    assert not reader.problems  # the search may not read pages' texts there
    tab.keyboard.press("Control+k")
    field = tab.locator("dialog input[name=q]")
    field.fill("arithmetic intensity")
    field.press("Enter")
    tab.wait_for_url("**/search.html?q=*")
    tab.locator("#search-results a[href*='glossary']").first.wait_for()
    tab.context.close()


# --- menus ----------------------------------------------------------------------------


def test_the_menu_of_a_phone_leads_to_a_page(phone, base):
    phone.open(f"{base}book/welcome.html")
    link = phone.tab.locator("#pst-primary-sidebar-modal a", has_text="Glossary")
    assert link.count() == 0 or not link.is_visible()
    phone.tab.locator(".primary-toggle:visible").first.click()
    link.click()
    phone.tab.wait_for_url("**/glossary.html")
    assert not phone.problems


def test_a_chapter_runs_on_colab_kaggle_codespaces_and_at_home(reader, base):
    reader.open(base + MODEL)
    tab = reader.tab
    url, branch = REPOSITORY.url, REPOSITORY.branch
    path = "notebooks/04-place-operations.ipynb"
    codespaces = url.replace("github.com", "codespaces.new")
    links = tab.locator(".run-panel li a")
    assert [link.get_attribute("href") for link in links.all()] == [
        REPOSITORY.colab(path),
        f"https://kaggle.com/kernels/welcome?src={url}/blob/{branch}/{path}",
        f"{codespaces}/tree/{branch}?quickstart=1",
        f"../_sources/{path}",
    ]
    tab.locator(".run-menu summary").click()
    command = tab.locator(".run-panel pre").inner_text()
    assert command.strip() == f"uv run {REPOSITORY.pages}run.py 04"
    with tab.expect_download() as download:
        links.last.click()
    assert download.value.suggested_filename == Path(path).name
    assert Path(download.value.path()).read_bytes() == (SITE / path).read_bytes()
    reader.open(f"{base}assignments/6-plan-before-you-rent.html")
    assert links.all_text_contents() == ["Colab", "Download the notebook"]


def test_the_menu_run_fits_is_accessible_and_closes_with_escape(phone, base):
    phone.open(base + MODEL)
    tab = phone.tab
    summary, panel = tab.locator(".run-menu summary"), tab.locator(".run-panel")
    summary.focus()
    tab.keyboard.press("Enter")
    box = panel.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"]
    assert box["y"] + box["height"] <= PHONE["height"]
    for theme in ("dark", "light"):
        choose_theme(tab, theme)
        assert not violations(tab, ".run-menu")
    tab.keyboard.press("Escape")
    assert not panel.is_visible()
    assert summary.evaluate("node => node === document.activeElement")


def test_a_missing_page_at_any_depth_is_dressed_and_leads_back(reader, base):
    reader.open(f"{base}a/b/c/nothing.html")
    sidebar = reader.tab.locator(".bd-sidebar-primary")
    style = "node => getComputedStyle(node).borderRightWidth"
    assert sidebar.evaluate(style) == "1px"
    reader.tab.locator("main a", has_text="welcome page").click()
    reader.tab.wait_for_url(f"{base}book/welcome.html")
