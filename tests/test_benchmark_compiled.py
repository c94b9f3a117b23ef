"""What the cards' compilers plan: what is asked, the bounds, the process, the file."""

import copy
import importlib.metadata
import itertools
import json
import sys
import types

import pytest
import results_factory

from benchmarks import __main__ as command_line
from benchmarks import asking, compiled, results, run
from benchmarks import compiler as compiler_process
from benchmarks.sizes import BATCHES, SIZES
from snippets.compiler_wheels import compiler_variables, compiler_wheels
from tools.model.errors import UserError

CARDS = results_factory.CARDS
OLD, NEW = CARDS["Old card"], CARDS["New card"]


# --- what is asked -------------------------------------------------------------------


def asked(**options):
    return list(compiled.cases(CARDS, **options))


def test_each_card_is_asked_in_the_numbers_that_it_has():
    found = {}
    for case in asked():
        name = case["card"], case["size"], case["model"]
        found.setdefault(name, set()).add(case["precision"])
    for model in BATCHES:
        assert found["Old card", "large", model] == set(compiled.RATES)
        assert found["New card", "large", model] == {"float32", "mixed_bfloat16"}
        assert found["Old card", "small", model] == {"mixed_float16"}
        assert found["New card", "small", model] == {"mixed_bfloat16"}


def test_no_case_is_asked_twice_and_a_model_is_built_once():
    keys = list(map(compiled.key, asked()))
    assert len(keys) == len(set(keys))
    built = [key[:3] for key in keys]
    changes = 1 + sum(a != b for a, b in itertools.pairwise(built))
    assert changes == len(set(built))
    assert {case["size"] for case in asked(quick=True)} == {"small"}


# --- the bound -----------------------------------------------------------------------


def test_the_longer_side_of_the_roofline_binds():
    assert compiled.bound(NEW, "mixed_bfloat16", 10**15, 3 * 10**11) == (
        1.0,
        "arithmetic",
    )
    assert compiled.bound(NEW, "mixed_bfloat16", 10**13, 3 * 10**12) == (1.0, "memory")


def test_float32_is_bound_by_the_fastest_units_that_compute_it():
    assert compiled.bound(NEW, "float32", 5 * 10**14, 1) == (1.0, "arithmetic")  # TF32
    assert compiled.bound(OLD, "float32", 8 * 10**12, 1) == (1.0, "arithmetic")


def test_without_a_rate_there_is_no_bound():
    assert compiled.bound(OLD, "mixed_bfloat16", 1, 1) == (None, "unknown")


def test_a_step_fits_up_to_the_cards_last_byte():
    case = next(case for case in asked() if case["card"] == "Old card")
    for total, fits in ((2**34, True), (2**34 + 1, False)):
        answer = results_factory.answer(case, total)
        assert compiled.complete(case, answer, CARDS)["fits"] is fits
    refused = {"status": "refused", "why": "no"}
    assert compiled.complete(case, refused, CARDS) == {**case, **refused}


# --- asking --------------------------------------------------------------------------


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """Let a small program stand for the process of the compiler; returns its starts."""
    package = tmp_path / "fake" / "benchmarks"
    package.mkdir(parents=True)
    package.joinpath("__init__.py").touch()
    starts = tmp_path / "starts"

    def write(source):
        package.joinpath("compiler.py").write_text(
            "import json, os, signal, sys\n"
            f"open({str(starts)!r}, 'a').write('x')\n"
            "request = json.load(sys.stdin)\n"
            "def say(**message): print(json.dumps(message), flush=True)\n"
            f"answer = {results_factory.answer({'card': 'New card'})!r}\n"
            "if 'cards' in request:\n"
            f"    say(answer={{'cards': {CARDS!r}, 'versions': "
            "{'jax': '1', 'keras': '3'}})\n"
            "for n, case in enumerate(request.get('cases', ())):\n"
            "    say(start=n)\n" + source
        )
        return starts

    monkeypatch.setattr(asking, "ROOT", tmp_path / "fake")
    monkeypatch.setattr(asking, "fingerprint", lambda: "0" * 12)
    names = ["jax-cuda12-plugin==1", "jax-cuda12-pjrt==1"]
    monkeypatch.setattr(asking, "wheels", lambda: (tmp_path / "wheels", names))
    return write


def record(tmp_path, **options):
    said = []
    found = asking.record(
        tmp_path / "plan.json",
        "0" * 40,
        "python -m benchmarks --compiler",
        say=said.append,
        **options,
    )
    return found, said


def test_what_is_recorded_keeps_the_schema(tmp_path, compiler):
    starts = compiler("    say(end=n, answer=answer)\n")
    found, said = record(tmp_path)
    compiled.check(found)
    assert len(found["plans"]) == len(asked()) == len(said)
    assert found["provenance"]["packages"]["jax-cuda12-plugin"] == "1"
    assert found["provenance"]["compiled_on"]["cores"] >= 1
    builds = {compiled.key(case)[:3] for case in asked()}
    assert len(starts.read_text()) == 1 + len(builds)


