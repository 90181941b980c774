"""Windows: fixed-length pieces of clean gaze, the only thing a model ever sees.

At a stride of one second, windows of eight seconds overlap eight-fold. So the clean segments are
stored once and a window is a start index into them, cut when asked for. Every window knows its
participant, task, trial, screen and resolution. Segments on the tracker's grid (0.1 px) are stored
as 16-bit grid steps, others as float32. The file is safetensors and carries its whole provenance;
loading needs numpy and safetensors only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gazediffusion.errors import GazeError, suggestion
from gazediffusion.files import read_safetensors, written_whole
from gazediffusion.geometry import Screen

FORMAT = "gazediffusion-windows"
# Version 2 adds `run_screen`, for windows of several screens; files of one screen stay version 1.
FORMAT_VERSION = 2
VELOCITY_QUANTILE = 0.995  # paper: "the joint training-set 99.5th percentile"
CLIP = 1.2  # paper: "clipped to [-1.2, +1.2]"
Protocol = Literal["position", "velocity"]
Unit = Literal["normalized", "px", "deg"]
_INT16_MAX = np.iinfo(np.int16).max


@dataclass(frozen=True, eq=False, repr=False)
class Windows:
    """Windows of `length` samples at `rate_hz`, positions normalized to their screens.

    gaze: (2, sample) float32, all segments joined end to end, in [-1.2, 1.2].
    starts: (window,) int64, where each window begins in `gaze`; a window lies within one segment.
    protocol: how windows were cut, position (they overlap) or velocity (they do not).
    segment_starts: (segment,) int64, where each gap-free segment begins.
    segment_participant, segment_task, segment_screen: (segment,) indices into `participants`,
        `tasks` and `screens`.
    segment_trial: the trial each segment was cut from; segment_onset_ms: (segment,) its time there.
    validation: names of the held-out participants.
    grid_px: the grid that all coordinates lie on, None where there is none.
    segment_step: (segment, 2) normalized step in which a tracker reported positions, 0 where it is
        not coarser than the grid; None for recorded windows, where the gaze itself tells.
    velocity_scale: c_v in normalized units per second, None for the position protocol.
    """

    gaze: NDArray[np.float32]
    starts: NDArray[np.int64]
    length: int
    rate_hz: float
    screens: tuple[Screen, ...]
    protocol: Protocol
    participants: tuple[str, ...]
    tasks: tuple[str, ...]
    segment_starts: NDArray[np.int64]
    segment_participant: NDArray[np.int32]
    segment_task: NDArray[np.int32]
    segment_screen: NDArray[np.int32]
    segment_trial: tuple[str, ...]
    segment_onset_ms: NDArray[np.float64]
    validation: frozenset[str] = frozenset()
    grid_px: float | None = None
    segment_step: NDArray[np.float64] | None = None
    velocity_scale: float | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.starts)

    def __repr__(self) -> str:
        n_participants = len(np.unique(self.participant))
        tasks = [self.tasks[k] for k in np.unique(self.task)]
        return (
            f"Windows({len(self)} of {self.length / self.rate_hz:g} s at {self.rate_hz:g} Hz, "
            f"participants: {n_participants}, tasks: {', '.join(tasks) or 'none'})"
        )

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
    def segment_of_window(self) -> NDArray[np.int64]:
        """The segment each window was cut from, (window,)."""
        return np.searchsorted(self.segment_starts, self.starts, side="right") - 1

    @property
    def participant(self) -> NDArray[np.int32]:
        """Index into `participants` for each window, (window,)."""
        return self.segment_participant[self.segment_of_window]

    @property
    def task(self) -> NDArray[np.int32]:
        """Index into `tasks` for each window, (window,)."""
        return self.segment_task[self.segment_of_window]

    @property
    def screen_index(self) -> NDArray[np.int32]:
        """Index into `screens` for each window, (window,)."""
        return self.segment_screen[self.segment_of_window]

    @property
    def screen(self) -> Screen:
        """The screen of all these windows; windows of several screens are refused."""
        used = np.unique(self.screen_index) if len(self) else np.arange(len(self.screens))
        if len(used) != 1:
            listed = "; ".join(self.screens[k].in_words() for k in used)
            raise GazeError(
                f"these windows have {len(used)} screens ({listed})",
                remedy="choose the windows of one task with of_task()",
            )
        return self.screens[int(used[0])]

    @property
    def is_validation(self) -> NDArray[np.bool_]:
        """Whether each window belongs to a held-out participant, (window,)."""
        is_held_out = np.array([name in self.validation for name in self.participants], dtype=bool)
        return is_held_out[self.participant]

    @property
    def train(self) -> Windows:
        """The windows of the training participants."""
        return self.select(~self.is_validation)

    @property
    def held_out(self) -> Windows:
        """The windows of the held-out participants."""
        return self.select(self.is_validation)

    def of_task(self, name: str) -> Windows:
        """The windows of one task."""
        if name not in self.tasks:
            raise GazeError(f"no task {name!r}", remedy=suggestion(name, list(self.tasks)))
        return self.select(self.task == self.tasks.index(name))

    def select(self, chosen: NDArray[np.bool_] | NDArray[np.integer[Any]]) -> Windows:
        """The chosen windows over the same segments (no gaze is copied)."""
        return replace(self, starts=self.starts[chosen])

    @property
    def grid_of_window(self) -> NDArray[np.float32]:
        """One grid step in normalized units, (window, 2, 1); zeros where there is no grid."""
        return self._grid_of_screen[self.screen_index]

    @property
    def _grid_of_screen(self) -> NDArray[np.float32]:
        """One grid step in normalized units on each screen, (screen, 2, 1)."""
        grids = [2.0 * (self.grid_px or 0.0) / screen.size_px for screen in self.screens]
        return np.asarray(grids, dtype=np.float32)

    @property
    def _grid_of_sample(self) -> NDArray[np.float32]:
        """One grid step in normalized units for `gaze`: (2, 1), or (2, sample) of many screens."""
        if len(self.screens) == 1:
            return np.asarray(self._grid_of_screen[0])
        lengths = np.diff(np.append(self.segment_starts, self.gaze.shape[1]))
        return np.repeat(self._grid_of_screen[self.segment_screen, :, 0].T, lengths, axis=1)

    def dequantized(self, seed: int) -> Windows:
        """Gaze spread evenly over its grid cells, so that a smooth model can match it.

        During fixations a step is a few tenths of a pixel; on the grid, directions and turning
        angles pile up at multiples of 45 degrees. Each sample gets one draw, shared by all the
        windows that overlap it.
        """
        if self.grid_px is None:
            return self
        gaze = spread_over_grid(self.gaze, self._grid_of_sample, seed)
        return replace(self, gaze=gaze, grid_px=None)

    def to_numpy(self, unit: Unit = "normalized") -> NDArray[np.float32]:
        """Gaze (window, 2, time): normalized to [-1, 1], or in px or deg of each window's screen.

        >>> import numpy as np
        >>> from gazediffusion import Screen, Windows
        >>> screen = Screen(1280, 720, 40, 22.5, 45)
        >>> windows = Windows.from_array(np.zeros((3, 2, 500)), rate_hz=250, screen=screen)
        >>> windows.to_numpy("px")[0, :, 0]
        array([640., 360.], dtype=float32)
        """
        gaze = self.cut()
        if unit == "normalized":
            return gaze
        if unit not in ("px", "deg"):
            raise GazeError(f"unit must be normalized, px or deg, not {unit!r}")
        of_window = self.screen_index
        for number in np.unique(of_window):
            screen, chosen = self.screens[number], of_window == number
            pixels = screen.to_pixels(gaze[chosen])
            gaze[chosen] = pixels if unit == "px" else screen.to_degrees(pixels)
        return gaze

    @classmethod
    def from_array(
        cls,
        gaze: ArrayLike,
        rate_hz: float,
        screen: Screen | Sequence[Screen],
        participants: Sequence[str] | str = "synthetic",
        tasks: Sequence[str] | str = "synthetic",
        *,
        unit: Unit = "normalized",
        protocol: Protocol = "position",
        steps: NDArray[np.float64] | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> Windows:
        """Windows of an array (window, 2, time).

        screen, participants, tasks: one for all windows, or one for each.
        unit: of the array: normalized to [-1, 1], px (origin top left), or deg from the centre.
        steps: `segment_step`, where it is known, (window, 2).

        >>> import numpy as np
        >>> from gazediffusion import Screen, Windows
        >>> gaze = np.random.default_rng(0).normal(0, 0.1, (6, 2, 2000))
        >>> Windows.from_array(gaze, 250, Screen(1280, 720), participants=list("aabbcc"))
        Windows(6 of 8 s at 250 Hz, participants: 3, tasks: synthetic)
        """
        array = np.asarray(gaze, dtype=np.float32)
        if array.ndim != 3 or array.shape[1] != 2 or array.shape[2] < 2:
            raise GazeError(f"gaze must have the shape (window, 2, time), not {array.shape}")
        n, _, length = array.shape
        of_screen, screens = _numbered(screen, n, "screen", keeps_order=True)
        of_participant, names = _numbered(participants, n, "participants")
        of_task, task_names = _numbered(tasks, n, "tasks", keeps_order=True)
        if unit != "normalized":
            array = array.copy()
            for number, one in enumerate(screens):
                chosen = of_screen == number
                pixels = array[chosen] if unit == "px" else one.from_degrees(array[chosen])
                array[chosen] = one.to_normalized(pixels)
        starts = np.arange(n, dtype=np.int64) * length
        return cls(
            gaze=np.ascontiguousarray(array.transpose(1, 0, 2)).reshape(2, n * length),
            starts=starts,
            length=length,
            rate_hz=float(rate_hz),
            screens=screens,
            protocol=protocol,
            participants=names,
            tasks=task_names,
            segment_starts=starts,
            segment_participant=of_participant,
            segment_task=of_task,
            segment_screen=of_screen,
            segment_trial=tuple(str(k) for k in range(n)),
            segment_onset_ms=np.zeros(n),
            segment_step=steps,
            provenance=provenance or {},
        )

    def save(self, path: Path | str) -> None:
        """Write one safetensors file; the same windows give the same bytes."""
        from safetensors.numpy import save

        tensors: dict[str, NDArray[Any]] = {
            "gaze": self._stored_gaze(),
            "starts": self.starts,
            "run_starts": self.segment_starts,
            "run_participant": self.segment_participant,
            "run_task": self.segment_task,
            "run_onset_ms": self.segment_onset_ms,
        }
        is_plain = len(self.screens) == 1 and self.segment_step is None
        if not is_plain:
            tensors["run_screen"] = self.segment_screen
            steps = self.segment_step
            tensors["run_step"] = np.zeros((0, 2)) if steps is None else steps
        header = {
            "format": FORMAT,
            "format_version": 1 if is_plain else FORMAT_VERSION,
            "recipe": self.protocol,
            "length": self.length,
            "rate_hz": self.rate_hz,
            "screen": asdict(self.screens[0]),
            **({} if is_plain else {"screens": [asdict(screen) for screen in self.screens]}),
            "participants": list(self.participants),
            "tasks": list(self.tasks),
            "validation": sorted(self.validation),
            "grid_px": self.grid_px,
            "velocity_scale": self.velocity_scale,
            "run_trial": list(self.segment_trial),
            "data_sha256": _hash(tensors),
            "provenance": dict(self.provenance),
        }
        packed = save(tensors, metadata={"gazediffusion": json.dumps(header)})
        with written_whole(Path(path)) as temporary:
            temporary.write_bytes(packed)

    def _stored_gaze(self) -> NDArray[np.int16] | NDArray[np.float32]:
        if self.grid_px is None:
            return np.ascontiguousarray(self.gaze)
        steps = np.rint(self.gaze / self._grid_of_sample)
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
            n_segments = len(tensors["run_starts"])
            steps = tensors.get("run_step", np.zeros((0, 2)))
            windows = cls(
                gaze=tensors["gaze"],
                starts=tensors["starts"],
                length=header["length"],
                rate_hz=header["rate_hz"],
                screens=tuple(Screen(**one) for one in header.get("screens", [header["screen"]])),
                protocol=header["recipe"],
                participants=tuple(header["participants"]),
                tasks=tuple(header["tasks"]),
                segment_starts=tensors["run_starts"],
                segment_participant=tensors["run_participant"],
                segment_task=tensors["run_task"],
                segment_screen=tensors.get("run_screen", np.zeros(n_segments, dtype=np.int32)),
                segment_trial=tuple(header["run_trial"]),
                segment_onset_ms=tensors["run_onset_ms"],
                validation=frozenset(header["validation"]),
                grid_px=header["grid_px"],
                segment_step=steps if len(steps) else None,
                velocity_scale=header["velocity_scale"],
                provenance={**header["provenance"], "data_sha256": header["data_sha256"]},
            )
        except (KeyError, TypeError) as error:
            raise GazeError(f"the windows file lacks {error}", path=path) from error
        if tensors["gaze"].dtype != np.int16:
            return windows
        gaze = tensors["gaze"].astype(np.float32) * windows._grid_of_sample
        return replace(windows, gaze=gaze)


def _numbered(
    given: Any, n: int, name: str, keeps_order: bool = False
) -> tuple[NDArray[np.int32], tuple[Any, ...]]:
    """Each window's index (window,) into the different values of an argument, and these values."""
    if isinstance(given, str | Screen):
        return np.zeros(n, dtype=np.int32), (given,)
    values = list(given) if isinstance(given[:1], Sequence) else given.tolist()
    if name != "screen":
        values = [str(value) for value in values]
    if len(values) != n:
        raise GazeError(f"{name} has {len(values)} entries for {n} windows")
    different = tuple(dict.fromkeys(values)) if keeps_order else tuple(sorted(set(values)))
    number = {value: k for k, value in enumerate(different)}
    return np.array([number[value] for value in values], dtype=np.int32), different


def spread_over_grid(
    gaze: NDArray[np.float32], grid: NDArray[np.float32], seed: int
) -> NDArray[np.float32]:
    """Gaze (..., 2, time) moved evenly within grid cells; `grid` broadcasts against it."""
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
