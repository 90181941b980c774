"""Hugging Face's datasets: round trips in memory and on disk, in the columns that are said."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import datasets
import numpy as np
import pytest

import gazediffusion as gd
from tests.data.adapters.made import OTHER, assert_same, labelled_windows, study


@pytest.mark.parametrize("binocular", [True, False])
def test_a_dataset_saved_to_disk_gives_recordings_back(tmp_path: Path, binocular: bool) -> None:
    dataset = study(binocular).to_datasets()
    assert dataset.features["event"].feature.names == ["none", *gd.EVENT_CLASSES]
    dataset.save_to_disk(tmp_path / "set")
    again = gd.from_datasets(datasets.load_from_disk(tmp_path / "set"))
    for found, expected in zip(again, study(binocular), strict=True):
        assert_same(found, expected)


def test_rows_may_differ_in_eyes_screen_and_labels() -> None:
    some = [
        replace(next(iter(study(True))), labels=None),
        replace(next(iter(study(False))), screen=None, is_blink={}),
    ]
    dataset = gd.Recordings.of(some).to_datasets()
    for found, expected in zip(gd.from_datasets(dataset), some, strict=True):
        assert_same(found, expected)
    assert list(gd.from_datasets(dataset, screen=OTHER))[1].screen == OTHER


def test_windows_are_rows_that_torch_reads_in_batches() -> None:
    windows = labelled_windows()
    dataset = windows.to_datasets()
    batch = dataset.with_format("torch")[:4]
    np.testing.assert_array_equal(batch["x_cyclopean_px"].numpy(), windows.to_numpy("px")[:4, 0])
    for found, expected in zip(gd.from_datasets(dataset), windows.to_recordings(), strict=True):
        assert_same(found, expected)


def test_other_columns_and_a_missing_package_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(gd.GazeError, match=r"columns are a; .*from_frame"):
        gd.from_datasets(datasets.Dataset.from_dict({"a": [1]}))
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(gd.GazeError, match=r"pip install 'gazediffusion\[hub\]'"):
        study().to_datasets()
