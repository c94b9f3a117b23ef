"""What would a step of my model need on a GPU that is not here? Its compiler is asked.

Use: `python plan.py yourmodel.py --card T4`, on Linux, with Keras on JAX. The file
defines `model`, compiled, and `batch`, (inputs, targets) as arrays of any numbers.
`--batch 64` changes the number of rows; `--predict` asks for a prediction;
`--cards 8 --layout fsdp` for eight cards; `--memory 11.75` for a card of that
generation with so many GiB.
It does not know the room in which cuDNN works, so a step "fits" if it leaves a third
of the limit free; nor TensorFlow's and PyTorch's own programs. Nothing runs on a card.
"""

import argparse
import collections
import contextlib
import dataclasses
import faulthandler
import functools
import importlib.metadata
import importlib.util
import math
import os
import pathlib
import re
import runpy
import sys
import tempfile
import types
from unittest.mock import Mock, patch


def _start():
    """Find the compiler, before JAX is imported; SystemExit says what is missing."""
    missing = [x for x in ("jax", "keras") if not importlib.util.find_spec(x)]
    if missing:
        sys.exit(f"plan.py needs {' and '.join(missing)}. Fix: pip install keras jax")
    if sys.platform != "linux":
        sys.exit("XLA's compiler for NVIDIA GPUs exists for Linux alone. Take Colab.")
    version = importlib.metadata.version("jax")
    if tuple(map(int, version.split(".")[:2])) < (0, 10):
        sys.exit(f"JAX {version} asks for a card. Fix: pip install 'jax>=0.10'")
    folder = pathlib.Path(sys.prefix, "share", f"xla-for-gpus-{version}")
    if not folder.is_dir():
        names = f"jax-cuda12-plugin=={version} jax-cuda12-pjrt=={version}"
        names += " nvidia-cuda-nvcc-cu12==12.9.86"
        sys.exit(
            "the compiler for NVIDIA GPUs is not here (220 MB). "
            f"Fix: pip install --no-deps --target {folder} {names}"
        )
    sys.path.insert(0, str(folder))
    os.environ |= {
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu,cuda",  # arrays live on the CPU, programs are for CUDA
        "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",  # no CUDA is needed to compile
        "CUDA_VISIBLE_DEVICES": "-1",  # and a real GPU is left alone
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    sys.modules["tensorflow"] = None  # Keras would import it, and needs it for nothing
    # XLA's remarks on a machine without a card go nowhere; Python's errors are shown.
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    faulthandler.enable(sys.stderr)


if __name__ == "__main__":
    _start()

import jax
import jax.numpy as jnp
import keras
from jax._src.cudnn import fused_attention_stablehlo as cudnn_attention
from jax.experimental import topologies
from jax.sharding import NamedSharding, PartitionSpec
from jaxlib import gpu_rnn


@dataclasses.dataclass(frozen=True)
class Card:
    """What XLA asks about a card, and the rates that its roofline needs.

    memory: bytes that programs see. bandwidth: bytes a second. rates: operations a
    second by data type, at most, without sparsity; "tf32" is float32 as its tensor
    cores compute it. shared_memory and block_memory: bytes of a core, and of a block
    at most. sources: where the figures come from.
    """

    capability: tuple
    cores: int
    lanes: int  # float32 units in each core
    clock: float  # GHz
    memory: int
    bandwidth: float
    cache: int
    shared_memory: int
    block_memory: int
    threads: int
    rates: dict
    sources: str


def _rates(float32, tf32, half, bfloat16):
    rates = {"float32": float32, "tf32": tf32, "float16": half, "bfloat16": bfloat16}
    return {name: rate * 1e12 for name, rate in rates.items() if rate}


OPENXLA = "openxla/xla, xla/backends/gpu/target_config/specs/"
HOPPER = _rates(66.9, 494.7, 989.4, 989.4)
CARDS = {
    "T4": Card(
        *((7, 5), 40, 64, 1.59, 15_634_268_160, 320e9, 4 << 20, 65536, 65536, 1024),
        rates=_rates(8.1, None, 65, None),
        sources="NVIDIA's T4 data sheet and Turing white paper",
    ),
    "L4": Card(
        *((8, 9), 58, 128, 2.04, 23_654_301_696, 300e9, 48 << 20),
        *(102400, 101376, 1536),
        rates=_rates(30.3, 60, 121, 121),
        sources="NVIDIA's L4 data sheet and Ada white paper",
    ),
    "A100 40 GB": Card(
        *((8, 0), 108, 64, 1.41, 42_331_013_120, 1555.2e9, 40 << 20),
        *(167936, 166912, 2048),
        rates=_rates(19.5, 156, 312, 312),
        sources=OPENXLA + "a100_sxm_40.txtpb; rates: NVIDIA's A100 data sheet",
    ),
    "A100 80 GB": Card(
        *((8, 0), 108, 64, 1.41, 85_100_068_864, 2039.04e9, 40 << 20),
        *(167936, 166912, 2048),
        rates=_rates(19.5, 156, 312, 312),
        sources=OPENXLA + "a100_sxm_80.txtpb; rates: NVIDIA's A100 data sheet",
    ),
    "H100": Card(
        *((9, 0), 132, 128, 1.98, 84_942_979_072, 3352.32e9, 50 << 20),
        *(233472, 232448, 2048),
        rates=HOPPER,
        sources=OPENXLA + "h100_sxm.txtpb",
    ),
    "H200": Card(
        *((9, 0), 132, 128, 1.98, 151_397_597_184, 4800e9, 50 << 20),
        *(233472, 232448, 2048),
        rates=HOPPER,
        sources=OPENXLA + "h200.txtpb",
    ),
    "B200": Card(
        *((10, 0), 148, 128, 1.965, 191_514_411_008, 7672.32e9, 132_644_864),
        *(233472, 232448, 2048),
        rates=_rates(74.5, 1112.6, 2225.2, 2225.2),
        sources=OPENXLA + "b200.txtpb",
    ),
    "RTX 4090": Card(
        *((8, 9), 128, 128, 2.52, int(23.65 * 2**30), 1008e9, 72 << 20),
        *(102400, 101376, 1536),
        rates=_rates(82.6, 82.6, 165.2, 165.2),
        sources="NVIDIA's Ada white paper; memory: tloen/llama-int8 on GitHub, issue 7",
    ),
    "RTX 5090": Card(
        *((12, 0), 170, 128, 2.407, int(31.3 * 2**30), 1792e9, 96 << 20),
        *(102400, 101376, 1536),
        rates=_rates(104.8, 104.8, 209.5, 209.5),
        sources="NVIDIA's RTX Blackwell white paper; memory: a guess",
    ),
}
SHARE = 0.75  # of a card's memory: what JAX takes for its programs by default
WIDTH = {"pred": 1, "s8": 1, "u8": 1, "f16": 2, "bf16": 2, "f32": 4, "s32": 4, "u32": 4}
OPCODE = re.compile(r"^ +(?:ROOT )?%\S+ = (\(.*?\)|\S+) ([a-z][\w-]*)\(", re.MULTILINE)
COLLECTIVE = re.compile(
    "(all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(-start)?"
)


class Refused(ValueError):
    """There is no program: the card's compiler, or cuDNN without a card, has none."""


def card_named(card):
    """The figures of a card; ValueError if it is not known."""
    if card not in CARDS:
        raise ValueError(f"no card {card!r} here. Choose from: {', '.join(CARDS)}")
    return CARDS[card]


def limit_of(card, share=SHARE, memory=None):
    """Bytes that JAX lets a program have on a card.

    JAX tells it to the compiler. `share` is the part of the memory that JAX takes
    (XLA_CLIENT_MEM_FRACTION), `memory` what the card has, in bytes, if not its own.
    """
    return int(share * (memory or card_named(card).memory))


def verdict(needs, limit):
    """Whether a plan of so many bytes fits, with room for what is in no plan.

    On an H200 convolutions took up to 26 % more than planned, flash attention 33 %.
    """
    if needs > limit:
        return "does not fit"
    return "fits" if needs <= limit * 2 / 3 else "may fit: cuDNN's room is not in it"


def target(card, share=SHARE, memory=None):
    """What XLA wants to know of a card, as the text of its protocol buffer."""
    its = card_named(card)
    # Without a card XLA aims at 80 % of this (GetSchedulerMemoryLimit): at the limit.
    told = limit_of(card, share, memory) * 5 // 4
    return f"""gpu_device_info {{ threads_per_block_limit: 1024 threads_per_warp: 32
      shared_memory_per_block: 49152 shared_memory_per_core: {its.shared_memory}
      threads_per_core_limit: {its.threads} core_count: {its.cores}
      fpus_per_core: {its.lanes} block_dim_limit_x: 2147483647
      block_dim_limit_y: 65535 block_dim_limit_z: 65535
      memory_bandwidth: {int(its.bandwidth)} l2_cache_size: {its.cache}
      clock_rate_ghz: {its.clock} device_memory_size: {told}
      shared_memory_per_block_optin: {its.block_memory} cuda_compute_capability {{
        major: {its.capability[0]} minor: {its.capability[1]} }}
      registers_per_core_limit: 65536 registers_per_block_limit: 65536
      driver_version: "12.8.0" runtime_version: "12.8.0" }} platform_name: "CUDA"
      dnn_version_info {{ major: 9 minor: 10 }} device_description_str: "{card}" """


@functools.cache
def devices(card, count=1, share=SHARE, memory=None):
    """Cards that are not there: JAX compiles for them and puts nothing on them."""
    topology = topologies.get_topology_desc(
        platform="cuda",
        target_config=target(card, share, memory),
        topology=f"1x1x{count}",
    )
    return tuple(topology.devices)


def array(*shape, dtype="float32"):
    """An array's shape and data type, without the array."""
    return jax.ShapeDtypeStruct(shape, jnp.dtype(dtype))


def _placed(value, mesh):
    """A shape that says where it lies: as given, or whole on each card."""
    if isinstance(value, jax.ShapeDtypeStruct) and value.sharding is not None:
        return value
    sharding = NamedSharding(mesh, PartitionSpec())
    return jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=sharding)


