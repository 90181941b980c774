"""EyeLink ASC: the text that SR Research's edf2asc writes, monocular and binocular.

A file is a sequence of blocks, `START` ... `END`, each one trial. A block's `SAMPLES` line says
which eyes and which rate its samples have: time, then x, y and pupil of each eye, left before
right, then optional fields (velocity, resolution, input, flags) that nobody here needs. Samples
are the lines that begin with a digit; they are parsed in bulk, the others one by one. Between
blocks, `!CAL VALIDATION` messages state the calibration error of each eye. `LABEL` messages, which
our export writes, state event classes; the tracker's own fixations and saccades are no labels. The
screen's size in centimetres may stand in a JSON file of the same name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.readers.options import (
    ReadOptions,
    identify,
    recording_facts,
    sidecar_screens,
)
from gazediffusion.data.readers.tables import read_text, to_lines, to_numbers
from gazediffusion.data.recordings import (
    EVENT_CLASSES,
    LABEL_MESSAGE,
    Eye,
    Recording,
    require_forward_time,
)
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen

if TYPE_CHECKING:
    import polars as pl

NAME = "eyelink-asc"

_SIGNATURE = re.compile(
    rb"^(?:\*\* (?:CONVERTED FROM|TYPE: EDF|VERSION: EYELINK)|START\s+\d+\s+(?:LEFT|RIGHT)"
    rb"|SAMPLES\s+(?:GAZE|HREF|PUPIL)\s)",
    re.MULTILINE,
)
# Messages alone also stand in the column files, so they only count with the right ending.
_MESSAGE = re.compile(rb"^MSG\s+\d", re.MULTILINE)
_COORDINATE = r" (-?\d{1,6}(?:\.\d+)?)"
_COORDINATES = re.compile(rf"(?:DISPLAY|GAZE)_COORDS ?[=:]?{_COORDINATE * 4}(?!\S)")
# MSG 2073895 !CAL VALIDATION HV9 R RIGHT GOOD ERROR 0.32 avg. 0.43 max OFFSET 0.26 deg. ...
# One that was aborted names no eye and no error.
_CALIBRATED = re.compile(
    r"!CAL (CALIBRATION|VALIDATION) \S+ \S+ (LEFT|RIGHT)(?:.* ERROR (\d{1,4}(?:\.\d+)?) avg\.)?"
)
_EYE_WORDS: dict[str, Eye] = {"LEFT": "left", "RIGHT": "right"}
_EYE_LETTERS: dict[str, Eye] = {"L": "left", "R": "right"}
_CONVERT_AGAIN = "convert the EDF again with edf2asc"


@dataclass(frozen=True)
class _Line:
    """One line that is no sample: its number in the file and its words."""

    number: int
    words: list[str]
    path: Path

    def error(self, problem: str, remedy: str | None = None) -> GazeError:
        """What is wrong with the line."""
        return GazeError(problem, path=self.path, place=f"line {self.number}", remedy=remedy)

    def number_at(self, column: int) -> float:
        """The number in a column (from 0), which must not be negative."""
        try:
            number = float(self.words[column])
        except (IndexError, ValueError):
            number = math.nan
        if not 0 <= number < math.inf:
            raise self.error(f"{self.words[0]} lacks a number in column {column + 1}")
        return number

    def eyes(self) -> list[Eye]:
        """The eyes that START or SAMPLES names, in the order of their fields in a sample."""
        return [eye for word, eye in _EYE_WORDS.items() if word in self.words]

    def display(self) -> tuple[tuple[float, float], Screen] | None:
        """Left and top of a display and its screen, where a message states its coordinates."""
        match = _COORDINATES.search(" ".join(self.words))
        if match is None:
            return None
        left, top, right, bottom = (float(value) for value in match.groups())
        if right <= left or bottom <= top:
            raise self.error("these coordinates span no screen")
        return (left, top), Screen(_n_pixels(right - left), _n_pixels(bottom - top))

    def calibrated(self, before: dict[Eye, float]) -> dict[Eye, float]:
        """Calibration errors by eye after this message; a new calibration has none yet."""
        match = _CALIBRATED.search(" ".join(self.words))
        if match is None:
            return before
        eye = _EYE_WORDS[match[2]]
        others = {one: error for one, error in before.items() if one != eye}
        is_stated = match[1] == "VALIDATION" and match[3] is not None
        return {**others, eye: float(match[3])} if is_stated else others


@dataclass
class _Block:
    """What the lines from START to END say, apart from the samples."""

    start: _Line
    eyes: list[Eye]
    has_events: bool
    end_line: float = math.inf
    has_samples_line: bool = False
    rate_hz: float | None = None
    corner_px: tuple[float, float] = (0.0, 0.0)
    screen: Screen | None = None
    calibration_error_deg: dict[Eye, float] = field(default_factory=dict)
    blinks: list[tuple[Eye, float, float]] = field(default_factory=list)
    open_blinks: dict[Eye, float] = field(default_factory=dict)
    labels: list[tuple[int, float, float]] = field(default_factory=list)

    def note(self, line: _Line) -> None:
        """Take in one line; those with unknown keywords, and other messages, say nothing."""
        words = line.words
        if words[0] == "MSG":
            if len(words) == 6 and words[2] == LABEL_MESSAGE and words[3] in EVENT_CLASSES:
                number = EVENT_CLASSES.index(words[3]) + 1
                self.labels.append((number, line.number_at(4), line.number_at(5)))
        elif words[0] == "SAMPLES":
            if "GAZE" not in words:
                problem = f"the samples are {' '.join(words[1:2]) or 'nothing'}, not GAZE in pixels"
                raise line.error(problem, f"{_CONVERT_AGAIN} and choose gaze samples")
            self.has_samples_line = True
            self.eyes = line.eyes() or self.eyes
            if not self.eyes:
                raise line.error("neither START nor SAMPLES names an eye")
            if "RATE" in words:
                self.rate_hz = line.number_at(words.index("RATE") + 1) or None
        elif words[0] == "EVENTS":
            self.has_events = True
        elif words[0] in ("SBLINK", "EBLINK"):
            eye = _EYE_LETTERS.get(words[1] if len(words) > 1 else "")
            if eye is None:
                raise line.error(f"{words[0]} names no eye")
            self.open_blinks[eye] = line.number_at(2)
            if words[0] == "EBLINK":
                self.blinks.append((eye, self.open_blinks.pop(eye), line.number_at(3)))

    def event_classes(self, time_ms: NDArray[np.float64]) -> NDArray[np.uint8] | None:
        """The labels (time,); None where no message states any."""
        classes = np.zeros(len(time_ms), dtype=np.uint8)
        for number, start, stop in self.labels:
            classes[_between(time_ms, start, stop)] = number
        return classes if self.labels else None

    def is_blink(self, time_ms: NDArray[np.float64]) -> dict[Eye, NDArray[np.bool_]]:
        """The tracker's blinks (time,) per eye; empty if it recorded no events."""
        unfinished = [(eye, start, math.inf) for eye, start in self.open_blinks.items()]
        blinks = self.blinks + unfinished
        if not self.has_events and not blinks:
            return {}
        found = {eye: np.zeros(len(time_ms), dtype=np.bool_) for eye in self.eyes}
        for eye, start, stop in blinks:
            if eye in found:
                found[eye][_between(time_ms, start, stop)] = True
        return found


