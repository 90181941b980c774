"""Where tensors are computed: the device, and the precisions it is fast at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from gazediffusion.errors import GazeError


def choose_device(name: str) -> torch.device:
    """The device of this name; `auto` is the GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise GazeError(f"`device` {name} cannot be used ({reason})") from error
    return device


def sent(tensor: Tensor, device: torch.device | str) -> Tensor:
    """The tensor on a device. A GPU is not waited for: it goes on with what it was given before."""
    if torch.device(device).type != "cuda" or tensor.device.type == "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def fetching(tensor: Tensor) -> Callable[[], NDArray[Any]]:
    """What waits for a tensor that a GPU may be computing; work given to it later is not."""
    if tensor.device.type != "cuda":
        return tensor.numpy
    held = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    held.copy_(tensor, non_blocking=True)
    copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
    copied.record()

    def fetched() -> NDArray[Any]:
        copied.synchronize()
        return held.numpy()

    return fetched


def require_precision(name: str) -> None:
    """Refuse an unknown precision."""
    if name not in ("auto", "fp32", "bf16"):
        raise GazeError(f"`precision` must be auto, fp32 or bf16, not {name!r}")


def has_fast_bf16(device: torch.device) -> bool:
    """Whether bfloat16 arithmetic is faster than float32 there."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16"))
