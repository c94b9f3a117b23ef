"""Paths that are given, and files that are written whole or not at all."""

import contextlib
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import Any

from tools.model.errors import UserError

DOWNLOADS = Path("_build", "downloads")  # the files that the site offers


def home(path: str) -> Path:
    """A path, `~` included, which make does not expand."""
    return Path(path).expanduser()


def write_text(path: Path, text: str) -> None:
    """Replace a file's text in one step: after an error the old text is still there.

    A symbolic link stays; the file that it leads to gets the text.

    Raises:
        OSError: it can't be written; its `filename` is the path.
    """
    path = Path(os.path.realpath(path))  # Path.resolve raises where links form a loop
    temporary = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        with contextlib.suppress(OSError):  # after a success it is not there
            temporary.unlink()


def read_json(path: Path, fix: str) -> Any:
    """Read a file that a program of this repository has written.

    Raises:
        UserError: it is missing, or is no JSON; it says how to `fix` that.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path.name}: can't be read: {error}. Fix: {fix}") from None


def size_in_words(path: Path) -> str:
    """The size of a file as a reader is told it, such as `7.1 MB`."""
    megabytes = path.stat().st_size / 1e6
    return f"{megabytes:.0f} MB" if megabytes >= 99.5 else f"{megabytes:.1f} MB"
