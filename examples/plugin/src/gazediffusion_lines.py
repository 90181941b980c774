"""Four plug-ins for gazediffusion: a reader, an exporter, a metric and a generator.

The made-up format `lines` has a header `LINES participant task trial width height rate` for each
recording, then x and y in pixels of a sample in each line, `- -` where the eye was lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gazediffusion as gd


class Reader:
    """Reads files that begin with LINES, whatever their ending."""

    @staticmethod
    def matches(path: Path, head: bytes, options: Any) -> bool:
        return head.startswith(b"LINES ")

    @staticmethod
    def read(path: Path, options: Any) -> Iterator[gd.Recording]:
        blocks = path.read_text(encoding="utf-8").split("LINES ")[1:]
        for header, *lines in (block.splitlines() for block in blocks):
            try:
                participant, task, trial, width, height, rate = header.split()
                cells = " ".join(lines).replace("- -", "nan nan").split()
                gaze = np.array(cells, dtype=np.float32).reshape(-1, 2).T
                screen, rate_hz = gd.Screen(int(width), int(height)), float(rate)
            except ValueError as error:
                raise gd.GazeError(f"this is no recording ({error})", path=path) from error
            yield gd.Recording(
                participant=participant,
                task=task,
                trial=trial,
                time_ms=np.arange(gaze.shape[1], dtype=np.float64) * (1000.0 / rate_hz),
                gaze_px={"right": gaze},
                path=path,
                format="lines",
                screen=options.screen_of(path, screen)[0],
                rate_hz=rate_hz,
            )


class Exporter:
    """Writes one file for all recordings."""

    is_file = True

    @staticmethod
    def write(recordings: Iterable[tuple[gd.Recording, Sequence[Any]]], path: Path) -> None:
        with open(path, "w", encoding="utf-8") as stream:
            for one, _ in recordings:
                if one.screen is None or one.rate_hz is None:
                    raise gd.GazeError("this format needs screen and rate", path=path)
                words = [one.participant, one.task, one.trial]
                words += [f"{one.screen.width_px}", f"{one.screen.height_px}", f"{one.rate_hz:g}"]
                stream.write(f"LINES {' '.join(words)}\n")
                for x, y in next(iter(one.gaze_px.values())).T:
                    stream.write("- -\n" if np.isnan(x) else f"{x:.4f} {y:.4f}\n")


class LeftShare:
    """The share of samples in the left half of the screen."""

    title, unit = "share of gaze in the left half", ""

    @staticmethod
    def values(
        gaze: NDArray[np.float32], rate_hz: float, screens: Sequence[gd.Screen]
    ) -> NDArray[np.floating[Any]]:
        return np.asarray((gaze[:, 0] < 0).mean(axis=1))


class Still:
    """Gaze that stays near one place, which is drawn from those of the training participants."""

    def __init__(self, places: NDArray[np.float32]) -> None:
        self.places = places

    @classmethod
    def fit(cls, train: gd.Windows) -> Still:
        return cls(train.cut().mean(axis=2))

    def draw(
        self, streams: Sequence[np.random.Generator], length: int
    ) -> NDArray[np.floating[Any]]:
        windows = [
            self.places[one.integers(len(self.places)), :, None] + one.normal(0, 0.01, (2, length))
            for one in streams
        ]
        return np.stack(windows)
