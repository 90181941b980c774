from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazediffusion.data.readers import Reader, find_sources, pymovements
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.data.readers.files import GAZEBASE, assert_found

GAZEBASE_SCREEN = Screen(1680, 1050, 47.4, 29.7, 55)


def gazebase_file(data_dir: Path, name: str = "S_1001_S1_TEX.csv", text: str = GAZEBASE) -> Path:
    path = data_dir / "GazeBase" / "raw" / "Round_1" / "Subject_1001" / "S1" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def read_named(name: str, options: ReadOptions) -> list[Recording]:
    found: list[Recording] = []
    for source in find_sources([f"pymovements:{name}"], options):
        found.extend(source.read())
    return found


def test_gazebase_files_are_read_by_their_names_in_pixels_of_the_datasets_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = gazebase_file(tmp_path / "gazediffusion")
    gazebase_file(tmp_path / "gazediffusion", "S_1001_S2_FIX.csv")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # where datasets are kept
    first, second = read_named("GazeBase", ReadOptions())
    expected = GAZEBASE_SCREEN.from_degrees(np.array([[0.0, 5.0], [0.0, 2.5]]))
    np.testing.assert_allclose(first.gaze_px["right"][:, :2], expected, rtol=1e-6)
    assert np.isnan(first.gaze_px["right"][:, 3]).all()
    where = {"screen": GAZEBASE_SCREEN, "rate_hz": 1000, "format": "pymovements:GazeBase"}
    assert_found(first, who=("1", "TEX", "1-1"), ms=range(5), **where)
    assert_found(second, who=("1", "FIX", "1-2"))
    reader: Reader = find_sources(["pymovements:GazeBase"])[0].reader
    assert reader.matches(path, b"", ReadOptions())
    assert not reader.matches(tmp_path / "other.csv", b"", ReadOptions())


def test_unknown_dataset_is_corrected() -> None:
    with pytest.raises(GazeError, match=r"'GazeBas'.*did you mean 'GazeBase'"):
        pymovements.find("GazeBas", ReadOptions())


def test_a_dataset_without_samples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GazeError, match="no gaze samples"):
        pymovements.find("MECOL1W1", ReadOptions(data_dir=tmp_path))


def zipped(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder and the address under which a local web server offers it."""
    folder = tmp_path / "served"
    folder.mkdir()
    web = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(folder)))
    thread = threading.Thread(target=web.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{web.server_port}"
    web.shutdown()
    thread.join()
    web.server_close()


def register(
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    md5: str | None = None,
    origin: str = "upper left",
    **load_kwargs: Any,
) -> None:
    """Add a dataset `Local` of binocular csv files to pymovements' registry."""
    import pymovements as pm
    from pymovements.dataset.resources import ResourceDefinition
    from pymovements.dataset.websource import WebSource

    pixel_columns = ["lx", "ly", "rx", "ry"]
    resource = ResourceDefinition(
        content="gaze",
        source=WebSource(url=url, filename="local.zip", md5=md5),
        filename_pattern="{subject_id:s}_{task:s}.csv",
        load_kwargs={
            "time_column": "t",
            "time_unit": "ms",
            "pixel_columns": pixel_columns,
            **load_kwargs,
        },
    )
    experiment = pm.Experiment(
        screen_width_px=101, screen_height_px=51, origin=origin, sampling_rate=500
    )
    definition = pm.DatasetDefinition(name="Local", resources=[resource], experiment=experiment)
    monkeypatch.setitem(pm.DatasetLibrary.definitions, "Local", definition)


BINOCULAR = "t,lx,ly,rx,ry,page\n0,1,2,3,4,1\n2,5,6,7,8,1\n0,1,2,3,4,2\n2,5,6,7,8,2\n"


def test_a_dataset_is_downloaded_once_and_split_by_its_trials(
    tmp_path: Path,
    server: tuple[Path, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, address = server
    archive = zipped({"anna_search.csv": BINOCULAR, "bert_read.csv": BINOCULAR})
    (folder / "local.zip").write_bytes(archive)
    md5 = hashlib.md5(archive).hexdigest()
    register(monkeypatch, f"{address}/local.zip", md5, trial_columns=["page"])
    options = ReadOptions(data_dir=tmp_path / "data")
    found = read_named("Local", options)
    assert [(r.participant, r.task, r.trial) for r in found] == [
        ("anna", "search", "1"),
        ("anna", "search", "2"),
        ("bert", "read", "1"),
        ("bert", "read", "2"),
    ]
    np.testing.assert_array_equal(found[0].gaze_px["left"], [[1, 5], [2, 6]])
    np.testing.assert_array_equal(found[0].gaze_px["right"], [[3, 7], [4, 8]])
    assert capsys.readouterr().out == ""
    (folder / "local.zip").unlink()
    assert len(read_named("Local", options)) == 4


@pytest.mark.parametrize(
    ("origin", "first"), [("upper left", [1, 2]), ("center", [51, 27]), ("lower left", [1, 48])]
)
def test_pixels_are_counted_from_the_top_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: str, first: list[float]
) -> None:
    register(monkeypatch, "http://127.0.0.1:9/none", origin=origin, trial_columns=["page"])
    raw = tmp_path / "Local" / "raw"
    raw.mkdir(parents=True)
    (raw / "anna_search.csv").write_text(BINOCULAR)
    recording = read_named("Local", ReadOptions(data_dir=tmp_path))[0]
    np.testing.assert_array_equal(recording.gaze_px["left"][:, 0], first)


def test_trials_that_are_not_named_apart_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch, "http://127.0.0.1:9/none")
    raw = tmp_path / "Local" / "raw"
    raw.mkdir(parents=True)
    (raw / "anna_search.csv").write_text(BINOCULAR)
    with pytest.raises(GazeError, match="time runs backwards"):
        read_named("Local", ReadOptions(data_dir=tmp_path))


@pytest.mark.parametrize("served", [None, b"no archive at all", zipped({"a_b.csv": "x"})[:-9]])
def test_a_failed_download_is_one_line_and_is_tried_again(
    tmp_path: Path,
    server: tuple[Path, str],
    monkeypatch: pytest.MonkeyPatch,
    served: bytes | None,
) -> None:
    folder, address = server
    archive = zipped({"anna_search.csv": BINOCULAR})
    md5 = hashlib.md5(archive).hexdigest()
    if served is not None:
        (folder / "local.zip").write_bytes(served)
    register(monkeypatch, f"{address}/local.zip", md5, trial_columns=["page"])
    options = ReadOptions(data_dir=tmp_path / "data")
    with pytest.raises(GazeError, match="the download failed") as raised:
        read_named("Local", options)
    assert "\n" not in str(raised.value)
    (folder / "local.zip").write_bytes(archive)
    assert len(read_named("Local", options)) == 2


def test_an_interrupted_download_is_completed(
    tmp_path: Path, server: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, address = server
    (folder / "local.zip").write_bytes(
        zipped({"anna_search.csv": BINOCULAR, "bert_read.csv": BINOCULAR})
    )
    register(monkeypatch, f"{address}/local.zip", trial_columns=["page"])
    data = tmp_path / "Local"
    (data / "raw").mkdir(parents=True)
    (data / "raw" / "anna_search.csv").write_text(BINOCULAR)
    (data / ".download-unfinished").touch()
    found = read_named("Local", ReadOptions(data_dir=tmp_path))
    assert {recording.participant for recording in found} == {"anna", "bert"}
    assert not (data / ".download-unfinished").exists()
