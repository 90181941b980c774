"""A run folder: everything a trained model is, in files that are never half-written.

config.json         recipe, seed, data and screen: enough to rebuild the network
best.safetensors    averaged (EMA) weights of the epoch with the lowest validation loss
last.safetensors    averaged weights after the latest saved step
state.safetensors   all that training needs to go on: raw and averaged weights, both moments
metrics.jsonl       one line per epoch; timing.jsonl: the seconds it took
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from gazediffusion.errors import GazeError
from gazediffusion.files import read_bytes, read_safetensors, sha256_of, written_whole
from gazediffusion.geometry import Screen
from gazediffusion.recipes import Recipe
from gazediffusion.representation import Position, Velocity
from gazediffusion.unet import UNet
from gazediffusion.version import __version__
from gazediffusion.windows import Windows

FORMAT = "gazediffusion-run"
WeightsName = Literal["best", "last", "raw"]


@dataclass(frozen=True)
class RunConfig:
    """What a run was trained with and on.

    data: hash, counts and tasks of the windows file; no participant is named.
    """

    recipe: Recipe
    seed: int
    length: int
    rate_hz: float
    screen: Screen
    velocity_scale: float | None
    grid_px: float | None
    precision: str
    device: str
    data: Mapping[str, Any]
    gazediffusion_version: str = __version__
    torch_version: str = torch.__version__

    @classmethod
    def of(
        cls, windows: Windows, recipe: Recipe, seed: int, precision: str, device: str
    ) -> RunConfig:
        """The configuration of training `recipe` on `windows`."""
        train, held_out = windows.train, windows.held_out
        return cls(
            recipe=recipe,
            seed=seed,
            length=windows.length,
            rate_hz=windows.rate_hz,
            screen=windows.screen,
            velocity_scale=windows.velocity_scale,
            grid_px=windows.grid_px,
            precision=precision,
            device=device,
            data={
                "sha256": windows.provenance.get("data_sha256"),
                "tasks": list(windows.tasks),
                "n_participants": len(windows.participants),
                "n_held_out_participants": len(windows.validation),
                "n_windows": len(train),
                "n_held_out_windows": len(held_out),
                "sources": [
                    source["name"] for source in windows.provenance.get("sources", [])[:20]
                ],
            },
        )

    @property
    def representation(self) -> Position | Velocity:
        """How network tensors and gaze belong together."""
        if self.recipe.representation == "position":
            return Position()
        if self.velocity_scale is None:
            raise GazeError("the run does not know its velocity scale")
        return Velocity(self.velocity_scale, self.rate_hz)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "format": FORMAT,
            **{key: value for key, value in vars(self).items() if key not in ("recipe", "screen")},
            "data": dict(self.data),
            "recipe": self.recipe.to_json(),
            "screen": asdict(self.screen),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RunConfig:
        """Read what `to_json` wrote."""
        plain = {key: value for key, value in values.items() if key != "format"}
        plain["recipe"] = Recipe.from_json(plain["recipe"])
        plain["screen"] = Screen(**plain["screen"])
        return cls(**plain)


@dataclass(frozen=True)
class Run:
    """A run folder opened for generating: its configuration and one set of weights."""

    path: Path
    config: RunConfig
    network: UNet
    weights: WeightsName
    weights_sha256: str
    epoch: int
    validation_loss: float | None


def read_config(folder: Path) -> RunConfig:
    """The configuration of a run folder."""
    path = Path(folder) / "config.json"
    if not Path(folder).is_dir() or not path.is_file():
        raise GazeError(
            "this is no run folder", path=folder, remedy="make one with gazediffusion train"
        )
    try:
        values = json.loads(read_bytes(path))
        if values.get("format") != FORMAT:
            raise GazeError("this is no configuration of a gazediffusion run", path=path)
        return RunConfig.from_json(values)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise GazeError(f"the configuration is damaged ({error})", path=path) from error


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics.jsonl, one per epoch done."""
    path = Path(folder) / "metrics.jsonl"
    try:
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    except ValueError as error:
        raise GazeError(f"the metrics are damaged ({error})", path=path) from error


def save_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
    """Write tensors with a JSON header as one safetensors file, whole; same input, same bytes."""
    from safetensors.torch import save

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    packed = save(plain, metadata={"gazediffusion": json.dumps(dict(header))})
    with written_whole(path) as temporary:
        temporary.write_bytes(packed)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and header of a file `save_tensors` wrote; anything else is refused."""
    if not path.is_file():
        raise GazeError("there is no such checkpoint", path=path)
    tensors, header = read_safetensors(path, "pt", "the checkpoint is damaged or cut short")
    if not isinstance(header, dict):
        raise GazeError("this checkpoint is not one of gazediffusion", path=path)
    return tensors, header


def load_run(
    folder: Path | str, weights: WeightsName = "best", device: torch.device | str = "cpu"
) -> Run:
    """Open a run folder: the network with the best, last or raw (not averaged) weights."""
    folder = Path(folder)
    config = read_config(folder)
    path = folder / ("state.safetensors" if weights == "raw" else f"{weights}.safetensors")
    if not path.is_file():
        raise GazeError(
            f"the run has no {weights} weights yet", path=folder, remedy="train it further"
        )
    tensors, header = load_tensors(path)
    if weights == "raw":
        tensors = with_prefix(tensors, "net.")
    network = UNet(config.recipe.network)
    load_weights(network, tensors, path)
    return Run(
        path=folder,
        config=config,
        network=network.to(device).eval().requires_grad_(False),
        weights=weights,
        weights_sha256=sha256_of(path),
        epoch=int(header.get("epoch", 0)),
        validation_loss=header.get("validation_loss"),
    )


def load_weights(network: UNet, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Put tensors into a network; names and shapes must be the network's own."""
    own = network.state_dict()
    foreign = sorted(set(tensors) ^ set(own))
    if foreign:
        raise GazeError(f"the weights are of another network ({foreign[0]})", path=path)
    for name, tensor in tensors.items():
        if tensor.shape != own[name].shape:
            raise GazeError(f"the weights are of another network ({name})", path=path)
    network.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})


def with_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, without it."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
