"""Group norm, scale, shift and SiLU in one pass over memory: a kernel for CUDA, by Triton.

A program normalizes some groups of channels of one window. It reads them twice, the second time
from the GPU's cache, and writes them once.
"""

from __future__ import annotations

import torch
import triton
from torch import Tensor
from triton import language as tl

_ROWS, _COLUMNS = 128, 64  # times and channels of a tile


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]
    x,
    scale,
    shift,
    out,
    time,
    width,
    per_window,
    eps,
    n_rows: tl.constexpr,
    n_columns: tl.constexpr,
    n_groups: tl.constexpr,
    silu: tl.constexpr,
):
    """x, out: (window, time, width). scale, shift: (width,), or (window, width) if `per_window`."""
    window = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * n_columns + tl.arange(0, n_columns)
    rows = tl.arange(0, n_rows)
    first = window * time * width
    total = tl.zeros([n_columns], dtype=tl.float32)
    squares = tl.zeros([n_columns], dtype=tl.float32)
    for start in range(0, time, n_rows):
        place = first + (start + rows)[:, None] * width + columns[None, :]
        value = tl.load(x + place, mask=(start + rows)[:, None] < time, other=0.0).to(tl.float32)
        total += tl.sum(value, axis=0)
        squares += tl.sum(value * value, axis=0)
    n = time * (n_columns // n_groups)
    mean = tl.sum(tl.reshape(total, [n_groups, n_columns // n_groups]), axis=1) / n
    square = tl.sum(tl.reshape(squares, [n_groups, n_columns // n_groups]), axis=1) / n
    inverse = 1.0 / tl.sqrt(tl.maximum(square - mean * mean, 0.0) + eps)
    mean = tl.reshape(
        tl.broadcast_to(mean[:, None], [n_groups, n_columns // n_groups]), [n_columns]
    )
    inverse = tl.reshape(
        tl.broadcast_to(inverse[:, None], [n_groups, n_columns // n_groups]), [n_columns]
    )
    own = window * width * per_window + columns
    factor = inverse * tl.load(scale + own).to(tl.float32)
    offset = tl.load(shift + own).to(tl.float32) - mean * factor
    for start in range(0, time, n_rows):
        place = first + (start + rows)[:, None] * width + columns[None, :]
        is_there = (start + rows)[:, None] < time
        value = tl.load(x + place, mask=is_there, other=0.0).to(tl.float32)
        value = value * factor[None, :] + offset[None, :]
        if silu:
            value = value * tl.sigmoid(value)
        tl.store(out + place, value.to(out.dtype.element_ty), mask=is_there)


def fused_norm(
    x: Tensor, scale: Tensor, shift: Tensor, groups: int, eps: float, silu: bool
) -> Tensor:
    """SiLU(norm(x) scale + shift), or without SiLU.

    x: (window, width, 1, time), channels last. scale, shift: (width,) or (window, width).
    """
    n, width, _, time = x.shape
    out = torch.empty_like(x)
    columns = min(max(_COLUMNS, width // groups), width)
    with torch.cuda.device(x.device):
        _kernel[(n, width // columns)](
            x,
            scale.contiguous(),
            shift.contiguous(),
            out,
            time,
            width,
            int(scale.ndim == 2),
            eps,
            n_rows=_ROWS,
            n_columns=columns,
            n_groups=columns * groups // width,
            silu=silu,
            num_warps=8,
        )
    return out
