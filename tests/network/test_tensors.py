"""Compact weights: how far rounding moves them, how small the file is, what damage does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gazediffusion.errors import GazeError
from gazediffusion.network.tensors import SMALL, load_compact, rounded, save_compact


def weights() -> dict[str, torch.Tensor]:
    """A vector, and weights on either side of the sizes that decide how they are kept."""
    torch.manual_seed(0)
    return {
        "bias": torch.randn(64),
        "small": torch.randn(100, 100),
        "medium": torch.randn(100, 250, 5),
        "large": torch.randn(300, 200, 6),
    }


@pytest.mark.parametrize("levels", [15, 31, 127, 511])
def test_no_weight_moves_by_more_than_half_a_step(levels: int) -> None:
    before = weights()
    after = rounded(before, levels)
    for name in ("bias", "small"):
        assert torch.equal(after[name], before[name].half().float())
    for name, in_force in (("medium", max(127, levels)), ("large", levels)):
        rows, kept = before[name].flatten(1), after[name].flatten(1)
        step = rows.abs().amax(dim=1, keepdim=True) / in_force
        # Half a step; a hair more, because the step itself is kept in half precision.
        assert bool(((kept - rows).abs() <= 0.51 * step + in_force * step * 2e-3).all()), name
        assert len(set(kept[0].tolist())) <= 2 * in_force + 1
        # It is really rounded, and no finer than said.
        assert float(((kept - rows).abs() / step).max()) > 0.45


@pytest.mark.parametrize("levels", [31, 127, 128, 511, 2047])
def test_a_file_gives_back_the_rounded_weights_and_its_header(tmp_path: Path, levels: int) -> None:
    save_compact(tmp_path / "w.safetensors", weights(), levels, {"epoch": 7})
    tensors, header = load_compact(tmp_path / "w.safetensors")
    expected = rounded(weights(), levels)
    assert set(tensors) == set(expected)
    assert all(torch.equal(tensors[name], expected[name]) for name in expected)
    assert header["epoch"] == 7


@pytest.mark.parametrize(("levels", "most"), [(15, 4.5), (511, 10.0)])
def test_bell_shaped_weights_take_little_more_than_their_entropy(
    tmp_path: Path, levels: int, most: float
) -> None:
    torch.manual_seed(0)
    tensor = torch.randn(500, 640)
    save_compact(tmp_path / "w.safetensors", {"w": tensor}, levels, {})
    steps = tensor.abs().amax(1, keepdim=True) / levels
    codes = (rounded({"w": tensor}, levels)["w"] / steps).round()
    share = torch.unique(codes, return_counts=True)[1] / tensor.numel()
    entropy = float(-(share * share.log2()).sum())
    bits = 8 * (tmp_path / "w.safetensors").stat().st_size / tensor.numel()
    assert entropy < bits < entropy + (0.15 if levels < 128 else 0.7)  # two bytes, coded apart
    assert bits < most


def test_a_row_of_zeros_stays_zero() -> None:
    tensor = torch.zeros(2, SMALL)
    tensor[1] = torch.arange(SMALL) / SMALL
    result = rounded({"w": tensor}, 127)["w"]
    assert bool((result[0] == 0).all())
    torch.testing.assert_close(result[1], tensor[1], atol=0.006, rtol=0)


@pytest.mark.parametrize("levels", [0, 2048])
def test_levels_must_be_fewer_than_half_precision_tells_apart(levels: int) -> None:
    with pytest.raises(GazeError, match="between 1 and 2047"):
        rounded({"w": torch.ones(2, SMALL)}, levels)


def test_a_file_of_plain_weights_is_refused(tmp_path: Path) -> None:
    from gazediffusion.network.tensors import save_tensors

    save_tensors(tmp_path / "w.safetensors", {"w": torch.ones(2, 2)}, {"epoch": 1})
    with pytest.raises(GazeError, match="no compact weights"):
        load_compact(tmp_path / "w.safetensors")
