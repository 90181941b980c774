"""The paper's figure 2, drawn from the network that was trained: noising, U-Net, DDIM.

Boxes, arrows and words are listed in schematic.toml. Every number in the picture is read from the
recipe and from the network itself, so that it cannot disagree with what was run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gazediffusion.models.recipes import Recipe
from gazediffusion.models.unet import n_parameters
from gazediffusion.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE
from gazediffusion.reproduction.paper import read_data

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {"blue": BLUE, "orange": ORANGE, "green": GREEN, "purple": PURPLE, "grey": GREY}
_COLOURS["black"] = "black"
# In units of a hundredth of the canvas's width: lines of the parts, and moves from level to level.
_FLOW, _FIRST, _LEVEL, _INDENT, _BOX_HEIGHT = -5.0, -16.5, 11.5, 6.0, 5.6
_ARROW: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "shrinkA": 0, "shrinkB": 0}


def draw_architecture(position: Recipe, velocity: Recipe, length: int) -> Figure:
    """The network of the position recipe for windows of so many samples, and how it is used."""
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
    _draw(parts["flow"], _FLOW, 0, values, axes)
    _draw(parts["ends"], _FIRST, 0, values, axes)
    for level, (width, deeper) in enumerate(zip(widths, (*widths[1:], widths[-1]), strict=True)):
        values |= {"size": f"{width} \u00d7 {length >> level:,}", "width": width, "deeper": deeper}
        _draw(parts["level"], _FIRST - level * _LEVEL, level, values, axes)
    values["size"] = f"{widths[-1]} \u00d7 {length >> depth:,}"
    bottom = _FIRST - depth * _LEVEL
    # As wide as the gap between the outer centres of the deepest level.
    parts["bottleneck"]["boxes"][0][2] = 48.0 - 2 * (depth - 1) * _INDENT
    _draw(parts["bottleneck"], bottom, 0, values, axes)
    axes.plot(2.0, bottom + 2.0, "o", color=GREEN, markersize=5)
    return figure


def _draw(part: dict[str, Any], line: float, level: int, values: Any, axes: Axes) -> None:
    """The boxes, arrows and words of a part on its line."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import FancyBboxPatch

    def place(x: float, y: float) -> tuple[float, float]:
        """Deeper levels are nearer to the middle."""
        return x + level * _INDENT * ((x < 50.0) - (x > 50.0)), line + y

    for x, y, width, name, has_film, text in part["boxes"]:
        (centre, middle), colour = place(x, y), _COLOURS[name]
        corner = (centre - width / 2, middle - _BOX_HEIGHT / 2)
        shape: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=0.8", "edgecolor": colour}
        face = to_rgba(colour, 0.12)
        axes.add_patch(FancyBboxPatch(corner, width, _BOX_HEIGHT, facecolor=face, **shape))
        said = text.format(**values)
        axes.text(centre, middle, said, ha="center", va="center", fontsize=8.5)
        if has_film:
            axes.plot(corner[0] + 1.3, middle + 1.5, "o", color=GREEN, markersize=5)
    for x, y, x_end, y_end, name, style in part["arrows"]:
        look = {"color": _COLOURS[name], "linestyle": style, **_ARROW}
        axes.annotate("", place(x_end, y_end), place(x, y), arrowprops=look)
    for x, y, alignment, size, name, text in part["words"]:
        va, ha = alignment.split()
        look = {
            "va": va,
            "ha": ha,
            "color": _COLOURS[name],
            "linespacing": 1.5 if va == "top" and ha == "left" else 1.2,
        }
        axes.text(*place(x, y), text.format(**values), fontsize=size, **look)
