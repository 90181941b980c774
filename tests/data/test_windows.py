from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gazediffusion.data.events import detect_events
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.conftest import SCREEN

LENGTH = 100


def make_windows(grid_px: float | None = 0.1, seed: int = 0) -> Windows:
    """Three segments of 250 samples from two participants, five windows each."""
    rng = np.random.default_rng(seed)
    gaze = np.clip(np.cumsum(rng.normal(0, 0.01, (2, 750)), axis=1), -1.2, 1.2).astype(np.float32)
    if grid_px is not None:
        step = (2 * grid_px / SCREEN.size_px).astype(np.float32)
        gaze = np.rint(gaze / step).astype(np.float32) * step
    starts = (np.arange(0, 126, 25) + np.array([[0], [250], [500]])).ravel()
    return Windows(
        gaze=gaze,
        starts=starts.astype(np.int64),
        length=LENGTH,
        rate_hz=250.0,
        screens=(SCREEN,),
        protocol="position",
        participants=("anna", "bert"),
        tasks=("dots", "movies"),
        segment_starts=np.array([0, 250, 500]),
        segment_participant=np.array([0, 1, 1], dtype=np.int32),
        segment_task=np.array([0, 0, 1], dtype=np.int32),
        segment_screen=np.zeros(3, dtype=np.int32),
        segment_trial=("0", "0", "1"),
        segment_onset_ms=np.array([0.0, 12.0, 400.0]),
        validation=frozenset({"bert"}),
        grid_px=grid_px,
        provenance={"note": "made"},
    )


def test_windows_are_cut_where_they_start() -> None:
    windows = make_windows()
    cut = windows.cut()
    assert cut.shape == (18, 2, LENGTH)
    for index in (0, 7, 17):
        start = windows.starts[index]
        np.testing.assert_array_equal(cut[index], windows.gaze[:, start : start + LENGTH])
        np.testing.assert_array_equal(cut[index], windows[index])


def test_windows_can_be_cut_by_index() -> None:
    windows = make_windows()
    np.testing.assert_array_equal(windows.cut(np.array([3, 1])), windows.cut()[[3, 1]])


def test_every_window_knows_its_participant_task_and_side() -> None:
    windows = make_windows()
    assert windows.participant.tolist() == [0] * 6 + [1] * 12
    assert windows.task.tolist() == [0] * 12 + [1] * 6
    assert (len(windows.train), len(windows.held_out)) == (6, 12)
    assert len(windows.of_task("movies")) == 6


def test_no_participant_is_on_both_sides() -> None:
    windows = make_windows()
    train, held_out = set(windows.train.participant), set(windows.held_out.participant)
    assert train
    assert held_out
    assert not train & held_out


def test_an_unknown_task_is_refused_with_a_suggestion() -> None:
    with pytest.raises(GazeError, match="did you mean 'movies'"):
        make_windows().of_task("movie")


def test_no_windows_cut_to_an_empty_array() -> None:
    none = make_windows().select(np.zeros(18, dtype=bool))
    assert none.cut().shape == (0, 2, LENGTH)


def test_dequantized_gaze_stays_in_its_grid_cell_and_leaves_the_grid() -> None:
    windows = make_windows(0.1)
    smooth = windows.dequantized(seed=1)
    moved = (smooth.gaze - windows.gaze) / windows.grid_of_window[0]
    assert np.abs(moved).max() <= 0.5 + 1e-3
    assert np.std(moved) == pytest.approx(12**-0.5, rel=0.1)
    assert smooth.grid_px is None
    np.testing.assert_array_equal(smooth.gaze, windows.dequantized(seed=1).gaze)
    assert (smooth.gaze != windows.dequantized(seed=2).gaze).any()


def test_dequantizing_gaze_without_a_grid_changes_nothing() -> None:
    windows = make_windows(None)
    assert windows.dequantized(seed=1) is windows


def test_directions_pile_up_on_the_grid_and_not_after_dequantizing() -> None:
    """FINDINGS 4: on the grid a fixation's steps point mostly along the axes and diagonals."""
    rng = np.random.default_rng(0)
    steps = rng.normal(0, 2e-4, (2, 750))
    step = (0.2 / SCREEN.size_px).astype(np.float32)
    gaze = (np.rint(np.cumsum(steps, axis=1) / step) * step).astype(np.float32)
    windows = replace(make_windows(), gaze=gaze)

    def share_on_axes(some: Windows) -> float:
        dx, dy = np.diff(some.gaze, axis=1)
        moving = (dx != 0) | (dy != 0)
        return float(np.mean((np.abs(dx) < 1e-7) | (np.abs(dy) < 1e-7), where=moving))

    assert share_on_axes(windows) > 0.2
    assert share_on_axes(windows.dequantized(0)) < 0.01


