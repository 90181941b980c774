from __future__ import annotations

from pathlib import Path

import pytest

from gazediffusion.data.inspection import inspect
from gazediffusion.data.preparing import prepare
from gazediffusion.data.readers import find_sources
from gazediffusion.data.reading import Recordings, read
from gazediffusion.data.simulation import write_simulation
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from gazediffusion.settings import PrepareConfig, SimulationConfig


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reading") / "study"
    config = SimulationConfig(n_participants=3, minutes=0.4, rate_hz=250, trial_seconds=12)
    write_simulation(config, folder, "asc")
    return folder


def test_recordings_are_read_again_each_time_they_are_iterated(study: Path) -> None:
    recordings = read(study)
    assert repr(recordings) == "Recordings(3 files: eyelink-asc)"
    assert [one.participant for one in recordings] == ["01", "01", "02", "02", "03", "03"]
    assert len(list(recordings)) == 6


def test_nothing_is_read_before_it_is_iterated(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t_ms,x_px,y_px\n0,1,2\n4,1,2\n")
    recordings = read(path)
    path.write_text("t_ms,x_px,y_px\n0,5,6\n4,5,6\n8,5,6\n")
    (recording,) = recordings
    assert len(recording) == 3


def test_arguments_reach_the_readers(tmp_path: Path) -> None:
    path = tmp_path / "who7.csv"
    path.write_text("when_ms,across,down\n0,1,2\n4,1,2\n")
    columns = {"t": "when_ms", "x": "across", "y": "down"}
    pattern, screen = r"who(?P<participant>\d)", Screen(800, 600)
    (recording,) = read(
        [path], columns=columns, participant_pattern=pattern, screen=screen, input_format="table"
    )
    assert (recording.participant, recording.screen) == ("7", screen)
    with pytest.raises(GazeError, match="no format 'edf'"):
        read(path, input_format="edf")


def test_prepare_and_inspect_take_recordings_or_sources(study: Path) -> None:
    config = PrepareConfig(seconds=2.0)
    recordings, sources = read(study), find_sources([study])
    assert isinstance(recordings, Recordings)
    windows, same = prepare(recordings, config), prepare(sources, config)
    assert windows.provenance == same.provenance
    assert (windows.gaze == same.gaze).all()
    assert len(windows.provenance["sources"]) == 3
    assert inspect(recordings, config) == inspect(sources, config)
