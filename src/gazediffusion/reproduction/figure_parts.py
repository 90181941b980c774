"""Titles, legends and ticks that the figures of a reproduction share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gazediffusion.plotting.evaluation import Results
from gazediffusion.plotting.style import BLUE, GREEN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# The same colours, for the seeds beside the one in full colour.
FAINT = {BLUE: "#9CC9E3", GREEN: "#9AD9C5"}


def add_title(figure: Figure, title: str, detail: str = "") -> Figure:
    """A title in one or two lines."""
    figure.suptitle(f"{title}\n{detail}".strip(), fontsize=10)
    return figure


def add_counts(figure: Figure, title: str, results: Results) -> Figure:
    """A title, and how many windows an evaluation compared."""
    real, n_common = results["sets"]["real"], results["about"]["n_common"]
    counts = (
        f"held-out participants: n = {real['n_windows']:,} windows of {real['n_participants']} "
        f"participants; every other set: n = {n_common:,} windows"
    )
    return add_title(figure, title, counts)


def add_legend(axes: Axes, figure: Figure) -> None:
    """The sets of one panel, which are those of all, in a row below."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))


def set_plain_ticks(axis: Axis, digits: Sequence[float] = (1.0, 2.0, 5.0)) -> None:
    """Numbers such as 0.02 on a logarithmic axis instead of powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=digits))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())
