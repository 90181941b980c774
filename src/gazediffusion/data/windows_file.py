"""The windows file: safetensors with the whole provenance in its header.

Segments on the tracker's grid (0.1 px) are stored as 16-bit grid steps, others as float32. Names in
the file are those of its first version, so that every version's files are read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.files import read_safetensors, written_whole
from gazediffusion.geometry import Screen

FORMAT = "gazediffusion-windows"
# Version 2 adds `run_screen` and `run_step`; files of one screen without steps stay version 1.
FORMAT_VERSION = 2
# Names of tensors in the file -> fields of `Windows`.
_TENSORS = {
    "starts": "starts",
    "run_starts": "segment_starts",
    "run_participant": "segment_participant",
    "run_task": "segment_task",
    "run_onset_ms": "segment_onset_ms",
}
_INT16_MAX = np.iinfo(np.int16).max
# How `prepare` named its settings before -> now.
_RENAMED = {"recipe": "protocol", "same_person": "same_participant"}


def save_windows(windows: Windows, path: Path, overwrite: bool = False) -> None:
    """Write one safetensors file; the same windows give the same bytes.

    overwrite: replace a file that is there.
    """
    from safetensors.numpy import save

    tensors = {name: getattr(windows, field) for name, field in _TENSORS.items()}
    tensors["gaze"] = _stored_gaze(windows)
    is_plain = len(windows.screens) == 1 and windows.segment_step is None
    if not is_plain:
        steps = windows.segment_step
        tensors["run_screen"] = windows.segment_screen
        tensors["run_step"] = np.zeros((0, 2)) if steps is None else steps
    header = {
        "format": FORMAT,
        "format_version": 1 if is_plain else FORMAT_VERSION,
        "recipe": windows.protocol,
        "length": windows.length,
        "rate_hz": windows.rate_hz,
        "screen": asdict(windows.screens[0]),
        **({} if is_plain else {"screens": [asdict(screen) for screen in windows.screens]}),
        "participants": list(windows.participants),
        "tasks": list(windows.tasks),
        "validation": sorted(windows.validation),
        "grid_px": windows.grid_px,
        "velocity_scale": windows.velocity_scale,
        "run_trial": list(windows.segment_trial),
        "data_sha256": _hash(tensors),
        "provenance": dict(windows.provenance),
    }
    packed = save(tensors, metadata={"gazediffusion": json.dumps(header)})
    with written_whole(path, overwrite) as temporary:
        temporary.write_bytes(packed)


def load_windows(path: Path) -> Windows:
    """Read a windows file of any version; anything else is refused in one line."""
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
        windows = _assembled(tensors, header)
    except (KeyError, TypeError) as error:
        raise GazeError(f"the windows file lacks {error}", path=path) from error
    if tensors["gaze"].dtype != np.int16:
        return windows
    return replace(windows, gaze=tensors["gaze"].astype(np.float32) * windows.grid_of_sample)


def _assembled(tensors: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> Windows:
    """The windows, with gaze as it is stored."""
    n_segments = len(tensors["run_starts"])
    steps = tensors.get("run_step", np.zeros((0, 2)))
    provenance = _in_present_names(header["provenance"])
    return Windows(
        gaze=tensors["gaze"],
        **{field: tensors[name] for name, field in _TENSORS.items()},
        length=header["length"],
        rate_hz=header["rate_hz"],
        screens=tuple(Screen(**one) for one in header.get("screens", [header["screen"]])),
        protocol=header["recipe"],
        participants=tuple(header["participants"]),
        tasks=tuple(header["tasks"]),
        segment_screen=tensors.get("run_screen", np.zeros(n_segments, dtype=np.int32)),
        segment_trial=tuple(header["run_trial"]),
        validation=frozenset(header["validation"]),
        grid_px=header["grid_px"],
        segment_step=steps if len(steps) else None,
        velocity_scale=header["velocity_scale"],
        provenance={**provenance, "data_sha256": header["data_sha256"]},
    )


def _in_present_names(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Provenance of any version with the settings of `prepare` under their present names."""
    settings = provenance.get("config")
    if not isinstance(settings, dict):
        return dict(provenance)
    renamed = {_RENAMED.get(name, name): value for name, value in settings.items()}
    return {**provenance, "config": renamed}


def _stored_gaze(windows: Windows) -> NDArray[np.int16] | NDArray[np.float32]:
    if windows.grid_px is None:
        return np.ascontiguousarray(windows.gaze)
    steps = np.rint(windows.gaze / windows.grid_of_sample)
    if np.abs(steps).max(initial=0) > _INT16_MAX:
        return np.ascontiguousarray(windows.gaze)
    return np.asarray(steps, dtype=np.int16)


def _hash(tensors: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 over names, shapes and bytes of the tensors, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = np.ascontiguousarray(tensors[name])
        digest.update(f"{name}{tensor.dtype.str}{tensor.shape}".encode())
        digest.update(tensor.data)
    return digest.hexdigest()
