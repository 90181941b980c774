"""The raw scores of windows: log-likelihood and denoising errors under an EDM model.

The network is given the task where the model has it. Summary statistics are dropped out: they are
measured from the window itself, and would explain an odd window away. Nothing else is given, and
channels of labels are zero, as in generation. Scores depend on the window, its task and the seed.

Windows differ in how hard they are to denoise, which hides small oddities. Contrasts take that out:
the errors of the same noised window are compared under another condition, that it was mirrored (the
network has learned from mirrored windows under such a label) or has no task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from gazediffusion.conditioning import Condition
from gazediffusion.data.windows import CLIP, Windows
from gazediffusion.diffusion.likelihood import Flow, denoising_errors
from gazediffusion.diffusion.solvers import CleanEstimate
from gazediffusion.errors import GazeError
from gazediffusion.generation.sampler import default_batch_size
from gazediffusion.network.checkpoint import Run
from gazediffusion.network.representations import Joint
from gazediffusion.screen import Screen
from gazediffusion.seeds import Stream, rng
from gazediffusion.settings import Scoring

Floats = NDArray[np.float64]
Progress = Callable[[float], None]

# Other conditions under which a window is denoised: what the network is given instead.
CONTRASTS = ("mirrored_x", "mirrored_y", "no_task")
_FLIPS = {"mirrored_x": "flip_x", "mirrored_y": "flip_y"}
# A window of the likelihood takes as much memory as so many of the denoising errors.
_HEAVIER, _FEWEST = 8, 8


@dataclass(frozen=True, eq=False)
class RawScores:
    """Scores of windows before they are compared with others.

    log_likelihood, standard_error: (window,) in nats per dimension, NaN where not computed; the
    error is over draws. errors: (window, level, channel, span), weighted squared errors. sizes:
    (span,) samples in each. contrasts: (window, contrast), mean over levels of the logarithm of the
    error under another condition (CONTRASTS) over that under the window's own; below 0 where the
    other explains the window better. tasks: the task each window was given, "" for none.
    """

    log_likelihood: Floats
    standard_error: Floats
    errors: NDArray[np.float32]
    sizes: NDArray[np.int64]
    contrasts: Floats
    tasks: tuple[str, ...]

    def select(self, chosen: NDArray[np.bool_]) -> RawScores:
        """The scores of the chosen windows."""
        return RawScores(
            self.log_likelihood[chosen],
            self.standard_error[chosen],
            self.errors[chosen],
            self.sizes,
            self.contrasts[chosen],
            tuple(task for task, is_chosen in zip(self.tasks, chosen, strict=True) if is_chosen),
        )

    @property
    def by_channel(self) -> Floats:
        """Mean errors of the whole window, (window, level, channel)."""
        return np.average(self.errors.astype(np.float64), axis=3, weights=self.sizes)

    @property
    def by_level(self) -> Floats:
        """Mean errors of the whole window, (window, level)."""
        return np.asarray(self.by_channel.mean(axis=2))

    @property
    def by_span(self) -> Floats:
        """Mean errors over levels and channels, (window, span)."""
        return np.asarray(self.errors.astype(np.float64).mean(axis=(1, 2)))

    @property
    def denoising_error(self) -> Floats:
        """Mean error over levels, channels and samples, (window,)."""
        return np.asarray(self.by_level.mean(axis=1))

    @property
    def profiles(self) -> Floats:
        """Logarithms of the errors by level and channel, and contrasts, (window, number)."""
        logarithms = np.log(np.maximum(self.by_channel, 1e-12)).reshape(len(self.tasks), -1)
        return np.concatenate([logarithms, self.contrasts], axis=1)


@dataclass(frozen=True)
class Scorer:
    """A model of the recipes joint or steerable that scores windows; any other is refused.

    batch_size: changes speed, never the scores (to the precision of float32).
    """

    run: Run
    config: Scoring
    batch_size: int | None = None

    def __post_init__(self) -> None:
        config = self.run.config
        if config.recipe.process != "edm" or not isinstance(config.representation, Joint):
            raise GazeError(
                f"the model {config.recipe.name} has no scores: they are of models of continuous "
                "noise levels",
                remedy="take the default model, or train one with `recipe` joint or steerable",
            )
        if self.config.task is not None:
            config.conditioning.task_number(self.config.task)
        if self.batch_size is not None and self.batch_size < 1:
            raise GazeError(f"`batch_size` must be 1 or more, not {self.batch_size}")
        self.flow  # noqa: B018  # refuses settings that it cannot have

    @property
    def flow(self) -> Flow:
        """How the log-likelihood is computed."""
        edm, config = self.run.config.recipe.edm, self.config
        return Flow(edm.sigma_min, edm.sigma_max, config.n_steps, config.n_draws, config.seed)

    @property
    def span(self) -> int:
        """Samples in a span."""
        return max(1, round(self.config.span_s * self.run.config.rate_hz))

    @property
    def n_evaluations(self) -> int:
        """Evaluations of the network for each window; a product with its Jacobian counts as two."""
        config = self.config
        flow = 3 * config.n_draws * (config.n_steps + 1) if config.has_likelihood else 0
        return self._n_cheap + flow

    @property
    def _n_cheap(self) -> int:
        return len(self.config.levels) * self.config.n_noise * (1 + len(CONTRASTS))

    def given_tasks(self, windows: Windows) -> list[str]:
        """The task that each window is given, "" for none."""
        known = self.run.config.conditioning.tasks
        own = [windows.tasks[k] for k in windows.task]
        if self.config.task is not None:
            return [self.config.task] * len(own)
        return [task if task in known else "" for task in own]

    def scores(
        self,
        windows: Windows,
        progress: Progress = lambda done: None,
        tasks: Sequence[str] | None = None,
    ) -> RawScores:
        """Score windows of the model's length and rate; progress: called with the windows done.

        tasks: what each window is given, "" for none; `given_tasks` by default.
        """
        config = self.run.config
        if (windows.length, windows.rate_hz) != (config.length, config.rate_hz):
            raise GazeError(
                f"the windows have {windows.length} samples at {windows.rate_hz:g} Hz, the model's "
                f"{config.length} at {config.rate_hz:g} Hz",
                remedy=f"prepare them with `rate_hz` {config.rate_hz:g} and `seconds` "
                f"{config.length / config.rate_hz:g}, or score the recordings",
            )
        if len(windows) == 0:
            raise GazeError("there is no window to score")
        tasks = self.given_tasks(windows) if tasks is None else list(tasks)
        gaze = self._on_model_screens(windows, tasks)
        if not np.isfinite(gaze).all():
            raise GazeError(
                "some windows have lost samples, which have no score",
                remedy="fill them with gazediffusion fill, or leave these windows out",
            )
        share = self._n_cheap / self.n_evaluations
        size = self.batch_size or default_batch_size(self.run)
        n = len(gaze)
        cheap = self._batches(gaze, tasks, size, self._errors, lambda done: progress(share * done))
        flows = np.full((n, 1), np.nan)
        if self.config.has_likelihood:
            flows = self._batches(
                gaze, tasks, self.batch_size or max(_FEWEST, size // _HEAVIER), self._flows,
                lambda done: progress(share * n + (1 - share) * done),
            )  # fmt: skip
        length, n_draws = windows.length, flows.shape[1]
        sizes = np.minimum(self.span, length - np.arange(0, length, self.span))
        spread = flows.std(axis=1, ddof=1) if n_draws > 1 else np.full(n, np.nan)
        by_level = np.average(cheap.astype(np.float64), axis=4, weights=sizes).mean(axis=3)
        contrasts = (np.log(by_level[:, 1:]) - np.log(by_level[:, :1])).mean(axis=2)
        return RawScores(
            flows.mean(axis=1), spread / np.sqrt(n_draws), cheap[:, 0], sizes, contrasts,
            tuple(tasks),
        )  # fmt: skip

    def _batches(
        self,
        gaze: NDArray[np.float32],
        tasks: Sequence[str],
        size: int,
        of_batch: Callable[[Tensor, Sequence[str], Callable[[int, int], None]], Tensor],
        progress: Progress,
    ) -> NDArray[Any]:
        """Results (window, ...) of batches of n windows."""
        found = []
        device = next(self.run.network.parameters()).device
        for first in range(0, len(gaze), size):
            some = torch.from_numpy(gaze[first : first + size]).to(device)

            def show(done: int, total: int, first: int = first, n: int = len(some)) -> None:
                progress(first + n * done / total)

            found.append(of_batch(some, tasks[first : first + size], show).cpu().numpy())
        return np.concatenate(found)

    def _errors(
        self, gaze: Tensor, tasks: Sequence[str], progress: Callable[[int, int], None]
    ) -> Tensor:
        """Under the windows' own condition and each of CONTRASTS, (window, condition, ...)."""
        config, sigma_data = self.config, self.run.config.recipe.edm.sigma_data
        x0, found = self.run.config.representation.encode(gaze), []
        for number, contrast in enumerate(("", *CONTRASTS)):

            def show(done: int, total: int, number: int = number) -> None:
                progress(number * total + done, (1 + len(CONTRASTS)) * total)

            denoise = self._denoiser(self._condition(gaze, tasks, contrast))
            found.append(
                denoising_errors(
                    denoise, x0, config.levels, config.n_noise, sigma_data, self.span, config.seed,
                    show,
                )
            )  # fmt: skip
        return torch.stack(found, dim=1)

    def _flows(
        self, gaze: Tensor, tasks: Sequence[str], progress: Callable[[int, int], None]
    ) -> Tensor:
        x0 = self.run.config.representation.encode(gaze)
        denoise = self._denoiser(self._condition(gaze, tasks))
        return self.flow.log_densities(denoise, x0, progress) / x0[0].numel()

    def _condition(self, gaze: Tensor, tasks: Sequence[str], contrast: str = "") -> Condition:
        """Task and statistics as the configuration says, or what a contrast gives instead."""
        conditioning, rate_hz = self.run.config.conditioning, self.run.config.rate_hz
        if not conditioning.tasks:
            return ()
        numbers = [conditioning.tasks.index(task) if task else 0 for task in tasks]
        has_task = torch.tensor(
            [[bool(task) and contrast != "no_task"] for task in tasks], device=gaze.device
        )
        one_hot = conditioning.one_hot(torch.tensor(numbers, device=gaze.device)) * has_task
        statistics = conditioning.measure(gaze, rate_hz)
        if conditioning.prior is not None and statistics is not None:
            statistics = conditioning.prior.standardized(statistics)
        flips = [name == _FLIPS.get(contrast) for name in conditioning.augmentations]
        labels = torch.tensor([flips], device=gaze.device).float().expand(len(gaze), -1)
        condition = conditioning.encode(one_hot, labels, statistics)
        return (
            condition if self.config.has_statistics else conditioning.without_statistics(condition)
        )

    def _denoiser(self, condition: Condition) -> CleanEstimate:
        """D of the channels of gaze alone; those of labels are zero."""
        recipe, network = self.run.config.recipe, self.run.network
        n_labels = recipe.network.channels - recipe.gaze_channels

        def denoise(x: Tensor, sigma: float) -> Tensor:
            level = torch.full((len(x),), sigma, device=x.device)
            padded = functional.pad(x, (0, 0, 0, n_labels)) if n_labels else x
            return recipe.edm.denoise(network, padded, level, *condition)[:, : recipe.gaze_channels]

        return denoise

    def _on_model_screens(self, windows: Windows, tasks: Sequence[str]) -> NDArray[np.float32]:
        """Gaze (window, 2, time) normalized to the model's screens, spread over its grid cells.

        A screen of another size is left for the model's in degrees, where both state their sizes.
        """
        draws = rng(self.config.seed, Stream.SCORE)
        spread = draws.random((2, windows.length), np.float32) - 0.5
        gaze = windows.cut() + spread.astype(np.float32) * windows.grid_of_window
        places = list(zip(windows.screen_index.tolist(), tasks, strict=True))
        for index, task in set(places):
            screen, own = windows.screens[index], self._screen(task)
            if screen != own and screen.has_degrees and own.has_degrees:
                chosen = np.array([place == (index, task) for place in places])
                degrees = screen.to_degrees(screen.to_pixels(gaze[chosen]))
                gaze[chosen] = own.to_normalized(own.from_degrees(degrees))
        return np.clip(gaze, -CLIP, CLIP).astype(np.float32)

    def _screen(self, task: str) -> Screen:
        config = self.run.config
        return config.conditioning.screen_of(task) if task else config.screen
