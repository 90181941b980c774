"""Masking: which samples of a training window are given, and which are to be generated.

A network that is to continue, precede, fill and follow is trained on all of these at once. Each
window gets one kind of mask; a share has none, so that it also generates from nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Uniform = Callable[[Any], Tensor]
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
_SHORTEST_S, _LONGEST_S = 0.03, 1.6  # of a gap
_N_GAPS = 8
_END = (0.025, 0.475)  # length of a prefix or suffix, as a share of the window
_BLOCK_S = 0.2  # within which a partly given fixation is given or not


def known_samples(batch: int, length: int, rate_hz: float, uniform: Uniform) -> Tensor:
    """Which samples are given, (batch, length) bool."""
    edges = torch.tensor(list(SHARES.values())).cumsum(0)
    draw = uniform((batch, 1))
    kind = torch.bucketize(draw, edges.to(draw)[:-1])
    sizes = uniform((batch, 2)) * (_END[1] - _END[0]) + _END[0]
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
    draws = uniform((batch, _N_GAPS, 3))
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
    draws = uniform((batch, 3, 1))
    block = max(1, round(_BLOCK_S * rate_hz))
    n_blocks = -(-length // block)
    chosen = (uniform((batch, n_blocks)) < draws[:, 2]).repeat_interleave(block, dim=1)[:, :length]
    is_given = (draws[:, 0] < FIXATION_SHARE) & (chosen | (draws[:, 1] < FIXATIONS_WHOLE))
    return fixation.masked_fill(~is_given[:, None], torch.nan)


def given_targets(target: Tensor, uniform: Uniform) -> Tensor:
    """Target positions (batch, 2, time) with those of windows that are not given as NaN."""
    is_given = uniform((len(target), 1, 1)) < TARGET_SHARE
    return target.masked_fill(~is_given, torch.nan)
