from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazediffusion.data.inspection import inspect
from gazediffusion.data.preparing import prepare, window_starts
from gazediffusion.data.readers import ReadOptions, Source
from gazediffusion.data.reading import read
from gazediffusion.data.recordings import Recording
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from gazediffusion.settings import CleaningConfig, PrepareConfig
from tests.conftest import SCREEN, MakeRecording, wandering_gaze


class Given:
    """A reader of recordings that are already there."""

    NAME = "given"

    def __init__(self, recordings: Sequence[Recording]) -> None:
        self.recordings = recordings

    def matches(self, path: Path, head: bytes, options: ReadOptions) -> bool:
        return True

    def read(self, path: Path, options: ReadOptions) -> Iterator[Recording]:
        return iter(self.recordings)


@pytest.fixture
def source_file(tmp_path: Path) -> Path:
    path = tmp_path / "given.bin"
    path.write_bytes(b"the file these recordings came from")
    return path


def walks(n: int, length: int, seed: int = 0) -> Any:
    """Gaze (n, 2, length) that drifts and jumps."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(0, 0.002, (n, 2, length))
    steps += rng.normal(0, 0.3, steps.shape) * (rng.random((n, 1, length)) < 0.01)
    return np.sin(steps.cumsum(axis=-1)).astype(np.float32)


def sources(path: Path, *recordings: Recording) -> list[Source]:
    return [Source(path, Given(recordings), ReadOptions())]


def recordings_of_participants(
    make_recording: MakeRecording, n: int = 5, **more: object
) -> list[Recording]:
    return [make_recording(participant=f"p{k}", seed=k, **more) for k in range(n)]


def test_position_windows_slide_by_250_samples(
    make_recording: MakeRecording, source_file: Path
) -> None:
    windows = prepare(sources(source_file, *recordings_of_participants(make_recording, n=3)))
    # 2,500 samples: starts 0, 250 and 500 in each of three recordings.
    assert len(windows) == 9
    assert windows.starts.tolist() == [0, 250, 500, 2500, 2750, 3000, 5000, 5250, 5500]
    assert (windows.length, windows.rate_hz, windows.protocol) == (2000, 250.0, "position")


def test_velocity_windows_do_not_overlap_and_carry_their_scale(
    make_recording: MakeRecording, source_file: Path
) -> None:
    recordings = [
        make_recording(participant=f"p{k}", gaze=wandering_gaze(4500, k)) for k in range(3)
    ]
    windows = prepare(sources(source_file, *recordings), PrepareConfig(protocol="velocity"))
    assert windows.starts.tolist() == [0, 2000, 4500, 6500, 9000, 11000]
    assert windows.velocity_scale is not None
    assert windows.velocity_scale > 0


def test_windows_hold_the_recorded_numbers_on_the_grid(
    make_recording: MakeRecording, source_file: Path
) -> None:
    recordings = recordings_of_participants(make_recording, n=2)
    windows = prepare(sources(source_file, *recordings))
    assert windows.grid_px == 0.1
    first = SCREEN.to_normalized(recordings[0].gaze_px["right"][:, :2000])
    np.testing.assert_allclose(windows[0], first, atol=1e-6)


def test_windows_come_from_contiguous_valid_segments_only(
    make_recording: MakeRecording, source_file: Path
) -> None:
    gaze = wandering_gaze(6000)
    gaze[:, 3000] = np.nan
    broken = make_recording(participant="a", gaze=gaze)
    whole = make_recording(participant="b", gaze=wandering_gaze(2000, 1))
    windows = prepare(sources(source_file, broken, whole))
    # Segments: [0, 2985) and [3026, 6000); the padding takes 15 before and 25 after.
    assert np.bincount(windows.participant).tolist() == [4 + 4, 1]
    assert windows.segment_onset_ms.tolist() == [0.0, 3026 * 4.0, 0.0]
    np.testing.assert_allclose(windows.elapsed_s[[0, 1, 4, 8]], [0.0, 1.0, 3026 * 0.004, 0.0])
    assert np.isfinite(windows.cut()).all()


def test_a_window_with_30_percent_off_screen_is_dropped_and_29_is_kept() -> None:
    gaze = np.zeros((2, 1000), dtype=np.float32)
    gaze[1, :300] = -1.15
    assert window_starts(gaze, 1000, 1000)[0].tolist() == []
    assert window_starts(gaze, 1000, 1000)[1] == 1
    gaze[1, 0] = -1.1  # on the border, not beyond it
    assert window_starts(gaze, 1000, 1000)[0].tolist() == [0]


def test_either_axis_counts_for_the_off_screen_rule() -> None:
    gaze = np.zeros((2, 1000), dtype=np.float32)
    gaze[0, :150] = 1.15
    gaze[1, 150:300] = 1.15
    assert window_starts(gaze, 1000, 1000)[1] == 1


def test_positions_are_clipped_to_one_point_two(
    make_recording: MakeRecording, source_file: Path
) -> None:
    recordings = recordings_of_participants(make_recording, n=2)
    gaze = recordings[0].gaze_px["right"]
    gaze[0, 1000:1100] += np.linspace(0, 1500, 100, dtype=np.float32).round(1)
    config = PrepareConfig(cleaning=CleaningConfig(max_speed_deg_s=1e9))
    windows = prepare(sources(source_file, *recordings), config)
    assert windows.gaze.max() == pytest.approx(1.2, abs=1e-4)


def test_1000_hz_is_thinned_to_every_fourth_sample(
    make_recording: MakeRecording, source_file: Path
) -> None:
    recordings = [
        make_recording(participant=p, gaze=wandering_gaze(8000, k), rate_hz=1000)
        for k, p in enumerate("ab")
    ]
    windows = prepare(sources(source_file, *recordings))
    expected = SCREEN.to_normalized(recordings[0].gaze_px["right"][:, ::4])
    np.testing.assert_allclose(windows[0], expected, atol=1e-6)


def test_filtered_gaze_has_no_grid(make_recording: MakeRecording, source_file: Path) -> None:
    recordings = [
        make_recording(participant=p, gaze=wandering_gaze(3000, k), rate_hz=300)
        for k, p in enumerate("ab")
    ]
    assert prepare(sources(source_file, *recordings)).grid_px is None


def test_participants_are_split_and_the_split_is_fixed_by_its_seed(
    make_recording: MakeRecording, source_file: Path
) -> None:
    given = sources(source_file, *recordings_of_participants(make_recording, n=10))
    windows = prepare(given)
    assert len(windows.validation) == 2
    assert prepare(given).validation == windows.validation
    splits = {prepare(given, PrepareConfig(split_seed=seed)).validation for seed in range(5)}
    assert len(splits) > 1


def test_names_of_one_participant_stay_together(
    make_recording: MakeRecording, source_file: Path
) -> None:
    given = sources(source_file, *recordings_of_participants(make_recording, n=6))
    for seed in range(8):
        config = PrepareConfig(split_seed=seed, same_participant=(("p0", "p1", "p2"),))
        kept = prepare(given, config).validation
        assert len(kept & {"p0", "p1", "p2"}) in (0, 3)


def test_tasks_get_the_names_they_are_given(
    make_recording: MakeRecording, source_file: Path
) -> None:
    recordings = [
        make_recording(participant=name, task=task, n=2600)
        for name in ("anna", "bert")
        for task in ("film a", "film b", "dots")
    ]
    names = (("film a", "films"), ("film b", "films"))
    windows = prepare(sources(source_file, *recordings), PrepareConfig(task_names=names))
    assert windows.tasks == ("dots", "films")
    plain = prepare(sources(source_file, *recordings), PrepareConfig())
    assert len(windows.of_task("films")) == len(plain) - len(plain.of_task("dots"))
    only = PrepareConfig(task_names=names, tasks=("films",))
    assert prepare(sources(source_file, *recordings), only).tasks == ("films",)
    with pytest.raises(GazeError, match="`task_names` names task 'film c'"):
        prepare(sources(source_file, *recordings), PrepareConfig(task_names=(("film c", "x"),)))


def test_one_task_can_be_chosen(make_recording: MakeRecording, source_file: Path) -> None:
    recordings = recordings_of_participants(
        make_recording, n=3, task="dots"
    ) + recordings_of_participants(make_recording, n=3)
    windows = prepare(sources(source_file, *recordings), PrepareConfig(tasks=("dots",)))
    assert windows.tasks == ("dots",)
    assert len(windows) == 9


def test_the_file_documents_itself(
    make_recording: MakeRecording, source_file: Path, tmp_path: Path
) -> None:
    recordings = [
        *recordings_of_participants(make_recording, n=3),
        make_recording(participant="short", n=100),
    ]
    windows = prepare(sources(source_file, *recordings))
    windows.save(tmp_path / "w.safetensors")
    said = Windows.load(tmp_path / "w.safetensors").provenance
    assert said["sources"][0]["name"] == "given.bin"
    assert len(said["sources"][0]["sha256"]) == 64
    assert said["cleaning"]["all"]["total"] == 3 * 2500 + 100
    assert said["config"]["split_seed"] == 42
    assert said["participants_without_windows"] == ["short"]
    assert said["rates"] == {"250 Hz": 4}


def test_no_window_long_enough_says_how_long_the_longest_segment_is(
    make_recording: MakeRecording, source_file: Path
) -> None:
    given = sources(
        source_file, *recordings_of_participants(make_recording, gaze=wandering_gaze(1500))
    )
    with pytest.raises(GazeError, match=r"no window of 8 s: the longest valid segment is 6\.00 s"):
        prepare(given)


def test_one_participant_only_is_refused(make_recording: MakeRecording, source_file: Path) -> None:
    with pytest.raises(GazeError, match=r"only one participant \(01\)"):
        prepare(sources(source_file, make_recording()))


def test_an_unknown_screen_is_asked_for(make_recording: MakeRecording, source_file: Path) -> None:
    with pytest.raises(GazeError, match=r"made\.csv: .*how large the screen.*`screen`"):
        prepare(sources(source_file, make_recording(screen=None)))


def test_recordings_of_two_screens_keep_their_own(
    make_recording: MakeRecording, source_file: Path, tmp_path: Path
) -> None:
    small = Screen(1600, 900, 30.0, 17.0, 60.0)
    recordings = [make_recording(), make_recording(participant="02", screen=small)]
    windows = prepare(sources(source_file, *recordings))
    windows.save(tmp_path / "w.safetensors")
    for one in (windows, Windows.load(tmp_path / "w.safetensors")):
        assert one.screens == (SCREEN, small)
        of_second = one.participant == 1
        np.testing.assert_array_equal(one.screen_index == 1, of_second)
        # The same pixels were recorded on both screens.
        pixels = one.to_numpy("px")
        np.testing.assert_allclose(pixels[of_second], pixels[~of_second], atol=1e-3)
        with pytest.raises(GazeError, match="2 screens"):
            _ = one.screen


def test_a_rate_below_the_target_names_the_recording(
    make_recording: MakeRecording, source_file: Path
) -> None:
    given = sources(source_file, make_recording(rate_hz=60))
    with pytest.raises(GazeError, match=r"made\.csv, participant 01, trial 0: the rate of 60 Hz"):
        prepare(given)


def test_an_unknown_task_is_refused_with_a_suggestion(
    make_recording: MakeRecording, source_file: Path
) -> None:
    with pytest.raises(GazeError, match="did you mean 'viewing'"):
        prepare(sources(source_file, make_recording()), PrepareConfig(tasks=("viewin",)))


def test_an_unknown_participant_is_refused_with_a_suggestion(
    make_recording: MakeRecording, source_file: Path
) -> None:
    config = PrepareConfig(same_participant=(("p0", "q1"),))
    with pytest.raises(GazeError, match="'q1', who was not recorded"):
        prepare(sources(source_file, *recordings_of_participants(make_recording)), config)


@pytest.mark.parametrize(
    ("settings", "option"),
    [
        ({"protocol": "speed"}, "`protocol`"),
        ({"rate_hz": 0}, "`rate_hz`"),
        ({"seconds": float("nan")}, "`seconds`"),
        ({"stride_s": 0}, "`stride_s`"),
        ({"validation_fraction": 1.5}, "`validation_fraction`"),
    ],
)
def test_bad_settings_name_their_option(settings: dict[str, object], option: str) -> None:
    with pytest.raises(GazeError, match=option):
        PrepareConfig(**settings)  # type: ignore[arg-type]


def test_inspection_counts_what_prepare_makes(
    make_recording: MakeRecording, source_file: Path
) -> None:
    gaze = wandering_gaze(6000)
    gaze[:, 3000:3030] = np.nan
    recordings = [
        make_recording(participant=p, task=task, gaze=gaze)
        for p, task in (("a", "dots"), ("b", "dots"), ("a", "movies"))
    ]
    given = sources(source_file, *recordings)
    summaries = {summary.task: summary for summary in inspect(given)}
    dots = summaries["dots"]
    assert (len(dots.participants), dots.n_trials, dots.rates) == (2, 2, {"250"})
    assert dots.minutes == pytest.approx(2 * 6000 / 250 / 60)
    assert dots.counts.lost == 60
    assert dots.counts.blinks == 2
    position, velocity = (
        prepare(given, PrepareConfig(protocol=recipe, tasks=("dots",)))
        for recipe in ("position", "velocity")
    )
    assert dots.position_windows == len(position)
    assert dots.velocity_windows == len(velocity)


def test_inspection_goes_on_without_screen_and_below_the_rate(
    make_recording: MakeRecording, source_file: Path
) -> None:
    slow = replace(make_recording(rate_hz=60), task="slow")
    given = sources(source_file, make_recording(screen=None), slow)
    summaries = {summary.task: summary for summary in inspect(given)}
    assert summaries["viewing"].position_windows == 3
    assert any("screen unknown" in note for note in summaries["viewing"].notes)
    assert any("below the target" in note for note in summaries["slow"].notes)


@pytest.mark.parametrize(("rate_hz", "step"), [(250.0, 250), (60.0, 60), (120.0, 120)])
def test_position_windows_slide_by_a_second_at_every_rate(rate_hz: float, step: int) -> None:
    assert PrepareConfig(rate_hz=rate_hz).step == step
    assert PrepareConfig(protocol="velocity", rate_hz=rate_hz).step == 8 * step
    assert PrepareConfig(rate_hz=rate_hz, stride_s=7 / rate_hz).step == 7


# Several processes


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Tables of five participants, 40 s each, and one of targets of some of them."""
    for k in range(5):
        x, y = SCREEN.to_pixels(walks(1, 10_000, seed=k)[0])
        lines = [f"{4 * n},{a:.1f},{b:.1f}" for n, (a, b) in enumerate(zip(x, y, strict=True))]
        lines[3000:3100] = [f"{4 * n},," for n in range(3000, 3100)]
        write_table(tmp_path / "files" / f"P{k}.csv", ["t_ms,x_px,y_px", *lines])
    rows = [f"{name},{n * 900},{64 * n},{40 * n}" for name in ("P1", "P3", "P9") for n in range(9)]
    write_table(tmp_path / "targets.csv", ["participant,t_ms,x_px,y_px", *rows])
    return tmp_path


