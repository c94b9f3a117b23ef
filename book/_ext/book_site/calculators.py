"""The calculators as forms: the directive `calculator`.

It takes the name of a calculator and writes its fields with the example. The fields
stand in a file beside the page. `calculators.js`, which only pages with a calculator
load, works out the result. The figures of cards and links stand in the page, as JSON.
"""

import html
import json
import re
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from tools.model.errors import UserError
from tools.plan import record

MARK = "calculators"  # the metadata of a page that holds one
SCRIPT = "calculators.js"
WIDE = 26  # letters: a choice with a longer option takes the room of two fields
BUTTONS = (
    '<p class="calc-buttons"><button type="button" data-act="copy" hidden>Copy link'
    '</button> <button type="button" data-act="reset" hidden>Reset'
    '</button> <span class="calc-said" role="status"></span></p>'
)
NO_SCRIPT = (
    "<noscript><p>To work out a result, the page needs JavaScript. The formulas are "
    "those of the claims that are linked below.</p></noscript>"
)


def field_html(name: str, field: dict, options: dict[str, dict]) -> str:
    """A field with its label, its note and a place for what is wrong with it.

    Args:
        name: of the calculator and the field, as in `memory-batch`.
        field: as in the file.
        options: by name, what a choice can offer.
    """
    own = name.partition("-")[2]
    attributes = f'id="{name}" name="{own}" aria-describedby="{name}-about"'
    note = re.sub("`(.*?)`", r"<code>\1</code>", html.escape(field.get("note", "")))
    unit = wide = ""
    if "options" in field:
        offered = options[field["options"]]
        wide = " calc-wide" if max(map(len, offered.values())) > WIDE else ""
        control = f"<select {attributes}>"
        for key, text in offered.items():
            mark = " selected" if key == field["example"] else ""
            control += f'<option value="{html.escape(key)}"{mark}>'
            control += f"{html.escape(text)}</option>"
        control += "</select>"
    else:
        low, high = (float(field.get(*x)) for x in (("low", 1), ("high", 1e15)))
        whole = ' data-whole="yes"' if field.get("whole") else ""
        control = (
            f'<input {attributes} type="text" value="{field["example"]}" '
            'autocomplete="off" autocapitalize="off" spellcheck="false" '
            f'data-kind="{field.get("kind", "number")}" data-low="{low:.17g}" '
            f'data-high="{high:.17g}"{whole}>'
        )
        if "unit" in field:
            unit = f' <span class="calc-unit">({html.escape(field["unit"])})</span>'
    return (
        f'<div class="calc-field{wide}"><label for="{name}">'
        f"{html.escape(field['label'])}{unit}</label>"
        f'{control}<div id="{name}-about" class="calc-about">'
        f'<span class="calc-note">{note}</span><span class="calc-understood"></span>'
        f'<span class="calc-error"></span></div></div>'
    )


def form_html(name: str, fields: dict[str, dict], options: dict[str, dict]) -> str:
    """A calculator as a form; the script fills in the result."""
    controls = "".join(
        field_html(f"{name}-{key}", field, options) for key, field in fields.items()
    )
    ids = " ".join(f"{name}-{key}" for key in fields)
    return (
        f'<form class="calculator" id="{name}-form" data-calculator="{name}" '
        f'novalidate><div class="calc-fields">{controls}</div>{NO_SCRIPT}{BUTTONS}'
        f'<output class="calc-verdict" for="{ids}" aria-live="polite"></output>'
        '<div class="calc-result"></div></form>'
    )


def figures(content: dict[str, dict], folder: Path) -> dict[str, dict]:
    """The figures that the formulas need: of the links, and of the plan's cards.

    Args:
        content: of the page's file: `links` in bytes a second by name, `nvlink` that a
            card has, and the memory of cards that are `owned`, in bytes.
        folder: with the plan.

    Raises:
        UserError: the plan can't be read.
    """
    cards = record.load_plan(folder)["cards"]
    wanted = ("memory", "bandwidth", "rates")
    known = {name: {x: card[x] for x in wanted} for name, card in cards.items()}
    owned = {name: {"memory": size} for name, size in content["owned"].items()}
    its = {name: content[name] for name in ("links", "nvlink")}
    return {"cards": known, "owned": owned, **its}


class Calculator(SphinxDirective):
    """Put a calculator in place."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The form, and in front of the first one the figures."""
        path = Path(self.env.doc2path(self.env.docname)).with_suffix(".yml")
        folder = Path(self.env.srcdir, "tools", "plan", "results")
        for file in (path, folder / record.PLAN):
            self.env.note_dependency(str(file))
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        name, known = self.arguments[0], content["calculators"]
        if name not in known:
            raise self.error(f"no calculator {name!r}. Fix: one of {', '.join(known)}")
        try:
            data = figures(content, folder)
        except UserError as error:
            raise ExtensionError(str(error)) from None
        names = {what: {key: key for key in data[what]} for what in data}
        names["all_cards"] = names["cards"] | names["owned"]
        text = form_html(name, known[name], content["options"] | names)
        metadata = self.env.metadata[self.env.docname]
        if MARK not in metadata:
            metadata[MARK] = "yes"
            script = json.dumps(data).replace("<", "\\u003c")
            opening = '<script type="application/json" id="calculator-figures">'
            text = f"{opening}{script}</script>{text}"
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
    app.add_directive("calculator", Calculator)
    app.connect("html-page-context", load_script)
