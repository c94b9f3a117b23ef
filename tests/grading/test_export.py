"""Scores for Moodle, for Canvas and for the whole course."""

import csv
import io
from pathlib import Path

import class_factory
import pytest
from test_course import ADA, ALAN, JOSE, PEOPLE, decided, graded

from grading import cli
from grading.course.counting import Course
from grading.reports import pages

pytestmark = class_factory.NEEDS_SANDBOX

ROSTER = "number,name,mail\n" + "".join(
    f"{one.number},{one.name},{one.mail}\n" for one in PEOPLE
)
BOOK = """\ufeff\
Student,ID,SIS User ID,SIS Login ID,Section,Quiz (11),My task (12),Final
,,,,,,Manual Posting,
"    Points Possible",,,,,5,10,(read only)
"Lovelace, Ada",501,1815,ada,"A, ""x"" y",1,,77
"Turing, Alan",502,,ALAN@uni.example,B,2,3,5
"van Dyk, Jose",503,,,=B,,,
"Student, Test",504,,,B,,,
"""


@pytest.fixture
def course(tmp_path):
    """Results of an assignment, a roster and a gradebook of Canvas."""
    (tmp_path / "roster.csv").write_text(ROSTER)
    (tmp_path / "book.csv").write_text(BOOK)
    results = tmp_path / "grades" / "1-my-task"
    results.mkdir(parents=True)
    files = [graded(tmp_path / "in", f"{n}.ipynb") for n in ("1815", "1912", "who")]
    files.append(graded(tmp_path / "in", "1815/second.ipynb"))
    given = decided("1912,score,7.25,oral")
    around = Course(people=PEOPLE, decisions=given)
    pages.write(results, files, class_factory.mini(), around)
    return tmp_path


def table(path: Path) -> list[list[str]]:
    """What any program reads in a table."""
    return list(csv.reader(io.StringIO(path.read_text("utf-8-sig"), newline="")))


def export(course: Path, *options: str) -> int:
    start = ["export", str(course / "grades" / "1-my-task")]
    return cli.main([*start, "--roster", str(course / "roster.csv"), *options])


def to_canvas(course: Path, *options: str) -> int:
    return export(course, "--to=canvas", f"--gradebook={course / 'book.csv'}", *options)


def test_moodle_gets_numbers_mails_and_points(course, capsys):
    assert export(course, "--to=moodle") == 0
    said = capsys.readouterr()
    header, *rows = table(course / "grades" / "1-my-task" / "moodle.csv")
    assert header == ["ID number", "Email address", "Full name", "1-my-task"]
    assert rows == [
        [one.number, one.mail, one.name, points]
        for one, points in ((ALAN, "7.25"), (ADA, "4"), (JOSE, "0"))
    ]
    assert "3 scores: " in said.out
    assert "grades.csv, line 4, who: is nobody of the roster" in said.err
    assert "2 scores lack answers to grade by hand" in said.err


def test_what_canvas_gets_is_its_own_with_the_scores(course, capsys):
    assert to_canvas(course, "--column=my task") == 0
    said = capsys.readouterr().err
    before = table(course / "book.csv")
    text = (course / "grades" / "1-my-task" / "canvas.csv").read_text("utf-8")
    after = list(csv.reader(io.StringIO(text)))
    assert after[0] == [*before[0][:5], "My task (12)"]
    assert after[0][0] == "Student" and after[0][1] == "ID"  # what Canvas looks for
    assert after[0][-2] == "Section"
    by_id = {row[1]: row for row in before}
    scores = {"": "10", "501": "4", "502": "7.25", "503": "0"}
    assert {row[1]: row[-1] for row in after[1:]} == scores
    for row in after[1:]:
        if row[1]:
            assert row[:-1] == by_id[row[1]][:5]
    assert "line 7, Student, Test: is nobody of the roster" in said
    assert to_canvas(course, "--column=My task (12)") == 0


def test_nobody_gets_a_neighbours_score(course, capsys):
    text = BOOK.replace("501,1815,ada,", "501,1815,alan,")
    (course / "book.csv").write_text(text)
    assert to_canvas(course, "--column=my task") == 0
    said = capsys.readouterr().err
    assert "line 4, Lovelace, Ada: is nobody of the roster, or not one alone" in said
    assert "1815 Ada Lovelace ada.l@uni.example is not in it" in said
    rows = table(course / "grades" / "1-my-task" / "canvas.csv")
    assert "501" not in [row[1] for row in rows]


def test_what_canvas_can_not_take_is_told(course, capsys):
    assert to_canvas(course, "--column=Final") == 1
    assert "among: Quiz; My task. Fix: name one" in capsys.readouterr().err
    assert export(course, "--to=canvas") == 1
    assert "Canvas wants its own columns back" in capsys.readouterr().err
    (course / "book.csv").write_text(BOOK.replace(",10,", ",20,"))
    assert to_canvas(course, "--column=my task") == 0
    assert "worth 20 points there and 10 here" in capsys.readouterr().err


def test_the_inputs_are_not_overwritten(course, capsys):
    book = course / "book.csv"
    assert to_canvas(course, "--column=my task", f"--out={book}") == 1
    assert "is read, too. Fix: " in capsys.readouterr().err
    assert book.read_text() == BOOK


def test_the_totals_add_up(course, capsys):
    second = course / "grades" / "2-other"
    second.mkdir()
    people = [ADA, ALAN]
    given = decided("1815,score,5.5,oral")
    around = Course(people=people, decisions=given)
    file = graded(course / "in", "1912.ipynb")
    pages.write(second, [file], class_factory.mini(), around)
    folders = [str(course / "grades" / name) for name in ("1-my-task", "2-other")]
    options = ["--roster", str(course / "roster.csv")]
    assert cli.main(["totals", *folders, *options]) == 0
    header, *rows = table(course / "grades" / "totals.csv")
    names = ["1-my-task", "2-other", "sum", "max_sum", "share"]
    assert header == ["number", "name", "mail", *names]
    assert rows == [
        ["1815", ADA.name, ADA.mail, "4", "5.5", "9.5", "20", "0.4750"],
        ["1912", ALAN.name, ALAN.mail, "7.25", "4", "11.25", "20", "0.5625"],
        ["s-77", JOSE.name, JOSE.mail, "0", "", "0", "20", "0.0000"],
    ]
    said = capsys.readouterr().err
    assert "2-other/grades.csv: s-77 José van Dyk jose@uni.example of" in said
    assert cli.main(["totals", folders[0], folders[0], *options]) == 1
    assert "named twice" in capsys.readouterr().err
