"""Qualities: sampler, steps, precision and batch size along the trade of speed for fidelity."""

from __future__ import annotations

from typing import Any, Literal

from gazediffusion.device import has_fast_bf16, require_precision
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.models.checkpoint import Run

SamplerName = Literal["auto", "ddim", "ancestral", "multistep", "unipc", "heun"]
# The samplers of each process, the default first.
SAMPLERS = {"ddpm": ("ddim", "ancestral"), "edm": ("unipc", "multistep", "heun")}
QUALITIES: dict[str, dict[str, tuple[SamplerName, int]]] = {
    "ddpm": {"fast": ("ddim", 25), "default": ("ddim", 100), "best": ("ddim", 200)},
    "edm": {"fast": ("multistep", 10), "default": ("unipc", 15), "best": ("unipc", 40)},
}


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
    known = QUALITIES[recipe.process]
    if quality not in known:
        raise GazeError(f"no `quality` {quality!r}", remedy=suggestion(quality, list(known)))
    usual, n_steps = known[quality]
    if quality == "default":
        n_steps = recipe.sampling_steps
    suits = precision == "auto" and recipe.process == "edm" and has_fast_bf16(device)
    return {
        "sampler": usual if sampler == "auto" else sampler,
        "steps": min(n_steps, recipe.most_steps) if steps is None else steps,
        "bf16": precision == "bf16" or suits,
        "batch_size": default_batch_size(run) if batch_size is None else batch_size,
    }
