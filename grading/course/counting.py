"""What counts of what was handed in: whose it is, how late, what was decided."""

from __future__ import annotations

import dataclasses
import datetime
import stat
from pathlib import PurePath

from grading import text
from grading.assignment import Assignment
from grading.batch import Graded
from grading.course import decisions, lateness, roster
from grading.course.decisions import Decision
from grading.course.lateness import Rule
from grading.course.roster import Person
from grading.course.times import Times
from grading.reports.manual import Key, Mark
from grading.runner import QuestionResult
from grading.submissions import ADDED, ENDING, MAX_LISTED, Submission

Marks = dict[Key, Mark]
NOTHING = "nothing was handed in"
ONE_ZIP = datetime.timedelta(hours=1)  # files nearer in time were perhaps packed so
SEVERAL = 5  # files, from which on that is told


@dataclasses.dataclass(frozen=True)
class Course:
    """What is known around an assignment."""

    people: list[Person] | None = None  # None: there is no roster
    decisions: list[Decision] = dataclasses.field(default_factory=list)
    rule: Rule = dataclasses.field(default_factory=Rule)
    times: Times | None = None  # None: those of the files
    others: list[Submission] = dataclasses.field(default_factory=list)  # no notebooks


@dataclasses.dataclass
class Standing:
    """What counts of a file, or of a person who handed in nothing."""

    graded: Graded | None  # None: nothing was handed in, or no notebook
    other: str = ""  # the place of what was handed in, if it is no notebook
    person: Person | None = None
    handed_in: datetime.datetime | None = None
    late: datetime.timedelta = datetime.timedelta()
    share: float = 1.0  # of the points earned that counts
    counts: bool = True  # of several files of one person one counts
    instead: str = ""  # the place of the file that counts
    given: dict[str, float] = dataclasses.field(default_factory=dict)  # by question
    decided: list[Decision] = dataclasses.field(default_factory=list)
    earned: float = 0.0  # extras and all, so it may be more than there is to get
    capped: float = 0.0  # the same, or the core's points if these are less
    score: float = 0.0  # what counts

    @property
    def student(self) -> str:
        """What the tables call them."""
        if self.graded is not None:
            return self.graded.submission.student
        return self.person.number or self.person.mail or self.person.name

    @property
    def problem(self) -> str:
        """What went wrong with the file, or why there is none."""
        if self.graded is not None:
            return self.graded.result.problem
        return f"no notebook (*{ENDING}), but {self.other}" if self.other else NOTHING

    @property
    def why(self) -> str:
        """The decisions, in one line."""
        return "; ".join(map(str, self.decided))

    def points(self, question: QuestionResult, marks: Marks) -> float | None:
        """The points of a question; None for one that a person has still to grade."""
        if question.name in self.given:
            return self.given[question.name]
        return earned(self.graded, question, marks)


@dataclasses.dataclass
class _Group:
    """The files of one person."""

    person: Person | None
    files: list[Graded]
    other: str = ""  # the place of something that is no notebook
    counts: Graded | None = None  # what a teacher has decided
    # By student: of several files, each has its own.
    times: dict[str, datetime.datetime] = dataclasses.field(default_factory=dict)
    forgiven: int = 0
    score: float | None = None
    given: dict[str, float] = dataclasses.field(default_factory=dict)
    decided: list[Decision] = dataclasses.field(default_factory=list)


def earned(graded: Graded, question: QuestionResult, marks: Marks) -> float | None:
    """The points of a question; None for one that a person has still to grade.

    An extra to which nothing was written needs no mark: it was not chosen.
    """
    if not question.manual:
        return question.score
    mark = marks.get((graded.submission.student, question.name), Mark(None))
    if mark.points is None and question.extra:
        chosen = graded.answers.get(question.name, "").strip()
        return None if chosen else 0.0
    return mark.points


def total(graded: Graded, marks: Marks) -> float:
    """All points that a student has so far, extras and all."""
    questions = graded.result.questions
    return sum(earned(graded, question, marks) or 0.0 for question in questions)


