from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gazediffusion.data.recordings import require_forward_time, split_at_jumps
from gazediffusion.errors import GazeError
from tests.conftest import MakeRecording


def place(index: int) -> str:
    return f"line {index + 1}"


def test_time_running_backwards_is_refused_with_its_place() -> None:
    with pytest.raises(GazeError, match=r"a\.csv, line 4: time runs backwards, from 8 to 4 ms"):
        require_forward_time(np.array([0.0, 4.0, 8.0, 4.0]), Path("a.csv"), place)


def test_missing_time_is_refused_with_its_place() -> None:
    with pytest.raises(GazeError, match="line 2: the time is missing"):
        require_forward_time(np.array([0.0, np.nan, 8.0]), Path("a.csv"), place)


def test_repeated_time_is_left_to_the_cleaning() -> None:
    require_forward_time(np.array([0.0, 4.0, 4.0]), Path("a.csv"), place)


def test_trials_are_split_at_time_jumps(make_recording: MakeRecording) -> None:
    time_ms = np.concatenate([np.arange(5) * 4.0, 5000 + np.arange(3) * 4.0])
    parts = list(split_at_jumps(make_recording(n=8, time_ms=time_ms)))
    assert [len(part) for part in parts] == [5, 3]
    assert [part.trial for part in parts] == ["0", "1"]
    assert parts[1].time_ms[0] == 5000


def test_a_recording_without_jumps_stays_whole(make_recording: MakeRecording) -> None:
    recording = make_recording(n=8)
    assert list(split_at_jumps(recording)) == [recording]


def test_a_part_has_its_labels_and_targets(make_recording: MakeRecording) -> None:
    labels = (np.arange(100) % 5).astype(np.uint8)
    targets_px = np.arange(200, dtype=np.float32).reshape(2, 100)
    whole = replace(make_recording(n=100), labels=labels, targets_px=targets_px)
    part = whole.part(10, 30)
    np.testing.assert_array_equal(part.labels, labels[10:30])
    np.testing.assert_array_equal(part.targets_px, targets_px[:, 10:30])
    assert make_recording(n=100).part(10, 30).labels is None
