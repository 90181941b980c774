from __future__ import annotations

import contextlib
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gazediffusion.data.readers import samples
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen

FULL_SCREEN = Screen(1280, 720, 40.0, 22.5, 45.0)


def write(folder: Path, text: str, name: str = "recordings.csv", encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def read_all(path: Path, **options: object) -> list[Recording]:
    return list(samples.read(path, ReadOptions(**options)))  # type: ignore[arg-type]


def read_one(path: Path, **options: object) -> Recording:
    (recording,) = read_all(path, **options)
    return recording


def is_matched(path: Path, **options: object) -> bool:
    return samples.matches(path, path.read_bytes()[: 1 << 16], ReadOptions(**options))  # type: ignore[arg-type]


def long_frame() -> pl.DataFrame:
    """Two participants with two trials of three samples each, 4 ms apart."""
    rows = [
        (participant, "read", trial, 4 * sample, 100.0 * trial + sample, 50.0 + sample)
        for participant in ("p1", "p2")
        for trial in (0, 1)
        for sample in range(3)
    ]
    names = ["participant", "task", "trial", "t_ms", "x_px", "y_px"]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_rows_of_one_trial_make_one_recording(tmp_path: Path) -> None:
    path = tmp_path / "long.parquet"
    long_frame().write_parquet(path)
    found = read_all(path)
    assert [(r.participant, r.task, r.trial) for r in found] == [
        ("p1", "read", "0"),
        ("p1", "read", "1"),
        ("p2", "read", "0"),
        ("p2", "read", "1"),
    ]
    np.testing.assert_array_equal(found[1].time_ms, [0, 4, 8])
    np.testing.assert_array_equal(found[1].gaze_px["cyclopean"], [[100, 101, 102], [50, 51, 52]])
    assert found[1].gaze_px["cyclopean"].dtype == np.float32
    assert found[1].format == "table"


def test_csv_and_parquet_of_the_same_table_read_the_same(tmp_path: Path) -> None:
    long_frame().write_parquet(tmp_path / "a.parquet")
    long_frame().write_csv(tmp_path / "a.csv")
    for one, other in zip(
        read_all(tmp_path / "a.parquet"), read_all(tmp_path / "a.csv"), strict=True
    ):
        assert (one.participant, one.task, one.trial) == (
            other.participant,
            other.task,
            other.trial,
        )
        np.testing.assert_array_equal(one.time_ms, other.time_ms)
        np.testing.assert_array_equal(one.gaze_px["cyclopean"], other.gaze_px["cyclopean"])


def test_interleaved_trials_are_gathered_in_time_order(tmp_path: Path) -> None:
    path = tmp_path / "shuffled.parquet"
    long_frame().sort("t_ms", maintain_order=True).write_parquet(path)
    found = read_all(path)
    assert [(r.participant, r.trial) for r in found] == [
        ("p1", "0"),
        ("p1", "1"),
        ("p2", "0"),
        ("p2", "1"),
    ]
    for recording in found:
        np.testing.assert_array_equal(recording.time_ms, [0, 4, 8])
        np.testing.assert_array_equal(recording.gaze_px["cyclopean"][1], [50, 51, 52])


def test_session_and_stimulus_are_part_of_the_trial(tmp_path: Path) -> None:
    text = (
        "subject_id;session;Stimulus;trial_index;t_ms;x;y\na;2;beach;7;0;1;1\na;2;beach;7;4;1;1\n"
    )
    recording = read_one(write(tmp_path, text))
    assert (recording.participant, recording.trial) == ("a", "2-beach-7")


def test_a_column_named_as_the_trial_counts_once(tmp_path: Path) -> None:
    path = write(tmp_path, "session,t_ms,x,y\n3,0,1,1\n3,4,1,1\n")
    assert read_one(path, columns={"trial": "session"}).trial == "3"


def test_hand_labels_are_not_the_trackers_blinks(tmp_path: Path) -> None:
    path = write(tmp_path, "t_ms,x,y,label\n0,1,1,B\n4,1,1,F\n")
    assert not read_one(path).is_blink
    labelled = read_one(path, columns={"blink": "label"})
    np.testing.assert_array_equal(labelled.is_blink["cyclopean"], [True, False])


@pytest.mark.parametrize(
    ("name", "cells", "expected"),
    [
        ("is_blink", ["1", "0", ""], [True, False, False]),
        ("blink", ["True", "False", "false"], [True, False, False]),
        ("blink id", ["0", "", "b7"], [True, False, True]),
    ],
)
def test_blink_columns_are_known_by_name(
    tmp_path: Path, name: str, cells: list[str], expected: list[bool]
) -> None:
    rows = "".join(f"{4 * i},1,1,{cell}\n" for i, cell in enumerate(cells))
    recording = read_one(write(tmp_path, f"t_ms,x,y,{name}\n{rows}"))
    np.testing.assert_array_equal(recording.is_blink["cyclopean"], expected)


@pytest.mark.parametrize(
    "header",
    [
        "t_ms,x,y",
        "Time_ms,X_px,Y_px",
        "timestamp [ms],gaze x [px],gaze y [px]",
        "t [ms],pixel_x,pixel_y",
        "RecordingTime [ms],GazePointX,GazePointY",
        "time (ms),x_coordinate,y_coordinate",
        "TIME_MS,GAZE_X,GAZE_Y",
    ],
)
def test_monocular_names_are_known(tmp_path: Path, header: str) -> None:
    path = write(tmp_path, f"{header}\n0,10,20\n4,11,21\n")
    assert is_matched(path)
    recording = read_one(path)
    np.testing.assert_array_equal(recording.gaze_px["cyclopean"], [[10, 11], [20, 21]])
    np.testing.assert_array_equal(recording.time_ms, [0, 4])


@pytest.mark.parametrize(
    "header",
    [
        "t_ms,x_left,y_left,x_right,y_right,x,y",
        "t_ms,left_x,left_y,right_x,right_y,gaze_x,gaze_y",
        "t_ms,xl,yl,xr,yr,x,y",
        "t_ms,LeftX,LeftY,RightX,RightY,x,y",
        "t_ms,L POR X [px],L POR Y [px],R POR X [px],R POR Y [px],x,y",
    ],
)
def test_binocular_names_are_known_and_go_before_their_mean(tmp_path: Path, header: str) -> None:
    recording = read_one(write(tmp_path, f"{header}\n0,1,2,3,4,5,6\n4,1,2,3,4,5,6\n"))
    assert set(recording.gaze_px) == {"left", "right"}
    np.testing.assert_array_equal(recording.gaze_px["left"][:, 0], [1, 2])
    np.testing.assert_array_equal(recording.gaze_px["right"][:, 0], [3, 4])


@pytest.mark.parametrize(
    "header", ["n,x,y,val", "t_ms,mouse_x,mouse_y", "t_ms,x", "t_ms,x_target,y_target", "a,b,c"]
)
def test_other_tables_are_not_matched(tmp_path: Path, header: str) -> None:
    assert not is_matched(write(tmp_path, f"{header}\n0,1,2,3\n"))


def test_other_endings_and_binary_files_are_not_matched(tmp_path: Path) -> None:
    assert not is_matched(write(tmp_path, "t_ms,x,y\n0,1,2\n", name="notes.md"))
    assert not is_matched(write(tmp_path, "\x00\x01", name="a.csv"))


def test_a_damaged_parquet_file_is_claimed_so_that_it_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "bad.PARQUET"
    path.write_bytes(b"PAR1 cut")
    assert is_matched(path)
    with pytest.raises(GazeError, match=r"bad\.PARQUET"):
        read_all(path)


@pytest.mark.parametrize(
    ("header", "times", "first_step_ms"),
    [
        ("t", [0.0, 0.004, 0.008], 4.0),
        ("t", [0, 4, 8], 4.0),
        ("timestamp", [0, 4000, 8000], 4.0),
        ("time", [1_700_000_000_000_000_000, 1_700_000_000_005_000_192], 5.0),
        ("t_s", [0, 1, 2], 1000.0),
        ("time [ns]", [0, 4_000_000], 4.0),
        ("t [μs]", [0, 4_000], 4.0),
    ],
)
def test_time_unit_is_named_by_name_or_step(
    tmp_path: Path, header: str, times: list[float], first_step_ms: float
) -> None:
    rows = "".join(f"{time},1,1\n" for time in times)
    recording = read_one(write(tmp_path, f"{header},x,y\n{rows}"))
    assert np.diff(recording.time_ms)[0] == pytest.approx(first_step_ms, rel=1e-3)


def test_a_clock_that_states_its_unit_goes_before_one_that_does_not(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, "time,t_s,x,y\n0,7,1,1\n4,8,1,1\n"))
    np.testing.assert_array_equal(recording.time_ms, [7000, 8000])


