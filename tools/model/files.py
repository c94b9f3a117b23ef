"""Paths that are given, and files that are written whole or not at all."""

import os
import tempfile
from pathlib import Path

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
    temporary = None
    try:
        handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
        temporary = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        temporary.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
        temporary.replace(path)
    except BaseException as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)
        raise


def size_in_words(path: Path) -> str:
    """The size of a file as a reader is told it, such as `7.1 MB`."""
    megabytes = path.stat().st_size / 1e6
    return f"{megabytes:.0f} MB" if megabytes >= 99.5 else f"{megabytes:.1f} MB"
