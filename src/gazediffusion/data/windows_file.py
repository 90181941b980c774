"""The windows file: safetensors with the whole provenance in its header.

Segments on the tracker's grid (0.1 px) are stored as 16-bit grid steps, others as float32. Names in
the file are those of its first version, so that every version's files are read.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.recordings import EVENT_CLASSES
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from gazediffusion.storage import fetched, read_safetensors, written_whole

FORMAT = "gazediffusion-windows"
# Version 2 adds `run_screen` and `run_step`; files of one screen without steps stay version 1.
# Version 3 adds `labels`, and `target_starts` and `target_places`: the samples at which the target
# changes and where it then is. It also has windows with losses, NaN in gaze. Files without any of
# these stay version 1 or 2. Version 4 adds `run_elapsed_ms`.
FORMAT_VERSION = 4
# Names of tensors in the file -> fields of `Windows`.
_TENSORS = {
    "starts": "starts",
    "run_starts": "segment_starts",
    "run_participant": "segment_participant",
    "run_task": "segment_task",
    "run_onset_ms": "segment_onset_ms",
}
_INT16_MAX = np.iinfo(np.int16).max


def save_windows(windows: Windows, path: Path, overwrite: bool = False) -> None:
    """Write one safetensors file; the same windows give the same bytes.

    overwrite: replace a file that is there.
    """
    from safetensors.numpy import save

    tensors = {name: getattr(windows, field) for name, field in _TENSORS.items()}
    tensors["gaze"] = _stored_gaze(windows)
    is_plain = len(windows.screens) == 1 and windows.segment_step is None
    has_losses = bool(np.isnan(windows.gaze).any())
    if not is_plain:
        steps = windows.segment_step
        tensors["run_screen"] = windows.segment_screen
        tensors["run_step"] = np.zeros((0, 2)) if steps is None else steps
    further = _stored_labels_and_targets(windows)
    tensors |= further
    version = 3 if further or has_losses else 1 if is_plain else 2
    if windows.segment_elapsed_ms is not None:
        tensors["run_elapsed_ms"], version = windows.segment_elapsed_ms, 4
    header = {
        "format": FORMAT,
        "format_version": version,
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
    path = fetched(path)
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
    version = header.get("format_version")
    if type(version) is int and version > FORMAT_VERSION:
        raise GazeError(
            f"written by a newer gazediffusion (format {version})",
            path=path,
            remedy="update the package",
        )
    try:
        if _hash(tensors) != header["data_sha256"]:
            raise GazeError("the content does not match its checksum", path=path)
        _require_header(header)
        _require_tensors(tensors, header)
        windows = _assembled(tensors, header)
    except KeyError as error:
        raise GazeError(f"the windows file lacks {error}", path=path) from error
    except _DamagedError as error:
        raise GazeError(f"the windows file is damaged: {error}", path=path) from error
    if tensors["gaze"].dtype != np.int16:
        return windows
    return replace(windows, gaze=tensors["gaze"].astype(np.float32) * windows.grid_of_sample)


class _DamagedError(Exception):
    """What a windows file holds is not what its format says."""


def _require(is_sound: bool | np.bool_, words: str) -> None:
    if not is_sound:
        raise _DamagedError(words)


def _require_header(header: Mapping[str, Any]) -> None:
    """Every field of the header is of its type."""

    def is_number(value: object) -> bool:
        return type(value) in (int, float) and 0 < float(str(value)) < math.inf

    length = header["length"]
    _require(type(header["format_version"]) is int, "its version is no number")
    _require(type(length) is int and 2 <= length < 2**31, "the length of its windows is no number")
    _require(is_number(header["rate_hz"]), "its rate is no positive number")
    for name in ("grid_px", "velocity_scale"):
        _require(header[name] is None or is_number(header[name]), f"{name} is no positive number")
    _require(header["recipe"] in ("position", "velocity"), "its protocol is not known")
    _require(isinstance(header["provenance"], dict), "its provenance is no object")
    for name in ("participants", "tasks", "run_trial", "validation"):
        names = header[name]
        is_list = isinstance(names, list) and all(isinstance(one, str) for one in names)
        _require(is_list, f"{name} is no list of names")


def _require_tensors(tensors: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> None:
    """Every tensor has its type and shape, and every index lies within its range."""
    gaze, segments, starts = (tensors[name] for name in ("gaze", "run_starts", "starts"))
    n = segments.size
    is_grid = gaze.dtype == np.int16 and header["grid_px"] is not None
    _require(is_grid or gaze.dtype == np.float32, f"gaze holds {gaze.dtype}")
    _require(gaze.shape == (2, gaze.size // 2), f"gaze has the shape {gaze.shape}")
    # A lost sample has neither coordinate.
    is_lost = np.isnan(gaze).all(axis=0) & (header["format_version"] >= 3)
    _require((np.isfinite(gaze) | is_lost).all(), "gaze holds numbers that are not finite")
    steps = tensors.get("run_step", np.zeros((0, 2)))
    _require(steps.dtype.kind == "f" and steps.shape in ((0, 2), (n, 2)), "run_step is damaged")
    _require(np.isfinite(steps).all(), "run_step holds numbers that are not finite")
    for name in ("starts", "run_starts", "run_participant", "run_task", "run_screen"):
        tensor = tensors.get(name, np.zeros(n, dtype=np.int32))
        is_list = tensor.dtype.kind in "iu" and tensor.shape == (
            len(starts) if name == "starts" else n,
        )
        _require(is_list, f"{name} is no list of whole numbers, one of each")
    for name in ("run_onset_ms", "run_elapsed_ms"):
        times = tensors.get(name, np.zeros(n)) if name == "run_elapsed_ms" else tensors[name]
        _require(times.dtype.kind == "f" and times.shape == (n,), f"{name} is damaged")
    _require(np.isfinite(times).all(), "run_elapsed_ms holds numbers that are not finite")
    _require(len(header["run_trial"]) == n, "run_trial has another length")
    ends = np.append(segments[1:], gaze.shape[1]).astype(np.float64)[:n]
    is_ordered = (n == 0 or segments[0] == 0) and (ends > segments).all()
    _require(is_ordered, "its segments are out of order")
    of_window = np.searchsorted(segments, starts, side="right") - 1
    is_within = (of_window >= 0) & (
        starts + float(header["length"]) <= np.append(ends, 0)[of_window]
    )
    _require(is_within.all(), "a window reaches beyond its segment")
    known = {"participant": header["participants"], "task": header["tasks"]}
    for name, names in {**known, "screen": _screens(header)}.items():
        numbers = tensors.get(f"run_{name}", np.zeros(n, dtype=np.int32))
        is_known = (numbers >= 0) & (numbers < len(names))
        _require(is_known.all(), f"a segment has an unknown {name}")
    _require_labels_and_targets(tensors, gaze.shape[1])


def _require_labels_and_targets(tensors: Mapping[str, NDArray[Any]], n_samples: int) -> None:
    labels = tensors.get("labels", np.zeros(n_samples, dtype=np.uint8))
    is_classes = labels.dtype == np.uint8 and labels.shape == (n_samples,)
    _require(is_classes and labels.max(initial=0) <= len(EVENT_CLASSES), "labels is damaged")
    if not tensors.keys() & {"target_starts", "target_places"}:
        return
    starts, places = tensors["target_starts"], tensors["target_places"]
    is_listed = starts.dtype.kind in "iu" and starts.shape == (starts.size,)
    _require(is_listed, "target_starts is no list of whole numbers")
    edges = np.append(starts.astype(np.float64), n_samples)
    _require(edges[0] == 0 and (np.diff(edges) > 0).all(), "target_starts is out of order")
    is_places = places.dtype == np.float32 and places.shape == (2, starts.size)
    _require(is_places, "target_places is damaged")
    # NaN is a time without a target.
    is_place = np.isfinite(places) | np.isnan(places).all(axis=0)
    _require(is_place.all(), "target_places holds numbers that are not finite")


def _screens(header: Mapping[str, Any]) -> tuple[Screen, ...]:
    try:
        screens = tuple(Screen(**one) for one in header.get("screens", [header["screen"]]))
    except (TypeError, OverflowError, GazeError) as error:
        raise _DamagedError(f"a screen is invalid ({error})") from error
    _require(all(one.width_px and one.height_px for one in screens), "a screen has no size")
    return screens


def _assembled(tensors: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> Windows:
    """The windows, with gaze as it is stored."""
    n_segments = len(tensors["run_starts"])
    steps = tensors.get("run_step", np.zeros((0, 2)))
    return Windows(
        gaze=tensors["gaze"],
        **{field: tensors[name] for name, field in _TENSORS.items()},
        length=header["length"],
        rate_hz=header["rate_hz"],
        screens=_screens(header),
        protocol=header["recipe"],
        participants=tuple(header["participants"]),
        tasks=tuple(header["tasks"]),
        segment_screen=tensors.get("run_screen", np.zeros(n_segments, dtype=np.int32)),
        segment_trial=tuple(header["run_trial"]),
        validation=frozenset(header["validation"]),
        grid_px=header["grid_px"],
        segment_step=steps if len(steps) else None,
        velocity_scale=header["velocity_scale"],
        provenance={**header["provenance"], "data_sha256": header["data_sha256"]},
        labels=tensors.get("labels"),
        targets=_targets(tensors),
        segment_elapsed_ms=tensors.get("run_elapsed_ms"),
    )


def _stored_gaze(windows: Windows) -> NDArray[np.int16] | NDArray[np.float32]:
    if windows.grid_px is None or np.isnan(windows.gaze).any():
        return np.ascontiguousarray(windows.gaze)
    steps = np.rint(windows.gaze / windows.grid_of_sample)
    if np.abs(steps).max(initial=0) > _INT16_MAX:
        return np.ascontiguousarray(windows.gaze)
    return np.asarray(steps, dtype=np.int16)


def _stored_labels_and_targets(windows: Windows) -> dict[str, NDArray[Any]]:
    """Tensors of labels and targets where there are any; the target is stored at its changes."""
    tensors: dict[str, NDArray[Any]] = {}
    if windows.labels is not None:
        tensors["labels"] = np.ascontiguousarray(windows.labels)
    if windows.targets is not None:
        before, after = windows.targets[:, :-1], windows.targets[:, 1:]
        is_same = (after == before) | (np.isnan(after) & np.isnan(before))
        starts = np.append(0, np.flatnonzero(~is_same.all(axis=0)) + 1)
        tensors["target_starts"] = starts
        tensors["target_places"] = np.ascontiguousarray(windows.targets[:, starts])
    return tensors


def _targets(tensors: Mapping[str, NDArray[Any]]) -> NDArray[np.float32] | None:
    if "target_starts" not in tensors:
        return None
    lengths = np.diff(np.append(tensors["target_starts"], tensors["gaze"].shape[1]))
    return np.repeat(tensors["target_places"], lengths, axis=1)


def _hash(tensors: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 over names, shapes and bytes of the tensors, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = np.ascontiguousarray(tensors[name])
        digest.update(f"{name}{tensor.dtype.str}{tensor.shape}".encode())
        digest.update(tensor.data)
    return digest.hexdigest()
