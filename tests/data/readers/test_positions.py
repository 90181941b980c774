from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from gazediffusion.data.readers.columns import POSITIONS, meaning
from gazediffusion.data.scanpaths import read_positions, read_scanpaths, read_targets
from gazediffusion.errors import GazeError
from tests.conftest import SCREEN
from tests.data.readers.files import damage, edits, fuzz

TEXT = "id,order,onset_ms,x_px,y_px,duration_ms\n" + "".join(
    f"{name},{k},{500 * k},{10 * k},{5 * k},{300 + k}\n" for name in "ab" for k in range(4)
)


@pytest.mark.parametrize(
    ("name", "word", "unit"),
    [
        ("x_px", "x", "px"),
        ("target_y_deg", "y", "deg"),
        ("CURRENT_FIX_X", "x", None),
        ("t_ms", "onset", "ms"),
        ("fixation_start_s", "onset", "s"),
        ("time", "onset", None),
        ("dur", "duration", None),
        ("fixation_duration_ms", "duration", "ms"),
        ("index", "order", None),
        ("fixation", "order", None),
        ("fixation_id", "order", None),
        ("id", "scanpath", None),
        ("scanpath_id", "scanpath", None),
        ("subject", "participant", None),
        ("trial_index", "trial", None),
        ("image", "stimulus", None),
        ("pupil", None, None),
    ],
)
def test_names_of_columns_are_recognised(name: str, word: str | None, unit: str | None) -> None:
    assert meaning(name, POSITIONS) == (word, unit)


def test_rows_of_one_identity_need_not_follow_one_another(tmp_path: Path) -> None:
    path = tmp_path / "mixed.csv"
    path.write_text("trial,x,y\n1,1,1\n2,2,2\n1,3,3\n")
    first, second = read_positions(path, None, None)
    assert (first.xy[0].tolist(), second.xy[0].tolist()) == ([1, 3], [2])
    assert (first.place(1), second.place(0)) == ("line 4", "line 3")
    assert (first.unit, first.origin, first.trial) == ("px", "top-left", "1")


@fuzz
@given(edits)
def test_damaged_tables_are_read_or_refused(tmp_path: Path, changes: list[Any]) -> None:
    path = tmp_path / "damaged.csv"
    path.write_bytes(damage(TEXT.encode(), changes))
    for read in (read_scanpaths, read_targets):
        with contextlib.suppress(GazeError):
            read(path, SCREEN)
