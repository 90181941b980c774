"""Tests of whole sets, beyond histograms: each is computed alone and fails alone, saying why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.errors import GazeError
from gazediffusion.evaluation import downstream, memorisation
from gazediffusion.evaluation.classifier import c2st_features
from gazediffusion.evaluation.deep_test import ABOUT, WHAT, DeepConfig, deep_tests
from gazediffusion.evaluation.distances import Distance, drawn_windows
from gazediffusion.evaluation.gaze_sets import GazeSet, GazeSets
from gazediffusion.evaluation.metrics import density_coverage, frechet_of
from gazediffusion.settings import EvaluationConfig

Progress = Callable[[str], None]
FeatureMap = Callable[[NDArray[np.float32]], NDArray[np.floating[Any]]]
# What a test finds of one set, the training participants' (the floor) or a synthetic one.
Found = Callable[[GazeSet], dict[str, Any]]

# Each takes the root of a 512 x 512 matrix, so fewer than for histograms.
_FRECHET_REPLICATES = 40
TESTS = {
    "coverage": "Precision and density: whether synthetic windows lie among real ones, on the "
    "nine features. Recall and coverage: whether all real windows are reached. Higher is "
    "better. Floor: the training participants.",
    "c2st": "Accuracy of a classifier that separates real from synthetic windows, on "
    "participants it was not trained on. 0.5 is chance; lower is better. Floor: training "
    "against held-out participants.",
    "memorisation": "Whether synthetic windows, mirrored, reversed or shifted, are nearer to "
    "training windows than those of held-out participants are (or than those of one training "
    "participant are to those of the others). The share of copies is 1 % by chance.",
    "tstr": "Predicting the number of fixations from the nine features: trained on synthetic "
    "and tested on real windows (TSTR), on real only (TRTR, by participant), on both (AUG). "
    "Higher R2 and lower MAE are better. Floor: TSTR with the training participants.",
    "fgd": "Frechet Gaze Distance between bottleneck features of a position network; lower "
    "is better. Floor: training against held-out participants.",
}


def compute_tests(
    sets: GazeSets, config: EvaluationConfig, feature_model: FeatureMap | None, progress: Progress
) -> dict[str, Any]:
    """The tests that need more than histograms; each fails alone, saying why."""
    parts: dict[str, Callable[[], Found]] = {
        "coverage": lambda: _coverage(sets),
        "c2st": lambda: _c2st(sets, config.seed),
        "memorisation": lambda: _memorisation(sets),
        "tstr": lambda: _tstr(sets, config),
        "fgd": lambda: _fgd(sets, feature_model, progress),
    }
    results: dict[str, Any] = {}
    for name, about in TESTS.items():
        if (config.quick or not config.with_tests) and name != "coverage":
            left_out = "`quick`" if config.quick else "`with_tests`"
            results[name] = {"not_computable": f"left out by {left_out}"}
            continue
        progress(name)
        base = None if name == "memorisation" else sets.train
        try:
            of = parts[name]()
            results[name] = {
                "about": about,
                "floor": of(base) if base else None,
                "synthetic": {one.name: of(one) for one in sets.synthetic},
            }
        except GazeError as error:
            results[name] = {"not_computable": str(error)}
    if config.deep is not None:
        results["deep"] = _deep(sets, config.deep, config.seed, progress)
    return results


def _coverage(sets: GazeSets) -> Found:
    features = {name: one.features for name, one in sets.measured.items()}

    def of(one: GazeSet) -> dict[str, float]:
        found = vars(density_coverage(features["real"], features[one.name]))
        return {key: float(value) for key, value in found.items()}

    return of


def _c2st(sets: GazeSets, seed: int) -> Found:
    group = sets.real.group

    def of(one: GazeSet) -> dict[str, Any]:
        groups = one.group if one is sets.train else None
        real, other = (sets.measured[name].features for name in ("real", one.name))
        found = c2st_features(real, group, other, seed, groups)
        return {"features_accuracy": found.accuracy, "features_interval": list(found.interval)}

    return of


def _deep(sets: GazeSets, config: DeepConfig, seed: int, progress: Progress) -> dict[str, Any]:
    progress("deep test")
    if sets.training is None:
        return {"not_computable": f"{WHAT} needs the training participants: give `reference`"}
    try:
        found = deep_tests(sets.training, sets.real, sets.uncut, config, seed, progress)
    except GazeError as error:
        return {"not_computable": str(error)}
    return {"about": ABOUT, **found}


def _memorisation(sets: GazeSets) -> Found:
    if sets.training is None:
        raise GazeError("memorisation needs the training windows", remedy="give `reference`")
    training, real, rate_hz = sets.training.gaze, sets.real.gaze, sets.real.rate_hz
    by_chance = memorisation.nearest(real, training, rate_hz)
    between: dict[str, NDArray[np.float64]] = {}
    if sets.training.group.max() > 0:
        between = memorisation.between_participants(training, sets.training.group, rate_hz)
    return lambda one: memorisation.memorisation(
        one.gaze, training, real, rate_hz, by_chance, between
    )


def _tstr(sets: GazeSets, config: EvaluationConfig) -> Found:
    real, group = downstream.CountTask.of(sets.real.gaze, sets.real.rate_hz), sets.real.group
    seed, n_draws = config.seed, config.n_replicates if config.keep_draws else 0
    on_real = downstream.trtr(real, group, seed, n_draws=n_draws)

    def of(one: GazeSet) -> dict[str, Any]:
        other = downstream.CountTask.of(one.gaze, one.rate_hz)
        scores = {
            "tstr": downstream.tstr(real, other, seed, group, n_draws),
            "trtr": on_real,
            "aug": downstream.aug(real, group, other, seed, n_draws),
        }
        return {f"{way}_{key}": v for way, cells in scores.items() for key, v in cells.items()}

    return of


def _fgd(sets: GazeSets, feature_model: FeatureMap | None, progress: Progress) -> Found:
    if feature_model is None:
        raise GazeError(
            "the Frechet Gaze Distance needs a trained position model",
            remedy="give `feature_model`",
        )
    features = {}
    for one in sets.shown:
        progress(f"fgd: features of {one.name} ({len(one.gaze)} windows)")
        features[one.name] = feature_model(one.gaze)
    rng, real = np.random.default_rng(0), features["real"]

    def of(one: GazeSet) -> dict[str, Any]:
        other = features[one.name]
        value = frechet_of(real, other)
        if one is sets.train:
            return {"fgd": value}
        # Participants, and blocks of synthetic windows, are drawn with replacement.
        replicates = [
            frechet_of(
                real[drawn_windows(sets.real.group, rng)], other[drawn_windows(one.group, rng)]
            )
            for _ in range(_FRECHET_REPLICATES)
        ]
        return {"fgd": value, "fgd_interval": Distance(value, np.array(replicates)).interval()}

    return of
