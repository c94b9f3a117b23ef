"""The page *What a GPU would give*: tables of the compiler's plan and of measurements.

The directive `measured` takes a table's name, of `PLAN`, `MEASURED`, or `against`. The
tables are made of the files in `tools/plan/results`; an invalid one stops the build.
"""

import itertools
import math
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from book_site.words import date_in_words
from tools.model.errors import UserError
from tools.plan import record
from tools.plan.sizes import BATCHES, SIZES, USUAL

MODELS = {
    "mlp": "Multilayer perceptron",
    "conv": "Convolutional net",
    "transformer": "Decoder-only transformer",
}
BACKENDS = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}
POLICIES = {
    "float32": "float32",
    "mixed_float16": "float16",
    "mixed_bfloat16": "bfloat16",
}
BINDS = {"arithmetic": "arithmetic", "memory": "memory bus"}
EXACT, TF32 = "float32, TF32 forbidden", "TF32"  # on a card that has both
UNASKED = ("tensorflow", "jax")  # take TF32 for float32 if nothing is said
MMA = re.compile(
    r"(?P<name>wgmma|mma)\.\S*?(?P<shape>m\d+n\d+k\d+)\S*?\.(?P<type>\w+)\.\w+\.\w+$"
)
WGMMA = re.compile(r"wgmma\.\S*?(?P<shape>m\d+n\d+k\d+)\.\w+\.(?P<type>\w+)\.\w+")
TCGEN05 = re.compile(r"tcgen05\.mma\S*?kind::(?P<type>\w+)")
KINDS = {"f16": "16 bits"}  # of tcgen05.mma: float16 and bfloat16 alike
LIBRARIES = {"__cudnn$": "cuDNN", "__cublas$": "cuBLAS"}


# --- numbers and tables in Markdown --------------------------------------------------


def digits(value: float) -> str:
    """A number with three significant digits and no exponent."""
    if value >= 100:
        return f"{value:,.0f}".replace(",", "\u202f")  # a narrow space that holds
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def seconds(value: float) -> str:
    """A time with three digits and its unit."""
    factor, unit = next(
        (x for x in ((1, "s"), (1e3, "ms")) if value * x[0] >= 1), (1e6, "µs")
    )
    return f"{digits(value * factor)} {unit}"


def per_second(value: float, unit: str) -> str:
    """A rate such as 1.23 TFLOP/s."""
    prefixes = ((1e12, "T"), (1e9, "G"), (1e6, "M"))
    factor, prefix = next((x for x in prefixes if value >= x[0]), (1, ""))
    return f"{digits(value / factor)} {prefix}{unit}/s"


def size_of(value: float) -> str:
    """A number of bytes in MiB or GiB."""
    if value >= 2**30:
        return f"{digits(value / 2**30)} GiB"
    return f"{digits(value / 2**20)} MiB"


def whole(text: str) -> str:
    """A text that is not broken between its words."""
    return text.replace(" ", "\u00a0")


def table(head: list[str], rows: list[list[str]], words: int = 1) -> str:
    """A Markdown table: the first columns hold words, the others numbers."""
    marks = [*["---"] * words, *["--:"] * (len(head) - words)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, marks, *rows])


def shape(model: str, size: str) -> str:
    """A model in a sentence without a verb."""
    its = SIZES[model][size]
    if model == "mlp":
        return f"{its.layers} hidden layers of {its.width}, {its.inputs} inputs"
    if model == "conv":
        filters = ", ".join(map(str, its.filters))
        return f"images of {its.side} × {its.side}, stages of {filters} filters"
    return (
        f"{its.layers} layers of width {its.width}, {its.heads} heads, "
        f"{its.length} tokens"
    )


# --- find your card ------------------------------------------------------------------


def instruction(text: str) -> tuple[float, str]:
    """How many products a matrix instruction holds, and its short name.

    The three families are those of PTX: `mma.sync` of one warp, `wgmma` of four,
    `tcgen05.mma` of a whole core, whose shape stands in a descriptor and not here.
    """
    if found := TCGEN05.match(text):
        kind = KINDS.get(found["type"], found["type"])
        return math.inf, f"tcgen05.mma {kind}"
    found = WGMMA.match(text) or MMA.match(text)
    if not found:
        return 0, text
    size = math.prod(map(int, re.findall(r"\d+", found["shape"])))
    return size, f"{text.partition('.')[0]} {found['shape']} {found['type']}"


