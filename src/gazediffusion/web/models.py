"""The models that are served: the packaged ones and a run folder, each loaded at its first use."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gazediffusion as gd
from gazediffusion.errors import GazeError, suggestion

if TYPE_CHECKING:
    from gazediffusion.models.listing import ModelDescription

QUALITIES = ("default", "best")
# Windows of one turn in the queue: few, so that the first window comes soon and other jobs wait
# briefly. On two cores, windows one by one take as long as in batches.
BATCH_CPU, BATCH_GPU = 1, 64


@dataclass(frozen=True)
class ServedModel:
    """A model by its name, described without torch, so that the server starts at once."""

    name: str
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
            "has_losses": about.has_losses,
            "has_labels": about.has_labels,
            "is_steerable": about.is_steerable,
        }


class Models:
    """All models that are served, by name."""

    def __init__(self, model: str | None = None) -> None:
        is_folder = model is not None and Path(model).is_dir()
        listed = gd.list_models([model] if is_folder and model is not None else [])
        self.served = {name: ServedModel(name, about) for name, about in listed.items()}
        if not self.served:
            raise GazeError(
                "there is no model to serve", remedy="train one, and give its run folder as `model`"
            )
        self.default = list(self.served)[-1 if is_folder else 0]
        if not is_folder and model not in (None, "default"):
            self.default = self.find(model).name
        self._loaded: dict[str, gd.Model] = {}
        self._loading = threading.Lock()

    def find(self, name: str | None) -> ServedModel:
        """The model of that name; None is the default."""
        found = self.served.get(name or self.default)
        if found is None:
            known = suggestion(str(name), list(self.served))
            raise GazeError(f"no `model` {name!r}", remedy=known)
        return found

    def load(self, served: ServedModel) -> gd.Model:
        """The model with its weights, loaded at the first call."""
        with self._loading:
            if served.name not in self._loaded:
                self._loaded[served.name] = gd.load(served.about.source)
            return self._loaded[served.name]
