"""What is taken out of gaze to see where a classifier looks: frequency bands and events.

Filters are zero-phase: a window, mirrored at its ends, is multiplied by a real response in
frequency. An event is taken out by straight lines between the samples around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.events import smoothed_saccades
from gazediffusion.geometry import Screen

if TYPE_CHECKING:
    from torch import Tensor

Response = Callable[[Any], Any]
Masks = dict[str, NDArray[np.bool_]]

# Borders of frequency bands in Hz; the last band ends at half the rate.
BANDS_HZ = (0.0, 2.0, 10.0, 30.0, 60.0)
AFTER_SACCADE = "100 ms after a saccade"
_AFTER_S = 0.1
_ORDER = 4  # of the Butterworth filter, forwards and backwards


def low_pass(cutoff_hz: float) -> Response:
    """The response of a Butterworth filter of fourth order, forwards and backwards."""
    return lambda hz: 1.0 / (1.0 + (hz / cutoff_hz) ** (2 * _ORDER))


def without_band(low_hz: float, high_hz: float) -> Response:
    """The response that takes out a band, low_hz < f <= high_hz; the mean stays."""
    return lambda hz: 1.0 - ((hz > low_hz) & (hz <= high_hz)) * 1.0


def bands(rate_hz: float, below_hz: float | None = None) -> dict[str, tuple[float, float]]:
    """The bands up to `below_hz`, or to half the rate, by their names."""
    end = rate_hz / 2 if below_hz is None else min(below_hz, rate_hz / 2)
    edges = [one for one in BANDS_HZ if one < end] + [end]
    return {f"{low:g} to {high:g} Hz": (low, high) for low, high in pairwise(edges)}


def filtered(gaze: Tensor, rate_hz: float, responses: Sequence[Response]) -> Tensor:
    """Gaze (window, 2, time) through filters with these responses of a frequency in Hz."""
    import torch

    if not responses:
        return gaze
    n = gaze.shape[-1]
    mirrored = torch.cat([gaze, gaze.flip(-1)], dim=-1).double()
    hz = torch.fft.rfftfreq(2 * n, 1.0 / rate_hz, dtype=torch.float64, device=gaze.device)
    spectrum = torch.fft.rfft(mirrored)
    for response in responses:
        spectrum = spectrum * response(hz)
    found: Tensor = torch.fft.irfft(spectrum, 2 * n)[..., :n].to(gaze)
    return found


def event_masks(
    gaze: NDArray[np.float32], screens: Sequence[Screen], rate_hz: float
) -> Masks | None:
    """The samples (window, time) of saccades, of the 100 ms after one, and of fixations.

    Saccades: `data.events: smoothed_saccades`, in degrees; None if a screen's size is not known.
    Fixations are all other samples.
    """
    if not all(screen.has_degrees for screen in screens):
        return None
    n, _, length = gaze.shape
    is_saccade, is_after = np.zeros((2, n, length), dtype=bool)
    n_after = round(_AFTER_S * rate_hz)
    for k, screen in enumerate(screens):
        degrees = screen.to_degrees(screen.to_pixels(gaze[k]))
        for first, stop in smoothed_saccades(degrees, rate_hz).tolist():
            is_saccade[k, first:stop] = True
            is_after[k, stop : stop + n_after] = True
    is_after &= ~is_saccade
    is_fixation = ~(is_saccade | is_after)
    return {"fixations": is_fixation, "saccades": is_saccade, AFTER_SACCADE: is_after}


def without_samples(gaze: NDArray[np.float32], is_out: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Gaze (window, 2, time) with straight lines through the samples `is_out` (window, time)."""
    n, length = is_out.shape
    place = np.broadcast_to(np.arange(length), (n, length))
    before = np.maximum.accumulate(np.where(is_out, -1, place), axis=1)
    after = np.minimum.accumulate(np.where(is_out, length, place)[:, ::-1], axis=1)[:, ::-1]
    # At the ends of a window the nearest sample stands on both sides.
    first, last = np.where(before < 0, after, before), np.where(after == length, before, after)
    share = (place - first) / np.maximum(last - first, 1)
    first, last = (np.clip(one, 0, length - 1)[:, None] for one in (first, last))
    start, end = (np.take_along_axis(gaze, one, axis=2) for one in (first, last))
    line = start + (end - start) * share[:, None]
    is_kept = ~is_out | is_out.all(axis=1, keepdims=True)
    return np.where(is_kept[:, None], gaze, line).astype(np.float32)
