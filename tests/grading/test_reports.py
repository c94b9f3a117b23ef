"""Who is who, what counts, marks given by hand, and the pages of the results."""

import base64
import csv
import io
import json
import os
import re
import shutil
import threading
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import class_factory
import pytest
from class_factory import rows
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from test_about import master

from grading import cli, figures, runner, submissions
from grading.assignment import PLACEHOLDER
from grading.author import masters
from grading.batch import Graded
from grading.reports import marking, marks, pages, roster, scores, table
from grading.reports.marks import Mark
from grading.reports.pages import Options
from grading.reports.roster import Person
from grading.submissions import Submission
from tools.model.errors import UserError

pytestmark = class_factory.NEEDS_SANDBOX

ADA = Person("1815", "Ada Lovelace", "ada.l@uni.example")
ALAN = Person("1912", "Alan Turing", "alan@uni.example")
JOSE = Person("s-77", "José van Dyk", "jose@uni.example")
PEOPLE = [ADA, ALAN, JOSE]
SCRIPT = "<script>alert(1)</script>"


def graded(student, points=None, answer="", place="", assignment=None) -> Graded:
    """A submission with points of its questions, whose other tests all failed."""
    place = place or f"{student}.ipynb"
    result = runner.empty_result(assignment or class_factory.mini())
    for question in result.questions:
        question.score = (points or {}).get(question.name, 0.0)
    where = Submission(student, Path(place), student, place)
    return Graded(where, result, {"q4": answer})


def write(folder: Path, *files: Graded, **options):
    settled = [one.submission for one in files]
    mini = class_factory.mini()
    return pages.write(folder, settled, list(files), mini, Options(**options))


# Who is who.


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_roster_is_read_as_spreadsheets_write_it(tmp_path, delimiter):
    lines = ["\ufeffMail;group;Number;name", "ada@x;b;007;'=Ada", ";b;1;Bo", ";;;"]
    path = tmp_path / "r.csv"
    path.write_text("\r\n".join(lines).replace(";", delimiter))
    assert roster.read(path) == [Person("007", "=Ada", "ada@x"), Person("1", "Bo", "")]


@pytest.mark.parametrize(
    "data, message",
    [
        (b"number,name\n1,Ada\n", "line 1: no column mail"),
        (
            b"number,name,mail\n1,A,\n1,C,\n",
            "line 3: the number 1 stands in an earlier",
        ),
        (b'number,name,mail\n1,"A,\n2,B,\n', "line 2: a double quote"),
        ("number,name,mail\n1,é,".encode("latin-1"), "not in UTF-8"),
        (b"", "no column number"),
    ],
)
def test_a_broken_table_is_told_with_its_line(tmp_path, data, message):
    path = tmp_path / "r.csv"
    path.write_bytes(data)
    with pytest.raises(UserError, match=message):
        roster.read(path)


WHOSE = {
    "1815.ipynb": ADA,
    "group 1815_mini/x.ipynb": ADA,
    "ada.l@uni.example_mini.ipynb": ADA,
    "Lovelace Ada_77_assignsubmission_file_/mini.ipynb": ADA,
    "lovelaceada_123_456_mini.ipynb": ADA,
    "van-dyk_JOSE\u0301.ipynb": JOSE,
}


@pytest.mark.parametrize("place", WHOSE)
def test_a_file_is_whose_name_it_bears(place):
    file = graded("x", place=place).submission
    assert roster.match([file], PEOPLE, "mini") == ({place: WHOSE[place]}, [])


@pytest.mark.parametrize(
    "place", ["18151.ipynb", "ada.ipynb", "Ada Turing.ipynb", "1815_1912.ipynb"]
)
def test_whose_a_file_is_is_never_guessed(place):
    whose, lines = roster.match([graded("x", place=place).submission], PEOPLE, "mini")
    assert not whose and place in lines[0] and "whose is it?" in lines[0]


def settled(folder: Path, people, *files: tuple[str, int]):
    """What counts of files, by their places and their times."""
    for place, when in files:
        path = folder / place
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
        os.utime(path, (when, when))
    found, lines = roster.settle(submissions.find(folder, "mini"), people, "mini")
    return {one.place: not one.instead for one in found}, lines


