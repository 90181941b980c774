"""From measured rates to a billion windows: GPU hours, bytes, and what limits them next.

    python runs/scale_arithmetic.py -n 64 --rate 'H200, default=0.00042' --rate 'H200, fast=0.00030'

Generates n windows, measures seconds per window, and the bytes and seconds per window of writing
them as a part of a set (`generate --engine`) and as JSON of the service. A worker generates a part
and then writes it, so its seconds per window are the sum. Writing is measured in CPU time, which
other work on the machine changes less than wall time. Further rates, measured elsewhere, are given
as --rate NAME=SECONDS. The last table is the arithmetic.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import gazediffusion as gd
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.generation.partitions import Plan
from gazediffusion.generation.sets import Sampling

N = 1_000_000_000
SECONDS_EACH = 8.0  # of a window of the packaged model


@dataclass(frozen=True)
class Replayed(DiffusionGenerator):
    """A generator whose windows are at hand: what remains of writing a part is not generation."""

    gaze: NDArray[np.float32] | None = None

    def pieces(
        self,
        first: int,
        stop: int,
        seed: int,
        progress: Callable[[float], None] = lambda done: None,
    ) -> Iterator[NDArray[np.float32]]:
        """The stored windows first..stop-1 in batches (window, 2, time)."""
        assert self.gaze is not None
        for start in range(first, stop, self.batch_size):
            yield self.gaze[start : min(start + self.batch_size, stop)]


@dataclass(frozen=True)
class Writing:
    """What one window of a part costs: bytes on disk, and CPU seconds of its worker.

    json_s: CPU seconds of one window as the service streams it.
    """

    n_bytes: float
    cpu_s: float
    json_s: float = 0.0


def measured(model: gd.Model, n: int, quality: str, batch_size: int) -> tuple[float, Writing]:
    """Wall seconds of generating a window, and what writing one costs."""
    sampling = model.sampling(n, quality=quality, batch_size=batch_size)
    generator = sampling.generator
    assert isinstance(generator, DiffusionGenerator)
    list(generator.pieces(0, min(n, batch_size), 1))  # loads what the first batch needs
    started = time.perf_counter()
    gaze = np.concatenate(list(sampling.pieces()))
    generated_s = (time.perf_counter() - started) / n
    own = {one.name: getattr(generator, one.name) for one in fields(generator)}
    plan = Plan(Replayed(**own, gaze=gaze), sampling.config, part_size=n)
    with tempfile.TemporaryDirectory() as name:
        plan.write(Path(name), 0)  # loads the libraries
        started = time.process_time()
        part = plan.write(Path(name), 0)
        written_s = (time.process_time() - started) / n
        n_bytes = (Path(name) / part.name).stat().st_size / n
    return generated_s, Writing(n_bytes, written_s, _streamed_s(sampling, gaze))


def _streamed_s(sampling: Sampling, gaze: NDArray[np.float32]) -> float:
    from gazediffusion.web.requests import windows_with_events_json

    def text() -> str:
        return "".join(map(json.dumps, windows_with_events_json(sampling.windows(gaze))))

    text()
    started = time.process_time()
    text()
    return (time.process_time() - started) / len(gaze)


def hours(n: int, seconds_each: float) -> float:
    """Hours of one worker for n windows.

    >>> hours(1_000_000_000, 0.00044)
    122.22222222222223
    """
    return n * seconds_each / 3600


def table(rates: dict[str, float], writing: Writing, n: int = N) -> str:
    """The arithmetic as Markdown; rates: seconds of generation per window by the name of a worker.

    >>> print(table({"H200": 0.00044}, Writing(50_000.0, 0.001)).splitlines()[2])
    | H200 | 0.440 | 122 | 1.440 | 400 | 69 % | 34.7 |
    """
    head = (
        "| worker | ms per window, generated | hours | ms, generated and written | hours | "
        "share of writing | MB/s written |\n|---|---:|---:|---:|---:|---:|---:|"
    )
    rows = []
    for name, generated_s in rates.items():
        whole_s = generated_s + writing.cpu_s
        rows.append(
            f"| {name} | {1e3 * generated_s:.3f} | {hours(n, generated_s):,.0f} | "
            f"{1e3 * whole_s:.3f} | {hours(n, whole_s):,.0f} | "
            f"{100 * writing.cpu_s / whole_s:.0f} % | {writing.n_bytes / whole_s / 1e6:.1f} |"
        )
    return "\n".join([head, *rows])


def main(arguments: list[str] | None = None) -> None:
    """Measure here and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=64)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quality", default="default")
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--rate", action="append", default=[], metavar="NAME=SECONDS")
    given = parser.parse_args(arguments)
    model = gd.load("default", device=given.device)
    generated_s, writing = measured(model, given.n, given.quality, given.batch_size)
    rates = {f"{given.device}, {given.quality}, here": generated_s}
    for one in given.rate:
        name, _, seconds = one.rpartition("=")
        rates[name] = float(seconds)
    years = N * SECONDS_EACH / 3600 / 24 / 365.25
    print(
        f"a window: {writing.n_bytes:,.0f} bytes, {1e3 * writing.cpu_s:.2f} ms of CPU to write, "
        f"{1e3 * writing.json_s:.2f} ms as JSON of the service\n"
        f"{N:,} windows: {years:,.0f} years of gaze, {N * writing.n_bytes / 1e12:.1f} TB\n"
    )
    print(table(rates, writing))


if __name__ == "__main__":
    main()
