"""Errors of a denoiser by noise level, in all and within fixations.

The mean loss is dominated by saccades, which have most of a window's energy. Fixational motion is a
thousandth of the screen from sample to sample, below the smallest noise of the paper's schedule.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from gazediffusion.data.windows import Windows
from gazediffusion.models.checkpoint import Run
from gazediffusion.seeds import seed_for
from gazediffusion.training.batches import some_held_out

# Fixational: slower than this (normalized units per sample; 30 deg/s on a screen of 48 degrees)
# for 20 ms before and after, so that the flanks of saccades do not count.
FIXATION_SPEED = 0.005
_MARGIN_S = 0.02
_BATCH = 16


@torch.no_grad()
def loss_by_level(
    run: Run, windows: Windows, n_windows: int = 64, n_levels: int = 24
) -> dict[str, Any]:
    """Errors on held-out windows at noise levels from the smallest to the largest.

    Each level has its step t, sigma = sqrt((1 - ab) / ab), loss (mean squared error of the noise)
    and unexplained_fixation: the mean squared error of the denoised motion from sample to sample
    within fixations, over that motion's own mean square; 1 where nothing of it is recovered.
    """
    config = run.config
    recipe, representation = config.recipe, config.representation
    device = next(run.network.parameters()).device
    schedule = recipe.schedule().to(device)
    gaze = torch.from_numpy(some_held_out(windows, n_windows).cut()).to(device)
    x0 = representation.encode(gaze)
    motion = gaze.diff(dim=-1)
    is_fixation = _is_fixational(motion, round(_MARGIN_S * config.rate_hz))
    noise = torch.Generator().manual_seed(seed_for(0, n_windows))
    eps = torch.randn(x0.shape, generator=noise).to(device)
    total = recipe.diffusion_steps
    spread = torch.logspace(0, torch.log10(torch.tensor(float(total))), n_levels)
    levels = []
    for t in sorted({round(value) for value in spread.tolist()}):
        loss, missed = [], []
        for first in range(0, len(x0), _BATCH):
            part = slice(first, first + _BATCH)
            steps = torch.full((len(x0[part]),), t, dtype=torch.long, device=device)
            noisy = schedule.noisy(x0[part], steps, eps[part]).float()
            predicted = run.network(noisy, steps).float()
            clean, found = schedule.both(predicted, noisy, steps, recipe.objective)
            loss.append((found - eps[part]).square().mean(dim=(1, 2)))
            moved = representation.decode(clean).diff(dim=-1)
            missed.append((moved - motion[part]).square())
        of_fixations = is_fixation.expand_as(motion)
        alpha_bar = float(schedule.alpha_bar[t])
        levels.append(
            {
                "t": t,
                "sigma": ((1 - alpha_bar) / alpha_bar) ** 0.5,
                "loss": float(torch.cat(loss).double().mean()),
                "unexplained_fixation": float(
                    torch.cat(missed)[of_fixations].double().mean()
                    / motion[of_fixations].square().double().mean()
                ),
            }
        )
    return {
        "representation": recipe.representation,
        "n_windows": len(x0),
        "levels": levels,
    }


def _is_fixational(motion: Tensor, margin: int) -> Tensor:
    """(window, 1, time) True where no step within the margin is fast."""
    is_fast = (motion.square().sum(dim=1, keepdim=True).sqrt() > FIXATION_SPEED).float()
    return functional.max_pool1d(is_fast, 2 * margin + 1, stride=1, padding=margin) == 0
