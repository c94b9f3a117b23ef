"""The course around an assignment: who is who, how late, what a teacher decides."""

import csv
import datetime
import io
import os
from pathlib import Path

import class_factory
import pytest

from grading import runner
from grading.batch import Graded
from grading.course import counting, decisions, lateness, roster
from grading.course.counting import Course
from grading.course.roster import Person
from grading.reports import pages
from grading.submissions import Submission

pytestmark = class_factory.NEEDS_SANDBOX

ADA = Person("1815", "Ada Lovelace", "ada.l@uni.example")
ALAN = Person("1912", "Alan Turing", "alan@uni.example")
JOSE = Person("s-77", "José van Dyk", "jose@uni.example")
PEOPLE = [ADA, ALAN, JOSE]
DUE = datetime.datetime.fromisoformat("2026-12-01T23:59").astimezone()
HOUR = datetime.timedelta(hours=1)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def graded(folder: Path, place: str, late: datetime.timedelta = -HOUR) -> Graded:
    """A file with 4 points of question 1, handed in some time after the deadline."""
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    seconds = (DUE + late).timestamp()
    os.utime(path, (seconds, seconds))
    result = runner.empty_result(class_factory.mini())
    result.questions[0].score = 4.0
    student = place.replace("/", " - ").removesuffix(".ipynb")
    return Graded(Submission(student, path, student, place), result, {}, True)


def stand(*files: Graded, marks=None, **course):
    """What counts, by student, and the lines about what does not."""
    standings, lines = counting.stand(
        list(files), class_factory.mini(), marks or {}, Course(**course)
    )
    return {one.student: one for one in standings}, lines


def decided(*rows: str) -> list[decisions.Decision]:
    """Decisions as a teacher writes them."""
    return [
        decisions.Decision(line, *row.split(","))
        for line, row in enumerate(rows, start=2)
    ]


# Who is who.


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_roster_is_read_as_spreadsheets_write_it(tmp_path, delimiter):
    rows = ["\ufeffMail;group;Number;name", "ada@x;b;007;'=Ada", ";b;1;Bo", ";;;"]
    text = "\r\n".join(rows).replace(";", delimiter)
    people = roster.read(write(tmp_path / "r.csv", text))
    assert people == [Person("007", "=Ada", "ada@x"), Person("1", "Bo", "")]


NOBODYS = {
    "18151.ipynb": "nobody's number",
    "x1815.ipynb": "nobody's number",
    "ada.ipynb": "nobody's number",
    "Ada Turing.ipynb": "nobody's number",
    "1815_1912.ipynb": "it could be 1815 Ada Lovelace ada.l@uni.example; 1912 Alan",
    "1815_alan.ipynb": "it could be 1815 Ada Lovelace",
}


@pytest.mark.parametrize("place", NOBODYS)
def test_whose_a_file_is_is_never_guessed(tmp_path, place):
    one = graded(tmp_path, place).submission
    whose = roster.match([one], PEOPLE, "mini")
    assert whose.people == {}
    line = whose.lines[place]
    assert line.startswith(f"{place}: whose is it? {NOBODYS[place]}")


def test_who_handed_in_nothing_stands_there_with_nothing(tmp_path):
    found, lines = stand(graded(tmp_path, "1815.ipynb"), people=PEOPLE)
    assert lines == []
    assert {name: one.score for name, one in found.items()} == {
        **{"1815": 4.0, "1912": 0.0, "s-77": 0.0}
    }
    assert found["1912"].graded is None


# How late.


@pytest.mark.parametrize(
    "late, days, counts",
    [
        (-HOUR, 0, 1.0),
        (0 * HOUR, 0, 1.0),
        (datetime.timedelta(seconds=1), 0, 0.9),
        (24 * HOUR, 0, 0.9),
        (25 * HOUR, 0, 0.8),
        (72 * HOUR, 0, 0.7),
        (73 * HOUR, 0, 0.0),
        (73 * HOUR, 1, 0.7),
        (25 * HOUR, 5, 1.0),
    ],
)
def test_each_day_begun_costs_what_the_rule_says(late, days, counts, tmp_path):
    rule = lateness.rule("2026-12-01T23:59", "10%/day", 3)
    given = decided(f"anna,extra days,{days},ill")
    found, lines = stand(
        graded(tmp_path, "anna.ipynb", late), rule=rule, decisions=given
    )
    assert lines == []
    assert found["anna"].earned == 4.0
    assert found["anna"].score == pytest.approx(4.0 * counts)


