"""Tests of whole sets, beyond histograms: each is computed alone and fails alone, saying why.

Classifier two-sample test (C2ST): can a classifier separate synthetic from real windows? Accuracy
is balanced over the two sides and cross-validated so that no participant is in training and test at
once; 0.5 means indistinguishable, 1 always distinguished (Lopez-Paz & Oquab 2017). It falls below
0.5 where the few tested participants resemble the other side more than their own. The classifier is
scikit-learn's HistGradientBoosting. For the floor, training participants stand in for the synthetic
side.

Downstream: is synthetic gaze as good as real gaze for training a predictor (paper, "TSTR")? A small
network (scikit-learn's MLPRegressor, 32 hidden units, L-BFGS) predicts a window's I-VT fixation
count from its nine features, as in the paper; the fixation ratio, which is correlated with the
count, is one of the nine there too. TRTR: trained on real, tested on other real participants, five
folds by participant. TSTR: trained on synthetic, tested on all real (Esteban et al. 2017). AUG: as
TRTR, with the synthetic windows added to each training part. Higher R2 and lower MAE are better. A
TSTR near TRTR is good; an AUG above TRTR means that synthetic windows help.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion import seeds
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.deep_test import ABOUT, WHAT, DeepConfig, Progress, deep_tests
from gazediffusion.evaluation.features import ivt_statistics, kinematic_features
from gazediffusion.evaluation.metrics import (
    Distance,
    Estimate,
    central,
    density_coverage,
    drawn_windows,
    frechet_of,
)
from gazediffusion.evaluation.privacy import between_participants, memorisation, nearest
from gazediffusion.evaluation.sets import GazeSet, GazeSets, participant_folds
from gazediffusion.seeds import Stream
from gazediffusion.settings import EvaluationConfig

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
Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]
Groups = Ints | None
MIN_PARTICIPANTS, MIN_WINDOWS, N_FOLDS, N_SEEDS = 3, 50, 5, 3
_HIDDEN_UNITS, _MAX_ITERATIONS = 32, 200
# The best of 0.1, 0.3, 1, 3, 10 and 30 by TRTR of 791 windows of gazecom's training participants.
_WEIGHT_DECAY = 10.0


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
    return lambda one: {
        key: float(value)
        for key, value in vars(density_coverage(features["real"], features[one.name])).items()
    }


def _c2st(sets: GazeSets, seed: int) -> Found:
    def of(one: GazeSet) -> dict[str, Any]:
        groups = one.group if one is sets.train else None
        real, other = (sets.measured[name].features for name in ("real", one.name))
        found = c2st_features(real, sets.real.group, other, seed, groups)
        return {"features_accuracy": found.value, "features_interval": found.interval}

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
    by_chance = nearest(real, training, rate_hz)
    between = {}
    if sets.training.group.max() > 0:
        between = between_participants(training, sets.training.group, rate_hz)
    return lambda one: memorisation(one.gaze, training, real, rate_hz, by_chance, between)


def _tstr(sets: GazeSets, config: EvaluationConfig) -> Found:
    real, group = CountTask.of(sets.real.gaze, sets.real.rate_hz), sets.real.group
    seed, n_draws = config.seed, config.n_replicates if config.keep_draws else 0
    on_real = trtr(real, group, seed, n_draws=n_draws)

    def of(one: GazeSet) -> dict[str, Any]:
        other = CountTask.of(one.gaze, one.rate_hz)
        scores = {
            "tstr": tstr(real, other, seed, group, n_draws),
            "trtr": on_real,
            "aug": trtr(real, group, seed, other, n_draws),
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
    rng, real = seeds.rng(0, Stream.EVALUATION, "real draws"), features["real"]

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


def c2st_features(
    real: Floats, real_groups: Ints, synthetic: Floats, seed: int, synthetic_groups: Groups = None
) -> Estimate:
    """Mean of the shares of real and of synthetic rows recognised out of fold; 0.5 is the best.

    Features (n, d) and (m, d), any unit; the larger side is thinned at random. The interval is of
    resampled tested participants and synthetic windows.

    real_groups (n,) names the participant of each row. Synthetic rows go to the folds in blocks
    of neighbours, or by participant where `synthetic_groups` (m,) is given, as for the floor; a
    label in both means the same participant.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    what = "the classifier two-sample test on features"
    _require(what, {"real": real, "synthetic": synthetic}, real_groups)
    rng = seeds.rng(seed, Stream.EVALUATION, "folds")
    n = min(len(real), len(synthetic))
    rows, windows = (np.sort(rng.choice(len(x), n, replace=False)) for x in (real, synthetic))
    table = np.concatenate([real[rows], synthetic[windows]]).astype(np.float64)
    label, real_groups = np.arange(2 * n) >= n, real_groups[rows]
    others = windows if synthetic_groups is None else synthetic_groups[windows]
    fold = _folds(what, real_groups, others, has_groups=synthetic_groups is not None)
    # Few small trees over few bins suffice for 1,600 rows of nine features.
    options = {"max_iter": 60, "max_leaf_nodes": 15, "max_bins": 64, "class_weight": "balanced"}
    classifier = HistGradientBoostingClassifier(random_state=seed, **options)
    is_hit = np.zeros(2 * n, dtype=bool)
    for test in (fold == k for k in np.unique(fold)):
        with threadpool_limits(1):  # on tables this small, several threads are slower
            model = make_pipeline(StandardScaler(), classifier).fit(table[~test], label[~test])
            score = model.decision_function(table[test])
        is_hit[test] = (score > 0) == label[test]
    rng = seeds.rng(0, Stream.EVALUATION, "shuffles")
    draws = _resampled(is_hit[~label], real_groups, rng) + _resampled(is_hit[label], others, rng)
    accuracy = float((is_hit[label].mean() + is_hit[~label].mean()) / 2.0)
    return Estimate(accuracy, central(draws / 2.0))


