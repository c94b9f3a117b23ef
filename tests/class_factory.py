"""Submissions of the small assignment in tests/masters, honest and hostile.

Each hostile one answers some questions honestly, and attacks in another cell. It
deserves the points of its honest answers, and nothing more.
"""

from __future__ import annotations

import copy
import csv
import dataclasses
import functools
import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

from grading import cli, runner, sandbox
from grading.assignment import Assignment
from grading.author import masters
from tools.model.chapters import ROOT

NEEDS_SANDBOX = pytest.mark.skipif(
    sys.platform != "linux", reason="students' code runs only in a Linux sandbox"
)
MINI = Path(__file__).with_name("masters") / "mini.md"
POINTS = {"q1": 4.0, "q2": 3.0, "q3": 1.0}
FULL = sum(POINTS.values())


@functools.cache
def mini() -> Assignment:
    """The small assignment."""
    return masters.build(MINI)


@dataclasses.dataclass(frozen=True)
class Case:
    """A submission and what it deserves."""

    text: str  # the file's content
    score: float
    says: str = ""  # what the report of a cell, or the problem, must say


def notebook(
    answered: tuple[str, ...] = ("q1", "q2", "q3"),
    before: tuple[str, ...] = (),
    after: tuple[str, ...] = (),
) -> nbformat.NotebookNode:
    """A notebook that answers some questions, with cells before and after them."""
    solutions = [c for c in mini().solution.cells if c.cell_type == "code"]
    result = copy.deepcopy(mini().student)
    code = [cell for cell in result.cells if cell.cell_type == "code"]
    for cell, solved in zip(code, solutions, strict=True):
        if any(_answers(solved.source, question) for question in answered):
            cell.source = solved.source
    position = 2  # below the set-up cell
    result.cells[position:position] = [nbformat.v4.new_code_cell(s) for s in before]
    result.cells += [nbformat.v4.new_code_cell(source) for source in after]
    return result


def _answers(source: str, question: str) -> bool:
    """Whether a solution cell answers a question."""
    starts = {"q1": "def softmax", "q2": "def dense", "q3": "bytes_q3"}
    return starts[question] in source and "CHECKS" not in source


def case(
    *code: str,
    answered: tuple[str, ...] = ("q1",),
    score: float | None = None,
    before: tuple[str, ...] = (),
    says: str = "",
) -> Case:
    """A submission with hostile cells below (or above) its honest answers."""
    text = masters.dumps(notebook(answered, before, code))
    deserved = sum(POINTS[question] for question in answered)
    return Case(text, deserved if score is None else score, says)


def edited(change) -> str:
    """The text of a full solution after a change of its notebook."""
    result = notebook()
    change(result)
    return json.dumps(result)


def _rename_and_reorder(result: nbformat.NotebookNode) -> None:
    """Give cells other ids and no metadata, and put text and questions elsewhere."""
    code = [cell for cell in result.cells if cell.cell_type == "code"]
    text = [cell for cell in result.cells if cell.cell_type != "code"]
    result.cells = text[::-1] + code[:1] + code[:0:-1]
    for number, cell in enumerate(result.cells):
        cell.id, cell.metadata = f"x{number}", {}


def _edit_checks(result: nbformat.NotebookNode) -> None:
    """Make the public tests pass always, and answer nothing."""
    for cell in result.cells:
        if "CHECKS[" in cell.source:
            cell.source = cell.source.replace("assert ", "True or ")
        elif cell.cell_type == "code":
            cell.source = "check('q1')"


def _as_otter_had_it(result: nbformat.NotebookNode) -> None:
    """Check as notebooks did that were handed out before."""
    for cell in result.cells:
        if "CHECKS[" in cell.source:
            cell.source = "import otter\ngrader = otter.Notebook(tests_dir='checks')"
        cell.source = re.sub(r"^check\(", "grader.check(", cell.source)


# The protocol's pipe, from inside: what the worker was started with.
PIPE = "import os, sys, json, struct\npipe = int(sys.argv[1])\n"


def frame(text: str) -> str:
    """Code that writes a frame with a JSON text to the protocol's pipe."""
    return f"text = {text}\nos.write(pipe, struct.pack('>II', len(text), 0) + text)\n"


def when_asked_for_q3(code: str) -> str:
    """Code that acts only when the grader asks for the answer to question 3."""
    body = code.replace("\n", "\n        ")
    return f"""{PIPE}
import protocol
honest = protocol.encode
def encode(value, keep):
    if type(value) is str and value == "sentinel":
        {body}
    return honest(value, keep)
protocol.encode = encode
bytes_q3 = "sentinel"
"""


