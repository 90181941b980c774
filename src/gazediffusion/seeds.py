"""Random streams: every draw is a function of a seed, a purpose and a place, and no two share one.

A stream is named by its `Stream` and its place (window, step, recording ...). The key of a stream
is a 128-bit hash of all of them, for numpy's counter-based Philox generator: nothing is padded or
cut, a new purpose moves no other, and the stream is the same on every machine. Only this module
makes generators of random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto, unique
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# The version of all streams. Results are stamped with it; it is raised when any stream changes.
STREAMS = 2
_SOBOL_BITS = 30


@unique
class Stream(Enum):
    """What random numbers are for. The name is part of the key; the order does not matter."""

    NOISE = auto()  # that generated windows start from
    CONDITION = auto()  # drawn from the prior
    STYLE = auto()  # of participants
    TARGETS = auto()  # of long gaze that follows a target
    BEGINNING = auto()
    PAGE = auto()
    FIXATION_DURATIONS = auto()  # of scanpaths without durations
    TRACK_LOSS = auto()
    FILLING = auto()
    AUGMENTATION = auto()
    BASELINE = auto()
    SIMULATION = auto()
    RESOLUTION = auto()  # values spread over the cells of a tracker's grid
    WEIGHTS = auto()  # of a new network
    ORDER = auto()  # of training windows
    TRAINING_STEP = auto()
    MASKS = auto()
    STATISTICS = auto()
    VALIDATION = auto()
    DISTILLATION = auto()
    LIKELIHOOD = auto()
    DENOISING = auto()
    SCORE = auto()
    EVALUATION = auto()
    REPRODUCTION = auto()
    EXAMPLE = auto()  # of doctests, examples, benchmarks and experiments


def stream_key(seed: int, stream: Stream, *place: int | str) -> int:
    """The 128-bit key of a stream."""
    words = (int(seed), stream.name, *(one if isinstance(one, str) else int(one) for one in place))
    return int.from_bytes(blake2b(repr(words).encode(), digest_size=16).digest(), "little")


def rng(seed: int, stream: Stream, *place: int | str) -> np.random.Generator:
    """The generator of a stream.

    >>> bool((rng(0, Stream.NOISE, 7).random(3) == rng(0, Stream.NOISE, 7).random(3)).all())
    True
    >>> bool((rng(0, Stream.NOISE, 7).random(3) == rng(0, Stream.NOISE, 7, 0).random(3)).any())
    False
    """
    return np.random.Generator(np.random.Philox(key=stream_key(seed, stream, *place)))


def split_generator(seed: int) -> np.random.Generator:
    """The generator that participants are split by.

    It is no `Stream`: published weights were trained on these splits, so that no version of the
    streams may move a participant from the held-out ones to those trained on.
    """
    return np.random.default_rng(seed)


def derived_seed(seed: int, stream: Stream, *place: int | str) -> int:
    """A seed of 63 bits for libraries that take a number."""
    return stream_key(seed, stream, *place) >> 65


class DeviceDraws:
    """Random tensors of a stream on a device.

    On a CPU they are drawn by `rng`. A GPU draws them itself, faster than they could be sent; they
    are then the same on devices of one kind alone.
    """

    def __init__(self, device: torch.device, seed: int, stream: Stream, *place: int | str) -> None:
        import torch

        self.device = device
        self._host = rng(seed, stream, *place)
        self._own: torch.Generator | None = None
        if device.type != "cpu":
            self._own = torch.Generator(device)
            self._own.manual_seed(derived_seed(seed, stream, *place))

    def uniform(self, *shape: int) -> Tensor:
        """Uniform in [0, 1), float32."""
        import torch

        if self._own is not None:
            return torch.rand(shape, generator=self._own, device=self.device)
        return torch.from_numpy(self._host.random(shape, np.float32))

    def normal(self, *shape: int) -> Tensor:
        """Standard normal, float32."""
        import torch

        if self._own is not None:
            return torch.randn(shape, generator=self._own, device=self.device)
        return torch.from_numpy(self._host.standard_normal(shape, np.float32))

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """Uniform in low..high-1, int64."""
        import torch

        if self._own is not None:
            return torch.randint(low, high, shape, generator=self._own, device=self.device)
        return torch.from_numpy(self._host.integers(low, high, shape))

    def permutation(self, n: int) -> Tensor:
        """0..n-1 in random order, on the device; the same on every device."""
        import torch

        return torch.from_numpy(self._host.permutation(n)).to(self.device)


@contextmanager
def torch_seeded(
    seed: int, stream: Stream, *place: int | str, devices: Sequence[torch.device] = ()
) -> Iterator[None]:
    """Within it, layers of torch are initialized from this stream; torch's own state is kept."""
    import torch

    with torch.random.fork_rng(devices=list(devices)):
        torch.manual_seed(derived_seed(seed, stream, *place))
        yield


def sobol_points(
    first: int, stop: int, width: int, seed: int, stream: Stream, *place: int | str
) -> NDArray[np.float64]:
    """Points first..stop-1 of a stream's scrambled Sobol sequence, (point, width).

    Scrambling is by random lower-triangular matrices and a digital shift (Matousek 1998): each
    point is uniform in the unit cube, and means over the first n points have a smaller variance
    than those over independent draws. Any point is computed by itself, from its number's bits.
    """
    directions, shift = _scrambled_directions(width, stream_key(seed, stream, *place))
    number = np.arange(first, stop, dtype=np.int64)
    gray = number ^ (number >> 1)
    points = np.broadcast_to(shift, (len(number), width)).copy()
    for bit in range(max(1, int(stop)).bit_length()):
        points ^= ((gray >> bit) & 1)[:, None] * directions[bit]
    return np.asarray((points + 0.5) * 2.0**-_SOBOL_BITS, np.float64)


@lru_cache(maxsize=64)
def _scrambled_directions(width: int, key: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Direction numbers (bit, dimension) after scrambling, and the shift (dimension,)."""
    import torch

    engine = torch.quasirandom.SobolEngine(width)  # type: ignore[no-untyped-call]
    plain = engine.sobolstate.numpy().astype(np.int64).T
    generator = np.random.Generator(np.random.Philox(key=key))
    places = np.arange(_SOBOL_BITS)
    rows = generator.integers(0, 2, (width, _SOBOL_BITS, _SOBOL_BITS))
    rows = np.tril(rows, -1) + np.eye(_SOBOL_BITS, dtype=np.int64)  # of bits from the highest down
    bits = (plain[..., None] >> places[::-1]) & 1  # (bit, dimension, place from the highest)
    scrambled = np.einsum("drp,bdp->bdr", rows, bits) % 2
    weights = np.int64(1) << places[::-1]
    return scrambled @ weights, generator.integers(0, 2**_SOBOL_BITS, width)


def categorical_draw(
    weights: NDArray[np.float64], uniforms: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The category of each uniform number by inverse transform, and the uniform left within it.

    weights (category,) need not sum to one; uniforms (n,) lie in [0, 1). Both results are (n,).
    """
    edges = np.cumsum(weights)
    scaled = uniforms * edges[-1]
    category = np.searchsorted(edges[:-1], scaled, side="right")
    return category, (scaled - edges[category]) / weights[category] + 1


def quantile_draw(quantiles: Sequence[float], uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values of uniform numbers by inverse transform, linear between quantiles at equal levels.

    >>> quantile_draw([0.0, 1.0, 4.0], np.array([0.25, 0.75])).tolist()
    [0.5, 2.5]
    """
    return np.interp(uniforms, np.linspace(0.0, 1.0, len(quantiles)), quantiles)
