"""Artefacts of a small reproduction: evaluations of simulated gaze, histories by hand."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.evaluation.evaluation import EvaluationConfig, evaluate
from gazediffusion.evaluation.metrics import frechet_of
from gazediffusion.evaluation.result import plain_values
from gazediffusion.reproduction.build import make_results
from gazediffusion.reproduction.plan import BASELINES, PAPER, Artefacts, Plan
from gazediffusion.reproduction.tables import other_bins
from gazediffusion.screen import Screen
from tests.gaze import simulated_windows, with_noise

# The paper's plan with two velocity seeds, so that the two numbers of seeds cannot be confused.
PLAN: Plan = replace(PAPER, velocity=replace(PAPER.velocity, seeds=(0, 1)))
N_FEATURES, N_DRAWS = 6, 20


@lru_cache(maxsize=1)
def artefacts() -> Artefacts:
    """All parts of PLAN: sets are simulated participants with more and more noise on their gaze."""
    evaluations: dict[str, dict[str, Any]] = {
        name: _evaluation(sets) for name, sets in PLAN.evaluations.items()
    }
    tests = _evaluation(["velocity-0"], with_tests=True)["tests"]
    for name in ("position", "velocity"):
        evaluations[name]["tests"] = _tests_of(PLAN.evaluations[name], tests)
    return Artefacts(
        plan=PLAN,
        evaluations=evaluations,
        frechet=_frechet(),
        histories={run: history(run) for run in PLAN.runs},
        shown={},
        about={
            "data": ["movies.parquet"],
            "data_sha256": "abc123",
            "task": "natural movies",
            "screen": "1280 x 720 px",
            "rate_hz": 250.0,
            "position": _counts(31),
            "velocity": _counts(32),
            "gazediffusion_version": "0.1",
            "command": "gazediffusion reproduce --data movies.parquet -o docs",
            "tiny": False,
        },
    )


@lru_cache(maxsize=1)
def made_results() -> dict[str, Any]:
    """All tables of PLAN; no test writes into them."""
    return make_results(artefacts())


def _evaluation(names: list[str], with_tests: bool = False) -> dict[str, Any]:
    """Of sets that differ by their noise."""
    # Without degrees, whose events take most of the time.
    windows = replace(
        simulated_windows(n_participants=10, minutes=0.6), screens=(Screen(1280, 720),)
    )
    sets = {name: with_noise(windows.train, 0.002 * k) for k, name in enumerate(names)}
    config = EvaluationConfig(n_bootstrap=N_DRAWS, with_tests=with_tests, keep_draws=True)
    results = evaluate(windows.held_out, sets, windows.train, config).results
    if "gaussian" in sets:
        results["quantities"] += other_bins(windows.held_out, sets, windows.train, config)
    return dict(plain_values(results))


def _tests_of(names: list[str], like: dict[str, Any]) -> dict[str, Any]:
    """The tests of one set for all others too, since each takes seconds; known R2."""
    tests = copy.deepcopy(like)
    for test in tests.values():
        if "synthetic" in test:
            cells = next(iter(test["synthetic"].values()))
            test["synthetic"] = {name: copy.deepcopy(cells) for name in names}
    for number, cells in enumerate(tests["tstr"]["synthetic"].values()):
        known = {"trtr_r2": 0.8, "tstr_r2": 0.7 - 0.02 * number, "aug_r2": 0.79 + 0.01 * number}
        cells |= known | {f"{key}_draws": [value] * N_DRAWS for key, value in known.items()}
    # Windows of 2 s are too short to be searched for copies.
    copies = {name: {"share_of_copies": 0.01 * number} for number, name in enumerate(names)}
    tests["memorisation"] = {"floor": None, "synthetic": copies}
    return tests


@lru_cache(maxsize=1)
def features() -> dict[str, NDArray[np.float64]]:
    """Of normal distributions with known means."""
    rng = np.random.default_rng(0)
    names = ["real", "train", *PLAN.position_sets, "joint-0"]
    shift = dict.fromkeys(names, 0.1) | dict.fromkeys(BASELINES, 8.0) | {PLAN.x0: 20.0}
    return {
        name: rng.normal(0 if name == "real" else by, 1, (200, N_FEATURES))
        for name, by in shift.items()
    }


def _frechet() -> dict[str, dict[str, Any]]:
    rng = np.random.default_rng(1)
    found = {name: frechet_of(features()["real"], of) for name, of in features().items()}
    return {
        name: {"fgd": value, "n": 200, "draws": (value + rng.normal(0, 0.01, N_DRAWS)).tolist()}
        for name, value in found.items()
    }


def history(run: str) -> dict[str, Any]:
    """A run as `build.Builder` describes it; the first velocity run's time is not known."""
    number = list(PLAN.runs).index(run)
    planned = PLAN.runs[run]
    return {
        "run": run,
        "recipe": planned.recipe.name,
        "objective": planned.recipe.objective,
        "seed": planned.seed,
        "epochs": 500,
        "steps": 1000,
        "best_validation_loss": 0.0061 + 0.0007 * number,
        "best_epoch": 490 - number,
        "training_loss_at_best": 0.0072 + 0.0001 * number,
        "seconds": None if run == PLAN.velocity_sets[0] else 600.0 * (number + 1),
        "device": "cuda",
        "gpu": "NVIDIA H200",
        "precision": "bf16",
        "n_parameters": 19_350_914,
        "validation_loss": [0.1, *(0.01 + 0.001 * (k % 3) for k in range(19))],
        "training_loss": [0.1, *[0.01] * 19],
        "gazediffusion_version": "0.1",
        "torch_version": "2",
    }


def _counts(n: int) -> dict[str, int]:
    return {
        "n_train_windows": 1000 + n,
        "n_train_participants": 34,
        "n_real_windows": 200 + n,
        "n_real_participants": 9,
    }
