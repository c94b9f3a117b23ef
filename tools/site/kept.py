"""Keep a site as one file, and put it back below another.

python -m tools.site.kept pack FOLDER FILE
python -m tools.site.kept unpack FILE FOLDER
"""

from __future__ import annotations

import argparse
import shutil
import zipfile
from pathlib import Path

from tools.model.errors import UserError, command


def pack(folder: Path, file: Path) -> None:
    """Write a site to a file.

    Raises:
        UserError: there is no site in the folder.
    """
    if not (folder / "index.html").exists():
        raise UserError(f"{folder} holds no site. Fix: make book")
    file.parent.mkdir(parents=True, exist_ok=True)
    shutil.make_archive(str(file.with_suffix("")), "zip", folder)


def unpack(file: Path, folder: Path) -> None:
    """Put a site that was kept into a new folder.

    Raises:
        UserError: the file holds no site, or the folder is there.
    """
    if folder.exists():
        raise UserError(f"{folder} is there already. Fix: remove it")
    try:
        with zipfile.ZipFile(file) as archive:
            if "index.html" not in archive.namelist():
                raise UserError(f"{file} holds no site. Fix: make its release anew")
            archive.extractall(folder)  # it keeps no name outside of the folder
    except (OSError, zipfile.BadZipFile) as error:
        raise UserError(f"{file}: {error}. Fix: make its release anew") from None


@command
def main(argv: list[str] | None = None) -> None:
    """Pack or unpack a site."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.site.kept", description=main.__doc__
    )
    parser.add_argument("what", choices=["pack", "unpack"])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    given = parser.parse_args(argv)
    {"pack": pack, "unpack": unpack}[given.what](given.source, given.target)


if __name__ == "__main__":
    raise SystemExit(main())
