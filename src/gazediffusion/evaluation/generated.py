"""What an evaluation takes from a model: windows with matched tasks, and bottleneck features."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.gaze_sets import MIN_WINDOWS
from gazediffusion.evaluation.recorded_sets import with_task_names
from gazediffusion.evaluation.set_tests import FeatureMap, Progress
from gazediffusion.evaluation.summary import Like
from gazediffusion.models.pretrained import HUB_PREFIX, pretrained_models

if TYPE_CHECKING:
    from gazediffusion.generation.generator import DiffusionGenerator
    from gazediffusion.models.checkpoint import Run

MAX_GENERATED = 2500


def is_model(path: Path | str) -> bool:
    """Whether this is a run folder, or the name of a packaged model or of one of the hub."""
    if Path(path).exists():
        return (Path(path) / "config.json").is_file()
    return str(path) in ("default", *pretrained_models()) or str(path).startswith(HUB_PREFIX)


def generated_windows(
    run: Run, like: Like, n: int | None, reference: Windows | None, progress: Progress
) -> Windows:
    """Windows of a model as an evaluation needs them: their number and tasks.

    like: the real windows, or a summary of them; reference: the training participants' windows.
    """
    if reference is not None:
        n = max(MIN_WINDOWS, min(n or MAX_GENERATED, len(reference) // 2))
        return matched_windows(run, reference, n, progress=progress)
    if isinstance(like, Windows):
        return matched_windows(run, like, n or len(like), progress=progress)
    from gazediffusion.generation.generator import DiffusionGenerator

    task = getattr(like, "task", None)
    known = task if task in run.config.conditioning.tasks else None
    generator = DiffusionGenerator.of_quality(run, "default", task=known)
    return _sampled(generator, n or len(like), 0, progress)


def fitted_windows(name: str, n: int | None, reference: Windows | None) -> Windows:
    """Windows of a baseline or a plug-in's generator, fitted to the training participants."""
    if reference is None:
        raise GazeError(
            f"{name} is fitted to training participants, and there are none",
            remedy="give `reference`, or a windows file with held-out participants as `real`",
        )
    from gazediffusion.generation.baselines import fit_baseline

    n = max(MIN_WINDOWS, min(n or MAX_GENERATED, len(reference) // 2))
    return fit_baseline(name, reference).sample(n)


def matched_windows(
    run: Run,
    reference: Windows,
    n: int,
    seed: int = 0,
    quality: str = "default",
    progress: Progress = lambda name: None,
    **settings: Any,
) -> Windows:
    """n generated windows with the reference windows' shares of tasks.

    A model that does not know one of the tasks generates its own mixture of tasks.
    """
    from gazediffusion.generation.generator import DiffusionGenerator

    known = run.config.conditioning.tasks
    reference = with_task_names(reference, known)
    n_task = np.bincount(reference.task, minlength=len(reference.tasks))
    stops = np.floor(np.cumsum(n_task) / n_task.sum() * n + 0.5).astype(int)
    is_matched = all(task in known for task, k in zip(reference.tasks, n_task, strict=True) if k)
    if known and not is_matched:
        stops = np.array([n])
    parts = []
    for number, (first, stop) in enumerate(pairwise([0, *stops.tolist()])):
        if stop > first:
            task = reference.tasks[number] if known and is_matched else None
            generator = DiffusionGenerator.of_quality(run, quality, task=task, **settings)
            parts.append(_sampled(generator, stop - first, seed + number, progress))
    return Windows.from_array(
        np.concatenate([part.cut() for part in parts]),
        run.config.rate_hz,
        [part.screens[k] for part in parts for k in part.screen_index],
        tasks=[part.tasks[k] for part in parts for k in part.task],
    )


def _sampled(generator: DiffusionGenerator, n: int, seed: int, progress: Progress) -> Windows:
    """The first n windows of a seed, with progress."""
    pieces: list[NDArray[np.float32]] = []
    for piece in generator.pieces(0, n, seed):
        pieces.append(piece)
        whose = f" of {generator.task}" if generator.task else ""
        progress(f"generating{whose}: {sum(map(len, pieces))} of {n} windows")
    return generator.as_windows(np.concatenate(pieces), seed)


def bottleneck_features(run: Run, batch_size: int = 16) -> FeatureMap:
    """Windows (window, 2, time) to bottleneck features (window, width) of a position network.

    The clean window is given to the network at the first diffusion step, t = 1, and the
    bottleneck's output is averaged over time: 512 numbers for the paper's network.
    """
    import torch

    if run.config.recipe.representation != "position":
        raise GazeError("`feature_model` must be a position model", path=run.path)
    device = next(run.network.parameters()).device

    @torch.no_grad()
    def features(gaze: np.ndarray) -> np.ndarray:
        rows = []
        for first in range(0, len(gaze), batch_size):
            x = torch.from_numpy(np.ascontiguousarray(gaze[first : first + batch_size])).to(device)
            t = torch.ones(len(x), dtype=torch.long, device=device)
            rows.append(run.network.features(x, t).mean(dim=2).double().cpu().numpy())
        return np.concatenate(rows)

    return features
