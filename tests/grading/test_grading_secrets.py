"""Nothing of the teacher's can be read inside: canaries, looked for in what is made.

They lie in the environment, in a file of the home folder, in a descriptor that the
grader inherits, in the session's keyring, and in the secret of the hidden inputs. The
spy looks everywhere, and prints, raises and answers what it finds.
"""

import ast
import contextlib
import ctypes
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import class_factory
import pytest

from grading import session
from grading.sandbox import Limits
from tools.model.chapters import ROOT

pytestmark = [class_factory.NEEDS_SANDBOX, pytest.mark.slow]

CANARY = re.compile(r"CANARY-[a-z]+-[0-9a-f]{8}")
KINDS = ("environment", "home", "descriptor", "keyring", "seed")
ADD_KEY, KEYCTL = (248, 250) if platform.machine() == "x86_64" else (217, 219)
SESSION_KEYRING, JOIN_SESSION, SEARCH, READ = -3, 1, 10, 11

SPY = r"""
import ctypes, glob, os, re
libc = ctypes.CDLL(None, use_errno=True)
found = []
def look(data):
    for one in re.findall(rb'CANARY-[a-z]+-[0-9a-f]{8}', data):
        found.append(one.decode())
def read(path, size=2**22):
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            look(os.read(file, size))
        finally:
            os.close(file)
    except (OSError, ValueError):
        pass
look(repr(dict(os.environ)).encode())
for number in range(256):  # what the worker was started with
    try:
        look(os.pread(number, 2**16, 0))
    except OSError:
        pass
for process in glob.glob('/proc/[0-9]*') + ['/proc/self']:
    for name in ('environ', 'cmdline', 'mountinfo', 'maps', 'auxv', 'stack'):
        read(f'{process}/{name}')
    for one in glob.glob(f'{process}/fd/*') + glob.glob(f'{process}/map_files/*'):
        read(one)
    for one in glob.glob(f'{process}/root/home/*') + glob.glob(f'{process}/cwd/*'):
        read(one)
    if process == '/proc/self' or int(process[6:]) == os.getpid():
        continue  # it holds what it has found
    try:
        maps = open(f'{process}/maps').read().split('\n')
        memory = open(f'{process}/mem', 'rb', buffering=0)
        for line in maps:
            if 'r' in line.partition(' ')[2][:1]:
                start, end = (int(n, 16) for n in line.split()[0].split('-'))
                memory.seek(start)
                look(memory.read(min(end - start, 2**22)))
    except (OSError, ValueError, OverflowError):
        pass
for name in ('/proc/keys', '/proc/key-users', '/proc/kmsg', '/dev/kmsg'):
    read(name)
buffer = ctypes.create_string_buffer(2**16)
for keyring in (-1, -2, -3, -4, -5):
    key = libc.syscall(KEYCTL, 10, keyring, b'user', b'canary', 0)
    if key > 0 and libc.syscall(KEYCTL, 11, key, buffer, len(buffer)) > 0:
        look(buffer.raw)
if libc.klogctl(3, buffer, len(buffer)) > 0:
    look(buffer.raw)
for top in ('HOME', '/home', '/root', '/run', '/var', '/mnt', '/media', '/srv', '/tmp'):
    for folder, _, names in os.walk(top):
        for name in names:
            look(os.fsencode(name))
            read(os.path.join(folder, name), 2**16)
print(found)
bytes_q3 = 4
def dense(inputs, units):
    raise ValueError(f'found {found}')
raise RuntimeError(f'found {found}')
"""


def canary(kind: str) -> str:
    """A text that stands nowhere else."""
    return f"CANARY-{kind}-{os.urandom(4).hex()}"


def add_key(secret: str) -> None:
    """Give this process a keyring of its own with a key, as a login gives one."""
    libc = ctypes.CDLL(None)
    libc.syscall(KEYCTL, JOIN_SESSION, None)
    data = secret.encode()
    libc.syscall(ADD_KEY, b"user", b"canary", data, len(data), SESSION_KEYRING)


@pytest.fixture(scope="module")
def spied(tmp_path_factory):
    """A run of the command over a spy and an honest neighbour, and the canaries."""
    folder = tmp_path_factory.mktemp("spied")
    secrets = {kind: canary(kind) for kind in KINDS}
    home = folder / secrets["home"]
    home.mkdir()
    (home / "notes").write_text(secrets["home"])
    spy = SPY.replace("KEYCTL", str(KEYCTL)).replace("'HOME'", repr(str(home)))
    cases = {
        "spy": class_factory.case(before=(spy,), answered=("q1",)),
        "correct": class_factory.HONEST["correct"],
    }
    class_factory.write_all(folder / "in", cases)
    with tempfile.TemporaryFile() as inherited:
        inherited.write(secrets["descriptor"].encode())
        inherited.seek(0)
        done = class_factory.run(
            folder,
            f"--seed={secrets['seed']}",
            env={**os.environ, "HOME": str(home), "TOKEN": secrets["environment"]},
            pass_fds=[inherited.fileno()],
            preexec_fn=lambda: add_key(secrets["keyring"]),
        )
    return folder / "out", done


