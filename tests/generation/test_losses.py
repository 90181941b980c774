"""Losses of generated gaze: as those of the recordings the model was fitted to, in every format."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gazediffusion as gd
from gazediffusion.data.cleaning import clean, likely_blinks
from gazediffusion.data.recordings import Recording
from gazediffusion.data.track_loss import Losses, LossModel, find_losses
from gazediffusion.data.windows import Windows
from gazediffusion.data.writers.npz import read_npz
from gazediffusion.data.writers.sets import FORMATS
from gazediffusion.errors import GazeError
from gazediffusion.generation.sampler import Sampler
from gazediffusion.generation.sets import Sampling, write_set
from gazediffusion.network.pretrained import LOSSES, find_model, load_model
from gazediffusion.settings import CleaningConfig
from tests.conftest import SCREEN, RunCommand

N = 9  # as many as one digit numbers, so that files of runs are in order


@pytest.fixture(scope="module")
def model() -> LossModel:
    return LossModel.load(find_model("joint"))


def still(n: int, seconds: float = 8.0, task: str = "reading", rate_hz: float = 250.0) -> Windows:
    """Windows of a tracker's noise around one place."""
    shape = (n, 2, round(seconds * rate_hz))
    gaze = np.random.default_rng(0).normal(0, 1e-4, shape)
    return Windows.from_array(gaze, rate_hz, SCREEN, tasks=task)


def found_in(windows: Windows) -> list[Losses]:
    time_ms = np.arange(windows.length) * 1000 / windows.rate_hz
    return [
        find_losses(
            Recording(str(k), "reading", "1", time_ms, {"right": one}, Path(), "csv", SCREEN)
        )
        for k, one in enumerate(windows.to_numpy("px"))
    ]


def measured(recordings: list[Losses]) -> dict[str, float]:
    losses = [loss for one in recordings for loss in one.losses]
    flanks = [np.abs(one.flank_deg[1]).max() for one in losses if one.flank_deg is not None]
    total_ms = sum(one.duration_ms for one in recordings)
    return {
        "per_minute": len(losses) / total_ms * 60_000,
        "share_lost": sum(one.lost_ms for one in recordings) / total_ms,
        "none": float(np.mean([not one.losses for one in recordings])),
        "median_ms": float(np.median([one.duration_ms for one in losses if one.is_whole])),
        "late_ms": float(np.quantile([one.duration_ms for one in losses if one.is_whole], 0.9)),
        "flank": float(np.median(flanks)),
        "large_flank": float(np.quantile(flanks, 0.9)),
        "differ": float(np.std([len(one.losses) for one in recordings])),
    }


def test_a_model_fitted_to_drawn_losses_draws_the_same_statistics(model: LossModel) -> None:
    recordings = found_in(model.add_to(still(100, 60.0), seed=1))
    again = LossModel.fit(recordings)
    first = measured(recordings)
    second = measured(found_in(again.add_to(still(100, 60.0), seed=2)))
    for name, tolerance in {
        "per_minute": 0.15, "share_lost": 0.15, "median_ms": 0.1, "late_ms": 0.1,
        "flank": 0.2, "large_flank": 0.2, "differ": 0.2,
    }.items():  # fmt: skip
        assert second[name] == pytest.approx(first[name], rel=tolerance), name
    assert second["none"] == pytest.approx(first["none"], abs=0.05)
    assert again.fitted_on["n_recordings"] == 100


def test_reading_loses_the_eye_more_often_than_stills(model: LossModel) -> None:
    shares = [
        model.add_to(still(60, task=task), seed=0).is_lost.mean() for task in ("reading", "stills")
    ]
    assert 0.03 < shares[0] < 0.12
    assert shares[1] < 0.02


