"""Losses of a recording: when the eye was lost, for how long, and what was measured beside.

Before the tracker loses the eye in a blink, and after it sees it again, the lid covers part of the
pupil and moves the measured gaze, mostly vertically. These flanks are deviations from where the eye
was: from the nearest point on the line between its places before and after the loss, so that a
saccade from one to the other is no deviation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.cleaning import BLINK_MS, clean
from gazediffusion.data.recordings import Recording, true_segments
from gazediffusion.settings import CleaningConfig

Floats = NDArray[np.float64]

# Times of a flank, before the first lost sample and from the first that is seen again.
STEP_MS = 4.0
BEFORE_MS = np.arange(-100.0, 0.0, STEP_MS)
AFTER_MS = np.arange(0.0, 152.0, STEP_MS)
_REST_MS = 40.0  # beyond the flanks, over which the eye's places before and after are taken


class Loss(NamedTuple):
    """One loss: when it began, how long it lasted and how long the eye was seen before, in ms.

    seen_before_ms: infinite for the first loss of a recording, NaN where the recording begins lost.
    is_whole: whether neither end of the recording cuts it.
    flank_deg: (2, time) at BEFORE_MS and AFTER_MS; None where another loss is too close.
    """

    onset_ms: float
    duration_ms: float
    seen_before_ms: float
    is_whole: bool
    flank_deg: Floats | None

    @property
    def is_long(self) -> bool:
        """Whether it lasts as long as a blink, or longer."""
        return self.duration_ms >= BLINK_MS[0]


@dataclass(frozen=True)
class Losses:
    """The losses of one recording, in order.

    seen_ms: (stretch,) how long the eye was seen in one piece; since_loss: (stretch,) whether a
    loss came before.
    """

    participant: str
    task: str
    duration_ms: float
    seen_ms: Floats
    since_loss: NDArray[np.bool_]
    losses: tuple[Loss, ...]

    @property
    def lost_ms(self) -> float:
        """How long the eye was lost."""
        return sum(one.duration_ms for one in self.losses)


def find_losses(recording: Recording, cleaning: CleaningConfig | None = None) -> Losses:
    """The losses of a recording whose screen is known in centimetres.

    >>> from pathlib import Path
    >>> from gazediffusion.geometry import Screen
    >>> gaze_px = np.random.default_rng(0).normal(500, 1, (2, 1000)).astype(np.float32)
    >>> gaze_px[:, 400:430] = np.nan
    >>> screen, time_ms = Screen(1280, 720, 40, 22.5, 45), np.arange(1000) * 4.0
    >>> eyes = {"right": gaze_px}
    >>> found = find_losses(Recording("01", "film", "1", time_ms, eyes, Path(), "csv", screen))
    >>> [(one.onset_ms, one.duration_ms, one.is_long) for one in found.losses]
    [(1600.0, 120.0, True)]
    """
    cleaned = clean(recording, cleaning or CleaningConfig())
    is_lost = np.asarray(np.isnan(cleaned.gaze_px).any(axis=0))
    time_ms = cleaned.time_ms
    step_ms = float(np.median(np.diff(time_ms))) if len(time_ms) > 1 else 0.0
    edges_ms = np.append(time_ms, time_ms[-1:] + step_ms)
    seen = true_segments(~is_lost)
    return Losses(
        recording.participant,
        recording.task,
        float(edges_ms[-1] - edges_ms[0]),
        edges_ms[seen[:, 1]] - edges_ms[seen[:, 0]],
        seen[:, 0] > 0,
        tuple(_each(recording, cleaned.gaze_px, edges_ms, true_segments(is_lost))),
    )


def _each(
    recording: Recording, gaze_px: NDArray[np.float32], edges_ms: Floats, lost: NDArray[np.int64]
) -> Iterator[Loss]:
    if len(lost) == 0:
        return
    assert recording.screen is not None, "losses are measured on a known screen"
    pixels = gaze_px.astype(np.float64)
    degrees = np.asarray(recording.screen.to_degrees(pixels), dtype=np.float64)
    onsets, ends = edges_ms[lost[:, 0]], edges_ms[lost[:, 1]]
    first_ms, last_ms = float(edges_ms[0]), float(edges_ms[-1])
    seen_from = np.append(first_ms, ends[:-1])
    seen_to = np.append(onsets[1:], last_ms)
    reach_ms = BEFORE_MS[0] - _REST_MS, AFTER_MS[-1] + STEP_MS + _REST_MS
    seen_ms = onsets - seen_from
    seen_ms[0] = np.inf if onsets[0] > first_ms else np.nan
    for k, (onset, end) in enumerate(zip(onsets.tolist(), ends.tolist(), strict=True)):
        has_flank = seen_from[k] <= onset + reach_ms[0] and end + reach_ms[1] <= seen_to[k]
        yield Loss(
            onset,
            end - onset,
            float(seen_ms[k]),
            first_ms < onset and end < last_ms,
            _flank(edges_ms[:-1], degrees, onset, end) if has_flank else None,
        )


def _flank(time_ms: Floats, degrees: Floats, onset_ms: float, end_ms: float) -> Floats:
    """Deviations (2, time) beside one loss from the line between the places before and after."""

    def place(from_ms: float, to_ms: float) -> Floats:
        first, stop = np.searchsorted(time_ms, [from_ms, to_ms])
        return np.asarray(np.median(degrees[:, first:stop], axis=1, keepdims=True))

    far_ms, late_ms = onset_ms + BEFORE_MS[0], end_ms + AFTER_MS[-1] + STEP_MS
    before, after = place(far_ms - _REST_MS, far_ms), place(late_ms, late_ms + _REST_MS)
    first, stop = np.searchsorted(time_ms, [far_ms - _REST_MS, late_ms + _REST_MS])
    near_ms, near = time_ms[first:stop], degrees[:, first:stop]
    is_seen = ~np.isnan(near).any(axis=0)
    at_ms = np.concatenate([onset_ms + BEFORE_MS, end_ms + AFTER_MS])
    gaze = np.stack([np.interp(at_ms, near_ms[is_seen], axis[is_seen]) for axis in near])
    way = after - before
    share = ((gaze - before) * way).sum(axis=0) / max(float((way * way).sum()), 1e-12)
    return np.asarray(gaze - before - share.clip(0, 1) * way)
