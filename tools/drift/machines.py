"""Run the book's claims as other machines would, and keep which held in a table.

    python -m tools.drift.machines [ROW ...] [--chapters 4 12]

A row is one such machine: an older processor, one core, other versions. What its claims
did goes to `book/machines.json`, from which the site makes the page *Other machines*;
rows that are not run keep what is there. Logs, the XML of each run and the environments
lie below `_build/machines/`. With `--chapters` some chapters of a row are run again; if
the row was made by another processor or other versions, they are only tried.

Exit status: 1 if a claim is broken or a row could not run.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools import installed as packages
from tools.checks import processes
from tools.drift import alert
from tools.installed import ENGINES
from tools.machine import processor
from tools.model import chapters, files, outcomes
from tools.model.chapters import ROOT
from tools.model.errors import UserError, command

RECORD = Path("book", "machines.json")
MARK = "BOOK_MACHINES"  # the variable that marks all processes of this program
PATIENCE = 15  # seconds that an interrupted pytest has to end its kernels
LONGEST = 300  # characters of a reason that are kept

# A bound that keeps a release of an engine back, as in `jax>=0.7,<0.11`.
UPPER = re.compile(rf"^((?:{'|'.join(ENGINES)})\b[^<\n]*?),? *<[^,; \n]+", re.M)
LOOP = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(10**6):
        pass
"""
MASK = Path(__file__).with_name("older_processor.c")  # hides newer features
# Whether a child of this Python sees AVX-512 although it shall not.
CHILD = """
import subprocess, sys
ask = "from numpy._core._multiarray_umath import __cpu_features__ as f"
ask += "; raise SystemExit(not f['AVX2'] or f['AVX512F'])"
raise SystemExit(subprocess.run([sys.executable, "-c", ask]).returncode)
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """One machine to run the claims as."""

    name: str  # as in `make machines ROWS=one-core`
    title: str  # for the reader of the site
    about: str  # what it stands for, in words; `...` is code
    workers: int = 2  # chapters that run at a time
    one_core: bool = False
    loops: int = 0  # endless loops beside the workers
    older: bool = False  # with what the processor has since 2013 hidden
    kernel_env: tuple[str, ...] = ()  # NAME=VALUE
    options: tuple[str, ...] = ()  # of pytest
    constraints: str = ""  # the file with the versions of an environment of its own
    newest: str = ""  # `within` the ranges of requirements.txt, or `beyond`
    python: str = ""  # such as 3.13, where the versions are made for one Python
    packages: tuple[str, ...] = ()  # that alone are installed; none: all of them
    release: tuple[str, str] = ("", "")  # a package that has to be of a release
    here: tuple[str, ...] = ()  # engines of which it takes the version of `.venv`
    variant: tuple[str, str] = ("", "")  # an engine, and the package in its place

    @property
    def has_environment(self) -> bool:
        """Whether it runs with other versions than those of `.venv`."""
        return bool(self.constraints or self.newest)


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows whose results a file keeps, for a page of the site."""

    rows: tuple[Row, ...]
    record: Path  # from the repository's folder
    command: str  # that writes the record
    page: str  # that shows it
    keeps_parts: bool = False  # a row of which only some chapters were ever run

    @property
    def work(self) -> Path:
        """The folder of the logs and the environments."""
        return Path("_build", self.record.stem)

    @property
    def about(self) -> str:
        """What stands at the top of the record."""
        return f"Written by `{self.command}`; shown on {self.page}. Edit nothing."


