"""Pages in English and in Chinese: one list holds both texts, a page shows one of them.

A page whose name ends in `-zh` is the Chinese version of the page without it: its HTML
says so, and each of the two names the other to search engines. The directives are given
the language, `en` or `zh`, and read a list beside the page:

- `recipes`, of recipes.yml: each chapter's lines to copy, taken from its notebook, so
  that they are the ones that ran. A recipe has `id`, `chapter`, `question`, `wrong`
  (when the lines are wrong) and `code`: the ids of cells for each engine, or for `any`;
  of a Markdown cell `id/2` is the second block of code. `files` are programs of the
  site that the lines need, `run` is how one is started.
- `articles`, of five-articles.yml: what each article says, line by line. It has
  `title`, `author`, `date`, `url`, `about` and `rows`; a row has `says`, `verdict`,
  `today`, and one of `claim` (how its sentence begins), `see` (a page and a heading of
  it) and `source`; `code` where the line is about an expression.

What is wrong with a list stops the build and is named.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from book_site.chapter_pages import site_chapters
from book_site.markup import link, section
from book_site.programs_page import ENGINES
from book_site.proved_list import claims_that_begin
from tools.model import chapters

FENCE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
MAGIC = re.compile(r"(%%(\w+) ?(.*))\n")
NAMES = {**ENGINES, "openvino": "OpenVINO"}
WORDS = {
    "any": {"en": "on any engine", "zh": "任意后端"},
    "chapter": {"en": "Why, and what breaks: chapter", "zh": "原理与常见错误：第"},
    "wrong": {"en": "When it is wrong.", "zh": "注意事项："},
    "claim": {"en": "claim", "zh": "断言"},
    "here": {"en": "this paragraph", "zh": "详见书中"},
    "source": {"en": "the source", "zh": "源码"},
    "unsigned": {"en": "address and date not found", "zh": "未找到原文地址与日期"},
    "true": {"en": "True.", "zh": "正确。"},
    "condition": {"en": "True with a condition.", "zh": "有条件成立。"},
    "until": {"en": "Was true.", "zh": "曾经正确。"},
    "never": {"en": "Never worked.", "zh": "从来不能运行。"},
    "false": {"en": "False.", "zh": "错误。"},
}


class TwoLanguages(SphinxDirective):
    """What both lists need."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """One section for each entry of the list."""
        self.language = self.arguments[0]
        self.chapters = site_chapters(self.env)
        path = Path(self.env.srcdir, "book", f"{self.name_of_list}.yml")
        self.env.note_dependency(str(path))
        listed = yaml.safe_load(path.read_text(encoding="utf-8"))
        return [self.entry(number, fields) for number, fields in enumerate(listed, 1)]

    def say(self, word: str) -> str:
        """A word of the page itself."""
        return WORDS[word][self.language]

    def one(self, found: list, what: str) -> Any:
        """The only one of a list; anything else stops the build."""
        if len(found) != 1:
            raise self.error(f"{self.name_of_list}.yml: {len(found)} times {what}")
        return found[0]

    def page(self, name: str, anchor: str) -> str:
        """The address of a place of the site, from this page."""
        here = posixpath.dirname(self.env.docname)
        return posixpath.relpath(f"{name}.html", here) + (anchor and f"#{anchor}")


class Recipes(TwoLanguages):
    """Each chapter's lines to copy."""

    name_of_list = "recipes"

    def entry(self, number: int, fields: dict) -> nodes.Node:
        """A recipe: its question, its lines for each engine, when they are wrong."""
        number, question = fields["chapter"], fields["question"][self.language]
        chapter = self.one([c for c in self.chapters if c.number == number], number)
        found = section(self, f"recipe-{fields['id']}", question)
        files, code = fields.get("files", {}), fields["code"]
        found["classes"] += [
            "recipe",
            *(f"for-{engine}" for engine in {**files, **code}),
        ]
        for engine in {**files, **code}:
            part = nodes.container(classes=["recipe-part", f"for-{engine}"])
            label = NAMES.get(engine) or self.say("any")
            part += nodes.paragraph("", label, classes=["recipe-engine"])
            if engine in files:
                site = f"curl -LO {self.config.html_baseurl}programs/"
                shell = "\n".join(site + file for file in files[engine].split())
                shell += f"\n{fields['run']}" if "run" in fields else ""
                part += nodes.literal_block(shell, shell, language="sh")
            for cell in code.get(engine, "").split():
                text, language = self.code(chapter, cell)
                part += nodes.literal_block(text, text, language=language)
            found += part
        wrong = f"*{self.say('wrong')}* {fields['wrong'][self.language]}"
        found += self.parse_text_to_nodes(wrong)
        name = f"notebooks/{chapter.path.stem}"
        text = f"{self.say('chapter')} {number}{' 章' if self.language == 'zh' else ''}"
        more = nodes.reference("", text, refuri=self.page(name, ""))
        found += nodes.paragraph("", "", more, classes=["proved-where"])
        return found

    def code(self, chapter: chapters.Chapter, name: str) -> tuple[str, str]:
        """The code of a cell as a script has it, and its language."""
        name, _, block = name.partition("/")
        cell = self.one([c for c in chapter.cells if c.id == name], name)
        if cell.cell_type == "markdown":
            language, text = FENCE.findall(cell.source)[int(block or 1) - 1]
            return text.rstrip(), {"text": "none"}.get(language, language)
        magic = MAGIC.match(cell.source)
        text = cell.source.removeprefix(magic[0] if magic else "")
        text = re.sub(r"^# (>>>|<<<).*\n?", "", text, flags=re.MULTILINE).rstrip()
        if magic and magic[2] == "writefile":
            text = f"# {magic[3]}\n{text}"
        elif magic and (variables := re.findall(r"[A-Z_]+=[^ {]+", magic[3])):
            text = f"# In the shell, first: export {' '.join(variables)}\n{text}"
        return text, "sh" if magic and magic[3].endswith(".sh") else "python"


