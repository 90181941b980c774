"""Tensors, datasets and loaders of torch."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import gazediffusion as gd
from tests.data.adapters.made import labelled_windows, study


def test_a_recording_is_a_dict_of_its_right_eye() -> None:
    dataset = pickle.loads(pickle.dumps(study().to_torch()))
    expected = list(study())
    assert len(dataset) == 4
    one = dataset[-1]
    assert expected[3].screen is not None
    pixels = expected[3].screen.to_pixels(one["gaze"].numpy())
    np.testing.assert_allclose(pixels, expected[3].gaze_px["right"], atol=1e-3)
    np.testing.assert_array_equal(one["time_ms"], expected[3].time_ms)
    np.testing.assert_array_equal(one["labels"], expected[3].labels)
    assert (one["participant"], one["task"]) == (expected[3].participant, "b")
    with pytest.raises(gd.GazeError, match="needs the screen"):
        gd.Recordings.of([replace(expected[0], screen=None)]).to_torch()


@pytest.mark.parametrize("batch_size", [None, 4])
def test_windows_come_back_from_a_dataset_and_from_a_loader(batch_size: int | None) -> None:
    windows = labelled_windows()
    dataset = windows.to_torch()
    given = dataset if batch_size is None else DataLoader(dataset, batch_size=batch_size)
    screens = [windows.screens[k] for k in windows.screen_index]
    again = gd.from_torch(given, 200, screens, windows.participants, windows.tasks)
    np.testing.assert_array_equal(again.cut(), windows.cut())
    np.testing.assert_array_equal(again.cut_labels(), windows.cut_labels())
    for name in ("participant", "task"):
        np.testing.assert_array_equal(again.identity[name], windows.identity[name])
    assert again.screens == windows.screens


def test_a_tensor_may_need_gradients() -> None:
    tensor = torch.full((2, 2, 10), 320.0, requires_grad=True)
    labels = torch.ones(2, 10, dtype=torch.int64)
    windows = gd.from_torch(tensor, 60, gd.Screen(640, 480), unit="px", labels=labels)
    assert windows.cut()[:, 0].tolist() == [[0.0] * 10] * 2
    assert windows.cut_labels().all()
    with pytest.raises(gd.GazeError, match="no windows"):
        gd.from_torch([], 60, gd.Screen(640, 480))
