"""Panels, titles, legends and ticks that the figures of a reproduction share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

from gazediffusion.plotting.style import BLUE, GREEN
from gazediffusion.reproduction.artefacts import Artefacts
from gazediffusion.reproduction.measures import Comparison
from gazediffusion.reproduction.plan import Plan

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# The same colours, for the seeds beside the one in full colour.
FAINT = {BLUE: "#9CC9E3", GREEN: "#9AD9C5"}
Draw = Callable[[Artefacts], "Figure | None"]


def of_evaluation(name: str) -> Callable[[Callable[[Plan, Comparison], Figure]], Draw]:
    """A figure of an evaluation: None where it is not there, and counts of windows if it is."""

    def decorate(draw: Callable[[Plan, Comparison], Figure]) -> Draw:
        @wraps(draw)
        def draw_of(artefacts: Artefacts) -> Figure | None:
            if (results := artefacts.evaluations.get(name)) is None:
                return None
            figure = draw(artefacts.plan, Comparison(results))
            real, n = results["sets"]["real"], results["about"]["n_common"]
            counts = (
                f"held-out participants: n = {real['n_windows']:,} windows of "
                f"{real['n_participants']} participants; every other set: n = {n:,} windows"
            )
            return add_title(figure, f"{figure.get_suptitle()}\n{counts}")

        return draw_of

    return decorate


def panels(n_rows: int, n_columns: int, width: float, height: float, **shared: Any) -> Any:
    """A figure and the grid of its axes (row, column)."""
    import matplotlib.pyplot as plt

    size = (width, height)
    return plt.subplots(n_rows, n_columns, figsize=size, squeeze=False, **shared)


def add_title(figure: Figure, title: str, has_legend: bool = False) -> Figure:
    """A title in one or two lines; below, the sets of the first panel, which are those of all."""
    figure.suptitle(title)
    if has_legend:
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def set_plain_ticks(axis: Axis, digits: Sequence[float] = (1.0, 2.0, 5.0)) -> None:
    """Numbers such as 0.02 on a logarithmic axis instead of powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=digits))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())
