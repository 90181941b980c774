from __future__ import annotations

import csv
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gazediffusion.data.events import Event
from gazediffusion.data.simulation import Simulated, draw_participant, simulate, write_simulation
from gazediffusion.data.writers import FORMATS
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from gazediffusion.settings import SimulationConfig

CONFIG = SimulationConfig(n_participants=8, minutes=1.0, trial_seconds=20.0, seed=7)


@pytest.fixture(scope="module")
def trials() -> list[Simulated]:
    return list(simulate(CONFIG))


def events_of(trials: list[Simulated], kind: str) -> list[tuple[Simulated, Event]]:
    return [(trial, event) for trial in trials for event in trial.events if event.event == kind]


def speed_deg_s(trial: Simulated, eye: Any = "left") -> NDArray[np.float64]:
    """Speed after a light smoothing, on the tracker's pixels."""
    recording = trial.recording
    degrees = CONFIG.screen.to_degrees(recording.gaze_px[eye].astype(np.float64))
    velocity = np.gradient(degrees, 1.0 / CONFIG.rate_hz, axis=1)
    kernel = np.ones(3) / 3
    smooth = np.stack([np.convolve(axis, kernel, mode="same") for axis in velocity])
    return np.asarray(np.hypot(*smooth))


def test_true_peak_velocities_lie_on_the_participants_main_sequence(
    trials: list[Simulated],
) -> None:
    ratios = [
        event.peak_velocity_deg_s
        / (
            trial.participant.max_velocity_deg_s
            * (1 - np.exp(-event.amplitude_deg / trial.participant.velocity_scale_deg))
        )
        for trial, event in events_of(trials, "saccade")
    ]
    assert np.median(ratios) == pytest.approx(1.0, abs=0.02)
    assert np.std(np.log(ratios)) < 0.1


def test_peak_velocity_measured_on_samples_is_the_true_one(trials: list[Simulated]) -> None:
    ratios, amplitude_errors = [], []
    for trial, event in events_of(trials, "saccade"):
        span = event.samples(trial.recording.time_ms)
        measured = speed_deg_s(trial)[span]
        if event.amplitude_deg < 3 or np.isnan(measured).any():
            continue
        ratios.append(measured.max() / event.peak_velocity_deg_s)
        degrees = CONFIG.screen.to_degrees(trial.recording.gaze_px["left"].astype(np.float64))
        way = degrees[:, span.stop] - degrees[:, span.start]
        amplitude_errors.append(np.hypot(*way) - event.amplitude_deg)
    assert len(ratios) > 500
    assert np.median(ratios) == pytest.approx(1.0, abs=0.03)
    assert np.percentile(np.abs(np.array(ratios) - 1), 95) < 0.08
    assert np.percentile(np.abs(amplitude_errors), 95) < 0.12


def test_saccade_durations_grow_by_about_two_milliseconds_per_degree(
    trials: list[Simulated],
) -> None:
    saccades = [event for _, event in events_of(trials, "saccade")]
    amplitude = np.array([event.amplitude_deg for event in saccades])
    duration = np.array([event.offset_ms - event.onset_ms for event in saccades])
    slope, base = np.polyfit(amplitude, duration, 1)
    assert slope == pytest.approx(2.3, abs=0.4)
    assert base == pytest.approx(21.0, abs=3.0)


def test_large_saccades_peak_before_half_time(trials: list[Simulated]) -> None:
    places = []
    for trial, event in events_of(trials, "saccade"):
        measured = speed_deg_s(trial)[event.samples(trial.recording.time_ms)]
        if event.amplitude_deg > 12 and not np.isnan(measured).any():
            places.append(measured.argmax() / len(measured))
    assert 0.3 < np.median(places) < 0.47


def test_fixation_durations_are_those_of_adults_viewing_scenes(trials: list[Simulated]) -> None:
    durations = np.array([e.offset_ms - e.onset_ms for _, e in events_of(trials, "fixation")])
    low, median, high = np.percentile(durations, [10, 50, 90])
    assert 210 < median < 290
    assert 110 < low < 180
    assert 330 < high < 550
    assert np.mean(durations) > median  # skewed to the right


def test_saccades_have_a_median_of_four_to_five_degrees_and_are_mostly_horizontal(
    trials: list[Simulated],
) -> None:
    amplitude = [event.amplitude_deg for _, event in events_of(trials, "saccade")]
    assert 3.5 < np.median(amplitude) < 5.5
    assert min(amplitude) > 1.0
    is_horizontal = []
    for trial, event in events_of(trials, "saccade"):
        span = event.samples(trial.recording.time_ms)
        x, y = np.abs(np.diff(trial.recording.gaze_px["left"][:, [span.start, span.stop]]))[:, 0]
        is_horizontal.append(x > y)
    assert 0.55 < np.mean(is_horizontal) < 0.85