def _folds(what: str, real_groups: Ints, others: Ints, has_groups: bool) -> Ints:
    """The fold of each real and each other row, in which no participant has windows in two."""
    n_real, unit = len(np.unique(real_groups)), np.unique(others, return_inverse=True)[1]
    n_folds = min(N_FOLDS, n_real, unit.max() + 1)
    real_fold = participant_folds(real_groups, n_folds)
    if has_groups:
        known = dict(zip(real_groups.tolist(), real_fold.tolist(), strict=True))
        fold = participant_folds(others, n_folds, known)
    else:
        # Blocks, because neighbours in a file may be windows that overlap.
        fold = unit * n_folds // (unit.max() + 1)
    if n_folds < MIN_PARTICIPANTS or len(np.unique(fold)) < n_folds:
        few = f"{n_real} real participants, at least {MIN_PARTICIPANTS} are needed on either side"
        raise GazeError(f"{what} is not computable: {few}")
    return np.concatenate([real_fold, fold])


def _resampled(is_hit: NDArray[np.bool_], units: Ints, rng: np.random.Generator) -> Floats:
    """Shares of hits (draw,) when whole units, participants or windows, are drawn anew."""
    _, unit, size = np.unique(units, return_inverse=True, return_counts=True)
    drawn = rng.integers(0, len(size), (1000, len(size)))
    hits = np.bincount(unit, weights=is_hit)[drawn].sum(axis=1)
    return np.asarray(hits / size[drawn].sum(axis=1))


def _require(what: str, features: Mapping[str, Floats], real_groups: Ints | None = None) -> None:
    """Refuse too few windows, values that are not finite, and labels that do not fit."""
    if real_groups is not None and len(real_groups) != len(features["real"]):
        few = f"{len(real_groups)} participant labels for {len(features['real'])} real windows"
        raise GazeError(f"{what}: {few}")
    if min(map(len, features.values())) < MIN_WINDOWS:
        few = " and ".join(f"{len(one)} {name}" for name, one in features.items())
        raise GazeError(
            f"{what} is not computable: {few} windows, at least {MIN_WINDOWS} each are needed"
        )
    if not all(np.isfinite(one).all() for one in features.values()):
        raise GazeError(f"{what} is not computable: NaN or infinite values")


@dataclass(frozen=True, eq=False)
class CountTask:
    """What is predicted from what: features (window, 9) and fixation_count (window,)."""

    features: NDArray[np.float64]
    fixation_count: NDArray[np.float64]

    @classmethod
    def of(cls, gaze: Floats, rate_hz: float) -> CountTask:
        """The task of gaze (window, 2, time)."""
        features = np.stack(list(kinematic_features(gaze, rate_hz).values()), axis=1)
        return cls(features, ivt_statistics(gaze, rate_hz).fixation_count.astype(np.float64))

    def __getitem__(self, chosen: NDArray[Any]) -> CountTask:
        return CountTask(self.features[chosen], self.fixation_count[chosen])

    def __len__(self) -> int:
        return len(self.fixation_count)

    def with_more(self, other: CountTask) -> CountTask:
        """Both tasks' windows."""
        return CountTask(
            np.concatenate([self.features, other.features]),
            np.concatenate([self.fixation_count, other.fixation_count]),
        )


