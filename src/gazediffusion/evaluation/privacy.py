"""Privacy: does a generator repeat its training windows, or betray them by its loss?

Memorisation. Distance of windows a, b: with every trajectory averaged over blocks of 40 ms (25 Hz),
    d(a, b) = min over m, r, s of sqrt(mean over t of |a(t) - m r b(t + s)|^2),
m mirrors x, y, both or neither, r reverses time or not, s shifts by up to 1 s (windows slide by
1 s): copies that augmentation could hide. The mean runs over the overlap; nothing is centred. The
nearest window is sought with s in steps of 80 ms, its distance then taken with s to the sample.
Windows of held-out participants, which no model could copy, give the distances by chance.

Membership inference. The attack is the loss threshold that works on diffusion models (Carlini et
al. 2023, Matsumoto et al. 2023): a window the model denoises better is more likely to be a training
window. Its strength is the area under the ROC curve (AUC): 0.5 is chance, 1.0 identifies every
window. Windows of one participant are not independent, so the interval is a bootstrap over
participants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion import seeds
from gazediffusion.data.windows import Windows, evenly_spaced
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.metrics import central, drawn_windows
from gazediffusion.seeds import Stream

if TYPE_CHECKING:
    import torch

    from gazediffusion.network.checkpoint import Run

Floats = NDArray[np.float64]
Gaze = NDArray[np.floating[Any]]
THINNED_HZ = 25.0
MAX_SHIFT_S = 1.0
_MAX_SHIFT = 24  # blocks; with a last block from the search to the sample, 1 s
MIN_WINDOWS = 50
QUANTILES = (0.001, 0.01, 0.05, 0.5)
COPY_QUANTILE = 0.01
N_PAIRS = 5
N_CHANCE = 1000  # training windows compared with those of other training participants
_CHUNK_PAIRS = 2**20  # distances held at once: 4 MB stay in the cache
_BATCH = 32
_REPLICATES = 400


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest training window of each window, each (window,), and its alignment.

    distance: in the positions' unit. index: of the training window. shift: s in samples.
    """

    distance: Floats
    index: NDArray[np.int64]
    shift: NDArray[np.int64]
    is_reversed: NDArray[np.bool_]


def memorisation(
    synthetic: Gaze,
    training: Gaze,
    held_out: Gaze,
    rate_hz: float = 250.0,
    held_out_nearest: Nearest | None = None,
    between: Mapping[str, Floats] = MappingProxyType({}),
) -> dict[str, Any]:
    """Distances synthetic -> training against held-out -> training of gaze (window, 2, time).

    share_of_copies: share of synthetic windows nearer to training than the 1 % quantile of the
    held-out (`copy_distance`), 0.01 by chance, with an exact 95 % binomial interval;
    share_below_minimum: nearer than every held-out window. auc: chance that a synthetic window
    is nearer than a held-out one, 0.5 without copying; p_value: one-sided Mann-Whitney, which
    treats windows as independent and so is too small where held-out ones overlap.
    nearest_in_training: share of synthetic windows whose nearest real one, of both sets, is a
    training window; gaze of little movement is near to everything, and only copying raises this
    above `nearest_in_training_expected`, the training set's share of the real windows. pairs: the
    closest, aligned. `held_out_nearest` is `nearest(held_out, training, rate_hz)` where known.
    `between`: distances between training participants; with them `between_participants` gives the
    shares of copies against that second chance level.
    """
    from scipy.stats import mannwhitneyu

    for name, gaze in (("synthetic", synthetic), ("training", training), ("held-out", held_out)):
        if len(gaze) < MIN_WINDOWS:
            few = f"{len(gaze)} {name} windows, at least {MIN_WINDOWS} are needed"
            raise GazeError(f"memorisation is not computable: {few}")
    chance = held_out_nearest or nearest(held_out, training, rate_hz)
    copy_distance = float(np.quantile(chance.distance, COPY_QUANTILE))
    if copy_distance < 1e-6:
        raise GazeError("memorisation is not computable: held-out windows are training windows")
    found = nearest(synthetic, training, rate_hz)
    to_held_out = nearest(synthetic, held_out, rate_hz).distance
    n = len(synthetic)
    copies = share_of_copies(found.distance, chance.distance)
    test = mannwhitneyu(found.distance, chance.distance, alternative="less")
    return {
        "n_synthetic": n,
        "n_training": len(training),
        "n_held_out": len(held_out),
        "quantile_levels": list(QUANTILES),
        "synthetic_quantiles": np.quantile(found.distance, QUANTILES).tolist(),
        "held_out_quantiles": np.quantile(chance.distance, QUANTILES).tolist(),
        "copy_distance": copy_distance,
        "share_of_copies": copies["share_of_copies"],
        "share_of_copies_interval": copies["interval"],
        "share_of_copies_expected": COPY_QUANTILE,
        "share_below_minimum": copies["share_below_minimum"],
        "auc": 1.0 - float(test.statistic) / (n * len(held_out)),
        "p_value": float(test.pvalue),
        "nearest_in_training": float((found.distance < to_held_out).mean()),
        "nearest_in_training_expected": len(training) / (len(training) + len(held_out)),
        "between_participants": {
            key: share_of_copies(of_set, between[key])
            for key, of_set in _both_distances(found, synthetic).items()
            if key in between
        },
        "pairs": _closest_pairs(found, synthetic, training, rate_hz),
    }


