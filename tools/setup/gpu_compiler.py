"""Give a Python XLA's compiler for NVIDIA GPUs, which chapters 17 and 18 ask.

`python -m tools.setup.gpu_compiler [PYTHON]`. It lies in a folder of its own, because
with it on its path every `import jax` looks for a GPU. Nothing else is needed of CUDA.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tools.setup import uv

SNIPPET = Path(__file__).resolve().parents[2] / "snippets" / "compiler_wheels.py"
ASK = "\nimport json; f, w = compiler_wheels(); print(json.dumps([str(f), w]))"


def main(arguments: list[str] | None = None) -> int:
    """Install the wheels if they are missing; the exit status of uv."""
    words = sys.argv[1:] if arguments is None else arguments
    python = words[0] if words else sys.executable
    if sys.platform != "linux":
        return 0  # there are no such wheels: the chapters' cells say so
    source = SNIPPET.read_text(encoding="utf-8") + ASK
    done = subprocess.run([python, "-c", source], stdout=subprocess.PIPE, check=True)
    folder, wheels = json.loads(done.stdout)
    if Path(folder).exists():
        return 0
    part = Path(f"{folder}.part")  # an interrupted installation is no installation
    shutil.rmtree(part, ignore_errors=True)
    install = ["pip", "install", "--python", python, "--no-deps", "--target", str(part)]
    status = uv.main([*install, *wheels])
    if status == 0:
        part.rename(folder)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