ROWS = (
    Row(
        "as-is",
        "The machine as it is",
        "The versions that the book is verified with; two chapters run at a time.",
    ),
    Row(
        "one-core",
        "One core",
        "The same on a single core: a small virtual machine, or a container.",
        workers=1,
        one_core=True,
    ),
    Row(
        "busy",
        "A busy machine",
        "Two endless loops run beside two chapters: a laptop that does other work too, "
        "or a server with other users.",
        loops=2,
    ),
    Row(
        "older",
        "An older processor",
        "AVX-512, AMX and bfloat16 are hidden: every program finds what Intel's "
        "Haswell of 2013 had, and runs at full speed.",
        older=True,
    ),
    Row(
        "no-onednn",
        "TensorFlow without oneDNN",
        "`TF_ENABLE_ONEDNN_OPTS=0`: TensorFlow computes with kernels of its own.",
        kernel_env=("TF_ENABLE_ONEDNN_OPTS=0",),
    ),
    Row(
        "no-cuda",
        "TensorFlow without CUDA",
        "`tensorflow-cpu` in place of `tensorflow`: no code for GPUs is in it, as in "
        "TensorFlow for macOS and Windows. Outputs are not compared.",
        options=("--nbval-lax",),
        constraints="constraints/latest.txt",
        variant=("tensorflow", "tensorflow-cpu"),
    ),
    Row(
        "colab",
        "The versions of Google Colab",
        "What Colab ships, from `constraints/colab.txt`. Older versions print other "
        "things, so outputs are not compared.",
        options=("--nbval-lax",),
        constraints="constraints/colab.txt",
        python="3.13",
    ),
    Row(
        "newest",
        "The newest versions that the book allows",
        "The newest releases within the ranges of `requirements.txt`; "
        "outputs are not compared.",
        options=("--nbval-lax",),
        newest="within",
    ),
    Row(
        "beyond",
        "The newest versions of all",
        "The newest releases of the engines, whatever `requirements.txt` allows; "
        "outputs are not compared.",
        options=("--nbval-lax",),
        newest="beyond",
    ),
)
MACHINES = Table(ROWS, RECORD, "make machines", "the page Other machines")


@dataclasses.dataclass
class Session:
    """One run of this program: where it works, and its processes."""

    root: Path
    table: Table = MACHINES
    mark: str = dataclasses.field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        self.folder = self.root / self.table.work
        self.folder.mkdir(parents=True, exist_ok=True)

    def call(self, arguments: list, log: Path, **variables: str) -> int:
        """Run a program to its end, with all that it starts; its exit status.

        What it prints is added to the file `log`.
        """
        environment = {**os.environ, **variables, MARK: self.mark}
        environment.pop("PYTEST_ADDOPTS", None)
        with log.open("ab") as out:
            child = subprocess.Popen(
                [str(x) for x in arguments],
                cwd=self.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches this program, which ends it
            )
            try:
                return child.wait()
            finally:
                self.end(child)

    def end(self, child: subprocess.Popen) -> None:
        """End a child that still runs, and all that it left behind.

        A second Ctrl-C does not keep it from that.
        """
        before = {
            number: signal.signal(number, signal.SIG_IGN)
            for number in processes.ENDINGS
        }
        try:
            if child.poll() is None:
                child.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(PATIENCE)
            self.kill()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def kill(self) -> None:
        """Kill every process that carries the mark, whoever its parent is by now."""
        processes.kill_marked(MARK, self.mark)


@contextlib.contextmanager
def busy(loops: int) -> Iterator[None]:
    """Keep as many cores busy; a loop also ends when this process is gone."""
    running = []
    try:
        for _ in range(loops):
            arguments = [sys.executable, "-c", LOOP, str(os.getpid())]
            none = subprocess.DEVNULL
            running.append(
                subprocess.Popen(
                    arguments,
                    stdin=none,
                    stdout=none,
                    stderr=none,
                    start_new_session=True,
                )
            )
        yield
    finally:
        for loop in running:
            loop.kill()
            loop.wait()


# Environments


def uv(*words: str | Path) -> list:
    """The command that runs uv."""
    return [sys.executable, "-m", "tools.setup.uv", "pip", *words]


