"""A damaged file of any format is read, or refused with one line."""

from __future__ import annotations

import contextlib
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gazediffusion.data.readers import ReadOptions, pymovements
from gazediffusion.errors import GazeError
from tests.data.readers.files import (
    FILES,
    GAZEBASE,
    PHYSIO,
    PHYSIO_ROWS,
    SCREEN,
    beside,
    bids_eye,
    damage,
    edits,
    fuzz,
    long_frame,
    matched,
    read,
    write,
)

Edits = list[tuple[float, str, bytes]]


def read_or_refuse(path: Path, format: str) -> None:
    with contextlib.suppress(GazeError):
        matched(path, format)
        found = read(path, format, screen=SCREEN, override_screen=True)
        assert found
        assert all(np.all(np.diff(recording.time_ms) >= 0) for recording in found)


@pytest.mark.parametrize("case", FILES)
@fuzz
@given(edits)
def test_damaged_files(tmp_path: Path, case: str, changes: Edits) -> None:
    name, content, format = FILES[case]
    content = content.encode() if isinstance(content, str) else content
    read_or_refuse(write(tmp_path, damage(content, changes), name), format)


@pytest.mark.parametrize("damaged", ["samples", "gzip", "sidecar"])
@fuzz
@given(edits)
def test_damaged_bids(tmp_path: Path, damaged: str, changes: Edits) -> None:
    path = bids_eye(tmp_path)
    if damaged == "samples":
        path.write_bytes(gzip.compress(damage(PHYSIO_ROWS.encode(), changes)))
    else:
        which = path if damaged == "gzip" else beside(path)
        which.write_bytes(damage(which.read_bytes(), changes))
    read_or_refuse(path, "bids")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["Units", "a"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@fuzz
@given(st.sampled_from([*PHYSIO, "timestamp", "StimulusPresentation"]), json_values)
def test_any_field_of_a_sidecar_may_hold_anything(tmp_path: Path, name: str, value: object) -> None:
    fields: dict[str, Any] = {name: value}
    path = bids_eye(tmp_path, **fields)
    events = tmp_path / "task-read_events.json"
    events.write_text(json.dumps({**SCREEN.to_bids(), name: value, "ScreenSize": value}))
    read_or_refuse(path, "bids")


@fuzz
@given(st.integers(0, 11), st.integers(0, 5), st.text(max_size=8))
def test_any_cell_may_hold_anything(tmp_path: Path, row: int, column: int, cell: str) -> None:
    rows = [[str(value) for value in values] for values in long_frame().rows()]
    rows[row][column] = cell
    text = "\n".join(",".join(line) for line in [long_frame().columns, *rows])
    read_or_refuse(write(tmp_path, text.encode(errors="replace")), "table")


@fuzz
@given(edits)
def test_damaged_files_of_a_dataset(tmp_path: Path, changes: Edits) -> None:
    folder = tmp_path / "GazeBase" / "raw" / "Round_1" / "Subject_1001" / "S1"
    folder.mkdir(parents=True, exist_ok=True)
    path = write(folder, GAZEBASE, "S_1001_S1_TEX.csv")
    ((_, reader),) = pymovements.find("GazeBase", ReadOptions(data_dir=tmp_path))
    path.write_bytes(damage(GAZEBASE.encode(), changes))
    with contextlib.suppress(GazeError):
        list(reader.read(path, ReadOptions()))
