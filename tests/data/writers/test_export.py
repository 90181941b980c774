from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from gazediffusion.data import readers
from gazediffusion.data.events import Event
from gazediffusion.data.recordings import Eye, Recording
from gazediffusion.data.simulation import simulate, write_simulation
from gazediffusion.data.writers import FORMATS, Labelled, write_into
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from gazediffusion.settings import SimulationConfig
from gazediffusion.storage import written_whole

SCREEN = Screen(1280, 720, 40.0, 22.5, 45.0)
EYES: dict[str, tuple[Eye, ...]] = {"monocular": ("right",), "binocular": ("left", "right")}


def make_recording(eyes: Sequence[Eye] = ("right",), n: int = 200, **fields: Any) -> Recording:
    """Gaze on the 0.1 px grid with a blink (samples 50 to 79) and a loss (120 to 124)."""
    gaze: dict[Eye, NDArray[np.float32]] = {}
    for number, eye in enumerate(eyes):
        rng = np.random.default_rng(number)
        gaze[eye] = np.round(rng.uniform(-5, 700, (2, n)), 1).astype(np.float32)
        gaze[eye][:, 50:80] = np.nan
        gaze[eye][:, 120:125] = np.nan
    is_blink = np.zeros(n, dtype=np.bool_)
    is_blink[50:80] = True
    given: dict[str, Any] = {
        "participant": "01",
        "task": "viewing",
        "trial": "0",
        "time_ms": 5000.0 + 4.0 * np.arange(n),
        "gaze_px": gaze,
        "path": Path("made"),
        "format": "made",
        "screen": SCREEN,
        "rate_hz": 250.0,
        "is_blink": dict.fromkeys(eyes, is_blink),
    }
    return Recording(**(given | fields))


def write_recordings(recordings: Iterable[Recording], folder: Path, format: str) -> list[Path]:
    """Write recordings without events into a new folder, whole or not at all; the files."""
    with written_whole(folder) as temporary:
        write_into(temporary, ((recording, ()) for recording in recordings), format)
    return sorted(path for path in folder.rglob("*") if path.is_file())


def make_set(eyes: Sequence[Eye]) -> list[Recording]:
    """Two participants with two trials each, the second trial a minute later."""
    first = make_recording(eyes)
    return [
        replace(first, participant=who, trial=str(trial), time_ms=first.time_ms + 60_000.0 * trial)
        for who in ("01", "02")
        for trial in range(2)
    ]


def labelled(recordings: Sequence[Recording]) -> Iterator[Labelled]:
    """Each recording with a fixation, a saccade and a fixation before its blink."""
    for recording in recordings:
        start_ms = recording.time_ms[0]
        yield (
            recording,
            [
                Event("fixation", start_ms, start_ms + 79.5),
                Event("saccade", start_ms + 79.5, start_ms + 110.0, 4.25, 280.0),
                Event("fixation", start_ms + 110.0, start_ms + 190.0),
                Event("microsaccade", start_ms + 130.0, start_ms + 150.0, 0.3, 25.0),
            ],
        )


SIMULATED = SimulationConfig(n_participants=2, minutes=0.2, trial_seconds=6.0, rate_hz=500.0)
CONTENTS: dict[str, Callable[[], list[Recording]]] = {
    "monocular": lambda: make_set(("right",)),
    "binocular": lambda: make_set(("left", "right")),
    "simulated": lambda: [
        replace(trial.recording, task="viewing") for trial in simulate(SIMULATED)
    ],
}


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("format", sorted(FORMATS))
def test_what_is_written_is_read_back_the_same(format: str, content: str, tmp_path: Path) -> None:
    recordings = CONTENTS[content]()
    write_recordings(recordings, tmp_path / "out", format)
    back = list(readers.read_recordings([tmp_path / "out"]))
    for was, now in zip(recordings, back, strict=True):
        assert (now.participant, now.task, now.trial) == (was.participant, was.task, was.trial)
        np.testing.assert_array_equal(now.time_ms, was.time_ms)
        # One eye of a table or column file has no side.
        eyes: tuple[Any, ...] = tuple(was.gaze_px)
        sides = dict(zip(eyes, eyes if len(eyes) == 2 else tuple(now.gaze_px), strict=True))
        for eye, side in sides.items():
            np.testing.assert_array_equal(now.gaze_px[side], was.gaze_px[eye])
            if was.is_blink[eye].any():
                np.testing.assert_array_equal(now.is_blink[side], was.is_blink[eye])
        if format in ("asc", "bids"):
            assert now.rate_hz == was.rate_hz
        if format != "columns":
            assert now.screen == was.screen