def find_python(version: str) -> str:
    """A Python of a version such as 3.13, or this one where there is none.

    `$PYTHON` comes first; a command that does not run is no Python.
    """
    command = f"python{version}"
    folders = os.environ.get("PATH", "").split(os.pathsep)
    candidates = [os.environ.get("PYTHON", ""), *(f"{x}/{command}" for x in folders)]
    for candidate in candidates if version else []:
        path = shutil.which(candidate) if candidate else None
        if path and python_version(path).startswith(f"{version}."):
            return path
    return sys.executable


def python_version(python: str | Path) -> str:
    """The version of an interpreter, such as 3.13.1, or nothing if it does not run."""
    ask = "import platform; print(platform.python_version())"
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def requirements(row: Row, root: Path) -> str:
    """The requirements of a row's environment, without includes."""
    text = (root / "requirements.txt").read_text(encoding="utf-8")
    if row.newest == "beyond":
        text = UPPER.sub(r"\1", text)
    book = (root / "requirements-book.txt").read_text(encoding="utf-8")
    text = renamed(row, text.replace("-r requirements-book.txt", book))
    if not row.packages:
        return text
    text += (root / "requirements-test.txt").read_text(encoding="utf-8")
    known = {re.match(r"[\w-]*", line)[0]: line for line in text.splitlines()}
    return "\n".join(known.get(name, name) for name in row.packages) + "\n"


def renamed(row: Row, text: str) -> str:
    """Requirements or pins with a row's variant of an engine in place of the engine."""
    engine, variant = row.variant
    return re.sub(rf"^{engine}(?![\w-])", variant, text, flags=re.M) if engine else text


def constraints(row: Row, session: Session) -> str | Path:
    """The file with a row's versions; those of `here` and its variant replace some."""
    if not row.here and not any(row.variant):
        return row.constraints
    text = renamed(row, (session.root / row.constraints).read_text(encoding="utf-8"))
    for name, version in installed(row.here).items():
        text = re.sub(rf"^{name}==.*", f"{name}=={version}", text, flags=re.M)
    path = session.folder / f"{row.name}.constraints"
    path.write_text(text, encoding="utf-8")
    return path


def resolve(row: Row, session: Session, python: str, log: Path) -> Path:
    """Find the versions of a row's environment: a file of pins.

    Raises:
        UserError: there are none that suit each other, or no network.
    """
    wanted = session.folder / f"{row.name}.in"
    wanted.write_text(requirements(row, session.root), encoding="utf-8")
    pins = session.folder / f"{row.name}.txt"
    pins.unlink(missing_ok=True)  # or uv would keep the versions in it
    arguments = uv("compile", "--python", python, "--no-header", "--no-annotate")
    arguments += [wanted, "-o", pins]
    if row.constraints:
        arguments += ["--constraint", constraints(row, session)]
    if session.call(arguments, log):
        raise UserError(
            "its versions can't be found. Fix: connect to the network, "
            f"or see {log.relative_to(session.root)}"
        )
    return pins


def install(row: Row, session: Session, python: str, pins: Path, log: Path) -> Path:
    """Install pinned versions into the row's environment; its Python.

    Raises:
        UserError: they can't be installed.
    """
    folder = session.folder / row.name
    made = python_version(folder / "bin" / "python") if folder.exists() else ""
    if made != python_version(python):
        shutil.rmtree(folder, ignore_errors=True)
        session.call([python, "-m", "venv", "--without-pip", folder], log)
    python = folder / "bin" / "python"
    commands = [
        uv("sync", "--compile-bytecode", "--python", python, pins),
        [sys.executable, "-m", "tools.setup.gpu_compiler", str(python)],
    ]
    if any(session.call(command, log) for command in commands):
        raise UserError(
            "its versions can't be installed. Fix: make room on the disk, connect to "
            f"the network, or see {log.relative_to(session.root)}"
        )
    return python


