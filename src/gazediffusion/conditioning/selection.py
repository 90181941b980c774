"""Selection: of several candidates, the windows that together are most like a recording.

A network follows some of its summary statistics more than others, so windows in a participant's
style differ from the participant. Of more windows than are needed, those are taken, one after the
other, whose eye movements together have the distributions nearest to the recording's (herding,
Welling 2009, with the Wasserstein distance of each quantity). A short recording says little of the
participant: its distribution is mixed with that of all candidates, which counts as
`N_CANDIDATES_COUNT` windows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gazediffusion.conditioning.movements import Movements

N_CANDIDATES_COUNT = 4.0  # windows; chosen on training participants (docs/experiments.md)
_N_QUANTILES = 101  # where distributions are compared
_LEAST = 0.02  # standard deviations: nearer than that is near enough
Floats = NDArray[np.float64]


def choose(
    candidates: Movements, n_candidates: int, like: Movements, n_windows: float, n: int
) -> list[int]:
    """The numbers of n candidates, in the order in which they were taken.

    n_windows: how many windows that do not overlap the recording `like` is worth. The first k are
    the same for every n.

    >>> from gazediffusion.conditioning.movements import QUANTITIES
    >>> def rates(*values):
    ...     nothing = (np.zeros(0), np.zeros(0, dtype=int))
    ...     found = {"saccade rate": (np.array(values), np.arange(len(values)))}
    ...     return Movements(*zip(*[found.get(name, nothing) for name in QUANTITIES]))
    >>> choose(rates(1.0, 2.0, 3.0, 4.0), 4, rates(3.0, 3.1, 2.9), 100.0, 1)
    [2]
    """
    tables = [
        _cumulative(values, window, target, n_candidates, n_windows)
        for values, window, target in zip(
            candidates.values, candidates.window, like.values, strict=True
        )
        if len(target) and len(values)
    ]
    taken: list[int] = []
    sums = [np.zeros(counts.shape[1]) for counts, _, _ in tables]
    for _ in range(n):
        total = np.zeros(n_candidates)
        for have, (counts, target, widths) in zip(sums, tables, strict=True):
            together = have + counts
            share = together / np.maximum(together[:, -1:], 1)
            total += np.log((np.abs(share - target)[:, :-1] * widths).sum(axis=1) + _LEAST)
        total[taken] = np.inf
        best = int(total.argmin())
        taken.append(best)
        for have, (counts, _, _) in zip(sums, tables, strict=True):
            have += counts[best]
    return taken


def _cumulative(
    values: Floats, window: NDArray[np.int64], target: Floats, n: int, n_windows: float
) -> tuple[Floats, Floats, Floats]:
    """Cumulative counts (candidate, point), the distribution aimed at (point,), and widths.

    Widths (point - 1,) of the intervals are in standard deviations of all values.
    """
    everything = np.concatenate([values, target])
    points = np.unique(np.quantile(everything, np.linspace(0, 1, _N_QUANTILES)))
    points[-1] = everything.max()  # quantiles are interpolated
    counts = np.zeros((n, len(points)))
    np.add.at(counts, (window, np.searchsorted(points, values)), 1.0)
    counts = counts.cumsum(axis=1)
    all_together = counts.sum(axis=0) / len(values)
    recorded = np.searchsorted(np.sort(target), points, side="right") / len(target)
    weight = n_windows / (n_windows + N_CANDIDATES_COUNT)
    aim = weight * recorded + (1 - weight) * all_together
    return counts, aim, np.diff(points) / max(float(everything.std()), 1e-9)