def test_time_unit_that_no_step_tells_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "t,x,y\n0,1,1\n100,1,1\n")
    with pytest.raises(GazeError, match=r"'t' does not tell its unit.*t_ms"):
        read_all(path)


@pytest.mark.parametrize("token", ["", ".", "nan", "NaN", "NA", "n/a", "null", "None", "-", " . "])
def test_missing_tokens_are_lost_samples(tmp_path: Path, token: str) -> None:
    recording = read_one(write(tmp_path, f"t_ms,x,y\n0,1,2\n4,{token},2\n"))
    np.testing.assert_array_equal(np.isnan(recording.gaze_px["cyclopean"]), [[False, True]] * 2)


def test_decimal_commas_are_read_where_they_do_not_separate(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, "t_ms;x;y\n0;1,5;2,25\n4,5;2;3\n"))
    np.testing.assert_array_equal(recording.gaze_px["cyclopean"], [[1.5, 2], [2.25, 3]])
    np.testing.assert_array_equal(recording.time_ms, [0, 4.5])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends_of_windows_are_read(
    tmp_path: Path, encoding: str, line_end: str
) -> None:
    text = line_end.join(["participant\tt_ms\tx\ty", "Jörg\t0\t1\t2", "Jörg\t4\t1\t2", ""])
    path = write(tmp_path, text, name="a.txt", encoding=encoding)
    assert is_matched(path)
    assert read_one(path).participant == "Jörg"


