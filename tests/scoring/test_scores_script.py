"""runs/scores.py: oddities are what their names say, the AUC is exact, the table is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.metrics import roc_auc_score

import gazediffusion as gd
from gazediffusion.scoring.calibration import Calibration
from tests.scoring.test_scorer import windows_20hz
from tests.test_documents import from_folder

script = from_folder("runs", "scores")
picture = from_folder("runs", "scores_picture")


def clean_windows(gaze: Any = None) -> Any:
    rng = np.random.default_rng(0)
    gaze = np.cumsum(rng.normal(0, 1e-3, (6, 2, 500)), axis=2) if gaze is None else gaze
    screen = gd.Screen(1280, 720, 40.0, 22.5, 45.0)
    windows = gd.Windows.from_array(gaze, 250, screen, participants=list("aabbcc"))
    return script.Clean(windows, windows, windows.cut(), np.random.default_rng(1))


def test_the_auc_is_that_of_sklearn() -> None:
    rng = np.random.default_rng(0)
    clean, odd = rng.integers(0, 9, 50).astype(float), rng.integers(2, 12, 40).astype(float)
    expected = roc_auc_score([0] * 50 + [1] * 40, np.concatenate([clean, odd]))
    assert script.auc(clean, odd) == pytest.approx(expected)
    assert np.isnan(script.auc(clean, np.array([np.nan])))


def test_oddities_do_what_they_say() -> None:
    clean = clean_windows()
    back = script.reversed_time(clean).cut()
    np.testing.assert_array_equal(back[:, :, ::-1], clean.gaze)
    noise = script.jitter(clean, 2.0).cut() - clean.gaze
    np.testing.assert_allclose(noise.std(axis=(0, 2)) * [640, 360], [2, 2], rtol=0.05)
    screen = clean.windows.screen
    moved = screen.to_degrees(screen.to_pixels(script.drift(clean, 1.0).cut() - clean.gaze))
    length = np.hypot(*(moved[:, :, -1] - moved[:, :, 0]).T)
    np.testing.assert_allclose(length, 1, rtol=0.02)
    pixels, swapped = (
        screen.to_pixels(one) for one in (clean.gaze, script.swapped_axes(clean).cut())
    )
    np.testing.assert_allclose(swapped[:, 0] - 640, pixels[:, 1] - 360, atol=0.01)
    np.testing.assert_array_equal(script.mirrored(clean, 1).cut()[:, 1], -clean.gaze[:, 1])
    joined = script.stitched(clean).cut()
    np.testing.assert_array_equal(joined[:, :, :250], clean.gaze[:, :, :250])
    for k, one in enumerate(joined):
        same = [np.array_equal(one[:, 250:], other[:, 250:]) for other in clean.gaze]
        assert sum(same) == 1
        assert same.index(True) // 2 != k // 2  # of another participant
    straight = script.interpolated(clean, 1).cut()
    bends = np.abs(np.diff(straight, n=2, axis=2)).max(axis=1) < 1e-6
    assert (bends.sum(axis=1) >= 37).all()
    assert (bends.sum(axis=1) <= 77).all()


def test_gaze_at_the_wrong_rate_is_faster_and_needs_longer_segments() -> None:
    clean = clean_windows()
    assert len(script.wrong_rate(clean, 1.5)) == 0
    ramp = np.linspace(-0.5, 0.5, 1200, dtype=np.float32)
    one = gd.Windows.from_array(np.stack([ramp, -ramp])[None], 250, clean.windows.screen)
    windows = gd.Windows(**{**vars(one), "length": 500, "starts": np.array([0, 100])})
    long = script.Clean(windows, windows, windows.cut(), clean.rng)
    slope = np.diff(long.gaze, axis=2).mean()
    for factor in (1.1, 2.0):
        fast = script.wrong_rate(long, factor).cut()
        assert fast.shape == (2, 2, 500)
        steps = np.diff(fast[:, 0], axis=1)
        np.testing.assert_allclose(steps, factor / 1199, rtol=1e-3)
    assert slope == pytest.approx(0, abs=1e-6)


def test_the_drawn_curves_have_the_area_of_the_table() -> None:
    rng = np.random.default_rng(0)
    clean, odd = rng.normal(size=(5, 40)), rng.normal(0.5, 1, (5, 30))
    clean[0, 10:] = odd[0, 12:] = np.nan  # without a likelihood
    axis = Figure().subplots()
    picture.curves(axis, clean, odd)
    drawn = {line.get_label(): line.get_xydata() for line in axis.lines[1:]}
    assert list(drawn) == list(script.SCORES)
    for points, *sides in zip(drawn.values(), clean, odd, strict=True):
        called_odd, found = np.array(points).T
        assert np.trapezoid(found, called_odd) == pytest.approx(script.auc(*sides))


def test_shares_of_losses_are_the_time_between_segments() -> None:
    windows = windows_20hz()
    shares = script.loss_shares(windows)
    assert set(shares) <= set(windows.participants)
    two = gd.Windows.from_array(np.zeros((2, 2, 100)), 100, windows.screen, "a")
    two = gd.Windows(
        **{**vars(two), "segment_trial": ("x", "x"), "segment_onset_ms": np.array([0.0, 3000.0])}
    )
    assert script.loss_shares(two) == {"a": pytest.approx(0.5)}


@pytest.mark.slow
def test_the_table_has_every_score(
    steerable_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (("N_BOOTSTRAP", 5), ("N_TREES", 5), ("FINE_STEPS", 8)):
        monkeypatch.setattr(script, name, value)
    every = list(script.oddities(gd.load(steerable_folder)))
    assert len(every) == 29
    kept = [one for one in every if one[1] in ("uniform", "1 px") or "given" in one[0]]
    monkeypatch.setattr(script, "oddities", lambda model: iter(kept))
    windows_20hz().save(tmp_path / "w.safetensors")
    files = [str(tmp_path / "w.safetensors"), "--model", str(steerable_folder), "--windows", "4"]
    monkeypatch.setattr(script, "ScoreConfig", lambda: gd_config())
    script.main([*files, "-n", "4", "--likelihoods", "2"])
    lines = [one for one in capsys.readouterr().out.splitlines() if one.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == ["file", "oddity", "strength", "n", *script.SCORES]
    rows = {tuple(row[1:3]): row for row in cells[1:-3]}
    assert set(rows) == {
        ("jitter", "1 px"), ("given another task", ""), ("baseline", "uniform"),
        ("5% or more labelled noise", "recorded"),
    }  # fmt: skip
    assert rows["baseline", "uniform"][4:7] == ["1.00 [1.00, 1.00]"] * 3
    assert [row[0] for row in cells[-2:]] == ["denoising error", "with log-likelihood"]
    script.main([*files, "--fit", str(tmp_path / "scores.json")])
    assert "all tasks: 8 windows of 1 participants" in capsys.readouterr().out
    assert Calibration.load(tmp_path) is not None


def gd_config() -> Any:
    from tests.scoring.test_scorer import QUICK

    return QUICK