def matrix_work(plan: dict) -> str:
    """Who multiplies: the libraries that are called, XLA's own largest instruction."""
    who = [
        name
        for prefix, name in LIBRARIES.items()
        if any(kind.startswith(prefix) for kind in plan["launches"])
    ]
    kinds = sorted(map(instruction, plan["instructions"]))
    return ", ".join([*who, *([kinds[-1][1]] if kinds else [])]) or "plain float32"


def tensor_cores(plan: dict) -> str:
    """Whether the tensor cores multiply; in a library's call only the library knows."""
    if plan["instructions"]:
        return "yes"
    names = matrix_work(plan)
    return "no" if names == "plain float32" else f"left to {names}"


def weights(plan: dict, model: str) -> str:
    """How many weights a large model has: Adam's state in float32 is 12 bytes each."""
    wanted = {"model": model, "size": "large", "precision": "float32"}.items()
    state = next(x["memory"]["state"] for x in plan["plans"] if wanted <= x.items())
    return f"{digits(state / 12e6)} million weights"


def share(plan: dict, card: dict) -> float:
    """The step's memory over what JAX lets it have of the card's."""
    return plan["memory"]["total"] / card["limit"]


def doubt(part: float) -> str:
    """What is said of a step with such a share of the limit; nothing if it fits."""
    return "does not fit" if part > 1 else "may fit" if part > 2 / 3 else ""


def cards(plan: dict) -> str:
    """A row for each card, a column for each of the large models."""
    head = [
        f"{MODELS[x]}, {weights(plan, x)}: {shape(x, 'large')}; "
        f"{BATCHES[x]['large']} samples"
        for x in BATCHES
    ]
    rows = []
    for name, card in plan["cards"].items():
        policy = record.suitable(card)
        memory = whole(size_of(card["limit"]))
        row = [f"**{whole(name)}** <br>{memory}, {POLICIES[policy]}"]
        for model in BATCHES:
            wanted = {"card": name, "model": model, "size": "large"}.items()
            cases = (x for x in plan["plans"] if wanted <= x.items())
            row.append(
                next((_cell(x, card) for x in cases if x["precision"] == policy), "")
            )
        rows.append(row)
    text = table(["card, 16 bits", *head], rows, words=len(head) + 1)
    return f"```{{table}}\n:class: cards\n\n{text}\n```"


def _cell(case: dict, card: dict) -> str:
    """Memory, tensor cores and the roofline's time of one step on one card."""
    if case["status"] != "planned":
        return f"{case['status']}: {case['why']}"
    part = share(case, card)
    words = f"{100 * part:.0f} %" if part <= 1 else f"{part:.2g} times the limit"
    style = " over" if part > 1 else ""
    bar = f'<span class="share{style}" style="--share: {min(part, 1):.3f}"></span>'
    memory = f"**{whole(size_of(case['memory']['total']))}**, {words}"
    memory = ": ".join(filter(None, (doubt(part), memory)))
    least = "the card has no rate for these numbers"
    if case["least_s"] is not None:
        least = f"{BINDS[case['binds']]}: {whole(seconds(case['least_s']))}"
    return f"{bar}{memory}<br>tensor cores: {tensor_cores(case)}<br>{least}"


def plans(plan: dict) -> str:
    """A folded table of each model and size: all that was asked, all that was said."""
    head = ["case", "state", "inputs", "temporaries", "total", "of the limit"]
    head += ["kernels", "matrix work", "roofline", "side"]
    parts = []
    for size in ("large", "small"):
        for model in BATCHES:
            wanted = {"model": model, "size": size}.items()
            cases = [x for x in plan["plans"] if wanted <= x.items()]
            rows = [_row(x, plan["cards"][x["card"]]) for x in cases]
            parts.append(
                f"````{{dropdown}} {MODELS[model]}, {size}: {len(cases)} plans\n"
                f"Here: {shape(model, size)}. Each row is one training step.\n\n"
                f"{table(head, rows)}\n````"
            )
    return "\n\n".join(parts)


def _row(case: dict, card: dict) -> list[str]:
    """A case as a row, which other pages can link."""
    words = ["plan", case["card"], *map(str, record.key(case)[:4])]
    anchor = re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")
    name = f"{case['card']}, {POLICIES[case['precision']]}, {case['batch']}"
    name = f'<span id="{anchor}"></span>{name}'
    if case["status"] != "planned":
        return [name, f"{case['status']}: {case['why']}", *[""] * 8]
    memory = case["memory"]
    sizes = (memory[x] for x in ("state", "inputs", "temporaries", "total"))
    part = share(case, card)
    return [
        name,
        *(whole(size_of(size)) for size in sizes),
        ", ".join(filter(None, (f"{100 * part:.0f} %", doubt(part)))),
        str(sum(case["launches"].values())),
        matrix_work(case),
        whole(seconds(case["least_s"])) if case["least_s"] else "unknown",
        BINDS.get(case["binds"], case["binds"]),
    ]


