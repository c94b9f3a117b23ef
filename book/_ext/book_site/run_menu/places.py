"""Where a notebook runs elsewhere, and the addresses that open it there."""

from __future__ import annotations

import dataclasses
from urllib.parse import urlencode

from tools.model.address import Repository

FOLDER = "run"  # of the programs, below the site's address


@dataclasses.dataclass(frozen=True)
class Place:
    """A link of the menu, and what its reader needs there."""

    name: str
    url: str
    needs: str


def colab(repository: Repository, page: str) -> Place:
    """Google's Colab."""
    url = repository.colab(f"{page}.ipynb")
    return Place("Colab", url, "a Google account; a CPU or a T4")


def kaggle(repository: Repository, page: str) -> Place:
    """Kaggle, which takes the address of a notebook's page on GitHub."""
    source = f"{repository.url}/blob/{repository.branch}/{page}.ipynb"
    url = f"https://kaggle.com/kernels/welcome?{urlencode({'src': source}, safe=':/')}"
    return Place("Kaggle", url, "a Kaggle account; a CPU or a GPU")


def codespaces(repository: Repository) -> Place:
    """GitHub's Codespaces: a machine with this repository, not with one notebook."""
    tree = f"{repository.owner}/{repository.name}/tree/{repository.branch}"
    url = f"https://codespaces.new/{tree}?quickstart=1"
    return Place("Codespaces", url, "a GitHub account; in VS Code")


def places(repository: Repository, page: str) -> list[Place]:
    """Where a page's notebook can run, the most used first.

    Args:
        repository: the repository that the site is built from.
        page: the notebook's path in it, without its suffix.

    Returns:
        All places for a chapter. An assignment runs where its checks, which need
        otter-grader, were tried, and apart from the masters with the solutions.
    """
    if page.startswith("assignments/"):
        return [colab(repository, page)]
    return [
        colab(repository, page),
        kaggle(repository, page),
        codespaces(repository),
    ]


def program(repository: Repository, page: str) -> str:
    """The address of the program that opens a page's notebook on one's own machine."""
    return f"{repository.pages}{FOLDER}/{page.rpartition('/')[2]}.py"