HONEST = {
    "correct": Case(masters.dumps(notebook()), FULL),
    "starter": Case(masters.dumps(mini().student), 0),
    "warns-on-stderr": case(
        "import sys, warnings\nprint('careful', file=sys.stderr)\nwarnings.warn('no')",
        answered=("q1", "q2", "q3"),
    ),
    "wrong": case("def softmax(logits):\n    return np.exp(logits)", score=0),
    "right-for-the-example-only": case(
        "def softmax(logits):\n    return np.full(3, 1 / 3)", score=0
    ),
    "syntax-error": case("def softmax(:", says="SyntaxError"),
    "raises": case("def softmax(logits):\n    raise ValueError('no')", score=0),
    "wants-input": case("name = input('name? ')", says="raw_input|EOF|input"),
    "installs": case(
        "%pip install nothing\n!pip install nothing\nbytes_q3 = 4", score=5
    ),
    "a-long-cell": case(
        "x = '" + "é" * 800_000 + "'\nbytes_q3 = 4 * (len(x) == 800_000)", score=5
    ),
    "a-byte-order-mark": Case("\ufeff" + masters.dumps(notebook()), FULL),
    "a-surrogate-in-an-error": case("raise ValueError('\\ud800')", says=r"\\ud800"),
    "a-surrogate-in-an-answer": case(
        "def dense(inputs, units): raise ValueError('\\ud800')\nbytes_q3 = '\\udcff'"
    ),
    "a-surrogate-in-what-it-prints": case(
        "import os\nos.write(1, b'\\xed\\xa0\\x80')\nprint('\\ud800')", says="surrogate"
    ),
    "downloads": case(
        "import urllib.request\nurllib.request.urlopen('http://192.0.2.1')",
        says="unreachable",
    ),
    "empty": Case("", 0, "empty"),
    "renamed-and-reordered": Case(edited(_rename_and_reorder), FULL),
    "edited-checks": Case(edited(_edit_checks), 0),
    "made-when-otter-checked": Case(edited(_as_otter_had_it), FULL),
    "deleted-set-up": Case(edited(lambda n: n.cells.pop(1)), FULL, "NameError"),
}

