"""Build the site: `python -m tools.site.build`.

Where nothing has changed since the last good build, nothing is done; where only pages
have, those are built that show a change; otherwise all are. `--anew` removes first what
was built before.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
from pathlib import Path

from tools.model import files
from tools.model.chapters import ROOT
from tools.model.errors import command
from tools.notebooks import form, sync

OPTIONS = ("-W", "-n", "--keep-going", "-q")  # of jupyter-book
ALL = ("--all",)  # build every page
KEPT = ("reports", "machines", "versions")  # in _build: what runs of claims say
BUILT = "the book is built: _build/html/index.html"
BUILT_FROM = Path("_build", "built-from.json")
# What Sphinx sees for itself: pages, and what they say that they are made from.
PAGES = ("*.md", "*.ipynb", "*.yml", "*.json")
SOURCES = ("book", "notebooks", "benchmarks/results")
# What no page depends on, or what is made.
LEFT_OUT = ("_build", "__pycache__", "node_modules", "tests", "submissions", "grades")


def clean(root: Path) -> None:
    """Remove what was built, but not what runs have reported."""
    folder = root / "_build"
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name in KEPT:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
    with contextlib.suppress(OSError):  # not empty, or not there
        folder.rmdir()


def inputs(root: Path) -> dict[str, dict[str, list[int]]]:
    """What the site is built from: size and time of each file, by its kind.

    To `rest` belong what is installed and the commit, whose date pages show; to
    `downloads` what `make pdf`, `make epub` and `make zip` made.
    """
    found: dict[str, dict[str, list[int]]] = {"pages": {}, "rest": {}, "downloads": {}}
    for folder, folders, names in os.walk(root):
        folders[:] = [x for x in folders if x not in LEFT_OUT and x[0] != "."]
        for path in (Path(folder, name) for name in names):
            name = path.relative_to(root).as_posix()
            is_page = name.startswith(tuple(f"{x}/" for x in SOURCES)) and any(
                path.match(pattern) for pattern in PAGES
            )
            found["pages" if is_page else "rest"][name] = seen(path)
    for path in (root / files.DOWNLOADS).glob("*"):
        found["downloads"][path.name] = seen(path)
    for path in (*root.glob(".venv/.installed-*"), *root.glob(".git/logs/HEAD")):
        found["rest"][path.relative_to(root).as_posix()] = seen(path)
    return found


def seen(path: Path) -> list[int]:
    """A file's size and time; of one that is not there, nothing."""
    with contextlib.suppress(OSError):
        told = path.stat()
        return [told.st_size, told.st_mtime_ns]
    return []


def built_from(root: Path) -> dict:
    """What the last good build was built from; nothing if that is not known."""
    try:
        return json.loads((root / BUILT_FROM).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def jupyter_book(root: Path, *options: str) -> int:
    """Run `jupyter-book build` in this process, which spares a start.

    Args:
        root: the repository's folder.
        options: beside `OPTIONS`.

    Returns:
        Its exit status. Warnings, which are errors, stand in stderr.
    """
    from jupyter_book.cli.main import main as cli

    with contextlib.redirect_stdout(io.StringIO()), contextlib.chdir(root):
        try:
            cli(["build", ".", *OPTIONS, *options])
        except SystemExit as end:
            return int(end.code or 0)
    return 0


@command
def main(root: Path = ROOT, anew: bool = False) -> int:
    """Build the site if copies are like their originals and `_toc.yml` is whole.

    What a failed build has written is removed: nobody shall take it for the site.
    """
    if anew:
        clean(root)
    now, before = inputs(root), built_from(root)
    if now == before:
        print(f"{BUILT}, and nothing has changed")
        return 0
    if sync.main(["--check"], root) or form.main(["--toc"], root):
        return 1
    status = 1
    try:
        same = now["rest"] == before.get("rest") and set(now["pages"]) == set(
            before["pages"]
        )
        (root / BUILT_FROM).unlink(missing_ok=True)
        status = jupyter_book(root, *(() if same else ALL))
    finally:
        if status:
            clean(root)
    if not status:
        (root / BUILT_FROM).parent.mkdir(exist_ok=True)
        files.write_text(root / BUILT_FROM, json.dumps(now))
        print(BUILT)
    return status


if __name__ == "__main__":
    raise SystemExit(main(anew="--anew" in sys.argv[1:]))
