"""gazediffusion: learn how human eyes move and generate new, realistic gaze.

The names below are the public library. They are loaded when first used, so that importing the
package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gazediffusion.version import __version__

if TYPE_CHECKING:
    from gazediffusion.baselines import fit_baseline
    from gazediffusion.checkpoint import Run, load_run
    from gazediffusion.cleaning import CleaningConfig
    from gazediffusion.errors import GazeError
    from gazediffusion.evaluation import EvaluationConfig, evaluate
    from gazediffusion.generator import DiffusionGenerator
    from gazediffusion.geometry import Screen
    from gazediffusion.inspection import inspect
    from gazediffusion.preparing import PrepareConfig, prepare
    from gazediffusion.readers import ReadOptions, find_sources, read_recordings
    from gazediffusion.recipes import RECIPES, Recipe
    from gazediffusion.recordings import Recording
    from gazediffusion.report import write_report
    from gazediffusion.simulation import SimulationConfig, simulate, write_simulation
    from gazediffusion.synthetic import SetConfig, write_set
    from gazediffusion.training import train
    from gazediffusion.windows import Windows

_HOME = {
    "CleaningConfig": "cleaning",
    "DiffusionGenerator": "generator",
    "EvaluationConfig": "evaluation",
    "GazeError": "errors",
    "PrepareConfig": "preparing",
    "RECIPES": "recipes",
    "ReadOptions": "readers",
    "Recipe": "recipes",
    "Recording": "recordings",
    "Run": "checkpoint",
    "Screen": "geometry",
    "SetConfig": "synthetic",
    "SimulationConfig": "simulation",
    "Windows": "windows",
    "evaluate": "evaluation",
    "find_sources": "readers",
    "fit_baseline": "baselines",
    "inspect": "inspection",
    "load_run": "checkpoint",
    "prepare": "preparing",
    "read_recordings": "readers",
    "simulate": "simulation",
    "train": "training",
    "write_report": "report",
    "write_set": "synthetic",
    "write_simulation": "simulation",
}

__all__ = [  # noqa: RUF022  # in the order of the data's way through the package
    "__version__",
    "GazeError",
    "Screen",
    "Recording",
    "ReadOptions",
    "find_sources",
    "read_recordings",
    "CleaningConfig",
    "inspect",
    "PrepareConfig",
    "prepare",
    "Windows",
    "RECIPES",
    "Recipe",
    "train",
    "Run",
    "load_run",
    "DiffusionGenerator",
    "SetConfig",
    "write_set",
    "fit_baseline",
    "EvaluationConfig",
    "evaluate",
    "write_report",
    "SimulationConfig",
    "simulate",
    "write_simulation",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gazediffusion' has no attribute {name!r}")
    return getattr(import_module(f"gazediffusion.{_HOME[name]}"), name)
