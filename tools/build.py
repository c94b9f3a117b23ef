"""Build the site, all pages anew: `python -m tools.build`."""

from __future__ import annotations

import contextlib
import io
import shutil
from pathlib import Path

from tools import form, sync
from tools.chapters import ROOT
from tools.errors import command

OPTIONS = ("--all", "-W", "-n", "--keep-going", "-q")  # of jupyter-book


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
def main(root: Path = ROOT) -> int:
    """Build the site if copies are like their originals and `_toc.yml` is whole.

    What a failed build has written is removed: nobody shall take it for the site.
    """
    if sync.main(["--check"], root) or form.main(["--toc"], root):
        return 1
    status = 1
    try:
        status = jupyter_book(root)
    finally:
        if status:
            shutil.rmtree(root / "_build", ignore_errors=True)
    if not status:
        print("the book is built: _build/html/index.html")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
