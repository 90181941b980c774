"""Sets in parts of known windows, as `generate_dataset` writes those of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gazediffusion.data.export.card import screen_fields
from gazediffusion.data.export.windows import write_part
from gazediffusion.data.windows import Windows
from gazediffusion.generation.journal import FORMAT, MANIFEST
from gazediffusion.storage import write_json


def write_parts(
    folder: Path, windows: Windows, part_size: int, grid_px: float | None = None, **card: Any
) -> Path:
    """Windows as a set in parts; card: what its card says beside the usual."""
    folder.mkdir(parents=True)
    screens = {
        windows.tasks[task]: windows.screens[screen]
        for task, screen in zip(windows.task, windows.screen_index, strict=True)
    }
    sizes = {"n_windows": len(windows), "window_samples": windows.length}
    about = {"format": "gazediffusion-synthetic", "synthetic": True, "rate_hz": windows.rate_hz}
    whole = {**about, **sizes, **screen_fields(screens), "grid_px": grid_px, **card}
    listed = []
    for number, first in enumerate(range(0, len(windows), part_size)):
        piece = windows.select(np.arange(first, min(first + part_size, len(windows))))
        name = f"part-{number:06d}.parquet"
        pieces = [piece]
        write_part(folder / name, lambda p=pieces: p, whole, screens.values(), first, grid_px)  # type: ignore[misc]
        listed.append({"file": name, "first": first, "n": len(piece)})
    write_json(folder / "card.json", whole)
    manifest = {"format": FORMAT, "n_windows": len(windows), "part_size": part_size}
    write_json(folder / MANIFEST, {**manifest, "parts": listed})
    return folder


def walks(n: int, length: int, seed: int = 0) -> Any:
    """Gaze (n, 2, length) that drifts and jumps."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(0, 0.002, (n, 2, length))
    steps += rng.normal(0, 0.3, steps.shape) * (rng.random((n, 1, length)) < 0.01)
    return np.sin(steps.cumsum(axis=-1)).astype(np.float32)