class Articles(TwoLanguages):
    """What each article says, and what became of it."""

    name_of_list = "five-articles"

    def entry(self, number: int, fields: dict) -> nodes.Node:
        """An article and its lines."""
        found = section(self, f"article-{number}", fields["title"])
        by = f"{fields['author']}, {fields['date'] or self.say('unsigned')}"
        found += nodes.paragraph("", by, classes=["proved-where"])
        if fields["url"]:
            there = nodes.reference("", fields["url"], refuri=fields["url"])
            found[-1] += [nodes.Text(" · "), there]
        found += self.parse_text_to_nodes(fields["about"][self.language])
        rows = nodes.enumerated_list(classes=["proved", "articles"])
        for place, row in enumerate(fields["rows"], 1):
            name = f"article-{number}-{place}"
            said = f"**{row['says'][self.language].strip()}**"
            if "code" in row:
                said += f" `{row['code']}`"
            today = f"*{self.say(row['verdict'])}* {row['today'][self.language]}"
            shown = nodes.list_item("", *self.parse_text_to_nodes(said), ids=[name])
            shown += self.parse_text_to_nodes(today)
            shown[-1] += [nodes.Text(" "), self.shown_by(row)]
            rows += shown
        found += rows
        return found

    def shown_by(self, row: dict) -> nodes.Node:
        """The link to what shows a line: a claim, a paragraph, a documentation."""
        if "claim" in row:
            found = claims_that_begin(row["claim"], self.chapters)
            _, claim = self.one(found, row["claim"])
            text = f"{self.say('claim')} {claim.label}"
            return link(claim.anchor, text, self.env.docname, "proved-claim")
        if "source" in row:
            return nodes.reference("", self.say("source"), refuri=row["source"])
        name, _, anchor = row["see"].partition("#")
        return nodes.reference("", self.say("here"), refuri=self.page(name, anchor))


def name_language(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Tell browsers and search engines a page's language, and its other version."""
    english = pagename.removesuffix("-zh")
    if f"{english}-zh" not in app.env.found_docs:
        return
    if pagename != english:
        context["language"] = "zh-CN"
    for language, name in {"en": english, "zh-CN": f"{english}-zh"}.items():
        address = f"{app.config.html_baseurl}{name}.html"
        context["metatags"] += (
            f'<link rel="alternate" hreflang="{language}" href="{address}" />\n'
        )


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_directive("recipes", Recipes)
    app.add_directive("articles", Articles)
    app.connect("html-page-context", name_language)
