from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gazediffusion.data.inspection import inspect
from gazediffusion.data.preparing import Quality, prepare, select_participants
from gazediffusion.data.readers import Source
from gazediffusion.data.recordings import Eye, Recording
from gazediffusion.errors import GazeError
from gazediffusion.settings import PrepareConfig
from tests.conftest import MakeRecording, wandering_gaze
from tests.data.test_preparing import source_file, sources

__all__ = ["source_file"]


def recording_of(
    make: MakeRecording, name: str, lost: float, error: float | None, n: int = 2500
) -> Recording:
    """A recording whose last samples are lost, of a stated calibration error."""
    gaze = wandering_gaze(n)
    gaze[:, n - round(n * lost) :] = np.nan
    stated: dict[Eye, float] = {} if error is None else {"right": error, "left": 9.0}
    return replace(make(participant=name, gaze=gaze), calibration_error_deg=stated)


@pytest.fixture
def study(make_recording: MakeRecording, source_file: Path) -> list[Source]:
    """Five participants: complete, 15 % lost, badly calibrated, both, and one of two trials."""
    return sources(
        source_file,
        recording_of(make_recording, "good", 0.0, 0.3),
        recording_of(make_recording, "lossy", 0.15, 0.3),
        recording_of(make_recording, "off", 0.0, 0.8),
        recording_of(make_recording, "worst", 0.15, 0.9),
        recording_of(make_recording, "two", 0.0, 0.2),
        replace(recording_of(make_recording, "two", 0.15, 0.5), trial="1"),
    )


def test_completeness_and_calibration_error_are_means_over_a_participants_samples(
    study: list[Source],
) -> None:
    (found,) = inspect(study)
    quality = found.quality
    assert quality["good"].completeness == 1
    # 375 of 2,500 samples lost, and the 15 before them are padding.
    assert quality["lossy"].completeness == pytest.approx(1 - 390 / 2500)
    assert quality["two"].completeness == pytest.approx(1 - 195 / 2500)
    assert quality["two"].calibration_error_deg == pytest.approx(0.35)
    assert quality["off"].calibration_error_deg == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("limits", "excluded"),
    [
        ({}, {}),
        ({"min_valid": 0.9}, {
            "lossy": "84.4 % of the samples valid", "worst": "84.4 % of the samples valid"}),
        ({"max_calibration_error_deg": 0.5}, {
            "off": "calibration error 0.80 deg", "worst": "calibration error 0.90 deg"}),
        ({"min_valid": 0.9, "max_calibration_error_deg": 0.5}, {
            "lossy": "84.4 % of the samples valid",
            "off": "calibration error 0.80 deg",
            "worst": "84.4 % of the samples valid, calibration error 0.90 deg"}),
    ],
)  # fmt: skip
def test_participants_are_excluded_by_data_quality_and_the_file_says_so(
    study: list[Source], limits: dict[str, float], excluded: dict[str, str]
) -> None:
    windows = prepare(study, PrepareConfig(**limits))  # type: ignore[arg-type]
    everyone = {"good", "lossy", "off", "worst", "two"}
    assert set(windows.participants) == everyone - set(excluded)
    assert windows.provenance["participants_excluded"] == excluded
    assert windows.provenance["participants_without_windows"] == []
    for name, limit in limits.items():
        assert windows.provenance["config"][name] == limit


def test_a_participant_of_unknown_calibration_is_kept_with_a_warning(
    make_recording: MakeRecording, source_file: Path
) -> None:
    given = sources(
        source_file,
        recording_of(make_recording, "known", 0.0, 0.3),
        recording_of(make_recording, "silent", 0.0, None),
    )
    windows = prepare(given, PrepareConfig(max_calibration_error_deg=0.5))
    assert windows.participants == ("known", "silent")
    said = "kept, though no recording states their calibration error: silent"
    assert said in windows.provenance["warnings"]
    assert said not in prepare(given).provenance["warnings"]


def test_a_limit_of_calibration_that_no_file_states_is_refused(
    make_recording: MakeRecording, source_file: Path
) -> None:
    silent = recording_of(make_recording, "silent", 0.0, None)
    with pytest.raises(GazeError, match="no recording states its calibration error"):
        prepare(sources(source_file, silent), PrepareConfig(max_calibration_error_deg=0.5))


def test_limits_that_exclude_everyone_are_refused_with_the_reasons(study: list[Source]) -> None:
    config = PrepareConfig(min_valid=1.0, max_calibration_error_deg=0.1)
    said = r"every participant is excluded: good calibration error 0\.30 deg; .* \.\.\."
    with pytest.raises(GazeError, match=said):
        prepare(study, config)


def test_a_share_just_below_the_limit_does_not_read_as_the_limit() -> None:
    quality = {"a": Quality(n_valid=89_999, n_samples=100_000), "b": Quality(1, 1)}
    assert select_participants(quality, 0.9, None).excluded == {"a": "89.9 % of the samples valid"}


@pytest.mark.parametrize(
    ("settings", "option"),
    [({"min_valid": 1.5}, "min_valid"), ({"max_calibration_error_deg": 0}, "max_calibration")],
)
def test_impossible_limits_name_their_option(settings: dict[str, float], option: str) -> None:
    with pytest.raises(GazeError, match=option):
        PrepareConfig(**settings)  # type: ignore[arg-type]