def read_pins(pins: Path) -> dict[str, str]:
    """The versions in a file of pins, without the labels of builds."""
    found = re.findall(r"^([\w.-]+)==([^\s;+]+)", pins.read_text(), re.M)
    return dict(found)


def installed(names: Iterable[str] = ENGINES) -> dict[str, str]:
    """The versions of packages beside this program, without the labels of builds."""
    found = packages.versions(names)
    return {name: version.partition("+")[0] for name, version in found.items()}


def older_processor(session: Session, log: Path) -> str:
    """Build the library that hides newer features; the variable that preloads it.

    Raises:
        UserError: there is no C compiler, or this processor can't hide any.
    """
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise UserError("it needs Linux on x86-64. Fix: run it on such a machine")
    compiler = shutil.which("cc")
    if compiler is None:
        raise UserError("cc is missing. Fix: apt-get install gcc libc6-dev")
    library = session.folder / MASK.with_suffix(".so").name
    if re.search(r"[\s:]", str(library)):
        raise UserError(
            f"a library in {session.folder} can't be preloaded. Fix: move the book to "
            "a folder without spaces and colons in its name"
        )
    build = [compiler, "-O2", "-shared", "-fPIC", MASK, "-o", library, "-ldl"]
    where = f"see {log.relative_to(session.root)}"
    if session.call(build, log):
        raise UserError(f"{MASK.name} does not compile. Fix: {where}")
    if session.call([sys.executable, "-c", CHILD], log, LD_PRELOAD=str(library)):
        raise UserError(
            "newer features can't be hidden from programs here. Fix: take a machine "
            f"with AVX2 whose /proc/cpuinfo lists cpuid_fault, or {where}"
        )
    return f"LD_PRELOAD={library}"


# A run


def notebooks(root: Path, only: tuple[int, ...] = ()) -> list[Path]:
    """The chapters that a row runs: all, or some of them.

    Raises:
        UserError: there are none of these.
    """
    paths = chapters.chapter_paths(root)
    if only:
        paths = [path for path in paths if chapters.chapter_number(path) in only]
    if not paths:
        raise UserError("there are none of these chapters. Fix: name others")
    return paths


def first_core() -> int:
    """A core that this process may use."""
    return min(os.sched_getaffinity(0))


def pytest_command(
    row: Row, paths: list[Path], results: Path, python: Path, only: Path
) -> list:
    """The command that runs chapters in the kernels of an interpreter.

    Raises:
        UserError: a program is missing.
    """
    arguments: list = []
    if row.one_core:
        if shutil.which("taskset") is None:
            raise UserError("taskset is missing. Fix: apt-get install util-linux")
        arguments += ["taskset", "-c", first_core()]
    return [
        *arguments,
        *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider"),
        *("-n", row.workers, "--dist", "loadscope", f"--junitxml={results}"),
        f"--kernel-python={python}",
        *(f"--kernel-env={variable}" for variable in row.kernel_env),
        *row.options,
        *(path.relative_to(only) for path in paths),
    ]


def run(
    row: Row, root: Path, only: tuple[int, ...] = (), table: Table = MACHINES
) -> dict:
    """Run a row: what the table says of it.

    Raises:
        UserError: it could not run.
    """
    session = Session(root, table)
    log = session.folder / f"{row.name}.log"
    log.write_bytes(b"")
    python = Path(sys.executable)
    if row.has_environment:
        base = find_python(row.python)
        pins = resolve(row, session, base, log)
        versions = read_pins(pins)
        same = as_row_one(versions)
        if same is not None:
            return provenance(row, installed()) | same
        python = install(row, session, base, pins, log)
        engine, variant = row.variant
        if engine:
            versions[engine] = versions[variant]
    else:
        versions = installed()
        check_release(row, versions)
    if row.older:
        hidden = older_processor(session, log)
        row = dataclasses.replace(row, kernel_env=(*row.kernel_env, hidden))
    paths = notebooks(root, only)
    results = session.folder / f"{row.name}.xml"
    results.unlink(missing_ok=True)
    arguments = pytest_command(row, paths, results, python, root)
    begin = time.monotonic()
    with busy(row.loops):
        status = session.call(arguments, log)
    if status not in (0, 1):
        where = log.relative_to(root)
        raise UserError(f"pytest ended with status {status}. Fix: see {where}")
    entry = provenance(row, versions)
    if row.here:
        own = read_pins(root / row.constraints)
        entry["of its time"] = {x: own[x] for x in row.here if own[x] != versions[x]}
    entry["python"] = python_version(python)
    entry["seconds"] = round(time.monotonic() - begin)
    entry["chapters"] = [chapters.chapter_number(path) for path in paths]
    return entry | read_results(results, paths, root)


