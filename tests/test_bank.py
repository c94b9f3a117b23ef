"""The bank: its questions listed, taken apart, and put together to other masters."""

import class_factory
import jupytext
import nbformat
import pytest
from test_about import master

from grading import cli
from grading.author import assemble, bank, gates, masters, names, parts, setups
from tools.model import chapters
from tools.model.chapters import ROOT
from tools.model.errors import UserError

PATHS = masters.master_paths()


def code(text):
    return nbformat.v4.new_code_cell(text)


# Names


@pytest.mark.parametrize(
    "text, bound, used",
    [
        ("a = b + 1", {"a"}, {"b"}),
        ("import numpy as np\nfrom x import y", {"np", "y"}, set()),
        ("def f(a):\n    return a + b + len(c)", {"f"}, {"b", "c"}),
        ("class A:\n    x = y", {"A"}, {"y"}),
        ("for i in n:\n    print(i)", {"i"}, {"n"}),
        ("f = lambda a: a + b", {"f"}, {"b"}),
        ("x = [i for i in y]", {"x"}, {"y"}),
        ("%%backends\nz = ops.sum(1)", {"z"}, {"ops"}),
        ("!ls\n%pip install x\na = 1", {"a"}, set()),
        ("this is no Python", set(), set()),
        ('"""# BEGIN TEST CONFIG\n""" # END TEST CONFIG\nenv["f"](x)', set(), {"f"}),
    ],
)
def test_names_are_told(text, bound, used):
    assert (names.bound(code(text)), names.used(code(text))) == (bound, used)


def test_each_import_is_a_line_of_its_own():
    found = names.imports(code("import a.b, c as d\nfrom e import f, g as h"))
    assert found == {
        "a": "import a.b",
        "d": "import c as d",
        "f": "from e import f",
        "h": "from e import g as h",
    }


# A master, taken apart


BETWEEN = [
    # cells below q1 (which binds `softmax`), how many of them are q1's, and q2's
    (["It is:", "print(softmax(1))", "So.", "Now", "x = 1"], 3, 2),
    (["Now", "x = 1"], 0, 2),
    (["So.", "## New", "x = 1"], 1, 2),
    (["print(softmax(1))", "So.\n\n## New\n\nText."], 2, 1),
    (["print(call('softmax'))"], 1, 0),
    ([], 0, 0),
]


@pytest.mark.parametrize("between, above, below", BETWEEN)
def test_cells_between_questions_have_their_place(between, above, below, tmp_path):
    cells = [
        code(one) if "(" in one or "=" in one else nbformat.v4.new_markdown_cell(one)
        for one in between
    ]
    text = assemble.dumps(cells) if cells else ""
    path = tmp_path / "mini.md"
    mini = class_factory.MINI.read_text()
    mark = "```{raw-cell}\n# BEGIN QUESTION\nname: q2"
    path.write_text(mini.replace(mark, f"{text}\n{mark}"))
    found = parts.read(path)
    assert len(found.part("q1").after) == above
    assert sum(map(len, found.part("q2").before)) == below


def test_a_part_has_its_section_and_the_master_its_end(tmp_path):
    path = tmp_path / "mini.md"
    mini = class_factory.MINI.read_text().rstrip()
    mark = "```{raw-cell}\n# BEGIN QUESTION\nname: q2"
    text = mini.replace(mark, f"## Count\n\n{mark}")
    path.write_text(f"{text}\n\nThat was all.\n\n## Hand in\n\nHere.\n")
    found = parts.read(path)
    assert [one.section for one in found.parts] == ["", *3 * ["## Count"]]
    assert [cell.source for cell in found.parts[-1].after] == ["That was all."]
    assert found.end == "## Hand in\n\nHere."
    with pytest.raises(UserError, match=r"mini\.md: no question 'q7'.*q1, q2, q3, q4"):
        found.part("q7")


