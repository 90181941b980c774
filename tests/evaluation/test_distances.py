from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from gazediffusion.evaluation.metrics import (
    bins_of,
    distances,
    distances_with_intervals,
    draw_weights,
    histograms,
    js,
    share,
    synthetic_groups,
)
from gazediffusion.evaluation.quantities import Quantity

RNG = np.random.default_rng(0)


def quantity(values: np.ndarray, group: np.ndarray | None = None) -> Quantity:
    group = np.arange(len(values)) if group is None else group
    return Quantity("q", "q", "features", "", "window", values, group)


def test_distances_are_those_of_the_metrics_and_of_scipy() -> None:
    a, b = RNG.normal(0, 1, 500), RNG.normal(0.3, 1.2, 400)
    found = distances(quantity(a), quantity(b))
    assert found["js"] == pytest.approx(js(a, b, 50), abs=1e-12)
    assert found["ks"] == pytest.approx(stats.ks_2samp(a, b).statistic)
    assert found["w1"] == pytest.approx(stats.wasserstein_distance(a, b))


def test_angles_are_binned_over_the_full_circle_without_tails_in_the_end_bins() -> None:
    angle = RNG.uniform(-math.pi, math.pi, 20_000)
    one = replace(quantity(angle), unit="rad", level="pooled")
    edges = bins_of(one, one)
    np.testing.assert_allclose(edges, np.linspace(-math.pi, math.pi, 101))
    density = histograms({"a": one}, edges, (one, one))["histogram"]["a"]
    assert max(density[0], density[-1]) < 1.3 * np.median(density)
    other = bins_of(quantity(angle), quantity(angle))
    assert other[0] > edges[0]
    assert other[-1] < edges[-1]


def test_the_histogram_of_velocities_goes_on_to_the_participants_extremes() -> None:
    real, train = (replace(quantity(RNG.standard_t(2, 5000)), name="v_x", level="pooled")
                   for _ in range(2))  # fmt: skip
    wild = replace(real, values=np.append(real.values, [1e6] * 5000))
    bins = bins_of(real, train)
    drawn = histograms({"real": real, "wild": wild}, bins, (real, train))
    whole = {name: np.array(values) for name, values in drawn["whole_histogram"].items()}
    values = np.concatenate([real.values, train.values])
    assert whole["edges"][[0, -1]].tolist() == [values.min(), values.max()]
    assert set(bins) < set(whole["edges"])
    width = np.diff(whole["edges"])
    assert width.min() > 0
    assert whole["real"] @ width == pytest.approx(1.0)
    # What lies beyond is in no bin, and in the end bin of JS.
    assert whole["wild"] @ width == pytest.approx(0.5)
    assert drawn["histogram"]["wild"][-1] * np.diff(bins)[-1] > 0.5
    other = quantity(real.values)
    assert "whole_histogram" not in histograms({"real": other}, bins, (other, other))


def test_drawing_every_group_once_gives_the_value_itself() -> None:
    a, b = RNG.normal(0, 1, 600), RNG.normal(0.5, 1, 600)
    groups = np.arange(600) % 6
    once = np.ones((1, 6)), np.ones((1, 6))
    sides = quantity(a, groups), quantity(b, groups)
    found = distances_with_intervals(*sides, bins_of(*sides), once)
    assert found["js"].replicates[0] == pytest.approx(found["js"].value, rel=1e-9)
    assert found["ks"].replicates[0] == pytest.approx(found["ks"].value, abs=0.02)
    assert found["w1"].replicates[0] == pytest.approx(found["w1"].value, rel=0.05)


def test_intervals_are_wide_when_participants_differ_and_narrow_when_they_do_not() -> None:
    groups = np.arange(800) % 8
    alike = RNG.normal(0, 1, 800)
    apart = RNG.normal(0, 1, 800) + 2.0 * groups
    other = RNG.normal(0, 1, 800)
    rng = np.random.default_rng(1)
    draws = draw_weights(8, 300, rng), draw_weights(8, 300, rng)

    def width(values: np.ndarray) -> float:
        sides = quantity(values, groups), quantity(other, groups)
        found = distances_with_intervals(*sides, bins_of(*sides), draws)
        interval = found["ks"].interval()
        assert interval is not None
        return interval[1] - interval[0]

    assert width(apart) > 3 * width(alike)


def test_weights_draw_as_many_groups_as_there_are() -> None:
    weights = draw_weights(9, 50, np.random.default_rng(0))
    assert weights.shape == (50, 9)
    assert (weights.sum(axis=1) == 9).all()
    assert weights.max() > 1


def test_a_set_without_a_value_has_the_largest_distance() -> None:
    sides = quantity(RNG.normal(0, 1, 50)), quantity(np.empty(0))
    found = distances_with_intervals(*sides, np.linspace(-3, 3, 51), None)
    assert found["js"].value == pytest.approx(math.log(2))
    assert found["ks"].value == 1.0
    assert found["w1"].value == math.inf
    assert found["js"].interval() is None


def test_synthetic_windows_fall_into_even_blocks() -> None:
    blocks = synthetic_groups(1000)
    assert blocks.max() == 63
    assert np.ptp(np.bincount(blocks)) <= 1
    assert synthetic_groups(5).tolist() == [0, 1, 2, 3, 4]


def test_a_share_of_many_values_is_spread_over_all_of_them() -> None:
    values = np.arange(1_000_000.0)
    some = share(values)
    assert len(some) <= 100_000
    assert some[-1] > 999_000


def test_a_draw_without_a_value_leaves_the_distance_without_an_interval() -> None:
    """As of few synthetic windows of which one alone has a fixation."""
    real, one = RNG.normal(0, 1, 60), RNG.normal(0, 1, 5)
    draws = draw_weights(6, 50, RNG), draw_weights(6, 50, RNG)
    sides = quantity(real, np.arange(60) % 6), quantity(one, np.zeros(5, int))
    found = distances_with_intervals(*sides, bins_of(*sides), draws)
    assert found["js"].value == distances(quantity(real), quantity(one))["js"]
    assert found["js"].interval() is None
