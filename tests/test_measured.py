"""What is derived from results, the page that shows it, and the numbers in chapters."""

import copy
import json
import re

import matplotlib.pyplot as plt
import notebook_factory
import pytest
import results_factory
import test_site_build as site
from book_site.measured import figures, page, report, stated
from markdown_it import MarkdownIt

from benchmarks import plan, results

CPU = results_factory.results_of("Test CPU", plan.Machine("cpu"), rate=1e11)
GPU = results_factory.results_of(
    "Test GPU", plan.Machine("gpu", (9, 0)), rate=1e13, overhead=1e-4
)


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


def test_a_gpu_is_compared_with_the_cpu_and_no_ceiling_is_needed():
    text, _ = written("summary", [CPU, GPU])
    assert "at best" not in text
    for line in text.splitlines()[2:]:
        assert (" times**" in line) == ("(small)" in line)
    text, _ = written("summary", [CPU])
    assert "T4 at best" in text
    assert "times**" not in text


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


# --- the site ------------------------------------------------------------------------


@pytest.fixture
def book(tmp_path):
    """A small book with the page and the results of two devices."""
    root = site.make_book(tmp_path)
    toc = root / "_toc.yml"
    toc.write_text(toc.read_text() + "      - file: book/measured\n")
    parts = "\n".join(
        f"## Part {part}\n\n```{{measured}} {part}\n```\n" for part in page.PARTS
    )
    (root / "book" / "measured.md").write_text(f"# Measured\n\n{parts}")
    folder = root / "benchmarks" / "results"
    folder.mkdir()
    for found in (CPU, GPU):
        path = folder / f"{found['device']['id']}.json"
        path.write_text(json.dumps(found))
    return root


def test_a_device_is_added_by_adding_its_file(book):
    done = site.build(book)
    assert done.returncode == 0, done.stdout + done.stderr
    text = site.page(book, "book/measured.html")
    assert text.count("Test GPU") > 5
    assert text.count("<img") >= 5
    assert 'id="m-test-gpu-train-jax-' in text


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
