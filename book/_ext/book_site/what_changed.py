"""The page What changed, the feed, and the claims as a file.

The directive `what-changed` lists what changed between the two newest states of the
book's claims, and carries the others, so that `what-changed.js` compares any two. A
state is a release, whose file lies in `book/releases`, or the book as it is if that
differs from the newest release. When the site is built it also gets `claims.json` (see
`tools/drift/claims.py`) and `feed.xml`, an Atom feed with an entry for each release.

A release's own site is kept below `releases/`. It is built with the variable
`BOOK_RELEASE`, and says on each page that it is not the newest.
"""

from __future__ import annotations

import functools
import html
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from book_site.claims_ledger import MARK as LEDGER
from book_site.claims_ledger import counted, readable
from book_site.version_marks import listed
from tools.drift import claims, releases
from tools.model import address, chapters, files
from tools.model.errors import UserError

LOGGER = logging.getLogger(__name__)
MARK = "what-changed"  # the metadata of a page with the choice
SCRIPT = "what-changed.js"
FEED = "feed.xml"
ATOM = "http://www.w3.org/2005/Atom"
NOW = "now"  # the name of the book as it is
OLD_RELEASE = (
    'You read release {name} as it was. <a href="{pages}">The book of today</a> '
    "has been checked with newer versions."
)
NO_SCRIPT = (
    "<noscript><p>To compare other releases, the page needs JavaScript.</p></noscript>"
)


# The states


def states(root: Path) -> list[dict]:
    """The releases' files, the oldest first, and the book as it is if it differs.

    Raises:
        UserError: a file or a chapter can't be read.
    """
    known = claims.releases(root)
    now = claims.stored(root)
    if not known or releases.compare(known[-1], now).count:
        dates = [claim["date"] for claim in now["claims"]]
        known.append(now | {"release": NOW, "date": max(dates, default="")})
    return known


def title(state: dict) -> str:
    """What a state is called."""
    if state["release"] == NOW:
        return "the book as it is now"
    return f"release {state['release']}, {readable(state['date'])}"


def set_titles(state: dict) -> dict[str, str]:
    """What the sets of versions are called, with the versions that they ran with."""
    return {
        name: f"{one['title']} ({listed(one['versions'])})"
        for name, one in state["sets"].items()
    }


def compact(known: list[dict]) -> dict[str, Any]:
    """What the script needs of all states: each sentence once, claims as short lists.

    A claim is its name, its label, the number of its sentence, what became of it by the
    sets' names (the book's own run has an empty one), and the number of the versions of
    that run.
    """
    sentences: dict[str, int] = {}
    versions: dict[str, int] = {}
    found = []
    for state in known:
        rows = []
        for claim in state["claims"]:
            number = sentences.setdefault(claim["sentence"], len(sentences))
            used = versions.setdefault(listed(claim["versions"]), len(versions))
            tried = releases.tried(claim)
            rows.append([claim["id"], claim["label"], number, tried, used])
        found.append(
            {
                "name": state["release"],
                "title": title(state),
                "sets": set_titles(state),
                "claims": rows,
            }
        )
    return {
        "sentences": list(sentences),
        "versions": list(versions),
        "states": found,
    }


def own_versions(state: dict) -> str:
    """The versions of the book's own run, of the claim that was checked last."""
    newest = max(state["claims"], key=lambda x: x["date"], default=None)
    return listed(newest["versions"]) if newest else ""


# What changed, as HTML, which the script writes too


def sentence_html(sentence: str) -> str:
    """A claim's sentence with a capital, and what stands between backticks as code."""
    parts = (sentence[:1].upper() + sentence[1:]).split("`")
    escaped = [html.escape(part, quote=False) for part in parts]
    for i in range(1, len(escaped) - 1, 2):
        escaped[i] = f"<code>{escaped[i]}</code>"
    return "".join(escaped)


def turn_html(turn: releases.Turn, new: dict) -> str:
    """A claim whose outcome differs, with the versions."""
    if turn.where == releases.OWN:
        versions = listed(turn.claim["versions"])
    else:
        versions = set_titles(new).get(turn.where, turn.where)
    reason = f": {html.escape(turn.reason, quote=False)}" if turn.reason else ""
    return (
        f"{sentence_html(turn.claim['sentence'])}<br>"
        f'<span class="change-how">{turn.before} → <strong>{turn.after}</strong> with '
        f"{html.escape(versions, quote=False)}{reason}</span>"
    )


