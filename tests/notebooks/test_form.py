"""Each rule of the form: a good chapter passes, one change gives one message."""

import re

import notebook_factory as factory
import pytest
from nbformat import v4

from tools.notebooks import form, sync

IMAGE = v4.new_output("display_data", data={"image/png": "aGVsbG8="})


def messages(house):
    return list(form.book_problems(house))


def test_a_good_chapter_has_no_problem(house, capsys):
    assert form.main(root=house) == 0
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


def add_code(source, *outputs, **metadata):
    """Add a code cell below the text `## Add`."""

    def change(notebook):
        cell = factory.code(source, *outputs, **metadata)
        place = notebook.cells.index(factory.find(notebook, "## Add"))
        notebook.cells.insert(place + 1, cell)

    return change


def add_claim(code):
    """Add a claim that is asserted so."""
    return add_code(f"# Claim: two.\n{code}", tags=["claim"])


def add_question(
    ask="*Is it two?*\n\n- Two.\n- Three.",
    answer="**Two.** So.",
    assertion="# Claim: two it is.\n# Answer: Two.\nassert a",
):
    """Add a question, a cell to predict, the answer and the claim that asserts it."""

    def change(notebook):
        notebook.cells[4:4] = [
            v4.new_markdown_cell(ask),
            factory.code("print(2)", factory.stream("2\n"), tags=["predict"]),
            v4.new_markdown_cell(answer),
            factory.code(assertion, tags=["claim"]),
        ]

    return change


def remove(*starts):
    """Remove the cells that start so."""

    def change(notebook):
        for start in starts:
            notebook.cells.remove(factory.find(notebook, start))

    return change


def swap(first, second):
    """Let two cells change places."""

    def change(notebook):
        cells = notebook.cells
        one, two = (cells.index(factory.find(notebook, x)) for x in (first, second))
        cells[one], cells[two] = cells[two], cells[one]

    return change