def write_table(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines))


def prepared(study: Path, **how: Any) -> Windows:
    recordings = read(study / "files", screen=SCREEN, participant_pattern="(P[0-9])")
    config = PrepareConfig(seconds=2, stride_s=0.4, min_valid=0.2)
    return prepare(recordings, config, targets=study / "targets.csv", **how)


def test_several_processes_give_the_bytes_of_one(study: Path) -> None:
    of_one, of_two = list[Any](), list[Any]()
    prepared(study, progress=lambda *one: of_one.append(one[:3])).save(study / "one.safetensors")
    show = lambda *one: of_two.append(one[:3])  # noqa: E731
    prepared(study, n_workers=2, progress=show).save(study / "two.safetensors")
    assert (study / "one.safetensors").read_bytes() == (study / "two.safetensors").read_bytes()
    assert of_one == of_two == [("reading", k, 5) for k in range(5)]
    windows = Windows.load(study / "one.safetensors")
    assert len(windows) > 30
    assert windows.provenance["targets"]["recordings_without_gaze"] == 1


@pytest.mark.parametrize("is_in_degrees", [False, True])
def test_several_processes_name_the_file_that_one_process_names(
    study: Path, is_in_degrees: bool
) -> None:
    third = study / "files" / "P2.csv"
    third.write_text(third.read_text().replace("\n400,", "\n400,x"))
    if is_in_degrees:  # found by looking at the gaze, and before the damage in the later file
        x, y = 8 * walks(1, 10_000, seed=9)[0]
        lines = [f"{4 * n},{a:.2f},{b:.2f}" for n, (a, b) in enumerate(zip(x, y, strict=True))]
        write_table(study / "files" / "P1.csv", ["t_ms,x,y", *lines])
    problems = []
    for n_workers in (1, 2):
        with pytest.raises(GazeError) as caught:
            prepared(study, n_workers=n_workers)
        problems.append(str(caught.value))
    assert problems[0] == problems[1]
    assert problems[0].startswith(str(study / "files" / ("P1.csv" if is_in_degrees else "P2.csv")))
    assert ("looks like degrees" in problems[0]) == is_in_degrees


def test_a_complete_windows_file_is_left_alone_and_a_difference_is_named(study: Path) -> None:
    path, shown = study / "w.safetensors", list[Any]()
    windows = prepared(study, output=path)
    assert path.is_file()
    assert sorted(one.name for one in study.iterdir() if one.name[0] == ".") == []
    written = path.stat().st_mtime_ns
    again = prepared(study, output=path, progress=lambda *one: shown.append(one))
    assert (len(again), shown, path.stat().st_mtime_ns) == (len(windows), [], written)
    recordings = read(study / "files", screen=SCREEN, participant_pattern="(P[0-9])")
    config = PrepareConfig(seconds=1, stride_s=0.4, min_valid=0.2)
    how: dict[str, Any] = {"targets": study / "targets.csv", "output": path}
    with pytest.raises(GazeError, match=r"settings or inputs \(config seconds 2, not 1\); .*`over"):
        prepare(recordings, config, **how)
    lines = (study / "files" / "P0.csv").read_text().splitlines()
    (study / "files" / "P0.csv").write_text("\n".join(lines[:-1]))
    with pytest.raises(GazeError, match=r"settings or inputs \(sources_sha256\)"):
        prepared(study, output=path)
    assert len(prepared(study, output=path, overwrite=True)) > 0
