"""Recordings as MNE's `Raw` objects with annotations, and back.

Channels are named and typed as by `mne.io.read_raw_eyelink`: xpos_right, ypos_right and so on, type
`eyegaze`, in pixels from the top left. Annotations have its descriptions too: fixation, saccade and
BAD_blink; besides pursuit, BAD_noise, and BAD_ACQ_SKIP where the clock skips samples. MNE has no
place for the screen, the task and the trial: `info["description"]` states them as JSON, which a
saved FIF file keeps.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.interop.frames import alike, required
from gazediffusion.data.recordings import (
    UNKNOWN_TASK,
    Eye,
    Fact,
    Recording,
    label_segments,
    true_segments,
)
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen

if TYPE_CHECKING:
    import mne

    from gazediffusion.data.reading import Recordings

_KEY = "gazediffusion"
_BLINK, _SKIP = "BAD_blink", "BAD_ACQ_SKIP"
_DESCRIPTIONS = dict(zip(("fixation", "saccade", "pursuit", "BAD_noise"), range(1, 5), strict=True))
_SIDE = {-1: "left", 1: "right"}  # `loc[3]` of a channel; `loc[4]` is -1 for x, 1 for y
# A sample may lie so far from the even clock of a Raw, in samples.
_MOST_JITTER = 0.5


@dataclass(frozen=True)
class Annotation:
    """Samples [first, stop) of a description; eye: None of both."""

    first: int
    stop: int
    description: str
    eye: Eye | None = None


def to_mne(recordings: Iterable[Recording]) -> list[mne.io.RawArray]:
    """One MNE `Raw` per recording: gaze channels in pixels, blinks and labels as annotations.

    A Raw has an even clock: skipped samples are NaN and annotated BAD_ACQ_SKIP, and a recording
    whose clock is uneven by half a sample or more is refused.

    >>> import numpy as np
    >>> import gazediffusion as gd
    >>> windows = gd.Windows.from_array(np.zeros((2, 2, 500)), 250, gd.Screen(1280, 720))
    >>> raw = windows.to_recordings().to_mne()[0]
    >>> raw.ch_names, raw.info["sfreq"], len(raw.times)
    (['xpos_right', 'ypos_right'], 250.0, 500)
    """
    return [to_raw(one) for one in recordings]


def to_raw(recording: Recording) -> mne.io.RawArray:
    """One recording as a `Raw`."""
    mne = required("mne")
    from gazediffusion.data.writers.recordings import eyes_of, rate_of

    eyes, rate_hz = eyes_of(recording), rate_of(recording)
    at = _even_clock(recording, rate_hz)
    sides = {eye: "right" if eye == "cyclopean" else eye for eye in eyes}
    mapping = {
        f"{axis}pos_{side}": ("eyegaze", "px", side, axis)
        for side in sides.values()
        for axis in "xy"
    }
    data = np.full((len(mapping), int(at[-1]) + 1), np.nan)
    data[:, at] = np.concatenate([recording.gaze_px[eye] for eye in eyes])
    info = mne.create_info(list(mapping), rate_hz, "eyegaze")
    info["subject_info"] = {"his_id": recording.participant}
    info["description"] = json.dumps({_KEY: _described(recording, eyes)})
    raw = mne.io.RawArray(data, info, verbose="error")
    mne.preprocessing.eyetracking.set_channel_types_eyetrack(raw, mapping)
    found = sorted(_annotations(recording, eyes, at), key=lambda one: (one.first, one.stop))
    names = {eye: (f"xpos_{side}", f"ypos_{side}") for eye, side in sides.items()}
    raw.set_annotations(
        mne.Annotations(
            onset=[one.first / rate_hz for one in found],
            duration=[(one.stop - one.first) / rate_hz for one in found],
            description=[one.description for one in found],
            ch_names=[() if one.eye is None else names[one.eye] for one in found],
        ),
        verbose="error",
    )
    return raw


def _even_clock(recording: Recording, rate_hz: float) -> NDArray[np.int64]:
    """The place of each sample on an even clock, (time,), from 0."""
    place = (recording.time_ms - recording.time_ms[0]) * (rate_hz / 1000.0)
    # The stated rate may be a little off: what counts is the distance to the next sample.
    nearest = np.cumsum(np.maximum(np.rint(np.diff(place, prepend=0.0)), 0)).astype(np.int64)
    is_uneven = (np.abs(np.diff(place) - np.diff(nearest)) >= _MOST_JITTER).any()
    if is_uneven or (np.diff(nearest) < 1).any():
        raise GazeError(
            f"the clock of participant {recording.participant}, trial {recording.trial} is not "
            f"even at {rate_hz:g} Hz, which MNE needs",
            path=recording.path,
            remedy="cut windows with prepare(), which resamples, and convert these",
        )
    return nearest


def _described(recording: Recording, eyes: Iterable[Eye]) -> dict[str, Any]:
    return {
        "task": recording.task,
        "trial": recording.trial,
        "start_ms": float(recording.time_ms[0]),
        "eyes": list(eyes),
        "screen": None if recording.screen is None else asdict(recording.screen),
    }


def _annotations(
    recording: Recording, eyes: Iterable[Eye], at: NDArray[np.int64]
) -> Iterator[Annotation]:
    """Blinks, labels and skipped samples; at: the place of each sample."""
    for eye in eyes:
        for first, stop in true_segments(recording.is_blink.get(eye, np.zeros(1, bool))).tolist():
            yield Annotation(int(at[first]), int(at[stop - 1]) + 1, _BLINK, eye)
    if recording.labels is not None:
        names = list(_DESCRIPTIONS)
        for first, stop, kind in label_segments(recording.labels).tolist():
            yield Annotation(int(at[first]), int(at[stop - 1]) + 1, names[kind - 1])
    for number in np.flatnonzero(np.diff(at) > 1).tolist():
        yield Annotation(int(at[number]) + 1, int(at[number + 1]), _SKIP)


def annotations_of_labels(labels: NDArray[np.uint8], rate_hz: float) -> mne.Annotations:
    """The labels (window, time) of windows, joined end to end, as MNE's annotations."""
    names, found = list(_DESCRIPTIONS), []
    for number, own in enumerate(labels):
        begin = number * labels.shape[1]
        found += [(begin + f, begin + s, names[k - 1]) for f, s, k in label_segments(own).tolist()]
    return required("mne").Annotations(
        [first / rate_hz for first, _, _ in found],
        [(stop - first) / rate_hz for first, stop, _ in found],
        [name for _, _, name in found],
    )


