"""One Ray worker against one process with one thread: time to the first part, and per part.

    python benchmarks/parts.py -n 24 --part-size 4 --rounds 2

The engines take turns. Each run starts Ray on this machine's cores, which counts in the first part.
Other work on the machine slows both, so small differences need an idle one.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import gazediffusion as gd

ENGINES: dict[str, dict[str, Any]] = {"local": {}, "ray": {"n_workers": 1, "device": "cpu"}}


def measure(model: gd.Model, n: int, part_size: int, engine: str) -> tuple[list[float], str]:
    """The clock in seconds at the start and after each part, and the manifest."""
    stamps = [time.perf_counter()]
    seen: set[float] = {0}

    def on_progress(done: float) -> None:
        if done % part_size == 0 and done not in seen:
            seen.add(done)
            stamps.append(time.perf_counter())

    how: dict[str, Any] = {"part_size": part_size, "batch_size": part_size, "quality": "fast"}
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "parts"
        how |= {"engine": engine, "progress": on_progress, **ENGINES[engine]}
        gd.generate_dataset(model, folder, n, **how)
        return stamps, (folder / "manifest.json").read_text()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=24)
    parser.add_argument("--part-size", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    model = gd.load("default", device="cpu")
    rows: dict[str, list[tuple[float, float]]] = {engine: [] for engine in ENGINES}
    manifests: set[str] = set()
    for _ in range(given.rounds):
        for engine, found in rows.items():
            stamps, manifest = measure(model, given.n, given.part_size, engine)
            begun, first, *_, last = stamps
            found.append((first - begun, (last - first) / (len(stamps) - 2)))
            manifests.add(manifest)
            print(engine, [round(one, 2) for one in found[-1]], flush=True)
    print(f"\nbytes {'equal' if len(manifests) == 1 else 'differ'}; load {os.getloadavg()}\n")
    print("| engine | s to the first part | s per further part |\n|---|---:|---:|")
    for engine, found in rows.items():
        cells = [f"{min(column):.1f} to {max(column):.1f}" for column in zip(*found, strict=True)]
        print(f"| {engine} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