@pytest.mark.parametrize("people", [None, PEOPLE])
def test_of_a_persons_files_the_latest_counts_and_equal_ones_are_asked(
    tmp_path, people
):
    draft, final = "1815/draft.ipynb", "1815/final.ipynb"
    counts, (line,) = settled(tmp_path, people, (draft, 10), (final, 20))
    assert counts == {draft: False, final: True}
    assert line.startswith(f"{draft}: does not count: {final} is later (1970-01-01")
    counts, lines = settled(tmp_path, people, (draft, 20), ("1815/note.pdf", 30))
    assert counts == {draft: False, final: False}
    assert all("have one time. Fix: remove all but one" in line for line in lines)


def test_what_does_not_count_has_its_row_and_its_reason(tmp_path):
    one = graded("1815", {"q1": 3})
    draft = Submission("1815 b", Path("b"), "b", "b.ipynb", "", ADA, "another is later")
    mini = class_factory.mini()
    both = [one.submission, draft]
    standings = scores.standings(both, [one], mini, {}, [ADA, ALAN])
    found = [(s.student, s.score, s.counts, s.problem) for s in standings]
    assert found == [
        ("1815", 3, True, ""),
        ("1815 b", 0, False, "another is later"),
        ("1912", 0, True, scores.NOTHING),
    ]
    pages.write(tmp_path, both, [one], mini, Options(people=[ADA, ALAN]))
    assert rows(tmp_path / "grades.csv")["1815 b"]["problem"] == "another is later"
    with zipfile.ZipFile(tmp_path / "feedback.zip") as archive:
        assert archive.namelist() == ["1815.html"]
    scored = (tmp_path / "gradebook.csv").read_text("utf-8-sig").splitlines()
    assert len(scored) == 2 and scored[1].startswith('"1912"')


