"""What is derived from results, the page that shows it, and the numbers in chapters."""

import copy
import json
import re

import matplotlib.pyplot as plt
import notebook_factory
import pytest
import results_factory
import test_site_build as site
from book_site.measured import cards, figures, page, report, stated
from markdown_it import MarkdownIt

from benchmarks import compiled, plan, results

CPU = results_factory.results_of("Test CPU", plan.Machine("cpu"), rate=1e11)
GPU = results_factory.results_of(
    "Test GPU", plan.Machine("gpu", (9, 0)), rate=1e13, overhead=1e-4
)
PLAN = results_factory.plan_of()


def test_the_invented_results_keep_the_schema():
    for found in (CPU, GPU):
        results.check(found, found["device"]["name"])


# --- what is derived -----------------------------------------------------------------


def test_the_roofs_are_the_best_of_what_was_measured():
    best = report.peak(GPU, "bfloat16")
    assert report.rate(best, "flop") == pytest.approx(1e13, rel=0.02)
    assert best["params"]["size"] == 16384
    assert report.peak(CPU, "tf32") is None
    memory = report.bandwidth(CPU)
    assert memory["params"]["size"] >= 10**7  # not one that fits in a cache
    assert report.rate(memory, "bytes") == pytest.approx(1e10, rel=0.01)


def test_the_cpu_beside_a_gpu_is_no_roof_of_the_gpu():
    changed = copy.deepcopy(GPU)
    for result in changed["results"]:
        if result["params"].get("place") == "cpu":
            result["median_s"] /= 1e6
    assert report.peak(changed, "float32") == report.peak(GPU, "float32")


def test_the_share_of_the_peak_is_of_the_same_number_type():
    step = report.one(
        CPU, "train", "jax", model="conv", size="small", batch=32, precision="float32"
    )
    assert report.share_of_peak(CPU, step) == pytest.approx(0.5, rel=0.02)
    without = {**CPU, "results": report.good(CPU, "matmul", dtype="bfloat16")}
    assert report.share_of_peak(without, step) is None


def test_speed_ups_change_one_thing():
    found = list(report.speed_ups(GPU))
    assert {s.technique for s in found} >= {
        "graph in place of eager",
        "compiled in place of eager",
        "tf32 in place of float32",
        "mixed_bfloat16 in place of float32",
        "large batch in place of small",
    }
    for speed_up in found:
        slow, fast = speed_up.slow["params"], speed_up.fast["params"]
        changed = [name for name in slow if slow[name] != fast[name]]
        assert len(changed) == 1
        assert speed_up.slow["engine"] == speed_up.fast["engine"]
        if speed_up.technique.startswith("compiled"):
            assert speed_up.factor == pytest.approx(4, rel=0.01)
        if speed_up.technique.startswith("mixed"):
            assert speed_up.factor == pytest.approx(2, rel=0.01)
        if changed == ["batch"]:  # per sample, not per step
            assert 1 < speed_up.factor < 100


def test_a_speed_up_within_the_spread_is_not_clear():
    slow = {"params": {}, "median_s": 1.0, "low_s": 0.9, "high_s": 1.1}
    near = {"params": {}, "median_s": 0.95, "low_s": 0.85, "high_s": 1.05}
    far = {"params": {}, "median_s": 0.5, "low_s": 0.4, "high_s": 0.6}
    assert [next(report.faster("x", slow, fast)).is_clear for fast in (near, far)] == [
        False,
        True,
    ]
    assert next(report.faster("x", far, slow)).is_clear


def test_keras_is_compared_with_the_same_model_without_it():
    found = list(report.beside_keras(CPU))
    assert found
    for pair in found:
        assert pair.slow["engine"] == f"keras-{pair.fast['engine']}"
        assert pair.slow["params"] == pair.fast["params"]


def test_break_even_is_the_size_from_which_on_the_device_wins():
    # 2 n³ · 50 / 10¹³ s on the CPU against 10⁻⁴ s more than a fiftieth of that.
    assert report.break_even(GPU, "keras-jax", "matmul") == 512
    assert report.break_even(GPU, "keras-jax", "round-trip") == 512
    slower = copy.deepcopy(GPU)
    for result in report.on_device(report.good(slower, "matmul")):
        result["median_s"] = 10
    assert report.break_even(slower, "keras-jax", "matmul") is None


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.234, "1.23 s"), (0.0123, "12.3 ms"), (9.87e-8, "0.10 µs"), (1e-3, "1.00 ms")],
)
def test_times_are_written_with_three_digits(value, text):
    assert report.seconds(value) == text


