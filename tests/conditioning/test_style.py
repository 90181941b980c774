"""Style: one participant's statistics and movements, their posterior, and windows like them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import spearmanr, wasserstein_distance

from gazediffusion.conditioning import Conditioning
from gazediffusion.conditioning.prior import Component, Prior
from gazediffusion.conditioning.style import (
    N_CANDIDATES_COUNT,
    QUANTITIES,
    Movements,
    Style,
    choose,
    n_covered,
    style_of,
)
from gazediffusion.data.reading import read
from gazediffusion.data.simulation import write_simulation
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from gazediffusion.settings import SimulationConfig
from tests.runs import short_windows

SCREEN = Screen(1280, 720, 40, 22.5, 45)
NAMES = ("median_speed_x", "saccades", "std_y")
N_PARTICIPANTS, N_EACH, LENGTH = 24, 16, 250
SCREENS = [Screen(1280, 720, 40, 22.5, 45), Screen(1680, 1050, 47, 30, 55)]
N_STEPPED, RATE_HZ, N_SAMPLES = 12, 250, 1000
N_EVENTS = 20


def of_participants() -> Windows:
    """Participant k has k-th smallest noise, largest saccade rate and smallest spread in y."""
    rng = np.random.default_rng(0)
    gaze, names = [], []
    for k in range(N_PARTICIPANTS):
        share = k / (N_PARTICIPANTS - 1)
        for _ in range(N_EACH):
            noise = rng.normal(0, 0.001 * (1 + 2 * share), (2, LENGTH))
            jumps = np.zeros((2, LENGTH))
            n_jumps = 3 + round(12 * (1 - share)) + rng.integers(0, 3)
            at = rng.choice(LENGTH, n_jumps, replace=False)
            jumps[0, at] = rng.choice([-0.1, 0.1], n_jumps)
            drift = np.linspace(-1, 1, LENGTH) * (0.1 + 0.5 * share) * rng.uniform(0.7, 1.3)
            gaze.append(np.cumsum(jumps, axis=1) + noise + drift * np.array([[0.0], [1.0]]))
            names.append(f"{k:02d}")
    return Windows.from_array(np.array(gaze), 250, SCREEN, names, "walk")


@pytest.fixture(scope="module")
def windows() -> Windows:
    return of_participants()


@pytest.fixture(scope="module")
def conditioning(windows: Windows) -> Conditioning:
    return Conditioning.fit([windows], NAMES)


def of(windows: Windows, k: int) -> Windows:
    return windows.select(windows.participant == k)


def style(conditioning: Conditioning, windows: Windows, task: str | None = None) -> Style:
    return style_of(windows, conditioning, 250.0, LENGTH, task)


def test_targets_follow_the_differences_of_participants(
    windows: Windows, conditioning: Conditioning
) -> None:
    means = []
    for k in range(N_PARTICIPANTS):
        drawn = conditioning.draw(0, 64, k, "walk", style(conditioning, of(windows, k)))
        assert drawn.targets is not None
        means.append(drawn.targets.mean(dim=0).numpy())
    for name, sign, values in zip(NAMES, (1, -1, 1), np.array(means).T, strict=True):
        assert spearmanr(sign * np.arange(N_PARTICIPANTS), values).statistic > 0.9, name


def test_draws_have_the_mean_and_variance_of_the_closed_form() -> None:
    """Of one statistic: p given the mean m of n windows is normal, m b / (b + w / n)."""
    b, w, m, n = 0.6, 0.4, 1.0, 3.0
    component = Component.fit(ndtri((np.arange(4000)[:, None] + 0.5) / 4000))
    component = replace(component, between=np.array([[b]]), within=np.array([[w]]))
    prior = Prior(("saccades",), np.zeros(1), np.ones(1), ((component,),))
    known = Style(0, 0, np.array([m]), n)
    uniforms = (np.arange(20_000)[:, None] + 0.5) / 20_000
    drawn = known.draw(prior, uniforms)[0].numpy()
    shrinkage = b / (b + w / n)
    assert drawn.mean() == pytest.approx(m * shrinkage, abs=0.03)
    assert drawn.var() == pytest.approx(b * (1 - shrinkage) + w, abs=0.03)
    # Later parts of a long window share p. This one has p within the quantiles that are kept.
    further = torch.stack([known.draw_further(prior, 0, 3, k) for k in range(1, 2000)])
    assert float(further.var()) == pytest.approx(w, abs=0.03)
    without = replace(component, between=np.zeros((0, 0)), within=np.zeros((0, 0)))
    with pytest.raises(GazeError, match="does not know how participants differ"):
        known.draw(prior.with_components([[without]]), uniforms)


def test_a_window_depends_on_the_seed_and_its_number_alone(
    windows: Windows, conditioning: Conditioning
) -> None:
    known = style(conditioning, of(windows, 3))
    whole = conditioning.draw(0, 40, 7, "walk", known)
    part = conditioning.draw(11, 15, 7, "walk", known)
    assert torch.equal(whole.condition[0][11:15], part.condition[0])
    assert not torch.equal(part.condition[0], conditioning.draw(11, 15, 7, "walk").condition[0])
    later = conditioning.of_part(whole, 2, None, 0, 7)
    same = conditioning.of_part(part, 2, None, 11, 7)
    assert torch.equal(later.condition[0][11:15], same.condition[0])


def test_the_rest_of_a_long_window_keeps_the_style(
    windows: Windows, conditioning: Conditioning
) -> None:
    ends = []
    for k in (0, N_PARTICIPANTS - 1):
        drawn = conditioning.draw(0, 32, 0, "walk", style(conditioning, of(windows, k)))
        later = conditioning.of_part(drawn, 3, None, 0, 0).targets
        assert later is not None
        ends.append(later.mean(dim=0))
    assert float(ends[1][0] - ends[0][0]) > 1
    assert float(ends[0][1] - ends[1][1]) > 1


def test_without_a_style_the_rest_of_a_long_window_has_no_targets(
    conditioning: Conditioning,
) -> None:
    drawn = conditioning.draw(0, 4, 0, "walk")
    later = conditioning.of_part(drawn, 1, None, 0, 0)
    assert torch.equal(later.condition[0], conditioning.without_statistics(drawn.condition)[0])
    assert not torch.equal(later.condition[0], drawn.condition[0])
    assert later.tasks == drawn.tasks


def test_two_recordings_joined_are_one(windows: Windows, conditioning: Conditioning) -> None:
    own = of(windows, 5)
    parts = [style(conditioning, own.select(np.arange(a, b))) for a, b in ((0, 4), (4, 16))]
    whole, joined = style(conditioning, own), parts[0].joined(parts[1])
    np.testing.assert_allclose(joined.mean, whole.mean, rtol=1e-6)
    assert joined.n_windows == whole.n_windows == 16
    assert whole.origin == {"recordings": [], "seconds": 16.0, "n_windows": 16}


def test_overlapping_windows_count_by_the_samples_they_cover() -> None:
    assert n_covered(short_windows().select(np.arange(3))) == 96
    assert n_covered(short_windows().select(np.array([0, 11]))) == 128


def test_gaze_of_another_screen_is_compared_in_degrees(
    windows: Windows, conditioning: Conditioning
) -> None:
    own, far = of(windows, 9), Screen(1920, 1080, 60, 33.75, 90)
    moved = Windows.from_array(own.to_numpy("deg"), 250, far, "09", "walk", unit="deg")
    expected = style(conditioning, own)
    np.testing.assert_allclose(style(conditioning, moved).mean, expected.mean, atol=0.02)
    unknown = replace(own, screens=(Screen(1920, 1080),))
    with pytest.raises(GazeError, match="screen of `like` has no size"):
        style(conditioning, unknown)


def test_the_component_of_the_nearest_step_is_taken(
    windows: Windows, conditioning: Conditioning
) -> None:
    assert conditioning.prior is not None
    (fine,) = conditioning.prior.components[0]
    both = conditioning.prior.with_components([[replace(fine, step=np.full(2, 0.002)), fine]])
    two = replace(conditioning, prior=both)
    own = of(windows, 0)
    assert style(two, own).component == 1
    coarse = replace(own, segment_step=np.full((len(own.segment_starts), 2), 0.0019))
    assert style(two, coarse).component == 0


def test_what_cannot_be_taken_is_refused(windows: Windows, conditioning: Conditioning) -> None:
    own = of(windows, 0)
    other_task = replace(own, tasks=("driving",))
    assert style(conditioning, other_task, "walk").task == 0
    two_tasks = replace(
        own,
        tasks=("run", "swim"),
        segment_task=(np.arange(len(own.segment_starts)) % 2).astype(np.int32),
    )
    for given, task, problem in (
        (windows, None, r"one participant, and these are of 24 \(00, 01, 02 \.\.\.\)"),
        (other_task, None, "no task 'driving', which `like` was recorded in.*walk"),
        (two_tasks, "walk", r"several tasks \(run, swim\)"),
        (own, "walking", "no task 'walking'"),
        (replace(own, length=100), None, "needs windows of 1 s"),
        (own.select(np.arange(0)), None, "not 0 of 1 s"),
    ):
        with pytest.raises(GazeError, match=problem):
            style(conditioning, given, task)
    with pytest.raises(GazeError, match="not conditioned on summary statistics"):
        style(Conditioning(), own)
    with pytest.raises(GazeError, match="below the target"):
        style(conditioning, replace(own, rate_hz=60.0))


def test_recordings_are_cut_a_second_apart_and_named(
    tmp_path: Path, conditioning: Conditioning
) -> None:
    study = SimulationConfig(n_participants=1, minutes=0.1, trial_seconds=6, rate_hz=250)
    write_simulation(study, tmp_path / "study", "parquet")
    found = style(conditioning, read(tmp_path / "study"), "walk")  # type: ignore[arg-type]
    assert 1 <= found.n_windows <= 6
    (source,) = found.origin["recordings"]
    assert len(source["sha256"]) == 64
    with pytest.raises(GazeError, match=r"parquet: a style needs 8 s of valid gaze in a row"):
        style_of(read(tmp_path / "study"), conditioning, 250.0, 2000, "walk")


def steps(seed: int, n: int = N_STEPPED) -> Windows:
    """Gaze that jumps between fixations, with noise; the first window never moves."""
    rng = np.random.default_rng(seed)
    gaze = np.zeros((n, 2, N_SAMPLES))
    for window in gaze[1:]:
        at = np.sort(rng.choice(N_SAMPLES // 8, 9, replace=False)) * 8
        for onset in at:
            way = np.linspace(0, 1, 7) ** 2 * rng.uniform(0.05, 0.5)
            angle = rng.uniform(0, 2 * np.pi)
            window[:, onset:] += way[-1] * np.array([[np.cos(angle)], [np.sin(angle)]])
            stop = min(onset + 7, N_SAMPLES)
            part = (way - way[-1])[: stop - onset]
            window[:, onset:stop] += part * np.array([[np.cos(angle)], [np.sin(angle)]])
    gaze += rng.normal(0, 0.0005, gaze.shape)
    # A fast step alone is no saccade.
    gaze[:, 0, 500] += 0.02
    screens = [SCREENS[k % 2] for k in range(n)]
    return Windows.from_array(gaze, RATE_HZ, screens, "p", "walk")


def test_values_are_those_of_the_events_of_each_window() -> None:
    windows = steps(0)
    found = Movements.of(windows)
    degrees = windows.to_numpy("deg").astype(np.float64)
    for k in range(N_STEPPED):
        own = dict(
            zip(
                QUANTITIES,
                (v[w == k] for v, w in zip(found.values, found.window, strict=True)),
                strict=True,
            )
        )
        events = windows.events(k)
        saccades = [one for one in events if one.event == "saccade"]
        fixations = [one for one in events if one.event == "fixation"]
        assert (not saccades) == (k == 0)
        np.testing.assert_allclose(
            own["fixation duration"], [one.offset_ms - one.onset_ms for one in fixations]
        )
        np.testing.assert_allclose(own["saccade rate"], [len(saccades) / N_SAMPLES * RATE_HZ])
        np.testing.assert_allclose(
            own["amplitude"], [one.amplitude_deg for one in saccades], rtol=1e-4
        )
        np.testing.assert_allclose(
            own["peak velocity"], [one.peak_velocity_deg_s for one in saccades], rtol=1e-6
        )
        np.testing.assert_allclose(own["spread"], [np.hypot(*degrees[k].std(axis=1))])
        drift = []
        for one in fixations:
            first, last = (round(t * RATE_HZ / 1000) for t in (one.onset_ms, one.offset_ms))
            if last - first > 20:
                smooth = [
                    np.convolve(axis[first:last], np.full(10, 0.1), "valid") for axis in degrees[k]
                ]
                drift.append(np.hypot(*np.diff(smooth)).mean() * RATE_HZ)
        np.testing.assert_allclose(own["drift speed"], drift, rtol=1e-6)
    assert (np.bincount(found.window[2], minlength=N_STEPPED)[1:] > 3).all()


def test_many_windows_are_measured_as_few_are() -> None:
    windows = steps(1, 20)
    many = windows.select(np.tile(np.arange(20), 30))
    few, found = Movements.of(windows), Movements.of(many)
    for k in range(len(QUANTITIES)):
        np.testing.assert_allclose(found.values[k], np.tile(few.values[k], 30), rtol=1e-8)
        assert found.window[k].max() == 599
    np.testing.assert_allclose(found.means, few.means)


def movements(rng: np.random.Generator, means: ArrayLike) -> Movements:
    """Windows whose values of every quantity scatter about these means."""
    centre = np.asarray(means, dtype=float)
    window = np.repeat(np.arange(len(centre)), N_EVENTS)
    n = len(QUANTITIES)
    values = tuple(rng.normal(centre[window], 1.0) for _ in range(n))
    return Movements(values, (window,) * n)


def taken(candidates: Movements, chosen: list[int], quantity: int = 0) -> np.ndarray:
    return candidates.values[quantity][np.isin(candidates.window[quantity], chosen)]


def test_chosen_windows_have_the_distribution_of_the_recording() -> None:
    rng = np.random.default_rng(0)
    candidates = movements(rng, rng.normal(0, 2, 64))
    like = movements(rng, [1.0, 3.0] * 50)  # two kinds of windows
    chosen = choose(candidates, 64, like, 1000.0, 8)
    assert len(set(chosen)) == 8
    for k in range(len(QUANTITIES)):
        apart, at_first = (
            wasserstein_distance(taken(candidates, one, k), like.values[k])
            for one in (chosen, list(range(8)))
        )
        assert apart < at_first / 4


def test_the_first_are_the_same_for_every_number() -> None:
    rng = np.random.default_rng(1)
    candidates, like = movements(rng, rng.normal(0, 2, 32)), movements(rng, [1.0] * 5)
    assert choose(candidates, 32, like, 5.0, 3) == choose(candidates, 32, like, 5.0, 8)[:3]


def test_a_short_recording_counts_less() -> None:
    rng = np.random.default_rng(2)
    candidates, like = movements(rng, rng.normal(0, 2, 64)), movements(rng, [3.0] * 40)
    means = [
        taken(candidates, choose(candidates, 64, like, n_windows, 8)).mean()
        for n_windows in (1e-6, 1.0, N_CANDIDATES_COUNT, 1e6)
    ]
    assert means == sorted(means)
    assert abs(means[0] - candidates.values[0].mean()) < 0.3
    assert means[-1] == pytest.approx(3.0, abs=0.5)
    # As many windows as the candidates count for: half of the way.
    assert means[2] == pytest.approx((means[0] + means[-1]) / 2, abs=0.5)


def test_windows_without_an_event_are_chosen_last() -> None:
    rng = np.random.default_rng(3)
    like = movements(rng, [0.0] * 5)
    found = movements(rng, np.zeros(6))
    values = tuple(one[found.window[0] % 2 == 1] for one in found.values)
    window = tuple(one[one % 2 == 1] for one in found.window)
    chosen = choose(Movements(values, window), 6, like, 100.0, 6)
    assert {k % 2 for k in chosen[:1]} == {1}
    assert sorted(chosen) == list(range(6))


def test_a_quantity_that_the_recording_does_not_have_is_left_out() -> None:
    rng = np.random.default_rng(4)
    candidates, like = movements(rng, rng.normal(0, 2, 32)), movements(rng, [2.0] * 8)
    none = (np.zeros(0),) * 5
    one = Movements((like.values[0], *none), (like.window[0], *(n.astype(int) for n in none)))
    chosen = choose(candidates, 32, one, 1e6, 4)
    assert taken(candidates, chosen).mean() == pytest.approx(2.0, abs=0.5)
