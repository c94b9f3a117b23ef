"""Which packages a notebook needs: those that its code imports or asks for by version.

Only packages of the requirements files count. They come in the versions with which the
book is verified.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from tools.model.chapters import ROOT
from tools.model.errors import UserError

VERSIONS = Path("constraints", "latest.txt")
FILES = ("requirements.txt", "requirements-book.txt", "requirements-test.txt")
JUPYTER = "jupyterlab"  # opens the notebook
COMPILER = "def compiler_wheels("  # a notebook with this asks GPUs' own compiler
IMPORTED_AS = {"otter": "otter-grader", "sklearn": "scikit-learn"}  # the others by name
# An import at the beginning of a line or of a statement, in a `%%process` cell as well.
IMPORT = re.compile(r"(?:^|;)[ \t]*(?:import|from)[ \t]+(\w+)", re.MULTILINE)
# A text such as "openvino>=2025.3", which a set-up cell checks.
ASKED = re.compile(r"""["']([\w-]+)[<>=~!]=""")


def lines(root: Path, name: Path | str) -> dict[str, str]:
    """The requirements in a file, by the package's name.

    Raises:
        UserError: the file is missing, or a line in it is no requirement.
    """
    found = {}
    try:
        text = (root / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{name}: no such file. Fix: git checkout -- {name}") from None
    for number, line in enumerate(text.splitlines(), start=1):
        wanted = line.partition("#")[0].strip()
        if not wanted or wanted.startswith("-"):
            continue
        try:
            found[canonicalize_name(Requirement(wanted).name)] = wanted
        except InvalidRequirement:
            raise UserError(
                f"{name}, line {number}: {wanted!r} is no requirement. "
                "Fix: write it as keras>=3.13,<4."
            ) from None
    return found


def verified(root: Path = ROOT) -> dict[str, str]:
    """The packages of the requirements files with the versions that are verified.

    Returns:
        Requirements such as `keras==3.15.1` by the package's name; its range where no
        version is named.

    Raises:
        UserError: a file is missing, or a line in it is no requirement.
    """
    found = {}
    for name in FILES:
        found |= lines(root, name)
    versions = lines(root, VERSIONS)
    return {name: versions.get(name, line) for name, line in found.items()}


def code(path: Path) -> str:
    """The text of all code cells of a notebook.

    Raises:
        UserError: the file is no notebook.
    """
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        sources = [x["source"] for x in cells if x["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path.name}: no notebook ({error}). Fix: git checkout -- {path.name}"
        ) from None
    return "\n".join("".join(source) for source in sources)


def requirements(text: str, known: dict[str, str]) -> list[str]:
    """What has to be installed to open a notebook and run it, sorted.

    Args:
        text: its code.
        known: what `verified` returns. Other modules come with these packages or with
            Python, or the notebook writes them itself.
    """
    names = {IMPORTED_AS.get(name, name) for name in IMPORT.findall(text)}
    names |= {JUPYTER, *ASKED.findall(text)}
    return sorted(known[x] for x in map(canonicalize_name, names) if x in known)


def asks_compiler(text: str) -> bool:
    """Whether the code asks XLA's compiler for NVIDIA GPUs."""
    return COMPILER in text
