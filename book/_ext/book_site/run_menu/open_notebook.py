import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

FOLDER = "gpu-computing-notebooks"
PYTHON = ">=3.11,<3.14"  # TensorFlow has wheels for these
# Who names a place of packages, or a build of PyTorch, has chosen one.
CHOSEN = ("UV_TORCH_BACKEND", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL")
CHOSEN += ("UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")
ASK = "\nimport json; f, w = compiler_wheels(); print(json.dumps([str(f), w]))"


def run(*words):
    """Show a command and run it; stop with its status if it fails."""
    print("+", *words, flush=True)
    status = subprocess.run(words, check=False).returncode
    if status:
        raise SystemExit(status)


def folder():
    """Where the notebooks and their packages lie: below this folder, or this one."""
    here = Path.cwd()
    found = here if here.name == FOLDER else here / FOLDER
    found.mkdir(exist_ok=True)
    return found


def fetch(address, path):
    """Download the notebook if it is not here: what you changed stays."""
    if path.exists():
        print(f"{path} is here and stays as it is; rename it to fetch it anew")
        return
    print(f"fetching {address}", flush=True)
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            text = answer.read()
        json.loads(text)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise SystemExit(
            f"error: {address} can't be fetched ({reason}). Fix: download the "
            f"notebook with your browser, put it into {path.parent}, and run this again"
        ) from None
    part = path.with_suffix(".part")
    part.write_bytes(text)
    part.replace(path)


def install(uv, python, needs, versions):
    """Install what the notebook needs, in the versions that the book is tested with."""
    os.environ.setdefault("UV_COMPILE_BYTECODE", "1")  # once, not in each process
    words = [uv, "pip", "install", "--python", str(python), "--constraint", versions]
    torch = any(need.startswith("torch") for need in needs)
    if torch and not any(name in os.environ for name in CHOSEN):
        words += ["--torch-backend", "auto"]  # no CUDA where there is no GPU
    run(*words, *needs)


def install_compiler(uv, python, source):
    """Install XLA's compiler for NVIDIA GPUs, which exists for Linux, in a folder."""
    if not source or sys.platform != "linux":
        return
    asked = [str(python), "-c", source + ASK]
    told = subprocess.run(asked, stdout=subprocess.PIPE, check=True).stdout
    place, wheels = json.loads(told)
    if not Path(place).exists():
        part = f"{place}.part"  # an interrupted installation is no installation
        shutil.rmtree(part, ignore_errors=True)
        target = ["--no-deps", "--target", part]
        run(uv, "pip", "install", "--python", str(python), *target, *wheels)
        Path(part).rename(place)


def main(address, versions, needs, compiler=""):
    """Open the notebook; the words of the command line go to JupyterLab."""
    uv = os.environ.get("UV") or shutil.which("uv")
    if not uv:
        raise SystemExit("error: there is no uv. Fix: start this with `uv run`")
    place = folder()
    notebook = place / address.rpartition("/")[2]
    fetch(address, notebook)
    venv = place / ".venv"
    programs = venv / ("Scripts" if os.name == "nt" else "bin")
    python = programs / ("python.exe" if os.name == "nt" else "python")
    if not python.exists():
        run(uv, "venv", "--seed", "--python", PYTHON, str(venv))
    done = venv / f"installed-{notebook.stem}"  # then no network is needed
    wanted = json.dumps([versions, needs, compiler])
    if not done.exists() or done.read_text(encoding="utf-8") != wanted:
        install(uv, python, needs, versions)
        install_compiler(uv, python, compiler)
        done.write_text(wanted, encoding="utf-8")
    os.environ["VIRTUAL_ENV"] = str(venv)
    os.environ["PATH"] = os.pathsep.join([str(programs), os.environ.get("PATH", "")])
    words = [str(python), "-m", "jupyterlab", str(notebook), *sys.argv[1:]]
    print("+", *words, flush=True)
    if os.name == "nt":
        return subprocess.run(words, check=False).returncode
    os.execv(words[0], words)
