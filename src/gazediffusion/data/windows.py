"""Windows: fixed-length pieces of clean gaze, the only thing a model ever sees.

At a stride of one second, windows of eight overlap eight-fold. So the clean runs are stored once
and a window is a start index into them, cut when asked for. Runs on the tracker's grid (0.1 px)
are stored as 16-bit grid steps, others as float32. The file is safetensors and carries its whole
provenance; loading needs numpy and safetensors only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.errors import GazeError, suggestion
from gazediffusion.files import read_safetensors, written_whole
from gazediffusion.geometry import Screen

FORMAT = "gazediffusion-windows"
FORMAT_VERSION = 1
VELOCITY_QUANTILE = 0.995  # paper: "the joint training-set 99.5th percentile"
CLIP = 1.2  # paper: "clipped to [-1.2, +1.2]"
_INT16_MAX = np.iinfo(np.int16).max


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of `length` samples at `rate_hz`, positions normalized to the screen.

    gaze: (2, sample) float32, all runs joined end to end, in [-1.2, 1.2].
    starts: (window,) int64, where each window begins in `gaze`; a window lies within one run.
    run_starts: (run,) int64, where each run begins.
    run_participant, run_task: (run,) indices into `participants` and `tasks`.
    run_trial: the trial each run was cut from; run_onset_ms: (run,) its time in that trial.
    validation: names of the participants kept apart.
    grid_px: the tracker's coordinate grid, None where there is none.
    velocity_scale: c_v in normalized units per second, None for other recipes.
    """

    gaze: NDArray[np.float32]
    starts: NDArray[np.int64]
    length: int
    rate_hz: float
    screen: Screen
    recipe: str
    participants: tuple[str, ...]
    tasks: tuple[str, ...]
    run_starts: NDArray[np.int64]
    run_participant: NDArray[np.int32]
    run_task: NDArray[np.int32]
    run_trial: tuple[str, ...]
    run_onset_ms: NDArray[np.float64]
    validation: frozenset[str] = frozenset()
    grid_px: float | None = None
    velocity_scale: float | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> NDArray[np.float32]:
        """Window `index`, (2, time), a view."""
        start = int(self.starts[index])
        return self.gaze[:, start : start + self.length]

    def cut(self, indices: NDArray[np.integer[Any]] | slice = slice(None)) -> NDArray[np.float32]:
        """Many windows at once: (window, 2, time) float32, a copy."""
        if len(self) == 0:
            return np.empty((0, 2, self.length), dtype=np.float32)
        views = np.lib.stride_tricks.sliding_window_view(self.gaze, self.length, axis=1)
        return np.ascontiguousarray(views[:, self.starts[indices]].transpose(1, 0, 2))

    @property
    def run_of_window(self) -> NDArray[np.int64]:
        """The run each window was cut from, (window,)."""
        return np.searchsorted(self.run_starts, self.starts, side="right") - 1

    @property
    def participant(self) -> NDArray[np.int32]:
        """Index into `participants` for each window, (window,)."""
        return self.run_participant[self.run_of_window]

    @property
    def task(self) -> NDArray[np.int32]:
        """Index into `tasks` for each window, (window,)."""
        return self.run_task[self.run_of_window]

    @property
    def is_validation(self) -> NDArray[np.bool_]:
        """Whether each window belongs to a participant kept for validation, (window,)."""
        kept_apart = np.array([name in self.validation for name in self.participants], dtype=bool)
        return kept_apart[self.participant]

    @property
    def train(self) -> Windows:
        """The windows of the training participants."""
        return self.select(~self.is_validation)

    @property
    def held_out(self) -> Windows:
        """The windows of the participants kept for validation."""
        return self.select(self.is_validation)

    def of_task(self, name: str) -> Windows:
        """The windows of one task."""
        if name not in self.tasks:
            raise GazeError(f"no task {name!r}", remedy=suggestion(name, list(self.tasks)))
        return self.select(self.task == self.tasks.index(name))

    def select(self, chosen: NDArray[np.bool_] | NDArray[np.integer[Any]]) -> Windows:
        """The chosen windows over the same runs (no gaze is copied)."""
        return replace(self, starts=self.starts[chosen])

    @property
    def grid_normalized(self) -> NDArray[np.float32]:
        """One grid step in normalized units, (2, 1); zeros where there is no grid."""
        return np.asarray(2.0 * (self.grid_px or 0.0) / self.screen.size_px, dtype=np.float32)

    def dequantized(self, seed: int) -> Windows:
        """Gaze spread evenly over its grid cells, so that a smooth model can match it.

        During fixations a step is a few tenths of a pixel; on the grid, directions and turning
        angles pile up at multiples of 45 degrees. Each sample gets one draw, shared by all the
        windows that overlap it.
        """
        if self.grid_px is None:
            return self
        gaze = spread_over_grid(self.gaze, self.grid_normalized, seed)
        return replace(self, gaze=gaze, grid_px=None)

    @classmethod
    def of_array(
        cls,
        gaze: NDArray[np.float32],
        rate_hz: float,
        screen: Screen,
        recipe: str,
        task: str = "synthetic",
        provenance: Mapping[str, Any] | None = None,
    ) -> Windows:
        """Windows (window, 2, time) of one nameless participant, as a generator makes them."""
        n, _, length = gaze.shape
        starts = np.arange(n, dtype=np.int64) * length
        return cls(
            gaze=np.ascontiguousarray(gaze.transpose(1, 0, 2)).reshape(2, n * length),
            starts=starts,
            length=length,
            rate_hz=rate_hz,
            screen=screen,
            recipe=recipe,
            participants=("synthetic",),
            tasks=(task,),
            run_starts=starts,
            run_participant=np.zeros(n, dtype=np.int32),
            run_task=np.zeros(n, dtype=np.int32),
            run_trial=tuple(str(k) for k in range(n)),
            run_onset_ms=np.zeros(n),
            provenance=provenance or {},
        )

    def save(self, path: Path | str) -> None:
        """Write one safetensors file; the same windows give the same bytes."""
        from safetensors.numpy import save

        tensors: dict[str, NDArray[Any]] = {
            "gaze": self._stored_gaze(),
            "starts": self.starts,
            "run_starts": self.run_starts,
            "run_participant": self.run_participant,
            "run_task": self.run_task,
            "run_onset_ms": self.run_onset_ms,
        }
        header = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "recipe": self.recipe,
            "length": self.length,
            "rate_hz": self.rate_hz,
            "screen": asdict(self.screen),
            "participants": list(self.participants),
            "tasks": list(self.tasks),
            "validation": sorted(self.validation),
            "grid_px": self.grid_px,
            "velocity_scale": self.velocity_scale,
            "run_trial": list(self.run_trial),
            "data_sha256": _hash(tensors),
            "provenance": dict(self.provenance),
        }
        packed = save(tensors, metadata={"gazediffusion": json.dumps(header)})
        with written_whole(Path(path)) as temporary:
            temporary.write_bytes(packed)

    def _stored_gaze(self) -> NDArray[np.int16] | NDArray[np.float32]:
        if self.grid_px is None:
            return np.ascontiguousarray(self.gaze)
        steps = np.rint(self.gaze / self.grid_normalized)
        if np.abs(steps).max(initial=0) > _INT16_MAX:
            return np.ascontiguousarray(self.gaze)
        return np.asarray(steps, dtype=np.int16)

    @classmethod
    def load(cls, path: Path | str) -> Windows:
        """Read a windows file; anything else is refused in one line."""
        path = Path(path)
        if not path.is_file():
            raise GazeError("there is no such file", path=path)
        tensors, header = read_safetensors(
            path,
            "np",
            "this is no safetensors file, or it is cut short",
            "make it again with gazediffusion prepare",
        )
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise GazeError(
                "this is no windows file", path=path, remedy="make one with gazediffusion prepare"
            )
        if header["format_version"] > FORMAT_VERSION:
            raise GazeError(
                f"written by a newer gazediffusion (format {header['format_version']})",
                path=path,
                remedy="update the package",
            )
        try:
            if _hash(tensors) != header["data_sha256"]:
                raise GazeError("the content does not match its checksum", path=path)
            windows = cls(
                gaze=np.empty((2, 0), dtype=np.float32),
                starts=tensors["starts"],
                length=header["length"],
                rate_hz=header["rate_hz"],
                screen=Screen(**header["screen"]),
                recipe=header["recipe"],
                participants=tuple(header["participants"]),
                tasks=tuple(header["tasks"]),
                run_starts=tensors["run_starts"],
                run_participant=tensors["run_participant"],
                run_task=tensors["run_task"],
                run_trial=tuple(header["run_trial"]),
                run_onset_ms=tensors["run_onset_ms"],
                validation=frozenset(header["validation"]),
                grid_px=header["grid_px"],
                velocity_scale=header["velocity_scale"],
                provenance={**header["provenance"], "data_sha256": header["data_sha256"]},
            )
            gaze = tensors["gaze"]
        except (KeyError, TypeError) as error:
            raise GazeError(f"the windows file lacks {error}", path=path) from error
        if gaze.dtype == np.int16:
            gaze = gaze.astype(np.float32) * windows.grid_normalized
        return replace(windows, gaze=gaze)


