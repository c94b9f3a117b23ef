"""An assignment is out of its core's points: extras make up for what is lost there."""

import csv
import io
import json

import class_factory
import pytest
from test_about import master
from test_course import ADA, ALAN, DUE, HOUR, decided

from grading import cli, runner
from grading.author import masters
from grading.batch import Graded
from grading.course import counting, lateness, scores, totals
from grading.course.counting import Course
from grading.reports import gradescope, pages
from grading.reports.manual import Mark
from grading.submissions import Submission

pytestmark = class_factory.NEEDS_SANDBOX


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The small assignment with a core of 5 points (q1, q3) and extras (q2, q4)."""
    return masters.build(master(tmp_path_factory.mktemp("master")))


def graded(folder, small, points, answer="", name="anna"):
    """A file in time, with points of its questions."""
    path = folder / f"{name}.ipynb"
    path.touch()
    cli.files.os.utime(path, (DUE.timestamp() - 60, DUE.timestamp() - 60))
    result = runner.empty_result(small)
    for question in result.questions:
        question.score = points.get(question.name, 0.0)
        for test in question.tests:
            test.passed = bool(question.score)
    where = Submission(name, path, name, path.name)
    return Graded(where, result, {"q4": answer}, True)


def standing(small, one, marks=None, **course):
    standings, lines = counting.stand([one], small, marks or {}, Course(**course))
    assert lines == []
    return standings[0]


@pytest.mark.parametrize(
    "points, earned, score",
    [
        ({"q1": 4, "q3": 1}, 5, 5),
        ({"q1": 2, "q3": 1}, 3, 3),
        ({"q1": 2, "q2": 1}, 3, 3),  # the extra makes up for what is lost
        ({"q1": 4, "q2": 3}, 7, 5),
        ({"q2": 3}, 3, 3),
        ({"q1": 4, "q2": 3, "q3": 1}, 8, 5),
    ],
)
def test_nobody_gets_more_than_the_core(points, earned, score, small, tmp_path):
    one = standing(small, graded(tmp_path, small, points))
    assert (one.earned, one.score) == (earned, score)
    alone = pages.alone(one.graded, small, {})
    assert (alone.earned, alone.score) == (earned, score)


def test_being_late_takes_its_share_of_what_counts(small, tmp_path):
    one = graded(tmp_path, small, {"q1": 4, "q2": 3})
    rule = lateness.Rule(DUE - HOUR, 20)
    late = standing(small, one, rule=rule)
    assert (late.earned, late.capped, late.score) == (7, 5, 4)
    page = pages.feedback(one, small, {}, late, Course(rule=rule))
    assert "80 % of the 5 points that were earned count" in page


def test_decisions_give_no_more_either(small, tmp_path):
    one = graded(tmp_path, small, {"q1": 4})
    given = standing(small, one, decisions=decided("anna,score q2,3,oral"))
    assert (given.earned, given.score) == (7, 5)
    over = Course(decisions=decided("anna,score,6,oral"))
    _, lines = counting.stand([one], small, {}, over)
    assert "'6' is no number from 0 to 5" in lines[0]


def test_who_handed_in_nothing_gets_no_more_either(small):
    course = Course([ADA], decisions=decided("1815,score q1,4,x", "1815,score q2,3,x"))
    found, _ = counting.stand([], small, {}, course)
    assert (found[0].earned, found[0].score) == (7, 5)


@pytest.mark.parametrize("answer, open_", [("", False), ("Because.", True)])
def test_an_extra_that_nobody_wrote_needs_no_mark(answer, open_, small, tmp_path):
    one = standing(small, graded(tmp_path, small, {"q1": 4, "q3": 1}, answer))
    row = rows(small, one)[0]
    assert row["complete"] == ("no" if open_ else "yes")
    assert row["q4"] == ("" if open_ else "0")
    page = pages.feedback(one.graded, small, {}, one)
    assert ("has still to read some answers" in page) is open_
    marked = standing(small, one.graded, {("anna", "q4"): Mark(1.5)})
    assert marked.earned == 6.5


def rows(small, *standings, marks=None):
    text = pages.grades([*standings], small, marks or {}, Course())
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))


def test_the_table_shows_what_counts_and_the_sum(small, tmp_path):
    row = rows(small, standing(small, graded(tmp_path, small, {"q1": 4, "q2": 3})))[0]
    shown = (row["score"], row["max_score"], row["earned"], row["q2"])
    assert shown == ("5", "5", "7", "3")


def test_the_student_reads_what_extras_do(small, tmp_path):
    one = graded(tmp_path, small, {"q1": 4, "q2": 3})
    page = pages.feedback(one, small, {})
    assert "5 of 5 points" in page and "you have 3 points in extras, 7 in all" in page
    assert "Question 2: count (extra)" in page and "if you tried" not in page
    page = pages.feedback(graded(tmp_path, small, {"q1": 4}), small, {})
    assert "4 of 5 points" in page and "you have 0 points in extras.</p>" in page
    assert page.count("if you tried") == 1  # question 4 has no checks


def test_without_extras_no_page_speaks_of_them(tmp_path):
    mini = class_factory.mini()
    one = graded(tmp_path, mini, {"q1": 4})
    assert "xtra" not in pages.feedback(one, mini, {})
    course = Course()
    found, _ = counting.stand([one], mini, {}, course)
    assert "xtra" not in pages.summary(found, mini, {}, course, [])


def test_the_summary_speaks_of_the_core(small, tmp_path):
    more = graded(tmp_path, small, {"q1": 4, "q2": 1, "q3": 1}, name="more")
    less = graded(tmp_path, small, {"q1": 2}, name="less")
    course = Course()
    found, _ = counting.stand([more, less], small, {}, course)
    page = pages.summary(found, small, {}, course, [])
    assert "mean 3.5 of 5 points" in page and "1 of 2 have more" in page
    assert "6 points with all extras" in page and "33 % of 1" in page
    assert "most in q3, 50 percent" in page
    assert "q2 small" not in page  # who left it out has failed nothing


def test_platforms_get_no_more_than_there_is(small, tmp_path):
    one = graded(tmp_path, small, {"q1": 4, "q2": 3})
    assert pages.gradescope(one, {}, small.points)["score"] == 5
    assert pages.gradescope(one, {}, 100)["score"] == 7
    assert gradescope.automatic(small) == 5
    assert gradescope.automatic(class_factory.mini()) == class_factory.FULL
    written = pages.write(tmp_path, [one], small)
    results = tmp_path / "students" / "anna" / pages.RESULTS
    assert written.lines == [] and json.loads(results.read_text())["score"] == 5


def test_exports_and_totals_are_out_of_the_core(small, tmp_path):
    files = [graded(tmp_path, small, {"q1": 4, "q2": 3}, name="ada.l")]
    pages.write(tmp_path, files, small, Course([ADA, ALAN]))
    found = scores.read(tmp_path, [ADA, ALAN])
    assert (found.most, found.points[ADA], found.points[ALAN]) == (5, "5", "0")
    total = totals.totals([ADA], [found]).splitlines()[1]
    assert total.endswith("5,5,5,1.0000")


def test_an_earlier_result_follows_the_master(handed_in, capsys):
    assert class_factory.grade(handed_in) == 0
    path = master(handed_in)
    arguments = ["grade", str(handed_in / "in"), str(path)]
    assert cli.main([*arguments, "--out", str(handed_in / "out")]) == 0
    assert "3 graded before, 0 to grade" in capsys.readouterr().err
    text = (handed_in / "out" / "grades.csv").read_text(encoding="utf-8-sig")
    found = {row["student"]: row for row in csv.DictReader(io.StringIO(text))}
    assert (found["correct"]["score"], found["correct"]["earned"]) == ("5", "8")
    assert found["correct"]["complete"] == "yes"
