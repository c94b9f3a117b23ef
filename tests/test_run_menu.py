"""The menu Run: places to run a notebook, by mouse, by keyboard and without scripts.

The program behind *On my machine* is run from an empty folder, with the built site in
place of the published one. `make book` builds the site first.
"""

from __future__ import annotations

import ast
import functools
import http.server
import importlib.metadata
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
import test_site
from axe_playwright_python.sync_playwright import Axe
from book_site.run_menu import open_notebook, places
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from playwright.sync_api import Browser, Page

from tools.model import address, chapters
from tools.model.errors import UserError
from tools.notebooks import needs
from tools.setup import uv

base, browser = test_site.base, test_site.browser  # fixtures
ROOT, HTML, PAGES = chapters.ROOT, test_site.HTML, test_site.REPOSITORY.pages
CHAPTER = "notebooks/05-memory.html"
ASSIGNMENT = "assignments/6-plan-before-you-rent.html"
NOTEBOOKS = sorted([*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("assignments/*.ipynb")])
FORK = address.parse("https://github.com/some-one/their.fork", "draft/2")
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


# --- the menu -------------------------------------------------------------------------


@pytest.fixture
def reader(browser: Browser, base: str) -> Iterator[test_site.Watched]:
    """A tab of a desktop that was never here."""
    watched = test_site.watch(browser, test_site.host(base), viewport=test_site.DESKTOP)
    yield watched
    watched.tab.context.close()


def links(tab: Page) -> dict[str, str]:
    """The links of the menu's list, by their texts."""
    return dict(
        tab.locator(".run-panel li a").evaluate_all(
            "all => all.map(link => [link.textContent, link.getAttribute('href')])"
        )
    )


def test_a_chapter_runs_on_colab_kaggle_codespaces_and_at_home(reader, base):
    reader.open(base + CHAPTER)
    tab = reader.tab
    url, branch = test_site.REPOSITORY.url, test_site.REPOSITORY.branch
    file = f"{url}/blob/{branch}/notebooks/05-memory.ipynb"
    assert links(tab) == {
        "Colab": test_site.REPOSITORY.colab("05-memory.ipynb"),
        "Kaggle": f"https://kaggle.com/kernels/welcome?src={file}",
        "Codespaces": url.replace("github.com", "codespaces.new")
        + f"/tree/{branch}?quickstart=1",
        "Download the notebook": "../_sources/notebooks/05-memory.ipynb",
    }
    assert not tab.locator(".run-panel").is_visible()
    tab.locator(".run-menu summary").click()
    shown = tab.locator(".run-panel pre").inner_text()
    assert shown.strip() == f"uv run {PAGES}run/05-memory.py"
    with tab.expect_download() as download:
        tab.get_by_role("link", name="Download the notebook").click()
    saved = Path(download.value.path()).read_bytes()
    assert download.value.suggested_filename == "05-memory.ipynb"
    assert saved == (ROOT / "notebooks" / "05-memory.ipynb").read_bytes()
    assert not reader.problems  # nobody was asked anything


def test_an_assignment_stays_away_from_the_solutions(reader, base):
    reader.open(base + ASSIGNMENT)
    assert list(links(reader.tab)) == ["Colab", "Download the notebook"]


def test_a_page_that_is_no_notebook_has_no_menu(reader, base):
    reader.open(f"{base}book/how-to-use.html")
    assert reader.tab.locator(".run-menu").count() == 0
    assert reader.tab.locator("#run-elsewhere").count() == 1  # the menu leads there


def test_the_menu_is_used_with_the_keyboard(reader, base):
    reader.open(base + CHAPTER)
    tab = reader.tab
    summary, panel = tab.locator(".run-menu summary"), tab.locator(".run-panel")
    summary.focus()
    tab.keyboard.press("Enter")
    assert panel.is_visible()
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Colab"
    tab.keyboard.press("Escape")
    assert not panel.is_visible()
    assert summary.evaluate("node => node === document.activeElement")
    summary.click()
    assert panel.is_visible()
    tab.locator("h1:visible").click(position={"x": 5, "y": 5})
    assert not panel.is_visible()


def test_the_menu_needs_no_script(browser, base):
    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto(base + CHAPTER)
    plain.locator(".run-menu summary").click()
    assert plain.locator(".run-panel a", has_text="Kaggle").is_visible()
    plain.context.close()


@pytest.mark.parametrize("size", [test_site.DESKTOP, test_site.PHONE])
def test_the_open_menu_fits_and_is_accessible(browser, base, size):
    watched = test_site.watch(browser, test_site.host(base), viewport=size)
    watched.open(base + CHAPTER)
    tab = watched.tab
    tab.locator(".run-menu summary").click()
    box = tab.locator(".run-panel").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= size["width"]
    assert box["y"] + box["height"] <= size["height"]
    assert not tab.evaluate(test_site.OVERFLOW)
    for theme in ("light", "dark"):
        tab.emulate_media(color_scheme=theme)
        tab.wait_for_function(f"document.documentElement.dataset.theme === '{theme}'")
        tab.wait_for_timeout(250)  # colours fade from one theme to the other
        found = Axe().run(tab, ".run-menu", {"resultTypes": ["violations"]})
        assert not found.response["violations"]
        assert found.response["passes"]
    tab.context.close()


