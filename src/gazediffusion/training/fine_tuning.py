"""Fine-tuning: what a new run takes over from a trained model.

The weights belong to the model's scales, so the new run keeps these. Its condition has the tasks of
its own windows: a task that the model had keeps its weights, and a new one starts at zero.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gazediffusion.conditioning import Conditioning
from gazediffusion.errors import GazeError
from gazediffusion.network.checkpoint import Run, RunConfig
from gazediffusion.network.distilled import CHANGE, COLUMNS

_CONDITION = "condition.0.weight"  # (embedding, condition width)
_STEM, _HEAD, _HEAD_BIAS = "stem.weight", "head.2.weight", "head.2.bias"


def initialised_config(source: Run, config: RunConfig) -> RunConfig:
    """The configuration of a run initialised from `source`; a run that cannot be is refused."""
    there, here = source.config, config
    asked = here.recipe.network
    # Channels that the model does not have start at zero.
    network = replace(
        there.recipe.network,
        condition_width=asked.condition_width,
        channels=max(asked.channels, there.recipe.network.channels),
        sequence_channels=max(asked.sequence_channels, there.recipe.network.sequence_channels),
    )
    is_alike = there.recipe.has_statistics == here.recipe.has_statistics
    if not is_alike or network != asked:
        raise GazeError(
            f"the initial model has another network than recipe {here.recipe.name}",
            path=source.path,
            remedy="leave `recipe` out to take the model's own",
        )
    if there.recipe.representation != here.recipe.representation:
        raise GazeError(
            f"the initial model has {there.recipe.representation} channels, not "
            f"{here.recipe.representation}",
            path=source.path,
        )
    if there.rate_hz != here.rate_hz:
        raise GazeError(
            f"the initial model has {there.rate_hz:g} samples a second, and these windows have "
            f"{here.rate_hz:g}",
            path=source.path,
            remedy=f"prepare them with `rate_hz` {there.rate_hz:g}",
        )
    return replace(
        here,
        joint=there.joint,
        velocity_scale=there.velocity_scale,
        conditioning=here.conditioning.initialised_from(there.conditioning),
        initialised_from=source.weights_sha256,
    )


def initial_weights(source: Run, config: RunConfig) -> dict[str, Tensor]:
    """The source's weights for the network of a run with other tasks or more channels."""
    weights = {name: tensor.clone() for name, tensor in source.network.state_dict().items()}
    if _CONDITION in weights:
        old = weights[_CONDITION]
        weights[_CONDITION] = transferred(old, source.config.conditioning, config.conditioning)
    had, has = source.config.recipe.network, config.recipe.network
    if (had.channels, had.sequence_channels) != (has.channels, has.sequence_channels):
        patch = has.patch
        stem = weights[_STEM]
        x, sequences = stem.split((had.channels * patch, had.sequence_channels * patch), dim=1)
        n_more = (has.channels - had.channels) * patch
        parts = [x, _zeros(x, 1, n_more), sequences]
        more = (has.sequence_channels - had.sequence_channels) * patch
        weights[_STEM] = torch.cat([*parts, _zeros(x, 1, more)], dim=1)
        for name in (_HEAD, _HEAD_BIAS):
            weights[name] = torch.cat([weights[name], _zeros(weights[name], 0, n_more)])
    return weights


def initial_change(source: Run, config: RunConfig) -> dict[str, Tensor]:
    """The change of weights from the source to its distilled network, for a run with other tasks.

    Empty without a distilled network.
    """
    if source.distilled is None:
        return {}
    change = dict(source.distilled.change)
    conditionings = source.config.conditioning, config.conditioning
    for key in {_CONDITION + COLUMNS, _CONDITION + CHANGE} & change.keys():
        moved = transferred(change[key].reshape(-1, conditionings[0].width), *conditionings)
        change[key] = moved if key.endswith(COLUMNS) else moved.flatten()
    return change


def transferred(weight: Tensor, source: Conditioning, new: Conditioning) -> Tensor:
    """The weights (embedding, width) of a new condition vector from those of a source's.

    Entries that both have, by part and name, keep their weights; new ones start at zero.
    """
    result = weight.new_zeros(len(weight), new.width)
    for part, entries in new.schema.items():
        known = source.schema.get(part, ())
        here, there = new.columns(part), source.columns(part) if known else slice(0)
        for k, name in enumerate(entries):
            if name in known:
                result[:, here.start + k] = weight[:, there.start + known.index(name)]
    return result


def _zeros(like: Tensor, dim: int, n: int) -> Tensor:
    """Zeros of a tensor's shape but for n entries along one dimension."""
    shape = list(like.shape)
    shape[dim] = n
    return like.new_zeros(shape)