def maximum(assignment: Assignment) -> float:
    """The points of a submission without a fault: the core's. Nobody gets more."""
    return assignment.points


def stand(
    all_graded: list[Graded], assignment: Assignment, marks: Marks, course: Course
) -> tuple[list[Standing], list[str]]:
    """What counts of each file, then those who handed in nothing.

    Args:
        all_graded: the submissions.
        assignment: what they answer.
        marks: given by hand.
        course: the roster, the decisions and the rule for being late.

    Returns:
        The standings, and a line for each file that is nobody's and for each decision
        that does not take effect.
    """
    groups, nobodys = _groups(all_graded, assignment, course)
    undecided = _decide(groups, assignment, course)
    alone = {one.submission.place for g in groups if not g.person for one in g.files}
    lines = [said for place, said in nobodys.items() if place in alone]
    lines += [*undecided, *_others(groups), *_doubtful_times(groups, course)]
    standings: dict[str, Standing] = {}
    absent = []
    for group in groups:
        for one in _standings(group, marks, course, maximum(assignment)):
            if one.graded is None:
                absent.append(one)
            else:
                standings[one.student] = one
    found = [standings[graded.submission.student] for graded in all_graded]
    return found + absent, lines


def _groups(
    all_graded: list[Graded], assignment: Assignment, course: Course
) -> tuple[list[_Group], dict[str, str]]:
    """The files by whose they are; one that is nobody's stands alone.

    Returns:
        The groups, and a line for each file that is nobody's, by its place.
    """
    if course.people is None:
        return [_Group(None, [graded]) for graded in all_graded], {}
    files = [graded.submission for graded in all_graded]
    whose = roster.match(files, course.people, assignment.name)
    groups = {person: _Group(person, []) for person in course.people}
    alone = []
    for graded in all_graded:
        person = whose.people.get(graded.submission.place)
        if person is None:
            alone.append(_Group(None, [graded]))
        else:
            groups[person].files.append(graded)
    theirs = roster.match(course.others, course.people, assignment.name).people
    for place, person in theirs.items():
        groups[person].other = groups[person].other or text.file_name(place)
    return [*groups.values(), *alone], whose.lines


def _others(groups: list[_Group]) -> list[str]:
    """A line for each person who handed in something, and no notebook."""
    return [
        f"{group.person}: no notebook (*{ENDING}), but {group.other}. "
        "Fix: ask for the notebook"
        for group in groups
        if group.other and not group.files
    ]


def _doubtful_times(groups: list[_Group], course: Course) -> list[str]:
    """Lines about times that are perhaps not those of handing in."""
    if course.rule.deadline is None:
        return []
    if course.times is not None:
        several = [
            f"{group.person}: {len(group.files)} files, and one time in "
            f"{course.times.path}. Fix: decide with `{decisions.COUNTS}`, or "
            f"`{decisions.HANDED_IN}` for each"
            for group in groups
            if group.person in course.times.by_person
            and group.counts is None
            and len([one for one in group.files if not one.submission.problem])
            > max(1, len(group.times))
        ]
        untold = [
            str(group.person or text.file_name(group.files[0].submission.place))
            for group in groups
            if group.person not in course.times.by_person
            and any(one.submission.student not in group.times for one in group.files)
        ]
        if untold:
            more = ["..."] if len(untold) > MAX_LISTED else []
            several.append(
                f"{course.times.path}: no time for {len(untold)} who handed in, so "
                f"that of the file counts ({', '.join(untold[:MAX_LISTED] + more)})"
            )
        return [*course.times.lines, *several]
    found = [
        time
        for group in groups
        for one in group.files
        if one.submission.student not in group.times and (time := _time(one))
    ]
    if len(found) < SEVERAL:
        return []
    first, last = min(found), max(found)
    if not course.rule.late(first) and last - first >= ONE_ZIP:
        return []
    when = f"from {lateness.shown(first)} to {lateness.shown(last)}"
    return [
        f"the times of all {len(found)} files are {when}: perhaps when a zip was made "
        f"or unpacked, and not when they were handed in. Fix: --times, or `"
        f"{decisions.HANDED_IN}` in {decisions.FILE}"
    ]


