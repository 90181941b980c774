"""Labelling: the event class of every sample, by the channels of labels of a network.

A network with channels of labels was trained to denoise them beside gaze that it is given in full.
At the highest noise level its estimate of them is their mean given the gaze alone, and thus the
probability of each class (`edm`: D estimates E[x_0 | x]). So labelling takes one evaluation, and a
second one of the mirrored gaze. Labels are the most probable sequence of classes, with a price on
every change of class (Viterbi 1967), so that no label flickers for a sample.

A recording is cleaned and brought to the rate and the screen of the model, and each of its samples
takes the class of the nearest one there. What cleaning takes for lost is noise.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from gazediffusion.conditioning import Condition
from gazediffusion.conditioning.conditioning import Sequences
from gazediffusion.data.recordings import EVENT_CLASSES, Recording
from gazediffusion.data.resampling import read_clock
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.generation.filling import (
    FEWEST_SAMPLES,
    Gaps,
    gaps_of,
    model_screen,
    on_model_grid,
    require_screen,
)
from gazediffusion.generation.long_gaze import window_starts
from gazediffusion.generation.scheduling import Progress
from gazediffusion.network.checkpoint import Run
from gazediffusion.network.representations import JOINT_STD, Joint
from gazediffusion.network.unet import UNet
from gazediffusion.screen import Floats, Screen
from gazediffusion.settings import CleaningConfig

if TYPE_CHECKING:
    from gazediffusion.generation.sampler import Sampler

Labels = NDArray[np.uint8]
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


@dataclass(frozen=True)
class RecordingLabeller:
    """Labels recordings of any screen and of rates from 100 Hz on."""

    labeller: Labeller
    cleaning: CleaningConfig | None = None

    def labelled(self, recording: Recording, progress: Progress = lambda done: None) -> Recording:
        """The recording with labels of all samples; labels that it has are replaced."""
        return with_labels(recording, self.labels(self.gaps(recording), progress))

    def gaps(self, recording: Recording) -> Gaps:
        """What of a recording is valid; one without a screen or below 100 Hz is refused."""
        return gaps_of(recording, self.cleaning, max_gap_s=0.0)

    def is_in_degrees(self, recording: Recording) -> bool:
        """Whether sizes on the recording's screen are those on the model's in degrees."""
        return require_screen(recording).is_comparable_with(self._screen(recording))

    def n_windows(self, gaps: Gaps) -> int:
        """Windows that a recording is labelled in."""
        if gaps.clock is None or not gaps.counts.valid:
            return 0
        time_ms, rate_hz = gaps.cleaned.time_ms, self.labeller.run.config.rate_hz
        n_samples = int((time_ms[-1] - time_ms[0]) * rate_hz / 1000 + 0.1) + 1
        return self.labeller.n_windows(n_samples)

    def labels(self, gaps: Gaps, progress: Progress = lambda done: None) -> Labels:
        """The event class of each sample of a recording, (time,)."""
        recording, cleaned = gaps.recording, gaps.cleaned
        labels = np.full(len(recording), NOISE, dtype=np.uint8)
        if not self.n_windows(gaps):
            return labels
        rate_hz = self.labeller.run.config.rate_hz
        gaze = on_model_grid(gaps, rate_hz, self._screen(recording))
        found = self.labeller.labels(gaze[None], progress)[0]
        place = (recording.time_ms - cleaned.time_ms[0]) * (rate_hz / 1000)
        nearest = np.clip(np.rint(place).astype(np.int64), 0, len(found) - 1)
        # Repeated times were taken out by cleaning.
        own = np.searchsorted(cleaned.time_ms, recording.time_ms, side="right") - 1
        return np.where(cleaned.is_valid[own], found[nearest], labels)

    def _screen(self, recording: Recording) -> Screen:
        """The model's screen of the recording's task, where it has that task."""
        config = self.labeller.run.config
        is_known = recording.task in config.conditioning.tasks
        return model_screen(config, recording.task if is_known else None)


def with_labels(recording: Recording, labels: Labels) -> Recording:
    """The recording with labels, and with the rate of its clock where it states none."""
    rate_hz = recording.rate_hz
    if rate_hz is None and len(recording) >= FEWEST_SAMPLES:
        rate_hz = read_clock(recording.time_ms).rate_hz
    return replace(recording, labels=labels, rate_hz=rate_hz)
