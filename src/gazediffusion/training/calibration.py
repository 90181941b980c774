"""Calibration: what a trained network misses of its manner, and telling it that much more.

A network obeys what it is told a little timidly: windows wanted with many saccades get one fewer.
Windows are made of every task and measured; what is told of each number is then shifted and spread
(`Manners.corrected`), and again a few times, since numbers depend on each other and some are heeded
by half. That goes into the run's configuration. Needs no recordings: the model is compared with
what it was told.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from gazediffusion.conditioning.manner import Manners
from gazediffusion.errors import GazeError
from gazediffusion.files import write_json
from gazediffusion.generation.generator import DiffusionGenerator, Progress
from gazediffusion.models.checkpoint import Run, RunConfig, load_run, read_config

WINDOWS = 128  # of each task
ROUNDS = 4
_SEED = 1000


def is_due(config: RunConfig) -> bool:
    """Whether a run is told manners that were never corrected."""
    return config.manners is not None and config.manners == config.manners.uncorrected()


def n_made(config: RunConfig, n: int = WINDOWS, rounds: int = ROUNDS) -> int:
    """How many windows `calibrate` makes in all."""
    return rounds * n * len(config.tasks)


def calibrate(
    folder: Path,
    device: torch.device,
    n: int = WINDOWS,
    rounds: int = ROUNDS,
    progress: Progress = lambda done: None,
) -> Manners:
    """Correct the manners of a trained run, from n windows of each task, and write them down.

    progress: hears how many windows are done, of `n_made`.
    """
    run = load_run(folder, device=device)
    if run.config.manners is None:
        raise GazeError("this model is told no manner", path=folder)
    manners = run.config.manners.uncorrected()
    for number in range(rounds):
        before = number * n * len(run.config.tasks)
        told = replace(run, config=replace(run.config, manners=manners))
        manners = _corrected(told, manners, n, partial(_heard, progress, before))
    write_json(folder / "config.json", replace(run.config, manners=manners).to_json())
    return manners


def calibrated(folder: Path, device: torch.device, n: int = WINDOWS) -> Run:
    """The trained run of a folder; one that was never corrected is corrected first."""
    if is_due(read_config(folder)):
        calibrate(folder, device, n)
    return load_run(folder, device=device)


def _corrected(run: Run, manners: Manners, n: int, progress: Progress) -> Manners:
    """The manners a run has, corrected by what it makes of them."""
    kinds, wanted, made = [], [], []
    for number, task in enumerate(run.config.tasks):
        generator = DiffusionGenerator.of_quality(run, "default", task=task)
        told = partial(_heard, progress, number * n)
        gaze = np.concatenate(list(generator.pieces(0, n, _SEED, told)))
        drawn = manners.drawn([number] * n, generator.places(0, n, _SEED)[:, 1:])
        wanted.append(drawn[0])
        kinds.append(drawn[1])
        made.append(manners.told(torch.from_numpy(gaze), run.config.rate_hz))
    return manners.corrected(kinds, wanted, made)


def _heard(progress: Progress, before: int, done: float) -> None:
    progress(before + done)
