"""Settings of training, as the functions of a model take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

from gazediffusion.jobs import Show
from gazediffusion.training.training import Epoch


class TrainingSettings(TypedDict, total=False):
    """How a model is trained; see `training.training.train`.

    epochs, batch_size, learning_rate: override the recipe's. progress, on_epoch and say: receive
    how far it is. should_stop: asks for a stop, after which the same call resumes.
    """

    seed: int
    epochs: int | None
    batch_size: int | None
    learning_rate: float | None
    device: str
    precision: str
    compiled: bool | None
    resume: bool
    save_every_s: float
    progress: Show
    on_epoch: Callable[[Epoch], None]
    should_stop: Callable[[], bool]
    say: Callable[[str], None]
