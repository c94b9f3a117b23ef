"""Marks given by hand, a second run, and the reports."""

import csv
import io
import json
import os
import re
from pathlib import Path

import class_factory
import pytest
from class_factory import rows
from hypothesis import example, given
from hypothesis import strategies as st

from grading import batch, runner
from grading.assignment import PLACEHOLDER
from grading.batch import Graded
from grading.reports import manual, pages, table
from grading.reports.manual import Mark
from grading.submissions import Submission
from tools.model.errors import UserError

pytestmark = class_factory.NEEDS_SANDBOX

HEADER = "student,question,points,comment\n"


def graded(student: str, answer: str = "", name: str = "x.ipynb") -> Graded:
    """A submission of which nothing was right so far."""
    submission = Submission(student, Path(name), student)
    result = runner.empty_result(class_factory.mini())
    return Graded(submission, result, {"q4": answer}, True)


def home(out: Path, student: str) -> Path:
    """A student's folder of results."""
    return out / "students" / student


def write(out: Path, *all_graded: Graded) -> pages.Written:
    return pages.write(out, list(all_graded), class_factory.mini())


def write_marks(path: Path, text: str, header: str = HEADER) -> None:
    path.write_text(header + text)


def fill(out: Path, student: str, points: str, comment: str = "") -> None:
    """Fill in a row of manual.csv as a person does in a spreadsheet."""
    path = out / "manual.csv"
    lines = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"), newline="")))
    for row in lines:
        if row["student"] == student:
            row |= {"points": points, "comment": comment}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, lines[0].keys())
        writer.writeheader()
        writer.writerows(lines)


# The table as spreadsheets write it.


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_marks_are_read_as_spreadsheets_write_them(tmp_path, delimiter):
    path = tmp_path / "manual.csv"
    text = '\ufeffstudent;question;points;comment\r\nanna;q4;"1,5";"good; short"\r\n'
    text = text.replace(";", delimiter) + delimiter * 3 + "\r\n"
    path.write_text(text, encoding="utf-8", newline="")
    (row,) = manual.read(path, class_factory.mini()).rows
    assert row.key == ("anna", "q4")
    assert row.mark == Mark(1.5, f"good{delimiter} short")


@pytest.mark.parametrize(
    "line, message",
    [
        ("anna,q4,3,", r"line 2, anna, q4: '3' is no number from 0 to 2"),
        ("anna,q4,nan,", "'nan' is no number"),
        ("anna,q4,1,good, but short", "line 2: 5 fields, and the first line has 4"),
        (
            'anna,q4,1,"good\nbert,q4,2,"',
            "line 2, anna, q4: .* comment holds .* next row",
        ),
    ],
)
def test_broken_marks_are_refused_with_their_line(tmp_path, line, message):
    path = tmp_path / "manual.csv"
    write_marks(path, line + "\n")
    with pytest.raises(UserError, match=message):
        manual.read(path, class_factory.mini())


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_another_encoding_is_refused(tmp_path, encoding):
    path = tmp_path / "manual.csv"
    path.write_text(HEADER + "anna,q4,1,trés bien\n", encoding=encoding)
    with pytest.raises(UserError, match=r"line \d: not in UTF-8. Fix: save it as CSV"):
        manual.read(path, class_factory.mini())


# No formulas.

TEXTS = (
    st.text(st.sampled_from(" ,;:|\t\n\r\"'=+-@ab1\xa0\x0b"), max_size=12) | st.text()
)


@given(TEXTS)
@example("'- good")
@example("=1;'=1")
def test_what_is_made_harmless_comes_back(text):
    assert table.typed(table.harmless(text)) == text


def starts_formula(field: str) -> bool:
    """Whether a spreadsheet would compute a field."""
    return re.match(r'[\s"]*[=+\-@].', field) is not None


@given(TEXTS, TEXTS)
@example("hello;=cmd|'/c calc'!A1", "x;=1+1")
@example("a\t@SUM(1)", '"x";"=1+1"')
@example('a "= 1"', "a =")
def test_no_separator_makes_a_formula(first, second):
    text = table.dumps([["a", "b"], [first, second]]).removeprefix("\ufeff")
    for separator in ",;\t| :":
        fields = re.split(rf"[\n{re.escape(separator)}]", text)
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        fields += [field for row in lines for field in row]
        assert not any(map(starts_formula, fields)), separator


# No mark is lost, or counts for something else.


def both() -> tuple[Graded, Graded]:
    """Two students who have answered."""
    return graded("anna", "Because."), graded("bert", "So.")