# What counts.


def test_the_latest_file_in_time_counts(tmp_path):
    files = [
        graded(tmp_path, "1815/a.ipynb", -5 * HOUR),
        graded(tmp_path, "1815/b.ipynb", -2 * HOUR),
        graded(tmp_path, "1815/c.ipynb", 2 * HOUR),
    ]
    rule = lateness.Rule(DUE)
    found, _ = stand(*files, people=[ADA], rule=rule)
    assert [one.counts for one in found.values()] == [False, True, False]
    assert found["1815 - c"].instead == "1815/b.ipynb"
    found, _ = stand(*files, people=[ADA])
    assert found["1815 - c"].counts


def test_a_teacher_decides_which_file_counts(tmp_path):
    files = [graded(tmp_path, f"1815/{name}.ipynb") for name in "abc"]
    files.append(graded(tmp_path, "hers, really.ipynb"))
    (line,) = stand(*files, people=PEOPLE)[1]
    assert line.endswith('`NUMBER,counts,"hers, really.ipynb",REASON` in decisions.csv')
    for who in ("1815", "ada.l@uni.example", "1815 - b"):
        given = [decisions.Decision(2, who, "counts", "1815/a.ipynb", "asked")]
        found, lines = stand(*files[:3], people=PEOPLE, decisions=given)
        assert lines == [] and found["1815 - a"].counts
        assert found["1815 - a"].why == "counts 1815/a.ipynb (asked)"
    given = [decisions.Decision(2, "1815", "counts", "hers, really.ipynb", "asked")]
    given.append(decisions.Decision(3, "hers, really", "score", "3", "oral"))
    found, lines = stand(*files, people=PEOPLE, decisions=given)
    assert found["hers, really"].person == ADA
    assert found["hers, really"].score == 3.0 and lines == []
    assert not found["1815 - c"].counts


REFUSED = {
    "zoe,score,1,x": "there is no such student",
    "anna,score,1,": "a reason is missing",
    "anna,score,11,x": "'11' is no number from 0 to 10",
    "anna,score,-1,x": "'-1' is no number",
    "anna,score,nan,x": "'nan' is no number",
    "anna,score q9,1,x": "there is no question q9",
    "anna,score q1,5,x": "'5' is no number from 0 to 4",
    "anna,extra days,-1,x": "'-1' is no whole number of days",
    "anna,extra days,1.5,x": "'1.5' is no whole number of days",
    "anna,handed in,soon,x": "'soon' is no time",
    "anna,counts,none.ipynb,x": "there is no file 'none.ipynb'",
    "anna,counts,bert.ipynb,x": "bert.ipynb is somebody else's",
    "anna,forgive,1,x": "the kind is none of",
    "anna,,1,x": "the kind is none of",
}


@pytest.mark.parametrize("row", REFUSED)
def test_a_decision_that_cant_be_is_told_and_the_others_count(row, tmp_path):
    files = [graded(tmp_path, "anna.ipynb"), graded(tmp_path, "bert.ipynb")]
    found, (line,) = stand(*files, decisions=decided("bert,score,1,oral", row))
    assert line.startswith(f"decisions.csv, line 3, {row.split(',')[0]}, ")
    assert REFUSED[row] in line and line.endswith("it does not take effect")
    assert (found["anna"].score, found["bert"].score) == (4.0, 1.0)
    assert found["anna"].decided == []


# What stands on the pages.


def reported(out: Path, *files: Graded, **course) -> tuple[dict, str]:
    """The rows of grades.csv by student, and the summary."""
    out.mkdir()
    pages.write(out, list(files), class_factory.mini(), Course(**course))
    text = (out / "grades.csv").read_text("utf-8-sig")
    rows = {row["student"]: row for row in csv.DictReader(io.StringIO(text))}
    return rows, (out / "summary.html").read_text()


