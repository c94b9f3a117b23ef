"""The diagnosis, run in environments that are really broken; and its rules."""

import json
import os
import re
import subprocess
import sys
import venv

import pytest

from tools.model.chapters import ROOT

PROGRAM = ROOT / "programs" / "diagnose.py"
sys.path.insert(0, str(PROGRAM.parent))
import diagnose  # noqa: E402

T4 = "Tesla T4, 105, 15360"  # as nvidia-smi prints it
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"
FULL = "| N/A   38C    P8    9W /   70W |   15100MiB /  15360MiB |      0%"
FULL = f"|   0  Tesla T4            Off |   00000000:00:04.0 Off |  0 |\n{FULL}"
GPU = {"engine": "torch", "version": "2", "nvidia": 1, "driver": (12, 4), "count": 1}
GPU |= {"visible": 1, "capability": (7, 5), "cuda": (12, 4), "targets": ["sm_75"]}
GPU |= {"gpus": ["cuda:0"], "run": {}}


@pytest.fixture(scope="session")
def bare(tmp_path_factory):
    """A Python in which nothing is installed."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    return str(folder / "bin" / "python")


@pytest.fixture
def ask(tmp_path, bare):
    """Run the program with files, and with variables in which HERE is their folder."""

    def run(*names, python=bare, files=(), **variables):
        for name, text in dict(files).items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        kept = {k: os.environ[k] for k in ("PATH", "SYSTEMROOT") if k in os.environ}
        kept |= {"HOME": str(tmp_path), "PATH": f"{tmp_path}:{kept['PATH']}"}
        kept |= {k: v.replace("HERE", str(tmp_path)) for k, v in variables.items()}
        command = [python, str(PROGRAM), *names]
        done = subprocess.run(command, env=kept, capture_output=True, text=True)
        assert "Traceback" not in done.stderr, done.stderr
        assert not (tmp_path / ".keras").exists(), "it wrote a keras.json"
        assert done.returncode == ("numpy" in names)
        return done.stdout + done.stderr

    return run


RAISES = {"tensorflow/__init__.py": "raise RuntimeError('numpy 2 is not for me')"}
ABORTS = {"tensorflow/__init__.py": "import os; os.abort()"}
OLD, FILE = {"libnvJitLink.so.12": ""}, {"keras.json": '{"backend": "jax"}'}


def smi(text):
    """A stand-in for nvidia-smi that prints a text."""
    return {"nvidia-smi": f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n"}


SMI, TWO = smi(T4), smi(f"{T4}\n{T4}")
BROKEN = {  # files, variables, what the report must say
    "nothing installed": ({}, {}, "none of the engines is installed"),
    "no Keras": ({}, {}, "pip install -U keras"),
    "Colab": ({}, {"COLAB_RELEASE_TAG": "1"}, "Change runtime type > T4 GPU"),
    "no libcuda": (SMI, {}, "driver: nvidia-smi works; libcuda"),
    "driver updated": (smi(MISMATCH), {}, "fix: reboot"),
    "full": (smi(FULL), {}, "card is full: 15100 of 15360 MiB of the Tesla"),
    "hidden": (TWO, {"CUDA_VISIBLE_DEVICES": "-1,0"}, "=-1,0 shows 0 of 2 cards"),
    "one hidden": (TWO, {"CUDA_VISIBLE_DEVICES": "1"}, "DEVICES=1 shows 1 of 2 cards"),
    "raises": (
        RAISES,
        {"PYTHONPATH": "HERE"},
        "package (tensorflow): RuntimeError: numpy 2 is",
    ),
    "aborts": (ABORTS, {"PYTHONPATH": "HERE"}, "tensorflow ends its process: SIGABRT"),
    "old library": (OLD, {"LD_LIBRARY_PATH": "HERE"}, "fix: unset LD_LIBRARY_PATH"),
    "keras.json": (FILE, {"KERAS_HOME": "HERE"}, "takes jax: HERE/keras.json names"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_environment_is_named(ask, case, tmp_path):
    files, variables, words = BROKEN[case]
    said = " ".join(ask(files=files, **variables).split())
    assert words.replace("HERE", str(tmp_path)) in said
    assert said.count("PROBLEM") == said.count("fix: ") == said.count("source: https")


@pytest.mark.slow
def test_real_engines_without_what_they_need(ask):
    hide = "import sys\nsys.modules['torch'] = None\n"
    hidden = {"files": {"sitecustomize.py": hide}, "PYTHONPATH": "HERE"}
    here = {"python": sys.executable, "KERAS_BACKEND": "torch"}
    said = ask("jax", **here, JAX_PLATFORMS="cuda")
    assert "platform (jax): JAX_PLATFORMS=cuda" in said
    said = ask("torch", **here, **hidden)
    assert "backend: Keras takes torch because the variable" in said
    said = ask("torch", **here, files=SMI)
    assert "product ok" in said and "computes on cpu" in said


def test_an_unknown_name_is_refused(ask):
    assert ask("numpy").startswith("diagnose.py does not know numpy. Use: tensorflow")


CHOICES = [("", None), ("", "not json"), ("", FILE["keras.json"]), ("torch", "{}")]


@pytest.mark.slow
@pytest.mark.parametrize(("variable", "file"), CHOICES)
def test_the_backend_is_the_one_that_keras_takes(tmp_path, variable, file):
    if file:
        (tmp_path / "keras.json").write_text(file)
    given = os.environ | {"KERAS_HOME": str(tmp_path), "KERAS_BACKEND": variable}
    given |= {"PYTHONPATH": str(PROGRAM.parent), "CUDA_VISIBLE_DEVICES": "-1"}

    def last(code):
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=given, capture_output=True, text=True)
        return done.stdout.splitlines()[-1]

    ask = "import diagnose, json; print(json.dumps(diagnose.examine_keras()))"
    found = json.loads(last(ask))
    assert bool(file) == (tmp_path / "keras.json").exists()
    assert found["backend"] == last("import keras; print(keras.backend.backend())")
    assert found["device"] and not found["problem"]


JAX, INTEL = {"engine": "jax", "targets": []}, {"nvidia": 0, "intel": 1, "cuda": None}
RULES = [
    ({"run": {"cuda:0 product": ""}}, None),
    ({"cuda": (12, 9)}, None),  # machine code: the major number counts
    ({"cuda": (13, 0)}, "versions"),
    ({"cuda": (12, 9), "targets": ["compute_60"]}, "PTX"),
    ({"targets": ["sm_80"]}, "code"),
    ({"run": {"cuda:0 product": "CUDA out of memory."}}, "memory"),
    ({"run": {"cuda:0 product": "strange"}}, "run"),
    ({"gpus": []}, "run"),
    ({"cuda": None}, "package torch"),
    ({"engine": "tensorflow", "arch": "aarch64", "cuda": None}, "package Arm"),
    (JAX | {"system": "Windows", "cuda": None}, "package Windows"),
    (JAX | {"cuda": (13, 0), "driver": (13, 0), "capability": (7, 0)}, "age"),
    (JAX | {"problem": "Unable to load cuSPARSE"}, "libraries"),
    (INTEL, "package XPU"),
    (INTEL | {"xpu": "2025", "gpus": []}, "compute"),
]


@pytest.mark.parametrize(("change", "case"), RULES)
def test_the_rules_name_the_link(change, case):
    assert [found[0] for found in diagnose.judge(GPU | change)] == [case] * bool(case)


def test_each_case_has_an_answer_with_a_source():
    words = re.findall(r'yield \(?"([\w ]+)"|case = "([\w ]+)"', PROGRAM.read_text())
    assert {a or b for a, b in words} <= {*diagnose.ANSWERS}
    for cause, fix, source in diagnose.ANSWERS.values():
        assert cause and fix and source.startswith("https://") and "none" not in fix