@pytest.fixture
def marked(tmp_path):
    """Results of two students, with a mark for each that has counted."""
    write(tmp_path, *both())
    fill(tmp_path, "anna", "1.5", "well put")
    fill(tmp_path, "bert", "1")
    assert write(tmp_path, *both()).lines == []
    return tmp_path


def test_a_mark_counts_only_for_the_answer_that_got_it(marked):
    path = marked / "manual.csv"
    before = path.read_bytes()
    for _ in range(2):  # it is told again until somebody mends it
        written = write(marked, graded("anna", "Other."), graded("bert", "So."))
        assert written.marks == {("bert", "q4"): Mark(1.0)}
        first, last = written.lines
        assert "line 2, anna, q4: the answer has changed since it got 1.5" in first
        assert "left as it is" in last and "manual-new.csv" in last
        assert path.read_bytes() == before
    new = rows(marked / "manual-new.csv")
    assert new["anna"]["points"] == "" and new["anna"]["answer"] == "Other."
    assert new["bert"]["points"] == "1"
    (marked / "manual-new.csv").replace(path)
    written = write(marked, graded("anna", "Other."), graded("bert", "So."))
    assert written.lines == []


LISTED = {
    "zoe,q4,1,\n": "line 4, zoe, q4: 1 points, and there is no such student",
    "anna,q1,1,\n": "line 4, anna, q1: 1 points, and no such question is graded",
    "anna,q4,,\n": "(line 2: 1.5 points and line 4: nothing), so none counts",
    "a\x1b[3m\u202e,q4,1,\n": r"line 4, a\x1b[3m\u202e, q4: 1 points, and there is no",
}


@pytest.mark.parametrize("extra", LISTED)
def test_a_mark_that_has_no_place_is_told_and_kept(marked, extra):
    path = marked / "manual.csv"
    write_marks(path, "anna,q4,1.5,well put\nbert,q4,1,\n" + extra)
    before = path.read_bytes()
    written = write(marked, graded("anna", "Because."), graded("bert", "So."))
    assert LISTED[extra] in written.lines[0]
    assert len(written.lines) == 2
    assert path.read_bytes() == before
    assert rows(marked / "manual-new.csv")["bert"]["points"] == "1"
    assert written.marks[("bert", "q4")] == Mark(1.0)


def test_a_mark_that_had_counted_and_is_gone_is_told_once(marked):
    path = marked / "manual.csv"
    write_marks(path, "anna,q4,1.5,well put\nbert,q4,,\n")
    first, _ = write(marked, *both()).lines
    assert "manual.csv, bert, q4: 1 points counted on the last run" in first
    assert write(marked, *both()).lines == []


@pytest.mark.parametrize("names, number", [(",my notes\n", "my"), (",\n", "column 5")])
def test_columns_of_ones_own_are_not_lost(marked, names, number):
    path = marked / "manual.csv"
    rest = "anna,q4,1.5,,ask her\nbert,q4,1,,\n"
    write_marks(path, rest, HEADER.replace("\n", names))
    written = write(marked, *both())
    assert f"line 1: the column {number}" in written.lines[0]
    assert "ask her" in path.read_text()
    assert len(written.marks) == 2


def test_a_link_to_the_table_stays_one(marked):
    path, target = marked / "manual.csv", marked / "elsewhere" / "marks.csv"
    target.parent.mkdir()
    path.rename(target)
    path.symlink_to(target)
    fill(marked, "anna", "2")
    assert write(marked, *both()).lines == []
    assert path.is_symlink()
    assert rows(target)["anna"]["points"] == "2"


# A spreadsheet takes the zeros at the front of a student's number away.


def renumber(path: Path, old: str, new: str) -> None:
    """Give a student another number as a spreadsheet does."""
    path.write_text(path.read_text("utf-8-sig").replace(f"\n{old},", f"\n{new},"))


@pytest.mark.parametrize("answer, counts", [("Because.", True), ("Other.", False)])
def test_a_number_without_its_first_zeros_is_its_students(tmp_path, answer, counts):
    write(tmp_path, graded("0123", "Because."), graded("bert"))
    fill(tmp_path, "0123", "2")
    renumber(tmp_path / "manual.csv", "0123", "123")
    written = write(tmp_path, graded("0123", answer), graded("bert"))
    assert written.marks == ({("0123", "q4"): Mark(2.0)} if counts else {})
    assert ("no such student" in "".join(written.lines)) != counts


