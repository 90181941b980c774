"""Small files of every format, how they are read in tests, and how they are damaged."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gazediffusion.data.readers import FORMATS, ReadOptions, read_recordings
from gazediffusion.data.recordings import Recording
from gazediffusion.screen import Screen

SCREEN = Screen(1280, 720, 40.0, 22.5, 45.0)
LOST = float("nan")

TABLE = "t_ms,x_px,y_px\n0,1,2\n4,2,3\n"
# The first rows of a public file of the paper's dataset.
PAPER = """\
688355663 685.4 606.2 652.0 662.8 583.2 689.0 0.0 0 0
688355664 683.3 605.3 653.0 661.2 581.6 690.0 0.0 0 0
"""
PRO_LAB = "\n".join(
    line.replace("{same}", "Eye Tracker\tP01\tRec 1\t1920\t1080")
    for line in (
        "Recording timestamp\tSensor\tParticipant name\tRecording name\tRecording resolution width"
        "\tRecording resolution height\tGaze point X\tGaze point Y\tGaze point left X"
        "\tGaze point left Y\tGaze point right X\tGaze point right Y\tValidity left\tValidity right"
        "\tPresented Stimulus name\tEye movement type",
        "0\t{same}\t15\t25\t10\t20\t20\t30\tValid\tValid\ta.png\tFixation",
        "8333\tMouse\tP01\tRec 1\t1920\t1080\t\t\t\t\t\t\t\t\ta.png\t",
        "8334\t{same}\t16\t26\t11\t21\t21\t31\tInvalid\tValid\tb.png\tSaccade",
        "16667\t{same}\t\t\t\t\t22\t32\tInvalid\tValid\tb.png\tSaccade",
        "",
    )
)
STUDIO_3 = """\
ExportDate\tStudioVersionRec\tStudioTestName\tParticipantName\tRecordingName\t\
RecordingResolution\t\
MediaName\tRecordingTimestamp\tLocalTimeStamp\tStudioEvent\tGazePointIndex\t\
GazePointLeftX (ADCSpx)\tGazePointLeftY (ADCSpx)\tGazePointRightX (ADCSpx)\t\
GazePointRightY (ADCSpx)\tGazePointX (ADCSpx)\tGazePointY (ADCSpx)\tGazePointX (MCSpx)\t\
GazePointY (MCSpx)\tGazePointLeftX (ADCSmm)\tPupilLeft\tPupilRight\tValidityLeft\tValidityRight\t
{same}0\t10:00:00.000\t\t1\t100,5\t200,5\t110,5\t210,5\t105\t205\t5\t5\t30,1\t3,1\t3,2\t0\t1\t
{same}2\t10:00:00.002\tImageStart\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t
{same}3\t10:00:00.003\t\t2\t101,5\t201,5\t111,5\t211,5\t106\t206\t6\t6\t30,2\t3,1\t3,2\t2\t0\t
{same}7\t10:00:00.007\t\t3\t\t\t\t\t\t\t\t\t\t\t\t4\t4\t
""".replace("{same}", "2.3.2014\t3.2.1\tTest 1\tP02\tRec 07\t1920 x 1080\ta.png\t")
STUDIO_2 = """System Properties:
Operating System:\tMicrosoft Windows XP Professional

Data Properties:
Recording name:\tRec 01
Recording date:\t07.06.2009
Recording resolution:\t1280 x 1024
Coordinate unit:\tPixels
Timestamp unit:\tMilliseconds

