"""Event labels: detectors that are trained on labelled windows, and scores of labels.

Detectors measure what labelled windows are worth as training data. A small network and a random
forest see the usual features of a sample (speed at several scales and direction, as Startsev et al.
2019, dispersion and straightness), in degrees, and give probabilities; labels are the most probable
sequence of `generation.label_sequences`. The network is dilated convolutions in time (Elmadjian et
al. 2022 use such a one for GazeCom).

Scores are F1 of samples and of events, by class. An event of one labelling is found where an event
of the same class in the other overlaps it by more than half of their union (IoU > 0.5; Startsev,
Agtzidis, Dorr 2019, Behavior Research Methods 51:556). Above one half no event has two partners, so
that the order does not matter. F1 is twice the hits over the number of events, or samples, of both
labellings. Samples without a true label do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from gazediffusion import seeds
from gazediffusion.data.recordings import EVENT_CLASSES, label_segments
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.generation.labelling import most_probable_sequence
from gazediffusion.seeds import Stream

Floats = NDArray[np.float32]
Labels = NDArray[np.uint8]
SCALES_MS = (8.0, 16.0, 32.0, 64.0, 128.0)  # of speed and direction
SPREADS_MS = (64.0, 128.0, 256.0)  # of dispersion and straightness
N_FEATURES = 4 * len(SCALES_MS) + 2 * len(SPREADS_MS)
_LEAST = 1e-3  # probability
_CHUNK = 64  # windows at a time
_CROP = 500  # samples of a window that the network is trained on at a time
_kept: WeakKeyDictionary[Windows, Floats] = WeakKeyDictionary()
Doubles = NDArray[np.float64]
N_CLASSES = len(EVENT_CLASSES)
MIN_IOU = 0.5


class Detector:
    """Gives the event class of every sample of windows, by probabilities of single samples."""

    def labels(self, windows: Windows) -> Labels:
        """Event classes (window, time)."""
        x = _kept_features(windows)
        parts = [self.probabilities(x[at : at + _CHUNK]) for at in range(0, len(x), _CHUNK)]
        return most_probable_sequence(np.maximum(np.concatenate(parts), _LEAST)) + np.uint8(1)

    def probabilities(self, x: Floats) -> Floats:
        """Of the classes (window, class, time), by features (window, feature, time)."""
        raise NotImplementedError


def features(windows: Windows) -> Floats:
    """Features of every sample, (window, feature, time), of about unit scale.

    At each scale: velocity in x and y and speed, compressed by asinh, and the cosine of the turn
    between before and after. At each spread: log dispersion, and net displacement over path.
    """
    gaze = windows.to_numpy("deg").astype(np.float64)
    found = []
    for scale_ms in SCALES_MS:
        half = max(1, round(scale_ms * windows.rate_hz / 2000))
        seconds = 2 * half / windows.rate_hz
        later, earlier = _shifted(gaze, half), _shifted(gaze, -half)
        velocity = (later - earlier) / seconds
        speed = np.hypot(velocity[:, 0], velocity[:, 1])
        before, after = gaze - earlier, later - gaze
        lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
        turn = (before * after).sum(axis=1) / np.maximum(lengths, 1e-9)
        found += [*np.arcsinh(velocity / 10).transpose(1, 0, 2), np.arcsinh(speed / 10), turn]
    steps = np.hypot(*np.diff(gaze, axis=2, prepend=gaze[..., :1]).transpose(1, 0, 2))
    for spread_ms in SPREADS_MS:
        half = max(1, round(spread_ms * windows.rate_hz / 2000))
        spread = np.sqrt(sum(_variance(gaze[:, axis], half) for axis in (0, 1)))
        path = _mean(steps, half) * (2 * half + 1)
        net = np.linalg.norm(_shifted(gaze, half) - _shifted(gaze, -half), axis=1)
        found += [np.log10(np.maximum(spread, 1e-3)), net / np.maximum(path, 1e-6)]
    return np.stack(found, axis=1).astype(np.float32)


class NetworkDetector(Detector):
    """Dilated convolutions over the features of a window."""

    def __init__(self, network: nn.Module, device: torch.device) -> None:
        self.network, self.device = network, device

    @classmethod
    def fit(
        cls,
        sets: Sequence[Windows],
        seed: int = 0,
        steps: int = 400,
        batch_size: int = 16,
        device: torch.device | str = "cpu",
    ) -> NetworkDetector:
        """Train on windows with labels; the same number of steps whatever their number."""
        x, y = _training_set(sets)
        device = torch.device(device)
        inputs, classes = torch.from_numpy(x).to(device), torch.from_numpy(y).to(device)
        rng = seeds.rng(seed, Stream.EVALUATION, "network")
        with seeds.torch_seeded(seed, Stream.EVALUATION, "network"):
            network = _Convolutions().to(device)
        optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=1e-2)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=steps)
        for _ in range(steps):
            chosen = torch.from_numpy(rng.integers(0, len(x), batch_size)).to(device)
            start = int(rng.integers(0, max(1, x.shape[2] - _CROP + 1)))
            batch = _mirrored(inputs[chosen, :, start : start + _CROP], rng)
            true = classes[chosen, start : start + _CROP] - 1
            loss = functional.cross_entropy(network(batch), true, ignore_index=-1)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
        return cls(network.eval(), device)

    @torch.inference_mode()
    def probabilities(self, x: Floats) -> Floats:
        """Softmax of the network's output."""
        logits = self.network(torch.from_numpy(x).to(self.device))
        return np.asarray(logits.softmax(dim=1).float().cpu().numpy())


