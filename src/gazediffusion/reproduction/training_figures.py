"""Figures of training and sampling: noise levels, losses, ablations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gazediffusion.plotting.evaluation import Results, numbers
from gazediffusion.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE
from gazediffusion.reproduction import figure_parts, paper
from gazediffusion.reproduction.artefacts import Artefacts
from gazediffusion.reproduction.figure_parts import FAINT, add_title, of_evaluation, panels
from gazediffusion.reproduction.measures import Comparison, Measure
from gazediffusion.reproduction.plan import ETAS, STEPS, Plan
from gazediffusion.reproduction.table_rows import EIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SEED_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, "#56B4E9", "#E69F00")
_SEED_LINES = ("-", "--", "-.", ":")
_LOSSES = ("validation_loss", "training_loss")
# Losses above so many times the lowest are not shown.
_PLATEAU = 4.0
# In normalized units, half the width of the screen.
_LARGEST_SIGMA = 1.0
_SHAPE: Any = {"position": (BLUE, "o"), "velocity": (GREEN, "s")}


def noise_levels(artefacts: Artefacts) -> Figure | None:
    """The error of the predicted noise, and the fixational motion left, by noise level."""
    plan, levels = artefacts.plan, artefacts.levels
    sets = {"position": plan.position_sets, "velocity": plan.velocity_sets}
    runs = {kind: [name for name in names if name in levels] for kind, names in sets.items()}
    if not any(runs.values()):
        return None
    figure, ((loss_axes, share_axes),) = panels(1, 2, 10.0, 4.8)
    counts, smallest = [], float(np.sqrt(plan.position.beta_first))
    for kind, names in runs.items():
        found = [levels[name] for name in names]
        if found:
            _draw_levels(found, "loss", kind, loss_axes)
            _draw_levels(found, "unexplained_fixation", kind, share_axes)
            seeds = ", ".join(name.rsplit("-", 1)[1] for name in names)
            n = found[0]["n_windows"]
            counts.append(f"{kind} model: seeds {seeds}, n = {n:,} held-out windows")
    # Beyond noise as large as half the screen fixations are hidden, and the share has no bound.
    drawn = [np.asarray(line.get_xydata()) for line in share_axes.lines]
    shares = np.concatenate([xy[xy[:, 0] <= _LARGEST_SIGMA, 1] for xy in drawn])
    share_axes.set_ylim(0.8 * min(0.5, np.nanmin(shares)), 1.25 * max(2.0, np.nanmax(shares)))
    share_axes.set_xlim(0.8 * smallest, 1.25 * _LARGEST_SIGMA)
    dashed = f"dashed: smallest noise, $\\sqrt{{\\beta_1}}$ = {smallest:g}"
    recovered = "dotted: nothing recovered"
    if found := [levels[name] for name in runs["position"]]:
        first = np.mean([_at_smallest_noise(one)["unexplained_fixation"] for one in found])
        recovered += f"; position model, smallest noise: {first:.3g}"
    for axes, letter, right, label in (
        (loss_axes, "(a)", dashed, "squared error of predicted noise\n(variance 1)"),
        (share_axes, "(b)", recovered, "share of fixational motion\nleft unexplained"),
    ):
        axes.axvline(smallest, color=GREY, linewidth=0.9, linestyle="--")
        noise = "noise $\\sigma = \\sqrt{(1 - \\bar\\alpha_t) / \\bar\\alpha_t}$"
        noise += "\n(position: normalized units; velocity: $c_v$)"
        axes.set(xscale="log", yscale="log", xlabel=noise, ylabel=label)
        axes.set_title(f"{letter}\n", loc="left")
        axes.set_title(right, loc="right", fontsize="small")
    share_axes.axhline(1.0, color="black", linewidth=0.9, linestyle=":")
    title = "what the networks learn at each noise level"
    return add_title(figure, f"{title}\n{'; '.join(counts)}", has_legend=True)


def _at_smallest_noise(run: Results) -> Results:
    """The entry of the level with the smallest noise."""
    return min(run["levels"], key=lambda level: float(level["sigma"]))


def _draw_levels(runs: Sequence[Results], key: str, kind: str, axes: Axes) -> None:
    """The runs of one recipe: a faint line each, their mean in full colour."""
    colour, marker = _SHAPE[kind]
    sigma = numbers(level["sigma"] for level in runs[0]["levels"])
    values = np.stack([numbers(level[key] for level in run["levels"]) for run in runs])
    order = np.argsort(sigma)
    axes.plot(sigma[order], values[:, order].T, color=FAINT[colour], linewidth=0.8)
    several = f", mean of {len(runs)} runs (faint: each)" if len(runs) > 1 else ""
    label = f"{kind} model{several}"
    look = {"color": colour, "marker": marker, "markersize": 3.5, "linewidth": 1.3}
    axes.plot(sigma[order], values.mean(axis=0)[order], label=label, **look)


def training_curves(artefacts: Artefacts) -> Figure | None:
    """Validation and training loss of every run by epoch, in logarithms."""
    plan, histories = artefacts.plan, artefacts.histories
    eps, x0 = paper.TEXT["best_validation_loss"][0], paper.NUMBERS["objective"]["x0"]["loss"].mean
    is_papers = plan.position.objective == "eps"
    ablation = f"position model, predicting {'x0' if is_papers else 'eps'}"
    shown = [
        (title, found, best)
        for title, names, best in (
            ("position model", plan.position_sets, eps if is_papers else None),
            ("velocity model", plan.velocity_sets, None),
            (ablation, [plan.x0], x0 if is_papers else None),
        )
        if (found := [histories[name] for name in names if name in histories])
    ]
    if not shown:
        return None
    figure, grid = panels(1, len(shown), 3.5 * len(shown) + 0.5, 4.8)
    for axes, (title, found, best) in zip(grid.flat, shown, strict=True):
        for number, history in enumerate(found):
            _draw_history(history, number, axes)
        if best is not None:
            label = f"paper's best: {best:.4f}"
            axes.axhline(best, color="black", linestyle="--", linewidth=0.9, label=label)
        recipe = plan.runs[found[0]["run"]].recipe
        kind = "mean" if recipe.weighting == "standard" else "Min-SNR weighted"
        loss = f"loss ({kind} squared error of {recipe.objective})"
        axes.set(yscale="log", xlabel="epoch", ylabel=loss, title=title)
        _show_plateau(found, best, axes)
        figure_parts.set_plain_ticks(axes.yaxis, (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0))
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14))
    return add_title(figure, "validation loss (circle: best epoch), training loss faint")


def _show_plateau(histories: Sequence[Results], best: float | None, axes: Axes) -> None:
    """The first epochs leave the picture: they would squeeze all others into a line."""
    losses = np.concatenate([numbers(one[key]) for one in histories for key in _LOSSES])
    lowest = float(np.nanmin([*losses, np.nan if best is None else best]))
    axes.set_ylim(0.85 * lowest, min(1.1 * float(np.nanmax(losses)), _PLATEAU * lowest))


def _draw_history(history: Results, number: int, axes: Axes) -> None:
    """One run: epochs count from 1; those that were not validated are left out of the line."""
    colour = _SEED_COLOURS[number % len(_SEED_COLOURS)]
    training = numbers(history["training_loss"])
    axes.plot(np.arange(1, len(training) + 1), training, color=colour, alpha=0.3, linewidth=0.7)
    validation = numbers(history["validation_loss"])
    is_known = np.isfinite(validation)
    if not is_known.any():
        return
    epoch, validation = np.flatnonzero(is_known) + 1, validation[is_known]
    best = int(np.argmin(validation))
    label = f"seed {history['seed']}: {validation[best]:.4f} (epoch {epoch[best]})"
    line = _SEED_LINES[number % len(_SEED_LINES)]
    axes.plot(epoch, validation, color=colour, linestyle=line, linewidth=1.1, label=label)
    axes.plot(epoch[best], validation[best], "o", color=colour, markersize=6, fillstyle="none")


@of_evaluation("sampling")
def sampling_ablation(plan: Plan, compared: Comparison) -> Figure:
    """KS and JS by DDIM steps (mean speed) and by eta (mean of eight features), and the paper's."""
    by_steps = {float(n): (plan.with_steps(n), f"steps {n}") for n in STEPS}
    by_eta = {eta: (plan.with_eta(eta), f"eta {eta:g}") for eta in ETAS}
    figure, grid = panels(2, 2, 8.6, 6.0, sharex="col")
    has_intervals = False
    for row, kind in zip(grid, ("ks", "js"), strict=True):
        speed = compared.distance("features", "mean_speed", kind)
        for axes, settings, measure in (
            (row[0], by_steps, speed),
            (row[1], by_eta, compared.mean("features", EIGHT, kind)),
        ):
            has_intervals |= _draw_ablation(kind, settings, measure, axes)
        row[0].set(xscale="log", ylabel="JS (nats)" if kind == "js" else "KS (dimensionless)")
        for axes in row:
            if kind == "js":
                axes.set_yscale("log")
                figure_parts.set_plain_ticks(axes.yaxis)
            else:
                axes.set_ylim(bottom=0)
    for axes, title in zip(grid[0], ("mean speed", "mean of eight features"), strict=True):
        axes.set_title(title, loc="left")
    grid[1, 0].set_xlabel("DDIM steps (evaluations of the network)")
    grid[1, 0].set_xticks(STEPS, [str(steps) for steps in STEPS])
    grid[1, 0].minorticks_off()
    grid[1, 1].set(xlabel="$\\eta$ (0: deterministic, 1: DDPM)", xticks=ETAS)
    title = f"sampling ablations, position model, seed {plan.reference_seed}"
    bars = "; bars: 95 % bootstrap intervals over participants"
    return add_title(figure, title + (bars if has_intervals else ""), has_legend=True)


def _draw_ablation(
    kind: str, settings: Mapping[float, tuple[str, str]], measure: Measure, axes: Axes
) -> bool:
    """Ours with intervals where there are any, the floor and the paper's; whether there are any.

    settings: x -> (set, row of the paper's table).
    """
    x, sets = list(settings), [one for one, _ in settings.values()]
    ours = numbers(measure.values.get(one) for one in sets)
    axes.plot(x, ours, "o-", color=BLUE, linewidth=1.3, markersize=4.5, label="this reproduction")
    ends = [measure.of([one])["interval"] or (None, None) for one in sets]
    low, high = (numbers(side) for side in zip(*ends, strict=True))
    if has_intervals := bool(np.isfinite(low + high).any()):
        axes.errorbar(x, ours, [ours - low, high - ours], fmt="none", ecolor=BLUE, capsize=3)
    theirs = [paper.NUMBERS["sampling"][row][kind].mean for _, row in settings.values()]
    axes.plot(x, theirs, "s--", color=ORANGE, markersize=4, label="paper, its recordings")
    floor = "floor: training against held-out participants"
    axes.axhline(measure.floor or 0.0, color=GREY, linestyle=":", linewidth=1.3, label=floor)
    return has_intervals
