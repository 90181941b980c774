"""Tables of samples: names of columns, units, clocks, identities, labels, screens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.data.readers.files import (
    ARROW,
    LOST,
    SCREEN,
    TABLE,
    arrow_bytes,
    assert_found,
    long_frame,
    matched,
    read,
    read_one,
    write,
)

OTHER = Screen(800, 600)


def rows_of(header: str, *rows: str) -> str:
    return "\n".join([header, *rows]) + "\n"


# What a table says, the options, what is read.
READ: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    **{
        f"one eye: {header}": (
            rows_of(header, "0,10,20", "4,11,21"), {},
            {"ms": [0, 4], "cyclopean": [[10, 11], [20, 21]], "format": "table"},
        )
        for header in (
            "t_ms,x,y", "Time_ms,X_px,Y_px", "timestamp [ms],gaze x [px],gaze y [px]",
            "t [ms],pixel_x,pixel_y", "RecordingTime [ms],GazePointX,GazePointY",
            "time (ms),x_coordinate,y_coordinate", "TIME_MS,GAZE_X,GAZE_Y",
        )
    },
    **{
        f"both eyes go before their mean: {header}": (
            rows_of(header, "0,1,2,3,4,5,6", "4,1,2,3,4,5,6"), {},
            {"left": [[1, 1], [2, 2]], "right": [[3, 3], [4, 4]]},
        )
        for header in (
            "t_ms,x_left,y_left,x_right,y_right,x,y", "t_ms,xl,yl,xr,yr,x,y",
            "t_ms,left_x,left_y,right_x,right_y,gaze_x,gaze_y",
            "t_ms,LeftX,LeftY,RightX,RightY,x,y",
            "t_ms,L POR X [px],L POR Y [px],R POR X [px],R POR Y [px],x,y",
        )
    },
    "session, stimulus and trial are the trial": (
        rows_of("subject_id;session;Stimulus;trial_index;t_ms;x;y", "a;2;beach;7;0;1;1",
                "a;2;beach;7;4;1;1"), {}, {"who": ("a", "unknown", "2-beach-7")},
    ),
    "a column named as the trial counts once": (
        rows_of("session,t_ms,x,y", "3,0,1,1", "3,4,1,1"), {"columns": {"trial": "session"}},
        {"who": ("recordings", "unknown", "3")},
    ),
    **{
        f"a column {name} holds blinks": (
            rows_of(f"t_ms,x,y,{name}", *(f"{4 * k},1,1,{cell}" for k, cell in enumerate(cells))),
            {}, {"blinks": {"cyclopean": found}},
        )
        for name, cells, found in (
            ("is_blink", ["1", "0", ""], [0]), ("blink", ["True", "False", "false"], [0]),
            ("blink id", ["0", "", "b7"], [0, 2]),
        )
    },
    "labels by hand are not the tracker's blinks": (
        rows_of("t_ms,x,y,label", "0,1,1,B", "4,1,1,F"), {}, {"blinks": {}},
    ),
    "unless the user says so": (
        rows_of("t_ms,x,y,label", "0,1,1,B", "4,1,1,F"), {"columns": {"blink": "label"}},
        {"blinks": {"cyclopean": [0]}},
    ),
    "a clock that states its unit goes before one that does not": (
        rows_of("time,t_s,x,y", "0,7,1,1", "4,8,1,1"), {}, {"ms": [7000, 8000]},
    ),
    **{
        f"{token!r} is missing": (
            rows_of("t_ms,x,y", "0,1,2", f"4,{token},2"), {}, {"cyclopean": [[1, LOST], [2, LOST]]},
        )
        for token in ("", ".", "nan", "NaN", "NA", "n/a", "null", "None", "-", " . ")
    },
    "a value beyond float32 is lost": (
        rows_of("t_ms,x,y", "0,1e300,2", "4,inf,2", "8,1,2"), {},
        {"cyclopean": [[LOST, LOST, 1], [LOST, LOST, 2]]},
    ),
    "decimal commas where they do not separate": (
        rows_of("t_ms;x;y", "0;1,5;2,25", "4,5;2;3"), {},
        {"ms": [0, 4.5], "cyclopean": [[1.5, 2], [2.25, 3]]},
    ),
    "pixels where degrees stand beside them": (
        rows_of("t_ms,x_deg,y_deg,x_px,y_px", "0,1,1,7,8"), {}, {"cyclopean": [[7], [8]]},
    ),
    "normalized columns scale with the screen": (
        rows_of("t_ms,x_norm,y_norm", "0,0.5,0.25"), {"screen": Screen(1000, 400)},
        {"cyclopean": [[500], [100]], "unit": "norm"},
    ),
    "the user's columns go before known names": (
        rows_of("n,x,y,GX,GY,who", "0,1,2,3,4,anna", "4,1,2,3,4,anna"),
        {"columns": {"t": "n", "x": "GX", "y": "GY", "participant": "who"}},
        {"who": ("anna", "unknown", "0"), "cyclopean": [[3, 3], [4, 4]]},
    ),
    "a user's column pairs with a known name": (
        rows_of("t_ms,y,horizontal", "0,1,9"), {"columns": {"x": "horizontal"}},
        {"cyclopean": [[9], [1]]},
    ),
    "positions count the columns of a table with a header too": (
        rows_of("ms,a,b", "0,1,2", "4,1,2"), {"columns": {"t": "1", "x": "2", "y": "3"}},
        {"ms": [0, 4]},
    ),
    "a header in a comment, as numpy writes it": (
        rows_of("# t_ms x_deg y_deg", "0 1 2", "4 1 2"), {"screen": SCREEN},
        {"ms": [0, 4], "unit": "deg"},
    ),
    **{
        f"without a header ({step} ms)": (
            rows_of("% written by a script", f"{times[0]} 11 12 1.5 2.5 0",
                    f"{times[1]} 11 12 . . 0", "// a pause", f"{times[2]} 11 12 3.5 4.5 1"),
            {"columns": {"t": "1", "x_right": "4", "y_right": "5", "blink": "6"}},
            {"ms": np.array(times) * step / (times[1] - times[0]), "blinks": {"right": [2]},
             "right": [[1.5, LOST, 3.5], [2.5, LOST, 4.5]]},
        )
        for step, times in ((2, (0, 2, 4)), (4, (0.5, 0.504, 0.508)))
    },
    **{
        f"evenly spaced samples ({header!r})": (
            f"{header}1,2\n3,4\n.,.\n5,6\n", {"source_rate_hz": 500, **options},
            {"ms": [0, 2, 4, 6], "cyclopean": [[1, 3, LOST, 5], [2, 4, LOST, 6]]},
        )
        for header, options in (
            ("x,y\n", {}), ("", {"columns": {"x": "1", "y": "2"}}),
            ("# gaze\n", {"columns": {"x": "1", "y": "2"}}),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_a_table_is_read(tmp_path: Path, case: str) -> None:
    text, options, expected = READ[case]
    path = write(tmp_path, text)
    assert matched(path, **options)
    assert_found(read_one(path, "table", **options), **expected)


# What a table says, the options, what is said of it.
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "no gaze": (rows_of("n,a,b", "0,1,2"), {}, "among n, a, b.*`columns` x="),
    "one axis": (rows_of("t_ms,x", "0,1"), {}, "no x and y columns"),
    "no time": (rows_of("x,y", "1,2"), {}, "no time column among .*`source_rate_hz`"),
    "no unit of time": (
        rows_of("t,x,y", "0,1,1", "100,1,1"), {}, "'t' does not tell its unit.*t_ms"
    ),
    "an unknown word": (TABLE, {"columns": {"x_lft": "x_px"}}, "'x_lft'.*did you mean 'x_left'"),
    "an unknown column": (
        TABLE, {"columns": {"x": "x_pxx", "y": "y_px"}}, "no column 'x_pxx'.*did you mean 'x_px'",
    ),
    "a position too far": ("0 1 2\n", {"columns": {"t": "1", "x": "2", "y": "4"}}, "no column '4'"),
    "a wrong cell by position": (
        "# a comment\n0 1 2\n4 1 two\n", {"columns": {"t": "1", "x": "2", "y": "3"}},
        r"recordings\.csv, line 3, column '3': 'two' is no number",
    ),
    "a wrong cell after blank lines": (
        "\nt_ms,x,y\n0,1,2\n\n4,1,two\n", {},
        r"recordings\.csv, line 5, column 'y': 'two' is no number",
    ),
    "time that restarts": (
        rows_of("t_ms,x,y", "0,1,2", "4,1,2", "0,1,2"), {},
        "line 4: time runs backwards.*`columns` trial=",
    ),
    "a row too short": (rows_of("t_ms,x,y", "0,1,2", "4,1"), {}, "line 3: 2 cells.* 3 columns"),
    "a row too long": (rows_of("t_ms,x,y", "0,1,2", "4,1,2,3"), {}, "line 3: 4 cells"),
    "no rows": ("t_ms,x,y", {}, "no rows"),
    "no time in a row": (rows_of("t_ms,x,y", "0,1,2", ",1,2"), {}, "line 3: the time is missing"),
    "an open quote": ('t_ms,x,y\n0,1,"2\n', {}, "damaged"),
    "nothing": ("  \n", {}, "empty"),
    "degrees without a screen": (
        rows_of("t_ms,x_deg,y_deg", "0,1,1"), {}, "give `screen` with `screen_cm`"
    ),
    "degrees on a screen of unknown size": (
        rows_of("t_ms,x_deg,y_deg", "0,1,1"), {"screen": OTHER}, "give `screen` with `screen_cm`",
    ),
    "fractions without a screen": (rows_of("t_ms,x_norm,y_norm", "0,1,1"), {}, "give `screen`"),
    "labels that are none": (
        TABLE, {"columns": {"label": "x_px"}}, "column 'x_px' holds no event labels"
    ),
    "the eye in space": (
        rows_of("time_s,LEYEX,LEYEY,LEYEZ", "0,.5,.5,.6"), {},
        "no x and y columns among time_s, LEYEX, LEYEY, LEYEZ",
    ),
    "the pupil in the camera": (
        rows_of("timestamp,norm_pos_x,norm_pos_y,ellipse_center_x", "0,.5,.5,.6"), {},
        "positions of the pupil",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_table_that_cannot_be_read_is_refused_in_one_line(tmp_path: Path, case: str) -> None:
    text, options, said = REFUSED[case]
    with pytest.raises(GazeError, match=said):
        read(write(tmp_path, text), "table", **options)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        *((f"{header}\n0,1,2,3\n", "a.csv") for header in (
            "n,x,y,val", "t_ms,mouse_x,mouse_y", "t_ms,x", "t_ms,x_target,y_target", "a,b,c",
            "time_s,LEYEX,LEYEY,LEYEZ", "timestamp,norm_pos_x,norm_pos_y,ellipse_center_x",
        )),
        ("0 11 12 1.5 2.5 0\n", "a.txt"), (TABLE, "notes.md"), ("\x00\x01", "a.csv"),
    ],
)  # fmt: skip
def test_other_files_are_not_taken(tmp_path: Path, content: str, name: str) -> None:
    assert not matched(write(tmp_path, content, name))


def test_rows_of_one_trial_are_one_recording_however_they_are_ordered_and_stored(
    tmp_path: Path,
) -> None:
    mixed = long_frame().sort("t_ms", maintain_order=True)
    paths = [write(tmp_path, long_frame().write_csv()), write(tmp_path, mixed.write_csv(), "m.csv")]
    paths += [write(tmp_path, arrow_bytes(mixed, ending), f"a{ending}") for ending in ARROW]
    for path in paths:
        found = read(path, "table")
        assert [(r.participant, r.task, r.trial) for r in found] == [
            (who, "read", trial) for who in ("p1", "p2") for trial in "01"
        ]
        expected = [[100, 101, LOST], [50, 51, LOST]]
        assert_found(found[1], ms=[0, 4, 8], cyclopean=expected)
        assert found[1].gaze_px["cyclopean"].dtype == np.float32


@pytest.mark.parametrize(
    ("header", "times", "first_step_ms"),
    [
        ("t", [0.0, 0.004, 0.008], 4.0),
        ("t", [0, 4, 8], 4.0),
        ("timestamp", [0, 4000, 8000], 4.0),
        ("time", [1_700_000_000_000_000_000, 1_700_000_000_005_000_192], 5.0),
        ("t_s", [0, 1, 2], 1000.0),
        ("time [ns]", [0, 4_000_000], 4.0),
    ],
)
def test_the_unit_of_time_is_found_by_name_or_step(
    tmp_path: Path, header: str, times: list[float], first_step_ms: float
) -> None:
    text = rows_of(f"{header},x,y", *(f"{time},1,1" for time in times))
    recording = read_one(write(tmp_path, text))
    assert np.diff(recording.time_ms)[0] == pytest.approx(first_step_ms, rel=1e-3)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends_of_windows_are_read(
    tmp_path: Path, encoding: str, line_end: str
) -> None:
    text = line_end.join(["participant\tt_ms\tx\ty", "Jörg\t0\t1\t2", "Jörg\t4\t1\t2", ""])
    path = write(tmp_path, text.encode(encoding), "a.txt")
    assert matched(path)
    assert read_one(path).participant == "Jörg"


def test_degrees_become_pixels_through_the_screen(tmp_path: Path) -> None:
    pixels = np.array([[100.0, 900.0], [50.0, 600.0]])
    rows = (f"{4 * i},{x},{y}" for i, (x, y) in enumerate(SCREEN.to_degrees(pixels).T))
    path = write(tmp_path, rows_of("t_ms,x_deg,y_deg", *rows))
    assert_found(read_one(path, screen=SCREEN), cyclopean=pixels, unit="deg", origin="center")


@pytest.mark.parametrize("nested", [True, False])
def test_the_screen_in_a_sidecar_wins_unless_overridden(tmp_path: Path, nested: bool) -> None:
    path = write(tmp_path, TABLE)
    assert read_one(path).screen is None
    fields = SCREEN.to_bids()
    sidecar = path.with_suffix(".json")
    sidecar.write_text(json.dumps({"StimulusPresentation": fields} if nested else fields))
    assert read_one(path).screen == SCREEN
    assert read_one(path, screen=Screen(1280, 720)).screen == SCREEN
    with pytest.raises(GazeError, match=r"1280x720 px, .* is 800x600 px; .*override_screen"):
        read(path, screen=OTHER)
    assert read_one(path, screen=OTHER, override_screen=True).screen == OTHER
    for content in ('{"ScreenResolution": [1280', "[1, 2]", "nonsense"):
        sidecar.write_text(content)
        with pytest.raises(GazeError, match=r"recordings\.json"):
            read(path)


def test_the_path_tells_who_where_no_column_does_and_the_users_pattern_goes_before_both(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, TABLE, "sub-07_task-search_run-2.csv")
    assert_found(read_one(path), who=("07", "search", "2"))
    path = write(tmp_path, long_frame().write_csv(), "anna_dots.csv")
    found = read(path, participant_pattern=r"(?P<participant>[a-z]+)_dots")
    assert {(one.participant, one.task) for one in found} == {("anna", "read")}


def test_damage_of_a_parquet_file_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, b"PAR1 cut", "bad.PARQUET")
    assert matched(path)
    with pytest.raises(GazeError, match=r"bad\.PARQUET"):
        read(path)
    lists = pl.DataFrame({"t_ms": [0, 4], "x": [[1.0], [2.0]], "y": [1.0, 2.0]})
    with pytest.raises(GazeError, match="'x' holds no numbers"):
        read(write(tmp_path, arrow_bytes(lists, ".parquet"), "lists.parquet"), "table")
    back = pl.DataFrame({"t_ms": [0, 4, 0], "x": [1.0] * 3, "y": [1.0] * 3})
    with pytest.raises(GazeError, match="row 3: time runs backwards"):
        read(write(tmp_path, arrow_bytes(back, ".parquet"), "back.parquet"))

    def panic(*_: object, **__: object) -> None:
        raise pl.exceptions.PanicException("index out of bounds")

    monkeypatch.setattr(pl.LazyFrame, "collect_batches", panic)
    with pytest.raises(GazeError, match=r"damaged.*out of bounds"):
        read(write(tmp_path, arrow_bytes(long_frame(), ".parquet"), "long.parquet"))


def labelled(words: list[str], name: str = "label") -> str:
    return rows_of(f"t_ms,x_px,y_px,{name}", *(f"{4 * k},{k},1,{w}" for k, w in enumerate(words)))


@pytest.mark.parametrize(
    "name",
    ["label", "labels", "Label", "event", "event_label", "EventType", "hand_labeller_final"],
)
def test_a_column_of_labels_is_recognised_and_a_fact(tmp_path: Path, name: str) -> None:
    words = "F s P B N fixation Saccade PURSUIT smooth_pursuit blink unassigned - nan trigger"
    recording = read_one(write(tmp_path, labelled([*words.split(), ""], name)))
    assert recording.labels is not None
    assert recording.labels.dtype == np.uint8
    assert recording.labels.tolist() == [1, 2, 3, 4, 4, 1, 2, 3, 3, 4, 0, 0, 0, 0, 0]
    assert recording.facts["labels"] == (f"column {name}", "column names")


@pytest.mark.parametrize(
    "words", [["left", "right", "F"], ["1", "2", "1"], ["N", "N", "y"], ["", "", ""]]
)
def test_a_column_of_something_else_is_passed_over(tmp_path: Path, words: list[str]) -> None:
    recording = read_one(write(tmp_path, labelled(words)))
    assert recording.labels is None
    assert "labels" not in recording.facts


def test_labels_are_found_among_several_columns_and_under_another_name(tmp_path: Path) -> None:
    text = rows_of("t_ms,x_px,y_px,event,mine,label", "0,1,1,5,B,F", "4,2,2,6,F,S")
    path = write(tmp_path, text)
    cases: list[tuple[dict[str, Any], list[int]]]
    cases = [({}, [1, 2]), ({"columns": {"label": "mine"}}, [4, 1])]
    for options, expected in cases:
        labels = read_one(path, **options).labels
        assert labels is not None
        assert labels.tolist() == expected
    names = ["F", "S", None, "P", "B", "F", *[None] * 6]
    content = arrow_bytes(long_frame().with_columns(pl.Series("label", names)), ".parquet")
    found = [one.labels for one in read(write(tmp_path, content, "a.parquet"))]
    assert [None if one is None else one.tolist() for one in found] == [
        [1, 2, 0], [3, 4, 1], None, None,
    ]  # fmt: skip
