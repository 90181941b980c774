"""Recordings and windows come back from every package as they were."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gazediffusion as gd
from gazediffusion.data.interop import alike
from gazediffusion.data.writers import write_into
from tests.data.interop.made import OTHER, assert_same, labelled_windows, study

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import mne
    import pymovements as pm

RoundTrip = Callable[[gd.Recordings], gd.Recordings]
# A polars frame has no place for a screen.
BACK: dict[str, RoundTrip] = {
    "polars": lambda some: gd.from_frame(some.to_frame(), screen=next(iter(some)).screen),
    "pandas": lambda some: gd.from_frame(some.to_pandas()),
    "mne": lambda some: gd.from_mne(some.to_mne()),
    "pymovements": lambda some: gd.from_pymovements(some.to_pymovements()),
    "pymovements, one by one": lambda some: gd.from_pymovements(list(some.to_pymovements().gaze)),
}


@pytest.mark.parametrize("binocular", [True, False])
@pytest.mark.parametrize("package", BACK)
def test_recordings_come_back(package: str, binocular: bool) -> None:
    some = study(binocular)
    if package == "polars":
        some = gd.Recordings.of(islice(some, 2))
    for found, expected in zip(BACK[package](some), some, strict=True):
        if package == "polars":
            expected = replace(expected, rate_hz=None)
        if package in ("polars", "pandas") and not binocular:  # a table of one eye has no side
            expected = replace(
                expected,
                gaze_px={"cyclopean": expected.gaze_px["right"]},
                is_blink={"cyclopean": expected.is_blink["right"]},
            )
        assert_same(found, expected)


WINDOWS_BACK: dict[str, Callable[[gd.Windows], gd.Recordings]] = {
    "pandas": lambda windows: gd.from_frame(windows.to_pandas()),
    "mne": lambda windows: gd.from_mne(windows.to_mne()),
    "pymovements": lambda windows: gd.from_pymovements(windows.to_pymovements()),
}


@pytest.mark.parametrize("package", WINDOWS_BACK)
def test_windows_come_back_as_trials_named_by_their_numbers(package: str) -> None:
    windows = labelled_windows()
    if package == "pymovements":
        windows = windows.of_task("text")  # one screen
    again = list(WINDOWS_BACK[package](windows))
    assert [one.trial for one in again] == [str(k) for k in range(len(windows))]
    for found, expected in zip(again, windows.to_recordings(), strict=True):
        for word in ("participant", "task", "rate_hz"):
            assert getattr(found, word) == getattr(expected, word)
        (gaze_px,) = found.gaze_px.values()
        np.testing.assert_allclose(gaze_px, expected.gaze_px["cyclopean"], atol=1e-3)
        if package != "mne":  # epochs state one screen and no labels of their own
            assert found.screen == expected.screen
            np.testing.assert_array_equal(found.labels, expected.labels)


@pytest.mark.parametrize("package", ["mne", "pymovements"])
def test_a_recording_among_marked_ones_has_empty_marks(package: str, tmp_path: Path) -> None:
    marked, other = list(study())[:2]
    plain = replace(other, is_blink={}, labels=None)
    held = alike([marked, plain])
    assert held[0].labels is marked.labels
    write_into(tmp_path / "one", ((one, ()) for one in held), "parquet")
    for again in (held, list(BACK[package](gd.Recordings.of([marked, plain])))):
        assert [set(one.is_blink) for one in again] == [{"left", "right"}] * 2
        labels = again[1].labels
        assert again[0].labels is not None
        assert labels is not None
        assert not labels.any()
        assert not any(mask.any() for mask in again[1].is_blink.values())
    assert alike([plain])[0].labels is None


def test_mne_and_pymovements_read_our_asc_as_we_do(tmp_path: Path) -> None:
    recording = next(iter(study()))
    write_into(tmp_path / "asc", [(recording, ())], "asc")
    (path,) = (tmp_path / "asc").glob("*.asc")
    (ours,) = gd.read(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        raw = mne.io.read_raw_eyelink(path, verbose="error")
        gaze: Any = pm.gaze.from_asc(path, events=True)
    given: dict[str, Any] = {"screen": ours.screen, "participant": "01", "labels": False}
    (by_mne,) = gd.from_mne(raw, **given)
    (by_pymovements,) = gd.from_pymovements(gaze, screen=ours.screen, override_screen=True)
    assert by_pymovements.labels is None  # fixation_eyelink is the tracker's
    for theirs in (by_mne, by_pymovements):
        assert (theirs.screen, theirs.rate_hz) == (ours.screen, 500)
        for eye in ("left", "right"):
            np.testing.assert_allclose(theirs.gaze_px[eye], ours.gaze_px[eye], atol=1e-3)
            np.testing.assert_array_equal(theirs.is_blink[eye], ours.is_blink[eye])


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


def test_each_object_has_its_own_screen_and_eyes() -> None:
    dataset = study(False).to_pymovements()
    tracker = dataset.gaze[0].experiment.eyetracker
    assert (tracker.left, tracker.right) == (False, True)
    assert [len(one.trial_columns) for one in dataset.gaze] == [3] * 4
    (one,) = gd.from_pymovements(dataset.gaze[2])
    assert one.screen == OTHER
    raws = study(False).to_mne()
    assert len(raws[0].ch_names) == 2
    names = {one for raw in raws for one in raw.annotations.description}
    assert {"fixation", "saccade", "BAD_blink"} <= names
