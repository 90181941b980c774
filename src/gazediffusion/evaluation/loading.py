"""Where sets to compare come from: windows files, run folders, or any recordings.

Real recordings are cleaned and cut as for training. Synthetic ones are taken as they are, because
cleaning would hide the very defects that are looked for; only samples that are missing are left
out. A run folder generates its windows on the fly.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from gazediffusion.data.cleaning import CleaningConfig
from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.gaze_sets import Like
from gazediffusion.evaluation.set_tests import FeatureMap
from gazediffusion.generation.generator import DiffusionGenerator, Progress
from gazediffusion.geometry import Screen
from gazediffusion.models.checkpoint import Run, load_run

Side = Literal["real", "train", "synthetic"]
# Takes out nothing but what is not there.
_AS_IT_IS = CleaningConfig(
    blink_before_ms=0.0, blink_after_ms=0.0, frozen_ms=1e12, max_speed_deg_s=1e12
)
_SECONDS, _RATE_HZ = 8.0, 250.0


def load_set(
    path: Path | str,
    side: Side,
    like: Like | None = None,
    read_options: object = None,
    progress: Progress = lambda done: None,
) -> Windows:
    """Windows of a set; of a windows file the held-out people are real, the others training.

    like: the real windows, or a summary of them, whose rate and length recordings are brought to,
    and whose number a run folder generates. read_options: a `ReadOptions` for recordings.
    """
    path = Path(path)
    if (path / "config.json").is_file():
        return _generated(path, like, progress)
    if path.suffix == ".safetensors":
        return _part(Windows.load(path), side, path)
    if path.suffix == ".npz":
        from gazediffusion.data.export.npz import read_npz

        return read_npz(path, _screen_of(like), like.rate_hz if like is not None else None)
    return _from_recordings(path, side, like, read_options)


def name_of(given: str) -> tuple[str, str]:
    """(name, path) of `NAME=PATH`, or of a path, which is named by its file or folder."""
    name, equals, path = given.partition("=")
    if equals and name and not Path(given).exists():
        return name, path
    return Path(given).stem or Path(given).name, given


def reference_features(run: Run, batch_size: int = 16) -> FeatureMap:
    """Windows (window, 2, time) to bottleneck features (window, width) of a position network.

    The clean window is given to the network at the first diffusion step, t = 1, and the
    bottleneck's output is averaged over time: 512 numbers for the paper's network.
    """
    import torch

    if run.config.recipe.representation != "position":
        raise GazeError("the reference must be a position model", path=run.path)
    device = next(run.network.parameters()).device

    @torch.no_grad()
    def features(gaze: np.ndarray) -> np.ndarray:
        rows = []
        for first in range(0, len(gaze), batch_size):
            x = torch.from_numpy(np.ascontiguousarray(gaze[first : first + batch_size])).to(device)
            t = torch.ones(len(x), dtype=torch.long, device=device)
            rows.append(run.network.features(x, t).mean(dim=2).double().cpu().numpy())
        return np.concatenate(rows)

    return features


def _generated(path: Path, like: Like | None, progress: Progress) -> Windows:
    if like is None:
        raise GazeError("a run folder cannot be the real set", path=path)
    generator = DiffusionGenerator(load_run(path, device=choose_device("auto")))
    gaze = np.concatenate(list(generator.pieces(0, len(like), 0, progress)))
    return generator.as_windows(gaze, 0)


def _part(windows: Windows, side: Side, path: Path) -> Windows:
    if side == "synthetic" or not windows.validation:
        return windows
    part = windows.held_out if side == "real" else windows.train
    if len(part) == 0:
        raise GazeError(f"there are no {side} windows in this file", path=path)
    return part


def _screen_of(like: Like | None) -> Screen | None:
    """The one screen of the real windows; None where there are several or none."""
    try:
        return like.screen if like is not None else None
    except GazeError:
        return None


def _from_recordings(path: Path, side: Side, like: Like | None, read_options: object) -> Windows:
    from gazediffusion.data.preparing import PrepareConfig, prepare
    from gazediffusion.data.readers import ReadOptions, find_sources

    options = read_options if isinstance(read_options, ReadOptions) else ReadOptions()
    if options.screen is None and side == "synthetic" and like is not None:
        options = replace(options, fallback_screen=_screen_of(like))
    rate_hz = like.rate_hz if like is not None else _RATE_HZ
    seconds = like.length / like.rate_hz if like is not None else _SECONDS
    config = PrepareConfig(rate_hz=rate_hz, seconds=seconds, validation_fraction=0.0)
    if side == "synthetic":
        config = replace(config, cleaning=_AS_IT_IS, stride=config.length)
    return prepare(find_sources([path], options), config)
