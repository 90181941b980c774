"""EyeLink ASC: one text file per participant and task, one START..END block per trial.

The lines and their order are those of SR Research's edf2asc, so that pymovements, MNE and
other EyeLink tools read them. Blink events come from the recording's labels, fixations and
saccades from the events given. ASC holds a tenth of a pixel and whole milliseconds (halves at
2000 Hz). It does not hold the screen's size and distance, so a JSON file of the same name does.
Gaze that nobody was recorded for says so in the header and in a message. Before each filled gap
stands a message with the times of its first and last sample, and before each labelled event one
with its class. EyeLink has no event of pursuit: its parser writes fixations there, and so do we;
the message tells them apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.events import Event
from gazediffusion.data.recordings import (
    EVENT_CLASSES,
    LABEL_MESSAGE,
    Eye,
    Recording,
    eyes_of,
    label_segments,
    name_of,
    rate_of,
)
from gazediffusion.data.writers.recordings import (
    Labelled,
    by_participant_and_task,
    events_of,
    on_one_clock,
    plain,
    spans_of,
)
from gazediffusion.errors import GazeError
from gazediffusion.storage import write_json

# Pupil size is not part of a recording; tools want the column. Arbitrary camera units.
_PUPIL_AREA = 1000.0
_EVENT_WORDS = {"fixation": "FIX", "pursuit": "FIX", "saccade": "SACC"}
_UNRECORDED = ("synthetic", "simulated")  # formats of recordings that are none
# Tools look for these lines; without a version, pymovements warns that it knows no tracker.
_HEADER = """** CONVERTED FROM {source} by gazediffusion
** TYPE: EDF_FILE BINARY EVENT SAMPLE TAGGED
** VERSION: EYELINK II 1
** SOURCE: EYELINK CL
** EYELINK II CL v5.12 May 12 2017
**

"""


def write_asc(labelled: Iterable[Labelled], folder: Path) -> None:
    """Write `sub-<participant>_task-<task>.asc` files into `folder`, each of one screen."""
    for participant, task, trials in by_participant_and_task(labelled):
        path = folder / f"sub-{plain(participant)}_task-{plain(task)}.asc"
        with open(path, "w", encoding="utf-8", newline="\n") as stream:
            for number, (recording, events) in enumerate(on_one_clock(trials)):
                if number == 0:
                    screen = recording.screen
                    stream.write(_header(recording))
                    if screen is not None and screen.has_degrees:
                        write_json(path.with_suffix(".json"), screen.to_bids())
                elif recording.screen != screen:
                    raise GazeError(
                        "the screen is not that of the first trial; one ASC file has one screen",
                        place=name_of(recording),
                    )
                stream.write("\n".join(_block(recording, events)) + "\n")


def _header(first: Recording) -> str:
    start, text = _clock(first)[0], _HEADER.format(source="recordings")
    if first.format in _UNRECORDED:
        words = f"{first.format} gaze (no participant was recorded)"
        text = f"{_HEADER.format(source=words)}MSG\t{start} {words}\n"
    if first.screen is not None:
        corner = f"{first.screen.width_px - 1} {first.screen.height_px - 1}"
        text += f"MSG\t{start} DISPLAY_COORDS 0 0 {corner}\n"
    return text


def _block(recording: Recording, events: Iterable[Event]) -> Iterator[str]:
    eyes = [_asc_eye(eye) for eye in eyes_of(recording)]
    letters = "".join(eye[0] for eye in eyes)
    rate_hz = rate_of(recording)
    clock = _clock(recording)
    setup = "\t".join(["GAZE", *eyes, "RATE", f"{rate_hz:7.2f}", "TRACKING", "CR", "FILTER", "2"])
    yield f"MSG\t{clock[0]} TRIALID {' '.join(recording.trial.split())}"
    yield f"MSG\t{clock[0]} RECCFG CR {round(rate_hz)} 2 1 {letters}"
    yield f"MSG\t{clock[0]} ELCLCFG {'BTABLER' if len(eyes) == 2 else 'MTABLER'}"
    if recording.screen is not None:
        corner = f"{recording.screen.width_px - 1:.2f} {recording.screen.height_px - 1:.2f}"
        yield f"MSG\t{clock[0]} GAZE_COORDS 0.00 0.00 {corner}"
    yield "\t".join([f"START\t{clock[0]} ", *eyes, "SAMPLES", "EVENTS"])
    yield "PRESCALER\t1"
    yield "VPRESCALER\t1"
    yield "PUPIL\tAREA"
    yield f"EVENTS\t{setup}"
    yield f"SAMPLES\t{setup}\tINPUT"
    yield from _samples_and_events(recording, list(events), clock)
    yield f"END\t{clock[-1]} \tSAMPLES\tEVENTS\tRES\t  40.00\t  40.00"


def _samples_and_events(recording: Recording, events: list[Event], clock: list[str]) -> list[str]:
    """Sample lines; start lines stand before an event's first sample, end lines after its last."""
    before: dict[int, list[str]] = defaultdict(list)
    after: dict[int, list[str]] = defaultdict(list)
    step_ms = 1000.0 / rate_of(recording)
    for eye in eyes_of(recording):
        for word, span, numbers in _eye_events(recording, eye, events):
            first, last = span.start, span.stop - 1
            head = f"{word} {_asc_eye(eye)[0]}"
            length = _number(float(clock[last]) - float(clock[first]) + step_ms)
            before[first].append(f"S{head} {clock[first]}")
            after[last].append(
                "\t".join([f"E{head} {clock[first]}", clock[last], length, *numbers])
            )
        for gap in spans_of(recording.is_filled, eye):
            first, last = clock[gap.start], clock[gap.stop - 1]
            before[gap.start].append(f"MSG\t{first} FILLED {_asc_eye(eye)[0]} {first} {last}")
    labels = np.empty(0, dtype=np.uint8) if recording.labels is None else recording.labels
    for start, stop, number in label_segments(labels).tolist():
        first, last = clock[start], clock[stop - 1]
        word = EVENT_CLASSES[number - 1]
        before[start].append(f"MSG\t{first} {LABEL_MESSAGE} {word} {first} {last}")
    lines = _sample_lines(recording, clock)
    for place in before.keys() | after.keys():
        lines[place] = "\n".join([*before[place], lines[place], *after[place]])
    return lines


