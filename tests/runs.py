"""Small windows and runs for the tests of training and generation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from gazediffusion.data.windows import Protocol, Windows
from gazediffusion.network.recipes import RECIPES, Recipe
from gazediffusion.training.training import train_epochs
from tests.data.test_windows import make_windows
from tests.network.test_unet import SMALL

TINY: Recipe = replace(
    RECIPES["position-tiny"], network=SMALL, epochs=3, batch_size=4, sampling_steps=5
)
TINY_VELOCITY: Recipe = replace(
    RECIPES["velocity-tiny"], network=SMALL, epochs=3, batch_size=4, sampling_steps=5
)


def short_windows(recipe: Protocol = "position") -> Windows:
    """Windows of 64 samples: 12 of the training participant, 24 of the one held out."""
    windows = replace(make_windows(), length=64, protocol=recipe)
    starts = (np.arange(0, 177, 16) + np.array([[0], [250], [500]])).ravel()
    scale = 7.0 if recipe == "velocity" else None
    return replace(windows, starts=starts.astype(np.int64), velocity_scale=scale)


def saved_windows(path: Path, recipe: Protocol = "position") -> Windows:
    """The same, saved and loaded, so that they know their hash."""
    short_windows(recipe).save(path)
    return Windows.load(path)


def trained_run(folder: Path, recipe: Recipe = TINY) -> Path:
    """A run trained to its end."""
    windows = saved_windows(folder.with_suffix(".safetensors"), recipe.protocol)
    list(train_epochs(windows, folder, recipe, seed=0, device="cpu"))
    return folder
