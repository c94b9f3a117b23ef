# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = []
# ///
"""Open a notebook of the book in JupyterLab, with the packages that it needs.

    uv run {{ pages_url }}run.py 05

05 is the number of a chapter; the name of a notebook will do, too, and without either
all notebooks are listed. Words behind it go to JupyterLab: `--no-browser`.

The notebook comes into this folder. One that is there already stays as it is. The
packages come into uv's cache, in the versions that the book is tested with.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

SITE = "{{ pages_url }}"
VERSIONS = f"{SITE}latest.txt"
PAGE = re.compile(r"((?:notebooks|assignments)/([\w-]+))\.html<")
# An import at the beginning of a line or of a statement.
IMPORT = re.compile(r"(?:^|;)[ \t]*(?:import|from)[ \t]+(\w+)", re.MULTILINE)
# A text such as "openvino>=2025.3", which a set-up cell checks.
ASKED = re.compile(r"""["']([\w-]+)[<>=~!]=""")
PACKAGES = {"sklearn": "scikit-learn"}  # others: as imported
# The function of a notebook that says what XLA's compiler for NVIDIA GPUs consists of.
COMPILER = re.compile(r"^COMPILER_JAX.*?^def compiler_wheels.*?(?=^\S)", re.M | re.S)
ASK = "import importlib.metadata, json, pathlib, sys\n{}"
ASK += "folder, wheels = compiler_wheels()\nprint(json.dumps([str(folder), wheels]))"
# Who names a place of packages has chosen a build of PyTorch.
PLACE = re.compile(r"UV_(\w*INDEX(_URL)?|FIND_LINKS)$")


def download(address: str) -> str:
    """The text at an address."""
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return answer.read().decode()
    except OSError as error:
        reason = getattr(error, "reason", error)
        sys.exit(
            f"error: {address} can't be fetched ({reason}). "
            "Fix: look whether your browser opens it, and run this again"
        )


def find(wanted: str) -> str:
    """The path of a notebook on the site, without its suffix."""
    pages = {name: path for path, name in PAGE.findall(download(f"{SITE}sitemap.xml"))}
    for name, path in pages.items():
        if name == wanted or name.startswith(f"{wanted.zfill(2)}-"):
            return path
    problem = f"there is no {wanted}" if wanted else "no notebook is named"
    sys.exit(f"error: {problem}. Fix: name one of these:\n" + "\n".join(pages))


def fetch(path: str) -> Path:
    """The notebook in this folder; it is downloaded if it is not there."""
    notebook = Path(path).with_suffix(".ipynb")
    here = Path(notebook.name)
    if here.exists():
        print(f"{here} is here and stays as it is; rename it to fetch it anew")
    else:
        here.write_text(download(f"{SITE}_sources/{notebook}"), encoding="utf-8")
    return here


def code_of(notebook: Path) -> str:
    """All code of a notebook."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        return "\n".join("".join(x["source"]) for x in cells if "outputs" in x)
    except (ValueError, KeyError, TypeError) as error:
        sys.exit(f"error: {notebook} is no notebook ({error}). Fix: rename it")


def requirements(code: str) -> list[str]:
    """What a notebook imports or asks for, in the versions that are tested."""
    names = {*IMPORT.findall(code), *ASKED.findall(code), "jupyterlab"}
    names = {PACKAGES.get(name, name).replace("_", "-") for name in names}
    pins = re.findall(r"(?m)^([\w.-]+)==\S+", download(VERSIONS))
    return sorted(names.intersection(pins))


def install_compiler(uv: str, tool: list[str], code: str) -> None:
    """Install XLA's compiler for NVIDIA GPUs, which exists for Linux alone."""
    function = COMPILER.search(code)
    if not function or sys.platform != "linux":
        return
    ask = [*tool, "python", "-c", ASK.format(function[0])]
    answer = subprocess.run(ask, stdout=subprocess.PIPE, check=True).stdout
    folder, wheels = json.loads(answer)
    if not Path(folder).exists():
        part = f"{folder}.part"  # an interrupted installation is no installation
        words = [uv, "pip", "install", "--no-deps", "--target", part, *wheels]
        subprocess.run(words, check=True)
        Path(part).rename(folder)


def main(wanted: str = "", *words: str) -> int:
    """Open the notebook that is wanted, with words for JupyterLab."""
    uv = os.environ.get("UV") or shutil.which("uv")
    if not uv:
        sys.exit("error: there is no uv. Fix: start this with `uv run`")
    notebook = fetch(find(wanted))
    code = code_of(notebook)
    if not any(map(PLACE.match, os.environ)):
        os.environ.setdefault("UV_TORCH_BACKEND", "auto")  # no CUDA without a GPU
    tool = [uv, "tool", "run", "--python", "{}.{}".format(*sys.version_info)]
    tool += ["--constraints", VERSIONS, "--from", "jupyterlab"]
    for name in requirements(code):
        tool += ["--with", name]
    try:
        install_compiler(uv, tool, code)
        return subprocess.run([*tool, "jupyter-lab", str(notebook), *words]).returncode
    except subprocess.CalledProcessError as error:
        return error.returncode  # uv has said why


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