def _sample_lines(recording: Recording, clock: list[str]) -> list[str]:
    cells: list[list[str]] = [clock]
    eyes = eyes_of(recording)
    for eye in eyes:
        x_px, y_px = recording.gaze_px[eye]
        is_lost = np.isnan(x_px) | np.isnan(y_px)
        for values in (x_px, y_px):
            cells.append(_gaze_cells(np.where(is_lost, np.nan, values)))
        cells.append([f"{0 if lost else _PUPIL_AREA:7.1f}" for lost in is_lost.tolist()])
    # The input port's word, then one flag dot per status: three for one eye, five for two.
    flags = "    0.0\t" + "." * (3 if len(eyes) == 1 else 5)
    return ["\t".join(row) + "\t" + flags for row in zip(*cells, strict=True)]


def _eye_events(
    recording: Recording, eye: Eye, events: list[Event]
) -> Iterator[tuple[str, slice, list[str]]]:
    """(word, samples, numbers of the end line) of one eye's events."""
    gaze_px = recording.gaze_px[eye]
    for span in spans_of(recording.is_blink, eye):
        yield "BLINK", span, []
    for event in events_of(events, eye):
        span = event.samples(recording.time_ms)
        if span.stop - span.start < 2 or event.event not in _EVENT_WORDS:
            continue  # it would end where it begins, or is none of EyeLink's
        if event.event == "saccade":
            ends_px = gaze_px[:, [span.start, span.stop - 1]].T.ravel()
            numbers = [*_gaze_cells(ends_px), f"{event.amplitude_deg:.2f}"]
            numbers.append(f"{event.peak_velocity_deg_s:.0f}")
        else:
            there = gaze_px[:, span][:, ~np.isnan(gaze_px[:, span]).any(axis=0)]
            mean_px = there.mean(axis=1, dtype=np.float64) if there.size else np.full(2, np.nan)
            numbers = [*_gaze_cells(mean_px), f"{_PUPIL_AREA:.0f}"]
        yield _EVENT_WORDS[event.event], span, [cell.replace("nan", ".") for cell in numbers]


def _gaze_cells(values: NDArray[np.floating]) -> list[str]:
    return [f"{value:7.1f}" if value == value else "   ." for value in values.tolist()]


def _clock(recording: Recording) -> list[str]:
    """The times as an EyeLink writes them: whole milliseconds, halves above 1000 Hz."""
    ticks_per_ms = 1.0 if rate_of(recording) <= 1000.0 else 2.0
    ticks = np.round(recording.time_ms * ticks_per_ms) / ticks_per_ms
    if np.any(np.diff(ticks) <= 0) or ticks[0] < 0:
        raise GazeError(
            "EyeLink's clock has half milliseconds from 0 on; these times are finer or negative",
            place=name_of(recording),
            remedy="resample to 2000 Hz or less, or write csv",
        )
    return [_number(tick) for tick in ticks.tolist()]


def _number(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.1f}"


def _asc_eye(eye: Eye) -> str:
    """EyeLink knows no cyclopean eye; it is written as the right one."""
    return "LEFT" if eye == "left" else "RIGHT"
