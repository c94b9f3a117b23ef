"""The compiler's plan and the measurements: files, bounds, and what the page shows."""

import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from book_site import measured_page as page

from snippets.compiler_wheels import compiler_variables, compiler_wheels
from tools.model.chapters import ROOT
from tools.model.errors import UserError
from tools.plan import compiler, engines, measure, record

PLAN = record.load_plan()
CARD = {
    "capability": [9, 0],
    "memory": 2**34,
    "limit": 3 * 2**32,
    "bandwidth": 3e12,
    "rates": {"float32": 6e13, "tf32": 5e14, "float16": 1e15, "bfloat16": 1e15},
    "sources": "a data sheet",
}


def planned(card, model, size="large", precision="float32"):
    wanted = {"card": card, "model": model, "size": size, "precision": precision}
    return next(x for x in PLAN["plans"] if wanted.items() <= x.items())


# --- the plan ------------------------------------------------------------------------


def test_the_longer_side_of_the_roofline_binds():
    assert record.bound(CARD, "mixed_bfloat16", 10**15, 10**11) == (1.0, "arithmetic")
    assert record.bound(CARD, "mixed_bfloat16", 10**13, 3 * 10**12) == (1.0, "memory")
    assert record.bound(CARD, "float32", 5 * 10**14, 1) == (1.0, "arithmetic")  # TF32
    without = {**CARD, "rates": {"float32": 6e13}}
    assert record.bound(without, "mixed_bfloat16", 1, 1) == (None, "unknown")


def test_the_committed_plan_has_every_case_and_none_failed():
    expected = set(map(record.key, record.cases(PLAN["cards"])))
    assert set(map(record.key, PLAN["plans"])) == expected
    for answer in PLAN["plans"]:
        assert answer["status"] in ("planned", "refused")
        case = {name: answer[name] for name in record.CASE}
        assert record.complete(case, answer, PLAN["cards"]) == answer


def test_what_the_page_says_of_the_cards_is_so():
    short, long = (planned(f"A100 {x} GB", "transformer") for x in (40, 80))
    assert short["memory"]["total"] < 0.8 * long["memory"]["total"]
    for name, card in PLAN["cards"].items():
        uses_tf32 = any("tf32" in x for x in planned(name, "mlp")["instructions"])
        assert uses_tf32 is (card["capability"] >= [8, 0])
    refused = planned("T4", "transformer", precision="mixed_bfloat16")
    assert refused["status"] == "refused" and "BF16" in refused["why"]


@pytest.fixture(scope="module")
def variables():
    """The variables of a process that asks the compiler, where there is one."""
    folder, _ = compiler_wheels()
    if not folder.is_dir():
        pytest.skip("XLA's compiler for NVIDIA GPUs is not here")
    return compiler_variables(folder, ROOT)


@pytest.mark.slow
def test_the_compiler_still_says_what_was_recorded(variables):
    """One small step for one card."""
    for name in ("jax", "keras"):
        then = PLAN["provenance"]["packages"][name]
        if importlib.metadata.version(name) != then:
            pytest.skip(f"the plan is of {name} {then}")
    known = planned("T4", "mlp", "small", "mixed_float16")
    case = {name: known[name] for name in record.CASE}
    build = record.key(case)[:3]
    with engines.processes(variables, 1) as pool:
        assert pool.submit(compiler.cards).result() == PLAN["cards"]
        (answer,) = pool.submit(compiler.plans, build, [case]).result()
    assert record.complete(case, answer, PLAN["cards"]) == known


# --- files ---------------------------------------------------------------------------


def test_a_plan_that_was_edited_is_refused_with_the_place(tmp_path):
    plan = {**PLAN, "provenance": {**PLAN["provenance"], "commit": 7}}
    (tmp_path / record.PLAN).write_text(json.dumps(plan))
    with pytest.raises(UserError, match=r"at provenance/commit: .*Fix: "):
        record.load_plan(tmp_path)


# --- measuring -----------------------------------------------------------------------

CPU = {"kind": "cpu", "name": "A CPU, 2 cores"}
TINY = [{"what": "matmul", "size": n, "dtype": "float32"} for n in (1, 2, 3)]
MEASURED = {
    "status": "measured",
    "first_s": 0.5,
    "samples_s": [0.1],
    "synchronised_by": "waiting",
}


def tiny_cases(*_):
    return iter(TINY)


def device(backend):
    return CPU, False


def outcomes(backend, waiting):
    for case in waiting:
        yield {**case, "backend": backend, **MEASURED}


def outcome_or_death(case):
    """What stands for `measure.outcome` in a process of its own."""
    if case["size"] == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return MEASURED