def changes_html(old: dict, new: dict) -> Iterator[str]:
    """Headings and lists: what changed between two states."""
    found = releases.compare(old, new)
    kinds = {
        "New": [(x, sentence_html(x["sentence"])) for x in found.new],
        "Gone": [(x, sentence_html(x["sentence"])) for x in found.gone],
        "Reworded": [
            (
                after,
                f"{sentence_html(after['sentence'])}<br>"
                f'<span class="change-how">before: '
                f"{sentence_html(before['sentence'])}</span>",
            )
            for before, after in found.reworded
        ],
        "Another outcome": [
            (turn.claim, turn_html(turn, new)) for turn in found.turned
        ],
    }
    counts = f"{len(old['claims'])} claims before, {len(new['claims'])} after."
    if not found.count:
        yield f"<p>{counts} No claim changed.</p>"
        return
    yield f"<p>{counts}</p>"
    for kind, rows in kinds.items():
        if rows:
            items = "".join(
                f"<li><strong>{claim['label']}</strong> {text}</li>"
                for claim, text in rows
            )
            yield f"<h3>{kind}: {len(rows)}</h3><ul>{items}</ul>"


def options_html(known: list[dict], chosen: dict) -> str:
    """The states as the options of a choice, the newest first."""
    return "".join(
        f'<option value="{html.escape(one["release"])}"'
        f"{' selected' if one is chosen else ''}>{html.escape(title(one))}</option>"
        for one in reversed(known)
    )


def form_html(known: list[dict]) -> str:
    """The choice of two states, and what changed between the two newest."""
    old, new = known[-2:]
    data = json.dumps(compact(known), ensure_ascii=False).replace("<", "\\u003c")
    return (
        '<form class="changes" id="changes"><p class="changes-choice">'
        '<label for="changes-from">From</label>'
        f'<select id="changes-from" disabled>{options_html(known, old)}</select>'
        '<label for="changes-to">to</label>'
        f'<select id="changes-to" disabled>{options_html(known, new)}</select></p>'
        f"{NO_SCRIPT}"
        f'<div class="changes-found" aria-live="polite">'
        f"{''.join(changes_html(old, new))}</div></form>"
        f'<script type="application/json" id="changes-data">{data}</script>'
    )


def known_states(env: BuildEnvironment) -> list[dict]:
    """The states; files that can't be read are a warning."""
    try:
        return states(Path(env.srcdir))
    except UserError as error:
        LOGGER.warning("%s", error, type="book", subtype="releases")
        return []


class WhatChanged(SphinxDirective):
    """Write the choice, what changed last, and a list of the releases."""

    def run(self) -> list[nodes.Node]:
        """The form and the list."""
        root = Path(self.env.srcdir)
        for path in (*(root / claims.RELEASES).glob("*.json"), *records(root)):
            self.env.note_dependency(str(path))
        known = known_states(self.env)
        metadata = self.env.metadata[self.env.docname]
        metadata[LEDGER] = "yes"
        found: list[nodes.Node] = []
        if len(known) > 1:
            metadata[MARK] = "yes"
            found.append(nodes.raw("", form_html(known), format="html"))
        elif known:
            text = f"There is nothing to compare yet with {title(known[0])}."
            found.append(nodes.paragraph("", text))
        return [*found, self.listed(known)]

    def listed(self, known: list[dict]) -> nodes.bullet_list:
        """The releases, the newest first, each with the address of its own site."""
        pages = address.repository(Path(self.env.srcdir)).pages
        rows = nodes.bullet_list(classes=["releases"])
        for state in reversed(known):
            if state["release"] == NOW:
                continue
            name, number = state["release"], len(state["claims"])
            text = title(state)
            line = nodes.paragraph("", f"{text[:1].upper()}{text[1:]}: ")
            line += nodes.Text(f"{number} {counted(number, 'claim')}, ")
            site = f"{pages}releases/{name}/"
            line += nodes.reference("", "its pages as they were", refuri=site)
            line += nodes.Text(f". With {own_versions(state)}.")
            rows += nodes.list_item("", line, ids=[f"release-{name.replace('.', '-')}"])
        return rows


