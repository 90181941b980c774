"""From recordings to a table of scores: what is covered, what is written, what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gazediffusion as gd
from gazediffusion.data.readers import ReadOptions, Source
from gazediffusion.data.reading import Recordings
from gazediffusion.network.pretrained import SCORES, pretrained_folder
from gazediffusion.storage import read_parquet_header
from tests.conftest import MakeRecording, RunCommand, wandering_gaze
from tests.data.test_preparing import Given
from tests.scoring.test_scorer import windows_20hz

QUICK: dict[str, Any] = {"n_steps": 6, "n_draws": 2, "levels": (0.1, 1.0), "n_noise": 1}


@pytest.fixture(scope="module")
def run_folder(steerable_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run that a calibration may be written into."""
    folder = tmp_path_factory.mktemp("scored") / "run"
    shutil.copytree(steerable_folder, folder)
    gd.calibrate_scores(folder, windows_20hz(), n=6, **QUICK)
    return folder


def of(path: Path, recordings: Sequence[gd.Recording]) -> Recordings:
    path.write_bytes(b"recordings")
    return Recordings((Source(path, Given(recordings), ReadOptions()),))


def test_windows_cover_every_valid_segment(
    run_folder: Path, tmp_path: Path, make_recording: MakeRecording
) -> None:
    gaze = wandering_gaze(300)
    gaze[:, 160:170] = np.nan
    lossy = make_recording(gaze=gaze, rate_hz=20.0, task="dots", trial="a")
    short = make_recording(n=50, rate_hz=20.0, task="dots", trial="b")
    scores = gd.score(of(tmp_path / "two.bin", [lossy, short]), None, run_folder, **QUICK)
    columns = scores.columns
    # Before the loss 0 to 8 s less the padding of 60 ms, after it 8.5 s and 100 ms to 15 s.
    onsets = columns["onset_ms"]
    assert onsets[0] == 0
    assert set(columns["trial"]) == {"a"}
    ends = onsets + 3200
    starts_after = onsets[onsets > 8000]
    assert starts_after.min() == pytest.approx(8600)
    assert ends.max() == pytest.approx(15000)
    assert ends[onsets < 8000].max() >= 7850
    assert (columns["n_samples"] == 64).all()
    assert set(columns["recording"]) == {"made.csv"}
    coverage = scores.coverage
    assert (coverage.n_recordings, coverage.n_without_window) == (2, 1)
    assert coverage.recorded_s == pytest.approx(17.5)
    assert coverage.scored_s == pytest.approx(7.9 + 6.4, abs=0.15)
    assert "recordings without a window: 1 of 2" in coverage.in_words(3.2)


def test_every_column_is_there_and_percentiles_are_those_of_the_calibration(
    run_folder: Path,
) -> None:
    windows = windows_20hz()
    scores = gd.score(windows, None, run_folder, **QUICK)
    frame = scores.to_frame()
    assert frame.columns == [
        "recording", "participant", "task", "trial", "onset_ms", "n_samples", "given_task",
        "log_likelihood", "log_likelihood_se", "denoising_error", "profile_distance",
        "log_likelihood_percentile", "denoising_error_percentile", "profile_percentile",
        "mirrored_x_percentile", "mirrored_y_percentile", "no_task_percentile", "compared_with",
        "oddest_level", "oddest_level_percentile", "oddest_span_ms", "oddest_span_percentile",
        "mirrored_x", "mirrored_y", "no_task", "error_0.1", "error_1",
    ]  # fmt: skip
    assert len(frame) == len(windows) == len(scores)
    assert frame.null_count().sum_horizontal().item() == 0
    for name in frame.columns:
        if name.endswith("percentile"):
            assert frame[name].is_between(0, 100).all()
    assert set(frame["compared_with"]) == {"all tasks"}
    assert set(frame["oddest_level"]) <= {0.1, 1.0}
    spans = frame["oddest_span_ms"] - frame["onset_ms"]
    assert spans.is_between(0, 3000).all()
    distances = scores.columns["profile_distance"][scores.order]
    assert (np.diff(distances) <= 0).all()
    assert repr(scores) == "Scores(36 windows, calibrated)"