def test_degrees_become_pixels_through_the_screen(tmp_path: Path) -> None:
    pixels = np.array([[100.0, 900.0], [50.0, 600.0]])
    degrees = FULL_SCREEN.to_degrees(pixels)
    rows = "".join(f"{4 * i},{x},{y}\n" for i, (x, y) in enumerate(degrees.T))
    path = write(tmp_path, f"t_ms,x_deg,y_deg\n{rows}")
    found = read_one(path, screen=FULL_SCREEN).gaze_px["cyclopean"]
    np.testing.assert_allclose(found, pixels, rtol=1e-5)
    for screen in (None, Screen(1280, 720)):
        with pytest.raises(GazeError, match="give `screen` with `screen_cm`"):
            read_all(path, screen=screen)


def test_pixels_are_read_where_degrees_stand_beside_them(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, "t_ms,x_deg,y_deg,x_px,y_px\n0,1,1,7,8\n4,1,1,7,8\n"))
    np.testing.assert_array_equal(recording.gaze_px["cyclopean"][:, 0], [7, 8])


def test_normalized_columns_scale_with_the_screen(tmp_path: Path) -> None:
    path = write(tmp_path, "t_ms,x_norm,y_norm\n0,0.5,0.25\n4,0.5,0.25\n")
    found = read_one(path, screen=Screen(1000, 400)).gaze_px["cyclopean"]
    np.testing.assert_allclose(found[:, 0], [500, 100])
    with pytest.raises(GazeError, match="give `screen`"):
        read_all(path)


@pytest.mark.parametrize("nested", [True, False])
def test_the_screen_in_a_sidecar_wins_unless_overridden(tmp_path: Path, nested: bool) -> None:
    path = write(tmp_path, "t_ms,x,y\n0,1,2\n4,1,2\n")
    assert read_one(path).screen is None
    fields = FULL_SCREEN.to_bids()
    sidecar = path.with_suffix(".json")
    sidecar.write_text(json.dumps({"StimulusPresentation": fields} if nested else fields))
    assert read_one(path).screen == FULL_SCREEN
    assert read_one(path, screen=Screen(1280, 720)).screen == FULL_SCREEN
    with pytest.raises(GazeError, match=r"1280x720 px, .* is 800x600 px; .*override_screen"):
        read_all(path, screen=Screen(800, 600))
    other = Screen(800, 600)
    assert read_one(path, screen=other, override_screen=True).screen == other


