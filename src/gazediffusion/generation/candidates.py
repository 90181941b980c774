"""Candidates: windows that are chosen from several that are generated.

In a participant's style those most like the recording are taken (`conditioning.selection`); with
labels one of two by its events (event_choice.py).

Windows are chosen in blocks of eight, so that a window depends on the seed and its number alone:
block b of a seed comes from the candidates of block b. Gaze longer than the model's windows is
chosen one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.conditioning.movements import Movements
from gazediffusion.conditioning.selection import choose
from gazediffusion.errors import GazeError
from gazediffusion.generation.event_choice import EventChoice, count_events
from gazediffusion.generation.labelling import Labeller
from gazediffusion.generation.scheduling import Progress, Span, spans_of
from gazediffusion.geometry import Floats

if TYPE_CHECKING:
    from gazediffusion.conditioning.style import Style
    from gazediffusion.generation.generator import DiffusionGenerator

N_CANDIDATES, MOST_CANDIDATES = 8, 64  # of each window
N_BY_EVENTS = 2  # weights of events are fitted for pairs
_BLOCK = 8  # windows that are chosen at a time
ChooseBlock = Callable[[int, int, Progress], Floats]  # by number, seed
Blocks = dict[tuple[int, int], Floats]  # gaze by seed and number of the block


def n_candidates(given: int | None, style: Style | None, steered: object) -> int:
    """Those of each window where none are given: windows that can be chosen have eight."""
    if given is not None:
        return given
    can_choose = style is not None and style.movements is not None and not steered
    return N_CANDIDATES if can_choose else 1


def n_by_events(given: Mapping[str, Any], labels: object) -> int:
    """Candidates that are chosen by their labels, of given settings; 1 where none are."""
    return (given.get("candidates") or 1) if labels and given.get("like") is None else 1


def choosing_by_events(generator: DiffusionGenerator, n: int) -> DiffusionGenerator:
    """The same, which takes every window from n candidates by their events."""
    return replace(generator, choice=EventChoice.load(generator.run.path), candidates=n)


def describe_choice(generator: DiffusionGenerator) -> dict[str, Any]:
    """What a card says of how windows are chosen."""
    style, choice = generator.style, generator.choice
    if style is None and choice is None:
        return {}
    like = {} if style is None else {"like": dict(style.origin)}
    by_events = {} if choice is None else {"choice": choice.describe()}
    return {**like, "candidates": generator.candidates, **by_events}


def require_choice(generator: DiffusionGenerator) -> None:
    """Refuse candidates of windows that cannot be chosen."""
    n, choice = generator.candidates, generator.choice
    if not 1 <= n <= MOST_CANDIDATES:
        raise GazeError(f"`candidates` must lie between 1 and {MOST_CANDIDATES}, not {n}")
    if n == 1:
        return
    if generator.style is None and choice is None:
        raise GazeError(
            "`candidates` are compared with a recording, or by their labels",
            remedy="give `like` or `labels`",
        )
    if generator.constraints is not None:
        raise GazeError(
            "`candidates` cannot be chosen beside a scanpath, targets, waypoints or a start",
            remedy="leave `candidates` out",
        )
    if generator.style is None:
        _require_choice_by_events(generator)
    elif generator.style.movements is None:
        raise GazeError(
            "`candidates` are compared in degrees, and the screen has no size",
            remedy="leave `candidates` out, or give the screen's size and distance",
        )


def _require_choice_by_events(generator: DiffusionGenerator) -> None:
    """Refuse what the weights of events were not fitted for."""
    assert generator.choice is not None
    task = generator.choice.task
    if generator.candidates != N_BY_EVENTS:
        raise GazeError(
            f"`candidates` of windows with labels must be 1 or {N_BY_EVENTS}, not "
            f"{generator.candidates}"
        )
    if generator.task != task:
        raise GazeError(
            f"`candidates` are chosen by events for the task {task} alone",
            remedy=f"give `task` {task}, or leave `candidates` out",
        )
    if generator.is_steered:
        raise GazeError(
            "`candidates` are chosen by events in windows of the model's length alone",
            remedy="leave `candidates` or `seconds` out",
        )


def chosen_pieces(
    generator: DiffusionGenerator, first: int, stop: int, seed: int, progress: Progress
) -> Iterator[Floats]:
    """What `DiffusionGenerator.pieces` gives, chosen from candidates."""
    block = 1 if generator.is_steered else _BLOCK
    for start, end in spans_of(first, stop, generator.batch_size):
        numbers = range(start // block, -(-end // block))
        counted = partial(_share_of, progress, (start, end))
        gaze = _blocks(generator, numbers, block, seed, counted)
        yield gaze[start - numbers.start * block :][: end - start]


def _share_of(progress: Progress, span: Span, done: float) -> None:
    """Count a share of some windows."""
    progress(span[0] + done * (span[1] - span[0]))


def _blocks(
    generator: DiffusionGenerator, numbers: range, block: int, seed: int, progress: Progress
) -> Floats:
    """The windows of these blocks; the last one is kept, for pieces that end within it.

    progress: called with the share that is done.
    """
    kept = generator.kept_blocks
    # What generates and labels is made once for all blocks: each has its copy of the network.
    choose_block = (_in_style if generator.choice is None else _by_events)(generator, block)
    found = {number: kept[seed, number] for number in numbers if (seed, number) in kept}
    new = [number for number in numbers if number not in found]
    for k, number in enumerate(new):

        def counted(share: float, k: int = k) -> None:
            progress((k + share) / len(new))

        gaze = choose_block(number, seed, counted)
        found[number] = gaze[..., : generator.n_samples]
    kept.clear()
    kept[seed, numbers[-1]] = found[numbers[-1]]
    progress(1.0)
    return np.concatenate([found[number] for number in numbers])


def _in_style(generator: DiffusionGenerator, block: int) -> ChooseBlock:
    """Gives the windows of a block that together are most like the recording."""
    n = block * generator.candidates
    every = _whole(generator, n)

    def choose_block(number: int, seed: int, progress: Progress) -> Floats:
        (gaze,) = every.pieces(number * n, (number + 1) * n, seed, _shares(progress, number * n, n))
        return gaze[_chosen(every, gaze, block, seed)]

    return choose_block


def _by_events(generator: DiffusionGenerator, block: int) -> ChooseBlock:
    """Gives, of each window of a block, one of two realizations."""
    assert generator.choice is not None
    choice, labeller = generator.choice, Labeller(generator.run, block, generator.bf16)
    whole = _whole(generator, block)
    both = [replace(whole, replicate=replicate) for replicate in range(N_BY_EVENTS)]

    def choose_block(number: int, seed: int, progress: Progress) -> Floats:
        first, found, counts = number * block, list[Floats](), list[NDArray[np.float64]]()
        for replicate, every in enumerate(both):
            half = partial(_half, progress, replicate)
            (gaze,) = every.pieces(first, first + block, seed, _shares(half, first, block))
            found.append(gaze)
            counts.append(count_events(labeller.labels(gaze)))
        is_second = choice.takes_second(counts[0], counts[1], seed, first)
        return np.where(is_second[:, None, None], found[1], found[0])

    return choose_block


def _whole(generator: DiffusionGenerator, n: int) -> DiffusionGenerator:
    """What generates candidates, n at a time.

    A block is always one batch: another batch size could round so that another window is chosen.
    """
    length = max(generator.n_samples, generator.run.config.length)
    return replace(generator, candidates=1, length=length, batch_size=n)


def _shares(progress: Progress, first: int, n: int) -> Progress:
    """Progress in windows, as a share of n windows from the first on."""
    return lambda done: progress((done - first) / n)


def _half(progress: Progress, number: int, share: float) -> None:
    """Count a share of one of two halves."""
    progress((number + share) / N_BY_EVENTS)


def _chosen(every: DiffusionGenerator, gaze: Floats, n: int, seed: int) -> list[int]:
    """The numbers of the n of the candidates (candidate, 2, time) that are chosen."""
    style, length = every.style, every.run.config.length
    assert style is not None
    assert style.movements is not None
    n_parts = gaze.shape[2] // length
    parts = gaze[..., : n_parts * length].reshape(len(gaze), 2, n_parts, length)
    windows = every.as_windows(parts.swapaxes(1, 2).reshape(-1, 2, length), seed)
    found = Movements.of(windows)
    candidates = replace(found, window=tuple(one // n_parts for one in found.window))
    return choose(candidates, len(gaze), style.movements, style.n_windows, n)
