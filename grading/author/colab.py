"""Where Colab opens an assignment: the book's, or a teacher's own.

Colab opens a file of a public repository as
`https://colab.research.google.com/github/OWNER/NAME/blob/BRANCH/PATH`, and a file of
Google Drive as `https://colab.research.google.com/drive/ID`.
"""

from __future__ import annotations

import re
import urllib.parse
from pathlib import Path

from tools.model import address
from tools.model.chapters import ROOT
from tools.model.errors import UserError

HOST = "https://colab.research.google.com"
REPOSITORY = rf"(?P<owner>{address.OWNER})/(?P<name>{address.NAME})"
PLACE = r"(?P<branch>[\w.-]+)(?:/(?P<path>[\w.%/+@-]*))?"
GITHUB = re.compile(
    rf"https://github\.com/{REPOSITORY}(?:/(?P<kind>tree|blob)/{PLACE})?/?", re.ASCII
)
COLAB = re.compile(
    rf"{re.escape(HOST)}/github/{REPOSITORY}/(?P<kind>blob)/{PLACE}", re.ASCII
)
DRIVE = re.compile(
    rf"(?:https://drive\.google\.com/(?:file/d/|open\?id=)|{re.escape(HOST)}/drive/)?"
    r"(?P<id>[\w-]{25,60})(?:[/?#&]\S*)?",
    re.ASCII,
)
FIX = (
    "Fix: give the folder in your public repository, as GitHub shows it "
    "(https://github.com/OWNER/NAME/tree/BRANCH/FOLDER), or the notebook in Google "
    "Drive (its link, or its id), or leave --colab out."
)


def find(given: str, file_name: str) -> tuple[str, bool]:
    """Where Colab opens a notebook.

    Args:
        given: a repository, a folder or a notebook on GitHub, or a notebook in Google
            Drive: its address there or on Colab, or its id.
        file_name: of the notebook, for a folder.

    Returns:
        The address, and whether it is that of one file.

    Raises:
        UserError: it is none of these.
    """
    given = given.strip()
    if found := GITHUB.fullmatch(given) or COLAB.fullmatch(given):
        return _github(given, found, file_name)
    if found := DRIVE.fullmatch(given):
        return f"{HOST}/drive/{found['id']}", True
    raise UserError(f"--colab {given!r}: Colab opens no such address. {FIX}")


def _github(given: str, found: re.Match, file_name: str) -> tuple[str, bool]:
    """Where Colab opens a notebook of a repository; see find."""
    path = (found["path"] or "").strip("/")
    parts = urllib.parse.unquote(path).split("/")
    is_file = path.endswith(".ipynb")
    if is_file != (found["kind"] == "blob") or (path and {"", ".", ".."} & set(parts)):
        raise UserError(f"--colab {given!r}: names no folder and no notebook. {FIX}")
    if not is_file:
        path = "/".join(filter(None, (path, urllib.parse.quote(file_name))))
    name, branch = found["name"].removesuffix(".git"), found["branch"] or "main"
    return f"{HOST}/github/{found['owner']}/{name}/blob/{branch}/{path}", is_file


def default(path: Path, root: Path = ROOT) -> str:
    """Where Colab opens the notebook of a master: nowhere, if it is not the book's.

    Args:
        path: the master.
        root: the repository's folder.
    """
    if path.resolve().parent != (root / "assignments" / "masters").resolve():
        return ""
    return address.repository(root).colab(f"assignments/{path.stem}.ipynb")
