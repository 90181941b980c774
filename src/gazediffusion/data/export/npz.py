"""NPZ: whole windows as arrays, with the task and the screen of each.

gaze (normalized), gaze_px, gaze_deg (window, 2, time); time_ms (time,); participant, task (window,)
names; screen (window, 5) as width_px, height_px, width_cm, height_cm, distance_cm, NaN where
unknown; resolution_px (window, 2), the tracker's step, 0 where it is not coarse; card, as JSON.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.export.projection import Gaze, Projection
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.geometry import Screen

Pieces = Callable[[], Iterable[Windows]]


def write_npz(path: Path, pieces: Pieces, projection: Projection, card: dict[str, Any]) -> None:
    """Write the arrays piece by piece; each pass over the pieces writes one of them."""
    labels: dict[str, list[Any]] = {"participant": [], "task": [], "screen": []}
    resolution: list[NDArray[np.float64]] = []
    has_degrees = False
    for piece in pieces():
        screens, of_window = projection.screens(piece)
        has_degrees |= any(screens[k].has_degrees for k in np.unique(of_window))
        labels["participant"] += [piece.participants[k] for k in piece.participant]
        labels["task"] += [piece.tasks[k] for k in piece.task]
        labels["screen"] += [astuple(screens[k]) for k in of_window]
        resolution.append(projection.resolution_px(piece))
        length = projection.n_samples or piece.length
        rate_hz = piece.rate_hz
    n = len(labels["task"])
    converted: dict[str, Callable[[Windows], Gaze]] = {
        "gaze": projection.normalized,
        "gaze_px": projection.pixels,
    }
    if has_degrees:
        converted["gaze_deg"] = projection.degrees
    with zipfile.ZipFile(path, "w") as archive:
        for name, convert in converted.items():
            with _entry(archive, f"{name}.npy") as stream:
                header = {"descr": "<f4", "fortran_order": False, "shape": (n, 2, length)}
                np.lib.format.write_array_header_2_0(stream, header)
                for piece in pieces():
                    stream.write(np.ascontiguousarray(convert(piece)).tobytes())
        for name, values in {
            "time_ms": np.arange(length) * (1000.0 / rate_hz),
            "participant": np.array(labels["participant"]),
            "task": np.array(labels["task"]),
            "screen": np.array(labels["screen"], dtype=np.float64),
            "resolution_px": np.concatenate(resolution),
            "card": np.array(json.dumps(card)),
        }.items():
            with _entry(archive, f"{name}.npy") as stream:
                np.lib.format.write_array(stream, np.asanyarray(values))


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
        rate_hz = 1000.0 / float(found["time_ms"][1] - found["time_ms"][0])
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
            found["participant"].tolist() if "participant" in found else "synthetic",
            found["task"].tolist() if "task" in found else "synthetic",
            steps=steps,
            provenance={"card": json.loads(str(found["card"]))} if "card" in found else {},
        )
    except (GazeError, ValueError) as error:
        raise GazeError(str(error), path=path) from error


def _screen(row: list[float]) -> Screen:
    width_px, height_px, *size_cm = row
    known = [None if np.isnan(value) else value for value in size_cm]
    return Screen(int(width_px), int(height_px), *known)


def _entry(archive: zipfile.ZipFile, name: str) -> Any:
    # A fixed date, so that the same windows give the same bytes.
    return archive.open(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), "w", force_zip64=True)
