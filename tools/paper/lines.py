"""Code as lines: one that runs on over the edge is indented, so it reads as one."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from tools.paper.pages import classes, new

# Elements of code that look otherwise on paper: bold words, comments.
LOOKS = frozenset(
    ("k", "kc", "kd", "kn", "kr", "nc", "nf", "ow", "c", "c1", "cm", "ch", "sd")
)


def split(block: Element) -> None:
    """Make an element of each line of code, so that what runs on is indented.

    Of the elements within a line those stay that have looks on paper: a PDF describes
    each of them, for those who have it read to them.
    """
    runs: list[list[tuple[str, str]]] = [[]]  # of each line: text and its looks

    def walk(element: Element, look: str) -> None:
        look = next((x for x in classes(element) if x in LOOKS), look)
        add(element.text, look)
        for child in element:
            walk(child, look)
            add(child.tail, look)

    def add(said: str | None, look: str) -> None:
        for part in (said or "").splitlines(keepends=True):
            if runs[-1] and runs[-1][-1][1] == look:
                runs[-1][-1] = (runs[-1][-1][0] + part, look)
            else:
                runs[-1].append((part, look))
            if part.endswith("\n"):
                runs.append([])

    walk(block, "")
    for child in list(block):
        block.remove(child)
    block.text = None
    while runs and not "".join(text for text, _ in runs[-1]).strip():
        runs.pop()
    for run in runs:
        line = new("span", class_="line")
        for text, look in run:
            if look:
                line.append(new("span", text, class_=look))
            elif len(line):
                line[-1].tail = text
            else:
                line.text = text
        block.append(line)
