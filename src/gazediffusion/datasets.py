"""Large synthetic sets in parts, by this process or by the workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gazediffusion.errors import GazeError, shown
from gazediffusion.generation.cluster import Cluster, connected
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.generation.journal import Part
from gazediffusion.generation.partitions import PartFolder, Plan, write_here
from gazediffusion.generation.scheduling import Progress
from gazediffusion.model import Model, load
from gazediffusion.options import Options

ENGINES = ("local", "ray")


def generate_dataset(
    model: Model | Path | str,
    folder: Path | str,
    n: int,
    *options: Options,
    seed: int = 0,
    engine: str = "local",
    address: str | None = None,
    part_size: int | None = None,
    n_workers: int | None = None,
    device: str = "auto",
    grid_px: float | None = None,
    progress: Progress = lambda done: None,
    say: Callable[[str], None] = lambda line: None,
    overwrite: bool = False,
    **given: Any,
) -> list[Path]:
    """Write the first n windows of a seed as a folder of Parquet files; returns what was written.

    folder: local, or a URL (`s3://bucket/gaze`). engine: local (this process) or ray (a cluster,
    whose nodes share the folder); both write the same parts. part_size: windows of each part; None
    is 256, or the batch size where that is more. address, n_workers: of a cluster, and at most so
    many workers. device: of the workers of a cluster: auto, cpu or cuda; the local engine takes
    that of the model. overwrite: replace parts of other windows or settings. The others are those
    of `Model.sample_to`. A call that was stopped resumes from the parts whose hash fits.

    >>> paths = generate_dataset("default", "parts", 2, task="reading", part_size=1)
    >>> [path.name for path in paths]
    ['parts', 'card.json', 'README.md', 'manifest.json']
    """
    if engine not in ENGINES:
        raise GazeError(f"`engine` must be local or ray, not {engine!r}")
    if engine == "local" and (address is not None or n_workers is not None):
        name = "address" if address is not None else "n_workers"
        raise GazeError(f"`{name}` needs `engine` ray")
    loaded = model if isinstance(model, Model) else load(model)
    sampling = loaded.sampling(n, *options, seed=seed, **given)
    assert isinstance(sampling.generator, DiffusionGenerator)
    plan = Plan(sampling.generator, replace(sampling.config, grid_px=grid_px), part_size)
    if engine == "local":
        return _written(plan, folder, None, progress, say, overwrite)
    with connected(address, device, n_workers) as cluster:
        return _written(plan, folder, cluster, progress, say, overwrite)


def _written(
    plan: Plan,
    folder: Path | str,
    cluster: Cluster | None,
    progress: Progress,
    say: Callable[[str], None],
    overwrite: bool,
) -> list[Path]:
    """Write what is missing of a plan; cluster: None writes in this process."""
    found = PartFolder(folder, plan)
    found.open(overwrite)
    if found.n_done:
        say(f"resuming {shown(folder)}: {found.n_done} of {plan.config.n} windows are there")
    progress(found.n_done)

    def on_part(part: Part) -> None:
        found.add(part)
        progress(found.n_done)

    try:
        if cluster is None:
            write_here(found, on_part, progress)
        elif found.missing:
            cluster.write(found, on_part, say)
    except KeyboardInterrupt:
        progress(found.n_done)  # a part at work is lost
        raise
    finally:
        found.clean()
    return found.finish()
