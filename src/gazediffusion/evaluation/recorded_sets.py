"""Recordings as sets of an evaluation: real ones cleaned, synthetic ones as they are.

Real recordings of a tracker slower than the models keep their rate. Of synthetic recordings nothing
is removed but windows with missing samples, which are counted, and the windows of a set are the
same, in the same order, whatever format and screen they were written for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gazediffusion.data.recordings import Recording
from gazediffusion.data.resampling import LowRateError, read_clock
from gazediffusion.data.windows import CLIP, Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.gaze_sets import is_thinned
from gazediffusion.evaluation.summary import Like
from gazediffusion.settings import CleaningConfig

if TYPE_CHECKING:
    from gazediffusion.data.readers import Source
    from gazediffusion.data.reading import Recordings

SECONDS, RATE_HZ = 8.0, 250.0
# Unsteady trackers have odd mean rates, another in every recording: these are rounded down to this.
_RATE_STEP_HZ = 5.0
# Removes nothing but missing samples.
_AS_IT_IS = CleaningConfig(
    blink_before_ms=0.0, blink_after_ms=0.0, frozen_ms=1e12, max_speed_deg_s=1e12
)
OnRecording = Callable[[Recording], None]


def real_windows(
    recordings: Recordings | Sequence[Source],
    rate_hz: float = RATE_HZ,
    seconds: float = SECONDS,
    progress: OnRecording = lambda recording: None,
) -> Windows:
    """Real recordings cleaned and cut, at this rate or at their own where that is lower.

    A window begins every second; `progress` is called after each recording, as by `prepare`.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=2, minutes=0.3, rate_hz=60)
    >>> files = gd.write_simulation(config, "study", "csv")
    >>> gd.real_windows(gd.read("study"))  # at the recordings' own rate, below 250 Hz
    Windows(7 of 8 s at 60 Hz, participants: 2, tasks: free_viewing)
    """
    from gazediffusion.data.preparing import prepare
    from gazediffusion.settings import PrepareConfig

    while True:
        config = PrepareConfig(
            rate_hz=rate_hz,
            seconds=seconds,
            stride_s=round(rate_hz) / rate_hz,
            validation_fraction=0.0,
        )
        try:
            return prepare(recordings, config, progress)
        except GazeError as error:
            if not isinstance(error.__cause__, LowRateError):
                raise
            rate_hz = error.__cause__.rate_hz
            if rate_hz != round(rate_hz):
                rate_hz = _RATE_STEP_HZ * math.floor(rate_hz / _RATE_STEP_HZ)


def synthetic_windows(sources: Sequence[Source], like: Like, rate_hz: float | None) -> Windows:
    """Windows of synthetic recordings as long as the real ones, at their own rate.

    rate_hz: of the recordings, where it is known. Where the real windows were thinned, synthetic
    recordings are too.
    """
    from gazediffusion.data.preparing import prepare
    from gazediffusion.settings import PrepareConfig

    seconds = like.length / like.rate_hz
    own_hz = rate_hz or _rate_of(sources)
    is_slower = is_thinned(like) and own_hz > like.rate_hz
    config = PrepareConfig(
        rate_hz=like.rate_hz if is_slower else own_hz,
        seconds=seconds,
        validation_fraction=0.0,
        cleaning=_AS_IT_IS,
        off_screen_share=math.inf,
    )
    n_expected, n_short = 0, 0

    def count(recording: Recording) -> None:
        nonlocal n_expected, n_short
        step_ms = float(np.median(np.diff(recording.time_ms))) if len(recording) > 1 else 0.0
        duration_s = float(recording.time_ms[-1] - recording.time_ms[0] + step_ms) / 1000
        n_whole = int(duration_s / seconds + 0.01)
        n_expected += max(1, n_whole)
        n_short += n_whole == 0

    windows = prepare(sources, replace(config, stride_s=config.length / config.rate_hz), count)
    n_left_out = n_expected - len(windows)
    reasons = {
        "with missing samples": n_left_out - n_short,
        f"shorter than {seconds:g} s": n_short,
    }
    return _with_left_out(windows, _left_out(n_left_out, n_expected, reasons))


def whole_windows(windows: Windows) -> Windows:
    """Windows without missing samples, clipped as recorded ones are."""
    is_whole = np.asarray(np.isfinite(windows.cut()).all(axis=(1, 2)))
    clipped = replace(windows, gaze=windows.gaze.clip(-CLIP, CLIP)).select(is_whole)
    n = int((~is_whole).sum())
    return _with_left_out(clipped, _left_out(n, len(windows), {"with missing samples": n}))


def with_task_names(windows: Windows, known: Sequence[str]) -> Windows:
    """Tasks as they are spelled among the known ones; file names leave out all but letters.

    >>> from gazediffusion.geometry import Screen
    >>> windows = Windows.from_array(np.zeros((2, 2, 9)), 250, Screen(9, 9), tasks="stopmotion")
    >>> with_task_names(windows, ["dots", "stop-motion"]).tasks
    ('stop-motion',)
    """
    spelled = {_letters(name): name for name in reversed(known)}
    names = tuple(spelled.get(_letters(name), name) for name in windows.tasks)
    return replace(windows, tasks=names) if len(set(names)) == len(names) else windows


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _rate_of(sources: Sequence[Source]) -> float:
    """The rate of the first recording."""
    first = next(recording for source in sources for recording in source.read())
    return read_clock(first.time_ms, first.rate_hz).rate_hz


def in_one_order(windows: Windows) -> Windows:
    """The tasks evenly mixed, the windows of each by their number: so in every format.

    Some formats keep windows in one file for each task, numbered anew in every file. Windows of a
    task in which a number is missing or not the only one keep their order.
    """
    trials = np.array(windows.segment_trial, dtype=object)[windows.segment_of_window]
    number = np.array([int(one) if one.isdecimal() else -1 for one in trials])
    rank_of_name = np.argsort(np.argsort(np.array(windows.tasks, dtype=str), kind="stable"))
    rank, place = rank_of_name[windows.task], np.zeros(len(windows))
    for one in np.unique(rank):
        of_task = np.flatnonzero(rank == one)
        numbers = number[of_task]
        if (numbers >= 0).all() and len(np.unique(numbers)) == len(numbers):
            of_task = of_task[np.argsort(numbers)]
        place[of_task] = (np.arange(len(of_task)) + 0.5) / len(of_task)
    return windows.select(np.lexsort((rank, place)))


def _left_out(n: int, n_expected: int, reasons: dict[str, int]) -> dict[str, Any] | None:
    if n <= 0:
        return None
    words = ", ".join(f"{k} {reason}" for reason, k in reasons.items() if k > 0)
    return {"n": n, "of": n_expected, "reasons": words}


def _with_left_out(windows: Windows, left_out: dict[str, Any] | None) -> Windows:
    if left_out is None:
        return windows
    return replace(windows, provenance={**windows.provenance, "left_out": left_out})
