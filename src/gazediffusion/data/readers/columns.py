"""Columns: which word of ours a name stands for, the unit it states, and labels of events.

`x_px`, `gaze x [px]`, `LeftX`, `Time [s]` and `subject_id` are all understood; what is not is
named by the user's `columns`, which overrides everything. Events are fixation, saccade, pursuit or
noise, in words or as F, S, P, B, N; a name such as `event` may also be that of a trigger or a
message, so the content decides whether a column holds labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.recordings import EVENT_CLASSES, Eye
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.screen import Origin, Unit

MS_PER = {"s": 1e3, "ms": 1.0, "us": 1e-3, "ns": 1e-6}


def _by_form(**forms: str) -> dict[str, str]:
    """Each spelling -> our word for it."""
    return {form: word for word, listed in forms.items() for form in listed.split()}


_UNITS = _by_form(
    px="px pix pixel pixels",
    deg="deg dva degree degrees",
    norm="norm normalized normalised",
    s="s sec secs second seconds",
    ms="ms msec msecs millisecond milliseconds",
    us="us µs μs usec microsecond microseconds",
    ns="ns nsec nanosecond nanoseconds",
)
_GAZE_UNITS: tuple[Unit, ...] = ("px", "deg", "norm")
_MOST_NAMES = 200
_SIDED = {
    form: f"{word}_{side}"
    for word in ("x", "y", "blink")
    for side in ("left", "right")
    for form in (word + side, side + word, word + side[0], side[0] + word)
}
# LEYEX of Gazepoint: where the eye is before the tracker, not where it looks.
_EYE_IN_SPACE = re.compile("[lr]eye[xyz]")
_IDENTITY = _by_form(
    participant="participant subject subj sub observer person reader",
    task="task condition",
    session="session ses",
    run="run",
    block="block",
    stimulus="stimulus stim",
    recording="recording",
    trial="trial",
)
TRIAL_WORDS = ("session", "run", "block", "stimulus", "recording", "trial")
# What a name may hold beside the word that counts, and the words that count then.
Vocabulary = tuple[tuple[str, Mapping[str, str]], ...]
_BESIDE_POINT = "gaze|position|pos|points?|coordinates?|coords?"
_BESIDE_IDENTITY = r"(?:id|name|number|nr|no|num|index|idx|code)$"
_VOCABULARY: Vocabulary = (
    (
        rf"{_BESIDE_POINT}|eye|por|^is|^in|flag$",
        {"x": "x", "y": "y", "blink": "blink", "blinkid": "blink"} | _SIDED,
    ),
    ("gaze|recording|sample|device|eye|tracker", _by_form(t="t time timestamp ts")),
    (
        r"hand|final|manual|expert|sample|type|class|\d$",
        _by_form(label="label labels labeller labeler event events eventlabel eventlabels"),
    ),
    (_BESIDE_IDENTITY, _IDENTITY),
)
# Of tables whose rows are no samples but fixations, or places to which a target jumps.
POSITIONS: Vocabulary = (
    (rf"^current|fixation|fix|target|mean|{_BESIDE_POINT}", {"x": "x", "y": "y"}),
    (
        "^current|fixation|fix|target|jump",
        _by_form(
            onset="t time timestamp onset onsettime start starttime tstart", duration="duration dur"
        ),
    ),
    (
        "^current",
        _by_form(
            order="order index idx rank number nr n fixation fix fixationindex fixindex "
            "fixationnumber fixationid fixid",
            scanpath="id name",
        ),
    ),
    (_BESIDE_IDENTITY, _IDENTITY | {"scanpath": "scanpath", "image": "stimulus"}),
)
WORDS = ["x", "y", "t", "blink", "label", *dict.fromkeys([*_SIDED.values(), *_IDENTITY.values()])]


@dataclass(frozen=True)
class Column:
    """A column's name, and the unit that the name states."""

    name: str
    unit: str | None = None


Pair = tuple[Column, Column]