def test_a_heading_in_a_fence_is_none():
    cell = nbformat.v4.new_markdown_cell("a\n\n```\n## b\n```\n\n## c")
    assert len(parts._sections(cell)) == 2


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_what_a_question_needs_is_stated(path):
    found = parts.read(path)
    for part in found.parts:
        used = {
            need.part.question.name: need.name
            for need in parts.needs(found, part.cells, part)
            if not (need.imported and not need.process)
        }
        missing = {n: why for n, why in used.items() if n not in part.question.needs}
        assert not missing, f"{path.name}, {part.question.name}: uses {missing}"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_core_needs_no_answer_to_an_extra(path):
    found = parts.read(path)
    for part in found.parts:
        answers = [
            need.part.question
            for need in parts.needs(found, part.cells, part)
            if need.chunk is None and not need.imported
        ]
        if not part.question.extra:
            assert not [one.name for one in answers if one.extra], part.question.name


# The set-up cell


def source(tmp_path, set_up, *cells, name="a"):
    path = tmp_path / f"{name}.md"
    mini = class_factory.MINI.read_text()
    path.write_text(mini.replace("# @title Set-up: the checks\n", set_up))
    return parts.read(path), [code(one) for one in cells]


JAX = "# @title Set-up: Keras on JAX, the checks\nimport os\n\n"
JAX += 'os.environ["KERAS_BACKEND"] = "jax"\nos.environ["A"] = "1"\nroom = 3\n'
TENSORFLOW = (
    "# @title Set-up: quiet start, the checks\n# >>> snippets/requirements.py\n"
)
TENSORFLOW += '# <<<\n# >>> snippets/quiet_start.py\n# <<<\nrequire("keras")\n'


def test_set_ups_that_agree_are_one(tmp_path):
    first = source(tmp_path, JAX, "import keras")
    other = JAX.replace("room = 3", '\n\ndef own():\n    """Own."""\n    return os')
    second = source(tmp_path, other, "import jax", name="b")
    made = setups.merged([first, second])
    assert made.count("import os\n") == 1 and made.count("KERAS_BACKEND") == 1
    assert "room = 3" in made and made.endswith(f"{masters.CHECKS}\n# <<<")
    assert made.startswith("# @title Set-up: Keras on JAX, the checks\nimport os\n")
    compile(made, "set-up", "exec")


def test_two_backends_do_not_meet(tmp_path):
    first = source(tmp_path, JAX, "import keras")
    second = source(tmp_path, TENSORFLOW, "import keras", name="b")
    for pair in ([first, second], [second, first]):
        with pytest.raises(UserError, match="a process has one backend") as error:
            setups.merged(pair)
        assert "jax" in str(error.value) and "tensorflow" in str(error.value)


def test_who_computes_with_none_brings_no_backend(tmp_path):
    first = source(tmp_path, JAX, "import keras")
    second = source(tmp_path, TENSORFLOW, "import numpy", name="b")
    made = setups.merged([second, first])
    assert "quiet_start" not in made and 'KERAS_BACKEND"] = "jax"' in made
    made = setups.merged([second])
    assert "requirements" in made and "require(" not in made
    third = source(tmp_path, JAX, "x = room", name="c")
    assert "room = 3" in setups.merged([third]) and "jax" not in setups.merged([third])


@pytest.mark.parametrize(
    "old, new, said",
    [
        ('"A"] = "1"', '"A"] = "2"', "a sets A to '1' and b to '2'"),
        ("room = 3", "room = 4", "both set-up cells define room"),
    ],
)
def test_set_ups_that_differ_are_refused(old, new, said, tmp_path):
    first = source(tmp_path, JAX, "import keras")
    second = source(tmp_path, JAX.replace(old, new), "import keras", name="b")
    with pytest.raises(UserError) as error:
        setups.merged([first, second])
    assert said in str(error.value)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_set_up_alone_stays_what_it_does(path):
    found = parts.read(path)
    cells = [cell for part in found.parts for cell in part.cells]
    made = setups.merged([(found, cells)])
    bare = [line for line in found.set_up.splitlines() if line.strip()]
    lines = [line for line in made.splitlines() if line.strip()]
    order = sorted(bare) if path.stem.startswith("4") else bare
    assert (sorted(lines) if order != bare else lines) == order


# Assembling


TITLE = "A title"


def made(*core, extras=(), title=TITLE, root=ROOT):
    return assemble.assemble(assemble.picks(core, extras, root), title, root)


def cells(found):
    return jupytext.reads(found.text, fmt="md:myst").cells