ATTACKS = {
    # On the tests.
    "tests-overwritten": case(
        "CHECKS.clear()\ncheck = lambda *a: print('passed')\n"
        "import otter\notter.Notebook.check = check"
    ),
    "tests-patched": case(
        "import builtins\n"
        "np.allclose = np.array_equal = lambda *a, **k: True\n"
        "builtins.abs = lambda x: 0\nbuiltins.AssertionError = type('Never', (Exception,), {})"
    ),
    "equal-to-all": case(
        "class All:\n"
        "    def __eq__(self, other): return True\n"
        "    def __ne__(self, other): return False\n"
        "    def __abs__(self): return 0\n"
        "    def __array__(self, *a, **k): return np.zeros(3) + 1/3\n"
        "    def __call__(self, *a, **k): return self\n"
        "    def __getattr__(self, name): return self\n"
        "bytes_q3 = All()\ndense = All()\nsoftmax_2 = All()"
    ),
    "equal-in-numpy": case(
        "class Sly(np.ndarray):\n"
        "    def __eq__(self, other): return True\n"
        "    def __sub__(self, other): return 0 * self\n"
        "def softmax(logits):\n"
        "    return np.zeros(len(logits)).view(Sly)",
        score=0,
    ),
    "looks-for-hidden-tests": case(
        "import os, pathlib\nfound = 0\n"
        f"for top in ('/grading', '/tmp', {str(ROOT)!r}, '/home', '/etc'):\n"
        "    for folder, inside, names in os.walk(top):\n"
        "        if '.venv' in inside: inside.remove('.venv')\n"
        "        for p in (pathlib.Path(folder, name) for name in names):\n"
        "            if not p.is_file(): continue\n"
        "            try: found += 'THE-HIDDEN' + '-MESSAGE' in p.read_text()\n"
        "            except (OSError, UnicodeDecodeError): pass\n"
        "raise RuntimeError(f'found {found}, seed {os.environ.get(\"GRADING_SEED\")}')",
        says="found 0, seed None",
    ),
    "reads-the-stack-of-the-test": case(
        "import gc, sys\n"
        "seen = [o for o in gc.get_objects() if type(o).__name__ in "
        "('test_case', 'Grading', 'Assignment')]\n"
        "raise RuntimeError(f'seen {len(seen)}')",
        says="seen 0",
    ),
    "smuggles-hidden-inputs": case(
        "seen = []\n"
        "honest = softmax\n"
        "def softmax(logits):\n"
        "    seen.append(len(logits))\n"
        "    return honest(logits)\n"
        "def dense(inputs, units): raise ValueError(f'smuggled {seen}')"
    ),
    # On the report.
    "writes-a-report": case(
        "import json, pathlib\n"
        "for name in ('results.json', 'graded.json', '/tmp/results.json', "
        "'/grading/results.json', '../results.json'):\n"
        "    try: pathlib.Path(name).write_text(json.dumps({'score': 8, 'tests': []}))\n"
        "    except OSError: pass"
    ),
    "markup-in-the-report": case(
        "raise ValueError('<script>alert(1)</script> {{ 7 * 7 }} \\x1b[31m')",
        says="script",
    ),
    # On the grader's process.
    "pickle": case(
        "import os\n"
        "class Bomb:\n"
        "    def __reduce__(self): return os.system, ('touch /tmp/owned',)\n"
        "def dense(inputs, units): return Bomb()\nbytes_q3 = Bomb()"
    ),
    "pickle-in-an-array": case(
        "import os\n"
        "class Bomb:\n"
        "    def __reduce__(self): return os.system, ('touch /tmp/owned',)\n"
        "bytes_q3 = np.array([Bomb()], dtype=object)"
    ),
    "kills-its-parents": case(
        "import os, signal\n"
        "for pid in (os.getppid(), 1, -1):\n"
        "    try: os.kill(pid, signal.SIGKILL)\n"
        "    except OSError: pass"  # only as root is there a parent that can be hit
    ),
    "ends-the-process": case("import os\nos._exit(0)", says="it ended the process"),
    "crashes": case("import ctypes\nctypes.string_at(0)", says="it ended the process"),
    "writes-into-processes": case(
        "import os\nwritten = 0\n"
        "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
        "    if int(pid) == os.getpid(): continue\n"
        "    for name in ('mem', 'oom_score_adj'):\n"
        "        try:\n"
        "            open(f'/proc/{pid}/{name}', 'r+b').write(b'0')\n"
        "            written += 1\n"
        "        except OSError: pass\n"
        "raise RuntimeError(f'uid {os.getuid()}')",
        says=r"uid \d{5}",
    ),
    "becomes-root": case(
        "import os, subprocess\n"
        "done = [subprocess.run(c, shell=True, capture_output=True).returncode for c in "
        "('unshare -Ur true', 'su -c true', 'mount -t tmpfs x /mnt', 'chroot / true')]\n"
        "try: os.setuid(0)\n"
        "except OSError: done.append(1)\n"
        "raise RuntimeError(f'worked: {done.count(0)}')",
        says="worked: 0",
    ),
    "a-remote-that-raises-all": case(
        "class Exit(BaseException): pass\n"
        "def dense(inputs, units): raise Exit('out')\n"
        "class Late:\n"
        "    def __getattr__(self, name): raise KeyboardInterrupt\n"
        "bytes_q3 = Late()"
    ),
    # On its limits.
    "loops-and-will-not-stop": case(
        "import signal\nfor n in range(1, 32):\n"
        "    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except OSError: pass\n"
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        says="after 6 s",
    ),
    "loops-when-asked": case("def dense(inputs, units):\n    while True: pass"),
    "forks": case(
        "import os, time\nn = 0\n"
        "try:\n"
        "    while True:\n"
        "        if os.fork() == 0: time.sleep(1000)\n"
        "        n += 1\n"
        "except OSError: pass\nraise RuntimeError(f'forks {n < 400}')",
        says="forks True|after 6 s",
    ),
    "starts-threads": case(
        "import threading, time\nn = 0\n"
        "try:\n"
        "    while True:\n"
        "        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n"
        "        n += 1\n"
        "except RuntimeError: pass\nraise RuntimeError(f'threads {n < 400}')",
        says="threads True",
    ),
    "takes-all-memory": case(
        "hoard = []\nwhile True: hoard.append(np.ones(2**24))",
        says="more than 0.5 GiB of memory",
    ),
    "takes-all-memory-in-children": case(
        "import os, time\n"
        "for n in range(6):\n"
        "    if os.fork() == 0:\n"
        "        hoard = np.ones(2**24)\n"
        "        time.sleep(1000)\n"
        "time.sleep(1000)",
        says="more than 0.5 GiB of memory",
    ),
    "fills-the-disk": case(
        "for n in range(100):\n"
        "    with open(f'/tmp/{n}', 'wb') as file:\n"
        "        for m in range(100): file.write(b'x' * 2**20)",
        says="No space left|File too large|of memory",
    ),
    "floods": case(
        "while True: print('x' * 100_000)",
        says="File too large|of memory|after 6 s",
    ),
    "opens-files": case(
        "files = []\nwhile True: files.append(open('/dev/null'))", says="Too many open"
    ),
    # On the protocol.
    "protocol-noise": case(
        PIPE + "os.write(pipe, os.urandom(1000))", says="broke the protocol"
    ),
    "protocol-deep": case(
        PIPE + frame("b'[' * 60000"), says="broke the protocol: not JSON"
    ),
    "protocol-out-of-order": case(
        PIPE + frame('b\'{"number": 999, "error": null}\''),
        says="an answer to another question",
    ),
    "protocol-half-a-frame": case(
        PIPE
        + "os.write(pipe, struct.pack('>II', 1000, 0) + b'{')\nimport time\ntime.sleep(99)",
        says="after 6 s",
    ),
    "protocol-closed": case(PIPE + "os.close(pipe)", says="it ended the process"),
    "protocol-spoken-unasked": case(
        PIPE + "import threading, time\n"
        "def speak():\n"
        "    time.sleep(0.05)\n"
        "    os.write(pipe, b'hello')\n"
        "threading.Thread(target=speak).start()",
    ),
    "protocol-deep-value": case(
        when_asked_for_q3(
            "value = 4\nfor n in range(900): value = [value]\nreturn value"
        )
    ),
    "protocol-wide-value": case(when_asked_for_q3("return [[]] * 500_000")),
    # On other students' files.
    "reads-the-neighbours": case(
        "import pathlib\n"
        f"found = [name for top in ('/tmp', {str(ROOT)!r}, '/home', '/dev', '/grading')\n"
        "         for name in __import__('subprocess').run(\n"
        "             ['find', top, '-name', '.venv', '-prune', '-o', '-name', '*.ipynb'],\n"
        "             capture_output=True, text=True).stdout.split() if 'mini' in name]\n"
        "raise RuntimeError(f'neighbours {len(found)}')",
        says="neighbours 0|Permission",
    ),
    "leaves-a-trap": case(
        "import pathlib\n"
        "for name in ('sitecustomize.py', 'numpy.py', 'otter.py'):\n"
        "    for top in ('/grading', '/tmp', '/tmp/work', '/tmp/home', '.', np.__path__[0]):\n"
        "        try: pathlib.Path(top, name).write_text('raise SystemExit')\n"
        "        except OSError: pass"
    ),
    "talks-to-the-neighbours": case(
        "import socket\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "names = [n for n in __import__('os').listdir('/dev/shm')]\n"
        "raise RuntimeError(f'shared {len(names)}')",
        says="shared 0|unreachable|assign",
    ),
}

