"""Sequence conditions: known samples, fixations and targets, each with its mask.

Gaze is steered by sequences of the window's own length. They are channels (batch, channel, time)
that a network takes beside the noised window, in the order of SEQUENCES:

    known      the window's own channels where its samples are given, and where that is
    fixation   where a fixation is to be, and when
    target     where a target is on the screen, and when

Elsewhere in the package a sequence is NaN where nothing is given. Its channels are zero there, and
so is the mask: zeros are the network that is not steered.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

# The channels of each part: values, then the mask.
SEQUENCES = {
    "known": ("x", "y", "v_x", "v_y", "mask"),
    "fixation": ("x", "y", "mask"),
    "target": ("x", "y", "mask"),
}
N_CHANNELS = sum(len(names) for names in SEQUENCES.values())


@dataclass(frozen=True, eq=False)
class Sequences:
    """What some windows are steered by, NaN where nothing is given; None steers by nothing.

    known: (batch, 4, time), channels of the joint representation. fixation, target: (batch, 2,
    time), positions in its scale.
    """

    known: Tensor | None = None
    fixation: Tensor | None = None
    target: Tensor | None = None

    def to(self, device: torch.device) -> Sequences:
        """The same on another device."""
        every = (getattr(self, part.name) for part in fields(self))
        return Sequences(*(None if one is None else one.to(device) for one in every))

    def channels(self) -> Tensor | None:
        """(batch, N_CHANNELS, time) float32; None if nothing is given."""
        given = [
            tensor for part in fields(self) if (tensor := getattr(self, part.name)) is not None
        ]
        if not given:
            return None
        batch, _, time = given[0].shape
        parts = []
        for name, entries in SEQUENCES.items():
            values = getattr(self, name)
            if values is None:
                parts.append(given[0].new_zeros(batch, len(entries), time))
                continue
            # A sample is given where its position is; a velocity also needs the sample before.
            mask = values[:, :1].isfinite().to(values)
            parts += [values.nan_to_num(0.0), mask]
        return torch.cat(parts, dim=1).float()


def known_channels(channels: Tensor, is_known: Tensor) -> Tensor:
    """Channels (batch, 4, time) of a joint representation, NaN where they do not follow.

    is_known (batch, time): whose samples are given. A velocity follows from a sample and the one
    before; the first of a window is zero by definition.
    """
    before = torch.cat([is_known[:, :1], is_known[:, :-1]], dim=1)
    mask = torch.stack([is_known, is_known, is_known & before, is_known & before], dim=1)
    return channels.masked_fill(~mask, torch.nan)
