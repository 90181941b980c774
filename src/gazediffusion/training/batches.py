"""Batches: the input of each training step, a function of (seed, step) alone.

All segments lie on the device once; a batch is gathered from them, dequantized, flipped and
reversed as the recipe says, encoded and given its noise and condition. Nothing is carried from one
step to the next, so a resumed run sees what an uninterrupted one would have seen. A batch of a
steerable recipe ends with where errors count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from gazediffusion.conditioning import Condition
from gazediffusion.conditioning.conditioning import AUGMENTATIONS, Sequences, known_channels
from gazediffusion.data.events import fixation_positions
from gazediffusion.data.recordings import EVENT_CLASSES
from gazediffusion.data.windows import CLIP, Windows
from gazediffusion.network.checkpoint import RunConfig
from gazediffusion.network.representations import JOINT_STD, Joint
from gazediffusion.seeds import DeviceDraws, Stream

Uniform = Callable[..., Tensor]
# Clean windows, noise levels, noise, the tensors of the condition, and where errors count.
Batch = tuple[Tensor, ...]
_VALIDATION_BATCH, _CHUNK = 64, 512
# Share of windows whose samples are given ... and what is given of them.
SHARES = {
    "nothing": 0.40,
    "prefix": 0.17,
    "suffix": 0.05,
    "ends": 0.08,
    "gaps": 0.22,
    "everything": 0.08,  # of interest where labels are generated
}
FIXATION_SHARE = 0.35  # of windows are given fixations
FIXATIONS_WHOLE = 0.6  # of these are given all of them, for as long as they last
TARGET_SHARE = 0.7  # of windows with a target are given it
LABEL_SHARE = 0.5  # of windows with labels are given the channels of labels
_SHORTEST_S, _LONGEST_S = 0.03, 1.6  # of a gap
_N_GAPS = 8
_END = (0.025, 0.475)  # length of a prefix or suffix, as a share of the window
_BLOCK_S = 0.2  # within which a partly given fixation is given or not


def known_samples(batch: int, length: int, rate_hz: float, uniform: Uniform) -> Tensor:
    """Which samples are given, (batch, length) bool."""
    edges = torch.tensor(list(SHARES.values())).cumsum(0)
    draw = uniform(batch, 1)
    kind = torch.bucketize(draw, edges.to(draw)[:-1])
    sizes = uniform(batch, 2) * (_END[1] - _END[0]) + _END[0]
    place = torch.arange(length, device=draw.device)[None] / length
    is_prefix = place < sizes[:, :1]
    is_suffix = place >= 1 - sizes[:, 1:]
    masks = (
        torch.zeros_like(is_prefix),
        is_prefix,
        is_suffix,
        is_prefix | is_suffix,
        ~gaps(batch, length, rate_hz, uniform),
        torch.ones_like(is_prefix),
    )
    result = masks[0]
    for number, mask in enumerate(masks):
        result = torch.where(kind == number, mask, result)
    return result


def gaps(batch: int, length: int, rate_hz: float, uniform: Uniform) -> Tensor:
    """Gaps of log-uniform length at random places, (batch, length) bool."""
    draws = uniform(batch, _N_GAPS, 3)
    size = _SHORTEST_S * (_LONGEST_S / _SHORTEST_S) ** draws[..., 0]
    centre = draws[..., 1] * (length / rate_hz)
    # Some windows have few gaps, and the first is always there.
    is_there = draws[..., 2] < draws[:, :1, 2]
    is_there[:, 0] = True
    time = torch.arange(length, device=draws.device) / rate_hz
    inside = (time - centre[..., None]).abs() * 2 < size[..., None]
    return (inside & is_there[..., None]).any(dim=1)


def given_fixations(fixation: Tensor, rate_hz: float, uniform: Uniform) -> Tensor:
    """Fixation positions (batch, 2, time) with what is not given as NaN.

    All fixations, or those samples of them that fall into random blocks of time, or none.
    """
    batch, _, length = fixation.shape
    draws = uniform(batch, 3, 1)
    block = max(1, round(_BLOCK_S * rate_hz))
    n_blocks = -(-length // block)
    chosen = (uniform(batch, n_blocks) < draws[:, 2]).repeat_interleave(block, dim=1)[:, :length]
    is_given = (draws[:, 0] < FIXATION_SHARE) & (chosen | (draws[:, 1] < FIXATIONS_WHOLE))
    return fixation.masked_fill(~is_given[:, None], torch.nan)


def given_targets(target: Tensor, uniform: Uniform) -> Tensor:
    """Target positions (batch, 2, time) with those of windows that are not given as NaN."""
    is_given = uniform(len(target), 1, 1) < TARGET_SHARE
    return target.masked_fill(~is_given, torch.nan)


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
        is_labelled = (classes > 0) & (draw(batch, 1) < LABEL_SHARE)
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


class Batches:
    """Training batches on the device, each a function of (seed, step) alone."""

    def __init__(
        self, parts: Sequence[Windows], config: RunConfig, seed: int, device: torch.device
    ) -> None:
        recipe = config.recipe
        self.recipe, self.seed, self.device = recipe, seed, device
        self.representation, self.process = config.representation, recipe.noise()
        self.conditioning = config.conditioning
        self.gaze = torch.from_numpy(np.concatenate([p.gaze for p in parts], axis=1)).to(device)
        begins = np.cumsum([0, *(part.gaze.shape[1] for part in parts)])
        starts = [part.starts + begin for part, begin in zip(parts, begins, strict=False)]
        self.starts = torch.from_numpy(np.concatenate(starts)).to(device)
        grids = [part.grid_of_window for part in parts]
        self.grid = torch.from_numpy(np.concatenate(grids)).to(device)
        self.task = torch.from_numpy(self.conditioning.task_numbers(parts)).to(device)
        elapsed_s = np.concatenate([part.elapsed_s for part in parts])
        self.elapsed_s = torch.from_numpy(elapsed_s).float().to(device)
        self.offsets = torch.arange(config.length, device=device)
        self.batch_size = min(recipe.batch_size, len(self.starts))
        # Whole batches only, so that every step has one shape; the order is new at each epoch.
        self.per_epoch = len(self.starts) // self.batch_size
        self._order = torch.empty(0, dtype=torch.long)
        self._order_epoch = -1
        self._statistics = self._measured(config.rate_hz)
        self._steering = None
        if recipe.is_steerable and isinstance(self.representation, Joint):
            self._steering = Steering(parts, self.representation, device)

    def clean(self, indices: Tensor) -> Tensor:
        """Windows (batch, 2, time) of normalized gaze, as recorded."""
        return self.gaze[:, self._samples(indices)].transpose(0, 1)

    def _samples(self, indices: Tensor) -> Tensor:
        """Where the samples of windows lie in `gaze`, (batch, time)."""
        return self.starts[indices, None] + self.offsets

    def at(self, step: int) -> Batch:
        """x0 (batch, channels, time), levels (batch,), eps and the condition of step `step`."""
        epoch, place = divmod(step, self.per_epoch)
        if epoch != self._order_epoch:
            self._order = self._draws(Stream.ORDER, epoch).permutation(len(self.starts))
            self._order_epoch = epoch
        indices = self._order[place * self.batch_size : (place + 1) * self.batch_size]
        draws = self._draws(Stream.TRAINING_STEP, step)
        clean = self._dequantized(self.clean(indices), indices, draws)
        gaze, augmentation = self._augmented(clean, draws)
        x0 = self.representation.encode(gaze)
        level = self.process.draw(len(x0), draws)
        eps = draws.normal(len(x0), self.recipe.network.channels, x0.shape[-1])
        given = (self.task[indices], self._statistics_of(indices), augmentation)
        dropout = self.recipe.condition_dropout
        if self._steering is None:
            condition = self.conditioning.of_training_windows(*given, dropout, draws.uniform)
            return x0, level, eps, *condition
        flips = augmentation[:, :2]
        steered = self._steering.steer(x0, eps, self._samples(indices), flips, draws.uniform)
        condition = self.conditioning.of_training_windows(
            *given, dropout, draws.uniform, steered.is_steered, self.elapsed_s[indices]
        )
        return steered.x0, level, steered.eps, *condition, steered.sequences, steered.counts

    def validation(self, indices: Tensor, level: Tensor, eps: Tensor) -> Batch:
        """Windows as they were recorded, without augmentation or dropout, with this noise.

        What a steerable recipe's windows are given is drawn anew, always the same for one first
        window.
        """
        x0, condition = self.representation.encode(self.clean(indices)), self.condition(indices)
        if self._steering is None:
            return x0, level, eps, *condition
        draws = self._draws(Stream.MASKS, int(indices[0]))
        flips = torch.zeros((len(x0), 2), dtype=torch.bool, device=self.device)
        steered = self._steering.steer(x0, eps, self._samples(indices), flips, draws.uniform)
        return steered.x0, level, steered.eps, *condition, steered.sequences, steered.counts

    def condition(self, indices: Tensor) -> Condition:
        """The condition of windows as they were recorded, without augmentation or dropout."""
        return self.conditioning.of_windows(
            self.task[indices], self._statistics_of(indices), self.elapsed_s[indices]
        )

    def _statistics_of(self, indices: Tensor) -> Tensor | None:
        return None if self._statistics is None else self._statistics[indices]

    def _measured(self, rate_hz: float) -> Tensor | None:
        """Statistics (window, statistic), measured once: dequantization hardly changes them."""
        if self.conditioning.prior is None:
            return None
        draws = self._draws(Stream.STATISTICS)
        chunks = torch.split(torch.arange(len(self.starts), device=self.device), _CHUNK)
        measured = [
            self.conditioning.measure(self._dequantized(self.clean(some), some, draws), rate_hz)
            for some in chunks
        ]
        return torch.cat([one for one in measured if one is not None])

    def _draws(self, stream: Stream, *place: int) -> DeviceDraws:
        return DeviceDraws(self.device, self.seed, stream, *place)

    def _dequantized(self, gaze: Tensor, indices: Tensor, draws: DeviceDraws) -> Tensor:
        """Gaze dequantized: uniform over the cells of the tracker's grid, anew at every step."""
        offset = draws.uniform(*gaze.shape) - 0.5
        return (gaze + offset * self.grid[indices]).clamp(-CLIP, CLIP)

    def _augmented(self, gaze: Tensor, draws: DeviceDraws) -> tuple[Tensor, Tensor]:
        """Axes flipped and time reversed with the recipe's probabilities; labels (batch, 3)."""
        batch = len(gaze)
        labels = torch.zeros((batch, len(AUGMENTATIONS)), dtype=torch.bool, device=self.device)
        if self.recipe.flip > 0:
            flips = draws.uniform(batch, 2, 1) < self.recipe.flip
            gaze = torch.where(flips, -gaze, gaze)
            labels[:, :2] = flips[..., 0]
        if self.recipe.reversal > 0:
            reversals = draws.uniform(batch, 1, 1) < self.recipe.reversal
            gaze = torch.where(reversals, gaze.flip(-1), gaze)
            labels[:, 2:] = reversals[..., 0]
        return gaze, labels