def test_a_process_that_dies_loses_one_case(tmp_path, compiler):
    compiler(
        "    if case['card'] == 'Old card':\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    say(end=n, answer=answer)\n"
    )
    found, _ = record(tmp_path)
    compiled.check(found)
    assert len(found["plans"]) == len(asked())
    for plan in found["plans"]:
        assert plan["status"] == ("failed" if plan["card"] == "Old card" else "planned")
        assert plan["status"] == "planned" or "killed" in plan["why"]


def test_a_process_that_can_not_start_ends_it_with_the_fix(tmp_path, compiler):
    starts = compiler("    pass\n")
    program = starts.parent / "fake" / "benchmarks" / "compiler.py"
    program.write_text("import no_such_module_here\n")
    with pytest.raises(UserError, match=r"does not start: .*no_such_module_here.*Fix:"):
        record(tmp_path)


def test_an_interrupted_recording_goes_on_where_it_was(tmp_path, compiler):
    compiler("    say(end=n, answer=answer)\n")
    told = []

    def interrupt(line):
        told.append(line)
        if len(told) == 3:
            raise KeyboardInterrupt

    output = tmp_path / "plan.json"
    with pytest.raises(KeyboardInterrupt):
        asking.record(output, "0" * 40, "python -m benchmarks", say=interrupt)
    with pytest.raises(UserError, match="go on with --resume"):
        asking.record(output, "0" * 40, "python -m benchmarks")
    found, said = record(tmp_path, resume=True)
    assert len(said) == len(asked()) - 3
    assert [compiled.key(x) for x in found["plans"]] == list(map(compiled.key, asked()))


@pytest.mark.parametrize("name", [None, "linux"])
def test_without_the_compiler_one_line_names_the_fix(
    tmp_path, monkeypatch, capsys, name
):
    folder = tmp_path / "gpu-compiler-9.9"
    monkeypatch.setattr(
        asking, "compiler_wheels", lambda: (folder, ["jax-cuda12-pjrt==9.9"])
    )
    monkeypatch.setattr(sys, "platform", name or "darwin")
    assert command_line.main(["--compiler", "--commit", "0" * 7]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    if name:
        assert f"-m pip install --no-deps --target {folder} jax-cuda12-pjrt==9" in error
    else:
        assert "exists for Linux alone. Fix: " in error


def test_only_the_process_of_the_compiler_sees_its_folder(tmp_path, compiler):
    compiler(
        "    say(end=n, answer={'status': 'refused', 'why': "
        "os.environ['PYTHONPATH'].split(os.pathsep)[0] + ' ' + "
        "os.environ['JAX_PLATFORMS'] + os.environ['CUDA_VISIBLE_DEVICES']})\n"
    )
    found, _ = record(tmp_path, quick=True)
    assert {x["why"] for x in found["plans"]} == {f"{tmp_path / 'wheels'} cpu,cuda-1"}
    assert str(tmp_path / "wheels") not in sys.path


def test_a_refusal_is_kept_with_its_message():
    class Refused(ValueError):
        pass

    def compile_step_for(card, model, *data):
        raise Refused(f"{card}: no such type for {data}")

    planner = object.__new__(compiler_process.Planner)  # without a model
    planner.compiler = types.SimpleNamespace(
        compile_step_for=compile_step_for,
        Refused=Refused,
        array=lambda *shape, dtype="float32": (*shape, dtype),
    )
    planner.model, planner.tokens = None, True
    planner.size = SIZES["transformer"]["small"]
    answer = planner.plan("T4", 3)
    batch = (3, planner.size.length, "int32")
    why = f"T4: no such type for {(batch, batch)}"
    assert answer == {"status": "refused", "why": why}


# --- the file ------------------------------------------------------------------------


def at(*keys, value=None, drop=False):
    def change(data):
        for name in keys[:-1]:
            data = data[name]
        if drop:
            del data[keys[-1]]
        else:
            data[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (at("provenance", drop=True), "at the top: 'provenance'"),
        (at("provenance", "commit", drop=True), "at provenance: 'commit'"),
        (
            at("provenance", "packages", "jax-cuda12-plugin", drop=True),
            "at provenance/packages: 'jax-cuda12-plugin'",
        ),
        (at("label", value="measured here"), "at label: "),
        (at("cards", "Old card", "sources", value=""), "at cards/Old card/sources"),
        (at("plans", value=[]), "at plans: "),
        (at("plans", 0, "memory", "total", value=7), "the parts of the memory"),
        (at("plans", 0, "fits", value=False), "fits, flop or the bound do not"),
        (at("plans", 0, "least_s", value=0.5), "fits, flop or the bound do not"),
        (at("plans", 0, "binds", value="memory"), "fits, flop or the bound do not"),
        (at("plans", 0, "card", value="No card"), "no card 'No card' among cards"),
        (at("plans", 0, "status", value="refused"), "at plans/0: 'why'"),
        (at("plans", 0, "launches", value={}), "at plans/0/launches"),
        (lambda data: data["plans"].append(data["plans"][0]), "stands there twice"),
    ],
)
def test_a_bad_plan_is_refused_by_name_and_place(tmp_path, change, place):
    plan = copy.deepcopy(results_factory.plan_of())
    compiled.check(plan)
    change(plan)
    path = tmp_path / compiled.PATH.name
    path.write_text(json.dumps(plan))
    with pytest.raises(UserError) as error:
        compiled.load(path)
    assert str(error.value).startswith("compiled-plan.json: at ")
    assert place in str(error.value)
    assert "make measure ARGS=--compiler" in str(error.value)
    assert command_line.main(["--check", str(path)]) == 1


