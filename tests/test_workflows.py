"""The GitHub workflows: checked by actionlint and zizmor, pinned, limited in time."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from tools.checks import parts
from tools.model.chapters import ROOT
from tools.site import kept

FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
OWN = "./.github/workflows/"  # a workflow of the same commit
CHECKOUT = re.compile(r"actions/checkout@\S+ # \S+")


def load(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def pip_updates():
    updates = load(ROOT / ".github" / "dependabot.yml")["updates"]
    return next(x for x in updates if x["package-ecosystem"] == "pip")


def check(root):
    """Whether all that looks at workflows finds nothing."""
    for name in (".ci/run", "tools/setup/bootstrap.sh"):
        if root != ROOT:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
    found = {step.run(root)[0] for step in parts.workflows(root)}
    return found == {parts.PASSED}


def test_the_repository_passes(capfd):
    assert check(ROOT), capfd.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        (CHECKOUT, "actions/checkout@v7", "unpinned-uses"),
        ("    runs-on: ", "    run-on: ", "run-on"),
        ("run: make lint", "run: 'echo ${{ github.head_ref }}'", "template-injection"),
        ("run: make lint", "run: rm $file", "SC2086"),
        ("persist-credentials: false", "fetch-depth: 1", "artipacked"),
        ("name: ci", "name: [ci", "yaml"),
    ],
    ids=["unpinned", "misspelt", "injection", "shell", "credentials", "syntax"],
)
def test_a_fault_turns_the_check_red(tmp_path, capfd, old, new, finding):
    shutil.copytree(ROOT / ".github", tmp_path / ".github")
    path = tmp_path / ".github/workflows/ci.yml"
    text = path.read_text()
    changed = re.sub(old, new, text)
    assert changed != text
    path.write_text(changed)
    assert not check(tmp_path)
    assert finding.lower() in capfd.readouterr().out.lower()


def test_a_fault_in_a_script_turns_the_check_red(tmp_path, capfd):
    shutil.copytree(ROOT / ".github", tmp_path / ".github")
    assert check(tmp_path), capfd.readouterr().out
    (tmp_path / ".github/scripts/issue.sh").write_text("#!/bin/sh\nrm $file\n")
    assert not check(tmp_path)
    assert "SC2086" in capfd.readouterr().out


def test_no_workflow_turns_the_check_red(tmp_path):
    shutil.copytree(ROOT / ".github/scripts", tmp_path / ".github/scripts")
    assert not check(tmp_path)


def test_a_missing_checker_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(parts.sysconfig, "get_path", lambda name: str(tmp_path))
    found = {step.run(ROOT) for step in parts.workflows(ROOT)}
    assert ("could not run", "actionlint: No such file or directory") in found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_action_is_pinned_to_a_release(path):
    lines = re.findall(r"^.*\buses:.*$", path.read_text(), re.MULTILINE)
    assert lines
    for line in lines:
        if f" uses: {OWN}" in line:
            continue
        assert re.search(r"uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_an_action_has_one_version_everywhere():
    pins = {}
    for path in FILES:
        for action, pin in re.findall(r"uses: ([\w/-]+)@(.*)", path.read_text()):
            assert pins.setdefault(action, pin) == pin, f"{path.name}: {action}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_job_has_a_time_limit_and_its_own_permissions(path):
    workflow = load(path)
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        assert job["permissions"], name
        if not job.get("uses", "").startswith(OWN):  # its jobs have their own
            assert job["timeout-minutes"] <= 90, name


def test_who_can_write_and_what():
    writers = {
        (path.name, name): {k for k, v in job["permissions"].items() if v == "write"}
        for path in FILES
        for name, job in load(path)["jobs"].items()
    }
    assert {job: scopes for job, scopes in writers.items() if scopes} == {
        ("ci.yml", "publish"): {"contents", "pages", "id-token"},
        ("deploy.yml", "deploy"): {"pages", "id-token"},
        ("deploy.yml", "keep"): {"contents"},
        ("weekly.yml", "alert"): {"issues"},
        ("weekly.yml", "keep-on"): {"actions"},
    }


def triggers(path):
    """What starts a workflow; YAML reads the key `on` as true."""
    started = load(path)[True]
    return set(started) if isinstance(started, dict) else {started}


def test_the_site_is_published_from_a_tested_commit_only():
    ci = load(ROOT / ".github/workflows/ci.yml")["jobs"]
    publish = ci["publish"]
    assert set(publish["needs"]) == set(ci) - {"publish"} == {"lint", "test", "site"}
    assert publish["if"] == (
        "github.event_name == 'push' && github.ref == 'refs/heads/main'"
    )  # with no function of a status in it, all that it needs must have passed
    assert all("continue-on-error" not in str(job) for job in ci.values())
    assert publish["uses"] == f"{OWN}deploy.yml"


def test_nothing_else_publishes():
    assert triggers(ROOT / ".github/workflows/deploy.yml") == {"workflow_call"}
    assert triggers(ROOT / ".github/workflows/ci.yml") == {"push", "pull_request"}
    text = {path.name: path.read_text() for path in FILES}
    callers = [name for name, words in text.items() if f"{OWN}deploy.yml" in words]
    assert callers == ["ci.yml"]
    assert text["ci.yml"].count(f"{OWN}deploy.yml") == 1
    assert [n for n, words in text.items() if "deploy-pages@" in words] == [
        "deploy.yml"
    ]


def test_the_deploy_job_publishes_what_this_commit_builds():
    jobs = load(ROOT / ".github/workflows/deploy.yml")["jobs"]
    checkouts = [
        step
        for step in jobs["build"]["steps"]
        if step.get("uses", "").startswith("actions/checkout@")
    ]
    (checkout,) = checkouts
    assert "ref" not in checkout["with"]
    assert jobs["deploy"]["needs"] == "build"


GH = """#!/usr/bin/env bash
# GitHub with one release, v2026.01, whose file lies in $KEPT.
case "$1 $2" in
    "release list") echo v2026.01 ;;
    "release view") [ "$3" = v2026.01 ] ;;
    "release download")
        while [ "$1" != --output ]; do shift; done
        cp "$KEPT" "$2"
        ;;
    "release create") echo "$@" >>created ;;