def fixed_validation(
    parts: Sequence[Windows], config: RunConfig, device: torch.device
) -> list[Batch]:
    """The held-out windows with noise that is the same at every epoch and in every run.

    Noise levels are stratified rather than drawn, which lowers the variance of the loss.
    """
    n = sum(len(part) for part in parts)
    if n == 0:
        return []
    smooth = [part.dequantized(seed=0) for part in parts]
    batches = Batches(smooth, config, seed=0, device=device)
    host = torch.device("cpu")
    order = DeviceDraws(host, 0, Stream.VALIDATION, "levels").permutation(n)
    level = config.recipe.noise().stratified(n)[order].to(device)
    result: list[Batch] = []
    for first in range(0, n, _VALIDATION_BATCH):
        indices = torch.arange(first, min(first + _VALIDATION_BATCH, n), device=device)
        shape = (len(indices), config.recipe.network.channels, config.length)
        eps = DeviceDraws(host, 0, Stream.VALIDATION, first).normal(*shape).to(device)
        result.append(batches.validation(indices, level[indices], eps))
    return result


def some_held_out(windows: Windows, n: int) -> Windows:
    """At most n held-out windows, evenly spaced, dequantized; of all where none is held out."""
    chosen = windows.held_out if len(windows.held_out) else windows
    return chosen.dequantized(seed=0).subsample(n)