def forget_outputs(notebook):
    """Forget that the notebook was executed."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count, cell.outputs = None, []


def unverify(notebook):
    """Forget what the notebook was executed with."""
    del notebook.metadata["book"]


def skip(notebook):
    """Have nbval run no cell that prints."""
    factory.find(notebook, ADD).metadata["tags"] = ["nbval-skip"]


SETUP, CLAIM, ADD = "# @title", "# Claim", "print"
GOALS = "**You will**"
LONG = "\n".join(f"x = {n}" for n in range(26))
printed = factory.stream

MUTATIONS = {
    # the opening
    "no title": (set_source("# Tiny", "# Tiny", "Tiny"), "no title at the top"),
    "no goals": (remove(GOALS), r"no \*\*You will\*\*"),
    "six goals": (set_source(GOALS, "it.", "it.\n- a\n- b\n- c"), "has 6 points"),
    # the set-up cell
    "late set-up": (swap(SETUP, ADD), "the first code cell is not the set-up"),
    # claims
    "no claim": (remove(CLAIM), "no claim"),
    "tag without claim": (add_code("assert a", tags=["claim"]), "does not start with"),
    "claim below code": (add_code("a = 1\n# Claim: b.\nassert a"), "not at the top"),
    "no assert": (set_source(CLAIM, "assert 1", "1"), "asserts nothing"),
    "assert below an if": (
        add_claim("if a:\n    assert a"),
        "asserts nothing on one of its paths",
    ),
    "not checked below else": (
        add_claim("if a:\n    assert a\nelse:\n    not_checked('no a')"),
        None,
    ),
    "never checked": (
        add_claim("not_checked('a')\nassert a"),
        "not checked on any machine",
    ),
    "assert after what may raise": (
        add_claim("try:\n    assert a()\nexcept OSError:\n    pass"),
        "on one of its paths",
    ),
    "assert in a loop": (add_claim("for a in b:\n    assert a"), None),
    "assert in a loop of another process": (
        add_code("%%process\n# Claim: two.\nfor a in b:\n    assert a"),
        "on one of its paths",
    ),
    "claim made twice": (
        add_code("# Claim: One and one make two\nassert a"),
        "the claim of 05-tiny.ipynb, cell 5 .* again",
    ),
    # questions
    "question without an answer": (add_text("*Is it two?*"), "nothing answers 'Is it"),
    "plain question": (add_text("Is it *really* two?"), None),
    "question with an answer": (add_question(), None),
    "one option": (add_question(ask="*Is it two?*\n\n- Two."), "no question for the"),
    "answer that is no option": (
        add_question(assertion="# Claim: two.\n# Answer: Four.\nassert a"),
        "its answer is no option: 'Four.'",
    ),
    "answer that is not asserted": (
        add_question(assertion="# Claim: two.\nassert a"),
        "nothing asserts the answer",
    ),
    # exercises
    "two exercises": (remove("**3. Build", "# @title Solution 3"), "are: 1, 2"),
    "exercise without a hint": (
        set_source("**2. Repair", "<summary>Hint", "<summary>Help"),
        "exercise 2 has no hint",
    ),
    "exercise without a solution": (
        remove("# @title Solution 2"),
        "exercise 2 has no solution",
    ),
    "solution that asserts nothing": (
        set_source("# @title Solution 2", "assert 1", "1"),
        "the solution asserts nothing",
    ),
    # sections
    "no Go further": (remove("## Go further"), "sections are: .*What you proved. Fix"),
    "a list of claims that sync does not find": (
        set_source("## What you proved", "## What", "Look.\n\n## What"),
        "is not at the top",
    ),
    # execution
    "not executed": (forget_outputs, "cell 3 .*: not executed. Fix: make refresh"),
    "not verified": (unverify, "no `verified`"),
    # the text
    "directive": (add_text("```{note}\nhello\n```"), r"MyST: \{note\}"),
    "role": (add_text("see {ref}`there`"), r"MyST: \{ref\}"),
    "relative link": (add_text("[a](04-b.ipynb)"), "relative link: 04-b.ipynb"),
    "relative image": (add_text("![a](b.png)"), "image from elsewhere: b.png"),
    # code
    "semicolon": (set_source(ADD, "1)", "1);"), "ends with `;`"),
    "shell": (add_code("!ls"), "a shell command"),
    "nbval-skip": (skip, "the tag `nbval-skip`"),
    "26 lines": (add_code(LONG), "26 lines"),
    "89 columns": (add_code("x = 1  #" + "-" * 81), "line 1 has 89 columns"),
    # outputs
    "figure without alt": (add_code("plot()", IMAGE), "figure without alternative"),
    "big output": (add_code("big()", printed("x" * 150_000)), "an output of 150 kB"),
    "home": (add_code("a", printed("in /home/jo/x.py\n")), "this machine: /home/jo"),
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


def test_a_file_that_is_not_canonical_is_named_and_mended(house, capsys):
    path = house / "notebooks" / "05-tiny.ipynb"
    good = path.read_text()
    path.write_text(good.replace('\n "', '\n  "'))
    assert messages(house) == ["05-tiny.ipynb: not in canonical form. Fix: make sync."]
    assert sync.main(["--check"], root=house) == 0
    assert sync.main([], root=house) == 0
    assert path.read_text() == good
    assert "05-tiny.ipynb: is not in canonical form: mended" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["5-tiny.ipynb", "05_tiny.ipynb", "05-Tiny.ipynb"])
def test_a_bad_name_is_an_error(house, name):
    path = house / "notebooks" / "05-tiny.ipynb"
    path.rename(path.with_name(name))
    toc = house / "_toc.yml"
    toc.write_text(toc.read_text().replace("05-tiny", name.removesuffix(".ipynb")))
    (message,) = messages(house)
    assert message.startswith(f"{name}: not a chapter's name. Fix: call it NN-slug")


def test_two_chapters_share_neither_number_nor_claim(house):
    factory.save(house, factory.chapter("05-two.ipynb"), "05-two.ipynb")
    toc = house / "_toc.yml"
    toc.write_text(toc.read_text() + "      - file: notebooks/05-two\n")
    number, claim = messages(house)
    assert number == "05-two.ipynb: 05-tiny.ipynb has its number. Fix: give it another."
    assert re.match(r"05-two.ipynb, cell 6 .*: the claim of 05-tiny.ipynb, cell", claim)


def test_a_chapter_missing_from_the_contents(house, capsys):
    toc = house / "_toc.yml"
    toc.write_text(toc.read_text().replace("05-tiny", "05-tiny-two"))
    assert form.main(root=house) == 1
    assert capsys.readouterr().out == (
        "05-tiny.ipynb: not in _toc.yml. Fix: add `- file: notebooks/05-tiny` to it.\n"
    )


@pytest.mark.parametrize("text", ["{", "[]", "", '{"cells": 1}', "\0"])
def test_a_broken_notebook_is_one_line(house, text, capsys):
    path = house / "notebooks" / "05-tiny.ipynb"
    path.write_text(text)
    assert form.main(root=house) == 1
    out, err = capsys.readouterr()
    assert len((out + err).splitlines()) == 1
    assert "05-tiny.ipynb: not a valid notebook" in out + err
    assert path.read_text() == text
