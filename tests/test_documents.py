"""What the documents say is so: names exist, programs run, terms are the field's."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "gazediffusion"
RESULTS = ROOT / "docs" / "results" / "README.md"  # written by `gazediffusion reproduce`
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff")),
    ROOT / "Makefile",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "howto").glob("*.md")),
    RESULTS,
    *sorted(SOURCE.glob("models/pretrained/*/README.md")),
]
PAGES = [path for path in DOCUMENTS if path.suffix == ".md"]


def path_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


def from_folder(folder: str, name: str) -> Any:
    """A program of examples/ or docs/ as a module."""
    sys.path.insert(0, str(ROOT / folder))
    try:
        return import_module(name)
    finally:
        sys.path.pop(0)


# Names of code


NAMES = sorted(
    {
        found
        for name in ("equations.md", "method.md", "metrics.md", "architecture.md")
        for found in re.findall(
            r"`([a-z_.]+): ([A-Za-z_.0-9]+)`", (ROOT / "docs" / name).read_text()
        )
    }
)


def test_the_method_pages_name_code() -> None:
    assert len(NAMES) > 15


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_every_name_of_the_method_pages_exists(module: str, name: str) -> None:
    thing: Any = import_module(f"gazediffusion.{module}")
    for part in name.split("."):
        fields = getattr(thing, "__dataclass_fields__", {})
        assert hasattr(thing, part) or part in fields
        thing = getattr(thing, part, None)


# Links, files and commands


@pytest.mark.parametrize("page", PAGES, ids=path_id)
def test_every_link_leads_to_a_file(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), f"{target} is missing"


# The log keeps commands as they were typed; scripts of then may be gone.
PRESENT = [page for page in PAGES if page.name not in ("log.md", "CHANGELOG.md")]


@pytest.mark.parametrize("page", PRESENT, ids=path_id)
def test_every_script_that_is_named_exists(page: Path) -> None:
    scripts = r"\b((?:experiments|examples|docs)/[a-z_/]+\.(?:py|md|png))\b"
    for script in re.findall(scripts, page.read_text()):
        assert (ROOT / script).exists(), f"{script} is missing"


def shell_commands(text: str) -> Iterator[list[str]]:
    """The words of every call of gazediffusion in indented lines and code spans."""
    joined = re.sub(r"```.*?```", "", text, flags=re.DOTALL).replace("\\\n", " ")
    lines = [line for line in joined.splitlines() if line.startswith("    ")]
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", joined)]
    for line in (*lines, *spans):
        found = re.match(r"\s*(?:[A-Z_]+=\S+ )?gazediffusion ([a-z].*)", line)
        if found:
            yield shlex.split(found.group(1), comments=True)


@pytest.mark.parametrize("page", PRESENT, ids=path_id)
def test_every_command_and_option_exists(page: Path) -> None:
    import typer

    from gazediffusion.cli import app

    verbs: Any = typer.main.get_command(app)
    for verb, *words in shell_commands(page.read_text()):
        assert verb in verbs.commands, f"gazediffusion {verb}"
        known = {option for one in verbs.commands[verb].params for option in one.opts}
        known |= {option for one in verbs.commands[verb].params for option in one.secondary_opts}
        for word in words:
            option = word.split("=")[0]
            if re.fullmatch(r"--?[a-z][a-z-]*", option):
                assert option in known | {"--help"}, f"gazediffusion {verb} {option}"


def test_the_tree_of_the_architecture_is_current() -> None:
    from_folder("docs", "import_graph").main(["--check"])


def test_the_import_graph_is_drawn_and_the_sources_are_measured(tmp_path: Path) -> None:
    graph = from_folder("docs", "import_graph")
    order = graph.package_order()
    graph.draw(graph.import_graph(graph.SOURCE, order), tmp_path / "graph.png")
    assert (tmp_path / "graph.png").stat().st_size > 10_000
    assert "| public names | 0 |" not in graph.measured(graph.SOURCE)
    assert "| data/ |" in graph.measured(graph.SOURCE)


def test_the_readme_has_a_picture_on_its_first_screen() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert any(line.startswith("![") for line in lines[:10])
    assert len(lines) < 80


# Programs


class Program(NamedTuple):
    page: Path
    code: str
    is_run: bool


def programs() -> list[Program]:
    """Every python block of the documents; those after <!-- run --> are run."""
    block = re.compile(r"(<!-- run -->\n)?```python\n(.*?)```", re.DOTALL)
    return [
        Program(page, found.group(2), bool(found.group(1)))
        for page in PAGES
        for found in block.finditer(page.read_text())
    ]


def program_id(program: Program) -> str:
    return f"{path_id(program.page)}:{program.code.splitlines()[-1][:40]}"


@pytest.mark.parametrize("program", programs(), ids=program_id)
def test_every_program_compiles(program: Program) -> None:
    compile(program.code, str(program.page), "exec")


# The same lines in less time: fewer windows, the tiny recipe in the place of 5.5 M parameters, and
# no tests of whole sets nor intervals, which tests/evaluation/ has.
SHORTER = {
    'gd.load("default").fine_tune(windows, "run")': 'gd.train(windows, "run", recipe=tiny)',
    "sample(100,": "sample(6,",
    "sample(1000,": "sample(30,",
    "reference=windows.train)": "reference=windows.train, config=quick)",
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with study/, windows.safetensors and arrays.npz, all simulated."""
    import numpy as np

    import gazediffusion as gd
    from gazediffusion.data.simulation import write_simulation
    from gazediffusion.settings import SimulationConfig

    folder = tmp_path_factory.mktemp("documents")
    screen = gd.Screen(1280, 720, 40, 22.5, 45)
    config = SimulationConfig(n_participants=6, minutes=2, rate_hz=250, screen=screen)
    write_simulation(config, folder / "study", "csv")
    windows = gd.prepare(gd.read([folder / "study"], screen=screen))
    windows.save(folder / "windows.safetensors")
    names = np.array(windows.participants)
    np.savez(
        folder / "arrays.npz",
        real=windows.cut(),
        participants=names[windows.participant],
        mine=np.random.default_rng(0).normal(0, 0.3, (30, 2, 2000)).astype(np.float32),
    )
    return folder