@pytest.mark.parametrize("content", ['{"ScreenResolution": [1280', "[1, 2]", "nonsense"])
def test_damaged_sidecar_is_an_error(tmp_path: Path, content: str) -> None:
    path = write(tmp_path, "t_ms,x,y\n0,1,2\n4,1,2\n")
    path.with_suffix(".json").write_text(content)
    with pytest.raises(GazeError, match=r"recordings\.json"):
        read_all(path)


def test_participant_and_task_come_from_the_path_where_no_column_tells(tmp_path: Path) -> None:
    path = write(tmp_path, "t_ms,x,y\n0,1,2\n4,1,2\n", name="sub-07_task-search_run-2.csv")
    recording = read_one(path)
    assert (recording.participant, recording.task, recording.trial) == ("07", "search", "2")


def test_user_columns_go_before_known_names(tmp_path: Path) -> None:
    text = "n,x,y,GX,GY,who\n0,1,2,3,4,anna\n4,1,2,3,4,anna\n"
    columns = {"t": "n", "x": "GX", "y": "GY", "participant": "who"}
    recording = read_one(write(tmp_path, text), columns=columns)
    assert recording.participant == "anna"
    np.testing.assert_array_equal(recording.gaze_px["cyclopean"][:, 0], [3, 4])


def test_a_user_column_pairs_with_a_known_name(tmp_path: Path) -> None:
    path = write(tmp_path, "t_ms,y,horizontal\n0,1,9\n4,1,9\n")
    recording = read_one(path, columns={"x": "horizontal"})
    np.testing.assert_array_equal(recording.gaze_px["cyclopean"][:, 0], [9, 1])


def test_unknown_words_and_columns_are_corrected(tmp_path: Path) -> None:
    path = write(tmp_path, "t_ms,gx,gy\n0,1,2\n")
    with pytest.raises(GazeError, match=r"'x_lft'.*did you mean 'x_left'"):
        read_all(path, columns={"x_lft": "gx"})
    with pytest.raises(GazeError, match="'x_lft'"):
        is_matched(path, columns={"x_lft": "gx"})
    with pytest.raises(GazeError, match=r"no column 'gxx'.*did you mean 'gx'"):
        read_all(path, columns={"x": "gxx", "y": "gy"})


def test_table_without_gaze_columns_lists_them_and_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(GazeError, match=r"among n, a, b.*`columns` x="):
        read_all(write(tmp_path, "n,a,b\n0,1,2\n"))


def test_time_that_restarts_names_line_or_row_and_the_trial_column(tmp_path: Path) -> None:
    text = "t_ms,x,y\n0,1,2\n4,1,2\n0,1,2\n4,1,2\n"
    with pytest.raises(GazeError, match=r"line 4: time runs backwards.*`columns` trial="):
        read_all(write(tmp_path, text))
    path = tmp_path / "back.parquet"
    pl.read_csv(text.encode()).write_parquet(path)
    with pytest.raises(GazeError, match="row 3: time runs backwards"):
        read_all(path)


