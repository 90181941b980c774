"""Solvers: from noise to clean windows in few evaluations of a denoiser D(x, sigma).

The probability-flow equation dx / d sigma = (x - D) / sigma (Karras et al. 2022, eq. 1) becomes, in
u = -ln sigma, linear in x with D as its input (Lu et al. 2022):

    x(u + h) = exp(-h) x(u) + int_0^h exp(tau - h) D(u + tau) d tau

`ddim` takes D as constant within a step, as a distilled network is trained to be used. `unipc`
replaces D by the polynomial through its latest values and corrects each step by the value at its
end, which costs no evaluation (Zhao et al. 2023, with this polynomial). `heun` is Karras'
second-order method with two evaluations a step, the reference in tests. All end at sigma = 0 with D
itself.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from gazediffusion.device import sent
from gazediffusion.errors import GazeError

# (x, sigma) to the estimate of the clean windows.
CleanEstimate = Callable[[Tensor, float], Tensor]
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def ddim(denoise: CleanEstimate, noise: Tensor, levels: Sequence[float]) -> Iterator[Tensor]:
    """Yield x after every step down `levels`, which end in 0; the last one is the sample.

    noise: of unit variance. A step is x' = r x + (1 - r) D with r the ratio of the two levels;
    every x is summed anew from the noise and all estimates.
    """
    x, estimates, weights = noise * levels[0], list[Tensor](), [levels[0]]
    for here, there in pairwise(levels):
        estimates.append(denoise(x, here))
        ratio = there / here
        weights = [*(ratio * weight for weight in weights), 1 - ratio]
        factors = sent(torch.tensor(weights, dtype=noise.dtype), noise.device)
        x = noise * factors[0]
        for estimate, factor in zip(estimates, factors[1:], strict=True):
            x = torch.addcmul(x, estimate, factor)
        yield x


def unipc(
    denoise: CleanEstimate, x: Tensor, levels: Sequence[float], order: int = 4
) -> Iterator[Tensor]:
    """As `ddim`, of a higher order; each step is made again once D at its end is known.

    x: noise times the first level. D is not evaluated again at the better place. The first steps
    have fewer values and a lower order.
    """
    if not 1 <= order <= 4:
        raise GazeError(f"the solver's order must lie between 1 and 4, not {order}")
    passed: list[float] = []
    values: list[Tensor] = []
    before = x
    for here, there in pairwise(levels):
        passed, values = [here, *passed][:order], [denoise(x, here), *values][:order]
        if there == 0:
            yield values[0]
            return
        if len(passed) > 1:
            x = _moved(before, passed[1], here, passed, values)
        before, x = x, _moved(x, here, there, passed, values)
        yield x


def _moved(
    x: Tensor, here: float, there: float, passed: Sequence[float], values: Sequence[Tensor]
) -> Tensor:
    """x from level `here` to `there`, D being the polynomial through its values at `passed`."""
    weights = step_weights(
        [-math.log(level) for level in passed], -math.log(here), -math.log(there)
    )
    return combined(x, there / here, weights, values)


def combined(
    x: Tensor, ratio: float | Tensor, weights: Iterable[float | Tensor], values: Sequence[Tensor]
) -> Tensor:
    """x times the ratio of levels plus the weighted values; tensors are of the shape of x."""
    x = x * ratio
    for weight, value in zip(weights, values, strict=True):
        x = x + weight * value
    return x


def step_weights(nodes: Sequence[float], begin: float, end: float) -> list[float]:
    """The weight of D at each node u in a step from `begin` to `end`."""
    half = (end - begin) / 2
    u = begin + half * (_POINTS + 1)
    decay = np.exp(u - end)
    weights = []
    for place, node in enumerate(nodes):
        others = [other for number, other in enumerate(nodes) if number != place]
        basis = np.ones_like(u)
        for other in others:
            basis = basis * (u - other) / (node - other)
        weights.append(float(half * np.sum(_WEIGHTS * decay * basis)))
    return weights


def heun(denoise: CleanEstimate, x: Tensor, levels: Sequence[float]) -> Iterator[Tensor]:
    """Yield x after every step down `levels`, which end in 0; two evaluations but for the last."""
    for here, there in pairwise(levels):
        slope = (x - denoise(x, here)) / here
        guess = x + (there - here) * slope
        if there > 0:
            slope = (slope + (guess - denoise(guess, there)) / there) / 2
            guess = x + (there - here) * slope
        x = guess
        yield x


class WindowNoise:
    """Gaussian noise for a batch of windows, each from a generator of its own.

    Drawn on the CPU, so that a window starts from the same noise on every device; the first noise
    is drawn when this is made, which may be well before it is needed and in another thread: row by
    row, since a second thread that computes in parallel slows down the first.
    """

    def __init__(
        self,
        generators: Sequence[np.random.Generator],
        shape: tuple[int, int],
        device: torch.device,
    ) -> None:
        self.generators, self.shape, self.device = generators, shape, device
        self.first = self._fresh()
        self._is_new = True

    @classmethod
    def joined(cls, parts: Sequence[WindowNoise]) -> WindowNoise:
        """The noise of several batches as that of one."""
        found = copy.copy(parts[0])
        found.generators = [one for part in parts for one in part.generators]
        found.first = torch.cat([part.first for part in parts])
        return found

    def draw(self) -> Tensor:
        """Fresh noise (window, channels, time) float32; `first` is what it gave first."""
        if self._is_new:
            self._is_new = False
            self.first = sent(self.first, self.device)
            return self.first
        return sent(self._fresh(), self.device)

    def _fresh(self) -> Tensor:
        noise = np.empty((len(self.generators), *self.shape), np.float32)
        for row, generator in zip(noise, self.generators, strict=True):
            generator.standard_normal(dtype=np.float32, out=row)
        return torch.from_numpy(noise)
