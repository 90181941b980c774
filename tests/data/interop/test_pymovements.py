"""pymovements' Gaze and Dataset: round trips, its own degrees, its events, its reader of ASC."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gazediffusion as gd
from gazediffusion.data.writers import write_into
from tests.data.interop.made import OTHER, assert_same, labelled_windows, study

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pymovements as pm


@pytest.mark.parametrize("binocular", [True, False])
def test_a_dataset_gives_recordings_back(binocular: bool) -> None:
    dataset = study(binocular).to_pymovements()
    assert isinstance(dataset, pm.Dataset)
    assert [len(one.trial_columns) for one in dataset.gaze] == [3] * 4
    tracker = dataset.gaze[0].experiment.eyetracker
    assert (tracker.left, tracker.right) == (binocular, True)
    for given in (dataset, dataset.gaze, list(dataset.gaze)):
        for found, expected in zip(gd.from_pymovements(given), study(binocular), strict=True):
            assert_same(found, expected)
    (one,) = gd.from_pymovements(dataset.gaze[2])
    assert one.screen == OTHER


def test_pymovements_computes_our_degrees_and_its_events_become_labels() -> None:
    windows = labelled_windows().of_task("text")
    dataset = replace(windows, labels=None).to_recordings().to_pymovements()
    dataset.pix2deg()
    gaze = dataset.gaze[1]
    degrees = np.array(gaze.samples["position"].to_list()).T
    np.testing.assert_allclose(degrees, windows.to_numpy("deg")[1], atol=1e-4)
    gaze.pos2vel("neighbors")
    gaze.detect("ivt", velocity_threshold=100.0, minimum_duration=20)
    found = next(iter(gd.from_pymovements(gaze)))
    expected = np.zeros(windows.length, dtype=np.uint8)
    for onset, offset in gaze.events.frame.select("onset", "offset").iter_rows():
        expected[round(onset / 5) : round(offset / 5) + 1] = 1
    assert found.labels is not None
    assert 20 < found.labels.sum() < windows.length
    np.testing.assert_array_equal(found.labels, expected)
    assert next(iter(gd.from_pymovements(gaze, labels=False))).labels is None


def test_degrees_alone_and_an_origin_below_become_our_pixels() -> None:
    (expected, *_) = labelled_windows().of_task("text").to_recordings()
    pixels = expected.gaze_px["cyclopean"]
    flipped = np.stack([pixels[0], OTHER.height_px - 1 - pixels[1]])
    dataset = gd.Recordings.of([replace(expected, gaze_px={"cyclopean": flipped})]).to_pymovements()
    gaze: Any = dataset.gaze[0]
    gaze.experiment.screen.origin = "lower left"
    (found,) = gd.from_pymovements(gaze)
    np.testing.assert_allclose(found.gaze_px["cyclopean"], pixels, atol=1e-3)
    gaze = gd.Recordings.of([expected]).to_pymovements().gaze[0]
    gaze.pix2deg()
    gaze.samples = gaze.samples.drop("pixel")
    (found,) = gd.from_pymovements(gaze)
    np.testing.assert_allclose(found.gaze_px["cyclopean"], pixels, atol=1e-2)


def test_windows_with_labels_give_events_by_window() -> None:
    windows = labelled_windows().of_task("film")
    gaze = windows.to_pymovements()
    assert gaze.events.trial_columns == ["window", "participant", "task", "trial"]
    for found, labels in zip(gd.from_pymovements(gaze), windows.cut_labels(), strict=True):
        np.testing.assert_array_equal(found.labels, labels)


def test_pymovements_reads_our_asc_as_we_do(tmp_path: Path) -> None:
    (recording, *_) = study(False)
    write_into(tmp_path / "asc", [(recording, ())], "asc")
    (path,) = (tmp_path / "asc").glob("*.asc")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gaze = pm.gaze.from_asc(path, events=True)
    (ours,) = gd.read(path)
    (theirs,) = gd.from_pymovements(gaze, screen=ours.screen, override_screen=True)
    np.testing.assert_array_equal(theirs.gaze_px["right"], ours.gaze_px["right"])
    np.testing.assert_array_equal(theirs.time_ms, ours.time_ms)
    np.testing.assert_array_equal(theirs.is_blink["right"], ours.is_blink["right"])
    assert theirs.labels is None  # fixation_eyelink is the tracker's


def test_windows_are_prepared_from_memory_as_from_files(tmp_path: Path) -> None:
    write_into(tmp_path / "study", ((one, ()) for one in list(study())[:2]), "parquet")
    from_files = gd.read(tmp_path / "study")
    config = gd.PrepareConfig(seconds=1, stride_s=0.5, validation_fraction=0)
    ours = gd.prepare(from_files, config)
    theirs = gd.prepare(gd.from_pymovements(from_files.to_pymovements()), config)
    assert len(ours) > 0
    np.testing.assert_array_equal(ours.cut(), theirs.cut())
    assert theirs.provenance["sources"][0]["format"] == "pymovements"
    assert len(theirs.provenance["sources"][0]["sha256"]) == 64
