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


@dataclass(frozen=True)
class UNetConfig:
    """The network's shape; the defaults are the paper's.

    conditions: numbers that are told to the network beside the step, 0 in the paper.
    patch: samples that the network takes as one, 1 in the paper. Each level then has so many times
        fewer places, and costs so many times less.
    attentions: times that the bottleneck looks at the whole window, 1 in the paper.
    rotary: attention knows how far apart in time two places are, which it does not in the paper;
        its queries and keys are normalized, which keeps it steady at high learning rates.
    biases: convolutions add a constant to each channel, as in the paper. The norms do so too, and
        on a GPU each addition is a pass over the memory of its own.
    """

    channels: int = 2
    widths: tuple[int, ...] = (128, 256, 512)
    embedding: int = 256
    heads: int = 4
    head_width: int = 32
    groups: int = 8
    kernel: int = 5
    conditions: int = 0
    patch: int = 1
    attentions: int = 1
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

    condition: (batch, conditions); None, and all zeros, is to know nothing.
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
                nn.Linear(config.conditions, embedding, bias=False),
                nn.SiLU(),
                nn.Linear(embedding, embedding, bias=False),
            )
            if config.conditions
            else None
        )
        self.stem = nn.Conv1d(config.channels * config.patch, widths[0], 7, padding=3, bias=bias)
        self.encoder = nn.ModuleList(block(width, width) for width in widths)
        # Each level goes down to the width of the next; the last keeps its own.
        self.down = nn.ModuleList(
            nn.Conv1d(width, deeper, 3, stride=2, padding=1, bias=bias)
            for width, deeper in pairwise((*widths, widths[-1]))
        )
        self.bottleneck_in = block(widths[-1], widths[-1])
        self.attention = attention()
        self.looks = nn.ModuleList(
            Look(block(widths[-1], widths[-1], 1), attention())
            for _ in range(config.attentions - 1)
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

    def forward(self, x: Tensor, t: Tensor, condition: Tensor | None = None) -> Tensor:
        """The prediction, of the shape of x."""
        embedding = self._embed(t, condition)
        h, skips = self._encode(x, embedding)
        for up, block, skip in zip(self.up, self.decoder, reversed(skips), strict=True):
            h = block(torch.cat([up(h), skip], dim=1), embedding)
        norm, silu, conv = self.head
        assert isinstance(conv, nn.Conv1d)
        return apart(thin(conv, silu(norm(h))), self.config.patch)

    def features(self, x: Tensor, t: Tensor) -> Tensor:
        """The bottleneck's output, (batch, widths[-1], time / stride)."""
        return self._encode(x, self._embed(t))[0]

    def _embed(self, t: Tensor, condition: Tensor | None = None) -> Tensor:
        width = self.stem.weight.dtype
        embedding: Tensor = self.step_embedding(sinusoid(t, self.config.embedding).to(width))
        if self.condition is not None and condition is not None:
            embedding = embedding + self.condition(condition.to(width))
        return embedding

    def _encode(self, x: Tensor, embedding: Tensor) -> tuple[Tensor, list[Tensor]]:
        if x.shape[-1] % self.config.stride:
            raise GazeError(
                f"a window of {x.shape[-1]} samples does not fit the network",
                remedy=f"its length must be a multiple of {self.config.stride}",
            )
        h = self.stem(together(x.to(self.stem.weight.dtype), self.config.patch))
        skips: list[Tensor] = []
        for block, down in zip(self.encoder, self.down, strict=True):
            h = block(h, embedding)
            skips.append(h)
            h = down(h)
        h = self.bottleneck_in(h, embedding)
        places = rotary_places(h, self.config.head_width) if self.config.rotary else None
        h = self.attention(h, places)
        for look in self.looks:
            h = look(h, embedding, places)
        return self.bottleneck_out(h, embedding), skips


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
        h = self.conv_in(functional.silu(self.norm_in(x)))
        gamma, delta = self.film(functional.silu(embedding)).chunk(2, dim=1)
        h = modulated(self.norm_out, h, gamma, delta)
        out: Tensor = self.shortcut(x) + self.conv_out(functional.silu(h))
        return out


def modulated(norm: nn.GroupNorm, x: Tensor, gamma: Tensor, delta: Tensor) -> Tensor:
    """norm(x) (1 + gamma) + delta, of x (batch, width, time), gamma and delta (batch, width).

    In one go: to the norm the samples are so many more groups of one sample, with weights of their
    own.
    """
    scale = norm.weight * (1 + gamma)
    shift = norm.bias * (1 + gamma) + delta
    batch, width, time = x.shape
    flat = x.reshape(1, batch * width, time)
    groups = batch * norm.num_groups
    normed = functional.group_norm(flat, groups, scale.flatten(), shift.flatten(), norm.eps)
    return normed.view(batch, width, time)


def thin(conv: nn.Conv1d, x: Tensor) -> Tensor:
    """conv(x), a convolution to few channels.

    For few of them cuDNN knows slow kernels alone in bfloat16; `widened` takes a quarter of the
    time.
    """
    is_slow = x.is_cuda and x.dtype == conv.weight.dtype == torch.bfloat16
    out: Tensor = widened(conv, x) if is_slow else conv(x)
    return out


def widened(conv: nn.Conv1d, x: Tensor, many: int = 64) -> Tensor:
    """conv(x) by way of more channels, of which the others are thrown away."""
    n = conv.out_channels
    weight = functional.pad(conv.weight, (0, 0, 0, 0, 0, max(many - n, 0)))
    found = functional.conv1d(x, weight, padding=conv.kernel_size[0] // 2)[:, :n]
    return found if conv.bias is None else found + conv.bias[:, None]


class SelfAttention(nn.Module):
    """Every time attends to every other; added to its input."""

    def __init__(
        self, width: int, heads: int, head_width: int, groups: int, rotary: bool = False
    ) -> None:
        super().__init__()
        self.heads = heads
        # How large a query and a key are; their product lies between plus and minus its square.
        self.sharpness = (
            nn.Parameter(torch.full((heads, 1, 1), head_width**0.5)) if rotary else None
        )
        self.norm = nn.GroupNorm(groups, width)
        self.qkv = nn.Conv1d(width, 3 * heads * head_width, 1, bias=False)
        self.out = nn.Conv1d(heads * head_width, width, 1)

    def forward(self, x: Tensor, places: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """x (batch, width, time) to the same shape; places: of a network with rotary ones."""
        batch, _, time = x.shape
        # Place by place, width last: what fast kernels ask for, whatever the number of places.
        h = self.norm(x).transpose(1, 2).contiguous()
        qkv = functional.linear(h, self.qkv.weight[..., 0]).view(batch, time, 3, self.heads, -1)
        q, k, v = qkv.unbind(2)
        if self.sharpness is not None:
            assert places is not None  # a network with rotary places gives them
            # rms_norm does the same, and is several times slower for rows as short as these.
            both = functional.normalize(qkv[:, :, :2], dim=-1)
            cosine, sine = (place[:, None, None] * self.sharpness[:, 0] for place in places)
            q, k = turned(both, cosine, sine).unbind(2)
        # (batch, heads, time, head width) each
        q, k, v = (one.transpose(1, 2) for one in (q, k, v))
        h = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        h = functional.linear(h.reshape(batch, time, -1), self.out.weight[..., 0], self.out.bias)
        return x + h.transpose(1, 2)


class Look(nn.Module):
    """A further look at the window: a block that works place by place, then attention.

    Both begin by changing nothing.
    """

    def __init__(self, block: ResidualBlock, attention: SelfAttention) -> None:
        super().__init__()
        self.block, self.attention = block, attention
        for last in (block.conv_out, attention.out):
            for weight in last.parameters():
                nn.init.zeros_(weight)

    def forward(self, x: Tensor, embedding: Tensor, places: tuple[Tensor, Tensor] | None) -> Tensor:
        """x (batch, width, time) and embedding (batch, embedding) to the shape of x."""
        out: Tensor = self.attention(self.block(x, embedding), places)
        return out


def rotary_places(x: Tensor, width: int, longest: float = 100.0) -> tuple[Tensor, Tensor]:
    """Cosines and sines (time, width) of angles that grow with time, for x (..., time).

    The second half of the width has the angles of the first, and sines of the other sign. The
    periods go from 2 pi to 2 pi `longest` places.
    """
    half = width // 2
    place = torch.arange(x.shape[-1], dtype=torch.float32, device=x.device)
    rates = longest ** -(torch.arange(half, dtype=torch.float32, device=x.device) / half)
    angle = place[:, None] * rates
    cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    return torch.cat([cosine, cosine], dim=-1), torch.cat([-sine, sine], dim=-1)


def turned(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary places (Su et al. 2021): x (..., time, width) turned by the angles of its times.

    The product of two turned places then depends on how far apart they are.
    """
    return x * cosine + x.roll(x.shape[-1] // 2, dims=-1) * sine


def together(x: Tensor, n: int) -> Tensor:
    """n samples of each channel as channels of one: (batch, channels * n, time / n)."""
    if n == 1:
        return x
    batch, channels, time = x.shape
    return x.reshape(batch, channels, time // n, n).transpose(2, 3).reshape(batch, -1, time // n)


def apart(x: Tensor, n: int) -> Tensor:
    """What `together` put together, apart again: (batch, channels / n, time * n)."""
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
