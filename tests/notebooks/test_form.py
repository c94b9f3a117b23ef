"""Each rule of the form: a good chapter passes, one change gives one message."""

import re

import nbformat
import notebook_factory as factory
import pytest
from nbformat import v4

from tools.model import exercises
from tools.notebooks import form

IMAGE = v4.new_output("display_data", data={"image/png": "aGVsbG8="})


def messages(house):
    return form.book_problems(house)


def test_a_good_chapter_has_no_problem(house, capsys):
    assert form.main([], root=house) == 0
    assert capsys.readouterr().out == ""


def set_source(start, old, new):
    """Change the source of the cell that starts so."""

    def change(notebook):
        cell = factory.find(notebook, start)
        assert old in cell.source
        cell.source = cell.source.replace(old, new)

    return change


def add_text(text):
    """Add a text to the cell below `## Add`."""
    return set_source("## Add", "What is the sum?", f"What is the sum?\n\n{text}")


def add_code(source, *outputs, after="## Add", **metadata):
    """Add a code cell below the cell that starts so."""

    def change(notebook):
        cell = factory.code(source, *outputs, **metadata)
        cell.id = "added"
        place = notebook.cells.index(factory.find(notebook, after))
        notebook.cells.insert(place + 1, cell)

    return change


def add_question(
    ask="*Is it two?*\n\n- Two.\n- Three.",
    answer="**Two.** So.",
    assertion="# Claim: two it is.\n# Answer: Two.\nassert a",
):
    """Add a question, a cell to predict, the answer and the claim that asserts it."""

    def change(notebook):
        cells = [
            v4.new_markdown_cell(ask),
            factory.code("print(2)", factory.stream("2\n"), tags=["predict"]),
            v4.new_markdown_cell(answer),
            factory.code(assertion, tags=["claim"]),
        ]
        for number, cell in enumerate(cells):
            cell.id = f"added-{number}"
        notebook.cells[4:4] = cells

    return change


def remove_exercises(notebook):
    """Remove the section with the exercises."""
    for number in reversed(exercises.section(notebook.cells)):
        del notebook.cells[number]


def remove_last_exercise(notebook):
    """Remove the third exercise."""
    for start in ("**3. Build", "# @title Solution 3"):
        notebook.cells.remove(factory.find(notebook, start))


def add_elsewhere(index, **metadata):
    """Add a cell that sets up another process, by a cell magic."""

    def change(notebook):
        cell = factory.code("%%compiler\n# @title Set-up: b", **metadata)
        cell.id = "added"
        notebook.cells.insert(index, cell)

    return change


def set_metadata(start, **metadata):
    """Set metadata of the cell that starts so; None removes."""

    def change(notebook):
        cell = factory.find(notebook, start)
        for key, value in metadata.items():
            cell.metadata[key] = value

    return change


def remove(start):
    """Remove the cell that starts so."""

    def change(notebook):
        notebook.cells.remove(factory.find(notebook, start))

    return change


def swap(first, second):
    """Let two cells change places."""

    def change(notebook):
        cells = notebook.cells
        one, two = (cells.index(factory.find(notebook, x)) for x in (first, second))
        cells[one], cells[two] = cells[two], cells[one]

    return change


def unexecute(start):
    """Forget that a cell was executed."""

    def change(notebook):
        factory.find(notebook, start).execution_count = None

    return change


def forget_outputs(start):
    """Forget that a cell was executed, and its outputs."""

    def change(notebook):
        cell = factory.find(notebook, start)
        cell.execution_count, cell.outputs = None, []

    return change


def unverify(notebook):
    """Forget what the notebook was executed with."""
    del notebook.metadata["book"]


def printed(text):
    """A cell that printed a text."""
    return factory.stream(text)


def failed(evalue, traceback):
    """A cell that raised."""
    return v4.new_output("error", ename="E", evalue=evalue, traceback=[traceback])


SETUP, CLAIM, ADD = "# @title", "# Claim", "print"
GOALS, PROVED = "**You will**", "## What you proved"
LONG = "\n".join(f"x = {n}" for n in range(26))

