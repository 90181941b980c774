"""Elapsed time: how long a recording has lasted when a window begins.

Recordings are not stationary: readers go down a page, and viewers begin at the screen's centre. A
condition has the elapsed time as weights of linear interpolation between knots, which lie closer at
the beginning. All weights are zero where the time is not given.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

KNOTS_S = (0.0, 1.0, 3.0, 6.0, 12.0, 20.0, 30.0, 40.0, 52.0, 70.0, 90.0)


def encode_elapsed(seconds: Tensor, knots_s: Sequence[float] = KNOTS_S) -> Tensor:
    """Weights (batch, knot) of times (batch,), which are NaN where they are not given.

    >>> encode_elapsed(torch.tensor([0.25, torch.nan, 500.0]), (0.0, 1.0, 3.0)).tolist()
    [[0.75, 0.25, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    knots = torch.tensor(knots_s).to(seconds)
    time = seconds[:, None].clamp(knots[0], knots[-1])
    widths = knots.diff()
    # A weight rises from the knot before, and falls to the one after; beyond the ends it is one.
    rising = torch.nn.functional.pad((time - knots[:-1]) / widths, (1, 0), value=1.0)
    falling = torch.nn.functional.pad((knots[1:] - time) / widths, (0, 1), value=1.0)
    return torch.minimum(rising, falling).clamp(0.0, 1.0).nan_to_num(0.0)
