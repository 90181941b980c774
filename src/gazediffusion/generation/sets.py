"""Synthetic sets: generated windows streamed to files that say what they are.

Windows are written piece by piece into a hidden work folder beside the output; when all are
there, they are written in the wanted format and the work folder goes. A stopped or killed run
goes on from the pieces it has. Memory holds one piece, never the set.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.events import detect_events
from gazediffusion.data.export import Labelled, write_into
from gazediffusion.data.export.table import write_csv, write_parquet
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.files import require_writable, write_json, written_whole
from gazediffusion.generation.generator import DiffusionGenerator, Progress
from gazediffusion.geometry import Screen
from gazediffusion.version import __version__

FORMATS = ("parquet", "csv", "npz", "bids", "asc")
CARD_KEY = "GazediffusionCard"
_SINGLE = {"parquet": "recordings.parquet", "csv": "recordings.csv", "npz": "windows.npz"}


@dataclass(frozen=True)
class SetConfig:
    """What set to make: how many windows, from which seed, on which screen, in which format.

    grid_px: round pixels to the tracker's grid; None keeps them as generated.
    seconds: keep so much of every window from its start; None keeps all.
    """

    n: int
    seed: int = 0
    format: str = "parquet"
    screen: Screen | None = None
    grid_px: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.n < 1:
            raise GazeError(f"`n` must be 1 or more, not {self.n}")
        if self.seed < 0:
            raise GazeError(f"`seed` must be 0 or more, not {self.seed}")
        if self.format not in FORMATS:
            raise GazeError(
                f"no format {self.format!r}", remedy=suggestion(self.format, list(FORMATS))
            )
        if self.grid_px is not None and not self.grid_px > 0:
            raise GazeError(f"`grid_px` must be a positive number of pixels, not {self.grid_px:g}")

    def n_samples(self, generator: DiffusionGenerator) -> int:
        """Samples kept of every window that the generator makes."""
        length, rate_hz = generator.run.config.length, generator.run.config.rate_hz
        if self.seconds is None:
            return length
        if not 1 <= self.seconds <= length / rate_hz:
            raise GazeError(
                f"`seconds` must lie between 1 and {length / rate_hz:g} for this model, "
                f"not {self.seconds:g}"
            )
        return round(self.seconds * rate_hz)


def write_set(
    generator: DiffusionGenerator,
    config: SetConfig,
    output: Path | str,
    progress: Progress = lambda done: None,
) -> list[Path]:
    """Generate a set into a new folder, or a file where `output` ends in .parquet, .csv, .npz.

    Returns what was written: the set, its card (JSON) and its README.
    """
    output = Path(output)
    is_file = output.suffix[1:] == config.format and config.format in _SINGLE
    if output.is_dir() and (is_file or any(output.iterdir())):
        raise GazeError("this folder is not empty", path=output, remedy="name a new one")
    require_writable(output)
    card = make_card(generator, config)
    work = _work_folder(output, card)
    _sample_into(work, generator, config, progress)
    with written_whole(work / "set") as folder:
        folder.mkdir()
        _write(folder, work, generator, config, card)
    written = _put_file(work / "set", output, config) if is_file else _put_folder(work, output)
    shutil.rmtree(work, ignore_errors=True)
    return written


def make_card(generator: DiffusionGenerator, config: SetConfig) -> dict[str, Any]:
    """What the set is and how it was made; the same for the same command."""
    run = generator.run
    screen = config.screen or generator.screen
    return {
        "format": "gazediffusion-synthetic",
        "synthetic": True,
        "gazediffusion_version": __version__,
        "n_windows": config.n,
        "seed": config.seed,
        "window_samples": config.n_samples(generator),
        "rate_hz": run.config.rate_hz,
        "screen": vars(screen),
        "grid_px": config.grid_px,
        "sampling": generator.settings,
        "model": {
            "recipe": run.config.recipe.name,
            "training_seed": run.config.seed,
            "weights": run.weights,
            "weights_sha256": run.weights_sha256,
            "epoch": run.epoch,
            "validation_loss": run.validation_loss,
            "trained_on": dict(run.config.data),
        },
    }


def readme_of(card: dict[str, Any], format: str) -> str:
    """The card in words."""
    model, sampling = card["model"], card["sampling"]
    data = model["trained_on"]
    seconds = card["window_samples"] / card["rate_hz"]
    how = ", ".join(f"{key} {value}" for key, value in sampling.items() if value is not None)
    return f"""# Synthetic gaze

