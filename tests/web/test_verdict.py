"""The floor that a comparison names, and its interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gazediffusion as gd
from gazediffusion.web.compare import MIN_WINDOWS, evaluated
from tests.gaze import simulated_windows


@pytest.fixture(scope="module")
def recorded() -> gd.Windows:
    """Windows of six participants."""
    return replace(simulated_windows(6, 1.0), validation=frozenset())


def synthetic_like(windows: gd.Windows, n: int = 40, speed: float = 1.0) -> gd.Windows:
    """n windows of other simulated participants, their gaze stretched."""
    gaze = simulated_windows(6, 1.0, seed=5).subsample(n).dequantized(0).cut() * speed
    return gd.Windows.from_array(gaze, windows.rate_hz, windows.screens[0])


def about(evaluation: gd.Evaluation) -> dict[str, object]:
    found: dict[str, object] = evaluation.results["about"]
    return found


def test_the_floor_is_between_participants_where_there_are_enough(recorded: gd.Windows) -> None:
    found = evaluated(recorded, None, synthetic_like(recorded))
    assert about(found)["floor"] == "two groups of participants of the recording"
    assert about(found)["no_ratio"] is None
    low, high = found.results["headline"]["synthetic"]["ratio"]["interval"]
    assert low < found.ratio < high
    assert found.results["sets"]["real"]["n_participants"] == 2
    assert found.results["sets"]["train"]["n_participants"] == 4
    assert found.results["tests"]["c2st"] == {"not_computable": "left out by `with_tests`"}


def test_the_floor_is_between_segments_of_few_participants(recorded: gd.Windows) -> None:
    three = recorded.select(recorded.participant < 3)
    found = evaluated(three, None, synthetic_like(recorded))
    words = "two groups of gap-free segments of 3 participants"
    assert about(found)["floor"] == words
    assert words in str(about(found)["compared"])
    assert f"{len(three)} recorded windows of 3 participants" in str(about(found)["compared"])
    assert found.results["sets"]["train"]["n_participants"] == 3


def test_the_training_participants_of_a_windows_file_are_the_reference(
    recorded: gd.Windows,
) -> None:
    is_first = recorded.participant < 2
    found = evaluated(
        recorded.select(is_first), recorded.select(~is_first), synthetic_like(recorded)
    )
    assert str(about(found)["floor"]).startswith("training and held-out participants")


def test_few_windows_do_not_look_better_than_many(recorded: gd.Windows) -> None:
    """With few windows the ratio of very different gaze falls towards 1: it is not stated."""
    other = synthetic_like(recorded, 60, speed=0.3)
    many = evaluated(recorded, None, other)
    few = evaluated(recorded.subsample(36), None, other.subsample(MIN_WINDOWS))
    assert about(many)["no_ratio"] is None
    assert many.ratio > 2
    assert "mostly chance" in str(about(few)["no_ratio"]) or "floor" in str(about(few)["no_ratio"])


def test_windows_of_the_same_kind_are_at_the_floor_whatever_their_number(
    recorded: gd.Windows,
) -> None:
    ratios = []
    for n in (30, 60):
        found = evaluated(recorded, None, synthetic_like(recorded, n))
        low, high = found.results["headline"]["synthetic"]["ratio"]["interval"]
        ratios.append(found.ratio)
        assert low < 1.1
        assert high > 0.9
    assert np.ptp(np.log(ratios)) < 0.25
