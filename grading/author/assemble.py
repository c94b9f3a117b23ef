"""A master of one's own, assembled from questions of other masters.

Each question comes with the cells that belong to it, and with given cells of other
questions whose names it uses. All are renumbered: names, titles, tests and texts.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import jupytext
import nbformat
import yaml

from grading import probe
from grading.assignment import Assignment, Question
from grading.author import about, gates, masters, names, parts, setups
from grading.author.parts import Cells, Part, Parts
from tools.model import address, chapters, files
from tools.model.chapters import ROOT
from tools.model.errors import UserError

# Where a question is named: `q6`, `prediction_q1`, `test_q4_x`, and in texts.
NAMED = re.compile(r"(?<![^\W_])q(?P<number>\d+)(?![^\W_])")
CALLED = re.compile(
    r"\b(?P<word>(?i:question)s?)(?P<gap>\s+)"
    r"(?P<numbers>\d+(?:(?:,| and| or| to|, and)\s+\d+)*)\b"
)
HOW = re.compile(r"(?m)^\*\*How it works\.\*\*.*$")
BACKTICKS = re.compile(r"(?m)^\s*(`{3,})")


class Missing(UserError):
    """A question needs another one, which does not stand above it."""

    def __init__(self, label: str, said: str) -> None:
        super().__init__(said)
        self.label = label  # of the other one


@dataclasses.dataclass(frozen=True)
class Pick:
    """A question that is chosen."""

    master: Parts
    part: Part
    extra: bool
    label: str  # as it was named: 1.q4

    @property
    def name(self) -> str:
        """Its name in its own master."""
        return self.part.question.name


@dataclasses.dataclass(frozen=True)
class Assembled:
    """A new master, and what is known of it."""

    text: str
    questions: list[Question]
    wrong_answers: list[dict]
    left_out: list[str]  # wrong answers that can't be tried, and why


def picks(core: list[str], extras: list[str], root: Path = ROOT) -> list[Pick]:
    """The questions that are named, such as `1.q4` or `course/week3.md.q2`.

    Raises:
        UserError: one is not there, or named twice, or none is in the core.
    """
    if not core:
        raise UserError(
            "no question is in the core. Fix: name some before --extra, such as 1.q4."
        )
    found: list[Pick] = []
    for label in [*core, *extras]:
        source, dot, name = label.rpartition(".")
        if not dot or not source:
            raise UserError(
                f"{label}: not a question's name. Fix: write it as 1.q4; "
                "`python -m grading bank` lists all."
            )
        master = parts.read(masters.find_master(source, root).resolve(), root)
        part = master.part(name)
        if any(part is one.part for one in found):
            raise UserError(f"{label}: named twice. Fix: name it once.")
        found.append(Pick(master, part, len(found) >= len(core), label))
    return found


class _Assembly:
    """A master in the making."""

    def __init__(self, chosen: list[Pick]) -> None:
        self.chosen = chosen
        self.cells: Cells = []
        self.placed: dict[tuple[Part, int], str] = {}  # given cells, and whose they are
        self.imports: dict[tuple[Parts, str], dict[str, None]] = {}
        self.taken: dict[Parts, Cells] = {}  # the cells of each source, as they were
        self.section = ""

    def new_name(self, pick: Pick) -> str:
        """What a question is called in the new master."""
        return f"q{self.chosen.index(pick) + 1}"

    def add(self, pick: Pick) -> Question:
        """Add a question with what it needs; the question as it is now."""
        needed = self._needs(pick, pick.part, pick.part.cells)
        needed |= self._stated(pick)
        for chunk in range(len(pick.part.before)):
            needed |= self._place(pick, pick.part, chunk)
        own = pick.part.own
        question = dataclasses.replace(
            pick.part.question,
            name=self.new_name(pick),
            title=self.renumbered(pick, pick.part.question.title),
            extra=pick.extra,
            needs=tuple(sorted(needed, key=lambda name: int(name[1:]))),
        )
        self._begin_section(pick, pick.part.section)
        begin = nbformat.v4.new_raw_cell(_begin(own[0], question))
        self.taken.setdefault(pick.master, []).extend([*own, *pick.part.after])
        self.cells.append(begin)
        self._write(pick, [*own[1:], *pick.part.after])
        return question

    def _needs(self, pick: Pick, part: Part, cells: Cells) -> set[str]:
        """Bring along what cells of a part need.

        Returns:
            The new names of the questions with which that was placed before.

        Raises:
            UserError: they need an answer to a question that does not stand above.
        """
        found: set[str] = set()
        for need in parts.needs(pick.master, cells, part):
            if need.imported and (not need.process or need.chunk is None):
                lines = self.imports.setdefault((pick.master, need.process), {})
                lines[need.imported] = None
            elif need.chunk is None:
                found.add(self._answered(pick, need.part, f" {need.name} of"))
            else:
                found |= self._place(pick, need.part, need.chunk)
        return found

    def _stated(self, pick: Pick) -> set[str]:
        """The new names of questions that a pick needs, as can't be seen from names.

        Raises:
            UserError: one does not stand above.
        """
        part = pick.part
        seen = {
            need.part.question.name
            for need in parts.needs(pick.master, part.cells, part)
        }
        return {
            self._answered(pick, pick.master.part(name), "")
            for name in part.question.needs
            if name not in seen
        }

    def _answered(self, pick: Pick, part: Part, what: str) -> str:
        """The new name of a question that a pick needs.

        Raises:
            UserError: it does not stand above.
        """
        label = f"{pick.label.rpartition('.')[0]}.{part.question.name}"
        above = self.chosen[: self.chosen.index(pick)]
        for one in above:
            if one.part is part:
                return self.new_name(one)
        said = f"{pick.label}: needs{what} {label}. Fix: name {label} before it."
        raise Missing(label, said)

    def _place(self, pick: Pick, part: Part, chunk: int) -> set[str]:
        """Place given cells, and what they need, unless they are there.

        Returns:
            The new name of the question with which they were placed before.
        """
        if (part, chunk) in self.placed:
            its = self.placed[part, chunk]
            return {its} - {self.new_name(pick)}
        cells = part.before[chunk]
        self.placed[part, chunk] = self.new_name(pick)
        found = self._needs(pick, part, cells)
        self.taken.setdefault(pick.master, []).extend(cells)
        if not parts.heading(cells[0]):
            self._begin_section(pick, part.sections[chunk])
        self._write(pick, cells)
        return found

    def _begin_section(self, pick: Pick, heading: str) -> None:
        """Write the heading that cells of a source stand under, unless it is there."""
        if heading not in ("", self.section):
            self._write(pick, [nbformat.v4.new_markdown_cell(heading)])

    def _write(self, pick: Pick, cells: Cells) -> None:
        """Write cells of a source, renumbered."""
        for cell in cells:
            new = nbformat.from_dict(dict(cell))
            new.source = self.renumbered(pick, cell.source)
            self.section = parts.heading(new) or self.section
            self.cells.append(new)

    def renumbered(self, pick: Pick, text: str) -> str:
        """A text of a source in which each question has its new number.

        Raises:
            UserError: it names a question that is not in the new master.
        """
        own = {one.question.name for one in pick.master.parts}
        new = {
            one.name: self.new_name(one)[1:]
            for one in self.chosen
            if one.master is pick.master
        }

        def number(old: str, match: re.Match) -> str:
            if f"q{old}" in own and f"q{old}" not in new:
                label = f"{pick.label.rpartition('.')[0]}.q{old}"
                around = text[max(0, match.start() - 40) : match.end() + 40]
                raise Missing(
                    label,
                    f"{pick.label}: refers to {label}, which is not chosen "
                    f"({' '.join(around.split())!r}). Fix: name {label}, too.",
                )
            return new.get(f"q{old}", old)

        def called(match: re.Match) -> str:
            given = match["numbers"]
            if " to " in given:
                first, last = map(int, re.findall(r"\d+", given))
                there = [int(number(str(n), match)) for n in range(first, last + 1)]
                if there != [*range(there[0], there[0] + len(there))]:
                    given = ", ".join(map(str, there))
                    return f"{match['word']}{match['gap']}{given}"
            given = re.sub(r"\d+", lambda one: number(one[0], match), given)
            return f"{match['word']}{match['gap']}{given}"

        text = NAMED.sub(lambda one: f"q{number(one['number'], one)}", text)
        return CALLED.sub(called, text)


def companions(label: str, root: Path = ROOT) -> list[str]:
    """The questions without which a question can't be taken, in order.

    Those are not among them of which it only uses given cells: they come along.

    Args:
        label: of the question, such as 1.q4.
        root: the repository's folder.
    """
    labels = [label]
    while True:
        chosen = picks(labels, [], root)
        made = _Assembly(chosen)
        try:
            for pick in chosen:
                made.add(pick)
        except Missing as error:
            labels.append(error.label)
            labels.sort(key=lambda one: int(one.rpartition(".q")[2]))
        else:
            return [one for one in labels if one != label]


def assemble(chosen: list[Pick], title: str, root: Path = ROOT) -> Assembled:
    """Put a master together; nothing is written and nothing is run.

    Args:
        chosen: the questions, in order, those of the core first.
        title: of the new assignment.
        root: the repository's folder.

    Raises:
        UserError: the questions can't stand together; names what is missing.
    """
    if not title.strip() or "\n" in title:
        raise UserError("--title: one line of text is needed. Fix: write a title.")
    made = _Assembly(chosen)
    questions = [made.add(pick) for pick in chosen]
    _see_names(made)
    imports = {master: _imports(made, master) for master in made.taken}
    sources = [
        (master, [*cells, *imports[master]]) for master, cells in made.taken.items()
    ]
    set_up = nbformat.v4.new_code_cell(setups.merged(sources, root))
    head = nbformat.v4.new_markdown_cell(_head(made, questions, title, root))
    end = next((master.end for master in made.taken if master.end), "")
    below = [nbformat.v4.new_markdown_cell(end)] if end else []
    text = dumps([head, set_up, *_once(imports.values()), *made.cells, *below])
    return Assembled(text, questions, *_wrong_answers(made, root))


def _begin(cell: nbformat.NotebookNode, question: Question) -> str:
    """The raw cell of a question, with its new name and what is said of it."""
    config = yaml.safe_load(cell.source)
    kept = {key: one for key, one in config.items() if key not in about.KEYS}
    kept["name"] = question.name
    said: dict[str, object] = {}
    if question.minutes is not None:
        said["minutes"] = question.minutes
    if question.chapters:
        said["chapters"] = list(question.chapters)
    if question.extra:
        said["extra"] = True
    if question.needs:
        said["needs"] = list(question.needs)
    lines = [
        yaml.safe_dump(
            {key: one}, default_flow_style=None if type(one) is list else False
        )
        for key, one in (kept | said).items()
    ]
    return f"{about.BEGIN}\n{''.join(lines)}".rstrip()


def _imports(made: _Assembly, master: Parts) -> Cells:
    """Cells with the imports that cells of a source took from above, by process."""
    cells = []
    for (source, process), lines in made.imports.items():
        if source is master:
            text = "\n".join(sorted(lines))
            cells.append(nbformat.v4.new_code_cell(f"{process}\n{text}".lstrip()))
    return cells


def _once(imports: Iterable[Cells]) -> Cells:
    """Imports of several sources, each line once."""
    found: dict[str, dict[str, None]] = {}
    for cell in itertools.chain(*imports):
        process = names.process(cell)
        lines = cell.source.removeprefix(process).strip().splitlines()
        found.setdefault(process, {}).update(dict.fromkeys(lines))
    return [
        nbformat.v4.new_code_cell(f"{process}\n{chr(10).join(sorted(lines))}".lstrip())
        for process, lines in found.items()
    ]


def _see_names(made: _Assembly) -> None:
    """See that no cell of another master binds an answer, or what a test asks for.

    Raises:
        UserError: one does.
    """
    for pick in made.chosen:
        tests = [cell for cell in pick.part.own if names.is_test(cell)]
        asked = {name for cell in tests for name in names.used(cell)}
        mine = {name for cell in pick.part.cells for name in names.bound(cell)} & asked
        mine = {made.renumbered(pick, name) for name in mine | pick.part.answers}
        for master, cells in made.taken.items():
            if master is pick.master:
                continue
            other = next(one for one in made.chosen if one.master is master)
            bound = {name for cell in cells for name in names.bound(cell)}
            both = sorted(mine & {made.renumbered(other, name) for name in bound})
            if both:
                raise UserError(
                    f"{pick.label} and a cell of {master.path.stem}: both define "
                    f"{both[0]}, so one would take the other's place. "
                    "Fix: leave one out."
                )


def _head(made: _Assembly, questions: list[Question], title: str, root: Path) -> str:
    """The title, what to read first, and how it works."""
    numbers = sorted({one for question in questions for one in question.chapters})
    pages = address.repository(root).pages
    paths = {chapters.chapter_number(p): p.stem for p in chapters.chapter_paths(root)}
    links = [f"[{one}]({pages}notebooks/{paths[one]}.html)" for one in numbers]
    lines = [f"# {title.strip()}"]
    if links:
        kind = "chapter" if len(links) == 1 else "chapters"
        lines.append(f"*On a CPU. Read {kind} {about.listed(links)} first.*")
    for master in made.taken:
        if match := HOW.search(master.head.source):
            lines.append(match[0])
            break
    return "\n\n".join(lines)


def _wrong_answers(made: _Assembly, root: Path) -> tuple[list[dict], list[str]]:
    """The wrong answers to the questions, renumbered.

    Returns:
        The answers, and a line for each that is left out, since it uses what stands
        in a question that is not chosen.
    """
    found, lines = [], []
    for pick in made.chosen:
        if pick.master.path.parent != (root / "assignments" / "masters").resolve():
            continue
        for one in gates.known_wrong_answers(pick.master.path.stem, root):
            if one["question"] != pick.name:
                continue
            cell = nbformat.v4.new_code_cell(one["code"])
            if missing := _missing(made, pick.master, cell):
                why = f"uses {', '.join(sorted(missing))}"
                lines.append(f"{pick.label}, {one['why']}: left out, since it {why}")
                continue
            code = made.renumbered(pick, _with_imports(pick.master, cell))
            found.append(one | {"question": made.new_name(pick), "code": code})
    return found, lines


def _missing(made: _Assembly, master: Parts, cell: nbformat.NotebookNode) -> set[str]:
    """The names that a cell uses and that the new master has not taken over."""
    there = [one for part in master.parts for one in part.cells]
    known = {name for one in there for name in names.bound(one)}
    known -= {name for one in there for name in names.imports(one)}
    here = {name for one in made.taken[master] for name in names.bound(one)}
    return names.used(cell) & known - here - master.known


def _with_imports(master: Parts, cell: nbformat.NotebookNode) -> str:
    """The code of a cell with the imports that any cell of its master has."""
    lines = {}
    for one in (one for part in master.parts for one in part.cells):
        if names.process(one) == names.process(cell):
            lines |= names.imports(one)
    needed = sorted({lines[name] for name in names.used(cell) if name in lines})
    magic = names.process(cell)
    body = cell.source.removeprefix(magic).lstrip("\n")
    return "\n".join([*filter(None, [magic]), *needed, body])


def dumps(cells: Cells) -> str:
    """Cells as the text of a master.

    Raises:
        UserError: a cell can't be written so that it is read again.
    """
    blocks: list[str] = []
    last = ""
    for cell in cells:
        if cell.cell_type == "markdown":
            blocks += ["+++"] if last == "markdown" else []
            blocks.append(cell.source.strip())
        else:
            kind = "code-cell" if cell.cell_type == "code" else "raw-cell"
            longest = max([2, *(len(one) for one in BACKTICKS.findall(cell.source))])
            fence = "`" * (longest + 1)
            blocks.append(f"{fence}{{{kind}}}\n{cell.source.strip()}\n{fence}")
        last = cell.cell_type
    text = "\n\n".join(blocks) + "\n"
    read = jupytext.reads(text, fmt="md:myst").cells
    wanted = [(one.cell_type, one.source.strip()) for one in cells]
    for (kind, source), one in zip(wanted, read, strict=False):
        if (one.cell_type, one.source.strip()) != (kind, source):
            raise UserError(
                f"the cell that starts with {source[:40]!r} can't be written as MyST. "
                "Fix: leave its question out."
            )
    return text


def add_assemble(commands) -> None:
    """The command `assemble`."""
    parser = commands.add_parser(
        "assemble",
        help="write a master of your own from questions of the bank",
        description="Write a master of your own from questions of the bank, and try it "
        "in the sandbox: its solution, its starter, empty answers and wrong ones. "
        "Nothing is written if it fails.",
    )
    parser.add_argument(
        "master", type=files.home, metavar="MASTER", help="such as course/week3.md"
    )
    parser.add_argument("core", nargs="+", metavar="QUESTION", help="such as 1.q4")
    parser.add_argument("--title", required=True, help="of the assignment")
    parser.add_argument(
        "--extra",
        nargs="+",
        action="extend",
        default=[],
        metavar="QUESTION",
        help="questions that are extras",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace a file that is there"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Assemble a master, try it, and write it."""
    path = options.master
    check_path(path, options.force)
    made = assemble(picks(options.core, options.extra), options.title)
    probe.check()
    assignment = try_out(path, made)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_text(path, made.text)
    by_hand = [one.name for one in assignment.core if one.manual] or ["none"]
    print(
        f"{path}: {about.size(assignment.core)} in the core, of which by hand: "
        f"{', '.join(by_hand)}"
        + (f"; extras: {about.size(assignment.extras)}" if assignment.extras else "")
    )
    return 0


