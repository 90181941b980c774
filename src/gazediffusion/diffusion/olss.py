"""Optimal linear subspaces: a solver in few evaluations with coefficients fitted to one model.

After every step x is a linear combination of the initial noise n and of all estimates so far, as
in every linear multistep solver:

    x_k = a_k n + w_k1 D_1 + ... + w_kk D_k

A general solver has coefficients that are right for any D in the limit of many steps. Here they are
those that come closest, by least squares, to a solver with many steps from the same noise, for the
model at hand (Duan et al. 2023, "OLSS"). Every channel has coefficients of its own. The last x is
the sample. DDIM is a linear solver as well, and the one that a distilled network is trained for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from gazediffusion.device import sent
from gazediffusion.diffusion.solvers import CleanEstimate, multistep, unipc
from gazediffusion.errors import GazeError

_FINE = 0.2  # the largest step of the reference in ln sigma
_RIDGE = 1e-6  # of the mean square of each term


@dataclass(frozen=True)
class LinearSolver:
    """Noise levels from the highest, and the coefficients of each step.

    coefficients: of step k and channel c, [k][c] has a_k and w_k1 .. w_kk.
    """

    levels: tuple[float, ...]
    coefficients: tuple[tuple[tuple[float, ...], ...], ...]

    def __post_init__(self) -> None:
        if list(self.levels) != sorted(set(self.levels), reverse=True) or not self.levels:
            raise GazeError(f"the levels of a solver must decrease, not {self.levels}")
        for number, channels in enumerate(self.coefficients, start=1):
            if any(len(one) != number + 1 for one in channels):
                raise GazeError(f"step {number} of a solver has {number + 1} coefficients")
        every = [w for channels in self.coefficients for one in channels for w in one]
        if not all(map(math.isfinite, every)):
            raise GazeError("the coefficients of a solver must be finite")
        if len(self.coefficients) != len(self.levels):
            raise GazeError("a solver has as many steps as levels")

    def steps(self, denoise: CleanEstimate, noise: Tensor) -> Iterator[Tensor]:
        """Yield x (window, channel, time) after every step; the last one is the sample.

        noise: of unit variance.
        """
        x, estimates = noise * self.levels[0], []
        for level, channels in zip(self.levels, self.coefficients, strict=True):
            estimates.append(denoise(x, level))
            x = _combined(channels, [noise, *estimates])
            yield x

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {"levels": list(self.levels), "coefficients": self.coefficients}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> LinearSolver:
        """Read what `to_json` wrote."""
        coefficients = tuple(
            tuple(tuple(map(float, one)) for one in channels) for channels in values["coefficients"]
        )
        return cls(tuple(map(float, values["levels"])), coefficients)

    @classmethod
    def fit(
        cls,
        denoise: CleanEstimate,
        noise: Tensor,
        levels: Sequence[float],
        states: Sequence[Tensor],
    ) -> LinearSolver:
        """The solver at these levels that comes closest to the states after each (`reference`).

        noise (window, channel, time), of unit variance: the more windows, the better.
        """
        x, estimates = noise * levels[0], []
        steps: list[tuple[tuple[float, ...], ...]] = []
        for level, state in zip(levels, states, strict=True):
            estimates.append(denoise(x, level))
            terms = [noise, *estimates]
            channels = [
                _least_squares([one[:, c] for one in terms], state[:, c])
                for c in range(noise.shape[1])
            ]
            steps.append(tuple(tuple(float(f"{w:.6g}") for w in one) for one in channels))
            x = _combined(steps[-1], terms)
        return cls(tuple(levels), tuple(steps))

    @classmethod
    def ddim(cls, levels: Sequence[float], n_channels: int) -> LinearSolver:
        """DDIM steps from level to level, x' = r x + (1 - r) D with r the ratio of the two levels.

        The sample is the last estimate, in which known samples are in their place.
        """
        weights, steps = [levels[0]], []
        for here, there in pairwise([*levels, 0.0]):
            ratio = there / here
            weights = [*(ratio * weight for weight in weights), 1 - ratio]
            steps.append((tuple(weights),) * n_channels)
        return cls(tuple(levels), tuple(steps))


def reference(
    denoise: CleanEstimate, x: Tensor, levels: Sequence[float], highest: float, lowest: float
) -> list[Tensor]:
    """The states that follow each level's own: x at the next level, and last the sample.

    x: noise of the highest level. Between two levels there are small steps, even in ln sigma.
    """
    edges = [highest, *(level for level in levels if level < highest), lowest]
    fine: list[float] = []
    for here, there in pairwise(edges):
        n = math.ceil(math.log(here / there) / _FINE)
        fine += [here * (there / here) ** (k / n) for k in range(n)]
    fine += [lowest, 0.0]
    states = zip(fine[1:], unipc(denoise, x, fine), strict=True)
    return [state for level, state in states if level in (*levels[1:], 0.0)]


def ddim_states(
    denoise: CleanEstimate, noise: Tensor, levels: Sequence[float], at: Sequence[float]
) -> list[Tensor]:
    """As `reference`, for DDIM steps from level to level and other levels `at` along their path.

    noise: of unit variance. Between two levels a DDIM step is a straight line in sigma.
    """
    x, edges, aims, found = noise * levels[0], [*levels, 0.0], [*at[1:], 0.0], []
    steps = multistep(denoise, x, edges, order=1)
    for (here, there), after in zip(pairwise(edges), steps, strict=True):
        while aims and aims[0] >= there:
            found.append(torch.lerp(after, x, (aims.pop(0) - there) / (here - there)))
        x = after
    return found


def _combined(channels: Sequence[Sequence[float]], terms: Sequence[Tensor]) -> Tensor:
    """The sum of the terms (window, channel, time), each times its coefficient in each channel."""
    table = sent(torch.tensor(channels, dtype=terms[0].dtype), terms[0].device)
    x = terms[0] * table[:, :1]
    for term, weights in zip(terms[1:], table.T[1:], strict=True):
        x = torch.addcmul(x, term, weights[:, None])
    return x


def _least_squares(terms: Sequence[Tensor], aim: Tensor) -> list[float]:
    """Coefficients of terms (window, time) each, whose sum comes closest to the aim."""
    columns = torch.stack([one.double().flatten() for one in terms], dim=1)
    scale = columns.square().mean(dim=0).sqrt().clamp_min(1e-12)
    columns = columns / scale
    gram = columns.T @ columns / len(columns)
    right = columns.T @ aim.double().flatten() / len(columns)
    gram = gram + _RIDGE * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    found: list[float] = (torch.linalg.solve(gram, right) / scale).tolist()
    return found
