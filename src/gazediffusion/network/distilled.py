"""A distilled network beside a model's own: windows in a few evaluations.

DISTILLED holds its low-rank difference from the model's weights, and in the header
the settings of the distillation and its calibration.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gazediffusion.conditioning.conditioning import Conditioning
from gazediffusion.errors import GazeError
from gazediffusion.network.tensors import load_tensors, save_compact, save_tensors, unpacked
from gazediffusion.network.unet import UNet
from gazediffusion.seeds import DeviceDraws, Stream
from gazediffusion.storage import sha256_of

DISTILLED = "distilled.safetensors"
SMALL = 8_000  # weights with fewer elements change freely
ROWS, COLUMNS, CHANGE = ".rows", ".columns", ".change"


class LowRank:
    """The change of a network's weights, and what trains it.

    tensors: by the weight's name, `.rows` (rank, row) and `.columns` (rank, column) of those with a
    low rank, `.change` (element,) of the others. initial: tensors of another network's change, with
    which a weight's change begins where the shapes are the same; elsewhere it begins with none.
    """

    def __init__(
        self,
        network: nn.Module,
        rank: int,
        seed: int,
        initial: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.weights = dict(network.named_parameters())
        self.first = {name: weight.detach().clone() for name, weight in self.weights.items()}
        device = next(network.parameters()).device
        draws = DeviceDraws(torch.device("cpu"), seed, Stream.WEIGHTS, "low rank")
        self.tensors: dict[str, Tensor] = {}
        for name, weight in self.weights.items():
            if weight.numel() < SMALL:
                self.tensors[name + CHANGE] = torch.zeros(weight.numel(), device=device)
                continue
            n_rows, n_columns = weight.flatten(1).shape
            own = min(rank, n_rows, n_columns)
            columns = draws.normal(own, n_columns) / n_columns**0.5
            self.tensors[name + ROWS] = torch.zeros(own, n_rows, device=device)
            self.tensors[name + COLUMNS] = columns.to(device)
        if initial:
            self._begin_with(initial)

    @torch.no_grad()
    def _begin_with(self, initial: Mapping[str, Tensor]) -> None:
        for name in self.weights:
            keys = [name + part for part in (ROWS, COLUMNS, CHANGE) if name + part in self.tensors]
            if all(
                key in initial and initial[key].shape == self.tensors[key].shape for key in keys
            ):
                for key in keys:
                    self.tensors[key].copy_(initial[key])
        self.set_weights()

    @torch.no_grad()
    def pass_gradients(self) -> None:
        """Gradients of the network's weights to the factors."""
        for name, weight in self.weights.items():
            gradient = weight.grad
            assert gradient is not None
            if weight.numel() < SMALL:
                self.tensors[name + CHANGE].grad = gradient.flatten()
                continue
            rows, columns = self.tensors[name + ROWS], self.tensors[name + COLUMNS]
            rows.grad = columns @ gradient.flatten(1).T
            columns.grad = rows @ gradient.flatten(1)

    @torch.no_grad()
    def set_weights(self) -> None:
        """The network's weights by the factors."""
        for name, weight in changed(self.first, self.tensors).items():
            self.weights[name].copy_(weight)


def changed(weights: Mapping[str, Tensor], change: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights with a change (`LowRank.tensors`) added."""
    result = {}
    for name, weight in weights.items():
        if name + CHANGE in change:
            result[name] = weight + change[name + CHANGE].to(weight).view_as(weight)
        else:
            rows, columns = change[name + ROWS].to(weight), change[name + COLUMNS].to(weight)
            result[name] = weight + (rows.T @ columns).view_as(weight)
    return result


def calibration_of(conditioning: Conditioning) -> dict[str, Any]:
    """What calibration has changed; `with_calibration` reads it."""
    components = () if conditioning.prior is None else conditioning.prior.components
    targets = conditioning.course.targets
    return {
        "deviation": [[one.deviation.tolist() for one in task] for task in components],
        "gain": {task: list(one.generated_gain) for task, one in targets.items()},
    }


def with_calibration(conditioning: Conditioning, values: Mapping[str, Any]) -> Conditioning:
    """The same conditioning with the calibration of another network."""
    gains, prior = values["gain"], conditioning.prior
    targets = {
        task: replace(one, generated_gain=(gains[task][0], gains[task][1]))
        for task, one in conditioning.course.targets.items()
    }
    if prior is not None:
        tables = zip(prior.components, values["deviation"], strict=True)
        prior = prior.with_components(
            [
                [replace(one, deviation=np.array(table)) for one, table in zip(*both, strict=True)]
                for both in tables
            ]
        )
    return replace(conditioning, prior=prior, course=replace(conditioning.course, targets=targets))


@dataclass(frozen=True, eq=False)
class Distilled:
    """A distilled network and what it is conditioned on.

    change: of the model's weights, low-rank. settings: of the distillation, plain values. sha256:
    of its file.
    """

    network: UNet
    change: Mapping[str, Tensor]
    conditioning: Conditioning
    settings: Mapping[str, Any]
    sha256: str

    @property
    def levels(self) -> tuple[float, ...]:
        """The noise levels that it is trained for, one evaluation each."""
        return tuple(self.settings["settings"]["levels"])

    @property
    def is_calibrated(self) -> bool:
        """Whether it is sampled from by default."""
        return self.conditioning.is_calibrated

    def to(self, device: torch.device | str) -> Distilled:
        """The same with a copy of the network on a device."""
        return replace(self, network=copy.deepcopy(self.network).to(device))

    def save(self, folder: Path, levels: int | None = None) -> None:
        """Write it beside the model; with `levels` its factors are rounded (`compact`)."""
        header = {
            "settings": dict(self.settings),
            "calibration": calibration_of(self.conditioning),
        }
        if levels is None:
            save_tensors(folder / DISTILLED, self.change, header)
        else:
            save_compact(folder / DISTILLED, self.change, levels, header, small=0, medium=0)


def load_distilled(
    folder: Path, network: UNet, conditioning: Conditioning, device: torch.device | str
) -> Distilled | None:
    """The distilled network in a folder, for the model with this network; None without one."""
    path = folder / DISTILLED
    if not path.is_file():
        return None
    tensors, header = load_tensors(path)
    try:
        change = unpacked(tensors, header, path) if "shapes" in header else tensors
        weights = changed(network.state_dict(), change)
        conditioning = with_calibration(conditioning, header["calibration"])
        settings = dict(header["settings"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise GazeError(
            f"the distilled network is not of this model ({error})",
            path=path,
            remedy="remove the file, or distill the model again",
        ) from error
    distilled = copy.deepcopy(network)
    distilled.load_state_dict(weights)
    return Distilled(
        network=distilled.to(device).eval().requires_grad_(False),
        change=change,
        conditioning=conditioning,
        settings=settings,
        sha256=sha256_of(path),
    )