def check_release(row: Row, versions: dict[str, str]) -> None:
    """See that the versions here are those that a row stands for.

    Raises:
        UserError: they are not.
    """
    package, release = row.release
    found = versions.get(package, "missing")
    if package and not f"{found}.".startswith(f"{release}."):
        raise UserError(
            f"{package} is {found} here, not {release}. "
            "Fix: make test TESTS=tests/test_form.py brings the book's own versions"
        )


def as_row_one(pins: dict[str, str]) -> dict | None:
    """What to say if versions are those of `.venv`; None if an engine differs."""
    here = installed(list(pins))
    others = {x: v for x, v in pins.items() if x in here and here[x] != v}
    if any(pins.get(x) != v for x, v in installed().items()):
        return None
    return {"same as": ROWS[0].name, "other versions": others}


def provenance(row: Row, versions: dict[str, str]) -> dict:
    """When, on which processor and with which versions a row runs."""
    name = processor()["name"]
    if row.older:
        name += ", newer features hidden"
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": name,
        "python": platform.python_version(),
        "versions": {x: versions[x] for x in ENGINES if x in versions},
    }


def read_results(results: Path, paths: list[Path], root: Path) -> dict:
    """What the XML of a run says of the claims and the other cells of chapters.

    A claim that the run did not come to is not checked.

    Raises:
        UserError: the file is missing or damaged.
    """
    try:
        cases = alert.read_cases(results)
    except UserError:
        where = results.with_suffix(".log").relative_to(root)
        raise UserError(f"pytest left no results. Fix: see {where}") from None
    ran = {
        (case.notebook, case.cell): (case.outcome, one_line(case.reason, root))
        for case in cases
        if case.notebook
    }
    found: dict = {
        "cells": len(ran),
        "counts": dict.fromkeys(outcomes.ALL, 0),
        "held": {},
        "not held": [],
        "failed cells": [],
    }
    for path in paths:
        add_chapter(found, path, path.relative_to(root).as_posix(), ran)
    return found


def add_chapter(found: dict, path: Path, name: str, ran: dict) -> None:
    """Add what became of a chapter's claims and other cells to the results."""
    notebook = chapters.read(path)
    claims = {claim.cell: claim for claim in chapters.claims(path, notebook)}
    held = []
    for claim in claims.values():
        missing = (outcomes.UNCHECKED, "its cell was not run")
        outcome, reason = ran.get((name, claim.cell), missing)
        found["counts"][outcome] += 1
        if outcome == outcomes.HELD:
            held.append(f"{claim.number}:{fingerprint(claim.sentence)}")
            continue
        facts = {"label": claim.label, "sentence": claim.sentence}
        found["not held"].append(facts | {"outcome": outcome, "reason": reason})
    if held:
        found["held"][str(chapters.chapter_number(path))] = " ".join(held)
    for index, cell in enumerate(notebook.cells):
        outcome, reason = ran.get((name, index), ("", ""))
        if outcome == outcomes.BROKEN and index not in claims:
            where = chapters.where(path, index, cell)
            found["failed cells"].append({"cell": where, "reason": reason})


