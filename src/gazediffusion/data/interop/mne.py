"""Recordings as MNE's `Raw` objects with annotations, windows as its epochs, and back.

Channels are named and typed as by `mne.io.read_raw_eyelink`: xpos_right, ypos_right and so on, type
`eyegaze`, in pixels from the top left. Annotations have its descriptions too: fixation, saccade and
BAD_blink; besides pursuit, BAD_noise, and BAD_ACQ_SKIP where the clock skips samples. MNE has no
place for the screen, the task and the trial: `info["description"]` states them as JSON, which a
saved FIF file keeps.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.interop import alike, required
from gazediffusion.data.recordings import (
    UNKNOWN_TASK,
    Eye,
    Fact,
    Recording,
    label_segments,
    true_segments,
)
from gazediffusion.errors import GazeError
from gazediffusion.screen import Floats, Screen

if TYPE_CHECKING:
    import mne

    from gazediffusion.data.reading import Recordings
    from gazediffusion.data.windows import Windows

_KEY = "gazediffusion"
_BLINK, _SKIP = "BAD_blink", "BAD_ACQ_SKIP"
_LABELS = ("fixation", "saccade", "pursuit", "BAD_noise")  # of the event classes from 1 on
# A sample may lie so far from the even clock of a Raw, in samples.
_MOST_JITTER = 0.5
# Samples [first, stop), their description and their eye, None for both.
Span = tuple[int, int, str, Eye | None]


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
    return [_to_raw(one) for one in recordings]


def _to_raw(recording: Recording) -> mne.io.RawArray:
    mne = required("mne")
    from gazediffusion.data.recordings import eyes_of, rate_of

    eyes, rate_hz = eyes_of(recording), rate_of(recording)
    at = _even_clock(recording, rate_hz)
    channels = _channels(eyes)
    data = np.full((2 * len(eyes), int(at[-1]) + 1), np.nan)
    data[:, at] = np.concatenate([recording.gaze_px[eye] for eye in eyes])
    info = mne.create_info(
        [name for pair in channels.values() for name in pair], rate_hz, "eyegaze"
    )
    info["subject_info"] = {"his_id": recording.participant}
    described = {
        "task": recording.task,
        "trial": recording.trial,
        "start_ms": float(recording.time_ms[0]),
        "eyes": list(eyes),
        "screen": None if recording.screen is None else asdict(recording.screen),
    }
    info["description"] = json.dumps({_KEY: described})
    raw = mne.io.RawArray(data, info, verbose="error")
    _set_types(raw, channels)
    spans = sorted(_spans(recording, eyes, at), key=lambda span: span[:2])
    raw.set_annotations(_annotations(spans, rate_hz, channels), verbose="error")
    return raw


def windows_to_mne(windows: Windows) -> mne.EpochsArray:
    """MNE epochs (window, channel, time) in pixels of each window's screen.

    Channels: xpos_right, ypos_right, of MNE's type `eyegaze`. Events: one per window, whose id is
    its task's. metadata: window, participant, task, trial. Labels become annotations, as of
    recordings. `to_recordings().to_mne()` gives one Raw per window.

    >>> import numpy as np
    >>> from gazediffusion import Screen, Windows
    >>> windows = Windows.from_array(np.zeros((3, 2, 500)), 250, Screen(1280, 720))
    >>> epochs = windows.to_mne()
    >>> len(epochs), epochs.ch_names, epochs.get_channel_types()
    (3, ['xpos_right', 'ypos_right'], ['eyegaze', 'eyegaze'])
    """
    mne, pd = required("mne"), required("pandas")
    if len(windows) == 0:
        raise GazeError("there are no windows")
    channels = _channels(["right"])
    # Epochs do not overlap, whatever stride the windows were cut with.
    begins = np.arange(len(windows)) * windows.length
    epochs = mne.EpochsArray(
        windows.to_numpy("px").astype(np.float64),
        mne.create_info(list(channels["right"]), windows.rate_hz, "eyegaze"),
        np.column_stack([begins, np.zeros_like(begins), windows.task + 1]),
        event_id={windows.tasks[k]: int(k) + 1 for k in np.unique(windows.task)},
        metadata=pd.DataFrame(windows.identity),
        verbose="error",
    )
    _set_types(epochs, channels)
    if windows.labels is not None:
        spans: list[Span] = [
            (begin + first, begin + stop, _LABELS[kind - 1], None)
            for begin, labels in zip(begins.tolist(), windows.cut_labels(), strict=True)
            for first, stop, kind in label_segments(labels).tolist()
        ]
        epochs.set_annotations(_annotations(spans, windows.rate_hz, {}))
    return epochs


def _channels(eyes: Iterable[Eye]) -> dict[Eye, tuple[str, str]]:
    """The names of x and y of each eye."""
    return {eye: (f"xpos_{_side(eye)}", f"ypos_{_side(eye)}") for eye in eyes}


def _side(eye: Eye) -> str:
    """A cyclopean eye is written as the right one."""
    return "left" if eye == "left" else "right"


def _set_types(of: Any, channels: Mapping[Eye, tuple[str, str]]) -> None:
    names = [name for pair in channels.values() for name in pair]
    mapping = {name: ("eyegaze", "px", name.split("_")[1], name[0]) for name in names}
    required("mne").preprocessing.eyetracking.set_channel_types_eyetrack(of, mapping)


def _annotations(
    spans: Sequence[Span], rate_hz: float, channels: Mapping[Any, tuple[str, str]]
) -> mne.Annotations:
    return required("mne").Annotations(
        onset=[first / rate_hz for first, *_ in spans],
        duration=[(stop - first) / rate_hz for first, stop, *_ in spans],
        description=[description for *_, description, _ in spans],
        ch_names=[channels.get(eye, ()) for *_, eye in spans],
    )


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


def _spans(recording: Recording, eyes: Iterable[Eye], at: NDArray[np.int64]) -> Iterator[Span]:
    """Blinks, labels and skipped samples; at: the place of each sample."""
    for eye in eyes:
        for first, stop in true_segments(recording.is_blink.get(eye, np.zeros(1, bool))).tolist():
            yield int(at[first]), int(at[stop - 1]) + 1, _BLINK, eye
    labels = np.empty(0, np.uint8) if recording.labels is None else recording.labels
    for first, stop, kind in label_segments(labels).tolist():
        yield int(at[first]), int(at[stop - 1]) + 1, _LABELS[kind - 1], None
    for number in np.flatnonzero(np.diff(at) > 1).tolist():
        yield int(at[number]) + 1, int(at[number + 1]), _SKIP, None


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


def _of_raw(raw: Any, number: int, given: dict[str, Any], labels: bool) -> Recording:
    stated = _stated(raw.info)
    known = {**stated, **{word: one for word, one in given.items() if one is not None}}
    rate_hz, n = float(raw.info["sfreq"]), raw.n_times
    picks, eyes = _gaze_channels(raw, stated)
    gaze_px = _pixels(raw, raw.get_data(picks), picks, eyes, known.get("screen"))
    classes, is_skipped = np.zeros(n, dtype=np.uint8), np.zeros(n, dtype=np.bool_)
    is_blink: dict[Eye, NDArray[np.bool_]] = {}
    for one in raw.annotations:
        first = round((one["onset"] - raw.first_time) * rate_hz)
        first, stop = max(first, 0), first + max(round(one["duration"] * rate_hz), 1)
        description, names = str(one["description"]), " ".join(one.get("ch_names") or ())
        whose = [eye for eye in eyes if not names or f"_{_side(eye)}" in names]
        if description == _SKIP:
            is_skipped[first:stop] = True
        elif description == _BLINK:
            for eye in whose:
                is_blink.setdefault(eye, np.zeros(n, dtype=np.bool_))[first:stop] = True
        elif labels and description in _LABELS and not (len(eyes) == 2 and whose == ["left"]):
            classes[first:stop] = _LABELS.index(description) + 1
    kept = np.flatnonzero(~is_skipped)
    start_ms = float(stated.get("start_ms", 0.0)) + raw.first_time * 1000.0
    subject = raw.info["subject_info"] or {}
    return _recording(
        known.get("screen"),
        rate_hz,
        participant=given["participant"] or subject.get("his_id") or f"raw{number}",
        task=known.get("task") or UNKNOWN_TASK,
        trial=known.get("trial") or "0",
        time_ms=start_ms + kept * (1000.0 / rate_hz),
        gaze_px={eye: gaze[:, kept] for eye, gaze in gaze_px.items()},
        is_blink={eye: mask[kept] for eye, mask in is_blink.items()},
        labels=classes[kept] if classes.any() else None,
    )


def _of_epochs(epochs: Any, given: dict[str, Any]) -> Iterator[Recording]:
    """Each epoch as a recording; metadata may name participant, task, trial and window."""
    stated = _stated(epochs.info)
    screen = given["screen"] or stated.get("screen")
    picks, eyes = _gaze_channels(epochs, stated)
    task_of = {code: name for name, code in epochs.event_id.items()}
    subject = (epochs.info["subject_info"] or {}).get("his_id")
    for number, data in enumerate(epochs.get_data(picks=picks)):
        row = {} if epochs.metadata is None else epochs.metadata.iloc[number].to_dict()
        task = row.get("task") or task_of.get(int(epochs.events[number, 2]))
        yield _recording(
            screen,
            float(epochs.info["sfreq"]),
            participant=given["participant"] or row.get("participant") or subject or "epochs",
            task=given["task"] or task or UNKNOWN_TASK,
            trial=given["trial"] or str(row.get("window", number)),
            time_ms=epochs.times * 1000.0,
            gaze_px=_pixels(epochs, data, picks, eyes, screen),
        )


def _recording(screen: Screen | None, rate_hz: float, **fields: Any) -> Recording:
    facts = {
        "unit": Fact("px", "stated by the object"),
        "screen": Fact("unknown" if screen is None else screen.in_words(), ""),
    }
    where = Path("mne")
    return Recording(
        path=where, format="mne", screen=screen, rate_hz=rate_hz, facts=facts, **fields
    )


def _stated(info: Any) -> dict[str, Any]:
    """What `to_mne` wrote into the description; nothing of other objects."""
    try:
        found = json.loads(info["description"] or "null")
    except ValueError:
        return {}
    known = found.get(_KEY) if isinstance(found, dict) else None
    if not isinstance(known, dict):
        return {}
    return {**known, "screen": Screen(**known["screen"]) if known.get("screen") else None}


def _gaze_channels(of: Any, stated: dict[str, Any]) -> tuple[list[int], list[Eye]]:
    """The channels of gaze, x before y of each eye, and the eyes."""
    found: dict[tuple[Eye, int], int] = {}
    kinds = of.get_channel_types()
    for pick, (channel, kind) in enumerate(zip(of.info["chs"], kinds, strict=True)):
        if kind == "eyegaze":
            # The eye is -1 for the left, 1 for the right; the axis is -1 for x, 1 for y.
            eye, axis = (int(one) for one in np.nan_to_num(channel["loc"][3:5]))
            found["left" if eye == -1 else "right", axis] = pick
    both: tuple[Eye, ...] = ("left", "right")
    eyes = [eye for eye in both if {(eye, -1), (eye, 1)} <= found.keys()]
    if not eyes:
        raise GazeError(
            "this object of MNE has no pair of gaze channels",
            remedy="set them with mne.preprocessing.eyetracking.set_channel_types_eyetrack",
        )
    picks = [found[eye, axis] for eye in eyes for axis in (-1, 1)]
    is_cyclopean = stated.get("eyes") == ["cyclopean"] and len(eyes) == 1
    return picks, ["cyclopean"] if is_cyclopean else eyes


def _pixels(
    of: Any, data: NDArray[np.float64], picks: list[int], eyes: list[Eye], screen: Screen | None
) -> dict[Eye, NDArray[np.float32]]:
    """Pixels (2, time) of each eye, from those of the channels or from their radians."""
    unit = required("mne").io.constants.FIFF
    units = {int(of.info["chs"][pick]["unit"]) for pick in picks}
    pairs: Floats = data.reshape(len(eyes), 2, -1)
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
