"""gazediffusion: learn how human eyes move from recordings and generate new, realistic gaze.

    import gazediffusion as gd

    model = gd.load("default")
    gaze = model.sample(100, task="reading", seed=0)
    gaze.save("gaze.parquet")

The names below are the public library. They are loaded when first used, so that importing the
package is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gazediffusion.data.inspection import inspect
    from gazediffusion.data.interop.frames import from_frame
    from gazediffusion.data.interop.mne import from_mne
    from gazediffusion.data.interop.pymovements import from_pymovements
    from gazediffusion.data.preparing import prepare, style_windows
    from gazediffusion.data.reading import Recordings, read
    from gazediffusion.data.recordings import EVENT_CLASSES, Recording
    from gazediffusion.data.scanpaths import (
        Scanpath,
        Targets,
        parse_position,
        parse_waypoint,
        read_scanpaths,
        read_targets,
    )
    from gazediffusion.data.simulation import simulate, write_simulation
    from gazediffusion.data.windows import Windows
    from gazediffusion.description import describe
    from gazediffusion.distillation import distill
    from gazediffusion.errors import CompleteError, GazeError, StoppedError
    from gazediffusion.evaluation.benchmark import BenchmarkRow, benchmark
    from gazediffusion.evaluation.deep_test import DeepConfig, DeepTest
    from gazediffusion.evaluation.evaluation import evaluate
    from gazediffusion.evaluation.reading import evaluate_files, real_windows
    from gazediffusion.evaluation.result import Evaluation
    from gazediffusion.generation.baselines import Baseline, fit_baseline
    from gazediffusion.generation.dataset import Parts
    from gazediffusion.model import Model, load, train
    from gazediffusion.network.pretrained import list_models
    from gazediffusion.network.recipes import RECIPES, Recipe
    from gazediffusion.plotting.gaze import plot_recording, plot_windows
    from gazediffusion.plugins import Plugin, find_plugins
    from gazediffusion.reproduction.build import reproduce
    from gazediffusion.scoring.scores import Scores, calibrate_scores, score
    from gazediffusion.screen import Screen
    from gazediffusion.settings import (
        CleaningConfig,
        EvaluationConfig,
        PrepareConfig,
        SimulationConfig,
    )
    from gazediffusion.studies import augment, fill, label
    from gazediffusion.synthesizer import Synthesizer

_HOME = {
    "Baseline": "generation.baselines",
    "BenchmarkRow": "evaluation.benchmark",
    "CompleteError": "errors",
    "CleaningConfig": "settings",
    "DeepConfig": "evaluation.deep_test",
    "DeepTest": "evaluation.deep_test",
    "EVENT_CLASSES": "data.recordings",
    "Evaluation": "evaluation.result",
    "EvaluationConfig": "settings",
    "GazeError": "errors",
    "Model": "model",
    "Plugin": "plugins",
    "Parts": "generation.dataset",
    "PrepareConfig": "settings",
    "RECIPES": "network.recipes",
    "Recipe": "network.recipes",
    "Recording": "data.recordings",
    "Recordings": "data.reading",
    "Scanpath": "data.scanpaths",
    "Scores": "scoring.scores",
    "Screen": "screen",
    "SimulationConfig": "settings",
    "StoppedError": "errors",
    "Synthesizer": "synthesizer",
    "Targets": "data.scanpaths",
    "Windows": "data.windows",
    "augment": "studies",
    "benchmark": "evaluation.benchmark",
    "calibrate_scores": "scoring.scores",
    "describe": "description",
    "distill": "distillation",
    "evaluate": "evaluation.evaluation",
    "evaluate_files": "evaluation.reading",
    "fill": "studies",
    "find_plugins": "plugins",
    "fit_baseline": "generation.baselines",
    "from_frame": "data.interop.frames",
    "from_mne": "data.interop.mne",
    "from_pymovements": "data.interop.pymovements",
    "inspect": "data.inspection",
    "label": "studies",
    "list_models": "network.pretrained",
    "load": "model",
    "parse_position": "data.scanpaths",
    "parse_waypoint": "data.scanpaths",
    "plot_recording": "plotting.gaze",
    "plot_windows": "plotting.gaze",
    "prepare": "data.preparing",
    "read": "data.reading",
    "read_scanpaths": "data.scanpaths",
    "read_targets": "data.scanpaths",
    "real_windows": "evaluation.reading",
    "reproduce": "reproduction.build",
    "score": "scoring.scores",
    "simulate": "data.simulation",
    "style_windows": "data.preparing",
    "train": "model",
    "write_simulation": "data.simulation",
    "write_study": "data.study",
}

__all__ = [  # noqa: RUF022  # in the order of the data's way through the package
    "__version__",
    "GazeError",
    "StoppedError",
    "CompleteError",
    "Screen",
    "Recording",
    "EVENT_CLASSES",
    "Recordings",
    "read",
    "write_study",
    "from_frame",
    "from_pymovements",
    "from_mne",
    "CleaningConfig",
    "inspect",
    "PrepareConfig",
    "prepare",
    "Windows",
    "style_windows",
    "Scanpath",
    "read_scanpaths",
    "Targets",
    "read_targets",
    "parse_waypoint",
    "parse_position",
    "SimulationConfig",
    "simulate",
    "write_simulation",
    "RECIPES",
    "Recipe",
    "train",
    "list_models",
    "load",
    "Model",
    "Synthesizer",
    "Parts",
    "fill",
    "augment",
    "score",
    "calibrate_scores",
    "Scores",
    "label",
    "fit_baseline",
    "Baseline",
    "EvaluationConfig",
    "DeepConfig",
    "real_windows",
    "evaluate",
    "evaluate_files",
    "Evaluation",
    "DeepTest",
    "benchmark",
    "BenchmarkRow",
    "plot_recording",
    "plot_windows",
    "describe",
    "distill",
    "find_plugins",
    "Plugin",
    "reproduce",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gazediffusion' has no attribute {name!r}")
    return getattr(import_module(f"gazediffusion.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