def spread_over_grid(
    gaze: NDArray[np.float32], grid: NDArray[np.float32], seed: int
) -> NDArray[np.float32]:
    """Gaze (..., 2, time) moved evenly within grid cells of the size grid (2, 1)."""
    spread = np.random.default_rng(seed).random(gaze.shape, dtype=np.float32) - np.float32(0.5)
    return np.asarray(np.clip(gaze + spread * grid, -CLIP, CLIP), dtype=np.float32)


def fit_velocity_scale(windows: Windows) -> float:
    """c_v in normalized units per second, from the training participants' windows alone."""
    training = windows.train
    if len(training) == 0:
        raise GazeError("no training windows to take the velocity scale from")
    gaze = training.cut()
    velocity = gaze * 0
    velocity[..., 1:] = (gaze[..., 1:] - gaze[..., :-1]) * windows.rate_hz
    scale = float(np.quantile(np.abs(velocity).ravel(), VELOCITY_QUANTILE))
    if not scale > 0:
        raise GazeError("the training gaze does not move, so its velocity has no scale")
    return scale


def _hash(tensors: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 over names, shapes and bytes of the tensors, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = np.ascontiguousarray(tensors[name])
        digest.update(f"{name}{tensor.dtype.str}{tensor.shape}".encode())
        digest.update(tensor.data)
    return digest.hexdigest()
