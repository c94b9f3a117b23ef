"""What must hold before the site is built: `python -m tools.ready`."""

from __future__ import annotations

from pathlib import Path

from tools import form, sync
from tools.chapters import ROOT
from tools.errors import command


@command
def main(root: Path = ROOT) -> int:
    """Check that copies are like their originals, and that `_toc.yml` is whole."""
    return sync.main(["--check"], root) or form.main(["--toc"], root)


if __name__ == "__main__":
    raise SystemExit(main())
