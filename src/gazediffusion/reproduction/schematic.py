"""The paper's figure 2, drawn from the network that was trained: noising, U-Net, DDIM.

Every number in the picture is read from the recipe and from the network itself, so that it cannot
disagree with what was run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gazediffusion.models.recipes import Recipe
from gazediffusion.models.unet import n_parameters
from gazediffusion.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The canvas, in units of a hundredth of its width.
_WIDTH, _TOP = 100.0, 12.0
_LEVEL, _INDENT, _BOX_WIDTH, _BOX_HEIGHT = 11.5, 6.0, 15.0, 5.6
_ARROW: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "shrinkA": 0, "shrinkB": 0}
_BY = "\u00d7"
Point = tuple[float, float]


def draw_architecture(position: Recipe, velocity: Recipe, length: int) -> Figure:
    """The network of the position recipe for windows of so many samples, and how it is used."""
    import matplotlib.pyplot as plt

    n_levels = len(position.network.widths)
    height = _TOP + (n_levels + 1) * _LEVEL - 1.5
    figure, axes = plt.subplots(figsize=(10.5, 10.5 * height / _WIDTH))
    axes.set(xlim=(0, _WIDTH), ylim=(-height, 0), aspect="equal")
    axes.axis("off")
    _draw_flow(position, velocity, length, axes)
    _draw_network(position, length, axes)
    return figure


def _draw_flow(position: Recipe, velocity: Recipe, length: int, axes: Axes) -> None:
    """Noising -> U-Net -> DDIM -> generated window, along the top."""
    network = position.network
    symbol = r"\hat\varepsilon" if position.objective == "eps" else r"\hat X_0"
    steps = f"{position.sampling_steps} steps (position)\n{velocity.sampling_steps} (velocity)"
    boxes = (
        (8.5, 15.0, f"$X_0$: {network.channels} {_BY} {length:,}\nposition or velocity", GREY),
        (34.0, 7.0, "$X_t$", GREY),
        (53.0, 17.0, f"1-D U-Net\n{n_parameters(position.network):,} parameters", BLUE),
        (69.5, 7.0, f"${symbol}$", ORANGE),
        (92.0, 14.0, r"$\hat X_0$" + "\ngenerated window", GREEN),
    )
    arrows = (
        (
            r"$\sqrt{\bar\alpha_t} X_0 + \sqrt{1 - \bar\alpha_t}\, \varepsilon$",
            f"noising, $t$ = 1 … {position.diffusion_steps:,}",
        ),
        ("", ""),
        ("", ""),
        (f"DDIM, $\\eta$ = {position.eta:g}", steps),
    )
    y = -5.0
    for x, width, text, colour in boxes:
        _box((x, y), width, _BOX_HEIGHT, text, colour, axes)
    for (x, width, *_), (x_next, width_next, *_), (above, below) in zip(
        boxes[:-1], boxes[1:], arrows, strict=True
    ):
        start, end = x + width / 2, x_next - width_next / 2
        _arrow((start, y), (end, y), "black", axes)
        axes.text((start + end) / 2, y + 0.7, above, ha="center", va="bottom", fontsize=8)
        axes.text((start + end) / 2, y - 0.9, below, ha="center", va="top", fontsize=8)


def _draw_network(recipe: Recipe, length: int, axes: Axes) -> None:
    """The U: encoder down the left, bottleneck, decoder up the right, skips across."""
    config = recipe.network
    widths, depth = config.widths, len(config.widths)
    deeper = (*widths[1:], widths[-1])
    left, right = 26.0, _WIDTH - 26.0
    _draw_ends(recipe, length, left, right, axes)
    for level, width in enumerate(widths):
        y = -_TOP - 4.5 - level * _LEVEL
        x_in, x_out = left + level * _INDENT, right - level * _INDENT
        size = f"{width} {_BY} {length >> level:,}"
        _block((x_in, y), f"residual block\n{size}", BLUE, axes)
        _block((x_out, y), f"residual block\n{size}", ORANGE, axes)
        start, end = x_in + _BOX_WIDTH / 2, x_out - _BOX_WIDTH / 2
        _arrow((start, y), (end, y), GREY, axes, dashed=True)
        axes.text(_WIDTH / 2, y + 0.5, "skip", ha="center", va="bottom", fontsize=8, color=GREY)
        below = y - _LEVEL + _BOX_HEIGHT / 2
        x_down, x_up = x_in + _INDENT / 2, x_out - _INDENT / 2
        _arrow((x_down, y - _BOX_HEIGHT / 2), (x_down, below), BLUE, axes)
        _arrow((x_up, below), (x_up, y - _BOX_HEIGHT / 2), ORANGE, axes)
        middle = (y - _BOX_HEIGHT / 2 + below) / 2
        down = f"conv 3, stride 2: {width} → {deeper[level]}"
        up = f"transposed conv 3, stride 2: {deeper[level]} → {width}"
        axes.text(x_down - 1.2, middle, down, ha="right", va="center", fontsize=8)
        axes.text(x_up + 1.2, middle, up, ha="left", va="center", fontsize=8)
    y = -_TOP - 4.5 - depth * _LEVEL
    size = f"{widths[-1]} {_BY} {length >> depth:,}"
    attention = f"self-attention between: {config.heads} heads of {config.head_width}"
    bottom = right - left - 2 * (depth - 1) * _INDENT
    text = f"2 residual blocks, {size}\n{attention}"
    _box((_WIDTH / 2, y), bottom, _BOX_HEIGHT, text, PURPLE, axes)
    _film_dot((_WIDTH / 2 - bottom / 2 + 1.3, y + 1.5), axes)
    _draw_notes(recipe, y, axes)


def _draw_ends(recipe: Recipe, length: int, left: float, right: float, axes: Axes) -> None:
    """What goes into the first level and comes out of it."""
    config, y = recipe.network, -_TOP - 4.5
    first = config.widths[0]
    target = r"$\hat\varepsilon$" if recipe.objective == "eps" else r"$\hat X_0$"
    shape = f"{config.channels} {_BY} {length:,}"
    _box((6.5, y), 11.0, _BOX_HEIGHT, f"$X_t$\n{shape}", GREY, axes)
    _box((_WIDTH - 6.5, y), 11.0, _BOX_HEIGHT, f"{target}\n{shape}", ORANGE, axes)
    _arrow((12.0, y), (left - _BOX_WIDTH / 2, y), "black", axes)
    _arrow((right + _BOX_WIDTH / 2, y), (_WIDTH - 12.0, y), "black", axes)
    for x, channels in (
        (15.25, f"{config.channels} → {first}"),
        (84.75, f"{first} → {config.channels}"),
    ):
        axes.text(x, y + 0.6, "conv 7", ha="center", va="bottom", fontsize=7.5)
        axes.text(x, y - 0.7, channels, ha="center", va="top", fontsize=7.5)


def _draw_notes(recipe: Recipe, y: float, axes: Axes) -> None:
    """The step embedding and what a residual block is, in the lower corners."""
    config = recipe.network
    _film_dot((2.0, y + 2.0), axes)
    embedding = (
        f"step $t$ → sinusoid {config.embedding} → linear {4 * config.embedding:,}\n"
        f"→ SiLU → linear {config.embedding} = $e_t$, into every\nresidual block by FiLM:\n"
        r"$h' = h \odot (1 + \gamma(e_t)) + \delta(e_t)$"
    )
    block = (
        f"residual block: group norm ({config.groups}), SiLU,\nconv {config.kernel}, group norm, "
        f"FiLM, SiLU, conv {config.kernel},\nplus shortcut. Decoder blocks take the\n"
        "upsampled and the skipped channels."
    )
    axes.text(3.6, y + 3.0, embedding, ha="left", va="top", fontsize=8, linespacing=1.5)
    axes.text(71.0, y + 3.0, block, ha="left", va="top", fontsize=8, linespacing=1.5)


def _block(centre: Point, text: str, colour: str, axes: Axes) -> None:
    """A residual block: a box with FiLM's mark."""
    _box(centre, _BOX_WIDTH, _BOX_HEIGHT, text, colour, axes)
    _film_dot((centre[0] - _BOX_WIDTH / 2 + 1.3, centre[1] + _BOX_HEIGHT / 2 - 1.3), axes)


def _film_dot(centre: Point, axes: Axes) -> None:
    axes.plot(*centre, "o", color=GREEN, markersize=5)


def _box(centre: Point, width: float, height: float, text: str, colour: str, axes: Axes) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import FancyBboxPatch

    corner = (centre[0] - width / 2, centre[1] - height / 2)
    axes.add_patch(
        FancyBboxPatch(
            corner,
            width,
            height,
            boxstyle="round,pad=0,rounding_size=0.8",
            facecolor=to_rgba(colour, 0.12),
            edgecolor=colour,
        )
    )
    axes.text(*centre, text, ha="center", va="center", fontsize=8.5)


def _arrow(start: Point, end: Point, colour: str, axes: Axes, dashed: bool = False) -> None:
    look = {"color": colour, "linestyle": "--" if dashed else "-", **_ARROW}
    axes.annotate("", end, start, arrowprops=look)