@pytest.fixture
def measuring(tmp_path, monkeypatch):
    """Measures a device that does not exist, without an engine; returns the status."""
    monkeypatch.setattr(engines, "processes", lambda _: ThreadPoolExecutor(1))
    monkeypatch.setattr(engines, "device_of", device)
    monkeypatch.setattr(measure, "cases", tiny_cases)
    monkeypatch.setattr(measure, "outcomes", outcomes)
    monkeypatch.setenv("KERAS_BACKEND", "jax")

    def run(folder=tmp_path):
        return measure.main(["--out", str(folder), "--commit", "abcdef0"])

    return run


def test_after_a_case_that_kills_its_process_the_others_are_measured(monkeypatch):
    monkeypatch.setattr(measure, "outcome", outcome_or_death)
    before, dead, after = measure.outcomes("jax", list(TINY))
    assert (before["status"], after["status"]) == ("measured", "measured")
    assert dead["size"] == 2 and dead["why"] == measure.DIED


def settings():
    """What a process that measures knows of the reader's settings."""
    import keras

    names = ("XLA_FLAGS", "KERAS_BACKEND", "CUDA_VISIBLE_DEVICES")
    return keras.config.image_data_format(), *map(os.environ.get, names)


@pytest.mark.slow
def test_the_readers_settings_stay_out_but_for_the_choice_of_a_device(
    tmp_path, monkeypatch
):
    (tmp_path / ".keras").mkdir()
    its = tmp_path / ".keras" / "keras.json"
    its.write_text('{"image_data_format": "channels_first"}')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KERAS_HOME", raising=False)
    monkeypatch.setenv("XLA_FLAGS", "--a-flag")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    with engines.processes({"KERAS_BACKEND": "jax"}) as pool:
        known = pool.submit(settings).result()
    assert known == ("channels_last", None, "jax", "3")


def test_a_set_backend_is_the_only_one(tmp_path, measuring, monkeypatch, capsys):
    assert measuring() == 0
    (known,) = record.load_devices(tmp_path)
    assert {x["backend"] for x in known["results"]} == {"jax"}
    monkeypatch.setenv("KERAS_BACKEND", "openvino")
    assert measuring() == 1
    assert (
        "Fix: pip install keras jax, and let KERAS_BACKEND" in capsys.readouterr().err
    )


def test_a_first_call_that_compiles_is_no_sample(monkeypatch):
    waits = iter([0.3])
    monkeypatch.setattr(measure, "BUDGET", 0.2)
    monkeypatch.setattr(
        measure, "work", lambda case: lambda: time.sleep(next(waits, 0.001)) or 1.0
    )
    result = measure.outcome(TINY[0])
    assert result["first_s"] > 0.29 > max(result["samples_s"])


def instructions(dtype):
    """The matrix instructions of a product on an A100."""
    from programs import plan

    engines.use_precision("jax", dtype)
    shapes = [plan.array(1024, 1024)] * 2
    product = plan.compile_for("A100 40 GB", lambda a, b: a @ b, *shapes)
    return " ".join(product.instructions)


def test_a_row_of_tf32_is_tf32_and_a_row_of_float32_is_not(variables):
    with engines.processes(variables) as pool:
        assert "tf32" in pool.submit(instructions, "tf32").result()
        assert pool.submit(instructions, "float32").result() == ""


def test_a_folder_that_can_not_be_written_is_one_line(tmp_path, measuring, capsys):
    (tmp_path / "a-file").touch()
    assert measuring(tmp_path / "a-file") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "a-file: File exists. Fix: " in line


def test_without_a_commit_nothing_is_measured(monkeypatch):
    monkeypatch.setattr(record, "output", lambda *words: "")
    with pytest.raises(UserError, match="--commit SHA"):
        record.provenance("a command", {})
    assert record.provenance("a command", {}, "abc1234")["commit"] == "abc1234"


@pytest.mark.slow
def test_a_machine_is_measured_and_its_file_is_on_the_page(tmp_path):
    words = [sys.executable, "-m", "tools.plan.measure", "--quick", "--out", tmp_path]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "KERAS_BACKEND": "jax"}
    subprocess.run(words, cwd=ROOT, check=True, env=environment)
    (known,) = record.load_devices(tmp_path)
    assert {x["status"] for x in known["results"]} == {"measured"}
    assert known["device"]["name"] in page.steps([known])


# --- the page ------------------------------------------------------------------------


def result(what, samples, status="measured", **case):
    """A result of a device that does not exist."""
    found = {"what": what, "backend": "jax", "status": status, **case}
    return found | ({"samples_s": samples} if samples else {"why": "no"})


