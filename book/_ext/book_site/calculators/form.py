"""The calculators as forms: the directive `calculator`.

It takes the name of a calculator and writes its fields with the example, and the result
of the example, so that the page says something without scripts. `calculators.js`, which
only pages with a calculator load, works out what a reader types. The cards' figures
stand in the page, as JSON.
"""

from __future__ import annotations

import functools
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from book_site.calculators import figures as sources
from book_site.calculators.fields import Choice, Field, Number, fields
from book_site.calculators.formulas import CALCULATORS
from book_site.calculators.result import Result
from tools.model.errors import UserError

MARK = "calculators"  # the metadata of a page that holds one
SCRIPT = "calculators.js"
WIDE = 26  # letters: a choice with a longer option takes the room of two fields
BUTTONS = (
    '<p class="calc-buttons"><button type="button" data-act="copy" hidden>Copy link'
    '</button> <button type="button" data-act="reset" hidden>Reset'
    '</button> <span class="calc-said" role="status"></span></p>'
)
NO_SCRIPT = (
    "<noscript><p>This is an example. To put in your own numbers, the page needs "
    "JavaScript.</p></noscript>"
)


def field_html(calculator: str, field: Field) -> str:
    """A field with its label, its note and a place for what is wrong with it."""
    name = f"{calculator}-{field.name}"
    attributes = f'id="{name}" name="{field.name}" aria-describedby="{name}-about"'
    note = re.sub("`(.*?)`", r"<code>\1</code>", html.escape(field.note))
    unit = wide = ""
    if isinstance(field, Choice):
        wide = " calc-wide" if max(map(len, field.options.values())) > WIDE else ""
        options = "".join(
            option_html(key, text, key == field.example)
            for key, text in field.options.items()
        )
        control = f"<select {attributes}>{options}</select>"
    else:
        control = f"<input {attributes} {number_attributes(field)}>"
        if field.unit:
            unit = f' <span class="calc-unit">({html.escape(field.unit)})</span>'
    return (
        f'<div class="calc-field{wide}"><label for="{name}">'
        f"{html.escape(field.label)}{unit}</label>"
        f'{control}<div id="{name}-about" class="calc-about">'
        f'<span class="calc-note">{note}</span><span class="calc-understood"></span>'
        f'<span class="calc-error"></span></div></div>'
    )


def option_html(key: str, text: str, chosen: bool) -> str:
    """An option of a choice."""
    mark = " selected" if chosen else ""
    return f'<option value="{html.escape(key)}"{mark}>{html.escape(text)}</option>'


def number_attributes(field: Number) -> str:
    """What the script has to know of a field for a number."""
    whole = ' data-whole="yes"' if field.whole else ""
    return (
        f'type="text" value="{field.example}" autocomplete="off" autocapitalize="off" '
        f'spellcheck="false" data-kind="{field.kind}" data-low="{field.low:.17g}" '
        f'data-high="{field.high:.17g}"{whole}'
    )


def result_html(result: Result) -> Iterator[str]:
    """The groups of a result, as the script writes them too."""
    for title, rows in result.groups:
        yield f"<h3>{html.escape(title)}</h3><dl>"
        for row in rows:
            kind = f' class="calc-{row.mark}"' if row.mark else ""
            name, value, how = map(html.escape, (row.name, row.value, row.how))
            yield (
                f'<div{kind}><dt>{name}</dt><dd class="calc-value">{value}</dd>'
                f'<dd class="calc-how">{how}</dd></div>'
            )
        yield "</dl>"


def example(known: list[Field]) -> dict[str, Any]:
    """The values of the example."""
    return {field.name: field.read(field.example)[0] for field in known}


def form_html(name: str, figures: dict[str, Any]) -> str:
    """A calculator as a form, with the result of its example."""
    known = fields(figures)[name]
    result = CALCULATORS[name](example(known), figures)
    controls = "".join(field_html(name, field) for field in known)
    ids = " ".join(f"{name}-{field.name}" for field in known)
    return (
        f'<form class="calculator" id="{name}-form" data-calculator="{name}" '
        f'novalidate><div class="calc-fields">{controls}</div>{NO_SCRIPT}{BUTTONS}'
        f'<output class="calc-verdict" for="{ids}" aria-live="polite">'
        f"{html.escape(result.verdict)}</output>"
        f'<div class="calc-result">{"".join(result_html(result))}</div></form>'
    )


@functools.cache
def known_figures(root: Path) -> dict[str, Any]:
    """The figures of cards and links, read once for all calculators."""
    try:
        return sources.figures(root)
    except UserError as error:
        raise ExtensionError(str(error)) from None


class Calculator(SphinxDirective):
    """Put a calculator in place."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The form, and in front of the first one the figures."""
        name = self.arguments[0]
        if name not in CALCULATORS:
            names = ", ".join(CALCULATORS)
            raise self.error(f"no calculator {name!r}. Fix: one of {names}")
        root = Path(self.env.srcdir)
        for path in (sources.CARDS, sources.LINKS):
            self.env.note_dependency(str(root / path))
        figures = known_figures(root)
        text = form_html(name, figures)
        metadata = self.env.metadata[self.env.docname]
        if MARK not in metadata:
            metadata[MARK] = "yes"
            data = json.dumps(figures).replace("<", "\\u003c")
            text = (
                f'<script type="application/json" id="calculator-figures">{data}'
                f"</script>{text}"
            )
        return [nodes.raw("", text, format="html")]


def load_script(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Load the script on pages with a calculator."""
    if MARK in app.env.metadata.get(pagename, {}):
        app.add_js_file(SCRIPT, loading_method="defer")


def setup(app: Sphinx) -> None:
    """Register what is above."""
    known_figures.cache_clear()
    app.add_directive("calculator", Calculator)
    app.connect("html-page-context", load_script)