class _Refused(Exception):
    """A decision that does not take effect; says why."""


def _decide(groups: list[_Group], assignment: Assignment, course: Course) -> list[str]:
    """Let the decisions take effect; lines about those that do not."""
    first = [one for one in course.decisions if one.kind == decisions.COUNTS]
    rest = [one for one in course.decisions if one.kind != decisions.COUNTS]
    lines: list[tuple[int, str]] = []
    for some in (first, rest):  # what counts says whose a file is
        meant: dict[tuple, list[tuple[Decision, _Group, Graded | None]]] = {}
        for one in some:
            try:
                group, file = _who(one, groups, course.people is not None)
                key = (id(group), one.kind, _only(one, group, file))
            except _Refused as why:
                lines.append((one.line, f"{_named(one)}: {why}"))
                continue
            meant.setdefault(key, []).append((one, group, file))
        for same in meant.values():
            numbers = " and ".join(str(one.line) for one, _, _ in same)
            for one, group, file in same:
                try:
                    if len(same) > 1:
                        raise _Refused(f"lines {numbers} decide the same")
                    _apply(one, group, file, groups, assignment)
                    group.decided.append(one)
                except (_Refused, ValueError) as why:
                    lines.append((one.line, f"{_named(one)}: {why}"))
    return [
        f"{decisions.FILE}, {said}; it does not take effect"
        for _, said in sorted(lines)
    ]


def _named(one: Decision) -> str:
    return f"line {one.line}, {one.student}, {one.kind or 'no kind'}"


def _who(
    one: Decision, groups: list[_Group], by_roster: bool
) -> tuple[_Group, Graded | None]:
    """Whom a decision means, and which file, if it names one.

    Raises:
        _Refused: it has no reason, or means nobody, or not one alone.
    """
    if not one.reason:
        raise _Refused("a reason is missing")
    found: dict[int, tuple[_Group, Graded | None]] = {}
    for group in groups:
        known = dataclasses.astuple(group.person) if group.person else ()
        if one.student and one.student in known:
            found[id(group)] = (group, None)
        for file in group.files:
            if file.submission.student == one.student:
                found[id(group)] = (group, file)
    if one.kind == decisions.COUNTS and not by_roster:
        return _joined(one, groups), None
    if len(found) != 1:
        several = "several can be meant" if found else "there is no such student"
        raise _Refused(several)
    return next(iter(found.values()))


def _joined(one: Decision, groups: list[_Group]) -> _Group:
    """Without a roster: the files of a student, and those in a folder of that name.

    Raises:
        _Refused: there are none.
    """
    same = [
        group
        for group in groups
        if any(one.student in _called(file) for file in group.files)
    ]
    if not same:
        raise _Refused("there is no such student")
    for other in same[1:]:
        same[0].files += other.files
        groups.remove(other)
    return same[0]


def _called(file: Graded) -> set[str]:
    """The names of a student and of the folder that a file lies in."""
    parts = PurePath(file.submission.place).parts
    folder = {parts[0], ADDED.sub("", parts[0])} if len(parts) > 1 else set()
    return {file.submission.student, *map(text.file_name, folder)}


def _only(one: Decision, group: _Group, file: Graded | None) -> str:
    """Which file a time is decided for; an empty text for another decision.

    Raises:
        _Refused: it is not said, and there is not one alone.
    """
    if one.kind != decisions.HANDED_IN:
        return ""
    if file is None and len(group.files) != 1:
        many = "name the file's student, as in grades.csv" if group.files else NOTHING
        raise _Refused(many)
    return (file or group.files[0]).submission.student