def asked(plan: dict) -> str:
    """What is known of the cards, and where the plan comes from."""
    origin = plan["provenance"]
    packages = ", ".join(f"{k} {v}" for k, v in origin["packages"].items())
    rows = []
    for name, card in plan["cards"].items():
        rates = (
            card["rates"].get(x) for x in ("float32", "tf32", "float16", "bfloat16")
        )
        rows.append(
            [
                name,
                card["sources"],
                ".".join(map(str, card["capability"])),
                whole(size_of(card["memory"])),
                whole(size_of(card["limit"])),
                whole(per_second(card["bandwidth"], "B")),
                *(whole(per_second(x, "FLOP")) if x else "none" for x in rates),
            ]
        )
    head = ["card", "source of the figures", "compute capability", "memory", "limit"]
    head += ["bandwidth", "float32", "tf32", "float16", "bfloat16"]
    return (
        f"`{origin['command']}` on {date_in_words(origin['date'])}, at commit "
        f"`{origin['commit'][:12]}`; Python {origin['python']}, {packages}. It was "
        f"compiled on {origin['compiled_on']['name']}, "
        f"{origin['compiled_on']['cores']} cores, {origin['system']}, without a GPU."
        f"\n\n````{{dropdown}} The cards' figures\n{table(head, rows, words=2)}\n````"
    )


# --- what was measured ---------------------------------------------------------------


def devices(records: list[dict]) -> str:
    """The devices, with what each was measured."""
    rows = []
    for known in records:
        origin = known["provenance"]
        packages = ", ".join(f"{k} {v}" for k, v in origin["packages"].items())
        packages += f", driver {origin['driver']}" if origin["driver"] else ""
        when = f"{date_in_words(origin['date'])}, `{origin['command']}`"
        rows.append([known["device"]["name"], packages, when])
    return table(["device", "with", "measured on"], rows, words=3)


def measured(records: list[dict], what: str) -> Iterator[tuple[list[str], dict]]:
    """The results of a kind, each below its device and backend; failures, too.

    "numbers" says in words with which numbers it was computed.
    """
    for known in records:
        kinds = {x.get("policy", x.get("dtype")) for x in known["results"]}
        for result in known["results"]:
            if result["what"] == what:
                backend = result["backend"]
                name = result.get("policy", result.get("dtype"))
                if "tf32" in kinds and what not in ("add", "copy to the device"):
                    unasked = ", if you say nothing" if backend in UNASKED else ""
                    name = {"float32": EXACT, "tf32": TF32 + unasked}.get(name, name)
                where = [known["device"]["name"], BACKENDS[backend]]
                yield where, {**result, "numbers": name}


def quartiles(result: dict) -> list[float]:
    """The quartiles of a result's samples, in seconds."""
    samples = result["samples_s"]
    return statistics.quantiles(samples * (1 + (len(samples) == 1)), n=4)


def time_of(result: dict | None) -> str:
    """A result in words: its median, with the quartiles."""
    if result is None:
        return "not measured"
    if result["status"] != "measured":
        return result["status"]
    low, median, high = map(seconds, quartiles(result))
    return f"**{whole(median)}** ({whole(low)} to {whole(high)})"


CASE = ("model", "size", "policy", "way", "batch")


def steps(records: list[dict]) -> str:
    """A row for each model and way: a training step and a prediction of a batch."""
    predictions = {
        (*where, *map(result.get, CASE)): result
        for where, result in measured(records, "predict")
    }
    rows = []
    for where, result in measured(records, "training step"):
        case = tuple(map(result.get, CASE))
        if result.get("model"):
            name = f"{MODELS[result['model']]}, {result['size']}, {result['batch']}"
            how = f"{result['numbers']}; {result['way']}"
            prediction = predictions.get((*where, *case))
            rows.append([*where, name, how, time_of(result), time_of(prediction)])
    head = ["device", "Keras on", "model, size, batch", "how"]
    return table([*head, "training step", "predict"], rows, words=len(head))