def test_a_forks_menu_opens_the_forks_notebooks():
    found = places.places(FORK, "notebooks/05-memory")
    own = "some-one/their.fork"
    assert [place.url for place in found] == [
        f"https://colab.research.google.com/github/{own}/blob/draft/2/notebooks/"
        "05-memory.ipynb",
        f"https://kaggle.com/kernels/welcome?src=https://github.com/{own}/blob/draft/2/"
        "notebooks/05-memory.ipynb",
        f"https://codespaces.new/{own}/tree/draft/2?quickstart=1",
    ]
    program = places.program(FORK, "notebooks/05-memory")
    assert program == "https://some-one.github.io/their.fork/run/05-memory.py"


# --- what a notebook needs ------------------------------------------------------------


@functools.cache
def comes_with(name: str) -> frozenset[str]:
    """A package and all that it brings, as they are installed here."""
    found, new = set(), {canonicalize_name(name)}
    while new:
        one = new.pop()
        found.add(one)
        try:
            lines = importlib.metadata.requires(one) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system
        wanted = map(Requirement, lines)
        here = [x for x in wanted if not x.marker or x.marker.evaluate({"extra": ""})]
        new |= {canonicalize_name(x.name) for x in here} - found
    return frozenset(found)


def imported(source: str) -> set[str]:
    """The modules that a notebook's code imports, read cell by cell as Python."""
    found = set()
    for cell in nbformat.reads(source, 4).cells:
        text = re.sub(r"(?m)^%%?.*$", "", cell.source)
        if cell.cell_type != "code" or not re.search(r"\bimport\b", text):
            continue
        try:
            tree = ast.walk(ast.parse(text))
        except SyntaxError:
            continue  # a file in another language, or an error that is shown
        for node in tree:
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found


@every_notebook
def test_all_that_a_notebook_imports_is_installed(path):
    source = path.read_text(encoding="utf-8")
    wanted = needs.requirements(needs.code(path), needs.verified())
    brought = set().union(*(comes_with(Requirement(x).name) for x in wanted))
    packages = importlib.metadata.packages_distributions()
    missing = {
        module
        for module in imported(source)
        if module in packages
        and not {canonicalize_name(x) for x in packages[module]} & brought
    }
    assert not missing


def test_a_small_notebook_needs_little_and_in_the_verified_versions():
    path = ROOT / "notebooks" / "17-a-gpu-you-do-not-have.ipynb"
    wanted = needs.requirements(needs.code(path), needs.verified())
    names = [Requirement(x).name for x in wanted]
    assert names == ["jax", "jupyterlab", "keras", "matplotlib"]
    pinned = (ROOT / needs.VERSIONS).read_text().splitlines()
    assert set(wanted) <= set(pinned)


def test_a_version_that_is_asked_for_counts_as_an_import():
    known = {"openvino": "openvino==1", "scikit-learn": "scikit-learn==2"}
    code = 'have("openvino>=2025.3")\n%%process\nx = 1; from sklearn import svm'
    assert needs.requirements(code, known) == ["openvino==1", "scikit-learn==2"]


def test_a_broken_line_or_notebook_is_named(tmp_path):
    (tmp_path / "a.txt").write_text("# fine\nkeras >> 3\n")
    with pytest.raises(UserError, match=r"a\.txt, line 2: 'keras >> 3' is no"):
        needs.lines(tmp_path, "a.txt")
    with pytest.raises(UserError, match=r"b\.txt: no such file"):
        needs.lines(tmp_path, "b.txt")
    (tmp_path / "c.ipynb").write_text("{}")
    with pytest.raises(UserError, match=r"c\.ipynb: no notebook"):
        needs.code(tmp_path / "c.ipynb")


# --- on my machine --------------------------------------------------------------------


class Site(http.server.SimpleHTTPRequestHandler):
    """The built site, in whose programs this server's address stands for the site's."""

    def do_GET(self) -> None:
        path = HTML / self.path.lstrip("/")
        if not path.is_file():
            self.send_error(404)
            return
        body = path.read_bytes()
        if path.suffix == ".py":
            here = f"http://127.0.0.1:{self.server.server_port}/"
            body = body.replace(PAGES.encode(), here.encode())
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """Where the built site is served, with a slash at the end."""
    if not (HTML / "sitemap.xml").exists():
        pytest.fail(test_site.NOT_BUILT)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def environment() -> dict[str, str]:
    """The variables of a reader whose uv is told what pip is told here."""
    found = os.environ | uv.settings(uv.pip_settings(), os.environ)
    found["UV_PYTHON"] = sys.executable  # no download of a Python
    found["UV_COMPILE_BYTECODE"] = "0"  # that takes longer than all else
    return {x: found[x] for x in found if x not in ("VIRTUAL_ENV", "PYTHONPATH")}


