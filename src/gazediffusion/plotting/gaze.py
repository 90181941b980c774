"""Gaze drawn: the paths of windows, a recording in both representations, and its odd stretches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.cleaning import clean
from gazediffusion.data.recordings import Recording
from gazediffusion.data.resampling import read_clock
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, house_style, save_figure
from gazediffusion.screen import Screen
from gazediffusion.settings import PrepareConfig
from gazediffusion.storage import require_free

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gazediffusion.data.readers import Source
    from gazediffusion.data.reading import Recordings

Gaze = NDArray[np.float32]
Floats = NDArray[np.floating[Any]]

# A stretch is shaded from the first percentile of its error on, and darker from the second on.
ODD, _VERY_ODD = 99.0, 99.9
_LEGEND: Any = {"loc": "lower right", "bbox_to_anchor": (1, 0.98), "ncols": 2, "handlelength": 1.2}


def draw_path(gaze: Gaze, axes: Axes) -> Axes:
    """The path of normalized gaze (2, time) over the screen, coloured from early to late."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Rectangle

    points = gaze.T.reshape(-1, 1, 2)
    lines = LineCollection(
        list(np.concatenate([points[:-1], points[1:]], axis=1)), cmap="viridis", linewidths=0.6
    )
    lines.set_array(np.linspace(0, 1, len(points) - 1))
    lines.set_rasterized(True)
    axes.add_collection(lines)
    axes.add_patch(Rectangle((-1, -1), 2, 2, fill=False, edgecolor=GREY, linewidth=0.8))
    axes.set(xlim=(-1.25, 1.25), ylim=(1.25, -1.25))
    axes.set(xlabel="x (normalized units)", ylabel="y (normalized units)")
    return axes