def test_noise_is_the_oddest_window(run_folder: Path) -> None:
    windows = windows_20hz().held_out
    gaze = windows.cut()
    gaze[5] = np.random.default_rng(0).uniform(-1, 1, gaze[5].shape)
    tasks = [windows.tasks[k] for k in windows.task]
    odd = gd.Windows.from_array(gaze, 20.0, windows.screen, tasks=tasks)
    scores = gd.score(odd, None, run_folder, **QUICK)
    assert scores.order[0] == 5
    assert scores.columns["profile_percentile"][5] == 100
    assert scores.columns["denoising_error_percentile"][5] == 100
    assert scores.columns["log_likelihood_percentile"][5] == 0
    assert scores.columns["log_likelihood"].argmin() == 5


def test_a_model_without_calibration_says_so(steerable_folder: Path, tmp_path: Path) -> None:
    windows = windows_20hz().subsample(3)
    scores = gd.score(windows, tmp_path / "s.parquet", steerable_folder, **QUICK)
    assert not scores.is_calibrated
    assert scores.notes == (
        "scores of this model have no percentiles: it has no calibration of scores",
    )
    frame = pl.read_parquet(tmp_path / "s.parquet")
    assert np.isnan(frame["profile_percentile"].to_numpy()).all()
    assert np.isnan(frame["oddest_level"].to_numpy()).all()
    assert np.isfinite(frame["denoising_error"].to_numpy()).all()
    drawn = scores.plot(tmp_path / "pictures")
    assert all(path.stat().st_size > 5000 for path in drawn)


def test_other_settings_have_no_percentiles(run_folder: Path) -> None:
    settings = {**QUICK, "has_statistics": True, "has_likelihood": False}
    scores = gd.score(windows_20hz().subsample(2), None, run_folder, **settings)
    assert not scores.is_calibrated
    assert "made with other has_statistics" in scores.notes[0]


def test_files_have_their_card_and_are_not_replaced(run_folder: Path, tmp_path: Path) -> None:
    windows = windows_20hz().subsample(2)
    parquet, csv = tmp_path / "s.parquet", tmp_path / "s.csv"
    scores = gd.score(windows, parquet, run_folder, **QUICK)
    scores.save(csv)
    card = read_parquet_header(parquet)
    assert card is not None
    assert card["scores"]["n_steps"] == 6
    assert card["scores"]["n_draws"] == 2
    assert card["scores"]["solver"].startswith("unipc")
    assert card["model"]["weights_sha256"] == gd.load(run_folder).run.weights_sha256
    assert card["calibration"]["scores"]["levels"] == [0.1, 1.0]
    assert json.loads((tmp_path / "s.json").read_text()) == card
    table, text = pl.read_parquet(parquet), pl.read_csv(csv)
    assert table.columns == text.columns
    np.testing.assert_allclose(table["log_likelihood"], text["log_likelihood"])
    before = parquet.read_bytes()
    with pytest.raises(gd.CompleteError, match=r"is complete: same inputs, same settings"):
        gd.score(windows, parquet, run_folder, **QUICK)
    with pytest.raises(gd.GazeError, match=r"made with .*\(scores seed 0, not 1\); .*`overwrite`"):
        gd.score(windows, parquet, run_folder, **{**QUICK, "seed": 1})
    gd.score(windows, parquet, run_folder, overwrite=True, **QUICK)
    assert parquet.read_bytes() == before  # the same seed, the same bytes
    with pytest.raises(gd.GazeError, match=r"written as .parquet or .csv"):
        gd.score(windows, tmp_path / "s.txt", run_folder, **QUICK)


def test_recordings_without_a_window_or_below_the_rate(
    run_folder: Path, tmp_path: Path, make_recording: MakeRecording
) -> None:
    short = of(tmp_path / "short.bin", [make_recording(n=40, rate_hz=20.0)])
    with pytest.raises(gd.GazeError, match=r"need 3.2 s of valid gaze.*gazediffusion fill"):
        gd.score(short, None, run_folder, **QUICK)
    slow = of(tmp_path / "slow.bin", [make_recording(n=80, rate_hz=10.0)])
    with pytest.raises(gd.GazeError, match=r"recordings of 20 Hz or more.*train a model"):
        gd.score(slow, None, run_folder, **QUICK)


