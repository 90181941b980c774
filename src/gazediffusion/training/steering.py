"""Steering in training: windows with known samples, fixations, targets and labels.

The recordings themselves say where fixations, targets and labels are; masking.py draws which of
them a window is given. Errors count where nothing is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from gazediffusion.conditioning.sequences import Sequences, known_channels
from gazediffusion.data.fixations import fixation_positions
from gazediffusion.data.recordings import EVENT_CLASSES
from gazediffusion.data.windows import Windows
from gazediffusion.models.representations import JOINT_STD, Joint
from gazediffusion.training.masking import Uniform, given_fixations, given_targets, known_samples

LABEL_SHARE = 0.5  # of windows with labels are given the channels of labels


class Steered(NamedTuple):
    """Windows with channels of labels, their noise, sequences, and where errors count.

    x0, eps, counts: (batch, channels, time). sequences: (batch, channel, time). is_steered: (batch,
    1) bool.
    """

    x0: Tensor
    eps: Tensor
    sequences: Tensor
    counts: Tensor
    is_steered: Tensor


class Steering:
    """Fixations, targets and labels of all samples, on the device."""

    def __init__(self, parts: Sequence[Windows], representation: Joint, device: torch.device):
        self.representation = representation
        fixations = [fixation_positions(part) for part in parts]
        targets = [_or_nan(part.targets, part) for part in parts]
        labels = [
            np.zeros(part.gaze.shape[1], np.uint8) if part.labels is None else part.labels
            for part in parts
        ]
        self.fixation, self.target = (
            representation.encode_position(torch.from_numpy(np.concatenate(one, axis=1)).to(device))
            for one in (fixations, targets)
        )
        self.labels = torch.from_numpy(np.concatenate(labels)).to(device)

    def steer(
        self, x0: Tensor, eps: Tensor, index: Tensor, flips: Tensor, draw: Uniform
    ) -> Steered:
        """Draw what windows are given, by draw(shape).

        x0 (batch, 4, time): channels of the gaze; eps (batch, channels, time). index (batch, time):
        samples of the windows. flips (batch, 2) bool: axes that are flipped.
        """
        rate_hz = self.representation.rate_hz
        batch, length = index.shape
        classes = self.labels[index].long()
        is_labelled = (classes > 0) & (draw((batch, 1)) < LABEL_SHARE)
        known = known_samples(batch, length, rate_hz, draw)
        # Where nothing would be left to generate, nothing is given.
        known &= ~(known.all(dim=1) & ~is_labelled.any(dim=1))[:, None]
        sign = torch.where(flips, -1.0, 1.0)[..., None]
        fixation, target = (
            one[:, index].transpose(0, 1) * sign for one in (self.fixation, self.target)
        )
        sequences = Sequences(
            known_channels(x0, known),
            given_fixations(fixation, rate_hz, draw),
            given_targets(target, draw),
        )
        given = sequences.channels()
        assert given is not None
        assert sequences.known is not None
        labels = is_labelled[:, None].expand(-1, len(EVENT_CLASSES), -1)
        counts = torch.cat([sequences.known.isnan(), labels], dim=1).float()
        n_gaze = x0.shape[1]
        eps = torch.cat([eps[:, :n_gaze], eps[:, n_gaze:] * labels], dim=1)
        x0 = torch.cat([x0, encode_labels(classes * is_labelled)], dim=1)
        return Steered(x0, eps, given, counts, given.ne(0).flatten(1).any(dim=1, keepdim=True))


def encode_labels(classes: Tensor) -> Tensor:
    """Event classes (batch, time) as channels (batch, class, time) of about unit scale.

    The channel of a sample's class is JOINT_STD, the others are -JOINT_STD. All are 0 where there
    is no label.
    """
    one_hot = functional.one_hot(classes, 1 + len(EVENT_CLASSES))[..., 1:].transpose(1, 2)
    return (2.0 * one_hot - 1.0) * JOINT_STD * (classes > 0)[:, None]


def _or_nan(targets: NDArray[np.float32] | None, part: Windows) -> NDArray[np.float32]:
    return np.full_like(part.gaze, np.nan) if targets is None else targets
