"""The repository's address: it stands in `_config.yml`, all links follow from it."""

from __future__ import annotations

import argparse
import dataclasses
import re
from pathlib import Path

import yaml

from tools.model import files
from tools.model.chapters import ROOT
from tools.model.errors import UserError, command

COLAB = "https://colab.research.google.com/github"
OWNER = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})"
NAME = r"[A-Za-z0-9_.-]{1,100}"
URL = re.compile(rf"https://github\.com/(?P<owner>{OWNER})/(?P<name>{NAME})")
# The section of `_config.yml` up to any of its lines.
SECTION = r"^repository:[^\n]*\n(?:(?:[ \t]+|#)[^\n]*\n|\n)*?"


@dataclasses.dataclass(frozen=True)
class Repository:
    """A repository on GitHub, and the addresses that follow from it."""

    url: str  # https://github.com/OWNER/NAME
    owner: str
    name: str
    branch: str

    @property
    def pages(self) -> str:
        """Where GitHub Pages shows the site, with a slash at the end."""
        host = f"{self.owner}.github.io"
        if self.name.lower() == host.lower():
            return f"https://{host}/"
        return f"https://{host}/{self.name}/"

    @property
    def colab_files(self) -> str:
        """What every "Open in Colab" address starts with."""
        return f"{COLAB}/{self.owner}/{self.name}/blob/{self.branch}/"

    def colab(self, path: Path | str) -> str:
        """Where Colab opens a notebook, by the last folder of its path.

        A bare file name is a chapter's: it lies in notebooks/.
        """
        path = Path(path)
        return f"{self.colab_files}{path.parent.name or 'notebooks'}/{path.name}"


def parse(url: str, branch: str = "main", source: str = "the address") -> Repository:
    """Take a repository's address apart.

    Args:
        url: https://github.com/OWNER/NAME.
        branch: the branch that links point to.
        source: where the address comes from, for the error message.

    Raises:
        UserError: the address is not that of a repository on GitHub.
    """
    match = URL.fullmatch(str(url))
    if not match or match["name"] in (".", "..") or match["name"].endswith(".git"):
        raise UserError(
            f"{source}: {url!r} is no address of a GitHub repository. "
            "Fix: write it as https://github.com/OWNER/NAME, "
            "without a slash or .git at the end."
        )
    return Repository(url, match["owner"], match["name"], branch)


def repository(root: Path = ROOT) -> Repository:
    """The repository that `_config.yml` names.

    Raises:
        UserError: the file is missing or broken, or the address is not one on GitHub.
    """
    path = root / "_config.yml"
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(
            f"{path.name}: no such file. Fix: git checkout -- {path.name}"
        ) from None
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"{path.name}: not valid YAML ({reason}). Fix: mend that line."
        ) from None
    section = config.get("repository") if isinstance(config, dict) else None
    if not isinstance(section, dict):
        section = {}
    return parse(
        section.get("url", ""),
        str(section.get("branch") or "main"),
        f"{path.name}, repository: url",
    )


def set_address(root: Path, url: str, branch: str | None = None) -> Repository:
    """Change the address, and branch if given, in `_config.yml`: those lines only."""
    new = parse(url, source="--set")
    path = root / "_config.yml"
    text = path.read_text(encoding="utf-8")
    for key, value in {"url": new.url, "branch": branch}.items():
        if value is None:
            continue
        line = rf"(?m)({SECTION}[ \t]+{key}:[ \t]*)[^\s#]+"
        text, count = re.subn(line, lambda match, v=value: match[1] + v, text)
        if count != 1:
            raise UserError(
                f"{path.name}: found {count} lines `{key}:` under `repository:`. "
                "Fix: keep exactly one."
            )
    files.write_text(path, text)
    return repository(root)


@command
def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Show the repository's addresses, or change them."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.model.address", description=main.__doc__
    )
    parser.add_argument("--set", metavar="URL", help="the new address, for _config.yml")
    parser.add_argument("--branch", help="with --set: the branch that links point to")
    options = parser.parse_args(argv)
    if options.set:
        found = set_address(root, options.set, options.branch)
    else:
        found = repository(root)
    print(f"{found.url} ({found.branch}), {found.pages}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
