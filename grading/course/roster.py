"""Who is who: the people of a course, and whose each file is."""

from __future__ import annotations

import collections
import dataclasses
import re
import unicodedata
from pathlib import Path

from grading import text
from grading.course import decisions
from grading.reports import table
from grading.submissions import ENDING, Submission
from tools.model.errors import UserError

COLUMNS = ("number", "name", "mail")
MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[^\W_]+)+")
WORD = re.compile(r"[^\W_]+")


@dataclasses.dataclass(frozen=True)
class Person:
    """Somebody who takes the course."""

    number: str
    name: str
    mail: str

    def __str__(self) -> str:
        return " ".join(filter(None, (self.number, self.name, self.mail)))


@dataclasses.dataclass(frozen=True)
class Whose:
    """Whose the files are."""

    people: dict[str, Person]  # by the file's place
    lines: dict[str, str]  # for the terminal: why a file is nobody's, by its place


def read(path: Path) -> list[Person]:
    """The people of a course; other columns than number, name and mail are ignored.

    Raises:
        UserError: the table is broken, or two people have one number or one mail.
    """
    if not path.exists():
        raise UserError(f"{path}: no such file. Fix: see --roster.")
    found = table.read(path)
    columns = {name.casefold(): name for name in found.names}
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise UserError(
            f"{path}, line 1: no column {', '.join(missing)}. "
            "Fix: the first line names the columns number, name and mail."
        )
    seen: dict[tuple[str, str], int] = {}
    people = []
    for row in found.rows:
        values = [table.typed(row.fields[columns[name]]).strip() for name in COLUMNS]
        one = Person(*map(text.one_line, values))
        for column in ("number", "mail"):
            value = getattr(one, column)
            first = seen.setdefault((column, value.casefold()), row.line)
            if value and first != row.line:
                raise UserError(
                    f"{path}, line {row.line}: the {column} {value} stands in line "
                    f"{first}, too. Fix: one line for each person."
                )
        if any(values):
            people.append(one)
    if not people:
        raise UserError(f"{path}: nobody is in it. Fix: a line for each person.")
    return people


def match(found: list[Submission], people: list[Person], assignment: str) -> Whose:
    """Whose each file is, by its name and those of the folders around it.

    The number or the mail (or its part before the @) stands there as a whole word, or
    the name, in either order. If that fits nobody, or not one person alone, the file
    is nobody's: nothing is guessed.

    Args:
        found: the submissions.
        people: all that are in the course.
        assignment: its name, which stands in the names of files and says nothing.
    """
    index = _index(people)
    longest = max(len(key.split()) for kind in index.values() for key in kind)
    own = re.compile(rf"(?i){re.escape(assignment)}")
    whose = Whose({}, {})
    for one in found:
        name = own.sub(" ", re.sub(rf"(?i){re.escape(ENDING)}$", "", one.place))
        fits = _fits(name, index, longest)
        if len(fits) == 1:
            whose.people[one.place] = people[fits.pop()]
            continue
        who = "; ".join(str(people[number]) for number in sorted(fits))
        reason = f"it could be {who}" if fits else "nobody's number, mail or name in it"
        place = text.file_name(one.place)
        quoted = '"{}"'.format(place.replace('"', '""'))
        whose.lines[one.place] = (
            f"{place}: whose is it? {reason}. Fix: a line "
            f"`NUMBER,{decisions.COUNTS},{quoted},REASON` in {decisions.FILE}"
        )
    return whose


Index = dict[str, dict[str, set[int]]]  # by what it is, then by its words


def _index(people: list[Person]) -> Index:
    """The people by what tells them, in words."""
    index: Index = {
        kind: collections.defaultdict(set) for kind in ("number", "mail", "name")
    }
    for number, one in enumerate(people):
        for mail in (one.mail, one.mail.partition("@")[0]):
            index["mail"][flat(mail)].add(number)
        index["number"][flat(one.number)].add(number)
        for name in turned(one.name):
            index["name"][name].add(number)
            index["name"][name.replace(" ", "")].add(number)  # as Canvas writes them
    for kind in index.values():
        kind.pop("", None)
    return index


def _fits(name: str, index: Index, longest: int) -> set[int]:
    """Who can be meant: if several are, those whom all that stands there fits.

    Args:
        name: of a file.
        index: the people.
        longest: the most words that tell one of them.
    """
    found: dict[str, set[int]] = {kind: set() for kind in index}
    for mail in MAIL.findall(name):
        people = index["mail"].get(flat(mail), set())
        found["mail"] |= people
        if people:  # its parts are no names of others
            name = name.replace(mail, " ")
    words = flat(name).split()
    for start in range(len(words)):
        for end in range(start + 1, min(len(words), start + longest) + 1):
            piece = " ".join(words[start:end])
            for kind, known in index.items():
                found[kind] |= known.get(piece, set())
    named = [people for people in found.values() if people]
    everybody = set().union(*named)
    agreed = everybody.intersection(*named)
    return agreed if len(agreed) == 1 else everybody


def turned(name: str) -> list[str]:
    """A name in each order in which lists may have it, without case and accents."""
    words = flat(name).split()
    return [" ".join(words[start:] + words[:start]) for start in range(len(words))]


def flat(name: str) -> str:
    """A text of which only the words count, without case and accents."""
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(one for one in plain if not unicodedata.combining(one))
    return " ".join(WORD.findall(plain.casefold()))