def test_rates_are_written_with_their_prefix():
    assert report.per_second(1.5e12, "FLOP") == "1.50 TFLOP/s"
    assert report.per_second(20e9, "B") == "20.0 GB/s"


# --- the page ------------------------------------------------------------------------


def written(part, all_results):
    drawn = []

    def draw(name, figure):
        drawn.append(name)
        plt.close(figure)
        return f"/{name}.svg"

    return page.PARTS[part](all_results, draw), drawn


def test_a_gpu_is_compared_with_the_cpu():
    text, _ = written("summary", [CPU, GPU])
    for line in text.splitlines()[2:]:
        assert (" times**" in line) == ("(small)" in line)
    assert "times**" not in written("summary", [CPU])[0]


def test_no_bound_stands_among_what_was_measured():
    for part in page.PARTS:
        text, _ = written(part, [CPU])
        assert "at best" not in text
        assert "or more |" not in text


@pytest.mark.parametrize("part", page.PARTS)
def test_each_part_shows_every_device(part):
    text, drawn = written(part, [CPU, GPU])
    assert "Test CPU" in text or part == "roofline"
    assert "Test GPU" in text
    assert len(drawn) == len(set(drawn))
    for line in text.splitlines():
        if line.startswith("| "):
            assert "None" not in line
    columns = {}
    for block in re.split(r"\n\n+", text):
        counts = {line.count("|") for line in block.splitlines() if line[:2] == "| "}
        columns[block[:40]] = counts
        assert len(counts) <= 1, block[:200]


def test_only_an_accelerator_has_a_break_even_figure():
    assert not written("calls", [CPU])[1]
    text, drawn = written("calls", [CPU, GPU])
    assert "break-even-test-gpu-keras-jax" in drawn
    assert "Keras on JAX, with the data on the device: from 512 rows on" in text


def test_every_result_has_its_row_with_an_address_of_its_own():
    text, _ = written("everything", [CPU, GPU])
    found = re.findall(r'<span id="(m-[^"]+)"></span>', text)
    assert len(found) == len(set(found)) == len(CPU["results"]) + len(GPU["results"])
    assert set(found) == report.anchors([CPU, GPU]).keys()


def test_what_failed_is_shown_with_the_reason():
    changed = copy.deepcopy(CPU)
    changed["results"][0] = {
        **{
            name: CPU["results"][0][name] for name in ("experiment", "engine", "params")
        },
        "status": "out of memory",
        "why": "it was too large",
    }
    assert "out of memory: it was too large" in written("everything", [changed])[0]


def test_a_figure_is_the_same_file_each_time():
    with plt.rc_context(figures.STYLE):
        one, two = (figures.as_svg(figures.roofline([CPU])) for _ in range(2))
    assert one == two
    assert one.count("<svg") == 1


# --- the compiler's plan -------------------------------------------------------------


def rows(text):
    """The rows of the first table, by the words in bold of their first cell."""
    lines = [line for line in text.splitlines() if line.startswith("| **")]
    return {
        re.match(r"\| \*\*(.*?)\*\*", line)[1].replace("\xa0", " "): [
            cell.replace("\xa0", " ") for cell in line.strip("| ").split(" | ")
        ]
        for line in lines
    }


def changed_plan(change, **wanted):
    """The invented plan with one case changed."""
    changed = copy.deepcopy(PLAN)
    change(cards.one(changed, **wanted))
    return changed


def test_each_card_has_its_row_with_a_cell_for_each_model():
    found = rows(cards.cards(PLAN))
    assert found.keys() == results_factory.CARDS.keys()
    old, new = found["Old card"], found["New card"]
    assert "float16" in old[0]
    assert "bfloat16" in new[0]
    assert len(old) == len(new) == 4
    for cell in old[1:]:
        assert "**1.00 GiB**, 6 %<br>cuBLAS<br>at least " in cell
    for cell in new[1:]:
        assert "**1.00 GiB**, 2 %<br>mma m16n8k16 bf16<br>at least " in cell