def test_events_of_a_window_are_those_on_its_own_screen() -> None:
    rng = np.random.default_rng(0)
    steps = rng.normal(0, 0.0005, (2, 2, 500))
    steps[:, :, np.arange(500) % 100 < 3] += 0.02  # three samples, the shortest saccade
    gaze = steps.cumsum(axis=2).astype(np.float32)
    screens = [SCREEN, Screen(1680, 1050, 47.4, 29.7, 55.0)]
    windows = Windows.from_array(gaze, 250, screens, tasks=["films", "reading"])
    time_ms = np.arange(500, dtype=np.float64) * 4.0
    for index, screen in enumerate(screens):
        pixels = np.asarray(screen.to_pixels(gaze[index]), dtype=np.float32)
        expected = detect_events(pixels, time_ms, screen)
        assert repr(windows.events(index)) == repr(expected)  # NaN equals NaN
        assert {event.event for event in expected} == {"fixation", "saccade"}


def test_labelled_events_of_a_window_are_those_of_its_own_labels() -> None:
    gaze = np.zeros((2, 2, 100), dtype=np.float32)
    gaze[1, 0, 45:] = 0.1  # 64 of 1280 pixels
    labels = np.zeros((2, 100), dtype=np.uint8)
    labels[1, :40], labels[1, 40:50], labels[1, 60:] = 1, 2, 3
    windows = Windows.from_array(gaze, 250, SCREEN, labels=labels)
    assert windows.events(0, by_labels=True) == []
    found = windows.events(1, by_labels=True)
    expected = [("fixation", 0, 160), ("saccade", 160, 200), ("pursuit", 240, 400)]
    assert [(one.event, one.onset_ms, one.offset_ms) for one in found] == expected
    assert found[1].amplitude_deg == pytest.approx(64 * SCREEN.width_deg / SCREEN.width_px)
    assert replace(windows, labels=None).events(1, by_labels=True) == []


def test_labels_and_targets_are_cut_with_the_gaze() -> None:
    labels = (np.arange(750) % 5).astype(np.uint8)
    targets = np.arange(1500, dtype=np.float32).reshape(2, 750)
    windows = replace(make_windows(), labels=labels, targets=targets)
    held_out, number = windows.held_out, np.array([3, 1])
    for some in (windows, held_out, windows.train, windows.subsample(4), windows.dequantized(0)):
        cut = [slice(start, start + LENGTH) for start in some.starts]
        np.testing.assert_array_equal(some.cut_labels(), [labels[one] for one in cut])
        np.testing.assert_array_equal(some.cut_targets(), [targets[:, one] for one in cut])
    np.testing.assert_array_equal(held_out.cut_labels(number), held_out.cut_labels()[number])
    np.testing.assert_array_equal(held_out.cut_targets(number), held_out.cut_targets()[number])


def test_windows_without_labels_and_targets_are_cut_as_unlabelled() -> None:
    windows = make_windows()
    assert windows.cut_labels().shape == (18, LENGTH)
    assert not windows.cut_labels().any()
    assert windows.cut_targets().shape == (18, 2, LENGTH)
    assert np.isnan(windows.cut_targets()).all()
    none = windows.select(np.zeros(18, dtype=bool))
    assert none.cut_labels().shape == (0, LENGTH)
    assert none.cut_targets().shape == (0, 2, LENGTH)


def test_windows_alone_are_the_same_without_the_gaze_of_others() -> None:
    windows = make_windows()
    n = windows.gaze.shape[1]
    windows = replace(
        windows,
        labels=(np.arange(n) % 5).astype(np.uint8),
        targets=windows.gaze + 1,
        segment_step=np.arange(6.0).reshape(3, 2),
    )
    chosen = windows.select(np.array([17, 0, 13]))  # of the last and the first segment
    alone = chosen.alone()
    assert alone.gaze.shape == (2, 500)
    np.testing.assert_array_equal(alone.cut(), chosen.cut())
    np.testing.assert_array_equal(alone.cut_labels(), chosen.cut_labels())
    np.testing.assert_array_equal(alone.cut_targets(), chosen.cut_targets())
    for name, values in chosen.identity.items():
        assert alone.identity[name].tolist() == values.tolist()
    assert alone.segment_step is not None
    assert alone.segment_step.tolist() == [[0, 1], [4, 5]]
    assert alone.segment_onset_ms.tolist() == [0.0, 400.0]
    assert len(windows.select(np.zeros(0, dtype=int)).alone()) == 0