def from_mne(
    raw: mne.io.BaseRaw | mne.BaseEpochs | Iterable[mne.io.BaseRaw],
    *,
    screen: Screen | None = None,
    participant: str | None = None,
    task: str | None = None,
    trial: str | None = None,
    labels: bool = True,
) -> Recordings:
    """Recordings of MNE's `Raw`, of several, or of `Epochs`, each of which is a trial.

    Channels of type `eyegaze` are taken, in pixels or, with a screen of known size, in radians.
    screen, participant, task, trial: of objects that do not state them, as those read by
    `read_raw_eyelink`. BAD_blink annotations become blinks, BAD_ACQ_SKIP are left out; fixation,
    saccade, pursuit and BAD_noise become labels, unless `labels` is False, as for the events of a
    tracker's own parser. Of annotations of both eyes the right eye's are taken as labels.

    >>> import numpy as np
    >>> import gazediffusion as gd
    >>> windows = gd.Windows.from_array(np.zeros((2, 2, 500)), 250, gd.Screen(1280, 720))
    >>> gd.from_mne(windows.to_recordings().to_mne())
    Recordings(2 in memory: mne)
    """
    mne = required("mne")
    from gazediffusion.data.reading import Recordings

    given = {"screen": screen, "participant": participant, "task": task, "trial": trial}
    objects = [raw] if isinstance(raw, mne.io.BaseRaw | mne.BaseEpochs) else list(raw)
    found: list[Recording] = []
    for number, one in enumerate(objects):
        if isinstance(one, mne.BaseEpochs):
            found += _of_epochs(one, given)
        else:
            found.append(_of_raw(one, number, given, labels))
    return Recordings.of(alike(found), "mne")


def _stated(info: Any) -> dict[str, Any]:
    """What `to_mne` wrote into the description; nothing of other objects."""
    try:
        found = json.loads(info["description"] or "null")
    except ValueError:
        return {}
    known = found.get(_KEY) if isinstance(found, dict) else None
    if not isinstance(known, dict):
        return {}
    if known.get("screen"):
        known["screen"] = Screen(**known["screen"])
    return known


def _of_raw(raw: Any, number: int, given: dict[str, Any], labels: bool) -> Recording:
    stated = _stated(raw.info)
    known = {**stated, **{word: one for word, one in given.items() if one is not None}}
    rate_hz = float(raw.info["sfreq"])
    picks, eyes = _gaze_channels(raw, stated)
    gaze_px = _pixels(raw, raw.get_data(picks), picks, eyes, known.get("screen"))
    n = raw.n_times
    classes, is_skipped = np.zeros(n, dtype=np.uint8), np.zeros(n, dtype=np.bool_)
    is_blink: dict[Eye, NDArray[np.bool_]] = {}
    both = len(eyes) == 2
    for one in raw.annotations:
        first = round((one["onset"] - raw.first_time) * rate_hz)
        first, stop = max(first, 0), first + max(round(one["duration"] * rate_hz), 1)
        description, names = str(one["description"]), " ".join(one.get("ch_names") or ())
        whose = [eye for eye, side in _sides(eyes).items() if not names or side in names]
        if description == _SKIP:
            is_skipped[first:stop] = True
        elif description == _BLINK:
            for eye in whose:
                is_blink.setdefault(eye, np.zeros(n, dtype=np.bool_))[first:stop] = True
        elif labels and description in _DESCRIPTIONS and not (both and whose == ["left"]):
            classes[first:stop] = _DESCRIPTIONS[description]
    kept = np.flatnonzero(~is_skipped)
    start_ms = float(stated.get("start_ms", 0.0)) + raw.first_time * 1000.0
    subject = raw.info["subject_info"] or {}
    return Recording(
        participant=given["participant"] or subject.get("his_id") or f"raw{number}",
        task=known.get("task") or UNKNOWN_TASK,
        trial=known.get("trial") or "0",
        time_ms=start_ms + kept * (1000.0 / rate_hz),
        gaze_px={eye: gaze[:, kept] for eye, gaze in gaze_px.items()},
        path=Path("mne"),
        format="mne",
        screen=known.get("screen"),
        rate_hz=rate_hz,
        is_blink={eye: mask[kept] for eye, mask in is_blink.items()},
        facts=_facts(known.get("screen")),
        labels=classes[kept] if classes.any() else None,
    )


