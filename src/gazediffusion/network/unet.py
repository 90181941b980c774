"""The paper's denoiser: a one-dimensional U-Net conditioned on the diffusion step by FiLM.

Three encoder levels, a bottleneck with self-attention between two residual blocks, and a mirrored
decoder with skip concatenation (paper, section "Methods"). The paper states widths, heads and the
exact parameter count; kernel sizes, groups and the place of each skip are our choice, consistent
with the text and with all 19,350,914 parameters. Knows nothing of diffusion: it maps a tensor and
one number per sample to a tensor of the same shape.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from gazediffusion.errors import GazeError
from gazediffusion.network.fast import (
    channels_last,
    convolve,
    convolve_by,
    is_faster_channels_last,
    narrow_conv,
    normalize,
)


@dataclass(frozen=True)
class UNetConfig:
    """The network's shape; the defaults are the paper's.

    condition_width: length of the condition vector, 0 in the paper.
    sequence_channels: channels of the sequence condition, 0 in the paper.
    patch: samples per patch, 1 in the paper. Every level is shorter and cheaper by this factor.
    attention_blocks: self-attention layers in the bottleneck, 1 in the paper.
    rotary: rotary position embedding and normalized queries and keys, which the paper does not
        have; normalization keeps attention stable at high learning rates.
    biases: convolutions have biases, as in the paper. Group norms have them too, and on a GPU each
        addition is a memory pass of its own.
    """

    channels: int = 2
    widths: tuple[int, ...] = (128, 256, 512)
    embedding: int = 256
    heads: int = 4
    head_width: int = 32
    groups: int = 8
    kernel: int = 5
    condition_width: int = 0
    sequence_channels: int = 0
    patch: int = 1
    attention_blocks: int = 1
    rotary: bool = False
    biases: bool = True

    @property
    def stride(self) -> int:
        """Window lengths must be multiples of this: every level halves the time."""
        return self.patch << len(self.widths)

    def __post_init__(self) -> None:
        if any(width % self.groups for width in self.widths):
            raise GazeError(f"network widths {self.widths} must be multiples of {self.groups}")


class UNet(nn.Module):
    """eps or x0 from (x_t, t): x (batch, channels, time), t (batch,), time divisible by 8.

    condition: (batch, condition_width); sequences: (batch, sequence_channels, time). None and zeros
    are the unconditional network.
    """

    def __init__(self, config: UNetConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or UNetConfig()
        widths, embedding, bias = config.widths, config.embedding, config.biases

        def block(c_in: int, c_out: int, kernel: int = config.kernel) -> ResidualBlock:
            return ResidualBlock(c_in, c_out, embedding, kernel, config.groups, config.biases)

        def attention() -> SelfAttention:
            width = widths[-1]
            return SelfAttention(
                width, config.heads, config.head_width, config.groups, config.rotary
            )

        self.step_embedding = nn.Sequential(
            nn.Linear(embedding, 4 * embedding), nn.SiLU(), nn.Linear(4 * embedding, embedding)
        )
        self.condition = (
            nn.Sequential(
                nn.Linear(config.condition_width, embedding, bias=False),
                nn.SiLU(),
                nn.Linear(embedding, embedding, bias=False),
            )
            if config.condition_width
            else None
        )
        n_inputs = (config.channels + config.sequence_channels) * config.patch
        self.stem = nn.Conv1d(n_inputs, widths[0], 7, padding=3, bias=bias)
        self.encoder = nn.ModuleList(block(width, width) for width in widths)
        # Each level goes down to the width of the next; the last keeps its own.
        self.down = nn.ModuleList(
            nn.Conv1d(width, deeper, 3, stride=2, padding=1, bias=bias)
            for width, deeper in pairwise((*widths, widths[-1]))
        )
        self.bottleneck_in = block(widths[-1], widths[-1])
        self.attention = attention()
        self.attention_blocks = nn.ModuleList(
            AttentionBlock(block(widths[-1], widths[-1], 1), attention())
            for _ in range(config.attention_blocks - 1)
        )
        self.bottleneck_out = block(widths[-1], widths[-1])
        self.up = nn.ModuleList(
            nn.ConvTranspose1d(deeper, width, 3, stride=2, padding=1, output_padding=1, bias=bias)
            for deeper, width in pairwise((widths[-1], *reversed(widths)))
        )
        self.decoder = nn.ModuleList(block(2 * width, width) for width in reversed(widths))
        self.head = nn.Sequential(
            nn.GroupNorm(config.groups, widths[0]),
            nn.SiLU(),
            nn.Conv1d(widths[0], config.channels * config.patch, 7, padding=3),
        )

    def forward(
        self,
        x: Tensor,
        t: Tensor,
        condition: Tensor | None = None,
        sequences: Tensor | None = None,
    ) -> Tensor:
        """The prediction, of the shape of x."""
        embedding = self._embed(t, condition)
        h, skips = self._encode(x, embedding, sequences)
        for up, block, skip in zip(self.up, self.decoder, reversed(skips), strict=True):
            h = block(torch.cat([convolve(up, h), skip], dim=1), embedding)
        norm, _, conv = self.head
        assert isinstance(norm, nn.GroupNorm)
        assert isinstance(conv, nn.Conv1d)
        out = narrow_conv(conv, normalize(norm, h))
        return unpatchify(out.flatten(2), self.config.patch)

    def features(self, x: Tensor, t: Tensor) -> Tensor:
        """The bottleneck's output, (batch, widths[-1], time / stride)."""
        return self.encode(x, t)[0]

    def encode(
        self,
        x: Tensor,
        t: Tensor,
        condition: Tensor | None = None,
        sequences: Tensor | None = None,
    ) -> tuple[Tensor, list[Tensor]]:
        """The bottleneck's output, and that of each level, the finest first."""
        h, skips = self._encode(x, self._embed(t, condition), sequences)
        return h.flatten(2), [skip.flatten(2) for skip in skips]

    def _embed(self, t: Tensor, condition: Tensor | None = None) -> Tensor:
        width = self.stem.weight.dtype
        embedding: Tensor = self.step_embedding(sinusoid(t, self.config.embedding).to(width))
        if self.condition is not None and condition is not None:
            embedding = embedding + self.condition(condition.to(width))
        return embedding

    def _encode(
        self, x: Tensor, embedding: Tensor, sequences: Tensor | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        if x.shape[-1] % self.config.stride:
            raise GazeError(
                f"a window of {x.shape[-1]} samples does not fit the network",
                remedy=f"its length must be a multiple of {self.config.stride}",
            )
        h = self._stem(x, sequences)
        skips: list[Tensor] = []
        for block, down in zip(self.encoder, self.down, strict=True):
            h = block(h, embedding)
            skips.append(h)
            h = convolve(down, h)
        h = self.bottleneck_in(h, embedding)
        angles = rotary_angles(h, self.config.head_width) if self.config.rotary else None
        h = self.attention(h, angles)
        for block in self.attention_blocks:
            h = block(h, embedding, angles)
        return self.bottleneck_out(h, embedding), skips

    def _stem(self, x: Tensor, sequences: Tensor | None) -> Tensor:
        """The first convolution; without sequences that of the window's channels alone."""
        if sequences is not None:
            x = torch.cat([x, sequences.to(x.dtype)], dim=1)
        patches = patchify(x.to(self.stem.weight.dtype), self.config.patch)
        weight = self.stem.weight[:, : patches.shape[1]]
        if is_faster_channels_last(patches, weight):
            patches = channels_last(patches)
        return convolve_by(weight, self.stem.bias, patches)


def n_parameters(config: UNetConfig) -> int:
    """The number of weights of such a network."""
    with torch.device("meta"):  # counted, not filled
        return sum(weight.numel() for weight in UNet(config).parameters())


class ResidualBlock(nn.Module):
    """Two convolutions around FiLM, h' = h (1 + gamma(e)) + delta(e), and a shortcut."""

    def __init__(
        self, c_in: int, c_out: int, embedding: int, kernel: int, groups: int, bias: bool = True
    ) -> None:
        super().__init__()
        self.norm_in = nn.GroupNorm(groups, c_in)
        self.conv_in = nn.Conv1d(c_in, c_out, kernel, padding=kernel // 2, bias=bias)
        self.norm_out = nn.GroupNorm(groups, c_out)
        self.film = nn.Linear(embedding, 2 * c_out)
        self.conv_out = nn.Conv1d(c_out, c_out, kernel, padding=kernel // 2, bias=bias)
        self.shortcut = nn.Conv1d(c_in, c_out, 1, bias=bias) if c_in != c_out else nn.Identity()

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        """x (batch, c_in, time) and embedding (batch, embedding) to (batch, c_out, time)."""
        h = convolve(self.conv_in, normalize(self.norm_in, x))
        gamma, delta = self.film(functional.silu(embedding)).chunk(2, dim=1)
        h = normalize(self.norm_out, h, (gamma, delta))
        return convolve(self.shortcut, x) + convolve(self.conv_out, h)


class SelfAttention(nn.Module):
    """Multi-head self-attention over time with a residual connection."""

    def __init__(
        self, width: int, heads: int, head_width: int, groups: int, rotary: bool = False
    ) -> None:
        super().__init__()
        self.heads = heads
        # The norm of queries and keys; the largest logit is its square.
        self.qk_scale = nn.Parameter(torch.full((heads, 1, 1), head_width**0.5)) if rotary else None
        self.norm = nn.GroupNorm(groups, width)
        self.qkv = nn.Conv1d(width, 3 * heads * head_width, 1, bias=False)
        self.out = nn.Conv1d(heads * head_width, width, 1)

    def forward(self, x: Tensor, angles: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """x (batch, width, time) to the same shape; angles: `rotary_angles` of a rotary network."""
        batch, time = len(x), x.shape[-1]
        # Channels last: the layout of the fast kernels, whatever the length.
        h = normalize(self.norm, x, silu=False).flatten(2).transpose(1, 2).contiguous()
        qkv = functional.linear(h, self.qkv.weight[..., 0]).view(batch, time, 3, self.heads, -1)
        q, k, v = qkv.unbind(2)
        if self.qk_scale is not None:
            assert angles is not None  # a rotary network gives them
            # rms_norm does the same, and is several times slower for rows as short as these.
            both = functional.normalize(qkv[:, :, :2], dim=-1)
            cosine, sine = (part[:, None, None] * self.qk_scale[:, 0] for part in angles)
            q, k = rotate(both, cosine, sine).unbind(2)
        # (batch, heads, time, head width) each
        q, k, v = (one.transpose(1, 2) for one in (q, k, v))
        h = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        h = functional.linear(h.reshape(batch, time, -1), self.out.weight[..., 0], self.out.bias)
        return x + h.transpose(1, 2).reshape(x.shape)


class AttentionBlock(nn.Module):
    """A pointwise residual block, then self-attention; both are initialised to the identity."""

    def __init__(self, block: ResidualBlock, attention: SelfAttention) -> None:
        super().__init__()
        self.block, self.attention = block, attention
        for last in (block.conv_out, attention.out):
            for weight in last.parameters():
                nn.init.zeros_(weight)

    def forward(self, x: Tensor, embedding: Tensor, angles: tuple[Tensor, Tensor] | None) -> Tensor:
        """x (batch, width, time) and embedding (batch, embedding) to the shape of x."""
        out: Tensor = self.attention(self.block(x, embedding), angles)
        return out


def rotary_angles(x: Tensor, width: int, longest: float = 100.0) -> tuple[Tensor, Tensor]:
    """Cosines and sines (time, width) of the rotary embedding of x (..., time).

    The second half of the width has the angles of the first, and sines of the other sign. Periods
    go from 2 pi to 2 pi `longest` steps.
    """
    half = width // 2
    step = torch.arange(x.shape[-1], dtype=torch.float32, device=x.device)
    rates = longest ** -(torch.arange(half, dtype=torch.float32, device=x.device) / half)
    angle = step[:, None] * rates
    cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    return torch.cat([cosine, cosine], dim=-1), torch.cat([-sine, sine], dim=-1)


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary embedding (Su et al. 2021): x (..., time, width) rotated by the angles of its times.

    The inner product of two rotated vectors depends on their distance in time.
    """
    return x * cosine + x.roll(x.shape[-1] // 2, dims=-1) * sine


def patchify(x: Tensor, n: int) -> Tensor:
    """n successive samples of each channel as channels: (batch, channels * n, time / n)."""
    if n == 1:
        return x
    batch, channels, time = x.shape
    return x.reshape(batch, channels, time // n, n).transpose(2, 3).reshape(batch, -1, time // n)


def unpatchify(x: Tensor, n: int) -> Tensor:
    """The inverse of `patchify`: (batch, channels / n, time * n)."""
    if n == 1:
        return x
    batch, _, time = x.shape
    return x.reshape(batch, -1, n, time).transpose(2, 3).reshape(batch, -1, time * n)


def sinusoid(t: Tensor, width: int, longest: float = 10_000.0) -> Tensor:
    """Sines and cosines of t (batch,) at `width` / 2 frequencies, (batch, width) float32."""
    half = width // 2
    rates = torch.exp(
        -math.log(longest) * torch.arange(half, dtype=torch.float32, device=t.device) / half
    )
    angles = t.float()[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)
