"""The built site in a real browser, served as GitHub Pages would serve it.

`make book` builds the site first. A module of tests imports the fixtures `base`,
`browser` and `reader` from here.
"""

import dataclasses
import functools
import http.server
import os
import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from tools import chromium
from tools.model import address, chapters

SITE = Path(os.environ.get("SITE_ROOT", chapters.ROOT))  # where _config.yml lies
HTML = SITE / "_build" / "html"
NOT_BUILT = f"{HTML} has no sitemap. Fix: run `make book` first."
REPOSITORY = address.repository(SITE)
PREFIX = urlsplit(REPOSITORY.pages).path
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
LOCATION = "{http://www.sitemaps.org/schemas/sitemap/0.9}loc"

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

OPEN_ALL = """() => {
  document.querySelectorAll("button.guess-show").forEach((button) => button.click());
  document.querySelectorAll("details.fold").forEach((fold) => (fold.open = true));
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
        return ["the site is not built"]  # an empty list would skip the tests
    locations = ElementTree.parse(path).iter(LOCATION)
    return [location.text.removeprefix(REPOSITORY.pages) for location in locations]


class Server(http.server.SimpleHTTPRequestHandler):
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
    handler = functools.partial(Server, directory=str(HTML))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{PREFIX}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for the tests of a module; it finds no other host."""
    options = chromium.launch_options()
    options["args"] += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**options)
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
    """Open a tab; an address that does not start with `local` is a problem."""
    tab = browser.new_context(color_scheme="light", **options).new_page()
    watched = Watched(tab, [], [])
    problems = watched.problems

    def request(request) -> None:
        if not request.url.startswith((local, "data:", "blob:")):
            problems.append(f"asks another host: {request.url}")

    def response(response) -> None:
        watched.loaded.append(response.url)
        if response.status >= 400:
            problems.append(f"{response.status}: {response.url}")

    def failed(request) -> None:
        if request.failure != "net::ERR_ABORTED":  # the tab went on to another page
            problems.append(f"failed: {request.url}")

    def console(message) -> None:
        if message.type == "error":
            problems.append(f"console: {message.text}")

    tab.on("request", request)  # a route would switch the browser's cache off
    tab.on("response", response)
    tab.on("requestfailed", failed)
    tab.on("console", console)
    tab.on("pageerror", lambda error: problems.append(f"script: {error}"))
    return watched


def host(base: str) -> str:
    """The part of the site's address before its prefix."""
    return base.removesuffix(PREFIX)


@pytest.fixture
def reader(browser: Browser, base: str) -> Iterator[Watched]:
    """A tab, as wide as a desktop's, of somebody who was never here."""
    watched = watch(browser, host(base), viewport=DESKTOP)
    yield watched
    watched.tab.context.close()


def choose_theme(tab: Page, theme: str) -> None:
    """Have a page shown as the system's setting `light` or `dark` asks for."""
    tab.emulate_media(color_scheme=theme, reduced_motion="reduce")
    tab.wait_for_function(f"document.documentElement.dataset.theme === '{theme}'")


def violations(tab: Page, part: str | None = None) -> list[str]:
    """The serious accessibility faults of the page that a tab shows, or of a part."""
    tab.evaluate(UNWRAP_REPEATED)
    options = {"resultTypes": ["violations"], "preload": False}
    result = Axe().run(tab, part, options=options).response
    assert result["passes"], "axe has looked at nothing"
    return [
        f"{fault['id']} at {node['target']}: {node['html'][:120]}"
        for fault in result["violations"]
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]
