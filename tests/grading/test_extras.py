"""An assignment is out of its core's points: extras make up for what is lost there."""

import json

import class_factory
import pytest
from test_about import master
from test_course import ADA, ALAN, DUE, HOUR, decided

from grading import cli, runner
from grading.author import masters
from grading.batch import Graded
from grading.course import counting, lateness, scores
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
            test.score = question.score * test.points / question.points
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
    late = standing(small, one, rule=lateness.Rule(DUE - HOUR, 20))
    assert (late.earned, late.capped, late.score) == (7, 5, 4)


def test_decisions_give_no_more_either(small, tmp_path):
    one = graded(tmp_path, small, {"q1": 4})
    given = standing(small, one, decisions=decided("anna,score q2,3,oral"))
    assert (given.earned, given.score) == (7, 5)
    over = Course(decisions=decided("anna,score,6,oral"))
    _, lines = counting.stand([one], small, {}, over)
    assert "'6' is no number from 0 to 5" in lines[0]


@pytest.mark.parametrize("answer, complete", [("", "yes"), ("Because.", "no")])
def test_an_extra_that_nobody_wrote_needs_no_mark(answer, complete, small, tmp_path):
    one = graded(tmp_path, small, {"q1": 4, "q3": 1}, answer)
    pages.write(tmp_path, [one], small)
    assert class_factory.rows(tmp_path / "grades.csv")["anna"]["complete"] == complete
    assert standing(small, one, {("anna", "q4"): Mark(1.5)}).earned == 6.5


def test_platforms_and_totals_are_out_of_the_core(small, tmp_path):
    one = graded(tmp_path, small, {"q1": 4, "q2": 3}, name="ada.l")
    assert pages.gradescope(one, {}, small.points)["score"] == 5
    assert gradescope.automatic(small) == 5
    pages.write(tmp_path, [one], small, Course([ADA, ALAN]))
    results = tmp_path / "students" / "ada.l" / pages.RESULTS
    assert json.loads(results.read_text())["score"] == 5
    found = scores.read(tmp_path, [ADA, ALAN])
    assert (found.most, found.points[ADA], found.points[ALAN]) == (5, "5", "0")


def test_the_student_reads_what_extras_do(small, tmp_path):
    one = graded(tmp_path, small, {"q1": 4, "q2": 3})
    page = pages.feedback(one, small, {})
    assert "5 of 5 points" in page and "you have 3 points in extras, 7 in all" in page
    assert "Question 2: count (extra)" in page and "if you tried" not in page
    page = pages.feedback(graded(tmp_path, small, {"q1": 4}), small, {})
    assert "4 of 5 points" in page and "you have 0 points in extras.</p>" in page
    assert page.count("if you tried") == 1  # question 4 has no checks


def test_an_earlier_result_follows_the_master(handed_in, capsys):
    assert class_factory.grade(handed_in) == 0
    path = master(handed_in)
    arguments = ["grade", str(handed_in / "in"), str(path)]
    assert cli.main([*arguments, "--out", str(handed_in / "out")]) == 0
    assert "3 graded before, 0 to grade" in capsys.readouterr().err
    found = class_factory.rows(handed_in / "out" / "grades.csv")
    assert (found["correct"]["score"], found["correct"]["earned"]) == ("5", "8")
    assert found["correct"]["complete"] == "yes"
