from __future__ import annotations

import sys

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from gazediffusion.network import fast, unet
from gazediffusion.network.unet import UNet, UNetConfig
from tests.network.test_unet import SMALL

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")


def given(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv1d(8, 16, 3, padding=1),
        nn.Conv1d(8, 16, 3, stride=2, padding=1, bias=False),
        nn.Conv1d(8, 16, 1),
        nn.ConvTranspose1d(8, 16, 3, stride=2, padding=1, output_padding=1),
        nn.Identity(),
    ],
    ids=["same length", "half the length", "pointwise", "twice the length", "identity"],
)
def test_convolutions_are_the_same_in_both_layouts(layer: nn.Module) -> None:
    x = given(3, 8, 20)
    found = fast.convolve(layer, fast.channels_last(x))
    assert found.ndim == 4
    assert torch.allclose(found[:, :, 0], layer(x), atol=1e-5)


@pytest.mark.parametrize("silu", [False, True])
@pytest.mark.parametrize("film", [False, True])
def test_norms_are_the_same_in_both_layouts(film: bool, silu: bool) -> None:
    norm = nn.GroupNorm(4, 16)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    x, scales = given(3, 16, 20), (given(3, 16), given(2, 3, 16)[1]) if film else None
    found = fast.normalize(norm, fast.channels_last(x), scales, silu)
    assert torch.allclose(found[:, :, 0], fast.normalize(norm, x, scales, silu), atol=1e-5)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("many", [2, 64])
def test_more_channels_than_expected_change_nothing(bias: bool, many: int) -> None:
    conv, x = nn.Conv1d(8, 4, 7, padding=3, bias=bias), given(2, 8, 40)
    for one in (x, fast.channels_last(x)):
        torch.testing.assert_close(fast.padded_conv(conv, one, many).flatten(2), conv(x))


@pytest.mark.parametrize("rotary", [False, True])
def test_a_network_is_the_same_in_both_layouts(
    rotary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = UNetConfig(
        channels=3, widths=(8, 16), embedding=16, kernel=3, patch=2, rotary=rotary,
        attention_blocks=2, condition_width=4, sequence_channels=2,
    )  # fmt: skip
    network = UNet(config).eval().requires_grad_(False)
    for number, weight in enumerate(network.parameters()):
        weight.add_(given(number + 1, *weight.shape)[-1], alpha=0.1)
    inputs = given(2, 3, 32), torch.tensor([0.1, 2.0]), given(2, 4), given(2, 2, 32)
    expected, inner = network(*inputs), network.features(*inputs[:2])
    monkeypatch.setattr(unet, "is_faster_channels_last", lambda x, weight: True)
    assert torch.allclose(network(*inputs), expected, atol=1e-4)
    assert torch.allclose(network.features(*inputs[:2]), inner, atol=1e-4)


def test_channels_are_not_last_on_a_cpu_or_in_training() -> None:
    x, weight = given(256, 2, 16).bfloat16(), given(1).bfloat16()
    assert not fast.is_faster_channels_last(x, weight)
    with torch.no_grad():
        assert not fast.is_faster_channels_last(x, weight)


def test_a_kernel_that_does_not_work_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gazediffusion.network.norm_kernel", None)
    assert not fast._has_kernel.__wrapped__(torch.device("cpu"))


@needs_gpu
@pytest.mark.parametrize(("width", "time"), [(64, 1000), (128, 1000), (512, 250), (256, 125)])
@pytest.mark.parametrize("silu", [False, True])
@pytest.mark.parametrize("film", [False, True])
def test_the_kernel_of_norms_is_group_norm(width: int, time: int, film: bool, silu: bool) -> None:
    norm = nn.GroupNorm(8, width)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    x = (3 * given(5, width, time) + 1).bfloat16()
    scales = (given(5, width), given(2, 5, width)[1]) if film else None
    expected = fast.normalize(norm, x.float(), scales, silu)
    on = None if scales is None else (scales[0].cuda(), scales[1].cuda())
    found = fast.normalize(norm.cuda(), fast.channels_last(x.cuda()), on, silu)
    assert found.dtype == torch.bfloat16
    assert torch.allclose(found[:, :, 0].cpu().float(), expected, rtol=0.01, atol=0.01)


@needs_gpu
def test_large_batches_on_a_gpu_are_those_of_small_ones() -> None:
    with torch.inference_mode():
        network = UNet(SMALL).cuda().bfloat16().eval()
        x, t = given(256, 2, 64).cuda(), torch.full((256,), 0.3, device="cuda")
        assert fast.is_faster_channels_last(x, network.stem.weight)
        assert not fast.is_faster_channels_last(x[:8], network.stem.weight)
        many, few = network(x, t), network(x[:8], t[:8])
        error = functional.mse_loss(many[:8].float(), few.float()).sqrt() / few.float().std()
        assert error < 0.02