def _apply(
    one: Decision,
    group: _Group,
    file: Graded | None,
    groups: list[_Group],
    assignment: Assignment,
) -> None:
    """Let a decision take effect.

    Raises:
        _Refused, ValueError: it can't; says why.
    """
    if one.kind == decisions.COUNTS:
        group.counts = _file(one.value, group, groups)
    elif one.kind == decisions.HANDED_IN:
        group.times[_only(one, group, file)] = decisions.moment(one.value)
    elif one.kind == decisions.EXTRA_DAYS:
        group.forgiven = decisions.days(one.value)
    elif one.kind == decisions.SCORE:
        group.score = decisions.points(one.value, maximum(assignment))
    else:
        most = {question.name: question.points for question in assignment.questions}
        score, _, name = one.kind.partition(" ")
        if score != decisions.SCORE:
            raise _Refused("the kind is none of counts, handed in, extra days, score")
        if name not in most:
            raise _Refused(f"there is no question {name}")
        group.given[name] = decisions.points(one.value, most[name])


def _file(place: str, group: _Group, groups: list[_Group]) -> Graded:
    """A person's file, or one that was nobody's and now is.

    Raises:
        _Refused: there is no such file.
    """
    for other in groups:
        for file in other.files:
            own = file.submission.place
            if place not in (" ".join(own.split()), text.file_name(own)):
                continue
            if other is not group:
                if other.person is not None or group.person is None:
                    raise _Refused(f"{place} is somebody else's")
                groups.remove(other)
                group.files.append(file)
            return file
    raise _Refused(f"there is no file {place!r}")


def _standings(
    group: _Group, marks: Marks, course: Course, most: float
) -> list[Standing]:
    """What counts of each file of a person; of none, that there is none.

    Args:
        group: the files of the person.
        marks: given by hand.
        course: the rule for being late, which takes its share of what is left below
            the most, and the times.
        most: the core's points, more than which nobody gets.
    """
    rule = course.rule
    if not group.files:
        one = Standing(None, group.other, group.person)
        one.given, one.decided = group.given, group.decided
        one.earned = sum(group.given.values())
        one.capped = min(one.earned, most)
        one.score = one.capped if group.score is None else group.score
        return [one]
    told = course.times.by_person.get(group.person) if course.times else None
    times = {file.submission.student: told or _time(file) for file in group.files}
    times |= group.times
    chosen = group.counts or _latest(group.files, times, rule)
    found = []
    for file in group.files:
        one = Standing(file, person=group.person)
        one.handed_in = times[file.submission.student]
        one.counts = file is chosen
        one.instead = "" if one.counts else text.file_name(chosen.submission.place)
        one.late = rule.late(one.handed_in)
        one.given = group.given if one.counts else {}
        one.decided = group.decided if one.counts else []
        points = [one.points(each, marks) or 0.0 for each in file.result.questions]
        one.earned = sum(points)
        one.capped = min(one.earned, most)
        one.share = rule.share(one.late, group.forgiven)
        one.score = one.capped * one.share
        if group.score is not None and one.counts:
            one.score = group.score
        found.append(one)
    return found


def _time(file: Graded) -> datetime.datetime | None:
    """When a file was handed in: its modification time, if that says so."""
    try:
        found = file.submission.path.lstat()
        if not stat.S_ISREG(found.st_mode):
            return None
        seconds = found.st_mtime
        return datetime.datetime.fromtimestamp(seconds).astimezone()
    except (OSError, ValueError, OverflowError):
        return None


def _latest(files: list[Graded], times: dict, rule: Rule) -> Graded:
    """The file that counts: the latest in time, else the first after the deadline."""
    files = [one for one in files if not one.submission.problem] or files
    never = datetime.datetime.min.replace(tzinfo=datetime.UTC)

    def when(file: Graded) -> tuple[datetime.datetime, str]:
        return times[file.submission.student] or never, file.submission.place

    in_time = [one for one in files if not rule.late(times[one.submission.student])]
    return max(in_time, key=when) if in_time else min(files, key=when)
