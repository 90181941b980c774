"""The documentation site: complete, built without a warning, no broken link, nothing from afar."""

from __future__ import annotations

import ast
import os
import re
import runpy
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

import gazediffusion

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GALLERY = sorted((DOCS / "gallery").glob("plot_*.py"))
GENERATED = ("_build", "api", "auto_gallery")
INCLUDED = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "src/gazediffusion/network/pretrained/joint/README.md",
)


def toctree_entries() -> set[str]:
    """Pages that a toctree names, relative to docs/."""
    found = set()
    for page in [*DOCS.glob("*.md"), *DOCS.glob("howto/*.md")]:
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL):
            for line in block.splitlines():
                entry = re.sub(r".*<(.*)>", r"\1", line.strip())
                if entry and not entry.startswith(":"):
                    found.add((page.parent / entry).relative_to(DOCS).as_posix())
    return found


def test_every_page_is_in_the_table_of_contents() -> None:
    pages = [*DOCS.glob("*.md"), *DOCS.glob("howto/*.md"), *DOCS.glob("results/*.md")]
    names = {page.relative_to(DOCS).with_suffix("").as_posix() for page in pages}
    missing = names - toctree_entries() - {"index"}
    assert not missing, "add them to explanation.md, evidence.md, reference.md or howto/index.md"


def test_the_gallery_has_ten_examples_with_a_title_and_a_figure() -> None:
    assert len(GALLERY) >= 10
    for path in GALLERY:
        text = path.read_text()
        title, underline, _, about = (ast.get_docstring(ast.parse(text)) or "").split("\n")[:4]
        assert len(title) == len(underline)
        assert about
        assert "plt.show()" in text


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg:UserWarning")
def test_an_example_of_the_gallery_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(DOCS / "gallery" / "plot_12_test_a_detection_algorithm.py"))
    axes = plt.gcf().axes[0]
    best = [float(np.max(np.asarray(line.get_ydata(), dtype=np.float64))) for line in axes.lines]
    assert best[0] > 0.8
    assert best[0] == max(best)  # noise makes saccades harder to find
    plt.close("all")


class Page(HTMLParser):
    """Anchors of a page, its links, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.n_equations = 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        self.n_equations += tag == "math"
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in ("script", "img", "iframe") and "src" in given:
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "preload", "icon"):
            self.loaded.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site without the execution of its gallery, built from a copy of docs/."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, folder / "docs", ignore=shutil.ignore_patterns(*GENERATED))
    for name in INCLUDED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-D", "plot_gallery=0"]
    paths = os.pathsep.join([str(Path(gazediffusion.__file__).parents[1]), *sys.path])
    built = subprocess.run(
        [*command, str(folder / "docs"), str(folder / "html")],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr[-3000:]
    return folder / "html"


@pytest.mark.slow
def test_every_internal_link_of_the_site_leads_somewhere(site: Path) -> None:
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    assert len(pages) > 100
    broken = []
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = unquote(link).partition("#")
            target = (path.parent / name).resolve() if name else path
            is_page = target in pages
            if not (target.exists() and (not anchor or not is_page or anchor in pages[target].ids)):
                broken.append(f"{path.relative_to(site.resolve())}: {link}")
    assert not broken, "\n".join(broken[:30])
    afar = {one for page in pages.values() for one in page.loaded if re.match(r"(https?:)?//", one)}
    assert not afar, "pages must be readable without a network"


@pytest.mark.slow
def test_the_site_has_every_public_name_every_command_and_equations_with_code(site: Path) -> None:
    import typer

    from gazediffusion.cli import app

    for name in gazediffusion.__all__:
        if name != "__version__":
            page = site / "api" / "generated" / f"gazediffusion.{name}.html"
            assert f'id="gazediffusion.{name}"' in page.read_text()
    commands = Page(site / "api" / "commands.html")
    assert set(typer.main.get_command(app).commands) <= commands.ids  # type: ignore[attr-defined]
    equations = Page(site / "equations.html")
    assert equations.n_equations > 20
    assert "_modules/gazediffusion/diffusion/edm.html#Edm.denoise" in equations.links
