"""Synthetic sets: generated windows, in memory or streamed to files that state their origin.

A job keeps the windows piece by piece; when all are there, they are written in the format of the
set. An interrupted command resumes from the pieces it has. Memory holds one piece, never the set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gazediffusion import __version__
from gazediffusion.data.resampling import windows_at
from gazediffusion.data.track_loss import LossModel
from gazediffusion.data.windows import Windows
from gazediffusion.data.writers.card import screen_fields
from gazediffusion.data.writers.sets import format_of, projected, write_windows, written_set
from gazediffusion.errors import GazeError, shown
from gazediffusion.generation.labelling import Labeller, Labels, with_lost_labels
from gazediffusion.generation.scheduling import Progress, Span, spans_of
from gazediffusion.jobs import Job, Show, nothing
from gazediffusion.screen import Floats, Screen
from gazediffusion.storage import is_file, require_free, require_writable

# Below this rate a saccade leaves no trace in the samples.
MIN_RATE_HZ = 10.0


class AnySampler(Protocol):
    """What windows of a seed come from: a model's sampler, or a baseline."""

    @property
    def seed(self) -> int:
        """Of all its windows."""
        ...

    @property
    def batch_size(self) -> int:
        """Windows per piece; it changes speed, never the windows."""
        ...

    def pieces(self, first: int, stop: int, progress: Progress = ...) -> Iterator[Floats]:
        """Windows first..stop-1 of the seed, in pieces (window, 2, time)."""
        ...

    def as_windows(self, gaze: Floats, first: int = 0) -> Windows:
        """Generated gaze (window, 2, time) of windows first.., each with its origin."""
        ...

    def describe(self) -> dict[str, Any]:
        """`window_samples`, `rate_hz`, `screens` by task, and the card's `sampling` and `model`."""
        ...


@dataclass(frozen=True)
class Sampling:
    """A set: the first n windows of a sampler, on which screen, and in which format.

    screen: project all windows on this screen; None keeps each on the screen of its task.
    grid_px: round pixels to the tracker's grid; None keeps them as generated.
    seconds: keep so much of every window from its start; None keeps all.
    rate_hz: low-pass every window and bring it to this rate; None keeps the sampler's.
    track_loss: adds blinks and lost samples, at the rate of the set; None adds none.
    labeller: adds the event class of every sample; None adds none. It changes no gaze.
    """

    sampler: AnySampler
    n: int
    format: str = "parquet"
    screen: Screen | None = None
    grid_px: float | None = None
    seconds: float | None = None
    rate_hz: float | None = None
    track_loss: LossModel | None = None
    labeller: Labeller | None = None

    def __post_init__(self) -> None:
        for name, least in (("n", 1), ("seed", 0)):
            value = self.n if name == "n" else self.sampler.seed
            if value < least:
                raise GazeError(f"`{name}` must be {least} or more, not {value}")
        format_of(Path(), self.format)
        if self.grid_px is not None and not self.grid_px > 0:
            raise GazeError(f"`grid_px` must be a positive number of pixels, not {self.grid_px:g}")
        own_hz = self.own_hz
        if self.rate_hz is not None and not MIN_RATE_HZ <= self.rate_hz <= own_hz:
            raise GazeError(
                f"`rate_hz` must lie between {MIN_RATE_HZ:g} and {own_hz:g} Hz, the rate of this "
                f"model, not {self.rate_hz:g}: faster motion than it generates cannot be invented"
            )
        whole_s = self._described["window_samples"] / own_hz
        if self.seconds is not None and not 1 <= self.seconds <= whole_s:
            raise GazeError(
                f"`seconds` must lie between 1 and {whole_s:g} for this model, not {self.seconds:g}"
            )
        if self.format == "bids" and not all(one.has_degrees for one in self.screens.values()):
            raise GazeError(
                "BIDS needs the screen's pixels, size and distance",
                remedy="give `screen` with its size (`width_cm`) and `distance_cm`",
            )

    @cached_property
    def _described(self) -> dict[str, Any]:
        return self.sampler.describe()

    @property
    def own_hz(self) -> float:
        """The sampler's rate."""
        return float(self._described["rate_hz"])

    @property
    def screens(self) -> dict[str, Screen]:
        """The screen of each task."""
        screens: dict[str, Screen] = self._described["screens"]
        return dict.fromkeys(screens, self.screen) if self.screen else screens

    @property
    def n_samples(self) -> int:
        """Samples of every window of the set."""
        seconds = self.seconds or self._described["window_samples"] / self.own_hz
        return round(seconds * (self.rate_hz or self.own_hz))

    def card(self) -> dict[str, Any]:
        """What the set is and how it was generated; the same for the same arguments."""
        described, rate_hz = self._described, float(self.rate_hz or self.own_hz)
        return {
            "format": "gazediffusion-synthetic",
            "synthetic": True,
            "gazediffusion_version": __version__,
            "n_windows": self.n,
            "seed": self.sampler.seed,
            "window_samples": self.n_samples,
            "rate_hz": rate_hz,
            **({} if rate_hz == self.own_hz else {"low_passed_from_hz": self.own_hz}),
            **screen_fields(self.screens),
            "grid_px": self.grid_px,
            **({"losses": self.track_loss.describe()} if self.track_loss else {}),
            **({"labels": self.labeller.describe()} if self.labeller else {}),
            "sampling": described["sampling"],
            "model": described["model"],
        }

    def pieces(self, progress: Progress = lambda done: None) -> Iterator[Floats]:
        """All gaze of the set as the sampler gives it, in pieces (window, 2, time)."""
        return self.sampler.pieces(0, self.n, progress)

    def labels(self, gaze: Floats, progress: Progress = lambda done: None) -> Labels | None:
        """The labels (window, time) of gaze of the sampler; None of a set without.

        progress: called with the number of windows of the model's length that are labelled.
        """
        return self.labeller.labels(gaze, progress) if self.labeller else None

    def finished(self, gaze: Floats, first: int = 0, labels: Labels | None = None) -> Windows:
        """Gaze of windows first.. of the sampler as windows of the set.

        A window is labelled and filtered as a whole before it is cut to `seconds`. labels: of the
        gaze, if they are known.
        """
        if labels is None:
            labels = self.labels(gaze)
        if self.rate_hz in (None, self.own_hz):
            gaze = gaze[:, :, : self.n_samples]
        windows = self.sampler.as_windows(gaze, first)
        if labels is not None:
            windows = replace(windows, labels=labels[:, : gaze.shape[2]].ravel())
        if self.rate_hz not in (None, self.own_hz):
            windows = windows_at(windows, self.rate_hz)
        windows = replace(windows, length=self.n_samples)
        if self.track_loss is not None:
            lossy = self.track_loss.add_to(windows, self.sampler.seed, first)
            windows = lossy if labels is None else with_lost_labels(lossy, windows)
        return projected(windows, self.screen, self.n_samples)

    def windows(self, gaze: Floats, first: int = 0, labels: Labels | None = None) -> Windows:
        """What `finished` gives, with the card; saved, they give the files of `write_set`."""
        windows = self.finished(gaze, first, labels)
        return replace(windows, provenance={**windows.provenance, "card": self.card()})


