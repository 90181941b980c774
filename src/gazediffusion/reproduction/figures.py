"""The figures of a reproduction: the paper's, and what its recipe shows on other recordings.

Each function takes the artefacts and returns a figure, or None where what it shows is not there.
Real gaze is black, the training participants grey, the position model blue, the velocity model
green, the Markov baseline and the paper's own numbers orange. Recordings may not be published:
where the paper shows one, a simulated one takes its place and the figure says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.simulation import simulate
from gazediffusion.evaluation.quantities import DIRECTIONS, FEATURES, VELOCITY
from gazediffusion.network.recipes import Recipe
from gazediffusion.network.unet import n_parameters
from gazediffusion.plotting import evaluation as plots
from gazediffusion.plotting import gaze as gaze_plots
from gazediffusion.plotting import style
from gazediffusion.plotting.evaluation import Results, SetStyle, numbers
from gazediffusion.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE
from gazediffusion.reproduction.plan import Artefacts, Plan
from gazediffusion.reproduction.tables import (
    MARKOV,
    Comparison,
    Measure,
    Values,
    over,
    read_data,
)
from gazediffusion.screen import Screen
from gazediffusion.settings import PrepareConfig, SimulationConfig

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float32]
Draw = Callable[[Artefacts], "Figure | None"]

_TITLES = {"features": FEATURES, "directions": DIRECTIONS, "velocity": VELOCITY}
# The same colours, for the seeds beside the one in full colour.
_FAINT = {BLUE: "#9CC9E3", GREEN: "#9AD9C5"}
_N_SHOWN = 8
# Of the recording in the paper's figure 1.
_TRIAL_S = 45.0
# The power of speed above it is compared in numbers.
_HIGH_HZ = 60.0
# Points of the speed profile, each ten samples apart, in one mean.
_SMOOTHED = 5


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


def draw_figures(
    artefacts: Artefacts, folder: Path, names: Collection[str] | None = None
) -> list[str]:
    """Write every figure whose inputs are there as PNG; returns their names without ending.

    names: those to be drawn; None is all.
    """
    written = []
    folder.mkdir(parents=True, exist_ok=True)
    with style.house_style():
        for name, build in FIGURES.items():
            if (names is None or name in names) and (figure := build(artefacts)) is not None:
                style.save_figure(figure, folder / f"{name}.png")
                written.append(name)
    return written


def dataset_overview(artefacts: Artefacts) -> Figure | None:
    """The paper's figure 1 with a simulated recording, and a generated window beside it."""
    import matplotlib.pyplot as plt

    shown, rate_hz = _shown(artefacts), artefacts.about.get("rate_hz")
    if shown is None or not rate_hz:
        return None
    seconds = shown.shape[2] / rate_hz
    screen, trial, segment = _simulated(rate_hz, seconds)
    figure = plt.figure(figsize=(12.5, 6.4))
    grid = figure.add_gridspec(4, 3, width_ratios=[1, 1.15, 1.15])
    ours = f"generated window, position model, seed {artefacts.plan.reference_seed}"
    for column, (first, name, gaze, window, of) in enumerate(
        (
            ("a", f"simulated recording, {trial.shape[1] / rate_hz:g} s", trial, segment, screen),
            ("f", f"generated window, {seconds:g} s", shown[0], shown[0], _screen(artefacts)),
        )
    ):
        path_axes = figure.add_subplot(grid[2 * column : 2 * column + 2, 0])
        gaze_plots.draw_path(gaze, path_axes).set_aspect(of.height_px / of.width_px)
        path_axes.set(axisbelow=True, xticks=(-1, 0, 1), yticks=(-1, 0, 1))
        path_axes.set_title(f"({first}) {name}", loc="left")
        gaze_plots.draw_time_scale(gaze.shape[1] / rate_hz, path_axes, shrink=0.7)
        rows: list[Axes] = []
        for row in range(4):
            first_row = rows[0] if rows else None
            rows.append(figure.add_subplot(grid[row, 1 + column], sharex=first_row))
        letters = "".join(chr(ord(first) + n) for n in range(1, 5))
        gaze_plots.draw_representations(window, rate_hz, rows, letters)
        rows[0].set_title(f"({letters[0]}) position, {name.split()[0]}", loc="left")
    said = f"{seconds:g} s of a simulated recording (middle) and of a {ours} (right)"
    return add_title(figure, f"{said}\nrecordings are not shown: terms of the data")


