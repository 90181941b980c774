"""Muon, an optimizer of matrices with orthogonalized momentum; averages of weights, saved states.

The momentum is brought near the closest orthogonal matrix by a few Newton-Schulz iterations (Jordan
et al. 2024, "Muon", whose coefficients these are); steps have the size of AdamW's at the same rate
(Liu et al. 2025, "Muon is scalable for LLM training"). torch.optim.Muon takes matrices one at a
time; here convolution kernels are matrices too, (out, in x kernel), and matrices of one shape are
batched, which is faster on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

_A, _B, _C, _STEPS = 3.4445, -4.7750, 2.0315, 5
_AS_ADAMW = 0.2  # root mean square of AdamW's steps at a rate of 1


def is_matrix(parameter: Tensor) -> bool:
    """Whether Muon updates it; biases and scales are left to AdamW."""
    return parameter.ndim > 1 and parameter.numel() > len(parameter)


class Muon(torch.optim.Optimizer):
    """lr: a number, or a scalar on the parameters' device, where a captured graph reads it."""

    def __init__(
        self, parameters: Iterable[nn.Parameter], lr: float | Tensor, momentum: float = 0.95
    ) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        for group in self.param_groups:
            moved = [p for p in group["params"] if p.grad is not None]
            for parameter in moved:
                if not self.state[parameter]:
                    self.state[parameter]["momentum"] = torch.zeros_like(parameter)
            gradients: Any = [parameter.grad for parameter in moved]
            momenta: Any = [self.state[parameter]["momentum"] for parameter in moved]
            torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
            ahead: Any = torch._foreach_lerp(gradients, momenta, group["momentum"])
            steps = _orthogonal(ahead)
            torch._foreach_mul_(steps, group["lr"])
            torch._foreach_sub_(moved, steps)


@torch.no_grad()
def move_averages(averages: Iterable[Tensor], values: Iterable[Tensor], weight: Tensor) -> None:
    """Move averages towards values by a share that is a scalar on their device."""
    held, given = list(averages), list(values)
    moved: Any = torch._foreach_sub(given, held)
    torch._foreach_mul_(moved, weight)
    torch._foreach_add_(held, moved)


def restore_state(
    held: dict[str, Any], saved: dict[str, Tensor | None], device: torch.device
) -> None:
    """Put an optimizer's saved state of one parameter back, in place where it has one.

    What was not saved is zero. On a CPU the count of steps stays there.
    """
    for key, tensor in saved.items():
        if key in held:
            held[key].copy_(tensor) if tensor is not None else held[key].zero_()
        elif tensor is not None:
            is_count = key == "step" and device.type == "cpu"
            held[key] = tensor.clone().to("cpu" if is_count else device)


def orthogonalized(matrices: Tensor) -> Tensor:
    """About the orthogonal matrices next to (n, rows, columns), rows <= columns.

    Singular values come out between about 0.7 and 1.2.
    """
    x: Tensor = matrices / torch.linalg.matrix_norm(matrices, keepdim=True).clamp_min(1e-7)
    for _ in range(_STEPS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C), x, beta=_A)
    return x


def _orthogonal(tensors: list[Tensor]) -> list[Tensor]:
    """Each tensor's step at a rate of 1, of its shape and dtype."""
    # bfloat16 is enough, and fast where there are many of them.
    width = torch.bfloat16 if tensors and tensors[0].is_cuda else torch.float32
    by_shape: dict[tuple[int, int], list[int]] = {}
    flat = []
    for number, tensor in enumerate(tensors):
        matrix = tensor.reshape(len(tensor), -1).to(width)
        flat.append(matrix.mT if matrix.shape[0] > matrix.shape[1] else matrix)
        by_shape.setdefault((flat[-1].shape[0], flat[-1].shape[1]), []).append(number)
    steps = list(tensors)
    for (_, columns), numbers in by_shape.items():
        found = orthogonalized(torch.stack([flat[number] for number in numbers]))
        found = found.float() * (_AS_ADAMW * columns**0.5)
        for number, matrix in zip(numbers, found, strict=True):
            tensor = tensors[number]
            upright = matrix if len(tensor) == len(matrix) else matrix.mT
            steps[number] = upright.reshape(tensor.shape).to(tensor.dtype)
    return steps
