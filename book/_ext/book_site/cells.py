"""A notebook's cells as nodes of its page."""

from __future__ import annotations

from docutils import nodes


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
