"""Calibration: the condition is adjusted until generated statistics match their targets.

A trained network under-responds to its conditioning (gain below 1). Windows of every task are
generated and measured, and the response is inverted (conditioning/response.py), in several rounds,
because statistics depend on each other. No recordings are needed: generated statistics are compared
with the prior they were drawn from. A stopped calibration resumes at the batch it had reached.
Last, the gain of gaze that follows a target is measured, by windows with drawn targets. A model and
its distilled network are calibrated one after the other, each by its own windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gazediffusion.conditioning import Conditioning
from gazediffusion.conditioning.course import Course, response_gain
from gazediffusion.errors import GazeError, StoppedError, shown
from gazediffusion.generation.sampler import Sampler, SamplerName
from gazediffusion.generation.steering import Constraints
from gazediffusion.jobs import Show, never, nothing
from gazediffusion.network.checkpoint import Run, RunConfig, load_run, write_config
from gazediffusion.network.tensors import load_tensors, save_tensors

WINDOWS = 128  # of each task and round
ROUNDS = 4
STATE = "calibration.safetensors"
_SEED = 1000


def windows_on(device: torch.device) -> int:
    """Windows of each task and round by default: half a minute on a GPU, minutes on two cores."""
    return 8 * WINDOWS if device.type == "cuda" else WINDOWS


def is_due(config: RunConfig) -> bool:
    """Whether a run has summary statistics that were never calibrated."""
    return not config.conditioning.is_calibrated


@dataclass
class _State:
    """How far a calibration is: the round, and measured statistics (window, statistic) by task."""

    conditioning: Conditioning
    round: int = 0
    measured: list[Tensor] = field(default_factory=list)


@dataclass(frozen=True)
class _Effort:
    """n windows of each task and round; who is to know of it, and who may stop it.

    before, total: windows done before, and windows in all.
    """

    n: int
    rounds: int
    progress: Show
    should_stop: Callable[[], bool]
    say: Callable[[str], None]
    before: int
    total: int


def calibrate(
    folder: Path,
    device: torch.device,
    n: int | None = None,
    rounds: int = ROUNDS,
    progress: Show = nothing,
    should_stop: Callable[[], bool] = never,
    say: Callable[[str], None] = lambda line: None,
    again: bool = True,
) -> None:
    """Calibrate a trained run by n windows of each task and round, and write its tables.

    Its distilled network is calibrated as well. n: None is `windows_on` of the device. again: also
    what was calibrated before. progress: counts windows. say: receives a line at the
    start. When `should_stop` returns True, the state is saved and StoppedError raised; the same
    call resumes.
    """
    n = windows_on(device) if n is None else n
    if n < 3 or rounds < 1:
        raise GazeError(f"`n` must be 3 or more and `rounds` 1 or more, not {n} and {rounds}")
    run = load_run(folder, device=device)
    tasks = run.config.conditioning.tasks
    if run.config.conditioning.prior is None:
        raise GazeError("this model is not conditioned on summary statistics", path=folder)
    # A saved state of the distilled network is behind the model's.
    has_model = is_due(run.config) or (again and not _has_state(run, n, rounds))
    each = rounds * n * len(tasks)
    total = each * (has_model + (run.distilled is not None))
    if has_model:
        effort = _Effort(n, rounds, progress, should_stop, say, 0, total)
        conditioning = _calibrated(replace(run, distilled=None), effort)
        config = replace(run.config, conditioning=conditioning)
        run = replace(run, config=config)
        write_config(folder, config)
    if run.distilled is not None:
        effort = _Effort(n, rounds, progress, should_stop, say, total - each, total)
        conditioning = _calibrated(run, effort)
        replace(run.distilled, conditioning=conditioning).save(folder)
    (folder / STATE).unlink(missing_ok=True)


def _calibrated(run: Run, effort: _Effort) -> Conditioning:
    """The calibrated conditioning of a run, or of its distilled network where it has one."""
    n, rounds, folder = effort.n, effort.rounds, run.path
    state = _restored(run, n, rounds)
    is_resumed = state.round or state.measured
    effort.say(
        f"resuming the calibration of {shown(folder)} in round {state.round + 1} of {rounds}"
        if is_resumed
        else f"calibrating {shown(folder)}: {n} windows of each task in {rounds} rounds"
    )
    tasks = run.config.conditioning.tasks
    while state.round < rounds:
        here = _with(run, state.conditioning)
        draws = [state.conditioning.draw(0, n, _SEED, task) for task in tasks]
        for number, task in enumerate(tasks):
            if len(state.measured) == number:
                state.measured.append(torch.empty(0))
            done = len(state.measured[number])
            if done == n:
                continue
            before = effort.before + (state.round * len(tasks) + number) * n
            counted = _counted(effort.progress, before, effort.total)
            for piece in _sampler(here, task=task).pieces(done, n, counted):
                found = state.conditioning.measure(torch.from_numpy(piece), run.config.rate_hz)
                assert found is not None
                rows = state.measured[number]
                state.measured[number] = torch.cat([rows, found]) if len(rows) else found
                if effort.should_stop():
                    _save(run, state, n, rounds)
                    raise StoppedError(
                        f"calibration stopped in round {state.round + 1} of {rounds}; "
                        f"{shown(folder)} is saved"
                    )
        after = state.conditioning.calibrate(draws, state.measured)
        state = _State(after, state.round + 1)
        _save(run, state, n, rounds)
    return replace(state.conditioning, course=calibrated_course(run, state.conditioning, n))


def _with(run: Run, conditioning: Conditioning) -> Run:
    """The run with another conditioning, of its distilled network where it has one."""
    if run.distilled is None:
        return replace(run, config=replace(run.config, conditioning=conditioning))
    return replace(run, distilled=replace(run.distilled, conditioning=conditioning))


def _sampler(run: Run, **settings: Any) -> Sampler:
    """By the distilled network where the run has one."""
    sampler: SamplerName = "auto" if run.distilled is None else "distilled"
    return Sampler.of_quality(run, "default", sampler=sampler, seed=_SEED, **settings)


def calibrated_course(run: Run, conditioning: Conditioning, n: int = WINDOWS) -> Course:
    """The course with the gain of gaze that n windows of each task with a target have."""
    course, length, rate_hz = conditioning.course, run.config.length, run.config.rate_hz
    calibrated = {}
    for task, prior in course.targets.items():
        uncorrected = replace(prior, generated_gain=prior.recorded_gain)
        here = replace(course, targets={task: uncorrected})
        targets = here.draw([task] * n, 0, length, rate_hz, _SEED)["targets"]
        sampler = _sampler(
            _with(run, replace(conditioning, course=here)),
            task=task,
            constraints=Constraints(targets=targets),
        )
        gaze = np.concatenate(list(sampler.pieces(0, n)))
        gain = response_gain(gaze, targets, rate_hz)
        calibrated[task] = replace(prior, generated_gain=gain)
    return replace(course, targets=calibrated)


def _counted(progress: Show, before: int, total: int) -> Callable[[float], None]:
    return lambda done: progress("calibrating", before + done, total, "")


def _save(run: Run, state: _State, n: int, rounds: int) -> None:
    header = {**_identity(run, n, rounds), "round": state.round}
    tensors = {f"prior.{name}": table for name, table in state.conditioning.to_tensors().items()}
    tensors |= {f"measured.{k}": rows for k, rows in enumerate(state.measured)}
    save_tensors(run.path / STATE, tensors, header)


def _restored(run: Run, n: int, rounds: int) -> _State:
    """The saved state of the same calibration, or a new one."""
    path, conditioning = run.path / STATE, run.config.conditioning
    if path.is_file():
        tensors, header = load_tensors(path)
        identity = _identity(run, n, rounds)
        if {key: header.get(key) for key in identity} == identity:
            tables = {k[6:]: table for k, table in tensors.items() if k.startswith("prior.")}
            measured = [tensors[f"measured.{k}"] for k in range(len(tensors) - len(tables))]
            restored = Conditioning.from_json(conditioning.to_json(), tables)
            return _State(restored, header["round"], measured)
    return _State(conditioning.uncalibrated())


def _has_state(run: Run, n: int, rounds: int) -> bool:
    """Whether the calibration of the run's distilled network was begun."""
    if run.distilled is None or not (run.path / STATE).is_file():
        return False
    header = load_tensors(run.path / STATE)[1]
    return bool(header.get("weights") == _identity(run, n, rounds)["weights"])


def _identity(run: Run, n: int, rounds: int) -> dict[str, Any]:
    """What a saved state must be of."""
    distilled = None if run.distilled is None else run.distilled.sha256
    return {"n": n, "rounds": rounds, "weights": [run.weights_sha256, distilled]}
