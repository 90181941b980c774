"""Labelling: the event class of every sample, by the channels of labels of a network.

A network with channels of labels was trained to denoise them beside gaze that it is given in full.
At the highest noise level its estimate of them is their mean given the gaze alone, and thus the
probability of each class (`edm`: D estimates E[x_0 | x]). So labelling takes one evaluation, and a
second one of the mirrored gaze. Labels are the most probable sequence of classes, with a price on
every change of class (Viterbi 1967), so that no label flickers for a sample.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from gazediffusion.conditioning import Condition
from gazediffusion.conditioning.conditioning import Sequences
from gazediffusion.data.recordings import EVENT_CLASSES
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.generation.long_gaze import window_starts
from gazediffusion.network.checkpoint import Run
from gazediffusion.network.representations import JOINT_STD, Joint
from gazediffusion.network.unet import UNet
from gazediffusion.screen import Floats, Screen

if TYPE_CHECKING:
    from gazediffusion.generation.sampler import Sampler

Labels = NDArray[np.uint8]
Progress = Callable[[float], None]
# A change of class costs as much as e^3 times the probability; chosen by event F1 on GazeCom's
# training participants among 1, 2, 3 and 4.
CHANGE_COST = 3.0
NOISE = EVENT_CLASSES.index("noise") + 1
_LEAST = 1e-3  # probability of any class at any sample
_MIRRORED = ((False, False), (True, True))  # axes
_MOVED_DEG = 1.0  # by the lid beside a loss: no longer what the eye did


@dataclass(frozen=True)
class Labeller:
    """A trained run with channels of labels; any other is refused.

    batch_size: windows at a time. bf16: bfloat16 arithmetic. Both change speed, not the method.
    """

    run: Run
    batch_size: int = 16
    bf16: bool = False

    def __post_init__(self) -> None:
        if not can_label(self.run):
            raise GazeError(
                "this model has no labels",
                remedy="take the default model, or train one with `recipe` steerable on windows "
                "with labels",
            )

    @classmethod
    def of_generated(cls, made: Sampler) -> Labeller:
        """What labels the gaze of a sampler."""
        return cls(made.run, made.batch_size, made.bf16)

    def describe(self) -> dict[str, Any]:
        """What a card says of the labels."""
        return {
            "classes": list(EVENT_CLASSES),
            "by": "the model's, given the gaze; not by hand",
            "weights_sha256": self.run.weights_sha256,
            "method": "most probable sequence",
            "change_cost": CHANGE_COST,
        }

    def labels(self, gaze: Floats, progress: Progress = lambda done: None) -> Labels:
        """Event classes (window, time) of normalized gaze (window, 2, time) at the model's rate.

        Gaze is of any length, on the model's screen, NaN where the eye is lost; lost samples are
        noise.
        """
        found = most_probable_sequence(self.probabilities(gaze, progress)) + np.uint8(1)
        found[np.isnan(gaze).any(axis=1)] = NOISE
        return found

    def n_windows(self, n_samples: int) -> int:
        """Windows of the model's length that gaze of this many samples is labelled in."""
        config = self.run.config
        return len(window_starts(n_samples, config.length, config.rate_hz))

    def probabilities(self, gaze: Floats, progress: Progress = lambda done: None) -> Floats:
        """Probability (window, class, time) of each class given all gaze within 8 s.

        Long gaze is labelled in overlapping windows; where two overlap, the one weighs more whose
        border is further away. progress: called with the number of windows done.
        """
        config = self.run.config
        n, _, n_samples = gaze.shape
        length = config.length
        total = np.zeros((n, len(EVENT_CLASSES), n_samples), dtype=np.float32)
        weights = np.zeros(n_samples, dtype=np.float32)
        place = np.arange(length, dtype=np.float32)
        weight = (np.minimum(place, place[::-1]) + 1)[:n_samples]
        starts = window_starts(n_samples, length, config.rate_hz)
        for start in starts:
            weights[start : start + length] += weight
        padding = ((0, 0), (0, 0), (0, max(length - n_samples, 0)))
        padded = np.pad(gaze, padding, constant_values=np.nan)
        parts = [(k, start) for k in range(n) for start in starts]
        for first in range(0, len(parts), self.batch_size):
            batch = parts[first : first + self.batch_size]
            found = self._window(np.stack([padded[k, :, at : at + length] for k, at in batch]))
            for (k, at), one in zip(batch, found, strict=True):
                total[k, :, at : at + length] += one[:, : len(weight)] * weight
            progress(first + len(batch))
        return total / weights

    @cached_property
    def _network(self) -> UNet:
        network = self.run.network
        return copy.deepcopy(network).bfloat16() if self.bf16 else network

    @torch.inference_mode()
    def _window(self, gaze: Floats) -> Floats:
        """Probabilities (window, class, time) of gaze (window, 2, time) of the model's length."""
        config = self.run.config
        process, representation = config.recipe.edm, config.representation
        assert isinstance(representation, Joint)
        device = next(self.run.network.parameters()).device
        given = torch.from_numpy(np.ascontiguousarray(gaze, dtype=np.float32)).to(device)
        is_lost = given.isnan().any(dim=1, keepdim=True)
        given = given.masked_fill(is_lost, torch.nan)
        n_gaze = config.recipe.gaze_channels
        # The mean of the noise: what is given says all, and labels do not depend on a seed.
        x = given.new_zeros(len(given), config.recipe.network.channels, given.shape[2])
        level = given.new_full((len(given),), process.sigma_max)
        mirrored = _MIRRORED if config.recipe.flip > 0 else _MIRRORED[:1]
        total = torch.zeros_like(x[:, n_gaze:])
        for axes in mirrored:
            sign = given.new_tensor([-1.0 if is_flipped else 1.0 for is_flipped in axes])[:, None]
            known = Sequences(known=representation.encode(given * sign))
            channels = known.channels()
            assert channels is not None
            condition = (part.to(device) for part in self._condition(len(given), axes))
            clean = process.denoise(self._network, x, level, *condition, channels)
            total += clean[:, n_gaze:].float() / JOINT_STD
        probabilities: Floats = ((total / len(mirrored) + 1) / 2).clamp(_LEAST, 1).cpu().numpy()
        return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))

    def _condition(self, n: int, is_flipped: tuple[bool, bool]) -> Condition:
        """Mirrored or not; no task, statistics or elapsed time, for the gaze itself is given."""
        conditioning = self.run.config.conditioning
        augmentation = torch.zeros(n, len(conditioning.augmentations))
        augmentation[:, :2] = torch.tensor(is_flipped).float()[: augmentation.shape[1]]
        return conditioning.encode(torch.zeros(n, len(conditioning.tasks)), augmentation)


