"""The course around an assignment: who is who, how late, what a teacher decides."""

import datetime
import os
from pathlib import Path

import class_factory
import pytest
from class_factory import rows

from grading import runner, submissions
from grading.batch import Graded
from grading.course import counting, decisions, lateness, roster, times
from grading.course.counting import Course
from grading.course.roster import Person
from grading.reports import pages
from grading.reports.manual import Mark
from grading.submissions import Submission
from tools.model.errors import UserError

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


@pytest.mark.parametrize(
    "text, message",
    [
        ("number,name\n1,Ada\n", "line 1: no column mail. Fix: "),
        ("number,name,mail\n1,A,\n1,C,\n", "line 3: the number 1 stands in line 2"),
        ("number,name,mail\n1,A,a@x\n2,B,A@x\n", "line 3: the mail A@x stands in l"),
    ],
)
def test_a_broken_roster_is_told(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        roster.read(write(tmp_path / "r.csv", text))


WHOSE = {
    "1815.ipynb": ADA,
    "group 1815_mini/x.ipynb": ADA,
    "ada.l@uni.example_mini.ipynb": ADA,
    "Lovelace Ada_77_assignsubmission_file_/mini.ipynb": ADA,
    "lovelaceada_123_456_mini.ipynb": ADA,
    "van-dyk_JOSE\u0301.ipynb": JOSE,
}


@pytest.mark.parametrize("place", WHOSE)
def test_a_file_is_whose_name_it_bears(tmp_path, place):
    one = graded(tmp_path, place).submission
    assert roster.match([one], PEOPLE, "mini").people == {place: WHOSE[place]}


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


def test_of_two_people_of_one_name_the_number_tells(tmp_path):
    people = [Person("1", "Ada Lovelace", ""), Person("2", "Ada Lovelace", "")]
    places = ["Ada Lovelace 2.ipynb", "Ada Lovelace.ipynb", "mini-2-explain.ipynb"]
    files = [graded(tmp_path, place).submission for place in places]
    whose = roster.match(files, people, "mini-2-explain")
    assert whose.people == {places[0]: people[1]}
    assert len(whose.lines) == 2


def test_who_handed_in_nothing_stands_there_with_nothing(tmp_path):
    found, lines = stand(graded(tmp_path, "1815.ipynb"), people=PEOPLE)
    assert lines == []
    assert {name: one.score for name, one in found.items()} == {
        **{"1815": 4.0, "1912": 0.0, "s-77": 0.0}
    }
    assert found["1912"].graded is None


def test_what_is_no_notebook_is_not_nothing(tmp_path):
    write(tmp_path / "1912_Turing.pdf", "x")
    others = submissions.others(tmp_path)
    found, lines = stand(graded(tmp_path, "1815.ipynb"), people=PEOPLE, others=others)
    assert found["1912"].problem == "no notebook (*.ipynb), but 1912_Turing.pdf"
    assert found["s-77"].problem == "nothing was handed in"
    assert lines == [f"{ALAN}: {found['1912'].problem}. Fix: ask for the notebook"]


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


@pytest.mark.parametrize(
    "options, message",
    [
        ((None, "10%/day", None), "--late needs a --deadline"),
        (("tomorrow", None, None), "'tomorrow' is no time such as"),
        (("2026-12-01", "101%/day", None), "no such rule"),
    ],
)
def test_a_rule_that_is_none_is_told(options, message):
    with pytest.raises(UserError, match=f"{message}.*Fix: "):
        lateness.rule(*options)


def test_without_a_price_being_late_is_only_shown(tmp_path):
    rule = lateness.rule("2026-12-01T23:59", None, None)
    found, _ = stand(graded(tmp_path, "anna.ipynb", 26 * HOUR), rule=rule)
    assert (found["anna"].score, found["anna"].late) == (4.0, 26 * HOUR)


SHEET = """\ufeffIdentifier,"Full name","Email address","Last modified (submission)"
"Participant 1",Ada Lovelace,ADA.L@uni.example,"{}"
"Participant 2",Alan Turing,alan@uni.example,-
"Participant 4",Eve,eve@uni.example,2026-12-01T10:00
"""


@pytest.mark.parametrize(
    "time", ["Wednesday, 2 December 2026, 1:05 AM", "2026-12-02 01:05"]
)
def test_a_table_of_the_platform_says_when(tmp_path, time):
    sheet = write(tmp_path / "sheet.csv", SHEET.format(time))
    told = times.read(sheet, PEOPLE)
    assert told.lines == [f"{sheet}, line 4: is nobody of the roster, or not one alone"]
    names = ("1815.ipynb", "1912.ipynb")
    files = [graded(tmp_path, name, 50 * HOUR) for name in names]
    rule = lateness.rule("2026-12-01T23:59", "10%/day", None)
    found, lines = stand(*files, people=PEOPLE, rule=rule, times=told)
    late = [lateness.span(found[name].late) for name in ("1815", "1912")]
    assert late == ["1 h 6 min", "2 days 2 h"]
    assert f"so that of the file counts ({ALAN})" in lines[-1]


@pytest.mark.parametrize(
    "hours, told", [([9, 9, 9.1, 9.2, 9.3], True), ([-9, -5, -1, -1, 9], False)]
)
def test_times_that_may_be_those_of_a_zip_are_told(tmp_path, hours, told):
    files = [
        graded(tmp_path, f"s{number}.ipynb", late * HOUR)
        for number, late in enumerate(hours)
    ]
    _, lines = stand(*files, rule=lateness.rule("2026-12-01T23:59", None, None))
    assert any("the times of all 5 files" in line for line in lines) == told


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


def test_else_the_first_after_the_deadline_counts(tmp_path):
    files = [
        graded(tmp_path, "1815/a.ipynb", 5 * HOUR),
        graded(tmp_path, "1815/b.ipynb", 2 * HOUR),
    ]
    found, _ = stand(*files, people=[ADA], rule=lateness.Rule(DUE))
    assert [one.counts for one in found.values()] == [False, True]


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


def test_a_time_and_points_can_be_decided(tmp_path):
    rule = lateness.rule("2026-12-01T23:59", "10%/day", None)
    given = decided(
        "anna,handed in,2026-12-02T10:00,by mail",
        "bert,score,7.5,oral exam",
        "cleo,score q1,1,copied",
        "cleo,score q4,2,read aloud",
    )
    files = [graded(tmp_path, f"{name}.ipynb") for name in ("anna", "bert", "cleo")]
    marks = {("cleo", "q4"): Mark(1.0)}
    found, lines = stand(*files, rule=rule, decisions=given, marks=marks)
    assert lines == []
    scores = {name: (one.earned, one.score) for name, one in found.items()}
    assert scores == {"anna": (4.0, 3.6), "bert": (4.0, 7.5), "cleo": (3.0, 3.0)}


def test_an_oral_exam_counts_for_who_handed_in_nothing(tmp_path):
    given = decided("1912,score,9,oral", "s-77,score q1,2,oral")
    found, _ = stand(graded(tmp_path, "1815.ipynb"), people=PEOPLE, decisions=given)
    assert (found["1912"].score, found["s-77"].score) == (9.0, 2.0)


def test_of_two_rows_that_decide_the_same_none_takes_effect(tmp_path):
    given = decided("1815,score,1,a", "ada.l@uni.example,score,2,b", "1912,score,3,c")
    files = [graded(tmp_path, "1815.ipynb")]
    found, lines = stand(*files, people=PEOPLE, decisions=given)
    assert ["lines 2 and 3 decide the same" in line for line in lines] == [True, True]
    assert (found["1815"].score, found["1912"].score) == (4.0, 3.0)


def test_a_table_of_decisions_is_read_as_spreadsheets_write_it(tmp_path):
    text = "\ufeffreason;student;kind;value\r\nill;anna;Extra  Days; 2\r\n"
    (one,) = decisions.read(write(tmp_path / "d.csv", text), needed=True)
    assert one == decisions.Decision(2, "anna", "extra days", "2", "ill")
    with pytest.raises(UserError, match=r"no such file\. Fix: "):
        decisions.read(tmp_path / "none.csv", needed=True)


REFUSED = {
    "zoe,score,1,x": "there is no such student",
    "anna,score,1,": "a reason is missing",
    "anna,score,11,x": "'11' is no number from 0 to 10",
    "anna,score q9,1,x": "there is no question q9",
    "anna,score q1,5,x": "'5' is no number from 0 to 4",
    "anna,extra days,1.5,x": "'1.5' is no whole number of days",
    "anna,handed in,soon,x": "'soon' is no time",
    "anna,counts,none.ipynb,x": "there is no file 'none.ipynb'",
    "anna,counts,bert.ipynb,x": "bert.ipynb is somebody else's",
    "anna,forgive,1,x": "the kind is none of",
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
    return rows(out / "grades.csv"), (out / "summary.html").read_text()


def test_the_pages_show_what_counts_and_why(tmp_path):
    files = [
        graded(tmp_path, "1815/a.ipynb", 30 * HOUR),
        graded(tmp_path, "1815/b.ipynb", 40 * HOUR),
        graded(tmp_path, "1912.ipynb"),
        graded(tmp_path, "who.ipynb"),
    ]
    rule = lateness.rule("2026-12-01T23:59", "10%/day", 3)
    given = decided("1912,score q1,3,copied & told", "zoe,score,1,x")
    table, page = reported(
        tmp_path / "out", *files, people=PEOPLE, rule=rule, decisions=given
    )
    one = table["1815 - a"]
    wanted = {"number": "1815", "name": ADA.name, "mail": ADA.mail, "score": "3.2"}
    wanted |= {"earned": "4", "late_by": "1 day 6 h", "counts": "yes"}
    assert wanted.items() <= one.items()
    assert (table["1815 - b"]["score"], table["1815 - b"]["counts"]) == ("", "no")
    assert table["1815 - b"]["file"] == "1815/b.ipynb"  # as a decision names it
    assert table["1912"]["decision"] == "score q1 3 (copied & told)"
    assert table["1912"]["q1"] == table["1912"]["score"] == "3"
    assert table["s-77"]["problem"] == "nothing was handed in"
    assert (table["s-77"]["score"], table["s-77"]["complete"]) == ("0", "yes")
    assert table["who"]["number"] == ""
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
    grades = handed_in / "out" / "grades.csv"
    first = rows(grades)
    assert (first["correct"]["earned"], first["correct"]["score"]) == ("8", "0")
    write(handed_in / "t.csv", "name,handed in\nCorrect,1999-12-31\n")
    told = f"--times={handed_in / 't.csv'}"
    assert class_factory.grade(handed_in, *options, *due, told) == 0
    again = rows(grades)
    assert (again["correct"]["score"], again["wrong"]["score"]) == ("8", "0")
    assert first["3"]["problem"] == "nothing was handed in"
    write(
        handed_in / "out" / "decisions.csv", "student,kind,value,reason\n1,score,5,x\n"
    )
    assert class_factory.grade(handed_in, *options, *due) == 0
    said = capsys.readouterr()
    assert "3 graded before, 0 to grade" in said.err
    assert "3 submissions, 1.7 of 10 points" in said.out
    before = grades.read_bytes()
    write(table, "number;name;mail\n1;a;\n1;b;\n")
    assert class_factory.grade(handed_in, *options) == 1
    assert "line 3: the number 1 stands in line 2" in capsys.readouterr().err
    assert grades.read_bytes() == before
