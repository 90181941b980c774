"""The packaged models: compact weights and the configuration to rebuild the network.

NAME/config.json holds what a run folder's does, and the SHA-256 of the weights beside it, which is
checked on loading. `save_pretrained` writes a run folder there.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gazediffusion.errors import GazeError, suggestion
from gazediffusion.screen import Screen
from gazediffusion.settings import MOST_SECONDS
from gazediffusion.storage import fetched, is_remote, read_json, sha256_of

if TYPE_CHECKING:
    import torch

    from gazediffusion.network.checkpoint import Run, RunConfig, WeightsName

WEIGHTS = "weights.safetensors"
LOSSES = "losses.json"  # in the folder of a model: `data.track_loss.LossModel`
SCORES = "scores.json"  # in the folder of a model: `scoring.percentiles.Percentiles`
HUB_PREFIX = "hf:"  # before the name of a repository of the Hugging Face hub
DEFAULT = "joint"  # the model taken where none is named
_DISTILLED_LEVELS = 15  # of a packaged model's distilled network


def pretrained_folder() -> Path:
    """Where the packaged models are."""
    return Path(str(files("gazediffusion.network.pretrained")))


def pretrained_models() -> list[str]:
    """Names of the packaged models."""
    return sorted(path.parent.name for path in pretrained_folder().glob("*/config.json"))


def find_model(model: Path | str) -> Path:
    """The folder of a run (a copy of that at a URL), or of a packaged model; `default` is one.

    A model of the Hugging Face hub, `hf:owner/name`, is downloaded.
    """
    if is_remote(model):
        return fetched(model)
    if Path(model).is_dir():
        return Path(model)
    if str(model).startswith(HUB_PREFIX):
        from gazediffusion.network.hub import download

        return download(str(model).removeprefix(HUB_PREFIX))
    names = pretrained_models()
    model = DEFAULT if str(model) == "default" else model
    if str(model) not in names:
        raise GazeError(
            f"there is no run folder and no packaged model {str(model)!r}",
            remedy=suggestion(str(model), names) if names else "train one and name its run folder",
        )
    return pretrained_folder() / str(model)


def load_model(
    model: Path | str, weights: WeightsName = "best", device: torch.device | str = "cpu"
) -> Run:
    """A run folder, or a packaged model by its name."""
    from gazediffusion.network.checkpoint import load_run

    folder = find_model(model)
    if folder.parent != pretrained_folder():
        return load_run(folder, weights, device)
    if weights != "best":
        raise GazeError(f"the packaged model {model} has no {weights} weights")
    return _load(folder, device)


def save_pretrained(run: Run, folder: Path, levels: int) -> None:
    """Write a run's weights, rounded to `levels`, and configuration as a packaged model.

    Its distilled network is written too, with rounded factors.
    """
    from gazediffusion.network.checkpoint import write_config
    from gazediffusion.network.tensors import save_compact

    header = {"epoch": run.epoch, "validation_loss": run.validation_loss}
    save_compact(folder / WEIGHTS, run.network.state_dict(), levels, header)
    sha256 = sha256_of(folder / WEIGHTS)
    write_config(folder, run.config, weights_sha256=sha256)
    if run.distilled is not None:
        run.distilled.save(folder, _DISTILLED_LEVELS)


def _load(folder: Path, device: torch.device | str) -> Run:
    from gazediffusion.network.checkpoint import CONFIG, config_from, run_of
    from gazediffusion.network.tensors import load_compact

    values: dict[str, Any] = read_json(folder / CONFIG)
    path = folder / WEIGHTS
    if sha256_of(path) != values.get("weights_sha256"):
        raise GazeError(
            "the weights are not those of this model", path=path, remedy="install it again"
        )
    tensors, header = load_compact(path)
    return run_of(folder, config_from(values, folder), "best", path, tensors, header, device)


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
        """Length of the longest possible window."""
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


BESIDE = (LOSSES, SCORES)


def copy_run(
    run: Run, folder: Path, weights: str, config: RunConfig, beside: Sequence[str] = BESIDE
) -> None:
    """Write the network to the file `weights`, a configuration, and copies of files beside it."""
    from gazediffusion.network.checkpoint import write_config
    from gazediffusion.network.tensors import save_tensors

    folder.mkdir(parents=True, exist_ok=True)
    for name in beside:
        if (run.path / name).is_file():
            shutil.copyfile(run.path / name, folder / name)
    header = {"epoch": run.epoch, "validation_loss": run.validation_loss}
    save_tensors(folder / weights, run.network.state_dict(), header)
    write_config(folder, config)
