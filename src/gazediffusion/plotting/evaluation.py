"""Figures of an evaluation: what results.json says, drawn.

The functions named `draw_*` take data and axes and return the axes; those that lay out a whole
figure take the results and return None where nothing can be drawn. Real gaze is black, the training
participants grey, and each synthetic set keeps one colour of Okabe and Ito's and one line style in
every figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import Windows
from gazediffusion.plotting.gaze import gallery
from gazediffusion.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, house_style, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Results = Mapping[str, Any]
Styles = Mapping[str, "SetStyle"]

LIGHT_GREY = "#bbbbbb"
# Okabe and Ito's, less the yellow that vanishes on paper. Six colours and five line styles:
# the first thirty sets all look different.
SYNTHETIC_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, "#56B4E9", "#E69F00")
_LINES: tuple[Any, ...] = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)))
_MARKERS = "osD^vP"
_LABEL_LENGTH = 34
# A longer label of an axis has its unit in a second line.
_LINE_LENGTH = 30
_DENSITY = "density (per unit of x)"
_PAIRS = 5
# Where densities span decades, a linear axis would show the fixations' peak and nothing else.
_LOG_QUANTITIES = ("v_x", "v_y", "speed")


@dataclass(frozen=True)
class SetStyle:
    """How one set of windows looks in every figure."""

    label: str
    colour: str
    line: Any
    marker: str
    width: float

    @property
    def pen(self) -> dict[str, Any]:
        """What matplotlib needs to draw a line of this set."""
        look = {"color": self.colour, "linestyle": self.line, "linewidth": self.width}
        return {**look, "label": self.label}


def set_styles(results: Results) -> dict[str, SetStyle]:
    """The look of each set, by its key in the results; a set's place decides, not its name."""
    styles = {
        "train": SetStyle("real, training", LIGHT_GREY, "-", "x", 1.8),
        "real": SetStyle("real, held out", "black", "-", "+", 1.3),
    }
    for number, name in enumerate(results.get("sets", {}).get("synthetic", {})):
        colour = SYNTHETIC_COLOURS[number % len(SYNTHETIC_COLOURS)]
        line, marker = _LINES[number % len(_LINES)], _MARKERS[number % len(_MARKERS)]
        styles[name] = SetStyle(_label(name), colour, line, marker, 1.1)
    return styles


def _label(name: str) -> str:
    """A name as matplotlib shows it unchanged: no formulas between dollars, none hidden by `_`."""
    if len(name) > _LABEL_LENGTH:
        name = name[: _LABEL_LENGTH - 1] + "…"
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def draw_histogram(quantity: Results, styles: Styles, axes: Axes, is_log: bool = False) -> Axes:
    """The densities of one quantity, a stepped line for each set over the same bins.

    In logarithms the tails are drawn where they are known, and dotted lines end the bins of JS.
    """
    histogram = quantity["histogram"]
    if is_log and "whole_histogram" in quantity:
        for end in (histogram["edges"][0], histogram["edges"][-1]):
            axes.axvline(end, color=GREY, linestyle=":", linewidth=0.9)
        histogram = quantity["whole_histogram"]
    edges = np.asarray(histogram["edges"], dtype=np.float64)
    peaks = {}
    for name, style in styles.items():
        if not histogram.get(name):
            continue
        density = numbers(histogram[name])
        peaks[name] = float(np.nanmax(density, initial=0.0))
        # A step to an empty bin is a gap in logarithms, not a drop to minus infinity.
        shown = np.where(density > 0, density, np.nan) if is_log else density
        is_filled = name == "train" and not is_log
        axes.stairs(
            shown,
            edges,
            baseline=0 if is_filled else None,
            fill=is_filled,
            alpha=0.6 if name == "train" else 1.0,
            **style.pen,
        )
    if is_log and any(peak > 0 for peak in peaks.values()):
        axes.set_yscale("log")
    elif peaks.get("real"):
        # A set that is one spike may leave the picture; the real one must stay readable.
        axes.set_ylim(0, 1.05 * min(max(peaks.values()), 3.0 * peaks["real"]))
    unit = f" ({quantity['unit']})" if quantity.get("unit") else ""
    label = f"{quantity['title']}{unit}"
    if len(label) > _LINE_LENGTH:
        label = f"{quantity['title']}\n{unit.strip()}"
    axes.set(xlabel=label, ylabel=_DENSITY, xlim=edges[[0, -1]])
    axes.set_axisbelow(True)
    axes.locator_params(axis="x", nbins=5)
    return axes


