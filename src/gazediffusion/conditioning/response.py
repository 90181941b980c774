"""The response of a network to its summary statistics, and the calibration that inverts it.

Generated statistics follow their condition on a line: a gain, usually below 1, an offset and a
scatter. Calibration shifts and stretches the condition so that generated statistics have the mean
and the between-window variance of their targets. Statistics depend on each other and some gains
are near 0.5, so the estimate is repeated (training/calibration.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gazediffusion.conditioning.prior import Component, Prior, five_digits
from gazediffusion.conditioning.statistics import MEDIANS, TRACKER

Floats = NDArray[np.float64]
_GAINS, _STRETCHES = (0.5, 1.0), (0.8, 1.25)  # estimates and their product are clipped to these
_FARTHEST = 1.5  # standard deviations that a condition's mean may lie from the targets' mean
_FEWEST_WINDOWS = 3


def calibrated(
    prior: Prior,
    components: Sequence[Sequence[int]],
    targets: Sequence[Tensor],
    generated: Sequence[Tensor],
) -> Prior:
    """The prior with new deviations, from windows that were generated with its present ones.

    For each task: the windows' components, and targets and generated statistics (window,
    statistic), standardized. Of the tracker's statistics only the mean is calibrated: recordings
    come in few noise levels, and none lies beyond the noisiest. Medians of coarse gaze are not
    calibrated, because they take discrete values.
    """
    tasks = []
    given = zip(prior.components, components, targets, generated, strict=True)
    for of_task, numbers, x, y in given:
        updated = list(of_task)
        for number, component in enumerate(of_task):
            rows = torch.tensor(numbers) == number
            if rows.sum() >= _FEWEST_WINDOWS:
                deviation = _deviation(prior.names, component, x[rows], y[rows])
                updated[number] = replace(component, deviation=deviation)
        tasks.append(updated)
    return prior.with_components(tasks)


def _deviation(
    names: Sequence[str], component: Component, targets: Tensor, generated: Tensor
) -> Floats:
    """Intercept and slope (statistic, 2) of the deviation, from windows of one component."""
    lines = []
    x, y = targets.double().numpy(), generated.double().numpy()
    for k, (name, (intercept, slope)) in enumerate(
        zip(names, component.deviation.tolist(), strict=True)
    ):
        if component.step.any() and name in MEDIANS:
            lines.append((0.0, 0.0))
            continue
        mean, stretch = float(x[:, k].mean()), 1 - slope
        gain, further = _response(x[:, k], y[:, k])
        missing = mean - float(y[:, k].mean())
        farthest = _FARTHEST * float(x[:, k].std())
        shift = float(np.clip(-slope * mean - intercept + missing / gain, -farthest, farthest))
        if name not in TRACKER:
            stretch = float(np.clip(stretch * further, *_STRETCHES))
        lines.append(((stretch - 1) * mean - shift, 1 - stretch))
    return five_digits(np.array(lines))


def _response(targets: Floats, generated: Floats) -> tuple[float, float]:
    """The gain, and the factor by which targets must be stretched.

    Generated values scatter around a line through the targets; line and scatter together are to
    have the variance of the targets.
    """
    covariance = np.cov(targets, generated)
    variance, common = float(covariance[0, 0]), float(covariance[0, 1])
    if variance < 1e-6 or common < 0.1 * variance:
        return 1.0, 1.0  # constant targets, or no response
    gain = common / variance
    scatter = float(covariance[1, 1]) - gain * common
    explained = max(variance - scatter, 0.0)
    stretch = (explained / variance) ** 0.5 / gain
    return float(np.clip(gain, *_GAINS)), float(np.clip(stretch, *_STRETCHES))
