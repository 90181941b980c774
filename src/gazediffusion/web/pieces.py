"""The windows of a request piece by piece, with turns for other jobs within long windows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gazediffusion.web.jobs import Followed, Steps, in_turns

if TYPE_CHECKING:
    from gazediffusion.generation.sets import Sampling

# Gaze (window, 2, time), and its labels (window, time) where they are asked for.
Piece = tuple[NDArray[np.float32], NDArray[np.uint8] | None]
_PROGRESS_EVERY_S = 0.1
_ROUNDING = 1e-6  # of a share of windows done


def windows_each(sampling: Sampling) -> int:
    """How many windows of the model's length one window is generated in."""
    return int(sampling.generator.describe()["windows_each"])


def pieces(sampling: Sampling, job: Followed, first: int = 0, stop: int | None = None) -> Steps:
    """Windows first..stop-1 as pieces of gaze with their labels; reports progress.

    Within a window that is longer than the model's, turns end with None.
    """
    stop = sampling.config.n if stop is None else stop
    reported = 0.0

    def progress(done: float) -> None:
        nonlocal reported
        job.require_active()
        if time.monotonic() - reported > _PROGRESS_EVERY_S or done >= stop:
            reported = time.monotonic()
            job.report("progress", done)

    generated = partial(sampling.generator.pieces, first, stop, sampling.config.seed)
    if windows_each(sampling) == 1:
        for gaze in generated(progress):
            yield gaze, sampling.labels(gaze)
            first += len(gaze)
    else:
        yield from in_turns(partial(_long, sampling, generated, first, progress, job))


def _long(
    sampling: Sampling,
    generated: Callable[[Callable[[float], None]], Iterator[NDArray[np.float32]]],
    first: int,
    progress: Callable[[float], None],
    job: Followed,
    end_turn: Callable[[], None],
) -> Iterator[Piece]:
    """The same; a turn ends with every window of the model's length."""
    each = windows_each(sampling)
    ended = first * each

    def paced(done: float) -> None:
        nonlocal ended
        progress(done)
        if int(done * each + _ROUNDING) > ended:
            ended = int(done * each + _ROUNDING)
            end_turn()

    def labelled(done: float) -> None:
        job.require_active()
        end_turn()

    for gaze in generated(paced):
        yield gaze, sampling.labels(gaze, labelled)
        first += len(gaze)
