"""A distilled network beside a model's own: windows in a few evaluations.

DISTILLED holds its low-rank difference from the model's weights (low_rank.py), and in the header
the settings of the distillation and its calibration.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gazediffusion.conditioning import Conditioning
from gazediffusion.conditioning.calibration import calibration_of, with_calibration
from gazediffusion.errors import GazeError
from gazediffusion.models.compact import save_compact, unpacked
from gazediffusion.models.low_rank import changed
from gazediffusion.models.tensors import load_tensors, save_tensors
from gazediffusion.models.unet import UNet
from gazediffusion.storage import sha256_of

DISTILLED = "distilled.safetensors"


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