MUTATIONS = {
    # the opening
    "no title": (set_source("# Tiny", "# Tiny", "Tiny"), "no title"),
    "late title": (
        set_source("# Tiny", "# Tiny", "Hello.\n\n# Tiny"),
        "not at the top",
    ),
    "second title": (add_text("# Again"), "a second title"),
    "no Colab line": (set_source("# Tiny", "**[Open", "[Open"), "Open in Colab"),
    # goals
    "no goals": (remove(GOALS), r"no \*\*You will\*\*"),
    "six goals": (set_source(GOALS, "it.", "it.\n- a\n- b\n- c"), "has 6 points"),
    # the set-up cell
    "no set-up": (remove(SETUP), "no set-up cell"),
    "late set-up": (swap(SETUP, ADD), "not the first code cell"),
    "second set-up": (add_code("# @title Set-up: b"), "a second set-up cell"),
    "open set-up of another process": (
        add_elsewhere(4, tags=["hide-input", "setup"]),
        "open on Colab",
    ),
    "untagged set-up": (set_metadata(SETUP, tags=["setup"]), "lacks the tag `hide-inp"),
    "open set-up": (set_metadata(SETUP, cellView=""), "open on Colab"),
    # claims
    "no claim": (remove(CLAIM), "no claim"),
    "claim without tag": (
        add_code("# Claim: two.\nassert a"),
        "without the tag `claim`",
    ),
    "tag without claim": (add_code("assert a", tags=["claim"]), "without a claim"),
    "claim below code": (add_code("a = 1\n# Claim: b.\nassert a"), "not at the top"),
    "no assert": (set_source(CLAIM, "assert 1", "1"), "asserts nothing"),
    "assert of a constant": (
        set_source(CLAIM, "assert 1 + 1 == 2", "assert 1"),
        "nothing",
    ),
    "assert in a process": (
        set_source(CLAIM, CLAIM, "%%process\n# Claim"),
        None,
    ),
    "assert below an if": (
        add_code("# Claim: two.\nif a:\n    assert a", tags=["claim"]),
        "asserts nothing on one of its paths",
    ),
    "not checked below else": (
        add_code(
            "# Claim: two.\nif a:\n    assert a\nelse:\n    not_checked('no a')",
            tags=["claim"],
        ),
        None,
    ),
    "not checked without a reason": (
        add_code(
            "# Claim: two.\nif a:\n    assert a\nelse:\n    not_checked()",
            tags=["claim"],
        ),
        "without a reason",
    ),
    "never checked": (
        add_code("# Claim: two.\nnot_checked('a')\nassert a", tags=["claim"]),
        "not checked on any machine",
    ),
    "assert after what may raise": (
        add_code(
            "# Claim: two.\ntry:\n    assert a()\nexcept OSError:\n    pass",
            tags=["claim"],
        ),
        "on one of its paths",
    ),
    "assert in a loop": (
        add_code("# Claim: two.\nfor a in b:\n    assert a", tags=["claim"]),
        None,
    ),
    "assert in a loop of another process": (
        add_code("%%process\n# Claim: two.\nfor a in b:\n    assert a", tags=["claim"]),
        "on one of its paths",
    ),
    "a claim that is no Python": (
        add_code("# Claim: two.\nassert a b", tags=["claim"]),
        r"not Python \(line 1\)",
    ),
    "claim made twice": (
        add_code("# Claim: One and one make two\nassert a", tags=["claim"]),
        "the claim of cell 5 again",
    ),
    # questions
    "question without an answer": (add_text("*Is it two?*"), "nothing answers 'Is it"),
    "plain question": (add_text("Is it *really* two?"), None),
    "question with an answer": (add_question(), None),
    "question without options": (
        add_question(ask="*Is it two?*"),
        "no question for the cell below",
    ),
    "one option": (add_question(ask="*Is it two?*\n\n- Two."), "no question for the"),
    "an option twice": (
        add_question(ask="*What?*\n\n- Two.\n- Two."),
        "an option stands there twice",
    ),
    "answer that is no option": (
        add_question(assertion="# Claim: two.\n# Answer: Four.\nassert a"),
        "its answer is no option: 'Four.'",
    ),
    "answer that is not asserted": (
        add_question(assertion="# Claim: two.\nassert a"),
        "nothing asserts the answer",
    ),
    "answer with another option": (
        add_question(answer="**Three.** So."),
        "the answer is not at the top",
    ),
    # exercises
    "no exercises": (remove_exercises, "no `## Exercises`"),
    "two exercises": (remove_last_exercise, "2 exercises"),
    "exercise without a hint": (
        set_source("**2. Repair", "<summary>Hint", "<summary>Help"),
        "exercise 2 has no hint",
    ),
    "exercise without a solution": (
        remove("# @title Solution 2"),
        "exercise 2 has no solution",
    ),
    "exercise with another number": (
        set_source("**2. Repair", "**2. ", "**4. "),
        "exercise 4 where 2 is due",
    ),
    "solution without a title": (
        set_source("# @title Solution 2", "# @title Solution 2", "# Solution"),
        "a solution without its title",
    ),
    "solution that is open": (
        set_metadata("# @title Solution 2", cellView=""),
        "the solution is open on Colab",
    ),
    "solution that asserts nothing": (
        set_source("# @title Solution 2", "assert 1", "1"),
        "the solution asserts nothing",
    ),
    "solution elsewhere": (
        add_code("assert a", tags=["solution"]),
        "a solution of no exercise",
    ),
    # sections
    "no What breaks": (remove("## What breaks"), "no `## What breaks`"),
    "no Go further": (remove("## Go further"), "no `## Go further`"),
    "section twice": (add_text("## On a GPU"), "2 sections `## On a GPU`"),
    "out of order": (swap("## What breaks", "## On a GPU"), "out of order"),
    # execution
    "outputs without count": (unexecute(ADD), "outputs without an execution count"),
    "not executed": (forget_outputs(ADD), "not executed"),
    "empty cell": (add_code(""), "an empty code cell"),
    "not verified": (unverify, "no `verified`"),
    # the text
    "directive": (add_text("```{note}\nhello\n```"), r"MyST directive: \{note\}"),
    "role": (add_text("see {ref}`there`"), r"MyST role: \{ref\}`there`"),
    "role shown as code": (add_text("write `` {ref}`there` ``"), None),
    "relative link": (add_text("[a](04-b.ipynb)"), "relative link: 04-b.ipynb"),
    "HTML link": (add_text('<a href="b.html">b</a>'), "relative link: b.html"),
    "relative image": (add_text("![a](b.png)"), "image from elsewhere: b.png"),
    "link in code": (add_text("`[a](b.md)`"), None),
    # code
    "semicolon": (set_source(ADD, "1)", "1);"), "ends with `;`"),
    "shell": (add_code("!ls"), "a shell command"),
    "bash": (add_code("%%bash\nls"), "a shell command"),
    "process": (add_code("%%process A=1\nprint(1)"), None),
    "nbval-skip": (set_metadata(ADD, tags=["nbval-skip"]), "the tag `nbval-skip`"),
    "26 lines": (add_code(LONG), "26 lines"),
    "89 columns": (add_code("x = 1  #" + "-" * 81), "line 1 has 89 columns"),
    # outputs
    "figure without alt": (add_code("plot()", IMAGE), "figure without alternative"),
    "big output": (add_code("big()", printed("x" * 150_000)), "an output of 150 kB"),
    "home": (add_code("a", printed("in /home/jo/x.py\n")), "this machine: /home/jo"),
    "packages": (
        add_code("a", printed("/usr/lib/site-packages/keras\n")),
        "this machine: /site-packages/keras",
    ),
    "home in a traceback": (
        add_code("a", failed("no", "/home/jo/a")),
        "machine: /home",
    ),
    "path not compared": (
        add_code("a", printed("/home/jo/x"), tags=["nbval-ignore-output"]),
        "machine: /home",
    ),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_one_change_gives_one_message(house, mutation):
    change, expected = MUTATIONS[mutation]
    notebook = factory.chapter()
    change(notebook)
    factory.save(house, notebook)
    found = messages(house)
    assert len(found) == (expected is not None), found
    for message in found:
        assert "\n" not in message
        assert re.match(r"05-tiny\.ipynb(, cell \d+ \(.*\))?: ", message)
        assert re.search(expected, message)
        assert re.search(r"\. Fix: .+\.$", message)


def test_a_chapter_that_was_never_executed_gives_one_message(house):
    notebook = factory.chapter()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    factory.save(house, notebook)
    assert messages(house) == [
        "05-tiny.ipynb: no cell was executed. Fix: make refresh."
    ]


def test_counts_out_of_order_are_named(house):
    notebook = factory.chapter()
    factory.find(notebook, "print").execution_count = 7
    nbformat.write(notebook, house / "notebooks" / "05-tiny.ipynb")
    found = messages(house)
    assert any(
        "execution count 7 where 2 is due. Fix: make refresh" in m for m in found
    )


def test_a_file_that_is_not_canonical_is_named_and_mended(house, capsys):
    path = house / "notebooks" / "05-tiny.ipynb"
    good = path.read_text()
    path.write_text(good.replace('\n "', '\n  "'))
    assert messages(house) == [
        "05-tiny.ipynb: not in canonical form. "
        "Fix: python -m tools.notebooks.form --fix."
    ]
    assert form.main(["--fix"], root=house) == 0
    assert path.read_text() == good
    assert "05-tiny.ipynb: written in canonical form" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["5-tiny.ipynb", "05_tiny.ipynb", "05-Tiny.ipynb", "tiny.ipynb"]
)
def test_a_bad_name_is_an_error(house, name):
    path = house / "notebooks" / "05-tiny.ipynb"
    path.unlink()
    notebook = factory.chapter()
    notebook.cells[0].source = notebook.cells[0].source.replace("05-tiny.ipynb", name)
    factory.save(house, notebook, name)
    toc = house / "_toc.yml"
    toc.write_text(toc.read_text().replace("05-tiny", name.removesuffix(".ipynb")))
    assert messages(house) == [
        f"{name}: not a chapter's name. Fix: call it NN-slug.ipynb, in lower case."
    ]


