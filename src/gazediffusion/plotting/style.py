"""The one style of all figures, and how they are written.

Colours are Okabe and Ito's, safe for colour-blind readers and in print. `save_figure` writes PNG,
SVG or PDF by the file's ending.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gazediffusion.errors import GazeError
from gazediffusion.storage import written_whole

if TYPE_CHECKING:
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
