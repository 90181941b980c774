"""The U-Net: parameters of the paper, shapes, attention by its formula."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from gazediffusion.errors import GazeError
from gazediffusion.network.unet import (
    SelfAttention,
    UNet,
    UNetConfig,
    patchify,
    rotary_angles,
    rotate,
    unpatchify,
)

SMALL = UNetConfig(widths=(8, 16, 24), embedding=32, heads=2, head_width=8)


def n_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_the_paper_network_has_exactly_its_parameters() -> None:
    assert n_parameters(UNet()) == 19_350_914


def test_every_part_has_the_parameters_of_the_table() -> None:
    """The parameter table of FINDINGS 2, part by part."""
    network = UNet()
    expected = {
        network.step_embedding: [525_568],
        network.stem: [1_920],
        network.encoder: [230_400, 788_480, 2_887_680],
        network.down: [98_560, 393_728, 786_944],
        network.bottleneck_in: [2_887_680],
        network.attention: [263_680],
        network.bottleneck_out: [2_887_680],
        network.up: [786_944, 393_472, 98_432],
        network.decoder: [4_724_224, 1_248_000, 345_472],
        network.head: [2_050 - 2_050 + 256 + 128 * 2 * 7 + 2],
    }
    for part, counts in expected.items():
        parts = list(part) if isinstance(part, nn.ModuleList) else [part]
        assert [n_parameters(one) for one in parts] == counts


@pytest.mark.parametrize("length", [8, 64, 2000])
def test_any_length_divisible_by_eight_keeps_its_shape(length: int) -> None:
    network = UNet(SMALL)
    x = torch.randn(3, 2, length)
    assert network(x, torch.tensor([1, 500, 1000])).shape == x.shape


def test_other_lengths_are_refused() -> None:
    with pytest.raises(GazeError, match=r"2001 samples does not fit.*multiple of 8"):
        UNet(SMALL)(torch.randn(1, 2, 2001), torch.tensor([1]))


def test_the_bottleneck_is_exposed_at_an_eighth_of_the_time() -> None:
    features = UNet(SMALL).features(torch.randn(2, 2, 160), torch.tensor([1, 2]))
    assert features.shape == (2, 24, 20)


def test_the_step_changes_the_output() -> None:
    network = UNet(SMALL)
    x = torch.randn(1, 2, 64)
    assert not torch.allclose(network(x, torch.tensor([1])), network(x, torch.tensor([900])))


def test_samples_of_a_batch_do_not_touch_each_other() -> None:
    network = UNet(SMALL).eval()
    x, t = torch.randn(4, 2, 64), torch.tensor([5, 50, 500, 900])
    together = network(x, t)
    alone = torch.cat([network(x[k : k + 1], t[k : k + 1]) for k in range(4)])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)


def test_attention_lets_distant_times_meet() -> None:
    network = UNet(SMALL).eval()
    x = torch.randn(1, 2, 800)
    moved = x.clone()
    moved[..., 0] += 10
    change = (network(moved, torch.tensor([10])) - network(x, torch.tensor([10]))).abs()
    assert change[..., -1].max() > 1e-6


def test_widths_must_fit_the_groups() -> None:
    with pytest.raises(GazeError, match="multiples of 8"):
        UNetConfig(widths=(10, 20))


def test_unpatchify_inverts_patchify() -> None:
    x = torch.arange(2 * 3 * 8.0).view(2, 3, 8)
    paired = patchify(x, 2)
    assert paired.shape == (2, 6, 4)
    # Each channel's first samples, then its second ones, before the next channel's.
    assert torch.equal(paired[:, 0], x[:, 0, ::2])
    assert torch.equal(paired[:, 1], x[:, 0, 1::2])
    assert torch.equal(paired[:, 2], x[:, 1, ::2])
    assert torch.equal(unpatchify(paired, 2), x)


def test_a_network_of_patches_keeps_the_shape_and_halves_the_places() -> None:
    network = UNet(replace(SMALL, patch=2))
    x = torch.randn(2, 2, 64)
    assert network(x, torch.tensor([1, 2])).shape == x.shape
    assert network.features(x, torch.tensor([1, 2])).shape == (2, 24, 4)
    with pytest.raises(GazeError, match=r"multiple of 16"):
        network(torch.randn(1, 2, 72), torch.tensor([1]))


def test_rotary_angles_tell_distances_alone() -> None:
    torch.manual_seed(0)
    q, k = torch.randn(2, 1, 32).expand(2, 60, 32)
    cosine, sine = rotary_angles(torch.zeros(1, 60), 32)
    products = rotate(q, cosine, sine) @ rotate(k, cosine, sine).T
    for distance in (-17, 0, 5):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-4, rtol=0)
    assert float(products[30].std()) > 0.1


@pytest.mark.parametrize("rotary", [False, True])
def test_attention_is_what_its_formula_says(rotary: bool) -> None:
    """Written out with sums, head by head."""
    torch.manual_seed(0)
    x = torch.randn(2, 16, 30)
    attention = SelfAttention(16, heads=2, head_width=8, groups=4, rotary=rotary)
    angles = rotary_angles(x, 8) if rotary else None
    q, k, v = attention.qkv(attention.norm(x)).view(2, 3, 2, 8, 30).unbind(1)
    if attention.qk_scale is not None and angles is not None:
        nn.init.uniform_(attention.qk_scale, 1, 3)
        size = attention.qk_scale.view(1, 2, 1, 1)
        q, k = (
            rotate(size * one.mT / one.mT.norm(dim=-1, keepdim=True), *angles).mT for one in (q, k)
        )
    weight = torch.einsum("bhdt,bhds->bhts", q, k).div(8**0.5).softmax(dim=-1)
    seen = torch.einsum("bhts,bhds->bhdt", weight, v).reshape(2, 16, 30)
    torch.testing.assert_close(attention(x, angles), x + attention.out(seen))


def test_further_attention_blocks_start_as_the_identity_and_learn() -> None:
    torch.manual_seed(0)
    config = UNetConfig(
        channels=4, widths=(8, 16, 16), embedding=16, attention_blocks=3, rotary=True
    )
    config = replace(config, rotary=True)
    network = UNet(config)
    x, t = torch.randn(2, 4, 64), torch.tensor([10.0, 700.0])
    before = network(x, t).detach()
    (block, other) = network.attention_blocks
    h, embedding = torch.randn(2, 16, 8), torch.randn(2, 16)
    torch.testing.assert_close(block(h, embedding, rotary_angles(h, 32)), h)
    optimizer = torch.optim.SGD(block.parameters(), lr=1.0)
    network(x, t).square().mean().backward()
    optimizer.step()
    assert float((network(x, t) - before).detach().abs().max()) > 1e-5
    assert other is not block


def test_a_network_without_biases_has_none_where_norms_follow() -> None:
    config = UNetConfig(widths=(8, 8, 16), embedding=16, attention_blocks=2)
    names = {name for name, _ in UNet(config).named_parameters()}
    fewer = {name for name, _ in UNet(replace(config, biases=False)).named_parameters()}
    assert fewer < names
    kept = {name for name in fewer if name.endswith("bias") and "norm" not in name}
    # The last convolution, which no norm follows, attention's, and linear layers keep theirs.
    parts = ("head.", "attention.out.", "film.", "step_embedding.")
    assert all(any(part in name for part in parts) for name in kept)
    assert "head.2.bias" in kept


def test_bfloat16_weights_stay_near_float32() -> None:
    torch.manual_seed(0)
    network = UNet(
        UNetConfig(channels=4, widths=(8, 16, 16), embedding=16, condition_width=2)
    ).eval()
    x, t, condition = torch.randn(2, 4, 64), torch.tensor([10.0, 700.0]), torch.eye(2)
    full = network(x, t, condition).detach()
    half = network.bfloat16()(x, t, condition).detach()
    assert half.dtype == torch.bfloat16
    assert 0 < float((full - half.float()).abs().max()) < 0.1 * float(full.abs().max())