def draw_curve(curve: Results, styles: Styles, axes: Axes) -> Axes:
    """One line for each set over the shared x."""
    x = numbers(curve["x"])
    for name, style in styles.items():
        if curve["sets"].get(name):
            axes.plot(x, numbers(curve["sets"][name]), **style.pen)
    axes.set(xlabel=curve["x_label"], ylabel=curve["y_label"], xlim=(x.min(), x.max()))
    return axes


def draw_main_sequence(sets: Mapping[str, Results], styles: Styles, axes: Axes) -> Axes:
    """Peak velocity over amplitude of saccades in logarithms, and each set's fitted line."""
    limits = _span([one["amplitude_deg"] for one in sets.values()])
    for name, style in styles.items():
        fit = sets.get(name)
        if not fit or limits is None or fit["slope"] is None:
            continue
        amplitude, peak = numbers(fit["amplitude_deg"]), numbers(fit["peak_deg_s"])
        axes.plot(amplitude, peak, style.marker, color=style.colour, markersize=2.2, alpha=0.25)
        fitted = 10.0 ** (fit["intercept"] + fit["slope"] * np.log10(limits))
        label = f"{style.label}: slope {fit['slope']:.2f}, spread {fit['spread']:.2f}"
        axes.plot(limits, fitted, color=style.colour, ls=style.line, lw=1.6, label=label)
    axes.set(xscale="log", yscale="log", xlabel="amplitude (deg)", ylabel="peak velocity (deg/s)")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return axes


def draw_floor_ratios(ratios: Results, styles: Styles, axes: Axes) -> Axes:
    """Distance over floor, a row for each family and a mark for each set, in logarithms."""
    from matplotlib.ticker import LogLocator, NullFormatter

    rows = _ratio_rows(ratios)
    names = [name for name in styles if any(values.get(name) for values in rows.values())]
    axes.axvline(1.0, color="black", linewidth=1.0)
    for place, name in enumerate(names):
        style = styles[name]
        ratio = numbers(values.get(name) for values in rows.values())
        y = np.arange(len(rows)) + (place + 1) / (len(names) + 1) - 0.5
        axes.plot(ratio, y, style.marker, color=style.colour, label=style.label)
        axes.hlines(y, 1.0, ratio, color=style.colour, linewidth=1.0)
    axes.hlines(
        np.arange(1, len(rows)) - 0.5, 0, 1, "#e6e6e6", transform=axes.get_yaxis_transform()
    )
    axes.set(xscale="log", ylim=(len(rows) - 0.5, -0.5))
    axes.set_xlabel("distance to held-out participants / that of training participants")
    axes.set_yticks(range(len(rows)), [family.replace("_", " ") for family in rows])
    axes.grid(visible=False, axis="y")
    low, high = _span(values.values() for values in rows.values()) or (1.0, 1.0)
    axes.set_xlim(min(0.7, 0.8 * low), max(3.0, 1.3 * high))
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return axes


def _ratio_rows(ratios: Results) -> dict[str, Results]:
    """Overall and family -> ratios by set, where there are any."""
    rows = {"overall": ratios.get("overall") or {}, **(ratios.get("families") or {})}
    return {family: values for family, values in rows.items() if _span([values.values()])}


