"""Solvers: from noise to clean windows in few evaluations of a denoiser D(x, sigma).

The probability-flow equation dx / d sigma = (x - D) / sigma (Karras et al. 2022, eq. 1) becomes, in
u = -ln sigma, linear in x with D as its input (Lu et al. 2022):

    x(u + h) = exp(-h) x(u) + int_0^h exp(tau - h) D(u + tau) d tau

`multistep` replaces D by the polynomial through its latest values, so that every step costs one
evaluation: order 1 is DDIM, order 2 is DPM-Solver++(2M). `heun` is Karras' second-order method with
two evaluations a step. Both end at sigma = 0 with D itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
from torch import Tensor

from gazediffusion.errors import GazeError

Solver = Literal["multistep", "heun"]
# (x, sigma) to the estimate of the clean windows.
CleanEstimate = Callable[[Tensor, float], Tensor]
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def multistep(
    denoise: CleanEstimate, x: Tensor, levels: Sequence[float], order: int = 4
) -> Iterator[Tensor]:
    """Yield x after every step down `levels`, which end in 0; the last one is the sample.

    x: noise times the first level. The first steps have fewer values to go on, and a lower order.
    """
    if not 1 <= order <= 4:
        raise GazeError(f"the solver's order must lie between 1 and 4, not {order}")
    nodes: list[float] = []
    values: list[Tensor] = []
    for here, there in pairwise(levels):
        nodes = [-math.log(here), *nodes][:order]
        values = [denoise(x, here), *values][:order]
        if there == 0:
            x = values[0]
        else:
            weights = step_weights(nodes, -math.log(there))
            x = x * (there / here)
            for weight, value in zip(weights, values, strict=True):
                x = x + weight * value
        yield x


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


def evaluations(solver: Solver, n_steps: int) -> int:
    """How often the denoiser is asked."""
    return n_steps if solver == "multistep" else 2 * n_steps - 1


def step_weights(nodes: Sequence[float], end: float) -> list[float]:
    """The weight of D at each node u (the latest first) in a step from nodes[0] to `end`."""
    begin = nodes[0]
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
