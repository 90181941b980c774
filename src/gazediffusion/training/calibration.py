"""Calibration: the condition is adjusted until generated statistics match their targets.

First the solver of quality fast is fitted (fitted_solver.py).

A trained network under-responds to its conditioning (gain below 1). Windows of every task are
generated and measured, and the response is inverted (conditioning/response.py), in several rounds,
because statistics depend on each other. No recordings are needed: generated statistics are compared
with the prior they were drawn from. The result goes into the run's conditioning tables. A stopped
calibration resumes at the batch it had reached. Last, the gain of gaze that follows a target is
measured, by windows with drawn targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gazediffusion.conditioning import Conditioning
from gazediffusion.conditioning.course import Course
from gazediffusion.conditioning.targets import response_gain
from gazediffusion.diffusion.olss import LinearSolver
from gazediffusion.errors import GazeError, StoppedError
from gazediffusion.generation.constraints import Constraints
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.models.checkpoint import (
    Run,
    RunConfig,
    load_run,
    load_tensors,
    save_tensors,
    write_config,
)
from gazediffusion.training.fitted_solver import fitted_solver
from gazediffusion.urls import shown

WINDOWS = 128  # of each task and round
ROUNDS = 4
STATE = "calibration.safetensors"
OnWindows = Callable[[float, int], None]
_SEED = 1000


def is_due(config: RunConfig) -> bool:
    """Whether a run has summary statistics that were never calibrated."""
    return not config.conditioning.is_calibrated


@dataclass
class _State:
    """How far a calibration is: the round, and measured statistics (window, statistic) by task."""

    conditioning: Conditioning
    solver: LinearSolver | None
    round: int = 0
    measured: list[Tensor] = field(default_factory=list)


def calibrate(
    folder: Path,
    device: torch.device,
    n: int = WINDOWS,
    rounds: int = ROUNDS,
    progress: OnWindows = lambda done, total: None,
    should_stop: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Calibrate a trained run by n windows of each task and round, and write its tables.

    progress(done, total): in windows. say: receives a line at the start. When `should_stop` returns
    True, the state is saved and StoppedError raised; the same call resumes.
    """
    if n < 3 or rounds < 1:
        raise GazeError(f"`n` must be 3 or more and `rounds` 1 or more, not {n} and {rounds}")
    run = load_run(folder, device=device)
    tasks = run.config.conditioning.tasks
    if run.config.conditioning.prior is None:
        raise GazeError("this model is not conditioned on summary statistics", path=folder)
    total = rounds * n * len(tasks)
    state = _restored(run, n, rounds)
    is_resumed = state.round or state.measured
    first = "" if run.config.recipe.is_distilled else "its solver, then "
    say(
        f"resuming the calibration of {shown(folder)} in round {state.round + 1} of {rounds}"
        if is_resumed
        else f"calibrating {shown(folder)}: {first}{n} windows of each task in {rounds} rounds"
    )
    if not is_resumed:
        state.solver = fitted_solver(run, n)
    run = replace(run, config=replace(run.config, solver=state.solver))
    while state.round < rounds:
        here = replace(run, config=replace(run.config, conditioning=state.conditioning))
        draws = [state.conditioning.draw(0, n, _SEED, task) for task in tasks]
        for number, task in enumerate(tasks):
            if len(state.measured) == number:
                state.measured.append(torch.empty(0))
            done = len(state.measured[number])
            if done == n:
                continue
            before = (state.round * len(tasks) + number) * n
            generator = DiffusionGenerator.of_quality(here, "default", task=task)
            for piece in generator.pieces(done, n, _SEED, _counted(progress, before, total)):
                found = state.conditioning.measure(torch.from_numpy(piece), run.config.rate_hz)
                assert found is not None
                rows = state.measured[number]
                state.measured[number] = torch.cat([rows, found]) if len(rows) else found
                if should_stop():
                    _save(run, state, n, rounds)
                    raise StoppedError(
                        f"calibration stopped in round {state.round + 1} of {rounds}; "
                        f"{shown(folder)} is saved"
                    )
        after = state.conditioning.calibrate(draws, state.measured)
        state = _State(after, state.solver, state.round + 1)
        _save(run, state, n, rounds)
    run = replace(run, config=replace(run.config, conditioning=state.conditioning))
    conditioning = replace(state.conditioning, course=calibrated_course(run, n))
    # The configuration too: that of an earlier version had the tables in it.
    write_config(folder, replace(run.config, conditioning=conditioning))
    (folder / STATE).unlink(missing_ok=True)


def calibrated_course(run: Run, n: int = WINDOWS) -> Course:
    """The course of a run with the gain of gaze that n windows of each task with a target have."""
    config = run.config
    course, length, rate_hz = config.conditioning.course, config.length, config.rate_hz
    calibrated = {}
    for task, prior in course.targets.items():
        uncorrected = replace(prior, generated_gain=prior.recorded_gain)
        here = replace(course, targets={task: uncorrected})
        targets = here.draw([task] * n, 0, length, rate_hz, _SEED)["targets"]
        generator = DiffusionGenerator.of_quality(
            replace(run, config=_with_course(config, here)),
            "default",
            task=task,
            constraints=Constraints(targets=targets),
        )
        gaze = np.concatenate(list(generator.pieces(0, n, _SEED)))
        gain = response_gain(gaze, targets, rate_hz)
        calibrated[task] = replace(prior, generated_gain=gain)
    return replace(course, targets=calibrated)


def _with_course(config: RunConfig, course: Course) -> RunConfig:
    return replace(config, conditioning=replace(config.conditioning, course=course))


def _counted(progress: OnWindows, before: int, total: int) -> Callable[[float], None]:
    return lambda done: progress(before + done, total)


def _save(run: Run, state: _State, n: int, rounds: int) -> None:
    header = {"round": state.round, "n": n, "rounds": rounds, "weights_sha256": run.weights_sha256}
    header["solver"] = state.solver.to_json() if state.solver else None
    tensors = {f"prior.{name}": table for name, table in state.conditioning.to_tensors().items()}
    tensors |= {f"measured.{k}": rows for k, rows in enumerate(state.measured)}
    save_tensors(run.path / STATE, tensors, header)


def _restored(run: Run, n: int, rounds: int) -> _State:
    """The saved state of the same calibration, or a new one."""
    path, conditioning = run.path / STATE, run.config.conditioning
    if path.is_file():
        tensors, header = load_tensors(path)
        if (header["n"], header["rounds"], header["weights_sha256"]) == (
            n,
            rounds,
            run.weights_sha256,
        ):
            tables = {k[6:]: table for k, table in tensors.items() if k.startswith("prior.")}
            measured = [tensors[f"measured.{k}"] for k in range(len(tensors) - len(tables))]
            restored = Conditioning.from_json(conditioning.to_json(), tables)
            solver = LinearSolver.from_json(header["solver"]) if header.get("solver") else None
            return _State(restored, solver, header["round"], measured)
    return _State(conditioning.uncalibrated(), None)
