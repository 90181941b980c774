"""Where gaze begins: positions of training participants at the beginning of recordings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gazediffusion import Screen, Windows
from gazediffusion.conditioning.course import Beginning
from gazediffusion.seeds import Stream, rng

N = 60


def windows(elapsed_s: float = 0.0, n_participants: int = 6) -> Windows:
    """Windows that begin at x uniform in [-0.5, 0.5] and y = 0.25, and are at 0.9 after 0.2 s."""
    gaze = np.full((N, 2, 500), 0.9)
    gaze[:, 0, :50] = np.linspace(-0.5, 0.5, N)[:, None]
    gaze[:, 1, :50] = 0.25
    names = [f"P{k % n_participants}" for k in range(N)]
    made = Windows.from_array(gaze, 250, Screen(1280, 720), names, "reading")
    return replace(made, segment_elapsed_ms=np.full(N, 1000 * elapsed_s))


def test_positions_are_those_at_the_beginning() -> None:
    found = Beginning.fit([windows()], "reading")
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
    assert Beginning.fit([windows(elapsed_s=1.5)], "reading") is None
    assert Beginning.fit([windows(n_participants=4)], "reading") is None
    assert Beginning.fit([windows()], "dots") is None
