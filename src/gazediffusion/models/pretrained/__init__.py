"""The packaged models: compact weights and the configuration to rebuild the network.

NAME/config.json holds what a run folder's does, and the SHA-256 of the weights beside it, which is
checked on loading. `save_pretrained` writes a run folder there.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gazediffusion.errors import GazeError, suggestion
from gazediffusion.storage import fetched, is_remote, read_json, sha256_of

if TYPE_CHECKING:
    import torch

    from gazediffusion.models.checkpoint import Run, WeightsName

WEIGHTS = "weights.safetensors"
LOSSES = "losses.json"  # in the folder of a model: `generation.losses.LossModel`
SCORES = "scores.json"  # in the folder of a model: `scoring.calibration.Calibration`
HUB_PREFIX = "hf:"  # before the name of a repository of the Hugging Face hub
DEFAULT = "joint"  # the model taken where none is named
_DISTILLED_LEVELS = 15  # of a packaged model's distilled network


def pretrained_folder() -> Path:
    """Where the packaged models are."""
    return Path(str(files("gazediffusion.models.pretrained")))


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
        from gazediffusion.models.hub import download

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
    from gazediffusion.models.checkpoint import load_run

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
    from gazediffusion.models.checkpoint import write_config
    from gazediffusion.models.compact import save_compact

    header = {"epoch": run.epoch, "validation_loss": run.validation_loss}
    save_compact(folder / WEIGHTS, run.network.state_dict(), levels, header)
    sha256 = sha256_of(folder / WEIGHTS)
    write_config(folder, run.config, weights_sha256=sha256)
    if run.distilled is not None:
        run.distilled.save(folder, _DISTILLED_LEVELS)


def _load(folder: Path, device: torch.device | str) -> Run:
    from gazediffusion.models.checkpoint import CONFIG, config_from, run_of
    from gazediffusion.models.compact import load_compact

    values: dict[str, Any] = read_json(folder / CONFIG)
    path = folder / WEIGHTS
    if sha256_of(path) != values.get("weights_sha256"):
        raise GazeError(
            "the weights are not those of this model", path=path, remedy="install it again"
        )
    tensors, header = load_compact(path)
    return run_of(folder, config_from(values, folder), "best", path, tensors, header, device)