STEP = {"model": "mlp", "size": "small", "batch": 128, "policy": "float32"}
USUAL = {**STEP, "way": "as compile() chooses"}
KNOWN = {
    "device": {"kind": "gpu", "name": "A card"},
    "results": [
        result("training step", [0.2, 0.2, 0.2], **USUAL),
        result("training step", [0.1, 0.1, 0.1], **{**USUAL, "policy": "mixed_half"}),
        result("training step", [0.1, 0.2, 0.3], **{**STEP, "way": "compiled"}),
        result("training step", None, "out of memory", **{**STEP, "way": "eager"}),
        result("predict", [0.05, 0.05], **USUAL),
        result("add", [1e-5, 1e-5], size=1, dtype="float32"),
        result("matmul", [1.0, 1.0], size=1000, dtype="float32"),
    ],
}


def test_a_card_has_a_cell_for_each_model_with_the_numbers_of_the_file():
    rows = {line.split(" <br>")[0]: line for line in page.cards(PLAN).splitlines()}
    row = rows["| **T4**"]
    case = planned("T4", "mlp", precision="mixed_float16")
    assert page.size_of(case["memory"]["total"]) in row
    assert "tensor cores: left to cuBLAS" in row and row.count("<br>") == 1 + 2 * 3
    for part, said in {0.6: "**", 0.7: "may fit: ", 1.1: "does not fit: "}.items():
        memory = {**case["memory"], "total": int(part * CARD["limit"])}
        cell = page._cell({**case, "memory": memory}, CARD)
        assert cell.partition("</span>")[2].startswith(said)


def test_attention_is_planned_as_the_page_says():
    for case in (x for x in PLAN["plans"] if x["model"] == "transformer"):
        card = PLAN["cards"][case["card"]]
        flash = any("fmha" in kind for kind in case.get("launches", ()))
        half = case["precision"] != "float32"
        assert flash == (half and card["capability"] >= [8, 0]), record.key(case)


def test_who_multiplies_is_named():
    launches = {"__cudnn$convForward": 3, "fusion": 1}
    case = {"launches": launches, "instructions": ["mma.sync"]}
    assert page.matrix_work(case) == "cuDNN, tensor cores"
    assert page.matrix_work({"launches": {}, "instructions": []}) == "plain float32"


def test_a_step_stands_beside_its_prediction_and_what_failed_is_said():
    text = page.steps([KNOWN])
    usual = next(x for x in text.splitlines() if "as compile() chooses" in x)
    assert "**200\u00a0ms**" in usual and "**50.0\u00a0ms**" in usual
    assert "out of memory" in text


def test_a_step_is_compared_with_the_one_of_who_says_nothing():
    names = {"float32": 0.4, "tf32": 0.2, "mixed_bfloat16": 0.1}
    found = [
        result("training step", [x] * 2, **{**USUAL, "policy": policy})
        for policy, x in names.items()
    ]
    tf32 = {**KNOWN, "results": found}
    plain = {**KNOWN, "results": found[::2]}
    other = {**tf32, "results": [found[0], {**found[1], "size": "large"}]}
    cases = (tf32, "0.50 1.00 2.00"), (plain, "1.00 4.00"), (other, " 1.00")
    for known, gains in cases:
        rows = [row.split(" | ") for row in page.steps([known]).splitlines()[2:]]
        assert [row[5] for row in rows] == gains.split(" ")
    rows = [row.split(" | ") for row in page.steps([tf32]).splitlines()[2:]]
    said = {page.EXACT, "TF32, if you say nothing", "mixed_bfloat16"}
    assert {row[3].partition(";")[0] for row in rows} == said


def test_a_rate_is_the_work_over_the_median():
    assert "2.00\u00a0GFLOP/s" in page.rates([KNOWN])
    assert "**10.0\u00a0µs**" in page.rates([KNOWN])


@pytest.mark.parametrize(
    ("name", "card"),
    [("NVIDIA A100-SXM4-80GB", "A100 80 GB"), ("NVIDIA H100 80GB HBM3", "H100")],
)
def test_a_step_stands_beside_the_bound_of_its_own_card(name, card):
    least = planned(card, "mlp", precision="float32")["least_s"]
    case = {**USUAL, "size": "large", "batch": 4096, "policy": "tf32"}
    took = result("training step", [3 * least] * 2, **case)
    text = page.against(PLAN, [{"device": {"name": name}, "results": [took]}])
    (row,) = text.splitlines()[2:]
    assert page.quantity(least, "s") in row and "3.0 times as long" in row
