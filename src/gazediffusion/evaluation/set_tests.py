"""Tests of whole sets, beyond histograms: each is computed alone and fails alone, saying why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.errors import GazeError
from gazediffusion.evaluation import classifier, downstream, memorisation
from gazediffusion.evaluation.comparison import Distance, drawn_windows
from gazediffusion.evaluation.gaze_sets import GazeSet, GazeSets
from gazediffusion.evaluation.metrics import density_coverage, frechet_of

Progress = Callable[[str], None]
# Each takes the root of a 512 x 512 matrix, so fewer than for histograms.
_FRECHET_REPLICATES = 40
FeatureMap = Callable[[NDArray[np.float32]], NDArray[np.floating[Any]]]


def compute_tests(
    sets: GazeSets,
    rate_hz: float,
    seed: int,
    quick: bool,
    reference: FeatureMap | None,
    progress: Progress,
) -> dict[str, Any]:
    """The tests that need more than histograms; each fails alone, saying why."""
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "coverage": lambda: _coverage(sets),
        "c2st": lambda: _c2st(sets, seed),
        "memorisation": lambda: _memorisation(sets, rate_hz),
        "tstr": lambda: _tstr(sets, rate_hz, seed),
        "fgd": lambda: _fgd(sets, reference, progress),
    }
    slow = ("memorisation", "tstr", "fgd", "c2st")
    results: dict[str, Any] = {}
    for name, compute in parts.items():
        if quick and name in slow:
            results[name] = {"not_computable": "left out by --quick"}
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
        "about": "Precision and density: do synthetic windows lie among real ones, on the nine "
        "features? Recall and coverage: are all real ones reached? Higher is better; the floor is "
        "the training people.",
        "floor": of("train") if sets.train else None,
        "synthetic": {one.name: of(one.name) for one in sets.synthetic},
    }


def _c2st(sets: GazeSets, seed: int) -> dict[str, Any]:
    def of(one: GazeSet, groups: NDArray[np.int64] | None = None) -> dict[str, Any]:
        people = sets.real.group
        of_features = (sets.measured["real"].features, people, sets.measured[one.name].features)
        features = classifier.c2st_features(*of_features, seed, groups)
        snippets = classifier.c2st_snippets(sets.real.gaze, people, one.gaze, seed, groups)
        return {
            "features_accuracy": features.accuracy,
            "features_interval": list(features.interval),
            "snippets_accuracy": snippets.accuracy,
            "snippets_interval": list(snippets.interval),
        }

    return {
        "about": "Can a classifier tell real from synthetic, on people it has not seen? 0.5 is "
        "chance, 1.0 is always; lower is better; the floor tells training people from held-out "
        "people.",
        "floor": of(sets.train, sets.train.group) if sets.train else None,
        "synthetic": {one.name: of(one) for one in sets.synthetic},
    }


def _memorisation(sets: GazeSets, rate_hz: float) -> dict[str, Any]:
    if sets.training is None:
        raise GazeError("memorisation needs the training windows", remedy="give --train")
    training = sets.training.gaze
    by_chance = memorisation.nearest(sets.real.gaze, training, rate_hz)
    return {
        "about": "Are synthetic windows nearer to training windows than unseen people's are, "
        "mirrored, reversed or shifted? The share of copies is 1 % by chance.",
        "floor": None,
        "synthetic": {
            one.name: memorisation.memorisation(
                one.gaze, training, sets.real.gaze, rate_hz, by_chance
            )
            for one in sets.synthetic
        },
    }


def _tstr(sets: GazeSets, rate_hz: float, seed: int) -> dict[str, Any]:
    task = downstream.CountTask.of
    real, people = task(sets.real.gaze, rate_hz), sets.real.group
    on_real = downstream.trtr(real, people, seed)

    def of(one: GazeSet) -> dict[str, float]:
        made = task(one.gaze, rate_hz)
        scores = {
            "tstr": downstream.tstr(real, made, seed),
            "trtr": on_real,
            "aug": downstream.aug(real, people, made, seed),
        }
        return {f"{way}_{key}": v for way, cells in scores.items() for key, v in cells.items()}

    return {
        "about": "Predicting the number of fixations from the nine features: trained on synthetic "
        "and tested on real windows (TSTR), on real only (TRTR, by participant), on both (AUG). "
        "R2 higher, MAE lower is better; the floor is TSTR with the training people.",
        "floor": of(sets.train) if sets.train else None,
        "synthetic": {one.name: of(one) for one in sets.synthetic},
    }


def _fgd(sets: GazeSets, reference: FeatureMap | None, progress: Progress) -> dict[str, Any]:
    if reference is None:
        raise GazeError(
            "the Frechet Gaze Distance needs a trained position model",
            remedy="give its run folder with --reference",
        )
    of = {}
    for one in sets.shown:
        progress(f"fgd: features of {one.name} ({len(one.gaze)} windows)")
        of[one.name] = reference(one.gaze)
    rng = np.random.default_rng(0)
    return {
        "about": "Frechet Gaze Distance between bottleneck features of the reference position "
        "network; lower is better.",
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
    people: GazeSet,
    made: NDArray[np.floating[Any]],
    synthetic: GazeSet,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Distances after drawing participants, and blocks of synthetic windows, with replacement."""
    return np.array(
        [
            frechet_of(
                real[drawn_windows(people.group, rng)], made[drawn_windows(synthetic.group, rng)]
            )
            for _ in range(_FRECHET_REPLICATES)
        ]
    )