def mesh_of(card, shape=(1,), axes=("card",), **limit):
    """A mesh of cards that are not there, such as (4, 2), "batch" and "model"."""
    cards = types.SimpleNamespace(devices=devices(card, math.prod(shape), **limit))
    return topologies.make_mesh(cards, shape, axes)


@contextlib.contextmanager
def as_on(card):
    """Keras and JAX ask, while they trace, what GPU is there: they find this card.

    Then Keras takes cuDNN's flash attention where the card would get it.
    """
    its = float("{}.{}".format(*card_named(card).capability))
    sizes = Mock(side_effect=RuntimeError)
    with (
        patch.object(jax, "default_backend", lambda: "gpu"),
        patch.object(gpu_rnn, "compute_rnn_workspace_reserve_space_sizes", sizes),
        patch.multiple(
            cudnn_attention,
            check_cudnn_version=lambda: 91000,  # 9.10, as in `target`
            check_compute_capability=lambda least: its >= float(least),
            is_cuda_compute_capability_equal=lambda same: its == float(same),
        ),
    ):
        yield
    if sizes.called:
        cause = "cuDNN says only on a card what its LSTM needs"
        raise Refused(f"{card}: {cause}. Fix: LSTM(..., use_cudnn=False)")


def compile_for(
    card, function, *arguments, donate=(), share=SHARE, memory=None, **options
):
    """Compile a function for a card that is not there.

    Args:
        card: a name in CARDS.
        function: what `jax.jit` takes.
        *arguments: arrays, or shapes as `array` gives them; nested ones too.
        donate: numbers of the arguments whose memory the results may take.
        share, memory: as for `limit_of`; of a mesh, `mesh_of` has them.
        **options: XLA's own options of compilation; `out_shardings` goes to `jax.jit`.

    Returns:
        Program.

    Raises:
        ValueError: the card is not known.
        Refused: the card's compiler does not take the program.
    """
    placed = [x.sharding for x in jax.tree.leaves(arguments) if hasattr(x, "sharding")]
    placed = [x.mesh for x in placed if isinstance(x, NamedSharding)]
    mesh = placed[0] if placed else mesh_of(card, share=share, memory=memory)
    placed = jax.tree.map(lambda value: _placed(value, mesh), arguments)
    jitted = {k: options.pop(k) for k in ("out_shardings",) if k in options}
    function = functools.partial(function)  # traced anew: the answers are this card's
    with as_on(card):
        traced = jax.jit(function, donate_argnums=donate, **jitted).trace(*placed)
        lowered = traced.lower()
    with tempfile.TemporaryDirectory() as folder:
        try:
            options = {"xla_dump_to": folder, "xla_dump_hlo_as_text": False, **options}
            compiled = lowered.compile(compiler_options=options)
        except jax.errors.JaxRuntimeError as error:
            if "UNIMPLEMENTED" not in str(error):
                raise
            cause = str(error).splitlines()[0].removeprefix("UNIMPLEMENTED: ")
            raise Refused(f"{card}: {cause}") from None
        files = pathlib.Path(folder).glob("*.ptx")
        code = "\n".join(path.read_text() for path in sorted(files))
    return Program(card, traced, compiled, code)