@pytest.mark.slow
@pytest.mark.usefixtures("one_figure")
@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize("program", [one for one in programs() if one.is_run], ids=program_id)
def test_every_marked_program_runs(
    program: Program, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from gazediffusion.evaluation.evaluation import EvaluationConfig
    from gazediffusion.models.recipes import RECIPES

    monkeypatch.chdir(study)
    code = program.code
    for whole, short in SHORTER.items():
        code = code.replace(whole, short)
    tiny = replace(RECIPES["position-tiny"], epochs=1, sampling_steps=5)
    exec(code, {"tiny": tiny, "quick": EvaluationConfig(quick=True)})


def test_examples_have_about_ten_lines() -> None:
    for program in programs():
        if program.page.name == "examples.md":
            assert len(program.code.splitlines()) <= 13


@pytest.mark.usefixtures("one_figure")
def test_the_demo_runs(tmp_path: Path) -> None:
    demo = from_folder("examples", "demo")
    demo.main(tmp_path / "demo", n=25, tasks=demo.TASKS[1:])
    written = ["gallery.png", "reading.parquet", "report-reading/report.html"]
    for name in written:
        assert (tmp_path / "demo" / name).stat().st_size > 1000
    assert "reading" in (tmp_path / "demo" / "report-reading" / "report.md").read_text()


@pytest.mark.slow
def test_detectors_are_trained_on_synthetic_labels(capsys: pytest.CaptureFixture[str]) -> None:
    from_folder("examples", "train_detector").main(n=3, steps=2, participants=3)
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[-6:]]
    names = [
        f"| {one}, {on}"
        for on in ("recorded", "synthetic", "both")
        for one in ("network", "forest")
    ]
    assert [row[0] for row in rows] == names
    assert {len(row) for row in rows} == {9}
    # A forest learns the fixations of simulated participants from generated ones.
    assert float(rows[3][1]) > 0.9


