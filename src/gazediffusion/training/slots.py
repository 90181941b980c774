"""Windows on their way through the levels of a distilled model, one level a step.

Every step a few windows begin at the first level, as many leave at the last, and all others go to
their next level by the student's own step.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Slots:
    """The windows in work: those at the first level, those at the second, and so on.

    real, noise, counts, x: (window, channel, time), recorded channels, first noise, where channels
    are generated, and the student's input. condition, sequences: what windows are given.
    """

    NAMES = ("real", "noise", "condition", "sequences", "counts")

    def __init__(self, first: Sequence[tuple[Tensor, ...]], levels: Sequence[float]) -> None:
        self.levels, self.n_new = levels, len(first[0][0])
        tensors = [torch.cat(parts) for parts in zip(*first, strict=True)]
        self.real, self.noise, self.condition, self.sequences, self.counts = tensors
        sigma = self.real.new_tensor(levels).repeat_interleave(self.n_new)
        self.x = self.real + sigma[:, None, None] * self.noise
        # Where the next windows are put before a step, so that a graph finds them.
        self.new = [torch.zeros_like(one[: self.n_new]) for one in tensors]

    def put(self, new: Sequence[Tensor]) -> None:
        """The windows that enter after the step."""
        for held, given in zip(self.new, new, strict=True):
            held.copy_(given)

    @torch.no_grad()
    def advance(self, after: Tensor) -> None:
        """Windows are at the next level with these values; the last leave and new ones enter."""
        n = self.n_new
        first = self.new[self.NAMES.index("noise")] * self.levels[0]
        self.x.copy_(torch.cat([first, after[:-n]]))
        for name, new in zip(self.NAMES, self.new, strict=True):
            held = getattr(self, name)
            held.copy_(torch.cat([new, held[:-n]]))

    def state(self) -> dict[str, Tensor]:
        """All tensors by name."""
        return {name: getattr(self, name) for name in (*self.NAMES, "x")}