def test_a_new_master_has_its_questions_renumbered(tmp_path):
    found = made("2.q4", "2.q6", extras=("2.q2",))
    path = tmp_path / "new.md"
    path.write_text(found.text)
    new = masters.build(path)
    assert new.title == TITLE
    old = {one.name: one for one in masters.questions(PATHS[1])}
    asked = [
        (one.name, one.minutes, one.points, one.extra, one.manual, one.title)
        for one in new.questions
    ]
    wanted = []
    for number, name in enumerate(("q4", "q6", "q2"), start=1):
        one = old[name]
        title = one.title.replace(f"Question {name[1:]}:", f"Question {number}:")
        size = (f"q{number}", one.minutes, one.points, number == 3)
        wanted.append((*size, one.manual, title))
    assert asked == wanted
    assert "test_q1_few_programs" in new.tests["q1"] and "q4" not in new.tests["q1"]
    text = masters.dumps(new.student)
    assert "prediction_q1" in text and "prediction_q4" not in text
    assert "def prepare_one" in text  # a given cell of 2.q3, which is not chosen
    assert "def prepare(scans)" not in text
    assert "## Hand in" in text and "How it works" in text
    assert found.questions == new.questions


def test_given_cells_come_once_and_above(tmp_path):
    text = made("2.q7", "2.q4", "2.q3").text
    assert text.count("def prepare_one") == 1
    assert text.index("def prepare_one") < text.index("Question 1")
    needs = [one.needs for one in made("2.q7", "2.q4", "2.q3").questions]
    assert needs == [(), ("q1",), ("q1",)]


def test_given_cells_stand_below_their_own_heading():
    found = cells(made("2.q5", "2.q6", "2.q7"))
    texts = [one.source for one in found]
    third = [n for n, text in enumerate(texts) if text == "## Third repair: do it once"]
    first = next(n for n, text in enumerate(texts) if text.startswith("## First"))
    given = next(n for n, text in enumerate(texts) if text.startswith("Now the third"))
    assert third[0] < first < third[1] == given - 1 and len(third) == 2
    figure = next(n for n, one in enumerate(found) if "def timeline" in one.source)
    assert third[0] < figure < first  # and 2.q6's stay where they are


def test_imports_of_other_questions_come_along():
    first = cells(made("2.q3"))[2].source
    assert first.splitlines() == ["import keras", "import numpy as np"]


def test_answers_that_are_needed_must_be_chosen():
    with pytest.raises(UserError, match=r"3\.q2: needs predict_with of 3\.q1\. Fix"):
        made("3.q2")
    with pytest.raises(UserError, match=r"3\.q2: needs predict_with of 3\.q1\. Fix"):
        made("3.q2", "3.q1")
    with pytest.raises(UserError, match=r"3\.q4: needs 3\.q[23]\. Fix"):
        made("3.q4")
    found = made("3.q1", "3.q2", "3.q3", "3.q4")
    assert [one.needs for one in found.questions][1:] == [
        ("q1",),
        ("q1",),
        ("q2", "q3"),
    ]


def test_a_question_that_is_named_must_be_there():
    said = r"1\.q8: refers to 1\.q2, which is not chosen .*the rules of question 2, and"
    with pytest.raises(UserError, match=said):
        made("1.q8")
    text = made("1.q8", "1.q2").text
    assert "the rules of question 2" in text and "Question 2: model the queue" in text
    assert "the rules of question 1" in made("1.q2", "1.q8").text


@pytest.mark.parametrize(
    "old, new",
    [
        ("See question 4 and Question 6.", "See question 1 and Question 2."),
        ("questions 6, 4 and 2", "questions 2, 1 and 3"),
        ("q4, `prediction_q6`, test_q2_x", "q1, `prediction_q2`, test_q3_x"),
        ("question 12, q44, sq4 and x4", "question 12, q44, sq4 and x4"),
        ("4 questions, 6 points", "4 questions, 6 points"),
    ],
)
def test_texts_are_renumbered(old, new):
    chosen = assemble.picks(["2.q4", "2.q6", "2.q2"], [])
    assert assemble._Assembly(chosen).renumbered(chosen[0], old) == new


