"""Low-rank changes of a network's weights."""

from __future__ import annotations

import torch
from torch import nn

from gazediffusion.network.distilled import SMALL, LowRank, changed


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(100, 90), nn.Linear(90, 4))


def test_a_new_change_is_none() -> None:
    net = network()
    change = LowRank(net, 3, seed=0)
    sizes = [net.get_parameter(f"{k}.weight").numel() for k in (0, 1)]
    assert sizes[0] >= SMALL > sizes[1]
    assert change.tensors["0.weight.rows"].shape == (3, 90)
    assert change.tensors["0.weight.columns"].shape == (3, 100)
    assert change.tensors["1.weight.change"].shape == (360,)
    for name, weight in changed(change.first, change.tensors).items():
        assert torch.equal(weight, net.get_parameter(name))


def test_gradients_of_the_factors_are_those_of_the_product() -> None:
    net = network()
    change = LowRank(net, 3, seed=0)
    change.tensors["0.weight.rows"].normal_()
    change.set_weights()
    x, aim = torch.randn(5, 100), torch.randn(5, 4)
    (net(x) - aim).square().mean().backward()
    change.pass_gradients()
    # The same by automatic differentiation through the product.
    leaves = {name: one.clone().requires_grad_() for name, one in change.tensors.items()}
    weights = changed(change.first, leaves)
    out = torch.func.functional_call(net, weights, (x,))
    (out - aim).square().mean().backward()
    for name, leaf in leaves.items():
        found = change.tensors[name].grad
        assert found is not None
        torch.testing.assert_close(found, leaf.grad)


def test_the_rank_of_a_change_is_bounded() -> None:
    net = network()
    change = LowRank(net, 3, seed=0)
    change.tensors["0.weight.rows"].normal_()
    change.set_weights()
    difference = net.get_parameter("0.weight").detach() - change.first["0.weight"]
    assert int(torch.linalg.matrix_rank(difference, rtol=1e-4)) == 3


def test_a_change_begins_with_another_where_shapes_are_the_same() -> None:
    net = network()
    before = {name: weight.detach().clone() for name, weight in net.named_parameters()}
    source = {name: torch.randn_like(one) for name, one in LowRank(net, 3, seed=1).tensors.items()}
    change = LowRank(net, 3, seed=0, initial=source)
    for name, weight in changed(before, source).items():
        assert torch.equal(net.get_parameter(name), weight)
    assert all(torch.equal(change.tensors[name], one) for name, one in source.items())
    # Factors of another width come in pairs: neither is taken.
    other = source | {"0.weight.columns": torch.randn(3, 99)}
    change = LowRank(network(), 3, seed=0, initial=other)
    assert not change.tensors["0.weight.rows"].any()
    assert torch.equal(change.tensors["1.weight.change"], source["1.weight.change"])
