"""Exports of Tobii, SMI, Gazepoint, Pupil Labs and GazeBase, in each of their documented variants.

One table says what is read of each: from which text, with which options.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazediffusion.data.readers import find_sources
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.data.readers.files import (
    BEGAZE,
    FILES,
    GAZEBASE,
    GAZEPOINT,
    LOST,
    NEON,
    PRO_LAB,
    SMI,
    SMI_COMMENTS,
    STUDIO_2,
    assert_found,
    matched,
    read,
    read_one,
    write,
)

FULL_HD = Screen(1920, 1080)
GAZEBASE_SCREEN = Screen(1680, 1050, 47.4, 29.7, 55.0)
Edit = Callable[[str], str]


def sub(*pairs: tuple[str, str]) -> Edit:
    """Replace each pattern in a text."""

    def edited(text: str) -> str:
        for pattern, new in pairs:
            text = re.sub(pattern, new, text, flags=re.MULTILINE)
        return text

    return edited


def without(pattern: str) -> Edit:
    """Leave out the columns whose names match."""

    def edited(text: str) -> str:
        rows = [line.split("\t") for line in text.splitlines()]
        kept = [k for k, name in enumerate(rows[0]) if not re.search(pattern, name)]
        return "\n".join("\t".join(row[k] for k in kept) for row in rows) + "\n"

    return edited


def then(*steps: Edit) -> Edit:
    def edited(text: str) -> str:
        for step in steps:
            text = step(text)
        return text

    return edited


def with_event(sensor: str, event: str) -> Edit:
    """A column of events, and a row of one in place of the third sample."""
    row = f"9000\t{sensor}\tP01\tRec 1\t1920\t1080" + "\t" * 10
    return then(
        sub((r"^8334.*$", row)), sub((r"$(?=\n)", "\t"), (r"type\t$", "type\tEvent"),
                                     (r"^(9000.*)\t$", rf"\1\t{event}")),
    )  # fmt: skip


same = sub()
MCS = sub((r"(Gaze point [^\t\n]*)", r"\1 [MCS px]"))


def with_medium(text: str) -> str:
    """Gaze on a medium beside that on the screen."""
    screen = without("^(?!Gaze)")(text).splitlines()
    return "\n".join(f"{a}\t{b}" for a, b in zip(MCS(text).splitlines(), screen, strict=True))


# Case of FILES, what is changed in its text, the options, what each recording is.
READ: dict[str, tuple[str, Edit, dict[str, Any], list[dict[str, Any]]]] = {
    "tobii: both eyes in pixels on the microsecond clock, other sensors left out": (
        "tobii pro lab", same, {}, [{
            "who": ("P01", "unknown", "Rec 1"), "ms": [0, 8.334, 16.667], "screen": FULL_HD,
            "left": [[10, LOST, LOST], [20, LOST, LOST]], "right": [[20, 21, 22], [30, 31, 32]],
            "rate_hz": None, "format": "tobii",
        }],
    ),
    "tobii: validity codes above one are lost": (
        "tobii pro lab", sub((r"\tInvalid", "\t4"), (r"(?<=\t)Valid(?=\t)", "0")), {},
        [{"left": [[10, LOST, LOST], [20, LOST, LOST]]}],
    ),
    "tobii: the timeline is the task": (
        "tobii pro lab", sub((r"$(?=\n)", "\treading"), ("type\treading", "type\tTimeline name")),
        {}, [{"who": ("P01", "reading", "Rec 1")}],
    ),
    "tobii: the mean is read where the eyes are not apart": (
        "tobii pro lab", without("left|right"), {},
        [{"cyclopean": [[15, 16, LOST], [25, 26, LOST]]}],
    ),
    "tobii: the mean is lost where both eyes are invalid": (
        "tobii pro lab",
        then(without("point (left|right)"), sub(("Invalid\tValid\tb", "Invalid\tInvalid\tb"))), {},
        [{"cyclopean": [[15, LOST, LOST], [25, LOST, LOST]]}],
    ),
    **{
        f"tobii: the clock is in {unit}": (
            "tobii pro lab",
            sub(("timestamp", f"timestamp [{unit}]"), (r"(point [^\t]*)", r"\1 [DACS px]")), {},
            [{"ms": [0, ms, 2 * ms - ms / 8334]}],
        )
        for unit, ms in (("μs", 8.334), ("ms", 8334.0), ("us", 8.334))
    },
    **{
        f"tobii: a row of an event of sensor {sensor!r} is no lost sample": (
            "tobii pro lab", with_event(sensor, "MouseEvent"), {}, [{"ms": [0, 16.667]}],
        )
        for sensor in ("", "Mouse")
    },
    "tobii: a row without sensor is the eye tracker's if it has a validity": (
        "tobii pro lab", sub(("Eye Tracker", ""), (r"22\t32", r"\t")), {},
        [{"ms": [0, 8.334, 16.667], "right": [[20, 21, LOST], [30, 31, LOST]]}],
    ),
    "tobii: without validity and sensor an empty row is lost unless it has an event": (
        "tobii pro lab", then(with_event("", "KeyboardEvent"), without("Sensor|Validity")), {},
        [{"ms": [0, 8.333, 16.667], "right": [[20, LOST, 22], [30, LOST, 32]]}],
    ),
    "tobii: gaze on a medium is passed over": (
        "tobii pro lab",
        with_medium,
        {}, [{"right": [[20, 21, 22], [30, 31, 32]]}],
    ),
    "tobii: a given screen completes the file's": (
        "tobii pro lab", same, {"screen": Screen(1920, 1080, 53.0, 30.0, 65.0)},
        [{"screen": Screen(1920, 1080, 53.0, 30.0, 65.0)}],
    ),
    "studio 3: milliseconds, decimal commas, codes of validity": (
        "tobii studio 3", same, {}, [{
            "who": ("P02", "unknown", "Rec 07"), "ms": [0, 3, 7], "screen": FULL_HD,
            "left": [[100.5, LOST, LOST], [200.5, LOST, LOST]],
            "right": [[110.5, 111.5, LOST], [210.5, 211.5, LOST]],
            "unit": "px", "origin": "top-left",
        }],
    ),
    "studio 2: the screen stands above the header": (
        "tobii studio 2", same, {}, [{
            "ms": [0, 17], "left": [[100, LOST], [200, LOST]], "right": [[110, 112], [210, 212]],
            "screen": Screen(1280, 1024),
        }],
    ),
    "smi: rate, eyes and screen of the comments; 0, 0 is lost, messages are no samples": (
        "smi", same, {}, [
            {
                "who": ("P07", "unknown", "1"), "rate_hz": 500,
                "screen": Screen(1680, 1050, 47.4, 29.7, 70.0),
                "ms": [7441672, 7441674, 7441676], "unit": "px", "origin": "top-left",
                "left": [[840.5, 842.5, 0], [525.25, 527.25, 300]],
                "right": [[841, LOST, 845], [526, LOST, 0]],
            },
            {"who": ("P07", "unknown", "2"), "ms": [7441900]},
        ],
    ),
    "smi: participant and screen may be unstated": (
        "smi", sub(("P07", ""), (r"1680\t1050", r"0\t0")), {},
        [{"who": ("anna", "unknown", "1"), "screen": None}, {}],
    ),
    "smi: one eye": (
        "smi", sub((r"\tL POR", "\tL CR1")), {}, [{"right": [[841, LOST, 845], [526, LOST, 0]]}, {}]
    ),
    "begaze: names in full, milliseconds": (
        "smi begaze", same, {}, [{
            "who": ("P01", "unknown", "Trial001"), "ms": [1000.2, 1016.9, 1033.6],
            "left": [[11.5, LOST, 13.5], [21.5, LOST, 23.5]],
            "right": [[10.5, LOST, 12.5], [20.5, LOST, 22.5]],
        }],
    ),
    "gazepoint: fractions from the top left; each showing of a medium is a trial": (
        "gazepoint", same, {"screen": FULL_HD}, [
            {
                "who": ("anna", "unknown", "0-0"), "ms": [0, 16.6, 33.2], "rate_hz": None,
                "cyclopean": [[960, LOST, 998.4], [270, LOST, 1371.6]],
                "blinks": {"cyclopean": [1]}, "unit": "norm", "origin": "top-left",
            },
            {"who": ("anna", "unknown", "1-1"), "cyclopean": [[1017.6, 1036.8], [302.4, 313.2]]},
            {"who": ("anna", "unknown", "0-2")},
        ],
    ),
    "gazepoint api: the best point, not the eye's position": (
        "gazepoint api", same, {"screen": FULL_HD},
        [{"ms": [12000, 12007], "cyclopean": [[576, 768], [432, 540]]}],
    ),
    "gazepoint api: without a best point each eye and its validity": (
        "gazepoint api", sub(("BPOG", "other")), {"screen": FULL_HD},
        [{"left": [[384, LOST], [324, LOST]], "right": [[768, 768], [540, 540]]}],
    ),
    "neon: scene camera, nanoseconds, lost where not worn, sections are trials": (
        "neon", same, {}, [
            {
                "who": ("gaze", "unknown", "r1-s1"), "screen": Screen(1600, 1200),
                "cyclopean": [[800.5, 801.5, LOST, 803.5], [600.25, 601.25, LOST, 603.25]],
                "ms": 1.7e12 + np.array([0, 5, 10, 15]), "blinks": {"cyclopean": [3]},
                "format": "pupil-labs",
            },
            {"who": ("gaze", "unknown", "r1-s2")},
        ],
    ),
    **{
        f"core, {age}: flipped, scaled, lost at low confidence": (
            "core", sub(("gaze_timestamp", name)), {}, [{
                "ms": [10_000, 10_008, 10_017], "screen": Screen(1280, 720),
                "cyclopean": [[640, LOST, 320], [180, LOST, 720]], "origin": "bottom-left",
            }],
        )
        for age, name in (("newer", "gaze_timestamp"), ("older", "timestamp"))
    },
    "pupil labs: a given screen goes before the camera's": (
        "core", same, {"screen": Screen(1088, 1080)}, [{"screen": Screen(1088, 1080)}],
    ),
    "marker mapper: a fraction of the surface, lost beside it": (
        "marker mapper", same, {"screen": FULL_HD}, [{
            "cyclopean": [[480, LOST, LOST, 1920], [810, LOST, LOST, 0]],
            "blinks": {"cyclopean": [2]}, "unit": "norm", "origin": "top-left",
        }],
    ),
    "reference image mapper: its pixels": (
        "marker mapper", sub(("on surface", "in reference image"), ("normalized", "px")), {},
        [{"cyclopean": [[0.25, LOST, LOST, 1], [0.75, LOST, LOST, 0]], "screen": None}],
    ),
    **{
        f"core, surface ({name}): from the bottom left": (
            "core surface", sub(("on_surf", name)), {"screen": Screen(1000, 500)}, [{
                "cyclopean": [[500, LOST, LOST, 250], [125, LOST, LOST, 500]],
                "ms": [10_000, 10_005, 10_010, 10_015],
            }],
        )
        for name in ("on_surf", "on_srf")
    },
    "gazebase: the name tells round, participant, session and task": (
        "gazebase", same, {}, [{
            "who": ("001", "RAN", "1-2"), "ms": range(5), "screen": GAZEBASE_SCREEN,
            "unit": "deg", "origin": "center-up",
        }],
    ),
    "gazebase: a given screen goes before the assumed one": (
        "gazebase", same, {"screen": Screen(1920, 1080, 53.0, 30.0, 60.0)},
        [{"screen": Screen(1920, 1080, 53.0, 30.0, 60.0)}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_an_export_is_read(tmp_path: Path, case: str) -> None:
    of, edit, options, expected = READ[case]
    name, content, format = FILES[of]
    text = content.decode("utf-16") if isinstance(content, bytes) else content
    encoding = "utf-16" if isinstance(content, bytes) else "utf-8"
    path = write(tmp_path, edit(text).encode(encoding), name)
    assert matched(path, format)
    (source,) = find_sources([path])
    assert format == source.reader.NAME
    found = read(path, **options)
    assert len(found) == len(expected)
    for recording, one in zip(found, expected, strict=True):
        assert {"left", "right", "cyclopean"} & one.keys() <= set(recording.gaze_px)
        assert_found(recording, **one)


def test_gazebase_is_in_degrees_from_the_centre_upwards(tmp_path: Path) -> None:
    path = write(tmp_path, GAZEBASE, "S_1001_S2_RAN.csv")
    gaze_px = read_one(path).gaze_px["left"]
    np.testing.assert_array_equal(np.isnan(gaze_px[0]), [False, False, True, True, False])
    degrees = GAZEBASE_SCREEN.to_degrees(gaze_px)[:, [0, 1, 4]]
    np.testing.assert_allclose(degrees, [[0, 5.0, -10.0], [0, 2.5, -8.0]], atol=1e-4)
    # The order of the columns differs between tasks.
    turned = "\n".join(",".join(line.split(",")[::-1]) for line in GAZEBASE.splitlines())
    again = read_one(write(tmp_path, turned, "S_1001_S1_TEX.csv"))
    np.testing.assert_array_equal(again.gaze_px["left"], gaze_px)


def test_pymovements_reads_the_same_gaze_of_smi_and_gazebase(tmp_path: Path) -> None:
    import pymovements

    names = "L POR X [px]\tL POR Y [px]\tL Pupil Diameter [mm]\tTiming\tPupil Confidence\tL Plane"
    header = f"Time\tType\tTrial\t{names}\tInfo\tL Event Info\tStimulus\n"
    rows = "".join(
        f"{1_000_000 + 2000 * i}\tSMP\t1\t{800 + i}.50\t{500 - i}.20\t4.0\t0\t1\t1\tFixation\t"
        "Fixation\ttest.bmp\n"
        for i in range(5)
    )
    path = write(tmp_path, SMI_COMMENTS.replace("iView", "BeGaze") + header + rows, "a.txt")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="pymovements")
        theirs = pymovements.gaze.from_begaze(path).samples
    expected = np.array(theirs["pixel"].to_list(), dtype=np.float32).T
    assert_found(read_one(path), ms=theirs["time"].to_numpy(), left=expected)
    folder = tmp_path / "GazeBase" / "raw" / "Round_1" / "Subject_1001" / "S2"
    folder.mkdir(parents=True)
    ours = read_one(write(folder, GAZEBASE, "S_1001_S2_RAN.csv")).gaze_px["left"]
    (source,) = find_sources(["pymovements:GazeBase"], options_of(tmp_path))
    (recording,) = source.read()
    (gaze_px,) = recording.gaze_px.values()
    np.testing.assert_allclose(gaze_px[:, [0, 1, 4]], ours[:, [0, 1, 4]], rtol=1e-6)


def options_of(data_dir: Path) -> Any:
    from gazediffusion.data.readers import ReadOptions

    return ReadOptions(data_dir=data_dir)


# Format, text, what is said when the format is forced; no such file is taken for the format's.
OTHERS = [
    ("tobii", without("timestamp")(PRO_LAB), "Recording timestamp"),
    ("tobii", MCS(PRO_LAB), "in pixels of the screen"),
    ("tobii", "Timestamp\tGazePointX\tGazePointY\n0\t0\t0\n", "Recording timestamp"),
    ("smi", SMI_COMMENTS + "Table Header for Fixations:\nEvent Type\tTrial\tStart\n", "lacks"),
    ("smi", SMI.replace(" POR ", " CR1 "), "point of regard"),
    ("smi", "Time\tType\tTrial\tx\ty\n1\tSMP\t1\t2\t3\n", "point of regard"),
    ("gazebase", "t,x,y,val\n0,1,2,0\n", "lack dP, n"),
    *(
        ("pupil-labs", f"{header}\n", "no gaze export|no rows")
        for header in (
            "section id,recording id,fixation id,start timestamp [ns],fixation x [px]",
            "section id,recording id,blink id,start timestamp [ns],end timestamp [ns]",
            "section id,recording id,timestamp [ns],gyro x [deg/s],acceleration x [g]",
            "section id,recording id,timestamp [ns]",
            "timestamp,index,id,confidence,norm_pos_x,norm_pos_y,diameter,method",
            "world_timestamp,world_index,fixation_id,start_timestamp,norm_pos_x,norm_pos_y,on_surf",
        )
    ),
]


@pytest.mark.parametrize(("format", "text", "said"), OTHERS)
def test_other_tables_are_not_taken_and_refused_when_forced(
    tmp_path: Path, format: str, text: str, said: str
) -> None:
    path = write(tmp_path, text)
    assert not matched(path, format)
    with pytest.raises(GazeError, match=said):
        read(path, format)


@pytest.mark.parametrize(
    ("name", "text", "old", "column"),
    [
        ("a.tsv", PRO_LAB, r"(?<=\t)22\t32", "Gaze point right X"),
        ("a.tsv", STUDIO_2, r"(?<=\t)112\t", "GazePointXRight"),
        ("a.txt", SMI, r"845\.00", r"R POR X \[px\]"),
        ("a.csv", BEGAZE, r"12\.5", r"Point of Regard Right X \[px\]"),
        ("a.csv", GAZEPOINT, r"0\.52000", "BPOGX"),
        ("a.csv", NEON, r"803\.5", r"gaze x \[px\]"),
    ],
)
def test_a_wrong_cell_is_named_by_its_line_in_the_file(
    tmp_path: Path, name: str, text: str, old: str, column: str
) -> None:
    found = re.search(old, text)
    assert found
    line = 1 + text.count("\n", 0, found.start())
    text = text[: found.start()] + re.sub(r"^[^\t,]+", "oops", found[0]) + text[found.end() :]
    with pytest.raises(GazeError, match=rf"line {line}, column '{column}': 'oops'"):
        read(write(tmp_path, text, name), screen=FULL_HD)


def test_gazepoint_needs_the_screen_and_the_best_point(tmp_path: Path) -> None:
    path = write(tmp_path, GAZEPOINT, "User 3_all_gaze.csv")
    with pytest.raises(GazeError, match=r"norm from top-left.*give `screen`"):
        read(path)
    write(tmp_path, GAZEPOINT, "User 3_fixations.csv")
    assert [source.path for source in find_sources([tmp_path])] == [path]
    averaged = write(tmp_path, re.sub("[BLR]POG", "b", GAZEPOINT), "averaged.csv")
    assert matched(averaged, "gazepoint")
    with pytest.raises(GazeError, match=r"BPOGX.*FPOGX is averaged"):
        read(averaged)