@dataclass(frozen=True)
class Columns:
    """Which columns hold what; times without a unit are measured by their step.

    time: None where samples are evenly spaced and no column holds their times.
    origin: of the gaze, where the format or the names state it.
    label: columns that may hold event labels; their content tells.
    """

    time: Column | None
    gaze: Mapping[Eye, Pair]
    participant: str | None = None
    task: str | None = None
    trial: Sequence[str] = ()
    blink: Mapping[Eye, str] = field(default_factory=dict)
    origin: Origin | None = None
    label: Sequence[str] = ()

    @property
    def unit(self) -> str | None:
        """The unit of the gaze that the names state."""
        return next(x.unit for x, _ in self.gaze.values())

    @property
    def axes(self) -> list[str]:
        """Names of the columns of gaze, x before y of each eye."""
        return [column.name for pair in self.gaze.values() for column in pair]

    @property
    def numeric(self) -> list[str]:
        """Names of the columns that must hold numbers, each once."""
        return list(dict.fromkeys([*([self.time.name] if self.time else []), *self.axes]))

    @property
    def identity(self) -> list[str]:
        """Names of the columns that tell recordings apart, each once."""
        names = (self.participant, self.task, *self.trial)
        return list(dict.fromkeys(name for name in names if name is not None))


def gaze_among(
    names: Sequence[str], known: Iterable[tuple[Eye, str]], unit: Unit
) -> dict[Eye, Pair]:
    """The pairs that a table has of the known ones; a name has `{}` in the place of X and Y."""
    pairs = ((eye, name.format("X"), name.format("Y")) for eye, name in known)
    return {eye: (Column(x, unit), Column(y, unit)) for eye, x, y in pairs if {x, y} <= {*names}}


def find_columns(names: Sequence[str], options: ReadOptions, path: Path) -> Columns:
    """Tell by the user's words, else by the names, which columns hold what."""
    require_known_words(options)
    if any("ellipse" in words_in(name) for name in names):
        problem = "these are positions of the pupil in the image of an eye camera, not gaze"
        raise GazeError(problem, path=path, remedy="read the export of gaze beside it")
    found: dict[str, list[Column]] = {word: [] for word in WORDS}
    for name in names:
        word, unit = meaning(name)
        if word is not None:
            found[word].append(Column(name, unit))
    for word, given in options.columns.items():
        name = _named(given, names, path)
        known = tuple(MS_PER) if word == "t" else _GAZE_UNITS
        unit = meaning(name)[1]
        found[word] = [Column(name, unit if unit in known else None)]
    sides: tuple[Eye, ...] = () if {"x", "y"} & options.columns.keys() else ("left", "right")
    pairs = {eye: pair_of(found[f"x_{eye}"], found[f"y_{eye}"], options.unit) for eye in sides}
    # The mean of both eyes jumps when one is lost, so it is read only where it is all there is.
    if not any(pairs.values()):
        pairs = {"cyclopean": pair_of(found["x"], found["y"], options.unit)}
    gaze = {eye: pair for eye, pair in pairs.items() if pair is not None}
    times = sorted(found["t"], key=lambda column: column.unit is None)
    if not gaze or not (times or options.source_rate_hz):
        lacking = "x and y columns" if not gaze else "time column"
        remedy = "name them with `columns` x=...,y=...,t=... (names, or positions from 1)"
        if gaze:
            remedy += "; for evenly spaced samples give `source_rate_hz`"
        raise GazeError(f"no {lacking} among {listed(names)}", path=path, remedy=remedy)

    def first(*words: str) -> str | None:
        return next((one.name for word in words for one in found.get(word, [])), None)

    blinks = {eye: first(f"blink_{eye}", "blink") for eye in gaze}
    trials = [name for name in map(first, TRIAL_WORDS) if name is not None]
    is_up = {x.unit for x, _ in gaze.values()} == {"norm"}
    is_up = is_up and all("pos" in words_in(x.name) for x, _ in gaze.values())
    return Columns(
        time=times[0] if times else None,
        gaze=gaze,
        participant=first("participant"),
        task=first("task"),
        trial=list(dict.fromkeys(trials)),
        blink={eye: name for eye, name in blinks.items() if name is not None},
        # Pupil Core's norm_pos counts from the bottom left.
        origin="bottom-left" if is_up else None,
        label=[column.name for column in found["label"]],
    )


