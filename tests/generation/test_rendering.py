from __future__ import annotations

import numpy as np
import pytest

from gazediffusion.data.scanpaths import Scanpath, Targets
from gazediffusion.errors import GazeError
from gazediffusion.generation import steering
from gazediffusion.screen import Screen

SCREEN = Screen(1280, 720, 40, 22.5, 45)
NAN = np.nan


def scanpath(onset: list[float], duration: list[float]) -> Scanpath:
    n = len(onset)
    x = np.linspace(-0.5, 0.5, n).astype(np.float32)
    return Scanpath("a", x, np.zeros(n, np.float32), np.array(onset), np.array(duration))


def test_durations_that_are_given_follow_each_other_with_time_for_a_saccade() -> None:
    one = scanpath([NAN] * 3, [200.0, 300.0, 250.0])
    onset, duration = steering.timed(one, SCREEN, np.full(3, NAN))
    saccade = steering.saccade_ms(one, SCREEN)
    # Half of the screen's 40 cm at 45 cm, in two saccades of about 12 degrees.
    np.testing.assert_allclose(saccade, 21 + 2.2 * 12.5, atol=1.5)
    np.testing.assert_allclose(onset, [0, 200 + saccade[0], 500 + saccade.sum()])
    np.testing.assert_array_equal(duration, [200.0, 300.0, 250.0])


def test_given_onsets_and_durations_are_kept() -> None:
    one = scanpath([100.0, 500.0, 900.0], [200.0, 300.0, 250.0])
    onset, duration = steering.timed(one, SCREEN, np.full(3, NAN))
    np.testing.assert_array_equal(onset, one.onset_ms)
    np.testing.assert_array_equal(duration, one.duration_ms)


def test_free_durations_are_drawn_and_scaled_between_given_onsets() -> None:
    drawn = np.array([100.0, 300.0, 150.0])
    onset, duration = steering.timed(scanpath([NAN] * 3, [NAN] * 3), SCREEN, drawn)
    np.testing.assert_array_equal(duration, drawn)
    one = scanpath([0.0, NAN, 1000.0], [NAN] * 3)
    onset, duration = steering.timed(one, SCREEN, drawn)
    assert duration[1] / duration[0] == pytest.approx(3)
    end = onset[1] + duration[1] + steering.saccade_ms(one, SCREEN)[1]
    assert end == pytest.approx(1000)
    assert (onset[2], duration[2]) == (1000, 150)


def test_fixations_that_have_no_time_are_refused() -> None:
    with pytest.raises(GazeError, match=r"scanpath a: there is no time for fixations 1 to 2"):
        steering.timed(scanpath([0.0, NAN, 150.0], [NAN] * 3), SCREEN, np.full(3, 200.0))


def test_fixations_lie_at_their_samples() -> None:
    one = scanpath([0.0, 400.0], [200.0, 300.0])
    array = steering.fixations_array([one], [(one.onset_ms, one.duration_ms)], 250.0)
    assert array.shape == (1, 2, 175)
    assert (array[0, 0, :50] == -0.5).all()
    assert np.isnan(array[0, :, 50:100]).all()
    assert (array[0, 0, 100:] == 0.5).all()


def test_a_target_holds_until_it_jumps() -> None:
    x = np.array([0.5, -0.5], np.float32)
    jumps = Targets("dots", np.array([100.0, 1100.0]), x, x)
    array = steering.targets_array([jumps], 250.0)
    assert array.shape[2] == round(2.1 * 250)
    assert np.isnan(array[..., :25]).all()
    assert (array[0, 0, 25:275] == 0.5).all()
    assert (array[0, 0, 275:] == -0.5).all()
    assert steering.targets_array([jumps], 250.0, seconds=4.0).shape[2] == 1000
    early = Targets("dots", np.array([-100.0, 900.0]), x, x)
    assert (steering.targets_array([early], 250.0)[0, 0, :225] == 0.5).all()
    late = Targets("dots", np.array([1e9]), x[:1], x[:1])
    with pytest.raises(GazeError, match="3600 s is the most"):
        steering.targets_array([late], 250.0)


def test_waypoints_are_short_fixations_within_the_gaze() -> None:
    array = steering.waypoints_array([(1.0, 0.25, -0.5)], 250.0, 2.0)
    given = np.isfinite(array[0, 0])
    assert np.flatnonzero(given)[[0, -1]].tolist() == [225, 274]
    with pytest.raises(GazeError, match="beyond the 2 s"):
        steering.waypoints_array([(2.5, 0.0, 0.0)], 250.0, 2.0)