def _misfit(data, error):
    """The error of a model that does not take a batch."""
    shapes = ", ".join(str(x.shape) for x in jax.tree.leaves(data))
    cause = error.__context__ or error
    return ValueError(f"the model does not take a batch of {shapes}: {cause}")


def _state(model, data):
    """The variables of a training step, as Keras on JAX hands them to it."""
    if keras.backend.backend() != "jax":
        name = keras.backend.backend()
        raise RuntimeError(f"Keras runs on {name} here, and XLA is asked through JAX")
    if not isinstance(model, keras.Model) or not model.compiled:
        raise ValueError("compile the model first: model.compile(optimizer, loss)")
    if not model.jit_compile:
        named = [x.path for x in model._flatten_layers() if not x.supports_jit]
        cause = f" because of {', '.join(named)}" if named else ""
        fix = "put augmentation into the data, or set compile(jit_compile=True)"
        raise ValueError(f"`fit` does not compile this model{cause}. Fix: {fix}")
    try:
        model._symbolic_build(data_batch=data)
    except (TypeError, ValueError, RuntimeError) as error:
        raise _misfit(data, error) from error
    groups = (
        model.trainable_variables,
        model.non_trainable_variables,
        model.optimizer.variables,
        model.metrics_variables,
    )
    return tuple([variable.value for variable in group] for group in groups)


