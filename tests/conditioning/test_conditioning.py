"""The one conditioning object: schema, encoding, dropout, draws, sequences, steps and files."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from gazediffusion.conditioning import Conditioning
from gazediffusion.conditioning.conditioning import (
    N_CHANNELS,
    SEQUENCES,
    Sequences,
    known_channels,
    quantized,
)
from gazediffusion.data.resolution import recorded_steps
from gazediffusion.errors import GazeError
from gazediffusion.network.representations import Joint
from tests.conditioning.test_prior import same
from tests.data.test_quantization import drifting, on_grid
from tests.runs import short_windows

Floats = np.ndarray
FEW = ("saccades", "mean_x", "std_y")
JOINT = Joint(0.1, (0.3, 0.2), (1.5, 1.5), 250.0)


@pytest.fixture(scope="module")
def conditioning() -> Conditioning:
    return Conditioning.fit([short_windows()], FEW)


def test_the_schema_names_every_entry_in_order(conditioning: Conditioning) -> None:
    assert conditioning.schema == {
        "task": ("dots", "movies"),
        "augmentation": ("flip_x", "flip_y", "reversal"),
        "statistics": FEW,
        "statistics_known": ("known",),
    }
    assert conditioning.width == 9
    assert conditioning.columns("statistics") == slice(5, 8)
    with pytest.raises(KeyError):
        conditioning.columns("pupil")


def test_an_unconditional_model_has_an_empty_condition() -> None:
    nothing = Conditioning()
    assert (nothing.width, nothing.schema, nothing.is_calibrated) == (0, {}, True)
    assert nothing.draw(0, 3, 0).condition == ()
    assert nothing.of_windows(torch.zeros(3, dtype=torch.long), None) == ()
    assert nothing.task_numbers([short_windows()]).tolist() == [0] * len(short_windows())
    with pytest.raises(GazeError, match="not conditioned on tasks"):
        nothing.draw_by(np.zeros((1, 2)), "reading") if nothing.tasks else nothing.task_number("x")


def test_each_part_is_encoded_in_its_columns(conditioning: Conditioning) -> None:
    statistics = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    labels = torch.tensor([[True, False, False], [False, False, True]])
    known = torch.tensor([[1.0], [0.0]])
    (vector,) = conditioning.encode(torch.eye(2), labels, statistics, known)
    assert vector[:, conditioning.columns("task")].tolist() == [[1, 0], [0, 1]]
    assert torch.equal(vector[:, conditioning.columns("augmentation")], labels.float())
    assert vector[:, conditioning.columns("statistics")].tolist() == [[1, 2, 3], [0, 0, 0]]
    assert torch.equal(vector[:, conditioning.columns("statistics_known")], known)
    (without,) = conditioning.without_task((vector,))
    assert not without[:, conditioning.columns("task")].any()
    assert torch.equal(without[:, 2:], vector[:, 2:])


def test_window_k_of_a_seed_is_drawn_alike_in_any_batch(conditioning: Conditioning) -> None:
    whole, part = conditioning.draw(0, 40, 7), conditioning.draw(11, 15, 7)
    assert part.tasks == whole.tasks[11:15]
    torch.testing.assert_close(part.condition[0], whole.condition[0][11:15])
    shares = [whole.tasks.count(k) / 40 for k in range(2)]
    np.testing.assert_allclose(shares, conditioning.task_shares, atol=0.05)
    assert conditioning.draw(0, 40, 7, "movies").tasks == (1,) * 40
    with pytest.raises(GazeError, match="no task 'movie'; did you mean 'movies'"):
        conditioning.draw(0, 1, 0, "movie")


def test_files_give_back_the_same_conditioning(conditioning: Conditioning) -> None:
    values = json.loads(json.dumps(conditioning.to_json()))
    read = Conditioning.from_json(values, conditioning.to_tensors())
    assert read.schema == conditioning.schema
    assert read.prior is not None
    assert conditioning.prior is not None
    assert same(read.prior, conditioning.prior)
    assert torch.equal(read.draw(0, 5, 3).condition[0], conditioning.draw(0, 5, 3).condition[0])
    with pytest.raises(GazeError, match="tables of the conditioning prior are missing"):
        Conditioning.from_json(values, None)


def test_a_model_with_unknown_statistics_still_draws(conditioning: Conditioning) -> None:
    """Only measuring needs to know them: training and calibration."""
    assert conditioning.prior is not None
    other = replace(
        conditioning, prior=replace(conditioning.prior, names=("pupil", "mean_x", "std_y"))
    )
    assert torch.equal(other.draw(0, 5, 3).condition[0], conditioning.draw(0, 5, 3).condition[0])
    with pytest.raises(GazeError, match="cannot measure"):
        other.measure(torch.zeros(1, 2, 64), 250.0)


def test_a_fine_tuned_model_keeps_the_scales_of_its_source(conditioning: Conditioning) -> None:
    windows = short_windows()
    other = replace(windows, gaze=windows.gaze * np.float32(0.5))
    new = Conditioning.fit([other], FEW)
    assert new.prior is not None
    assert conditioning.prior is not None
    assert not np.array_equal(new.prior.mean, conditioning.prior.mean)
    moved = new.initialised_from(conditioning)
    assert moved.prior is not None
    assert np.array_equal(moved.prior.mean, conditioning.prior.mean)
    assert moved.prior.components is new.prior.components


def test_nothing_given_has_no_channels_and_masks_are_one_where_something_is() -> None:
    assert Sequences().channels() is None
    fixation = torch.full((2, 2, 8), torch.nan)
    fixation[0, :, 2:5] = torch.tensor([[0.25], [-0.5]])
    channels = Sequences(fixation=fixation).channels()
    assert channels is not None
    assert channels.shape == (2, N_CHANNELS, 8)
    first = len(SEQUENCES["known"])
    assert channels[0, first : first + 3, 3].tolist() == [0.25, -0.5, 1.0]
    assert channels[0, first : first + 3, 5].tolist() == [0.0, 0.0, 0.0]
    assert not channels[1].any()
    assert not channels[:, :first].any()


def test_a_velocity_is_known_where_its_sample_and_the_one_before_are() -> None:
    gaze = torch.linspace(-0.5, 0.5, 24).expand(1, 2, 24).clone()
    is_known = torch.ones(1, 24, dtype=torch.bool)
    is_known[0, 6:10] = False
    channels = known_channels(JOINT.encode(gaze), is_known)
    # The same follows from gaze with NaN where it is not known.
    hidden = JOINT.encode(gaze.masked_fill(~is_known[:, None], torch.nan))
    torch.testing.assert_close(channels, hidden, equal_nan=True)
    assert channels[0, 0, 6:10].isnan().all()
    assert channels[0, 2, 6:11].isnan().all()
    assert channels[0, :, 11:].isfinite().all()


def quantize(gaze: Floats, steps: Floats, grids: Floats, uniforms: Floats) -> Floats:
    found: Floats = quantized(
        torch.from_numpy(gaze), steps, grids, torch.from_numpy(uniforms)
    ).numpy()
    return found


def test_quantized_gaze_lies_on_steps_and_is_spread_over_the_grid() -> None:
    gaze = drifting(2, 1).astype(np.float32)
    steps = np.array([[0.01, 0.02], [0.0, 0.0]])
    uniforms = np.random.default_rng(0).random(gaze.shape, dtype=np.float32)
    made = quantize(gaze, steps, steps / 10, uniforms)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made[1], gaze[1])
    whole = made[0] / steps[0, :, None]
    off = whole - whole.round()
    assert 0.04 < np.abs(off).max() <= 0.0501
    assert np.abs(made[0] - gaze[0]).max() < 0.56 * 0.02
    # The tracker's step comes out of what was rounded by it.
    again = on_grid(drifting(2, 1), (10, 10))
    cells = recorded_steps(again)[0]
    still = np.full_like(gaze, 0.5)
    tracked = quantize(gaze, np.tile(cells, (2, 1)), np.zeros((2, 2)), still)
    np.testing.assert_allclose(tracked, again.cut(), atol=1e-5)


def test_a_window_does_not_depend_on_the_others_of_its_batch() -> None:
    far = np.full((2, 2, 4), 9.0, np.float32)  # beyond what is kept of rounded gaze
    steps = np.array([[0.01, 0.01], [0.0, 0.0]])
    both = quantize(far, steps, steps, np.full_like(far, 0.5))
    alone = quantize(far[1:], steps[1:], steps[1:], np.full_like(far[1:], 0.5))
    np.testing.assert_array_equal(both[1:], alone)