def test_windows_may_overlap(
    run_folder: Path, tmp_path: Path, make_recording: MakeRecording
) -> None:
    long = of(tmp_path / "long.bin", [make_recording(n=130, rate_hz=20.0)])
    settings = {**QUICK, "has_likelihood": False}
    apart, dense = (
        gd.score(long, None, run_folder, stride_s=stride, **settings) for stride in (None, 1.0)
    )
    assert apart.columns["onset_ms"].tolist() == [0, 3200, 3300]
    assert dense.columns["onset_ms"].tolist() == [0, 1000, 2000, 3000, 3300]
    np.testing.assert_allclose(
        dense.columns["denoising_error"][[0, -1]], apart.columns["denoising_error"][[0, -1]],
        rtol=1e-4,
    )  # fmt: skip
    with pytest.raises(gd.GazeError, match="`stride_s` must lie between"):
        gd.score(long, None, run_folder, stride_s=9.0, **QUICK)


def test_a_calibration_is_written_once(run_folder: Path) -> None:
    windows = windows_20hz()
    with pytest.raises(gd.GazeError, match=r"calibrated already.*`overwrite`"):
        gd.calibrate_scores(run_folder, windows, n=4, **QUICK)
    before = (run_folder / SCORES).read_bytes()
    again = gd.calibrate_scores(run_folder, windows, n=6, overwrite=True, **QUICK)
    assert again.read_bytes() == before
    packaged = pretrained_folder() / "joint" / SCORES
    existed = packaged.exists()
    with pytest.raises(gd.GazeError, match="a packaged model is not changed"):
        gd.calibrate_scores("joint", windows, overwrite=True)
    assert packaged.exists() == existed


def table(path: Path, n: int = 100) -> Path:
    """A recording at 20 Hz as a CSV file."""
    x, y = wandering_gaze(n)
    times = np.arange(n) * 50.0
    columns = {"participant": "p1", "task": "dots", "trial": "1", "t_ms": times, "x_px": x}
    pl.DataFrame({**columns, "y_px": y}).write_csv(path)
    return path


def test_the_command_writes_table_and_pictures(
    run: RunCommand, steerable_folder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(steerable_folder, folder)
    windows_20hz().save(tmp_path / "w.safetensors")
    recording, output = table(tmp_path / "gaze.csv"), tmp_path / "scores.parquet"
    command = [
        "score", recording, "-o", output, "--model", folder, "--screen", "1280x720", "--screen-cm",
        "40x22.5", "--distance-cm", "45", "--set", "n_steps=6", "--plot", tmp_path / "odd",
        "--no-likelihood",
    ]  # fmt: skip
    code, out, err = run(*command, "--calibrate", tmp_path / "w.safetensors", "-n", 4)
    assert (code, "warning" in err) == (0, False), err
    assert "oddest of 2 windows" in out
    assert "scored 5 of 5 s" in out
    frame = pl.read_parquet(output)
    assert frame["recording"].unique().to_list() == ["gaze.csv"]
    assert frame["compared_with"].unique().to_list() == ["all tasks"]
    assert len(list((tmp_path / "odd").glob("*.png"))) == 1
    code, out, err = run(*command)
    assert (code, err) == (0, "")
    assert out == f"{output} is complete: same inputs, same settings\n"
    code, _, err = run(*["n_steps=7" if one == "n_steps=6" else one for one in command])
    assert code == 2
    assert "scores n_steps 6, not 7" in err
    assert "--overwrite" in err
    code, _, err = run(*[tmp_path / "new.csv" if one == output else one for one in command])
    assert code == 2
    assert "this folder is not empty" in err
    assert not (tmp_path / "new.csv").exists()  # refused before the work
    code, _, err = run("score", tmp_path / "w.safetensors", "-o", tmp_path / "w.csv", "--model",
                       folder, "--set", "n_steps=6", "--no-likelihood")  # fmt: skip
    assert code == 0, err
    assert len(pl.read_csv(tmp_path / "w.csv")) == 36


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "there is nothing to score"),
        (["gaze.csv"], "the scores need a file"),
        (["gaze.csv", "-o", "scores.txt"], "written as .parquet or .csv"),
        (["gaze.csv", "-o", "s.csv", "--set", "n_steps=2"], "must be 5 or more"),
        (["gaze.csv", "-o", "s.csv", "--task", "flying"], "no task 'flying'"),
        (["gaze.csv", "-o", "s.csv", "--stride", "99"], "--stride must lie between"),
        (["a.safetensors", "b.safetensors", "-o", "s.csv"], "a windows file is scored alone"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    run: RunCommand,
    run_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "gaze.csv")
    code, _, err = run("score", *arguments, "--model", run_folder, "--screen", "1280x720")
    assert code == 2
    assert problem in " ".join(err.split())
    assert "Traceback" not in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gaze.csv"]
