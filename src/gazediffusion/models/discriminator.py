"""A discriminator of noised windows: a trained denoiser's encoder with new heads.

A denoiser knows gaze at every noise level and under every condition. Each resolution of its encoder
has a head with a logit for every place of a window, and its bottleneck one for the whole window.
(Yin et al. 2024, "Improved distribution matching distillation", have one head.)
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional

from gazediffusion.models.unet import UNet

_N_HIDDEN = 256
_WHOLE = 0.4  # weight of the logit of the whole window; the heads of places share the rest


class Discriminator(nn.Module):
    """Logits of noised windows, positive for recorded ones.

    network: the denoiser whose encoder is copied.
    """

    def __init__(self, network: UNet) -> None:
        super().__init__()
        self.network = copy.deepcopy(network)
        del self.network.up, self.network.decoder, self.network.head
        widths = (*network.config.widths, network.config.widths[-1])
        groups = network.config.groups
        self.heads = nn.ModuleList(
            nn.Sequential(nn.GroupNorm(groups, width), nn.SiLU(), nn.Conv1d(width, 1, 3, padding=1))
            for width in widths
        )
        self.whole = nn.Sequential(
            nn.LayerNorm(2 * widths[-1]),
            nn.Linear(2 * widths[-1], _N_HIDDEN),
            nn.SiLU(),
            nn.Linear(_N_HIDDEN, 1),
        )

    def forward(
        self, x: Tensor, t: Tensor, condition: Tensor | None, sequences: Tensor | None = None
    ) -> list[Tensor]:
        """Logits (batch, place) of each head, from the finest resolution; the last has one place.

        The arguments are those of `UNet`.
        """
        deepest, skips = self.network.encode(x, t, condition, sequences)
        places = [
            head(found)[:, 0] for head, found in zip(self.heads, (*skips, deepest), strict=True)
        ]
        pooled = torch.cat([deepest.mean(dim=-1), deepest.amax(dim=-1)], dim=1)
        return [*places, self.whole(pooled)]


def mean_softplus(logits: list[Tensor], sign: float) -> Tensor:
    """softplus(sign * logit), mean over places and weighted mean over heads, (batch,)."""
    weights = [(1.0 - _WHOLE) / (len(logits) - 1)] * (len(logits) - 1) + [_WHOLE]
    parts = [
        weight * functional.softplus(sign * one.float()).mean(dim=1)
        for weight, one in zip(weights, logits, strict=True)
    ]
    return torch.stack(parts).sum(dim=0)
