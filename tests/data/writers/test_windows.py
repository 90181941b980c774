"""Windows written for other tools: each on its own screen, in every format, and read back."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gazediffusion.data.preparing import prepare
from gazediffusion.data.readers import find_sources, read_recordings
from gazediffusion.data.windows import Windows
from gazediffusion.data.writers.card import read_card
from gazediffusion.data.writers.npz import read_npz
from gazediffusion.data.writers.sets import FORMATS, projected, write_windows
from gazediffusion.description import describe
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.reading import load_set
from gazediffusion.screen import Screen
from gazediffusion.settings import CleaningConfig, PrepareConfig
from tests.data.test_windows import make_windows
from tests.data.writers.test_export import validate

READING = Screen(1680, 1050, 47.4, 29.7, 55.0)
MOVIES = Screen(1280, 720, 40.0, 22.5, 45.0)
SCREEN_OF = {"reading": READING, "movies": MOVIES}
TASKS = ("reading", "movies", "movies", "reading")
RATE_HZ, LENGTH = 250.0, 500


def mixture() -> Windows:
    """Four smooth windows of two tasks on two screens; the last sample of each is known.

    The first window ends at 8.79 degrees below the centre of the reading screen.
    """
    rng = np.random.default_rng(0)
    gaze = np.cumsum(rng.normal(0, 2e-3, (4, 2, LENGTH)), axis=2)
    y_px = READING.from_degrees(np.array([[0.0], [8.79]]))
    gaze[0, :, -1] = READING.to_normalized(y_px)[:, 0]
    return Windows.from_array(gaze, RATE_HZ, [SCREEN_OF[task] for task in TASKS], tasks=TASKS)


def own_units(windows: Windows) -> tuple[Any, Any]:
    return windows.to_numpy("px"), windows.to_numpy("deg")


@pytest.mark.parametrize("format", ["parquet", "csv", "bids", "asc"])
def test_every_window_of_a_mixture_comes_back_on_its_own_screen(
    tmp_path: Path, format: str
) -> None:
    windows = mixture()
    windows.save(tmp_path / "set", format)
    recordings = list(read_recordings([tmp_path / "set"]))
    assert [recording.screen for recording in recordings] == [
        SCREEN_OF[recording.task] for recording in recordings
    ]
    atol_px = 0.051 if format == "asc" else 1e-3
    pixels, degrees = own_units(windows)
    found: dict[str, list[Any]] = {task: [] for task in SCREEN_OF}
    for recording in recordings:
        (gaze_px,) = recording.gaze_px.values()
        assert recording.screen is not None
        found[recording.task].append((gaze_px, recording.screen.to_degrees(gaze_px)))
    for task, trials in found.items():
        numbers = [k for k, name in enumerate(TASKS) if name == task]
        for number, (gaze_px, gaze_deg) in zip(numbers, trials, strict=True):
            np.testing.assert_allclose(gaze_px, pixels[number], atol=atol_px)
            np.testing.assert_allclose(gaze_deg, degrees[number], atol=atol_px / 20)
    y_deg = found["reading"][0][1][1, -1]
    assert y_deg == pytest.approx(8.79, abs=0.002)


def test_tables_of_a_mixture_have_the_pixels_and_degrees_of_each_windows_screen(
    tmp_path: Path,
) -> None:
    windows = mixture()
    windows.save(tmp_path / "gaze.parquet")
    table = pl.read_parquet(tmp_path / "gaze.parquet")
    pixels, degrees = own_units(windows)
    for unit, expected in (("px", pixels), ("deg", degrees)):
        found = table.select(f"x_{unit}", f"y_{unit}").to_numpy().reshape(4, LENGTH, 2)
        np.testing.assert_allclose(found.transpose(0, 2, 1), expected, atol=1e-4)
    assert table["y_deg"][LENGTH - 1] == pytest.approx(8.79, abs=1e-4)
    fields = json.loads((tmp_path / "gaze.json").read_text())
    assert fields["Screens"] == {task: screen.to_bids() for task, screen in SCREEN_OF.items()}
    assert "ScreenResolution" not in fields
    windows.of_task("reading").save(tmp_path / "one.csv")
    fields = json.loads((tmp_path / "one.json").read_text())
    assert fields["ScreenResolution"] == [1680, 1050]
    assert "Screens" not in fields
    assert fields["GazediffusionCard"]["screen"]["width_px"] == 1680


def test_npz_carries_tasks_screens_and_resolution_back(tmp_path: Path) -> None:
    windows = mixture()
    steps = np.zeros((4, 2))
    steps[1] = 2.0 / MOVIES.size_px[:, 0]  # whole pixels
    windows = replace(windows, segment_step=steps)
    windows.save(tmp_path / "gaze.npz")
    with np.load(tmp_path / "gaze.npz") as arrays:
        np.testing.assert_allclose(arrays["gaze_px"], windows.to_numpy("px"), atol=1e-3)
        np.testing.assert_allclose(arrays["gaze_deg"], windows.to_numpy("deg"), atol=1e-4)
        assert arrays["gaze_deg"][0, 1, -1] == pytest.approx(8.79, abs=1e-4)
        assert arrays["screen"][0].tolist() == [1680, 1050, 47.4, 29.7, 55.0]
        assert arrays["resolution_px"].tolist() == [[0, 0], [1, 1], [0, 0], [0, 0]]
    back = read_npz(tmp_path / "gaze.npz")
    np.testing.assert_allclose(back.cut(), windows.cut(), atol=1e-6)
    assert [back.tasks[k] for k in back.task] == list(TASKS)
    assert [back.screens[k] for k in back.screen_index] == [SCREEN_OF[task] for task in TASKS]
    np.testing.assert_allclose(back.resolution_px, windows.resolution_px)
    assert back.rate_hz == RATE_HZ
    card = read_card(tmp_path / "gaze.npz")
    assert card is not None
    assert card["resolution_px"] == {"movies": [[1.0, 1.0]]}


@pytest.mark.parametrize("name", ["gaze.parquet", "gaze.csv", "gaze.npz", "bids", "asc"])
def test_evaluation_loads_every_window_of_a_mixture_with_its_task_and_screen(
    tmp_path: Path, name: str
) -> None:
    windows, path = mixture(), tmp_path / name
    windows.save(path, name if name in FORMATS else None)
    like = Windows.from_array(np.zeros((1, 2, LENGTH)), RATE_HZ, MOVIES)
    loaded = load_set(path, "synthetic", like)
    assert sorted(loaded.tasks[k] for k in loaded.task) == sorted(TASKS)
    for task, screen in SCREEN_OF.items():
        found, expected = loaded.of_task(task), windows.of_task(task)
        assert found.screen == screen
        atol = 0.003 if name == "asc" else 1e-4
        np.testing.assert_allclose(found.to_numpy("deg"), expected.to_numpy("deg"), atol=atol)


def test_a_given_screen_is_that_of_all_windows(tmp_path: Path) -> None:
    windows, screen = mixture(), Screen(800, 600, 40, 30, 60)
    write_windows(tmp_path, lambda: [projected(windows, screen, 100)], "parquet", grid_px=0.1)
    table = pl.read_parquet(tmp_path / "recordings.parquet")
    assert len(table) == 4 * 100
    expected = np.round(screen.to_pixels(windows.cut()[:, :, :100]), 1)
    found = table.select("x_px", "y_px").to_numpy().reshape(4, 100, 2).transpose(0, 2, 1)
    np.testing.assert_allclose(found, expected, atol=0.0501)
    fields = json.loads((tmp_path / "recordings.json").read_text())
    assert fields["ScreenResolution"] == [800, 600]


def test_a_screen_of_unknown_size_has_no_degrees_beside_one_that_has(tmp_path: Path) -> None:
    windows = mixture()
    windows = replace(windows, screens=(READING, Screen(1280, 720)))
    windows.save(tmp_path / "gaze.csv")
    table = pl.read_csv(tmp_path / "gaze.csv")
    is_unknown = table["task"] == "movies"
    assert table.filter(is_unknown)["x_deg"].null_count() == 2 * LENGTH
    assert table.filter(~is_unknown)["x_deg"].null_count() == 0
    windows.of_task("movies").save(tmp_path / "movies.csv")
    assert "x_deg" not in pl.read_csv(tmp_path / "movies.csv").columns


def test_prepared_windows_are_exported_as_recordings_of_their_participants(tmp_path: Path) -> None:
    windows = make_windows()
    written = windows.save(tmp_path / "set", "bids")
    assert [path.name for path in written] == ["set", "card.json", "README.md"]
    recordings = list(read_recordings([tmp_path / "set"]))
    assert len(recordings) == len(windows)
    assert {(one.participant, one.task) for one in recordings} == {
        ("anna", "dots"), ("bert", "dots"), ("bert", "movies"),
    }  # fmt: skip
    card = read_card(tmp_path / "set")
    assert card is not None
    assert card["synthetic"] is False
    assert card["n_windows"] == len(windows)
    assert card["provenance"] == {"note": "made"}
    assert "Synthetic" not in written[2].read_text()
    description = json.loads((tmp_path / "set" / "dataset_description.json").read_text())
    assert description["Name"] == "Gaze windows"


def test_exported_windows_can_be_prepared_again(tmp_path: Path) -> None:
    windows = mixture()
    windows.save(tmp_path / "gaze.parquet")
    cleaning = CleaningConfig(max_speed_deg_s=1e9)
    config = PrepareConfig(seconds=LENGTH / RATE_HZ, validation_fraction=0, cleaning=cleaning)
    again = prepare(find_sources([tmp_path / "gaze.parquet"]), config)
    assert set(again.screens) == set(windows.screens)
    assert len(again) == len(windows)


def test_a_mixture_is_a_valid_bids_dataset(tmp_path: Path) -> None:
    mixture().save(tmp_path / "set", "bids")
    assert validate(tmp_path / "set")["error"] == []


SYNTHETIC_CARD: dict[str, Any] = {
    "synthetic": True, "seed": 1, "gazediffusion_version": "1", "rate_hz": RATE_HZ,
    "screens": {task: vars(screen) for task, screen in SCREEN_OF.items()}, "sampling": {},
    "model": {
        "baseline": "uniform",
        "trained_on": {
            "n_windows": 9, "n_participants": 3, "n_held_out_participants": 1, "tasks": ["reading"],
        },
    },
}  # fmt: skip


def jumping() -> Windows:
    """Synthetic windows of two tasks with noise and jumps of one to eight samples."""
    rng = np.random.default_rng(3)
    steps = rng.normal(0, 1, (4, 2, LENGTH)) * np.repeat(
        rng.choice([4e-4, 4e-4, 4e-4, 1e-2], (4, 1, LENGTH // 2)), 2, axis=2
    )
    screens = [SCREEN_OF[task] for task in TASKS]
    gaze = np.clip(np.cumsum(steps, axis=2), -0.9, 0.9)
    return Windows.from_array(
        gaze, RATE_HZ, screens, tasks=TASKS, provenance={"card": SYNTHETIC_CARD}
    )


def test_asc_says_that_it_is_synthetic_and_its_events_last(tmp_path: Path) -> None:
    jumping().save(tmp_path / "set", "asc")
    mixture().save(tmp_path / "real", "asc")
    shortest_ms = {"ESACC": 12, "EFIX": 60}
    for path in (tmp_path / "set").glob("*.asc"):
        lines = path.read_text().splitlines()
        assert lines[0].startswith("** ")
        assert "synthetic" in lines[0]
        assert [line for line in lines if line.startswith("MSG") and "synthetic" in line]
        events = [line.split() for line in lines if line.startswith(tuple(shortest_ms))]
        assert {words[0] for words in events} == set(shortest_ms)
        now = -1.0
        for word, _, start, end, duration, *_ in events:
            assert now < float(start) < float(end)
            assert float(duration) >= shortest_ms[word]
            now = float(end)
    for path in (tmp_path / "real").glob("*.asc"):
        assert "synthetic gaze" not in path.read_text()


def test_events_in_bids_are_those_in_asc(tmp_path: Path) -> None:
    windows = jumping()
    windows.save(tmp_path / "set", "bids")
    tables = list((tmp_path / "set").rglob("*_physioevents.tsv.gz"))
    assert len(tables) == len(windows)
    for path in tables:
        rows = pl.read_csv(path, separator="\t", has_header=False).rows()
        index = int(path.name.split("run-")[1].split("_")[0])
        expected = windows.events(index)
        assert [row[2] for row in rows] == [event.event for event in expected]
        onsets = [row[0] for row in rows]
        assert onsets == pytest.approx([event.onset_ms for event in expected])
        assert min(row[1] for row in rows if row[2] == "saccade") >= 0.012


@pytest.mark.parametrize("name", ["gaze.parquet", "gaze.npz"])
def test_a_file_contains_its_card_and_is_described_by_it_alone(tmp_path: Path, name: str) -> None:
    path, *beside = jumping().save(tmp_path / name)
    sidecar = json.loads(beside[0].read_text())["GazediffusionCard"]
    other = {"GazediffusionCard": {**sidecar, "seed": 99}}
    beside[0].write_text(json.dumps(other))  # of another set with the same stem
    for one in beside:
        assert read_card(path) == sidecar
        one.unlink()
    assert read_card(path) == sidecar
    if name == "gaze.parquet":
        metadata = pl.read_parquet_metadata(path)
        assert json.loads(metadata["gazediffusion"]) == sidecar
    described = describe(path)
    assert (described["kind"], described["synthetic"], described["seed"]) == ("set", True, 1)
    assert "No participant was recorded" in described["in_words"]


def test_a_parquet_file_alone_is_read_on_its_own_screens(tmp_path: Path) -> None:
    path, *beside = mixture().save(tmp_path / "gaze.parquet")
    for one in beside:
        one.unlink()
    recordings = list(read_recordings([path]))
    assert [one.screen for one in recordings] == [SCREEN_OF[one.task] for one in recordings]
    path, *beside = mixture().of_task("reading").save(tmp_path / "reading.parquet")
    beside[0].unlink()
    assert {one.screen for one in read_recordings([path])} == {READING}


@pytest.mark.parametrize(
    "note", [b"no json", b"[1]", b'{"screen": 3}', b'{"screens": {"reading": {"width": 1}}}']
)
def test_foreign_metadata_of_a_parquet_file_is_no_card(tmp_path: Path, note: bytes) -> None:
    from pyarrow import parquet

    path, *beside = mixture().save(tmp_path / "gaze.parquet")
    for one in beside:
        one.unlink()
    table = parquet.read_table(path).replace_schema_metadata({b"gazediffusion": note})
    parquet.write_table(table, path)
    assert all(one.screen is None for one in read_recordings([path]))


@pytest.mark.parametrize("format", FORMATS)
def test_the_number_of_pieces_does_not_change_the_bytes(tmp_path: Path, format: str) -> None:
    windows = mixture()

    def pieces() -> list[Windows]:
        gaze = windows.cut()
        return [
            Windows.from_array(gaze[[k]], RATE_HZ, SCREEN_OF[task], tasks=task)
            for k, task in enumerate(TASKS)
        ]

    for name, given in (("whole", lambda: [windows]), ("pieces", pieces)):
        (tmp_path / name).mkdir()
        write_windows(tmp_path / name, given, format)
    for path in (tmp_path / "whole").rglob("*"):
        if path.is_file():
            other = tmp_path / "pieces" / path.relative_to(tmp_path / "whole")
            assert path.read_bytes() == other.read_bytes(), path.name


def test_a_task_on_two_screens_is_refused(tmp_path: Path) -> None:
    windows = Windows.from_array(np.zeros((2, 2, 50)), RATE_HZ, [READING, MOVIES])
    with pytest.raises(GazeError, match=r"'synthetic' was recorded on several screens.*select"):
        windows.save(tmp_path / "gaze.csv")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_over_a_folder_or_without_windows(tmp_path: Path) -> None:
    windows = mixture()
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "mine").write_text("keep")
    with pytest.raises(GazeError, match="not empty"):
        windows.save(tmp_path / "set", "asc")
    with pytest.raises(GazeError, match="no windows"):
        windows.select(np.zeros(4, dtype=bool)).save(tmp_path / "gaze.npz")
    with pytest.raises(GazeError, match="no format 'edf'"):
        windows.save(tmp_path / "gaze.edf", "edf")
    assert sorted(os.listdir(tmp_path)) == ["set"]


@pytest.mark.parametrize(
    ("name", "format", "problem"),
    [
        ("gaze.asc", None, "asc is written as a folder.*`format` asc and a name.*, as gaze"),
        ("gaze.asc", "asc", "asc is written as a folder"),
        ("gaze.parquet", "bids", r"bids is written as a folder, not as \.parquet"),
        ("gaze.tsv", None, r"no format ends in \.tsv; end the name in \.parquet, \.csv or \.npz"),
        ("gaze.csv.gz", None, r"no format ends in \.gz"),
        ("gaze.csv", "parquet", r"`format` is parquet.*ends in \.csv; end the name in \.parquet"),
        ("gaze.xlsx", "csv", r"`format` is csv, but the name ends in \.xlsx"),
        ("gaze.safetensors", "npz", r"`format` is npz"),
    ],
)
def test_a_name_that_means_another_format_is_refused(
    tmp_path: Path, name: str, format: str | None, problem: str
) -> None:
    with pytest.raises(GazeError, match=problem):
        mixture().save(tmp_path / name, format)
    assert list(tmp_path.iterdir()) == []
    mixture().save(tmp_path / "noise-0.5", "npz")  # a number is no ending
    assert (tmp_path / "noise-0.5" / "windows.npz").is_file()


@pytest.mark.parametrize("name", ["GAZE.CSV", "gaze.npz", "gaze.safetensors", "set"])
def test_saved_windows_are_replaced_only_on_request(tmp_path: Path, name: str) -> None:
    first, *_ = mixture().save(tmp_path / name)
    with pytest.raises(GazeError, match="`overwrite`"):
        jumping().save(tmp_path / name)
    assert jumping().save(tmp_path / name, overwrite=True)[0] == first
    assert not [one for one in os.listdir(tmp_path) if one.startswith(".")]
    if name != "gaze.safetensors":
        card = read_card(first)
        assert card is not None
        assert card["synthetic"] is True


def test_a_damaged_or_foreign_npz_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gaze.npz"
    path.write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(GazeError, match="array 'gaze'"):
        read_npz(path)
    np.savez(path, gaze=np.zeros((3, 2)))
    with pytest.raises(GazeError, match=r"\(window, 2, time\), not \(3, 2\)"):
        read_npz(path)
    np.savez(path, gaze=np.zeros((3, 2, 50)))
    with pytest.raises(GazeError, match="`screen`"):
        read_npz(path)
    with pytest.raises(GazeError, match="`rate_hz`"):
        read_npz(path, MOVIES)
    assert len(read_npz(path, MOVIES, 250.0)) == 3
