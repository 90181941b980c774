"""Windows and recordings as torch datasets.

A module of its own, so that worker processes can unpickle them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from gazediffusion.data.adapters.torch import chosen_eye
from gazediffusion.data.recordings import Recording
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError


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
        labels = {}
        if self.windows.labels is not None:
            classes = self.windows.cut_labels(np.array([number]))[0]
            labels["labels"] = torch.from_numpy(classes.astype(np.int64))
        return {
            **labels,
            "gaze": torch.from_numpy(self.windows[number].copy()),
            "task": self._task[number],
            "participant": self._participant[number],
            "window": number,
        }


class RecordingsDataset(Dataset[dict[str, Any]]):
    """One dict per recording: gaze (2, time) float32 normalized to its screen, NaN where lost.

    Of the right eye, or of the only one. time_ms (time,) float64; participant, task and trial as
    text; with labels also labels (time,) int64, 0 where there is none.
    """

    def __init__(self, recordings: Sequence[Recording]) -> None:
        for one in recordings:
            if one.screen is None:
                raise GazeError(
                    "normalized gaze needs the screen", path=one.path, remedy="give `screen`"
                )
        self.recordings = list(recordings)

    def __len__(self) -> int:
        return len(self.recordings)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Recording `index`; negative indices count from the end."""
        one = self.recordings[index]
        assert one.screen is not None
        gaze = one.screen.to_normalized(one.gaze_px[chosen_eye(one)])
        found = {
            "gaze": torch.from_numpy(np.array(gaze, dtype=np.float32)),
            "time_ms": torch.from_numpy(one.time_ms.copy()),
            "participant": one.participant,
            "task": one.task,
            "trial": one.trial,
        }
        if one.labels is not None:
            found["labels"] = torch.from_numpy(one.labels.astype(np.int64))
        return found
