"""Fifty clients at once on a real server for a minute: none lost, none wrong, memory bounded.

    python benchmarks/serve.py [--seconds 60] [--clients 50] [--model RUN]

Each client asks again and again for the models, for windows as JSON, as a stream or as Parquet, or
sends a recording, as soon as its last answer has come. Every answer is compared with what the
library gives. A full queue (429) is asked again after the time it names, and counted. Without
--model a tiny joint model is trained first.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from gazediffusion import DiffusionGenerator, Screen, SetConfig, Windows, write_set
from gazediffusion.data.preparing import PrepareConfig, prepare
from gazediffusion.data.readers import find_sources
from gazediffusion.data.simulation import SimulationConfig, write_simulation
from gazediffusion.models.pretrained import load_model
from gazediffusion.models.recipes import RECIPES
from gazediffusion.training.loop import train
from gazediffusion.web.models import BATCH_CPU

SEEDS = range(6)
KINDS = ["models", "json", "json", "stream", "stream", "parquet", "real"]


def tiny_model(folder: Path) -> Path:
    """A joint model of a few seconds' training, on windows of two seconds."""
    windows = prepare(find_sources([study(folder)]), PrepareConfig(seconds=2.048))
    windows.save(folder / "windows.safetensors")
    recipe = replace(RECIPES["joint-tiny"], epochs=2)
    list(
        train([Windows.load(folder / "windows.safetensors")], folder / "run", recipe, device="cpu")
    )
    return folder / "run"


def study(folder: Path) -> Path:
    """Simulated recordings of four people; made once."""
    if not (folder / "study").exists():
        config = SimulationConfig(
            n_participants=4, minutes=1, rate_hz=250, binocular=False,
            screen=Screen(1280, 720, 40, 22.5, 45),
        )  # fmt: skip
        write_simulation(config, folder / "study", "csv")
    return folder / "study"


class Expected:
    """What the library gives for everything that is asked."""

    def __init__(self, model: Path, folder: Path) -> None:
        generator = DiffusionGenerator.of_quality(load_model(model), "fast", batch_size=BATCH_CPU)
        self.gaze = {
            (seed, n): np.concatenate(list(generator.pieces(0, n, seed)))
            for seed in SEEDS
            for n in (1, 2, 3)
        }
        self.parquet = {}
        for seed in SEEDS:
            path = folder / "expected" / f"{seed}.parquet"
            write_set(generator, SetConfig(3, seed), path)
            self.parquet[seed] = hashlib.sha256(path.read_bytes()).hexdigest()
        self.recording = min(study(folder).glob("*.csv"))
        self.sidecar = self.recording.with_suffix(".json")
        config = generator.run.config
        seconds = config.length / config.rate_hz
        cut = PrepareConfig(rate_hz=config.rate_hz, seconds=seconds, validation_fraction=0.0)
        self.n_real = len(prepare(find_sources([self.recording]), cut))

    def is_right(self, windows: list[dict[str, Any]], seed: int, n: int) -> bool:
        """Whether these are the windows of that seed."""
        found = np.array([[one["x"], one["y"]] for one in windows])
        gaze = self.gaze[seed, n]
        return found.shape == gaze.shape and bool(np.allclose(found, gaze, atol=2e-5))


@dataclass
class Tally:
    """What happened."""

    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    n_busy: int = 0
    latency_s: dict[str, list[float]] = field(default_factory=dict)


async def ask(client: httpx2.AsyncClient, kind: str, seed: int, n: int, expected: Expected) -> Any:
    """One request: its answer, and whether it is right."""
    asked: dict[str, str | int] = {"n": n, "seed": seed, "quality": "fast"}
    if kind == "models":
        answer = await client.get("/api/models")
        return answer, lambda: len(answer.json()["models"]) > 0
    if kind == "json":
        answer = await client.post("/api/generate", json=asked)
        return answer, lambda: expected.is_right(answer.json()["windows"], seed, n)
    if kind == "stream":
        answer = await client.get("/api/generate/stream", params=asked)
        found = re.findall(r"event: window\ndata: (.*)\n", answer.text)
        return (
            answer,
            lambda: (
                expected.is_right([json.loads(one) for one in found], seed, n)
                and answer.text.count("event: done") == 1
            ),
        )
    if kind == "parquet":
        answer = await client.post("/api/generate", json={**asked, "n": 3, "format": "parquet"})
        digest = hashlib.sha256(answer.content).hexdigest()
        return answer, lambda: digest == expected.parquet[seed]
    files = [
        ("files", (path.name, path.read_bytes()))
        for path in (expected.recording, expected.sidecar)
        if path.exists()
    ]
    answer = await client.post("/api/real", files=files)
    return answer, lambda: answer.json()["n_windows"] == expected.n_real


