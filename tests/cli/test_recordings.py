"""inspect and prepare on files whose unit, screen or participants have to be said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gazediffusion.cli import console
from gazediffusion.cli.show import shortened
from gazediffusion.data.windows import Windows
from tests.cli.test_cli import error_of
from tests.conftest import RunCommand
from tests.data.readers.files import asc, block, calibration
from tests.data.test_plausibility import SCREEN, gaze_px, written

ON_SCREEN = ("--screen", "1280x720", "--screen-cm", "40x22.5", "--distance-cm", 45)


@pytest.fixture
def degrees(tmp_path: Path) -> Path:
    """Gaze in degrees under column names that state no unit, y up."""
    gaze = SCREEN.to_degrees(gaze_px(6000))
    gaze[1] *= -1
    return written(tmp_path, gaze)


def test_degrees_are_refused_as_pixels_and_prepared_as_degrees(
    run: RunCommand, degrees: Path, tmp_path: Path
) -> None:
    output = tmp_path / "w.safetensors"
    said = error_of(run("prepare", degrees, "-o", output, *ON_SCREEN))
    assert "gaze.csv: the gaze looks like degrees: x from -" in said
    assert "give the --unit deg and the --origin center (center-up if y points up)" in said
    assert not output.exists()
    in_degrees = ("--unit", "deg", "--origin", "center-up", "--val-fraction", 0)
    code, _, lines = run("prepare", degrees, "-o", output, *ON_SCREEN, *in_degrees)
    assert (code, lines.strip()) == (0, "")
    windows = Windows.load(output)
    expected = SCREEN.to_normalized(gaze_px(6000))[:, :2000]
    assert abs(windows.cut()[0] - expected).max() < 0.01


def test_inspect_states_what_was_found_and_where_within_80_columns(
    run: RunCommand, degrees: Path
) -> None:
    code, said, _ = run("inspect", degrees, *ON_SCREEN, "--unit", "deg")
    assert code == 0
    rows = {line.split()[0]: line for line in said.splitlines() if line.strip()}
    assert "gaze" in rows["participants"]
    assert rows["participants"].rstrip().endswith("file name")
    assert "x, y; time t_ms" in rows["columns"]
    assert rows["unit"].split() == ["unit", "deg", "given"]
    assert rows["origin"].split() == ["origin", "center", "assumed"]
    assert "1280x720 px, 40x22.5 cm at 45 cm" in rows["screen"]
    assert "cyclopean" in rows["eye"]
    assert "0.00% zero" in rows["dropped"]


def test_inspect_notes_what_prepare_refuses(run: RunCommand, degrees: Path) -> None:
    code, said, _ = run("inspect", degrees, *ON_SCREEN)
    assert code == 0
    assert "note: prepare will refuse this" in said
    assert "--unit deg" in said


def test_a_screen_that_contradicts_the_file_needs_an_override(
    run: RunCommand, tmp_path: Path
) -> None:
    run("simulate", "-o", tmp_path / "sim", "--participants", 2, "--minutes", 0.5, "--rate", 250)
    output = tmp_path / "w.safetensors"
    given = ("prepare", tmp_path / "sim", "-o", output, "--screen", "3840x2160", "--seconds", 2)
    said = error_of(run(*given))
    assert "states a screen of 1920x1080 px" in said
    assert "--screen is 3840x2160 px" in said
    assert "override_screen in study.yaml" in said
    (tmp_path / "sim" / "study.yaml").write_text("override_screen: true")
    code, _, lines = run(*given)
    assert code == 0
    assert "warning: the gaze stays in the top left quarter" in lines
    assert Windows.load(output).screen.width_px == 3840


def test_long_lists_are_shortened() -> None:
    assert shortened({"b", "a"}) == "a, b"
    assert shortened([f"P{k:02d}" for k in range(1, 21)]) == "P01, P02, P03 ... P20"


@pytest.fixture
def eyelink(tmp_path: Path) -> Path:
    """Six ASC files of 12 s; in the sixth the eye is lost, the fifth states no error."""
    rng = np.random.default_rng(0)
    for k in range(1, 7):
        n = 3000
        gaze = np.round(900 + np.cumsum(rng.normal(0, 1, (2, n)), axis=1) / 4, 1)
        if k == 6:
            gaze[:, 1500:] = np.nan
        stated = "" if k == 5 else calibration("RIGHT", "R", 0.2 * k)
        times = np.arange(4000, 4000 + 4 * n, 4)
        trial = block(["right"], times.tolist(), [gaze], rate="250.00")
        asc(tmp_path / f"P{k}.asc", stated, trial)
    return tmp_path


def test_inspect_shows_quality_by_participant_within_80_columns(
    run: RunCommand, eyelink: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console.out, "width", 80)
    code, said, _ = run("inspect", eyelink, "--seconds", 2)
    assert code == 0
    rows = {line.split()[0]: line for line in said.splitlines() if line.strip()}
    assert "49.5% (6), 100.0% (1) ... 100.0% (5)" in rows["completeness"]
    assert "error in deg: 1.20 (6), 0.80 (4) ... 0.20 (1)" in rows["calibration"]
    assert "unknown for 1" in said
    assert max(len(line) for line in said.splitlines() if not line.startswith("note:")) <= 80


def test_prepare_excludes_participants_by_quality_and_says_whom(
    run: RunCommand, eyelink: Path, tmp_path: Path
) -> None:
    output = tmp_path / "w.safetensors"
    limits = ("--set", "min_valid=0.9", "--set", "max_calibration_error_deg=0.7")
    code, said, lines = run("prepare", eyelink, "-o", output, "--seconds", 2, *limits)
    assert code == 0, lines
    assert "participants excluded by data quality: 2" in said
    assert "4: calibration error 0.80 deg" in said
    assert "6: 49.5 % of the samples valid, calibration error 1.20 deg" in said
    assert "warning: kept, though no recording states their calibration error: 5" in lines
    assert Windows.load(output).participants == ("1", "2", "3", "5")
    code, said, _ = run("info", output)
    assert "4: calibration error 0.80 deg" in said
    none = run("prepare", eyelink / "P5.asc", "-o", tmp_path / "n.safetensors", *limits)
    assert "so --set max_calibration_error_deg selects nobody" in error_of(none)
