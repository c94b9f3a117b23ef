"""What the tests need that pip does not bring: a browser, and programs."""

from __future__ import annotations

import pytest

from tools.model.errors import UserError
from tools.setup import chromium, installing, programs


@pytest.fixture
def bare_machine(monkeypatch):
    """A machine without any browser."""
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(chromium, "COMMANDS", ())
    monkeypatch.setattr(chromium, "MAC_APPLICATIONS", ())
    monkeypatch.setattr(chromium, "find_download", lambda: None)
    return monkeypatch


def program(path):
    """A file that can be run."""
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_chosen_browser_comes_first(bare_machine, tmp_path):
    chosen = program(tmp_path / "browser")
    bare_machine.setenv("CHROMIUM", str(chosen))
    assert chromium.find() == str(chosen)


def test_a_chosen_browser_that_is_missing_is_an_error(bare_machine, tmp_path, capsys):
    bare_machine.setenv("CHROMIUM", str(tmp_path / "absent"))
    with pytest.raises(UserError, match=r"CHROMIUM=.*absent.*unset it"):
        chromium.find()
    assert chromium.main() == 1
    assert capsys.readouterr().err.startswith("error: CHROMIUM=")


@pytest.mark.parametrize("name", ["chromium", "google-chrome-stable"])
def test_a_command_of_the_system_is_found(bare_machine, tmp_path, name):
    path = program(tmp_path / name)
    bare_machine.setenv("PATH", str(tmp_path))
    bare_machine.setattr(chromium, "COMMANDS", ("chromium", "google-chrome-stable"))
    assert chromium.find() == str(path)


def test_an_application_on_a_mac_is_found(bare_machine, tmp_path):
    path = program(tmp_path / "Google Chrome")
    bare_machine.setattr(chromium, "MAC_APPLICATIONS", (str(path),))
    assert chromium.find() == str(path)


def test_an_earlier_download_is_found(bare_machine):
    bare_machine.setattr(chromium, "find_download", lambda: "/downloads/chrome")
    assert chromium.find() == "/downloads/chrome"


def test_the_second_way_is_tried_where_the_first_fails(bare_machine):
    tried = []

    def fails():
        tried.append("download")
        return False

    def works():
        tried.append("package")
        bare_machine.setattr(chromium, "find_download", lambda: "/usr/bin/chromium")
        return True

    assert chromium.get((fails, works)) == "/usr/bin/chromium"
    assert tried == ["download", "package"]


def test_no_way_left_says_how_to_get_one(bare_machine):
    with pytest.raises(UserError, match="playwright install chromium"):
        chromium.get((lambda: False,))


def test_a_driver_that_lacks_a_library_gets_it(bare_machine):
    here = []
    lacks = "libatomic.so.1: cannot open shared object file"
    bare_machine.setattr(chromium, "driver_problem", lambda: "" if here else lacks)
    bare_machine.setattr(installing, "install_package", lambda _: False)
    with pytest.raises(UserError, match=r"libatomic.so.1.*apt-get install libatomic1"):
        chromium.start_driver()
    bare_machine.setattr(
        installing, "install_package", lambda name: here.append(name) or True
    )
    chromium.start_driver()
    assert here == ["libatomic1"]


def test_the_driver_starts_here_and_a_broken_one_says_why(monkeypatch):
    assert chromium.driver_problem() == ""
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", "/no/such/node")
    assert "/no/such/node" in chromium.driver_problem()


def test_a_package_is_installed_by_root_only(bare_machine):
    bare_machine.setattr(chromium.os, "geteuid", lambda: 1000)
    bare_machine.setattr(installing, "succeeds", lambda *_: pytest.fail("ran"))
    assert chromium.install_package() is False


def test_a_program_that_fails_or_is_missing_has_not_succeeded():
    assert installing.succeeds("true")
    assert not installing.succeeds("false")
    assert not installing.succeeds("no-such-program-here")


def test_a_browser_is_here():
    assert chromium.get()


def test_a_missing_program_is_installed_or_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(installing, "install_package", lambda _: False)
    assert programs.main() == 1
    said = "the tests call git, which is not here. Fix: install it (Debian: apt-get"
    assert said in capsys.readouterr().err
    monkeypatch.setattr(
        installing, "install_package", lambda name: program(tmp_path / name)
    )
    assert programs.main() == 0
