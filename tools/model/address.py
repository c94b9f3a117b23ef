"""The repository's address: it stands in `_config.yml`, all links follow from it."""

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


def parse(url: str, branch: str, source: str = "the address") -> Repository:
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
        section = yaml.safe_load(path.read_text(encoding="utf-8"))["repository"]
        url, branch = section["url"], section["branch"]
    except (OSError, yaml.YAMLError, LookupError, TypeError) as error:
        raise UserError(
            f"{path.name} gives no url and branch below repository "
            f"({' '.join(str(error).split())}). Fix: git checkout -- {path.name}"
        ) from None
    return parse(url, branch, f"{path.name}, repository: url")


def set_address(root: Path, url: str, branch: str | None = None) -> None:
    """Change the address, and branch if given, in `_config.yml`: those lines only."""
    old, path = repository(root), root / "_config.yml"
    new = parse(url, branch or old.branch, source="--set")
    text = path.read_text(encoding="utf-8")
    text = text.replace(f"  url: {old.url}", f"  url: {new.url}")
    text = text.replace(f"  branch: {old.branch}", f"  branch: {new.branch}")
    files.write_text(path, text)


@command
def main(argv: list[str] | None = None, root: Path = ROOT) -> None:
    """Show the repository's addresses, or change them."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--set", metavar="URL", help="the new address, for _config.yml")
    parser.add_argument("--branch", help="with --set: the branch that links point to")
    options = parser.parse_args(argv)
    if options.set:
        set_address(root, options.set, options.branch)
    address = repository(root)
    print(f"{address.url} ({address.branch}), {address.pages}")


if __name__ == "__main__":
    raise SystemExit(main())
