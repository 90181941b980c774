"""Classifier two-sample test: can a classifier tell synthetic windows from real ones?

Accuracy is balanced over the two sides and cross-validated so that no participant is in training
and test at once; 0.5 means indistinguishable, 1 always distinguished (Lopez-Paz & Oquab 2017). It
falls below 0.5 where the few tested participants resemble the other side more than their own.
The classifier is scikit-learn's HistGradientBoosting. For the floor, training participants stand in
for the synthetic side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.errors import GazeError

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]
Groups = Ints | None

MIN_PARTICIPANTS, MIN_WINDOWS, N_FOLDS = 3, 50, 5


@dataclass(frozen=True)
class C2ST:
    """How well real and synthetic are distinguished; 0.5 is the best.

    accuracy: mean of the shares of real and of synthetic examples recognised out of fold.
    interval: 95 % of the accuracy when tested participants (and synthetic windows) are resampled.
    n: examples on each side.
    """

    accuracy: float
    interval: tuple[float, float]
    n: int


def c2st_features(
    real: Floats, real_groups: Ints, synthetic: Floats, seed: int, synthetic_groups: Groups = None
) -> C2ST:
    """The test on features (n, d) and (m, d), any unit; the larger side is thinned at random.

    real_groups (n,) names the participant of each row. Synthetic rows go to the folds in blocks
    of neighbours, or by participant where `synthetic_groups` (m,) is given, as for the floor; a
    label in both means the same participant.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    what = "the classifier two-sample test on features"
    _require(what, real, real_groups, synthetic)
    rng = np.random.default_rng(seed)
    n = min(len(real), len(synthetic))
    rows, others = (np.sort(rng.choice(len(x), n, replace=False)) for x in (real, synthetic))
    table = np.concatenate([real[rows], synthetic[others]]).astype(np.float64)
    # Few small trees over few bins suffice for 1,600 rows of nine features.
    options = {"max_iter": 60, "max_leaf_nodes": 15, "max_bins": 64, "class_weight": "balanced"}
    classifier = HistGradientBoostingClassifier(random_state=seed, **options)
    return _tested(what, classifier, table, real_groups[rows], others, synthetic_groups)


def participant_folds(
    groups: Ints, n_folds: int, known: Mapping[int, int] | None = None
) -> NDArray[np.int64]:
    """The fold of each row (n,), the same for all rows of a participant, of about equal sizes.

    Participants in `known` keep that fold; the others, largest first, go where fewest rows are.
    """
    labels, row, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    fold = np.array([(known or {}).get(int(label), -1) for label in labels], dtype=np.int64)
    load = np.bincount(fold[fold >= 0], weights=sizes[fold >= 0], minlength=n_folds)
    for k in np.argsort(-sizes, kind="stable"):
        if fold[k] < 0:
            fold[k] = int(np.argmin(load))
            load[fold[k]] += sizes[k]
    return np.asarray(fold[row])


def _tested(
    what: str, classifier: Any, table: Floats, real_groups: Ints, windows: Ints, groups: Groups
) -> C2ST:
    """Cross-validate on a table whose real rows come first; `windows` are the synthetic rows'."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    others = windows if groups is None else groups[windows]
    n_real, unit = len(np.unique(real_groups)), np.unique(others, return_inverse=True)[1]
    n_folds = min(N_FOLDS, n_real, unit.max() + 1)
    real_fold = participant_folds(real_groups, n_folds)
    if groups is None:
        # Blocks, because neighbours in a file may be windows that overlap.
        fold = unit * n_folds // (unit.max() + 1)
    else:
        known = dict(zip(real_groups.tolist(), real_fold.tolist(), strict=True))
        fold = participant_folds(others, n_folds, known)
    if n_folds < MIN_PARTICIPANTS or len(np.unique(fold)) < n_folds:
        few = f"{n_real} real participants, at least {MIN_PARTICIPANTS} are needed on either side"
        raise GazeError(f"{what} is not computable: {few}")
    fold = np.concatenate([real_fold, fold])
    is_hit, label = np.zeros(len(table), dtype=bool), np.arange(len(table)) >= len(real_groups)
    for test in (fold == k for k in range(n_folds)):
        with threadpool_limits(1):  # on tables this small, several threads are slower
            model = make_pipeline(StandardScaler(), classifier).fit(table[~test], label[~test])
            score = model.decision_function(table[test])
        is_hit[test] = (score > 0) == label[test]
    rng = np.random.default_rng(0)
    draws = _resampled(is_hit[~label], real_groups, rng) + _resampled(is_hit[label], others, rng)
    low, high = np.percentile(draws / 2.0, [2.5, 97.5])
    return C2ST(
        accuracy=float((is_hit[label].mean() + is_hit[~label].mean()) / 2.0),
        interval=(float(low), float(high)),
        n=int(label.sum()),
    )


def _resampled(is_hit: NDArray[np.bool_], units: Ints, rng: np.random.Generator) -> Floats:
    """Shares of hits (draw,) when whole units, participants or windows, are drawn anew."""
    _, unit, size = np.unique(units, return_inverse=True, return_counts=True)
    drawn = rng.integers(0, len(size), (1000, len(size)))
    hits = np.bincount(unit, weights=is_hit)[drawn].sum(axis=1)
    return np.asarray(hits / size[drawn].sum(axis=1))


def _require(what: str, real: Floats, groups: Ints, synthetic: Floats) -> None:
    if len(groups) != len(real):
        raise GazeError(f"{what}: {len(groups)} participant labels for {len(real)} real windows")
    if min(len(real), len(synthetic)) < MIN_WINDOWS:
        few = f"{len(real)} real and {len(synthetic)} synthetic windows"
        raise GazeError(f"{what} is not computable: {few}, at least {MIN_WINDOWS} each are needed")
    if not (np.isfinite(real).all() and np.isfinite(synthetic).all()):
        raise GazeError(f"{what} is not computable: NaN or infinite values")