def test_microsaccades_are_small_and_lie_in_fixations(trials: list[Simulated]) -> None:
    micro = events_of(trials, "microsaccade")
    assert len(micro) > 50
    for trial, event in micro:
        assert event.amplitude_deg < 1.0
        assert any(
            fixation.onset_ms < event.onset_ms and event.offset_ms < fixation.offset_ms
            for fixation in trial.events
            if fixation.event == "fixation"
        )


def test_events_leave_only_lid_movements_unaccounted_for(trials: list[Simulated]) -> None:
    for trial in trials:
        flow = [e for e in trial.events if e.event in ("fixation", "saccade", "blink")]
        assert flow[0].onset_ms == trial.recording.time_ms[0]
        for before, after in pairwise(flow):
            lid_ms = 40.0 if "blink" in (before.event, after.event) else 0.0
            assert after.onset_ms - before.offset_ms == pytest.approx(lid_ms)


def test_lost_samples_are_exactly_the_true_blinks_and_losses(trials: list[Simulated]) -> None:
    for trial in trials:
        recording = trial.recording
        for eye, gaze in recording.gaze_px.items():
            blink = np.zeros(len(recording), dtype=bool)
            loss = np.zeros(len(recording), dtype=bool)
            for event in trial.events:
                if event.eye in ("both", eye):
                    blink[event.samples(recording.time_ms)] |= event.event == "blink"
                    loss[event.samples(recording.time_ms)] |= event.event == "loss"
            np.testing.assert_array_equal(recording.is_blink[eye], blink)
            np.testing.assert_array_equal(np.isnan(gaze), np.stack([blink | loss] * 2))
    assert len(events_of(trials, "blink")) > 20
    assert {event.eye for _, event in events_of(trials, "loss")} == {"left", "right", "both"}


def test_gaze_dips_by_degrees_where_lids_close_and_open(trials: list[Simulated]) -> None:
    for trial, blink in events_of(trials, "blink"):
        recording = trial.recording
        y_deg = CONFIG.screen.to_degrees(recording.gaze_px["left"])[1]
        span = blink.samples(recording.time_ms)
        for last, calm in ((span.start - 1, span.start - 60), (span.stop, span.stop + 60)):
            if not np.isnan(y_deg[[last, calm]]).any():
                assert 1.0 < y_deg[last] - y_deg[calm] < 9.0


def test_every_sample_lies_on_the_trackers_grid(trials: list[Simulated]) -> None:
    for trial in trials:
        for gaze in trial.recording.gaze_px.values():
            tenths = gaze.astype(np.float64) * 10
            assert np.nanmax(np.abs(tenths - np.round(tenths))) < 1e-3


def test_gaze_stays_on_the_screen_but_for_blinks(trials: list[Simulated]) -> None:
    for trial in trials:
        for event in trial.events:
            if event.event != "fixation":
                continue
            gaze = trial.recording.gaze_px["right"][:, event.samples(trial.recording.time_ms)]
            size = np.array([[CONFIG.screen.width_px], [CONFIG.screen.height_px]])
            assert np.all((gaze > 0) & (gaze < size) | np.isnan(gaze))


def test_gaze_rests_during_fixations(trials: list[Simulated]) -> None:
    speeds = [
        float(np.nanmedian(speed_deg_s(trial)[event.samples(trial.recording.time_ms)]))
        for trial, event in events_of(trials, "fixation")[:200]
    ]
    assert max(speeds) < 20


def test_both_eyes_move_together_but_are_not_the_same(trials: list[Simulated]) -> None:
    left, right = (trials[0].recording.gaze_px[eye] for eye in ("left", "right"))
    seen = ~np.isnan(left[0]) & ~np.isnan(right[0])
    for axis in (0, 1):
        assert 0.98 < np.corrcoef(left[axis, seen], right[axis, seen])[0, 1] < 0.99999


def test_participants_differ() -> None:
    drawn = [draw_participant(np.random.default_rng(seed)) for seed in range(40)]
    medians = [one.fixation_ms for one in drawn]
    assert 15 < np.std(medians) < 60
    assert np.median(medians) == pytest.approx(250, abs=25)


def gaze_bytes(trials: list[Simulated]) -> list[bytes]:
    return [gaze.tobytes() for trial in trials for gaze in trial.recording.gaze_px.values()]


SMALL = SimulationConfig(n_participants=2, minutes=0.1, trial_seconds=3.0, rate_hz=250.0)


