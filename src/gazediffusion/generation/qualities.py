"""Qualities: sampler, steps, precision and batch size along the trade of speed for fidelity."""

from __future__ import annotations

from typing import Any, Literal

from gazediffusion.device import has_fast_bf16, require_precision
from gazediffusion.diffusion.ddim import ddim_times
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.models.checkpoint import Run, RunConfig

SamplerName = Literal[
    "auto", "ddim", "ancestral", "olss", "multistep", "unipc", "heun", "distilled"
]
# The samplers of each process, the default first.
SAMPLERS: dict[str, tuple[SamplerName, ...]] = {
    "ddpm": ("ddim", "ancestral"),
    "edm": ("unipc", "multistep", "heun", "olss", "distilled"),
}
# With a distilled network, `default` and `fast` are its solvers of most and fewest steps; without
# one, an edm run with a fitted solver has that for `fast`.
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
    guidance: float = 1.0,
) -> dict[str, Any]:
    """Settings of a generator by a quality: fast, default or best.

    precision: fp32, bf16, or auto, which is bf16 for the joint recipe where that is faster.
    sampler, steps: override those of the quality. batch_size: None is the device's default.
    """
    require_precision(precision)
    device = next(run.network.parameters()).device
    chosen, n_steps = sampling_of(run, quality, sampler, steps, guidance)
    is_edm = run.config.recipe.process == "edm"
    suits = precision == "auto" and is_edm and has_fast_bf16(device)
    return {
        "sampler": chosen,
        "steps": n_steps,
        "bf16": precision == "bf16" or suits,
        "batch_size": default_batch_size(run) if batch_size is None else batch_size,
        "guidance": guidance,
    }


def sampling_of(
    run: Run,
    quality: str,
    sampler: SamplerName = "auto",
    steps: int | None = None,
    guidance: float = 1.0,
) -> tuple[SamplerName, int]:
    """Sampler and steps in force: those given, or else those of the quality.

    Guidance is not defined for a distilled network, and a number of steps is of the model's own.
    """
    recipe, config = run.config.recipe, run.config
    known = QUALITIES[recipe.process]
    if quality not in known:
        raise GazeError(f"no `quality` {quality!r}", remedy=suggestion(quality, list(known)))
    usual, n_steps = known[quality]
    if quality == "default":
        n_steps = recipe.sampling_steps
    fitted = _fitted_steps(run)
    is_free = sampler == "auto" and steps is None and guidance == 1
    if fitted and (sampler == "distilled" or (is_free and quality != "best")):
        usual, n_steps = "distilled", fitted[-1 if quality == "fast" else 0]
    elif config.solver:
        n_fitted = len(config.solver.levels)
        is_fast = quality == "fast" and sampler == "auto" and steps in (None, n_fitted)
        if is_fast or sampler == "olss":
            usual, n_steps = "olss", n_fitted
    chosen = usual if sampler == "auto" else sampler
    return chosen, min(n_steps, recipe.most_steps) if steps is None else steps


def _fitted_steps(run: Run) -> list[int]:
    """The numbers of steps that a run's distilled network has solvers of, the most first."""
    distilled = run.distilled
    if distilled is None or not distilled.is_calibrated:
        return []
    return [len(solver.levels) for solver in distilled.solvers]


def require_sampler(
    run: Run, sampler: str, steps: int, eta: float | None, guidance: float, bf16: bool
) -> None:
    """Refuse a sampler that the run does not have, and settings that the sampler does not have."""
    recipe = run.config.recipe
    allowed = SAMPLERS[recipe.process]
    if sampler not in allowed:
        names = f"{', '.join(allowed[:-1])} or {allowed[-1]}"
        raise GazeError(f"`sampler` must be {names} for this model, not {sampler!r}")
    if sampler == "distilled":
        fitted = _fitted_steps(run)
        if run.distilled is None or not fitted:
            raise GazeError(
                "this run has no distilled network",
                remedy="add one with gazediffusion distill, or take another `sampler`",
            )
        if run.distilled.solver_of(steps) is None:
            known = " or ".join(map(str, fitted))
            raise GazeError(f"`steps` of sampler distilled must be {known}, not {steps}")
        if guidance != 1:
            raise GazeError(
                "`guidance` is not defined for a distilled network",
                remedy="leave `sampler` out, or take unipc",
            )
    if sampler == "olss":
        _require_solver(run.config, steps)
    if not 0 <= guidance <= 20:
        raise GazeError(f"`guidance` must lie between 0 and 20, not {guidance:g}")
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


def _require_solver(config: RunConfig, steps: int) -> None:
    if config.solver is None:
        raise GazeError(
            "this run has no fitted solver",
            remedy="fit one with gazediffusion calibrate, or take another `sampler`",
        )
    n = len(config.solver.levels)
    if steps != n:
        raise GazeError(f"`steps` of sampler olss must be {n} for this run, not {steps}")
