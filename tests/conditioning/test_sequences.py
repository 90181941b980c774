from __future__ import annotations

import torch

from gazediffusion.conditioning.conditioning import N_CHANNELS, SEQUENCES, Sequences, known_channels
from gazediffusion.network.representations import Joint

JOINT = Joint(0.1, (0.3, 0.2), (1.5, 1.5), 250.0)


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
