"""Labelled recordings: every sample has a class, gaze is kept, formats give the labels back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import gazediffusion as gd
from gazediffusion.data.recordings import Recording
from gazediffusion.data.writers import write_into
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.labels import match_events, match_samples
from gazediffusion.generation.labelling import NOISE, Labeller
from gazediffusion.model import Model
from gazediffusion.settings import CleaningConfig
from tests.conftest import MakeRecording, RunCommand, wandering_gaze
from tests.generation.test_gaps import lost
from tests.runs import trained_run

BARE = CleaningConfig(blink_before_ms=0, blink_after_ms=0)


@pytest.fixture(scope="module")
def model(steerable_folder: Path) -> Model:
    return gd.load(steerable_folder, device="cpu")


@pytest.fixture
def lossy(make_recording: MakeRecording) -> Recording:
    """20 s at 250 Hz, lost from 2 to 2.2 s."""
    return make_recording(gaze=lost(wandering_gaze(5000), (500, 550)), task="movies")


@pytest.fixture
def folder(lossy: Recording, make_recording: MakeRecording, tmp_path: Path) -> Path:
    """Two trials as a table."""
    other = make_recording(n=1500, task="movies", trial="1", seed=1)
    write_into(tmp_path / "study", [(lossy, ()), (other, ())], "csv")
    return tmp_path / "study"


def test_samples_have_the_class_of_the_nearest_sample_of_the_model(
    model: Model, make_recording: MakeRecording
) -> None:
    # A recording at the model's own rate, five-fold: every fifth sample is on its grid.
    recording = make_recording(n=320, rate_hz=100.0, task="movies")
    # `auto` is bf16 on some processors, and other where two classes are almost as probable.
    found = model.label(recording, cleaning=BARE, precision="fp32")
    assert found.labels is not None
    np.testing.assert_array_equal(found.gaze_px["right"], recording.gaze_px["right"])
    screen = model.screen_of("movies")
    assert recording.screen == screen
    gaze = screen.to_normalized(recording.gaze_px["right"][:, ::5]).astype(np.float32)
    on_grid = Labeller.of_generated(model.sampler(precision="fp32")).labels(gaze[None])[0]
    nearest = np.clip(np.rint(np.arange(320) / 5).astype(int), 0, 63)
    np.testing.assert_array_equal(found.labels, on_grid[nearest])


def test_lost_samples_and_their_flanks_are_noise(model: Model, lossy: Recording) -> None:
    labels = model.label(lossy).labels
    assert labels is not None
    assert (labels[485:575] == NOISE).all()
    bare = model.label(lossy, cleaning=BARE).labels
    assert bare is not None
    assert (bare[500:550] == NOISE).all()
    assert set(np.unique(bare)) <= {1, 2, 3, 4}
    dark = replace(lossy, gaze_px={"right": np.full((2, 5000), np.nan, np.float32)})
    assert model.label(dark).labels.tolist() == [NOISE] * 5000  # type: ignore[union-attr]


def test_a_recording_without_screen_or_too_slow_is_refused(
    model: Model, make_recording: MakeRecording
) -> None:
    with pytest.raises(GazeError, match=r"made.csv.*screen was.*give `screen`"):
        model.label(make_recording(screen=None))
    with pytest.raises(GazeError, match=r"made.csv.*60 Hz is below 100 Hz"):
        model.label(make_recording(rate_hz=60.0))


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "csv", "asc", "bids"])
def test_files_in_their_own_format_give_the_labels_back(
    model: Model, lossy: Recording, tmp_path: Path, name: str
) -> None:
    source = name if name in ("asc", "bids") else "csv"
    write_into(tmp_path / "study", [(lossy, ())], source)
    output = tmp_path / name.replace("csv", "out", 1) if name == "csv" else tmp_path / name
    written = gd.label(tmp_path / "study", output, model)
    (before,), (after,) = list(gd.read(tmp_path / "study")), list(gd.read(written.paths[0]))
    expected = model.label(before).labels
    assert expected is not None
    assert after.labels is not None
    np.testing.assert_array_equal(after.labels, expected)
    one, other = (next(iter(recording.gaze_px.values())) for recording in (before, after))
    np.testing.assert_array_equal(one, other)
    assert written.n_samples == {
        name: int((expected == k).sum()) for k, name in enumerate(gd.EVENT_CLASSES, start=1)
    }
    assert not list(tmp_path.glob(".*work"))


def test_the_command_writes_a_column_and_a_card(
    folder: Path, steerable_folder: Path, tmp_path: Path, run: RunCommand
) -> None:
    arguments = ("label", folder, "--model", steerable_folder, "-o", tmp_path / "out.parquet")
    code, output, error = run(*arguments)
    assert code == 0, error
    assert "6500 samples" in output.replace("\n", " ")
    frame = pl.read_parquet(tmp_path / "out.parquet")
    assert set(frame["event"]) <= set(gd.EVENT_CLASSES)
    card = json.loads((tmp_path / "out.json").read_text())["GazediffusionCard"]
    assert card["format"] == "gazediffusion-labelled"
    assert "not by hand" in card["labels"]["by"]
    assert sum(card["n_samples"].values()) == 6500
    assert "none by hand" in (tmp_path / "out.md").read_text()
    code, output, error = run(*arguments)
    assert code == 0
    assert "(it was complete already)" in output
    with pytest.raises(GazeError, match=r"\(cleaning blink_before_ms 60\.0, not .*`overwrite`"):
        gd.label(folder, tmp_path / "out.parquet", steerable_folder, cleaning=BARE)
    before = (tmp_path / "out.parquet").read_bytes()
    assert run(*arguments, "--overwrite")[0] == 0
    assert (tmp_path / "out.parquet").read_bytes() == before


def test_a_model_without_labels_is_refused_before_anything_is_written(
    folder: Path, tmp_path: Path, run: RunCommand
) -> None:
    model = trained_run(tmp_path / "run")
    code, _, error = run("label", folder, "--model", model, "-o", tmp_path / "out.csv")
    assert code == 2
    assert "no labels" in error
    assert not list(tmp_path.glob("*out*"))


def test_a_stopped_call_resumes(
    model: Model, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gd.label(folder, tmp_path / "whole.csv", model)
    labels, calls = Labeller.labels, []

    def stopping(self: Labeller, *given: object) -> object:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return labels(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Labeller, "labels", stopping)
    with pytest.raises(KeyboardInterrupt):
        gd.label(folder, tmp_path / "out.csv", model)
    assert not (tmp_path / "out.csv").exists()
    gd.label(folder, tmp_path / "out.csv", model)
    assert len(calls) == 3  # the first recording is not labelled again
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_filled_recordings_keep_the_labels_of_what_is_recorded(
    model: Model, make_recording: MakeRecording, tmp_path: Path
) -> None:
    labels = np.repeat(np.array([1, 2, 3, 4], np.uint8), 1250)
    one = replace(
        make_recording(gaze=lost(wandering_gaze(5000), (500, 550)), task="movies"), labels=labels
    )
    other = make_recording(n=1500, task="dots", trial="1", seed=1)
    write_into(tmp_path / "study", [(one, ())], "csv")
    write_into(tmp_path / "rest", [(other, ())], "csv")
    recordings = gd.read([tmp_path / "rest", tmp_path / "study"])
    gd.fill(recordings, tmp_path / "out.parquet", model)
    event = pl.read_parquet(tmp_path / "out.parquet").sort("task", "t_ms")["event"]
    assert event[:1500].null_count() == 1500
    assert event[1500:1985].unique().to_list() == ["fixation"]
    assert event[1985:2075].null_count() == 90


def test_the_packaged_model_finds_the_events_of_simulated_recordings() -> None:
    config = gd.SimulationConfig(n_participants=1, minutes=0.2, trial_seconds=12, rate_hz=500.0)
    (trial,) = gd.simulate(config)
    true = trial.labels[None]
    found = gd.load("default", device="cpu").label(trial.recording).labels
    assert found is not None
    samples, events = (match(true, found[None]).f1() for match in (match_samples, match_events))
    assert samples[:2].min() > 0.85
    assert events[:2].min() > 0.95
    assert not (found == 3).any()  # nothing moves that could be pursued
