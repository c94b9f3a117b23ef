"""The repository's address: read and checked."""

import re

import pytest

from tools.model import address
from tools.model.errors import UserError

URL = "https://github.com/someone/some-book"


def test_everything_follows_from_the_address(house):
    found = address.repository(house)
    assert (found.owner, found.name, found.branch) == ("someone", "some-book", "main")
    assert found.pages == "https://someone.github.io/some-book/"
    assert found.colab(house / "notebooks" / "05-tiny.ipynb") == (
        "https://colab.research.google.com/github/someone/some-book/blob/main"
        "/notebooks/05-tiny.ipynb"
    )


def test_a_user_site_has_no_folder():
    url, name = "https://github.com/Someone/someone.github.io", "someone.github.io"
    found = address.Repository(url, "Someone", name, "main")
    assert found.pages == "https://Someone.github.io/"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://gitlab.com/someone/some-book",
        "https://github.com/someone/some-book.git",
        "https://github.com/someone",
        "https://github.com.example.org/someone/some-book",
    ],
)
def test_no_github_address_is_an_error(house, url):
    config = house / "_config.yml"
    config.write_text(config.read_text().replace(URL, f'"{url}"'))
    said = f"{url!r} is no address of a GitHub repository. Fix: "
    with pytest.raises(UserError, match=re.escape(said)):
        address.repository(house)


@pytest.mark.parametrize("text", ["", "title: x\n", "repository:\n", "repository: [\n"])
def test_a_broken_config_names_the_file(house, text):
    (house / "_config.yml").write_text(text)
    with pytest.raises(UserError, match=r"^_config.yml.*Fix: "):
        address.repository(house)
