"""Downstream: is synthetic gaze as good as real gaze for training a predictor? (paper, "TSTR")

A small network (scikit-learn's MLPRegressor, 32 hidden units, L-BFGS) predicts a window's I-VT
fixation count from its nine features, as in the paper; the fixation ratio, which is correlated
with the count, is one of the nine there too. TRTR: trained on real, tested on other real
participants, five folds by participant. TSTR: trained on synthetic, tested on all real (Esteban et
al. 2017). AUG: as TRTR, with the synthetic windows added to each training part. Higher R2 and lower
MAE are better. A TSTR near TRTR is good; an AUG above TRTR means that synthetic windows help.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.errors import GazeError
from gazediffusion.evaluation.classifier import participant_folds
from gazediffusion.evaluation.distances import drawn_windows
from gazediffusion.evaluation.features import ivt_statistics, kinematic_features

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

MIN_PARTICIPANTS, MIN_WINDOWS, N_FOLDS, N_SEEDS = 3, 50, 5, 3
_HIDDEN_UNITS = 32
# The best of 0.1, 0.3, 1, 3, 10 and 30 by TRTR of 791 windows of gazecom's training participants.
_WEIGHT_DECAY = 10.0
_MAX_ITERATIONS = 200


@dataclass(frozen=True, eq=False)
class CountTask:
    """What is predicted from what: features (window, 9) and fixation_count (window,)."""

    features: Floats
    fixation_count: Floats

    @classmethod
    def of(cls, gaze: NDArray[np.floating[Any]], rate_hz: float) -> CountTask:
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

    more: windows that are added to each training part. n_draws: of r2_draws, means of r2 over
    folds drawn with replacement; the same folds for the same seed.
    """
    what = "TRTR" if more is None else "AUG"
    for task in filter(None, (more, real)):
        _require(what, task)
    if len(real_groups) != len(real):
        few = f"{len(real_groups)} participant labels for {len(real)} real windows"
        raise GazeError(f"{what}: {few}")
    n_participants = len(np.unique(real_groups))
    if n_participants < MIN_PARTICIPANTS:
        few = f"{n_participants} real participants, at least {MIN_PARTICIPANTS} are needed"
        raise GazeError(f"{what} is not computable: {few}")
    n_folds = min(N_FOLDS, n_participants)
    fold = participant_folds(real_groups, n_folds)
    parts = [real[fold != k] for k in range(n_folds)]
    trained = parts if more is None else [part.with_more(more) for part in parts]
    scores = np.array(
        [_scores(train, real[fold == k], seed).mean(axis=0) for k, train in enumerate(trained)]
    )
    found = _summary(scores, sum(map(len, trained)) // n_folds, len(real))
    if n_draws:
        drawn = np.random.default_rng(seed).integers(0, n_folds, (n_draws, n_folds))
        found["r2_draws"] = scores[drawn, 0].mean(axis=1).tolist()
    return found


def aug(
    real: CountTask, real_groups: Ints, synthetic: CountTask, seed: int, n_draws: int = 0
) -> dict[str, Any]:
    """As `trtr`, with all the synthetic windows added to each training part."""
    return trtr(real, real_groups, seed, synthetic, n_draws)


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
    for task in (real, synthetic):
        _require("TSTR", task)
    predicted = _predictions(synthetic, real, seed)
    found = _summary(_scores_of(predicted, real), len(synthetic), len(real))
    if n_draws and real_groups is not None:
        rng = np.random.default_rng(seed)
        drawn = [drawn_windows(np.asarray(real_groups), rng) for _ in range(n_draws)]
        found["r2_draws"] = [_scores_of(predicted[:, k], real[k])[:, 0].mean() for k in drawn]
    return found


def _scores(train: CountTask, test: CountTask, seed: int) -> Floats:
    """R2 and MAE of N_SEEDS networks, (network, 2)."""
    return _scores_of(_predictions(train, test, seed), test)


def _scores_of(predicted: Floats, test: CountTask) -> Floats:
    """R2 and MAE of predictions (network, window), (network, 2)."""
    from sklearn.metrics import mean_absolute_error, r2_score

    true = test.fixation_count
    return np.array([(r2_score(true, one), mean_absolute_error(true, one)) for one in predicted])


def _predictions(train: CountTask, test: CountTask, seed: int) -> Floats:
    """Counts that N_SEEDS networks predict, (network, window)."""
    return np.array([_predicted(train, test, seed + k) for k in range(N_SEEDS)])


def _predicted(train: CountTask, test: CountTask, seed: int) -> Floats:
    """Counts (window,) by one network; features and target standardized on the training part."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor
    from threadpoolctl import threadpool_limits

    centre, spread = train.features.mean(axis=0), train.features.std(axis=0)
    spread[spread == 0] = 1.0
    mean, unit = train.fixation_count.mean(), train.fixation_count.std() or 1.0
    network = MLPRegressor(
        hidden_layer_sizes=(_HIDDEN_UNITS,),
        solver="lbfgs",
        alpha=_WEIGHT_DECAY,
        max_iter=_MAX_ITERATIONS,
        random_state=seed % 2**32,
    )
    # One thread: on matrices this small, several threads take twenty times as long.
    with warnings.catch_warnings(), threadpool_limits(1):
        # A fixed number of iterations is the budget; convergence is not required.
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit((train.features - centre) / spread, (train.fixation_count - mean) / unit)
    predicted = network.predict((test.features - centre) / spread)
    return np.asarray(predicted * unit + mean)


def _summary(scores: Floats, n_train: int, n_test: int) -> dict[str, Any]:
    """Means and SDs over the rows of (run, [r2, mae]), with the numbers of windows."""
    (r2, mae), (r2_sd, mae_sd) = scores.mean(axis=0).tolist(), scores.std(axis=0, ddof=1).tolist()
    found = {"r2": r2, "r2_sd": r2_sd, "mae": mae, "mae_sd": mae_sd}
    return found | {"n_train": n_train, "n_test": n_test}


def _require(what: str, task: CountTask) -> None:
    if len(task) < MIN_WINDOWS:
        raise GazeError(
            f"{what} is not computable: {len(task)} windows, at least {MIN_WINDOWS} are needed"
        )
    if not np.isfinite(task.features).all():
        raise GazeError(f"{what} is not computable: the features hold NaN or infinity")
