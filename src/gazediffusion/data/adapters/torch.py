"""Recordings as a torch dataset, and windows of tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.adapters.required import required
from gazediffusion.data.recordings import Eye, Recording
from gazediffusion.errors import GazeError

if TYPE_CHECKING:
    import torch
    from torch.utils.data import Dataset

    from gazediffusion.data.units import Unit
    from gazediffusion.data.windows import Windows
    from gazediffusion.geometry import Screen

_PREFERRED: tuple[Eye, ...] = ("right", "left", "cyclopean")


def to_torch(recordings: Iterable[Recording]) -> Dataset[dict[str, Any]]:
    """A torch dataset of one dict per recording; see `torch_dataset.RecordingsDataset`.

    Recordings differ in length: collate them yourself, or cut windows with `prepare`.

    >>> import numpy as np
    >>> import gazediffusion as gd
    >>> windows = gd.Windows.from_array(np.zeros((2, 2, 500)), 250, gd.Screen(1280, 720))
    >>> dataset = windows.to_recordings().to_torch()
    >>> len(dataset), dataset[0]["gaze"].shape, dataset[0]["task"]
    (2, torch.Size([2, 500]), 'synthetic')
    """
    required("torch")
    from gazediffusion.data.torch_dataset import RecordingsDataset

    return RecordingsDataset(list(recordings))


def chosen_eye(recording: Recording) -> Eye:
    """The right eye, or the only one."""
    return next(eye for eye in _PREFERRED if eye in recording.gaze_px)


def from_torch(
    gaze: torch.Tensor | Dataset[dict[str, Any]] | Iterable[dict[str, Any]],
    rate_hz: float,
    screen: Screen | Sequence[Screen],
    participants: Sequence[str] | str = "synthetic",
    tasks: Sequence[str] | str = "synthetic",
    *,
    unit: Unit = "normalized",
    labels: torch.Tensor | None = None,
) -> Windows:
    """Windows of a tensor (window, 2, time), or of the dicts that a dataset or its loader gives.

    A tensor may be on any device, of any float type and need gradients. Dicts are those of
    `Windows.to_torch`, single or in batches; `participants` and `tasks` are then the names that
    their numbers stand for. The other arguments are those of `Windows.from_array`.

    >>> import torch
    >>> import gazediffusion as gd
    >>> gd.from_torch(torch.zeros(3, 2, 500, dtype=torch.bfloat16), 250, gd.Screen(1280, 720))
    Windows(3 of 2 s at 250 Hz, participants: 1, tasks: synthetic)
    """
    torch = required("torch")
    from gazediffusion.data.windows import Windows

    if not isinstance(gaze, torch.Tensor):
        batches = [_batch(one) for one in _items(gaze)]
        if not batches:
            raise GazeError("there are no windows")
        joined = {key: np.concatenate([one[key] for one in batches]) for key in batches[0]}
        if not isinstance(tasks, str):
            tasks = [tasks[number] for number in joined["task"]]
        if not isinstance(participants, str):
            participants = [participants[number] for number in joined["participant"]]
        array, classes = joined["gaze"], joined.get("labels")
    else:
        array, classes = _plain(gaze), None if labels is None else _plain(labels)
    return Windows.from_array(
        array, rate_hz, screen, participants, tasks, unit=unit, labels=classes
    )


def _items(given: Any) -> Iterable[dict[str, Any]]:
    """A dataset's dicts by index, which ends at its length; anything else as it is."""
    if hasattr(given, "__getitem__") and hasattr(given, "__len__"):
        return (given[number] for number in range(len(given)))
    return given  # type: ignore[no-any-return]


def _batch(one: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """The arrays of a dict, with a first axis of windows."""
    known: dict[str, Any] = {
        key: one[key] for key in ("gaze", "labels", "task", "participant") if key in one
    }
    arrays = {key: _plain(value) for key, value in known.items()}
    if arrays["gaze"].ndim == 2:
        return {key: array[None] for key, array in arrays.items()}
    return arrays


def _plain(value: Any) -> NDArray[Any]:
    """A tensor as an array on the CPU; half precision as float32."""
    if not hasattr(value, "detach"):
        return np.asarray(value)
    tensor = value.detach().cpu()
    return np.asarray((tensor.float() if tensor.is_floating_point() else tensor).numpy())
