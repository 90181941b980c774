"""Candidates: of several windows in a participant's style, those most like the recording are taken.

Windows are chosen in blocks of eight, so that a window depends on the seed and its number alone:
block b of a seed comes from the candidates of block b. Gaze longer than the model's windows is
chosen one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gazediffusion.conditioning.style import Movements, choose
from gazediffusion.errors import GazeError
from gazediffusion.generation.scheduling import Progress, Span, spans_of
from gazediffusion.screen import Floats

if TYPE_CHECKING:
    from gazediffusion.conditioning.style import Style
    from gazediffusion.generation.sampler import Sampler

N_CANDIDATES, MOST_CANDIDATES = 8, 64  # of each window
_BLOCK = 8  # windows that are chosen at a time
Blocks = dict[int, Floats]  # gaze by number of the block


def n_candidates(style: Style, is_steered: bool) -> int:
    """Of each window in a style, where none are given: windows that can be chosen have eight."""
    return 1 if style.movements is None or is_steered else N_CANDIDATES


def require_choice(sampler: Sampler) -> None:
    """Refuse candidates of windows that cannot be chosen."""
    n = sampler.candidates
    if not 1 <= n <= MOST_CANDIDATES:
        raise GazeError(f"`candidates` must lie between 1 and {MOST_CANDIDATES}, not {n}")
    if sampler.style is None:
        raise GazeError("`candidates` are compared with a recording", remedy="give `like`")
    if sampler.constraints is not None:
        raise GazeError(
            "`candidates` cannot be chosen beside a scanpath, targets, waypoints or a start",
            remedy="leave `candidates` out",
        )
    if sampler.style.movements is None:
        raise GazeError(
            "`candidates` are compared in degrees, and the screen has no size",
            remedy="leave `candidates` out, or give the screen's size and distance",
        )


def chosen_pieces(sampler: Sampler, first: int, stop: int, progress: Progress) -> Iterator[Floats]:
    """What `Sampler.pieces` gives, chosen from candidates."""
    block = 1 if sampler.is_steered else _BLOCK
    for start, end in spans_of(first, stop, sampler.batch_size):
        numbers = range(start // block, -(-end // block))
        counted = partial(_share_of, progress, (start, end))
        gaze = _blocks(sampler, numbers, block, counted)
        yield gaze[start - numbers.start * block :][: end - start]


def _share_of(progress: Progress, span: Span, done: float) -> None:
    """Count a share of some windows."""
    progress(span[0] + done * (span[1] - span[0]))


def _blocks(sampler: Sampler, numbers: range, block: int, progress: Progress) -> Floats:
    """The windows of these blocks; the last one is kept, for pieces that end within it.

    progress: called with the share that is done.
    """
    kept = sampler.kept_blocks
    n = block * sampler.candidates
    # A block is always one batch: another batch size could round so that another window is chosen.
    length = max(sampler.n_samples, sampler.run.config.length)
    every = replace(sampler, candidates=1, length=length, batch_size=n)
    found = {number: kept[number] for number in numbers if number in kept}
    new = [number for number in numbers if number not in found]
    for k, number in enumerate(new):

        def counted(done: float, k: int = k, before: int = number * n) -> None:
            progress((k + (done - before) / n) / len(new))

        (gaze,) = every.pieces(number * n, (number + 1) * n, counted)
        chosen = gaze[_chosen(every, gaze, block)]
        found[number] = chosen[..., : sampler.n_samples]
    kept.clear()
    kept[numbers[-1]] = found[numbers[-1]]
    progress(1.0)
    return np.concatenate([found[number] for number in numbers])


def _chosen(every: Sampler, gaze: Floats, n: int) -> list[int]:
    """The numbers of the n of the candidates (candidate, 2, time) that are chosen."""
    style, length = every.style, every.run.config.length
    assert style is not None
    assert style.movements is not None
    n_parts = gaze.shape[2] // length
    parts = gaze[..., : n_parts * length].reshape(len(gaze), 2, n_parts, length)
    windows = every.as_windows(parts.swapaxes(1, 2).reshape(-1, 2, length))
    found = Movements.of(windows)
    candidates = replace(found, window=tuple(one // n_parts for one in found.window))
    return choose(candidates, len(gaze), style.movements, style.n_windows, n)