def test_a_range_of_questions_is_renumbered_or_listed():
    chosen = assemble.picks(["2.q2", "2.q3", "2.q5", "2.q4"], [])
    made = assemble._Assembly(chosen)
    assert made.renumbered(chosen[0], "questions 2 to 3") == "questions 1 to 2"
    assert made.renumbered(chosen[0], "questions 2 to 5") == "questions 1, 2, 4, 3"
    with pytest.raises(UserError, match=r"refers to 2\.q1"):
        made.renumbered(chosen[0], "questions 1 to 3")


def test_two_answers_of_one_name_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"2\.q5 and a cell of 4-.*define step_seconds"):
        made("2.q5", "4.q4")
    path = str(tmp_path / "own.md")
    own = class_factory.MINI.read_text()
    given = "```{code-cell}\ndef queue_times(launch, work):\n    return 1\n```\n\n"
    mark = "```{raw-cell}\n# BEGIN QUESTION\nname: q2"
    (tmp_path / "own.md").write_text(own.replace(mark, given + mark))
    with pytest.raises(UserError, match=r"1\.q2 and a cell of own: .*queue_times"):
        made("1.q2", f"{path}.q2")


def test_masters_with_two_backends_are_refused():
    with pytest.raises(UserError, match="a process has one backend"):
        made("1.q1", "2.q3")
    assert "quiet_start" in made("1.q2", "2.q3").text


def test_the_wrong_answers_of_the_sources_come_along():
    found = made("2.q4", "1.q3").wrong_answers
    for number, (stem, name) in enumerate([(1, "q4"), (0, "q3")], start=1):
        known = gates.known_wrong_answers(PATHS[stem].stem)
        wanted = [(x["why"], x["points"]) for x in known if x["question"] == name]
        here = [x for x in found if x["question"] == f"q{number}"]
        assert wanted and [(x["why"], x["points"]) for x in here] == wanted
    codes = [one["code"] for one in made("1.q3", "1.q1").wrong_answers]
    assert any("prediction_q2" in one for one in codes)
    assert not any("prediction_q1" in one for one in codes)


def test_a_wrong_answer_brings_its_imports_or_is_left_out():
    found = made("1.q3")
    first = next(
        one["code"] for one in found.wrong_answers if "quantiles" in one["code"]
    )
    assert first.startswith("import statistics\ndef summarise")
    assert found.left_out == []
    found = made("3.q1")
    codes = [one["code"] for one in found.wrong_answers]
    there = [one for one in codes if one.startswith("%%backends\n")]
    assert there and all("\nimport " in one.partition("def ")[0] for one in there)
    master = assemble.picks(["2.q5"], [])[0].master
    chosen = assemble.picks(["2.q5"], [])
    assembly = assemble._Assembly(chosen)
    assembly.add(chosen[0])
    cell = code("def step_seconds(a, b, c):\n    return bucket(math.ceil(a))")
    assert assemble._missing(assembly, master, cell) == {"bucket"}


BAD = {
    "an unknown question": (["1.q99"], [], "no question 'q99'"),
    "an unknown assignment": (["77.q1"], [], "no assignment '77'"),
    "twice": (["1.q1", "1.q2", "1.q1"], [], "1.q1: named twice"),
    "twice, as an extra": (["1.q1"], ["1-measure-and-explain.q1"], "named twice"),
    "no core": ([], ["1.q1"], "no question is in the core"),
    "no name": (["q1"], [], "q1: not a question's name"),
    "a dot alone": ([".q1"], [], ".q1: not a question's name"),
}


@pytest.mark.parametrize("core, extras, said", BAD.values(), ids=BAD)
def test_wrong_questions_are_refused(core, extras, said):
    with pytest.raises(UserError) as error:
        assemble.picks(core, extras)
    assert said in str(error.value) and "Fix: " in str(error.value)


@pytest.mark.parametrize("title", ["", "  ", "two\nlines"])
def test_a_title_is_a_line(title):
    with pytest.raises(UserError, match="--title"):
        made("1.q2", title=title)


@pytest.mark.parametrize(
    "text", ["a\n```\nb", "````\n```", "x = '''\n```{code-cell}\n'''"]
)
def test_a_cell_with_fences_is_written_whole(text):
    given = [code(text), nbformat.v4.new_markdown_cell("a"), code("b")]
    read = jupytext.reads(assemble.dumps(given), fmt="md:myst").cells
    assert [cell.source for cell in read] == [text, "a", "b"]


