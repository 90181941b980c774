"""runs/saccades.py: planted saccades have the peak and the overshoot they were given."""

from __future__ import annotations

import numpy as np
import pytest

import gazediffusion as gd
from tests.test_documents import from_folder

script = from_folder("runs", "saccades")
SCREEN = gd.Screen(1280, 720, 40.0, 22.5, 45.0)


def windows(overshoots: list[float], participants: list[str]) -> gd.Windows:
    """Two saccades of about 5 degrees in each window, at 250 Hz, that return so fast in deg/s."""
    gaze = np.zeros((len(overshoots), 2, 500))
    for own, overshoot in zip(gaze, overshoots, strict=True):
        for onset in (100, 300):
            speed = [0, 150, 300, 400, 300, 120, -overshoot, 0]
            own[0, onset : onset + 8] += np.cumsum(speed) / 250
            own[0, onset + 8 :] += np.sum(speed) / 250
    x = SCREEN.from_degrees(gaze.transpose(1, 0, 2).reshape(2, -1))
    pixels = x.reshape(2, len(gaze), -1).transpose(1, 0, 2).astype(np.float32)
    return gd.Windows.from_array(pixels, 250, SCREEN, participants=participants, unit="px")


def test_peak_amplitude_and_overshoot_are_those_planted() -> None:
    found = script.Saccades.of(windows([0.0, 60.0], ["a", "b"]))
    assert found.window.tolist() == [0, 0, 1, 1]
    assert found.group.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(found.velocity[:, 0], 400, rtol=0.02)
    np.testing.assert_allclose(found.amplitude, [5.08, 5.08, 4.84, 4.84], rtol=0.05)
    np.testing.assert_allclose(found.overshoot, [0, 0, 60, 60], atol=1.5)
    assert len(found.between(8.0, 16.0).amplitude) == 0


def test_windows_of_one_participant_are_groups_of_their_own() -> None:
    found = script.Saccades.of(windows([0.0, 20.0, 60.0], ["a", "a", "a"]))
    assert sorted(set(found.group.tolist())) == [0, 1, 2]
    peak, overshoot, strong = found.cells()
    assert peak.startswith("400 [")
    assert float(overshoot.split()[0]) == pytest.approx(80 / 3, abs=1.0)
    assert strong.startswith("0.333 [0.000, ")


def test_windows_that_keep_their_overshoot_have_alike_halves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(script, "FEWEST", 2)
    found = script.Saccades.of(windows([5.0, 20.0, 40.0, 60.0], list("abcd")))
    n, quantiles, spread, alike = found.between_windows()
    assert (n, alike) == ("4", "1.00")
    assert [float(one) for one in quantiles.split()] == pytest.approx([10, 30, 54], abs=2)
    assert float(spread) > 0.5
