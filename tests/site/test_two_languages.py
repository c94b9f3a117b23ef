"""The recipes and the five articles, in English and in Chinese."""

from pathlib import Path

import bs4
import pytest
import yaml
from site_browser import HTML, SITE

from tools.model import chapters

LANGUAGES = {"": "en", "-zh": "zh-CN"}


def page(name: str) -> bs4.BeautifulSoup:
    """A page of the built site."""
    return bs4.BeautifulSoup((HTML / f"book/{name}.html").read_bytes(), "html.parser")


def listed(name: str) -> list[dict]:
    """A list that both versions of a page are made of."""
    return yaml.safe_load((SITE / f"book/{name}.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("version", LANGUAGES)
def test_every_chapter_has_its_lines_on_the_page_of_recipes(version):
    recipes = page(f"recipes{version}").select("section.recipe")
    assert [one["id"] for one in recipes] == [
        f"recipe-{one['id']}" for one in listed("recipes")
    ]
    numbers = {chapters.chapter_number(path) for path in chapters.chapter_paths(SITE)}
    assert {one["chapter"] for one in listed("recipes")} == numbers
    assert all(one.select("pre") for one in recipes)


@pytest.mark.parametrize("version", LANGUAGES)
def test_every_line_of_an_article_has_its_verdict_and_its_proof(version):
    rows = page(f"five-articles{version}").select("ol.articles > li")
    wanted = [row for article in listed("five-articles") for row in article["rows"]]
    assert len(rows) == len(wanted)
    assert all(row.select("strong, em") and row.select("a[href]") for row in rows)


@pytest.mark.parametrize("name", ["welcome", "recipes", "five-articles"])
def test_both_versions_name_their_language_and_each_other(name):
    for version, language in LANGUAGES.items():
        found = page(f"{name}{version}")
        assert found.html["lang"] == language
        others = {x["hreflang"]: x["href"] for x in found.select("link[hreflang]")}
        assert {Path(x).stem for x in others.values()} == {name, f"{name}-zh"}
        other = f"{name}.html" if version else f"{name}-zh.html"
        assert found.select(f'.bd-article a[href="{other}"]')