def ask(url: str, method: str = "GET") -> dict:
    """What JupyterLab's server answers; nothing while it does not."""
    try:
        request = urllib.request.Request(url, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read() or "{}")
    except (urllib.error.URLError, OSError):
        return {}


def test_one_command_in_an_empty_folder_opens_the_notebook(site, tmp_path):
    """The smallest: Keras, JAX, otter-grader and JupyterLab, no TensorFlow."""
    name = "6-plan-before-you-rent"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["run", f"{site}run/{name}.py", "--no-browser", "--allow-root"]
    words += [f"--port={port}", "--ServerApp.token=t"]
    log = tmp_path / "log.txt"
    empty = tmp_path / "empty"
    empty.mkdir()
    with log.open("w") as file:
        process = subprocess.Popen(
            [*uv.program(), *words],
            cwd=empty,
            env=environment(),
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    server = f"http://127.0.0.1:{port}/api"
    end = time.monotonic() + 240
    try:
        opened = {}
        while not opened and process.poll() is None and time.monotonic() < end:
            opened = ask(f"{server}/contents/{name}.ipynb?token=t")
            time.sleep(0.2)
        assert opened, log.read_text()
        original = json.loads((ROOT / "assignments" / f"{name}.ipynb").read_text())
        cells = opened["content"]["cells"]
        assert [x["cell_type"] for x in cells] == [
            x["cell_type"] for x in original["cells"]
        ]
        ask(f"{server}/shutdown?token=t", "POST")
        process.wait(60)
    finally:
        process.kill()
    folder = empty / open_notebook.FOLDER
    assert list(empty.iterdir()) == [folder]
    assert {x.name for x in folder.iterdir()} == {".venv", f"{name}.ipynb"}
    set_up = next(x for x in original["cells"] if "@title" in "".join(x["source"]))
    python = folder / ".venv" / "bin" / "python"
    done = subprocess.run(
        [python, "-c", "".join(set_up["source"])],
        cwd=empty,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def started(monkeypatch, tmp_path):
    """The programs that `main` starts in an empty folder, without starting them."""
    words = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UV", "uv")
    monkeypatch.setenv("UV_COMPILE_BYTECODE", "0")  # `main` would leave it set
    for name in open_notebook.CHOSEN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "argv", ["program", "--no-browser"])

    def run(command, **_):
        words.append([str(word) for word in command])
        venv = tmp_path / open_notebook.FOLDER / ".venv"
        (venv / "bin").mkdir(parents=True, exist_ok=True)
        (venv / "bin" / "python").touch()
        return subprocess.CompletedProcess(command, 0, stdout="[]")

    monkeypatch.setattr(open_notebook.subprocess, "run", run)
    monkeypatch.setattr(open_notebook.os, "execv", lambda _, command: run(command))
    return words


def test_what_is_here_is_not_fetched_or_installed_again(started, site, tmp_path):
    book = ("05-memory.ipynb", "_sources/notebooks/05-memory.ipynb")
    arguments = (site + book[1], f"{site}run/versions.txt", ["jax==1"])
    open_notebook.main(*arguments)
    notebook = tmp_path / open_notebook.FOLDER / book[0]
    assert notebook.read_bytes() == (HTML / book[1]).read_bytes()
    assert [word[1] for word in started] == ["venv", "pip", "-m"]
    notebook.write_text("my answers")
    open_notebook.main(*arguments)
    assert notebook.read_text() == "my answers"
    assert [word[1] for word in started[3:]] == ["-m"]
    assert started[-1][-2:] == [str(notebook), "--no-browser"]
    open_notebook.main(*arguments[:2], ["jax==2"])
    assert started[4][-1] == "jax==2"


def test_pytorch_suits_the_machine_unless_a_place_is_named(started, site, monkeypatch):
    arguments = (f"{site}_sources/notebooks/05-memory.ipynb", "v.txt")
    backend = ["--torch-backend", "auto"]
    open_notebook.main(*arguments, ["torch==2"])
    assert started[1][-3:] == [*backend, "torch==2"]
    open_notebook.main(*arguments, ["jax==1"])
    assert "--torch-backend" not in started[-2]
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://mirror.example/simple")
    open_notebook.main(*arguments, ["torch==3"])
    assert "--torch-backend" not in started[-2]


def test_a_notebook_that_cannot_be_fetched_says_what_to_do(started, site, tmp_path):
    with pytest.raises(SystemExit, match=r"Not Found.*Fix: download"):
        open_notebook.main(f"{site}nothing.ipynb", "v.txt", [])
    with pytest.raises(SystemExit, match=r"\(char .*Fix: download"):
        open_notebook.main(f"{site}book/welcome.html", "v.txt", [])  # a log-in page
    assert not started
    assert not list((tmp_path / open_notebook.FOLDER).iterdir())