def test_the_numbers_of_a_cell_are_those_of_the_file():
    def larger(found):
        found["memory"]["total"] = 62 * 2**30
        found["least_s"] = 0.0123

    where = {"card": "New card", "model": "conv", "size": "large"}
    text = cards.cards(changed_plan(larger, **where, precision="mixed_bfloat16"))
    cell = rows(text)["New card"][2]
    assert "**62.0 GiB**, 97 %" in cell
    assert "at least 12.3 ms" in cell
    assert "--share: 0.969" in cell
    # The row's other policy, and the other card, are as they were.
    text = cards.cards(changed_plan(larger, **where, precision="float32"))
    assert text == cards.cards(PLAN)


def test_what_does_not_fit_and_what_is_refused_is_said():
    def too_large(found):
        found["memory"]["total"], found["fits"] = 2**35, False

    def refused(found):
        memory = found["memory"]
        found.clear()
        found.update(where, status="refused", why="no such type", memory=memory)

    where = {"card": "Old card", "model": "mlp", "size": "large", "batch": 4096}
    where["precision"] = "mixed_float16"
    cell = rows(cards.cards(changed_plan(too_large, **where)))["Old card"][1]
    assert "does not fit: **32.0 GiB**, 2 times the card" in cell
    assert 'class="share over" style="--share: 1.000"' in cell
    changed = changed_plan(refused, **where)
    assert "refused: no such type" in rows(cards.cards(changed))["Old card"][1]
    assert "refused: no such type" in cards.plans(changed)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "mma m16n8k8 tf32"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma m16n8k16 f16"),
        (
            "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16",
            "wgmma m64n128k16 bf16",
        ),
        ("tcgen05.mma.cta_group::1.kind::f16", "tcgen05.mma 16 bits"),
        ("tcgen05.mma.cta_group::2.kind::tf32", "tcgen05.mma tf32"),
        ("mma.unheard.of", "mma.unheard.of"),
    ],
)
def test_matrix_instructions_have_short_names(text, short):
    assert cards.instruction(text)[1] == short


def test_the_largest_instruction_is_named_with_the_libraries():
    small, middle, large = (
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16",
    )
    launches = {"__cudnn$convForward": 3, "fusion": 1}
    plan_ = {"launches": launches, "instructions": [large, middle, small]}
    assert cards.matrix_work(plan_) == "cuDNN, wgmma m64n16k16 bf16"
    plan_ = {"launches": {"fusion": 1}, "instructions": [small, middle]}
    assert cards.matrix_work(plan_) == "mma m16n8k16 bf16"
    assert cards.matrix_work({"launches": {}, "instructions": []}) == "plain float32"


def test_every_plan_has_its_row_with_an_address_of_its_own():
    found = re.findall(r'<span id="(plan-[^"]+)"></span>', cards.plans(PLAN))
    assert len(found) == len(set(found)) == len(PLAN["plans"])


def test_the_plan_says_where_it_comes_from():
    text = cards.asked(PLAN)
    for words in ("jax 0.10.2", "jax-cuda12-plugin 0.10.2", "python -m benchmarks"):
        assert words in text
    for card in results_factory.CARDS.values():
        assert card["sources"] in text
    assert "8.00 TFLOP/s" in text.replace("\xa0", " ")


# --- the site ------------------------------------------------------------------------


@pytest.fixture
def book(tmp_path):
    """A small book with the page and the results of two devices."""
    root = site.make_book(tmp_path)
    toc = root / "_toc.yml"
    toc.write_text(toc.read_text() + "      - file: book/measured\n")
    parts = "\n".join(
        f"### Part {part}\n\n```{{measured}} {part}\n```\n" for part in page.PARTS
    )
    plans = "\n".join(f"```{{measured}} {part}\n```\n" for part in cards.PARTS)
    (root / "book" / "measured.md").write_text(
        f"# Measured\n\n## The plan\n\n{plans}\n## Here\n\n"
        f"```{{fold-sections}} All of it\n```\n\n{parts}\n## After\n\nThe end.\n"
    )
    folder = root / "benchmarks" / "results"
    folder.mkdir()
    for found in (CPU, GPU):
        path = folder / f"{found['device']['id']}.json"
        path.write_text(json.dumps(found))
    (folder / compiled.PATH.name).write_text(json.dumps(PLAN))
    return root


