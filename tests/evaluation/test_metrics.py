"""Every distance against scipy, scikit-learn or a closed form, and its intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import stats

from gazediffusion.errors import GazeError
from gazediffusion.evaluation.metrics import (
    bins_of,
    density_coverage,
    distances,
    distances_with_intervals,
    draw_weights,
    frechet_of,
    histogram_counts,
    histogram_edges,
    histograms,
    js_from_counts,
    ks_and_wasserstein1,
    ks_from_counts,
    share,
    w1_from_counts,
)
from gazediffusion.evaluation.quantities import Quantity

Floats = NDArray[np.float64]
LN2 = float(np.log(2))
# Whole numbers make ties, which the distances must get right, likely.
samples = st.one_of(
    arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e6, 1e6)),
    arrays(np.float64, st.integers(1, 40), elements=st.integers(-3, 3).map(float)),
)


def js(a: Floats, b: Floats, bins: int = 50) -> float:
    edges = histogram_edges(a, b, bins)
    return float(js_from_counts(histogram_counts(a, edges), histogram_counts(b, edges)))


def two_normals(n: int = 1000, m: int = 700, shift: float = 0.3) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    return rng.normal(0, 1, n), rng.normal(shift, 1.2, m)


@pytest.mark.filterwarnings("ignore:ks_2samp:RuntimeWarning")  # about its p-value
@given(samples, samples)
def test_ks_is_that_of_scipy(a: Floats, b: Floats) -> None:
    assert ks_and_wasserstein1(a, b)[0] == pytest.approx(
        stats.ks_2samp(a, b, method="exact").statistic, abs=1e-12
    )


@given(samples, samples)
def test_w1_is_that_of_scipy(a: Floats, b: Floats) -> None:
    w1 = ks_and_wasserstein1(a, b)[1]
    assert w1 == pytest.approx(stats.wasserstein_distance(a, b), rel=1e-9, abs=1e-9)


@given(samples, samples)
def test_js_is_symmetric_and_at_most_ln_2(a: Floats, b: Floats) -> None:
    divergence = js(a, b)
    assert divergence == pytest.approx(js(b, a), abs=1e-12)
    assert 0.0 <= divergence <= LN2 + 1e-12


@given(samples)
def test_a_set_is_no_distance_from_itself(a: Floats) -> None:
    assert ks_and_wasserstein1(a, a) == (0.0, 0.0)
    assert js(a, a) == 0.0


def test_js_is_the_squared_distance_of_scipy_in_nats() -> None:
    from scipy.spatial.distance import jensenshannon

    p, q = np.array([5, 0, 3, 2]), np.array([1, 4, 0, 7])
    assert js_from_counts(p, q) == pytest.approx(jensenshannon(p, q) ** 2, abs=1e-12)


def test_js_of_one_distribution_is_about_its_known_bias() -> None:
    rng = np.random.default_rng(1)
    n, m, bins = 2000, 1000, 50
    found = np.mean([js(rng.random(n), rng.random(m), bins) for _ in range(30)])
    assert found == pytest.approx((bins - 1) / 8 * (1 / n + 1 / m), rel=0.1)


def test_edges_span_the_inner_99_percent_in_equal_steps() -> None:
    a, b = two_normals()
    edges = histogram_edges(a, b, 50)
    low, high = np.percentile(np.concatenate([a, b]), [0.5, 99.5])
    np.testing.assert_allclose(edges, np.linspace(low, high, 51))


def test_tails_are_folded_into_the_end_bins() -> None:
    edges = np.array([0.0, 1.0, 2.0, 3.0])
    counts = histogram_counts([-9.0, 0.0, 0.5, 1.0, 2.9, 3.0, 99.0], edges)
    assert counts.tolist() == [3, 1, 3]


@pytest.mark.parametrize("value", [0.0, -4.5, 1e9, 1e300, 5e-324])
def test_constant_data_has_edges_and_no_divergence(value: float) -> None:
    a = np.full(5, value)
    assert (np.diff(histogram_edges(a, a)) > 0).all()
    assert js(a, a) == 0.0


def test_rare_values_beside_a_constant_are_seen() -> None:
    a = np.zeros(10_000)
    b = a.copy()
    b[:20] = 1.0  # fewer than half a percent, so both percentiles are zero
    assert js(a, b) > 0


@given(samples, samples)
def test_ks_from_counts_is_below_ks_by_at_most_a_bin(a: Floats, b: Floats) -> None:
    edges = histogram_edges(a, b, 20)
    p, q = histogram_counts(a, edges), histogram_counts(b, edges)
    binned, exact = float(ks_from_counts(p, q)), ks_and_wasserstein1(a, b)[0]
    largest = max((p / p.sum()).max(), (q / q.sum()).max())
    assert exact - largest - 1e-9 <= binned <= exact + 1e-9


def test_w1_from_counts_is_that_of_scipy_at_the_centres() -> None:
    edges = np.array([0.0, 1.0, 3.0, 7.0])
    p, q = np.array([4, 1, 1]), np.array([1, 2, 5])
    exact = stats.wasserstein_distance([0.5, 2, 5], [0.5, 2, 5], p, q)
    assert float(w1_from_counts(p, q, edges)) == pytest.approx(exact)


def test_frechet_agrees_with_the_matrix_root_of_scipy() -> None:
    from scipy.linalg import sqrtm

    rng = np.random.default_rng(3)
    a, b = rng.normal(0, 1, (200, 6)), rng.normal(0.2, 2, (150, 6)) @ rng.normal(0, 1, (6, 6))
    cov1, cov2 = np.cov(a, rowvar=False), np.cov(b, rowvar=False)
    away = a.mean(axis=0) - b.mean(axis=0)
    exact = away @ away + np.trace(cov1 + cov2 - 2 * np.real(sqrtm(cov1 @ cov2)))
    assert frechet_of(a, b) == pytest.approx(exact, rel=1e-8)


def test_frechet_stays_near_zero_where_covariances_are_singular() -> None:
    rng = np.random.default_rng(4)
    flat = rng.normal(0, 1, (300, 3)) @ rng.normal(0, 1, (3, 40))
    assert frechet_of(flat, flat) < 1e-9 * np.var(flat, axis=0).sum()


def slow_coverage(real: Floats, synthetic: Floats, k: int) -> tuple[float, float, float, float]:
    """Precision, recall, density, coverage as their papers write them, with scikit-learn."""
    from sklearn.neighbors import NearestNeighbors  # type: ignore[import-untyped,unused-ignore]
    from sklearn.preprocessing import (  # type: ignore[import-untyped,unused-ignore]
        StandardScaler,
    )

    scaler = StandardScaler().fit(real)
    real, synthetic = scaler.transform(real), scaler.transform(synthetic)
    near_real = NearestNeighbors(n_neighbors=k + 1).fit(real).kneighbors(real)[0][:, -1]
    near_synthetic = NearestNeighbors(n_neighbors=k + 1).fit(synthetic)
    radius = near_synthetic.kneighbors(synthetic)[0][:, -1]
    distance = np.linalg.norm(real[:, None] - synthetic[None], axis=2)
    inside = distance <= near_real[:, None]
    return (
        float(inside.any(axis=0).mean()),
        float((distance <= radius).any(axis=1).mean()),
        float(inside.sum(axis=0).mean() / k),
        float(inside.any(axis=1).mean()),
    )


def test_coverage_is_what_the_papers_define() -> None:
    rng = np.random.default_rng(5)
    # More synthetic points than are worked on at once.
    real, synthetic = rng.normal(0, [1, 9], (200, 2)), rng.normal(0.5, [2, 5], (1500, 2))
    found = density_coverage(real, synthetic, k=4)
    expected = slow_coverage(real, synthetic, k=4)
    assert (found.precision, found.recall, found.density, found.coverage) == pytest.approx(expected)


def test_coverage_of_a_copy_is_full_and_of_one_mode_is_half() -> None:
    rng = np.random.default_rng(6)
    mode, other = rng.normal(0, 1, (300, 3)), rng.normal(50, 1, (300, 3))
    real = np.concatenate([mode, other])
    copy = density_coverage(real, real)
    assert (copy.precision, copy.recall, copy.coverage) == (1.0, 1.0, 1.0)
    assert copy.density == pytest.approx(
        6 / 5
    )  # each point lies in k balls and its own, on average
    one_mode = density_coverage(real, np.concatenate([mode, mode + 0.01]))
    assert one_mode.coverage == pytest.approx(0.5)
    assert one_mode.recall < 0.51
    assert one_mode.precision > 0.95


def test_coverage_takes_a_feature_that_never_changes() -> None:
    real = np.random.default_rng(7).normal(0, 1, (50, 2))
    real[:, 1] = 0.1
    assert density_coverage(real, real).coverage == 1.0


DISTANCES: list[Callable[[Any, Any], Any]] = [ks_and_wasserstein1, js]


@pytest.mark.parametrize("distance", DISTANCES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("bad", [[], [1.0, np.nan], [np.inf, 0.0]], ids=["empty", "nan", "inf"])
def test_no_values_and_nan_are_refused(
    distance: Callable[[Any, Any], Any], bad: list[float]
) -> None:
    with pytest.raises(GazeError, match="no values"):
        distance(bad, [1.0, 2.0])


def test_empty_histograms_and_too_few_features_are_refused() -> None:
    with pytest.raises(GazeError, match="empty"):
        js_from_counts(np.zeros(3, dtype=int), np.ones(3, dtype=int))
    with pytest.raises(GazeError, match="5 where 6 are needed"):
        density_coverage(np.ones((5, 2)), np.ones((9, 2)), k=5)
    with pytest.raises(GazeError, match="NaN"):
        frechet_of(np.full((3, 1), np.nan), np.ones((3, 1)))


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


def test_a_set_without_a_value_has_the_largest_distance() -> None:
    sides = quantity(RNG.normal(0, 1, 50)), quantity(np.empty(0))
    found = distances_with_intervals(*sides, np.linspace(-3, 3, 51), None)
    assert found["js"].value == pytest.approx(math.log(2))
    assert found["ks"].value == 1.0
    assert found["w1"].value == math.inf
    assert found["js"].interval() is None


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
