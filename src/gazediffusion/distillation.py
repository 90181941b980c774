"""Distilled networks: windows in a few evaluations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from gazediffusion.data.windows import Windows
from gazediffusion.jobs import Show
from gazediffusion.model import Model, load
from gazediffusion.storage import working_copy
from gazediffusion.training.distillation import Distillation
from gazediffusion.training.distillation import distill as distill_run


class DistillationSettings(TypedDict, total=False):
    """Settings of `train` that `distill` takes too."""

    seed: int
    device: str
    precision: str
    compiled: bool | None
    save_every_s: float
    progress: Show
    should_stop: Callable[[], bool]
    say: Callable[[str], None]


def distill(
    model: Model,
    windows: Windows | Sequence[Windows],
    folder: Path | str,
    *,
    steps: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    **settings: Unpack[DistillationSettings],
) -> Model:
    """Add a distilled network to a model: its windows take six evaluations, or five.

    folder: the model's own run folder, or a new one that the model is copied to. windows: that the
    model was trained on, or others of its tasks. steps, batch_size (windows at each level),
    learning_rate: None is the default of `Distillation`. settings: those of `train` that
    `DistillationSettings` names. When `should_stop` returns True, what was done is saved and
    StoppedError raised; the same call resumes.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=2, minutes=0.2, rate_hz=250)
    >>> files = gd.write_simulation(config, "tracked", "csv")
    >>> windows = gd.prepare(gd.read("tracked"), gd.PrepareConfig(seconds=0.256))
    >>> model = gd.train(windows, "run", "joint-tiny", epochs=1)
    >>> model = gd.distill(model, windows, "run", steps=2, batch_size=2)
    >>> model.sampler().settings["sampler"]
    'distilled'
    """
    own: dict[str, Any] = {"n_steps": steps, "group": batch_size, "learning_rate": learning_rate}
    chosen = replace(Distillation(), **{k: v for k, v in own.items() if v is not None})
    with working_copy(folder, True) as local:
        distill_run(model.run, windows, local, chosen, **settings)
    return load(folder, device=settings.get("device", "auto"))
