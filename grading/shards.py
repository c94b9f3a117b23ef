"""A part of a folder of submissions: what one machine of several grades."""

from __future__ import annotations

import dataclasses
import hashlib
import re

from grading.submissions import Submission
from tools.model.errors import UserError

FORM = re.compile(r"(?P<number>[0-9]{1,6})/(?P<count>[0-9]{1,6})")


@dataclasses.dataclass(frozen=True)
class Shard:
    """A part of the submissions: number 2 of 8."""

    number: int  # from 1
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def holds(self, place: str) -> bool:
        """Whether a file belongs to this part: by its place, so on all machines alike.

        Args:
            place: the file's path below the folder of submissions.
        """
        digest = hashlib.sha256(place.encode(errors="surrogateescape")).digest()
        return int.from_bytes(digest[:8]) % self.count == self.number - 1

    def of(self, found: list[Submission]) -> list[Submission]:
        """The submissions of this part, in their order."""
        return [one for one in found if self.holds(one.place)]


def parse(given: str) -> Shard:
    """The part that a text such as `2/8` names.

    Raises:
        UserError: it names none.
    """
    match = FORM.fullmatch(given)
    shard = Shard(*map(int, match.groups())) if match else Shard(0, 0)
    if not 1 <= shard.number <= shard.count:
        raise UserError(
            f"--shard {given}: names no part. Fix: write the part's number and how "
            "many there are, such as 2/8; the first of eight is 1/8."
        )
    return shard