async def one_client(url: str, number: int, until: float, expected: Expected, tally: Tally) -> None:
    """Ask until the time is over; ask again where the queue is full."""
    rng = random.Random(number)
    async with httpx2.AsyncClient(base_url=url, timeout=120) as client:
        while time.monotonic() < until:
            kind, seed, n = rng.choice(KINDS), rng.choice(SEEDS), rng.choice([1, 2, 3])
            begun = time.monotonic()
            while True:
                try:
                    answer, is_right = await ask(client, kind, seed, n, expected)
                except httpx2.HTTPError as error:
                    tally.lost.append(f"{kind}: {error!r}")
                    break
                if answer.status_code == 429:
                    tally.n_busy += 1
                    await asyncio.sleep(float(answer.headers["retry-after"]) * rng.random())
                    continue
                if answer.status_code != 200:
                    tally.lost.append(f"{kind}: {answer.status_code} {answer.text[:200]}")
                elif is_right():
                    tally.done[kind] += 1
                    tally.latency_s.setdefault(kind, []).append(time.monotonic() - begun)
                else:
                    tally.wrong.append(f"{kind} of seed {seed}, n {n}")
                break


async def load(url: str, n_clients: int, seconds: float, expected: Expected, tally: Tally) -> None:
    """All clients at once."""
    until = time.monotonic() + seconds
    await asyncio.gather(
        *(one_client(url, number, until, expected, tally) for number in range(n_clients))
    )


def memory_mb(pid: int, what: str) -> float:
    """VmRSS (now) or VmHWM (peak) of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"{what}:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--model", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = arguments.model or tiny_model(folder)
        expected = Expected(model, folder)
        begun = time.monotonic()
        command = ["gazediffusion", "serve", "--port", "0", "--no-open", "--model", str(model)]
        server = subprocess.Popen(
            [sys.executable, "-u", "-m", *command], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+:\d+", server.stdout.readline())
            assert found is not None
            assert httpx2.get(found[0]).status_code == 200
            print(f"the page is there after {time.monotonic() - begun:.2f} s")
            begun = time.monotonic()
            httpx2.get(f"{found[0]}/api/generate/stream?n=1&quality=fast", timeout=60)
            print(f"the first window {time.monotonic() - begun:.2f} s later")
            # Two halves: what the first one has loaded and cached, the second must not add to.
            memory = [memory_mb(server.pid, "VmRSS")]
            tally = Tally()
            for _ in range(2):
                half = arguments.seconds / 2
                asyncio.run(load(found[0], arguments.clients, half, expected, tally))
                memory.append(memory_mb(server.pid, "VmRSS"))
            peak = memory_mb(server.pid, "VmHWM")
        finally:
            server.terminate()
            server.wait()
    total = sum(tally.done.values())
    print(f"{arguments.clients} clients, {arguments.seconds:g} s: {total} right answers")
    print(f"wrong {len(tally.wrong)}, lost {len(tally.lost)}, asked to come again {tally.n_busy}")
    for line in (tally.wrong + tally.lost)[:10]:
        print(" ", line)
    before, between, after = memory
    print(
        f"memory: {before:.0f} MB before, {between:.0f} MB after half of it, {after:.0f} MB after, "
        f"{peak:.0f} MB at most"
    )
    for kind, seconds in sorted(tally.latency_s.items()):
        middle, high, worst = np.percentile(seconds, [50, 95, 100])
        print(
            f"{kind:8} {tally.done[kind]:5} answers, "
            f"median {middle:.2f} s, 95 % {high:.2f} s, worst {worst:.2f} s"
        )


if __name__ == "__main__":
    main()
