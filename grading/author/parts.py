'''Takes a master apart: what the student gets, what is solved, and the tests.

Raw cells begin and end its parts:

    # BEGIN QUESTION, # END QUESTION    its keys stand in the cell, its text follows
    # BEGIN SOLUTION, # END SOLUTION    code, or the text of an answer to mark by hand
    # BEGIN TESTS, # END TESTS          a code cell for each test

Marks in the code of a solution say what the student gets in its place:

    # BEGIN SOLUTION                `...` for all lines up to `# END SOLUTION`
    # BEGIN SOLUTION NO PROMPT      nothing for them
    """ # BEGIN PROMPT              the lines up to `""" # END PROMPT`
    name = value  # SOLUTION        `name = ...`; with NO PROMPT, nothing
'''

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import yaml

from grading.assignment import PLACEHOLDER, Question, Test
from grading.author import about
from tools.model.errors import UserError

ANSWER = "<!-- answer: {question} -->"
NOWHERE, QUESTION, SOLUTION, TESTS = "no part", "a question", "a solution", "tests"
# Which part the cells below a mark belong to, by the part that it stands in.
NEXT = {
    (NOWHERE, about.BEGIN): QUESTION,
    (QUESTION, "# BEGIN SOLUTION"): SOLUTION,
    (QUESTION, "# BEGIN TESTS"): TESTS,
    (SOLUTION, "# END SOLUTION"): QUESTION,
    (TESTS, "# END TESTS"): QUESTION,
    (QUESTION, "# END QUESTION"): NOWHERE,
}
TEST = re.compile(
    r'(?s)""" # BEGIN TEST CONFIG\n(?P<config>.*?)\n""" # END TEST CONFIG\n+'
    r"(?P<source>def (?P<name>\w+)\(.*)"
)
MARK = re.compile(
    r"(?P<indent> *)(?P<code>.*?) *"
    r"# ?(?P<step>BEGIN |END )?(?P<kind>SOLUTION|PROMPT)(?P<nothing> NO PROMPT)? *"
)
ASSIGNED = re.compile(r"[^=(<>!]+= ")  # the start of an assignment


class Parts:
    """A master's cells for the student, the solved ones, and each question's tests.

    Raises:
        UserError: a mark of the master, or a test, is not what it must be.
    """

    def __init__(
        self, path: Path, master: nbformat.NotebookNode, questions: list[Question]
    ) -> None:
        self.path = path
        self.student: list[nbformat.NotebookNode] = []
        self.solution: list[nbformat.NotebookNode] = []
        self.tests: dict[str, list[Test]] = {}
        coming, question, part = iter(questions), None, NOWHERE
        for cell in master.cells:
            text = cell.source
            if cell.cell_type == "raw":
                part = self._next(part, text.partition("\n")[0].strip())
                if part == SOLUTION:
                    start = len(self.student), len(self.solution)
                elif text.startswith(about.BEGIN):
                    question = next(coming, None)
                elif part == NOWHERE:
                    self._add_check(question)
            elif part == TESTS:
                self.tests.setdefault(question.name, []).append(self._test(text))
            elif part != SOLUTION:
                self._add(cell.cell_type, text, text)
            elif cell.cell_type == "code":
                self._add("code", *self._sides(text))
            else:
                self._add_answer(question, text, start)
        if part != NOWHERE:
            raise UserError(f"{path}: {part} has no end. Fix: write its END mark.")

    def _next(self, part: str, mark: str) -> str:
        """The part that a mark leads to."""
        if (part, mark) not in NEXT:
            fits = " or ".join(f"`{fit}`" for inside, fit in NEXT if inside == part)
            raise UserError(
                f"{self.path}: a raw cell `{mark}` stands inside of {part}. "
                f"Fix: write {fits} before it, or take it out."
            )
        return NEXT[part, mark]

    def _add(self, kind: str, student: str, solution: str) -> None:
        """Add a cell to both notebooks; where its text is empty, none."""
        new = getattr(nbformat.v4, f"new_{kind}_cell")
        for cells, text in ((self.student, student), (self.solution, solution)):
            if text.strip():
                cells.append(new(text.strip()))

    def _add_check(self, question: Question) -> None:
        """Add the cell in which the student checks a question, if that is possible."""
        if any(not test.hidden for test in self.tests.get(question.name, [])):
            check = f'check("{question.name}")'
            self._add("code", check, check)

    def _add_answer(self, question: Question, text: str, start: tuple) -> None:
        """Add a written answer; one place for it stands where the solution starts."""
        place = f"{ANSWER.format(question=question.name)}\n{PLACEHOLDER}"
        if question.manual and place not in [cell.source for cell in self.student]:
            self.student.insert(start[0], nbformat.v4.new_markdown_cell(place))
            self.solution.insert(start[1], nbformat.v4.new_markdown_cell(place))
        self._add("markdown", "", text)

    def _test(self, text: str) -> Test:
        """The test of a cell."""
        found = TEST.fullmatch(text)
        try:
            config = yaml.safe_load(found["config"])
            hidden = config.get("hidden", False)
            test = Test(found["name"], float(config["points"]), hidden, found["source"])
        except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError):
            raise UserError(
                f"{self.path}: no test: {text[:80]!r}. "
                "Fix: see CONTRIBUTING.md, A day: an assignment."
            ) from None
        if not hidden and "\nclass " in test.source:
            raise UserError(
                f"{self.path}: a class stands below the public test {test.name}. "
                "Fix: put it below a hidden one, which sees it."
            )
        return test

    def _sides(self, source: str) -> tuple[str, str]:
        """The code of a solution as the student gets it, and as it is solved."""
        student: list[str] = []
        solved: list[str] = []
        sides, inside = [student, solved], ""
        for line in source.split("\n"):
            found = MARK.fullmatch(line)
            if not found:
                for side in sides:
                    side.append(line)
                continue
            step, kind, indent = found["step"], found["kind"], found["indent"]
            if inside != (kind if step == "END " else ""):
                raise UserError(
                    f"{self.path}: the line {line.strip()!r} does not belong where it "
                    f"stands, in the cell that starts with {source[:40]!r}. "
                    "Fix: write BEGIN and END around lines of one kind."
                )
            if step == "END ":
                sides, inside = [student, solved], ""
            elif step == "BEGIN " and kind == "PROMPT":
                sides, inside = [student], kind
            else:
                name = ASSIGNED.match(found["code"])
                if not found["nothing"]:
                    student.append(f"{indent}{name[0] if name else ''}...")
                if step == "BEGIN ":
                    sides, inside = [solved], kind
                else:
                    solved.append(indent + found["code"])
        if inside:
            raise UserError(
                f"{self.path}: a {inside} has no END, in the cell that starts with "
                f"{source[:40]!r}. Fix: write `# END {inside}`."
            )
        return "\n".join(student), "\n".join(solved)
