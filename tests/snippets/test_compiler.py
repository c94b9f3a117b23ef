"""What asks XLA's compiler for GPUs that are not there: snippets and the installer."""

import ast
import importlib.metadata
import sys
from pathlib import Path

import pytest
from IPython.utils.capture import capture_output
from shells import fresh_shell, snippet

from tools.model.chapters import ROOT

linux = pytest.mark.skipif(sys.platform != "linux", reason="the wheels are for Linux")


# --- which wheels ---------------------------------------------------------------------


@pytest.fixture
def wheels():
    """What the snippet defines."""
    namespace = {}
    exec(snippet("compiler_wheels"), namespace)
    return namespace["compiler_wheels"]


@pytest.mark.parametrize(
    ("jax", "version", "names"),
    [
        ("0.10.2", "0.10.2", ["jax-cuda12-plugin", "jax-cuda12-pjrt"]),
        (
            "0.7.2",
            "0.10.2",
            ["jax-cuda12-plugin", "jax-cuda12-pjrt", "jax", "jaxlib"],
        ),
    ],
)
def test_the_wheels_suit_jax_and_an_old_jax_gets_a_newer_one_beside_them(
    wheels, monkeypatch, jax, version, names
):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: jax)
    folder, found = wheels()
    assert folder == Path(sys.prefix, "share", f"xla-for-gpus-{version}")
    assert found[:-1] == [f"{name}=={version}" for name in names]
    assert found[-1].startswith("nvidia-cuda-nvcc-cu12==")  # it has ptxas


# --- %%compiler and %%here ------------------------------------------------------------


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """An IPython shell with the snippets of the set-up cell; the compiler's folder."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    names = ("outcome", "processes", "compiler_wheels")
    with fresh_shell(tmp_path, *names) as shell:
        folder, _ = shell.user_ns["compiler_wheels"]()

        def start(there):
            if there:
                folder.mkdir(parents=True)
            shell.run_cell(snippet("compiler_magic")).raise_error()
            return shell

        yield start
        if shell.user_ns.get("compiler"):
            shell.user_ns["compiler"].process.kill()
            shell.user_ns["compiler"].process.communicate()


def run(shell, cell):
    """Run a cell; what it printed. Raises what it raised."""
    with capture_output() as captured:
        result = shell.run_cell(cell)
    result.raise_error()
    return captured.stdout


def test_a_cell_runs_in_the_process_and_named_variables_come_back(shell):
    shell = shell(there=True)
    assert run(shell, "%%compiler x y\nx, y = {1: (2.5, 'a')}, [True]\nprint(3)") == (
        "3\n"
    )
    assert (shell.user_ns["x"], shell.user_ns["y"]) == ({1: (2.5, "a")}, [True])
    told = run(shell, "%%compiler\nimport os\nprint([y, os.environ['JAX_PLATFORMS']])")
    assert ast.literal_eval(told) == [[True], "cpu,cuda"]
    assert run(shell, "%%here\nprint(x)") == "{1: (2.5, 'a')}\n"
    with pytest.raises(shell.user_ns["ProcessError"], match="ZeroDivisionError"):
        run(shell, "%%compiler\n1 / 0")
    with pytest.raises(AssertionError):
        run(shell, "%%here\nassert not x")


def test_a_set_up_cell_is_not_disturbed_by_later_variables(shell):
    shell = shell(there=True)
    run(shell, "%%compiler\n# @title Set-up: b\nimport math\ndef two(): return math.e")
    assert run(shell, "%%compiler\nmath = None\nprint(two() > 2)") == "True\n"


def test_without_a_compiler_cells_say_so_and_run_nothing(shell):
    shell = shell(there=False)
    for magic in ("%%compiler x", "%%here"):
        said = run(shell, f"{magic}\nx = 1 / 0")
        assert said.startswith("Not checked: the compiler for NVIDIA GPUs is not here")
        assert "Fix: pip install --no-deps --target" in said
    assert shell.user_ns["compiler"] is None


# --- asking the compiler --------------------------------------------------------------


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """Run source in a process that has the helper and a small model."""
    if sys.platform != "linux":
        pytest.skip("the wheels are for Linux")
    home = tmp_path_factory.mktemp("ipython")
    with fresh_shell(home, "processes", "compiler_wheels") as shell:
        namespace = shell.user_ns.copy()
    folder, _ = namespace["compiler_wheels"]()
    process = namespace["StandingProcess"](
        start="import sys; sys.modules.update(matplotlib=None, sklearn=None)\n",
        **namespace["compiler_variables"](folder, ROOT / "programs"),
    )
    process.run("from plan import *; from plan import _launches")
    process.run(
        """
def model_of(*layers):
    model = keras.Sequential([keras.Input((64,)), *layers])
    model.compile("sgd", "mse")
    return model

