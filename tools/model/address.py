"""The repository's address: it stands in `_config.yml`, all links follow from it."""

import dataclasses
import re
from pathlib import Path

import yaml

from tools.model.chapters import ROOT
from tools.model.errors import UserError

COLAB = "https://colab.research.google.com/github"
URL = re.compile(r"https://github\.com/(?P<owner>[\w-]+)/(?P<name>[\w.-]+)(?<!\.git)")


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

    def colab(self, path: Path | str) -> str:
        """Where Colab opens a notebook, by the last folder of its path."""
        place = "/".join(Path(path).parts[-2:])
        return f"{COLAB}/{self.owner}/{self.name}/blob/{self.branch}/{place}"


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
    match = URL.fullmatch(str(url))
    if not match:
        raise UserError(
            f"{path.name}, repository: url: {url!r} is no address of a GitHub "
            "repository. Fix: write it as https://github.com/OWNER/NAME, "
            "without a slash or .git at the end."
        )
    return Repository(url, match["owner"], match["name"], branch)
