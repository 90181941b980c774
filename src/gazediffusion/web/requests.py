"""A request for windows: checked by the library, generated piece by piece.

The command and the Python program of a request write the same bytes as its export. They state the
batch size, because the order of summation changes the last digits of float32.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.web.jobs import Job, Steps
from gazediffusion.web.models import BATCH_CPU, BATCH_GPU, Models, ServedModel
from gazediffusion.web.pieces import Piece, pieces, windows_each
from gazediffusion.web.schemas import GenerationFields, UploadFields
from gazediffusion.web.settings import Limits
from gazediffusion.web.steering import Steering

if TYPE_CHECKING:
    from gazediffusion.data.export import Event
    from gazediffusion.generation.sets import Sampling

_LIMIT = "the limit is `max_windows` of the server"
_DECIMALS = 5  # of normalized positions: less than a hundredth of a pixel


@dataclass(frozen=True)
class GenerationRequest:
    """Windows that can be generated: the model is loaded and every setting is valid.

    settings: those of `Model.sample` that are not its defaults; waypoints and start are as sent.
    """

    served: ServedModel
    n: int
    settings: dict[str, Any]
    sampling: Sampling

    @classmethod
    def of(
        cls,
        fields: GenerationFields,
        models: Models,
        limits: Limits,
        format: str = "parquet",
        steering: Steering | None = None,
    ) -> GenerationRequest:
        """Check the fields of a request; loads the model.

        steering: what was read from tables and recordings of the request.
        """
        steering = steering or Steering()
        n = fields.n if "n" in fields.model_fields_set else steering.n_entries or fields.n
        if n > limits.max_windows:
            raise GazeError(
                f"`n` must be {limits.max_windows} or fewer here, not {n}", remedy=_LIMIT
            )
        served = models.find(fields.model)
        model = models.load(served)
        steering.require_short(n, limits.max_windows * served.about.seconds)
        given: dict[str, Any] = {
            "task": fields.task,
            "quality": fields.quality,
            "seed": fields.seed,
            "seconds": None if fields.seconds == served.about.seconds else fields.seconds,
            "rate_hz": None if fields.rate_hz == served.about.rate_hz else fields.rate_hz,
            "losses": fields.losses or None,
            "labels": fields.labels or None,
            "candidates": fields.candidates if isinstance(fields, UploadFields) else None,
            "batch_size": BATCH_GPU if model.device.type == "cuda" else BATCH_CPU,
        }
        settings = {name: value for name, value in given.items() if value is not None}
        steered = steering.settings(model, fields)
        sampling = model.sampling(n, format=format, **settings, **steered)
        sent = {"at": fields.at, "start": fields.start}
        settings |= {name: value for name, value in sent.items() if value}
        found = cls(served, n, settings, sampling)
        n_all = n * found.windows_each
        if n_all > limits.max_windows:
            described = sampling.generator.describe()
            raise GazeError(
                f"{n} windows of {described['window_samples'] / described['rate_hz']:g} s are "
                f"generated as {n_all} of {served.about.seconds:g} s, and {limits.max_windows} are "
                "the most here",
                remedy=f"give a smaller `n` or shorter windows; {_LIMIT}",
            )
        return found

    @property
    def windows_each(self) -> int:
        """How many windows of the model's length one window is generated in."""
        return windows_each(self.sampling)

    def pieces(self, job: Job) -> Steps:
        """All pieces of gaze with their labels; ends when the job is cancelled."""
        return pieces(self.sampling, job)

    def windows(self, pieces: Sequence[Piece], first: int = 0) -> gd.Windows:
        """Pieces that follow one another as windows first.. of the request."""
        gaze = np.concatenate([gaze for gaze, _ in pieces])
        labels = [found for _, found in pieces if found is not None]
        return self.sampling.windows(gaze, first, np.concatenate(labels) if labels else None)

    def command(self) -> str:
        """The command line that writes the same windows."""
        source = self.served.about.source
        words = ["gazediffusion", "generate", "-o", "gaze.parquet", "--model", source]
        words += ["-n", str(self.n)]
        for name, value in self.settings.items():
            flag = "rate" if name == "rate_hz" else name.replace("_", "-")
            for one in value if isinstance(value, list) else [value]:
                words += [f"--{flag}"] if one is True else [f"--{flag}", str(one)]
        return shlex.join(words)

    def python(self) -> str:
        """The Python program that writes the same windows."""

        def quoted(value: object) -> str:
            return json.dumps(value, ensure_ascii=False)

        def code(name: str, value: Any) -> str:
            if name == "at":
                points = (f"gd.parse_waypoint({quoted(one)}, screen)" for one in value)
                return f"[{', '.join(points)}]"
            if name == "start":
                return f"gd.parse_position({quoted(value)}, screen)"
            return "True" if value is True else quoted(value)

        given = ", ".join(f"{name}={code(name, value)}" for name, value in self.settings.items())
        task = quoted(self.settings["task"]) if "task" in self.settings else ""
        is_steered = "at" in self.settings or "start" in self.settings
        screen = f"screen = model.screen_of({task})\n" if is_steered else ""
        return (
            "import gazediffusion as gd\n\n"
            f"model = gd.load({quoted(self.served.about.source)})\n"
            f"{screen}windows = model.sample({self.n}, {given})\n"
            'windows.save("gaze.parquet")\n'
        )


