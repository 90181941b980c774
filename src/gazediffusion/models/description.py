"""What a model is, read from its config.json without torch: for lists of models that open at once.

The file is that of `checkpoint.RunConfig`, in this or an earlier version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gazediffusion.errors import GazeError
from gazediffusion.files import read_json
from gazediffusion.geometry import Screen
from gazediffusion.models.pretrained import find_model


@dataclass(frozen=True)
class ModelDescription:
    """A model without its weights.

    screen: of the first training windows; screens: by task, empty without tasks.
    length: samples of a window. trained_on: tasks and numbers of participants and windows.
    """

    recipe: str
    tasks: tuple[str, ...]
    screen: Screen
    screens: Mapping[str, Screen]
    length: int
    rate_hz: float
    trained_on: Mapping[str, Any]

    @property
    def seconds(self) -> float:
        """Length of a window."""
        return self.length / self.rate_hz


def describe_model(model: Path | str) -> ModelDescription:
    """The description of a run folder, or of a packaged model by its name.

    >>> describe_model("joint").screens["reading"].in_words()
    '1680x1050 px, 47.4x29.7 cm at 55 cm'
    """
    folder = find_model(model)
    path = folder / "config.json"
    if not path.is_file():
        raise GazeError(
            "this is no run folder", path=folder, remedy="make one with gazediffusion train"
        )
    config = read_json(path)
    try:
        conditioning = config.get("conditioning", config)
        tasks = tuple(conditioning.get("schema", {}).get("task", config.get("tasks", [])))
        screens = [Screen(**one) for one in conditioning.get("task_screens", [])]
        return ModelDescription(
            recipe=config["recipe"]["name"],
            tasks=tasks,
            screen=Screen(**config["screen"]),
            screens=dict(zip(tasks, screens, strict=True)),
            length=int(config["length"]),
            rate_hz=float(config["rate_hz"]),
            trained_on=dict(config["data"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise GazeError(f"the configuration is damaged ({error})", path=path) from error
