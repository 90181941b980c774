"""At which noise level generated gaze comes to differ from real gaze, by the deep two-sample test.

    python runs/deep_noise.py gazecom6.safetensors [bioeye6.safetensors] [--model default]
        [--sigma 0.05 0.2 0.5 1 4] [--seeds 3] [--split-seed S] [-o noise.json]

Real windows are noised to sigma and denoised from there by the model's sampler, conditioned on
their own task and summary statistics, and tested against other real windows of the same
participants (docs/metrics.md, planted defects): what the model must decide itself grows with sigma.
Windows of a coarse tracker resolution are left out, because the network does not generate it.
Prints for each file the AUC by sigma, and AUCs by task and without each frequency band and event.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

import deep
import gazediffusion as gd
from gazediffusion.conditioning import Condition
from gazediffusion.data.windows import CLIP
from gazediffusion.diffusion.solvers import unipc
from gazediffusion.document import Table, table_markdown
from gazediffusion.evaluation.deep_report import auc_table, deep_blocks, deep_sets
from gazediffusion.evaluation.deep_result import DeepTest
from gazediffusion.evaluation.deep_test import deep_tests
from gazediffusion.evaluation.gaze_sets import GazeSet
from gazediffusion.evaluation.loading import split_again
from gazediffusion.evaluation.recorded_sets import with_task_names
from gazediffusion.evaluation.result import plain_values
from gazediffusion.evaluation.trials import Defect
from gazediffusion.files import write_json
from gazediffusion.generation.qualities import default_batch_size
from gazediffusion.models.checkpoint import Run
from gazediffusion.models.representations import Joint

SIGMAS = (0.05, 0.2, 0.5, 1.0, 4.0)


@torch.inference_mode()
def denoised(
    run: Run, gaze: Tensor, condition: Condition, sigma: float, steps: int, noise: Tensor
) -> Tensor:
    """Gaze (window, 2, time) noised to sigma and denoised along the sampler's schedule below it.

    noise: (window, gaze channel, time), standard normal.
    """
    recipe, representation = run.config.recipe, run.config.representation
    assert isinstance(representation, Joint)
    n_labels = recipe.network.channels - recipe.gaze_channels

    def denoise(x: Tensor, level: float) -> Tensor:
        levels = torch.full((len(x),), level, device=x.device)
        clean = recipe.edm.denoise(run.network, x, levels, *condition)
        return functional.pad(clean[:, : recipe.gaze_channels], (0, 0, 0, n_labels))

    x = functional.pad(representation.encode(gaze) + sigma * noise, (0, 0, 0, n_labels))
    levels = [one for one in recipe.edm.sigma_schedule(steps).tolist() if one < sigma]
    for after in unipc(denoise, x, [sigma, *levels]):
        x = after
    return representation.decode(x[:, : recipe.gaze_channels])


def noised_to(run: Run, sigma: float, steps: int) -> Defect:
    """The defect: windows noised to sigma and denoised."""
    conditioning, rate_hz = run.config.conditioning, run.config.rate_hz
    device = next(run.network.parameters()).device

    def defect(one: GazeSet, rng: np.random.Generator) -> GazeSet:
        generator = torch.Generator(device).manual_seed(int(rng.integers(2**62)))
        tasks = torch.tensor([conditioning.task_number(task) for task in one.tasks])
        rows = torch.split(torch.arange(len(one.gaze)), default_batch_size(run))
        parts = []
        for chosen in rows:
            gaze = torch.from_numpy(one.gaze[chosen.numpy()])
            statistics = conditioning.measure(gaze, rate_hz)
            condition = conditioning.of_windows(tasks[chosen], statistics)
            shape = (len(gaze), run.config.recipe.gaze_channels, gaze.shape[-1])
            noise = torch.randn(shape, generator=generator, device=device)
            on_device = tuple(part.to(device) for part in condition)
            found = denoised(run, gaze.to(device), on_device, sigma, steps, noise)
            parts.append(found.cpu().numpy())
        deep.show(f"noised {len(one.gaze)} windows to sigma {sigma:g} and denoised them")
        return replace(one, gaze=np.concatenate(parts).clip(-CLIP, CLIP))

    return defect


def fine(windows: gd.Windows, run: Run) -> gd.Windows:
    """The windows of a fine resolution, of tasks that the model knows, under its names."""
    windows = with_task_names(windows, run.config.conditioning.tasks)
    is_known = np.array([task in run.config.conditioning.tasks for task in windows.tasks])
    return windows.select((windows.resolution_px == 0).all(axis=1) & is_known[windows.task])


def main(arguments: Sequence[str] | None = None) -> None:
    """Test every sigma on every windows file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("--model", default="default")
    parser.add_argument("--sigma", type=float, nargs="+", default=SIGMAS)
    parser.add_argument("--steps", type=int, default=40, help="of the sampler's whole schedule")
    parser.add_argument("--split-seed", type=int, help="hold out other participants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, help="trials; 3 on a GPU, 2 otherwise")
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.5, 2.0, 8.0])
    parser.add_argument("--training-steps", type=int, help="of a classifier at most")
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("-n", type=int, default=1000, help="windows a side")
    parser.add_argument("-o", "--output", type=Path, help="all results as JSON")
    given = parser.parse_args(arguments)
    run = gd.load(given.model).run
    config = gd.DeepConfig(
        seconds=tuple(given.seconds),
        n_windows=given.n,
        n_seeds=given.seeds,
        n_steps=given.training_steps,
        batch_size=given.batch_size,
    )
    found: dict[str, dict[str, Any]] = {}
    for path in given.windows:
        windows = gd.Windows.load(path)
        if given.split_seed is not None:
            windows = split_again(windows, given.split_seed)
        # A trial takes half of the windows a side; more would be denoised in vain.
        training = fine(windows.train, run).subsample(3 * given.n)
        held_out = fine(windows.held_out, run).subsample(2 * given.n)
        defects = {f"sigma {one:g}": noised_to(run, one, given.steps) for one in given.sigma}
        found[path.stem] = deep_tests(
            GazeSet.of("train", training),
            GazeSet.of("real", held_out),
            {},
            config,
            given.seed,
            deep.show,
            defects=defects,
        )
        if given.output is not None:
            write_json(given.output, plain_values(found))
    rows: dict[str, DeepTest] = {}
    for name, test in found.items():
        print(f"\n## {name}")
        for block in deep_blocks(test):
            if isinstance(block, Table) and block.title != auc_table({}).title:
                print(f"\n{table_markdown(block)}")
        rows |= {f"{name}: {row}": one for row, one in deep_sets(test).items()}
    print("\n## AUC")
    print(f"\n{table_markdown(auc_table(rows))}")


if __name__ == "__main__":
    main()