def test_lines_are_counted_with_blank_ones(tmp_path: Path) -> None:
    text = "\nt_ms,x,y\n0,1,2\n\n4,1,two\n"
    with pytest.raises(GazeError, match=r"recordings\.csv, line 5, column 'y': 'two' is no number"):
        read_all(write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t_ms,x,y\n0,1,2\n4,1\n", "line 3: 2 cells where there are 3 columns"),
        ("t_ms,x,y\n0,1,2\n4,1,2,3\n", "line 3: 4 cells"),
        ("t_ms,x,y\n", "no rows"),
        ("t_ms,x,y", "no rows"),
        ("t_ms,x,y\n0,1,2\n,1,2\n", "line 3: the time is missing"),
        ('t_ms,x,y\n0,1,"2\n', "damaged"),
        ("  \n", "empty"),
    ],
)
def test_damaged_text_names_the_problem(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(GazeError, match=message):
        read_all(write(tmp_path, text))


def test_parquet_column_that_holds_no_numbers_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "lists.parquet"
    pl.DataFrame({"t_ms": [0, 4], "x": [[1.0], [2.0]], "y": [1.0, 2.0]}).write_parquet(path)
    with pytest.raises(GazeError, match="'x' holds no numbers"):
        read_all(path)


def test_a_panic_inside_polars_is_a_damaged_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "long.parquet"
    long_frame().write_parquet(path)

    def panic(*_: object, **__: object) -> None:
        raise pl.exceptions.PanicException("index out of bounds")

    monkeypatch.setattr(pl.LazyFrame, "collect_batches", panic)
    with pytest.raises(GazeError, match=r"damaged.*out of bounds"):
        read_all(path)


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    for name in ("gone.csv", "gone.parquet"):
        with pytest.raises(GazeError, match="gone"):
            read_all(tmp_path / name)


def test_a_value_beyond_float32_is_a_lost_sample(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, "t_ms,x,y\n0,1e300,2\n4,inf,2\n8,1,2\n"))
    np.testing.assert_array_equal(np.isnan(recording.gaze_px["cyclopean"][0]), [True, True, False])


HEADERLESS = """% written by a script
{0} 11 12 1.5 2.5 0
{1} 11 12 . . 0
// a pause
{2} 11 12 3.5 4.5 1
{3} 11 12 5.5 6.5 0
"""


@pytest.mark.parametrize(
    ("times", "step_ms"), [((0, 2, 4, 6), 2.0), ((0.5, 0.504, 0.508, 0.512), 4.0)]
)
def test_columns_of_a_table_without_a_header_are_given_by_position(
    tmp_path: Path, times: tuple[float, ...], step_ms: float
) -> None:
    path = write(tmp_path, HEADERLESS.format(*times), name="anna.txt")
    columns = {"t": "1", "x_right": "4", "y_right": "5", "blink": "6"}
    assert is_matched(path, columns=columns)
    assert not is_matched(path)
    recording = read_one(path, columns=columns, screen=Screen(1280, 720))
    assert recording.participant == "anna"
    np.testing.assert_allclose(np.diff(recording.time_ms), step_ms)
    expected = [[1.5, np.nan, 3.5, 5.5], [2.5, np.nan, 4.5, 6.5]]
    np.testing.assert_array_equal(recording.gaze_px["right"], expected)
    np.testing.assert_array_equal(recording.is_blink["right"], [False, False, True, False])
    assert recording.facts["columns"] == ("4, 5; time 1", "given")


def test_positions_count_the_columns_of_a_table_with_a_header_too(tmp_path: Path) -> None:
    path = write(tmp_path, "ms,a,b\n0,1,2\n4,1,2\n")
    recording = read_one(path, columns={"t": "1", "x": "2", "y": "3"})
    np.testing.assert_array_equal(recording.time_ms, [0, 4])


def test_a_wrong_position_and_a_bad_number_name_the_place(tmp_path: Path) -> None:
    path = write(tmp_path, "# a comment\n0 1 2\n4 1 two\n", name="a.txt")
    with pytest.raises(GazeError, match="there is no column '4'"):
        read_all(path, columns={"t": "1", "x": "2", "y": "4"})
    with pytest.raises(GazeError, match=r"a\.txt, line 3, column '3': 'two' is no number"):
        read_all(path, columns={"t": "1", "x": "2", "y": "3"})


@pytest.mark.parametrize("header", ["x,y\n", "", "# gaze\n"])
def test_samples_without_a_time_column_are_evenly_spaced(tmp_path: Path, header: str) -> None:
    path = write(tmp_path, f"{header}1,2\n3,4\n.,.\n5,6\n")
    options = {} if header == "x,y\n" else {"columns": {"x": "1", "y": "2"}}
    assert not is_matched(path, **options)
    with pytest.raises(GazeError, match=r"no time column among .*`source_rate_hz`"):
        read_all(path, columns={"x": "1", "y": "2"})
    assert is_matched(path, source_rate_hz=500, **options)
    recording = read_one(path, source_rate_hz=500, **options)
    np.testing.assert_array_equal(recording.time_ms, [0, 2, 4, 6])
    np.testing.assert_array_equal(recording.gaze_px["cyclopean"][0], [1, 3, np.nan, 5])
    assert recording.facts["columns"].value.endswith("time none")


