"""Qualities: sampler, steps, precision and batch size along the trade of speed for fidelity."""

from __future__ import annotations

from typing import Any, Literal

from gazediffusion.device import has_fast_bf16, require_precision
from gazediffusion.diffusion.olss import LinearSolver
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.models.checkpoint import Run, RunConfig
from gazediffusion.models.recipes import Recipe

SamplerName = Literal["auto", "ddim", "ancestral", "olss", "multistep", "unipc", "heun"]
# The samplers of each kind of model, the default first.
SAMPLERS: dict[str, tuple[SamplerName, ...]] = {
    "ddpm": ("ddim", "ancestral"),
    "edm": ("unipc", "multistep", "heun", "olss"),
    "distilled": ("ddim",),
}
# An edm run with a fitted solver has that for `fast`.
QUALITIES: dict[str, dict[str, tuple[SamplerName, int]]] = {
    "ddpm": {"fast": ("ddim", 25), "default": ("ddim", 100), "best": ("ddim", 200)},
    "edm": {"fast": ("multistep", 10), "default": ("unipc", 15), "best": ("unipc", 40)},
    # A distilled model takes one evaluation at each of its levels, at every quality.
    "distilled": dict.fromkeys(("fast", "default", "best"), ("ddim", 1000)),
}


def kind_of(recipe: Recipe) -> str:
    """Which samplers a model has: those of its process, or that of a distilled model."""
    return "distilled" if recipe.is_distilled else recipe.process


def default_batch_size(run: Run) -> int:
    """Windows per batch for the device that a run is on.

    On a GPU enough that running a kernel takes longer than launching it: 256 for the paper's
    network, 1,024 for the joint recipe's, whose tensors are a quarter of that size.
    """
    network = run.config.recipe.network
    is_gpu = next(run.network.parameters()).device.type == "cuda"
    return max(16, 256 * 128 * network.patch // network.widths[0]) if is_gpu else 16


def settings_of(
    run: Run,
    quality: str,
    precision: str = "auto",
    sampler: SamplerName = "auto",
    steps: int | None = None,
    batch_size: int | None = None,
) -> dict[str, Any]:
    """Settings of a generator by a quality: fast, default (the recipe's own) or best.

    precision: fp32, bf16, or auto, which is bf16 for the joint recipe where that is faster.
    sampler, steps: override those of the quality. batch_size: None is the device's default.
    """
    require_precision(precision)
    recipe = run.config.recipe
    device = next(run.network.parameters()).device
    chosen, n_steps = sampling_of(run.config, quality, sampler, steps)
    suits = precision == "auto" and recipe.process == "edm" and has_fast_bf16(device)
    return {
        "sampler": chosen,
        "steps": n_steps,
        "bf16": precision == "bf16" or suits,
        "batch_size": default_batch_size(run) if batch_size is None else batch_size,
    }


def sampling_of(
    config: RunConfig, quality: str, sampler: SamplerName = "auto", steps: int | None = None
) -> tuple[SamplerName, int]:
    """Sampler and steps in force: those given, or else those of the quality."""
    recipe = config.recipe
    known = QUALITIES[kind_of(recipe)]
    if quality not in known:
        raise GazeError(f"no `quality` {quality!r}", remedy=suggestion(quality, list(known)))
    usual, n_steps = known[quality]
    if quality == "default":
        n_steps = recipe.sampling_steps
    n_fitted = len(config.solver.levels) if config.solver else 0
    is_fast = quality == "fast" and sampler == "auto" and steps in (None, n_fitted)
    if n_fitted and (is_fast or sampler == "olss"):
        usual, n_steps = "olss", n_fitted
    chosen = usual if sampler == "auto" else sampler
    return chosen, min(n_steps, recipe.most_steps) if steps is None else steps


def solver_of(config: RunConfig, steps: int) -> LinearSolver:
    """The fitted solver of a run, which has so many steps."""
    solver = config.solver
    if solver is None:
        raise GazeError(
            "this run has no fitted solver",
            remedy="fit one with gazediffusion calibrate, or take another `sampler`",
        )
    if steps != len(solver.levels):
        n = len(solver.levels)
        raise GazeError(f"`steps` of sampler olss must be {n} for this run, not {steps}")
    return solver


def require_sampler(recipe: Recipe, sampler: str) -> None:
    """Refuse a sampler of another kind of model."""
    allowed = SAMPLERS[kind_of(recipe)]
    if sampler not in ("auto", *allowed):
        names = " or ".join(filter(None, [", ".join(allowed[:-1]), allowed[-1]]))
        raise GazeError(f"`sampler` must be {names} for this model, not {sampler!r}")


def require_distilled(recipe: Recipe, steps: int, guidance: float) -> None:
    """Refuse settings that a distilled model does not have."""
    if not recipe.is_distilled:
        return
    if steps != len(recipe.levels):
        raise GazeError(f"`steps` of this distilled model must be {len(recipe.levels)}")
    if guidance != 1:
        raise GazeError(
            "`guidance` is not defined for a distilled model",
            remedy="take the model that it was distilled from",
        )