def architecture(artefacts: Artefacts) -> Figure | None:
    """The paper's figure 2: the network as it was trained, for windows of the shown length."""
    shown, plan = _shown(artefacts), artefacts.plan
    return (
        None if shown is None else draw_architecture(plan.position, plan.velocity, shown.shape[2])
    )


def generated_trajectories(artefacts: Artefacts) -> Figure | None:
    """The paths of eight windows that the reference run generated."""
    if (shown := _shown(artefacts)) is None:
        return None
    screen, plan = _screen(artefacts), artefacts.plan
    shape = screen.height_px / screen.width_px
    figure, grid = panels(2, _N_SHOWN // 2, 10.0, 4.8 * shape + 1.4, sharex=True, sharey=True)
    for number, axes in enumerate(grid.flat):
        axes.set_visible(number < len(shown))
        if number < len(shown):
            gaze_plots.draw_path(shown[number], axes).set_aspect(shape)
        axes.set(xticks=(-1, 0, 1), yticks=(-1, 0, 1), axisbelow=True)
        axes.label_outer()
    if rate_hz := artefacts.about.get("rate_hz"):
        gaze_plots.draw_time_scale(shown.shape[2] / rate_hz, grid, shrink=0.8, pad=0.01)
    return add_title(
        figure,
        f"windows generated by the position model (seed {plan.reference_seed}, "
        f"{plan.position.sampling_steps} DDIM steps, $\\eta$ = {plan.position.eta:g})",
    )


@of_evaluation("position")
def four_metrics(plan: Plan, compared: Comparison) -> Figure:
    """Speed, its autocorrelation, direction and turning angle, as the paper's figure."""
    styles = _participants(compared)
    seed = f"position model, seed {plan.reference_seed}"
    styles[MARKOV] = SetStyle("kinematic Markov", ORANGE, (0, (4, 1.2)), "s", 1.2)
    styles[plan.reference] = SetStyle(seed, BLUE, "-", "o", 1.3)
    figure, grid = panels(2, 2, 9.0, 6.2)
    for letter, axes, name in zip("acd", grid.flat[[0, 2, 3]], DIRECTIONS, strict=True):
        quantity = _quantity(compared, "directions", name)
        plots.draw_histogram(quantity, styles, axes, is_log=name == "speed")
        js = compared.distance("directions", name, "js")
        _panel_title(axes, f"({letter}) {quantity['title']}", "JS", js, plan.reference)
        if "whole_histogram" in quantity:
            said = "JS in the bins up to the 99.5th percentile (dotted)"
            look: Any = {"fontsize": "small", "color": "#444444", "backgroundcolor": "white"}
            axes.text(0.98, 0.96, said, transform=axes.transAxes, ha="right", va="top", **look)
        if quantity["unit"] == "rad":
            ticks = ["$-π$", "$-π/2$", "0", "$π/2$", "$π$"]
            axes.set_xticks(np.pi * np.arange(-1, 1.5, 0.5), ticks)
    curve = compared.evaluation["curves"]["speed_autocorrelation"]
    axes, gap = plots.draw_curve(curve, styles, grid[0, 1]), compared.scalar("autocorrelation")
    _panel_title(axes, "(b) autocorrelation of speed", "mean gap", gap, plan.reference)
    return add_title(figure, "four-metric framework", has_legend=True)


@of_evaluation("velocity")
def velocity_marginals(plan: Plan, compared: Comparison) -> Figure:
    """Pooled velocities and speed of participants and of the first seed's velocity model."""
    first, styles = plan.velocity_sets[0], _participants(compared)
    label = f"velocity model, seed {plan.velocity.seeds[0]}"
    styles[first] = SetStyle(label, GREEN, (0, (4, 1)), "s", 1.3)
    figure, grid = panels(1, 3, 10.0, 3.9)
    for letter, axes, name in zip("abc", grid.flat, ("v_x", "v_y", "speed"), strict=True):
        quantity = _quantity(compared, "velocity", name)
        plots.draw_histogram(quantity, styles, axes, is_log=True)
        js = compared.distance("velocity", name, "js")
        _panel_title(axes, f"({letter}) {quantity['title']}", "JS", js, first)
    title = "velocities pooled over all windows and samples"
    if "whole_histogram" in quantity:
        title += "; dotted: ends of the bins of JS, 0.5th and 99.5th percentile"
    if share := _over_held_out(quantity["mean"], first):
        title += f"\nmean speed: model {share:.2f} of held-out participants"
    return add_title(figure, title, has_legend=True)


@of_evaluation("position")
def feature_marginals(plan: Plan, compared: Comparison) -> Figure:
    """The nine features of a window, with KS and JS of the reference run."""
    reference = plan.reference
    styles = _with_seeds(compared, plan.position_sets, reference, "position model", BLUE)
    figure, grid = panels(3, 3, 10.5, 9.1)
    for name, axes in zip(FEATURES, grid.flat, strict=True):
        quantity = _quantity(compared, "features", name)
        plots.draw_histogram(quantity, styles, axes)
        ks, js = (compared.distance("features", name, kind) for kind in ("ks", "js"))
        share = _over_held_out(quantity["mean"], reference)
        said = f"KS {_value(ks, reference):.3f} (floor {ks.floor:.3f})\n"
        said += f"JS {_value(js, reference):.4f} (floor {js.floor:.4f})"
        mean = "" if share is None else f"mean {share:.2f} of held-out participants"
        axes.set_title(f"{said}\n{mean}", fontsize="small")
        axes.set_ylabel("" if axes not in grid[:, 0] else axes.get_ylabel())
    title = "nine features of a window in the bins of JS, whose end bins hold the tails"
    return add_title(figure, f"{title}; numbers of seed {plan.reference_seed}", has_legend=True)


@of_evaluation("velocity")
def temporal_diagnostics(plan: Plan, compared: Comparison) -> Figure:
    """Mean speed over the window, autocorrelation and spectrum of speed; velocity model."""
    sets, curves = plan.velocity_sets, compared.evaluation["curves"]
    styles = _with_seeds(compared, sets, sets[0], "velocity model", GREEN)
    figure, ((speed_axes, lag_axes, power_axes),) = panels(1, 3, 10.0, 3.9)
    profile, spectrum = _smoothed(curves["mean_speed_profile"]), curves["speed_spectrum"]
    plots.draw_curve(profile, styles, speed_axes).set(ylim=(0, None))
    plots.draw_curve(curves["speed_autocorrelation"], styles, lag_axes)
    plots.draw_curve(spectrum, styles, power_axes)
    frequency = numbers(spectrum["x"])
    power_axes.set(xscale="log", yscale="log", xlim=(frequency[1], frequency[-1]))
    power_axes.set_ylabel(f"share of power per {frequency[1]:.3g} Hz")
    power_axes.axvline(_HIGH_HZ, color=GREY, linestyle=":", linewidth=0.9)
    of = {name: float(np.mean(numbers(one))) for name, one in profile["sets"].items()}
    high = {
        name: float(numbers(one)[frequency > _HIGH_HZ].sum())
        for name, one in spectrum["sets"].items()
    }
    _panel_title(
        lag_axes, "(b) autocorrelation of speed", "mean gap",
        compared.scalar("autocorrelation"), sets[0],
    )  # fmt: skip
    for axes, name, what, values in (
        (speed_axes, "(a) mean speed", "over the window", of),
        (power_axes, "(c) normalized spectrum of speed", f"above {_HIGH_HZ:g} Hz", high),
    ):
        share = _over_held_out(values, sets[0])
        said = "" if share is None else f"{what}: model {share:.2f} of held-out"
        _set_titles(axes, name, said)
    return add_title(figure, "temporal diagnostics of the velocity model", has_legend=True)


FIGURES: dict[str, Draw] = {
    figure.__name__: figure
    for figure in (
        *(dataset_overview, architecture, generated_trajectories, four_metrics),
        *(velocity_marginals, feature_marginals, temporal_diagnostics),
    )
}


def _shown(artefacts: Artefacts) -> NDArray[np.float32] | None:
    """The reference run's windows (window, 2, time), at most eight."""
    shown = artefacts.shown.get(artefacts.plan.reference)
    return None if shown is None or not len(shown) else shown[:_N_SHOWN]


def _simulated(rate_hz: float, seconds: float) -> tuple[Screen, Floats, Floats]:
    """The first simulated trial of 45 s that has a window: screen, trial and window (2, time)."""
    config = PrepareConfig(rate_hz=rate_hz, seconds=seconds)
    simulation = SimulationConfig(
        n_participants=100, minutes=_TRIAL_S / 60.0, trial_seconds=_TRIAL_S, rate_hz=rate_hz,
        binocular=False,
    )  # fmt: skip
    found = (
        gaze_plots.normalized_views(one.recording, simulation.screen, config)
        for one in simulate(simulation)
    )
    trial, segment = next(views for views in found if views is not None)
    return simulation.screen, trial, segment


def _screen(artefacts: Artefacts) -> Screen:
    """The screen's shape; a square where it is not known."""
    width, height = artefacts.about.get("screen_px") or (1, 1)
    return Screen(width, height)


def _participants(compared: Comparison) -> dict[str, SetStyle]:
    """The styles of the training participants and of those held out."""
    styles = plots.set_styles(compared.evaluation)
    labels = {"train": "training participants (floor)", "real": "held-out participants"}
    return {name: replace(styles[name], label=label) for name, label in labels.items()}


def _with_seeds(
    compared: Comparison, names: Sequence[str], first: str, label: str, colour: str
) -> dict[str, SetStyle]:
    """Participants, one run of a model in full colour and its other seeds in a faint one."""
    styles = _participants(compared)
    others = [name for name in names if name != first]
    for number, name in enumerate(others):
        seeds = ", ".join(other.rsplit("-", 1)[1] for other in others)
        # One entry of the legend stands for all: a leading underscore hides the rest.
        text = f"seeds {seeds}" if number == 0 else f"_{name}"
        styles[name] = SetStyle(text, _FAINT[colour], "-", "o", 0.9)
    styles[first] = SetStyle(f"{label}, seed {first.rsplit('-', 1)[1]}", colour, "-", "o", 1.3)
    return styles


def _quantity(compared: Comparison, family: str, name: str) -> Results:
    """A quantity with the title and the unit of this version."""
    title, unit = _TITLES[family][name]
    found = compared.quantity(family, name) or {}
    return {**found, "title": title, "unit": unit or "dimensionless"}


def _value(measure: Measure, name: str) -> float:
    """A set's distance, NaN where there is none."""
    value = measure.values.get(name)
    return float("nan") if value is None else value


def _panel_title(axes: Axes, name: str, kind: str, measure: Measure, model: str) -> None:
    """A panel's name and, in a line of its own, distances of model and Markov, and the floor."""
    sets = {"model": model, **({"Markov": MARKOV} if MARKOV in measure.values else {})}
    parts = [f"{word} {_value(measure, one):.4f}" for word, one in sets.items()]
    floor = "" if measure.floor is None else f", floor {measure.floor:.4f}"
    _set_titles(axes, name, f"{kind}: {', '.join(parts)}{floor}")


def _set_titles(axes: Axes, name: str, said: str) -> None:
    """A panel's name and, below it, its note."""
    axes.set_title(f"{name}\n", loc="left")
    axes.set_title(said, loc="right", fontsize="small", color="#444444")


def _over_held_out(values: Values, name: str) -> float | None:
    """A set's number over that of the held-out participants."""
    return over(values.get(name), values.get("real"))


def _smoothed(curve: Results) -> Results:
    """The running mean of a curve over a few points, which the label of x then says."""
    x = numbers(curve["x"])
    n = min(_SMOOTHED, len(x))

    def mean(values: NDArray[np.float64]) -> list[float]:
        smooth: list[float] = np.convolve(values, np.full(n, 1 / n), "valid").tolist()
        return smooth

    return {
        **curve,
        "x": mean(x),
        "x_label": f"{curve['x_label']}, running mean of {n * (x[1] - x[0]):.2g} s",
        "sets": {name: mean(numbers(values)) for name, values in curve["sets"].items()},
    }


# The schematic: boxes, arrows and words are listed in schematic.toml; every number is read from the
# recipe and the network, so that the picture cannot disagree with what was run.

_BOX_COLOURS = {"blue": BLUE, "orange": ORANGE, "green": GREEN, "purple": PURPLE, "grey": GREY}
_BOX_COLOURS["black"] = "black"
# In units of a hundredth of the canvas's width: lines of the parts, and moves from level to level.
_FLOW, _FIRST, _LEVEL, _INDENT, _BOX_HEIGHT = -5.0, -16.5, 11.5, 6.0, 5.6
_ARROW: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "shrinkA": 0, "shrinkB": 0}


