"""Beginning with a trained model: what a new run takes over from it.

The weights mean what they mean at the model's own scales, so the new run keeps these. It is told
the tasks of its own windows: a task the model knew keeps its weights, and a new one begins as if
nothing had been said.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from gazediffusion.errors import GazeError
from gazediffusion.models.checkpoint import Run, RunConfig

_TOLD = "condition.0.weight"  # (embedding, tasks + turns and manner)


def begun_from(start: Run, config: RunConfig) -> RunConfig:
    """The configuration of a run that goes on from `start`; a run that cannot is refused."""
    there, here = start.config, config
    n_told = here.recipe.network.conditions
    is_alike = there.recipe.is_told_manner == here.recipe.is_told_manner
    if not is_alike or replace(there.recipe.network, conditions=n_told) != here.recipe.network:
        raise GazeError(
            f"the model to begin from has another network than recipe {here.recipe.name}",
            path=start.path,
            remedy="leave --recipe out, and its own is taken",
        )
    if there.recipe.representation != here.recipe.representation:
        raise GazeError(
            f"the model to begin from is of {there.recipe.representation}, not "
            f"{here.recipe.representation}",
            path=start.path,
        )
    if there.rate_hz != here.rate_hz:
        raise GazeError(
            f"the model to begin from makes {there.rate_hz:g} samples a second, and these windows "
            f"have {here.rate_hz:g}",
            path=start.path,
            remedy=f"prepare them with --rate {there.rate_hz:g}",
        )
    return replace(
        here,
        joint=there.joint,
        velocity_scale=there.velocity_scale,
        manners=here.manners.scaled_as(there.manners) if here.manners and there.manners else None,
        begun_from=start.weights_sha256,
    )


def starting_weights(start: Run, config: RunConfig) -> dict[str, Tensor]:
    """The model's weights for the network of a run with other tasks."""
    weights = {name: tensor.clone() for name, tensor in start.network.state_dict().items()}
    if _TOLD in weights:
        known, old = start.config.tasks, weights[_TOLD]
        new = old.new_zeros(len(old), config.recipe.network.conditions)
        new[:, len(config.tasks) :] = old[:, len(known) :]
        for place, task in enumerate(config.tasks):
            if task in known:
                new[:, place] = old[:, known.index(task)]
        weights[_TOLD] = new
    return weights
