"""The measuring suite: plan, stopwatch, workers, journal, files."""

import copy
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from benchmarks import __main__ as command_line
from benchmarks import flops, machine, plan, results, run, sizes, stopwatch, worker
from tools.model.chapters import ROOT
from tools.model.errors import UserError

CPU = plan.Machine("cpu")
H200 = plan.Machine("gpu", (9, 0))
T4 = plan.Machine("gpu", (7, 5))
SAMPLING = {"repeats": 3, "at_least": 0.001, "limit": 1.0}


def matmul(size, **more):
    return {
        "experiment": "matmul",
        "params": {"size": size, "dtype": "float32", **more},
    }


# --- stopwatch -----------------------------------------------------------------------


class FakeClock:
    """A clock that runs only while work is done."""

    def __init__(self, first, each):
        self.now, self.first, self.each = 0.0, first, each

    def __call__(self):
        return self.now

    def work(self, calls):
        self.now += self.first + calls * self.each
        self.first = 0


def test_the_first_call_stands_apart_and_samples_are_long_enough():
    clock = FakeClock(first=5.0, each=0.001)
    found = stopwatch.sample(clock.work, repeats=4, at_least=0.1, clock=clock)
    assert found.first_s == pytest.approx(5.001)
    assert found.calls == pytest.approx(100, abs=1)
    assert found.samples_s == pytest.approx([0.001] * 4)


def test_slow_work_gets_fewer_samples_but_three():
    clock = FakeClock(first=0, each=2.0)
    found = stopwatch.sample(clock.work, repeats=9, at_least=0.1, limit=8, clock=clock)
    assert (found.calls, len(found.samples_s)) == (1, 4)
    found = stopwatch.sample(clock.work, repeats=9, at_least=0.1, limit=1, clock=clock)
    assert len(found.samples_s) == 3


# --- counts --------------------------------------------------------------------------


def test_operations_counted_by_hand():
    mlp = sizes.Mlp(inputs=3, width=5, layers=2, classes=7)
    forward = 2 * 11 * (3 * 5 + 5 * 5 + 5 * 7)
    assert flops.forward(mlp, 11) == forward
    # The data needs no gradient: the first layer has two products, the others three.
    assert flops.training_step(mlp, 11) == 3 * forward - 2 * 11 * 3 * 5
    conv = sizes.Conv(side=8, filters=(4,), classes=2)
    assert flops.forward(conv, 1) == 2 * 64 * 9 * (3 * 4 + 4 * 4) + 2 * 4 * 2
    text = sizes.Transformer(length=6, vocabulary=10, width=4, layers=1, heads=2)
    dense = 12 * 4 * 4
    assert flops.forward(text, 1) == 2 * 6 * (dense + 2 * 6 * 4 + 4 * 10)


# --- plan ----------------------------------------------------------------------------


def experiments(units):
    return {case["experiment"] for unit in units for case in unit.cases}


def everything(target, **options):
    return plan.plan(target, list(run.NAMES), **options)


def test_a_gpu_gets_every_experiment_and_a_cpu_what_it_can_do():
    units, left_out = everything(H200)
    assert experiments(units) == set(run.EXPERIMENTS)
    assert not left_out
    units, left_out = everything(CPU)
    missing = {left.experiment for left in left_out}
    assert experiments(units) | missing == set(run.EXPERIMENTS)
    assert missing == {"round-trip", "copy", "matmul"}  # matmul: no TF32
    assert all(left.why for left in left_out)


@pytest.mark.parametrize(
    ("target", "dtypes"),
    [
        (CPU, {"float32", "mixed_bfloat16"}),
        (T4, {"float32", "mixed_float16"}),
        (H200, {"float32", "tf32", "mixed_bfloat16"}),
    ],
)
def test_each_device_is_measured_in_the_precisions_that_it_has(target, dtypes):
    units, _ = everything(target, only=["train"])
    found = {case["params"]["precision"] for unit in units for case in unit.cases}
    assert found == dtypes


