"""A list of models, read from their config.json without torch, which takes seconds to load.

The file is that of `checkpoint.RunConfig`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gazediffusion.errors import GazeError
from gazediffusion.geometry import Screen
from gazediffusion.models.pretrained import DEFAULT, LOSSES, find_model, pretrained_models
from gazediffusion.settings import MOST_SECONDS
from gazediffusion.storage import read_json


@dataclass(frozen=True)
class ModelDescription:
    """A model without its weights.

    source: what `load` takes. length: samples of a window.
    screen: of the first training windows; screens: by task, empty without tasks.
    trained_on: tasks and numbers of participants and windows. has_losses: whether losses can be
    added to what it generates. has_labels: whether it labels events. is_steerable: whether its
    windows may be of any length and keep to scanpaths, targets and known samples.
    """

    source: str
    recipe: str
    tasks: tuple[str, ...]
    screen: Screen
    screens: Mapping[str, Screen]
    length: int
    rate_hz: float
    trained_on: Mapping[str, Any]
    has_losses: bool
    has_labels: bool
    is_steerable: bool

    @property
    def seconds(self) -> float:
        """Length of a window."""
        return self.length / self.rate_hz

    @property
    def max_seconds(self) -> float:
        """Length of the longest window that can be asked for."""
        return MOST_SECONDS if self.is_steerable else self.seconds


def list_models(run_folders: Sequence[Path | str] = ()) -> dict[str, ModelDescription]:
    """The packaged models by name, the default one first, and some run folders by theirs.

    >>> models = list_models()
    >>> list(models), models["joint"].screens["reading"].in_words()
    (['joint', 'position', 'velocity'], '1680x1050 px, 47.4x29.7 cm at 55 cm')
    """
    names = sorted(pretrained_models(), key=lambda name: name != DEFAULT)
    listed = {name: _described(name, find_model(name)) for name in names}
    for given in run_folders:
        folder = Path(given).resolve()
        listed[folder.name] = _described(str(folder), folder)
    return listed


def _described(source: str, folder: Path) -> ModelDescription:
    path = folder / "config.json"
    if not path.is_file():
        raise GazeError(
            "this is no run folder", path=folder, remedy="make one with gazediffusion train"
        )
    config = read_json(path)
    try:
        conditioning = config["conditioning"]
        tasks = tuple(conditioning["schema"].get("task", ()))
        screens = [Screen(**one) for one in conditioning["task_screens"]]
        is_steerable = bool(conditioning.get("sequences"))
        return ModelDescription(
            source=source,
            recipe=config["recipe"]["name"],
            tasks=tasks,
            screen=Screen(**config["screen"]),
            screens=dict(zip(tasks, screens, strict=True)),
            length=int(config["length"]),
            rate_hz=float(config["rate_hz"]),
            trained_on=dict(config["data"]),
            has_losses=(folder / LOSSES).is_file(),
            # As `generation.labelling.can_label`: it is given gaze and has channels of labels.
            has_labels=is_steerable and bool(config["recipe"].get("has_labels")),
            is_steerable=is_steerable,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise GazeError(f"the configuration is damaged ({error})", path=path) from error