def compile_step_for(card, model, *data, **options):
    """Compile Keras's own training step of a model for a card that is not there.

    Args:
        card: a name in CARDS.
        model: a compiled Keras model. Its weights are made here, on the host.
        *data: a batch as `fit` would see it: inputs, targets and, if there are any,
            weights of the samples; shapes are enough.
        **options: as for `compile_for`.
    """
    card_named(card)
    state = _state(model, data)
    try:
        return compile_for(card, model.train_step, state, data, donate=(0,), **options)
    except (TypeError, ValueError) as error:
        if isinstance(error, Refused):
            raise
        raise _misfit(data, error) from error


class Program:
    """A program as the compiler of a card made it.

    Attributes:
        code: the GPU's assembler code (PTX) of the kernels that XLA wrote itself.
        text: the compiled program (HLO).
    """

    def __init__(self, card, traced, compiled, code):
        self.card, self.code, self.text = card, code, compiled.as_text()
        self._traced, self._compiled = traced, compiled

    @property
    def plan(self):
        """Bytes of a card's memory that the program needs, by what they are for.

        "state": donated arguments, which the results overwrite. "inputs": the other
        arguments. "temporaries": what lives only while it runs. "results": new ones.
        "total": their sum, which the runtime allocates.
        """
        found = self._compiled.memory_analysis()
        state = found.alias_size_in_bytes
        plan = {
            "state": state,
            "inputs": found.argument_size_in_bytes - state,
            "temporaries": found.temp_size_in_bytes,
            "results": found.output_size_in_bytes - state,
        }
        return {**plan, "total": sum(plan.values())}

    @property
    def instructions(self):
        """The matrix instructions in the assembler code, sorted."""
        return sorted(
            set(re.findall(r"\b(?:wgmma\.mma|mma\.sync|tcgen05)\S*", self.code))
        )

    @property
    def operations(self):
        """How many operations the program as written has, nested ones too."""
        return sum(1 for _ in _equations(self._traced.jaxpr.jaxpr))

    @property
    def arithmetic(self):
        """Floating-point operations of the matrix products and convolutions.

        Products with the zeros that strides put into a gradient do not count.
        """
        return round(sum(map(_arithmetic, _equations(self._traced.jaxpr.jaxpr))))

    @property
    def traffic(self):
        """Bytes that must cross the memory bus at least: arguments in, results out."""
        found = self._compiled.memory_analysis()
        return found.argument_size_in_bytes + found.output_size_in_bytes

    @property
    def launches(self):
        """What one run starts: kernels, library calls and copies, by kind."""
        return collections.Counter(_launches(self.text))

    @property
    def collectives(self):
        """Bytes of the results of each kind of collective, on one card."""
        sums = collections.Counter()
        for kind, result, _ in self.exchanges():
            sums[kind] += result
        return dict(sums)

    def exchanges(self):
        """Each collective: its kind, the bytes of its result, its line of the text."""
        for line in self.text.splitlines():
            found = OPCODE.match(line)
            kind = COLLECTIVE.fullmatch(found[2]) if found else None
            if kind:
                sizes = sizes_of(found[1])
                if kind[2] and kind[1] != "all-reduce":  # a start: first its operands
                    sizes = sizes[len(sizes) // 2 :]
                yield kind[1], sum(sizes), line


def _equations(jaxpr):
    """The operations of a traced program, at the lowest level."""
    for equation in jaxpr.eqns:
        nested = [
            getattr(value, "jaxpr", value)
            for entry in equation.params.values()
            for value in (entry if isinstance(entry, (list, tuple)) else [entry])
            if hasattr(getattr(value, "jaxpr", value), "eqns")
        ]
        for inner in nested:
            yield from _equations(inner)
        if not nested:
            yield equation


def _arithmetic(equation):
    """Multiplications and additions of a matrix product or a convolution, or 0."""
    if equation.primitive.name == "dot_general":
        (axes, _), _ = equation.params["dimension_numbers"]
        each = math.prod(equation.invars[0].aval.shape[axis] for axis in axes)
    elif equation.primitive.name == "conv_general_dilated":
        kernel = equation.invars[1].aval.shape
        each = math.prod(kernel) // kernel[equation.params["dimension_numbers"][1][0]]
        each /= math.prod(equation.params["lhs_dilation"])
    else:
        return 0
    return 2 * each * math.prod(equation.outvars[0].aval.shape)


def sizes_of(shape):
    """The bytes of a shape such as f32[8,16]{1,0}, or of each in a tuple of shapes."""
    return [
        WIDTH[kind] * math.prod(map(int, filter(None, sizes.split(","))))
        for kind, sizes in re.findall(r"(\w+)\[([\d,]*)\]", shape)
        if kind in WIDTH
    ]


def _launches(text):
    """The kind of each thing that the program's entry, and what it calls, starts."""
    bodies = {}
    for block in re.split(r"\n(?=(?:ENTRY )?%\S+ \()", text):
        if head := re.match(r"(ENTRY )?%(\S+) \(", block):
            bodies["ENTRY" if head[1] else head[2]] = block
    pending = ["ENTRY"]
    while pending:
        for line in bodies[pending.pop()].splitlines():
            found = OPCODE.match(line)
            if not found:
                continue
            if found[2] == "call":
                pending.append(re.search(r"to_apply=%(\S+?)[,\s]", line + " ")[1])
            elif found[2] == "custom-call":
                yield re.search(r'custom_call_target="([^"]+)"', line)[1]
            elif found[2] in ("fusion", "copy", "sort", "while", "conditional"):
                yield found[2]


def compile_sharded_for(card, model, *data, cards=8, layout="fsdp", **options):
    """Compile Keras's training step of a model for several cards that are not there.

    Args:
        card, model, *data, **options: as for `compile_step_for`. The rows of the batch
            are shared among the cards.
        cards: how many.
        layout: "data" leaves the whole state on each card. "fsdp" shards each variable
            along the largest of the axes that can be divided among the cards.
    """
    rows = {value.shape[0] for value in jax.tree.leaves(data)}
    if any(number % cards for number in rows):
        raise ValueError(
            f"a batch of {rows.pop()} rows can't be shared by {cards} cards"
        )
    mesh = mesh_of(card, (cards,), ("batch",))

    def placed(value, shards):
        shape = tuple(value.shape)
        axes = [axis for axis, size in enumerate(shape) if size and size % cards == 0]
        axis = max(axes, key=lambda axis: shape[axis], default=None) if shards else None
        cut = ["batch" if i == axis else None for i in range(len(shape))]
        sharding = NamedSharding(mesh, PartitionSpec(*cut))
        return jax.ShapeDtypeStruct(shape, jnp.dtype(value.dtype), sharding=sharding)

    def shared(value):
        sharding = NamedSharding(mesh, PartitionSpec("batch"))
        return jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=sharding)

    state = jax.tree.map(
        functools.partial(placed, shards=layout == "fsdp"), _state(model, data)
    )
    after = None, jax.tree.map(lambda value: value.sharding, state)
    data = jax.tree.map(shared, data)
    return compile_for(
        card, model.train_step, state, data, donate=(0,), out_shardings=after, **options
    )