def techniques(records: list[dict]) -> str:
    """How many times as fast a training step is with one thing changed.

    A row says against what: first against TF32, which is what most engines make of
    float32, then against true float32.
    """
    steps = {
        (*where, *map(result.get, CASE)): result
        for where, result in measured(records, "training step")
        if result["status"] == "measured"
    }
    rows = []
    for base, (key, result) in itertools.product(("tf32", "float32"), steps.items()):
        device, backend, model, size, policy, way, batch = key
        plain = steps.get((device, backend, model, size, base, USUAL, batch))
        if plain is None or result is plain or (base, policy) == ("tf32", "float32"):
            continue
        before, after = quartiles(plain), quartiles(result)
        overlap = before[0] <= after[2] and after[0] <= before[2]
        name = way if policy == "float32" else result["numbers"]
        factor = f"{before[1] / after[1]:.2f}" + (" (noise)" if overlap else "")
        rows.append([device, backend, MODELS[model], name, plain["numbers"], factor])
    head = ["device", "Keras on", "model", "changed", "against"]
    return table([*head, "times as fast"], rows, words=len(head))


def against(plan: dict, records: list[dict]) -> str:
    """What a step took beside the roofline: each that was planned and measured."""
    rows = []
    for where, result in measured(records, "training step"):
        words = set(re.split("[ -]", where[0].replace("GB", " GB")))
        for case in plan["plans"]:
            card = plan["cards"][case["card"]]
            policy = case["precision"]
            if policy == "float32" and "tf32" in card["rates"]:
                policy = "tf32"  # what a float32 product is computed in there
            key = (case["model"], case["size"], policy, USUAL, case["batch"])
            if not words.issuperset(case["card"].split()) or not case.get("least_s"):
                continue
            if key == tuple(map(result.get, CASE)) and "samples_s" in result:
                least, took = case["least_s"], quartiles(result)[1]
                numbers = POLICIES.get(policy, result["numbers"])
                step = f"{', '.join(where)}: {MODELS[case['model']]}; {numbers}"
                ratio = f"**{whole(seconds(took))}**, {took / least:.1f} times as long"
                rows.append([step, whole(seconds(least)), ratio])
    return table(["a step", "roofline", "took"], rows)


def calls(records: list[dict]) -> str:
    """What one call costs, when each result is waited for and when only the last is."""
    found: dict[tuple[str, ...], dict[bool, dict]] = {}
    for where, result in measured(records, "add"):
        if result.get("size") == 1:
            found.setdefault(tuple(where), {})["waiting" in result] = result
    rows = [
        [*where, *(time_of(each.get(x)) for x in (False, True))]
        for where, each in found.items()
    ]
    return table(["device", "Keras on", "with waiting", "without"], rows, words=2)


def rates(records: list[dict]) -> str:
    """Operations and bytes a second: products of matrices, sums, copies."""
    rows = []
    for what in ("matmul", "add", "copy to the device"):
        for where, result in measured(records, what):
            size = result["size"]
            if result["status"] != "measured" or size == 1:
                continue
            work, unit = {
                "matmul": (2 * size**3, "FLOP"),
                "add": (3 * 4 * size, "B"),
                "copy to the device": (4 * size, "B"),
            }[what]
            rate = per_second(work / quartiles(result)[1], unit)
            name = f"{what}, {digits(size)}, {result['numbers']}"
            rows.append([*where, name, time_of(result), whole(rate)])
    head = ["device", "Keras on", "what, size, numbers"]
    return table([*head, "a call", "rate"], rows, words=len(head))


PLAN = {part.__name__: part for part in (cards, plans, asked)}
MEASURED = {part.__name__: part for part in (devices, steps, techniques, calls, rates)}


class Measured(SphinxDirective):
    """Put a table in place."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parse the Markdown of the table."""
        name = self.arguments[0]
        folder = Path(self.env.srcdir, "tools", "plan", "results")
        for path in folder.glob("*.json"):
            self.env.note_dependency(str(path))
        try:
            if name in PLAN:
                text = PLAN[name](record.load_plan(folder))
            elif name in MEASURED:
                text = MEASURED[name](record.load_devices(folder))
            elif name == "against":
                text = against(record.load_plan(folder), record.load_devices(folder))
            else:
                names = ", ".join(sorted({*PLAN, *MEASURED, "against"}))
                raise self.error(f"no table {name!r}. Fix: one of {names}")
        except UserError as error:
            raise ExtensionError(str(error)) from None
        part = nodes.container()
        lines = StringList(text.splitlines(), source=f"measured {name}")
        self.state.nested_parse(lines, self.content_offset, part)
        return part.children


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.add_directive("measured", Measured)
