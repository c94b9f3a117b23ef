"""Who is who: the people of a course, and whose each file is."""

from __future__ import annotations

import dataclasses
import datetime
import re
import unicodedata
from pathlib import Path

from grading import text
from grading.reports import table
from grading.submissions import ENDING, Person, Submission
from tools.model.errors import UserError

COLUMNS = ("number", "name", "mail")
FILE = "roster.csv"  # the copy that is kept beside the results
WORD = re.compile(r"[^\W_]+")


def read(path: Path) -> list[Person]:
    """The people of a course; other columns than number, name and mail are ignored.

    Raises:
        UserError: the table is broken, or two people have one number or one mail.
    """
    people: list[Person] = []
    taken: set[tuple[str, str]] = set()
    for line, fields in table.read(path, COLUMNS):
        person = Person(*(text.one_line(fields[name].strip()) for name in COLUMNS))
        for column in ("number", "mail"):
            value = getattr(person, column)
            if value and (column, value.casefold()) in taken:
                raise UserError(
                    f"{path}, line {line}: the {column} {value} stands in an earlier "
                    "line, too. Fix: one line for each person."
                )
            taken.add((column, value.casefold()))
        people.append(person)
    if not people:
        raise UserError(f"{path}: nobody is in it. Fix: a line for each person.")
    return people


def settle(
    submissions: list[Submission], people: list[Person] | None, assignment: str
) -> tuple[list[Submission], list[str]]:
    """Whose each file is, and which one counts of several of a person, before grading.

    Two files are one person's by the roster; without one, if they lie in one folder
    that is not that of all. The latest counts, by its time of modification, among those
    that can be read. Where two have that time, none does: nothing is guessed.

    Args:
        submissions: the files.
        people: all that are in the course, if there is a roster.
        assignment: its name, which stands in the names of files and says nothing.

    Returns:
        The files with what was settled, and a line for each that is nobody's or does
        not count.
    """
    whose, lines = match(submissions, people, assignment) if people else ({}, [])
    theirs: dict[object, list[Submission]] = {}
    for file in submissions:
        folder = str(Path(file.place).parent)
        alone = people is not None or folder == "."
        key = whose.get(file.place) or (file.place if alone else folder)
        theirs.setdefault(key, []).append(file)
    settled = {}
    for several in theirs.values():
        times = {one: _when(one) for one in several}
        latest = max(times.values())
        last = [one for one in several if times[one] == latest]
        for one in several:
            reason = ""
            if len(last) > 1:
                names = ", ".join(text.file_name(file.place) for file in last)
                reason = f"which counts? {names} have one time. Fix: remove all but one"
            elif one is not last[0]:
                name = text.file_name(last[0].place)
                reason = f"does not count: {name} is later ({_words(latest)})"
                reason += f" than this ({_words(times[one])})"
            if reason:
                lines.append(f"{text.file_name(one.place)}: {reason}")
            person = whose.get(one.place)
            settled[one] = dataclasses.replace(one, person=person, instead=reason)
    return [settled[one] for one in submissions], lines


def _when(file: Submission) -> tuple[bool, int]:
    """What tells which of a person's files counts: the highest."""
    try:
        return not file.problem, int(file.path.lstat().st_mtime)
    except OSError:
        return False, 0


def _words(when: tuple[bool, int]) -> str:
    """A time for people to read."""
    return f"{datetime.datetime.fromtimestamp(when[1]):%Y-%m-%d %H:%M:%S}"


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
    keys = {person: _keys(person) for person in people}
    whose: dict[str, Person] = {}
    lines = []
    for file in submissions:
        name = ENDING.sub("", file.place)
        name = re.sub(rf"(?i){re.escape(assignment)}", " ", name)
        people_meant = _fits(f" {flat(name)} ", keys)
        if len(people_meant) == 1:
            whose[file.place] = people_meant.pop()
            continue
        who = "; ".join(sorted(map(str, people_meant)))
        reason = f"it could be {who}" if who else "it names nobody of the roster"
        lines.append(
            f"{text.file_name(file.place)}: whose is it? {reason}. Fix: write the "
            "person's number into the name of the file, or of its folder"
        )
    return whose, lines


def _keys(person: Person) -> list[set[str]]:
    """What tells a person: by number, by mail and by name, each in a space's frame."""
    words = flat(person.name).split()
    orders = [words[start:] + words[:start] for start in range(len(words))]
    names = {glue.join(order) for order in orders for glue in (" ", "")}  # "": Canvas
    login = flat(person.mail.partition("@")[0])
    mails = {flat(person.mail)} | ({login} - set(words))  # a first name alone is none
    kinds = ({flat(person.number)}, mails, names)
    return [{f" {key} " for key in kind if key} for kind in kinds]


def _fits(name: str, keys: dict[Person, list[set[str]]]) -> set[Person]:
    """Who can be meant: of several, the one whom all that stands there fits."""
    named = []
    for kind in range(3):
        people = {
            person
            for person, own in keys.items()
            if any(key in name for key in own[kind])
        }
        named += [people] if people else []
    everybody = set().union(*named)
    agreed = everybody.intersection(*named)
    return agreed if len(agreed) == 1 else everybody


def flat(name: str) -> str:
    """A text of which only the words count, without case and accents."""
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(sign for sign in plain if not unicodedata.combining(sign))
    return " ".join(WORD.findall(plain.casefold()))
