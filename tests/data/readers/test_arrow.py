from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from pyarrow import feather

from gazediffusion.data.readers import tables
from gazediffusion.data.reading import read
from gazediffusion.data.recordings import Eye, Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen

from .test_table import damage, edits

SCREEN = Screen(1280, 720, 40.0, 22.5, 45.0)
FRAME = pl.DataFrame(
    {
        "participant": ["p1"] * 3 + ["p2"] * 3,
        "t_ms": [0, 4, 8] * 2,
        "x_px": [1.0, None, 3.0, 4.0, 5.0, 6.0],
        "y_px": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    }
)


def write_polars(frame: pl.DataFrame, path: Path) -> None:
    frame.write_ipc(path, compression="zstd")


def write_stream(frame: pl.DataFrame, path: Path) -> None:
    frame.write_ipc_stream(path)


def write_pyarrow(frame: pl.DataFrame, path: Path) -> None:
    feather.write_feather(frame.to_arrow(), path, compression="lz4", chunksize=4)


WRITERS = {".feather": write_pyarrow, ".arrow": write_stream, ".ipc": write_polars}


@pytest.mark.parametrize("ending", WRITERS)
def test_arrow_files_are_read_as_parquet_is(tmp_path: Path, ending: str) -> None:
    FRAME.write_parquet(tmp_path / "a.parquet")
    WRITERS[ending](FRAME, tmp_path / f"a{ending}")
    found = list(read(tmp_path / f"a{ending}"))
    assert [one.participant for one in found] == ["p1", "p2"]
    for one, other in zip(found, read(tmp_path / "a.parquet"), strict=True):
        np.testing.assert_array_equal(one.time_ms, other.time_ms)
        np.testing.assert_array_equal(one.gaze_px["cyclopean"], other.gaze_px["cyclopean"])
    assert np.isnan(found[0].gaze_px["cyclopean"][:, 1]).all()


def nested(name: str, n_axes: int) -> pl.DataFrame:
    """Four samples, 1 ms apart, the third lost; axis k of sample n is 10 n + k."""
    lists = [[10.0 * n + axis for axis in range(n_axes)] for n in range(4)]
    return pl.DataFrame({"time": range(4), name: [*lists[:2], None, lists[3]]})


def read_one(path: Path, screen: Screen | None = SCREEN) -> Recording:
    (recording,) = read(path, screen=screen)
    return recording


@pytest.mark.parametrize("ending", [*WRITERS, ".parquet"])
@pytest.mark.parametrize(
    ("n_axes", "eyes"),
    [(2, {"cyclopean": 0}), (4, {"left": 0, "right": 2}), (6, {"left": 0, "right": 2})],
)
def test_lists_of_coordinates_are_eyes(
    tmp_path: Path, ending: str, n_axes: int, eyes: dict[Eye, int]
) -> None:
    path = tmp_path / f"a{ending}"
    write = WRITERS.get(ending, pl.DataFrame.write_parquet)
    write(nested("pixel", n_axes), path)
    recording = read_one(path)
    assert set(recording.gaze_px) == set(eyes)
    np.testing.assert_array_equal(recording.time_ms, [0, 1, 2, 3])
    for eye, first in eyes.items():
        expected = [[first, 10 + first, np.nan, 30 + first]]
        expected.append([value + 1 for value in expected[0]])
        np.testing.assert_array_equal(recording.gaze_px[eye], expected)
    assert recording.facts["unit"].value == "px"


def test_positions_in_lists_are_degrees(tmp_path: Path) -> None:
    frame = nested("position", 2).with_columns(pl.col("position").list.eval(pl.element() / 10))
    frame.write_ipc(tmp_path / "a.feather")
    recording = read_one(tmp_path / "a.feather")
    expected = SCREEN.from_degrees(np.array([[0.0, 1.0, np.nan, 3.0], [0.1, 1.1, np.nan, 3.1]]))
    np.testing.assert_allclose(recording.gaze_px["cyclopean"], expected, rtol=1e-5)
    assert (recording.facts["unit"].value, recording.facts["origin"].value) == ("deg", "center")


def test_a_wide_arrow_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_MAX_COLUMNS", 3)
    FRAME.write_ipc(tmp_path / "a.feather")
    with pytest.raises(GazeError, match="4 columns; a table may have 3"):
        list(read(tmp_path / "a.feather"))


@pytest.mark.parametrize("ending", WRITERS)
@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(edits)
def test_damaged_arrow_is_read_or_refused(
    tmp_path: Path, ending: str, changes: list[tuple[float, str, bytes]]
) -> None:
    whole, path = tmp_path / f"whole{ending}", tmp_path / f"damaged{ending}"
    frame = FRAME.with_columns(pl.col("participant").cast(pl.Categorical).alias("task"))
    WRITERS[ending](frame, whole)
    path.write_bytes(damage(whole.read_bytes(), changes))
    with contextlib.suppress(GazeError):
        list(read(path, screen=SCREEN))
