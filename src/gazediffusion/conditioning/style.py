"""Style: what windows of one participant imply for the participant's other windows.

With normal margins, the summary statistics of a window are z = p + e (prior.py), p of the
participant and e of the window. A recording gives the mean of z over its windows, and with it the
posterior of p. New windows in the participant's style are drawn with p from this posterior and
with new e. The fewer seconds there are, the closer p is to the mean of all participants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gazediffusion.conditioning.prior import Component, Posterior, Prior, posterior, root_of
from gazediffusion.conditioning.statistics import measure
from gazediffusion.data.events import detect_in_degrees
from gazediffusion.data.resampling import windows_at
from gazediffusion.data.resolution import recorded_steps
from gazediffusion.data.windows import Windows, conversions_of
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from gazediffusion.seeds import Stream, rng

if TYPE_CHECKING:
    from gazediffusion.conditioning.conditioning import Conditioning
    from gazediffusion.data.reading import Recordings

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
QUANTITIES = (
    "fixation duration",
    "saccade rate",
    "amplitude",
    "peak velocity",
    "spread",
    "drift speed",
)
SMOOTHING_S = 0.04  # drift is that of gaze averaged over so much
N_CANDIDATES_COUNT = 4.0  # windows; chosen on training participants (docs/experiments.md)
_CHUNK = 512
_EDGE = 1e-6  # uniforms are kept this far from 0 and 1
_N_QUANTILES = 101  # where distributions are compared
_LEAST = 0.02  # standard deviations: nearer than that is near enough


@dataclass(frozen=True, eq=False)
class Movements:
    """The values of each quantity in some windows, and the window of each value.

    values, window: an array (value,) for each of `QUANTITIES`, in ms, 1/s, degrees, degrees per
    second, degrees, and degrees per second. Durations, amplitudes, velocities and drift have a
    value for each event, saccade rate and spread for each window.
    """

    values: tuple[Floats, ...]
    window: tuple[Numbers, ...]

    @classmethod
    def of(cls, windows: Windows) -> Movements:
        """Of windows whose screens have a size, with the events of `Windows.events`."""
        found = [
            _measured(windows.select(np.arange(first, min(first + _CHUNK, len(windows)))), first)
            for first in range(0, len(windows), _CHUNK)
        ]
        columns = list(zip(*found, strict=True))
        return cls(
            tuple(np.concatenate([value for value, _ in column]) for column in columns),
            tuple(np.concatenate([window for _, window in column]) for column in columns),
        )

    @property
    def means(self) -> Floats:
        """The mean of each quantity, (quantity,)."""
        return np.array([one.mean() for one in self.values])


def _measured(windows: Windows, first: int) -> list[tuple[Floats, Numbers]]:
    """Floats and windows of each quantity; the first window has the number `first`."""
    n, n_samples, rate_hz = len(windows), windows.length, windows.rate_hz
    pixels = windows.to_numpy("px").astype(np.float64)
    degrees = windows.to_numpy("deg").astype(np.float64)
    per_px = np.array([one.width_deg / one.width_px for one in windows.screens])
    per_px = per_px[windows.screen_index]
    speed = np.hypot(*np.diff(pixels).transpose(1, 0, 2)) * per_px[:, None] * rate_hz
    found = detect_in_degrees(speed, 1000 / rate_hz)
    of_saccade = found.saccades[:, 0] // n_samples
    begin, end = found.saccades.T
    way = pixels.transpose(1, 0, 2).reshape(2, -1)
    amplitude = np.hypot(*(way[:, end] - way[:, begin])) * per_px[of_saccade]
    rate = np.bincount(of_saccade, minlength=n) / n_samples * rate_hz
    spread = np.hypot(*degrees.std(axis=2).T)
    begin, end = found.fixations.T
    n_smooth = max(1, round(SMOOTHING_S * rate_hz))
    is_long = end - begin > 2 * n_smooth
    drift = _drift(degrees, n_smooth, begin[is_long], end[is_long]) * rate_hz
    of_fixation = begin // n_samples
    every = np.arange(n)
    values = [
        ((end - begin) / rate_hz * 1000, of_fixation),
        (rate, every),
        (amplitude, of_saccade),
        (found.saccade_peak_speed, of_saccade),
        (spread, every),
        (drift, of_fixation[is_long]),
    ]
    return [(np.asarray(one, dtype=float), number + first) for one, number in values]


def _drift(gaze: Floats, n_smooth: int, begin: Numbers, end: Numbers) -> Floats:
    """Mean step of gaze (window, 2, time) averaged over n_smooth samples, within each segment."""
    flat = gaze.transpose(1, 0, 2).reshape(2, -1)
    steps = np.hypot(*(flat[:, n_smooth:] - flat[:, :-n_smooth])) / n_smooth
    total = np.concatenate([[0.0], np.cumsum(steps)])
    return np.asarray((total[end - n_smooth] - total[begin]) / (end - n_smooth - begin))


@dataclass(frozen=True, eq=False)
class Style:
    """What is known of one participant in one task.

    task, component: numbers of the prior. mean: (statistic,) mean over the windows of the
    statistics with normal margins. n_windows: how many windows that do not overlap the recording
    is worth. origin: what a card says of the recording; it contains no gaze. movements: of the
    recording; None where the screen has no size.
    """

    task: int
    component: int
    mean: Floats
    n_windows: float
    origin: Mapping[str, Any] = field(default_factory=dict)
    movements: Movements | None = None

    @classmethod
    def of_targets(cls, prior: Prior, task: int, component: int, targets: Floats) -> Style:
        """From one window's targets (statistic,), standardized."""
        chosen = prior.components[task][component]
        z = chosen.to_normal(targets[None] * prior.std + prior.mean)
        return cls(task, component, z[0], 1.0)

    def joined(self, other: Style) -> Style:
        """From the windows of both."""
        n_windows = self.n_windows + other.n_windows
        mean = (self.n_windows * self.mean + other.n_windows * other.mean) / n_windows
        return replace(self, mean=mean, n_windows=n_windows)

    def draw(self, prior: Prior, uniforms: Floats) -> tuple[Tensor, list[int]]:
        """What `Prior.draw` gives, by uniforms (window, statistic), of the participant."""
        chosen, known = self._known(prior)
        normal = torch.special.ndtri(torch.from_numpy(uniforms).clamp(_EDGE, 1 - _EDGE)).numpy()
        z = known.mean + normal @ root_of(known.covariance + chosen.within).T
        return prior.from_normal(chosen, z), [self.component] * len(z)

    def draw_further(self, prior: Prior, seed: int, window: int, number: int) -> Tensor:
        """Targets (statistic,), standardized, of the number-th 8 s of a long window of a seed.

        p is the same for every number.
        """
        chosen, known = self._known(prior)
        of_window, of_number = (
            rng(seed, Stream.STYLE, *place).normal(size=len(self.mean))
            for place in ((window,), (window, number))
        )
        common = known.mean + of_window @ root_of(known.covariance).T
        return prior.from_normal(chosen, (common + of_number @ root_of(chosen.within).T)[None])[0]

    def _known(self, prior: Prior) -> tuple[Component, Posterior]:
        chosen = prior.components[self.task][self.component]
        if not chosen.has_effects:
            raise GazeError(
                "this model does not know how participants differ",
                remedy="train it with this version",
            )
        return chosen, posterior(chosen.between, chosen.within, self.mean, self.n_windows)