def read_with_pymovements(path: Path) -> Any:
    import pymovements

    return pymovements.gaze.from_asc(path, events=True)


def read_with_mne(path: Path) -> Any:
    import mne

    with warnings.catch_warnings():
        # MNE 1.x calls pandas in ways that pandas 3 deprecates.
        warnings.filterwarnings("ignore", message="The inplace keyword")
        return mne.io.read_raw_eyelink(path, verbose="error")


@pytest.mark.parametrize("rate_hz", [250.0, 1000.0, 2000.0])
@pytest.mark.parametrize("eyes", EYES.values(), ids=EYES.keys())
def test_asc_samples_are_those_pymovements_and_mne_read(
    eyes: tuple[Eye, ...], rate_hz: float, tmp_path: Path
) -> None:
    recording = make_recording(eyes, rate_hz=rate_hz)
    recording = replace(recording, time_ms=5000.0 + np.arange(200.0) * (1000.0 / rate_hz))
    path, sidecar = write_recordings([recording], tmp_path / "out", "asc")
    assert json.loads(sidecar.read_text()) == SCREEN.to_bids()
    assert path.name == "sub-01_task-viewing.asc"
    expected = np.concatenate([recording.gaze_px[eye] for eye in eyes]).astype(np.float64)
    gaze = read_with_pymovements(path)
    np.testing.assert_array_equal(gaze.samples["time"].to_numpy(), recording.time_ms)
    pixels = np.array([[np.nan if v is None else v for v in row] for row in gaze.samples["pixel"]])
    np.testing.assert_allclose(pixels.T, expected, rtol=1e-6)
    assert gaze.experiment.sampling_rate == rate_hz
    assert (gaze.experiment.screen.width_px, gaze.experiment.screen.height_px) == (1280, 720)
    raw = read_with_mne(path)
    assert raw.info["sfreq"] == rate_hz
    names = [f"{axis}pos_{eye}" for eye in eyes for axis in "xy"]
    np.testing.assert_allclose(raw.get_data(picks=names), expected, rtol=1e-6)


@pytest.mark.parametrize("eyes", EYES.values(), ids=EYES.keys())
def test_asc_events_are_those_pymovements_and_mne_read(
    eyes: tuple[Eye, ...], tmp_path: Path
) -> None:
    write_into(tmp_path, labelled(make_set(eyes)[:2]), "asc")
    path = tmp_path / "sub-01_task-viewing.asc"
    events = read_with_pymovements(path).events.frame.sort("onset", "name")
    spans = events.unique(["name", "onset", "offset"], maintain_order=True)
    # Samples every 4 ms: an event ends at its last sample, as an EyeLink has it.
    expected = [
        ("fixation_eyelink", 0, 76),
        ("saccade_eyelink", 80, 108),
        ("fixation_eyelink", 112, 188),
        ("blink_eyelink", 200, 316),
    ]
    starts = [5000, 65_000]
    assert spans.select("name", "onset", "offset").rows() == [
        (name, start + onset, start + offset)
        for start in starts
        for name, onset, offset in expected
    ]
    assert len(events) == len(spans) * len(eyes)
    annotations = read_with_mne(path).annotations
    found = {
        (text, round(onset * 1000), round(duration * 1000))
        for text, onset, duration in zip(
            annotations.description, annotations.onset, annotations.duration, strict=True
        )
        if text in ("fixation", "saccade", "BAD_blink")
    }
    words = {"fixation": "fixation", "saccade": "saccade", "blink": "BAD_blink"}
    assert found == {
        (words[name.removesuffix("_eyelink")], start - 5000 + onset, offset - onset + 4)
        for start in starts
        for name, onset, offset in expected
    }


def test_asc_lines_are_in_the_order_of_time(tmp_path: Path) -> None:
    write_into(tmp_path, labelled(make_set(EYES["binocular"])[:1]), "asc")
    lines = (tmp_path / "sub-01_task-viewing.asc").read_text().splitlines()
    begun: set[str] = set()
    now = 0.0
    for line in lines[lines.index("PRESCALER\t1") :]:
        words = line.split()
        if words[0][0].isdigit():
            now = float(words[0])
        elif words[0] in ("SFIX", "SSACC", "SBLINK"):
            assert float(words[2]) == max(now + 4, 5000)
            begun.add(words[0][1:] + words[1])
        elif words[0] in ("EFIX", "ESACC", "EBLINK"):
            assert float(words[3]) == now
            begun.remove(words[0][1:] + words[1])
    assert not begun
    ending = next(line.split() for line in lines if line.startswith("ESACC R"))
    assert ending[1:5] == ["R", "5080", "5108", "32"]
    start_end = make_set(EYES["binocular"])[0].gaze_px["right"][:, [20, 27]].T.ravel()
    np.testing.assert_allclose([float(cell) for cell in ending[5:9]], start_end, rtol=1e-6)
    assert ending[9:] == ["4.25", "280"]  # amplitude and peak velocity