@pytest.mark.slow
def test_the_way_from_own_recordings_runs(tmp_path: Path) -> None:
    from_folder("examples", "own_recordings").main(
        tmp_path / "own", n_epochs=1, n_windows=2, minutes=0.4
    )
    for name in ("recording.png", "gallery.png", "windows.safetensors", "gaze.parquet"):
        assert (tmp_path / "own" / name).stat().st_size > 1000


# Words


GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
# A word of our own -> the field's. Stems: `judg` is judged, judgement and judging.
REPLACED = {
    r"manners?": "summary statistics, conditioning prior",
    r"told": "conditioned on",
    r"heard": "condition",
    r"wanted": "target",
    r"heed(s|ed|ing)?": "gain",
    r"obey(s|ed|ing)?": "gain",
    r"timid(ly)?": "gain below 1",
    r"middling": "underestimated variance",
    r"knees?": "asinh scale",
    r"emphasi[sz]\w*": "amplitude weighting",
    r"evenly[ _]spread": "Sobol points",
    r"fallen[ _]on": "categorical draw",
    r"screen[ -]halves|half[ -]screens?": "normalized units",
    r"side[ _]by[ _]side": "concurrently",
    r"begun[ _]from": "initialised from",
    r"judg\w+": "evaluated",
    r"made[ _]by": "generated by",
    r"people('s)?|persons?('s)?": "participants",
}
WORDS = re.compile("|".join(rf"(?<![a-z])(?:{word})(?![a-z])" for word in REPLACED), re.IGNORECASE)
# Verbatim names: options, keys of files that older versions wrote, arguments of other libraries.
VERBATIM = (
    "--same-person",
    '"fewest_people"',
    "observer person reader",
    "'people', 'participants'",
    "few_people",
)
# What one file may say: an old name in the log or the list of changes, a definition.
ALLOWED: dict[str, tuple[str, ...]] = {
    "docs/glossary.md": ("A person whose gaze was recorded",),
    "docs/log.md": (
        "plain-emphasis",
        "before-looks-k5",
        "no-manner",
        "runs/few_participants.py",
    ),
    "docs/joint.md": ("runs/few_participants.py",),
}


def replaced_words(path: Path) -> list[str]:
    """Each line of a file with a word that the field says otherwise."""
    text = path.read_text(encoding="utf-8")
    for name in (*VERBATIM, *ALLOWED.get(path_id(path), ())):
        text = text.replace(name, "")
    return [
        f"{path_id(path)}:{number}: {found.group()}"
        for number, line in enumerate(text.splitlines(), start=1)
        for found in WORDS.finditer(line)
    ]


@pytest.mark.parametrize("path", DOCUMENTS, ids=path_id)
def test_documents_use_the_words_of_the_field(path: Path) -> None:
    assert not replaced_words(path)


def test_the_code_uses_the_words_of_the_field() -> None:
    names = ("tests", "examples", "benchmarks", "experiments", "docs/gallery", "docs/_ext")
    folders = (SOURCE, *(ROOT / name for name in names))
    found = [
        line
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".py", ".js", ".html", ".css") and path != Path(__file__)
        for line in replaced_words(path)
    ]
    assert not found, "\n".join(found)


def test_the_glossary_defines_each_term_once_in_alphabetical_order() -> None:
    terms = re.findall(r"^\*\*(.+?)\.\*\* ", GLOSSARY, re.MULTILINE)
    keys = [re.sub(r"[^a-z0-9]", "", term.lower()) for term in terms]
    assert len(terms) > 50
    assert keys == sorted(set(keys))