def share_of_copies(found: Floats, chance: Floats) -> dict[str, Any]:
    """The share of distances below the 1 % quantile of those by chance, and below all of them."""
    from scipy.stats import binomtest

    n_copies = int((found < np.quantile(chance, COPY_QUANTILE)).sum())
    interval = binomtest(n_copies, len(found)).proportion_ci()
    return {
        "share_of_copies": n_copies / len(found),
        "interval": [float(interval.low), float(interval.high)],
        "share_below_minimum": float((found < chance.min()).mean()),
    }


def between_participants(
    training: Gaze, participant: NDArray[np.integer[Any]], rate_hz: float = 250.0
) -> dict[str, Floats]:
    """Distances of N_CHANCE training windows to the nearest of another training participant.

    A second chance level: few held-out participants may move less than the training participants,
    and gaze of little movement is near to everything. Both the distance and the distance over the
    window's own spread, which corrects for that, each (window,).
    """
    chosen = seeds.rng(0, Stream.EVALUATION, "chance").permutation(len(training))[:N_CHANCE]
    found = nearest(training[chosen], training, rate_hz, (participant[chosen], participant))
    return _both_distances(found, training[chosen])


def _both_distances(found: Nearest, windows: Gaze) -> dict[str, Floats]:
    """The distance, and the distance over the window's own spread, each (window,)."""
    spread = np.sqrt(windows.var(axis=2, dtype=np.float64).sum(axis=1))
    return {
        "distance": found.distance,
        "distance_over_spread": found.distance / np.maximum(spread, 1e-6),
    }


