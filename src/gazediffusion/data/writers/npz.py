"""NPZ: whole windows as arrays, with the task and the screen of each.

gaze (normalized), gaze_px, gaze_deg (window, 2, time); time_ms (time,); participant, task (window,)
names; screen (window, 5) as width_px, height_px, width_cm, height_cm, distance_cm, NaN where
unknown; resolution_px (window, 2), the tracker's step, 0 where it is not coarse; card, as JSON.
Windows with losses: gaze is NaN there, and is_blink (window, time) marks blinks. Windows with
labels: event (window, time) is the number of the class in event_classes, names from number 1 on, 0
where there is no label.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.cleaning import likely_blinks
from gazediffusion.data.recordings import EVENT_CLASSES
from gazediffusion.data.windows import Convert, Windows
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen

Pieces = Callable[[], Iterable[Windows]]


def write_npz(path: Path, pieces: Pieces, card: dict[str, Any], grid_px: float | None) -> None:
    """Write the arrays piece by piece; each pass over the pieces writes one of them."""
    found: dict[str, list[Any]] = {name: [] for name in ("participant", "task", "screen")}
    resolution: list[NDArray[np.float64]] = []
    for piece in pieces():
        for name in ("participant", "task"):
            found[name] += piece.identity[name].tolist()
        found["screen"] += [astuple(piece.screens[k]) for k in piece.screen_index]
        resolution.append(piece.resolution_px)
    screens = np.array(found["screen"], dtype=np.float64)
    time_ms = np.arange(piece.length, dtype=np.float64) * (1000.0 / piece.rate_hz)
    whole = {
        "time_ms": time_ms,
        "participant": np.array(found["participant"]),
        "task": np.array(found["task"]),
        "screen": screens,
        "resolution_px": np.concatenate(resolution),
        "card": np.array(json.dumps(card)),
    }
    in_pieces: dict[str, Callable[[Windows], NDArray[Any]]] = {
        "gaze": partial(_gaze, convert=Screen.to_normalized, grid_px=grid_px),
        "gaze_px": lambda piece: piece.to_pixels(grid_px),
    }
    if not np.isnan(screens).any(axis=1).all():
        in_pieces["gaze_deg"] = partial(_gaze, convert=Screen.degrees_if_known, grid_px=grid_px)
    if "share_lost" in card:
        in_pieces["is_blink"] = partial(_blinks, time_ms=time_ms)
    if piece.labels is not None:
        in_pieces["event"] = Windows.cut_labels
        whole = {"event_classes": np.array(EVENT_CLASSES), **whole}
    with zipfile.ZipFile(path, "w") as archive:
        for name, of in in_pieces.items():
            with _entry(archive, name) as stream:
                for number, values in enumerate(map(of, pieces())):
                    if number == 0:
                        shape = len(screens), *values.shape[1:]
                        header = {"descr": values.dtype.str, "fortran_order": False, "shape": shape}
                        np.lib.format.write_array_header_2_0(stream, header)
                    stream.write(values.tobytes())
        for name, values in whole.items():
            with _entry(archive, name) as stream:
                np.lib.format.write_array(stream, values)


def _gaze(windows: Windows, convert: Convert, grid_px: float | None) -> NDArray[Any]:
    return windows.on_screens(windows.to_pixels(grid_px), convert)


def _blinks(windows: Windows, time_ms: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.stack([likely_blinks(time_ms, is_lost) for is_lost in windows.is_lost])


def _entry(archive: zipfile.ZipFile, name: str) -> Any:
    # A fixed date, so that the same windows give the same bytes.
    return archive.open(
        zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), "w", force_zip64=True
    )


def read_npz(path: Path, screen: Screen | None = None, rate_hz: float | None = None) -> Windows:
    """Windows of such a file, or of any NPZ with an array `gaze` (window, 2, time), normalized.

    screen, rate_hz: used where the file does not state them.
    """
    try:
        with open(path, "rb") as stream, np.load(stream) as arrays:
            found = {name: arrays[name] for name in arrays if name not in ("gaze_px", "gaze_deg")}
            gaze = found["gaze"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise GazeError(f"this is no NPZ with an array 'gaze' ({error})", path=path) from error
    if gaze.ndim != 3 or gaze.shape[1] != 2:
        raise GazeError(f"'gaze' must be (window, 2, time), not {gaze.shape}", path=path)
    screens: Screen | list[Screen] | None = screen
    if "screen" in found:
        screens = [_screen(row) for row in found["screen"].tolist()]
    if screens is None:
        raise GazeError("the file does not state its screen", path=path, remedy="give `screen`")
    if "time_ms" in found:
        rate_hz = _rate(np.asarray(found["time_ms"]), gaze.shape[2], path)
    if rate_hz is None:
        raise GazeError("the file does not state its rate", path=path, remedy="give `rate_hz`")
    steps = None
    if found.get("resolution_px", np.zeros(0)).any() and isinstance(screens, list):
        steps = found["resolution_px"] * 2 / np.array([one.size_px[:, 0] for one in screens])
    try:
        return Windows.from_array(
            gaze,
            rate_hz,
            screens,
            found.get("participant", "synthetic"),
            found.get("task", "synthetic"),
            steps=steps,
            labels=_labels(found, gaze.shape, path),
            provenance={"card": json.loads(str(found["card"]))} if "card" in found else {},
        )
    except (GazeError, ValueError) as error:
        raise GazeError(str(error), path=path) from error


def _labels(
    found: dict[str, NDArray[Any]], shape: tuple[int, ...], path: Path
) -> NDArray[np.uint8] | None:
    """Event classes (window, time) of a file with its own list of names; None without."""
    if "event" not in found or "event_classes" not in found:
        return None
    event, names = found["event"], [str(name) for name in found["event_classes"].ravel()]
    is_number = event.dtype.kind in "iu" and event.shape == (shape[0], shape[2])
    if not is_number or (event.size and not 0 <= event.min() <= event.max() <= len(names)):
        problem = f"'event' must be numbers (window, time) of the {len(names)} 'event_classes' or 0"
        raise GazeError(problem, path=path)
    number = [EVENT_CLASSES.index(name) + 1 if name in EVENT_CLASSES else 0 for name in names]
    return np.asarray(np.array([0, *number], dtype=np.uint8)[event])


def _rate(time_ms: NDArray[Any], n_samples: int, path: Path) -> float:
    """Samples per second of an even clock (time,)."""
    is_clock = time_ms.shape == (n_samples,) and n_samples > 1 and time_ms.dtype.kind in "fiu"
    steps = np.diff(time_ms.astype(np.float64)) if is_clock else np.zeros(1)
    step_ms = float(steps.mean())
    # Stamps may be in whole milliseconds.
    if not (step_ms > 0 and np.abs(steps - step_ms).max() <= max(1.0, 0.1 * step_ms)):
        raise GazeError(f"'time_ms' must be {n_samples} evenly increasing times", path=path)
    return round(1000.0 / step_ms, 6)


def _screen(row: list[float]) -> Screen:
    width_px, height_px, *size_cm = row
    known = [None if np.isnan(value) else value for value in size_cm]
    return Screen(int(width_px), int(height_px), *known)
