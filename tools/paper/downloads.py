"""Where files to download wait for the site's build, which links them."""

from __future__ import annotations

import shutil
from pathlib import Path

FOLDER = Path("_build", "downloads")


def put(root: Path, path: Path) -> Path:
    """Put a finished file there, and say so."""
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    to = folder / path.name
    if to != path:
        part = to.with_name(to.name + ".part")
        shutil.copyfile(path, part)
        part.replace(to)
    print(f"{to.relative_to(root)}: {size(to)}")
    return to


def size(path: Path) -> str:
    """The size of a file as a reader is told it, such as `7.1 MB`."""
    megabytes = path.stat().st_size / 1e6
    return f"{megabytes:.0f} MB" if megabytes >= 99.5 else f"{megabytes:.1f} MB"
