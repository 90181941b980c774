"""A request for windows: checked by the library, generated piece by piece.

The command and the Python program of a request write the same bytes as its export. They state the
batch size, because the order of summation changes the last digits of float32.
"""

from __future__ import annotations

import json
import math
import shlex
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.web.jobs import Job
from gazediffusion.web.models import BATCH_CPU, BATCH_GPU, Models, ServedModel
from gazediffusion.web.schemas import GenerationFields
from gazediffusion.web.settings import Limits

if TYPE_CHECKING:
    from gazediffusion.data.export import Event
    from gazediffusion.generation.sets import Sampling

_PROGRESS_EVERY_S = 0.1
_DECIMALS = 5  # of normalized positions: less than a hundredth of a pixel


@dataclass(frozen=True)
class GenerationRequest:
    """Windows that can be generated: the model is loaded and every setting is valid.

    settings: those of `Model.sample` that are not its defaults.
    """

    served: ServedModel
    n: int
    settings: dict[str, Any]
    sampling: Sampling

    @classmethod
    def of(
        cls, fields: GenerationFields, models: Models, limits: Limits, format: str = "parquet"
    ) -> GenerationRequest:
        """Check the fields of a request; loads the model."""
        if fields.n > limits.max_windows:
            raise GazeError(
                f"`n` must be {limits.max_windows} or fewer here, not {fields.n}",
                remedy="the limit is `max_windows` of the server",
            )
        served = models.find(fields.model)
        model = models.load(served)
        given: dict[str, Any] = {
            "task": fields.task,
            "quality": fields.quality,
            "seed": fields.seed,
            "seconds": None if fields.seconds == served.about.seconds else fields.seconds,
            "rate_hz": None if fields.rate_hz == served.about.rate_hz else fields.rate_hz,
            "losses": fields.losses or None,
            "batch_size": BATCH_GPU if model.device.type == "cuda" else BATCH_CPU,
        }
        settings = {name: value for name, value in given.items() if value is not None}
        sampling = model.sampling(fields.n, format=format, **settings)
        return cls(served, fields.n, settings, sampling)

    def pieces(self, job: Job) -> Generator[NDArray[np.float32], None, None]:
        """Gaze (window, 2, time) in pieces; reports progress, ends when the job is cancelled."""
        reported = 0.0

        def progress(done: float) -> None:
            nonlocal reported
            job.require_active()
            if time.monotonic() - reported > _PROGRESS_EVERY_S or done >= self.n:
                reported = time.monotonic()
                job.report("progress", done)

        yield from self.sampling.pieces(progress)

    def command(self) -> str:
        """The command line that writes the same windows."""
        source = self.served.about.source
        words = ["gazediffusion", "generate", "-o", "gaze.parquet", "--model", source]
        words += ["-n", str(self.n)]
        for name, value in self.settings.items():
            flag = "rate" if name == "rate_hz" else name.replace("_", "-")
            words += [f"--{flag}"] if value is True else [f"--{flag}", str(value)]
        return shlex.join(words)

    def python(self) -> str:
        """The Python program that writes the same windows."""

        def quoted(value: object) -> str:
            return json.dumps(value, ensure_ascii=False)

        given = ", ".join(
            f"{name}={value if value is True else quoted(value)}"
            for name, value in self.settings.items()
        )
        return (
            "import gazediffusion as gd\n\n"
            f"model = gd.load({quoted(self.served.about.source)})\n"
            f"windows = model.sample({self.n}, {given})\n"
            'windows.save("gaze.parquet")\n'
        )


def windows_json(windows: gd.Windows, first: int = 0) -> Iterator[dict[str, Any]]:
    """Each window as JSON: index, task, screen and normalized x and y, to five decimals.

    A sample where the eye is lost is null.
    """
    screens = [asdict(screen) for screen in windows.screens]
    identity = zip(windows.task, windows.screen_index, windows.cut(), strict=True)
    for index, (task, screen, gaze) in enumerate(identity, start=first):
        x, y = (
            [None if value != value else value for value in axis]
            for axis in np.round(gaze.astype(np.float64), _DECIMALS).tolist()
        )
        yield {
            "index": index,
            "task": windows.tasks[task],
            "screen": screens[screen],
            "x": x,
            "y": y,
        }


def windows_with_events_json(windows: gd.Windows, first: int = 0) -> Iterator[dict[str, Any]]:
    """The same with the fixations and saccades of each window, in degrees of its own screen."""
    for number, window in enumerate(windows_json(windows, first)):
        events = [
            _event_json(event, windows[number], windows.rate_hz) for event in windows.events(number)
        ]
        yield {**window, "events": events}


def _event_json(event: Event, gaze: NDArray[np.float32], rate_hz: float) -> dict[str, Any]:
    """A fixation with its mean position, or a saccade with its end point."""
    first, last = (round(ms * rate_hz / 1000) for ms in (event.onset_ms, event.offset_ms))
    span = gaze[:, first : last + 1] if event.event == "fixation" else gaze[:, last : last + 1]
    x, y = span.astype(np.float64).mean(axis=1)
    return {
        "kind": event.event,
        "onset_ms": event.onset_ms,
        "offset_ms": event.offset_ms,
        "x": round(float(x), _DECIMALS),
        "y": round(float(y), _DECIMALS),
        "amplitude_deg": _rounded(event.amplitude_deg),
        "peak_deg_s": _rounded(event.peak_velocity_deg_s),
    }


def _rounded(value: float) -> float | None:
    return round(value, 3) if math.isfinite(value) else None
