"""Refined models: weights moved away from what the model's own windows teach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Unpack

from gazediffusion.data.windows import Windows
from gazediffusion.model import Model, load
from gazediffusion.storage import working_copy
from gazediffusion.training.derived import DerivedSettings, with_given
from gazediffusion.training.refining import Refinement
from gazediffusion.training.refining import refine as refine_run


def refine(
    model: Model,
    windows: Windows | Sequence[Windows],
    folder: Path | str,
    *,
    weight: float | None = None,
    n_windows: int | None = None,
    steps: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    on_generation: Callable[[int, int], None] = lambda done, total: None,
    **settings: Unpack[DerivedSettings],
) -> Model:
    """Refine a model into a run folder, calibrate it and load it.

    windows: that the model was trained on. weight, n_windows, steps, batch_size, learning_rate:
    None is the default of `Refinement`. settings: those of `train` that are named in
    `DerivedSettings`. When `should_stop` returns True, what was done is saved and StoppedError
    raised; the same call resumes.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=2, minutes=0.2, rate_hz=250)
    >>> files = gd.write_simulation(config, "tracked", "csv")
    >>> windows = gd.prepare(gd.read("tracked"), gd.PrepareConfig(seconds=0.256))
    >>> model = gd.train(windows, "run", "joint-tiny", epochs=1)
    >>> gd.refine(model, windows, "refined", n_windows=4, steps=2, batch_size=2)
    Model(joint-tiny: 0.4 M parameters, 250 Hz, tasks: free_viewing)
    """
    chosen = with_given(
        Refinement(),
        weight=weight,
        n_windows=n_windows,
        n_steps=steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
    )
    with working_copy(folder, True) as (local, _):
        refine_run(model.run, windows, local, chosen, on_generation=on_generation, **settings)
    return load(folder, device=settings.get("device", "auto"))
