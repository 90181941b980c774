"""runs/filling.py: the whole table, by interpolation and by a tiny model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gazediffusion as gd
from tests.test_documents import from_folder
from tests.training.test_steering import labelled_windows

filling = from_folder("runs", "filling")


def test_the_table_has_every_length_and_method(
    steerable_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(filling, "N_BOOTSTRAP", 5)
    replace(labelled_windows(), rate_hz=20.0).save(tmp_path / "w.safetensors")
    filling.main([str(tmp_path / "w.safetensors"), "--model", str(steerable_folder), "-n", "6"])
    lines = [one for one in capsys.readouterr().out.splitlines() if one.startswith("| ")][1:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [row[1] for row in cells[:6]] == [
        "real, other gaps", "hold", "linear", "PCHIP", "cubic", "steerable-tiny, 20 draws",
    ]  # fmt: skip
    assert [row[0] for row in cells[::6]] == ["50", "100", "200", "500", "1000"]
    assert {len(row) for row in cells} == {10}
    assert {(row[2], row[3]) for row in cells} == {("6", "1")}
    assert all(row[9] for row in cells[5::6])
    assert {row[7] for row in cells[2::6]} == {"1 [1, 1]"}  # linear over linear
    assert all(row[4:6] == ["", ""] and row[6] for row in cells[::6])


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
    assert filling.saccade_counts(gaps, gaps.true_degrees, gaps.first).tolist() == [1]
    assert filling.saccade_counts(gaps, gaps.true_degrees, gaps.other_first).tolist() == [0]


def noisy_gaps(n: int, length_ms: int) -> Any:
    """Gaps in walks of one distribution."""
    rng = np.random.default_rng(1)
    gaze = np.cumsum(rng.normal(0, 1e-3, (n, 2, 2000)), axis=2).astype(np.float32)
    screen = gd.Screen(1280, 720, 40.0, 22.5, 45.0)
    return filling.Gaps(gd.Windows.from_array(gaze, 250, screen), n, length_ms, seed=0)


def test_speeds_are_counted_in_bins_of_the_truth_alone() -> None:
    gaps = noisy_gaps(20, 500)
    true = filling.speed_counts(gaps, gaps.true_degrees, gaps.first)
    assert true.shape == (20, filling.BINS)
    assert (true.sum(axis=1) == gaps.size + 1).all()
    assert np.diff(np.log(gaps.edges)) == pytest.approx(np.log(gaps.edges[1] / gaps.edges[0]))
    # Speeds of a method beyond the true ones count in the end bins, and move none of the others.
    fast = filling.speed_counts(gaps, 100 * gaps.true_degrees, gaps.first)
    still = filling.speed_counts(gaps, 0 * gaps.true_degrees, gaps.first)
    assert (fast[:, -1] > 0.95 * gaps.size).all()
    assert (still[:, 0] == gaps.size + 1).all()
    twice = filling.speed_distances(still, still, true)
    assert twice == [pytest.approx(np.log(2), rel=0.1), 1.0]


@pytest.mark.parametrize("length_ms", [50, 200, 1000])
def test_other_gaps_of_one_distribution_are_at_the_floor(length_ms: int) -> None:
    gaps = noisy_gaps(60, length_ms)
    assert (np.abs(gaps.other_first - gaps.first) >= gaps.size).all()
    true, other = (
        filling.speed_counts(gaps, gaps.true_degrees, first)
        for first in (gaps.first, gaps.other_first)
    )
    linear = filling.speed_counts(gaps, gaps.whole(gaps.interpolated("linear")), gaps.first)
    distance, multiple = filling.speed_distances(other, linear, true)
    # The bias of JS between two samples of n independent speeds: (bins - 1) / 8 * (2 / n).
    assert distance == pytest.approx((filling.BINS - 1) / 4 / true.sum(), rel=0.6)
    assert multiple > 20
