"""Fifty concurrent clients of a server for a minute: lost and wrong responses, rate, memory.

    python benchmarks/serve.py [--seconds 60] [--clients 50] [--model RUN]

Each client repeatedly requests the models, windows as JSON, as a stream or as Parquet, or sends a
recording, as soon as its last response is complete. Every response is compared with the library's.
A response 429 is counted, and its request repeated after the time it states. Without --model a
tiny joint model is trained first. On a CPU, `OMP_NUM_THREADS` is of the server and of the expected
responses alike.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
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

import gazediffusion as gd
from gazediffusion.web.generate import BATCH_CPU

SEEDS = range(6)
KINDS = ["models", "json", "json", "stream", "stream", "parquet", "real"]


def tiny_model(folder: Path) -> Path:
    """A joint model trained for a few seconds on windows of two seconds."""
    windows = gd.prepare(gd.read(study(folder)), gd.PrepareConfig(seconds=2.048))
    gd.train(windows, folder / "run", replace(gd.RECIPES["joint-tiny"], epochs=2), device="cpu")
    return folder / "run"


def study(folder: Path) -> Path:
    """Simulated recordings of four participants; written once."""
    if not (folder / "study").exists():
        config = gd.SimulationConfig(
            n_participants=4, minutes=1, rate_hz=250, binocular=False,
            screen=gd.Screen(1280, 720, 40, 22.5, 45),
        )  # fmt: skip
        gd.write_simulation(config, folder / "study", "csv")
    return folder / "study"


class Expected:
    """What the library gives for every request."""

    def __init__(self, source: Path | str, folder: Path) -> None:
        model = gd.load(source, device="cpu")
        self.gaze = {}
        self.parquet = {}
        for seed in SEEDS:
            windows = model.sample(3, seed=seed, batch_size=BATCH_CPU)
            self.gaze[seed] = windows.to_numpy()
            path, *_ = windows.save(folder / "expected" / f"{seed}.parquet")
            self.parquet[seed] = hashlib.sha256(path.read_bytes()).hexdigest()
        self.recording = min(study(folder).glob("*.csv"))
        self.sidecar = self.recording.with_suffix(".json")
        seconds = windows.length / windows.rate_hz
        cut = gd.PrepareConfig(rate_hz=windows.rate_hz, seconds=seconds, validation_fraction=0.0)
        self.n_real = len(gd.prepare(gd.read(self.recording), cut))

    def is_correct(self, windows: list[dict[str, Any]], seed: int, n: int) -> bool:
        """Whether these are the first n windows of that seed."""
        found = np.array([[one["x"], one["y"]] for one in windows])
        gaze = self.gaze[seed][:n]
        return found.shape == gaze.shape and bool(np.allclose(found, gaze, atol=2e-5))


@dataclass
class Tally:
    """Counts of responses."""

    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    n_busy: int = 0
    latency_s: dict[str, list[float]] = field(default_factory=dict)
    n_windows: int = 0


async def send(client: httpx2.AsyncClient, kind: str, seed: int, n: int, expected: Expected) -> Any:
    """One request: its response, and whether it is correct."""
    fields: dict[str, str | int] = {"n": n, "seed": seed}
    if kind == "models":
        response = await client.get("/api/models")
        return response, lambda: len(response.json()["models"]) > 0
    if kind == "json":
        response = await client.post("/api/generate", json=fields)
        return response, lambda: expected.is_correct(response.json()["windows"], seed, n)
    if kind == "stream":
        response = await client.get("/api/generate/stream", params=fields)
        found = re.findall(r"event: window\ndata: (.*)\n", response.text)
        return (
            response,
            lambda: (
                expected.is_correct([json.loads(one) for one in found], seed, n)
                and response.text.count("event: done") == 1
            ),
        )
    if kind == "parquet":
        response = await client.post("/api/generate", json={**fields, "n": 3, "format": "parquet"})
        digest = hashlib.sha256(response.content).hexdigest()
        return response, lambda: digest == expected.parquet[seed]
    files = [
        ("files", (path.name, path.read_bytes()))
        for path in (expected.recording, expected.sidecar)
        if path.exists()
    ]
    response = await client.post("/api/real", files=files)
    return response, lambda: response.json()["n_windows"] == expected.n_real


async def one_client(url: str, number: int, until: float, expected: Expected, tally: Tally) -> None:
    """Send at least one request, until the time is over; repeat those that are refused."""
    rng = random.Random(number)
    async with httpx2.AsyncClient(base_url=url, timeout=120) as client:
        is_first = True
        while is_first or time.monotonic() < until:
            is_first = False
            kind, seed, n = rng.choice(KINDS), rng.choice(SEEDS), rng.choice([1, 2, 3])
            started = time.monotonic()
            while True:
                try:
                    response, is_correct = await send(client, kind, seed, n, expected)
                except httpx2.HTTPError as error:
                    tally.lost.append(f"{kind}: {error!r}")
                    break
                if response.status_code == 429:
                    tally.n_busy += 1
                    await asyncio.sleep(float(response.headers["retry-after"]) * rng.random())
                    continue
                if response.status_code != 200:
                    tally.lost.append(f"{kind}: {response.status_code} {response.text[:200]}")
                elif is_correct():
                    tally.done[kind] += 1
                    tally.n_windows += {"json": n, "stream": n, "parquet": 3}.get(kind, 0)
                    tally.latency_s.setdefault(kind, []).append(time.monotonic() - started)
                else:
                    tally.wrong.append(f"{kind} of seed {seed}, n {n}")
                break


async def load(url: str, n_clients: int, seconds: float, expected: Expected, tally: Tally) -> None:
    """All clients concurrently."""
    until = time.monotonic() + seconds
    await asyncio.gather(
        *(one_client(url, number, until, expected, tally) for number in range(n_clients))
    )


def memory_mb(pid: int) -> float:
    """Resident memory of a process and of those that it has started (Linux)."""
    total = 0.0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            status = (path / "status").read_text()
        except OSError:  # it has ended
            continue
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        if found is not None and pid in (int(path.name), parent):
            total += int(found[1]) / 1024
    return total


def measure(model: str, n_clients: int, seconds: float, expected: Expected) -> None:
    """Print what the clients of a server find."""
    started = time.monotonic()
    command = ["gazediffusion", "serve", "--port", "0", "--no-open", "--model", model]
    server = subprocess.Popen(
        [sys.executable, "-u", "-m", *command], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+:\d+", server.stdout.readline())
        assert found is not None
        assert httpx2.get(found[0]).status_code == 200
        print(f"page available after {time.monotonic() - started:.2f} s")
        started = time.monotonic()
        httpx2.get(f"{found[0]}/api/generate/stream?n=1", timeout=60)
        print(f"first window {time.monotonic() - started:.2f} s later")
        # Two halves: the second must not add to what the first has loaded and cached.
        memory = [memory_mb(server.pid)]
        tally = Tally()
        started = time.monotonic()
        for _ in range(2):
            asyncio.run(load(found[0], n_clients, seconds / 2, expected, tally))
            memory.append(memory_mb(server.pid))
        taken_s = time.monotonic() - started
    finally:
        server.terminate()
        server.wait()
    total = sum(tally.done.values())
    print(f"{n_clients} clients, {taken_s:.0f} s: {total} correct responses")
    print(f"{tally.n_windows} windows, {tally.n_windows / taken_s:.2f} per second")
    print(f"wrong {len(tally.wrong)}, lost {len(tally.lost)}, refused with 429 {tally.n_busy}")
    for line in (tally.wrong + tally.lost)[:10]:
        print(" ", line)
    before, between, after = memory
    print(f"memory: {before:.0f} MB before, {between:.0f} MB at half, {after:.0f} MB at the end")
    for kind, latency_s in sorted(tally.latency_s.items()):
        middle, high, worst = np.percentile(latency_s, [50, 95, 100])
        print(
            f"{kind:8} {tally.done[kind]:5} responses, "
            f"median {middle:.2f} s, 95 % {high:.2f} s, worst {worst:.2f} s"
        )
    print(f"load {', '.join(f'{one:.1f}' for one in os.getloadavg())}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--model")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = given.model or tiny_model(folder)
        expected = Expected(model, folder)
        measure(str(model), given.clients, given.seconds, expected)


if __name__ == "__main__":
    main()
