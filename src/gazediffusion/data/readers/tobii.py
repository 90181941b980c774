"""Tobii exports of samples: Pro Lab, Studio 3 and Studio 2, tab-separated text.

One row per sample or event of any sensor. Eyes are read apart where the export has them apart; a
sample whose validity is not good is lost. Rows of other sensors (mouse, GSR) and rows of events are
no samples and left out. Pro Lab counts microseconds unless its header says otherwise, Studio
milliseconds. The resolution in the file is the screen's, in Studio 2 in the lines above the header;
its size in centimetres is not in the export. Gaze in the coordinates of a medium (MCS) is not read,
since where the medium stood on the screen and how large is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from gazediffusion.data.readers.columns import MS_PER, Column, Columns
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.readers.samples import recordings
from gazediffusion.data.readers.tables import Table, header_of, open_table, parse_text
from gazediffusion.data.recordings import Eye, Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from gazediffusion.storage import decode_text, read_bytes

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def read_text(path: Path) -> str:
    """The text of a file with plain line ends."""
    return _plain(decode_text(read_bytes(path), path))


def read_head(head: bytes, path: Path) -> str:
    """The whole lines of the first bytes of a text file."""
    if not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        # A head cut inside a character is no UTF-8; whole lines are.
        head = head[: head.rfind(b"\n") + 1] or head
    return _plain(decode_text(head, path))


def names_in(text: str, path: Path) -> list[str]:
    """The column names in the first line that is not blank."""
    return header_of(text.encode(), path)


def without_preamble(text: str, header: re.Pattern[str]) -> str:
    """The text with the lines above its header left blank."""
    found = header.search(text)
    start = found.start() if found else 0
    return "\n" * text.count("\n", 0, start) + text[start:]


def stated(text: str, name: str) -> str:
    """What a line `name: value` states; empty where there is none."""
    found = re.search(rf"^\W*{re.escape(name)} ?:[ \t]*(.*)$", text, re.MULTILINE | re.IGNORECASE)
    return found[1].strip() if found else ""


def numbers_stated(text: str, name: str, n: int) -> list[float] | None:
    """The `n` positive numbers in a line `name: value`, below a million; else None."""
    return numbers_in(stated(text, name), n)


def numbers_in(text: str, n: int) -> list[float] | None:
    """The `n` positive numbers in a text, as in `1280 x 1024`, below a million; else None."""
    numbers = [float(number) for number in _NUMBER.findall(text)]
    return numbers if len(numbers) == n and all(0 < one < 1e6 for one in numbers) else None


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


NAME = "tobii"

_ENDINGS = {".tsv", ".txt", ".csv"}
_HEADER = re.compile(r"^(?=.*time ?stamp)(?=.*gaze ?point).*$", re.IGNORECASE | re.MULTILINE)
# A name and the unit behind it: `Gaze point left X [DACS px]`, `GazePointLeftX (ADCSpx)`.
_NAME_AND_UNIT = re.compile(r"(.+?)\s*(?:[\[(](.*)[\])])?")
_SCREEN_UNITS = {"", "px", "dacspx", "adcspx"}
_CLOCKS = {"recording timestamp": "us", "recordingtimestamp": "ms"}
_STUDIO_2 = {"timestamp": "ms"}
# Pro Lab writes words, Studio codes from 0 to 4.
_VALID = ["valid", "0", "1"]
_EYE_TRACKER = "eye tracker"
_EYES: tuple[Eye, ...] = ("left", "right")


def matches(path: Path, head: bytes, options: ReadOptions) -> bool:
    """Whether the header has Tobii's recording clock and a gaze point in pixels."""
    if path.suffix.lower() not in _ENDINGS:
        return False
    try:
        _find_columns(names_in(without_preamble(read_head(head, path), _HEADER), path), path)
    except GazeError:
        return False
    return True


def read(path: Path, options: ReadOptions) -> Iterator[Recording]:
    """The recordings of one export, separated by participant and recording name."""
    table, above = _open(path)
    columns = _find_columns(table.names, path)
    screen = _screen(table, stated(above, "Recording resolution"))
    table = table.where(_is_sample(table.names, columns))
    return recordings(_without_invalid(table, columns), columns, options, screen, NAME)


def _open(path: Path) -> tuple[Table, str]:
    """The table, and the text in which lines above its header state facts."""
    try:
        table = open_table(path)
        _find_columns(table.names, path)
        return table, ""
    except GazeError:
        text = read_text(path)
        return parse_text(without_preamble(text, _HEADER), path), text


