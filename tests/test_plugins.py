"""The example package is installed and its reader, exporter, metric and generator are used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gazediffusion as gd
from gazediffusion import plugins
from tests.gaze import simulated_windows

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed example package."""
    folder = tmp_path_factory.mktemp("plugin")
    source = folder / "source"
    source.mkdir()
    for path in (ROOT / "examples" / "plugin").rglob("*"):  # a build writes beside the source
        if path.suffix in (".py", ".toml"):
            target = source / path.relative_to(ROOT / "examples" / "plugin")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    pip += ["--no-index", "--disable-pip-version-check", "--target", str(folder / "site")]
    subprocess.run([*pip, str(source)], check=True, capture_output=True)
    return folder / "site"


def run(site: Path, script: str, *arguments: object) -> str:
    """What a program prints that sees the package."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    command = [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def windows() -> gd.Windows:
    """Windows of 2 s of simulated participants, a third held out."""
    return simulated_windows()


USED = """
import sys
import gazediffusion as gd
from gazediffusion.cli import main
from gazediffusion.plotting.evaluation import FIGURES
real, folder = sys.argv[1:]
for line in (
    "info",
    f"generate --model still --fit {real} -n 30 -o {folder}/g.lines",
    f"inspect {folder}/g.lines --seconds 1",
    f"simulate --participants 1 --minutes 0.2 --rate 250 --format lines -o {folder}/sim",
    f"prepare {folder}/sim -o {folder}/w.safetensors --val-fraction 0 --seconds 2",
):
    sys.argv[1:] = line.split()
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
config = gd.EvaluationConfig(quick=True, protocols=("position",))
sets = ["still", f"theirs={folder}/g.lines", "gaussian"]
found = gd.evaluate_files(sets, real, config=config, n=30)
found.to_json(f"{folder}/results.json")
assert FIGURES["plug-ins"](found.results) is not None
print(found.to_markdown())
"""


@pytest.mark.slow
def test_all_four_plug_ins_are_used(site: Path, windows: gd.Windows, tmp_path: Path) -> None:
    windows.save(tmp_path / "real.safetensors")
    printed = run(site, USED, tmp_path / "real.safetensors", tmp_path)
    assert "reader lines: gazediffusion-lines 1.0" in printed
    # exporter: one file beside its card, which names the generator's package
    assert (tmp_path / "g.lines").read_text().count("LINES synthetic synthetic ") == 30
    card = json.loads((tmp_path / "g.json").read_text())["GazediffusionCard"]
    assert card["model"]["plugin"] == "gazediffusion-lines 1.0"
    assert "plug-in package gazediffusion-lines 1.0" in (tmp_path / "g.md").read_text()
    # reader
    prepared = gd.Windows.load(tmp_path / "w.safetensors")
    assert len(prepared) > 0
    assert {one["format"] for one in prepared.provenance["sources"]} == {"lines"}
    # metric: a row with floors, which the headline leaves out
    results = json.loads((tmp_path / "results.json").read_text())["parts"]["all tasks"]
    assert results["about"]["plugins"] == {"left_share": "gazediffusion-lines 1.0"}
    (row,) = [one for one in results["quantities"] if one["family"] == "plug-ins"]
    expected = (windows.held_out.cut()[:, 0] < 0).mean()
    assert row["mean"]["real"] == pytest.approx(expected, abs=1e-3)  # off the tracker's grid
    assert row["distances"]["ks"]["floor"] > 0
    assert set(row["distances"]["ks"]["synthetic"]) == {"still", "theirs", "gaussian"}
    ratios = results["ratios"]
    ours = [by["still"] for family, by in ratios["families"].items() if family != "plug-ins"]
    assert len(ours) == len(ratios["families"]) - 1
    assert ratios["overall"]["still"] == pytest.approx(float(np.exp(np.mean(np.log(ours)))))
    assert "share of gaze in the left half" in printed
    # generator: gaze that stays has a shorter path than that of held-out participants
    (path,) = [one["mean"] for one in results["quantities"] if one["name"] == "x_range"]
    assert path["still"] < path["real"] / 2


def test_a_windows_read_back_from_the_format_is_the_written_one(
    site: Path, windows: gd.Windows, tmp_path: Path
) -> None:
    script = f"""