def test_a_cell_that_myst_reads_otherwise_is_refused():
    with pytest.raises(UserError, match="can't be written as MyST"):
        assemble.dumps([nbformat.v4.new_markdown_cell("a\n\n+++\n\nb"), code("c")])


# The command


@pytest.fixture
def mini(tmp_path):
    """The small master with keys, as a teacher's own."""
    return str(master(tmp_path))


def run(path, *arguments):
    return cli.main(["assemble", str(path), "--title", "Mine", *arguments])


@class_factory.NEEDS_SANDBOX
def test_the_command_writes_what_passes_its_gates(mini, tmp_path, capsys):
    path = tmp_path / "course" / "week-3.md"
    chosen = [f"{mini}.q3", f"{mini}.q1", f"{mini}.q4", "--extra", f"{mini}.q2"]
    assert run(path, *chosen) == 0
    said = capsys.readouterr()
    assert "about 21 minutes and 7 points in the core, of which by hand: q3" in said.out
    assert "trying the starter" in said.err
    assert "no wrong answers are known: q1, q2, q4" in said.err
    found = masters.build(path)
    assert [one.name for one in found.extras] == ["q4"]
    before = path.read_text()
    assert run(path, f"{mini}.q1") == 1
    assert "is there already" in capsys.readouterr().err
    assert path.read_text() == before
    assert run(path, f"{mini}.q1", "--force") == 0
    assert path.read_text() != before


ENDS = "def softmax(logits): __import__('os')._exit(0)"
BROKEN = {
    "a solution that is wrong": ("- np.max(logits)", "+ 1e9", "the solution: "),
    "a solution that raises": ("bytes_q3 = 4", "bytes_q3 = four", "the solution: cell"),
    "a test that passes always": ("assert layer.count() == 2,", "assert True,", "q2"),
    "a test that an empty answer passes": (
        'assert env["bytes_q3"] == 4',
        "assert True",
        "empty answers: test_q3_bytes passes",
    ),
    "a starter that answers": (
        "bytes_q3 = 4  # SOLUTION",
        "bytes_q3 = 4",
        "the starter",
    ),
    "a starter told nothing": (
        "assert got is not None, ",
        "assert len(got), ",
        "says nothing that helps",
    ),
}


@class_factory.NEEDS_SANDBOX
@pytest.mark.parametrize("old, new, said", BROKEN.values(), ids=BROKEN)
def test_nothing_is_written_if_a_gate_fails(old, new, said, mini, tmp_path, capsys):
    path = tmp_path / "mini.md"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    names_ = [f"{mini}.q{number}" for number in (1, 2, 3)]
    assert run(tmp_path / "new.md", *names_) == 1
    assert not (tmp_path / "new.md").exists()
    err = capsys.readouterr().err
    assert said in err and "not written" in err


@class_factory.NEEDS_SANDBOX
def test_a_wrong_answer_that_gets_other_points_is_told():
    answers = [
        {"question": "q3", "why": "five", "points": 0, "code": "bytes_q3 = 5"},
        {"question": "q3", "why": "four", "points": 0, "code": "bytes_q3 = 4"},
        {"question": "q3", "why": "a list", "points": [0, 2], "code": "bytes_q3 = []"},
        {"question": "q1", "why": "broken", "points": 0, "code": "def softmax(:"},
        {"question": "q1", "why": "ends", "points": 0, "code": ENDS},
        {"question": "q3", "why": "five", "points": 1, "code": "bytes_q3 = 5"},
    ]
    said = gates.faults(class_factory.mini(), answers, lambda line: None)
    assert len(said) == 3  # nobody is left to ask of the last
    assert said[0].endswith("q3, four: 1")
    assert "q1, broken: its code raises SyntaxError" in said[1]
    assert "q1, ends: " in said[2] and "ended the process" in said[2]


@pytest.mark.parametrize(
    "name", ["week3", "Week-3.md", "week_3.md", "3 weeks.md", ".md"]
)
def test_a_file_that_no_assignment_has_is_refused(name, mini, tmp_path, capsys):
    assert run(tmp_path / name, f"{mini}.q1") == 1
    assert "not an assignment's name" in capsys.readouterr().err


def test_a_folder_in_its_place_is_refused(mini, tmp_path, capsys):
    (tmp_path / "new.md").mkdir()
    assert run(tmp_path / "new.md", f"{mini}.q1", "--force") == 1
    assert "is there already" in capsys.readouterr().err


