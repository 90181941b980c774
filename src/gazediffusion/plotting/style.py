"""Figures: one function each, the same quiet style everywhere.

Colours are Okabe and Ito's, safe for colour-blind readers and in print. Functions take data and
axes and return the axes; `save_figure` writes PNG, SVG or PDF by the file's ending.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.errors import GazeError
from gazediffusion.files import written_whole
from gazediffusion.geometry import Screen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#777777"
_STYLE: Any = {
    "figure.dpi": 120,
    "figure.constrained_layout.use": True,
    # Still legible at half the size, as on a page of two columns.
    "font.size": 11,
    "axes.titlesize": "medium",
    "figure.titlesize": "medium",
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "legend.fontsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "lines.linewidth": 0.9,
    "legend.frameon": False,
    "svg.hashsalt": "gazediffusion",
}
_ENDINGS = (".png", ".svg", ".pdf")


@contextlib.contextmanager
def house_style() -> Iterator[None]:
    """Matplotlib without a display, in the style of this package."""
    import matplotlib

    matplotlib.use("Agg")
    with matplotlib.rc_context(_STYLE):
        yield


def save_figure(figure: Figure, path: Path, overwrite: bool = True) -> None:
    """Write a figure whole, then close it."""
    import matplotlib.pyplot as plt

    if path.suffix.lower() not in _ENDINGS:
        raise GazeError("pictures are written as .png, .svg or .pdf", path=path)
    _lay_out(figure)
    with written_whole(path, overwrite) as temporary:
        figure.savefig(temporary, format=path.suffix.lower()[1:])
    plt.close(figure)


def _lay_out(figure: Figure) -> None:
    """Place the axes, once for all formats; `savefig` would draw the whole figure to do so."""
    import matplotlib

    engine = figure.get_layout_engine()
    if engine is None:
        return
    dpi = matplotlib.rcParams["savefig.dpi"]
    if dpi != "figure":
        figure.set_dpi(dpi)
    engine.execute(figure)
    with matplotlib.rc_context({"figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)


def recording_overview(
    trial: NDArray[np.float32],
    segment: NDArray[np.float32],
    rate_hz: float,
    screen: Screen,
    title: str,
) -> Figure:
    """The paper's figure 1: one recording in both representations.

    trial: (2, time) normalized gaze of the whole trial, NaN where it is not valid.
    segment: (2, time) normalized gaze of one window cut from it.
    """
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(10, 6))
    grid = figure.add_gridspec(4, 2, width_ratios=[1, 1.6])
    path_axes = figure.add_subplot(grid[:, 0])
    draw_path(trial, path_axes)
    path_axes.set_aspect(screen.height_px / screen.width_px)
    path_axes.set_anchor("N")
    path_axes.set_title("(a) gaze path, whole trial", loc="left")
    rows: list[Axes] = []
    for row in range(4):
        rows.append(figure.add_subplot(grid[row, 1], sharex=rows[0] if rows else None))
    draw_representations(segment, rate_hz, rows, "bcde")
    figure.suptitle(title)
    return figure


def draw_representations(
    segment: NDArray[np.float32], rate_hz: float, rows: Sequence[Axes], letters: str
) -> None:
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
            axes.legend(loc="lower right", bbox_to_anchor=(1, 0.98), ncols=2, handlelength=1.2)
        axes.tick_params(labelbottom=axes is rows[-1])
    rows[-1].set(xlabel="time (s)", xlim=(0, seconds[-1]))


def draw_path(gaze: NDArray[np.float32], axes: Axes) -> Axes:
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
    """The scale of the colours of `draw_path`, for paths of so many seconds, beside some axes."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    figure = np.ravel(axes)[0].figure
    colours = ScalarMappable(Normalize(0.0, seconds), "viridis")
    figure.colorbar(colours, ax=axes, **place).set_label("time (s)")