def draw_architecture(position: Recipe, velocity: Recipe, length: int) -> Figure:
    """The network of the position recipe for windows of this many samples, and how it is used."""
    import matplotlib.pyplot as plt

    parts, network = read_data("schematic"), position.network
    widths, depth = network.widths, len(network.widths)
    height = (depth + 1) * _LEVEL - _FIRST - 6.0
    figure, axes = plt.subplots(figsize=(10.5, 10.5 * height / 100.0))
    axes.set(xlim=(0, 100.0), ylim=(-height, 0), aspect="equal")
    axes.axis("off")
    values = {
        **vars(position),
        **vars(network),
        "velocity_steps": velocity.sampling_steps,
        "n_parameters": n_parameters(network),
        "linear": 4 * network.embedding,
        "shape": f"{network.channels} \u00d7 {length:,}",
        "target": r"$\hat\varepsilon$" if position.objective == "eps" else r"$\hat X_0$",
    }
    _draw_part(parts["flow"], _FLOW, 0, values, axes)
    _draw_part(parts["ends"], _FIRST, 0, values, axes)
    for level, (width, deeper) in enumerate(zip(widths, (*widths[1:], widths[-1]), strict=True)):
        values |= {"size": f"{width} \u00d7 {length >> level:,}", "width": width, "deeper": deeper}
        _draw_part(parts["level"], _FIRST - level * _LEVEL, level, values, axes)
    values["size"] = f"{widths[-1]} \u00d7 {length >> depth:,}"
    bottom = _FIRST - depth * _LEVEL
    # As wide as the gap between the outer centres of the deepest level.
    parts["bottleneck"]["boxes"][0][2] = 48.0 - 2 * (depth - 1) * _INDENT
    _draw_part(parts["bottleneck"], bottom, 0, values, axes)
    axes.plot(2.0, bottom + 2.0, "o", color=GREEN, markersize=5)
    return figure


