"""Style: what windows of one participant tell of the participant's other windows.

With normal margins, the summary statistics of a window are z = p + e (effects.py), p of the
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

from gazediffusion.conditioning.effects import Posterior, posterior, root_of
from gazediffusion.conditioning.movements import Movements
from gazediffusion.conditioning.prior import Component, Prior
from gazediffusion.conditioning.statistics import measure
from gazediffusion.data.quantization import recorded_steps
from gazediffusion.data.resampling import windows_at
from gazediffusion.data.units import conversions_of
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.geometry import Screen
from gazediffusion.seeds import seed_for

if TYPE_CHECKING:
    from gazediffusion.conditioning.conditioning import Conditioning
    from gazediffusion.data.reading import Recordings

Floats = NDArray[np.float64]
_FURTHER = 5  # names the stream of random numbers of windows after the first of long gaze
_EDGE = 1e-6  # uniforms are kept this far from 0 and 1


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
        words = ((seed, _FURTHER, window), (seed, _FURTHER, window, number))
        of_window, of_number = (
            np.random.default_rng(seed_for(*one)).normal(size=len(self.mean)) for one in words
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
    """The style of one participant's recordings, for a model with windows of so many samples.

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