def require_known_words(options: ReadOptions) -> None:
    """Refuse words in `columns` that mean nothing here."""
    for word in options.columns:
        if word not in WORDS:
            raise GazeError(f"`columns` knows no {word!r}", remedy=suggestion(word, WORDS))


def listed(names: Sequence[str]) -> str:
    """The names of all columns; of a table with very many the first."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _named(given: str, names: Sequence[str], path: Path) -> str:
    """The column of a name, or at a position counted from 1."""
    if given in names:
        return given
    if given.isdecimal() and 1 <= int(given) <= len(names):
        return names[int(given) - 1]
    remedy = suggestion(given, list(names))
    raise GazeError(f"there is no column {given!r}", path=path, remedy=remedy)


def meaning(name: str, vocabulary: Vocabulary = _VOCABULARY) -> tuple[str | None, str | None]:
    """Our word for a column and the unit that its name states, None where it tells neither."""
    unit = unit_in(name)
    joined = "".join(word for word in words_in(name) if word not in _UNITS)
    if _EYE_IN_SPACE.fullmatch(joined):
        return None, unit
    for beside, known in vocabulary:
        word = known.get(re.sub(beside, "", joined))
        if word is not None and (word != "t" or unit is None or unit in MS_PER):
            return word, unit
    return None, unit


def unit_in(text: str) -> str | None:
    """The last unit named in a text, in our spelling (px, deg, norm, s, ms, us, ns)."""
    return next((_UNITS[word] for word in reversed(words_in(text)) if word in _UNITS), None)


def words_in(name: str) -> list[str]:
    """The lower-case words in a name: `Gaze point left X [px]`, `LeftX`, `x_px`."""
    return re.findall(r"[a-zµμ]+|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())


def pair_of(xs: Sequence[Column], ys: Sequence[Column], preferred: Unit | None) -> Pair | None:
    """The first x and y in the same unit; the one asked for first, then pixels.

    A column without a unit may be in any, and is taken to be in pixels where none is given.
    """
    for unit in (preferred or "px", *_GAZE_UNITS):
        for units in ((unit,), (unit, None)) if unit in (preferred, "px") else ((unit,),):
            x, y = (next((one for one in of if one.unit in units), None) for of in (xs, ys))
            if x is not None and y is not None:
                return x, y
    return None


MISSING = ["", ".", "-", "nan", "na", "n/a", "null", "none"]
_OTHER = 255  # a cell that is no label
_CLASS = {
    form: number
    for number, forms in enumerate(
        (
            "unassigned unlabelled unlabeled unclassified undefined unknown other",
            "f fix fixation fixations",
            "s sac sacc saccade saccades",
            "p sp pursuit smooth_pursuit smoothpursuit",
            "b n blink blinks noise noise_blink blink/noise",
        )
    )
    for form in forms.split()
} | dict.fromkeys(MISSING, 0)


def event_classes(series: pl.Series) -> NDArray[np.uint8]:
    """The event class of each cell: 0 where it is empty, 255 where it holds something else."""
    if not isinstance(series.dtype, pl.String | pl.Categorical | pl.Enum | pl.Null):
        return np.full(len(series), _OTHER, dtype=np.uint8)
    words = series.cast(pl.String).str.strip_chars().str.to_lowercase().fill_null("")
    words = words.str.replace_all(r"\b[ -]\b", "_")
    classes = words.replace_strict(_CLASS, default=_OTHER, return_dtype=pl.UInt8)
    return classes.to_numpy()


def event_names(classes: NDArray[np.uint8]) -> pl.Series:
    """The names of event classes (time,), null where there is no label: what is written."""
    return pl.Series([None, *EVENT_CLASSES], dtype=pl.String).gather(classes)


def labels_among(columns: Mapping[str, NDArray[np.uint8]]) -> dict[str, NDArray[np.uint8]]:
    """The columns of labels, their other cells now 0.

    At least as many cells must be labels as hold something else, and not all of them noise (N may
    also mean no).
    """
    found = {}
    for name, classes in columns.items():
        counts = np.bincount(classes, minlength=_OTHER + 1)
        if counts[1:_OTHER].sum() >= counts[_OTHER] and counts[1 : len(EVENT_CLASSES)].any():
            found[name] = np.where(classes == _OTHER, 0, classes).astype(np.uint8)
    return found
