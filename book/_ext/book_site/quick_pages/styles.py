"""One style sheet of all that a page links, with the rules that some page can use.

A rule goes if it asks for a class or an element that no page and no script has. So do
variables that nothing reads, and animations that nothing names.
"""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import tinycss2
from tinycss2 import ast

from tools.model.errors import UserError

IMPORT = re.compile(r'@import "([^"]+)";')
VARIABLE = re.compile(r"var\(\s*(--[\w-]+)")
WORD = re.compile(r"[\w-]+")
GROUPS = ("media", "supports")  # at-rules that hold rules
TIGHT = ",>"  # in selectors and values, no space is needed around these


@dataclasses.dataclass
class Rule:
    """A rule of a style sheet.

    Args:
        head: what stands before the braces; all of it, if there are none.
        lines: what it declares, names and values.
        rules: what it holds, if it is a group.
    """

    head: str
    lines: list[tuple[str, str]] | None = None
    rules: list[Rule] | None = None

    def __str__(self) -> str:
        if self.rules is not None:
            inside = "".join(map(str, self.rules))
        elif self.lines is not None:
            inside = ";".join(f"{name}:{value}" for name, value in self.lines)
        else:
            return f"{self.head}\n"
        return f"{self.head}{{{inside}}}\n" if inside else ""


def short(tokens: Iterable[ast.Node]) -> str:
    """Tokens as text, without comments and needless space."""
    text = ""
    for token in tokens:
        if isinstance(token, ast.WhitespaceToken):
            text += "" if text[-1:] in {*TIGHT, " "} else " "
        elif isinstance(token, ast.LiteralToken) and token.value in TIGHT:
            text = text.rstrip(" ") + token.value
        elif isinstance(token, ast.FunctionBlock):
            text += f"{token.name}({short(token.arguments)})"
        elif not isinstance(token, ast.Comment):
            text += token.serialize()
    return text.strip(" ")


def asked(selector: Iterable[ast.Node]) -> Iterator[str]:
    """The classes and elements that must all be there for a selector to match.

    What stands in brackets or parentheses, as in `:is(a, b)`, is not looked at.
    """
    before = None
    for token in selector:
        if isinstance(token, ast.IdentToken) and before != ":":
            yield token.value if before == "." else token.lower_value
        before = token.value if isinstance(token, ast.LiteralToken) else None


def between_commas(tokens: Iterable[ast.Node]) -> Iterator[list[ast.Node]]:
    """The parts of a list of selectors."""
    part: list[ast.Node] = []
    for token in tokens:
        if token == ",":
            yield part
            part = []
        else:
            part.append(token)
    yield part


def move(nodes: Iterable[ast.Node], folder: str) -> None:
    """Turn the addresses below nodes from `folder` to the folder above it."""
    for node in nodes:
        if isinstance(node, ast.URLToken) and ":" not in node.value:
            to = posixpath.normpath(posixpath.join(folder, node.value))
            node.representation = f"url({to})"
        for part in ("prelude", "content", "arguments"):
            move(getattr(node, part, None) or (), folder)


@dataclasses.dataclass
class Reader:
    """Reads style sheets, and leaves out what is not used.

    Args:
        static: the folder that they stand in.
        used: the classes and elements that stand on pages or are made by scripts.
    """

    static: Path
    used: set[str]

    def sheet(self, name: str) -> list[Rule]:
        """The rules of a sheet, and of those that it imports, in order.

        Args:
            name: its path in the folder.

        Raises:
            UserError: a rule cannot be read.
        """
        path = self.static / name
        text = path.read_text(encoding="utf-8")
        folder = posixpath.dirname(name)
        rules = []
        for imported in IMPORT.findall(text):
            rules += self.sheet(posixpath.normpath(posixpath.join(folder, imported)))
        text = IMPORT.sub("", text)
        nodes = tinycss2.parse_stylesheet(text, skip_whitespace=True)
        if folder:
            move(nodes, folder)
        try:
            return rules + list(self.rules(nodes))
        except ValueError as error:
            raise UserError(f"{path}: {error}. Fix: write it as other rules") from None

    def rules(self, nodes: Iterable[ast.Node]) -> Iterator[Rule]:
        """The rules that may match something."""
        for node in nodes:
            if isinstance(node, ast.Comment):
                if node.value.startswith("!"):  # a licence
                    yield Rule(node.serialize())
            elif isinstance(node, ast.QualifiedRule):
                selectors = [
                    short(one)
                    for one in between_commas(node.prelude)
                    if self.used.issuperset(asked(one))
                ]
                if selectors:
                    yield Rule(",".join(selectors), lines=lines(node.content))
            elif isinstance(node, ast.ParseError):
                raise ValueError(f"line {node.source_line}: {node.message}")
            else:
                yield self.at_rule(node)

    def at_rule(self, node: ast.AtRule) -> Rule:
        """A rule such as `@media`."""
        head = f"@{node.at_keyword} {short(node.prelude)}".strip()
        if node.lower_at_keyword in GROUPS:
            nodes = tinycss2.parse_rule_list(node.content, skip_whitespace=True)
            return Rule(head, rules=list(self.rules(nodes)))
        if node.lower_at_keyword == "font-face":
            return Rule(head, lines=lines(node.content))
        return Rule(node.serialize())


def lines(content: list[ast.Node]) -> list[tuple[str, str]]:
    """What stands in a rule's braces.

    Raises:
        ValueError: it is something else than declarations.
    """
    found = []
    for line in tinycss2.parse_blocks_contents(content, True, True):
        if not isinstance(line, ast.Declaration):
            what = getattr(line, "message", "a rule in a rule")
            raise ValueError(f"line {line.source_line}: {what}")
        value = short(line.value) + ("!important" if line.important else "")
        found.append((line.name, value))
    return found


def flat(rules: Iterable[Rule]) -> Iterator[Rule]:
    """The rules, and those in groups."""
    for rule in rules:
        yield rule
        yield from flat(rule.rules or ())


def without_unread(rules: list[Rule], elsewhere: set[str]) -> list[Rule]:
    """Leave out variables that nothing reads and animations that nothing names.

    Args:
        rules: a sheet.
        elsewhere: variables that pages or scripts read.
    """
    count = None
    while count != (count := sum(len(rule.lines or ()) for rule in flat(rules))):
        declared = [line for rule in flat(rules) for line in rule.lines or ()]
        read = elsewhere.union(*(VARIABLE.findall(value) for _, value in declared))
        for rule in flat(rules):
            if rule.lines:
                rule.lines = [x for x in rule.lines if x[0][:2] != "--" or x[0] in read]
    named = {
        word
        for rule in flat(rules)
        for name, value in rule.lines or ()
        if name.startswith(("animation", "--"))
        for word in WORD.findall(value)
    }
    return [
        rule
        for rule in rules
        if not rule.head.startswith("@keyframes")
        or rule.head.split("{")[0].split()[1] in named
    ]