model = model_of(keras.layers.Dense(64, use_bias=False))
batch = array(16, 64), array(16, 64)
"""
    )

    def ask(source):
        try:
            return process.run(source)[0]
        except namespace["ProcessError"] as error:
            return str(error)

    yield ask
    process.process.kill()
    process.process.communicate()


def test_the_plan_of_a_training_step_is_what_it_holds(ask):
    plan, arithmetic, operations = ask(
        "p = compile_step_for('T4', model, *batch)\n"
        "answer = p.plan, p.arithmetic, p.operations"
    )
    # the weight; SGD's count of steps and rate; the loss's sum and count
    assert plan["state"] == 64 * 64 * 4 + 4 * 4
    assert plan["inputs"] == 2 * 16 * 64 * 4
    assert plan["total"] == sum(plan.values()) - plan["total"]
    assert arithmetic == 2 * 2 * 16 * 64 * 64  # forward, and the weight's gradient
    assert operations > 10


def test_what_a_call_starts_is_counted_in_what_it_calls_too(ask):
    text = """
%side (p: f32[2]) -> (f32[2], f32[2]) {
  %f.1 = (f32[2]{0}, f32[2]{0}) fusion(%p), kind=kLoop, calls=%inner
}

%inner (q: f32[2]) -> f32[2] {
  ROOT %a = f32[2]{0} add(%q, %q)
}

ENTRY %main (x: f32[2]) -> f32[2] {
  %c = (f32[2]{0}, f32[2]{0}) call(%x), to_apply=%side
  %k = (f32[2]{0}, s8[9]{0}) custom-call(%x), custom_call_target="__cublas$lt$matmul"
  ROOT %y = f32[2]{0} copy(%x)
}
"""
    kinds = ask(f"answer = sorted(_launches({text!r}))")
    assert kinds == ["__cublas$lt$matmul", "copy", "fusion"]


# Attention in 16 bits: cuDNN's flash attention from capability 8.0 on.
ATTENTION = """
def attention(x):
    return keras.ops.dot_product_attention(x, x, x)

def calls(card, dtype):
    program = compile_for(card, attention, array(2, 128, 4, 64, dtype=dtype))
    return any("fmha" in name for name in program.launches)
"""


def test_keras_chooses_attention_as_on_the_card_while_it_is_traced(ask):
    cards = "T4", "A100 40 GB", "H100", "T4"  # the same function, one after the other
    ask(ATTENTION)
    found = ask(f"answer = [calls(card, 'float16') for card in {cards}]")
    assert found == [False, True, True, False]
    assert ask("answer = calls('H100', 'float32')") is False
    # After the trace Keras finds this machine again.
    assert ask("answer = jax.default_backend()") == "cpu"
    ones = "jnp.ones((2, 8, 4, 64), 'float16')"
    assert ask(f"answer = list(attention({ones}).shape)") == [2, 8, 4, 64]


def test_the_compiler_is_told_the_limit_that_jax_would_tell_it(ask):
    given = r"int(re.search(r'device_memory_size: (\d+)', target('T4', **{}))[1]) * 0.8"
    for limit, bytes_ in [
        ({}, 0.75 * 15_634_268_160),
        ({"share": 0.9}, 0.9 * 15_634_268_160),
        ({"memory": 2**30}, 0.75 * 2**30),
    ]:
        assert ask(f"answer = {given.format(limit)}") == pytest.approx(bytes_, abs=2)
        assert ask(f"answer = limit_of('T4', **{limit})") == int(bytes_)


def test_zeros_between_a_strided_gradient_are_no_arithmetic(ask):
    counted = ask(
        """
def images_of(strides):
    conv = [keras.layers.Conv2D(8, 4, strides=strides, padding="same") for _ in "ab"]
    model = keras.Sequential([keras.Input((64, 64, 8)), *conv])
    model.compile("sgd", "mse")
    side = 64 // strides**2
    shapes = array(2, 64, 64, 8), array(2, side, side, 8)
    return compile_step_for("T4", model, *shapes).arithmetic
answer = [images_of(1), images_of(2)]
"""
    )
    each = 2 * 2 * 4 * 4 * 8 * 8  # for each pixel of an output: 2 images, 4 x 4 x 8 x 8
    by_hand = [each * (3 * 64**2 + 2 * 64**2), each * (3 * 16**2 + 2 * 32**2)]
    assert counted == by_hand  # 3: forward and both gradients; of the first layer, 2


@linux
def test_the_chapters_find_the_compiler_that_the_tests_installed(wheels):
    """Without it the chapters' claims would be green and not checked."""
    folder, _ = wheels()
    assert folder.is_dir(), "Fix: sh tools/install.sh all"
