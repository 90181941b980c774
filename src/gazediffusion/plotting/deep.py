"""Figure of the deep two-sample test: AUC of each set, and what the network needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gazediffusion.plotting.style import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Results = Mapping[str, Any]
Cells = Mapping[str, Results]


def draw_auc(sets: Mapping[str, Cells], colours: Mapping[str, str], axes: Axes) -> Axes:
    """AUC with its interval: a place on x for each test, beside each other a point for each set.

    sets: name -> test -> {"value", "interval"}. colours: by name; others are grey.
    """
    tests = list(dict.fromkeys(test for cells in sets.values() for test in cells))
    for place, (name, cells) in enumerate(sets.items()):
        known = [test for test in tests if test in cells]
        x = np.array([tests.index(test) for test in known], dtype=float)
        x += (place + 1) / (len(sets) + 1) - 0.5
        value = np.array([cells[test]["value"] for test in known], dtype=float)
        ends = np.array([cells[test]["interval"] for test in known], dtype=float).reshape(-1, 2)
        error = np.abs(ends.T - value)
        colour, marker = colours.get(name, GREY), "o" if name in colours else "s^vD"[place % 4]
        axes.errorbar(x, value, error, fmt=marker, color=colour, markersize=3.5, label=name)
    axes.axhline(0.5, color="black", linewidth=0.9)
    axes.set_xticks(range(len(tests)), [_broken(test) for test in tests])
    axes.set(ylabel="AUC", ylim=(0.2, 1.02), xlim=(-0.5, len(tests) - 0.5))
    axes.grid(visible=False, axis="x")
    return axes


def draw_saliency(
    sets: Mapping[str, Sequence[float]], colours: Mapping[str, str], axes: Axes
) -> Axes:
    """Size of the input gradient over the window, name -> (second,), relative to its mean."""
    for name, values in sets.items():
        edges = np.arange(len(values) + 1)
        axes.stairs(values, edges, baseline=None, color=colours.get(name, GREY), label=name)
    axes.set(xlabel="second of the window", ylabel="saliency / its mean", ylim=(0, None))
    return axes


def deep_figure(test: Results, colours: Mapping[str, str]) -> Figure | None:
    """AUC by test, AUC without bands and events, saliency over time; None without results.

    test: the plain results. colours: of the synthetic sets, by name.
    """
    import matplotlib.pyplot as plt

    if "settings" not in test:
        return None
    rows = {"floor": test["floor"]} if test.get("floor") else {}
    rows |= {**test.get("planted", {}), **test["synthetic"]}
    panels = [("AUC", {name: row["auc"] for name, row in rows.items()})]
    for key in dict.fromkeys(key for row in rows.values() for key in row["without"]):
        of = {
            name: {"nothing": row["auc"][key], **row["without"][key]}
            for name, row in rows.items()
            if key in row["without"]
        }
        panels.append((f"{key}, taken out of the tested windows", of))
    profiles = {
        key: {
            name: row["saliency"][key]["time"]
            for name, row in rows.items()
            if name == "floor" or name in test["synthetic"]
        }
        for row in rows.values()
        for key in row["saliency"]
    }
    n_rows = len(panels) + bool(profiles)
    figure, grid = plt.subplots(n_rows, 1, figsize=(9.0, 2.6 * n_rows + 0.6), squeeze=False)
    axes_of = [axes for (axes,) in grid]
    for axes, (title, sets) in zip(axes_of, panels, strict=False):
        draw_auc(sets, colours, axes).set_title(title)
    if profiles:
        key, sets_in_time = next(iter(profiles.items()))
        draw_saliency(sets_in_time, colours, axes_of[-1]).set_title(key)
    handles, labels = axes_of[0].get_legend_handles_labels()
    shown = [label.replace("$", r"\$") for label in labels]
    figure.legend(handles, shown, loc="outside lower center", ncols=2)
    return figure


def _broken(text: str) -> str:
    """A label in two lines where it is long."""
    for word in (" below ", " after "):
        text = text.replace(word, f"\n{word.strip()} ")
    return text