def _between(time_ms: NDArray[np.float64], start: float, stop: float) -> slice:
    """The samples from a time to another, ends included."""
    first = np.searchsorted(time_ms, start, side="left")
    return slice(int(first), int(np.searchsorted(time_ms, stop, side="right")))


def matches(path: Path, head: bytes, options: ReadOptions) -> bool:
    """Whether the file begins like an ASC file: its header, or a block, or messages in a .asc."""
    if b"\x00" in head:
        return False
    is_named_asc = path.suffix.lower() == ".asc"
    return bool(_SIGNATURE.search(head) or (is_named_asc and _MESSAGE.search(head)))


def read(path: Path, options: ReadOptions) -> Iterator[Recording]:
    """One recording for each START ... END block that has samples."""
    import polars as pl

    lines = to_lines(read_text(path))
    is_sample = pl.col("line").str.contains(r"^\d")
    samples = lines.filter(is_sample)
    blocks = _blocks(lines.filter(~is_sample).iter_rows(), path)
    edges = [(block.start.number, block.end_line) for block in blocks]
    bounds = np.searchsorted(samples["number"].to_numpy(), np.reshape(edges, (-1, 2)))
    if not (bounds[:, 0] < bounds[:, 1]).any():
        problem = "no samples between START and END" if blocks else "there is no START line"
        raise GazeError(problem, path=path, remedy=f"{_CONVERT_AGAIN}, with samples and events")
    identity = identify(path, options)
    beside = sidecar_screens(path)
    for trial, (block, (first, stop)) in enumerate(zip(blocks, bounds.tolist(), strict=True)):
        if first == stop:
            continue
        time_ms, gaze_px = _parse(samples[first:stop], block, path)
        screen = block.screen
        if isinstance(beside, Screen) and (screen is None or screen.has_pixels_of(beside)):
            screen = beside
        screen, source = options.screen_of(path, screen)
        yield Recording(
            participant=identity.participant,
            task=identity.task,
            trial=identity.trial if len(blocks) == 1 else str(trial),
            time_ms=time_ms,
            gaze_px=gaze_px,
            is_blink=block.is_blink(time_ms),
            path=path,
            format=NAME,
            screen=screen,
            rate_hz=block.rate_hz,
            calibration_error_deg=block.calibration_error_deg,
            facts=recording_facts(identity, screen, source),
            labels=block.event_classes(time_ms),
        )