def test_two_chapters_share_neither_number_nor_claim(house):
    factory.save(house, factory.chapter("05-two.ipynb"), "05-two.ipynb")
    toc = house / "_toc.yml"
    toc.write_text(toc.read_text() + "      - file: notebooks/05-two\n")
    found = messages(house)
    assert len(found) == 2
    assert found[0] == (
        "05-two.ipynb: 05-tiny.ipynb has its number. Fix: give it another."
    )
    assert "05-two.ipynb, cell 6" in found[1]
    assert "a claim of 05-tiny.ipynb again. Fix: say it once." in found[1]


def test_a_chapter_missing_from_the_contents(house, capsys):
    toc = house / "_toc.yml"
    toc.write_text("format: jb-book\nroot: book/welcome\n")
    assert form.main(["--toc"], root=house) == 1
    assert capsys.readouterr().out == (
        "05-tiny.ipynb: not in _toc.yml. Fix: add `- file: notebooks/05-tiny` to it.\n"
    )


def test_an_entry_of_the_contents_without_a_file(house, capsys):
    toc = house / "_toc.yml"
    toc.write_text(toc.read_text() + "      - file: notebooks/06-none\n")
    assert form.main(["--toc"], root=house) == 1
    assert capsys.readouterr().out == (
        "_toc.yml: there is no file notebooks/06-none. Fix: remove the entry.\n"
    )


@pytest.mark.parametrize("text", [None, "parts: [\n"])
def test_broken_contents_are_one_line(house, text, capsys):
    toc = house / "_toc.yml"
    toc.write_text(text) if text else toc.unlink()
    assert form.main(["--toc"], root=house) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("_toc.yml: ") and "Fix: " in line


@pytest.mark.parametrize("text", ["{", "[]", "", '{"cells": 1}', "\0"])
def test_a_broken_notebook_is_one_line(house, text, capsys):
    path = house / "notebooks" / "05-tiny.ipynb"
    path.write_text(text)
    assert form.main([], root=house) == 1
    out, err = capsys.readouterr()
    assert len((out + err).splitlines()) == 1
    assert "05-tiny.ipynb: not " in out + err
    assert path.read_text() == text