def _draw_part(part: dict[str, Any], line: float, level: int, values: Any, axes: Axes) -> None:
    """The boxes, arrows and words of a part on its line."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import FancyBboxPatch

    def place(x: float, y: float) -> tuple[float, float]:
        """Deeper levels are nearer to the middle."""
        return x + level * _INDENT * ((x < 50.0) - (x > 50.0)), line + y

    for x, y, width, name, has_film, text in part["boxes"]:
        (centre, middle), colour = place(x, y), _BOX_COLOURS[name]
        corner = (centre - width / 2, middle - _BOX_HEIGHT / 2)
        shape: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=0.8", "edgecolor": colour}
        face = to_rgba(colour, 0.12)
        axes.add_patch(FancyBboxPatch(corner, width, _BOX_HEIGHT, facecolor=face, **shape))
        said = text.format(**values)
        axes.text(centre, middle, said, ha="center", va="center", fontsize=8.5)
        if has_film:
            axes.plot(corner[0] + 1.3, middle + 1.5, "o", color=GREEN, markersize=5)
    for x, y, x_end, y_end, name, line_style in part["arrows"]:
        look = {"color": _BOX_COLOURS[name], "linestyle": line_style, **_ARROW}
        axes.annotate("", place(x_end, y_end), place(x, y), arrowprops=look)
    for x, y, alignment, size, name, text in part["words"]:
        va, ha = alignment.split()
        look = {
            "va": va,
            "ha": ha,
            "color": _BOX_COLOURS[name],
            "linespacing": 1.5 if va == "top" and ha == "left" else 1.2,
        }
        axes.text(*place(x, y), text.format(**values), fontsize=size, **look)