def test_window_k_of_a_seed_has_the_same_losses_whatever_the_pieces(model: LossModel) -> None:
    windows = still(N)
    windows = windows.select(np.arange(8))
    whole = model.add_to(windows, seed=5)
    pieces = [model.add_to(windows.select(np.arange(a, a + 4)), 5, a).cut() for a in (0, 4)]
    np.testing.assert_array_equal(whole.cut(), np.concatenate(pieces))
    other = model.add_to(windows, seed=6)
    assert not np.array_equal(whole.is_lost, other.is_lost)


def test_samples_away_from_losses_are_those_generated(model: LossModel) -> None:
    windows = still(N)
    lossy = model.add_to(windows, seed=0)
    before, after, is_lost = windows.cut(), lossy.cut(), lossy.is_lost
    assert is_lost.any()
    assert np.isnan(after.transpose(0, 2, 1)[is_lost]).all()
    reach = np.ones(1 + 2 * 38)  # 152 ms either side
    is_near = np.array([np.convolve(one, reach, "same") > 0 for one in is_lost])
    np.testing.assert_array_equal(
        before.transpose(0, 2, 1)[~is_near], after.transpose(0, 2, 1)[~is_near]
    )
    assert (before.transpose(0, 2, 1)[is_near] != after.transpose(0, 2, 1)[is_near]).any()


def test_losses_last_as_long_at_every_rate(model: LossModel) -> None:
    fast, slow = (model.add_to(still(80, rate_hz=rate), seed=0) for rate in (250.0, 60.0))
    assert slow.is_lost.mean() == pytest.approx(fast.is_lost.mean(), rel=0.05)
    # The losses are the same ones; a sample at 60 Hz is lost when the eye is at its time.
    at_60 = np.round(np.arange(slow.length) * 250 / 60).astype(int).clip(max=fast.length - 1)
    assert (fast.is_lost[:, at_60] != slow.is_lost).mean() < 0.01


@pytest.mark.parametrize("format", [*FORMATS, "safetensors"])
def test_every_format_is_read_back_with_the_losses_in_their_places(
    tmp_path: Path, model: LossModel, format: str
) -> None:
    wandering = np.random.default_rng(0).normal(0, 0.01, (N, 2, 2000)).cumsum(axis=2).clip(-1, 1)
    windows = Windows.from_array(wandering, 250, SCREEN, tasks="reading")
    windows = model.add_to(windows, seed=3)
    path = tmp_path / ("set" if format in ("bids", "asc") else f"set.{format}")
    windows.save(path, None if format == "safetensors" else format)
    if format in ("npz", "safetensors"):
        found = read_npz(path) if format == "npz" else Windows.load(path)
        np.testing.assert_array_equal(found.is_lost, windows.is_lost)
        if format == "npz":
            assert np.load(path)["is_blink"].any()
        return
    recordings = list(gd.read(path))
    time_ms = np.arange(windows.length, dtype=np.float64) * 4.0
    n_lost = n_blinks = 0
    for recording, is_lost in zip(recordings, windows.is_lost, strict=True):
        ((eye, gaze_px),) = recording.gaze_px.items()
        np.testing.assert_array_equal(np.isnan(gaze_px).any(axis=0), is_lost)
        blinks = recording.is_blink.get(eye, np.zeros(windows.length, dtype=bool))
        np.testing.assert_array_equal(blinks, likely_blinks(time_ms, is_lost))
        counts = clean(recording, CleaningConfig()).counts
        n_lost += counts.lost + counts.labelled_blink
        n_blinks += counts.blinks
    assert n_lost == windows.is_lost.sum()
    assert n_blinks > 3


@pytest.fixture(scope="module")
def sampler() -> Sampler:
    return Sampler(load_model("default"), steps=2, batch_size=3)


