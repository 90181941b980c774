"""The learner against torch's own parts, and Muon's steps."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from gazediffusion.device import choose_device
from gazediffusion.errors import GazeError
from gazediffusion.network.recipes import RECIPES
from gazediffusion.training.batches import Batch
from gazediffusion.training.learner import (
    Learner,
    Muon,
    average_weight_at,
    choose_precision,
    learning_rate_at,
    orthogonalized,
)
from tests.network.test_unet import SMALL

CPU = torch.device("cpu")
RECIPE = replace(RECIPES["position-tiny"], network=SMALL, objective="eps", weighting="standard")


def batch(seed: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    x0 = torch.randn(4, 2, 64, generator=generator)
    t = torch.randint(1, 1001, (4,), generator=generator)
    return x0, t, torch.randn(4, 2, 64, generator=generator)


def test_a_step_is_adamw_with_clipping_and_averaging() -> None:
    """The same step written out with torch's own parts."""
    learner = Learner(RECIPE, 0, CPU, "fp32")
    twin = Learner(RECIPE, 0, CPU, "fp32")
    before = [p.clone() for p in twin.network.parameters()]
    learner.step(batch(), 1e-3, 0.25)

    optimizer = torch.optim.AdamW(twin.network.parameters(), lr=1e-3, weight_decay=1e-4)
    x0, t, eps = batch()
    alpha_bar = torch.cumprod(1 - torch.linspace(1e-4, 2e-2, 1000, dtype=torch.float64), 0)
    a = alpha_bar[t - 1].float()[:, None, None]
    predicted = twin.network(a.sqrt() * x0 + (1 - a).sqrt() * eps, t)
    ((predicted - eps) ** 2).mean().backward()
    torch.nn.utils.clip_grad_norm_(twin.network.parameters(), 1.0)
    optimizer.step()
    for ours, theirs, old, average in zip(
        learner.network.parameters(),
        twin.network.parameters(),
        before,
        learner.average.parameters(),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(average, old + 0.25 * (theirs - old), atol=1e-6, rtol=1e-5)


def test_the_same_seed_begins_with_the_same_weights_and_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(123)
    expected = torch.rand(3)
    torch.manual_seed(123)
    one, two, other = (Learner(RECIPE, seed, CPU, "fp32") for seed in (0, 0, 1))
    assert torch.equal(torch.rand(3), expected)
    assert all(map(torch.equal, one.network.parameters(), two.network.parameters()))
    assert not all(map(torch.equal, one.network.parameters(), other.network.parameters()))


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_state_put_back_resumes_unchanged(optimizer: str) -> None:
    recipe = replace(RECIPE, optimizer=optimizer)  # type: ignore[arg-type]
    straight = Learner(recipe, 0, CPU, "fp32")
    for k in range(3):
        straight.step(batch(k), 1e-3, 0.1)
    saved = {name: tensor.clone() for name, tensor in straight.state().items()}
    resumed = Learner(recipe, 9, CPU, "fp32")
    resumed.load(saved)
    losses = [learner.step(batch(3), 1e-3, 0.1) for learner in (straight, resumed)]
    assert torch.equal(*losses)
    assert all(map(torch.equal, straight.average.parameters(), resumed.average.parameters()))


def test_muon_moves_matrices_and_adamw_the_rest() -> None:
    learners = [
        Learner(replace(RECIPE, optimizer=name), 0, CPU, "fp32") for name in ("adamw", "muon")
    ]
    for learner in learners:
        learner.step(batch(), 1e-3, 0.1)
    kept = [{name.split(".")[0] for name in learner.state()} for learner in learners]
    assert kept == [{"net", "ema", "adam"}, {"net", "ema", "adam", "muon"}]
    for name, by_adam in learners[0].network.named_parameters():
        by_muon = dict(learners[1].network.named_parameters())[name]
        is_alike = torch.allclose(by_adam, by_muon, atol=1e-7)
        assert is_alike == (by_adam.ndim == 1), name


def test_the_rate_warms_up_linearly_then_falls_as_a_cosine() -> None:
    recipe = replace(RECIPES["position"], epochs=100)
    rates = [learning_rate_at(step, 10, recipe) for step in range(1000)]
    assert rates[0] == pytest.approx(1e-6)
    assert rates[49] == pytest.approx(5e-5)
    assert max(rates) == rates[99] == pytest.approx(1e-4)
    assert rates[550] == pytest.approx(5e-5, rel=0.01)
    assert 0 < rates[999] < 1e-9


def test_a_short_run_still_warms_up_and_falls() -> None:
    recipe = replace(RECIPES["position"], epochs=1)
    assert learning_rate_at(0, 10, recipe) == pytest.approx(1e-4)
    assert learning_rate_at(9, 10, recipe) < 1e-5


def test_averaging_reaches_its_decay_after_a_start() -> None:
    assert average_weight_at(0, 0.9999) == pytest.approx(0.9)
    assert average_weight_at(1_000_000, 0.9999) == pytest.approx(1e-4)
    assert average_weight_at(50_000, 0.999) == pytest.approx(1e-3)


def test_precision_follows_the_recipe_on_a_gpu_only() -> None:
    gpu = torch.device("cuda")
    assert choose_precision("auto", RECIPES["position"], gpu) == "bf16"
    assert choose_precision("auto", RECIPES["velocity"], gpu) == "fp32"
    assert choose_precision("auto", RECIPES["position"], CPU) == "fp32"
    with pytest.raises(GazeError, match="`precision`"):
        choose_precision("fp8", RECIPES["position"], CPU)
    with pytest.raises(GazeError, match="`device` abacus cannot be used"):
        choose_device("abacus")


def some(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_orthogonalized_matrices_have_singular_values_near_one() -> None:
    # Singular values from 1 down to a hundredth, which the gradient's own are like.
    u, _, v = torch.linalg.svd(some(3, 16, 48), full_matrices=False)
    ill = u @ torch.diag_embed(torch.logspace(0, -2, 16).expand(3, 16)) @ v
    found = orthogonalized(ill)
    values = torch.linalg.svdvals(found)
    assert 0.5 < float(values.min()) < float(values.max()) < 1.3
    # And the same directions.
    turned = torch.linalg.solve(torch.diag_embed(values), u.mT @ found @ v.mT)
    assert float(torch.diagonal(turned, dim1=1, dim2=2).min()) > 0


def test_a_matrix_of_zeros_does_not_move() -> None:
    weight = nn.Parameter(some(8, 8))
    before = weight.detach().clone()
    weight.grad = torch.zeros_like(weight)
    Muon([weight], lr=0.1).step()
    assert torch.equal(weight, before)


@pytest.mark.parametrize("shape", [(8, 24), (24, 8), (16, 4, 5), (4, 16, 3)])
def test_a_step_is_as_large_as_one_of_adamw(shape: tuple[int, ...]) -> None:
    """About a fifth of the rate in every number, whatever the shape and the gradient's size."""
    for size in (1e-6, 1e3):
        weight = nn.Parameter(torch.zeros(shape))
        weight.grad = size * some(*shape)
        Muon([weight], lr=0.01).step()
        root = float(weight.detach().square().mean().sqrt())
        assert root == pytest.approx(0.2 * 0.01, rel=0.35)
        # It goes down.
        assert float((weight.detach() * weight.grad).sum()) < 0


def test_weights_of_one_shape_are_moved_as_each_would_be_alone() -> None:
    shapes = [(8, 4, 3), (8, 12), (12, 8), (6, 30), (8, 4, 3)]
    together = [nn.Parameter(torch.zeros(shape)) for shape in shapes]
    alone = [nn.Parameter(torch.zeros(shape)) for shape in shapes]
    optimizers = [Muon(together, lr=0.1), *(Muon([one], lr=0.1) for one in alone)]
    for step in range(3):
        for number, shape in enumerate(shapes):
            gradient = some(*shape, seed=10 * step + number)
            together[number].grad, alone[number].grad = gradient, gradient.clone()
        for optimizer in optimizers:
            optimizer.step()
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one, other)


def test_it_fits_directions_of_very_different_sizes() -> None:
    """A line whose inputs are a hundred times smaller in some directions than in others."""
    turn = torch.linalg.qr(some(32, 32, seed=2)).Q
    inputs = some(256, 32) @ torch.diag(torch.logspace(0, -2, 32)) @ turn
    truth, weight = some(32, 32, seed=1), nn.Parameter(torch.zeros(32, 32))
    rate = torch.tensor(0.0)
    optimizer = Muon([weight], lr=rate)
    for step in range(200):
        rate.fill_(0.3 * (1 - step / 200))  # read anew at every step
        optimizer.zero_grad()
        (inputs @ (weight - truth)).square().mean().backward()
        optimizer.step()
    # The smallest directions too, which hardly show in the loss.
    assert float((weight.detach() - truth).norm() / truth.norm()) < 0.2