def most_probable_sequence(probabilities: Floats, cost: float = CHANGE_COST) -> Labels:
    """The classes (window, time), from 0 on, of largest log probability less `cost` per change.

    probabilities: (window, class, time), positive.

    >>> p = np.array([[[0.9, 0.9, 0.3, 0.9, 0.9, 0.1, 0.1, 0.1]]])
    >>> most_probable_sequence(np.concatenate([p, 1 - p], axis=1)).tolist()
    [[0, 0, 0, 0, 0, 1, 1, 1]]
    """
    # Time first, so that every step reads what lies together.
    gain = np.log(probabilities.astype(np.float64)).transpose(2, 0, 1)
    n_samples, n, n_classes = gain.shape
    before = np.empty((n_samples, n, n_classes), dtype=np.uint8)
    own = np.arange(n_classes, dtype=np.uint8)
    rows = np.arange(n)
    score = gain[0]
    for time in range(1, n_samples):
        best = score.argmax(axis=1)
        changed = (score[rows, best] - cost)[:, None]
        before[time] = np.where(score >= changed, own, best[:, None])
        score = np.maximum(score, changed) + gain[time]
    found = np.empty((n_samples, n), dtype=np.uint8)
    found[-1] = score.argmax(axis=1)
    for time in range(n_samples - 1, 0, -1):
        found[time - 1] = before[time, rows, found[time]]
    return np.ascontiguousarray(found.T)


def can_label(run: Run) -> bool:
    """Whether a run has channels of labels and is given gaze."""
    return run.config.recipe.has_labels and bool(run.config.conditioning.sequences)


def with_lost_labels(windows: Windows, before: Windows) -> Windows:
    """Labels of windows to which losses were added: noise where the eye is lost.

    before: the same without losses. Samples that the lid moves by a degree or more are noise too.
    """
    labels = windows.cut_labels()
    moved = windows.on_screens(windows.to_numpy("px"), Screen.degrees_if_known)
    moved = moved - before.on_screens(before.to_numpy("px"), Screen.degrees_if_known)
    is_moved = np.hypot(moved[:, 0], moved[:, 1]) >= _MOVED_DEG
    labels[windows.is_lost | is_moved] = NOISE
    assert windows.labels is not None
    flat = windows.labels.copy()
    flat[(windows.starts[:, None] + np.arange(windows.length)).ravel()] = labels.ravel()
    return replace(windows, labels=flat)
