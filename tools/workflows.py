"""Check the GitHub workflows with actionlint and zizmor: `python -m tools.workflows`.

actionlint finds mistakes in the workflows and, with shellcheck, in their scripts. Those
in `.github/scripts` go to shellcheck itself.
zizmor finds what makes them unsafe: actions that are not pinned, input that ends up in
a script, permissions and credentials that nothing needs. Both run offline.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from tools.chapters import ROOT
from tools.errors import UserError, command


def program(name: str) -> str:
    """The path of a program that is installed beside this Python."""
    found = shutil.which(name, path=sysconfig.get_path("scripts"))
    if not found:
        raise UserError(
            f"{name} is not installed. Fix: pip install -r requirements-test.txt"
        )
    return found


def configurations(root: Path) -> list[Path]:
    """The files to check: the workflows, then Dependabot's configuration."""
    folder = root / ".github" / "workflows"
    workflows = sorted([*folder.glob("*.yml"), *folder.glob("*.yaml")])
    if not workflows:
        raise UserError(
            f"{folder}: no workflow to check. Fix: git checkout -- .github/workflows"
        )
    dependabot = root / ".github" / "dependabot.yml"
    return [*workflows, *([dependabot] if dependabot.exists() else [])]


def scripts(root: Path) -> list[Path]:
    """The scripts that the workflows run."""
    return sorted((root / ".github" / "scripts").glob("*.sh"))


def check(root: Path = ROOT) -> bool:
    """Run all checkers and print what they find; whether they found nothing."""
    files = configurations(root)
    workflows = [path for path in files if path.parent.name == "workflows"]
    actionlint = [
        program("actionlint"),
        *("-shellcheck", program("shellcheck"), "-pyflakes", "", "-no-color"),
        *map(str, workflows),
    ]
    zizmor = [
        program("zizmor"),
        *("--offline", "--strict-collection", "--no-progress", "--quiet"),
        *map(str, files),
    ]
    lines = [actionlint, zizmor]
    if found := scripts(root):
        lines.append([program("shellcheck"), *map(str, found)])
    runs = [subprocess.run(line, cwd=root, check=False) for line in lines]
    return all(run.returncode == 0 for run in runs)


@command
def main() -> int:
    """Check the repository's workflows."""
    if not check():
        print("error: .github: see the findings above", file=sys.stderr)
        return 1
    print("GitHub workflows: no findings")
    return 0


if __name__ == "__main__":
    sys.exit(main())
