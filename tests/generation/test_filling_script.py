"""runs/filling.py: the whole table, by interpolation and by a tiny model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gazediffusion as gd
from gazediffusion.training.loop import train_epochs
from tests.test_documents import from_folder
from tests.training.test_steering import STEERABLE, labelled_windows

filling = from_folder("runs", "filling")


def test_the_table_has_every_length_and_method(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "N_BOOTSTRAP", 5)
    windows = replace(labelled_windows(), rate_hz=20.0)
    list(train_epochs(windows, tmp_path / "run", STEERABLE, seed=0, device="cpu"))
    windows.save(tmp_path / "w.safetensors")
    filling.main([str(tmp_path / "w.safetensors"), "--model", str(tmp_path / "run"), "-n", "6"])
    lines = [one for one in capsys.readouterr().out.splitlines() if one.startswith("| ")][1:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [row[1] for row in cells[:5]] == [
        "hold", "linear", "PCHIP", "cubic", "steerable-tiny, 20 draws",
    ]  # fmt: skip
    assert [row[0] for row in cells[::5]] == ["50", "100", "200", "500", "1000"]
    assert {len(row) for row in cells} == {9}
    assert {(row[2], row[3]) for row in cells} == {("6", "1")}
    assert all(row[8] for row in cells[4::5])


def test_interpolation_is_exact_where_it_must_be() -> None:
    windows = gd.Windows.from_array(np.zeros((4, 2, 500), np.float32), 250, gd.Screen(100, 100))
    ramp = np.linspace(-0.5, 0.5, 500, dtype=np.float32)
    windows = replace(windows, gaze=np.tile(np.stack([ramp, -ramp]), 4))
    gaps = filling.Gaps(windows, 4, 100, seed=0)
    for method in ("linear", "PCHIP", "cubic"):
        np.testing.assert_allclose(gaps.interpolated(method), gaps.true, atol=1e-5)
    held = gaps.interpolated("hold")
    assert np.ptp(held, axis=2).max() == 0
    np.testing.assert_allclose(gaps.true[:, 0, 0] - held[:, 0, 0], 1 / 499, rtol=1e-3)


def test_draws_of_the_truths_own_distribution_cover_nine_tenths() -> None:
    rng = np.random.default_rng(0)
    true, drawn = rng.normal(size=(400, 2, 25)), rng.normal(size=(20, 400, 2, 25))
    assert filling.covered(true, drawn).mean() == pytest.approx(19 / 21, abs=0.01)


def test_a_saccade_in_the_gap_is_counted_once() -> None:
    screen = gd.Screen(1280, 720, 40.0, 22.5, 45.0)
    gaze = np.zeros((1, 2, 2000), np.float32)
    windows = gd.Windows.from_array(gaze, 250, screen)
    gaps = filling.Gaps(windows, 1, 200, seed=0)
    middle = int(gaps.first[0]) + 20
    gaze[0, 0, middle : middle + 10] = np.linspace(0, 0.4, 10)
    gaze[0, 0, middle + 10 :] = 0.4
    gaps = filling.Gaps(gd.Windows.from_array(gaze, 250, screen), 1, 200, seed=0)
    assert filling.saccades(gaps, gaps.whole(gaps.true)).tolist() == [1]
    assert filling.saccades(gaps, gaps.whole(np.zeros_like(gaps.true))).tolist() != [2]
