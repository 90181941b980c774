"""Fixations in place: generated gaze has its mean over each fixation where that was asked for.

A network follows its condition to a fraction of a degree. The rest is removed at every sampling
step by the smallest shift of the denoised positions: constant within a fixation, linear from one to
the next or to known samples, which stay. Later steps fit saccades and drift to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True, eq=False)
class FixationMeans:
    """The fixations of a batch of windows, numbered from 1 over the batch; 0 is none.

    number: (window, time), which fixation a sample lies in. before, after: (window, time), the last
    fixation that began and the next that ends, 0 where there is none or a known sample. weight:
    (window, time), of `after`. place: (2, 1 + fixation), positions asked for. size: (1 +
    fixation,), samples.
    """

    number: Tensor
    before: Tensor
    after: Tensor
    weight: Tensor
    place: Tensor
    size: Tensor

    @classmethod
    def of(cls, given: Tensor, is_known: Tensor | None = None) -> FixationMeans | None:
        """From positions (window, 2, time), NaN where no fixation is given; None without any.

        Samples of one fixation have one position. is_known (window, time): of samples that stay.
        """
        is_given = given.isfinite().all(dim=1)
        is_anchor = is_given
        if is_known is not None:
            is_anchor, is_given = is_given | is_known, is_given & ~is_known
        if not bool(is_given.any()):
            return None
        same = functional.pad((given.diff(dim=-1) == 0).all(dim=1) & is_given[:, :-1], (1, 0))
        is_first = is_given & ~same
        number = is_first.flatten().cumsum(0).view_as(is_first) * is_given
        n = int(is_first.sum())
        place = given.new_zeros(2, 1 + n)
        place[:, 1:] = given.transpose(0, 1)[:, is_first]
        size = number.flatten().bincount(minlength=1 + n).to(given).clamp_min(1)
        length = given.shape[-1]
        time = torch.arange(length, device=given.device).expand_as(number)
        # The last sample at or before each that is in a fixation or known, and the first after it.
        left = torch.where(is_anchor, time, -1).cummax(dim=1).values
        right = torch.where(is_anchor, time, length).flip(1).cummin(dim=1).values.flip(1)
        ends = number.gather(1, left.clamp_min(0)), number.gather(1, right.clamp_max(length - 1))
        # At the ends of a window the only neighbour counts.
        before = torch.where(left >= 0, ends[0], ends[1])
        after = torch.where(right < length, ends[1], ends[0])
        weight = (time - left) / (right - left).clamp_min(1)
        return cls(number, before, after, weight.to(given), place, size)

    def moved(self, position: Tensor) -> Tensor:
        """Positions (window, 2, time), shifted so that means over fixations are in place."""
        flat = position.transpose(0, 1).flatten(1)
        sums = torch.zeros_like(self.place).index_add_(1, self.number.flatten(), flat)
        shift = self.place - sums / self.size
        shift[:, 0] = 0
        between = torch.lerp(shift[:, self.before], shift[:, self.after], self.weight)
        return position + between.transpose(0, 1)
