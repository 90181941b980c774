"""Layers in two layouts: (batch, width, time), and (batch, width, 1, time) with channels last.

The first is torch's. In the second a GPU convolves bfloat16 without changes of layout, and a norm
is one kernel (norm_kernel.py). It is for large batches without gradients.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional

_MANY = 128  # windows: fewer do not fill a GPU with a program each


def is_faster_channels_last(x: Tensor, weight: Tensor) -> bool:
    """Whether channels last are faster: large batches of bfloat16 on a GPU, without gradients."""
    return (
        x.is_cuda
        and weight.dtype == torch.bfloat16
        and len(x) >= _MANY
        and not torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
        and _has_kernel(x.device)
    )


@cache
def _has_kernel(device: torch.device) -> bool:
    """Whether the kernel of norms works there: Triton needs a C compiler the first time."""
    ones = torch.ones(1, 8, 1, 8, device=device, dtype=torch.bfloat16)
    weight = ones[0, :, 0, 0]
    try:
        from gazediffusion.network.norm_kernel import fused_norm

        fused_norm(channels_last(ones[:, :, 0]), weight, weight, 8, 1e-5, silu=True)
    except Exception:  # of Triton, its compiler or the driver; torch's own norm is as good
        return False
    return True


def channels_last(x: Tensor) -> Tensor:
    """x (batch, width, time) as (batch, width, 1, time) with channels last."""
    return x[:, :, None].contiguous(memory_format=torch.channels_last)


def convolve(layer: nn.Module, x: Tensor) -> Tensor:
    """layer(x) in either layout; the layer is a convolution, transposed or not, or the identity."""
    if x.ndim == 3 or isinstance(layer, nn.Identity):
        out: Tensor = layer(x)
        return out
    assert isinstance(layer, nn.Conv1d | nn.ConvTranspose1d)
    (stride,) = layer.stride
    if isinstance(layer, nn.Conv1d):
        return convolve_by(layer.weight, layer.bias, x, stride)
    places, more = (0, layer.kernel_size[0] // 2), (0, layer.output_padding[0])
    weight = layer.weight[:, :, None]
    return functional.conv_transpose2d(x, weight, layer.bias, (1, stride), places, more)


def convolve_by(weight: Tensor, bias: Tensor | None, x: Tensor, stride: int = 1) -> Tensor:
    """x convolved by a weight (to, from, odd width) in either layout, padded to its length."""
    n = weight.shape[-1] // 2
    if x.ndim == 3:
        return functional.conv1d(x, weight, bias, stride, n)
    return functional.conv2d(x, weight[:, :, None], bias, (1, stride), (0, n))


def normalize(
    norm: nn.GroupNorm, x: Tensor, film: tuple[Tensor, Tensor] | None = None, silu: bool = True
) -> Tensor:
    """SiLU(norm(x)) in either layout, or without SiLU.

    film: gamma and delta (batch, width); then norm(x) (1 + gamma) + delta.
    """
    if x.ndim == 3:
        h = norm(x) if film is None else film_norm(norm, x, *film)
        return functional.silu(h) if silu else h
    scale, shift = (norm.weight, norm.bias) if film is None else scale_and_shift(norm, *film)
    n, width = norm.num_groups, x.shape[1]
    if x.is_cuda and n & (n - 1) == width & (width - 1) == 0:  # powers of two
        from gazediffusion.network.norm_kernel import fused_norm

        return fused_norm(x, scale, shift, n, norm.eps, silu)
    h = functional.group_norm(x, n, eps=norm.eps)
    h = h * scale[..., None, None] + shift[..., None, None]
    return functional.silu(h) if silu else h


def scale_and_shift(norm: nn.GroupNorm, gamma: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
    """Of FiLM after the norm, as one affine transform: (batch, width) each."""
    return norm.weight * (1 + gamma), norm.bias * (1 + gamma) + delta


def film_norm(norm: nn.GroupNorm, x: Tensor, gamma: Tensor, delta: Tensor) -> Tensor:
    """norm(x) (1 + gamma) + delta, of x (batch, width, time), gamma and delta (batch, width).

    One call: the samples of the batch become further groups of one sample, with own weights.
    """
    scale, shift = scale_and_shift(norm, gamma, delta)
    batch, width, time = x.shape
    flat = x.reshape(1, batch * width, time)
    groups = batch * norm.num_groups
    normed = functional.group_norm(flat, groups, scale.flatten(), shift.flatten(), norm.eps)
    return normed.view(batch, width, time)


def narrow_conv(conv: nn.Conv1d, x: Tensor) -> Tensor:
    """conv(x), a convolution to few channels.

    In bfloat16 cuDNN has only slow kernels for few output channels; `padded_conv` takes a quarter
    of their time.
    """
    is_slow = x.is_cuda and x.dtype == conv.weight.dtype == torch.bfloat16
    return padded_conv(conv, x) if is_slow else convolve(conv, x)


def padded_conv(conv: nn.Conv1d, x: Tensor, many: int = 64) -> Tensor:
    """conv(x) with the output channels padded to `many`; the padding is discarded."""
    n = conv.out_channels
    more = max(many - n, 0)
    weight = functional.pad(conv.weight, (0, 0, 0, 0, 0, more))
    bias = None if conv.bias is None else functional.pad(conv.bias, (0, more))
    return convolve_by(weight, bias, x)[:, :n]