# What counts.


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The small assignment: a core of q1 (4) and q4 (2, by hand), extras q2 and q3."""
    keys = {"q1": "minutes: 1", "q2": "extra: true", "q3": "extra: true"}
    return masters.build(master(tmp_path_factory.mktemp("master"), keys))


@pytest.mark.parametrize(
    "points, mark, score",
    [
        ({"q1": 4}, 2, 6),
        ({"q1": 4, "q2": 3, "q3": 1}, 0, 4),  # never for points by hand
        ({"q1": 3.5, "q2": 3}, 2, 6),
        ({"q1": 0, "q2": 3, "q3": 1}, 2, 4),  # at most a fifth of the core, rounded up
        ({"q1": 3, "q2": 0.5}, 1, 4.5),
    ],
)
def test_extras_make_up_for_lost_points_of_checks_alone(points, mark, score, small):
    one = graded("anna", points, "So.", assignment=small)
    given = {("anna", "q4"): Mark(mark)}
    assert scores.standing(one, small, given).score == pytest.approx(score)
    without = scores.standing(one, small, given, extras=False)
    assert without.score == points.get("q1", 0) + mark


def test_an_answer_that_nobody_wrote_is_0_and_another_waits(tmp_path):
    write(tmp_path, graded("anna"), graded("bert", answer="So."))
    found = rows(tmp_path / "grades.csv")
    assert (found["anna"]["q4"], found["anna"]["complete"]) == ("0", "yes")
    assert (found["bert"]["q4"], found["bert"]["complete"]) == ("", "no")
    assert "2 of them have no points" in (tmp_path / "summary.html").read_text()


# Marks.


def fill(out: Path, student: str, points: str, comment: str = "") -> None:
    """Fill in a row of manual.csv as a person does in a spreadsheet."""
    path = out / "manual.csv"
    lines = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"), newline="")))
    for row in lines:
        if row["student"] == student:
            row |= {"points": points, "comment": comment}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, lines[0].keys(), delimiter=";")
        writer.writeheader()
        writer.writerows(lines)


def test_a_mark_counts_for_the_answer_that_got_it_and_is_never_lost(tmp_path):
    write(tmp_path, graded("anna", answer="So."), graded("bert", answer="No."))
    fill(tmp_path, "anna", "1,5", "well put")
    standings, lines = write(tmp_path, graded("anna", answer="So. "), graded("bert"))
    assert (standings[0].score, lines) == (1.5, [])
    standings, lines = write(tmp_path, graded("anna", answer="Other."))
    assert standings[0].points["q4"] is None and "has changed since 1.5" in lines[0]
    row = rows(tmp_path / "manual.csv")["anna"]
    assert (row["points"], row["before"]) == ("", "1.5 points: well put")
    fill(tmp_path, "anna", "2")
    _, lines = write(tmp_path, graded("bert", answer="No."))
    assert "anna, q4: 2 points, and no such answer is there" in lines[0]
    standings, lines = write(tmp_path, graded("anna", answer="Other."))
    assert (standings[0].score, lines) == (2, [])


def test_a_mark_counts_for_its_student_whatever_a_spreadsheet_made_of_zeros(tmp_path):
    write(tmp_path, graded("007", answer="So."), graded("7a", answer="So."))
    fill(tmp_path, "007", "2")
    path = tmp_path / "manual.csv"
    path.write_text(path.read_text().replace("\n007;", "\n7;"))
    standings, lines = write(
        tmp_path, graded("007", answer="So."), graded("7a", answer="So.")
    )
    assert ([one.points["q4"] for one in standings], lines) == ([2, None], [])
    assert set(rows(path)) == {"007", "7a"}


@pytest.mark.parametrize(
    "line, message",
    [
        ("anna,q4,many,", "line 2: points: 'many'"),
        ("anna,q4,-1,", "Fix: a number from 0 to 2"),
        ("anna,q4,1,\nanna,q4,2,", "line 3: a second row for anna q4"),
    ],
)
def test_broken_marks_stop_the_run_before_anything_is_lost(tmp_path, line, message):
    path = tmp_path / "manual.csv"
    path.write_text(f"student,question,points,comment\n{line}\n")
    with pytest.raises(UserError, match=re.escape(message)):
        write(tmp_path, graded("anna", answer="So."))
    assert path.read_text().endswith(f"{line}\n")
    assert not (tmp_path / "grades.csv").exists()


@given(st.text(alphabet="a1 \"',;|\t\n=+-@("))
def test_no_text_in_a_table_is_a_formula_and_it_comes_back(text):
    harmless = table.harmless(text)
    assert table.typed(harmless) == text
    written = table.dumps([["name", text]]).removeprefix("\ufeff")
    for separator in ",;\t|":
        for fields in csv.reader(io.StringIO(written), delimiter=separator):
            for field in fields:
                assert not field.strip('" ').startswith(("=", "+", "-", "@")), field


@pytest.mark.parametrize("sign", ['"', "\n", " ", ",", "\t", '",', "=", "'"])
def test_a_long_answer_holds_up_no_table(sign):
    start = time.process_time()
    text = sign * 16_000
    assert table.typed(table.harmless(text)) == text
    assert time.process_time() - start < 1


# The page to mark on.


def picture(width=3, height=2, kind="PNG") -> dict:
    """An output of a cell with a picture."""
    file = io.BytesIO()
    Image.new("L", (width, height)).save(file, kind)
    data = base64.b64encode(file.getvalue()).decode()
    return {"output_type": "display_data", "data": {f"image/{kind.lower()}": data}}


def hand_in(folder: Path, name: str, answer: str, *outputs: dict) -> Submission:
    """A submission with an answer to question 4, and pictures below it."""
    notebook = json.loads(masters.dumps(class_factory.mini().student))
    place = next(i for i, cell in enumerate(notebook["cells"]) if _waits(cell))
    text = "".join(notebook["cells"][place]["source"]).replace(PLACEHOLDER, answer)
    notebook["cells"][place]["source"] = text
    drawn = {"cell_type": "code", "source": "", "outputs": list(outputs)}
    notebook["cells"].insert(place + 1, drawn)
    path = folder / f"{name}.ipynb"
    path.write_text(json.dumps(notebook))
    return Submission(name, path, name, path.name)


def _waits(cell: dict) -> bool:
    return PLACEHOLDER in "".join(cell["source"])


def test_pictures_are_shown_if_they_are_small_pictures(tmp_path):
    svg = {"output_type": "display_data", "data": {"image/svg+xml": "<svg/>"}}
    broken = {"data": {"image/png": "x"}, "output_type": "display_data"}
    outputs = [picture(), picture(4, 4, "JPEG"), svg, broken, picture(5000, 5000)]
    pasted = picture(5, 5)["data"]["image/png"]  # as Colab does
    answer = f"So. ![x](data:image/png;base64,{pasted})"
    file = hand_in(tmp_path, "anna", answer, *outputs, {"data": 3}, "x")
    shown = figures.read(file, class_factory.mini())["q4"]
    kinds = [one.partition(";")[0].removeprefix("data:image/") for one in shown]
    assert kinds == ["png", "png", "jpeg"]


@pytest.fixture
def served(tmp_path):
    """The page of four students, and what makes it."""
    (tmp_path / "out").mkdir()
    files = [
        hand_in(tmp_path, "anna", SCRIPT, picture()),
        hand_in(tmp_path, "bert", "Because."),
        hand_in(tmp_path, "carl", ""),
        hand_in(tmp_path, "dora", "Because."),
    ]
    marker = marking.Marking(files, class_factory.mini(), tmp_path / "out")
    server, address = marking.server(marker)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield address, tmp_path / "out", marker
    server.shutdown()
    thread.join()
    server.server_close()


def ask(address: str, mark: dict | None = None, **headers) -> tuple[int, str]:
    data = None if mark is None else json.dumps(mark).encode()
    try:
        with urllib.request.urlopen(
            urllib.request.Request(address, data, headers)
        ) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def entered(student: str, answer: str, points: str, comment: str = "") -> dict:
    identity = marks.answer_id(student, "q4", answer)
    return {"answer_id": identity, "points": points, "comment": comment}


def test_marks_are_entered_on_a_page_with_all_that_is_needed(served):
    address, out, marker = served
    status, page = ask(address)
    assert status == 200 and "data:image/png" in page
    assert "Why does softmax subtract" in page and "THE-MODEL-ANSWER" in page
    assert SCRIPT not in page and "&lt;script&gt;" in page
    assert "Nothing was written by 1" in page and "carl." in page
    assert "3 answers, about 3 to 6 minutes" in page
    assert page.count("2 answers have the same words") == 2
    marker.anonymous = True
    assert not re.search("anna|bert|carl|dora", hidden := marker.page("q4"))
    assert "Answer 3" in hidden and 'data-answer="x' in hidden
    assert ask(f"{address}enter", entered("anna", SCRIPT, "1,5", "good"))[0] == 200
    assert ask(f"{address}enter", entered("bert", "Because.", ""))[0] == 200
    row = rows(out / "manual.csv")["anna"]
    assert (row["points"], row["comment"]) == ("1.5", "good")
    standings, _ = write(out, graded("anna", answer=SCRIPT))
    assert standings[0].score == 1.5
    assert 'value="1.5"' in ask(address)[1]


def test_a_mark_that_cant_be_is_refused_and_no_other_is_lost(served):
    address, out, _ = served
    ask(f"{address}enter", entered("bert", "Because.", "2"))
    for mark in (
        entered("anna", SCRIPT, "3"),
        entered("anna", SCRIPT, "many"),
        entered("anna", "another answer", "1"),
        entered("nobody", "", "1"),
        {"points": []},
    ):
        status, answer = ask(f"{address}enter", mark)
        assert status == 409 and "Fix: " in json.loads(answer)["error"]
    found = rows(out / "manual.csv")
    assert (found["anna"]["points"], found["bert"]["points"]) == ("", "2.0")


def test_only_who_knows_the_address_sees_answers(served):
    address, *_ = served
    root = address.rsplit("/", 2)[0]
    mark = entered("anna", SCRIPT, "1")
    assert ask(root)[0] == 404 and ask(f"{root}/x/q4")[0] == 404
    assert ask(f"{root}/enter", mark)[0] == 404
    assert ask(address, Host="evil.example")[0] == 404
    assert ask(f"{address}enter", mark, Host="evil.example")[0] == 404


# The pages.


@pytest.mark.parametrize(
    "kinds, said",
    [
        (("slow",), "too long on other inputs (at most 30 s)"),
        (("slow", "lost"), "did not survive"),
        (("slow", "wrong"), "sizes, signs, limits and types"),
    ],
)
def test_students_are_told_of_what_kind_a_failure_is(kinds, said):
    one = graded("anna")
    question = one.result.questions[0]
    question.tests = [test for test in question.tests if not test.hidden]
    for test in question.tests:
        test.passed = True
    for kind in kinds:
        limit = "at most 30 s"
        test = runner.TestResult("test_q1_zero", True, 1, False, "9 s", kind, limit)
        question.tests.append(test)
    standing = scores.standing(one, class_factory.mini(), {})
    page = pages.feedback(standing, class_factory.mini(), {}, Options())
    assert said in page and "9 s" not in page and "q1 zero" not in page
    page = pages.feedback(standing, class_factory.mini(), {}, Options(reveal=True))
    assert "9 s" in page and "q1 zero" in page and said not in page
    for test in question.tests:
        test.passed = False
    page = pages.feedback(standing, class_factory.mini(), {}, Options(reveal=True))
    assert "9 s" not in page  # the first check says all, and not begun says it once


def test_a_report_that_cant_be_written_keeps_no_other_back(tmp_path):
    page = tmp_path / "students" / "anna" / "feedback.html"
    page.mkdir(parents=True)
    _, lines = write(tmp_path, graded("anna"), graded("bert"))
    assert "feedback.html: can't be written" in lines[0]
    assert set(rows(tmp_path / "grades.csv")) == {"anna", "bert"}
    assert (tmp_path / "students" / "bert" / "feedback.html").is_file()


# The command.


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    """A folder in which a small class has handed in, and was graded."""
    folder = tmp_path_factory.mktemp("class")
    class_factory.write_all(folder / "in", class_factory.SMALL)
    assert class_factory.grade(folder) == 0
    return folder


@pytest.fixture
def handed_in(first_run, tmp_path):
    """A copy of it."""
    return shutil.copytree(first_run, tmp_path / "class")


def test_a_second_run_grades_only_what_changed(handed_in, capsys):
    assert class_factory.grade(handed_in) == 0
    assert "3 graded before, 0 to grade" in capsys.readouterr().err
    wrong = handed_in / "in" / "wrong_mini.ipynb"
    wrong.write_text(class_factory.HONEST["correct"].text)
    (handed_in / "in" / "empty_mini.ipynb").unlink()
    assert class_factory.grade(handed_in) == 0
    said = capsys.readouterr().err
    assert "[1/1] wrong: 8 points" in said
    assert "empty: no longer there" in said
    assert not (handed_in / "out" / "students" / "empty").exists()
    assert class_factory.grade(handed_in, "--seed=another secret") == 0
    assert "0 graded before, 2 to grade" in capsys.readouterr().err


def test_a_roster_is_kept_for_the_runs_that_come(handed_in):
    given = handed_in / "class.csv"
    given.write_text("number,name,mail\n7,Correct,c@x\n8,Absent,\n")
    assert class_factory.grade(handed_in, f"--roster={given}") == 0
    given.unlink()
    assert class_factory.grade(handed_in) == 0
    found = [row["name"] for row in rows(handed_in / "out" / "grades.csv").values()]
    assert "Correct" in found and "Absent" in found


def test_another_groups_folder_deletes_no_results(handed_in, capsys):
    other = handed_in / "other"
    other.mkdir()
    (other / "new.ipynb").write_text(class_factory.HONEST["starter"].text)
    arguments = ["grade", str(other), str(class_factory.MINI)]
    assert cli.main([*arguments, "--out", str(handed_in / "out")]) == 1
    assert "3 of the 3 results in it" in capsys.readouterr().err
    assert len(rows(handed_in / "out" / "grades.csv")) == 3
    options = cli.commands().parse_args(arguments)
    assert cli.results(options, "mini") == Path("grades", "mini", "other")


def test_hostile_names_and_files_harm_no_neighbour(tmp_path, capsys):
    folder = tmp_path / "in"
    folder.mkdir()
    names = ["grades.csv", "summary.html", "manual.csv", "seed.txt", "graded.json"]
    names += ["a\n[9] bert: 8 points, 1.0 s", "\x1b[2Jclear", "m\udcfcller", "é" * 122]
    for name in names:
        (folder / f"{name}.ipynb").write_text("nothing")
    (folder / "bert.ipynb").write_text(class_factory.HONEST["correct"].text)
    (folder / "carl.pdf").write_text("%PDF")
    os.mkfifo(folder / "pipe.ipynb")
    half = class_factory.case("raise ValueError('\\ud800')").text
    (folder / "half.ipynb").write_text(half)
    assert class_factory.grade(tmp_path) == 0
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert len([line for line in said.splitlines() if line.startswith("[")]) == 2
    found = rows(tmp_path / "out" / "grades.csv")
    assert len(found) == len(names) + 4
    assert (found["bert"]["score"], found["half"]["score"]) == ("8", "4")
    assert found["pipe"]["problem"] == "this is no ordinary file"
    assert found["carl.pdf"]["problem"] == "this is no notebook (*.ipynb)"
