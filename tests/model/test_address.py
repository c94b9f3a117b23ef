"""The repository's address: read, checked, changed."""

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
    found = address.parse("https://github.com/Someone/someone.github.io", "main")
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
def test_no_github_address_is_an_error(house, url, capsys):
    config = house / "_config.yml"
    before = config.read_text()
    config.write_text(before.replace(URL, f'"{url}"'))
    assert address.main([], root=house) == 1
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1
    assert f"{url!r} is no address of a GitHub repository" in err
    assert "https://github.com/OWNER/NAME" in err
    config.write_text(before)
    assert address.main(["--set", url], root=house) == (1 if url else 0)
    assert config.read_text() == before


@pytest.mark.parametrize("text", ["", "title: x\n", "repository:\n", "repository: [\n"])
def test_a_broken_config_names_the_file(house, text):
    (house / "_config.yml").write_text(text)
    with pytest.raises(UserError, match=r"^_config.yml.*Fix: "):
        address.repository(house)


def test_set_changes_one_line_only(house, capsys):
    config = house / "_config.yml"
    before = config.read_text().splitlines()
    assert address.main(["--set", "https://github.com/a/b"], root=house) == 0
    assert "https://a.github.io/b/" in capsys.readouterr().out
    after = config.read_text().splitlines()
    changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert changed == [
        (f"  url: {URL} # by hand", "  url: https://github.com/a/b # by hand")
    ]


def test_set_can_name_the_branch(house):
    address.set_address(house, "https://github.com/a/b", "next/one")
    assert address.repository(house).branch == "next/one"
    assert "# the address\n" in (house / "_config.yml").read_text()
