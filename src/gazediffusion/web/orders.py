"""An order of windows: checked with the words of the command line, made piece by piece.

The command and the Python lines that an order is told with give the same windows, bit for bit:
the size of the pieces is among them, because sums in other batches round in other ways.
"""

from __future__ import annotations

import json
import math
import shlex
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.errors import GazeError

if TYPE_CHECKING:
    from gazediffusion.data.export import Event
    from gazediffusion.generation.generator import DiffusionGenerator
    from gazediffusion.generation.sets import SetConfig
    from gazediffusion.web.jobs import Job
    from gazediffusion.web.models import Models, Offer
    from gazediffusion.web.schemas import Asked
    from gazediffusion.web.settings import Limits

_TELL_EVERY_S = 0.1


@dataclass(frozen=True)
class Order:
    """Windows that can be made: the generator is loaded and every setting is possible."""

    offer: Offer
    quality: str
    generator: DiffusionGenerator
    config: SetConfig

    @classmethod
    def of(cls, asked: Asked, models: Models, limits: Limits, format: str = "parquet") -> Order:
        """What was asked for; what is impossible or too much is refused. Loads the model."""
        from gazediffusion.generation.sets import SetConfig

        config = SetConfig(n=asked.n, seed=asked.seed, format=format, seconds=asked.seconds)
        if asked.n > limits.max_windows:
            raise GazeError(
                f"-n must be {limits.max_windows} or fewer here, not {asked.n}",
                remedy="ask for fewer, or start serve with a larger --max-windows",
            )
        offer = models.find(asked.model)
        generator = models.generator(offer, asked.quality, asked.task)
        if config.n_samples(generator) == generator.run.config.length:
            config = replace(config, seconds=None)
        return cls(offer, asked.quality, generator, config)

    @property
    def n(self) -> int:
        """How many windows."""
        return self.config.n

    def pieces(self, job: Job) -> Generator[NDArray[np.float32], None, None]:
        """Whole windows (window, 2, time), telling the job's progress and heeding its end."""
        told = 0.0

        def tell(done: float) -> None:
            nonlocal told
            job.require_wanted()
            if time.monotonic() - told > _TELL_EVERY_S or done >= self.n:
                told = time.monotonic()
                job.hear("progress", done)

        yield from self.generator.pieces(0, self.n, self.config.seed, tell)

    def windows(self, piece: NDArray[np.float32], first: int) -> Iterator[dict[str, Any]]:
        """The windows of a piece, cut to the wanted seconds, as JSON tells them."""
        stop = first + len(piece)
        tasks = self.generator.tasks(first, stop, self.config.seed)
        shown = piece[:, :, : self.config.n_samples(self.generator)]
        for index, task, gaze in zip(range(first, stop), tasks, shown, strict=True):
            yield {"index": index, "task": task, **coordinates(gaze)}

    def windows_with_events(
        self, piece: NDArray[np.float32], first: int
    ) -> Iterator[dict[str, Any]]:
        """The same, with the fixations and saccades found in each."""
        from gazediffusion.data.events import detect_events

        screen, rate_hz = self.generator.screen, self.generator.run.config.rate_hz
        for window, gaze in zip(self.windows(piece, first), piece, strict=True):
            gaze = gaze[:, : len(window["x"])]
            time_ms = np.arange(gaze.shape[1]) * (1000.0 / rate_hz)
            gaze_px = np.asarray(screen.to_pixels(gaze), dtype=np.float32)
            events = [
                _event_json(event, gaze, rate_hz)
                for event in detect_events(gaze_px, time_ms, screen)
            ]
            yield {**window, "events": events}

    def card(self) -> dict[str, Any]:
        """What the set is and how it was made."""
        from gazediffusion.generation.sets import make_card

        return make_card(self.generator, self.config)

    def command(self) -> str:
        """The command line that writes the same windows."""
        words = ["gazediffusion", "generate", "-o", "gaze.parquet", "--model", self.offer.source]
        words += ["-n", str(self.n), "--seed", str(self.config.seed), "--quality", self.quality]
        if self.generator.task is not None:
            words += ["--task", self.generator.task]
        if self.config.seconds is not None:
            words += ["--seconds", repr(self.config.seconds)]
        return shlex.join([*words, "--batch-size", str(self.generator.batch_size)])

    def python(self) -> str:
        """The Python lines that write the same windows."""
        device = next(self.generator.run.network.parameters()).device.type
        on = "" if device == "cpu" else f", device={device!r}"
        task = "" if self.generator.task is None else f"task={_quoted(self.generator.task)}, "
        seconds = "" if self.config.seconds is None else f", seconds={self.config.seconds!r}"
        return (
            "from gazediffusion import DiffusionGenerator, SetConfig, write_set\n"
            "from gazediffusion.models.pretrained import load_model\n\n"
            f"model = load_model({_quoted(self.offer.source)}{on})\n"
            f"generator = DiffusionGenerator.of_quality(\n"
            f"    model, {_quoted(self.quality)}, {task}batch_size={self.generator.batch_size}\n)\n"
            f"config = SetConfig(n={self.n}, seed={self.config.seed}{seconds})\n"
            'write_set(generator, config, "gaze.parquet")\n'
        )


def coordinates(gaze: NDArray[np.float32]) -> dict[str, list[float]]:
    """Gaze (2, time) as lists, to five decimals: less than a hundredth of a pixel."""
    x, y = np.round(gaze.astype(np.float64), 5).tolist()
    return {"x": x, "y": y}


def _event_json(event: Event, gaze: NDArray[np.float32], rate_hz: float) -> dict[str, Any]:
    """A fixation with its mean position, or a saccade with the place it lands on."""
    first, last = (round(ms * rate_hz / 1000) for ms in (event.onset_ms, event.offset_ms))
    span = gaze[:, first : last + 1] if event.event == "fixation" else gaze[:, last : last + 1]
    x, y = span.astype(np.float64).mean(axis=1)
    return {
        "kind": event.event,
        "onset_ms": event.onset_ms,
        "offset_ms": event.offset_ms,
        "x": round(float(x), 5),
        "y": round(float(y), 5),
        "amplitude_deg": _rounded(event.amplitude_deg),
        "peak_deg_s": _rounded(event.peak_velocity_deg_s),
    }


def _rounded(value: float) -> float | None:
    return round(value, 3) if math.isfinite(value) else None


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
