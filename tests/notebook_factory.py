"""Small chapters and the house around them: nothing here imports TensorFlow."""

from pathlib import Path

import nbformat
from nbformat import NotebookNode, v4

from tools.model import claims_file
from tools.notebooks import normalise

ADDRESS = "https://github.com/someone/some-book"
SNIPPET = "import os\n\nos.environ['QUIET'] = '1'\n"
VERIFIED = {
    "date": "2026-01-31",
    "packages": {"numpy": "2.4.0"},
    "platform": "Linux x86_64, 2 cores",
    "python": "3.12.1",
}
TITLE = """# Tiny

**[Open in Colab](https://colab.research.google.com/github/someone/some-book/blob/main/notebooks/{name})**

Ten seconds on a CPU. See the [glossary](https://someone.github.io/some-book/book/glossary.html)."""
GOALS = """**You will**

- add two numbers,
- see the sum,
- prove it."""
SETUP = """# @title Set-up: quiet start
# >>> snippets/quiet_start.py
{snippet}
# <<<"""
CLAIM = """# Claim: one and one
#   make two.
assert 1 + 1 == 2"""
GPU = """## On a GPU

The same, as [was measured](https://someone.github.io/some-book/book/measured-results.html)."""
EXERCISES = """## Exercises

**1. Warm up.** What is one and two?"""
HINT = "<details><summary>Hint</summary>\n\nCount.\n\n</details>"
PROVED = """## What you proved

<details><summary>Claims of this chapter, numbered as in the claims ledger: 1</summary>

- **{number}.1** one and one make two.

</details>"""


def stream(text: str) -> NotebookNode:
    """What a cell printed."""
    return v4.new_output("stream", name="stdout", text=text)


def code(source: str, *outputs: NotebookNode, **metadata) -> NotebookNode:
    """An executed code cell."""
    return v4.new_code_cell(
        source, execution_count=1, outputs=list(outputs), metadata=metadata
    )


def exercises() -> list[NotebookNode]:
    """Three exercises with their hints and solutions."""
    texts = [EXERCISES, "**2. Repair.** And two?", "**3. Build.** And three?"]
    cells = []
    for number, text in enumerate(texts, start=1):
        solution = f"# @title Solution {number}\nassert 1 + {number} == {number + 1}"
        cells.append(v4.new_markdown_cell(f"{text}\n\n{HINT}"))
        cells.append(code(solution, tags=["solution"], cellView="form"))
    return cells


def chapter(name: str = "05-tiny.ipynb", claim: str = CLAIM) -> NotebookNode:
    """A chapter that keeps every rule of the form; its claims cell is `claim`."""
    notebook = v4.new_notebook(
        cells=[
            v4.new_markdown_cell(TITLE.format(name=name)),
            v4.new_markdown_cell(GOALS),
            code(
                SETUP.format(snippet=SNIPPET.rstrip("\n")),
                tags=["hide-input", "setup"],
                cellView="form",
            ),
            v4.new_markdown_cell("## Add\n\nWhat is the sum?"),
            code("print(1 + 1)", stream("2\n")),
            code(claim, tags=["claim"]),
            v4.new_markdown_cell("## What breaks\n\nNothing."),
            v4.new_markdown_cell(GPU),
            *exercises(),
            v4.new_markdown_cell(PROVED.format(number=int(name[:2]))),
            v4.new_markdown_cell("## Go further\n\nSee [more](https://example.org/)."),
        ],
        metadata={"book": {"verified": VERIFIED}},
    )
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    return normalise.normalise(notebook)


def find(notebook: NotebookNode, start: str) -> NotebookNode:
    """The first cell whose source starts with the given text."""
    return next(cell for cell in notebook.cells if cell.source.startswith(start))


def save(root: Path, notebook: NotebookNode, name: str = "05-tiny.ipynb") -> Path:
    """Write a notebook in canonical form."""
    path = root / "notebooks" / name
    normalise.write(path, notebook)
    return path


def load(path: Path) -> NotebookNode:
    """Read a notebook."""
    return nbformat.read(path, as_version=4)


def make_house(root: Path) -> Path:
    """A repository with one chapter and empty requirements, without the programs."""
    for folder in ("book", "constraints", "notebooks", "snippets"):
        (root / folder).mkdir()
    texts = {
        "_config.yml": "# settings\ntitle: Some book\n\nrepository:\n"
        f"  # the address\n  url: {ADDRESS} # by hand\n  branch: main\n"
        "only_build_toc_files: true\nexecute:\n  execute_notebooks: 'off'\n",
        "_toc.yml": "format: jb-book\nroot: book/welcome\nparts:\n"
        "  - caption: One\n    chapters:\n      - file: notebooks/05-tiny\n",
        "README.md": f"# Some book\n\n[code]({ADDRESS}), [site](https://someone.github.io/"
        f"some-book/), [Keras](https://github.com/keras-team/keras)\n"
        f"git clone {ADDRESS}.git, not {ADDRESS}-two\n",
        "CITATION.cff": f"title: Some book\nrepository-code: {ADDRESS}\n",
        "book/welcome.md": "# Welcome\n",
        "snippets/quiet_start.py": SNIPPET,
        "constraints/latest.txt": "",
        "requirements.txt": "-r requirements-book.txt\n",
        "requirements-book.txt": "# nothing\n",
        "requirements-lint.txt": "# nothing\n",
        "requirements-test.txt": "# nothing\n",
    }
    for name, text in texts.items():
        (root / name).write_text(text, encoding="utf-8")
    save(root, chapter())
    (root / claims_file.STORED).write_text(claims_file.claims_text(root))
    return root


def snapshot(root: Path) -> dict[str, bytes]:
    """Every file of a house but those of .venv, the logs and Python's caches."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and not {".venv", "_build", "__pycache__"} & set(path.relative_to(root).parts)
    }