esac
"""
MAKE = """#!/usr/bin/env bash
mkdir -p _build/html && touch _build/built-from.json
echo "${BOOK_RELEASE:-today} on $(cat branch)" >_build/html/index.html
"""
PYTHON = """#!/usr/bin/env bash
case "$2" in
    tools.model.address) echo "$6" >branch ;; # --set URL --branch NAME
    tools.notebooks.sync) ;;
    *) PYTHONPATH="$ROOT" exec "$PYTHON" "$@" ;;
esac
"""


@pytest.fixture
def deploying(tmp_path):
    """A function that runs a script of the deployment, with stand-ins for programs."""
    for name, text in {"gh": GH, "make": MAKE, ".venv/bin/python": PYTHON}.items():
        path = tmp_path / ("bin" if "/" not in name else "") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "index.html").write_text("2026.01 as it was\n")
    shutil.make_archive(str(tmp_path / "kept"), "zip", kept)
    environment = os.environ | {
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "PYTHON": sys.executable,
        "ROOT": str(ROOT),
        "KEPT": str(tmp_path / "kept.zip"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "someone/some-book",
        "GITHUB_REF_NAME": "main",
        "TAG": "v2026.02",
    }
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)

    def run(*words, **changed):
        if words[0] != "git":
            words = ("bash", str(ROOT / ".github/scripts" / words[0]))
        variables = environment | changed
        subprocess.run(words, cwd=tmp_path, env=variables, check=True)
        return tmp_path

    return run


def pages(root):
    """The site that would be published: its pages and what they say."""
    site = root / "_build/html"
    found = site.rglob("index.html")
    return {path.relative_to(site).as_posix(): path.read_text() for path in found}


def test_the_pages_of_a_release_are_published_and_kept(deploying):
    deploying("git", "tag", "v2026.02")
    root = deploying("build-release.sh")
    assert (root / "output").read_text() == "tag=v2026.02\n"
    assert not (root / "_build/html").exists()  # the site is built by another step
    subprocess.run([str(root / "bin/make")], cwd=root, check=True)
    deploying("add-releases.sh")
    assert pages(root) == {
        "index.html": "today on main\n",
        "releases/2026.01/index.html": "2026.01 as it was\n",
        "releases/2026.02/index.html": "2026.02 on v2026.02\n",
    }
    deploying("keep-release.sh")
    deploying("keep-release.sh", TAG="v2026.01")  # it is there, and stays
    created = (root / "created").read_text().splitlines()
    assert [line[:50] for line in created] == [
        "release create v2026.02 _build/release/site.zip --"
    ]


def test_a_commit_that_is_no_release_publishes_the_earlier_ones(deploying):
    root = deploying("build-release.sh")
    assert (root / "output").read_text() == "tag=\n"
    (root / "_build/html").mkdir(parents=True)
    deploying("add-releases.sh")
    assert "releases/2026.01/index.html" in pages(root)
    assert not (root / "_build/release").exists()


def test_a_file_that_holds_no_site_is_refused(tmp_path, capsys):
    (tmp_path / "site.zip").write_text("no zip")
    words = ["unpack", str(tmp_path / "site.zip"), str(tmp_path / "out")]
    assert kept.main(words) == 1
    assert "site.zip: File is not a zip file. Fix: " in capsys.readouterr().err
    assert kept.main(["pack", str(tmp_path), str(tmp_path / "new.zip")]) == 1
    assert "holds no site. Fix: make book" in capsys.readouterr().err


def test_the_deployment_runs_the_scripts_in_order():
    jobs = load(ROOT / ".github/workflows/deploy.yml")["jobs"]
    runs = [step["run"] for step in jobs["build"]["steps"] if "run" in step]
    assert "make zip" in runs[3]
    assert [*runs[1:3], *runs[4:]] == [
        "bash .github/scripts/build-release.sh",
        "make book",
        "make book",
        "bash .github/scripts/add-releases.sh",
    ]
    assert set(jobs["keep"]["needs"]) == {"build", "deploy"}


def test_a_run_on_main_is_not_cancelled_by_the_next():
    ends = load(ROOT / ".github/workflows/ci.yml")["concurrency"]["cancel-in-progress"]
    assert ends == "${{ github.ref != 'refs/heads/main' }}"


def test_the_weekly_run_keeps_its_own_schedule_on():
    jobs = load(ROOT / ".github/workflows/weekly.yml")["jobs"]
    job = jobs["keep-on"]
    assert "needs" not in job and "if" not in job  # it waits for no other
    assert [x["run"] for x in job["steps"] if "run" in x] == [
        "bash .github/scripts/keep-on.sh"
    ]
    assert set(jobs["alert"]["needs"]) == {"check", "keep-on"}
    (kept,) = (
        step["env"]["KEPT_ON"]
        for step in jobs["alert"]["steps"]
        if "KEPT_ON" in step.get("env", {})
    )
    assert kept == "${{ needs.keep-on.result }}"


def test_a_variant_checks_what_it_can():
    check = load(ROOT / ".github/workflows/weekly.yml")["jobs"]["check"]
    variants = {x["variant"]: x for x in check["strategy"]["matrix"]["include"]}
    assert {name: x["tests"] for name, x in variants.items()} == {
        "latest": "notebooks tests",
        "newest": "notebooks tests",
        "colab": "notebooks",
    }
    assert variants["colab"]["options"] == "--nbval-lax"


def test_the_results_of_a_variant_are_all_reports(tmp_path):
    steps = load(ROOT / ".github/workflows/weekly.yml")["jobs"]["check"]["steps"]
    script = next(x["run"] for x in steps if x.get("name") == "Keep the results")
    reports = tmp_path / "_build" / "reports"
    reports.mkdir(parents=True)
    for name in ("claims.xml", "tests.xml", "parts.json"):
        (reports / name).write_text(name)
    line = ["bash", "-eo", "pipefail", "-c", script]
    environment = os.environ | {"OUTCOME": "failure"}
    subprocess.run(line, cwd=tmp_path, env=environment, check=True)
    kept = {path.name for path in (tmp_path / "results").iterdir()}
    assert kept == {
        *("claims.xml", "tests.xml", "parts.json"),
        *("versions.txt", "outcome.txt"),
    }


def test_nothing_that_runs_weekly_comes_from_a_cache():
    assert "cache:" not in (ROOT / ".github/workflows/weekly.yml").read_text()


def test_the_report_names_every_variant():
    jobs = load(ROOT / ".github/workflows/weekly.yml")["jobs"]
    variants = {x["variant"] for x in jobs["check"]["strategy"]["matrix"]["include"]}
    script = (ROOT / ".github/scripts/report.sh").read_text()
    assert set(re.findall(r"(\w+)=results/\1\b", script)) == variants
    runs = [step.get("run") for step in jobs["alert"]["steps"]]
    assert "bash .github/scripts/report.sh" in runs


def test_the_newest_engines_are_not_held_back(tmp_path):
    shutil.copy(ROOT / "requirements.txt", tmp_path)
    steps = load(ROOT / ".github/workflows/weekly.yml")["jobs"]["check"]["steps"]
    script = next(x["run"] for x in steps if x.get("name", "").startswith("Look"))
    subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, check=True)
    before = (ROOT / "requirements.txt").read_text().splitlines()
    after = (tmp_path / "requirements.txt").read_text().splitlines()
    engines = {"jax", "keras", "openvino", "tensorflow", "torch"}
    seen = set()
    for old, new in zip(before, after, strict=True):
        name = re.match(r"[\w-]*", new)[0]
        if name in engines:
            seen.add(name)
            assert "<" not in new
            assert old.startswith(new)
        else:
            assert old == new
    assert seen == engines


def test_jupyter_book_is_held_below_2():
    held = [
        x for x in pip_updates()["ignore"] if x["dependency-name"] == "jupyter-book"
    ]
    assert held == [{"dependency-name": "jupyter-book", "versions": [">=2"]}]
    requirements = (ROOT / "requirements-book.txt").read_text()
    assert re.search(r"^jupyter-book[^#\n]*<2\b", requirements, re.MULTILINE)


def test_dependabot_raises_what_the_requirements_name():
    names = {"jaxlib"}
    for path in ROOT.glob("requirements*.txt"):
        names |= set(re.findall(r"^[a-z][\w-]*", path.read_text(), re.MULTILINE))
    allowed = {x["dependency-name"] for x in pip_updates()["allow"]}
    assert allowed == names, (
        "make .github/dependabot.yml name what requirements*.txt do"
    )


def test_colab_versions_are_exact_and_say_where_they_come_from():
    text = (ROOT / "constraints" / "colab.txt").read_text()
    assert re.search(r"commit\n# [0-9a-f]{40} \(\d{4}-\d\d-\d\d\)", text)
    pins = [x for x in text.splitlines() if x and not x.startswith("#")]
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", pin) for pin in pins)
    assert {"tensorflow", "keras", "jax", "torch"} <= {p.split("==")[0] for p in pins}
    assert "constraints/colab.txt" in pip_updates()["exclude-paths"]


def test_make_test_takes_the_options_that_the_workflows_give():
    used = "\n".join(path.read_text() for path in FILES)
    dry = ["make", "-n", "test", "PYTEST_ARGS=--this-option"]
    printed = subprocess.run(dry, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "PYTEST_ARGS=" in used
    assert re.search(r"tools\.checks\b.* -- --this-option", printed.stdout)
    assert "TESTS=" in used
    assert "CONSTRAINTS=" in used
    assert re.search(
        r"\$\{?CONSTRAINTS\b", (ROOT / "tools/setup/bootstrap.sh").read_text()
    )


AS_ROOT = r"(?m)^{} -m pytest -n 2 --dist loadscope tests/test_grad\*\.py( |$)"


def test_the_graders_tests_run_as_an_ordinary_user_and_as_root():
    steps = load(ROOT / ".github/workflows/ci.yml")["jobs"]["test"]["steps"]
    scripts = [step.get("run", "") for step in steps]
    (whole,) = (n for n, text in enumerate(scripts) if text.startswith("make test "))
    (again,) = (n for n, text in enumerate(scripts) if "sudo .venv" in text)
    assert whole < again
    assert re.search(AS_ROOT.format("sudo .venv/bin/python"), scripts[again])
    script = (ROOT / ".ci/run").read_text()
    assert re.search(AS_ROOT.format(".venv/bin/python"), script)


def test_a_test_that_only_root_can_run_is_one_of_the_graders():
    tests = (ROOT / "tests").glob("test_*.py")
    asks = r"geteuid\(\) [!=]= 0"
    for_root = {x.name for x in tests if re.search(asks, x.read_text())}
    assert for_root
    assert {x for x in for_root if not x.startswith("test_grad")} == set()


def test_the_dev_container_sets_up_what_make_lab_does():
    """Its form was held against the schema of containers.dev."""
    file = ROOT / ".devcontainer" / "devcontainer.json"
    container = json.loads(file.read_text(encoding="utf-8"))
    command = container["postCreateCommand"]
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nlab:")[2]
    assert recipe.splitlines()[1] == f"\t@{command}"
    script = re.search(r"sh (\S+)", command)[1]
    suits = re.search(r"in ([\d. |]+)\) true", (ROOT / script).read_text())[1]
    image = re.fullmatch(r"\S+/python:\d+-(3\.\d+)-\w+", container["image"])
    assert image[1] in suits.split(" | ")
    assert int(container["hostRequirements"]["memory"].removesuffix("gb")) >= 8
    for name in container["customizations"]["codespaces"]["openFiles"]:
        assert (ROOT / name).is_file()