@pytest.mark.parametrize("students", [("0123", "00123"), ("0123x",), ("1230",)])
def test_a_number_that_can_mean_nobody_alone_is_told(tmp_path, students):
    row = f"123,q4,1,,{manual.answer_id('Same.')}\n"
    header = HEADER.replace("\n", ",answer_id\n")
    write_marks(tmp_path / "manual.csv", row, header)
    written = write(tmp_path, *(graded(student, "Same.") for student in students))
    assert "123, q4: 1 points, and there is no such student" in written.lines[0]


def test_students_whose_numbers_a_spreadsheet_made_equal_get_no_mark(tmp_path):
    all_graded = graded("007", "Same."), graded("7", "Same.")
    write(tmp_path, *all_graded)
    fill(tmp_path, "007", "2", "well done")
    path = tmp_path / "manual.csv"
    renumber(path, "007", "7")
    before = path.read_bytes()
    written = write(tmp_path, *all_graded)
    assert "2 rows for one answer (line 2: 2 points and" in written.lines[0]
    assert written.marks == {}
    assert path.read_bytes() == before


# An answer that changes after it got its mark.


def without(path: Path, *names: str) -> None:
    """Remove columns from a table as a person does in a spreadsheet."""
    lines = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"), newline="")))
    kept = [name for name in lines[0] if name not in names]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, kept, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(lines)


@pytest.mark.parametrize("names", [["answer_id"], ["answer_id", "answer"]])
@pytest.mark.parametrize("answer", ["Because.", "- a;  =b\n\nc", "x" * 20_000])
def test_without_its_number_an_answer_is_told_from_another(tmp_path, names, answer):
    write(tmp_path, graded("anna", answer))
    fill(tmp_path, "anna", "1.5")
    without(tmp_path / "manual.csv", *names)
    for _ in range(2):  # it is told again until somebody mends it
        written = write(tmp_path, graded("anna", "Other."))
        assert "anna, q4: the answer has changed" in written.lines[0]
        assert written.marks == {}
    written = write(tmp_path, graded("anna", answer))
    assert written.lines == []
    assert written.marks == {("anna", "q4"): Mark(1.5)}


def test_grading_again_keeps_which_answer_was_shown(tmp_path):
    one = graded("anna", "Because.")
    batch.keep_answers(tmp_path, one.submission, {"q4": "x1"})
    batch._keep(tmp_path, one.submission, "key", one.result, print)
    assert batch.last_answers(tmp_path, one.submission) == {"q4": "x1"}


@pytest.mark.parametrize("text", ["[" * 10**5, '{"tests": 3}', "\xff"])
def test_damaged_results_of_the_last_run_do_no_harm(tmp_path, text):
    home(tmp_path, "anna").mkdir(parents=True)
    path = home(tmp_path, "anna") / "results.json"
    path.write_bytes(text.encode("latin-1"))
    assert write(tmp_path, graded("anna")).lines == []
    assert json.loads(path.read_text())["tests"]


def test_a_table_saved_while_the_reports_are_written_is_not_lost(marked, monkeypatch):
    path = marked / "manual.csv"
    honest = pages.summary

    def saved_meanwhile(*all_given):
        fill(marked, "bert", "2", "saved meanwhile")
        return honest(*all_given)

    with monkeypatch.context() as patch:
        patch.setattr(pages, "summary", saved_meanwhile)
        (line,) = write(marked, *both()).lines
    assert "was changed while this ran" in line and "run the same command" in line
    assert rows(path)["bert"]["comment"] == "saved meanwhile"
    assert rows(marked / "manual-new.csv")["bert"]["points"] == "1"
    written = write(marked, *both())
    assert written.lines == []
    assert written.marks[("bert", "q4")] == Mark(2.0, "saved meanwhile")
    assert not (marked / "manual-new.csv").exists()


def test_marks_in_the_table_beside_it_are_not_lost(marked):
    others = graded("anna", "Other."), graded("bert", "So.")
    write(marked, *others)
    new, path = marked / "manual-new.csv", marked / "manual.csv"
    filled = new.read_text("utf-8").replace("anna,q4,2,,", "anna,q4,2,0.5,")
    new.write_text(filled, "utf-8")
    written = write(marked, *others)
    assert any(
        "manual-new.csv: holds marks that do not count" in x for x in written.lines
    )
    assert new.read_text("utf-8") == filled
    assert "manual-new-2.csv" in written.lines[-1]
    new.replace(path)
    assert write(marked, *others).marks[("anna", "q4")] == Mark(0.5)
    assert sorted(x.name for x in marked.glob("manual*")) == ["manual.csv"]