def test_only_a_gpu_gets_the_large_models():
    for target, expected in ((CPU, {"small"}), (H200, {"small", "large"})):
        units, _ = everything(target, only=["train", "infer"])
        assert {c["params"]["size"] for u in units for c in u.cases} == expected


@pytest.mark.parametrize("target", [CPU, H200])
@pytest.mark.parametrize("quick", [True, False])
def test_no_case_is_planned_twice(target, quick):
    units, _ = everything(target, quick=quick)
    keys = [plan.key(unit.engine, case) for unit in units for case in unit.cases]
    assert len(keys) == len(set(keys)) > 50


# --- workers -------------------------------------------------------------------------


def test_what_runs_out_of_memory_is_recorded_and_the_next_one_runs():
    unit = plan.Unit("keras-jax", (matmul(2**20), matmul(8)))
    found = [result for _, result in run.measure_unit(unit, unit.cases, SAMPLING, True)]
    assert [result["status"] for result in found] == ["out of memory", "ok"]
    assert "allocate 4.00 TiB" in found[0]["why"]
    assert found[1]["flop"] == 2 * 8**3
    assert len(found[1]["samples_s"]) == 3


def fake_worker(tmp_path, monkeypatch, source):
    """Let a small program stand for the worker."""
    package = tmp_path / "fake" / "benchmarks"
    package.mkdir(parents=True)
    package.joinpath("__init__.py").touch()
    package.joinpath("worker.py").write_text(
        "import json, os, signal, sys, time\n"
        "request = json.load(sys.stdin)\n"
        "def say(**message): print(json.dumps(message), flush=True)\n"
        "def ok(n, s=0.5): say(start=n); say(end=n, result={'status': 'ok', "
        "'samples_s': [s] * 3, 'first_s': 1, 'calls': 1, 'flop': None, 'bytes': None, "
        "'peak_memory_bytes': None})\n" + source
    )
    monkeypatch.setattr(run, "ROOT", tmp_path / "fake")


def statuses(unit, **options):
    found = run.measure_unit(unit, unit.cases, SAMPLING, **options)
    return [
        (case["params"]["size"], r["status"], r.get("why", "")) for case, r in found
    ]


SERIES = plan.Unit("keras-jax", tuple(matmul(size) for size in (1, 2, 3)), grows=True)


def test_a_worker_that_is_killed_loses_one_case(tmp_path, monkeypatch):
    fake_worker(
        tmp_path,
        monkeypatch,
        "for n, case in enumerate(request['cases']):\n"
        "    if case['params']['size'] == 2:\n"
        "        say(start=n); os.kill(os.getpid(), signal.SIGKILL)\n"
        "    ok(n)\n",
    )
    found = statuses(SERIES)
    assert [status for _, status, _ in found] == ["ok", "out of memory", "ok"]
    assert "killed" in found[1][2]


def test_a_worker_that_cannot_start_is_no_endless_loop(tmp_path, monkeypatch):
    fake_worker(tmp_path, monkeypatch, "sys.exit('no such thing here')\n")
    found = statuses(SERIES)
    assert [status for _, status, _ in found] == ["failed"] * 3
    assert "no such thing here" in found[0][2]


def test_a_case_that_hangs_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "LONGEST", 0.5)
    fake_worker(tmp_path, monkeypatch, "say(start=0)\ntime.sleep(60)\n")
    unit = plan.Unit("keras-jax", (matmul(1),))
    assert statuses(unit) == [(1, "failed", "stopped: it took too long")]


def test_a_series_that_grows_ends_where_it_takes_too_long(tmp_path, monkeypatch):
    fake_worker(tmp_path, monkeypatch, "ok(0)\nok(1, run_ := 3)\nok(2)\n")
    found = statuses(SERIES)
    assert [status for _, status, _ in found] == ["ok", "ok", "left out"]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 4 bytes"), True),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
            True,
        ),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (ValueError("shapes do not match"), False),
    ],
)
def test_errors_of_memory_are_told_from_others(error, expected):
    assert worker.is_out_of_memory(error) is expected


def test_an_error_is_kept_in_a_line_without_paths():
    error = ValueError("\ncan't open /home/somebody/x.py here\nmore")
    assert worker.in_a_line(error) == "ValueError: can't open here"


