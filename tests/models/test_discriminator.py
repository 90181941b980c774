"""The discriminator: an encoder's logits of places and of whole windows."""

from __future__ import annotations

import math

import torch

from gazediffusion.models.discriminator import Discriminator, mean_softplus
from gazediffusion.models.unet import UNet, UNetConfig

CONFIG = UNetConfig(channels=4, widths=(8, 16), embedding=16, rotary=True, condition_width=3)


def test_every_resolution_has_logits_and_the_denoiser_is_left_alone() -> None:
    network = UNet(CONFIG)
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    found = Discriminator(network)(torch.randn(2, 4, 32), torch.ones(2), torch.ones(2, 3))
    assert [tuple(one.shape) for one in found] == [(2, 32), (2, 16), (2, 8), (2, 1)]
    sum(one.sum() for one in found).backward()
    assert all(weight.grad is None for weight in network.parameters())
    assert all(torch.equal(before[name], one) for name, one in network.state_dict().items())


def _smooth() -> torch.Tensor:
    return torch.nn.functional.avg_pool1d(torch.randn(16, 4, 34), 3, stride=1)


def test_it_learns_to_tell_two_sets() -> None:
    torch.manual_seed(0)
    discriminator = Discriminator(UNet(CONFIG))
    optimizer = torch.optim.Adam(discriminator.parameters(), 3e-3)
    condition, level = torch.zeros(16, 3), torch.ones(16)
    for _ in range(40):
        one, other = torch.randn(16, 4, 32), _smooth()
        loss = mean_softplus(discriminator(one, level, condition), -1.0).mean()
        loss = loss + mean_softplus(discriminator(other, level, condition), 1.0).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    found = discriminator(torch.randn(16, 4, 32), level, condition)[-1]
    others = discriminator(_smooth(), level, condition)[-1]
    assert float((found > 0).float().mean()) > 0.8
    assert float((others < 0).float().mean()) > 0.8


def test_the_mean_weighs_heads_by_two_fifths_for_the_whole_window() -> None:
    logits = [torch.zeros(1, 4), torch.full((1, 2), 30.0), torch.full((1, 1), -30.0)]
    expected = 0.3 * math.log(2) + 0.3 * 30.0
    torch.testing.assert_close(mean_softplus(logits, 1.0), torch.tensor([expected]))
