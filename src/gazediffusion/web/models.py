"""The models that are served: those of the package and a run folder, each loaded at its first use.

Their descriptions need no torch, so that the server starts at once.
"""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gazediffusion.errors import GazeError, suggestion
from gazediffusion.models.description import ModelDescription, describe_model
from gazediffusion.models.pretrained import DEFAULT, find_model, pretrained_models

if TYPE_CHECKING:
    from gazediffusion.model import Model

QUALITIES = ("fast", "default", "best")
# Windows of one turn in the queue: few, so that the first window comes soon and other jobs wait
# briefly. On two cores, windows one by one take as long as in batches.
BATCH_CPU, BATCH_GPU = 1, 64


@dataclass(frozen=True)
class ServedModel:
    """A model by its name. source: what `gazediffusion.load` takes."""

    name: str
    source: str
    about: ModelDescription

    def describe(self) -> dict[str, Any]:
        """The model as the API states it."""
        about = self.about
        return {
            "name": self.name,
            "recipe": about.recipe,
            "tasks": list(about.tasks),
            "seconds": about.seconds,
            "rate_hz": about.rate_hz,
            "screen": asdict(about.screen),
            "task_screens": {task: asdict(screen) for task, screen in about.screens.items()},
            "qualities": list(QUALITIES),
            "trained_on": dict(about.trained_on),
        }


class Models:
    """All models that are served, by name."""

    def __init__(self, model: str | None = None) -> None:
        served = {
            name: ServedModel(name, name, describe_model(name)) for name in pretrained_models()
        }
        self.default = DEFAULT if DEFAULT in served else next(iter(served), "")
        if model is not None and Path(model).is_dir():
            folder = Path(model).resolve()
            served[folder.name] = ServedModel(folder.name, str(folder), describe_model(folder))
            self.default = folder.name
        elif model is not None:
            self.default = find_model(model).name
        if not served:
            raise GazeError(
                "there is no model to serve", remedy="train one, and give its run folder as `model`"
            )
        self.served = served
        self._loaded: dict[str, Model] = {}
        self._loading = threading.Lock()

    def find(self, name: str | None) -> ServedModel:
        """The model of that name; None is the default."""
        found = self.served.get(name or self.default)
        if found is None:
            known = suggestion(str(name), list(self.served))
            raise GazeError(f"no `model` {name!r}", remedy=known)
        return found

    def load(self, served: ServedModel) -> Model:
        """The model with its weights, loaded at the first call."""
        import gazediffusion as gd

        with self._loading:
            if served.name not in self._loaded:
                self._loaded[served.name] = gd.load(served.source)
            return self._loaded[served.name]
