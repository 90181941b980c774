"""EDM: preconditioning against its definition, losses and denoiser against closed forms."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from gazediffusion.diffusion.edm import Edm
from gazediffusion.errors import GazeError
from gazediffusion.seeds import DeviceDraws, Stream

EDM = Edm()


def blank(x: Tensor, level: Tensor, *condition: Tensor) -> Tensor:
    """A network that answers zero."""
    return torch.zeros_like(x)


def test_a_silent_network_is_the_best_linear_guess() -> None:
    x, sigma = torch.randn(3, 4, 16), torch.tensor([0.01, 0.5, 10.0])
    clean = EDM.denoise(blank, x, sigma)
    shrink = 0.25 / (0.25 + sigma.square())
    torch.testing.assert_close(clean, x * shrink.view(-1, 1, 1))


def test_input_and_target_have_unit_variance_at_every_level() -> None:
    torch.manual_seed(0)
    for sigma in (0.01, 0.3, 5.0):
        x0, eps = 0.5 * torch.randn(64, 2, 512), torch.randn(64, 2, 512)
        level = torch.full((64,), sigma)
        seen: list[Tensor] = []

        def network(x: Tensor, t: Tensor, *_: Tensor, seen: list[Tensor] = seen) -> (
            Tensor
        ):  # fmt: skip
            seen.append(x)
            return torch.zeros_like(x)

        losses = EDM.losses(network, x0, level, eps)
        assert float(seen[0].std()) == pytest.approx(1.0, rel=0.02)
        # The network's target has unit variance, so answering zero costs 1.
        assert float(losses.mean()) == pytest.approx(1.0, rel=0.02)


def test_a_network_that_knows_the_answer_has_no_loss() -> None:
    torch.manual_seed(0)
    x0, eps, sigma = 0.5 * torch.randn(8, 4, 64), torch.randn(8, 4, 64), EDM.stratified(8)
    level = sigma.view(-1, 1, 1)
    total = (level.square() + 0.25).sqrt()

    def network(x: Tensor, t: Tensor, *condition: Tensor) -> Tensor:
        return (x0 - (0.5 / total).square() * (x0 + level * eps)) / (level * 0.5 / total)

    assert float(EDM.losses(network, x0, sigma, eps).max()) < 1e-6


def test_amplitude_weighting_leaves_the_optimal_denoiser_unchanged() -> None:
    """Values of two sizes; the best constant answer to each is its mean, weighted or not."""
    torch.manual_seed(0)
    kind = torch.arange(4096) % 2
    x0 = torch.where(kind == 1, 3.0, 0.1) + 0.2 * torch.randn(1, 1, 4096)
    sigma, eps = torch.tensor([1e3]), torch.zeros(1, 1, 4096)
    for weighting in (0.0, 1.0):
        edm = Edm(amplitude_weighting=weighting)
        answer = torch.zeros(2, requires_grad=True)
        best = torch.optim.Adam([answer], lr=0.05)

        def network(x: Tensor, t: Tensor, *_: Tensor, answer: Tensor = answer) -> Tensor:
            return answer[kind].view(1, 1, -1)

        for _ in range(400):
            best.zero_grad()
            edm.losses(network, x0, sigma, eps).sum().backward()  # type: ignore[no-untyped-call]
            best.step()
        found = 0.5 * answer.detach()
        means = [float(x0[0, 0, kind == one].mean()) for one in (0, 1)]
        assert found.tolist() == pytest.approx(means, abs=0.01)
    plain, weighted = (
        Edm(amplitude_weighting=e).losses(network, x0, sigma, eps).item() for e in (0.0, 1.0)
    )
    # |D| / s is 0.2 and 6 for the two halves, whose errors are alike: (1.2 + 7) / 2.
    assert weighted / plain == pytest.approx(4.1, rel=0.05)


def test_levels_are_drawn_and_spread_alike() -> None:
    drawn = EDM.draw(50_000, DeviceDraws(torch.device("cpu"), 0, Stream.TRAINING_STEP)).log()
    spread = EDM.stratified(10_000).log()
    for levels in (drawn, spread):
        assert float(levels.mean()) == pytest.approx(-1.2, abs=0.03)
        assert float(levels.std()) == pytest.approx(1.6, abs=0.03)


def test_the_samplers_grid_is_geometric() -> None:
    grid = EDM.sigma_schedule(5)
    assert grid.tolist() == pytest.approx([80 * (0.02 / 80) ** (k / 4) for k in range(5)] + [0.0])
    assert EDM.sigma_schedule(1).tolist() == pytest.approx([80.0, 0.0])


def test_levels_span_the_networks_steps() -> None:
    seen: list[Tensor] = []

    def network(x: Tensor, t: Tensor, *condition: Tensor) -> Tensor:
        seen.append(t)
        return torch.zeros_like(x)

    EDM.denoise(network, torch.zeros(3, 1, 8), torch.tensor([0.002, math.sqrt(0.04), 20.0]))
    assert seen[0].tolist() == pytest.approx([0.0, 500.0, 1000.0], abs=0.01)


@pytest.mark.parametrize("bad", [{"sigma_min": 0.0}, {"sigma_max": 0.001}, {"sigma_data": 0.0}])
def test_levels_must_make_sense(bad: dict[str, float]) -> None:
    with pytest.raises(GazeError, match="sigma"):
        Edm(**bad)
