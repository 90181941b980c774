"""The paper's figure 2, drawn from the network that was trained: noising, U-Net, DDIM.

Every number in the picture is read from the recipe and from the network itself, so that it cannot
disagree with what was run.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gazediffusion.models.recipes import Recipe
from gazediffusion.models.unet import n_parameters
from gazediffusion.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The canvas, in units of a hundredth of its width.
_WIDTH, _TOP, _LEFT = 100.0, 12.0, 26.0
_LEVEL, _INDENT, _BOX_WIDTH, _BOX_HEIGHT = 11.5, 6.0, 15.0, 5.6
_BY = "\u00d7"
_ARROW: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "shrinkA": 0, "shrinkB": 0}


@dataclass(frozen=True)
class _Canvas:
    """Boxes, arrows and words on the axes."""

    axes: Axes

    def box(
        self, x: float, y: float, width: float, text: str, colour: str, film: bool = False
    ) -> None:
        """A box of one height around its centre; film: with the mark of FiLM."""
        from matplotlib.colors import to_rgba
        from matplotlib.patches import FancyBboxPatch

        corner, style = (x - width / 2, y - _BOX_HEIGHT / 2), "round,pad=0,rounding_size=0.8"
        face: dict[str, Any] = {"facecolor": to_rgba(colour, 0.12), "edgecolor": colour}
        self.axes.add_patch(FancyBboxPatch(corner, width, _BOX_HEIGHT, style, **face))
        self.say(x, y, text, size=8.5)
        if film:
            self.dot(x - width / 2 + 1.3, y + 1.5)

    def dot(self, x: float, y: float) -> None:
        self.axes.plot(x, y, "o", color=GREEN, markersize=5)

    def arrow(self, start: Any, end: Any, colour: str = "black", line: str = "-") -> None:
        look = {"color": colour, "linestyle": line, **_ARROW}
        self.axes.annotate("", end, start, arrowprops=look)

    def say(
        self,
        x: float,
        y: float,
        text: str,
        at: str = "center center",
        size: float = 8.0,
        **look: Any,
    ) -> None:
        """Words whose place within them is `at`: vertical, then horizontal."""
        vertical, horizontal = at.split()
        self.axes.text(x, y, text, va=vertical, ha=horizontal, fontsize=size, **look)


def draw_architecture(position: Recipe, velocity: Recipe, length: int) -> Figure:
    """The network of the position recipe for windows of so many samples, and how it is used."""
    import matplotlib.pyplot as plt

    height = _TOP + (len(position.network.widths) + 1) * _LEVEL - 1.5
    figure, axes = plt.subplots(figsize=(10.5, 10.5 * height / _WIDTH))
    axes.set(xlim=(0, _WIDTH), ylim=(-height, 0), aspect="equal")
    axes.axis("off")
    target = r"$\hat\varepsilon$" if position.objective == "eps" else r"$\hat X_0$"
    _draw_flow(position, velocity, length, target, _Canvas(axes))
    _draw_network(position, length, target, _Canvas(axes))
    return figure


def _draw_flow(
    position: Recipe, velocity: Recipe, length: int, target: str, canvas: _Canvas
) -> None:
    """Noising -> U-Net -> DDIM -> generated window, along the top."""
    network, y = position.network, -5.0
    noising = r"$\sqrt{\bar\alpha_t} X_0 + \sqrt{1 - \bar\alpha_t}\, \varepsilon$"
    steps = f"{position.sampling_steps} steps (position)\n{velocity.sampling_steps} (velocity)"
    # Centre, width, text and colour of a box; what stands above and below the arrow to the next.
    boxes = (
        (8.5, 15.0, f"$X_0$: {network.channels} {_BY} {length:,}\nposition or velocity", GREY,
         noising, f"noising, $t$ = 1 … {position.diffusion_steps:,}"),
        (34.0, 7.0, "$X_t$", GREY, "", ""),
        (53.0, 17.0, f"1-D U-Net\n{n_parameters(network):,} parameters", BLUE, "", ""),
        (69.5, 7.0, target, ORANGE, f"DDIM, $\\eta$ = {position.eta:g}", steps),
        (92.0, 14.0, "$\\hat X_0$\ngenerated window", GREEN, "", ""),
    )  # fmt: skip
    for x, width, text, colour, _, _ in boxes:
        canvas.box(x, y, width, text, colour)
    for box, after in pairwise(boxes):
        start, end = box[0] + box[1] / 2, after[0] - after[1] / 2
        canvas.arrow((start, y), (end, y))
        canvas.say((start + end) / 2, y + 0.7, box[4], "bottom center")
        canvas.say((start + end) / 2, y - 0.9, box[5], "top center")


def _draw_network(recipe: Recipe, length: int, target: str, canvas: _Canvas) -> None:
    """The U: encoder down the left, bottleneck, decoder up the right, skips across."""
    config, first, half = recipe.network, -_TOP - 4.5, _BOX_HEIGHT / 2
    widths, shape = config.widths, f"{config.channels} {_BY} {length:,}"
    ends = (f"{config.channels} → {widths[0]}", f"{widths[0]} → {config.channels}")
    canvas.box(6.5, first, 11.0, f"$X_t$\n{shape}", GREY)
    canvas.box(_WIDTH - 6.5, first, 11.0, f"{target}\n{shape}", ORANGE)
    canvas.arrow((12.0, first), (_LEFT - _BOX_WIDTH / 2, first))
    canvas.arrow((_WIDTH - _LEFT + _BOX_WIDTH / 2, first), (_WIDTH - 12.0, first))
    for x, channels in zip((15.25, 84.75), ends, strict=True):
        canvas.say(x, first + 0.6, "conv 7", "bottom center", 7.5)
        canvas.say(x, first - 0.7, channels, "top center", 7.5)
    for level, (width, deeper) in enumerate(zip(widths, (*widths[1:], widths[-1]), strict=True)):
        y, x = first - level * _LEVEL, _LEFT + level * _INDENT
        text, below = f"residual block\n{width} {_BY} {length >> level:,}", y - _LEVEL + half
        canvas.box(x, y, _BOX_WIDTH, text, BLUE, film=True)
        canvas.box(_WIDTH - x, y, _BOX_WIDTH, text, ORANGE, film=True)
        edge, down = x + _BOX_WIDTH / 2, x + _INDENT / 2
        canvas.arrow((edge, y), (_WIDTH - edge, y), GREY, "--")
        canvas.say(_WIDTH / 2, y + 0.5, "skip", "bottom center", color=GREY)
        canvas.arrow((down, y - half), (down, below), BLUE)
        canvas.arrow((_WIDTH - down, below), (_WIDTH - down, y - half), ORANGE)
        stride, middle = "conv 3, stride 2:", (y - half + below) / 2
        canvas.say(down - 1.2, middle, f"{stride} {width} → {deeper}", "center right")
        up = f"transposed {stride} {deeper} → {width}"
        canvas.say(_WIDTH - down + 1.2, middle, up, "center left")
    y, depth = first - len(widths) * _LEVEL, len(widths)
    text = (
        f"2 residual blocks, {widths[-1]} {_BY} {length >> depth:,}\n"
        f"self-attention between: {config.heads} heads of {config.head_width}"
    )
    inside = _WIDTH - 2 * (_LEFT + (depth - 1) * _INDENT)
    canvas.box(_WIDTH / 2, y, inside, text, PURPLE, film=True)
    canvas.dot(2.0, y + 2.0)
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
    canvas.say(3.6, y + 3.0, embedding, "top left", linespacing=1.5)
    canvas.say(71.0, y + 3.0, block, "top left", linespacing=1.5)
