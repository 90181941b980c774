"""Low-rank adaptation: a trained network is changed by products of two thin matrices.

Every weight is W = W0 + B A with W0 fixed and a small rank (Hu et al. 2022), so that the change
takes a fraction of the weights' space. Vectors and small weights change freely. The network itself
stays plain: gradients of its weights are passed on to the factors by the chain rule, and its
weights follow the factors.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

SMALL = 8_000  # weights with fewer elements change freely
ROWS, COLUMNS, CHANGE = ".rows", ".columns", ".change"


class LowRank:
    """The change of a network's weights, and what trains it.

    tensors: by the weight's name, `.rows` (rank, row) and `.columns` (rank, column) of those with a
    low rank, `.change` (element,) of the others. initial: tensors of another network's change, with
    which a weight's change begins where the shapes are the same; elsewhere it begins with none.
    """

    def __init__(
        self,
        network: nn.Module,
        rank: int,
        seed: int,
        initial: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.weights = dict(network.named_parameters())
        self.first = {name: weight.detach().clone() for name, weight in self.weights.items()}
        device = next(network.parameters()).device
        draws = torch.Generator().manual_seed(seed)
        self.tensors: dict[str, Tensor] = {}
        for name, weight in self.weights.items():
            if weight.numel() < SMALL:
                self.tensors[name + CHANGE] = torch.zeros(weight.numel(), device=device)
                continue
            n_rows, n_columns = weight.flatten(1).shape
            own = min(rank, n_rows, n_columns)
            columns = torch.randn(own, n_columns, generator=draws) / n_columns**0.5
            self.tensors[name + ROWS] = torch.zeros(own, n_rows, device=device)
            self.tensors[name + COLUMNS] = columns.to(device)
        if initial:
            self._begin_with(initial)

    @torch.no_grad()
    def _begin_with(self, initial: Mapping[str, Tensor]) -> None:
        for name in self.weights:
            keys = [name + part for part in (ROWS, COLUMNS, CHANGE) if name + part in self.tensors]
            if all(
                key in initial and initial[key].shape == self.tensors[key].shape for key in keys
            ):
                for key in keys:
                    self.tensors[key].copy_(initial[key])
        self.set_weights()

    @torch.no_grad()
    def pass_gradients(self) -> None:
        """Gradients of the network's weights to the factors."""
        for name, weight in self.weights.items():
            gradient = weight.grad
            assert gradient is not None
            if weight.numel() < SMALL:
                self.tensors[name + CHANGE].grad = gradient.flatten()
                continue
            rows, columns = self.tensors[name + ROWS], self.tensors[name + COLUMNS]
            rows.grad = columns @ gradient.flatten(1).T
            columns.grad = rows @ gradient.flatten(1)

    @torch.no_grad()
    def set_weights(self) -> None:
        """The network's weights by the factors."""
        for name, weight in changed(self.first, self.tensors).items():
            self.weights[name].copy_(weight)


def changed(weights: Mapping[str, Tensor], change: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights with a change (`LowRank.tensors`) added."""
    result = {}
    for name, weight in weights.items():
        if name + CHANGE in change:
            result[name] = weight + change[name + CHANGE].to(weight).view_as(weight)
        else:
            rows, columns = change[name + ROWS].to(weight), change[name + COLUMNS].to(weight)
            result[name] = weight + (rows.T @ columns).view_as(weight)
    return result