class ForestDetector(Detector):
    """A random forest over the features of single samples."""

    def __init__(self, forest: Any) -> None:
        self.forest = forest

    @classmethod
    def fit(
        cls, sets: Sequence[Windows], seed: int = 0, n_samples: int = 60_000, n_trees: int = 50
    ) -> ForestDetector:
        """Train on n labelled samples, drawn from all windows."""
        from sklearn.ensemble import RandomForestClassifier

        x, y = _training_set(sets)
        rows, times = np.nonzero(y)
        rng = seeds.rng(seed, Stream.EVALUATION, "forest")
        chosen = rng.permutation(len(rows))[:n_samples]
        forest = RandomForestClassifier(
            n_trees, min_samples_leaf=5, max_features="sqrt", n_jobs=-1, random_state=seed
        )
        forest.fit(x[rows[chosen], :, times[chosen]], y[rows[chosen], times[chosen]])
        return cls(forest)

    def probabilities(self, x: Floats) -> Floats:
        """Shares of the trees' votes; classes that it has not seen have none."""
        n, n_features, n_samples = x.shape
        given = self.forest.predict_proba(x.transpose(0, 2, 1).reshape(-1, n_features))
        every = np.zeros((len(given), len(EVENT_CLASSES)), dtype=np.float32)
        every[:, self.forest.classes_ - 1] = given
        return every.reshape(n, n_samples, -1).transpose(0, 2, 1)


