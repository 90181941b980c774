"""The learner: weights, averaged weights and optimizers, and the step that updates them.

On a GPU the whole step (noising, forward, backward, clipping, optimizer, averaging) is compiled and
replayed as one CUDA graph; launching its kernels one by one takes longer than running them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from gazediffusion.device import require_precision
from gazediffusion.network.recipes import Recipe
from gazediffusion.network.unet import UNet
from gazediffusion.seeds import Stream, torch_seeded
from gazediffusion.training.batches import Batch
from gazediffusion.training.distributed import Processes

Precision = str  # "fp32" or "bf16"
# The state that an optimizer has of each parameter.
_KEPT = {"adam": ("step", "exp_avg", "exp_avg_sq"), "muon": ("momentum",)}
# Of the Newton-Schulz iteration of Muon.
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


def choose_precision(name: str, recipe: Recipe, device: torch.device) -> Precision:
    """`auto` is the recipe's choice on a GPU and fp32 on the CPU."""
    require_precision(name)
    if name != "auto":
        return name
    return "bf16" if recipe.mixed_precision and device.type == "cuda" else "fp32"


class Learner:
    """Weights, averaged weights and optimizers, and the step that updates them.

    weights: the initial ones; random from the seed if None.
    `compiled` and `captured` make the step fast on a GPU and change nothing else.
    processes: those that share every batch; None is one process alone.
    """

    def __init__(
        self,
        recipe: Recipe,
        seed: int,
        device: torch.device,
        precision: Precision,
        *,
        weights: Mapping[str, Tensor] | None = None,
        compiled: bool = False,
        captured: bool = False,
        processes: Processes | None = None,
    ) -> None:
        self.recipe, self.device, self.precision = recipe, device, precision
        self.processes = processes
        with torch_seeded(seed, Stream.WEIGHTS):
            network = UNet(recipe.network)
        if weights is not None:
            network.load_state_dict(dict(weights))
        self.network = network.to(device)
        self.average = copy.deepcopy(self.network).eval().requires_grad_(False)
        self.process: Any = recipe.noise().to(device)
        self.parameters: Any = list(self.network.parameters())
        self.averages: Any = list(self.average.parameters())
        # Numbers that change from step to step live on the device, where a graph reads them.
        self.learning_rate = torch.zeros((), device=device)
        self.average_weight = torch.zeros((), device=device)
        on_gpu = device.type == "cuda"
        has_muon = recipe.optimizer == "muon"
        by_muon = [p for p in self.parameters if has_muon and is_matrix(p)]
        by_adam = [p for p in self.parameters if not (has_muon and is_matrix(p))]
        self.optimizers: dict[str, torch.optim.Optimizer] = {
            "adam": torch.optim.AdamW(
                by_adam,
                lr=self.learning_rate,
                weight_decay=recipe.weight_decay,
                capturable=on_gpu,
                fused=on_gpu,
            )
        }
        if by_muon:
            self.optimizers["muon"] = Muon(by_muon, lr=self.learning_rate)
        self._forward: Any = torch.compile(self.network) if compiled else self.network
        self._captured = captured
        self._graph: Any = None
        self._inputs: Batch | None = None
        self._loss = torch.zeros((), device=device)
        self._share = 1.0  # of the batch, this process's rows

    def step(self, inputs: Batch, learning_rate: float, average_weight: float) -> Tensor:
        """One step on a batch; returns the mean loss, a scalar on the device."""
        if self.processes is not None:
            n_rows = len(inputs[0])
            inputs = self.processes.rows(inputs)
            self._share = len(inputs[0]) / n_rows
        if self._captured and self._graph is None:
            self._capture(inputs)
        self.learning_rate.fill_(learning_rate)
        self.average_weight.fill_(average_weight)
        if self._inputs is None:
            return self._step(inputs)
        for held, given in zip(self._inputs, inputs, strict=True):
            held.copy_(given)
        self._graph.replay()
        return self._loss

    def _step(self, inputs: Batch) -> Tensor:
        self._forget_gradients()
        loss = self._losses(self._forward, inputs).mean()
        if self.processes is not None:
            loss = loss * self._share
        loss.backward()  # type: ignore[no-untyped-call]
        loss = loss.detach()
        if self.processes is not None:
            self.processes.sum_([loss, *(p.grad for p in self.parameters if p.grad is not None)])
        torch.nn.utils.clip_grad_norm_(self.parameters, self.recipe.gradient_clip, foreach=True)
        for optimizer in self.optimizers.values():
            optimizer.step()
        move_averages(self.averages, self.parameters, self.average_weight)
        return loss

    def _losses(self, denoiser: Any, batch: Batch) -> Tensor:
        """Each sample's loss, (batch,)."""
        is_counted = self.recipe.is_steerable
        counts = {"counts": batch[-1]} if is_counted else {}
        inputs = batch[:-1] if is_counted else batch
        with self._autocast():
            losses: Tensor = self.process.losses(denoiser, *inputs, **counts)
        return losses

    def _capture(self, inputs: Batch) -> None:
        """Record one step as a CUDA graph, leaving weights and optimizer as they were."""
        kept = {name: tensor.clone() for name, tensor in self.state().items()}
        self._inputs = tuple(tensor.clone() for tensor in inputs)
        # With a learning rate of zero the warm-up steps do not change the weights.
        self.learning_rate.zero_()
        self.average_weight.zero_()
        side: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._step(self._inputs)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        self._forget_gradients()
        # NCCL asks for its own events meanwhile, in a thread of its own.
        mode = "global" if self.processes is None else "thread_local"
        with torch.cuda.graph(graph, capture_error_mode=mode):
            self._loss = self._step(self._inputs)
        self._graph = graph
        self.load(kept)

    def _forget_gradients(self) -> None:
        for optimizer in self.optimizers.values():
            optimizer.zero_grad(set_to_none=True)

    def _autocast(self) -> torch.autocast:
        return torch.autocast(
            self.device.type, dtype=torch.bfloat16, enabled=self.precision == "bf16"
        )

    def state(self) -> dict[str, Tensor]:
        """Everything that a step changes, by name; live tensors, not copies."""
        tensors = {f"net.{name}": p.data for name, p in self.network.named_parameters()}
        tensors |= {f"ema.{name}": p.data for name, p in self.average.named_parameters()}
        for kind, optimizer in self.optimizers.items():
            for name, parameter in self.network.named_parameters():
                for key, value in optimizer.state.get(parameter, {}).items():
                    tensors[f"{kind}.{key}.{name}"] = value
        return tensors

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Put back what `state` gave, in place, so that a captured graph sees it."""
        with torch.no_grad():
            for name, parameter in self.network.named_parameters():
                parameter.copy_(tensors[f"net.{name}"])
            for name, parameter in self.average.named_parameters():
                parameter.copy_(tensors[f"ema.{name}"])
            for kind in self.optimizers:
                self._load_optimizer(kind, tensors)

    def _load_optimizer(self, kind: str, tensors: dict[str, Tensor]) -> None:
        optimizer = self.optimizers[kind]
        its_own = {id(p) for group in optimizer.param_groups for p in group["params"]}
        for name, parameter in self.network.named_parameters():
            if id(parameter) not in its_own:
                continue
            saved = {key: tensors.get(f"{kind}.{key}.{name}") for key in _KEPT[kind]}
            restore_state(optimizer.state[parameter], saved, self.device)

    @torch.no_grad()
    def validation_loss(self, batches: list[Batch]) -> float | None:
        """Mean loss of the averaged weights over fixed batches."""
        if not batches:
            return None
        shared = self.processes
        losses = torch.cat(
            [
                self._losses(self.average, batch)
                if shared is None or shared.has(number)
                else torch.zeros(len(batch[0]), device=self.device)
                for number, batch in enumerate(batches)
            ]
        )
        if shared is not None:
            shared.sum_([losses])
        return float(losses.double().mean())


def learning_rate_at(step: int, per_epoch: int, recipe: Recipe) -> float:
    """Linear warm-up over the first epochs, then a cosine down to zero at the last step."""
    warmup = min(recipe.warmup_epochs, recipe.epochs - 1) * per_epoch
    total = recipe.epochs * per_epoch
    if step < warmup:
        return recipe.learning_rate * (step + 1) / warmup
    progress = (step - warmup) / max(1, total - warmup)
    return recipe.learning_rate * 0.5 * (1 + math.cos(math.pi * progress))


def average_weight_at(step: int, decay: float) -> float:
    """1 - decay; larger in the first steps, so that the average forgets the initial weights."""
    return 1 - min(decay, (1 + step) / (10 + step))
