"""Distilled models: windows in a few evaluations, by a student of a trained model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from gazediffusion.data.windows import Windows
from gazediffusion.model import Model, load
from gazediffusion.storage import working_copy
from gazediffusion.training.distilling import distill as distill_run
from gazediffusion.training.student import Distillation


def distill(
    model: Model,
    windows: Windows | Sequence[Windows],
    folder: Path | str,
    *,
    steps: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    seed: int = 0,
    device: str = "auto",
    precision: str = "auto",
    compiled: bool | None = None,
    save_every_s: float = 60.0,
    on_step: Callable[[int, int], None] = lambda done, total: None,
    on_calibration: Callable[[float, int], None] = lambda done, total: None,
    should_stop: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda line: None,
) -> Model:
    """Distill a model into a run folder, calibrate the student and load it.

    windows: that the model was trained on, or others of its tasks. steps, batch_size (windows at
    each level), learning_rate: None is the default of `Distillation`. When `should_stop` returns
    True, what was done is saved and StoppedError raised; the same call resumes.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=2, minutes=0.2, rate_hz=250)
    >>> files = gd.write_simulation(config, "tracked", "csv")
    >>> windows = gd.prepare(gd.read("tracked"), gd.PrepareConfig(seconds=0.256))
    >>> teacher = gd.train(windows, "teacher", "joint-tiny", epochs=1)
    >>> gd.distill(teacher, windows, "student", steps=2, batch_size=2)
    Model(distilled: 0.4 M parameters, 250 Hz, tasks: free_viewing)
    """
    usual = Distillation()
    settings = Distillation(
        n_steps=usual.n_steps if steps is None else steps,
        group=usual.group if batch_size is None else batch_size,
        learning_rate=usual.learning_rate if learning_rate is None else learning_rate,
    )
    with working_copy(folder, True) as (local, _):
        distill_run(
            model.run,
            windows,
            local,
            settings,
            seed=seed,
            device=device,
            precision=precision,
            compiled=compiled,
            save_every_s=save_every_s,
            on_step=on_step,
            on_calibration=on_calibration,
            should_stop=should_stop,
            say=say,
        )
    return load(folder, device=device)
