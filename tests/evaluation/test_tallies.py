from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from gazediffusion.evaluation.quantities import measure
from gazediffusion.evaluation.tallies import MAX_GRID, Bins, Cells, Tally, grid_of, ks_of, w1_of
from tests.conftest import SCREEN
from tests.parts import walks

RNG = np.random.default_rng(0)
PAIRS = {
    "continuous": (RNG.normal(0, 1, 900), RNG.normal(0.2, 1.3, 5000)),
    "whole numbers": (RNG.poisson(4, 800).astype(float), RNG.poisson(5, 3000).astype(float)),
    "one value": (np.full(30, 2.0), np.array([1.0, 2.0, 2.0, 5.0])),
    "apart": (RNG.random(200), RNG.random(300) + 4),
    "more than the grid": (RNG.gamma(2, 1, 20_000), RNG.gamma(2.1, 1, 30_000)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_ks_and_w1_of_added_cells_are_those_of_scipy(name: str) -> None:
    real, other = PAIRS[name]
    grid = grid_of(real)
    pieces = [Cells.of(some, grid) for some in np.split(other, [1, len(other) // 2])]
    ours = pieces[0] + pieces[1] + pieces[2]
    ks, ks_error = ks_of(Cells.of(real, grid), ours)
    w1, w1_error = w1_of(Cells.of(real, grid), ours, grid)
    exact_ks = stats.ks_2samp(real, other).statistic
    exact_w1 = stats.wasserstein_distance(real, other)
    assert ks - 1e-12 <= exact_ks <= ks + ks_error + 1e-12
    assert abs(w1 - exact_w1) <= w1_error + 1e-12
    if len(np.unique(real)) <= MAX_GRID:
        assert ks_error == 0
    assert ks_error < 0.002
    assert w1_error < 0.002


def test_tallies_of_pieces_add_up_to_the_tally_of_all() -> None:
    gaze = walks(40, 500)

    def tally(some: NDArray[np.float32]) -> Tally:
        group = np.zeros(len(some), np.int64)
        measured = measure(some, 250.0, SCREEN, ("position", "velocity"), group)
        return Tally.of(measured, bins)

    whole = measure(gaze, 250.0, SCREEN, ("position", "velocity"), np.zeros(40, np.int64))
    bins = {
        key: Bins(np.linspace(one.values.min(), one.values.max(), 51), grid_of(one.values[::3]))
        for key, one in whole.quantities.items()
    }
    at_once, added = tally(gaze), tally(gaze[:1]) + tally(gaze[1:23]) + tally(gaze[23:])
    assert at_once.n_windows == added.n_windows == 40
    for key, one in whole.quantities.items():
        assert np.array_equal(added.counts[key], at_once.counts[key])
        assert np.array_equal(added.cells[key].counts, at_once.cells[key].counts)
        mean, deviation = added.mean_and_deviation(key, bins[key].centre)
        assert (mean, deviation) == pytest.approx((one.values.mean(), one.values.std()), abs=1e-9)
    for name, curve in whole.curves.items():
        np.testing.assert_allclose(added.curve(name), curve.mean(), rtol=1e-9)
    assert added.values == pytest.approx(at_once.values)
    assert set(added.values) == {"saccade_count", "fixation_count", "path_length", "main_sequence"}
    assert whole.degrees is not None
    slope = stats.linregress(
        np.log10(whole.degrees.saccade_amplitude_deg), np.log10(whole.degrees.saccade_peak_deg_s)
    ).slope
    assert added.values["main_sequence"] == pytest.approx(slope)
