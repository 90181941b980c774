"""Filling: known samples stay, gaps are sampled given both sides, files are marked."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gazediffusion as gd
from gazediffusion.cli.console import Bar
from gazediffusion.data.recordings import Recording
from gazediffusion.data.writers import write_into
from gazediffusion.errors import GazeError
from gazediffusion.generation.filling import Gaps, find_gaps
from gazediffusion.generation.sampler import Sampler
from gazediffusion.generation.steering import Constraints
from gazediffusion.model import Model
from gazediffusion.screen import Screen
from tests.conftest import SCREEN, MakeRecording, RunCommand, wandering_gaze
from tests.generation.test_gaps import BARE, lost
from tests.runs import trained_run


@pytest.fixture(scope="module")
def model(steerable_folder: Path) -> Model:
    return gd.load(steerable_folder, device="cpu")


@pytest.fixture
def blinking(make_recording: MakeRecording) -> Recording:
    """20 s at 250 Hz with losses of 0.2, 0.8 and 2 s, and one at the end."""
    gaze = lost(wandering_gaze(5000), (500, 550), (1500, 1700), (2500, 3000), (4990, 5000))
    return make_recording(gaze=gaze, is_blink=np.arange(5000) // 50 == 10)


def test_known_samples_are_kept_to_the_bit_and_filled_ones_are_marked(
    model: Model, blinking: Recording
) -> None:
    first, second = model.fill(blinking, draws=2)
    mask = first.is_filled["right"]
    before, after = blinking.gaze_px["right"], first.gaze_px["right"]
    # 60 ms before and 100 ms after each loss are filled as well; long gaps stay lost.
    expected = np.zeros(5000, bool)
    expected[485:575] = expected[1485:1725] = True
    np.testing.assert_array_equal(mask, expected)
    np.testing.assert_array_equal(after[:, ~mask], before[:, ~mask])
    assert np.isfinite(after[:, mask]).all()
    assert not first.is_blink["right"].any()
    other = second.gaze_px["right"]
    np.testing.assert_array_equal(other[:, ~mask], before[:, ~mask])
    assert np.abs(other - after)[:, mask].max() > 0.1


def test_without_padding_the_flanks_are_kept(model: Model, blinking: Recording) -> None:
    (found,) = model.fill(blinking, cleaning=BARE)
    mask = found.is_filled["right"]
    np.testing.assert_array_equal(np.flatnonzero(mask), [*range(500, 550), *range(1500, 1700)])


def test_draws_depend_neither_on_their_number_nor_on_the_batch_size(
    model: Model, blinking: Recording
) -> None:
    many = model.fill(blinking, draws=3, seed=1)
    (one,) = model.fill(blinking, seed=1, batch_size=1)
    np.testing.assert_allclose(
        one.gaze_px["right"], many[0].gaze_px["right"], atol=2, equal_nan=True
    )
    again = model.fill(blinking, draws=3, seed=1)
    for a, b in zip(many, again, strict=True):
        np.testing.assert_array_equal(a.gaze_px["right"], b.gaze_px["right"])
    (other,) = model.fill(blinking, seed=2)
    assert np.nanmax(np.abs(other.gaze_px["right"] - one.gaze_px["right"])) > 5


def test_the_course_is_the_models_own_given_the_known_samples(
    model: Model, make_recording: MakeRecording
) -> None:
    # A recording at the model's places: every 12th or 13th sample at 250 Hz is one at 20 Hz.
    # It moves slowly, so that the low-pass filter hardly changes the known ones.
    smooth = np.stack([np.convolve(axis, np.full(100, 0.01)) for axis in wandering_gaze(999)])
    gaze = lost(smooth[:, 100:900].astype(np.float32), (300, 400))
    recording = make_recording(gaze=gaze, task="dots")
    filler = model.filler(cleaning=BARE)
    (course,) = filler.courses(filler.gaps(recording))
    known = np.full((2, 64), np.nan, np.float32)
    at = np.arange(64) * 12.5
    is_known = (at <= 299) | (at >= 400)
    straight = [np.interp(at, np.arange(800), axis) for axis in np.nan_to_num(gaze)]
    known[:, is_known] = SCREEN.to_normalized(np.stack(straight))[:, is_known]
    sampler = Sampler(model.run, task="dots", constraints=Constraints(known=known[None]))
    (window,) = next(replace(sampler, seed=filler._seed(recording)).pieces(0, 1))
    expected = SCREEN.to_pixels(window)
    # 325, 350 and 375 are samples of both.
    np.testing.assert_allclose(course[:, [25, 50, 75]], expected[:, [26, 28, 30]], atol=12)
    assert np.abs(expected[:, [26, 28, 30]] - straight_line(gaze)[:, [25, 50, 75]]).max() > 15


def straight_line(gaze: np.ndarray) -> np.ndarray:
    at = np.arange(300, 400)
    return np.stack([np.interp(at, [299, 400], axis[[299, 400]]) for axis in gaze])


def test_gaze_is_converted_in_degrees_between_screens(
    model: Model, make_recording: MakeRecording
) -> None:
    gaze = lost(wandering_gaze(1000), (400, 450))
    # The same gaze in degrees on a screen of twice the pixels and half the size.
    screen = Screen(2560, 1440, 20.0, 11.25, 45.0)
    there = screen.from_degrees(SCREEN.to_degrees(gaze))
    (here,) = model.fill(make_recording(gaze=gaze), precision="fp32")
    (other,) = model.fill(make_recording(gaze=there, screen=screen), precision="fp32")
    mask = here.is_filled["right"]
    expected = SCREEN.to_degrees(here.gaze_px["right"])[:, mask]
    found = screen.to_degrees(other.gaze_px["right"])[:, mask]
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_the_task_is_the_recordings_own_where_the_model_has_it(
    model: Model, make_recording: MakeRecording
) -> None:
    filler = model.filler()
    assert filler.task_of(make_recording(task="dots")) == "dots"
    assert filler.task_of(make_recording(task="waldo")) is None
    assert model.filler(task="movies").task_of(make_recording(task="dots")) == "movies"
    with pytest.raises(GazeError, match="no task 'waldo'"):
        model.filler(task="waldo")


def test_without_a_task_the_condition_is_that_of_no_task(model: Model) -> None:
    known = np.zeros((1, 2, 64), np.float32)
    known[..., 20:40] = np.nan
    free, dots, movies = (
        next(
            Sampler(
                model.run, task=task, is_taskless=task is None, constraints=Constraints(known=known)
            ).pieces(0, 1)
        )
        for task in (None, "dots", "movies")
    )
    assert np.abs(free - dots).max() > 1e-5
    assert np.abs(free - movies).max() > 1e-5


@pytest.mark.parametrize("rate_hz", [120.0, 500.0, 1000.0])
def test_other_rates_are_filled_at_their_own_times(
    model: Model, make_recording: MakeRecording, rate_hz: float
) -> None:
    n, first, stop = int(8 * rate_hz), int(3 * rate_hz), int(3.3 * rate_hz)
    gaze = lost(wandering_gaze(n), (first, stop))
    (found,) = model.fill(make_recording(gaze=gaze, rate_hz=rate_hz), cleaning=BARE)
    mask = found.is_filled["right"]
    assert mask.sum() == stop - first
    assert np.isfinite(found.gaze_px["right"]).all()
    np.testing.assert_array_equal(found.gaze_px["right"][:, ~mask], gaze[:, ~mask])


def test_what_cannot_be_filled_is_refused(
    tmp_path: Path, model: Model, make_recording: MakeRecording
) -> None:
    plain = gd.load(trained_run(tmp_path / "plain"), device="cpu")
    with pytest.raises(GazeError, match="not steerable"):
        plain.filler()
    for settings, problem in (
        ({"draws": 0}, "`draws` must lie between 1 and 1000"),
        ({"max_gap_s": 0.0}, "`max_gap_s` must be a positive number"),
        ({"max_gap_s": 2.0}, "`max_gap_s` must be at most 1.6 for this model"),
        ({"seed": -1}, "`seed` must be 0 or more"),
    ):
        with pytest.raises(GazeError, match=problem):
            model.filler(**settings)
    with pytest.raises(GazeError, match=r"made.csv, participant 01, trial 0: .*60 Hz is below"):
        model.fill(make_recording(n=600, rate_hz=60.0))
    with pytest.raises(GazeError, match="how large the screen was; give `screen`"):
        model.fill(make_recording(screen=None))


# Whole files


def written(folder: Path, recording: Recording, format: str) -> Path:
    write_into(folder, [(recording, ())], format)
    return folder


@pytest.mark.parametrize("format", ["parquet", "csv", "asc", "bids"])
def test_files_keep_their_format_and_known_samples(
    run: RunCommand, steerable_folder: Path, tmp_path: Path, blinking: Recording, format: str
) -> None:
    source = written(tmp_path / "in", blinking, format)
    code, said, errors = run("fill", source, "-o", tmp_path / "out", "--model", steerable_folder)
    assert code == 0, errors
    assert "filled 2 of 4 gaps, 330 of 5000 samples" in said
    assert "still lost: 1 longer than 1 s, 1 at the beginning or end" in said
    names = {path.name for path in (tmp_path / "in").rglob("*") if path.is_file()}
    assert names <= {path.name for path in (tmp_path / "out").rglob("*")} | {"README.md"}
    (before,), (after,) = (list(gd.read(tmp_path / one)) for one in ("in", "out"))
    (x,), (y,) = before.gaze_px.values(), after.gaze_px.values()
    mask = np.zeros(5000, bool)
    mask[485:575] = mask[1485:1725] = True
    np.testing.assert_array_equal(x[:, ~mask], y[:, ~mask])
    assert np.isfinite(y[:, mask]).all()
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    assert card["counts"]["filled_samples"] == 330
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "330 of 5000 samples" in readme
    assert gd.describe(tmp_path / "out")["in_words"] == readme
    assert not list(tmp_path.glob(".*.work"))
    if format in ("parquet", "csv"):
        import polars as pl

        path = tmp_path / "out" / f"recordings.{format}"
        frame = pl.read_parquet(path) if format == "parquet" else pl.read_csv(path)
        np.testing.assert_array_equal(frame["is_filled"].cast(pl.Boolean).to_numpy(), mask)
    elif format == "asc":
        lines = next((tmp_path / "out").glob("*.asc")).read_text().splitlines()
        assert [one.split(" ", 1)[1] for one in lines if "FILLED" in one] == [
            "FILLED R 1940 2296",
            "FILLED R 5940 6896",
        ]
    else:
        (events,) = (tmp_path / "out").rglob("*_physioevents.tsv.gz")
        text = gzip.decompress(events.read_bytes()).decode()
        filled = [row.split("\t") for row in text.splitlines() if "filled" in row]
        assert [(float(row[0]), float(row[1])) for row in filled] == [(1940, 0.358), (5940, 0.958)]


def test_several_draws_are_folders_and_the_same_seed_gives_the_same_bytes(
    run: RunCommand, steerable_folder: Path, tmp_path: Path, blinking: Recording
) -> None:
    source = written(tmp_path / "in", blinking, "csv")
    for name in ("a", "b"):
        code, _, errors = run(
            "fill", source, "-o", tmp_path / name, "--model", steerable_folder, "--draws", 2
        )
        assert code == 0, errors
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*.*"))
    assert Path("draw-2/recordings.csv") in files
    for path in files:
        assert (tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes()
    one, two = ((tmp_path / f"a/draw-{k}/recordings.csv").read_bytes() for k in (1, 2))
    assert one != two
    again = run("fill", source, "-o", tmp_path / "a", "--model", steerable_folder)
    assert again[0] == 2
    assert "--overwrite" in again[2]
    code, _, errors = run(
        "fill",
        source,
        "-o",
        tmp_path / "a",
        "--model",
        steerable_folder,
        "--overwrite",
        "--seed",
        0,
    )
    assert code == 0, errors
    assert (tmp_path / "a" / "recordings.csv").is_file()
    assert not (tmp_path / "a" / "draw-1").exists()
    said = run("fill", source, "-o", tmp_path / "c.csv", "--model", steerable_folder, "--draws", 2)[
        2
    ]
    assert "several draws are written as a folder" in said


def test_one_table_may_be_asked_for_and_says_no_gap(
    run: RunCommand, steerable_folder: Path, tmp_path: Path, make_recording: MakeRecording
) -> None:
    recording = make_recording()
    source = written(tmp_path / "in", recording, "columns")
    given = ("fill", source, "--screen", "1280x720", "--model", steerable_folder, "-o")
    code, said, errors = run(*given, tmp_path / "out.parquet")
    assert code == 0, errors
    assert "no gap: the recordings are written as they are" in said
    (found,) = gd.read(tmp_path / "out.parquet")
    np.testing.assert_array_equal(found.gaze_px["cyclopean"], recording.gaze_px["right"])
    assert "not written as .npz" in run(*given, tmp_path / "out.npz")[2]


def test_a_screen_of_unknown_size_is_warned_of(
    run: RunCommand, steerable_folder: Path, tmp_path: Path, blinking: Recording
) -> None:
    source = written(tmp_path / "in", replace(blinking, screen=Screen(1920, 1080)), "csv")
    code, _, errors = run("fill", source, "-o", tmp_path / "out", "--model", steerable_folder)
    assert code == 0
    assert "warning: the size of the recording's or of the model's screen is not known" in errors


def test_nothing_to_condition_on_is_one_line_and_writes_nothing(
    run: RunCommand, steerable_folder: Path, tmp_path: Path, blinking: Recording
) -> None:
    gone = replace(blinking, gaze_px={"right": np.full((2, 5000), np.nan, np.float32)})
    source = written(tmp_path / "in", gone, "parquet")
    code, _, errors = run("fill", source, "-o", tmp_path / "out", "--model", steerable_folder)
    assert code == 2
    assert "nothing can be filled" in errors
    source = written(tmp_path / "x", blinking, "csv")
    code, _, errors = run("fill", source, "-o", tmp_path / "out", "--model", "position")
    assert code == 2
    assert "not steerable" in errors
    assert "--recipe steerable" in errors
    assert not (tmp_path / "out").exists()


def test_ctrl_c_says_what_is_kept(
    run: RunCommand,
    steerable_folder: Path,
    tmp_path: Path,
    blinking: Recording,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    show = Bar.__call__

    def interrupt(bars: Bar, phase: str, *given: Any) -> None:
        show(bars, phase, *given)
        raise KeyboardInterrupt

    monkeypatch.setattr(Bar, "__call__", interrupt)
    source = written(tmp_path / "in", blinking, "csv")
    code, said, errors = run("fill", source, "-o", tmp_path / "out", "--model", steerable_folder)
    assert code == 130
    assert "windows are filled and kept beside" in said
    assert said.rstrip().endswith("the same command resumes")
    assert "Traceback" not in errors
    assert not (tmp_path / "out").exists()


def test_an_interrupted_command_keeps_filled_recordings_and_resumes(
    steerable_folder: Path, tmp_path: Path, blinking: Recording
) -> None:
    trials = [(replace(blinking, trial=str(k)), ()) for k in range(3)]
    write_into(tmp_path / "in", trials, "csv")
    done: list[float] = []

    def stop_in_the_second(phase: str, now: float, total: float, note: str) -> None:
        done.append(now)
        if now > 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gd.fill(tmp_path / "in", tmp_path / "out", steerable_folder, progress=stop_in_the_second)
    assert not (tmp_path / "out").exists()
    (work,) = tmp_path.glob(".out.*.work")
    kept = sorted(work.glob("*.npz"))
    assert kept
    written_at = kept[0].stat().st_mtime_ns
    gd.fill(tmp_path / "in", tmp_path / "whole", steerable_folder)

    def resumed(*shown: Any) -> None:
        assert kept[0].stat().st_mtime_ns == written_at

    gd.fill(tmp_path / "in", tmp_path / "out", steerable_folder, progress=resumed)
    one, other = (tmp_path / name / "recordings.csv" for name in ("out", "whole"))
    assert one.read_bytes() == other.read_bytes()


def test_gaps_are_looked_for_to_count_and_to_sample_them_whatever_the_number_of_draws(
    steerable_folder: Path, tmp_path: Path, blinking: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def counted(recording: Recording, *given: Any) -> Gaps:
        seen.append(recording.trial)
        return find_gaps(recording, *given)

    monkeypatch.setattr("gazediffusion.generation.filling.find_gaps", counted)
    write_into(tmp_path / "in", [(replace(blinking, trial=one), ()) for one in "ab"], "csv")
    gd.fill(tmp_path / "in", tmp_path / "out", steerable_folder, draws=3)
    assert seen == ["a", "b", "a", "b"]
    model, (first, _) = gd.load(steerable_folder, device="cpu"), gd.read(tmp_path / "in")
    for draw, expected in enumerate(model.fill(first, draws=3)):
        found = next(iter(gd.read(tmp_path / "out" / f"draw-{draw + 1}")))
        gaze, others = (next(iter(one.gaze_px.values())) for one in (found, expected))
        np.testing.assert_allclose(gaze, others, atol=1e-3)