def test_the_pages_show_what_counts_and_why(tmp_path):
    files = [
        graded(tmp_path, "1815/a.ipynb", 30 * HOUR),
        graded(tmp_path, "1815/b.ipynb", 40 * HOUR),
        graded(tmp_path, "1912.ipynb"),
        graded(tmp_path, "who.ipynb"),
    ]
    rule = lateness.rule("2026-12-01T23:59", "10%/day", 3)
    given = decided("1912,score q1,3,copied & told", "zoe,score,1,x")
    rows, page = reported(
        tmp_path / "out", *files, people=PEOPLE, rule=rule, decisions=given
    )
    one = rows["1815 - a"]
    wanted = {"number": "1815", "name": ADA.name, "mail": ADA.mail, "score": "3.2"}
    wanted |= {"earned": "4", "late_by": "1 day 6 h", "counts": "yes"}
    assert wanted.items() <= one.items()
    assert (rows["1815 - b"]["score"], rows["1815 - b"]["counts"]) == ("", "no")
    assert rows["1815 - b"]["file"] == "1815/b.ipynb"  # as a decision names it
    assert rows["1912"]["decision"] == "score q1 3 (copied & told)"
    assert rows["1912"]["q1"] == rows["1912"]["score"] == "3"
    assert rows["s-77"]["problem"] == "nothing was handed in"
    assert (rows["s-77"]["score"], rows["s-77"]["complete"]) == ("0", "yes")
    assert rows["who"]["number"] == ""
    assert "nothing was handed in" in page and "1 of the roster" in page
    assert "who.ipynb: whose is it?" in page
    assert "line 3, zoe, score: there is no such student" in page
    assert "3 submissions" in page

    def feedback(name: str) -> str:
        path = tmp_path / "out" / "students" / name / "feedback.html"
        return " ".join(path.read_text().split())

    first = feedback("1815 - a")
    assert "3.2 of 10 points" in first and "late by 1 day 6 h" in first
    assert "80 % of the 4 points" in first and "after 3 days nothing counts" in first
    assert "does not count, since 1815/a.ipynb of yours does" in feedback("1815 - b")
    assert "score q1: 3, because: copied &amp; told" in feedback("1912")
    assert "3 of 4 points, as your teacher decided." in feedback("1912")
    assert "late by" not in feedback("1912")


def test_the_command_takes_all_of_it(handed_in, capsys):
    people = "number;name;mail\n1;Correct;\n2;Wrong;\n3;Nobody;\n"
    table = write(handed_in / "roster.csv", people)
    due = ["--deadline=2000-01-01", "--late=10%/day", "--late-days=3"]
    options = [f"--roster={table}", "--seed=x"]
    assert class_factory.grade(handed_in, *options, *due) == 0
    said = capsys.readouterr().err
    assert "empty_mini.ipynb: whose is it? nobody's number, mail or name in it" in said
    text = (handed_in / "out" / "grades.csv").read_text("utf-8-sig")
    rows = {row["student"]: row for row in csv.DictReader(io.StringIO(text))}
    assert (rows["correct"]["earned"], rows["correct"]["score"]) == ("8", "0")
    write(handed_in / "t.csv", "name,handed in\nCorrect,1999-12-31\n")
    told = f"--times={handed_in / 't.csv'}"
    assert class_factory.grade(handed_in, *options, *due, told) == 0
    text = (handed_in / "out" / "grades.csv").read_text("utf-8-sig")
    again = {row["student"]: row for row in csv.DictReader(io.StringIO(text))}
    assert (again["correct"]["score"], again["wrong"]["score"]) == ("8", "0")
    assert rows["3"]["problem"] == "nothing was handed in"
    write(
        handed_in / "out" / "decisions.csv", "student,kind,value,reason\n1,score,5,x\n"
    )
    assert class_factory.grade(handed_in, *options, *due) == 0
    said = capsys.readouterr()
    assert "3 graded before, 0 to grade" in said.err
    assert "3 submissions, 1.7 of 10 points" in said.out
    before = (handed_in / "out" / "grades.csv").read_bytes()
    write(table, "number;name;mail\n1;a;\n1;b;\n")
    assert class_factory.grade(handed_in, *options) == 1
    assert "line 3: the number 1 stands in line 2" in capsys.readouterr().err
    assert (handed_in / "out" / "grades.csv").read_bytes() == before
