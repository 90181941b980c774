"""Fine-tuning: what a new run takes over from a trained model.

The weights belong to the model's scales, so the new run keeps these. Its condition has the tasks of
its own windows: a task that the model had keeps its weights, and a new one starts at zero.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from gazediffusion.errors import GazeError
from gazediffusion.models.checkpoint import Run, RunConfig

_CONDITION = "condition.0.weight"  # (embedding, condition width)


def initialised_config(source: Run, config: RunConfig) -> RunConfig:
    """The configuration of a run initialised from `source`; a run that cannot be is refused."""
    there, here = source.config, config
    network = there.recipe.with_condition_width(here.recipe.network.condition_width).network
    is_alike = there.recipe.has_statistics == here.recipe.has_statistics
    if not is_alike or network != here.recipe.network:
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
    """The source's weights for the network of a run with other tasks."""
    weights = {name: tensor.clone() for name, tensor in source.network.state_dict().items()}
    if _CONDITION in weights:
        old = weights[_CONDITION]
        weights[_CONDITION] = config.conditioning.transfer(old, source.config.conditioning)
    return weights