def test_a_set_with_losses_has_rate_seconds_grid_and_screen(
    tmp_path: Path, sampler: Sampler, model: LossModel
) -> None:
    sampling = Sampling(
        replace(sampler, seed=1), 6, screen=SCREEN, grid_px=0.5, seconds=4.0, rate_hz=60.0,
        track_loss=model,
    )  # fmt: skip
    written = write_set(sampling, tmp_path / "gaze.parquet")
    windows = sampling.windows(np.concatenate(list(sampling.pieces())))
    recordings = list(gd.read(written[0]))
    lost = [np.isnan(one.gaze_px["cyclopean"]).any(axis=0) for one in recordings]
    np.testing.assert_array_equal(lost, windows.is_lost)
    assert windows.is_lost.any()
    assert windows.length == 240
    without = replace(sampling, track_loss=None)
    plain = without.windows(np.concatenate(list(without.pieces()))).cut()
    # Nothing is smeared: what is neither lost nor beside a loss is as without losses.
    assert (windows.cut() == plain).mean() > 0.5
    card = json.loads(written[1].read_text())["GazediffusionCard"]
    assert card["losses"]["n_participants"] == 130
    assert card["share_lost"] == pytest.approx(windows.is_lost.mean(), abs=1e-6)
    assert "the eye is lost in" in written[2].read_text()


def test_sets_without_losses_are_as_before(sampler: Sampler, tmp_path: Path) -> None:
    written = write_set(Sampling(sampler, 3, format="csv"), tmp_path / "gaze.csv")
    header = written[0].read_text().splitlines()[0]
    assert "is_blink" not in header
    card = json.loads(written[1].read_text())["GazediffusionCard"]
    assert not {"losses", "share_lost"} & card.keys()


def test_the_packaged_tables_are_small_and_of_every_task(model: LossModel) -> None:
    folder = find_model("joint")
    assert (folder / LOSSES).stat().st_size < 50_000
    assert sorted(model.tasks) == sorted(gd.load("joint").tasks)
    assert json.loads((folder / LOSSES).read_text())["fitted_on"]["n_losses"] > 5_000


def test_a_saved_model_draws_the_same_losses(tmp_path: Path, model: LossModel) -> None:
    model.save(tmp_path / LOSSES)
    windows = still(4)
    again = LossModel.load(tmp_path).add_to(windows, seed=0)
    np.testing.assert_array_equal(again.cut(), model.add_to(windows, seed=0).cut())


@pytest.mark.parametrize("content", ["{}", "[]", '{"format": "gazediffusion-losses", "tasks": {}}'])
def test_damaged_tables_are_refused_in_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / LOSSES).write_text(content)
    with pytest.raises(GazeError, match="damaged"):
        LossModel.load(tmp_path)


def test_tasks_without_losses_and_too_few_losses_are_refused(model: LossModel) -> None:
    with pytest.raises(GazeError, match="no task 'films'"):
        model.add_to(still(1, task="films"), seed=0)
    with pytest.raises(GazeError, match="only 0 losses have flanks"):
        LossModel.fit(found_in(still(2)))


def test_a_model_without_tables_is_refused_before_generating(
    tmp_path: Path, run: RunCommand
) -> None:
    code, _, error = run(
        "generate", "--model", "position", "--track-loss", "-o", tmp_path / "gaze.csv"
    )
    assert code == 2
    assert error.strip() == (
        "error: --track-loss cannot be added: the model position has no table of losses; "
        "leave it out, or take the packaged model joint"
    )
    assert not (tmp_path / "gaze.csv").exists()


def test_the_command_and_python_give_the_same_windows_with_losses(
    tmp_path: Path, run: RunCommand
) -> None:
    words = ["-n", 3, "--task", "reading", "--seed", 2, "--steps", 2]
    code, _, error = run("generate", *words, "--track-loss", "-o", tmp_path / "gaze.npz")
    assert code == 0, error
    sampled = gd.load().sample(3, task="reading", seed=2, steps=2, track_loss=True)
    np.testing.assert_allclose(read_npz(tmp_path / "gaze.npz").cut(), sampled.cut(), atol=1e-5)
    assert sampled.is_lost.any()