def test_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    first = list(simulate(SMALL))
    assert gaze_bytes(first) == gaze_bytes(list(simulate(SMALL)))
    assert [trial.events for trial in first] == [trial.events for trial in simulate(SMALL)]
    assert gaze_bytes(first) != gaze_bytes(list(simulate(replace(SMALL, seed=1))))


def test_a_participant_does_not_depend_on_how_many_follow() -> None:
    many = list(simulate(replace(SMALL, n_participants=4)))
    assert gaze_bytes(list(simulate(SMALL))) == gaze_bytes(many)[: 2 * SMALL.n_trials * 2]


@pytest.mark.parametrize("rate_hz", [60.0, 250.0, 500.0, 2000.0])
def test_recordings_have_the_expected_rate_length_and_names(rate_hz: float) -> None:
    config = replace(SMALL, rate_hz=rate_hz, binocular=False)
    recordings = [trial.recording for trial in simulate(config)]
    assert [(r.participant, r.trial) for r in recordings] == [
        ("01", "0"),
        ("01", "1"),
        ("02", "0"),
        ("02", "1"),
    ]
    for recording in recordings:
        assert len(recording) == 3 * rate_hz
        assert set(recording.gaze_px) == {"right"}
        np.testing.assert_allclose(np.diff(recording.time_ms), 1000 / rate_hz, atol=1e-6)
    assert recordings[1].time_ms[0] - recordings[0].time_ms[-1] > 900


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_participants": 0},
        {"minutes": 0.0},
        {"minutes": float("nan")},
        {"rate_hz": -1.0},
        {"rate_hz": 5000.0},
        {"trial_seconds": 0.2},
        {"grid_px": 0.0},
        {"seed": -1},
        {"screen": Screen(1280, 720)},
        {"screen": Screen(1280, 720, 2.0, 1.0, 60.0)},
    ],
)
def test_impossible_configurations_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(GazeError):
        next(iter(simulate(SimulationConfig(**wrong))))


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_truth_is_written_beside_every_format(format: str, tmp_path: Path) -> None:
    calls: list[tuple[float, float]] = []
    folder = tmp_path / "out"
    written = write_simulation(
        SMALL, folder, format, lambda _, n, total, note: calls.append((n, total))
    )
    truth = folder / ("sourcedata/truth" if format == "bids" else "truth")
    assert {truth / "events.csv", truth / "config.json"} < set(written)
    assert calls == [(1, 2), (2, 2)]
    with open(truth / "events.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    trials = list(simulate(SMALL))
    assert len(rows) == sum(len(trial.events) for trial in trials)
    saccades = [float(row["amplitude_deg"]) for row in rows if row["event"] == "saccade"]
    expected = [event.amplitude_deg for _, event in events_of(trials, "saccade")]
    np.testing.assert_allclose(saccades, expected, atol=1e-3)
    assert {row["participant"] for row in rows} == {"01", "02"}
    assert all(row["amplitude_deg"] == "" for row in rows if row["event"] == "fixation")
    described = json.loads((truth / "config.json").read_text())
    rebuilt = described["config"] | {"screen": Screen(**described["config"]["screen"])}
    assert SimulationConfig(**rebuilt) == SMALL
    assert described["participants"]["02"]["fixation_ms"] == trials[-1].participant.fixation_ms


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_same_seed_gives_the_same_files(format: str, tmp_path: Path) -> None:
    first = write_simulation(SMALL, tmp_path / "first", format)
    second = write_simulation(SMALL, tmp_path / "second", format)
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_an_unknown_format_or_a_full_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GazeError, match="parquet"):
        write_simulation(SMALL, tmp_path / "out", "parket")
    (tmp_path / "kept.txt").write_text("kept")
    with pytest.raises(GazeError, match="not empty"):
        write_simulation(SMALL, tmp_path, "csv")
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]


def test_labels_are_the_true_events_of_samples() -> None:
    config = SimulationConfig(n_participants=2, minutes=0.5, rate_hz=250.0)
    for trial in simulate(config):
        labels, time_ms = trial.labels, trial.recording.time_ms
        assert labels.shape == time_ms.shape
        for event in trial.events:
            inside = labels[(time_ms >= event.onset_ms) & (time_ms < event.offset_ms)]
            if event.event == "saccade":
                assert np.isin(inside, [2, 4]).all()  # a loss may lie within
            if event.event in ("blink", "loss"):
                assert (inside == 4).all()
            if event.event == "microsaccade":
                assert np.isin(inside, [0, 1, 4]).all()
        share = np.bincount(labels, minlength=5) / len(labels)
        assert share[1] > 0.6
        assert share[3] == 0