def _find_columns(names: Sequence[str], path: Path) -> Columns:
    clock = _clock(names, path)
    pairs = {eye: _pair(names, eye) for eye in _EYES}
    gaze = {eye: pair for eye, pair in pairs.items() if pair}
    if not gaze and (both := _pair(names, "")):
        gaze = {"cyclopean": both}
    if clock is None or not gaze:
        raise GazeError(
            "this Tobii export lacks 'Recording timestamp' or 'Gaze point X' and 'Y' in pixels of "
            "the screen (DACS, ADCS)",
            path=path,
            remedy="export them, or give the `format` table and `columns` x=...,y=...,t=...",
        )
    recording = _named(names, "recordingname")
    return Columns(
        time=clock,
        gaze=gaze,
        participant=_named(names, "participantname"),
        task=_named(names, "timelinename"),
        trial=[recording] if recording else [],
    )


def _clock(names: Sequence[str], path: Path) -> Column | None:
    # Other programs' tables have a column of this name too, but not Studio 2's of the eyes.
    clocks = _CLOCKS | (_STUDIO_2 if _named(names, "gazepointxleft", "gazepointxright") else {})
    for name in names:
        stem, unit = _parts(name)
        known = clocks.get(stem.lower())
        if known is not None:
            unit = (unit or known).replace("µ", "u").replace("μ", "u")
            if unit not in MS_PER:
                raise GazeError(f"the clock's unit {unit!r} is not known", path=path)
            return Column(name, unit)
    return None


def _pair(names: Sequence[str], eye: str) -> tuple[Column, Column] | None:
    """The gaze point of an eye (of both where `eye` is empty), in the order of either Studio."""
    x, y = (_named(names, f"gazepoint{eye}{axis}", f"gazepoint{axis}{eye}") for axis in "xy")
    return (Column(x, "px"), Column(y, "px")) if x and y else None


def _named(names: Sequence[str], *keys: str) -> str | None:
    """The first column of one of these names, in any case, spaced or not, in pixels if any unit."""
    for name in names:
        stem, unit = _parts(name)
        if stem.replace(" ", "").lower() in keys and unit in _SCREEN_UNITS:
            return name
    return None


def _parts(name: str) -> tuple[str, str]:
    """A name without its unit, and the unit in small letters without spaces."""
    found = _NAME_AND_UNIT.fullmatch(name)
    return (found[1], (found[2] or "").replace(" ", "").lower()) if found else (name, "")


def _is_sample(names: Sequence[str], columns: Columns) -> pl.Expr:
    """Rows of the eye tracker: named so, or with a gaze point or a validity.

    Without a column of validity a lost sample is as empty as an event, which then tells itself.
    """
    validities = [name for eye in _EYES if (name := _named(names, f"validity{eye}"))]
    gaze = [axis.name for pair in columns.gaze.values() for axis in pair]
    is_sample = pl.any_horizontal(_cell(name) != "" for name in [*gaze, *validities])
    if not validities:
        event = _named(names, "event", "studioevent")
        is_sample = is_sample | (_cell(event) == "" if event else pl.lit(True))
    sensor = _named(names, "sensor")
    if sensor is None:
        return is_sample
    words = _cell(sensor)
    return pl.when(words == "").then(is_sample).otherwise(words == _EYE_TRACKER)


def _without_invalid(table: Table, columns: Columns) -> Table:
    """Blank the gaze where the tracker calls it invalid: of one eye, or of both."""
    for eye, pair in columns.gaze.items():
        sides = _EYES if eye == "cyclopean" else (eye,)
        names = [name for side in sides if (name := _named(table.names, f"validity{side}"))]
        if names:
            is_valid = pl.any_horizontal(_cell(name).is_in(_VALID) for name in names)
            table = table.seen_where(is_valid, (axis.name for axis in pair))
    return table


def _screen(table: Table, value: str) -> Screen | None:
    """The resolution in the first cell that states one, else that of `value`."""
    keys = ("recordingresolution", "recordingresolutionwidth", "recordingresolutionheight")
    names = [name for key in keys if (name := _named(table.names, key))]
    if names:
        cells = table.collect(_cell(name).filter(_cell(name) != "").first() for name in names)
        value = " x ".join(cell or "" for cell in cells.row(0))
    size = numbers_in(value, 2)
    return Screen(round(size[0]), round(size[1])) if size else None


def _cell(name: str) -> pl.Expr:
    return pl.col(name).str.strip_chars().str.to_lowercase().fill_null("")
