"""gazediffusion: learn how human eyes move and generate new, realistic gaze.

The names below are the public library. They are loaded when first used, so that importing the
package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gazediffusion.version import __version__

if TYPE_CHECKING:
    from gazediffusion.data.cleaning import CleaningConfig
    from gazediffusion.data.inspection import inspect
    from gazediffusion.data.preparing import PrepareConfig, prepare
    from gazediffusion.data.readers import ReadOptions, find_sources, read_recordings
    from gazediffusion.data.recordings import Recording
    from gazediffusion.data.simulation import SimulationConfig, simulate, write_simulation
    from gazediffusion.data.windows import Windows
    from gazediffusion.errors import GazeError
    from gazediffusion.evaluation.evaluation import evaluate
    from gazediffusion.evaluation.loading import evaluate_files
    from gazediffusion.evaluation.result import Evaluation, EvaluationConfig
    from gazediffusion.generation.baselines import fit_baseline
    from gazediffusion.generation.generator import DiffusionGenerator
    from gazediffusion.generation.sets import SetConfig, write_set
    from gazediffusion.geometry import Screen
    from gazediffusion.models.checkpoint import Run, load_run
    from gazediffusion.models.recipes import RECIPES, Recipe
    from gazediffusion.training.loop import train

_HOME = {
    "CleaningConfig": "data.cleaning",
    "DiffusionGenerator": "generation.generator",
    "Evaluation": "evaluation.result",
    "EvaluationConfig": "evaluation.result",
    "GazeError": "errors",
    "PrepareConfig": "data.preparing",
    "RECIPES": "models.recipes",
    "ReadOptions": "data.readers",
    "Recipe": "models.recipes",
    "Recording": "data.recordings",
    "Run": "models.checkpoint",
    "Screen": "geometry",
    "SetConfig": "generation.sets",
    "SimulationConfig": "data.simulation",
    "Windows": "data.windows",
    "evaluate": "evaluation.evaluation",
    "evaluate_files": "evaluation.loading",
    "find_sources": "data.readers",
    "fit_baseline": "generation.baselines",
    "inspect": "data.inspection",
    "load_run": "models.checkpoint",
    "prepare": "data.preparing",
    "read_recordings": "data.readers",
    "simulate": "data.simulation",
    "train": "training.loop",
    "write_set": "generation.sets",
    "write_simulation": "data.simulation",
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
    "Evaluation",
    "evaluate",
    "evaluate_files",
    "SimulationConfig",
    "simulate",
    "write_simulation",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gazediffusion' has no attribute {name!r}")
    return getattr(import_module(f"gazediffusion.{_HOME[name]}"), name)