@pytest.mark.parametrize("format", ["asc", "columns"])
def test_trials_that_start_at_zero_are_laid_one_after_another(format: str, tmp_path: Path) -> None:
    first = make_recording(time_ms=4.0 * np.arange(200))
    second = replace(first, trial="1")
    write_recordings([first, second], tmp_path / "out", format)
    back = list(readers.read_recordings([tmp_path / "out"]))
    assert len(back) == 2
    assert back[1].time_ms[0] == back[0].time_ms[-1] + 1000
    np.testing.assert_array_equal(np.diff(back[1].time_ms), 4.0)


def test_asc_refuses_times_finer_than_its_clock(tmp_path: Path) -> None:
    fine = make_recording(rate_hz=4000.0, time_ms=np.arange(200) * 0.25)
    with pytest.raises(GazeError, match="half milliseconds"):
        write_recordings([fine], tmp_path / "out", "asc")


def validate(folder: Path) -> dict[str, Any]:
    """The BIDS validator's issues by severity."""
    command = shutil.which("bids-validator-deno", path=str(Path(sys.executable).parent))
    if command is None:
        pytest.skip("the bids-validator-deno command is not installed")
    done = subprocess.run(
        [command, "--format", "json", "--max-rows", "-1", str(folder)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    issues = json.loads(done.stdout)["issues"]["issues"]
    found: dict[str, Any] = {"error": [], "warning": []}
    for issue in issues:
        found[issue["severity"]].append((issue["code"], issue.get("subCode"), issue["location"]))
    return found


@pytest.mark.parametrize("content", ["monocular", "binocular", "simulated"])
def test_bids_dataset_is_valid(content: str, tmp_path: Path) -> None:
    if content == "simulated":
        write_simulation(replace(SIMULATED, n_participants=1), tmp_path / "out", "bids")
    else:
        write_into(tmp_path / "out", labelled(CONTENTS[content]()), "bids")
    issues = validate(tmp_path / "out")
    assert issues["error"] == []
    assert {code for code, _, _ in issues["warning"]} <= {
        "JSON_KEY_RECOMMENDED",
        "SIDECAR_KEY_RECOMMENDED",
        "NO_AUTHORS",
        "TOO_FEW_AUTHORS",
    }
    for sidecar in (tmp_path / "out").rglob("*_events.json"):
        sidecar.write_text("{}")  # the validator sees that the screen is missing
    assert "INCOMPLETE_STIMULUS_PRESENTATION" in str(validate(tmp_path / "out")["error"])


def test_bids_gaze_is_a_headerless_table_with_na_for_lost_samples(tmp_path: Path) -> None:
    write_recordings([make_recording(EYES["binocular"])], tmp_path / "out", "bids")
    beh = tmp_path / "out" / "sub-01" / "beh"
    path = beh / "sub-01_task-viewing_run-0_recording-eye2_physio.tsv.gz"
    assert path.read_bytes()[3:8] == b"\x00" * 5  # no file name, no time
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    assert len(lines) == 200
    assert lines[50] == "5200.0\tn/a\tn/a"
    side = json.loads(path.with_name(path.name.replace("tsv.gz", "json")).read_text())
    assert side["RecordedEye"] == "right"
    assert side["SamplingFrequency"] == 250.0


def test_bids_needs_the_screen_in_centimetres(tmp_path: Path) -> None:
    with pytest.raises(GazeError, match="give `screen` with its size"):
        write_recordings([make_recording(screen=Screen(1280, 720))], tmp_path / "out", "bids")
    assert list(tmp_path.iterdir()) == []


def test_csv_has_empty_cells_and_a_sidecar(tmp_path: Path) -> None:
    written = write_recordings([make_recording()], tmp_path / "out", "csv")
    assert [path.name for path in written] == ["recordings.csv", "recordings.json"]
    lines = written[0].read_text().splitlines()
    assert lines[0] == "participant,task,trial,t_ms,x_px,y_px,is_blink"
    assert lines[51] == "01,viewing,0,5200.0,,,1"
    assert len(lines) == 201
    assert json.loads(written[1].read_text()) == {**SCREEN.to_bids(), "SamplingFrequency": 250.0}


def test_parquet_of_many_pieces_is_one_file_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gazediffusion.data.writers.tables._PIECE_SAMPLES", 300)
    recordings = make_set(EYES["binocular"])
    written = write_recordings(iter(recordings), tmp_path / "out", "parquet")
    assert [path.name for path in written] == ["recordings.json", "recordings.parquet"]
    frame = pl.read_parquet(written[1])
    write_recordings([make_recording(is_blink={})], tmp_path / "without", "parquet")
    without = pl.read_parquet(tmp_path / "without" / "recordings.parquet")
    assert without.columns == ["participant", "task", "trial", "t_ms", "x_px", "y_px"]
    assert frame.columns[:4] == ["participant", "task", "trial", "t_ms"]
    assert frame["is_blink_left"].dtype == pl.Boolean
    np.testing.assert_array_equal(
        frame["x_right_px"].to_numpy(),
        np.concatenate([recording.gaze_px["right"][0] for recording in recordings]),
    )


@pytest.mark.parametrize(
    "other",
    [
        make_recording(EYES["binocular"], trial="1"),
        make_recording(trial="1", screen=Screen(1920, 1080)),
        make_recording(trial="1", rate_hz=500.0),
        make_recording(trial="1", is_blink={}),
    ],
    ids=["eyes", "screen", "rate", "labels"],
)
def test_one_table_does_not_mix_recordings_of_different_kinds(
    other: Recording, tmp_path: Path
) -> None:
    with pytest.raises(GazeError, match="one table cannot hold both"):
        write_recordings([make_recording(), other], tmp_path / "out", "csv")


@pytest.mark.parametrize(
    ("eyes", "n_columns"), [(EYES["monocular"], 7), (EYES["binocular"], 10)], ids=EYES.keys()
)
def test_columns_carry_categories(eyes: tuple[Eye, ...], n_columns: int, tmp_path: Path) -> None:
    write_into(tmp_path / "out", labelled([make_recording(eyes)]), "columns")
    path = tmp_path / "out" / "extracted_viewing" / "participant_01.txt"
    rows = [line.split(" ") for line in path.read_text().splitlines()]
    assert {len(row) for row in rows} == {n_columns}
    categories = np.array([row[-1] for row in rows])
    expected = np.full(200, "1")
    expected[20:28] = "2"
    expected[50:80] = "0"
    np.testing.assert_array_equal(categories, expected)
    np.testing.assert_array_equal([row[-2] for row in rows], expected)
    assert rows[50][:4] == ["5200", ".", ".", "0.0"]


@pytest.mark.parametrize("format", ["asc", "bids", "columns"])
def test_participants_who_would_share_a_file_are_refused(format: str, tmp_path: Path) -> None:
    recordings = [make_recording(participant=name) for name in ("a1", "b", "a-1")]
    with pytest.raises(GazeError, match="comes twice"):
        write_recordings(recordings, tmp_path / "out", format)


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_a_failure_midway_leaves_nothing_behind(format: str, tmp_path: Path) -> None:
    def breaking() -> Iterator[Recording]:
        yield make_recording()
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="broke"):
        write_recordings(breaking(), tmp_path / "out", format)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_what_cannot_be_written_is_refused(format: str, tmp_path: Path) -> None:
    with pytest.raises(GazeError, match="no recordings"):
        write_recordings([], tmp_path / "out", format)
    with pytest.raises(GazeError, match="without samples"):
        write_recordings([make_recording().part(0, 0)], tmp_path / "out", format)
    backwards = make_recording()
    backwards = replace(backwards, time_ms=backwards.time_ms[::-1])
    with pytest.raises(GazeError, match="backwards"):
        write_recordings([backwards], tmp_path / "out", format)
    with pytest.raises(GazeError, match="left and right"):
        write_recordings([make_recording(("left", "cyclopean"))], tmp_path / "out", format)
    with pytest.raises(GazeError, match="did you mean 'columns'"):
        write_recordings([make_recording()], tmp_path / "out", "column")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", ["asc", "bids", "csv", "parquet"])
def test_an_unstated_rate_is_taken_from_the_clock(format: str, tmp_path: Path) -> None:
    write_recordings([make_recording(rate_hz=None)], tmp_path / "out", format)
    if format in ("asc", "bids"):
        (back,) = readers.read_recordings([tmp_path / "out"])
        assert back.rate_hz == 250.0
    else:
        fields = json.loads((tmp_path / "out" / "recordings.json").read_text())
        assert fields["SamplingFrequency"] == 250.0


def test_importing_export_and_simulate_needs_only_numpy() -> None:
    code = (
        "import sys, gazediffusion.data.simulation;"
        "heavy = {'polars', 'scipy', 'pymovements', 'matplotlib', 'pandas'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
