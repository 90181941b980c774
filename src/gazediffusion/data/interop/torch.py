"""Windows as a torch dataset, in a module of its own, so that worker processes can unpickle it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from gazediffusion.data.windows import Windows


class WindowsDataset(Dataset[dict[str, Any]]):
    """One dict per window: gaze (2, time) float32 normalized; task, participant, window as int.

    Windows with labels: also labels (time,) int64, the event class, 0 where there is none.
    task and participant are indices into `tasks` and `participants` of the windows.
    """

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self._task = windows.task.tolist()
        self._participant = windows.participant.tolist()

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Window `index`; negative indices count from the end."""
        number = range(len(self))[index]
        found = {
            "gaze": torch.from_numpy(self.windows[number].copy()),
            "task": self._task[number],
            "participant": self._participant[number],
            "window": number,
        }
        if self.windows.labels is not None:
            classes = self.windows.cut_labels(np.array([number]))[0]
            found["labels"] = torch.from_numpy(classes.astype(np.int64))
        return found