ALL = {**HONEST, **ATTACKS}
SMALL = {name: HONEST[name] for name in ("correct", "wrong", "empty")}


def write_all(folder: Path, cases: dict[str, Case] = ALL) -> None:
    """Write submissions as a learning platform names them."""
    folder.mkdir(parents=True)
    for name, one in cases.items():
        data = one.text.encode(errors="backslashreplace")  # as JSON has surrogates
        (folder / f"{name}_mini.ipynb").write_bytes(data)


def command(folder: Path, *options: str) -> list[str]:
    """The command on the folder `in` of a folder, into `out` beside it."""
    start = [sys.executable, "-m", "grading", "grade", str(folder / "in")]
    return [*start, str(MINI), "--out", str(folder / "out"), *options]


def grade(folder: Path, *options: str) -> int:
    """Run that command in this process."""
    return cli.main(command(folder, *options)[3:])


def run(folder: Path, *options: str, **how) -> subprocess.CompletedProcess:
    """Run that command as a teacher would; it must go well."""
    how = {"cwd": ROOT, "capture_output": True, "text": True, "timeout": 280, **how}
    done = subprocess.run(command(folder, *options), **how)
    assert done.returncode == 0, done.stderr
    return done


def grading(
    *sources: str, limits: sandbox.Limits, seed: str = "a secret"
) -> tuple[runner.Grading, runner.Result]:
    """A notebook of these cells, graded, and what it got."""
    cells = [runner.Cell(number, text) for number, text in enumerate(sources, start=1)]
    graded = runner.Grading(mini(), cells, limits)
    return graded, graded.grade(seed)


def rows(path: Path) -> dict[str, dict[str, str]]:
    """The rows of grades.csv or manual.csv, by student."""
    lines = io.StringIO(path.read_text("utf-8-sig"), newline="")
    return {row["student"]: row for row in csv.DictReader(lines)}


def written(out: Path) -> dict[str, str]:
    """The text of each file that a run wrote, and of each in feedback.zip, by name."""
    files = [path for path in out.rglob("*") if path.is_file()]
    texts = {str(path): path.read_text() for path in files if path.suffix != ".zip"}
    with zipfile.ZipFile(out / "feedback.zip") as archive:
        zipped = {name: archive.read(name).decode() for name in archive.namelist()}
    return texts | zipped
