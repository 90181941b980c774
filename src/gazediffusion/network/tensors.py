"""Files of tensors with a JSON header, in the safetensors format."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gazediffusion.errors import GazeError
from gazediffusion.storage import read_safetensors, written_whole


def save_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
    """Write tensors with a JSON header as one safetensors file, whole; same input, same bytes."""
    from safetensors.torch import save

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    packed = save(plain, metadata={"gazediffusion": json.dumps(dict(header))})
    with written_whole(path) as temporary:
        temporary.write_bytes(packed)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and header of a file `save_tensors` wrote; anything else is refused."""
    if not path.is_file():
        raise GazeError("there is no such checkpoint", path=path)
    tensors, header = read_safetensors(path, "pt", "the checkpoint is damaged or cut short")
    if not isinstance(header, dict):
        raise GazeError("this checkpoint is not one of gazediffusion", path=path)
    return tensors, header


MAX_LEVELS = 2047  # no more than half precision tells apart
_ONE_BYTE = 127
# Weights with fewer elements than these stay in half precision, or have 127 levels at least.
SMALL, MEDIUM = 20_000, 300_000
_CODES, _STEPS = ".codes", ".steps"


def rounded(tensors: Mapping[str, Tensor], levels: int) -> dict[str, Tensor]:
    """The weights as they come out of a compact file, float32."""
    result = {}
    for name, tensor in tensors.items():
        if tensor.numel() < SMALL:
            result[name] = tensor.half().float()
        else:
            codes, steps = _quantised(tensor, levels)
            result[name] = _restored(codes, steps).to(tensor.device)
    return result


def save_compact(
    path: Path,
    tensors: Mapping[str, Tensor],
    levels: int,
    header: Mapping[str, Any],
    small: int = SMALL,
    medium: int = MEDIUM,
) -> None:
    """Write weights with `levels` whole steps on either side of zero, and a JSON header.

    small, medium: weights with fewer elements stay in half precision, or have 127 levels at least;
    so do vectors.
    """
    packed: dict[str, Tensor] = {}
    shapes: dict[str, list[int]] = {}
    for name, tensor in tensors.items():
        if tensor.numel() < small or tensor.dim() < 2:
            packed[name] = tensor.half()
            continue
        codes, steps = _quantised(tensor, levels, medium)
        packed[name + _CODES] = torch.frombuffer(bytearray(_coded(codes)), dtype=torch.uint8)
        packed[name + _STEPS] = steps
        shapes[name] = list(tensor.shape)
    save_tensors(path, packed, {**header, "levels": levels, "shapes": shapes})


def load_compact(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Weights, float32, and header of a file `save_compact` wrote."""
    packed, header = load_tensors(path)
    return unpacked(packed, header, path), header


def unpacked(
    packed: Mapping[str, Tensor], header: Mapping[str, Any], path: Path
) -> dict[str, Tensor]:
    """Weights, float32, of the tensors and the header in a compact file."""
    try:
        shapes: dict[str, list[int]] = header["shapes"]
        tensors = {
            name: tensor.float()
            for name, tensor in packed.items()
            if not name.endswith((_CODES, _STEPS))
        }
        for name, shape in shapes.items():
            codes = _decoded(packed[name + _CODES].numpy().tobytes(), shape)
            tensors[name] = _restored(codes, packed[name + _STEPS])
    except (KeyError, TypeError, ValueError, RuntimeError, zlib.error) as error:
        raise GazeError(f"these are no compact weights ({error})", path=path) from error
    return tensors


def _quantised(tensor: Tensor, levels: int, medium: int = MEDIUM) -> tuple[Tensor, Tensor]:
    """Whole steps, int16 of the tensor's shape, and each row's step, half precision."""
    if not 1 <= levels <= MAX_LEVELS:
        raise GazeError(f"levels must lie between 1 and {MAX_LEVELS}, not {levels}")
    levels = max(levels, _ONE_BYTE) if tensor.numel() < medium else levels
    rows = tensor.detach().float().cpu().flatten(1)
    largest = rows.abs().amax(dim=1, keepdim=True)
    # Rounded up by a hair, so that half precision cannot push the largest beyond its level.
    steps = (largest / levels * (1 + 2**-10)).half()
    safe = torch.where(steps > 0, steps, torch.ones_like(steps)).float()
    codes = (rows / safe).round().clamp(-levels, levels).to(torch.int16)
    return codes.view(tensor.shape), steps


def _coded(codes: Tensor) -> bytes:
    """Whole numbers, int16 of up to MAX_LEVELS, as bytes."""
    numbers = codes.numpy().ravel()
    low = np.empty(0, np.uint8)
    if np.abs(numbers).max(initial=0) > _ONE_BYTE:
        nibbles = np.append(numbers & 15, np.zeros(numbers.size % 2, np.int16)).astype(np.uint8)
        low, numbers = (nibbles[::2] | nibbles[1::2] << 4).astype(np.uint8), numbers >> 4
    deflate = zlib.compressobj(9, strategy=zlib.Z_HUFFMAN_ONLY)
    return deflate.compress(numbers.astype(np.int8).tobytes()) + deflate.flush() + low.tobytes()


def _decoded(coded: bytes, shape: list[int]) -> Tensor:
    """The whole numbers that `_coded` wrote, int16 of this shape."""
    inflate = zlib.decompressobj()
    numbers = np.frombuffer(inflate.decompress(coded), np.int8).astype(np.int16)
    if inflate.unused_data:
        packed = np.frombuffer(inflate.unused_data, np.uint8)
        nibbles = np.stack([packed & 15, packed >> 4], axis=1).ravel()[: numbers.size]
        numbers = (numbers << 4) + nibbles.astype(np.int16)
    return torch.from_numpy(numbers).view(shape)


def _restored(codes: Tensor, steps: Tensor) -> Tensor:
    return (codes.flatten(1).float() * steps.float()).view(codes.shape)
