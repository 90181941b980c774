"""Event detectors that are trained on labelled windows: a small network and a random forest.

They measure what labelled windows are worth as training data. Both see the usual features of a
sample (speed at several scales and direction, as Startsev et al. 2019, dispersion and
straightness), in degrees, and give probabilities; labels are the most probable sequence of
`generation.labelling`. The network is dilated convolutions in time (Elmadjian et al. 2022 use
such a one for GazeCom).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from gazediffusion.data.recordings import EVENT_CLASSES
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.generation.labelling import most_probable_sequence

Floats = NDArray[np.float32]
Labels = NDArray[np.uint8]
SCALES_MS = (8.0, 16.0, 32.0, 64.0, 128.0)  # of speed and direction
SPREADS_MS = (64.0, 128.0, 256.0)  # of dispersion and straightness
N_FEATURES = 4 * len(SCALES_MS) + 2 * len(SPREADS_MS)
_LEAST = 1e-3  # probability
_CHUNK = 64  # windows at a time
_CROP = 500  # samples of a window that the network is trained on at a time


class Detector(Protocol):
    """Gives the event class of every sample of windows."""

    def labels(self, windows: Windows) -> Labels:
        """Event classes (window, time)."""
        ...


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


class NetworkDetector:
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
        rng = np.random.default_rng(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
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
    def labels(self, windows: Windows) -> Labels:
        """Event classes (window, time)."""
        return _labels(windows, self._probabilities)

    def _probabilities(self, x: Floats) -> Floats:
        logits = self.network(torch.from_numpy(x).to(self.device))
        return np.asarray(logits.softmax(dim=1).float().cpu().numpy())


class ForestDetector:
    """A random forest over the features of single samples."""

    def __init__(self, forest: Any) -> None:
        self.forest = forest

    @classmethod
    def fit(
        cls, sets: Sequence[Windows], seed: int = 0, n_samples: int = 60_000, n_trees: int = 50
    ) -> ForestDetector:
        """Train on so many labelled samples, drawn from all windows."""
        from sklearn.ensemble import RandomForestClassifier

        x, y = _training_set(sets)
        rows, times = np.nonzero(y)
        rng = np.random.default_rng(seed)
        chosen = rng.permutation(len(rows))[:n_samples]
        forest = RandomForestClassifier(
            n_trees, min_samples_leaf=5, max_features="sqrt", n_jobs=-1, random_state=seed
        )
        forest.fit(x[rows[chosen], :, times[chosen]], y[rows[chosen], times[chosen]])
        return cls(forest)

    def labels(self, windows: Windows) -> Labels:
        """Event classes (window, time)."""
        return _labels(windows, self._probabilities)

    def _probabilities(self, x: Floats) -> Floats:
        n, n_features, n_samples = x.shape
        given = self.forest.predict_proba(x.transpose(0, 2, 1).reshape(-1, n_features))
        every = np.zeros((len(given), len(EVENT_CLASSES)), dtype=np.float32)
        every[:, self.forest.classes_ - 1] = given
        return every.reshape(n, n_samples, -1).transpose(0, 2, 1)


class _Convolutions(nn.Module):
    """Residual dilated convolutions, (batch, feature, time) to (batch, class, time)."""

    def __init__(self, width: int = 32, dilations: Sequence[int] = (1, 3, 9, 27)) -> None:
        super().__init__()
        self.first = nn.Conv1d(N_FEATURES, width, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.GroupNorm(4, width),
                nn.GELU(),
                nn.Conv1d(width, width, 5, padding=2 * dilation, dilation=dilation),
            )
            for dilation in dilations
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


_kept: WeakKeyDictionary[Windows, Floats] = WeakKeyDictionary()


def _kept_features(windows: Windows) -> Floats:
    """Features that are computed once, as long as the windows exist."""
    if windows not in _kept:
        _kept[windows] = features(windows)
    return _kept[windows]


def _labels(windows: Windows, probabilities: Callable[[Floats], Floats]) -> Labels:
    x = _kept_features(windows)
    parts = [probabilities(x[first : first + _CHUNK]) for first in range(0, len(x), _CHUNK)]
    return most_probable_sequence(np.maximum(np.concatenate(parts), _LEAST)) + np.uint8(1)


def _mirrored(x: Tensor, rng: np.random.Generator) -> Tensor:
    """Features of windows whose axes are mirrored at random: only velocities change their sign."""
    sign = torch.ones(len(x), N_FEATURES, 1, device=x.device)
    flips = torch.from_numpy(rng.choice([-1.0, 1.0], (len(x), 2, 1)).astype(np.float32))
    for scale in range(len(SCALES_MS)):
        sign[:, 4 * scale : 4 * scale + 2] = flips.to(x.device)
    return x * sign


def _shifted(gaze: NDArray[np.float64], by: int) -> NDArray[np.float64]:
    """Gaze (..., time) so many samples later; the border is repeated."""
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