# Reports are written, whatever is in them.

EVIL = "\ud800 \x1b[31m\u202e\0 <script>"


def test_no_text_of_a_student_keeps_the_reports_back(tmp_path):
    one = graded("anna", name="\udcfc\x1b\n.ipynb")
    one.result.cells = [runner.CellResult(1, EVIL, error=EVIL, printed=EVIL)]
    one.result.problem = EVIL
    one.result.questions[0].tests[0].message = EVIL
    other = graded("bert")
    one = Graded(one.submission, batch.fit(one.result), one.answers, True)
    assert write(tmp_path, one, other).lines == []
    names = ["grades.csv", "summary.html", "manual.csv"]
    names += [f"students/{x}/{y}" for x in ("anna", "bert") for y in ("feedback.html",)]
    for name in names:
        text = (tmp_path / name).read_text("utf-8")
        assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]|<script>a", text), name
    assert r"\ud800 \x1b[31m" in (home(tmp_path, "anna") / "feedback.html").read_text()
    assert list(rows(tmp_path / "grades.csv")) == ["anna", "bert"]


@pytest.mark.parametrize("name", ["results.json", "feedback.html"])
def test_a_report_that_cant_be_written_keeps_no_other_back(tmp_path, name):
    (home(tmp_path, "anna") / name).mkdir(parents=True)
    written = write(tmp_path, graded("anna"), graded("bert"))
    (line,) = written.lines
    assert line.startswith("anna: ") and f"{name}: can't be written (Is a dir" in line
    assert (home(tmp_path, "bert") / "feedback.html").exists()
    assert (
        f"{name} can't be written" in rows(tmp_path / "grades.csv")["anna"]["problem"]
    )
    assert f"{name} can&#39;t be written" in (tmp_path / "summary.html").read_text()


def test_a_page_that_raises_keeps_no_other_back(tmp_path, monkeypatch):
    honest = pages.feedback

    def feedback(one, *more):
        return 1 / 0 if one.submission.student == "anna" else honest(one, *more)

    monkeypatch.setattr(pages, "feedback", feedback)
    (line,) = write(tmp_path, graded("anna"), graded("bert")).lines
    assert "ZeroDivisionError" in line
    assert (home(tmp_path, "bert") / "feedback.html").exists()


# What a student is told of hidden checks.


@pytest.mark.parametrize(
    "kinds, said, not_said",
    [
        (("slow",), "too long on other inputs (at most 30 s)", "sizes, signs"),
        (("lost",), "did not survive", "sizes, signs"),
        (("slow", "lost"), "did not survive", "too long"),
        (("slow", "wrong"), "sizes, signs, limits and types", "too long"),
        (("wrong",), "sizes, signs, limits and types", "survive"),
    ],
)
def test_students_are_told_of_what_kind_a_failure_is(kinds, said, not_said):
    one, limit = graded("anna"), "at most 30 s"
    question = one.result.questions[0]
    hidden = next(test for test in question.tests if test.hidden)
    question.tests = [test for test in question.tests if not test.hidden]
    for test in question.tests:
        test.passed = True
    question.tests += [
        runner.TestResult(
            "t", True, hidden.points, False, "9 s", kind=kind, limit=limit
        )
        for kind in kinds
    ]
    page = pages.feedback(one, class_factory.mini(), {})
    assert said in page and not_said not in page
    assert "9 s" not in page
    question.tests[0].passed = False
    page = pages.feedback(one, class_factory.mini(), {})
    assert said not in page


# A second run.


def test_a_second_run_grades_only_what_changed(handed_in, capsys):
    assert class_factory.grade(handed_in) == 0
    capsys.readouterr()
    assert class_factory.grade(handed_in) == 0
    assert "3 graded before, 0 to grade" in capsys.readouterr().err
    wrong = handed_in / "in" / "wrong_mini.ipynb"
    wrong.write_text(class_factory.HONEST["correct"].text)
    (handed_in / "in" / "empty_mini.ipynb").unlink()
    assert class_factory.grade(handed_in) == 0
    said = capsys.readouterr().err
    assert "[1/1] wrong: 8 points" in said
    assert "empty: no longer there" in said
    assert not home(handed_in / "out", "empty").exists()
    assert class_factory.grade(handed_in, "--seed=another secret") == 0
    assert "0 graded before, 2 to grade" in capsys.readouterr().err