def style_of(
    recordings: Recordings | Windows,
    conditioning: Conditioning,
    rate_hz: float,
    length: int,
    task: str | None = None,
) -> Style:
    """The style of one participant's recordings, for a model with windows of this many samples.

    recordings: 8 s or more without a gap; more is better. task: which of the model's tasks they
    are taken for; None is their own.
    """
    prior = conditioning.prior
    if prior is None:
        raise GazeError(
            "this model is not conditioned on summary statistics, so `like` cannot steer it",
            remedy="choose one that is, as the default model",
        )
    windows = _of_one_participant(_windows_of(recordings, rate_hz, length), task)
    number = conditioning.task_number(_task_name(windows, conditioning.tasks, task))
    component = _nearest(prior.components[number], np.median(recorded_steps(windows), axis=0))
    gaze = _on_screen(windows, conditioning.task_screens[number])
    values = measure(torch.from_numpy(gaze), rate_hz, prior.names).double().numpy()
    z = prior.components[number][component].to_normal(values)
    n_samples = n_covered(windows)
    sources = windows.provenance.get("sources", ())
    origin = {
        "recordings": [{key: one[key] for key in ("name", "sha256")} for one in sources],
        "seconds": round(n_samples / rate_hz, 3),
        "n_windows": len(windows),
    }
    screens = {windows.screens[k] for k in np.unique(windows.screen_index)}
    has_degrees = all(one.has_degrees for one in {*screens, conditioning.task_screens[number]})
    movements = Movements.of(windows) if has_degrees else None
    return Style(number, component, z.mean(axis=0), n_samples / length, origin, movements)


