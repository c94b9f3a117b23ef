"""Build the site, all pages anew: `python -m tools.site.build`.

With `--anew` what was built before is removed first.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
from pathlib import Path

from tools.chapters import ROOT
from tools.errors import command
from tools.notebooks import form, sync

OPTIONS = ("--all", "-W", "-n", "--keep-going", "-q")  # of jupyter-book
KEPT = ("reports", "machines")  # in _build: what checks and other machines say


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


def jupyter_book(root: Path) -> int:
    """Run `jupyter-book build` in this process, which spares a start.

    Returns:
        Its exit status. Warnings, which are errors, stand in stderr.
    """
    from jupyter_book.cli.main import main as cli

    with contextlib.redirect_stdout(io.StringIO()), contextlib.chdir(root):
        try:
            cli(["build", ".", *OPTIONS])
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
    if sync.main(["--check"], root) or form.main(["--toc"], root):
        return 1
    status = 1
    try:
        status = jupyter_book(root)
    finally:
        if status:
            clean(root)
    if not status:
        print("the book is built: _build/html/index.html")
    return status


if __name__ == "__main__":
    raise SystemExit(main(anew="--anew" in sys.argv[1:]))
