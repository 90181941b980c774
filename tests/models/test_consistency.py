"""Channels as those of the gaze that they decode to."""

from __future__ import annotations

import torch

from gazediffusion.models.consistency import Consistency
from gazediffusion.models.representations import Joint

JOINT = Joint(asinh_scale=0.3, position_std=(0.3, 0.4), velocity_std=(1.1, 1.2), rate_hz=250.0)


def channels(n_samples: int = 240) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    gaze = 0.01 * torch.randn((3, 2, n_samples), generator=generator).cumsum(dim=-1)
    found = JOINT.encode(gaze)
    return found + 0.02 * torch.randn(found.shape, generator=generator)


def test_they_are_those_of_decoding_and_encoding_again() -> None:
    given = channels()
    is_known = torch.zeros(3, given.shape[-1], dtype=torch.bool)
    is_known[1, :60] = True
    is_known[2, 100:140] = True
    expected = JOINT.encode(JOINT.decode(given, is_known))
    found = Consistency(JOINT, torch.device("cpu"))(given, is_known)
    torch.testing.assert_close(found, expected, atol=2e-4, rtol=0)
    assert (expected - given).abs().max() > 0.02  # the channels contradicted each other


def test_gradients_reach_every_channel() -> None:
    given = channels().requires_grad_()
    is_known = torch.zeros(3, given.shape[-1], dtype=torch.bool)
    found = Consistency(JOINT, torch.device("cpu"))(given, is_known)
    found.sum().backward()  # type: ignore[no-untyped-call]
    assert given.grad is not None
    assert bool((given.grad.abs().amax(dim=(0, 2)) > 0).all())
