"""The bank: its questions listed, taken apart, and put together to other masters."""

import class_factory
import jupytext
import pytest
from test_about import master

from grading import cli
from grading.author import assemble, bank, gates, masters, parts
from tools.model import chapters
from tools.model.chapters import ROOT
from tools.model.errors import UserError

PATHS = masters.master_paths()


# A master, taken apart


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_what_a_question_needs_is_stated(path):
    found = parts.read(path)
    for part in found.parts:
        used = {
            need.part.question.name: need.name
            for need in parts.needs(found, part.cells, part)
            if not (need.imported and not need.process)
        }
        missing = {n: why for n, why in used.items() if n not in part.question.needs}
        assert not missing, f"{path.name}, {part.question.name}: uses {missing}"


# Assembling


TITLE = "A title"


def made(*core, extras=(), title=TITLE, root=ROOT):
    return assemble.assemble(assemble.picks(core, extras, root), title, root)


def cells(found):
    return jupytext.reads(found.text, fmt="md:myst").cells


def test_a_new_master_has_its_questions_renumbered(tmp_path):
    found = made("2.q4", "2.q6", extras=("2.q2",))
    path = tmp_path / "new.md"
    path.write_text(found.text)
    new = masters.build(path)
    assert new.title == TITLE
    old = {one.name: one for one in masters.questions(PATHS[1])}
    asked = [
        (one.name, one.minutes, one.points, one.extra, one.manual, one.title)
        for one in new.questions
    ]
    wanted = []
    for number, name in enumerate(("q4", "q6", "q2"), start=1):
        one = old[name]
        title = one.title.replace(f"Question {name[1:]}:", f"Question {number}:")
        size = (f"q{number}", one.minutes, one.points, number == 3)
        wanted.append((*size, one.manual, title))
    assert asked == wanted
    assert "test_q1_few_programs" in new.tests["q1"] and "q4" not in new.tests["q1"]
    text = masters.dumps(new.student)
    assert "prediction_q1" in text and "prediction_q4" not in text
    assert "def prepare_one" in text  # a given cell of 2.q3, which is not chosen
    assert "def prepare(scans)" not in text
    assert "## Hand in" in text and "How it works" in text
    assert found.questions == new.questions


def test_answers_that_are_needed_must_be_chosen():
    with pytest.raises(UserError, match=r"3\.q2: needs predict_with of 3\.q1\. Fix"):
        made("3.q2")
    with pytest.raises(UserError, match=r"3\.q2: needs predict_with of 3\.q1\. Fix"):
        made("3.q2", "3.q1")
    with pytest.raises(UserError, match=r"3\.q4: needs 3\.q[23]\. Fix"):
        made("3.q4")
    found = made("3.q1", "3.q2", "3.q3", "3.q4")
    assert [one.needs for one in found.questions][1:] == [
        ("q1",),
        ("q1",),
        ("q2", "q3"),
    ]


def test_masters_with_two_backends_are_refused():
    with pytest.raises(UserError, match="a process has one backend"):
        made("1.q1", "2.q3")


def test_the_wrong_answers_of_the_sources_come_along():
    found = made("2.q4", "1.q3").wrong_answers
    for number, (stem, name) in enumerate([(1, "q4"), (0, "q3")], start=1):
        known = gates.known_wrong_answers(PATHS[stem].stem)
        wanted = [(x["why"], x["points"]) for x in known if x["question"] == name]
        here = [x for x in found if x["question"] == f"q{number}"]
        assert wanted and [(x["why"], x["points"]) for x in here] == wanted


# The command


@pytest.fixture
def mini(tmp_path):
    """The small master with keys, as a teacher's own."""
    return str(master(tmp_path))


def run(path, *arguments):
    return cli.main(["assemble", str(path), "--title", "Mine", *arguments])


@class_factory.NEEDS_SANDBOX
def test_the_command_writes_what_passes_its_gates(mini, tmp_path, capsys):
    path = tmp_path / "course" / "week-3.md"
    chosen = [f"{mini}.q3", f"{mini}.q1", f"{mini}.q4", "--extra", f"{mini}.q2"]
    assert run(path, *chosen) == 0
    said = capsys.readouterr()
    assert "about 21 minutes and 7 points in the core, of which by hand: q3" in said.out
    assert "trying the starter" in said.err
    assert "no wrong answers are known: q1, q2, q4" in said.err
    found = masters.build(path)
    assert [one.name for one in found.extras] == ["q4"]
    before = path.read_text()
    assert run(path, f"{mini}.q1") == 1
    assert "is there already" in capsys.readouterr().err
    assert path.read_text() == before
    assert run(path, f"{mini}.q1", "--force") == 0
    assert path.read_text() != before


BROKEN = {
    "a solution that is wrong": ("- np.max(logits)", "+ 1e9", "the solution: "),
    "a test that passes always": ("assert layer.count() == 2,", "assert True,", "q2"),
    "a test that an empty answer passes": (
        'assert env["bytes_q3"] == 4',
        "assert True",
        "empty answers: test_q3_bytes passes",
    ),
    "a starter that answers": (
        "bytes_q3 = 4  # SOLUTION",
        "bytes_q3 = 4",
        "the starter",
    ),
}


@class_factory.NEEDS_SANDBOX
@pytest.mark.parametrize("old, new, said", BROKEN.values(), ids=BROKEN)
def test_nothing_is_written_if_a_gate_fails(old, new, said, mini, tmp_path, capsys):
    path = tmp_path / "mini.md"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    names_ = [f"{mini}.q{number}" for number in (1, 2, 3)]
    assert run(tmp_path / "new.md", *names_) == 1
    assert not (tmp_path / "new.md").exists()
    err = capsys.readouterr().err
    assert said in err and "not written" in err


# The list


def test_the_bank_lists_all_questions(capsys):
    assert cli.main(["bank"]) == 0
    lines = capsys.readouterr().out.splitlines()
    count = sum(len(masters.questions(path)) for path in PATHS)
    assert len(lines) == count + 1
    line = next(one for one in lines if one.startswith("2.q4 "))
    for part in ("pad to a few sizes", " 7 ", " 17 ", " 6 ", "by checks"):
        assert part in line
    assert line.endswith("core")  # the cells of 2.q3 that it uses come along


def test_the_page_for_teachers_has_the_tables():
    page = (ROOT / bank.PAGE).read_text(encoding="utf-8")
    assert page == bank.with_tables(page), "Fix: make assignments."
    rows = [line for line in bank.tables().splitlines() if "(../notebooks/" in line]
    assert len(rows) == len(chapters.chapter_paths())
    for number, row in enumerate(rows, start=1):
        told = row.split("|")[2].replace("\\*", "").replace(",", " ").split()
        tested = [e.label for e in bank.entries() if number in e.question.chapters]
        assert told == tested


def test_assign_says_when_the_page_is_stale(monkeypatch, tmp_path, capsys):
    page = tmp_path / bank.PAGE
    page.parent.mkdir()
    page.write_text(f"{bank.BEGIN}\n{bank.END}\n")
    monkeypatch.setattr(bank, "tables", lambda root: "the tables")
    assert bank.write_tables(True, tmp_path) is True
    assert "Fix: make assignments" in capsys.readouterr().out
    assert "the tables" not in page.read_text()
    assert bank.write_tables(False, tmp_path) is True
    assert "the tables" in page.read_text()
    assert bank.write_tables(True, tmp_path) is False
