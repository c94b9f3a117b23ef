"""The directive `programs`: the files that a reader takes away, and what they are for.

All of it is read from the files: what a program is for, how to use it and what it does
not know from its docstring, and on which models it was tried from `tried.json`, which
the tests of the programs write and compare. The site serves the files, and one zip for
each engine of the set for several hosts.
"""

import ast
import json
import shutil
import zipfile
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from tools.model import address

FOLDER = "programs"
ENGINES = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}


def served(root: Path) -> list[Path]:
    """The files that the site serves one by one."""
    return sorted((root / FOLDER).glob("*.py"))


def sets(root: Path) -> dict[str, list[str]]:
    """The files of the set for several hosts, by engine."""
    return json.loads((root / FOLDER / "hosts" / "sets.json").read_text())


def about(path: Path) -> tuple[str, str]:
    """What a program is for, and the rest of its docstring.

    Raises:
        ValueError: it has no docstring.
    """
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not text:
        raise ValueError(f"{path.name} has no docstring. Fix: say what it is for")
    first, _, rest = text.partition("\n")
    return first, rest.strip().replace("\nIt does not know", "\n\nIt does not know")


def tried_in_words(tried: dict[str, dict[str, str]]) -> list[str]:
    """A table of models and engines, and below it the reasons of the refusals."""
    engines = [name for name in ENGINES if any(name in seen for seen in tried.values())]
    lines = ["| model | " + " | ".join(ENGINES[name] for name in engines) + " |"]
    lines.append("|---" * (len(engines) + 1) + "|")
    notes: list[str] = []
    for model, seen in tried.items():
        cells = []
        for engine in engines:
            answer = seen.get(engine, "not tried")
            if answer not in ("right", "not tried"):
                if answer not in notes:
                    notes.append(answer)
                answer = f"refused ({notes.index(answer) + 1})"
            cells.append(answer)
        lines.append(f"| `{model}` | " + " | ".join(cells) + " |")
    return [*lines, "", *(f"{n}. {note}" for n, note in enumerate(notes, 1)), ""]


class Programs(SphinxDirective):
    """A table of the programs (`brief`), or a section for each, from its file."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Write what the files say of themselves."""
        root = Path(self.env.srcdir)
        files = served(root)
        for path in files:
            self.env.note_dependency(str(path))
        if self.arguments:
            lines = ["| program | what for |", "|---|---|"]
            for path in files:
                link = f"{{ref}}`{path.name} <program-{path.stem}>`"
                lines.append(f"| {link} | {about(path)[0]} |")
            return self.parse_text_to_nodes("\n".join(lines))
        pages = address.repository(root).pages
        record = json.loads((root / FOLDER / "tried.json").read_text())
        lines = []
        for path in files:
            first, rest = about(path)
            file = f"{pages}{FOLDER}/{path.name}"
            lines += [f"(program-{path.stem})=", f"## {path.name}", "", first, "", rest]
            lines += ["", "```sh", f"curl -LO {file}", "```", ""]
            if tried := record.get(path.name):
                lines += ["<details><summary>Tried on ordinary models</summary>", ""]
                lines += [*tried_in_words(tried), "</details>", ""]
        lines += ["## The set for several hosts", ""]
        for engine, names in sets(root).items():
            file = f"{pages}{FOLDER}/hosts-{engine}.zip"
            lines += [f"- {ENGINES[engine]}, {len(names)} files: `curl -LO {file}`"]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def copy(app: Sphinx, exception: Exception | None) -> None:
    """Put the programs into the site, and the sets as zips."""
    page = "book/programs" in app.env.found_docs
    if exception is not None or app.builder.name != "html" or not page:
        return
    root, folder = Path(app.srcdir), Path(app.outdir, FOLDER)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in served(root):
        shutil.copy2(path, folder)
    for engine, files in sets(root).items():
        with zipfile.ZipFile(folder / f"hosts-{engine}.zip", "w") as archive:
            for name in files:
                archive.write(root / FOLDER / "hosts" / name, f"hosts-{engine}/{name}")


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_directive("programs", Programs)
    app.connect("build-finished", copy)