def write_set(
    sampling: Sampling,
    output: Path | str,
    progress: Show = nothing,
    say: Callable[[str], None] = lambda line: None,
    overwrite: bool = False,
) -> list[Path]:
    """Generate a set into a folder, or a file where `output` ends in .parquet, .csv, .npz.

    Pieces that an interrupted call left are not generated again; `say` receives a line with their
    number. A complete set of the same settings is left as it is. overwrite: replace one of others.
    Returns what was written: the set, its card (JSON) and its README.
    """
    output, n, card = Path(output), sampling.n, sampling.card()
    format_of(output, sampling.format)

    def write(job: Job, folder: Path) -> None:
        pieces = Pieces(job, sampling.sampler, n, sampling.labeller)
        if pieces.n_done:
            say(f"resuming {shown(output)}: {pieces.n_done} of {n} windows are generated")
        pieces.store(lambda done: job.step("generating", done, n))

        def windows() -> Iterator[Windows]:
            for first, _ in pieces.spans:
                gaze, labels = pieces.stored(first)
                yield sampling.finished(gaze, first, labels)

        write_windows(folder, windows, sampling.format, card, sampling.grid_px)

    free = ("n_windows", "window_samples", "screen", "screens", "grid_px")
    return written_set(output, sampling.format, card, write, overwrite, progress, free)


@dataclass(frozen=True)
class Pieces:
    """The first n windows of a sampler, and their labels, which a job keeps piece by piece.

    labeller: None is without labels. folder: of the job, where it keeps several such sets.
    """

    job: Job
    sampler: AnySampler
    n: int
    labeller: Labeller | None = None
    folder: str = "."

    @property
    def spans(self) -> list[Span]:
        """The windows of each piece."""
        return spans_of(0, self.n, self.sampler.batch_size)

    @property
    def n_done(self) -> int:
        """How many windows an interrupted call has left."""
        return sum(stop - first for first, stop in self.spans if self.job.has(self._name(first)))

    def store(self, progress: Progress) -> None:
        """Generate the pieces that are not there."""
        for first, stop in self.spans:

            def make(path: Path, first: int = first, stop: int = stop) -> None:
                (gaze,) = self.sampler.pieces(first, stop, progress)
                found: dict[str, NDArray[Any]] = {"gaze": gaze}
                if self.labeller is not None:
                    found["labels"] = self.labeller.labels(gaze)
                with open(path, "wb") as stream:
                    np.savez(stream, **found)  # type: ignore[arg-type]

            self.job.once(self._name(first), make)
            progress(stop)

    def stored(self, first: int) -> tuple[Floats, Labels | None]:
        """The piece that begins with a window: gaze (window, 2, time), labels (window, time)."""
        with np.load(self.job.kept / self._name(first)) as found:
            return found["gaze"], found["labels"] if self.labeller is not None else None

    def window(self, number: int) -> tuple[Floats, Labels | None]:
        """Gaze (2, time) and labels (time,) of one window."""
        first = number // self.sampler.batch_size * self.sampler.batch_size
        gaze, labels = self.stored(first)
        return gaze[number - first], None if labels is None else labels[number - first]

    def _name(self, first: int) -> str:
        stop = min(first + self.sampler.batch_size, self.n)
        return f"{self.folder}/{first:09d}-{stop:09d}.npz"


def write_windows_file(
    sampling: Sampling, path: Path, progress: Show = nothing, overwrite: bool = False
) -> list[Path]:
    """Generate a set in memory and write it as a windows file, with its card in it."""

    def there() -> dict[str, Any] | None:
        try:
            return Windows.load(path).provenance.get("card") if is_file(path) else None
        except GazeError:  # another's file
            return None

    with Job(path, sampling.card(), progress, there=there, overwrite=overwrite) as job:
        if job.is_complete:
            return [path]
        require_free(path, overwrite)
        require_writable(path)
        pieces = sampling.pieces(lambda done: job.step("generating", done, sampling.n))
        windows = sampling.windows(np.concatenate(list(pieces)))
        return windows.save(path, overwrite=overwrite)