def trtr(
    real: CountTask,
    real_groups: Ints,
    seed: int,
    more: CountTask | None = None,
    n_draws: int = 0,
) -> dict[str, Any]:
    """Trained on real, tested on participants not trained on: r2 and mae with SD over the folds.

    more: windows that are added to each training part (AUG). n_draws: of r2_draws, means of r2
    over folds drawn with replacement; the same folds for the same seed.
    """
    what = "TRTR" if more is None else "AUG"
    tasks = {"real": real.features} | ({} if more is None else {"synthetic": more.features})
    _require(what, tasks, real_groups)
    n_participants = len(np.unique(real_groups))
    if n_participants < MIN_PARTICIPANTS:
        few = f"{n_participants} real participants, at least {MIN_PARTICIPANTS} are needed"
        raise GazeError(f"{what} is not computable: {few}")
    n_folds = min(N_FOLDS, n_participants)
    fold = participant_folds(real_groups, n_folds)
    parts = [real[fold != k] for k in range(n_folds)]
    trained = parts if more is None else [part.with_more(more) for part in parts]
    tested = [real[fold == k] for k in range(n_folds)]
    both = zip(trained, tested, strict=True)
    scores = np.array([_scores(_predictions(a, b, seed), b).mean(axis=0) for a, b in both])
    found = _summary(scores, sum(map(len, trained)) // n_folds, len(real))
    if n_draws:
        rng = seeds.rng(seed, Stream.EVALUATION, "fold draws")
        drawn = rng.integers(0, n_folds, (n_draws, n_folds))
        found["r2_draws"] = scores[drawn, 0].mean(axis=1).tolist()
    return found


def tstr(
    real: CountTask,
    synthetic: CountTask,
    seed: int,
    real_groups: Ints | None = None,
    n_draws: int = 0,
) -> dict[str, Any]:
    """Trained on synthetic, tested on all real: r2 and mae with SD over the networks' seeds.

    n_draws: of r2_draws, r2 on the windows of participants (real_groups) drawn with replacement.
    """
    _require("TSTR", {"real": real.features, "synthetic": synthetic.features})
    predicted = _predictions(synthetic, real, seed)
    found = _summary(_scores(predicted, real), len(synthetic), len(real))
    if n_draws and real_groups is not None:
        rng = seeds.rng(seed, Stream.EVALUATION, "regressor")
        drawn = [drawn_windows(np.asarray(real_groups), rng) for _ in range(n_draws)]
        found["r2_draws"] = [_scores(predicted[:, k], real[k])[:, 0].mean() for k in drawn]
    return found


def _scores(predicted: Floats, test: CountTask) -> Floats:
    """R2 and MAE of predictions (network, window), (network, 2)."""
    from sklearn.metrics import mean_absolute_error, r2_score

    true = test.fixation_count
    return np.array([(r2_score(true, one), mean_absolute_error(true, one)) for one in predicted])


def _predictions(train: CountTask, test: CountTask, seed: int) -> Floats:
    """Counts that N_SEEDS networks predict, (network, window).

    Features and target are standardized on the training part.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor
    from threadpoolctl import threadpool_limits

    centre, spread = train.features.mean(axis=0), train.features.std(axis=0)
    spread[spread == 0] = 1.0
    mean, unit = train.fixation_count.mean(), train.fixation_count.std() or 1.0
    found = []
    for number in range(N_SEEDS):
        network = MLPRegressor(
            hidden_layer_sizes=(_HIDDEN_UNITS,),
            solver="lbfgs",
            alpha=_WEIGHT_DECAY,
            max_iter=_MAX_ITERATIONS,
            random_state=(seed + number) % 2**32,
        )
        # One thread: on matrices this small, several threads take twenty times as long.
        with warnings.catch_warnings(), threadpool_limits(1):
            # A fixed number of iterations is the budget; convergence is not required.
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit((train.features - centre) / spread, (train.fixation_count - mean) / unit)
        found.append(network.predict((test.features - centre) / spread) * unit + mean)
    return np.array(found)


def _summary(scores: Floats, n_train: int, n_test: int) -> dict[str, Any]:
    """Means and SDs over the rows of (run, [r2, mae]), with the numbers of windows."""
    (r2, mae), (r2_sd, mae_sd) = scores.mean(axis=0).tolist(), scores.std(axis=0, ddof=1).tolist()
    found = {"r2": r2, "r2_sd": r2_sd, "mae": mae, "mae_sd": mae_sd}
    return found | {"n_train": n_train, "n_test": n_test}
