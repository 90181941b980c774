"""The calibration of a network as plain values, to be stored beside that of another network.

Two networks of one model, its own and a distilled one, have the same conditioning but for what
their calibrations found: deviations of the prior's components and gains of target following.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gazediffusion.conditioning.conditioning import Conditioning


def calibration_of(conditioning: Conditioning) -> dict[str, Any]:
    """What calibration has changed; `with_calibration` reads it."""
    components = () if conditioning.prior is None else conditioning.prior.components
    targets = conditioning.course.targets
    return {
        "deviation": [[one.deviation.tolist() for one in task] for task in components],
        "gain": {task: list(one.generated_gain) for task, one in targets.items()},
    }


def with_calibration(conditioning: Conditioning, values: Mapping[str, Any]) -> Conditioning:
    """The same conditioning with the calibration of another network."""
    gains, prior = values["gain"], conditioning.prior
    targets = {
        task: replace(one, generated_gain=(gains[task][0], gains[task][1]))
        for task, one in conditioning.course.targets.items()
    }
    if prior is not None:
        tables = zip(prior.components, values["deviation"], strict=True)
        prior = prior.with_components(
            [
                [replace(one, deviation=np.array(table)) for one, table in zip(*both, strict=True)]
                for both in tables
            ]
        )
    return replace(conditioning, prior=prior, course=replace(conditioning.course, targets=targets))
