"""Write what the cards' compilers plan, in MyST Markdown.

Each part is a function of a plan, as `benchmarks.compiled` stores it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from benchmarks import compiled
from benchmarks.machine import slug
from benchmarks.sizes import BATCHES
from book_site.measured import report
from book_site.measured.page import day, shape, table, whole
from book_site.measured.report import per_second, seconds

SIZE = "large"  # what a GPU is measured with, too
POLICIES = {
    "float32": "float32",
    "mixed_float16": "float16",
    "mixed_bfloat16": "bfloat16",
}
BINDS = {"arithmetic": "arithmetic", "memory": "memory bus"}
MMA = re.compile(
    r"(?P<name>wgmma|mma)\.\S*?(?P<shape>m\d+n\d+k\d+)\S*?\.(?P<type>\w+)\.\w+\.\w+$"
)
WGMMA = re.compile(r"wgmma\.\S*?(?P<shape>m\d+n\d+k\d+)\.\w+\.(?P<type>\w+)\.\w+")
TCGEN05 = re.compile(r"tcgen05\.mma\S*?kind::(?P<type>\w+)")
KINDS = {"f16": "16 bits"}  # of tcgen05.mma: float16 and bfloat16 alike
LIBRARIES = {"__cudnn$": "cuDNN", "__cublas$": "cuBLAS"}


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


def share(plan: dict, card: dict) -> float:
    """The step's memory over the card's."""
    return plan["memory"]["total"] / card["memory"]


def one(plan: dict, **wanted) -> dict | None:
    """The first case with these parameters, or None."""
    return next((x for x in plan["plans"] if wanted.items() <= x.items()), None)


# --- find your card ------------------------------------------------------------------


def cards(plan: dict) -> str:
    """A row for each card, a column for each of the large models."""
    head = ["card, 16 bits", *map(_head, BATCHES)]
    rows = []
    for name, card in plan["cards"].items():
        policy = compiled.suitable(card)
        memory = whole(report.size_of(card["memory"]))
        row = [f"**{whole(name)}** <br>{memory}, {POLICIES[policy]}"]
        for model in BATCHES:
            found = one(plan, card=name, model=model, size=SIZE, precision=policy)
            row.append(_cell(found, card))
        rows.append(row)
    text = table(head, rows, words=len(head))
    return f"```{{table}}\n:class: cards\n\n{text}\n```"


def _head(model: str) -> str:
    """The name of a column."""
    return f"{report.MODELS[model]}, {BATCHES[model][SIZE][1]} samples"


def _cell(found: dict | None, card: dict) -> str:
    """Memory, matrix work and the bound of one step on one card."""
    if found is None:
        return "not asked"
    if found["status"] != "planned":
        return f"{found['status']}: {found['why']}"
    part = share(found, card)
    words = f"{100 * part:.0f} %" if found["fits"] else f"{part:.2g} times the card"
    style = "" if found["fits"] else " over"
    bar = f'<span class="share{style}" style="--share: {min(part, 1):.3f}"></span>'
    verdict = "" if found["fits"] else "does not fit: "
    memory = f"{verdict}**{whole(report.size_of(found['memory']['total']))}**, {words}"
    return f"{bar}{memory}<br>{matrix_work(found)}<br>{_least(found)}"


def _least(found: dict) -> str:
    """The bound in words."""
    if found["least_s"] is None:
        return "no bound: the card has no rate for these numbers"
    return f"at least {whole(seconds(found['least_s']))}"


# --- every plan ----------------------------------------------------------------------


def plans(plan: dict) -> str:
    """A folded table of each model and size: all that was asked, all that was said."""
    parts = []
    for size in ("large", "small"):
        for model in BATCHES:
            found = [
                x for x in plan["plans"] if (x["model"], x["size"]) == (model, size)
            ]
            if not found:
                continue
            head = ["case", "state", "inputs", "temporaries", "total", "of the card"]
            head += ["launches", "matrix work", "at least", "bound by"]
            rows = [_row(x, plan["cards"][x["card"]]) for x in found]
            title = f"{report.MODELS[model]}, {size}: {len(found)} plans"
            about = f"{shape(model, size).capitalize()}."
            parts.append(
                f"````{{dropdown}} {title}\n{about} The compiler's plan of one "
                f"training step.\n\n{table(head, rows)}\n````"
            )
    return "\n\n".join(parts)


def anchor(found: dict) -> str:
    """The name of a plan's row on the page, such as `plan-t4-mlp-large-…`."""
    return slug(" ".join(["plan", found["card"], *map(str, compiled.key(found)[:4])]))


def _row(found: dict, card: dict) -> list[str]:
    """A case as a row."""
    policy, batch = POLICIES[found["precision"]], found["batch"]
    case = f'<span id="{anchor(found)}"></span>{found["card"]}, {policy}, {batch}'
    if found["status"] != "planned":
        return [case, f"{found['status']}: {found['why']}", *[""] * 8]
    memory = found["memory"]
    sizes = (memory[name] for name in ("state", "inputs", "temporaries", "total"))
    return [
        case,
        *(whole(report.size_of(size)) for size in sizes),
        f"{100 * share(found, card):.0f} %" + ("" if found["fits"] else ", too large"),
        str(sum(found["launches"].values())),
        matrix_work(found),
        whole(seconds(found["least_s"])) if found["least_s"] else "unknown",
        BINDS.get(found["binds"], found["binds"]),
    ]


# --- where it comes from -------------------------------------------------------------


def asked(plan: dict) -> str:
    """What is known of the cards, and where the plan comes from."""
    return "\n\n".join(_asked(plan))


def _asked(plan: dict) -> Iterator[str]:
    origin = plan["provenance"]
    packages = ", ".join(f"{k} {v}" for k, v in origin["packages"].items())
    yield (
        f"`{origin['command']}` on {day(origin['date'])}, at commit "
        f"`{origin['commit'][:12]}`; Python {origin['python']}, {packages}. It was "
        f"compiled on {origin['compiled_on']['name']}, "
        f"{origin['compiled_on']['cores']} cores, {origin['system']}, without a GPU."
    )
    rows = []
    for name, card in plan["cards"].items():
        rates = [card["rates"].get(x) for x in ("float32", "tf32", "float16")]
        rates.append(card["rates"].get("bfloat16"))
        rows.append(
            [
                name,
                card["sources"],
                ".".join(map(str, card["capability"])),
                whole(report.size_of(card["memory"])),
                whole(per_second(card["bandwidth"], "B")),
                *(whole(per_second(x, "FLOP")) if x else "none" for x in rates),
            ]
        )
    head = ["card", "source of the figures", "compute capability", "memory"]
    head += ["bandwidth", "float32", "tf32", "float16", "bfloat16"]
    yield f"````{{dropdown}} The cards' figures\n{table(head, rows, words=2)}\n````"


PARTS = {part.__name__: part for part in (cards, plans, asked)}
