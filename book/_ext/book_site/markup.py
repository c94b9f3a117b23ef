"""Pieces of a page as docutils' nodes: sentences, links, sections, notebooks' cells."""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective


def sentence_nodes(sentence: str) -> list[nodes.Node]:
    """A sentence with a capital, and what stands between backticks as code."""
    sentence = sentence[:1].upper() + sentence[1:]
    return [
        nodes.literal("", part) if index % 2 else nodes.Text(part)
        for index, part in enumerate(re.split(r"`([^`]+)`", sentence))
        if part
    ]


def link(target: str, text: str, docname: str, css: str) -> addnodes.pending_xref:
    """A link to a labelled place of the book, which Sphinx checks."""
    return addnodes.pending_xref(
        "",
        nodes.inline("", text, classes=[css]),
        refdomain="std",
        reftype="ref",
        reftarget=target,
        refexplicit=True,
        refwarn=True,
        refdoc=docname,
    )


def section(directive: SphinxDirective, anchor: str, title: str) -> nodes.section:
    """A section with its title, which a directive may write."""
    found = nodes.section(ids=[anchor])
    found += nodes.title("", "", *sentence_nodes(title))
    directive.state.document.note_explicit_target(found, found)
    return found


def is_code_cell(node: nodes.Node) -> bool:
    """Whether a node is one of a notebook's code cells."""
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def input_code(cell: nodes.container) -> nodes.literal_block:
    """The code of a cell, which may stand in a fold; not what it printed."""
    return next(
        code
        for code in cell.findall(nodes.literal_block)
        if "cell_input" in code.parent["classes"]
    )


def rewrite(code: nodes.literal_block, text: str) -> None:
    """Show another text as code."""
    code.rawsource = text
    code.children = []
    code += nodes.Text(text)
