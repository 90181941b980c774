"""Synthetic sets, read back by the tools their users have."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gazediffusion.data.readers import read_recordings
from gazediffusion.data.resampling import read_clock, windows_at
from gazediffusion.data.writers.card import read_card, readme_of
from gazediffusion.data.writers.npz import read_npz
from gazediffusion.data.writers.sets import FORMATS
from gazediffusion.errors import GazeError
from gazediffusion.generation.sampler import Sampler
from gazediffusion.generation.sets import (
    Sampling,
    write_set,
)
from gazediffusion.network.checkpoint import load_run
from gazediffusion.network.pretrained import load_model
from gazediffusion.screen import Screen
from tests.conftest import SCREEN
from tests.processes import Command
from tests.runs import TINY, trained_run

N = 5


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Predicting x0, so that even a model trained for a second gives gaze near the screen.
    recipe = replace(TINY, objective="x0", epochs=20, sampling_steps=20)
    return trained_run(tmp_path_factory.mktemp("synthetic") / "run", recipe)


@pytest.fixture(scope="module")
def sampler(run_folder: Path) -> Sampler:
    return Sampler(load_run(run_folder), batch_size=2)


@pytest.fixture(scope="module")
def expected_px(sampler: Sampler) -> Any:
    return SCREEN.to_pixels(sampler.windows(0, N).cut())


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("format", ["parquet", "csv", "bids", "asc"])
def test_every_format_is_read_back_by_our_readers(
    tmp_path: Path, sampler: Sampler, expected_px: Any, format: str
) -> None:
    write_set(Sampling(sampler, N, format=format, screen=SCREEN), tmp_path / "set")
    recordings = list(read_recordings([tmp_path / "set"]))
    assert len(recordings) == N
    for recording, window in zip(recordings, expected_px, strict=True):
        (gaze,) = recording.gaze_px.values()
        np.testing.assert_allclose(gaze, window, atol=0.051 if format == "asc" else 1e-2)
        np.testing.assert_allclose(recording.time_ms - recording.time_ms[0], np.arange(64) * 4.0)


def test_tables_know_their_units(tmp_path: Path, sampler: Sampler) -> None:
    write_set(Sampling(sampler, N, screen=SCREEN), tmp_path / "gaze.parquet")
    table = pl.read_parquet(tmp_path / "gaze.parquet")
    assert len(table) == N * 64
    gaze_px = table.select("x_px", "y_px").to_numpy().T
    degrees = table.select("x_deg", "y_deg").to_numpy().T
    normalized = table.select("x_screen", "y_screen").to_numpy().T
    np.testing.assert_allclose(degrees, SCREEN.to_degrees(gaze_px), atol=1e-4)
    np.testing.assert_allclose(normalized, SCREEN.to_normalized(gaze_px), atol=1e-5)


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_pymovements_reads_tables_with_the_geometry(
    tmp_path: Path, sampler: Sampler, expected_px: Any, format: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pymovements as pm

        path = tmp_path / f"gaze.{format}"
        write_set(Sampling(sampler, N, format=format, screen=SCREEN), path)
        fields = json.loads((tmp_path / "gaze.json").read_text())
        width, height = fields["ScreenResolution"]
        experiment = pm.Experiment(
            screen_width_px=width,
            screen_height_px=height,
            screen_width_cm=fields["ScreenSize"][0] * 100,
            screen_height_cm=fields["ScreenSize"][1] * 100,
            distance_cm=fields["ScreenDistance"] * 100,
            origin="upper left",
            sampling_rate=fields["SamplingFrequency"],
        )
        frame = pl.read_parquet(path) if format == "parquet" else pl.read_csv(path)
        gaze = pm.Gaze(
            frame.filter(pl.col("trial").cast(pl.Int64) == 2).drop("x_deg", "y_deg"),
            experiment=experiment,
            time_column="t_ms",
            time_unit="ms",
            pixel_columns=["x_px", "y_px"],
        )
        gaze.pix2deg()
    theirs = np.array(gaze.samples["position"].to_list()).T
    np.testing.assert_allclose(theirs, SCREEN.to_degrees(expected_px[2]), atol=1e-3)


def test_pymovements_and_mne_read_asc_with_its_events(
    tmp_path: Path, sampler: Sampler, expected_px: Any
) -> None:
    write_set(Sampling(sampler, N, format="asc", screen=SCREEN), tmp_path / "set")
    (path,) = (tmp_path / "set").glob("*.asc")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mne
        import pymovements as pm

        gaze = pm.gaze.from_asc(path, events=True)
        raw = mne.io.read_raw_eyelink(path, verbose="error")
    pixels = np.array(gaze.samples["pixel"].to_list()).T
    np.testing.assert_allclose(pixels, np.concatenate(expected_px, axis=1), atol=0.051)
    ours = list(read_recordings([path]))
    n_saccades = sum(1 for line in path.read_text().splitlines() if line.startswith("ESACC"))
    assert n_saccades > 0
    assert gaze.events.frame.filter(pl.col("name") == "saccade_eyelink").height == n_saccades
    names = [name for name in raw.annotations.description if name == "saccade"]
    assert len(names) == n_saccades
    channels = raw.get_data(picks=["xpos_right", "ypos_right"])
    np.testing.assert_allclose(channels[:, :64], ours[0].gaze_px["right"], atol=1e-3)


def test_the_bids_validator_finds_no_error(tmp_path: Path, sampler: Sampler) -> None:
    validator = shutil.which("bids-validator-deno", path=Path(sys.executable).parent)
    if validator is None:
        pytest.skip("bids-validator-deno is not installed")
    write_set(Sampling(sampler, N, format="bids", screen=SCREEN), tmp_path / "set")
    done = subprocess.run(
        [validator, "--format", "json", str(tmp_path / "set")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    issues = json.loads(done.stdout)["issues"]["issues"]
    assert [issue for issue in issues if issue["severity"] == "error"] == []
    description = json.loads((tmp_path / "set" / "dataset_description.json").read_text())
    assert "Synthetic" in description["Name"]


def test_npz_holds_all_units(tmp_path: Path, sampler: Sampler) -> None:
    write_set(Sampling(sampler, N, format="npz", screen=SCREEN), tmp_path / "gaze.npz")
    with np.load(tmp_path / "gaze.npz") as arrays:
        assert set(arrays) == {
            "gaze", "gaze_px", "gaze_deg", "time_ms", "participant", "task", "screen",
            "resolution_px", "card",
        }  # fmt: skip
        np.testing.assert_allclose(arrays["gaze"], sampler.windows(0, N).cut(), atol=1e-5)
        np.testing.assert_allclose(arrays["gaze_px"], SCREEN.to_pixels(arrays["gaze"]), atol=1e-2)
        assert arrays["time_ms"][-1] == 63 * 4.0
        assert json.loads(str(arrays["card"]))["synthetic"] is True


@pytest.mark.parametrize("format", FORMATS)
def test_every_set_says_that_it_is_synthetic_and_from_where(
    tmp_path: Path, sampler: Sampler, format: str
) -> None:
    written = write_set(
        Sampling(replace(sampler, seed=4), N, format=format, screen=SCREEN), tmp_path / "set"
    )
    card = read_card(tmp_path / "set")
    assert card is not None
    assert card["synthetic"] is True
    assert (card["seed"], card["n_windows"]) == (4, N)
    assert card["model"]["weights_sha256"] == sampler.run.weights_sha256
    words = written[2].read_text()
    assert "No participant was recorded" in words
    assert sampler.run.weights_sha256 in words


def test_a_single_file_carries_its_card_in_the_sidecar(tmp_path: Path, sampler: Sampler) -> None:
    written = write_set(Sampling(sampler, N, format="csv"), tmp_path / "gaze.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gaze.csv", "gaze.json", "gaze.md"]
    assert written[0] == tmp_path / "gaze.csv"
    card = read_card(tmp_path / "gaze.csv")
    assert card is not None
    assert card["n_windows"] == N


def test_pixels_can_be_rounded_to_the_grid(tmp_path: Path, sampler: Sampler) -> None:
    write_set(Sampling(sampler, N, grid_px=0.1, screen=SCREEN), tmp_path / "gaze.parquet")
    pixels = pl.read_parquet(tmp_path / "gaze.parquet")["x_px"].to_numpy()
    np.testing.assert_allclose(pixels * 10, np.rint(pixels * 10), atol=5e-3)


def test_the_same_command_gives_the_same_bytes(tmp_path: Path, sampler: Sampler) -> None:
    for format in FORMATS:
        sampling = Sampling(sampler, N, format=format, screen=SCREEN)
        for name in ("a", "b"):
            write_set(sampling, tmp_path / format / name)
        assert files(tmp_path / format / "a") == files(tmp_path / format / "b")


def test_a_stopped_set_goes_on_from_its_pieces(tmp_path: Path, sampler: Sampler) -> None:
    sampling = Sampling(sampler, N, screen=SCREEN)
    write_set(sampling, tmp_path / "straight")

    def stop(phase: str, done: float, total: float, note: str) -> None:
        if done > 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_set(sampling, tmp_path / "stopped", stop)
    assert not (tmp_path / "stopped").exists()
    received: list[float] = []
    write_set(sampling, tmp_path / "stopped", lambda *shown: received.append(shown[1]))
    # The first piece of two windows was there: only the rest was sampled, in steps.
    assert received[0] == 2
    assert len(received) == 1 + 2 * 20 + 2
    assert files(tmp_path / "stopped") == files(tmp_path / "straight")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stopped", "straight"]


def test_a_finished_set_is_replaced_on_request_and_resumes_like_any(
    tmp_path: Path, sampler: Sampler
) -> None:
    sampling, output = Sampling(sampler, N), tmp_path / "gaze.parquet"
    write_set(sampling, output)
    before = files(tmp_path)

    def stop(phase: str, done: float, total: float, note: str) -> None:
        if done > 2:
            raise KeyboardInterrupt

    with pytest.raises(GazeError, match=r"gaze\.parquet: this was made .*\(seed 0, not 1\)"):
        write_set(replace(sampling, sampler=replace(sampler, seed=1)), output, stop)
    assert files(tmp_path) == before
    with pytest.raises(KeyboardInterrupt):
        write_set(replace(sampling, sampler=replace(sampler, seed=1)), output, stop, overwrite=True)
    assert output.read_bytes() == before["gaze.parquet"], "it is replaced when all is generated"
    said: list[str] = []
    with pytest.raises(GazeError, match="made with other settings"):
        write_set(replace(sampling, sampler=replace(sampler, seed=1)), output, say=said.append)
    assert said == []
    write_set(
        replace(sampling, sampler=replace(sampler, seed=1)), output, say=said.append, overwrite=True
    )
    assert said == [f"resuming {output}: 2 of {N} windows are generated"]
    card = read_card(output)
    assert card is not None
    assert card["seed"] == 1
    assert set(files(tmp_path)) == set(before)


@pytest.mark.parametrize("name", ["gaze.parquet", "gaze.csv", "gaze.npz", "gaze"])
def test_a_complete_set_is_left_alone_and_a_difference_is_named(
    tmp_path: Path, sampler: Sampler, name: str
) -> None:
    format = Path(name).suffix[1:] or "asc"
    sampling, output = Sampling(sampler, N, format=format, screen=SCREEN), tmp_path / name
    paths = write_set(sampling, output)
    before, shown = files(output if output.is_dir() else tmp_path), list[Any]()
    assert write_set(sampling, output, lambda *one: shown.append(one)) == paths
    assert shown == []
    for changed, line in [
        (replace(sampling, n=1), f"n_windows {N}, not 1"),
        (replace(sampling, grid_px=1.0), "grid_px None"),
    ]:
        with pytest.raises(GazeError, match=line):
            write_set(changed, output)
    if output.is_dir():
        with pytest.raises(GazeError, match="format_written asc, not csv"):
            write_set(replace(sampling, format="csv"), output)
    assert files(output if output.is_dir() else tmp_path) == before


def test_kept_pieces_serve_fewer_windows_and_no_other_seed(
    tmp_path: Path, sampler: Sampler
) -> None:
    sampling, said = Sampling(sampler, N), list[str]()

    def stop(phase: str, done: float, total: float, note: str) -> None:
        if done > 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_set(sampling, tmp_path / "gaze.parquet", stop)
    with pytest.raises(KeyboardInterrupt):
        write_set(
            replace(sampling, sampler=replace(sampler, seed=1)),
            tmp_path / "gaze.parquet",
            stop,
            said.append,
        )
    assert said == []
    write_set(replace(sampling, n=2), tmp_path / "gaze.parquet", say=said.append)
    assert said == [f"resuming {tmp_path / 'gaze.parquet'}: 2 of 2 windows are generated"]
    assert sorted(files(tmp_path)) == ["gaze.json", "gaze.md", "gaze.parquet"]


def test_a_set_is_the_saved_windows_to_the_byte(tmp_path: Path, sampler: Sampler) -> None:
    for format in FORMATS:
        seeded, screen = replace(sampler, seed=2), SCREEN if format == "bids" else None
        sampling = Sampling(seeded, N, format, screen)
        name = format if format in ("bids", "asc") else f"{format}/gaze.{format}"
        write_set(sampling, tmp_path / "set" / name)
        windows = seeded.windows(0, N)
        windows = replace(windows, provenance={"card": sampling.card()}, screens=(SCREEN,))
        windows.save(tmp_path / "saved" / name, format)
    assert files(tmp_path / "set") == files(tmp_path / "saved")


@pytest.fixture(scope="module")
def mixture() -> Sampler:
    """The packaged model, which knows tasks of two screens, with few steps."""
    return Sampler(load_model("default"), steps=2, batch_size=3)


@pytest.mark.parametrize("format", ["parquet", "asc"])
def test_every_window_of_a_mixture_is_written_on_the_screen_of_its_task(
    tmp_path: Path, mixture: Sampler, format: str
) -> None:
    write_set(Sampling(replace(mixture, seed=3), 6, format=format), tmp_path / "set")
    windows = replace(mixture, seed=3).windows(0, 6)
    assert len(np.unique(windows.screen_index)) == 2
    pixels = windows.to_numpy("px")
    recordings = list(read_recordings([tmp_path / "set"]))
    assert len(recordings) == 6
    numbers = {
        task.replace("-", ""): iter(np.flatnonzero(windows.task == k))
        for k, task in enumerate(windows.tasks)
    }
    for recording in recordings:
        number = int(next(numbers[recording.task.replace("-", "")]))
        assert recording.screen == windows.screens[windows.screen_index[number]]
        (gaze_px,) = recording.gaze_px.values()
        atol = 0.051 if format == "asc" else 1e-3
        np.testing.assert_allclose(gaze_px, pixels[number], atol=atol)


def test_the_card_of_a_mixture_lists_the_screens_by_task(mixture: Sampler) -> None:
    card = Sampling(mixture, 6).card()
    assert "screen" not in card
    assert card["screens"] == {task: vars(screen) for task, screen in mixture.screens.items()}
    assert mixture.screens["reading"].width_px == 1680
    one = Sampling(replace(mixture, task="reading"), 6).card()
    assert one["screen"]["width_px"] == 1680
    assert "screens" not in one
    given = Sampling(mixture, 6, screen=SCREEN).card()
    assert given["screen"] == vars(SCREEN)
    assert "1680x1050 px" in readme_of(card, "npz")


def test_a_mixture_is_resumed_and_cut_like_any_set(tmp_path: Path, mixture: Sampler) -> None:
    sampling = Sampling(replace(mixture, seed=3), 6, format="npz", seconds=2.0, grid_px=1.0)
    write_set(sampling, tmp_path / "gaze.npz")
    windows = replace(mixture, seed=3).windows(0, 6)
    with np.load(tmp_path / "gaze.npz") as arrays:
        assert arrays["gaze_px"].shape == (6, 2, 500)
        np.testing.assert_array_equal(
            arrays["gaze_px"], np.rint(windows.to_numpy("px")[:, :, :500])
        )
        np.testing.assert_allclose(arrays["resolution_px"], windows.resolution_px)


def test_bids_without_the_size_of_the_screen_is_refused_before_generating(sampler: Sampler) -> None:
    with pytest.raises(GazeError, match="BIDS needs"):
        Sampling(sampler, N, format="bids", screen=Screen(1280, 720))


def test_an_occupied_output_is_refused(tmp_path: Path, sampler: Sampler) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "mine").write_text("keep")
    with pytest.raises(GazeError, match="not empty"):
        write_set(Sampling(sampler, N), tmp_path / "set")
    assert files(tmp_path) == {"set/mine": b"keep"}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"n": 0}, "`n` must be 1 or more"),
        ({"n": 1, "seed": -1}, "`seed`"),
        ({"n": 1, "format": "edf"}, "no format 'edf'"),
        ({"n": 1, "grid_px": 0.0}, "`grid_px`"),
    ],
)
def test_impossible_sets_are_refused(
    sampler: Sampler, settings: dict[str, Any], problem: str
) -> None:
    seeded = replace(sampler, seed=settings.pop("seed", 0))
    with pytest.raises(GazeError, match=problem):
        Sampling(seeded, **settings)


def generate(run_folder: Path, output: Path, *more: str, file_bytes: int | None = None) -> Command:
    words = "-n 16 --steps 20 --batch-size 2 --device cpu"
    files = ["generate", "--model", str(run_folder), "-o", str(output)]
    return Command([*files, *words.split(), *more], run_folder.parent, file_bytes)


@pytest.mark.slow
def test_kill_9_at_random_moments_gives_the_bytes_of_the_uninterrupted_set(
    tmp_path: Path, run_folder: Path
) -> None:
    assert generate(run_folder, tmp_path / "straight.parquet").end()[0] == 0
    rng = random.Random(1)

    def n_pieces() -> int:
        return len(list(tmp_path.glob(".killed*/*.npz")))

    for _ in range(2):
        before = n_pieces()
        command = generate(run_folder, tmp_path / "killed.parquet")
        command.wait_for(lambda: n_pieces() > before)  # noqa: B023
        time.sleep(rng.uniform(0, 0.1))
        command.send(signal.SIGKILL)
        assert command.end()[0] == -signal.SIGKILL
    assert generate(run_folder, tmp_path / "killed.parquet").end()[0] == 0
    for ending in (".parquet", ".json", ".md"):
        one, other = (tmp_path / f"{name}{ending}" for name in ("straight", "killed"))
        assert one.read_bytes() == other.read_bytes()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("format", ["parquet", "csv", "npz", "asc"])
def test_a_full_disk_says_so_and_keeps_what_was_finished(
    tmp_path: Path, run_folder: Path, format: str
) -> None:
    output = tmp_path / "set"
    command = generate(run_folder, output, "--format", format, file_bytes=4_000)
    code, _, errors = command.end()
    assert code == 2, errors
    assert "cannot be written" in errors
    assert "Traceback" not in errors
    assert not output.exists()
    assert len(list(tmp_path.glob(".set*/*.npz"))) == 8


@pytest.mark.parametrize("format", FORMATS)
def test_a_set_at_a_lower_rate_states_it_in_every_format(
    tmp_path: Path, sampler: Sampler, format: str
) -> None:
    sampling = Sampling(sampler, N, format=format, screen=SCREEN, rate_hz=60)
    written = write_set(sampling, tmp_path / "set")
    card = read_card(tmp_path / "set")
    assert card is not None
    assert (card["rate_hz"], card["low_passed_from_hz"], card["window_samples"]) == (60, 250, 15)
    assert "at 60 Hz (low-passed, generated at 250 Hz)" in written[2].read_text()
    expected = windows_at(sampler.windows(0, N), 60)
    if format == "npz":
        found = read_npz(tmp_path / "set" / "windows.npz")
        assert found.rate_hz == 60
        np.testing.assert_allclose(found.cut(), expected.cut(), atol=1e-5)
        return
    recordings = list(read_recordings([tmp_path / "set"]))
    for recording, window in zip(recordings, SCREEN.to_pixels(expected.cut()), strict=True):
        assert read_clock(recording.time_ms, recording.rate_hz).rate_hz == 60
        (gaze,) = recording.gaze_px.values()
        np.testing.assert_allclose(gaze, window, atol=0.051 if format == "asc" else 1e-2)


def test_a_set_at_a_lower_rate_does_not_depend_on_the_batch_size(
    tmp_path: Path, sampler: Sampler
) -> None:
    sampling = Sampling(sampler, N, format="npz", rate_hz=60)
    for size in (1, 3):
        write_set(
            replace(sampling, sampler=replace(sampler, batch_size=size)), tmp_path / str(size)
        )
    one, other = (read_npz(tmp_path / size / "windows.npz") for size in ("1", "3"))
    np.testing.assert_allclose(one.cut(), other.cut(), atol=1e-5)


@pytest.mark.parametrize("rate_hz", [500.0, 251.0, 5.0, float("nan")])
def test_rates_that_a_model_cannot_give_are_refused(sampler: Sampler, rate_hz: float) -> None:
    with pytest.raises(GazeError, match="`rate_hz` must lie between 10 and 250 Hz"):
        Sampling(sampler, N, rate_hz=rate_hz)
