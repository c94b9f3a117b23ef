"""The sheets that a PDF is printed on."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Sheet:
    """A size of page with its margins in mm, and sizes of type in points."""

    name: str  # the end of the file's name; the usual sheet has none
    width: float
    height: float
    margins: tuple[float, float, float, float]  # top, right, bottom, left
    text: float
    code: float
    columns: int  # of the contents
    about: str  # how messages and links call it

    @property
    def measure(self) -> float:
        """The width of a line of text, in mm."""
        return self.width - self.margins[1] - self.margins[3]

    @property
    def depth(self) -> float:
        """The height of the text on a page, in mm."""
        return self.height - self.margins[0] - self.margins[2]


A4 = Sheet("", 210, 297, (22, 22, 20, 22), 11, 8.2, 2, "A4")
# As a screen of six to eight inches shows it, without zooming.
E_READER = Sheet("-ereader", 120, 160, (11, 7, 11, 7), 10.5, 7.4, 1, "for e-readers")


def page_rules(sheet: Sheet, titles: dict[str, str]) -> str:
    """The rules for pages: size, page number, and the running title of each page name.

    Args:
        sheet: what is printed on.
        titles: by the name of a kind of pages, their running title, which may be "".
    """
    margins = " ".join(f"{x}mm" for x in sheet.margins)
    small = f"font: {sheet.text * 0.76:.1f}pt Head; color: #444;"
    rules = [
        f"""@page {{
  size: {sheet.width}mm {sheet.height}mm;
  margin: {margins};
  @bottom-center {{ content: counter(page); {small} }}
}}""",
        f"""@page bare {{ @bottom-center {{ content: ""; }} }}
:root {{
  --text: {sheet.text}pt;
  --code: {sheet.code}pt;
  --measure: {sheet.measure}mm;
  --depth: {sheet.depth}mm;
  --columns: {sheet.columns};
}}""",
    ]
    for name, title in titles.items():
        shown = title.replace("\\", "\\\\").replace('"', '\\"')
        rules.append(
            f'@page {name} {{ @top-center {{ content: "{shown}"; {small} }} }}'
        )
        rules.append(f".{name} {{ page: {name}; }}")
    return "\n".join(rules)
