"""Qualities: sampler, steps, precision and batch size along the trade of speed for fidelity."""

from __future__ import annotations

from typing import Any, Literal

from gazediffusion.device import has_fast_bf16, require_precision
from gazediffusion.diffusion.ddim import ddim_times
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.models.checkpoint import Run

SamplerName = Literal["auto", "ddim", "ancestral", "unipc", "distilled"]
# The samplers of each process, the default first; edm models with a distilled network take that.
SAMPLERS: dict[str, tuple[SamplerName, ...]] = {
    "ddpm": ("ddim", "ancestral"),
    "edm": ("unipc", "distilled"),
}
QUALITIES = ("default", "best")
_BEST_STEPS = {"ddpm": 200, "edm": 40}


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
    """Settings of a generator by a quality: default or best.

    precision: fp32, bf16, or auto, which is bf16 for the joint recipe where that is faster.
    sampler, steps: override those of the quality. batch_size: None is the device's default.
    """
    require_precision(precision)
    device = next(run.network.parameters()).device
    chosen, n_steps = sampling_of(run, quality, sampler, steps)
    is_edm = run.config.recipe.process == "edm"
    suits = precision == "auto" and is_edm and has_fast_bf16(device)
    return {
        "sampler": chosen,
        "steps": n_steps,
        "bf16": precision == "bf16" or suits,
        "batch_size": default_batch_size(run) if batch_size is None else batch_size,
    }


def sampling_of(
    run: Run, quality: str, sampler: SamplerName = "auto", steps: int | None = None
) -> tuple[SamplerName, int]:
    """Sampler and steps in force: those given, or else those of the quality.

    A number of steps is of the model's own network; its distilled one has the steps it is trained
    for.
    """
    recipe = run.config.recipe
    if quality not in QUALITIES:
        raise GazeError(f"no `quality` {quality!r}", remedy=suggestion(quality, list(QUALITIES)))
    is_free = sampler == "auto" and steps is None and quality == "default"
    distilled = run.distilled
    if distilled and (sampler == "distilled" or (is_free and distilled.is_calibrated)):
        return "distilled", len(distilled.levels) if steps is None else steps
    usual = recipe.sampling_steps if quality == "default" else _BEST_STEPS[recipe.process]
    chosen = SAMPLERS[recipe.process][0] if sampler == "auto" else sampler
    return chosen, min(usual, recipe.most_steps) if steps is None else steps


def require_sampler(run: Run, sampler: str, steps: int, eta: float | None, bf16: bool) -> None:
    """Refuse a sampler that the run does not have, and settings that the sampler does not have."""
    recipe = run.config.recipe
    allowed = SAMPLERS[recipe.process]
    if sampler not in allowed:
        raise GazeError(f"`sampler` must be {' or '.join(allowed)} for this model, not {sampler!r}")
    if sampler == "distilled":
        if run.distilled is None:
            raise GazeError(
                "this run has no distilled network",
                remedy="take another `sampler`, or train with recipe joint or steerable",
            )
        if steps != (n := len(run.distilled.levels)):
            raise GazeError(f"`steps` of sampler distilled must be {n}, not {steps}")
    if recipe.process == "edm":
        if eta is not None:
            raise GazeError("`eta` is for the paper's recipes alone")
        recipe.edm.sigma_schedule(steps)  # refuses numbers of steps that it cannot have
        return
    if bf16:
        raise GazeError("`precision` bf16 is for the joint recipe alone")
    if sampler == "ddim":  # ancestral sampling has an eta and steps of its own
        eta = recipe.eta if eta is None else eta
        if not 0 <= eta <= 1:
            raise GazeError(f"`eta` must lie between 0 and 1, not {eta:g}")
        ddim_times(steps, recipe.diffusion_steps)  # refuses as well
