"""What a file or folder is: a windows file, a run folder or a synthetic set, as plain values."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from gazediffusion.data.windows import Windows
from gazediffusion.data.writers.card import read_card, readme_of
from gazediffusion.errors import GazeError
from gazediffusion.generation.recording_sets import (
    readme_of_augmented,
    readme_of_filled,
    readme_of_labelled,
)
from gazediffusion.network.checkpoint import read_config, read_metrics
from gazediffusion.network.pretrained import find_model
from gazediffusion.network.unet import n_parameters
from gazediffusion.storage import fetched


def describe(path: Path | str) -> dict[str, Any]:
    """Everything that a file, folder or URL, or a packaged model by its name, says about itself.

    `kind` is windows, run or set; the other values depend on it.

    >>> found = describe("default")
    >>> found["kind"], found["is_calibrated"]
    ('run', True)
    """
    path = fetched(path, (f"{Path(path).stem}.json",))
    if not path.exists():
        try:
            return _run(find_model(str(path)))
        except GazeError as error:
            raise GazeError("there is no such file or folder", path=path) from error
    card = read_card(path)
    if card is not None:
        return {"kind": "set", **card, "in_words": _in_words(card, path.suffix[1:])}
    return _run(path) if path.is_dir() else describe_windows(Windows.load(path))


def _in_words(card: dict[str, Any], format: str) -> str:
    """The README of a set."""
    of_recordings = {
        "gazediffusion-augmented": readme_of_augmented,
        "gazediffusion-filled": readme_of_filled,
        "gazediffusion-labelled": readme_of_labelled,
    }.get(card.get("format", ""))
    return readme_of(card, format) if of_recordings is None else of_recordings(card)


def describe_windows(windows: Windows) -> dict[str, Any]:
    """Everything that a windows file says about itself."""
    return {
        "kind": "windows",
        "protocol": windows.protocol,
        "n_windows": len(windows),
        "length": windows.length,
        "rate_hz": windows.rate_hz,
        "screens": [asdict(screen) for screen in windows.screens],
        "participants": list(windows.participants),
        "validation": sorted(windows.validation),
        "tasks": list(windows.tasks),
        "grid_px": windows.grid_px,
        "velocity_scale": windows.velocity_scale,
        "provenance": dict(windows.provenance),
    }


def _run(folder: Path) -> dict[str, Any]:
    config = read_config(folder)
    return {
        "kind": "run",
        **config.to_json(),
        "n_parameters": n_parameters(config.recipe.network),
        "is_calibrated": config.conditioning.is_calibrated,
        "has_statistics": config.conditioning.prior is not None,
        "epochs_done": read_metrics(folder),
    }