def test_a_second_file_takes_nobodys_name_or_mark(tmp_path):
    folder, case = tmp_path / "in", class_factory.HONEST
    class_factory.write_all(folder, {"correct": case["correct"]})
    class_factory.grade(tmp_path)
    fill(tmp_path / "out", "correct", "1.5")
    class_factory.grade(tmp_path)
    late = folder / "correct" / "late.ipynb"
    late.parent.mkdir()
    late.write_text(case["empty"].text)
    assert class_factory.grade(tmp_path) == 0
    found = rows(tmp_path / "out" / "grades.csv")
    assert found["correct"]["score"] == "9.5"
    assert "correct - late" in found


def test_marks_given_by_hand_count_on_the_next_run(handed_in, capsys):
    file = handed_in / "in" / "correct_mini.ipynb"
    text = file.read_text().replace(PLACEHOLDER, "Because it overflows.")
    file.write_text(text)
    class_factory.grade(handed_in)
    path = handed_in / "out" / "manual.csv"
    write_marks(path, "correct,q4,1.5,well put\n")
    assert class_factory.grade(handed_in) == 0
    found = rows(handed_in / "out" / "grades.csv")
    assert found["correct"]["score"] == "9.5"
    assert found["correct"]["complete"] == "yes"
    assert found["wrong"]["complete"] == "no"
    page = (home(handed_in / "out", "correct") / "feedback.html").read_text()
    assert "well put" in page
    assert "9.5 of 10 points." in page
    results = (home(handed_in / "out", "correct") / "results.json").read_text()
    assert json.loads(results)["score"] == 9.5
    assert "well put" in path.read_text("utf-8-sig")
    assert "Because it overflows." in path.read_text("utf-8-sig")
    write_marks(path, "correct,q4,1.5,well put\nnobody,q4,1,\n")
    capsys.readouterr()
    assert class_factory.grade(handed_in) == 0
    assert "line 3, nobody, q4: 1 points, and there is no" in capsys.readouterr().err


def test_broken_marks_stop_the_run_before_anything_is_lost(handed_in, capsys):
    class_factory.grade(handed_in)
    before = (handed_in / "out" / "grades.csv").read_text()
    path = handed_in / "out" / "manual.csv"
    write_marks(path, "correct,q4,many,\n")
    assert class_factory.grade(handed_in) == 1
    assert "'many' is no number" in capsys.readouterr().err
    assert path.read_text().endswith("correct,q4,many,\n")
    assert (handed_in / "out" / "grades.csv").read_text() == before


def test_hostile_names_and_files_harm_no_neighbour(tmp_path, capsys):
    folder = tmp_path / "in"
    folder.mkdir()
    text = class_factory.HONEST["correct"].text
    names = ["grades.csv", "summary.html", "manual.csv", "seed.txt", "graded.json"]
    names += [
        "a\n[9] bert: 8 points, 1.0 s",
        "\x1b[2Jclear",
        "m\udcfcller",
        "é" * 122,
    ]
    for name in names:
        (folder / f"{name}.ipynb").write_text("nothing")
    (folder / "bert.ipynb").write_text(text)
    os.mkfifo(folder / "pipe.ipynb")
    half = class_factory.case("raise ValueError('\\ud800')").text
    (folder / "half.ipynb").write_text(half)
    assert class_factory.grade(tmp_path) == 0
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert len([line for line in said.splitlines() if line.startswith("[")]) == 2
    found = rows(tmp_path / "out" / "grades.csv")
    assert len(found) == len(names) + 3
    assert (found["bert"]["score"], found["half"]["score"]) == ("8", "4")
    assert found["pipe"]["problem"] == "this is no ordinary file"


DAMAGE = {
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "deep": lambda path: path.write_text("[" * 10**5),
    "a text as points": lambda path: path.write_text(
        re.sub(r'"score": [\d.]+', '"score": "8"', path.read_text())
    ),
    "more points": lambda path: path.write_text(
        re.sub(r'"score": [\d.]+', '"score": 100.0', path.read_text())
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_result_is_graded_again(tmp_path, damage, capsys):
    cases = {"correct": class_factory.HONEST["correct"]}
    class_factory.write_all(tmp_path / "in", cases)
    class_factory.grade(tmp_path)
    DAMAGE[damage](home(tmp_path / "out", "correct") / "graded.json")
    assert class_factory.grade(tmp_path) == 0
    assert rows(tmp_path / "out" / "grades.csv")["correct"]["score"] == "8"
    in_the_way = "the result can't be kept" in capsys.readouterr().err
    assert in_the_way == (damage == "a folder")