def test_an_engine_that_is_missing_is_named_with_the_reason(tmp_path, monkeypatch):
    hide = tmp_path / "sitecustomize.py"
    hide.write_text("import sys\nsys.modules['torch'] = None\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found, left_out = run.probe(["torch", "jax"], on_cpu=True)
    assert list(found) == ["jax"]
    assert [left.engine for left in left_out] == ["torch"]
    assert "torch" in left_out[0].why


def said(kind, **device):
    return {"kind": kind, "device": device, "versions": {}}


def test_the_accelerator_is_chosen_and_who_does_not_see_it_is_left_out():
    found = {"keras-tensorflow": said("cpu"), "torch": said("gpu", capability="9.0")}
    target, here, blind = run.choose(found)
    assert (target, list(here)) == (H200, ["torch"])
    assert [(left.engine, left.why) for left in blind] == [
        ("keras-tensorflow", "it sees no gpu here")
    ]
    assert run.choose({"jax": said("cpu")})[0] == CPU


# --- journal, interruption -----------------------------------------------------------

HEAD = {
    "schema": 1,
    "device": {"name": "A card", "kind": "cpu", "id": "a-card", "cpu": {}},
    "provenance": {"date": "2026-11-21", "command": "python -m benchmarks"},
}


def record(name="matmul", round_=0, **more):
    case = {"engine": "jax", "experiment": name, "params": {"size": 1}, "round": round_}
    return {**case, **more}


def test_a_journal_is_resumed_without_its_half_line(tmp_path):
    journal = run.Journal(tmp_path / "a.partial.jsonl")
    journal.start(HEAD, resume=False)
    journal.add(record())
    journal.close()
    with journal.path.open("a") as file:
        file.write('{"half')
    again = run.Journal(journal.path)
    later = copy.deepcopy(HEAD)
    later["provenance"] |= {"date": "2026-11-22", "command": "… --resume"}
    again.start(later, resume=True)
    assert again.records == [record()]
    again.add(record("train"))
    assert len(journal.path.read_text().splitlines()) == 3


@pytest.mark.parametrize("resume", [True, False])
def test_a_journal_refuses_what_would_lose_or_mix_results(tmp_path, resume):
    journal = run.Journal(tmp_path / "a.partial.jsonl")
    if resume:
        with pytest.raises(UserError, match="leave --resume out"):
            journal.start(HEAD, resume=True)
    journal.start(HEAD, resume=False)
    journal.close()
    with pytest.raises(UserError, match="other options" if resume else "--resume"):
        run.Journal(journal.path).start({**HEAD, "schema": 2}, resume=resume)
    assert len(journal.path.read_text().splitlines()) == 1


def test_two_runs_do_not_write_into_one_journal(tmp_path):
    journal = run.Journal(tmp_path / "a.partial.jsonl")
    journal.start(HEAD, resume=False)
    for resume in (True, False):
        with pytest.raises(UserError, match="another run is writing here"):
            run.Journal(journal.path).start(HEAD, resume)
    journal.close()
    run.Journal(journal.path).start(HEAD, resume=True)


def test_what_failed_in_the_first_round_is_not_tried_in_the_second():
    unit = plan.Unit("jax", (matmul(1), matmul(2)))
    done = [
        {"engine": "jax", "round": 0, **matmul(1), "status": "out of memory"},
        {"engine": "jax", "round": 0, **matmul(2), "status": "ok"},
    ]
    assert run._pending(unit, 0, done) == []
    assert run._pending(unit, 1, done) == [matmul(2)]
    assert run._pending(unit, 0, []) == [matmul(1), matmul(2)]


def run_suite(tmp_path, *options):
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "benchmarks",
            "--cpu",
            "--quick",
            "--rounds",
            "2",
            *["--engines", "keras-jax", "--only", "dispatch", "addition", "--output"],
            str(tmp_path / "out.json"),
            *options,
        ],
        cwd=ROOT,
        # A run in the background ignores Ctrl-C, and so would what it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    first = run_suite(tmp_path)
    lines = []
    for line in first.stdout:
        lines.append(line)
        if line.startswith("[  2/8]"):
            first.send_signal(signal.SIGINT)
            interrupted = time.monotonic()
    assert first.wait() == 130
    assert time.monotonic() - interrupted < 30
    assert "Go on with: python -m benchmarks" in lines[-1]
    assert "--resume" in lines[-1]
    journal = tmp_path / "out.partial.jsonl"
    kept = journal.read_text().splitlines()
    assert len(kept) >= 3
    assert not (tmp_path / "out.json").exists()

    refused, _ = run_suite(tmp_path).communicate()
    assert "an interrupted run has left its results here" in refused
    assert journal.read_text().splitlines() == kept

    second = run_suite(tmp_path, "--resume")
    output, _ = second.communicate()
    assert second.returncode == 0, output
    assert f"resumed: {len(kept) - 1} of 8 are done" in output
    assert not journal.exists()
    found = json.loads((tmp_path / "out.json").read_text())
    results.check(found, "out.json")
    assert len(found["results"]) == 4
    for result in found["results"]:
        assert len(result["samples_s"]) == 2  # both rounds, none lost, none doubled
        low, median, high = (result[name] for name in ("low_s", "median_s", "high_s"))
        assert 0 < low <= median <= high
    assert found["provenance"]["packages"].keys() == {"jax", "keras", "numpy"}


