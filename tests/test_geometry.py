from __future__ import annotations

import warnings

import numpy as np
import pytest

from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen, parse_size
from tests.conftest import SCREEN


def test_corners_map_to_plus_and_minus_one() -> None:
    corners_px = np.array([[0.0, 1280.0, 640.0], [0.0, 720.0, 360.0]])
    expected = np.array([[-1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
    np.testing.assert_allclose(SCREEN.to_normalized(corners_px), expected)


def test_normalized_and_pixels_are_inverse_for_batches_too() -> None:
    gaze = np.random.default_rng(0).uniform(-1.2, 1.2, (5, 2, 7)).astype(np.float32)
    back = SCREEN.to_normalized(SCREEN.to_pixels(gaze))
    assert back.dtype == np.float32
    np.testing.assert_allclose(back, gaze, atol=1e-6)


def test_degrees_equal_those_of_pymovements() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pymovements as pm
    gaze_px = np.random.default_rng(1).uniform(0, 700, (2, 50))
    experiment = pm.Experiment(
        screen_width_px=1280,
        screen_height_px=720,
        screen_width_cm=40,
        screen_height_cm=22.5,
        distance_cm=45,
        origin="upper left",
        sampling_rate=250,
    )
    gaze = pm.gaze.from_numpy(pixel=gaze_px.T, experiment=experiment, orient="row")
    gaze.pix2deg()
    theirs = np.array(gaze.samples["position"].to_list()).T
    np.testing.assert_allclose(SCREEN.to_degrees(gaze_px), theirs, atol=1e-9)
    np.testing.assert_allclose(SCREEN.from_degrees(theirs), gaze_px, atol=1e-9)


def test_degrees_without_centimetres_name_the_options() -> None:
    with pytest.raises(GazeError, match="give `screen` with its size"):
        Screen(1280, 720).to_degrees(np.zeros((2, 1)))


def test_bids_fields_round_trip() -> None:
    assert Screen.from_bids(SCREEN.to_bids()) == SCREEN
    assert Screen.from_bids(Screen(800, 600).to_bids()) == Screen(800, 600)


@pytest.mark.parametrize("fields", [{}, {"ScreenResolution": "wide"}, {"ScreenResolution": [1]}])
def test_bids_fields_without_a_resolution_give_no_screen(fields: dict[str, object]) -> None:
    assert Screen.from_bids(fields) is None


def test_a_screen_must_have_a_size() -> None:
    with pytest.raises(GazeError, match="width_px must be a positive number"):
        Screen(0, 720)


def test_parse_size_reads_two_numbers_and_refuses_one() -> None:
    assert parse_size("47.4x29.7", "screen_cm") == (47.4, 29.7)
    with pytest.raises(GazeError, match="`screen` must look like 1280x720"):
        parse_size("1280", "screen")


def test_gaze_of_another_screen_keeps_its_degrees_or_its_share_of_the_screen() -> None:
    far, unknown = Screen(1920, 1080, 60.0, 33.75, 90.0), Screen(1920, 1080)
    gaze = np.array([[-0.8, 0.0, 0.5], [0.3, -0.2, 0.9]])
    expected = SCREEN.to_degrees(SCREEN.to_pixels(gaze))
    np.testing.assert_allclose(far.to_degrees(far.pixels_from(SCREEN, gaze)), expected, atol=1e-9)
    np.testing.assert_array_equal(unknown.pixels_from(SCREEN, gaze), unknown.to_pixels(gaze))
    np.testing.assert_array_equal(SCREEN.pixels_from(SCREEN, gaze), SCREEN.to_pixels(gaze))
    assert far.is_comparable_with(SCREEN)
    assert unknown.is_comparable_with(unknown)
    assert not unknown.is_comparable_with(SCREEN)
