"""Windows of one or more sets under each other: the path of each, and x(t) and y(t) below it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gazediffusion.data.windows import Windows
from gazediffusion.plotting.style import (
    BLUE,
    ORANGE,
    draw_path,
    draw_time_scale,
    house_style,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_windows(
    windows: Windows | Mapping[str, Windows],
    path: Path | str,
    title: str = "",
    n: int = 4,
    *,
    overwrite: bool = False,
) -> Path:
    """Draw n evenly spaced windows of each set into a .png, .svg or .pdf file.

    windows: one set, or several by name; each window is drawn in the proportions of its screen.
    overwrite: replace a file that is there.

    >>> import numpy as np
    >>> import gazediffusion as gd
    >>> gaze = np.random.default_rng(0).normal(0, 0.01, (2, 2, 500)).cumsum(axis=-1)
    >>> windows = gd.Windows.from_array(gaze, rate_hz=250, screen=gd.Screen(1280, 720))
    >>> gd.plot_windows({"random walk": windows}, "walk.png", n=2).name
    'walk.png'
    """
    sets = {"": windows} if isinstance(windows, Windows) else windows
    with house_style():
        save_figure(gallery(sets, title, n), Path(path), overwrite)
    return Path(path)


def gallery(sets: Mapping[str, Windows], title: str, n: int) -> Figure:
    """The figure of `plot_windows`."""
    import matplotlib.pyplot as plt

    shown = {name: one.subsample(n) for name, one in sets.items()}
    n_columns = max(len(one) for one in shown.values())
    figure, grid = plt.subplots(
        2 * len(shown), n_columns, figsize=(2.6 * n_columns, 4.2 * len(shown)), squeeze=False
    )
    for number, (name, one) in enumerate(shown.items()):
        _draw_windows(grid[2 * number : 2 * number + 2], one, name)
    figure.suptitle(title)
    return figure


def _draw_windows(grid: Any, windows: Windows, name: str) -> None:
    seconds = np.arange(windows.length) / windows.rate_hz
    screens = [windows.screens[k] for k in windows.screen_index]
    for column, (gaze, screen) in enumerate(zip(windows.cut(), screens, strict=True)):
        path_axes, trace_axes = grid[0, column], grid[1, column]
        draw_path(gaze, path_axes)
        path_axes.set_aspect(screen.height_px / screen.width_px)
        path_axes.set_title(name if column == 0 else "", loc="left")
        trace_axes.plot(seconds, gaze[0], color=BLUE, label="x")
        trace_axes.plot(seconds, gaze[1], color=ORANGE, label="y")
        trace_axes.set(ylim=(-1.25, 1.25), xlim=(0, seconds[-1]), xlabel="time (s)")
        if column:
            path_axes.set_ylabel("")
            path_axes.tick_params(labelleft=False)
            trace_axes.tick_params(labelleft=False)
    grid[1, 0].set_ylabel("normalized units")
    grid[1, 0].legend(loc="lower right", bbox_to_anchor=(1, 0.98), ncols=2, handlelength=1.2)
    draw_time_scale(seconds[-1], list(grid[0]), shrink=0.6, pad=0.01)
