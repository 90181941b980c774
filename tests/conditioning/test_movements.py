"""Quantities of eye movements, against the events of each window."""

from __future__ import annotations

import numpy as np

from gazediffusion.conditioning.style import QUANTITIES, Movements
from gazediffusion.data.windows import Windows
from gazediffusion.screen import Screen

SCREENS = [Screen(1280, 720, 40, 22.5, 45), Screen(1680, 1050, 47, 30, 55)]
N, RATE_HZ, LENGTH = 12, 250, 1000


def steps(seed: int, n: int = N) -> Windows:
    """Gaze that jumps between fixations, with noise; the first window never moves."""
    rng = np.random.default_rng(seed)
    gaze = np.zeros((n, 2, LENGTH))
    for window in gaze[1:]:
        at = np.sort(rng.choice(LENGTH // 8, 9, replace=False)) * 8
        for onset in at:
            way = np.linspace(0, 1, 7) ** 2 * rng.uniform(0.05, 0.5)
            angle = rng.uniform(0, 2 * np.pi)
            window[:, onset:] += way[-1] * np.array([[np.cos(angle)], [np.sin(angle)]])
            stop = min(onset + 7, LENGTH)
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
    for k in range(N):
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
        np.testing.assert_allclose(own["saccade rate"], [len(saccades) / LENGTH * RATE_HZ])
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
    assert (np.bincount(found.window[2], minlength=N)[1:] > 3).all()


def test_many_windows_are_measured_as_few_are() -> None:
    windows = steps(1, 20)
    many = windows.select(np.tile(np.arange(20), 30))
    few, found = Movements.of(windows), Movements.of(many)
    for k in range(len(QUANTITIES)):
        np.testing.assert_allclose(found.values[k], np.tile(few.values[k], 30), rtol=1e-8)
        assert found.window[k].max() == 599
    np.testing.assert_allclose(found.means, few.means)