# --- files ---------------------------------------------------------------------------


@pytest.fixture
def good():
    """Results that are as they should be."""
    result = {
        "experiment": "matmul",
        "engine": "keras-jax",
        "params": {"size": 8, "dtype": "float32"},
        "status": "ok",
        "median_s": 2.0,
        "low_s": 1.5,
        "high_s": 2.5,
        "samples_s": [[1.0, 2.0, 3.0]],
        "calls": [1],
        "first_s": [9.0],
        "flop": 1024,
        "bytes": 768,
        "peak_memory_bytes": None,
    }
    options = run.Options(1, True, (), ("keras-jax",), True, {}).as_json()
    return {
        "schema": 1,
        "device": {
            "name": "A card",
            "kind": "cpu",
            "id": "a-card",
            "cpu": {"name": "A card", "cores": 2},
        },
        "provenance": {
            "date": "2026-11-21",
            "commit": "0" * 40,
            "suite": "0" * 12,
            "command": "python -m benchmarks",
            "system": "Linux",
            "python": "3.11.2",
            "packages": {"keras": "3.15.1"},
            "options": options,
            "clock": "a clock",
            "clocks": {"matmul": "one product"},
        },
        "left_out": [],
        "results": [result],
    }


def test_good_results_are_read(tmp_path, good):
    path = tmp_path / "a-card.json"
    path.write_text(json.dumps(good))
    assert results.load_all(tmp_path) == [good]


def drop(*keys):
    def change(data):
        for name in keys[:-1]:
            data = data[name]
        del data[keys[-1]]

    return change


def put(*keys, value):
    def change(data):
        for name in keys[:-1]:
            data = data[name]
        data[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (drop("provenance"), "at the top: 'provenance' is a required property"),
        (drop("provenance", "commit"), "at provenance: 'commit'"),
        (drop("provenance", "packages"), "at provenance: 'packages'"),
        (put("provenance", "command", value="/home/me/run"), "at provenance/command"),
        (put("device", "kind", value="gpu"), "at device: 'driver'"),
        (put("results", value=[]), "at results: "),
        (put("results", 0, "median_s", value=-1), "at results/0/median_s"),
        (put("results", 0, "median_s", value=1.9), "is not that of the samples"),
        (put("results", 0, "samples_s", value=[[2.0]]), "at results/0/samples_s/0"),
        (put("results", 0, "status", value="failed"), None),
        (put("results", 0, "experiment", value="speed"), "at results/0/experiment"),
        (lambda data: data["results"].append(data["results"][0]), "stands there twice"),
        (put("device", "id", value="other"), "rename the file to other.json"),
    ],
)
def test_bad_results_are_refused_by_name_and_place(tmp_path, good, change, place):
    change(good)
    path = tmp_path / "a-card.json"
    path.write_text(json.dumps(good))
    with pytest.raises(UserError) as error:
        results.load(path)
    assert "a-card.json" in str(error.value)
    assert (place or "'why' is a required property") in str(error.value)
    assert command_line.main(["--check", str(path)]) == 1