def _windows_of(recordings: Recordings | Windows, rate_hz: float, length: int) -> Windows:
    """Windows of the model's rate and length, a second apart where they are cut here."""
    if not isinstance(recordings, Windows):
        from gazediffusion.data.preparing import style_windows

        return style_windows(recordings, rate_hz, length / rate_hz)
    windows = windows_at(recordings, rate_hz)
    if windows.length != length or len(windows) == 0:
        raise GazeError(
            f"`like` needs windows of {length / rate_hz:g} s, not {len(windows)} of "
            f"{windows.length / rate_hz:g} s"
        )
    return windows


def _of_one_participant(windows: Windows, task: str | None) -> Windows:
    """The windows of a task where they have it; windows of several participants are refused."""
    if task in windows.tasks and (windows.task == windows.tasks.index(task)).any():
        windows = windows.of_task(task)
    names = [windows.participants[k] for k in np.unique(windows.participant)]
    if len(names) > 1:
        listed = ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
        raise GazeError(
            f"`like` takes recordings of one participant, and these are of {len(names)} ({listed})",
            remedy="give a file of one of them",
        )
    return windows


def _task_name(windows: Windows, known: tuple[str, ...], task: str | None) -> str:
    """The task that the windows are taken for; their own where none is given."""
    own = [windows.tasks[k] for k in np.unique(windows.task)]
    if len(own) > 1:
        raise GazeError(
            f"the recordings of `like` have several tasks ({', '.join(own)})",
            remedy="say with `task` which to take, or give a file of one",
        )
    if task is None and own[0] not in known:
        raise GazeError(
            f"the model has no task {own[0]!r}, which `like` was recorded in",
            remedy=f"choose the most similar task with `task`: {', '.join(known)}",
        )
    return own[0] if task is None else task


def _nearest(components: tuple[Component, ...], step: Floats) -> int:
    """The component whose recordings have the nearest step (2,), normalized."""
    return int(np.argmin([np.abs(one.step - step).sum() for one in components]))


def _on_screen(windows: Windows, screen: Screen) -> NDArray[np.float32]:
    """Gaze (window, 2, time) normalized to a screen on which it has the same size in degrees."""
    spread = windows.dequantized(seed=0)
    others = {windows.screens[k] for k in np.unique(windows.screen_index)} - {screen}
    if not others:
        return spread.cut()
    if not (screen.has_degrees and all(one.has_degrees for one in others)):
        raise GazeError(
            f"the screen of `like` has no size, and the model's is {screen.in_words()}",
            remedy="give `screen` with its size (`width_cm`) and `distance_cm`",
        )
    to_deg, from_deg = conversions_of("deg")
    return spread.on_screens(spread.cut(), lambda own, gaze: from_deg(screen, to_deg(own, gaze)))


def n_covered(windows: Windows) -> int:
    """How many samples lie in any of the windows."""
    starts = np.sort(windows.starts)
    return int(
        np.minimum(np.diff(starts, append=starts[-1] + windows.length), windows.length).sum()
    )


def choose(
    candidates: Movements, n_candidates: int, like: Movements, n_windows: float, n: int
) -> list[int]:
    """The numbers of n candidates, in the order in which they were taken.

    n_windows: how many windows that do not overlap the recording `like` is worth. The first k are
    the same for every n.

    >>> from gazediffusion.conditioning.style import QUANTITIES
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
    values: Floats, window: Numbers, target: Floats, n: int, n_windows: float
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