Timestamp\tDateTimeStamp\tNumber\tGazePointXLeft\tGazePointYLeft\tCamXLeft\tPupilLeft\t\
ValidityLeft\tGazePointXRight\tGazePointYRight\tCamXRight\tPupilRight\tValidityRight\t\
FixationIndex\tGazePointX\tGazePointY\tEvent\tStimuliName\t
0\t10:00\t1\t100\t200\t0,4\t3,1\t0\t110\t210\t0,5\t3,2\t0\t1\t105\t205\t\t\t
9\t10:00\t\t\t\t\t\t\t\t\t\t\t\t\t\t\tLMouseButton\t\t
17\t10:00\t2\t-1\t-1\t-1\t-1\t4\t112\t212\t0,5\t3,2\t1\t1\t112\t212\t\t\t
"""
SMI_COMMENTS = """\
## [iView]
## Converted from:\tC:\\study\\anna.idf
## Sample Rate:\t500
## [Run]
## Subject:\tP07
## Description:\tRun1
## Calibration Type:\t13-point
## Calibration Area:\t1680\t1050
## Calibration Point 0:\tPosition(840;525)
## Stimulus Dimension [mm]:\t474\t297
## Head Distance [mm]:\t700
## Operating System :\t6.1
## Format:\tLEFT, RIGHT, RAW, POR, MSG
##
"""
SMI = (
    SMI_COMMENTS + "Time\tType\tTrial\tL Raw X [px]\tL Raw Y [px]\tR Raw X [px]\tR Raw Y [px]\t"
    "L POR X [px]\tL POR Y [px]\tR POR X [px]\tR POR Y [px]\tTiming\tPupil Confidence\n"
    "7441672000\tSMP\t1\t97.1\t84.5\t90.1\t80.5\t840.50\t525.25\t841.00\t526.00\t0\t1\n"
    "7441673500\tMSG\t1\t# Message: picture.jpg\n"
    "7441674000\tSMP\t1\t97.1\t84.5\t0.00\t0.00\t842.50\t527.25\t0.00\t0.00\t0\t1\n"
    "7441676000\tSMP\t1\t97.1\t84.5\t90.1\t80.5\t0.00\t300.00\t845.00\t0.00\t0\t1\n"
    "7441900000\tSMP\t2\t97.1\t84.5\t90.1\t80.5\t840.50\t525.25\t841.00\t526.00\t0\t1\n"
)
BEGAZE = """\
RecordingTime [ms],Trial,Stimulus,Participant,Category Right,Category Left,\
Point of Regard Right X [px],Point of Regard Right Y [px],\
Point of Regard Left X [px],Point of Regard Left Y [px]
1000.0,Trial001,a.jpg,P01,Separator,Separator,-,-,-,-
1000.2,Trial001,a.jpg,P01,Fixation,Fixation,10.5,20.5,11.5,21.5
1016.9,Trial001,a.jpg,P01,Blink,Blink,-,-,0.0,0.0
1033.6,Trial001,a.jpg,P01,Saccade,Saccade,12.5,22.5,13.5,23.5
"""
# The header and every row of Gazepoint Analysis end with a comma.
GAZEPOINT = """\
MEDIA_ID,MEDIA_NAME,CNT,TIME(2023/02/20 13:50:12.345),TIMETICK(f=10000000),\
FPOGX,FPOGY,FPOGS,FPOGD,FPOGID,FPOGV,BPOGX,BPOGY,BPOGV,CX,CY,CS,USER,\
LPCX,LPCY,LPD,LPS,LPV,RPCX,RPCY,RPD,RPS,RPV,BKID,BKDUR,
0,a.png,1,0.00000,6900000,0.1,0.1,0,0.1,1,1,0.50000,0.25000,1,0,0,0,,.4,.6,18,1,1,.6,.6,18,1,1,0,0,
0,a.png,2,0.01660,6900166,0.1,0.1,0,0.1,1,1,0.51000,0.26000,0,0,0,0,,.4,.6,18,1,1,.6,.6,18,1,1,1,0,
0,a.png,3,0.03320,6900332,0.1,0.1,0,0.1,1,1,0.52000,1.27000,1,0,0,0,,.4,.6,18,1,1,.6,.6,18,1,1,0,0,
1,b.png,4,0.00000,6900498,0.1,0.1,0,0.1,2,1,0.53000,0.28000,1,0,0,0,,.4,.6,18,1,1,.6,.6,18,1,1,0,0,
1,b.png,5,0.01660,6900664,0.1,0.1,0,0.1,2,1,0.54000,0.29000,1,0,0,0,,.4,.6,18,1,1,.6,.6,18,1,1,0,0,
0,a.png,6,0.00000,6900830,0.1,0.1,0,0.1,3,1,0.55000,0.30000,1,0,0,0,,.4,.6,18,1,1,.6,.6,18,1,1,0,0,
"""
GAZEPOINT_API = (
    "CNT\tTIME\tTIME_TICK\tFPOGX\tFPOGY\tFPOGV\tLPOGX\tLPOGY\tLPOGV\tRPOGX\tRPOGY\tRPOGV\t"
    "BPOGX\tBPOGY\tBPOGV\tLEYEX\tLEYEY\tLEYEZ\tLPV\tREYEX\tREYEY\tREYEZ\tRPV\tUSER\n"
    "1\t12.000\t1\t.1\t.1\t1\t.2\t.3\t1\t.4\t.5\t1\t.3\t.4\t1\t-.03\t.01\t.6\t1\t.03\t.01\t.6\t1\t0\n"
    "2\t12.007\t2\t.1\t.1\t1\t.2\t.3\t0\t.4\t.5\t1\t.4\t.5\t1\t-.03\t.01\t.6\t1\t.03\t.01\t.6\t1\tgo\n"
)
NEON = """\
section id,recording id,timestamp [ns],gaze x [px],gaze y [px],worn,fixation id,blink id
s1,r1,1700000000000000000,800.5,600.25,True,1,
s1,r1,1700000000005000000,801.5,601.25,1,1,
s1,r1,1700000000010000000,802.5,602.25,False,,
s1,r1,1700000000015000000,803.5,603.25,True,,3
s2,r1,1600000000000000000,1,2,True,,
"""
MARKER_MAPPER = """\
section id,recording id,timestamp [ns],gaze detected on surface,\
gaze position on surface x [normalized],gaze position on surface y [normalized],fixation id,blink id
s1,r1,1700000000000000000,True,0.25,0.75,1,
s1,r1,1700000000005000000,False,1.25,0.75,1,
s1,r1,1700000000010000000,False,,,,2
s1,r1,1700000000015000000,true,1.0,0.0,,
"""
CORE = """\
gaze_timestamp,world_index,confidence,norm_pos_x,norm_pos_y,base_data
10.000,0,0.99,0.5,0.75,a
10.008,0,0.30,0.5,0.75,a
10.017,1,0.60,0.25,0.0,a
"""
CORE_SURFACE = """\
world_timestamp,world_index,gaze_timestamp,x_norm,y_norm,x_scaled,y_scaled,on_surf,confidence
9.99,0,10.000,0.5,0.75,50,75,True,0.99
9.99,0,10.005,0.5,0.75,50,75,True,0.30
9.99,1,10.010,1.5,0.75,150,75,False,0.99
9.99,1,10.015,0.25,0.0,25,0,True,0.99
"""
GAZEBASE = """\
n,x,y,val,xT,yT,dP,lab
0,0.0,0.0,0,0,0,1043,1
1,5.0,-2.5,0,0,0,1044,1
2,6.0,-3.5,4,0,0,0,NaN
3,NaN,NaN,4,0,0,0,NaN
4,-10.0,8.0,0,0,0,1042,1
"""
ASC_HEADER = """\
** CONVERTED FROM demo.edf using edfapi 4.2.1
** TYPE: EDF_FILE BINARY EVENT SAMPLE TAGGED
** VERSION: EYELINK II 1
** SOURCE: EYELINK CL
** EYELINK II CL v6.12 Feb  1 2018 (EyeLink Portable Duo)
**

