"""Formulas as MathML, made when the site is built: browsers show it without a script.

The TeX of a formula stays in the page as its annotation. A formula that cannot be
converted stops the build and is named. `book/_static/vendor/latin-modern-math` holds
the font, and `characters.txt` beside it what is in that font.
"""

import re
from typing import Any

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)
CONVERTER = LatexToMathML(annotation=True, fancy_error=False)
# TeX would number the rows of these: Sphinx numbers each as one formula.
NUMBERED = re.compile(r"\\(begin|end)\{(align|equation|gather|multline)\}")
MARKS = re.compile(r"[,.;:!?)’”]+")
CLASSES = "math notranslate nohighlight"


class KeepMarks(SphinxPostTransform):
    """Keep a formula and the mark behind it, such as a full stop, on one line.

    A browser may break a line between the two.
    """

    default_priority = 500

    def run(self, **options: Any) -> None:
        """Put both into a box that does not break."""
        for formula in list(self.document.findall(nodes.math)):
            behind = formula.next_node(descend=False, siblings=True)
            marks = isinstance(behind, nodes.Text) and MARKS.match(behind.astext())
            if marks:
                rest = nodes.Text(behind.astext()[marks.end() :])
                behind.parent.replace(behind, rest)
                box = nodes.inline(classes=["unbroken"])
                formula.replace_self(box)
                box += [formula, nodes.Text(marks[0])]


def mathml(tex: str, block: bool) -> str:
    """A formula as MathML.

    Args:
        tex: the formula in TeX, without what encloses it.
        block: whether it stands by itself, in full height.

    Raises:
        LatexError: it is not TeX, or has a command that the converter does not know.
    """
    tex = NUMBERED.sub(r"\\\1{\2*}", tex.strip())
    if r"\\" in tex and r"\begin" not in tex:
        tex = rf"\begin{{aligned}}{tex}\end{{aligned}}"
    return CONVERTER.convert_with_local_state(tex, displaystyle=block)


def converted(self: HTML5Translator, node: nodes.Element, block: bool) -> str:
    """A node's formula as MathML; nothing, and a warning, if it cannot be converted."""
    try:
        return mathml(node.astext(), block)
    except LatexError as error:
        path = self.builder.env.doc2path(self.builder.current_docname, base=False)
        text = (
            f"{path}: the formula {node.astext().strip()} cannot be shown: {error} "
            "Fix: write it with commands that math-core knows"
        )
        LOGGER.warning("%s", text, type="book", subtype="formula")
        return ""


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a sentence."""
    self.body += [
        self.starttag(node, "span", "", CLASS=CLASSES),
        converted(self, node, block=False),
        "</span>",
    ]
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula that stands by itself, with its number if it has a name."""
    self.body.append(self.starttag(node, "div", CLASS=CLASSES))
    if node["number"]:
        self.body.append(
            f'<span class="eqno">({get_node_equation_number(self, node)})</span>'
        )
    self.body += [converted(self, node, block=True), "</div>\n"]
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Register what is above; `html_math_renderer` in _config.yml names it."""
    app.add_post_transform(KeepMarks)
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