def draw_time_scale(seconds: float, axes: Any, **place: Any) -> None:
    """The scale of the colours of `draw_path`, for paths of this many seconds, beside some axes."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    figure = np.ravel(axes)[0].figure
    colours = ScalarMappable(Normalize(0.0, seconds), "viridis")
    figure.colorbar(colours, ax=axes, **place).set_label("time (s)")


def draw_representations(segment: Gaze, rate_hz: float, rows: Sequence[Axes], letters: str) -> None:
    """Position, both velocities and speed of normalized gaze (2, time) in four panels."""
    seconds = np.arange(segment.shape[1]) / rate_hz
    velocity = np.diff(segment, axis=1, prepend=segment[:, :1]) * rate_hz
    per_second = "normalized\nunits/s"
    parts = (
        ("position", [("x", segment[0], BLUE), ("y", segment[1], ORANGE)], "normalized\nunits"),
        ("horizontal velocity", [("$v_x$", velocity[0], BLUE)], per_second),
        ("vertical velocity", [("$v_y$", velocity[1], ORANGE)], per_second),
        ("speed", [("speed", np.hypot(*velocity), GREEN)], per_second),
    )
    for axes, letter, (name, traces, unit) in zip(rows, letters, parts, strict=True):
        for label, values, colour in traces:
            axes.plot(seconds, values, color=colour, label=label)
        axes.set_title(f"({letter}) {name}", loc="left")
        axes.set_ylabel(unit)
        if len(traces) > 1:
            axes.legend(**_LEGEND)
        axes.tick_params(labelbottom=axes is rows[-1])
    rows[-1].set(xlabel="time (s)", xlim=(0, seconds[-1]))


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
    """The figure of `plot_windows`: the path of each window, and x(t) and y(t) below it."""
    import matplotlib.pyplot as plt

    shown = {name: one.subsample(n) for name, one in sets.items()}
    n_columns = max(len(one) for one in shown.values())
    size = (2.6 * n_columns, 4.2 * len(shown))
    figure, grid = plt.subplots(2 * len(shown), n_columns, figsize=size, squeeze=False)
    for number, (name, one) in enumerate(shown.items()):
        _draw_windows(grid[2 * number : 2 * number + 2], one, name)
    figure.suptitle(title)
    return figure


def _draw_windows(grid: Any, windows: Windows, name: str) -> None:
    seconds = np.arange(windows.length) / windows.rate_hz
    screens = [windows.screens[k] for k in windows.screen_index]
    for column, (gaze, screen) in enumerate(zip(windows.cut(), screens, strict=True)):
        path_axes, trace_axes = grid[0, column], grid[1, column]
        draw_path(gaze, path_axes).set_aspect(screen.height_px / screen.width_px)
        path_axes.set_title(name if column == 0 else "", loc="left")
        trace_axes.plot(seconds, gaze[0], color=BLUE, label="x")
        trace_axes.plot(seconds, gaze[1], color=ORANGE, label="y")
        trace_axes.set(ylim=(-1.25, 1.25), xlim=(0, seconds[-1]), xlabel="time (s)")
        if column:
            path_axes.set_ylabel("")
            path_axes.tick_params(labelleft=False)
            trace_axes.tick_params(labelleft=False)
    grid[1, 0].set_ylabel("normalized units")
    grid[1, 0].legend(**_LEGEND)
    draw_time_scale(seconds[-1], list(grid[0]), shrink=0.6, pad=0.01)


def plot_recording(
    recordings: Recordings | Sequence[Source],
    config: PrepareConfig,
    path: Path,
    participant: str | None = None,
    *,
    overwrite: bool = False,
) -> str:
    """Draw the first recording (of that participant) with a segment of a window's length.

    path: a .png, .svg or .pdf file. overwrite: replace one that is there. Returns the title.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=1, minutes=0.3, rate_hz=250)
    >>> files = gd.write_simulation(config, "study", "csv")
    >>> gd.plot_recording(gd.read("study"), gd.PrepareConfig(), Path("recording.png"))
    'participant 01, free_viewing, trial 0'
    """
    require_free(path, overwrite)
    from gazediffusion.data.reading import sources_of

    for source in sources_of(recordings):
        for one in source.read():
            if len(one) < 3 or participant not in (None, one.participant):
                continue
            if one.screen is None:
                problem = "the picture needs the screen"
                raise GazeError(problem, path=one.path, remedy="give `screen`")
            if views := normalized_views(one, one.screen, config):
                title = f"participant {one.participant}, {one.task}, trial {one.trial}"
                with house_style():
                    save_figure(recording_overview(*views, config.rate_hz, one.screen, title), path)
                return title
    whose = f" of participant {participant!r}" if participant is not None else ""
    raise GazeError(
        f"no recording{whose} has a valid segment of {config.seconds:g} s to draw",
        remedy="choose smaller `seconds` or another `participant`",
    )


def normalized_views(
    recording: Recording, screen: Screen, config: PrepareConfig
) -> tuple[Gaze, Gaze] | None:
    """The trial and its first window, each (2, time) in normalized gaze; None without a window.

    The trial is NaN where it is not valid.
    """
    from gazediffusion.data.preparing import clean_segments

    cleaned = clean(recording, config.cleaning)
    clock = read_clock(cleaned.time_ms, recording.rate_hz)
    found = next(clean_segments(cleaned, clock, config.rate_hz, config.length), None)
    if found is None:
        return None
    trial = np.where(cleaned.is_valid, screen.to_normalized(cleaned.gaze_px), np.nan)
    return trial, screen.to_normalized(found.gaze_px[:, : config.length])


def recording_overview(
    trial: Gaze, segment: Gaze, rate_hz: float, screen: Screen, title: str
) -> Figure:
    """The paper's figure 1: one recording in both representations.

    trial: (2, time) normalized gaze of the whole trial, NaN where it is not valid.
    segment: (2, time) normalized gaze of one window cut from it.
    """
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(10, 6))
    grid = figure.add_gridspec(4, 2, width_ratios=[1, 1.6])
    path_axes = draw_path(trial, figure.add_subplot(grid[:, 0]))
    path_axes.set_aspect(screen.height_px / screen.width_px)
    path_axes.set_anchor("N")
    path_axes.set_title("(a) gaze path, whole trial", loc="left")
    rows: list[Axes] = []
    for row in range(4):
        rows.append(figure.add_subplot(grid[row, 1], sharex=rows[0] if rows else None))
    draw_representations(segment, rate_hz, rows, "bcde")
    figure.suptitle(title)
    return figure


def plot_scored_recording(
    windows: Windows,
    onset_ms: Floats,
    span_percentile: Floats,
    window_percentile: Floats,
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
    heights = [3, 1] if has_windows else [3]
    figure, grid = plt.subplots(
        len(heights), 1, figsize=(11, 1.8 + 0.6 * sum(heights)), sharex=True, squeeze=False,
        height_ratios=heights,
    )  # fmt: skip
    axes, begins_s = grid[0, 0], np.asarray(onset_ms) / 1000.0
    draw_odd_stretches(axes, windows, begins_s, span_percentile, span_samples)
    axes.set_title(
        f"{title}; shaded: error above {ODD:g} % of the stretches of {compared_with}", loc="left"
    )
    if has_windows:
        below, ends_s = grid[1, 0], begins_s + windows.length / windows.rate_hz
        below.hlines(window_percentile, begins_s, ends_s, color=PURPLE, linewidth=2)
        below.axhline(ODD, color=GREY, linewidth=0.6)
        below.set(ylim=(-3, 103), ylabel="percentile\nof window")
    grid[-1, 0].set_xlabel("time (s)")
    return figure


def draw_odd_stretches(
    axes: Axes, windows: Windows, begins_s: Floats, span_percentile: Floats, span_samples: int
) -> Axes:
    """Traces of x and y, normalized, of windows that begin at these seconds; odd spans shaded."""
    time = np.arange(windows.length) / windows.rate_hz
    for k, begin in enumerate(begins_s):
        for trace, colour, name in zip(windows[k], (BLUE, ORANGE), "xy", strict=True):
            axes.plot(begin + time, trace, color=colour, label=None if k else name)
        for span in np.flatnonzero(span_percentile[k] >= ODD).tolist():
            stop = min((span + 1) * span_samples, windows.length)
            first, last = (begin + at / windows.rate_hz for at in (span * span_samples, stop))
            shade = 0.45 if span_percentile[k][span] >= _VERY_ODD else 0.2
            axes.axvspan(first, last, color=PURPLE, alpha=shade, linewidth=0)
    axes.set(ylim=(-1.25, 1.25), ylabel="normalized units")
    axes.legend(**_LEGEND)
    return axes