def _parse(
    samples: pl.DataFrame, block: _Block, path: Path
) -> tuple[NDArray[np.float64], dict[Eye, NDArray[np.float32]]]:
    """Time (time,) in ms and each eye's gaze (2, time) in pixels from the top left corner."""

    def place(sample: int) -> str:
        return f"line {samples['number'][sample]}"

    if not block.has_samples_line:
        problem = "this block has samples, but no SAMPLES line that describes them"
        raise block.start.error(problem, _CONVERT_AGAIN)
    cells = samples["line"].str.split_exact(" ", 3 * len(block.eyes)).struct.unnest()
    values = to_numbers(cells, path, lambda row, column: f"{place(row)}, column {column + 1}")
    require_forward_time(values[0], path, place, remedy=_CONVERT_AGAIN)
    time_ms = _half_milliseconds(values[0]) if block.rate_hz == 2000 else values[0]
    corner_px = np.array(block.corner_px)[:, None]
    gaze_px = {
        eye: (values[first : first + 2] - corner_px).astype(np.float32)
        for eye, first in zip(block.eyes, (1, 4), strict=False)
    }
    return time_ms, gaze_px


def _half_milliseconds(time_ms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Times (time,) of 2,000 Hz, of which edf2asc writes whole milliseconds, each twice."""
    if (time_ms % 1 != 0).any():
        return time_ms
    is_second = np.diff(time_ms, prepend=time_ms[:1] - 1) == 0
    # A recording may begin with the second half of a millisecond.
    is_second[0] = len(time_ms) > 1 and not is_second[1]
    return time_ms + np.where(is_second, 0.5, 0.0)


def _n_pixels(span: float) -> int:
    """The size in pixels of a display of this span: 1920 for 0 to 1919 and for 0 to 1920."""
    n = max(1, round(span))
    return n + n % 2


def _blocks(lines: Iterator[tuple[int, str]], path: Path) -> list[_Block]:
    """The blocks that the lines other than samples describe; one without END ends at the next."""
    blocks: list[_Block] = []
    block: _Block | None = None
    corner_px, screen = (0.0, 0.0), None
    errors: dict[Eye, float] = {}
    for number, text in lines:
        line = _Line(number, text.split(" "), path)
        keyword = line.words[0]
        if keyword in ("START", "END") and block is not None:
            block.end_line = number
            block = None
        if keyword == "MSG":
            corner_px, screen = line.display() or (corner_px, screen)
            errors = line.calibrated(errors)
        if keyword == "START":
            block = _Block(line, line.eyes(), "EVENTS" in line.words, calibration_error_deg=errors)
            blocks.append(block)
        elif block is not None:
            block.note(line)
        if block is not None:
            block.corner_px, block.screen = corner_px, screen
    return blocks
