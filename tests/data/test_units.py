from __future__ import annotations

import numpy as np
import pytest

from gazediffusion.data.windows import by_screen, conversions_of
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.conftest import SCREEN


@pytest.mark.parametrize("unit", ["normalized", "px", "deg"])
def test_a_unit_and_back_is_the_same_gaze(unit: str) -> None:
    gaze = np.random.default_rng(0).uniform(-1, 1, (3, 2, 5))
    there, back = conversions_of(unit)
    np.testing.assert_allclose(back(SCREEN, there(SCREEN, gaze)), gaze, atol=1e-9)


def test_every_window_is_converted_on_its_own_screen() -> None:
    screens, of_window = (SCREEN, Screen(1680, 1050)), np.array([1, 0], dtype=np.int32)
    pixels = by_screen(np.zeros((2, 2, 3)), screens, of_window, conversions_of("px")[0])
    assert pixels[:, :, 0].tolist() == [[840, 525], [640, 360]]


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(GazeError, match="unit must be normalized, px or deg, not 'cm'"):
        conversions_of("cm")