def compile_prediction_for(card, model, inputs, **options):
    """Compile Keras's own prediction of a batch for a card that is not there.

    Args:
        card, model, **options: as for `compile_step_for`; the model is built.
        inputs: a batch of inputs; shapes are enough.
    """
    state = tuple(
        [variable.value for variable in group]
        for group in (model.trainable_variables, model.non_trainable_variables)
    )
    return compile_for(card, model.predict_step, state, (inputs,), **options)


def _shape(value, rows=None):
    """The shape and type with which `fit` sees an array."""
    kind = str(value.dtype)
    kind = {"float64": keras.config.floatx(), "int64": "int32"}.get(kind, kind)
    return array(rows or value.shape[0], *value.shape[1:], dtype=kind)


def _given(path, rows):
    """The model and the batch that a file defines; SystemExit says what it lacks."""
    if not pathlib.Path(path).is_file():
        sys.exit(f"there is no file {path}")
    del sys.modules["tensorflow"]  # the file may want it
    found = runpy.run_path(path, {"array": array})
    model, batch = found.get("model"), found.get("batch")
    if not isinstance(model, keras.Model) or not model.compiled:
        sys.exit(f"{path}: defines no `model` that is a Keras model and compiled")
    if not isinstance(batch, tuple) or not 1 < len(batch) < 4:
        sys.exit(f"{path}: defines no `batch`, a tuple of inputs and targets")
    return model, jax.tree.map(lambda value: _shape(value, rows), batch)