def draw_pair(pair: Results, colour: str, axes: Axes) -> Axes:
    """A synthetic path over the training path nearest to it, moved and mirrored to lie on it."""
    paths = np.array([pair["training"], pair["synthetic"]], dtype=np.float64)
    training, synthetic = paths - paths.mean(axis=2, keepdims=True)
    # The distance allows shifts and flips, so a picture without them would hide a copy.
    synthetic *= np.where((synthetic * training).sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    axes.plot(*training, color=GREY, linewidth=1.6, alpha=0.7)
    axes.plot(*synthetic, color=colour, linewidth=0.8)
    reach = 1.08 * max(np.abs(training).max(), np.abs(synthetic).max(), 1e-9)
    axes.set(xlim=(-reach, reach), ylim=(reach, -reach), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.set_title(f"{pair['distance']:.3g}", fontsize="small")
    return axes


def draw_auc(sets: Mapping[str, Results], colours: Mapping[str, str], axes: Axes) -> Axes:
    """AUC with its interval: a place on x for each test, beside each other a point for each set.

    sets: name -> test -> {"value", "interval"}. colours: by name; others are grey.
    """
    tests = list(dict.fromkeys(test for cells in sets.values() for test in cells))
    for place, (name, cells) in enumerate(sets.items()):
        known = [number for number, test in enumerate(tests) if test in cells]
        found = [cells[tests[number]] for number in known]
        x = np.array(known) + (place + 1) / (len(sets) + 1) - 0.5
        value = np.array([one["value"] for one in found], dtype=float)
        ends = np.array([one["interval"] for one in found], dtype=float).reshape(-1, 2)
        colour, marker = colours.get(name, GREY), "o" if name in colours else "s^vD"[place % 4]
        look: Any = {"fmt": marker, "color": colour, "markersize": 3.5, "label": name}
        axes.errorbar(x, value, np.abs(ends.T - value), **look)
    axes.axhline(0.5, color="black", linewidth=0.9)
    axes.set_xticks(range(len(tests)), tests)
    axes.set(ylabel="AUC", ylim=(0.2, 1.02), xlim=(-0.5, len(tests) - 0.5))
    axes.grid(visible=False, axis="x")
    return axes


def _panels(
    results: Results,
    title: str,
    family: str | None = None,
    curves: Sequence[str] = (),
    n_columns: int = 3,
) -> Figure | None:
    """The histograms of a family's quantities, and curves after the first, with one legend."""
    import matplotlib.pyplot as plt

    data = [
        one
        for one in results.get("quantities") or []
        if one.get("family") == family and (one.get("histogram") or {}).get("edges")
    ]
    if data or family is None:
        known = results.get("curves") or {}
        data[1:1] = [
            {**known[name], "title": name.replace("_", " ")}
            for name in curves
            if (known.get(name) or {}).get("sets")
        ]
    if not data:
        return None
    n_columns = min(n_columns, len(data))
    n_rows = -(-len(data) // n_columns)
    size = (max(3.1 * n_columns, 5.0), 2.3 * n_rows + 0.8)
    figure, grid = plt.subplots(n_rows, n_columns, figsize=size, squeeze=False)
    handles: dict[str, Any] = {}  # of all panels: a set may be missing in any of them
    for number, axes in enumerate(grid.flat):
        if number < len(data):
            _draw_panel(data[number], set_styles(results), axes)
        axes.set_visible(number < len(data))
        if number % n_columns and axes.get_ylabel() == _DENSITY:
            axes.set_ylabel("")
        handles |= {k: handle for handle, k in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=3)
    figure.suptitle(title)
    return figure


def _draw_panel(data: Results, styles: Styles, axes: Axes) -> None:
    """A histogram or a curve."""
    if "sets" in data:
        draw_curve(data, styles, axes).set_title(data["title"], fontsize="medium")
        low, high = _span(data["sets"].values()) or (1.0, 1.0)
        if "autocorrelation" not in data["title"] and high > 30 * low:
            axes.set_yscale("log")
    else:
        is_heavy = data["name"].endswith(_LOG_QUANTITIES) and "log" not in data["name"]
        draw_histogram(data, styles, axes, is_heavy and data.get("level") == "pooled")


def main_sequence(results: Results) -> Figure | None:
    """Amplitude against peak velocity of saccades, in degrees."""
    import matplotlib.pyplot as plt

    if not (sets := (results.get("main_sequence") or {}).get("sets")):
        return None
    figure, axes = plt.subplots(figsize=(8.5, 4.4))
    draw_main_sequence(sets, set_styles(results), axes).set_title("main sequence")
    return figure


def floor_ratios(results: Results) -> Figure | None:
    """The ratio to the floor of every family and set."""
    import matplotlib.pyplot as plt

    ratios, styles = results.get("ratios") or {}, set_styles(results)
    if not (n_rows := len(_ratio_rows(ratios))):
        return None
    figure, axes = plt.subplots(figsize=(9.0, 1.0 + n_rows * max(0.4, 0.13 * len(styles))))
    draw_floor_ratios(ratios, styles, axes)
    return figure


def closest_pairs(test: Results) -> dict[str, list[Results]]:
    """The closest training and synthetic windows of each set that names any."""
    sets = (test.get("synthetic") or {}).items()
    return {name: one["pairs"][:_PAIRS] for name, one in sets if (one or {}).get("pairs")}


def memorisation(results: Results) -> Figure | None:
    """The five closest pairs of each synthetic set, as paths."""
    import matplotlib.pyplot as plt

    pairs = closest_pairs((results.get("tests") or {}).get("memorisation") or {})
    if not pairs:
        return None
    styles = set_styles(results)
    size = (9.0, 2.1 * len(pairs) + 0.5)
    figure, grid = plt.subplots(len(pairs), _PAIRS, figsize=size, squeeze=False)
    for row, (name, found) in zip(grid, pairs.items(), strict=True):
        for axes, pair in zip(row, found, strict=False):
            draw_pair(pair, styles[name].colour, axes)
        for axes in row[len(found) :]:
            axes.set_visible(False)
        row[0].set_ylabel(styles[name].label, fontsize="small")
    figure.suptitle("closest pairs: training (grey), synthetic (colour), distance above")
    return figure


def deep(results: Results) -> Figure | None:
    """The AUC of the deep two-sample test: floor, planted defect and synthetic sets."""
    import matplotlib.pyplot as plt

    test = (results.get("tests") or {}).get("deep") or {}
    if "synthetic" not in test:
        return None
    rows = {"floor": test["floor"]} if test.get("floor") else {}
    rows |= {**test.get("planted", {}), **test["synthetic"]}
    figure, axes = plt.subplots(figsize=(9.0, 3.2))
    colours = {name: style.colour for name, style in set_styles(results).items()}
    draw_auc({name: row["auc"] for name, row in rows.items()}, colours, axes)
    handles, labels = axes.get_legend_handles_labels()
    shown = [label.replace("$", r"\$") for label in labels]
    figure.legend(handles, shown, loc="outside lower center", ncols=2)
    return figure


FIGURES: dict[str, Callable[[Results], Figure | None]] = {
    "floor_ratios": floor_ratios,
    "features": partial(_panels, title="nine features of a window", family="features"),
    "events": partial(_panels, title="I-VT events", family="events"),
    # Lencastre et al. 2023
    "directions": partial(
        _panels,
        title="four-metric framework",
        family="directions",
        curves=["speed_autocorrelation"],
        n_columns=2,
    ),
    "velocity": partial(_panels, title="velocity protocol", family="velocity"),
    "temporal": partial(
        _panels,
        title="temporal diagnostics",
        curves=["mean_speed_profile", "speed_autocorrelation", "speed_spectrum"],
    ),
    "degrees": partial(_panels, title="events in degrees of visual angle", family="degrees"),
    "plug-ins": partial(_panels, title="metrics of plug-ins", family="plug-ins"),
    "main_sequence": main_sequence,
    "memorisation": memorisation,
    "deep": deep,
}


def draw_all(
    results: Results, folder: Path, windows: Mapping[str, Windows] | None = None
) -> dict[str, list[Path]]:
    """Write every figure that can be drawn as PNG and SVG; name -> the paths, PNG first.

    windows: the first four of each set make the gallery.
    """
    import matplotlib

    written = {}
    # The screen's resolution is too coarse for print and for phones.
    with house_style(), matplotlib.rc_context({"savefig.dpi": 160}):
        for name, build in FIGURES.items():
            written[name] = _write(build(results), folder / name)
        # Noise, which some generators make, does not compress: the page would grow too large.
        with matplotlib.rc_context({"savefig.dpi": 110}):
            shown = {_label(name): one for name, one in (windows or {}).items() if len(one)}
            figure = gallery(shown, "", 4) if shown else None
            written["gallery"] = _write(figure, folder / "gallery")
    return {name: paths for name, paths in written.items() if paths}


def _write(figure: Figure | None, path: Path) -> list[Path]:
    if figure is None:
        return []
    paths = [path.with_suffix(".png"), path.with_suffix(".svg")]
    for one in paths:
        save_figure(figure, one)
    return paths


def numbers(values: Iterable[float | None]) -> NDArray[np.float64]:
    """An array with NaN for what JSON writes as null."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _span(groups: Iterable[Iterable[float | None]]) -> tuple[float, float] | None:
    """The smallest and the largest positive number of all groups."""
    positive = [value for group in groups for value in group if value is not None and value > 0]
    return (min(positive), max(positive)) if positive else None
