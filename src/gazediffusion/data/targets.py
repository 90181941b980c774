"""Targets: when a dot on the screen jumps where, given for generation or beside recordings."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.geometry import Origin, Screen, Unit
from gazediffusion.storage import fetched, origin_of, sha256_of

if TYPE_CHECKING:
    from gazediffusion.data.readers.positions import Positions


@dataclass(frozen=True, eq=False)
class Targets:
    """Where a target is: from time_ms[k] on at x[k], y[k].

    time_ms: (jump,) float64, increasing. x, y: (jump,) float32, normalized to the screen.

    >>> import numpy as np
    >>> x, y = np.array([-0.5, 0.5], dtype=np.float32), np.zeros(2, dtype=np.float32)
    >>> Targets("a jump after a second", np.array([0.0, 1000.0]), x, y).time_ms.tolist()
    [0.0, 1000.0]
    """

    name: str
    time_ms: NDArray[np.float64]
    x: NDArray[np.float32]
    y: NDArray[np.float32]


def read_targets(
    path: Path | str,
    screen: Screen,
    *,
    unit: Unit | None = None,
    origin: Origin | None = None,
) -> list[Targets]:
    """Targets in a table with the columns time, x and y; several by participant, trial or id.

    unit, origin: of x and y where the column names state none, as for recordings.

    >>> import tempfile
    >>> from gazediffusion import Screen, read_targets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "dots.csv"
    ...     _ = path.write_text("t_ms,x_px,y_px\\n0,640,360\\n1000,960,180\\n")
    ...     (targets,) = read_targets(path, Screen(1280, 720))
    >>> targets.name, targets.time_ms.tolist(), targets.x.tolist(), targets.y.tolist()
    ('dots', [0.0, 1000.0], [0.0, 0.5], [0.0, -0.5])
    """
    found = []
    for jumps in _read_jumps(Path(path), unit, origin):
        x, y = jumps.on(screen)
        found.append(Targets(jumps.name, _times_ms(jumps), x, y))
    return found


class RecordedTargets:
    """The targets of recordings, in a table with the columns participant, trial, time, x and y.

    A column of identity that the table lacks holds for all recordings: without a trial, for every
    trial of the participant.
    """

    def __init__(
        self, path: Path | str, unit: Unit | None = None, origin: Origin | None = None
    ) -> None:
        self.path = fetched(path)
        self.jumps = list(_read_jumps(self.path, unit, origin))
        self._given = self.path, unit, origin

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process reads the table itself.
        return RecordedTargets, self._given

    def number_of(self, recording: Recording) -> int | None:
        """Which targets are those of a recording; None where the table has none for it."""
        for number, jumps in enumerate(self.jumps):
            if _is_of(jumps, recording):
                return number
        return None

    def given_to(self, recording: Recording, number: int) -> Recording:
        """The recording with these targets."""
        return replace(recording, targets_px=_held(self.jumps[number], recording))

    def described(self, recorded: Collection[int]) -> dict[str, Any]:
        """The file, and how much of it belongs to no recording; all of it is an error.

        recorded: the numbers of targets that belong to a recording.
        """
        others = [one for k, one in enumerate(self.jumps) if k not in recorded]
        n_rows = sum(len(_times_ms(one)) for one in others)
        if not recorded:
            first = ", ".join(f"{word} {cell}" for word, cell in others[0].identity.items())
            raise GazeError(
                f"{n_rows} rows of targets, and none is of a recording; the first is of {first}",
                path=self.path,
                remedy="name participants and trials as the recordings do",
            )
        return {
            "name": self.path.name,
            **origin_of(self.path),
            "sha256": sha256_of(self.path),
            "recordings_without_gaze": len(others),
            "rows_without_gaze": n_rows,
        }


def _read_jumps(path: Path, unit: Unit | None, origin: Origin | None) -> list[Positions]:
    from gazediffusion.data.readers.positions import read_positions

    found = read_positions(path, unit, origin, requires=("onset",))
    for jumps in found:
        times_ms = _times_ms(jumps)
        is_bad = ~(np.diff(times_ms, prepend=-np.inf) > 0) | np.isinf(times_ms)
        if is_bad.any():
            row = int(np.argmax(is_bad))
            raise jumps.error(
                "the time is missing, infinite, or not after the one before",
                row,
                "sort by time, and tell several targets apart by a column named trial",
            )
    return found


def _times_ms(jumps: Positions) -> NDArray[np.float64]:
    assert jumps.onset_ms is not None  # required on reading
    return jumps.onset_ms


def _is_of(jumps: Positions, recording: Recording) -> bool:
    """Whether all that the table states agrees; a recording's trial may also begin with more."""
    known = {"participant": recording.participant, "task": recording.task}
    is_same = all(jumps.identity.get(word, own) == own for word, own in known.items())
    return is_same and f"-{recording.trial}".endswith(f"-{jumps.trial}" if jumps.trial else "")


def _held(jumps: Positions, recording: Recording) -> NDArray[np.float32]:
    """Where the target is at each sample, (2, time) in pixels; NaN before the first jump."""
    screen = recording.screen
    normalized = jumps.on(screen)
    assert screen is not None
    last = np.searchsorted(_times_ms(jumps), recording.time_ms, side="right")
    places = np.column_stack([np.full(2, np.nan, np.float32), screen.to_pixels(normalized)])
    return places[:, last]
