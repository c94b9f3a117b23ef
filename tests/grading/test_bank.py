"""The bank: a list of the questions of all masters."""

from grading import cli
from grading.author import bank, masters
from tools.model import chapters
from tools.model.chapters import ROOT

PATHS = masters.master_paths()


def test_the_bank_lists_all_questions(capsys):
    assert cli.main(["bank"]) == 0
    lines = capsys.readouterr().out.splitlines()
    count = sum(len(masters.questions(path)) for path in PATHS)
    assert len(lines) == count + 1
    line = next(one for one in lines if one.startswith("2.q4 "))
    for part in ("pad to a few sizes", " 7 ", " 17 ", " 6 ", "by checks"):
        assert part in line
    assert "core" in line


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
