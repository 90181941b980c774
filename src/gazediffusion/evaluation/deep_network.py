"""A 1-D residual network that separates two sets of gaze snippets.

Position and asinh velocity in (`representations: Joint`), one logit out, positive for the second
set. Snippets are cut at random places of windows on the device. A few participants have overlapping
windows, which a network soon knows by heart: snippets are mirrored, displaced and shortened at
random. The averaged weights with the lowest loss on windows that are not trained on are kept. The
test itself is deep_test.py.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gazediffusion.device import has_fast_bf16
from gazediffusion.network.representations import JOINT_STD
from gazediffusion.seeds import DeviceDraws, Stream, torch_seeded

N_CHANNELS = 4
# Windows of the first and of the second set, each (window, channel, time).
Pair = tuple[Tensor, Tensor]
# A loss below which two sets are separated in every case.
_SEPARATED = 0.01
# Lengths of snippets that are trained on.
_N_LENGTHS = 9
_ORDER = 4  # of the low-pass filter
_LEARNING_RATE, _WEIGHT_DECAY, _DROPOUT = 2e-3, 0.05, 0.3
# Standard deviation of an offset of the position, in standard deviations of position.
_DISPLACEMENT = 0.5
_SHORTEST = 0.5  # share of a snippet's length that is trained on
# Scored at once; a network of this size fills a GPU with fewer.
_SCORED = 512


@dataclass(frozen=True)
class Fitting:
    """How a network is trained.

    n_check: steps from one check of the loss to the next. patience: checks without a lower loss
    after which training ends. average: decay of the averaged weights.
    """

    widths: tuple[int, ...] = (32, 64, 96, 128)
    n_steps: int = 1000
    batch_size: int = 256
    n_check: int = 50
    patience: int = 30
    average: float = 0.98


class ResidualBlock(nn.Module):
    """Two convolutions beside a shortcut; (batch, n_in, time) to (batch, n_out, time / stride)."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.inner = nn.Sequential(
            nn.Conv1d(n_in, n_out, 5, stride, padding=2, bias=False),
            nn.BatchNorm1d(n_out),
            nn.SiLU(),
            nn.Conv1d(n_out, n_out, 5, padding=2, bias=False),
            nn.BatchNorm1d(n_out),
        )
        self.shortcut = nn.Identity() if n_in == n_out else nn.Conv1d(n_in, n_out, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The block's output."""
        past = x
        if self.stride > 1:
            past = nn.functional.avg_pool1d(x, self.stride, ceil_mode=True)
        return nn.functional.silu(self.inner(x) + self.shortcut(past))


class SnippetNetwork(nn.Module):
    """Logits (batch,) of snippets (batch, 4, time) of any length."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        # Four channels of four samples fit into the stem's width, so no frequency is lost.
        self.stem = nn.Conv1d(N_CHANNELS, widths[0], 9, stride=4, padding=4)
        before = (widths[0], *widths)
        self.blocks = nn.Sequential(
            *(
                ResidualBlock(n_in, n_out, 1 if k == 0 else 2)
                for k, (n_in, n_out) in enumerate(zip(before, widths, strict=False))
            )
        )
        self.dropout = nn.Dropout(_DROPOUT)
        self.head = nn.Linear(2 * widths[-1], 1)

    def forward(self, snippets: Tensor) -> Tensor:
        """A logit of each snippet, positive for the second set."""
        found = self.blocks(nn.functional.silu(self.stem(snippets)))
        # The mean adds up what is weak everywhere, the maximum keeps what happens once.
        pooled = torch.cat([found.mean(dim=-1), found.amax(dim=-1)], dim=1)
        logits: Tensor = self.head(self.dropout(pooled))[:, 0]
        return logits


def low_passed(gaze: Tensor, cutoff_hz: float, rate_hz: float) -> Tensor:
    """Gaze (window, 2, time) below a frequency.

    A zero-phase Butterworth filter of fourth order, forwards and backwards, of each window
    mirrored at its ends.
    """
    n = gaze.shape[-1]
    mirrored = torch.cat([gaze, gaze.flip(-1)], dim=-1).double()
    hz = torch.fft.rfftfreq(2 * n, 1.0 / rate_hz, dtype=torch.float64, device=gaze.device)
    spectrum = torch.fft.rfft(mirrored) / (1.0 + (hz / cutoff_hz) ** (2 * _ORDER))
    found: Tensor = torch.fft.irfft(spectrum, 2 * n)[..., :n].to(gaze)
    return found


def precision(device: torch.device) -> Any:
    """A context in which convolutions are in bfloat16 where that is fast."""
    return torch.autocast(device.type, torch.bfloat16, enabled=has_fast_bf16(device))


def fit(
    training: Pair,
    stopping: Pair,
    length: int,
    fitting: Fitting,
    seed: int,
    on_step: Callable[[int], None] = lambda step: None,
) -> SnippetNetwork:
    """A network trained to separate snippets of `length` samples of two sets.

    The batches have as many snippets of the one set as of the other. The weights are those of the
    check with the lowest loss on `stopping`. on_step: called with the steps done, at each check.
    """
    device = training[0].device
    devices = [device] if device.type == "cuda" else []
    flags = torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True)
    with torch_seeded(seed, Stream.EVALUATION, "network", devices=devices), flags:
        network = SnippetNetwork(fitting.widths).to(device)
        optimizer = torch.optim.AdamW(
            network.parameters(),
            lr=_LEARNING_RATE,
            weight_decay=_WEIGHT_DECAY,
            fused=device.type == "cuda",
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: _learning_rate(step / fitting.n_steps)
        )
        draws = DeviceDraws(device, seed, Stream.EVALUATION, "snippets")
        n_half = fitting.batch_size // 2
        labels = torch.arange(2 * n_half, device=device).ge(n_half).float()
        n_crops = n_crops_of(training[0].shape[-1], length)
        averaged = copy.deepcopy(network)
        averages, values = _weights(averaged, network)
        lengths = _shortened(length, fitting.n_steps, draws)
        lowest, n_worse, best = math.inf, 0, network.state_dict()
        for step in range(1, fitting.n_steps + 1):
            network.train()
            here = lengths[step - 1]
            batch = torch.cat([drawn_snippets(one, n_half, here, draws) for one in training])
            batch = augmented(batch, draws)
            optimizer.zero_grad(set_to_none=True)
            with precision(device):
                logits = network(batch)
            loss = nn.functional.binary_cross_entropy_with_logits(logits.float(), labels)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            _average(averages, values, fitting.average, step)
            if step % fitting.n_check == 0 or step == fitting.n_steps:
                on_step(step)
                found = _loss(averaged, stopping, length, n_crops)
                n_worse = 0 if found < lowest else n_worse + 1
                if found < lowest:
                    lowest, best = found, copy.deepcopy(averaged.state_dict())
                if n_worse >= fitting.patience or lowest < _SEPARATED:
                    break
        network.load_state_dict(best)
        return network.eval()


def _weights(*networks: SnippetNetwork) -> list[list[Tensor]]:
    """Weights and running means of each network, which in-place changes of them change."""
    return [[t for t in one.state_dict().values() if t.is_floating_point()] for one in networks]


def _average(averages: list[Tensor], values: list[Tensor], decay: float, step: int) -> None:
    """Move averages towards values of a step, from 1 on; faster in the first steps."""
    weight = 1.0 if step == 1 else 1.0 - min(decay, step / (9.0 + step))
    torch._foreach_lerp_(averages, values, weight)


def _learning_rate(share: float) -> float:
    """Linear warm-up over a tenth of the steps, then a cosine to zero."""
    return min(share / 0.1 + 0.01, 0.5 * (1.0 + math.cos(math.pi * share)))


def _loss(network: SnippetNetwork, pair: Pair, length: int, n_crops: int) -> float:
    """Mean cross-entropy of the two sets, each with half the weight."""
    first, second = (scores(network, one, length, n_crops) for one in pair)
    softplus = nn.functional.softplus
    return float((softplus(first).mean() + softplus(-second).mean()) / 2)


def drawn_snippets(windows: Tensor, n: int, length: int, draws: DeviceDraws) -> Tensor:
    """n snippets (n, channel, length) at random places of random windows."""
    row = draws.integers(0, len(windows), n)
    n_starts = windows.shape[-1] - length + 1
    start = draws.integers(0, n_starts, n)
    return windows.unfold(-1, length, 1)[row, :, start]


def augmented(snippets: Tensor, draws: DeviceDraws) -> Tensor:
    """Snippets (n, 4, time) mirrored and displaced at random."""
    shape = (len(snippets), 2, 1)
    is_flipped = draws.uniform(*shape) < 0.5
    snippets = snippets * torch.where(is_flipped, -1.0, 1.0).repeat(1, 2, 1)
    offset = draws.normal(*shape) * (_DISPLACEMENT * JOINT_STD)
    return snippets + torch.cat([offset, torch.zeros_like(offset)], dim=1)


def _shortened(length: int, n: int, draws: DeviceDraws) -> list[int]:
    """n random lengths between _SHORTEST of a length and all of it, of nine that are possible.

    Of few lengths, because a GPU chooses its convolutions anew for each; all at once, because a
    number that is read in each step makes the processor wait for the device.
    """
    drawn = draws.integers(0, _N_LENGTHS, n)
    shares = (_SHORTEST + (1.0 - _SHORTEST) * k / (_N_LENGTHS - 1) for k in drawn.tolist())
    return [max(1, round(length * one)) for one in shares]


def n_crops_of(n_samples: int, length: int) -> int:
    """Snippets of a window that are scored: at most four, which do not overlap much."""
    return min(4, max(1, round(n_samples / length)))


def crop_starts(n_samples: int, length: int, n_crops: int) -> list[int]:
    """Where the scored snippets of a window begin: evenly spaced from its start to its end."""
    if n_crops == 1:
        return [(n_samples - length) // 2]
    return [k * (n_samples - length) // (n_crops - 1) for k in range(n_crops)]


@torch.no_grad()
def scores(network: SnippetNetwork, windows: Tensor, length: int, n_crops: int) -> Tensor:
    """Logits (window, crop) of evenly spaced snippets."""
    network.eval()
    columns = []
    for start in crop_starts(windows.shape[-1], length, n_crops):
        with precision(windows.device):
            parts = [
                network(part[..., start : start + length]) for part in torch.split(windows, _SCORED)
            ]
        columns.append(torch.cat(parts).float())
    return torch.stack(columns, dim=1)
