"""What the documents say is so: names exist, commands run, terms are the field's."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "gazediffusion"
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff")),
    ROOT / "Makefile",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "howto").glob("*.md")),
    *sorted(SOURCE.glob("network/pretrained/*/README.md")),
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


def test_every_name_of_code_is_defined_and_every_claim_is_that_of_the_results() -> None:
    pages = from_folder("docs/_ext", "pages")
    named = [one for page in pages.pages() for one in pages.cited(page.read_text())]
    assert len(named) > 80
    for module, name in named:
        assert pages.home_of(module, name) == module, "run python docs/_ext/pages.py"
    text = (ROOT / "docs" / "results.md").read_text()
    assert pages.CLAIMS.findall(text) == [pages.claims()]


def test_a_number_of_the_results_never_begins_a_line_of_text() -> None:
    # Markdown would take the line for HTML and show its marks.
    for page in PAGES:
        for line in page.read_text().splitlines():
            assert not re.match(r"\s*<!-- results\S* .*-->.", line), f"{page.name}: {line}"


# Links, files and commands


@pytest.mark.parametrize("page", PAGES, ids=path_id)
def test_every_link_leads_to_a_file(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), f"{target} is missing"


@pytest.mark.parametrize("page", PAGES, ids=path_id)
def test_every_script_that_is_named_exists(page: Path) -> None:
    scripts = r"\b((?:benchmarks|experiments|examples|docs)/[a-z_/]+\.(?:py|md|png))\b"
    text = re.sub(r"<!-- results.*?<!-- end -->", "", page.read_text(), flags=re.DOTALL)
    for script in re.findall(scripts, text):
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


@pytest.mark.parametrize("page", PAGES, ids=path_id)
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


# Options of other programs.
FOREIGN = {
    "--help",
    "--max-restarts",
    "--nproc-per-node",
    "--standalone",
    "--strict",
    "--working-dir",
}


def test_every_option_that_a_text_names_exists() -> None:
    import typer

    from gazediffusion.cli import app

    verbs: Any = typer.main.get_command(app)
    known = {one for verb in verbs.commands.values() for param in verb.params for one in param.opts}
    known |= {
        one for verb in verbs.commands.values() for p in verb.params for one in p.secondary_opts
    }
    for page in PAGES:
        text = re.sub(r"<!-- results.*?<!-- end -->", "", page.read_text(), flags=re.DOTALL)
        for option in re.findall(r"(?<=`)--[a-z][a-z-]+|(?<= )--[a-z][a-z-]+(?=[^`\n]*`)", text):
            assert option in known | FOREIGN, f"{page.name}: {option}"


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


# Pages whose commands and marked programs are run as they stand, in order, in an empty folder.
GUIDES = [
    ROOT / "README.md",
    ROOT / "docs" / "getting_started.md",
    ROOT / "docs" / "formats.md",
    *(one for one in sorted((ROOT / "docs" / "howto").glob("*.md")) if one.stem != "index"),
]
# Commands that are not run, by their beginning, and why.
NOT_RUN = {
    r"make |pip install": "a network; tests/test_installing.py installs the wheel",
    r"(\w+=\S+ )?gazediffusion serve": "runs until it is stopped; tests/web has a server",
    r"torchrun .*--nproc-per-node 4": "four GPUs; tests/training has several processes",
    r".*--engine ray": "a cluster; tests/generation has one",
    r"gazediffusion train .*--(from default|recipe joint)": "hours on a CPU",
}


def steps(page: Path) -> Iterator[tuple[str, str]]:
    """Commands and marked programs of a page in their order, as (kind, text)."""
    pattern = r"<!-- run -->\n```python\n(.*?)```|```.*?```|^    (\S(?:[^\n]|(?<=\\)\n)*)$"
    for found in re.finditer(pattern, page.read_text(), re.DOTALL | re.MULTILINE):
        if found[1] is not None:
            yield "program", found[1]
        elif found[2] is not None:
            yield "command", found[2]


def reason_not_to_run(command: str) -> str | None:
    return next((why for start, why in NOT_RUN.items() if re.match(start, command)), None)


def test_commands_that_are_not_run_are_in_the_guides() -> None:
    commands = [text for page in GUIDES for kind, text in steps(page) if kind == "command"]
    assert sum(reason_not_to_run(command) is None for command in commands) > 30
    for start in NOT_RUN:
        assert any(re.match(start, command) for command in commands), start


@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDES, ids=path_id)
def test_every_command_and_marked_program_of_a_guide_runs(page: Path, tmp_path: Path) -> None:
    scripts = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([scripts, os.environ["PATH"]]),
        "PYTHONPATH": str(SOURCE.parent),
        "MPLBACKEND": "Agg",
    }
    for kind, text in steps(page):
        if kind == "command" and reason_not_to_run(text):
            continue
        call = ["bash", "-c", text] if kind == "command" else [sys.executable, "-c", text]
        done = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{text}\n{done.stdout[-1000:]}{done.stderr[-2000:]}"


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
# What one file may say: a definition.
ALLOWED: dict[str, tuple[str, ...]] = {
    "docs/glossary.md": ("A person whose gaze was recorded",),
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


def test_documents_have_at_most_thirty_thousand_words_and_no_former_state() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert sum(len(text.split()) for text in texts) < 30_000
    for page, text in zip(PAGES, texts, strict=True):
        assert not re.search(r"(?<![a-z])former(?:ly)?(?![a-z])", text, re.IGNORECASE), page


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
