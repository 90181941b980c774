"""What the documents say is so: names exist, examples run."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
METHOD = "".join((ROOT / "docs" / name).read_text() for name in ("method.md", "metrics.md"))
README = (ROOT / "README.md").read_text()
NAMES = sorted(set(re.findall(r"`([a-z_.]+): ([A-Za-z_.0-9]+)`", METHOD)))


def test_the_method_pages_name_code() -> None:
    assert len(NAMES) > 15


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_every_name_of_the_method_pages_exists(module: str, name: str) -> None:
    thing: Any = import_module(f"gazediffusion.{module}")
    for part in name.split("."):
        fields = getattr(thing, "__dataclass_fields__", {})
        assert hasattr(thing, part) or part in fields
        thing = getattr(thing, part, None)


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from gazediffusion.data.simulation import SimulationConfig, write_simulation
    from gazediffusion.geometry import Screen
    from gazediffusion.models.recipes import RECIPES

    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    screen = Screen(1280, 720, 40, 22.5, 45)
    config = SimulationConfig(n_participants=3, minutes=1, rate_hz=250, screen=screen)
    write_simulation(config, tmp_path / "study", "csv")
    # The paper's network and schedule take hours here: the same lines with the tiny recipe.
    assert 'RECIPES["position"]' in code
    code = code.replace('RECIPES["position"]', "tiny").replace("n=1000", "n=2")
    exec(code, {"tiny": replace(RECIPES["position-tiny"], epochs=1)})
    assert (tmp_path / "windows.safetensors").exists()
    assert (tmp_path / "gaze.parquet").exists()


def test_every_module_stands_in_the_file_tree_of_the_readme() -> None:
    tree = README[README.index("src/gazediffusion/") :]
    for path in (ROOT / "src" / "gazediffusion").iterdir():
        if not path.name.startswith(("__", "py.typed", "version")):
            assert path.name in tree, f"{path.name} is missing in the README's file tree"


def example(name: str) -> Any:
    """A program of examples/ as a module."""
    import sys

    sys.path.insert(0, str(ROOT / "examples"))
    try:
        return import_module(name)
    finally:
        sys.path.pop(0)


def test_the_demo_runs(tmp_path: Path) -> None:
    example("demo").main(tmp_path / "demo", n_windows=30)
    written = ["gallery.png", "movies.parquet", "reading.parquet", "report-reading/report.html"]
    for name in written:
        assert (tmp_path / "demo" / name).stat().st_size > 1000
    assert "movies" in (tmp_path / "demo" / "report-movies" / "report.md").read_text()


def test_the_way_from_own_recordings_runs(tmp_path: Path) -> None:
    example("own_recordings").main(tmp_path / "own", n_epochs=1, n_windows=2)
    for name in ("recording.png", "gallery.png", "windows.safetensors", "gaze.parquet"):
        assert (tmp_path / "own" / name).stat().st_size > 1000
