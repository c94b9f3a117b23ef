"""The page to mark on: a question, its rubric and model answer, and all answers to it.

It is served to this machine alone, at an address that nobody else knows, and writes
what is entered into the table of marks at once.
"""

from __future__ import annotations

import collections
import http.server
import json
import secrets
import threading
from pathlib import Path
from urllib.parse import urlsplit

from markdown_it import MarkdownIt

from grading import figures, submissions, written
from grading.assignment import ANSWER_MARK, Assignment
from grading.reports import marks, pages
from grading.reports.marks import Mark
from grading.submissions import Submission
from tools.model import files
from tools.model.errors import UserError

LARGEST = 2**16  # bytes of what the page sends
MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


class Marking:
    """The answers to an assignment, and the marks for them in the folder of results.

    Raises:
        UserError: no question is graded by hand, or the table is broken.
    """

    def __init__(
        self,
        handed_in: list[Submission],
        assignment: Assignment,
        out: Path,
        anonymous: bool = False,
    ) -> None:
        self.assignment, self.anonymous = assignment, anonymous
        self.path = out / marks.FILE
        self.questions = {one.name: one for one in assignment.questions if one.manual}
        if not self.questions:
            raise UserError(
                f"{assignment.name}: no question is graded by hand, so there is "
                "nothing to mark."
            )
        self.answers: marks.Answers = {}
        self.figures: dict[str, dict[str, list[str]]] = {}
        for file in handed_in:
            content = submissions.read(file.path, assignment)
            if not content.problem:
                self.answers[file.student] = content.answers
                self.figures[file.student] = figures.read(file, assignment)
        self.ids = marks.ids(self.answers)
        self.lock = threading.Lock()
        self._marks()  # if the table is broken, say so before

    def _marks(self) -> tuple[marks.Marks, list[str]]:
        """The marks in the table, which a spreadsheet may have changed meanwhile."""
        return marks.current(marks.read(self.path, self.assignment), self.answers)

    def page(self, name: str) -> str:
        """The page of a question; its answers stand in the order of their words."""
        given, lines = self._marks()
        question = self.questions[name]
        cards, empty = [], []
        for student, answered in self.answers.items():
            answer, mark = answered[name], given.get((student, name), Mark())
            if answer.strip() or mark.given:
                identity = marks.answer_id(student, name, answer)
                shown = self.figures[student][name]
                cards.append((student, answer, identity, mark, shown))
            else:
                empty.append(student)
        cards.sort(key=lambda card: (card[1].split(), card[2]))
        return pages.TEMPLATES.get_template("marking.html").render(
            title=self.assignment.title,
            question=question,
            questions=[(q, self._left(q.name, given)) for q in self.questions.values()],
            text=MARKDOWN.render(question_text(self.assignment, name)),
            model=MARKDOWN.render(model_answer(self.assignment, name)),
            cards=cards,
            equal=collections.Counter(" ".join(card[1].split()) for card in cards),
            empty=empty,
            lines=lines,
            anonymous=self.anonymous,
            nonce=secrets.token_urlsafe(16),
        )

    def _left(self, name: str, given: marks.Marks) -> int:
        """How many answers to a question wait for a mark."""
        return sum(
            bool(answered[name].strip())
            and given.get((student, name), Mark()).points is None
            for student, answered in self.answers.items()
        )

    def enter(self, data: dict) -> dict:
        """Write a mark into the table: answer_id, and points and comment as typed.

        Returns:
            How many answers to the question are left.

        Raises:
            UserError: there is no such answer, or it can't have these points.
            OSError: the table can't be written.
        """
        names = ("answer_id", "points", "comment")
        identity, points, comment = (str(data.get(name, "")) for name in names)
        if identity not in self.ids:
            raise UserError("there is no such answer. Fix: load the page again.")
        student, question = self.ids[identity]
        most = self.questions[question].points
        with self.lock:
            given, _ = self._marks()
            given[student, question] = Mark(
                marks.parse_points("this answer", points.strip(), most),
                comment.strip(),
                identity,
                given.get((student, question), Mark()).before,
            )
            table = marks.dumps(self.assignment, self.answers, given)
            files.write_text(self.path, table)
        return {"left": self._left(question, given)}


def question_text(assignment: Assignment, name: str) -> str:
    """What a question says to students, down to the place for the answer."""
    cells = [(cell.cell_type, cell.source) for cell in assignment.student.cells]
    texts = [
        cells[index][1]
        for index, question, _ in written.sections(cells, assignment)
        if question == name and cells[index][0] == "markdown"
    ]
    return ANSWER_MARK.split("\n\n".join(texts))[0]


def model_answer(assignment: Assignment, name: str) -> str:
    """What the master's solution answers to a question."""
    cells = [(cell.cell_type, cell.source) for cell in assignment.solution.cells]
    return written.answers(cells, assignment)[name]


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers this machine's browser, if it knows the address."""

    marking: Marking
    token: str

    def do_GET(self) -> None:
        """A question's page; the first one's at the bare address."""
        path = self._path()
        name = next(iter(self.marking.questions)) if path == "" else path
        if name not in self.marking.questions:
            return self._send(404, "text/plain", "not found")
        try:
            return self._send(200, "text/html", self.marking.page(name))
        except (UserError, OSError) as error:
            return self._send(500, "text/plain", str(error))

    def do_POST(self) -> None:
        """A mark."""
        try:
            length = int(self.headers.get("Content-Length", 0))
            if self._path() != "enter" or not 0 < length <= LARGEST:
                return self._send(404, "text/plain", "not found")
            data = dict(json.loads(self.rfile.read(length)))
            status, answer = 200, self.marking.enter(data)
        except (UserError, OSError, ValueError, TypeError) as error:
            status, answer = 409, {"error": str(error)}
        return self._send(status, "application/json", json.dumps(answer))

    def _path(self) -> str | None:
        """What stands behind the secret part of the address; None without it."""
        host, port = self.server.server_address[:2]
        start = f"/{self.token}/"
        path = urlsplit(self.path).path
        # Another site's page can't know the token, and its name is not this host's.
        if self.headers.get("Host") != f"{host}:{port}" or not path.startswith(start):
            return None
        return path.removeprefix(start)

    def _send(self, status: int, kind: str, body: str) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments) -> None:
        """Say nothing of each request."""


def server(marking: Marking) -> tuple[http.server.ThreadingHTTPServer, str]:
    """A server for this machine alone, and its address."""
    token = secrets.token_urlsafe(16)
    handler = type("Handler", (_Handler,), {"marking": marking, "token": token})
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    return made, f"http://127.0.0.1:{made.server_address[1]}/{token}/"