def check_path(path: Path, force: bool) -> None:
    """See that a master can be written there.

    Raises:
        UserError: it has no assignment's name, or something is there.
    """
    if path.suffix != ".md" or not masters.NAME.fullmatch(path.stem):
        raise UserError(
            f"{path}: not an assignment's name. "
            "Fix: call it slug.md, in lower case with hyphens, such as week-3.md."
        )
    if path.is_dir() or ((path.exists() or path.is_symlink()) and not force):
        raise UserError(
            f"{path}: is there already. Fix: name another file, or say --force to "
            "replace it."
        )


def try_out(path: Path, made: Assembled) -> Assignment:
    """Build a new master and try it in the sandbox, before it is written.

    Raises:
        UserError: it fails; names what does.
    """
    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder, path.name)
        trial.write_text(made.text, encoding="utf-8")
        assignment = masters.build(trial)
        for line in made.left_out:
            print(line, file=sys.stderr)
        known = {one["question"] for one in made.wrong_answers}
        bare = [one.name for one in assignment.questions if one.name not in known]
        bare = [name for name in bare if name in assignment.public_tests]
        if bare:
            print(f"no wrong answers are known: {', '.join(bare)}", file=sys.stderr)
        found = gates.faults(
            assignment, made.wrong_answers, lambda line: print(line, file=sys.stderr)
        )
    if found:
        for line in found:
            print(line, file=sys.stderr)
        raise UserError(
            f"{path}: not written, since {len(found)} trials failed, see above. "
            "Fix: choose other questions."
        )
    return assignment
