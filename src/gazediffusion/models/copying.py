"""A trained run written to another folder, with what belongs to it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from gazediffusion.models.checkpoint import Run, RunConfig, write_config
from gazediffusion.models.pretrained import LOSSES, SCORES
from gazediffusion.models.tensors import save_tensors

BESIDE = (LOSSES, SCORES)


def copy_run(
    run: Run, folder: Path, weights: str, config: RunConfig, beside: Sequence[str] = BESIDE
) -> None:
    """Write the network to the file `weights`, a configuration, and copies of files beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in beside:
        if (run.path / name).is_file():
            shutil.copyfile(run.path / name, folder / name)
    header = {"epoch": run.epoch, "validation_loss": run.validation_loss}
    save_tensors(folder / weights, run.network.state_dict(), header)
    write_config(folder, config)
