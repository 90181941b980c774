"""The models on offer: those inside the package and a run folder, each loaded once when asked for.

What a model is stands in its config.json, which is read without torch, so that the server starts
at once.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gazediffusion.errors import GazeError, suggestion
from gazediffusion.files import read_json
from gazediffusion.models.pretrained import DEFAULT, find_model, load_model, shipped_models

if TYPE_CHECKING:
    from gazediffusion.generation.generator import DiffusionGenerator
    from gazediffusion.models.checkpoint import Run


QUALITIES = ("fast", "default", "best")
# A turn in the queue: short, so that the first window comes soon and nobody waits long. On two
# cores, windows one by one take as long as in batches.
BATCH_CPU, BATCH_GPU = 1, 64


@dataclass(frozen=True)
class Offer:
    """A model by name. source: what `generate --model` is given for it."""

    name: str
    source: str
    config: Mapping[str, Any]

    @classmethod
    def of(cls, source: str, name: str | None = None) -> Offer:
        """The model of a run folder or of the package; one that cannot be read is refused."""
        folder = find_model(source)
        if not (folder / "config.json").is_file():
            raise GazeError(
                "this is no run folder", path=folder, remedy="make one with gazediffusion train"
            )
        offer = cls(name or source, source, read_json(folder / "config.json"))
        try:
            offer.describe()
        except (KeyError, TypeError, AttributeError) as error:
            raise GazeError(
                f"the configuration is damaged ({error})", path=folder / "config.json"
            ) from error
        return offer

    @property
    def length(self) -> int:
        """Samples of a window."""
        return int(self.config["length"])

    @property
    def rate_hz(self) -> float:
        """Samples per second."""
        return float(self.config["rate_hz"])

    @property
    def tasks(self) -> list[str]:
        """What the model can be told that a person is doing."""
        return list(self.config.get("tasks", []))

    def describe(self) -> dict[str, Any]:
        """The model as the API tells of it."""
        screens = self.config.get("task_screens", [])
        return {
            "name": self.name,
            "recipe": self.config["recipe"]["name"],
            "tasks": self.tasks,
            "seconds": self.length / self.rate_hz,
            "rate_hz": self.rate_hz,
            "screen": dict(self.config["screen"]),
            "task_screens": dict(zip(self.tasks, map(dict, screens), strict=True)),
            "qualities": list(QUALITIES),
            "trained_on": dict(self.config["data"]),
        }


class Models:
    """All models on offer."""

    def __init__(self, model: str | None = None) -> None:
        offers = {name: Offer.of(name) for name in shipped_models()}
        self.default = DEFAULT if DEFAULT in offers else next(iter(offers), "")
        if model is not None and Path(model).is_dir():
            folder = Path(model).resolve()
            offers[folder.name] = Offer.of(str(folder), folder.name)
            self.default = folder.name
        elif model is not None:
            find_model(model)
            self.default = model
        if not offers:
            raise GazeError(
                "there is no model to serve",
                remedy="train one, and name its run folder with --model",
            )
        self.offers = offers
        self._runs: dict[str, Run] = {}
        self._loading = threading.Lock()

    def find(self, name: str | None) -> Offer:
        """The model of that name; None is the default."""
        found = self.offers.get(name or self.default)
        if found is None:
            raise GazeError(f"no model {name!r}", remedy=suggestion(str(name), list(self.offers)))
        return found

    def generator(self, offer: Offer, quality: str, task: str | None) -> DiffusionGenerator:
        """A generator that gives windows in the pieces of a turn."""
        from gazediffusion.generation.generator import DiffusionGenerator

        run = self.run(offer)
        on_gpu = next(run.network.parameters()).is_cuda
        return DiffusionGenerator.of_quality(
            run, quality, task=task, batch_size=BATCH_GPU if on_gpu else BATCH_CPU
        )

    def run(self, offer: Offer) -> Run:
        """The model with its weights, loaded at the first call."""
        from gazediffusion.device import choose_device

        with self._loading:
            if offer.name not in self._runs:
                self._runs[offer.name] = load_model(offer.source, device=choose_device("auto"))
            return self._runs[offer.name]