def nearest(
    windows: Gaze,
    training: Gaze,
    rate_hz: float = 250.0,
    participants: tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]] | None = None,
) -> Nearest:
    """The nearest of the training windows (m, 2, time) to each of the windows (n, 2, time).

    participants: of the windows (n,) and of the training windows (m,); where given, only windows
    of other participants count.
    """
    if windows.shape[1:] != training.shape[1:]:
        raise GazeError(f"windows of {windows.shape[1:]} and of {training.shape[1:]} samples")
    if windows.shape[2] <= 2 * MAX_SHIFT_S * rate_hz:
        raise GazeError(f"windows must last more than {2 * MAX_SHIFT_S:g} s to be shifted by 1 s")
    if not (np.isfinite(windows).all() and np.isfinite(training).all()):
        raise GazeError("memorisation is not computable: NaN or infinite positions")
    size = _block_size(rate_hz)
    a, b = _thinned(windows, size), _thinned(training, size)
    rows = max(1, _CHUNK_PAIRS // len(b))
    parts = []
    for k in range(0, len(a), rows):
        is_same = None
        if participants is not None:
            is_same = participants[0][k : k + rows, None] == participants[1][None]
        parts.append(_search(a[k : k + rows], b, is_same))
    index, shift, is_reversed = (np.concatenate(part) for part in zip(*parts, strict=True))
    coarse, distance = shift * size, np.full(len(a), np.inf)
    for k in range(len(a)):
        for s in range(coarse[k] - size, coarse[k] + size + 1):
            pair = _aligned(windows[k], training[index[k]], s, bool(is_reversed[k]), size)
            rms = float(np.sqrt(((pair[0] - pair[1]) ** 2).sum(axis=0).mean()))
            if rms < distance[k]:
                distance[k], shift[k] = rms, s
    return Nearest(distance, index, shift, is_reversed)


def _block_size(rate_hz: float) -> int:
    return max(1, round(rate_hz / THINNED_HZ))


def _thinned(gaze: Gaze, size: int) -> Floats:
    """Means of blocks of `size` samples, (..., block); what is left at the end goes."""
    n_blocks = gaze.shape[-1] // size
    blocks = gaze[..., : n_blocks * size].reshape(*gaze.shape[:-1], n_blocks, size)
    return np.asarray(blocks.mean(axis=-1, dtype=np.float64))


def _search(
    windows: Floats, training: Floats, is_excluded: NDArray[np.bool_] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Index, shift in blocks and reversal of the nearest training window, for a few windows.

    |a - m b|^2 = |a|^2 + |b|^2 - 2 (m_x a_x.b_x + m_y a_y.b_y), and the best mirror makes both
    products positive, so four mirrors cost two matrix products of absolute value.
    """
    n, length = len(windows), windows.shape[2]
    a = windows.transpose(1, 0, 2).astype(np.float32)
    best = np.full(n, np.inf)
    index, shift = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    is_reversed = np.zeros(n, dtype=bool)
    for backwards in (False, True):
        directed = training[:, :, ::-1] if backwards else training
        b = np.ascontiguousarray(directed.transpose(1, 0, 2), dtype=np.float32)
        for s in range(-_MAX_SHIFT, _MAX_SHIFT + 1, 2):
            a_seen = a[..., max(0, -s) : length - max(0, s)]
            b_seen = b[..., max(0, s) : length + min(0, s)]
            excess = np.abs(a_seen[0] @ b_seen[0].T)
            excess += np.abs(a_seen[1] @ b_seen[1].T)
            excess *= -2.0
            excess += (b_seen**2).sum(axis=(0, 2))
            if is_excluded is not None:
                excess[is_excluded] = np.inf
            row_best = excess.argmin(axis=1)
            square = excess[np.arange(n), row_best] + (a_seen**2).sum(axis=(0, 2))
            square /= a_seen.shape[2]
            is_better = square < best
            best[is_better], index[is_better] = square[is_better], row_best[is_better]
            shift[is_better], is_reversed[is_better] = s, backwards
    return index, shift, is_reversed


def _aligned(
    window: Gaze, training: Gaze, shift: int, is_reversed: bool, size: int
) -> tuple[Floats, Floats]:
    """The thinned overlap (2, block) of two windows, the training one mirrored to fit best."""
    whole = training[:, : training.shape[1] // size * size]
    directed = whole[:, ::-1] if is_reversed else whole
    skipped = -(min(0, shift) // size) * size  # whole blocks of the window with no partner
    b = _thinned(directed[:, skipped + shift :], size)
    a = _thinned(window[:, skipped:], size)[:, : b.shape[1]]
    b = b[:, : a.shape[1]]
    return a, np.where((a * b).sum(axis=1, keepdims=True) < 0, -b, b)


def _closest_pairs(
    found: Nearest, windows: Gaze, training: Gaze, rate_hz: float
) -> list[dict[str, Any]]:
    """The pairs of least distance, with both trajectories [[x ...], [y ...]] at 25 Hz."""
    pairs = []
    for k in np.argsort(found.distance, kind="stable")[:N_PAIRS]:
        index, shift, is_reversed = int(found.index[k]), int(found.shift[k]), found.is_reversed[k]
        a, b = _aligned(windows[k], training[index], shift, is_reversed, _block_size(rate_hz))
        pairs.append(
            {
                "distance": float(found.distance[k]),
                "synthetic_index": int(k),
                "training_index": index,
                "shift_s": shift / rate_hz,
                "is_reversed": bool(is_reversed),
                "synthetic": np.round(a, 4).tolist(),
                "training": np.round(b, 4).tolist(),
            }
        )
    return pairs


@dataclass(frozen=True)
class Membership:
    """How well the loss separates training windows from windows of held-out participants.

    auc, interval: over windows, the 95 % interval from drawing participants. auc_participants: over
    participants, each by the mean loss of their windows.
    """

    auc: float
    interval: Sequence[float]
    auc_participants: float
    n_members: int
    n_others: int
    n_levels: int


def membership(
    run: Run, training: Windows, held_out: Windows, n_windows: int = 200, n_levels: int = 8
) -> Membership:
    """Attack a run with windows of its training participants and of held-out participants.

    Each window's loss is its mean over noise levels distributed as in training, the noise the same
    for all windows. At most `n_windows` of either side, evenly spaced.
    """
    sides = []
    for side in (training, held_out):
        if len(side) < 2:
            raise GazeError("membership needs windows of training and of held-out participants")
        some = side.dequantized(seed=0).select(evenly_spaced(len(side), n_windows))
        names = [some.participants[number] for number in some.participant]
        participant = np.unique(names, return_inverse=True)[1].astype(np.int64)
        sides.append((_losses(run, some, n_levels), participant))
    (members, of_member), (others, of_other) = sides
    rng = seeds.rng(0, Stream.EVALUATION, "groups")
    draws = [
        auc(members[drawn_windows(of_member, rng)], others[drawn_windows(of_other, rng)])
        for _ in range(_REPLICATES)
    ]
    by_participant = [np.bincount(of, losses) / np.bincount(of) for losses, of in sides]
    return Membership(
        auc=auc(members, others),
        interval=central(draws),
        auc_participants=auc(*by_participant),
        n_members=len(members),
        n_others=len(others),
        n_levels=n_levels,
    )


def auc(members: Floats, others: Floats) -> float:
    """The probability that a member's loss is below another's; ties count half."""
    ordered = np.sort(members)
    n_below, n_not_above = (np.searchsorted(ordered, others, side) for side in ("left", "right"))
    return float((n_below + n_not_above).mean() / (2 * len(members)))


def _losses(run: Run, windows: Windows, n_levels: int) -> Floats:
    """Each window's mean loss, (window,).

    A steerable network is given no sequences. Its channels of labels are zero, without noise, and
    do not count.
    """
    import torch
    from torch.nn import functional

    from gazediffusion.training.batches import Batches

    device = next(run.network.parameters()).device
    config = run.config
    batches = Batches([windows], config, 0, device)
    process = config.recipe.noise().to(device)
    levels = process.stratified(n_levels).to(device)
    n_labels = config.recipe.network.channels - config.recipe.gaze_channels
    n = len(batches.starts)
    result = np.zeros(n)

    def padded(gaze: torch.Tensor) -> torch.Tensor:
        """With zeros for the channels of labels."""
        return functional.pad(gaze, (0, 0, 0, n_labels))

    with torch.no_grad():
        for first in range(0, n, _BATCH):
            indices = torch.arange(first, min(first + _BATCH, n), device=device)
            x0 = config.representation.encode(batches.clean(indices))
            condition = batches.condition(indices)
            for number in range(n_levels):
                draws = seeds.rng(0, Stream.EVALUATION, "denoising", number)
                noise = draws.standard_normal(x0.shape[1:], np.float32)
                eps = torch.from_numpy(noise).to(device).expand_as(x0)
                level = levels[number].expand(len(x0))
                counts = {"counts": padded(torch.ones_like(x0))} if n_labels else {}
                losses = process.losses(
                    run.network, padded(x0), level, padded(eps), *condition, **counts
                )
                result[indices.cpu().numpy()] += losses.double().cpu().numpy() / n_levels
    return result