def records(root: Path) -> list[Path]:
    """The files beside the releases' that a state is made from."""
    return [*chapters.chapter_paths(root), root / releases.versions.TABLE.record]


# The feed


def element(parent: ElementTree.Element, name: str, text: str = "", **attributes):
    """Add an element of Atom."""
    made = ElementTree.SubElement(parent, f"{{{ATOM}}}{name}", attributes)
    made.text = text or None
    return made


def feed(known: Iterable[dict], site: str, name: str, author: str) -> str:
    """The feed, as RFC 4287 wants it: an entry for each release, the newest first.

    Args:
        known: the releases, the oldest first.
        site: the site's address, with a slash at the end.
        name: of the book.
        author: of the book.
    """
    found = list(known)
    root = ElementTree.Element(f"{{{ATOM}}}feed")
    element(root, "title", f"{name}: what changed")
    element(root, "id", f"{site}{FEED}")
    element(root, "updated", f"{found[-1]['date']}T00:00:00Z")
    element(root, "link", href=f"{site}{FEED}", rel="self")
    element(root, "link", href=f"{site}book/what-changed.html")
    element(element(root, "author"), "name", author)
    for old, new in reversed(list(zip([None, *found], found, strict=False))):
        release = new["release"]
        anchor = f"release-{release.replace('.', '-')}"
        entry = element(root, "entry")
        element(entry, "title", f"Release {release}")
        # A name that stays when the site moves: RFC 4151.
        host, path = urlsplit(site).netloc, urlsplit(site).path
        element(entry, "id", f"tag:{host},{new['date']}:{path}releases/{release}")
        element(entry, "updated", f"{new['date']}T00:00:00Z")
        element(entry, "link", href=f"{site}book/what-changed.html#{anchor}")
        said = f"The first release: {len(new['claims'])} claims."
        if old:
            said = f"Since {old['release']}: {releases.compare(old, new).summary()}."
        parts = changes_html(old, new) if old else ()
        body = f"<p>{said} With {own_versions(new)}.</p>{''.join(parts)}"
        element(entry, "summary", said)
        element(entry, "content", body, type="html")
    ElementTree.register_namespace("", ATOM)
    ElementTree.indent(root, " ")
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def write(app: Sphinx, exception: Exception | None) -> None:
    """Put the feed and the claims beside the pages."""
    if exception or app.builder.name != "html":
        return
    root, out = Path(app.srcdir), Path(app.outdir)
    try:
        files.write_text(out / claims.NAME, claims.text(claims.stored(root)))
        known = claims.releases(root)
    except UserError as error:
        LOGGER.warning("%s", error, type="book", subtype="releases")
        return
    if known:
        pages = address.repository(root).pages
        text = feed(known, pages, app.config.project, app.config.author)
        files.write_text(out / FEED, text)


# All pages


@functools.cache
def has_feed(root: Path) -> bool:
    """Whether there is a release, and so a feed."""
    return any((root / claims.RELEASES).glob("*.json"))


def dress(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Name the feed in a page's head; give the page its script."""
    if app.builder.name != "html":
        return
    if has_feed(Path(app.srcdir)):
        where = html.escape(context["pathto"](FEED, resource=True))
        line = '<link rel="alternate" type="application/atom+xml" title="What changed"'
        context["metatags"] = f'{context.get("metatags", "")}{line} href="{where}" />\n'
    if MARK in app.env.metadata.get(pagename, {}):
        app.add_js_file(SCRIPT, loading_method="defer")


def announce(app: Sphinx, config: Config) -> None:
    """Say on each page of a release's own site that it is not the newest."""
    name = os.environ.get("BOOK_RELEASE")
    if name:
        pages = address.repository(Path(app.srcdir)).pages
        text = OLD_RELEASE.format(name=html.escape(name), pages=pages)
        config.html_theme_options = {**config.html_theme_options, "announcement": text}


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_directive("what-changed", WhatChanged)
    app.connect("config-inited", announce)
    app.connect("html-page-context", dress)
    app.connect("build-finished", write)
