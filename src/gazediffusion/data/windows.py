"""Windows: fixed-length pieces of clean gaze, the input and the output of every model.

At a stride of one second, windows of eight seconds overlap eight-fold. So the clean segments are
stored once and a window is a start index into them, cut on demand. Every window has its
participant, task, trial, screen and resolution. Loading needs numpy and safetensors only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gazediffusion.data.interop import frames, mne, pymovements, required
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.screen import Floats, Screen

if TYPE_CHECKING:
    from torch.utils.data import Dataset

    from gazediffusion.data.events import Event
    from gazediffusion.data.reading import Recordings

Unit = Literal["normalized", "px", "deg"]
Convert = Callable[[Screen, Any], Any]
# Unit -> from normalized to it, and back.
_CONVERSIONS: dict[str, tuple[Convert, Convert]] = {
    "normalized": (lambda screen, gaze: gaze, lambda screen, gaze: gaze),
    "px": (Screen.to_pixels, Screen.to_normalized),
    "deg": (
        lambda screen, gaze: screen.to_degrees(screen.to_pixels(gaze)),
        lambda screen, gaze: screen.to_normalized(screen.from_degrees(gaze)),
    ),
}


def conversions_of(unit: str) -> tuple[Convert, Convert]:
    """How normalized gaze becomes gaze in a unit, and how that becomes normalized again."""
    if unit not in _CONVERSIONS:
        raise GazeError(f"unit must be normalized, px or deg, not {unit!r}")
    return _CONVERSIONS[unit]


def by_screen(
    gaze: Floats, screens: Sequence[Screen], of_window: NDArray[np.int32], convert: Convert
) -> NDArray[np.float32]:
    """Gaze (window, 2, time) through `convert(screen, gaze)` of each window's own screen."""
    converted = np.empty_like(gaze)
    for number in np.unique(of_window):
        chosen = of_window == number
        converted[chosen] = convert(screens[number], gaze[chosen])
    return np.asarray(converted, dtype=np.float32)