def test_a_header_in_a_comment_is_the_header(tmp_path: Path) -> None:
    path = tmp_path / "saved.txt"
    np.savetxt(path, [[0, 1, 2], [4, 1, 2]], header="t_ms x_deg y_deg")
    assert is_matched(path)
    recording = read_one(path, screen=FULL_SCREEN)
    np.testing.assert_array_equal(recording.time_ms, [0, 4])
    assert recording.facts["unit"].value == "deg"


edits = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from("dirt"),
        st.binary(min_size=1, max_size=6),
    ),
    min_size=1,
    max_size=6,
)


def damage(content: bytes, changes: list[tuple[float, str, bytes]]) -> bytes:
    """Delete, insert or replace bytes, or truncate, at places given as fractions."""
    for fraction, kind, new in changes:
        place = int(fraction * len(content))
        if kind == "t":
            content = content[:place]
        else:
            rest = content[place:] if kind == "i" else content[place + len(new) :]
            content = content[:place] + (b"" if kind == "d" else new) + rest
    return content


fuzz = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def read_or_refuse(path: Path) -> None:
    with contextlib.suppress(GazeError):
        is_matched(path)
        read_all(path, screen=FULL_SCREEN)


@fuzz
@given(edits)
def test_damaged_csv_is_read_or_refused(
    tmp_path: Path, changes: list[tuple[float, str, bytes]]
) -> None:
    path = tmp_path / "damaged.csv"
    path.write_bytes(damage(long_frame().write_csv().encode(), changes))
    read_or_refuse(path)


@fuzz
@given(edits)
def test_damaged_utf16_is_read_or_refused(
    tmp_path: Path, changes: list[tuple[float, str, bytes]]
) -> None:
    path = tmp_path / "damaged.tsv"
    path.write_bytes(damage(long_frame().write_csv(separator="\t").encode("utf-16"), changes))
    read_or_refuse(path)


@fuzz
@given(edits)
def test_damaged_parquet_is_read_or_refused(
    tmp_path: Path, changes: list[tuple[float, str, bytes]]
) -> None:
    whole, path = tmp_path / "whole.parquet", tmp_path / "damaged.parquet"
    long_frame().write_parquet(whole)
    path.write_bytes(damage(whole.read_bytes(), changes))
    read_or_refuse(path)


@fuzz
@given(st.integers(0, 11), st.integers(0, 5), st.text(max_size=8))
def test_any_cell_may_hold_anything(tmp_path: Path, row: int, column: int, cell: str) -> None:
    rows = [[str(value) for value in values] for values in long_frame().rows()]
    rows[row][column] = cell
    lines = [long_frame().columns, *rows]
    path = tmp_path / "cells.csv"
    path.write_bytes("\n".join(",".join(line) for line in lines).encode("utf-8", errors="replace"))
    read_or_refuse(path)


def test_the_users_pattern_overrides_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "anna_dots.csv"
    path.write_text(long_frame().write_csv())
    by_columns = {recording.participant for recording in read_all(path)}
    options = ReadOptions(participant_pattern=r"(?P<participant>[a-z]+)_dots")
    assert "anna" not in by_columns
    read = list(samples.read(path, options))
    assert {recording.participant for recording in read} == {"anna"}
    assert {recording.task for recording in read} == {r.task for r in read_all(path)}


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("time_s,LEYEX,LEYEY,LEYEZ", "no x and y columns among time_s, LEYEX, LEYEY, LEYEZ"),
        ("timestamp,norm_pos_x,norm_pos_y,ellipse_center_x", "positions of the pupil"),
    ],
)
def test_positions_of_the_eye_are_no_gaze(tmp_path: Path, header: str, said: str) -> None:
    path = write(tmp_path, f"{header}\n0,0.5,0.5,0.6\n0.004,0.5,0.5,0.6\n")
    assert not is_matched(path)
    with pytest.raises(GazeError, match=said):
        read_all(path)
