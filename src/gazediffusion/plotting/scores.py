"""A recording with its odd stretches: gaze over time, and the percentile of each window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import Windows
from gazediffusion.plotting.style import BLUE, GREY, ORANGE, PURPLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ODD = 99.0  # percentile from which on a stretch is shaded; darker from 99.9 on
_VERY_ODD = 99.9


def plot_scored_recording(
    windows: Windows,
    onset_ms: NDArray[np.floating[Any]],
    span_percentile: NDArray[np.floating[Any]],
    window_percentile: NDArray[np.floating[Any]],
    span_samples: int,
    title: str,
    compared_with: str,
) -> Figure:
    """Gaze of a recording's windows over its time, odd stretches shaded.

    onset_ms, window_percentile: (window,). span_percentile: (window, span). compared_with: what the
    percentiles of stretches are of.
    """
    import matplotlib.pyplot as plt

    has_windows = bool(np.isfinite(window_percentile).any())
    figure, axes = plt.subplots(
        2 if has_windows else 1, 1, figsize=(11, 4.2 if has_windows else 3.0), sharex=True,
        squeeze=False, height_ratios=[3, 1] if has_windows else None,
    )  # fmt: skip
    draw_gaze(axes[0, 0], windows, onset_ms, span_percentile, span_samples)
    axes[0, 0].set_title(
        f"{title}; shaded: error above {ODD:g} % of the stretches of {compared_with}", loc="left"
    )
    if has_windows:
        seconds = windows.length / windows.rate_hz
        below = axes[1, 0]
        begins = onset_ms / 1000.0
        below.hlines(window_percentile, begins, begins + seconds, color=PURPLE, linewidth=2)
        below.axhline(ODD, color=GREY, linewidth=0.6)
        below.set(ylim=(-3, 103), ylabel="percentile\nof window")
    axes[-1, 0].set_xlabel("time (s)")
    return figure


def draw_gaze(
    axes: Axes,
    windows: Windows,
    onset_ms: NDArray[np.floating[Any]],
    span_percentile: NDArray[np.floating[Any]],
    span_samples: int,
) -> Axes:
    """Traces of x and y, normalized, with shaded stretches."""
    time = np.arange(windows.length) / windows.rate_hz
    for k, begin in enumerate(np.asarray(onset_ms) / 1000.0):
        x, y = windows[k]
        is_first = k == 0
        axes.plot(begin + time, x, color=BLUE, label="x" if is_first else None)
        axes.plot(begin + time, y, color=ORANGE, label="y" if is_first else None)
        for span, percentile in enumerate(span_percentile[k]):
            if percentile >= ODD:
                first = span * span_samples / windows.rate_hz
                last = min((span + 1) * span_samples, windows.length) / windows.rate_hz
                shade = 0.45 if percentile >= _VERY_ODD else 0.2
                axes.axvspan(begin + first, begin + last, color=PURPLE, alpha=shade, linewidth=0)
    axes.set(ylim=(-1.25, 1.25), ylabel="normalized units")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 0.98), ncols=2)
    return axes