def test_no_canary_is_in_anything_that_a_run_writes(spied):
    out, done = spied
    texts = class_factory.written(out)
    assert len(texts) >= 9  # three for each of the two, the tables, zipped pages
    texts |= {"terminal": done.stdout + done.stderr}
    leaks = {name: CANARY.findall(text) for name, text in texts.items()}
    assert {name: found for name, found in leaks.items() if found} == {}


def test_the_spy_ran_to_its_end(spied):
    graded = json.loads((spied[0] / "students" / "spy" / "graded.json").read_text())
    assert any(
        cell["error"] == "RuntimeError: found []" for cell in graded["result"]["cells"]
    ), graded


def test_the_spy_finds_canaries_where_nothing_is_hidden(tmp_path, monkeypatch):
    """Turned round: outside of the sandbox it finds each that it can reach."""
    secrets = {kind: canary(kind) for kind in KINDS[:4]}
    (tmp_path / "notes").write_text(secrets["home"])
    spy = SPY.replace("KEYCTL", str(KEYCTL)).replace("'HOME'", repr(str(tmp_path)))
    spy = spy.replace("glob.glob('/proc/[0-9]*') + ", "")  # this machine is large
    spy = spy.replace(
        "'/home', '/root', '/run', '/var', '/mnt', '/media', '/srv', '/tmp'", ""
    )
    program = spy.rpartition("raise ")[0]
    with tempfile.TemporaryFile() as inherited:
        inherited.write(secrets["descriptor"].encode())
        inherited.seek(0)
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=200,
            env={"TOKEN": secrets["environment"]},
            pass_fds=[inherited.fileno()],
            preexec_fn=lambda: add_key(secrets["keyring"]),
        )
    found = set(CANARY.findall(done.stdout))
    assert set(secrets.values()) <= found, done.stderr


def test_nothing_else_of_the_system_is_there():
    """Of a folder in which Python lies, there is the way to it and nothing else."""
    tops = ["/home", "/root", "/run", "/var", "/sys", "/srv", "/mnt", "/media", "/opt"]
    tops += ["/boot", "/etc/ssl/private"]
    pythons = {sys.prefix, sys.base_prefix, sys.exec_prefix}
    ways = {path for one in pythons for path in [Path(one), *Path(one).parents]}
    wanted = {
        top: sorted(way.name for way in ways if str(way.parent) == top) for top in tops
    }
    code = (
        f"import os\nfound = {{top: [] for top in {tops}}}\n"
        "for top in found:\n"
        "    try: found[top] = sorted(os.listdir(top))\n"
        "    except FileNotFoundError: pass\n"
        "print(found)"
    )
    with contextlib.closing(session.Session(Limits())) as worker:
        assert worker.run(code, 20) is None
        found = ast.literal_eval(worker.printed.decode())
        python_lies_in = {
            top for top in tops if Path(top) in {Path(p) for p in pythons}
        }
        assert {k: v for k, v in found.items() if k not in python_lies_in} == {
            k: v for k, v in wanted.items() if k not in python_lies_in
        }
        assert worker.run("open('/dev/kmsg')", 20)["type"] == "FileNotFoundError"
        for name in ("keys", "key-users", "locks", "cmdline"):
            code = f"import os\nif os.path.exists('/proc/{name}'): open('/proc/{name}')"
            error = worker.run(code, 20)
            assert error["type"] == "PermissionError", name


def test_what_can_be_written_lies_in_memory_and_is_bounded():
    code = (
        "import os\n"
        "found = []\n"
        "for folder, inside, names in os.walk('/'):\n"
        "    if folder.startswith('/proc'): inside.clear()\n"
        "    elif os.access(folder, os.W_OK): found.append(folder)\n"
        "tops = {f for f in found if not any(f.startswith(o + '/') for o in found)}\n"
        "print(sorted(tops - {'/dev/pts'}))"
    )
    with contextlib.closing(session.Session(Limits())) as worker:
        assert worker.run(code, 60) is None
        assert worker.printed.decode().strip() == "['/dev/shm', '/tmp']"


def test_the_paths_of_the_house_are_not_told():
    """Where Python lies is known inside; where the grader lies is not."""
    code = (
        "import glob\n"
        "for name in glob.glob('/proc/[0-9]*/cmdline') + ['/proc/self/mountinfo']:\n"
        "    print(open(name).read().replace(chr(0), ' '))"
    )
    with contextlib.closing(session.Session(Limits())) as worker:
        assert worker.run(code, 20) is None
        told = (
            worker.printed.decode().replace(sys.prefix, "").replace(sys.base_prefix, "")
        )
        assert str(ROOT / "grading") not in told
        assert str(Path.home()) not in told or str(Path.home()) == "/"
