"""Who is who: the people of a course, and whose each file is."""

from __future__ import annotations

import collections
import dataclasses
import re
import unicodedata
from pathlib import Path

from grading import text
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


def read(path: Path) -> list[Person]:
    """The people of a course; other columns than number, name and mail are ignored.

    Raises:
        UserError: the table is broken, or two people have one number or one mail.
    """
    people: list[Person] = []
    lines: dict[tuple[str, str], int] = {}
    for row in table.read(path, COLUMNS):
        values = [text.one_line(row.fields[name].strip()) for name in COLUMNS]
        person = Person(*values)
        for column in ("number", "mail"):
            value = getattr(person, column)
            first = lines.setdefault((column, value.casefold()), row.line)
            if value and first != row.line:
                raise UserError(
                    f"{path}, line {row.line}: the {column} {value} stands in line "
                    f"{first}, too. Fix: one line for each person."
                )
        if any(values):
            people.append(person)
    if not people:
        raise UserError(f"{path}: nobody is in it. Fix: a line for each person.")
    return people


def match(
    submissions: list[Submission], people: list[Person], assignment: str
) -> tuple[dict[str, Person], list[str]]:
    """Whose each file is, by its name and those of the folders around it.

    The number, the mail (or its part before the @) or the name stands there as whole
    words; the order of names, case and accents do not count. If that fits nobody, or
    not one person alone, the file is nobody's: nothing is guessed.

    Args:
        submissions: the files.
        people: all that are in the course.
        assignment: its name, which stands in the names of files and says nothing.

    Returns:
        The people by the file's place, and a line for each file that is nobody's.
    """
    index = _index(people)
    whose: dict[str, Person] = {}
    lines = []
    for file in submissions:
        name = re.sub(rf"(?i){re.escape(ENDING)}$", "", file.place)
        name = re.sub(rf"(?i){re.escape(assignment)}", " ", name)
        fits = _fits(name, index)
        if len(fits) == 1:
            whose[file.place] = people[fits.pop()]
            continue
        who = "; ".join(str(people[number]) for number in sorted(fits))
        reason = f"it could be {who}" if fits else "it names nobody of the roster"
        lines.append(
            f"{text.file_name(file.place)}: whose is it? {reason}. Fix: write the "
            "person's number into the name of the file, or of its folder"
        )
    return whose, lines


Index = dict[str, dict[str, set[int]]]  # by what it is, then by its words


def _index(people: list[Person]) -> Index:
    """The people by what tells them, in words."""
    kinds = ("number", "mail", "name")
    index: Index = {kind: collections.defaultdict(set) for kind in kinds}
    for position, person in enumerate(people):
        for mail in (person.mail, person.mail.partition("@")[0]):
            index["mail"][flat(mail)].add(position)
        index["number"][flat(person.number)].add(position)
        words = flat(person.name).split()
        for start in range(len(words)):
            name = words[start:] + words[:start]
            index["name"][" ".join(name)].add(position)
            index["name"]["".join(name)].add(position)  # as Canvas writes them
    for kind in index.values():
        kind.pop("", None)
    return index


def _fits(name: str, index: Index) -> set[int]:
    """Who can be meant: of several, those whom all that stands there fits."""
    fits: dict[str, set[int]] = {kind: set() for kind in index}
    for mail in MAIL.findall(name):
        people = index["mail"].get(flat(mail), set())
        fits["mail"] |= people
        if people:  # its parts are no names of others
            name = name.replace(mail, " ")
    longest = max(len(key.split()) for kind in index.values() for key in kind)
    words = flat(name).split()
    for start in range(len(words)):
        for end in range(start + 1, min(len(words), start + longest) + 1):
            piece = " ".join(words[start:end])
            for kind, known in index.items():
                fits[kind] |= known.get(piece, set())
    named = [people for people in fits.values() if people]
    everybody = set().union(*named)
    agreed = everybody.intersection(*named)
    return agreed if len(agreed) == 1 else everybody


def flat(name: str) -> str:
    """A text of which only the words count, without case and accents."""
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(sign for sign in plain if not unicodedata.combining(sign))
    return " ".join(WORD.findall(plain.casefold()))
