"""The calculators as forms: the directive `calculator`.

It takes the name of a calculator and writes its fields with the example. The fields
stand in a file beside the page. `calculators.js`, which only pages with a calculator
load, works out the result. The figures of cards and links stand in the page, as JSON.
The form is `calculator.html` of the site's templates.
"""

import json
from pathlib import Path

import jinja2
import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from tools.model.errors import UserError
from tools.plan import record

MARK = "calculators"  # the metadata of a page that holds one
TEMPLATE = "calculator.html"


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
        templates = Path(self.env.srcdir, "book", "_templates")
        for file in (path, folder / record.PLAN, templates / TEMPLATE):
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
        loader = jinja2.FileSystemLoader(templates)
        form = jinja2.Environment(loader=loader, autoescape=True).get_template(TEMPLATE)
        options = content["options"] | names
        text = form.render(name=name, fields=known[name], options=options)
        metadata = self.env.metadata[self.env.docname]
        if MARK not in metadata:
            metadata[MARK] = "yes"
            script = json.dumps(data).replace("<", "\\u003c")
            opening = '<script type="application/json" id="calculator-figures">'
            text = f"{opening}{script}</script>{text}"
        return [nodes.raw("", text, format="html")]


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_directive("calculator", Calculator)
    app.add_js_file("calculators.js", loading_method="defer")
