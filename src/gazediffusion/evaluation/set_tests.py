"""Tests of whole sets, beyond histograms: each is computed alone and fails alone, saying why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.errors import GazeError
from gazediffusion.evaluation import classifier, downstream, memorisation
from gazediffusion.evaluation.distances import Distance, drawn_windows
from gazediffusion.evaluation.gaze_sets import GazeSet, GazeSets
from gazediffusion.evaluation.metrics import density_coverage, frechet_of
from gazediffusion.evaluation.result import EvaluationConfig

Progress = Callable[[str], None]
# Each takes the root of a 512 x 512 matrix, so fewer than for histograms.
_FRECHET_REPLICATES = 40
FeatureMap = Callable[[NDArray[np.float32]], NDArray[np.floating[Any]]]


def compute_tests(
    sets: GazeSets,
    rate_hz: float,
    config: EvaluationConfig,
    feature_model: FeatureMap | None,
    progress: Progress,
) -> dict[str, Any]:
    """The tests that need more than histograms; each fails alone, saying why."""
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "coverage": lambda: _coverage(sets),
        "c2st": lambda: _c2st(sets, config.seed),
        "memorisation": lambda: _memorisation(sets, rate_hz),
        "tstr": lambda: _tstr(sets, rate_hz, config.seed),
        "fgd": lambda: _fgd(sets, feature_model, progress),
    }
    results: dict[str, Any] = {}
    for name, compute in parts.items():
        if config.quick and name != "coverage":
            results[name] = {"not_computable": "left out by `quick`"}
            continue
        progress(name)
        try:
            results[name] = compute()
        except GazeError as error:
            results[name] = {"not_computable": str(error)}
    return results


def _coverage(sets: GazeSets) -> dict[str, Any]:
    real = sets.measured["real"].features

    def of(name: str) -> dict[str, float]:
        return {
            key: float(v)
            for key, v in vars(density_coverage(real, sets.measured[name].features)).items()
        }

    return {
        "about": "Precision and density: whether synthetic windows lie among real ones, on the "
        "nine features. Recall and coverage: whether all real windows are reached. Higher is "
        "better. Floor: the training participants.",
        "floor": of("train") if sets.train else None,
        "synthetic": {one.name: of(one.name) for one in sets.synthetic},
    }


def _c2st(sets: GazeSets, seed: int) -> dict[str, Any]:
    def of(one: GazeSet, groups: NDArray[np.int64] | None = None) -> dict[str, Any]:
        real, other = (sets.measured[name].features for name in ("real", one.name))
        group = sets.real.group
        features = classifier.c2st_features(real, group, other, seed, groups)
        snippets = classifier.c2st_snippets(sets.real.gaze, group, one.gaze, seed, groups)
        return {
            "features_accuracy": features.accuracy,
            "features_interval": list(features.interval),
            "snippets_accuracy": snippets.accuracy,
            "snippets_interval": list(snippets.interval),
        }

    return {
        "about": "Accuracy of a classifier that separates real from synthetic windows, on "
        "participants it was not trained on. 0.5 is chance; lower is better. Floor: training "
        "against held-out participants.",
        "floor": of(sets.train, sets.train.group) if sets.train else None,
        "synthetic": {one.name: of(one) for one in sets.synthetic},
    }


def _memorisation(sets: GazeSets, rate_hz: float) -> dict[str, Any]:
    if sets.training is None:
        raise GazeError("memorisation needs the training windows", remedy="give `reference`")
    training = sets.training.gaze
    by_chance = memorisation.nearest(sets.real.gaze, training, rate_hz)
    between = None
    if len(np.unique(sets.training.group)) > 1:
        between = memorisation.between_participants(training, sets.training.group, rate_hz)
    return {
        "about": "Whether synthetic windows, mirrored, reversed or shifted, are nearer to training "
        "windows than those of held-out participants are (or than those of one training "
        "participant are to those of the others). The share of copies is 1 % by chance.",
        "floor": None,
        "synthetic": {
            one.name: memorisation.memorisation(
                one.gaze, training, sets.real.gaze, rate_hz, by_chance, between
            )
            for one in sets.synthetic
        },
    }


def _tstr(sets: GazeSets, rate_hz: float, seed: int) -> dict[str, Any]:
    task = downstream.CountTask.of
    real, group = task(sets.real.gaze, rate_hz), sets.real.group
    on_real = downstream.trtr(real, group, seed)

    def of(one: GazeSet) -> dict[str, float]:
        other = task(one.gaze, rate_hz)
        scores = {
            "tstr": downstream.tstr(real, other, seed),
            "trtr": on_real,
            "aug": downstream.aug(real, group, other, seed),
        }
        return {f"{way}_{key}": v for way, cells in scores.items() for key, v in cells.items()}

    return {
        "about": "Predicting the number of fixations from the nine features: trained on synthetic "
        "and tested on real windows (TSTR), on real only (TRTR, by participant), on both (AUG). "
        "Higher R2 and lower MAE are better. Floor: TSTR with the training participants.",
        "floor": of(sets.train) if sets.train else None,
        "synthetic": {one.name: of(one) for one in sets.synthetic},
    }


def _fgd(sets: GazeSets, feature_model: FeatureMap | None, progress: Progress) -> dict[str, Any]:
    if feature_model is None:
        raise GazeError(
            "the Frechet Gaze Distance needs a trained position model",
            remedy="give `feature_model`",
        )
    of = {}
    for one in sets.shown:
        progress(f"fgd: features of {one.name} ({len(one.gaze)} windows)")
        of[one.name] = feature_model(one.gaze)
    rng = np.random.default_rng(0)
    return {
        "about": "Frechet Gaze Distance between bottleneck features of a position network; lower "
        "is better. Floor: training against held-out participants.",
        "floor": {"fgd": frechet_of(of["real"], of["train"])} if sets.train else None,
        "synthetic": {
            one.name: {
                "fgd": (value := frechet_of(of["real"], of[one.name])),
                "fgd_interval": Distance(
                    value, _drawn_frechet(of["real"], sets.real, of[one.name], one, rng)
                ).interval(),
            }
            for one in sets.synthetic
        },
    }


def _drawn_frechet(
    real: NDArray[np.floating[Any]],
    real_set: GazeSet,
    other: NDArray[np.floating[Any]],
    other_set: GazeSet,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Distances after drawing participants, and blocks of synthetic windows, with replacement."""
    return np.array(
        [
            frechet_of(
                real[drawn_windows(real_set.group, rng)],
                other[drawn_windows(other_set.group, rng)],
            )
            for _ in range(_FRECHET_REPLICATES)
        ]
    )
