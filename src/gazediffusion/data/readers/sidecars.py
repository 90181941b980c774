"""JSON sidecars: what stands beside a file of samples, as BIDS names it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gazediffusion.errors import GazeError
from gazediffusion.files import decode_text, read_bytes
from gazediffusion.geometry import Screen


def read_sidecar(path: Path) -> dict[str, Any]:
    """A JSON file that must hold an object."""
    try:
        fields = json.loads(decode_text(read_bytes(path), path))
    except (ValueError, RecursionError) as error:
        raise GazeError(f"this is no JSON ({error})", path=path) from error
    if not isinstance(fields, dict):
        raise GazeError("the JSON holds no object of fields", path=path)
    return fields


def presented_on(fields: Mapping[str, Any]) -> Screen | None:
    """The screen in a sidecar's `StimulusPresentation`, or at its top level."""
    presentation = fields.get("StimulusPresentation")
    return Screen.from_bids(presentation if isinstance(presentation, dict) else fields)


def sidecar_screens(path: Path) -> Screen | dict[str, Screen] | None:
    """The screen in the JSON file of the same name beside a file, or its `Screens` by task."""
    sidecar = path.with_suffix(".json")
    if not sidecar.is_file():
        return None
    fields = read_sidecar(sidecar)
    by_task = fields.get("Screens")
    if not isinstance(by_task, dict):
        return presented_on(fields)
    screens = {task: Screen.from_bids(one) for task, one in by_task.items()}
    return {task: screen for task, screen in screens.items() if screen is not None}
