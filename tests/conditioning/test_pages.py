"""Pages: pace, end and positions of recordings that go down a page and begin again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gazediffusion import Screen, Windows
from gazediffusion.conditioning.course import JITTER_S, Course, Page
from gazediffusion.seeds import Stream, rng

RATE_HZ, N, TOP, END = 50, 24, -0.8, 1.0
PACES = np.linspace(0.03, 0.06, N)  # normalized y per second


def windows(n_participants: int = 6) -> Windows:
    """Recordings of a minute, each at its pace from TOP to END and again, at x in [-0.3, 0.3]."""
    rng = np.random.default_rng(0)
    time_s = np.arange(60 * RATE_HZ) / RATE_HZ
    y = TOP + np.mod(PACES[:, None] * (time_s - 1), END - TOP)
    gaze = np.stack([rng.uniform(-0.3, 0.3, y.shape), y], axis=1)
    names = [f"P{k % n_participants}" for k in range(N)]
    made = Windows.from_array(gaze, RATE_HZ, Screen(1280, 720), names, "reading")
    trials = tuple(str(k) for k in range(N))
    return replace(made, segment_trial=trials, segment_elapsed_ms=np.zeros(N))


def test_pace_and_end_of_a_page_are_those_of_the_recordings() -> None:
    page = Page.fit([windows()], "reading")
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
    assert Page.fit([windows(n_participants=4)], "reading") is None
    assert Page.fit([windows()], "movies") is None
    still = windows()
    rng = np.random.default_rng(1)
    noise = rng.normal(size=still.gaze.shape).astype(np.float32)
    assert Page.fit([replace(still, gaze=noise)], "reading") is None
    assert Page.fit([replace(still, gaze=still.gaze[:, ::-1].copy())], "reading") is None
    assert Page.fit([replace(still, segment_elapsed_ms=None)], "reading") is None


def test_long_gaze_of_a_task_with_a_page_is_given_waypoints() -> None:
    course = Course.fit([windows()], ["reading"])
    assert list(course.pages) == ["reading"]
    assert Course.from_json(course.to_json()) == course
    found = course.draw(["reading"], 3, 60 * RATE_HZ, RATE_HZ, 0, [600, 1200])["fixations"][0]
    at = np.flatnonzero(np.isfinite(found[0]))
    begins = at[np.diff(at, prepend=-9) > 1]
    assert begins[:2].tolist() == [0, 50]
    assert (begins[2:] - [600, 1200]).min() >= 0
    assert (begins[2:] - [600, 1200]).max() <= JITTER_S * RATE_HZ
    assert len(at) == 4 * 5  # 0.1 s each
    top, first, second = found[1, begins[1:]]
    # At a pace of the recordings, from a second on.
    pace = (first - top) / (begins[2] - 50)
    assert pace == pytest.approx((second - first) / (begins[3] - begins[2]), rel=0.01)
    assert 0.03 <= pace * RATE_HZ <= 0.06
    # A file of an earlier version has no pages.
    earlier = {name: one for name, one in course.to_json().items() if name != "pages"}
    assert Course.from_json(earlier) == replace(course, pages={})
