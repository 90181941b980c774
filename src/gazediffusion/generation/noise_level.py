"""The noise level of a recording: long gaze keeps that of its first window.

Noise of the tracker and small motion within fixations differ between recordings and hardly change
within one. A network takes them from the gaze before with an error, which would add up from window
to window. The slow motion of each further window is therefore scaled; saccades and the position of
fixations stay.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
_SLOW_S = 0.1  # standard deviation of the filter that the noise lies above
_SHARE = 0.9  # of the difference that is removed: levels of real recordings vary a little
_MOST = 2.0  # the factor, or its inverse
_SMOOTHED_S = 0.02  # over which speed is averaged
_SLOW, _FAST = 4.0, 8.0  # speed in levels: below the first all is noise, above the second none


def noise_level(gaze: Floats) -> Floats:
    """The median absolute step from sample to sample, (window, 2, 1), of gaze (window, 2, time)."""
    level: Floats = np.median(np.abs(np.diff(gaze, axis=2)), axis=2, keepdims=True)
    return level


def at_noise_level(gaze: Floats, known: Floats, level: Floats, rate_hz: float) -> Floats:
    """Gaze (window, 2, time) with noise of the level (window, 2, 1) where nothing is known."""
    from scipy.ndimage import gaussian_filter1d, uniform_filter1d

    is_free = np.isnan(known[:, :1])
    steps = np.diff(gaze, axis=2, prepend=gaze[..., :1])
    rows = zip(steps, is_free[:, 0], strict=True)
    own = np.stack([np.median(np.abs(one[:, free]), axis=1) for one, free in rows])[..., None]
    size = max(1, round(_SMOOTHED_S * rate_hz))
    fast = uniform_filter1d(steps, size, axis=2) / np.maximum(own, 1e-9)
    is_slow = np.clip((_FAST - np.hypot(fast[:, :1], fast[:, 1:])) / (_FAST - _SLOW), 0.0, 1.0)
    noise = np.cumsum(steps * is_slow * is_free, axis=2)
    noise -= gaussian_filter1d(noise, _SLOW_S * rate_hz, axis=2)
    factor = np.clip((level / np.maximum(own, 1e-9)) ** _SHARE, 1 / _MOST, _MOST)
    scaled: Floats = (gaze + (factor - 1) * noise).astype(np.float32)
    return scaled