class _Convolutions(nn.Module):
    """Residual dilated convolutions, (batch, feature, time) to (batch, class, time)."""

    def __init__(self) -> None:
        super().__init__()
        width = 32
        self.first = nn.Conv1d(N_FEATURES, width, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.GroupNorm(4, width),
                nn.GELU(),
                nn.Conv1d(width, width, 5, padding=2 * dilation, dilation=dilation),
            )
            for dilation in (1, 3, 9, 27)
        )
        self.last = nn.Sequential(nn.GELU(), nn.Conv1d(width, len(EVENT_CLASSES), 1))

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the classes."""
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        logits: Tensor = self.last(x)
        return logits


def _training_set(sets: Sequence[Windows]) -> tuple[Floats, NDArray[np.int64]]:
    """Features (window, feature, time) and classes (window, time) of windows with labels."""
    labels = np.concatenate([one.cut_labels() for one in sets]).astype(np.int64)
    if not labels.any():
        raise GazeError("these windows have no labels", remedy="generate them with `labels`")
    return np.concatenate([_kept_features(one) for one in sets]), labels


def _kept_features(windows: Windows) -> Floats:
    """Features that are computed once, as long as the windows exist."""
    if windows not in _kept:
        _kept[windows] = features(windows)
    return _kept[windows]


def _mirrored(x: Tensor, rng: np.random.Generator) -> Tensor:
    """Features of windows whose axes are mirrored at random: only velocities change their sign."""
    sign = torch.ones(len(x), N_FEATURES, 1, device=x.device)
    flips = torch.from_numpy(rng.choice([-1.0, 1.0], (len(x), 2, 1)).astype(np.float32))
    for scale in range(len(SCALES_MS)):
        sign[:, 4 * scale : 4 * scale + 2] = flips.to(x.device)
    return x * sign


def _shifted(gaze: NDArray[np.float64], by: int) -> NDArray[np.float64]:
    """Gaze (..., time) this many samples later; the border is repeated."""
    at = np.clip(np.arange(gaze.shape[-1]) + by, 0, gaze.shape[-1] - 1)
    return np.asarray(gaze[..., at])


def _mean(values: NDArray[np.float64], half: int) -> NDArray[np.float64]:
    """Running mean (window, time) over 2 half + 1 samples; the border is repeated."""
    padded = np.pad(values, ((0, 0), (half + 1, half)), mode="edge")
    total = np.cumsum(padded, axis=1)
    width = 2 * half + 1
    return np.asarray((total[:, width:] - total[:, :-width]) / width)


def _variance(values: NDArray[np.float64], half: int) -> NDArray[np.float64]:
    """Running variance (window, time)."""
    centred = values - values.mean(axis=1, keepdims=True)
    variance = _mean(centred**2, half) - _mean(centred, half) ** 2
    return np.asarray(np.maximum(variance, 0.0))


@dataclass(frozen=True, eq=False)
class Matches:
    """Hits and numbers of both labellings, each (window, class) or (group, class)."""

    hits: Doubles
    n_true: Doubles
    n_found: Doubles

    def by_group(self, group: NDArray[np.integer]) -> Matches:
        """Summed over the windows of each group, in the order of the groups' numbers."""
        _, number = np.unique(group, return_inverse=True)
        is_in = (number[None] == np.arange(number.max() + 1)[:, None]).astype(np.float64)
        return Matches(is_in @ self.hits, is_in @ self.n_true, is_in @ self.n_found)

    def f1(self, weights: Doubles | None = None) -> Doubles:
        """F1 of each class, (class,), NaN where neither labelling has it.

        weights (replicate, window): how often each window counts; F1 is then (replicate, class).
        """
        weights = np.ones(len(self.hits)) if weights is None else weights
        hits, n_true, n_found = (weights @ one for one in (self.hits, self.n_true, self.n_found))
        n = n_true + n_found
        return np.divide(2 * hits, n, out=np.full_like(n, np.nan), where=n > 0)


def match_samples(true: Labels, found: Labels) -> Matches:
    """Matches of the samples of two labellings (window, time)."""
    found = np.where(true > 0, found, 0)
    one, other = (
        np.stack([labels == number for number in range(1, N_CLASSES + 1)], axis=1)
        for labels in (true, found)
    )
    counts = [np.asarray(np.count_nonzero(mask, axis=2)) for mask in (one & other, one, other)]
    return Matches(*(count.astype(np.float64) for count in counts))


def match_events(true: Labels, found: Labels) -> Matches:
    """Matches of the events of two labellings (window, time).

    >>> true = np.array([[1, 1, 1, 1, 2, 2, 1, 1, 1, 1]], dtype=np.uint8)
    >>> found = np.array([[1, 1, 1, 1, 1, 2, 2, 2, 1, 1]], dtype=np.uint8)
    >>> match_events(true, found).f1().round(2).tolist()  # saccades: 1 of 4 samples in common
    [0.5, 0.0, nan, nan]
    """
    found = np.where(true > 0, found, 0).astype(np.uint8)
    counts = np.zeros((3, len(true), N_CLASSES))
    for window, (own, other) in enumerate(zip(true, found, strict=True)):
        a, b = label_segments(own), label_segments(other)
        overlap = np.minimum(a[:, None, 1], b[:, 1]) - np.maximum(a[:, None, 0], b[:, 0])
        union = np.maximum(a[:, None, 1], b[:, 1]) - np.minimum(a[:, None, 0], b[:, 0])
        is_hit = (overlap > MIN_IOU * union) & (a[:, None, 2] == b[:, 2])
        for number, classes in enumerate((a[is_hit.any(axis=1), 2], a[:, 2], b[:, 2])):
            counts[number, window] = np.bincount(classes, minlength=N_CLASSES + 1)[1:]
    return Matches(*counts)


def confusion(true: Labels, found: Labels) -> Doubles:
    """Share (true class, found class) of the samples of each true class; NaN without any."""
    pairs = true.astype(np.int64).ravel() * (N_CLASSES + 1) + found.ravel()
    counts = np.bincount(pairs, minlength=(N_CLASSES + 1) ** 2).reshape(N_CLASSES + 1, -1)
    table = counts[1:, 1:].astype(np.float64)
    total = table.sum(axis=1, keepdims=True)
    shares: Doubles = np.divide(table, total, out=np.full_like(table, np.nan), where=total > 0)
    return shares
