"""Augmentation: whose style, how long, at which rate, on which screen; never of held-out ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator

import gazediffusion as gd
from gazediffusion.conditioning.style import style_of
from gazediffusion.data.recordings import Recording
from gazediffusion.data.track_loss import LossModel
from gazediffusion.data.writers import write_into
from gazediffusion.errors import GazeError
from gazediffusion.generation.augmentation import Augmenter, Original, Study
from gazediffusion.generation.labelling import NOISE, Labeller
from gazediffusion.model import Model
from gazediffusion.network.pretrained import find_model
from gazediffusion.screen import Screen
from tests.conftest import SCREEN, wandering_gaze

NAMES = ("P1", "P2", "P3", "P4", "P5")


@pytest.fixture(scope="module")
def model(steerable_folder: Path) -> Model:
    """Windows of 3.2 s at 20 Hz, tasks dots and movies."""
    return gd.load(steerable_folder, device="cpu")


def recording(
    participant: str = "P1",
    seconds: float = 5.0,
    rate_hz: float = 20.0,
    task: str = "dots",
    trial: str = "0",
    screen: Screen = SCREEN,
) -> Recording:
    """Valid gaze; another walk for each participant and trial."""
    n = round(seconds * rate_hz)
    seed = sum(map(ord, participant + trial))
    return Recording(
        participant=participant,
        task=task,
        trial=trial,
        time_ms=1000.0 + np.arange(n, dtype=np.float64) * (1000.0 / rate_hz),
        gaze_px={"right": wandering_gaze(n, seed)},
        path=Path("made.csv"),
        format="made",
        screen=screen,
        rate_hz=rate_hz,
    )


@pytest.fixture
def study(tmp_path: Path) -> Callable[..., gd.Recordings]:
    """Write recordings and read them again."""

    def write(recordings: Iterable[Recording], name: str = "study") -> gd.Recordings:
        write_into(tmp_path / name, [(one, ()) for one in recordings], "bids")
        return gd.read(tmp_path / name)

    return write


def generated(
    augmenter: Augmenter, recordings: gd.Recordings, has_labels: bool = False
) -> tuple[Study, list[tuple[Original, Recording]]]:
    """All synthetic recordings in memory, each with its original."""
    found = augmenter.read(recordings)
    pairs = []
    for batch in augmenter.batches(found):
        gaze = np.concatenate(list(batch.sampler.pieces(0, batch.n)))
        labels = Labeller(batch.sampler.run).labels(gaze) if has_labels else [None] * len(gaze)
        for k, window in enumerate(gaze):
            original = batch.originals[k % len(batch.originals)]
            made = augmenter.recording(batch, k, window, labels=labels[k])
            pairs.append((original, made))
    return found, pairs


def test_recordings_have_the_length_rate_screen_and_task_of_their_originals(
    model: Model, study: Callable[..., gd.Recordings]
) -> None:
    wide = Screen(1680, 1050, 47.4, 29.7, 55.0)
    given = [
        recording("P1", 3.5, trial="1"),
        recording("P1", 11.05, trial="2"),
        recording("P2", 4.0, 50.0, trial="7", screen=wide),
    ]
    augmenter = model.augmenter(times=2, validation_fraction=0.0)
    _, pairs = generated(augmenter, study(given))
    by_trial = {one.trial: one for one in given}
    assert sorted((made.participant, made.trial) for _, made in pairs) == [
        ("P1-synthetic-1", "1"),
        ("P1-synthetic-1", "2"),
        ("P1-synthetic-2", "1"),
        ("P1-synthetic-2", "2"),
        ("P2-synthetic-1", "7"),
        ("P2-synthetic-2", "7"),
    ]
    for _, made in pairs:
        original = by_trial[made.trial]
        np.testing.assert_allclose(made.time_ms, original.time_ms, atol=1e-6)
        assert (made.rate_hz, made.screen, made.task) == (
            original.rate_hz,
            original.screen,
            "dots",
        )
        (gaze_px,) = made.gaze_px.values()
        assert np.isfinite(gaze_px).all()
        assert made.format == "synthetic"


def test_gaze_is_that_of_sample_like_the_participants_recordings(
    model: Model, study: Callable[..., gd.Recordings]
) -> None:
    recordings = study([recording("P1", 6.4), recording("P2", 3.2)])
    augmenter = model.augmenter(times=3, validation_fraction=0.0)
    found, pairs = generated(augmenter, recordings)
    own = found.windows_of("P1", "dots")
    assert len(own) == 4  # of 3.2 s, a second apart
    batch = augmenter.batches(found)[0]
    expected = model.sample(
        3, like=own, candidates=1, task="dots", seconds=6.4, seed=batch.sampler.seed
    )
    for k in range(3):
        (gaze_px,) = pairs[k][1].gaze_px.values()
        np.testing.assert_array_equal(gaze_px, SCREEN.to_pixels(expected[k]))


def test_the_style_is_of_all_recordings_of_the_participant_in_the_task_alone(
    model: Model, study: Callable[..., gd.Recordings]
) -> None:
    given = [recording("P1", 5.0, trial="1"), recording("P1", 7.0, trial="2"), recording("P2")]
    augmenter = model.augmenter(validation_fraction=0.0)
    found = augmenter.read(study(given))
    first, second, other = augmenter.batches(found)  # of 2, 3 and 2 windows
    assert first.sampler.style is second.sampler.style
    run = model.config
    windows = gd.style_windows(study(given[:2], "alone"), 20.0, 3.2)
    expected = style_of(windows, run.conditioning, 20.0, 64)
    assert first.sampler.style is not None
    assert other.sampler.style is not None
    np.testing.assert_array_equal(first.sampler.style.mean, expected.mean)
    assert first.sampler.style.n_windows == expected.n_windows
    assert not np.array_equal(other.sampler.style.mean, expected.mean)


def test_above_the_models_rate_samples_are_joined_monotonically(
    model: Model, study: Callable[..., gd.Recordings]
) -> None:
    given = [recording("P1", 4.0, 60.0), recording("P2", 4.0, 60.0)]
    augmenter = model.augmenter(times=1, validation_fraction=0.0)
    found = augmenter.read(study(given))
    batch = augmenter.batches(found)[0]
    (piece,) = batch.sampler.pieces(0, 1)
    made = augmenter.recording(batch, 0, piece[0])
    own_ms = np.arange(piece.shape[2]) * 50.0
    expected = PchipInterpolator(own_ms, SCREEN.to_pixels(piece[0].astype(float)), axis=1)
    at_ms = made.time_ms - made.time_ms[0]
    np.testing.assert_allclose(made.gaze_px["cyclopean"], expected(at_ms), atol=1e-3)
    kept = made.gaze_px["cyclopean"][:, ::3]
    np.testing.assert_allclose(kept, SCREEN.to_pixels(piece[0])[:, : kept.shape[1]], atol=1e-3)


def test_gaze_keeps_its_degrees_on_another_screen(
    model: Model, study: Callable[..., gd.Recordings]
) -> None:
    far = Screen(1920, 1080, 60.0, 33.75, 90.0)
    given = [recording("P1", 4.0, screen=far), recording("P2", 4.0, screen=far)]
    augmenter = model.augmenter(times=1, validation_fraction=0.0)
    found = augmenter.read(study(given))
    batch = augmenter.batches(found)[0]
    (piece,) = batch.sampler.pieces(0, 1)
    made = augmenter.recording(batch, 0, piece[0])
    expected = SCREEN.to_degrees(SCREEN.to_pixels(piece[0]))[:, : len(made)]
    np.testing.assert_allclose(far.to_degrees(made.gaze_px["cyclopean"]), expected, atol=1e-3)


def test_copies_depend_neither_on_their_number_nor_on_the_batch_size(
    model: Model, study: Callable[..., gd.Recordings]
) -> None:
    recordings = study([recording("P1", 5.0, trial=str(k)) for k in range(2)] + [recording("P2")])

    def gaze(**settings: Any) -> dict[tuple[str, str], Any]:
        augmenter = model.augmenter(validation_fraction=0.0, **settings)
        _, pairs = generated(augmenter, recordings)
        return {(one.participant, one.trial): one.gaze_px["cyclopean"] for _, one in pairs}

    few, many = gaze(times=1), gaze(times=3, batch_size=2)
    assert len(few) == 3
    assert len(many) == 9
    for key, one in few.items():
        np.testing.assert_allclose(one, many[key], atol=0.05)
    different = {one.tobytes() for one in many.values()}
    assert len(different) == 9
    other = gaze(times=1, seed=1)
    assert all(not np.array_equal(one, other[key]) for key, one in few.items())


def test_held_out_participants_are_those_of_prepare_and_never_augmented(
    model: Model, study: Callable[..., gd.Recordings], tmp_path: Path
) -> None:
    recordings = study([recording(name, 4.0) for name in NAMES])
    for seed in (42, 7):
        config = gd.PrepareConfig(rate_hz=20.0, seconds=3.2, split_seed=seed)
        windows = gd.prepare(recordings, config)
        for settings in ({"split_seed": seed}, {"held_out": windows}):
            augmenter = model.augmenter(times=1, **settings)
            found = augmenter.read(recordings)
            assert found.held_out == sorted(windows.validation)
            names = {one.participant for b in augmenter.batches(found) for one in b.originals}
            assert names == set(NAMES) - windows.validation


def test_held_out_participants_may_be_named(
    model: Model, study: Callable[..., gd.Recordings]
) -> None:
    recordings = study([recording(name, 4.0) for name in NAMES])

    def augmented(**settings: Any) -> frozenset[str]:
        return model.augmenter(**settings).read(recordings).augmented

    assert augmented(held_out=["P2", "P5"]) == {"P1", "P3", "P4"}
    assert augmented(held_out=["P2"], same_participant=(("P2", "P3"),)) == {"P1", "P4", "P5"}
    assert augmented(validation_fraction=0.0) == set(NAMES)
    with pytest.raises(GazeError, match="`held_out` names 'P9', who was not recorded"):
        augmented(held_out=["P9"])
    with pytest.raises(GazeError, match="no participant is left to augment"):
        augmented(held_out=NAMES)


def test_participants_that_a_windows_file_does_not_have_are_not_augmented(
    model: Model, study: Callable[..., gd.Recordings]
) -> None:
    recordings = study([recording(name, 4.0) for name in NAMES])
    config = gd.PrepareConfig(rate_hz=20.0, seconds=3.2, validation_fraction=0.0)
    windows = gd.prepare(recordings, config)
    chosen = windows.select(windows.participant < 3)
    part = replace(
        windows.select(windows.participant < 3),
        participants=windows.participants[:3],
        validation=frozenset({"P1"}),
        segment_participant=np.minimum(chosen.segment_participant, 2),
    )
    found = model.augmenter(held_out=part).read(recordings)
    assert found.augmented == {"P2", "P3"}


def test_tasks_that_the_model_does_not_have_need_one_that_it_has(
    model: Model, study: Callable[..., gd.Recordings]
) -> None:
    given = [
        recording("P1", 4.0, task="dots"),
        recording("P1", 4.0, task="search"),
        recording("P2", 4.0, task="chess"),
    ]
    recordings = study(given)

    def tasks(task: Any) -> dict[str, str]:
        augmenter = model.augmenter(validation_fraction=0.0, task=task)
        return augmenter.tasks_of(augmenter.read(recordings))

    with pytest.raises(GazeError, match=r"no task 'search'.*with `task`.*dots, movies"):
        tasks(None)
    assert tasks("dots") == {"dots": "dots", "search": "dots", "chess": "dots"}
    assert tasks({"search": "dots", "chess": "dots"}) == tasks("dots")
    with pytest.raises(GazeError, match="no task 'chess'"):
        tasks({"search": "dots"})
    with pytest.raises(GazeError, match="the model has no task 'reading'"):
        tasks("reading")
    with pytest.raises(GazeError, match=r"`task` names 'serach'.*search"):
        tasks({"serach": "dots"})


def test_a_recorded_task_keeps_its_name(model: Model, study: Callable[..., gd.Recordings]) -> None:
    given = [recording(name, 4.0, task="search") for name in ("P1", "P2")]
    augmenter = model.augmenter(times=1, validation_fraction=0.0, task="dots")
    _, pairs = generated(augmenter, study(given))
    assert [made.task for _, made in pairs] == ["search", "search"]


def test_without_valid_gaze_there_is_no_style(
    model: Model, study: Callable[..., gd.Recordings]
) -> None:
    short = recording("P3", 2.0, trial="1")
    given = [recording("P1"), recording("P1", 2.0, task="movies"), recording("P2"), short]
    augmenter = model.augmenter(validation_fraction=0.0)
    found = augmenter.read(study(given))
    assert augmenter.without_style(found) == [("P1", "movies"), ("P3", "dots")]
    names = {(one.participant, one.task) for b in augmenter.batches(found) for one in b.originals}
    assert names == {("P1", "dots"), ("P2", "dots")}


def test_what_no_style_can_be_taken_from_is_refused(
    model: Model, study: Callable[..., gd.Recordings]
) -> None:
    slow = study([recording("P1", 20.0, 10.0), recording("P2", 20.0, 10.0)])
    with pytest.raises(GazeError, match="10 Hz is below the model's 20 Hz"):
        model.augmenter().read(slow)
    for settings, problem in (({"times": 0}, "`times`"), ({"seed": -1}, "`seed`")):
        with pytest.raises(GazeError, match=problem):
            model.augmenter(**settings)


def test_trials_of_one_name_are_numbered(model: Model, tmp_path: Path) -> None:
    for number, folder in enumerate("ab"):
        one = replace(recording("P1", 4.0 + number), trial="0")
        write_into(tmp_path / folder, [(one, ()), (recording("P2", 4.0), ())], "csv")
    recordings = gd.read([tmp_path / "a", tmp_path / "b"])
    found = model.augmenter(validation_fraction=0.0).read(recordings)
    trials = [one.trial for one in found.originals if one.participant == "P1"]
    assert trials == ["1", "2"]


def test_losses_are_added_at_the_rate_of_the_recording(
    model: Model, study: Callable[..., gd.Recordings], monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = LossModel.load(find_model("joint"))
    monkeypatch.setattr(LossModel, "load", lambda folder: fitted)
    recordings = study([recording(name, 24.0, 50.0) for name in ("P1", "P2")])
    settings: Any = {"times": 3, "validation_fraction": 0.0}
    _, plain = generated(model.augmenter(**settings), recordings, has_labels=True)
    _, lossy = generated(model.augmenter(**settings, track_loss=True), recordings, has_labels=True)
    n_lost = 0
    for (_, without), (_, having) in zip(plain, lossy, strict=True):
        gaze, same = having.gaze_px["cyclopean"], without.gaze_px["cyclopean"]
        is_lost = np.isnan(gaze).any(axis=0)
        n_lost += int(is_lost.sum())
        assert not without.is_blink
        assert not (having.is_blink["cyclopean"] & ~is_lost).any()
        beside = np.convolve(is_lost, np.ones(21), "same") > 0  # flanks are 150 ms at most
        np.testing.assert_allclose(gaze[:, ~beside], same[:, ~beside], atol=0.01)
        assert having.labels is not None
        assert without.labels is not None
        assert (having.labels[is_lost] == NOISE).all()
        np.testing.assert_array_equal(having.labels[~beside], without.labels[~beside])
    assert 0 < n_lost < 3000


def test_a_sample_has_the_label_of_the_nearest_one_of_the_model(
    model: Model, study: Callable[..., gd.Recordings]
) -> None:
    augmenter = model.augmenter(times=1, validation_fraction=0.0)
    (batch,) = augmenter.batches(augmenter.read(study([recording("P1", 4.0, 100.0)])))
    (gaze,) = next(batch.sampler.pieces(0, 1))
    labels = (1 + np.arange(gaze.shape[1]) % 4).astype(np.uint8)
    found = augmenter.recording(batch, 0, gaze, labels=labels).labels
    nearest = np.abs(np.arange(400)[:, None] / 100 - np.arange(len(labels)) / 20).argmin(axis=1)
    np.testing.assert_array_equal(found, labels[nearest])
