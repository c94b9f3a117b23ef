"""A house with the commands of this one."""

import shutil

import pytest

from tools.model.chapters import ROOT


@pytest.fixture
def house(house):
    """A small repository with the programs, the Makefile and what they read."""
    ignored = shutil.ignore_patterns("__pycache__", "results")
    for name in ("tools", "constraints"):
        shutil.copytree(ROOT / name, house / name, ignore=ignored, dirs_exist_ok=True)
    for path in (ROOT / "Makefile", *ROOT.glob("requirements*.txt")):
        shutil.copy(path, house)
    for path in (ROOT / "snippets").glob("*.py"):
        if not (house / "snippets" / path.name).exists():
            shutil.copy(path, house / "snippets")
    return house
