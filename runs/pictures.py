"""Figures of documents: PNG files of few colours, small enough for the tracked tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image

from gazediffusion.plotting.style import save_figure

N_COLOURS = 32


def save_small(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib, a PNG file in few colours, and close it."""
    save_figure(figure, path)
    if path.suffix.lower() == ".png":
        picture = Image.open(path).convert("RGB")
        picture.quantize(colors=N_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"wrote {path}")