def evenly_spaced(n: int, at_most: int) -> NDArray[np.int64]:
    """At most this many indices out of n, evenly spaced from the first to the last.

    >>> evenly_spaced(10, 4).tolist(), evenly_spaced(3, 100).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    return np.unique(np.linspace(0, n - 1, min(n, at_most)).round().astype(np.int64))


def alone(windows: Windows) -> Windows:
    """The same windows over their own segments, without the gaze of others (copied)."""
    ends = np.append(windows.segment_starts[1:], windows.gaze.shape[1])
    of_window = windows.segment_of_window
    kept, number = np.unique(of_window, return_inverse=True)
    lengths = ends[kept] - windows.segment_starts[kept]
    spans = zip(windows.segment_starts[kept].tolist(), ends[kept].tolist(), strict=True)
    samples = np.concatenate([np.arange(0), *(np.arange(a, b) for a, b in spans)])
    starts = np.cumsum(lengths) - lengths
    step = windows.segment_step
    return replace(
        windows,
        gaze=windows.gaze[:, samples],
        starts=starts[number] + windows.starts - windows.segment_starts[of_window],
        segment_starts=starts,
        segment_participant=windows.segment_participant[kept],
        segment_task=windows.segment_task[kept],
        segment_screen=windows.segment_screen[kept],
        segment_trial=tuple(windows.segment_trial[k] for k in kept),
        segment_onset_ms=windows.segment_onset_ms[kept],
        segment_step=None if step is None else step[kept],
        labels=None if windows.labels is None else windows.labels[samples],
        targets=None if windows.targets is None else windows.targets[:, samples],
    )


def not_overlapping(starts: NDArray[np.int64], length: int) -> NDArray[np.bool_]:
    """Which windows of this many samples are taken, from the first start on, without overlap.

    >>> not_overlapping(np.array([500, 0, 2000, 2600]), 2000).tolist()
    [False, True, True, False]
    """
    taken, end = np.zeros(len(starts), dtype=bool), -1
    for k in np.argsort(starts, kind="stable").tolist():
        if starts[k] >= end:
            taken[k], end = True, int(starts[k]) + length
    return taken


VELOCITY_QUANTILE = 0.995  # paper: "the joint training-set 99.5th percentile"
CLIP = 1.2  # paper: "clipped to [-1.2, +1.2]"
Protocol = Literal["position", "velocity"]
Indices = NDArray[np.integer[Any]] | slice


@dataclass(frozen=True, eq=False, repr=False)
class Windows:
    """Windows of `length` samples at `rate_hz`, positions normalized to their screens.

    gaze: (2, sample) float32, all segments joined end to end, in [-1.2, 1.2]. NaN where generated
        windows with losses have lost the eye; beside losses gaze may lie further out.
    starts: (window,) int64, where each window begins in `gaze`; a window lies within one segment.
    protocol: how windows were cut, position (they overlap) or velocity (they do not).
    segment_starts: (segment,) int64, where each gap-free segment begins.
    segment_participant, segment_task, segment_screen: (segment,) indices into `participants`,
        `tasks` and `screens`.
    segment_trial: the trial each segment was cut from; segment_onset_ms: (segment,) its time there,
        by the recording's clock; segment_elapsed_ms: (segment,) since the recording's first sample,
        None where that is not known.
    validation: names of the held-out participants.
    grid_px: the grid that all coordinates lie on, None where there is none.
    segment_step: (segment, 2) normalized step in which a tracker reported positions, 0 where it is
        not coarser than the grid; None for recorded windows, where the gaze itself shows it.
    velocity_scale: c_v in normalized units per second, None for the position protocol.
    labels: (sample,) uint8, the event class of each sample of `gaze` (`recordings.EVENT_CLASSES`),
        0 where it has none; None where nothing is labelled.
    targets: (2, sample) float32, where the target on the screen was, normalized, NaN where there
        was none; None where nothing is known of targets.
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
    labels: NDArray[np.uint8] | None = None
    targets: NDArray[np.float32] | None = None
    segment_elapsed_ms: NDArray[np.float64] | None = None

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

    def cut(self, indices: Indices = slice(None)) -> NDArray[np.float32]:
        """Many windows at once: (window, 2, time) float32, a copy."""
        return self._cut(self.gaze, indices)

    def cut_labels(self, indices: Indices = slice(None)) -> NDArray[np.uint8]:
        """Event classes of many windows, (window, time) uint8, 0 where there is no label."""
        labels = np.broadcast_to(np.uint8(0), self.gaze[0].shape)
        return self._cut((labels if self.labels is None else self.labels)[None], indices)[:, 0]

    def cut_targets(self, indices: Indices = slice(None)) -> NDArray[np.float32]:
        """Targets of many windows, (window, 2, time) float32, NaN where there is none."""
        targets = np.broadcast_to(np.float32(np.nan), self.gaze.shape)
        return self._cut(targets if self.targets is None else self.targets, indices)

    def _cut(self, values: NDArray[Any], indices: Indices) -> NDArray[Any]:
        """Windows of values (channel, sample): (window, channel, time), a copy."""
        if len(self) == 0:
            return np.empty((0, len(values), self.length), dtype=values.dtype)
        views = np.lib.stride_tricks.sliding_window_view(values, self.length, axis=1)
        return np.ascontiguousarray(views[:, self.starts[indices]].transpose(1, 0, 2))

    @property
    def is_lost(self) -> NDArray[np.bool_]:
        """Whether the eye is lost at each sample, (window, time); never in recorded windows."""
        return np.asarray(np.isnan(self.cut()).any(axis=1))

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
    def elapsed_s(self) -> NDArray[np.float64]:
        """How long its recording has lasted when each window begins, (window,); NaN if unknown."""
        of_window = self.segment_of_window
        if self.segment_elapsed_ms is None:
            return np.full(len(self), np.nan)
        within_s = (self.starts - self.segment_starts[of_window]) / self.rate_hz
        return np.asarray(self.segment_elapsed_ms[of_window] / 1000.0 + within_s)

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
            problem = f"these windows have {len(used)} screens ({listed})"
            raise GazeError(problem, remedy="choose the windows of one task with of_task()")
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
        """The chosen windows over the same segments (nothing is copied)."""
        return replace(self, starts=self.starts[chosen])

    def subsample(self, at_most: int) -> Windows:
        """At most n of the windows, evenly spaced."""
        return self.select(evenly_spaced(len(self), at_most))

    @property
    def grid_of_window(self) -> NDArray[np.float32]:
        """One grid step in normalized units, (window, 2, 1); zeros where there is no grid."""
        return self.grid_of_screen[self.screen_index]

    @property
    def grid_of_screen(self) -> NDArray[np.float32]:
        """One grid step in normalized units on each screen, (screen, 2, 1)."""
        grids = [2.0 * (self.grid_px or 0.0) / screen.size_px for screen in self.screens]
        return np.asarray(grids, dtype=np.float32)

    @property
    def grid_of_sample(self) -> NDArray[np.float32]:
        """One grid step in normalized units for `gaze`: (2, 1), or (2, sample) of many screens."""
        if len(self.screens) == 1:
            return np.asarray(self.grid_of_screen[0])
        lengths = np.diff(np.append(self.segment_starts, self.gaze.shape[1]))
        return np.repeat(self.grid_of_screen[self.segment_screen, :, 0].T, lengths, axis=1)

    @property
    def resolution_px(self) -> NDArray[np.float64]:
        """The tracker's step in x and y in pixels, (window, 2); 0 if not coarser than the grid."""
        from gazediffusion.data.resolution import recorded_steps

        sizes = np.array([screen.size_px[:, 0] for screen in self.screens])
        return np.asarray(recorded_steps(self) * sizes[self.screen_index] / 2.0)

    def dequantized(self, seed: int) -> Windows:
        """Gaze spread evenly over its grid cells, so that a smooth model can match it.

        During fixations a step is a few tenths of a pixel; on the grid, directions and turning
        angles pile up at multiples of 45 degrees. Each sample gets one draw, shared by all the
        windows that overlap it.
        """
        if self.grid_px is None:
            return self
        from gazediffusion.data.resolution import spread_over_grid

        gaze = spread_over_grid(self.gaze, self.grid_of_sample, seed)
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
        return self.on_screens(self.cut(), conversions_of(unit)[0])

    def to_pixels(self, grid_px: float | None = None) -> NDArray[np.float32]:
        """Gaze in pixels, (window, 2, time), rounded to a tracker's grid where there is one.

        >>> import numpy as np
        >>> from gazediffusion import Screen, Windows
        >>> windows = Windows.from_array(np.zeros((1, 2, 500)), 250, Screen(1280, 720))
        >>> windows.to_pixels()[0, :, 0].tolist()
        [640.0, 360.0]
        """
        pixels = self.to_numpy("px")
        if grid_px is None:
            return pixels
        return np.asarray(np.rint(pixels / grid_px) * grid_px, dtype=np.float32)

    def on_screens(self, gaze: Floats, convert: Convert) -> NDArray[np.float32]:
        """Gaze (window, 2, time) through `convert(screen, gaze)` of each window's own screen."""
        return by_screen(gaze, self.screens, self.screen_index, convert)

    @property
    def identity(self) -> dict[str, NDArray[Any]]:
        """Number, participant, task and trial of each window, (window,), by these words."""
        return {
            "window": np.arange(len(self)),
            "participant": np.array(self.participants, dtype=object)[self.participant],
            "task": np.array(self.tasks, dtype=object)[self.task],
            "trial": np.array(self.segment_trial, dtype=object)[self.segment_of_window],
        }

    def events(self, index: int, by_labels: bool = False) -> list[Event]:
        """Events of window `index`, in degrees of its screen: by threshold, or by its labels."""
        from gazediffusion.data.events import detect_events, labelled_events

        screen = self.screens[self.screen_index[index]]
        time_ms = np.arange(self.length, dtype=np.float64) * (1000.0 / self.rate_hz)
        pixels = np.asarray(screen.to_pixels(self[index]), dtype=np.float32)
        if not by_labels:
            return detect_events(pixels, time_ms, screen)
        labels = self.cut_labels(slice(index, index + 1))[0]
        return labelled_events(labels, pixels, time_ms, screen)

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
        labels: ArrayLike | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> Windows:
        """Windows of an array (window, 2, time).

        screen, participants, tasks: one for all windows, or one for each.
        unit: of the array: normalized to [-1, 1], px (origin top left), or deg from the centre.
        steps: `segment_step`, where it is known, (window, 2). labels: event classes (window, time).

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
        of_screen, screens = numbered(screen, n, "screen", keeps_order=True)
        of_participant, names = numbered(participants, n, "participants")
        of_task, task_names = numbered(tasks, n, "tasks", keeps_order=True)
        array = by_screen(array, screens, of_screen, conversions_of(unit)[1])
        starts = np.arange(n, dtype=np.int64) * length
        classes = None if labels is None else np.asarray(labels, dtype=np.uint8)
        if classes is not None and classes.shape != (n, length):
            raise GazeError(f"labels must have the shape {(n, length)}, not {classes.shape}")
        return cls(
            gaze=joined(array),
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
            labels=None if classes is None else classes.ravel(),
        )

    def save(
        self, path: Path | str, format: str | None = None, *, overwrite: bool = False
    ) -> list[Path]:
        """Write the windows; the same windows give the same bytes. Returns the files.

        A path ending in .safetensors is a windows file, which `load` gives back with everything.
        Other tools read .parquet, .csv, .npz, or a folder of the format bids, asc, parquet, csv,
        npz or a plug-in's: each window is a trial on its own screen, beside a card (JSON) and a
        README. overwrite: replace files that are there.

        >>> import tempfile
        >>> import numpy as np
        >>> from gazediffusion import Screen, Windows
        >>> windows = Windows.from_array(np.zeros((3, 2, 500)), 250, Screen(1280, 720))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in windows.save(f"{folder}/gaze.csv")]
        ['gaze.csv', 'gaze.json', 'gaze.md']
        """
        if format is None and Path(path).suffix == ".safetensors":
            from gazediffusion.data.windows_file import save_windows

            save_windows(self, Path(path), overwrite)
            return [Path(path)]
        from gazediffusion.data.writers.sets import export_windows

        return export_windows(self, Path(path), format, overwrite)

    @classmethod
    def load(cls, path: Path | str) -> Windows:
        """Read a windows file (.safetensors).

        >>> import tempfile
        >>> import numpy as np
        >>> from gazediffusion import Screen, Windows
        >>> windows = Windows.from_array(np.zeros((3, 2, 500)), 250, Screen(1280, 720))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = windows.save(f"{folder}/windows.safetensors")
        ...     Windows.load(f"{folder}/windows.safetensors")
        Windows(3 of 2 s at 250 Hz, participants: 1, tasks: synthetic)
        """
        from gazediffusion.data.windows_file import load_windows

        return load_windows(Path(path))

    alone = alone
    to_frame = frames.windows_to_frame
    to_pandas = frames.windows_to_pandas
    to_pymovements = pymovements.windows_to_pymovements
    to_mne = mne.windows_to_mne

    def to_recordings(self) -> Recordings:
        """Each window as a recording in memory: a trial named by the window's number, from 0 ms.

        >>> import numpy as np
        >>> from gazediffusion import Screen, Windows
        >>> windows = Windows.from_array(np.zeros((2, 2, 500)), 250, Screen(1280, 720))
        >>> windows.to_recordings()
        Recordings(2 in memory: windows)
        """
        from gazediffusion.data.reading import Recordings
        from gazediffusion.data.writers.sets import trials

        return Recordings.of(trials(self), "windows")

    def to_torch(self) -> Dataset[dict[str, Any]]:
        """A torch dataset of one dict per window; see `data.interop.torch.WindowsDataset`.

        >>> import numpy as np
        >>> from torch.utils.data import DataLoader
        >>> from gazediffusion import Screen, Windows
        >>> windows = Windows.from_array(np.zeros((6, 2, 500)), 250, Screen(1280, 720))
        >>> batch = next(iter(DataLoader(windows.to_torch(), batch_size=4)))
        >>> batch["gaze"].shape, batch["task"]
        (torch.Size([4, 2, 500]), tensor([0, 0, 0, 0]))
        """
        required("torch")
        from gazediffusion.data.interop.torch import WindowsDataset

        return WindowsDataset(self)


def joined(gaze: NDArray[np.float32]) -> NDArray[np.float32]:
    """Windows (window, 2, time) end to end, (2, sample)."""
    return np.ascontiguousarray(gaze.transpose(1, 0, 2)).reshape(2, -1)


def numbered(
    given: Any, n: int, name: str, keeps_order: bool = False
) -> tuple[NDArray[np.int32], tuple[Any, ...]]:
    """Each of n windows' index (n,) into the different values of an argument, and these."""
    if isinstance(given, str | Screen):
        return np.zeros(n, dtype=np.int32), (given,)
    values: list[Any] = [one if isinstance(one, Screen) else str(one) for one in given]
    if len(values) != n:
        raise GazeError(f"{name} has {len(values)} entries for {n} windows")
    different = tuple(dict.fromkeys(values) if keeps_order else sorted(set(values)))
    number = {value: k for k, value in enumerate(different)}
    return np.array([number[value] for value in values], dtype=np.int32), different