def _of_epochs(epochs: Any, given: dict[str, Any]) -> Iterator[Recording]:
    """Each epoch as a recording; metadata may name participant, task, trial and window."""
    stated, rate_hz = _stated(epochs.info), float(epochs.info["sfreq"])
    screen = given["screen"] or stated.get("screen")
    picks, eyes = _gaze_channels(epochs, stated)
    metadata = epochs.metadata
    named = {code: name for name, code in epochs.event_id.items()}
    subject = (epochs.info["subject_info"] or {}).get("his_id")
    for number, data in enumerate(epochs.get_data(picks=picks)):
        row = {} if metadata is None else metadata.iloc[number].to_dict()
        event = named.get(int(epochs.events[number, 2]))
        yield Recording(
            participant=given["participant"] or row.get("participant") or subject or "epochs",
            task=given["task"] or row.get("task") or event or UNKNOWN_TASK,
            trial=given["trial"] or str(row.get("window", number)),
            time_ms=epochs.times * 1000.0,
            gaze_px=_pixels(epochs, data, picks, eyes, screen),
            path=Path("mne"),
            format="mne",
            screen=screen,
            rate_hz=rate_hz,
            facts=_facts(screen),
        )


def _facts(screen: Screen | None) -> dict[str, Fact]:
    return {
        "unit": Fact("px", "stated by the object"),
        "screen": Fact("unknown" if screen is None else screen.in_words(), ""),
    }


def _gaze_channels(of: Any, stated: dict[str, Any]) -> tuple[list[int], list[Eye]]:
    """The channels of gaze, x before y of each eye, and the eyes."""
    found: dict[tuple[str, int], int] = {}
    for pick, (channel, kind) in enumerate(
        zip(of.info["chs"], of.get_channel_types(), strict=True)
    ):
        if kind == "eyegaze":
            side = _SIDE.get(int(np.nan_to_num(channel["loc"][3])), "right")
            found[side, int(np.nan_to_num(channel["loc"][4]))] = pick
    sides = [side for side in ("left", "right") if {(side, -1), (side, 1)} <= found.keys()]
    if not sides:
        raise GazeError(
            "this object of MNE has no pair of gaze channels",
            remedy="set them with mne.preprocessing.eyetracking.set_channel_types_eyetrack",
        )
    eyes: list[Eye] = ["left" if side == "left" else "right" for side in sides]
    if stated.get("eyes") == ["cyclopean"] and len(eyes) == 1:
        eyes = ["cyclopean"]
    return [found[side, axis] for side in sides for axis in (-1, 1)], eyes


def _sides(eyes: Iterable[Eye]) -> dict[Eye, str]:
    return {eye: "_right" if eye == "cyclopean" else f"_{eye}" for eye in eyes}


def _pixels(
    of: Any, data: NDArray[np.float64], picks: list[int], eyes: list[Eye], screen: Screen | None
) -> dict[Eye, NDArray[np.float32]]:
    """Pixels (2, time) of each eye, from those of the channels or from their radians."""
    unit = required("mne").io.constants.FIFF
    units = {int(of.info["chs"][pick]["unit"]) for pick in picks}
    pairs = data.reshape(len(eyes), 2, -1)
    if units == {int(unit.FIFF_UNIT_RAD)}:
        if screen is None or not screen.has_degrees:
            raise GazeError(
                "the gaze is in radians, and the screen's size and distance are not known",
                remedy="give `screen` with its size (`width_cm`) and `distance_cm`",
            )
        size_cm = np.array([[screen.width_cm], [screen.height_cm]], dtype=np.float64)
        # MNE's angles are from the middle of the screen, half its pixels.
        pairs = np.tan(pairs) * screen.distance_cm * screen.size_px / size_cm + screen.size_px / 2
    elif units != {int(unit.FIFF_UNIT_PX)}:
        raise GazeError(
            "the gaze channels are neither in pixels nor in radians",
            remedy="state their unit with set_channel_types_eyetrack",
        )
    found = {eye: pair.astype(np.float32) for eye, pair in zip(eyes, pairs, strict=True)}
    for gaze in found.values():
        gaze[:, np.isnan(gaze).any(axis=0)] = np.nan
    return found
