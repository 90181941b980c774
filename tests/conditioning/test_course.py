"""The course of recordings: beginnings, pages, targets and elapsed time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from gazediffusion import Screen
from gazediffusion.conditioning.course import (
    JITTER_S,
    KNOTS_S,
    Beginning,
    Course,
    Page,
    TargetPrior,
    are_regular,
    encode_elapsed,
    response_gain,
)
from gazediffusion.data.windows import Windows
from gazediffusion.seeds import Stream, rng
from tests.runs import short_windows

N_BEGUN = 60
PAGE_HZ, N_READ, TOP, END = 50, 24, -0.8, 1.0
PACES = np.linspace(0.03, 0.06, N_READ)  # normalized y per second
RATE_HZ = 250.0


def beginning(elapsed_s: float = 0.0, n_participants: int = 6) -> Windows:
    """Windows that begin at x uniform in [-0.5, 0.5] and y = 0.25, and are at 0.9 after 0.2 s."""
    gaze = np.full((N_BEGUN, 2, 500), 0.9)
    gaze[:, 0, :50] = np.linspace(-0.5, 0.5, N_BEGUN)[:, None]
    gaze[:, 1, :50] = 0.25
    names = [f"P{k % n_participants}" for k in range(N_BEGUN)]
    made = Windows.from_array(gaze, 250, Screen(1280, 720), names, "reading")
    return replace(made, segment_elapsed_ms=np.full(N_BEGUN, 1000 * elapsed_s))


def test_positions_are_those_at_the_beginning() -> None:
    found = Beginning.fit([beginning()], "reading")
    assert found is not None
    assert found.x[0][0] == pytest.approx(-0.48, abs=0.01)
    assert found.x[0][-1] == pytest.approx(0.48, abs=0.01)
    assert set(found.y[0]) == {0.25}
    assert {*found.x[1], *found.y[1]} == {0.9}
    drawn = np.array(
        [found.draw(rng(seed, Stream.BEGINNING)) for seed in range(400)]
    )  # (draw, time, axis)
    assert np.quantile(drawn[:, 0, 0], [0.25, 0.75]) == pytest.approx([-0.24, 0.24], abs=0.08)
    assert (drawn[:, 0, 1] == 0.25).all()
    assert drawn[:, 1] == pytest.approx(0.9)
    first, again = (found.draw(rng(3, Stream.BEGINNING)) for _ in range(2))
    assert first == again
    assert Beginning.from_json(found.to_json()) == found


def test_later_windows_and_few_participants_say_nothing() -> None:
    assert Beginning.fit([beginning(elapsed_s=1.5)], "reading") is None
    assert Beginning.fit([beginning(n_participants=4)], "reading") is None
    assert Beginning.fit([beginning()], "dots") is None


def read_pages(n_participants: int = 6) -> Windows:
    """Recordings of a minute, each at its pace from TOP to END and again, at x in [-0.3, 0.3]."""
    rng = np.random.default_rng(0)
    time_s = np.arange(60 * PAGE_HZ) / PAGE_HZ
    y = TOP + np.mod(PACES[:, None] * (time_s - 1), END - TOP)
    gaze = np.stack([rng.uniform(-0.3, 0.3, y.shape), y], axis=1)
    names = [f"P{k % n_participants}" for k in range(N_READ)]
    made = Windows.from_array(gaze, PAGE_HZ, Screen(1280, 720), names, "reading")
    trials = tuple(str(k) for k in range(N_READ))
    return replace(made, segment_trial=trials, segment_elapsed_ms=np.zeros(N_READ))


def test_pace_and_end_of_a_page_are_those_of_the_recordings() -> None:
    page = Page.fit([read_pages()], "reading")
    assert page is not None
    assert np.quantile(page.pace, [0, 0.5, 1]) == pytest.approx([0.0306, 0.045, 0.0594], rel=0.01)
    assert page.end == pytest.approx(END, abs=0.05)
    assert Page.from_json(page.to_json()) == page


def test_a_drawn_path_has_one_pace_and_begins_again_at_the_top() -> None:
    page = Page((0.02, 0.05), (-0.3, 0.3), END)
    given_s = np.arange(1.0, 300.0, 6.5)
    paces, later_s = [], []
    for seed in range(200):
        time_s, (x, y) = page.draw(given_s, TOP, rng(seed, Stream.PAGE))
        steps = np.diff(y) / np.diff(time_s)
        down = steps[steps > 0]
        assert down == pytest.approx(down[0])
        assert y[0] == pytest.approx(TOP + down[0] * (time_s[0] - 1))
        assert TOP <= y.min() < y.max() <= END
        assert np.abs(x).max() <= 0.3
        # A return takes 0.8 s from close to the end to close to the top, and none is without.
        returns = np.flatnonzero(steps < 0)
        period_s = (END - TOP) / down[0]
        assert len(returns) == (time_s[-1] - 1) // period_s >= 1
        assert np.diff(time_s)[returns] == pytest.approx(0.8)
        assert y[returns] == pytest.approx(END - 0.4 * down[0])
        assert y[returns + 1] == pytest.approx(TOP + 0.4 * down[0])
        others = np.delete(time_s, [*returns, *(returns + 1)])
        later_s += (np.mod(others - 1, 6.5)).tolist()
        paces.append(down[0])
    assert np.quantile(paces, [0.25, 0.5, 0.75]) == pytest.approx([0.0275, 0.035, 0.0425], abs=3e-3)
    later = np.array([0, 0.5, 1]) * JITTER_S
    assert np.quantile(later_s, [0, 0.5, 1]) == pytest.approx(later, abs=0.1)
    first, again = (page.draw(given_s, TOP, rng(3, Stream.PAGE))[1] for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_no_page_is_read_where_positions_do_not_follow_time_or_participants_are_few() -> None:
    assert Page.fit([read_pages(n_participants=4)], "reading") is None
    assert Page.fit([read_pages()], "movies") is None
    still = read_pages()
    rng = np.random.default_rng(1)
    noise = rng.normal(size=still.gaze.shape).astype(np.float32)
    assert Page.fit([replace(still, gaze=noise)], "reading") is None
    assert Page.fit([replace(still, gaze=still.gaze[:, ::-1].copy())], "reading") is None
    assert Page.fit([replace(still, segment_elapsed_ms=None)], "reading") is None


def test_long_gaze_of_a_task_with_a_page_is_given_waypoints() -> None:
    course = Course.fit([read_pages()], ["reading"])
    assert list(course.pages) == ["reading"]
    assert Course.from_json(course.to_json()) == course
    found = course.draw(["reading"], 3, 60 * PAGE_HZ, PAGE_HZ, 0, [600, 1200])["fixations"][0]
    at = np.flatnonzero(np.isfinite(found[0]))
    begins = at[np.diff(at, prepend=-9) > 1]
    assert begins[:2].tolist() == [0, 50]
    assert (begins[2:] - [600, 1200]).min() >= 0
    assert (begins[2:] - [600, 1200]).max() <= JITTER_S * PAGE_HZ
    assert len(at) == 4 * 5  # 0.1 s each
    top, first, second = found[1, begins[1:]]
    # At a pace of the recordings, from a second on.
    pace = (first - top) / (begins[2] - 50)
    assert pace == pytest.approx((second - first) / (begins[3] - begins[2]), rel=0.01)
    assert 0.03 <= pace * PAGE_HZ <= 0.06
    # A file of an earlier version has no pages.
    earlier = {name: one for name, one in course.to_json().items() if name != "pages"}
    assert Course.from_json(earlier) == replace(course, pages={})


def jumping_windows(held_out: float = 0.9) -> Windows:
    """Windows whose target jumps every 8 ms; that of the held-out participant stays at one place.

    Of the training participant x is uniform in [-0.5, 0.5] and y is 0.2 or 0.4.
    """
    windows = short_windows()
    n = windows.gaze.shape[1]
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-0.5, 0.5, n // 2 + 1), rng.choice([0.2, 0.4], n // 2 + 1)
    targets = np.repeat(np.stack([x, y]), 2, axis=1)[:, :n]
    targets[:, windows.segment_starts[1] :] = held_out
    return replace(windows, targets=targets.astype(np.float32))


def test_intervals_and_positions_are_those_of_the_training_participants() -> None:
    prior = TargetPrior.fit([jumping_windows()], "dots")
    assert prior is not None
    assert set(prior.interval_s) == {0.008}
    assert prior.x[0] == pytest.approx(-0.5, abs=0.03)
    assert prior.x[-1] == pytest.approx(0.5, abs=0.03)
    assert np.isin(np.round(prior.y, 4), [0.2, 0.4]).mean() > 0.9
    assert TargetPrior.from_json(prior.to_json()) == prior


def test_drawn_targets_have_these_intervals_and_positions() -> None:
    prior = TargetPrior((0.4, 0.6), (-0.5, 0.5), (0.1, 0.1))
    target = prior.draw(100_000, RATE_HZ, rng(3, Stream.TARGETS))
    at = np.flatnonzero(np.diff(target[0])) + 1
    intervals_s = np.diff(at) / RATE_HZ
    assert 0.396 <= intervals_s.min() < 0.41
    assert 0.59 < intervals_s.max() <= 0.604
    assert np.quantile(target[0, at], [0.25, 0.5, 0.75]) == pytest.approx(
        [-0.25, 0, 0.25], abs=0.06
    )
    np.testing.assert_allclose(target[1], 0.1)
    np.testing.assert_array_equal(prior.draw(100, RATE_HZ, rng(3, Stream.TARGETS)), target[:, :100])
    assert not np.array_equal(prior.draw(100, RATE_HZ, rng(4, Stream.TARGETS)), target[:, :100])


def test_jumps_of_a_regular_target_do_not_drift() -> None:
    noise = np.random.default_rng(0)
    independent = [noise.uniform(0.9, 1.1, 40) for _ in range(5)]
    regular = [np.diff(np.arange(40) + noise.uniform(-0.05, 0.05, 40)) for _ in range(5)]
    assert are_regular(regular)
    assert not are_regular(independent)
    assert not are_regular([one[:5] for one in regular])  # too few in a row
    prior = TargetPrior((0.9, 1.1), (-0.5, 0.5), (0.1, 0.1), is_regular=True)
    drawn = prior.draw(100_000, RATE_HZ, rng(0, Stream.TARGETS))
    jumps_s = (np.flatnonzero(np.diff(drawn[0])) + 1) / RATE_HZ
    off = jumps_s - np.arange(1, len(jumps_s) + 1)
    assert np.abs(off).max() < 0.08
    # Intervals have the scatter they were fitted with.
    assert np.diff(jumps_s).std() == pytest.approx(0.2 / np.sqrt(12), rel=0.1)
    np.testing.assert_array_equal(prior.draw(100, RATE_HZ, rng(0, Stream.TARGETS)), drawn[:, :100])
    assert TargetPrior.from_json(prior.to_json()) == prior


def test_a_target_jumps_as_far_as_recorded_ones_at_least() -> None:
    prior = TargetPrior((0.1, 0.1), (-0.5, 0.5), (-0.5, 0.5))
    near, far = (
        np.hypot(
            *np.diff(
                replace(prior, least_jump=least).draw(50_000, RATE_HZ, rng(0, Stream.TARGETS))[
                    :, ::25
                ]
            )
        )
        for least in (0.0, 0.3)
    )
    assert near.min() < 0.05
    assert np.mean(far < 0.3) < 1e-3  # all candidates may be near
    # Jumps that are far enough anyway are as frequent among the others as before.
    levels = [0.25, 0.5, 0.75]
    assert np.quantile(far, levels) == pytest.approx(
        np.quantile(near[near >= 0.3], levels), abs=0.04
    )
    fitted = TargetPrior.fit([jumping_windows()], "dots")
    assert fitted is not None
    assert 0 < fitted.least_jump < 0.15


def test_the_gain_is_the_slope_of_gaze_late_after_jumps() -> None:
    rng = np.random.default_rng(0)
    target = np.repeat(rng.uniform(-0.5, 0.5, (30, 2, 8)), 250, axis=2).astype(np.float32)
    # Gaze follows after 0.2 s with gains of 0.9 and 0.7 and an offset.
    gaze = np.roll(target, 50, axis=2) * np.array([[0.9], [0.7]]) + 0.05
    found = response_gain(gaze.astype(np.float32), target, RATE_HZ)
    assert found == pytest.approx((0.9, 0.7), abs=1e-3)
    # A target that jumps twice a second never stays that long.
    assert response_gain(gaze[..., ::2], target[..., ::2], RATE_HZ) == (1.0, 1.0)
    prior = TargetPrior((1.0, 1.0), (-0.5, 0.5), (-0.5, 0.5), (0.99, 0.98), (0.9, 0.7))
    compensated = prior.compensated(target)
    np.testing.assert_allclose(compensated[:, 0], target[:, 0] * 1.1, rtol=1e-5)
    np.testing.assert_allclose(compensated[:, 1], target[:, 1] * 1.4, rtol=1e-5)
    again = np.roll(compensated, 50, axis=2) * np.array([[0.9], [0.7]])
    assert response_gain(again, target, RATE_HZ) == pytest.approx((0.99, 0.98), abs=1e-3)


@pytest.mark.parametrize("task", ["movies", "reading"])
def test_too_few_jumps_and_tasks_without_targets_have_no_prior(task: str) -> None:
    assert TargetPrior.fit([jumping_windows()], task) is None
    assert TargetPrior.fit([short_windows()], "dots") is None


def test_weights_interpolate_the_time_linearly() -> None:
    seconds = torch.tensor([0.0, 0.3, 1.0, 2.0, 11.9, 45.0, 90.0])
    weights = encode_elapsed(seconds)
    assert weights.shape == (7, len(KNOTS_S))
    assert (weights >= 0).all()
    assert ((weights > 0).sum(dim=1) <= 2).all()
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(7))
    torch.testing.assert_close(weights @ torch.tensor(KNOTS_S), seconds)