def one_line(reason: str, root: Path) -> str:
    """A reason as one line of bounded length, without folders of this machine."""
    text = " ".join(reason.split())
    for folder in (str(root), sys.prefix, str(Path.home())):
        text = text.replace(f"{folder}/", "")
    text = re.sub(r"(?<![\w./:])(/[\w.+@-]+){2,}/", ".../", text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


# The record


def fingerprint(sentence: str) -> str:
    """A short name of a claim's sentence, which stays when its number changes."""
    return hashlib.sha256(" ".join(sentence.split()).encode()).hexdigest()[:8]


def held_fingerprints(entry: dict) -> set[str]:
    """The fingerprints of the sentences that held in a row."""
    words = " ".join(entry.get("held", {}).values()).split()
    return {word.partition(":")[2] for word in words}


def load(root: Path = ROOT, table: Table = MACHINES) -> dict[str, dict]:
    """What is known of each row, by its name.

    Raises:
        UserError: the file is missing or is not what this program writes.
    """
    path, command = root / table.record, table.command
    fix = f"Fix: git checkout -- {table.record}, or remove it and run {command}"
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        problem = next(filter(None, map(fault, rows, rows.values())), None)
    except FileNotFoundError:
        raise UserError(f"{table.record}: no such file. Fix: {command}") from None
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        problem = f"not what {command} writes ({type(error).__name__})"
    if problem:
        raise UserError(f"{table.record}: {problem}. {fix}")
    return rows


def fault(name: str, entry: dict) -> str:
    """What is wrong with a row's entry, or nothing."""
    needed = {"date"}
    if "could not run" not in entry:
        needed |= {"processor", "python", "versions"}
        if "same as" not in entry:
            needed |= {"seconds", "chapters", "cells", "counts", "held"}
            needed |= {"not held", "failed cells"}
    missing = ", ".join(sorted(needed - set(entry)))
    if missing:
        return f"the row {name!r} lacks {missing}"
    datetime.date.fromisoformat(entry["date"])
    for claim in entry.get("not held", []):
        if not {"label", "sentence", "outcome", "reason"} <= set(claim):
            return f"a claim of the row {name!r} lacks a field"
    return ""


def save(rows: dict[str, dict], root: Path, table: Table = MACHINES) -> None:
    """Write what is known of the rows, in their order."""
    order = [row.name for row in table.rows]
    known = {name: rows[name] for name in order if name in rows}
    content = {"about": table.about, "rows": known}
    text = json.dumps(content, indent=1, ensure_ascii=False)
    files.write_text(root / table.record, f"{text}\n")


def held_anywhere(root: Path = ROOT) -> dict[str, list[str]]:
    """In which rows each claim of the book held, by the claim's label today.

    A claim is known by its sentence, so one whose words have changed has held nowhere.

    Raises:
        UserError: the record or a chapter can't be read.
    """
    held = {name: held_fingerprints(entry) for name, entry in load(root).items()}
    return {
        claim.label: [x for x in held if fingerprint(claim.sentence) in held[x]]
        for path in chapters.chapter_paths(root)
        for claim in chapters.claims(path)
    }


# The program


def find(names: list[str], table: Table = MACHINES) -> list[Row]:
    """The rows of these names, in the table's order; all for no names.

    Raises:
        UserError: a name is none of a row.
    """
    known = [row.name for row in table.rows]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UserError(
            f"no row {', '.join(unknown)}. Fix: name some of {', '.join(known)}"
        )
    return [row for row in table.rows if not names or row.name in names]


def summary(entry: dict) -> list[str]:
    """A row's results in lines, for the terminal."""
    if "could not run" in entry:
        return [f"could not run: {entry['could not run']}"]
    if "same as" in entry:
        return [f"the engines are those of {entry['same as']}: not run again"]
    said = ", ".join(f"{number} {what}" for what, number in entry["counts"].items())
    lines = [f"claims: {said}; cells: {entry['cells']}, {entry['seconds']} s"]
    lines += [
        f"  {x['outcome']} {x['label']} {x['sentence']} ({x['reason']})"
        for x in entry["not held"]
    ]
    failed = entry["failed cells"]
    return lines + [f"  failed {x['cell']}: {x['reason']}" for x in failed]


def is_red(entry: dict) -> bool:
    """Whether a claim is broken in a row, or the row could not run."""
    return "could not run" in entry or entry.get("counts", {}).get("broken", 0) > 0


def merged(old: dict, new: dict) -> dict | None:
    """A row of which some chapters were run again; None if that can't be told.

    It can't if the row was not run before, or with another processor or other versions.
    The older date stays.
    """
    same = ("processor", "python", "versions")
    if (
        "counts" not in old
        or "counts" not in new
        or any(old[x] != new[x] for x in same)
    ):
        return None
    again, before = set(new["chapters"]), set(old["chapters"])
    kept = {k: v for k, v in old["held"].items() if int(k) not in again} | new["held"]
    entry = old | {"held": {k: kept[k] for k in sorted(kept, key=int)}}
    entry["chapters"] = sorted(before | again)
    if not before & again:
        entry |= {x: old[x] + new[x] for x in ("seconds", "cells")}
    for key, name in (("not held", "label"), ("failed cells", "cell")):
        both = [x for x in old[key] if _chapter(x[name]) not in again] + new[key]
        entry[key] = sorted(both, key=lambda x: _chapter(x[name]))
    entry["counts"] = dict.fromkeys(outcomes.ALL, 0)
    entry["counts"][outcomes.HELD] = sum(len(x.split()) for x in kept.values())
    for claim in entry["not held"]:
        entry["counts"][claim["outcome"]] += 1
    return entry


def _chapter(text: str) -> int:
    """The number with which a label or the name of a notebook begins."""
    return int(re.match(r"\d+", text)[0])


def run_and_keep(
    row: Row, root: Path, rows: dict, only: tuple[int, ...], table: Table = MACHINES
) -> dict:
    """Run a row and keep its results; a failure replaces no older results."""
    print(f"{row.name}: running, see {table.work / row.name}.log", flush=True)
    try:
        entry = run(row, root, only, table)
    except UserError as error:
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        entry = {"date": today, "could not run": str(error)}
    print(f"{row.name}: " + "\n".join(summary(entry)), flush=True)
    older = rows.get(row.name, {})
    if only:
        whole = merged(older, entry)
        first = table.keeps_parts and "processor" not in older
        if whole or (first and "counts" in entry):
            rows[row.name] = whole or entry
            save(rows, root, table)
            print(f"{row.name}: the other chapters stay as they were", flush=True)
        return entry
    if not ("could not run" in entry and "processor" in older):
        rows[row.name] = entry
    save(rows, root, table)
    return entry


def run_rows(
    wanted: list[Row], root: Path, only: tuple[int, ...], table: Table = MACHINES
) -> int:
    """Run rows of a table, one after the other; the exit status."""
    rows = load(root, table) if (root / table.record).exists() else {}
    for number in processes.ENDINGS:
        signal.signal(number, processes.interrupt)
    red = False
    try:
        for row in wanted:
            red |= is_red(run_and_keep(row, root, rows, only, table))
    except KeyboardInterrupt:
        print("interrupted: rows that were finished are kept", file=sys.stderr)
        return 130
    return int(red)


@command
def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Run the book's claims as other machines would; write book/machines.json."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.drift.machines", description=main.__doc__
    )
    names = ", ".join(row.name for row in ROWS)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"some of {names}")
    parser.add_argument(
        "--chapters",
        nargs="+",
        type=int,
        default=(),
        help="run these chapters of the rows again",
    )
    options = parser.parse_args(argv)
    return run_rows(find(options.rows), root, tuple(options.chapters))


if __name__ == "__main__":
    raise SystemExit(main())
