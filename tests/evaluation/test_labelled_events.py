"""Statistics of labelled events, counted by hand."""

from __future__ import annotations

import numpy as np

import gazediffusion as gd
from gazediffusion.evaluation.labelled_events import (
    EventStatistics,
    labelled_throughout,
    quantities,
)

SCREEN = gd.Screen(1280, 720, 40.0, 22.5, 45.0)


def made() -> gd.Windows:
    """Two windows of a second: fixation, saccade of 3 deg, pursuit, fixation; and a fixation."""
    labels = np.ones((2, 250), dtype=np.uint8)
    labels[0, 50:60], labels[0, 60:160] = 2, 3
    labels[0, 200:210] = 0
    gaze = np.zeros((2, 2, 250))
    gaze[0, 0, 50:60] = np.linspace(0, 3, 10)
    gaze[0, 0, 60:160] = np.linspace(3, 1, 100)
    gaze[0, 0, 160:] = 1
    return gd.Windows.from_array(gaze, 250, SCREEN, unit="deg", labels=labels)


def test_windows_with_a_sample_without_label_are_left_out() -> None:
    assert labelled_throughout(made()).cut_labels().tolist() == [[1] * 250]


def test_durations_amplitudes_rates_and_transitions_are_those_of_the_labels() -> None:
    found = EventStatistics.of(made())
    assert set(found.values) == set(quantities())
    assert found.values["saccade duration (ms)"].tolist() == [40.0]
    assert found.values["pursuit duration (ms)"].tolist() == [400.0]
    # The first and the last fixation are cut by the border.
    assert found.values["fixation duration (ms)"].tolist() == [160.0]
    np.testing.assert_allclose(found.values["saccade amplitude (deg)"], [3.0], rtol=1e-3)
    np.testing.assert_allclose(found.values["pursuit amplitude (deg)"], [2.0], rtol=1e-3)
    assert found.values["fixation rate (1/s)"].tolist() == [3.0, 1.0]
    # No transition across samples without a label.
    expected = np.zeros((2, 4, 4))
    expected[0, 0, 1] = expected[0, 1, 2] = expected[0, 2, 0] = 1
    np.testing.assert_array_equal(found.transitions, expected)


def test_drawn_windows_count_as_often_as_they_are_drawn() -> None:
    found = EventStatistics.of(made())
    assert found.drawn(np.array([0, 0, 1]), "saccade duration (ms)").tolist() == [40.0, 40.0]
    assert found.drawn(np.array([1]), "fixation rate (1/s)").tolist() == [1.0]
    np.testing.assert_allclose(found.transition_shares(np.array([0, 1])).sum(), 1)
    assert not found.transition_shares(np.array([1])).any()
