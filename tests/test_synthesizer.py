"""The synthesizer gives pymovements' objects, the same for a seed, that its functions take."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from polars.testing import assert_frame_equal

import gazediffusion as gd

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pymovements as pm


def test_object_k_of_a_seed_is_window_k_of_the_model(steerable_folder: Path) -> None:
    model = gd.load(steerable_folder, device="cpu")
    synthesizer = gd.Synthesizer(model, steps=2)
    gazes = synthesizer.synthesize(3, seed=5)
    assert all(isinstance(gaze, pm.Gaze) for gaze in gazes)
    windows = model.sample(3, seed=5, steps=2)
    for number, gaze in enumerate(gazes):
        pixels = np.array(gaze.samples["pixel"].to_list()).T
        np.testing.assert_allclose(pixels, windows.to_numpy("px")[number], rtol=1e-6)
        screen = windows.screens[windows.screen_index[number]]
        assert gaze.experiment.screen.width_px == screen.width_px
        assert gaze.experiment.sampling_rate == windows.rate_hz
        assert gaze.metadata["synthetic"]
        assert gaze.metadata["model"]["recipe"] == model.name
    first = synthesizer.synthesize_one(seed=5)
    # Generated alone and as one of three: the same up to the rounding of another batch size (px).
    assert_frame_equal(first.samples, gazes[0].samples, abs_tol=1e-3)
    assert not synthesizer.synthesize_one(seed=6).samples.equals(first.samples)
    again = list(gd.from_pymovements(gazes))
    assert [one.trial for one in again] == ["0", "1", "2"]
    assert repr(synthesizer) == f"Synthesizer({model.name}, steps=2)"


def test_a_dataset_takes_pymovements_functions_and_labels_are_its_events(
    steerable_folder: Path,
) -> None:
    synthesizer = gd.Synthesizer(steerable_folder, labels=True, steps=2, device="cpu")
    dataset = synthesizer.synthesize_dataset(2)
    assert isinstance(dataset, pm.Dataset)
    dataset.pix2deg()
    dataset.pos2vel()
    assert {"position", "velocity"} <= set(dataset.gaze[1].samples.columns)
    windows = synthesizer.model.sample(2, labels=True, steps=2)
    for found, labels in zip(gd.from_pymovements(dataset), windows.cut_labels(), strict=True):
        known = np.zeros_like(labels) if found.labels is None else found.labels
        np.testing.assert_array_equal(known, labels)


def test_what_cannot_be_generated_is_refused_at_once(steerable_folder: Path) -> None:
    with pytest.raises(gd.GazeError, match="no task 'nothing'"):
        gd.Synthesizer(steerable_folder, task="nothing")