def test_a_broken_table_of_wrong_answers_is_told(tmp_path):
    (tmp_path / gates.WRONG_ANSWERS).mkdir(parents=True)
    path = tmp_path / gates.WRONG_ANSWERS / "1-x.yml"
    for text in ("- question: q1\n", "{", "3"):
        path.write_text(text)
        with pytest.raises(UserError, match="not a list of wrong answers"):
            gates.known_wrong_answers("1-x", tmp_path)
    assert gates.known_wrong_answers("2-y", tmp_path) == []


# The list


def test_the_bank_lists_all_questions(capsys):
    assert cli.main(["bank"]) == 0
    lines = capsys.readouterr().out.splitlines()
    count = sum(len(masters.questions(path)) for path in PATHS)
    assert len(lines) == count + 1
    line = next(one for one in lines if one.startswith("2.q4 "))
    for part in ("pad to a few sizes", " 7 ", " 17 ", " 6 ", "by checks"):
        assert part in line
    assert line.endswith("core")  # the cells of 2.q3 that it uses come along


def test_the_bank_says_what_must_be_chosen_together(capsys):
    assert cli.main(["bank"]) == 0
    lines = capsys.readouterr().out.splitlines()
    start = lines[0].index("choose with")
    wanted = {line.split()[0]: line[start:].split(", ") for line in lines[1:]}
    assert (wanted["1.q8"], wanted["3.q4"]) == (["1.q2"], ["3.q1", "3.q2", "3.q3"])
    for name in ("1.q8", "3.q8", "5.q8"):
        together = [*wanted[name], name]
        made(*sorted(together))
        for one in wanted[name]:
            with pytest.raises(assemble.Missing):
                made(*sorted({*together} - {one}))


def test_the_bank_lists_those_of_chapters(capsys):
    assert cli.main(["bank", "--chapter", "9"]) == 0
    labels = [one.split()[0] for one in capsys.readouterr().out.splitlines()]
    wanted = [one.label for one in bank.entries() if 9 in one.question.chapters]
    assert labels == ["question", *wanted] and wanted
    assert cli.main(["bank", "--chapter", "99"]) == 1
    assert "--chapter 99: there is no such chapter" in capsys.readouterr().err


def test_the_page_for_teachers_has_the_tables():
    page = (ROOT / bank.PAGE).read_text(encoding="utf-8")
    assert page == bank.with_tables(page), "Fix: make assignments."
    rows = [line for line in bank.tables().splitlines() if "(../notebooks/" in line]
    assert len(rows) == len(chapters.chapter_paths())
    for number, row in enumerate(rows, start=1):
        told = row.split("|")[2].replace("\\*", "").replace(",", " ").split()
        tested = [e.label for e in bank.entries() if number in e.question.chapters]
        assert told == tested


def test_the_tables_stand_where_the_page_says():
    text = f"a\n{bank.BEGIN}\nold\n{bank.END}\nb\n"
    new = bank.with_tables(text)
    assert new.startswith(f"a\n{bank.BEGIN}\n\n| ") and new.endswith(f"{bank.END}\nb\n")
    assert "old" not in new
    with pytest.raises(UserError, match="no place for the tables"):
        bank.with_tables("a\nb\n")


def test_assign_says_when_the_page_is_stale(monkeypatch, tmp_path, capsys):
    page = tmp_path / bank.PAGE
    page.parent.mkdir()
    page.write_text(f"{bank.BEGIN}\n{bank.END}\n")
    monkeypatch.setattr(bank, "tables", lambda root: "the tables")
    assert bank.write_tables(True, tmp_path) is True
    assert "Fix: make assignments" in capsys.readouterr().out
    assert "the tables" not in page.read_text()
    assert bank.write_tables(False, tmp_path) is True
    assert "the tables" in page.read_text()
    assert bank.write_tables(True, tmp_path) is False


def test_each_chapter_is_tested_by_a_question():
    assert bank.untested() == []


def test_untested_chapters_are_told(monkeypatch):
    kept = [one for one in bank.entries() if 9 not in one.question.chapters]
    monkeypatch.setattr(bank, "entries", lambda root=ROOT: kept)
    assert bank.untested() == [9]
