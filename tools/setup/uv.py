"""Run uv with what pip is told: `python -m tools.setup.uv pip install keras`.

uv installs several times as fast as pip, and does not read pip's settings, in which a
classroom names its mirror, its proxy or its folder of packages. It is the one on PATH,
or comes by pip. This runs before anything is installed: it needs only Python and pip.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

# A setting of pip, uv's variable for it, and what stands between several values there.
VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", ""),
    "proxy": ("ALL_PROXY", ""),
    "default-timeout": ("UV_HTTP_TIMEOUT", ""),
    "timeout": ("UV_HTTP_TIMEOUT", ""),
    "retries": ("UV_HTTP_RETRIES", ""),
}
# Who names a place of packages has chosen a build of PyTorch.
PLACES = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL")
PLACES += ("UV_FIND_LINKS",)


def pip_settings() -> dict[str, str]:
    """What pip is told by its files and by variables, by the setting's name."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True
    )
    found = {}
    for line in reversed(done.stdout.splitlines()):  # variables come first, and win
        key, _, value = line.partition("=")
        found[key.rpartition(".")[2]] = ast.literal_eval(value)
    return found


def settings(pip: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The variables that say to uv what pip is told; those that are given stay.

    Args:
        pip: what `pip_settings` returns.
        given: the variables of this process.
    """
    found = {  # as pip: the best version of all indexes, and no Python unasked
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_HTTP_RETRIES": "2",
    }
    for name, value in pip.items():
        variable, separator = VARIABLES.get(name, ("", ""))
        if variable and value:
            found[variable] = separator.join(value.split()) if separator else value
    if sys.platform == "linux" and not any(x in found or x in given for x in PLACES):
        found["UV_TORCH_BACKEND"] = "auto"  # no CUDA where there is no GPU
    return found | {name: x for name, x in given.items() if name in found}


def program() -> list[str]:
    """The command that runs uv; it is installed where there is none."""
    if path := shutil.which("uv"):
        return [path]
    if importlib.util.find_spec("uv") is None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "uv"]
        subprocess.run(pip, check=True)
    return [sys.executable, "-m", "uv"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run uv with these arguments; its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        command = program()
    except subprocess.CalledProcessError as error:
        return error.returncode
    environment = os.environ | settings(pip_settings(), os.environ)
    return subprocess.run([*command, *words], env=environment, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
