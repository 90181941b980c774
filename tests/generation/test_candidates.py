"""Windows in a participant's style, chosen from candidates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from gazediffusion.conditioning.style import QUANTITIES, Movements, Style, style_of
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.generation.sampler import Sampler
from gazediffusion.generation.steering import Constraints
from gazediffusion.generation.style_choice import n_candidates
from gazediffusion.network.checkpoint import Run, load_run


@pytest.fixture(scope="module")
def run(steerable_folder: Path) -> Run:
    return load_run(steerable_folder)


@pytest.fixture(scope="module")
def style(run: Run) -> Style:
    """Of windows that are less spread and slower than the model's."""
    task, config = run.config.conditioning.tasks[0], run.config
    windows = Sampler(run, task=task, seed=9).windows(0, 10)
    slower = replace(windows, gaze=windows.gaze * np.float32(0.7))
    return style_of(slower, config.conditioning, config.rate_hz, config.length, task)


def sampler(run: Run, style: Style, **settings: object) -> Sampler:
    task = run.config.conditioning.tasks[style.task]
    return Sampler(run, task=task, style=style, **settings)  # type: ignore[arg-type]


def gaze_of(made: Sampler, n: int, first: int = 0) -> np.ndarray:
    return np.concatenate(list(made.pieces(first, first + n)))


def distance(made: Windows, like: Movements) -> float:
    found = Movements.of(made)
    return float(
        np.mean(
            [
                np.log(wasserstein_distance(x, y) / np.std(y))
                for x, y in zip(found.values, like.values, strict=True)
                if len(x) and len(y) > 1
            ]
        )
    )


def test_chosen_windows_are_candidates_and_more_like_the_recording(run: Run, style: Style) -> None:
    assert style.movements is not None
    made = sampler(run, style, candidates=8, seed=1)
    chosen, every = gaze_of(made, 8), gaze_of(replace(made, candidates=1), 64)
    apart = np.abs(chosen[:, None] - every[None]).max(axis=(2, 3))
    assert (apart.min(axis=1) < 1e-4).all()
    assert len(set(apart.argmin(axis=1).tolist())) == 8
    ours, first = (made.as_windows(one) for one in (chosen, every[:8]))
    assert distance(ours, style.movements) < distance(first, style.movements) - 0.1


def test_windows_do_not_depend_on_batches_or_on_their_number(run: Run, style: Style) -> None:
    whole = gaze_of(sampler(run, style, candidates=2), 20)
    assert whole.shape == (20, 2, run.config.length)
    for batch_size in (1, 3, 16):
        made = sampler(run, style, candidates=2, batch_size=batch_size)
        sizes = [len(one) for one in made.pieces(0, 20)]
        assert sizes == [min(batch_size, 20 - k) for k in range(0, 20, batch_size)]
        np.testing.assert_array_equal(gaze_of(made, 20), whole)
    np.testing.assert_array_equal(gaze_of(made, 5, first=9), whole[9:14])
    # Other seeds are not taken for what is kept of the last block.
    other = np.concatenate(list(replace(made, seed=1).pieces(9, 14)))
    assert np.abs(other - whole[9:14]).max() > 1e-3


def test_long_and_short_windows_are_chosen_too(run: Run, style: Style) -> None:
    length = run.config.length
    short = gaze_of(sampler(run, style, candidates=3, length=length // 2), 3)
    np.testing.assert_array_equal(
        short, gaze_of(sampler(run, style, candidates=3), 3)[..., : length // 2]
    )
    long = sampler(run, style, candidates=3, length=3 * length)
    chosen, every = gaze_of(long, 2), gaze_of(replace(long, candidates=1), 6)
    apart = np.abs(chosen[:, None] - every[None]).max(axis=(2, 3))
    assert (apart.min(axis=1) < 1e-4).all()
    assert (apart.argmin(axis=1) // 3).tolist() == [0, 1]
    alone = sampler(run, style, length=3 * length).describe()["windows_each"]
    assert long.describe()["windows_each"] == 3 * alone


def test_progress_counts_windows_and_the_card_says_how_many_candidates(
    run: Run, style: Style
) -> None:
    made = sampler(run, style, candidates=2, batch_size=8)
    seen: list[float] = []
    list(made.pieces(0, 12, seen.append))
    assert seen == sorted(seen)
    assert seen[-1] == 12
    assert made.settings["candidates"] == 2
    assert made.as_windows(gaze_of(made, 2)).provenance["candidates"] == 2


def test_candidates_that_cannot_be_chosen_are_refused(run: Run, style: Style) -> None:
    cases: dict[str, dict[str, object]] = {
        "`candidates` must lie between 1 and 64, not 0": {"candidates": 0},
        "must lie between 1 and 64, not 65": {"candidates": 65},
        "beside a scanpath, targets": {"candidates": 2, "constraints": Constraints()},
        "the screen has no size": {"candidates": 2, "style": replace(style, movements=None)},
    }
    for problem, settings in cases.items():
        with pytest.raises(GazeError, match=problem):
            replace(sampler(run, style), **settings)  # type: ignore[arg-type]
    with pytest.raises(GazeError, match="compared with a recording; give `like`"):
        Sampler(run, candidates=2)


def test_eight_are_the_default_where_windows_can_be_chosen(style: Style) -> None:
    assert len(QUANTITIES) == len(style.movements.values) if style.movements else False
    assert n_candidates(style, is_steered=False) == 8
    assert n_candidates(style, is_steered=True) == 1
    assert n_candidates(replace(style, movements=None), is_steered=False) == 1