def main():
    """Print the plan for each card: what the step needs, and whether it fits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="defines `model`, compiled, and `batch`")
    parser.add_argument("--card", action="append", choices=CARDS, metavar="NAME")
    parser.add_argument("--batch", type=int, help="rows, if not as in the file")
    parser.add_argument("--memory", type=float, help="GiB, if not the card's own")
    parser.add_argument("--cards", type=int, default=1)
    parser.add_argument("--layout", choices=("data", "fsdp"), default="data")
    parser.add_argument("--predict", action="store_true")
    asked = parser.parse_args()
    model, batch = _given(asked.file, asked.batch)
    memory = asked.memory and int(asked.memory * 2**30)
    print(f"{'MiB':12}{'state':>9}{'batch':>9}{'temporaries':>13}{'total':>9}   limit")
    for card in asked.card or CARDS:
        try:
            if asked.predict:
                _state(model, batch)  # builds the model
                program = compile_prediction_for(card, model, batch[0], memory=memory)
            elif asked.cards > 1:
                options = {"cards": asked.cards, "layout": asked.layout}
                program = compile_sharded_for(card, model, *batch, **options)
            else:
                program = compile_step_for(card, model, *batch, memory=memory)
        except ValueError as error:
            sys.exit(str(error))
        plan, limit = program.plan, limit_of(card, memory=memory)
        state = plan["state"] + plan["results"]
        parts = state, plan["inputs"], plan["temporaries"], plan["total"], limit
        numbers = [f"{part / 2**20:,.1f}" for part in parts]
        widths = zip(numbers, (9, 9, 13, 9, 9))
        print(f"{card:12}" + "".join(f"{x:>{n}}" for x, n in widths), end="  ")
        print(verdict(plan["total"], limit))
        for kind, size in sorted(program.collectives.items()):
            print(f"{'':12}{kind}: results of {size / 2**20:,.1f} MiB on each card")


if __name__ == "__main__":
    main()