def test_a_device_is_added_by_adding_its_file(book):
    done = site.build(book)
    assert done.returncode == 0, done.stdout + done.stderr
    text = site.page(book, "book/measured.html")
    assert text.count("Test GPU") > 5
    assert text.count("<img") >= 5
    assert 'id="m-test-gpu-train-jax-' in text
    assert 'id="plan-new-card-mlp-large-float32-4096"' in text
    before, rest = text.split('<details class="sections">')
    fold, after = rest.split('<section id="after">')
    assert 'id="the-plan"' in before
    assert fold.startswith("<summary>All of it</summary>")
    for part in page.PARTS:
        assert f'<section id="part-{part}">' in fold
    assert fold.count("<section") - fold.count("</section>") == -1  # only its own ends
    assert fold.count("</details>") == fold.count("<details") + 1
    assert "</details></section>" in re.sub(r"\s", "", fold)[-40:]
    assert "The end." in after


def test_a_plan_that_is_not_there_stops_the_build_with_the_fix(book):
    (book / "benchmarks" / "results" / compiled.PATH.name).unlink()
    done = site.build(book)
    assert done.returncode != 0
    assert "compiled-plan.json: can't be read" in done.stderr
    assert "make measure ARGS=--compiler" in done.stderr


def test_results_without_provenance_stop_the_build_and_are_named(book):
    path = book / "benchmarks" / "results" / "test-gpu.json"
    found = json.loads(path.read_text())
    del found["provenance"]["commit"]
    path.write_text(json.dumps(found))
    done = site.build(book)
    assert done.returncode != 0
    assert "test-gpu.json: at provenance: 'commit' is a required" in done.stderr


# --- numbers in chapters -------------------------------------------------------------

PAGE = "https://someone.github.io/some-book/book/measured-results.html"
ROWS = {"m-row": "24.1 ms"}


def said(text, rows=ROWS):
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return [(problem, fix) for _, problem, fix in stated.problems([(0, tokens)], rows)]


def test_a_number_must_be_the_one_in_the_file():
    assert said(f"It takes [24.1 ms]({PAGE}#m-row).") == []
    ((problem, fix),) = said(f"It takes [23 ms]({PAGE}#m-row).")
    assert "'23 ms' was not measured" in problem
    assert "'24.1 ms'" in fix
    ((problem, _),) = said(f"It takes [24.1 ms]({PAGE}#m-other).")
    assert "#m-other" in problem


@pytest.mark.parametrize(
    ("sentence", "number"),
    [
        ("A step takes 3.1 ms there.", "3.1 ms"),
        ("It reaches 700 TFLOP/s.", "700 TFLOP/s"),
        ("It is 12 times as fast.", "12 times"),
        ("It saves 30 % of the time.", "30 %"),
        ("It needs 20 GiB.", "20 GiB"),
        ("Chapter 2 has 3 of them, and `3 ms` is code.", None),
        ("A T4 has [8.1 TFLOP/s](https://example.org).", None),
        ("On compute capability 8.0 or more, float32 is 32 bits.", None),
    ],
)
def test_a_number_on_a_gpu_needs_its_source(sentence, number):
    found = said(f"## On a GPU\n\n{sentence} See [the results]({PAGE}).")
    assert [problem for problem, _ in found] == (
        [f"a number without its source: {number}"] if number else []
    )
    assert said(f"## Elsewhere\n\n{sentence}") == []


def test_the_section_must_point_to_the_page():
    assert "does not point" in said("## On a GPU\n\nThe same.\n\n## Go further")[0][0]


def test_a_chapter_with_a_number_that_no_file_holds_is_named(house):
    notebook = notebook_factory.chapter()
    cell = notebook_factory.find(notebook, "## On a GPU")
    cell.source += f"\n\nIt takes [1 ms]({PAGE}#m-nothing)."
    notebook_factory.save(house, notebook)
    (message,) = stated.book_problems(house)
    assert message.startswith("05-tiny.ipynb, cell 8")
    assert "no measured result has the address #m-nothing" in message