These are **{card["n_windows"]} synthetic windows** of {seconds:g} s at {card["rate_hz"]:g} Hz.
No person was recorded: a diffusion model drew them. Do not analyse or publish them as recordings
of people.

- model: recipe `{model["recipe"]}`, training seed {model["training_seed"]}, {model["weights"]}
  weights of epoch {model["epoch"]}, sha256 `{model["weights_sha256"]}`
- trained on: {data["n_windows"]} windows of
  {data["n_participants"] - data["n_held_out_participants"]} people,
  tasks {", ".join(data["tasks"])}
- sampling: {how}, seed {card["seed"]}
- made by gazediffusion {card["gazediffusion_version"]}, written as {format}

Gaze is in pixels, origin top left and y down; times are in milliseconds. Tables also give degrees
of visual angle from the screen's centre, where its size is known, and `x_screen`, `y_screen`,
normalized so that the screen is [-1, 1]. Each window is a trial of its own and begins at 0 ms.
Fixations and saccades in ASC and BIDS files were found by a velocity threshold of 30 deg/s.
"""


def read_card(path: Path) -> dict[str, Any] | None:
    """The card of a synthetic set at a file or folder; None where there is none."""
    if path.is_dir():
        card_path = path / "card.json"
        return _json(card_path) if card_path.is_file() else None
    sidecar = path.with_suffix(".json")
    card = _json(sidecar).get(CARD_KEY) if sidecar.is_file() and sidecar != path else None
    return card if isinstance(card, dict) else None


def _json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise GazeError(f"the card is damaged ({error})", path=path) from error
    return values if isinstance(values, dict) else {}


def _work_folder(output: Path, card: dict[str, Any]) -> Path:
    """A folder beside the output, named by everything that decides its pieces but their number."""
    decisive = {key: value for key, value in card.items() if key not in ("n_windows", "screen")}
    digest = hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:12]
    work = output.parent / f".{output.name}.{digest}.work"
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GazeError(f"cannot be written ({error.strerror})", path=output) from error
    shutil.rmtree(work / "set", ignore_errors=True)
    return work


def _sample_into(
    work: Path, generator: DiffusionGenerator, config: SetConfig, progress: Progress
) -> None:
    """Generate the pieces that are not there yet."""
    for first, stop in _spans(generator, config):
        path = work / f"{first:09d}-{stop:09d}.npy"
        if not path.is_file():
            (piece,) = generator.pieces(first, stop, config.seed, progress)
            with written_whole(path) as temporary, open(temporary, "wb") as stream:
                np.save(stream, piece)
        progress(stop)


def _spans(generator: DiffusionGenerator, config: SetConfig) -> list[tuple[int, int]]:
    size = generator.batch_size
    return [(first, min(first + size, config.n)) for first in range(0, config.n, size)]


def _stored(
    work: Path, generator: DiffusionGenerator, config: SetConfig
) -> Iterator[NDArray[np.float32]]:
    """The pieces in order, (window, 2, time) of normalized gaze, as long as wanted."""
    n_samples = config.n_samples(generator)
    for first, stop in _spans(generator, config):
        piece: NDArray[np.float32] = np.load(work / f"{first:09d}-{stop:09d}.npy")
        yield piece[:, :, :n_samples]


def _write(
    folder: Path,
    work: Path,
    generator: DiffusionGenerator,
    config: SetConfig,
    card: dict[str, Any],
) -> None:
    """Write the stored pieces in the wanted format, with card and README."""
    screen = config.screen or generator.screen
    rate_hz = generator.run.config.rate_hz
    if config.format == "npz":
        _write_npz(folder / "windows.npz", work, generator, config, screen, card)
    else:
        tasks = generator.tasks(0, config.n, config.seed)
        # Tables keep the order of windows; in the other formats each task is a file of its own.
        is_table = config.format in ("csv", "parquet")
        labelled = chain.from_iterable(
            _labelled(_stored(work, generator, config), tasks, wanted, screen, rate_hz, config)
            for wanted in ([set(tasks)] if is_table else [{task} for task in dict.fromkeys(tasks)])
        )
        if is_table:
            write_table = write_csv if config.format == "csv" else write_parquet
            write_table(labelled, folder, all_units=True)
        else:
            write_into(folder, labelled, config.format)
    (folder / "README.md").write_text(readme_of(card, config.format), encoding="utf-8")
    write_json(folder / "card.json", card)
    if config.format == "bids":
        _describe_bids(folder, card)


def _labelled(
    pieces: Iterator[NDArray[np.float32]],
    tasks: list[str | None],
    wanted: set[str | None],
    screen: Screen,
    rate_hz: float,
    config: SetConfig,
) -> Iterator[Labelled]:
    """Each window of the wanted tasks as a trial, with events for the formats that hold them."""
    number = -1
    for piece in pieces:
        time_ms = np.arange(piece.shape[2], dtype=np.float64) * (1000.0 / rate_hz)
        for gaze in _pixels(piece, screen, config):
            number += 1
            if tasks[number] not in wanted:
                continue
            recording = Recording(
                participant="synthetic",
                task=tasks[number] or "synthetic",
                trial=str(number),
                time_ms=time_ms,
                gaze_px={"cyclopean": gaze},
                path=Path("synthetic"),
                format="synthetic",
                screen=screen,
                rate_hz=rate_hz,
            )
            has_events = config.format in ("asc", "bids")
            yield recording, detect_events(gaze, time_ms, screen) if has_events else []


def _pixels(piece: NDArray[np.float32], screen: Screen, config: SetConfig) -> NDArray[np.float32]:
    gaze = screen.to_pixels(piece)
    if config.grid_px is not None:
        gaze = np.rint(gaze / config.grid_px) * config.grid_px
    return np.asarray(gaze, dtype=np.float32)


def _write_npz(
    path: Path,
    work: Path,
    generator: DiffusionGenerator,
    config: SetConfig,
    screen: Screen,
    card: dict[str, Any],
) -> None:
    """Arrays `gaze` (normalized), `gaze_px`, `gaze_deg` (window, 2, time), `time_ms`, `card`."""
    length, rate_hz = config.n_samples(generator), generator.run.config.rate_hz
    shape = (config.n, 2, length)

    def normalized(piece: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(screen.to_normalized(_pixels(piece, screen, config)))

    arrays: dict[str, Callable[[NDArray[np.float32]], NDArray[Any]]] = {
        "gaze": normalized,
        "gaze_px": lambda piece: _pixels(piece, screen, config),
    }
    if screen.has_degrees:
        arrays["gaze_deg"] = lambda piece: screen.to_degrees(_pixels(piece, screen, config))
    with zipfile.ZipFile(path, "w") as archive:
        for name, convert in arrays.items():
            with _entry(archive, f"{name}.npy") as stream:
                header = {"descr": "<f4", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_2_0(stream, header)
                for piece in _stored(work, generator, config):
                    stream.write(np.ascontiguousarray(convert(piece), dtype=np.float32).tobytes())
        for name, values in {
            "time_ms": np.arange(length) * (1000.0 / rate_hz),
            "card": np.array(json.dumps(card)),
        }.items():
            with _entry(archive, f"{name}.npy") as stream:
                np.lib.format.write_array(stream, np.asanyarray(values))


def _entry(archive: zipfile.ZipFile, name: str) -> Any:
    # A fixed date, so that the same set gives the same bytes.
    return archive.open(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), "w", force_zip64=True)


def _describe_bids(folder: Path, card: dict[str, Any]) -> None:
    """Say in BIDS' own file that the dataset is synthetic."""
    path = folder / "dataset_description.json"
    description = _json(path)
    description["Name"] = "Synthetic gaze (no person was recorded)"
    description["GeneratedBy"] = [
        {
            "Name": "gazediffusion",
            "Version": card["gazediffusion_version"],
            "Description": f"Diffusion model, recipe {card['model']['recipe']}, "
            f"seed {card['seed']}; see README.md and card.json",
        }
    ]
    write_json(path, description)
    (folder / ".bidsignore").write_text("card.json\n", encoding="utf-8")


def _put_folder(work: Path, output: Path) -> list[Path]:
    try:
        if output.is_dir():
            output.rmdir()
        os.replace(work / "set", output)
    except OSError as error:
        raise GazeError(f"cannot be written ({error.strerror})", path=output) from error
    return [output, output / "card.json", output / "README.md"]


def _put_file(folder: Path, output: Path, config: SetConfig) -> list[Path]:
    """One file, with its card in the JSON sidecar that readers look for, and its README."""
    sidecar, readme = output.with_suffix(".json"), output.with_suffix(".md")
    fields = _json(folder / "recordings.json") if config.format != "npz" else {}
    write_json(sidecar, {**fields, CARD_KEY: _json(folder / "card.json")})
    try:
        os.replace(folder / "README.md", readme)
        os.replace(folder / _SINGLE[config.format], output)
    except OSError as error:
        raise GazeError(f"cannot be written ({error.strerror})", path=output) from error
    return [output, sidecar, readme]
