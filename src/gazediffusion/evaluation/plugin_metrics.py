"""Metrics of plug-ins as quantities: a number for each window, by functions of other packages."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gazediffusion.evaluation.gaze_sets import GazeSet
from gazediffusion.evaluation.quantities import PLUGINS, Quantity
from gazediffusion.plugins import Plugin, find_plugins


def metrics() -> dict[str, Plugin]:
    """The metrics of plug-ins, by name."""
    return find_plugins("metrics")


def packages_of(plugins: Mapping[str, Plugin]) -> dict[str, str]:
    """The package of each metric, as results state it."""
    return {name: one.package for name, one in plugins.items()}


def plugin_quantities(of: GazeSet, plugins: Mapping[str, Plugin]) -> dict[str, Quantity]:
    """The numbers of a set's windows by each plug-in, under `family.name`."""
    found = {}
    for name, plugin in plugins.items():
        metric = plugin.value
        given = plugin.call(metric.values, of.gaze.copy(), of.rate_hz, of.screens)
        values = plugin.call(np.asarray, given, np.float64)
        if values.shape != (len(of.gaze),):
            needed = f"values of the shape {(len(of.gaze),)} are needed, not {values.shape}"
            raise plugin.failure(ValueError(needed))
        is_defined = np.isfinite(values)
        found[f"{PLUGINS}.{name}"] = Quantity(
            name=name,
            title=str(metric.title),
            family=PLUGINS,
            unit=str(metric.unit),
            level="window",
            values=values[is_defined],
            group=of.group[is_defined],
        )
    return found
