"""pymovements' Gaze and Dataset: round trips, its own degrees, its events, its reader of ASC."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

import gazediffusion as gd
from tests.data.interop.made import OTHER, labelled_windows

with warnings.catch_warnings():
    warnings.simplefilter("ignore")


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
