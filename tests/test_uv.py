"""What uv is told."""

import subprocess
import sys

import pytest

from tools.setup import uv


@pytest.fixture
def pip(tmp_path, monkeypatch):
    """A file of pip's settings, and none of the machine's own."""
    for name in uv.PLACES:
        monkeypatch.delenv(name, raising=False)
    for name in ("CERT", "FIND_LINKS", "EXTRA_INDEX_URL", "INDEX_URL", "PROXY"):
        monkeypatch.delenv(f"PIP_{name}", raising=False)
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex-url = https://mirror.example/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    return file


def test_pips_file_and_variables_are_read_and_variables_win(pip, monkeypatch):
    pip.write_text(
        "[global]\nindex-url = https://mirror.example/simple\nproxy = http://p:1\n"
        "extra-index-url =\n    https://a.example/x\n    https://b.example/x\n"
    )
    monkeypatch.setenv("PIP_PROXY", "http://q:2")
    monkeypatch.setenv("PIP_FIND_LINKS", "/one /two")
    found = uv.settings(uv.pip_settings(), {})
    assert found["UV_DEFAULT_INDEX"] == "https://mirror.example/simple"
    assert found["UV_INDEX"] == "https://a.example/x https://b.example/x"
    assert found["UV_FIND_LINKS"] == "/one,/two"
    assert found["ALL_PROXY"] == "http://q:2"


def test_what_uv_is_told_already_stays(pip):
    found = uv.settings({"index-url": "pips"}, {"UV_DEFAULT_INDEX": "uvs"})
    assert found["UV_DEFAULT_INDEX"] == "uvs"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere PyPI has no CUDA build")
def test_pytorch_is_built_for_this_machine_unless_a_place_is_named():
    assert uv.settings({}, {})["UV_TORCH_BACKEND"] == "auto"
    assert uv.settings({}, {"UV_TORCH_BACKEND": "cu130"})["UV_TORCH_BACKEND"] == "cu130"
    assert "UV_TORCH_BACKEND" not in uv.settings({"find-links": "/wheels"}, {})
    assert "UV_TORCH_BACKEND" not in uv.settings({}, {"UV_INDEX": "https://a.example"})


def test_the_status_of_uv_is_passed_on(capfd):
    assert uv.main(["--version"]) == 0
    assert capfd.readouterr().out.startswith("uv ")
    assert uv.main(["no-such-command"]) != 0


def test_uv_is_installed_where_there_is_none(monkeypatch):
    told = []
    monkeypatch.setattr(uv.shutil, "which", lambda name: None)
    monkeypatch.setattr(uv.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(uv.subprocess, "run", lambda words, **_: told.append(words))
    assert uv.program() == [sys.executable, "-m", "uv"]
    assert told[0][1:4] == ["-m", "pip", "install"] and told[0][-1] == "uv"


def test_no_network_for_uv_itself_is_a_status(monkeypatch):
    def fail(*_, **__):
        raise subprocess.CalledProcessError(1, "pip")

    monkeypatch.setattr(uv, "program", fail)
    assert uv.main(["--version"]) == 1