MSG\t990 DISPLAY_COORDS 0 0 1919 1079
"""


def gaze_of(n: int, seed: int) -> NDArray[np.float64]:
    """Gaze (2, n) in tenths of a pixel, so that text holds it exactly."""
    return np.round(np.random.default_rng(seed).uniform(10, 1000, (2, n)), 1)


def block(
    eyes: Sequence[str],
    times: Sequence[float],
    gaze: Sequence[NDArray[np.float64]],
    *,
    rate: str = "1000.00",
    extra: str = "\t.....",
    events: Sequence[str] = (),
    start_extra: str = "\tSAMPLES\tEVENTS",
    events_line: bool = True,
) -> str:
    """A START ... END block of ASC with one line per sample; NaN is written as `.`."""
    names = "\t".join(eye.upper() for eye in eyes)
    letters = "".join(eye[0].upper() for eye in eyes)
    first = int(times[0])
    setup = f"GAZE\t{names}\tRATE\t{rate}\tTRACKING\tCR\tFILTER\t2"
    lines = [
        f"MSG\t{first} RECCFG CR {float(rate):.0f} 2 1 {letters}",
        f"MSG\t{first} ELCLCFG MTABLER",
        f"MSG\t{first} GAZE_COORDS 0.00 0.00 1919.00 1079.00",
        f"START\t{first} \t{names}{start_extra}",
        "PRESCALER\t1",
        "VPRESCALER\t1",
        "PUPIL\tAREA",
        *([f"EVENTS\t{setup}"] if events_line else []),
        f"SAMPLES\t{setup}\tINPUT",
        *events,
    ]
    for i, time in enumerate(times):
        cells = [f"{time:g}"]
        for one in gaze:
            cells += ["   ." if np.isnan(v) else f"{v:7.1f}" for v in one[:, i]]
            cells.append(" 1234.0")
        lines.append("\t".join(cells) + extra)
    lines.append(f"END\t{int(times[-1]) + 1} \tSAMPLES\tEVENTS\tRES\t  45.00\t  45.00")
    return "\n".join(lines) + "\n"


def right_block(n: int = 20, start: int = 1000, **changes: Any) -> str:
    return block(["right"], range(start, start + n), [gaze_of(n, 1)], **changes)


def asc(path: Path, *blocks: str, header: str = ASC_HEADER) -> Path:
    path.write_text(header + "".join(blocks))
    return path


def calibration(eye: str, letters: str, error: float | None) -> str:
    """The messages of a calibration and its validation, as the Host PC writes them."""
    said = f"MSG\t800 !CAL CALIBRATION HV9 {letters} {eye}   GOOD \n"
    if error is None:
        return said + f"MSG\t900 !CAL VALIDATION HV9 {letters} ABORTED\n"
    return said + (
        f"MSG\t900 !CAL VALIDATION HV9 {letters} {eye}  GOOD ERROR {error:.2f} avg. 1.43 max  "
        "OFFSET 0.26 deg. -4.6,-11.0 pix.\n"
        f"MSG\t900 VALIDATE {letters} POINT 0  {eye}  at 960,540  OFFSET 0.39 deg.  -2.2,7.9 pix.\n"
    )


def long_frame() -> pl.DataFrame:
    """Two participants with two trials of three samples each, 4 ms apart, one sample lost."""
    rows = [
        (who, "read", trial, 4 * k, None if trial + k == 3 else 100.0 * trial + k, 50.0 + k)
        for who in ("p1", "p2")
        for trial in (0, 1)
        for k in range(3)
    ]
    names = ["participant", "task", "trial", "t_ms", "x_px", "y_px"]
    return pl.DataFrame(rows, schema=names, orient="row")


def arrow_bytes(frame: pl.DataFrame, ending: str) -> bytes:
    """A frame as Parquet or Arrow, each as another program writes it."""
    from pyarrow import feather

    stream = BytesIO()
    if ending == ".parquet":
        frame.write_parquet(stream)
    elif ending == ".arrow":
        frame.write_ipc_stream(stream)
    elif ending == ".ipc":
        frame.write_ipc(stream, compression="zstd")
    else:
        feather.write_feather(frame.to_arrow(), stream, compression="lz4", chunksize=4)
    return stream.getvalue()


def paper_text(values: NDArray[np.float64]) -> str:
    return "\n".join(" ".join(f"{v:.1f}" for v in line) for line in values)


def paper_samples(n: int = 30, n_columns: int = 10) -> NDArray[np.float64]:
    """Random samples (n, n_columns) on a 1000 Hz clock, all of them labelled fixation."""
    values = np.random.default_rng(0).uniform(100, 900, (n, n_columns))
    values[:, 0] = 688355663 + np.arange(n)
    values[:, -3:] = [0, 1, 1]
    return values


ARROW = (".parquet", ".feather", ".arrow", ".ipc")
# Case -> the file's name, its content, its format.
FILES: dict[str, tuple[str, str | bytes, str]] = {
    "table": ("anna.csv", long_frame().write_csv(), "table"),
    "table in UTF-16": (
        "anna.tsv",
        long_frame().write_csv(separator="\t").encode("utf-16"),
        "table",
    ),
    **{
        ending: (
            f"anna{ending}",
            arrow_bytes(long_frame().with_columns(pl.col("task").cast(pl.Categorical)), ending),
            "table",
        )
        for ending in ARROW
    },
    "paper": ("anna.txt", paper_text(paper_samples(12)), "columns"),
    "paper, one eye, transposed": ("anna.txt", paper_text(paper_samples(12, 7).T), "columns"),
    "eyelink": (
        "anna.asc",
        ASC_HEADER
        + block(
            ["left", "right"],
            range(1000, 1012),
            [gaze_of(12, 1), gaze_of(12, 2)],
            events=["SBLINK R 1003", "EBLINK R 1003\t1006\t4"],
        )
        + right_block(12, 2000),
        "eyelink-asc",
    ),
    "tobii pro lab": ("anna.tsv", PRO_LAB, "tobii"),
    "tobii studio 2": ("anna.tsv", STUDIO_2, "tobii"),
    "tobii studio 3": ("anna.tsv", STUDIO_3.encode("utf-16"), "tobii"),
    "smi": ("anna Samples.txt", SMI, "smi"),
    "smi begaze": ("anna.csv", BEGAZE, "smi"),
    "gazepoint": ("anna_all_gaze.csv", GAZEPOINT, "gazepoint"),
    "gazepoint api": ("anna.tsv", GAZEPOINT_API, "gazepoint"),
    "neon": ("gaze.csv", NEON, "pupil-labs"),
    "marker mapper": ("gaze.csv", MARKER_MAPPER, "pupil-labs"),
    "core": ("gaze_positions.csv", CORE, "pupil-labs"),
    "core surface": ("gaze_positions_on_surface_Screen.csv", CORE_SURFACE, "pupil-labs"),
    "gazebase": ("S_1001_S2_RAN.csv", GAZEBASE, "gazebase"),
}

PHYSIO: dict[str, Any] = {
    "SamplingFrequency": 250,
    "StartTime": 0,
    "Columns": ["timestamp", "x_coordinate", "y_coordinate", "pupil_size"],
    "PhysioType": "eyetrack",
    "RecordedEye": "left",
    "SampleCoordinateSystem": "gaze-on-screen",
    "x_coordinate": {"Units": "pixel"},
    "y_coordinate": {"Units": "pixel"},
}
PHYSIO_ROWS = "1000\t1.5\t2.5\t900\n1004\t1.6\t2.6\t901\n1008\tn/a\tn/a\tn/a\n1012\t1.8\t2.8\t903\n"


def bids_eye(root: Path, number: int = 1, rows: str = PHYSIO_ROWS, **changes: Any) -> Path:
    """One eye of sub-01 with its own sidecar; returns its data file."""
    path = root / "sub-01" / "beh" / f"sub-01_task-read_run-2_recording-eye{number}_physio.tsv.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(rows.encode(), mtime=0))
    beside(path).write_text(json.dumps({**PHYSIO, **changes}))
    return path


def beside(path: Path) -> Path:
    """The sidecar of a file of BIDS."""
    return path.with_name(path.name.replace(".tsv.gz", ".json"))


def write(folder: Path, content: str | bytes, name: str = "recordings.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def matched(path: Path, format: str = "table", **options: Any) -> bool:
    """Whether the reader of a format takes a file."""
    head = path.read_bytes()[: 1 << 16]
    return FORMATS[format].matches(path, head, ReadOptions(**options))


def read(path: Path, format: str = "auto", **options: Any) -> list[Recording]:
    return list(read_recordings([path], ReadOptions(**options), format))


def read_one(path: Path, format: str = "auto", **options: Any) -> Recording:
    (recording,) = read(path, format, **options)
    return recording


def assert_found(recording: Recording, **expected: Any) -> None:
    """What is expected of a recording: who, ms, left, right, cyclopean, blinks and other fields."""
    for name, value in expected.items():
        found: Any
        if name == "ms":
            np.testing.assert_allclose(recording.time_ms, value, rtol=1e-12)
        elif name in ("left", "right", "cyclopean"):
            gaze_px: Any = recording.gaze_px
            np.testing.assert_allclose(gaze_px[name], value, rtol=1e-6)
        elif name == "blinks":
            found = {eye: np.flatnonzero(one).tolist() for eye, one in recording.is_blink.items()}
            assert found == value
        elif name == "who":
            assert (recording.participant, recording.task, recording.trial) == value
        elif name in ("unit", "origin"):
            assert recording.facts[name].value == value
        else:
            assert getattr(recording, name) == value


CELLS = [b"", b".", b"nan", b"inf", b"-1", b"9" * 400, b"1e400", b"L", b"MSG", b"x", b"\n"]
KINDS = ["delete", "insert", "replace", "truncate", "drop line", "repeat line"]
edits = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from(KINDS),
        st.binary(min_size=1, max_size=6) | st.sampled_from(CELLS),
    ),
    min_size=1,
    max_size=6,
)
fuzz = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def damage(content: bytes, changes: list[tuple[float, str, bytes]]) -> bytes:
    """The content after changes of bytes and lines at places given as fractions."""
    for fraction, kind, new in changes:
        at = int(fraction * len(content))
        first, end = content.rfind(b"\n", 0, at) + 1, content.find(b"\n", at) + 1 or len(content)
        content = {
            "delete": content[:at] + content[at + len(new) :],
            "insert": content[:at] + new + content[at:],
            "replace": content[:at] + new + content[at + len(new) :],
            "truncate": content[:at],
            "drop line": content[:first] + content[end:],
            "repeat line": content[:end] + content[first:],
        }[kind]
    return content