def windows_json(windows: gd.Windows, first: int = 0) -> Iterator[dict[str, Any]]:
    """Each window as JSON: index, task, screen and normalized x and y, to five decimals.

    A sample where the eye is lost is null. Windows with labels have their events as well.
    """
    screens = [asdict(screen) for screen in windows.screens]
    labels = None if windows.labels is None else windows.cut_labels()
    identity = zip(windows.task, windows.screen_index, windows.cut(), strict=True)
    for number, (task, screen, gaze) in enumerate(identity):
        x, y = (
            [None if value != value else value for value in axis]
            for axis in np.round(gaze.astype(np.float64), _DECIMALS).tolist()
        )
        yield {
            "index": first + number,
            "task": windows.tasks[task],
            "screen": screens[screen],
            "x": x,
            "y": y,
            **({} if labels is None else {"labels": _runs(labels[number])}),
        }


def _runs(labels: NDArray[np.uint8]) -> list[tuple[str, int, int]]:
    """The events of labels (time,): class, first sample, and the sample after the last."""
    edges = [0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), len(labels)]
    return [
        (gd.EVENT_CLASSES[labels[first] - 1], first, stop)
        for first, stop in pairwise(edges)
        if labels[first]
    ]


def windows_with_events_json(windows: gd.Windows, first: int = 0) -> Iterator[dict[str, Any]]:
    """The same with the events of each window, in degrees of its own screen.

    They are those of the labels, or fixations and saccades by threshold where there are none.
    """
    has_labels = windows.labels is not None
    for number, window in enumerate(windows_json(windows, first)):
        gaze = windows[number]
        events = []
        for event in windows.events(number, by_labels=has_labels):
            begin, end = (
                round(ms * windows.rate_hz / 1000) for ms in (event.onset_ms, event.offset_ms)
            )
            # A labelled event ends before the sample on which the next one begins.
            events.append(_event_json(event, gaze[:, begin : end if has_labels else end + 1]))
        yield {**window, "events": events}


def _event_json(event: Event, gaze: NDArray[np.float32]) -> dict[str, Any]:
    """An event with its mean position, or a saccade with its end point; null where it is lost.

    gaze: of the event, (2, time).
    """
    span = gaze[:, -1:] if event.event == "saccade" else gaze
    x, y = span.astype(np.float64).mean(axis=1)
    return {
        "kind": event.event,
        "onset_ms": event.onset_ms,
        "offset_ms": event.offset_ms,
        "x": _rounded(float(x), _DECIMALS),
        "y": _rounded(float(y), _DECIMALS),
        "amplitude_deg": _rounded(event.amplitude_deg),
        "peak_deg_s": _rounded(event.peak_velocity_deg_s),
    }


def _rounded(value: float, decimals: int = 3) -> float | None:
    return round(value, decimals) if math.isfinite(value) else None
