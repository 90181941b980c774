from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gazediffusion.data.readers import read_recordings
from gazediffusion.data.windows import Windows
from gazediffusion.data.writers.card import read_card
from gazediffusion.errors import GazeError
from gazediffusion.generation.baselines import (
    BASELINES,
    INCREMENT_GRID,
    POSITION_GRID,
    Baseline,
    Chain,
    Gaussian,
    Grid,
    KinematicMarkov,
    PositionalMarkov,
    covered,
    fit_baseline,
    smooth,
)
from gazediffusion.screen import Screen
from tests.conftest import SCREEN
from tests.data.test_windows import LENGTH, make_windows


def chain_of(baseline: Baseline) -> Chain:
    assert isinstance(baseline.process, KinematicMarkov | PositionalMarkov)
    return baseline.process.chain


def slow_transition(windows: Windows, grid: Grid, order: int) -> NDArray[np.float64]:
    """Pr(b | a) by dictionaries; order 0 are positions, order 1 increments. Unseen rows are NaN."""
    pairs = {}  # keyed by the sample, so that overlapping windows count once
    for start in windows.train.starts.tolist():
        values = np.diff(windows.gaze[:, start : start + windows.length], n=order)
        cells = []
        for x, y in values.T.tolist():
            steps = [int((v + grid.extent) // (2 * grid.extent / grid.side)) for v in (x, y)]
            x_cell, y_cell = (min(max(step, 0), grid.side - 1) for step in steps)
            cells.append(x_cell * grid.side + y_cell)
        for place, pair in enumerate(pairwise(cells)):
            pairs[start + place] = pair
    counts = Counter(pairs.values())
    left = Counter(before for before, _ in pairs.values())
    matrix = np.full((grid.n_cells, grid.n_cells), np.nan)
    matrix[list(left)] = 0.0
    for (before, after), n in counts.items():
        matrix[before, after] = n / left[before]
    return matrix


@pytest.mark.parametrize(
    ("name", "grid", "order"),
    [("kinematic-markov", INCREMENT_GRID, 1), ("positional-markov", POSITION_GRID, 0)],
)
def test_transitions_equal_a_slow_count(name: str, grid: Grid, order: int) -> None:
    windows = make_windows(grid_px=None)
    windows = replace(windows, gaze=windows.gaze * np.float32(7))  # some beyond either grid
    assert (np.abs(np.diff(windows.gaze[:, :225])) > 0.1).any()
    assert (np.abs(windows.gaze[:, :225]) > 1.2).any()
    fitted = chain_of(fit_baseline(name, windows, smoothing=0)).transition
    slow = slow_transition(windows, grid, order)
    seen = ~np.isnan(slow[:, 0])
    assert 3 < seen.sum() < grid.n_cells
    np.testing.assert_allclose(fitted[:-1][seen], slow[seen], atol=1e-12)
    np.testing.assert_array_equal(fitted[:-1][~seen], np.tile(fitted[-1], ((~seen).sum(), 1)))


@pytest.mark.parametrize("name", ["kinematic-markov", "positional-markov"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3, 1.0, 4.0])
def test_rows_sum_to_one(name: str, smoothing: float) -> None:
    transition = chain_of(fit_baseline(name, make_windows(), smoothing)).transition
    assert (transition >= 0).all()
    np.testing.assert_allclose(transition.sum(axis=1), 1.0)


def test_smoothing_keeps_the_mass_of_every_row_even_in_a_corner() -> None:
    rows = np.zeros((2, 49))
    rows[0, 0], rows[1, 24] = 5.0, 2.0
    spread = smooth(rows, 7, 1.0)
    np.testing.assert_allclose(spread.sum(axis=1), [5.0, 2.0])
    middle = spread[1].reshape(7, 7)
    np.testing.assert_allclose(middle, middle.T)
    assert middle[3, 3] == middle.max() < 1.0
    # The centre is far enough from the border: neighbours at one cell fall by exp(-1/2).
    assert middle[3, 4] / middle[3, 3] == pytest.approx(np.exp(-0.5), rel=0.02)


def test_cells_and_points_are_inverse_and_outside_goes_to_the_border() -> None:
    rng = np.random.default_rng(0)
    cells = np.arange(INCREMENT_GRID.n_cells)
    points = INCREMENT_GRID.points(cells, rng.uniform(0.01, 0.99, (2, len(cells))))
    np.testing.assert_array_equal(INCREMENT_GRID.cells(points), cells)
    assert INCREMENT_GRID.cells(np.array([[-9.0, 9.0], [-9.0, 9.0]])).tolist() == [0, 2600]
    centre = INCREMENT_GRID.points(INCREMENT_GRID.cells(np.zeros((2, 1))), np.full((2, 1), 0.5))
    np.testing.assert_allclose(centre, 0.0, atol=1e-12)


def test_each_sample_is_counted_once_and_never_across_windows() -> None:
    windows = make_windows().train
    for span in (1, 2, 3):
        np.testing.assert_array_equal(covered(windows, span), np.arange(225 - span + 1))
    apart = replace(windows, starts=np.array([0, 100]))
    assert 98 not in covered(apart, 3)
    assert {97, 100, 197} <= set(covered(apart, 3).tolist())


def test_a_chain_of_two_states_is_recovered_from_its_walks() -> None:
    transition = np.zeros((5, 4))
    transition[0, [0, 3]], transition[3, [0, 3]] = (0.9, 0.1), (0.4, 0.6)
    transition[[1, 2, 4], 3] = 1.0
    chain = Chain(Grid(2, 1.0), transition)
    uniforms = np.random.default_rng(0).random((50, 4000), dtype=np.float32)
    path = chain.walk(chain.grid.n_cells, uniforms)
    assert (path[:, 0] == 3).all()
    assert set(np.unique(path)) == {0, 3}
    refitted = Chain.fit(chain.grid, path[:, :-1].ravel(), path[:, 1:].ravel(), smoothing=0)
    np.testing.assert_allclose(refitted.transition[[0, 3]], transition[[0, 3]], atol=0.01)


def test_the_extreme_draws_stay_in_the_row() -> None:
    n = INCREMENT_GRID.n_cells
    chain = Chain(INCREMENT_GRID, np.full((n + 1, n), 1 / n))
    largest = np.nextafter(np.float32(1), np.float32(0))
    for start in (0, 1300, n):
        path = chain.walk(start, np.array([[0.0], [largest]], dtype=np.float32))
        assert path.ravel().tolist() == [0, n - 1]


def test_kinematic_windows_start_at_zero_and_step_within_the_grid() -> None:
    gaze = fit_baseline("kinematic-markov", make_windows()).sample(20).cut()
    assert gaze.shape == (20, 2, LENGTH)
    assert (gaze[:, :, 0] == 0).all()
    assert (gaze[:, :, 1] != 0).all()
    assert np.abs(np.diff(gaze)).max() <= 0.1 + 1e-6


def test_kinematic_windows_are_the_sum_of_a_walk_through_the_cells() -> None:
    """A chain that only ever repeats one increment makes a straight line."""
    cell = int(INCREMENT_GRID.cells(np.array([0.05, -0.02])))
    transition = np.zeros((2602, 2601))
    transition[:, cell] = 1.0
    line = KinematicMarkov(Chain(INCREMENT_GRID, transition)).draw([np.random.default_rng(0)], 500)
    assert np.abs(line[0, :, -1] / 499 - [0.05, -0.02]).max() < 0.2 / 51
    assert (INCREMENT_GRID.cells(np.diff(line[0])) == cell).all()


def test_positional_windows_start_at_zero_and_visit_the_cells_of_the_training_set() -> None:
    windows = make_windows()
    gaze = fit_baseline("positional-markov", windows, smoothing=0).sample(20).cut()
    assert (gaze[:, :, 0] == 0).all()
    after = gaze[:, :, 1:].swapaxes(0, 1)
    trained = POSITION_GRID.cells(windows.gaze[:, covered(windows.train, 1)])
    assert set(POSITION_GRID.cells(after).ravel()) <= set(trained)


@pytest.mark.parametrize("name", BASELINES)
def test_windows_are_the_same_for_every_batch_size(name: str) -> None:
    baseline = fit_baseline(name, make_windows())
    whole = baseline.sample(7, seed=3).cut()
    assert len(np.unique(whole[:, 0, -1])) == 7
    for size in (1, 3, 100):
        other = replace(baseline, batch_size=size)
        np.testing.assert_array_equal(other.sample(7, seed=3).cut(), whole)
        np.testing.assert_array_equal(
            np.concatenate(list(replace(other, seed=3).pieces(2, 6))), whole[2:6]
        )
    assert not np.array_equal(baseline.sample(7, seed=4).cut(), whole)


@pytest.mark.parametrize("name", BASELINES)
def test_only_training_participants_are_fitted(name: str) -> None:
    windows = make_windows()
    changed = replace(windows, gaze=windows.gaze.copy())
    changed.gaze[:, 225:] = np.nan  # no training window reaches these samples
    one, other = (fit_baseline(name, each).sample(3).cut() for each in (windows, changed))
    np.testing.assert_array_equal(one, other)
    if name != "uniform":
        changed.gaze[:, :225] = -windows.gaze[:, :225]
        assert not np.array_equal(fit_baseline(name, changed).sample(3).cut(), one)


def test_uniform_samples_cover_the_screen_evenly() -> None:
    gaze = fit_baseline("uniform", make_windows()).sample(400).cut()
    assert np.abs(gaze).max() <= 1
    np.testing.assert_allclose(gaze.mean(axis=(0, 2)), 0, atol=0.02)
    np.testing.assert_allclose(gaze.var(axis=(0, 2)), 1 / 3, atol=0.01)
    assert abs(np.corrcoef(gaze[:, 0, :-1].ravel(), gaze[:, 0, 1:].ravel())[0, 1]) < 0.02


def test_gaussian_samples_have_the_mean_and_covariance_of_the_training_positions() -> None:
    windows = make_windows()
    baseline = fit_baseline("gaussian", windows)
    trained = windows.gaze[:, :225].astype(np.float64)
    assert isinstance(baseline.process, Gaussian)
    np.testing.assert_allclose(baseline.process.mean, trained.mean(axis=1))
    np.testing.assert_allclose(baseline.process.covariance, np.cov(trained))
    gaze = baseline.sample(400).cut().swapaxes(0, 1).reshape(2, -1)
    spread = trained.std(axis=1).max()
    np.testing.assert_allclose(gaze.mean(axis=1), trained.mean(axis=1), atol=0.03 * spread)
    np.testing.assert_allclose(np.cov(gaze), np.cov(trained), atol=0.03 * spread**2)


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_is_a_generator_that_says_where_its_windows_come_from(name: str) -> None:
    windows = replace(make_windows(), provenance={"data_sha256": "ab12"})
    baseline = fit_baseline(name, windows)
    made, received = baseline.sample(3, seed=5), list[float]()
    assert (made.rate_hz, made.screen, made.protocol) == (250.0, SCREEN, "position")
    assert made.gaze.dtype == np.float32
    assert made.provenance["baseline"] == name
    assert (made.provenance["seed"], made.provenance["data_sha256"]) == (5, "ab12")
    assert ("smoothing_cells" in made.provenance) == name.endswith("markov")
    for _ in baseline.pieces(2, 6, received.append):
        pass
    assert received == [6]


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_is_written_like_a_model(tmp_path: Path, name: str) -> None:
    baseline = replace(fit_baseline(name, make_windows()), batch_size=2)
    received: list[float] = []
    written = baseline.sample_to(
        tmp_path / "a" / "gaze.parquet", 5, seed=4, progress=lambda *one: received.append(one[1])
    )
    assert [path.name for path in written] == ["gaze.parquet", "gaze.json", "gaze.md"]
    assert received[-1] == 5
    windows = baseline.sample(5, seed=4)
    for path, other in zip(written, windows.save(tmp_path / "b" / "gaze.parquet"), strict=True):
        assert path.read_bytes() == other.read_bytes()
    recordings = list(read_recordings([written[0]]))
    for recording, pixels in zip(recordings, windows.to_numpy("px"), strict=True):
        np.testing.assert_allclose(recording.gaze_px["cyclopean"], pixels, atol=1e-3)
        assert recording.screen == SCREEN
    card = read_card(written[0])
    assert card is not None
    assert card["synthetic"] is True
    assert (card["seed"], card["model"]["baseline"]) == (4, name)
    assert card["model"]["trained_on"]["n_windows"] == 6
    assert card["model"]["trained_on"]["tasks"] == ["dots"]
    words = written[2].read_text()
    assert f"baseline `{name}`" in words
    assert "a baseline generated them" in words


def test_a_baseline_has_the_screen_of_the_training_participants() -> None:
    other = Screen(1680, 1050, 47.4, 29.7, 55.0)
    windows = make_windows()
    screens: dict[str, Any] = {
        "screens": (other, SCREEN),
        "segment_screen": np.array([0, 1, 1], dtype=np.int32),
    }
    assert fit_baseline("uniform", replace(windows, **screens)).sample(1).screen == other
    both = replace(windows, validation=frozenset(), **screens)
    with pytest.raises(GazeError, match=r"2 screens.*of_task"):
        fit_baseline("uniform", both)


def test_bad_arguments_are_refused() -> None:
    windows = make_windows()
    with pytest.raises(GazeError, match="did you mean 'kinematic-markov'"):
        fit_baseline("kinematic", windows)
    with pytest.raises(GazeError, match="known are: kinematic-markov, positional-markov"):
        fit_baseline("lstm", windows)
    with pytest.raises(GazeError, match="no window of a training participant"):
        fit_baseline("uniform", windows.held_out)
    with pytest.raises(GazeError, match="smoothing must be 0 cells or more, not nan"):
        fit_baseline("uniform", windows, smoothing=float("nan"))
    with pytest.raises(GazeError, match="`n` must be 1 or more"):
        fit_baseline("uniform", windows).sample(0)
    with pytest.raises(GazeError, match="too short to hold one transition"):
        fit_baseline("kinematic-markov", replace(windows, length=2))
    holed = replace(windows, gaze=windows.gaze.copy())
    holed.gaze[0, 7] = np.nan
    with pytest.raises(GazeError, match="not a number"):
        fit_baseline("positional-markov", holed)