import numpy as np, gazediffusion as gd
windows = gd.Windows.load({str(tmp_path / "w.safetensors")!r})
windows.save({str(tmp_path / "folder")!r}, format="lines")
again = list(gd.read({str(tmp_path / "folder")!r}))
found = np.stack([one.gaze_px["right"] for one in again])
np.testing.assert_allclose(found, windows.to_numpy("px"), atol=1e-3)
assert {{one.format for one in again}} == {{"lines"}}, again
"""
    windows.select(np.arange(3)).save(tmp_path / "w.safetensors")
    run(site, script)


def installed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, group: str, name: str, source: str
) -> None:
    """A package whose object `Thing` is a plug-in of this process."""
    info = folder / "broken_gaze-0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-gaze\nVersion: 0.3\n")
    points = f"[gazediffusion.{group}]\n{name} = broken_gaze:Thing\n"
    (info / "entry_points.txt").write_text(points)
    (folder / "broken_gaze.py").write_text(source)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "broken_gaze", raising=False)
    monkeypatch.setattr(plugins, "_found", plugins._found.__wrapped__)


READER = "class Thing:\n  matches = lambda *given: True\n"
EXPORTER = "class Thing:\n  is_file = True\n"
METRIC = "class Thing:\n  title = unit = ''\n"
GENERATOR = "class Thing:\n  fit = lambda train: Thing\n"
BROKEN = [
    ("readers", "import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of"),
    ("readers", READER + "  read = lambda *given: [1]", "TypeError: int is no Recording"),
    ("readers", READER + "  def read(*given):\n    yield 1 / 0", "ZeroDivisionError: division"),
    ("exporters", EXPORTER, "it lacks write"),
    ("exporters", EXPORTER + "  write = lambda *given: None", "nothing was written to recordings"),
    ("metrics", METRIC + "  values = lambda gaze, *more: gaze", "values of the shape"),
    ("metrics", METRIC + "  values = lambda gaze, *more: gaze.no_such", "AttributeError"),
    ("generators", "class Thing:\n  fit = lambda train: 1 / 0", "ZeroDivisionError"),
    ("generators", GENERATOR + "  draw = lambda streams, n: [[n]]", "finite gaze of the shape"),
]


@pytest.mark.parametrize(("group", "source", "words"), BROKEN)
def test_a_broken_plug_in_is_one_line_that_names_its_package(
    group: str, source: str, words: str, windows: gd.Windows, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    installed(tmp_path, monkeypatch, group, "thing", source)
    new, table = tmp_path / "new", tmp_path / "gaze.csv"
    table.write_text("t_ms,x_px,y_px\n0,1,2\n4,600,300\n")
    quick = gd.EvaluationConfig(quick=True)
    uses: dict[str, Callable[[], object]] = {
        "readers": lambda: list(gd.read(table)),
        "exporters": lambda: windows.save(new, format="thing"),
        "metrics": lambda: gd.evaluate(windows.held_out, {"a": windows.train}, config=quick),
        "generators": lambda: gd.fit_baseline("thing", windows).sample(2),
    }
    with pytest.raises(gd.GazeError) as caught:
        uses[group]()
    line = str(caught.value)
    assert "plug-in package broken-gaze 0.3" in line
    assert words in line
    assert line.endswith("pip uninstall broken-gaze")
    assert not new.exists()


def test_a_name_of_ours_is_not_given_to_a_plug_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, "readers", "table", READER + "  read = None")
    (tmp_path / "gaze.csv").write_text("t_ms,x_px,y_px\n0,1,2\n4,600,300\n")
    with pytest.raises(gd.GazeError, match=r"'table' of .*broken-gaze 0.3 .*the name is ours"):
        gd.read(tmp_path / "gaze.csv")


def test_no_group_has_another_name() -> None:
    with pytest.raises(gd.GazeError, match="did you mean 'readers'"):
        gd.find_plugins("reader")  # type: ignore[arg-type]
