"""What being late costs, by a rule that is stated beforehand."""

from __future__ import annotations

import dataclasses
import datetime
import re

from grading.course import decisions
from tools.model.errors import UserError

DAY = datetime.timedelta(days=1)
PRICE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?% ?/ ?day")


@dataclasses.dataclass(frozen=True)
class Rule:
    """When an assignment is due, and what being late costs."""

    deadline: datetime.datetime | None = None
    percent: float = 0.0  # of the points earned, for each day begun
    most: int | None = None  # days, after which nothing counts

    def __str__(self) -> str:
        if self.deadline is None:
            return ""
        said = f"due {shown(self.deadline)}"
        if self.percent:
            said += f"; each day begun after it costs {self.percent:g} %"
        if self.most is not None:
            said += f", and after {span(self.most * DAY)} nothing counts"
        return said

    def late(self, handed_in: datetime.datetime | None) -> datetime.timedelta:
        """By how much a file is late; by nothing if its time is not known."""
        if self.deadline is None or handed_in is None:
            return datetime.timedelta()
        return max(handed_in - self.deadline, datetime.timedelta())

    def share(self, late: datetime.timedelta, forgiven: int) -> float:
        """What share of the points earned counts.

        Args:
            late: by how much the file is late.
            forgiven: a number of days.
        """
        begun = max(0, -(-late // DAY) - forgiven)
        if not self.percent or not begun:
            return 1.0
        if self.most is not None and begun > self.most:
            return 0.0
        return max(0.0, 1 - begun * self.percent / 100)


def rule(deadline: str | None, late: str | None, most: int | None) -> Rule:
    """The rule that the options state.

    Raises:
        UserError: they state none.
    """
    if deadline is None and (late is not None or most is not None):
        raise UserError("--late needs a --deadline. Fix: name it, or leave both out.")
    if late is None and most is not None:
        raise UserError(
            "--late-days: without --late nothing is taken off. "
            "Fix: name what a day costs, such as --late 10%/day."
        )
    try:
        due = decisions.moment(deadline) if deadline is not None else None
    except ValueError as error:
        raise UserError(f"--deadline: {error}. Fix: write it like that.") from None
    price = PRICE.fullmatch(late) if late is not None else None
    percent = float(price[1]) if price else 0.0
    if late is not None and not 0 < percent <= 100:
        raise UserError(f"--late {late}: no such rule. Fix: write it as 10%/day.")
    if most is not None and most < 0:
        raise UserError(f"--late-days {most}: at least 0. Fix: a number of days.")
    return Rule(due, percent, most)


def shown(moment: datetime.datetime) -> str:
    """A moment as people write it, in local time."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")


def span(time: datetime.timedelta) -> str:
    """A span as people write it: `1 day 3 h`, `12 min`; begun minutes count."""
    minutes = -(-time // datetime.timedelta(minutes=1))
    days, minutes = divmod(minutes, 24 * 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{days} day{'s' if days > 1 else ''}"] if days else []
    parts += [f"{hours} h"] if hours else []
    parts += [f"{minutes} min"] if minutes else []
    return " ".join(parts[:2])