def test_the_plan_is_not_taken_for_a_device(tmp_path, capsys):
    (tmp_path / compiled.PATH.name).write_text(json.dumps(results_factory.plan_of()))
    assert results.load_all(tmp_path) == []
    assert command_line.main(["--check", str(tmp_path / compiled.PATH.name)]) == 0
    assert "the compiler's plan" in capsys.readouterr().out


# --- the committed plan --------------------------------------------------------------


def test_the_committed_plan_has_every_case_and_none_failed():
    plan = compiled.load()
    expected = set(map(compiled.key, compiled.cases(plan["cards"])))
    assert set(map(compiled.key, plan["plans"])) == expected
    assert {x["status"] for x in plan["plans"]} <= {"planned", "refused"}
    assert not plan["provenance"]["commit"].endswith("+changes")


def test_a_step_needs_less_where_memory_is_short():
    """What the page says of the two A100s."""
    wanted = {"model": "transformer", "size": "large", "precision": "float32"}
    found = {
        x["card"]: x["memory"]["total"]
        for x in compiled.load()["plans"]
        if wanted.items() <= x.items()
    }
    assert found["A100 40 GB"] < 0.8 * found["A100 80 GB"]


def test_float32_is_tf32_where_a_card_has_it_and_a_t4_has_no_bfloat16():
    """What the page says above the tables of all plans."""
    plan = compiled.load()
    wanted = {"size": "large", "precision": "float32", "model": "mlp"}
    for found in (x for x in plan["plans"] if wanted.items() <= x.items()):
        new = plan["cards"][found["card"]]["capability"] >= [8, 0]
        assert any("tf32" in x for x in found["instructions"]) is new
    wanted = {"card": "T4", "precision": "mixed_bfloat16"}
    found = {x["model"]: x for x in plan["plans"] if wanted.items() <= x.items()}
    assert found["transformer"]["status"] == "refused"
    assert "BF16" in found["transformer"]["why"]
    assert found["mlp"]["status"] == "planned"


def test_the_committed_plan_has_the_figures_of_the_chapters_cards():
    cards, _ = asking.known_cards({"KERAS_BACKEND": "jax"})
    found = json.loads(json.dumps(cards))
    assert compiled.load()["cards"] == found, f"Fix: {compiled.AGAIN}"


def test_the_compiler_still_says_what_was_recorded():
    """One small step for one card, where the compiler is, in the recorded versions."""
    folder, _ = compiler_wheels()
    if not folder.is_dir():
        pytest.skip("XLA's compiler for NVIDIA GPUs is not here")
    plan = compiled.load()
    for name in ("jax", "keras"):
        here, then = importlib.metadata.version(name), plan["provenance"]["packages"]
        if here != then[name]:
            pytest.skip(f"{name} is {here} here and was {then[name]}")
    wanted = {"card": "T4", "model": "mlp", "size": "small"}
    recorded = next(x for x in plan["plans"] if wanted.items() <= x.items())
    case = {name: recorded[name] for name in compiled.CASE}
    variables = compiler_variables(folder, asking.ROOT)
    ((_, answer),) = asking.answers([case], variables)
    assert compiled.complete(case, answer, plan["cards"]) == recorded


def test_a_case_that_the_compiler_does_not_know_is_no_plan():
    request = {
        "build": ["mlp", "small", "float32"],
        "cases": [{"card": "Y", "batch": 1}],
    }
    folder, _ = compiler_wheels()
    if not folder.is_dir():
        pytest.skip("XLA's compiler for NVIDIA GPUs is not here")
    (answer,) = asking.ask(
        request, compiler_variables(folder, asking.ROOT), run.LONGEST
    )
    assert answer["status"] == "failed"
    assert "no card 'Y' here" in answer["why"]