def test_a_file_that_is_no_json_is_refused(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"half": ')
    with pytest.raises(UserError, match=r"a\.json: can't be read"):
        results.load(path)


def test_the_committed_results_are_valid():
    assert results.load_all()


def test_two_runs_agree_where_their_samples_overlap(good):
    other = copy.deepcopy(good)
    other["results"][0] |= {"median_s": 4.0, "samples_s": [[3.0, 4.0, 5.0]]}
    (pair,) = results.compare(good, other)
    assert (pair.ratio, pair.agree) == (2.0, True)
    other["results"][0]["samples_s"] = [[3.5, 4.0, 5.0]]
    (pair,) = results.compare(good, other)
    assert not pair.agree


def test_rounds_are_merged_with_quartiles_of_all_samples():
    common = {"status": "ok", "calls": 2, "first_s": 1.0, "flop": 1, "bytes": None}
    rounds = [
        record(**common, samples_s=[1.0, 2.0, 3.0], peak_memory_bytes=5),
        record(round_=1, **common, samples_s=[4.0, 5.0, 6.0], peak_memory_bytes=None),
        record(round_=2, status="failed", why="it rained"),
    ]
    merged = run.merge(rounds)
    assert (merged["low_s"], merged["median_s"], merged["high_s"]) == (2.25, 3.5, 4.75)
    assert merged["peak_memory_bytes"] == 5
    assert merged["why"] == "one round failed: it rained"
    assert run.merge(rounds[2:]) == {
        "experiment": "matmul",
        "engine": "jax",
        "params": {"size": 1},
        "status": "failed",
        "why": "it rained",
    }


# --- provenance and the command line --------------------------------------------------


def test_without_git_the_commit_must_be_given(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(UserError, match="--commit SHA"):
        machine.commit(None)
    assert machine.commit("abc1234") == "abc1234"


def test_changes_to_the_suite_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@y"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *command], check=True)
    assert machine.commit(None) == machine.commit(None).removesuffix("+changes")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "new.py").touch()
    assert machine.commit(None).endswith("+changes")


def test_the_name_of_a_device_makes_a_file_name():
    assert machine.slug("NVIDIA H200 (SXM), 141 GB") == "nvidia-h200-sxm-141-gb"
    found = machine.device("gpu", [{"name": "Tesla T4"}, {"capability": "7.5"}])
    assert (found["id"], found["capability"]) == ("tesla-t4", "7.5")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "speed"], "invalid choice: 'speed'"),
        (["--engines", "theano"], "invalid choice: 'theano'"),
        (["--rounds", "0"], "--rounds: at least 1"),
        (["--check", "x.json", "--compare", "a", "b"], "not allowed with"),
    ],
)
def test_bad_options_are_refused(arguments, message, capsys):
    with pytest.raises(SystemExit):
        command_line.main(arguments)
    assert message in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(capsys):
    assert command_line.main(["--compare", "no.json", "nor.json"]) == 1
    assert "no.json: can't be read" in capsys.readouterr().err


def test_the_help_names_every_part(capsys):
    with pytest.raises(SystemExit) as ended:
        command_line.main(["--help"])
    assert ended.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for name in (*run.EXPERIMENTS, *run.NAMES, "--quick", "--output", "--resume"):
        assert name in text


def test_no_worker_outlives_its_close(tmp_path, monkeypatch):
    fake_worker(tmp_path, monkeypatch, "time.sleep(60)\n")
    process = run.Worker({"engine": "jax"}, on_cpu=True)
    begin = time.monotonic()
    process.close()
    assert time.monotonic() - begin < 10
    with pytest.raises(ProcessLookupError):
        os.kill(process.process.pid, 0)
