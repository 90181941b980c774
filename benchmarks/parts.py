"""What Ray costs: its workers against one process on the same cores, in wall time and CPU time.

    python benchmarks/parts.py -n 96 --part-size 4 --rounds 3

The engines take turns. Each run starts Ray on this machine's cores, which counts in the first parts
alone. Further parts are measured from the time at which every worker has written two. CPU time is
that of the command and of all processes under it, so it also counts Ray's own ones. Unlike wall
time it is not lengthened by waiting for a core that other work has, so it can be compared on a busy
machine. The overhead is the median over rounds of the ratio within a round, less one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import torch

import gazediffusion as gd

ENGINES = ("local", "ray")


def cpu_s() -> float:
    """CPU seconds so far of this process and of all processes under it that still run (Linux)."""
    found: dict[int, tuple[int, int]] = {}  # the parent, and ticks of user and system time
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        found[int(path.parent.name)] = int(fields[1]), int(fields[11]) + int(fields[12])

    def is_ours(pid: int) -> bool:
        return pid == os.getpid() or (pid in found and is_ours(found[pid][0]))

    return sum(ticks for pid, (_, ticks) in found.items() if is_ours(pid)) / os.sysconf(
        "SC_CLK_TCK"
    )


def measure(
    model: gd.Model, n: int, part_size: int, engine: str, n_workers: int
) -> tuple[list[float], str]:
    """Seconds to the first part, then wall and CPU seconds per further part; and the manifest."""
    stamps = [(time.perf_counter(), cpu_s())]
    seen: set[float] = {0}

    def on_progress(done: float) -> None:
        if done % part_size == 0 and done not in seen:
            seen.add(done)
            stamps.append((time.perf_counter(), cpu_s()))

    how: dict[str, Any] = {"part_size": part_size, "batch_size": part_size, "quality": "fast"}
    if engine == "ray":
        how |= {"n_workers": n_workers, "device": "cpu"}
    torch.set_num_threads(n_workers if engine == "local" else 1)
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "parts"
        gd.generate_dataset(model, folder, n, engine=engine, progress=on_progress, **how)
        manifest = (folder / "manifest.json").read_text()
    begun, steady, last = stamps[0], stamps[2 * n_workers], stamps[-1]
    n_parts = len(stamps) - 1 - 2 * n_workers
    per_part = [(last[k] - steady[k]) / n_parts for k in (0, 1)]
    return [stamps[1][0] - begun[0], *per_part], manifest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=96)
    parser.add_argument("--part-size", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--workers", type=int, nargs="+", default=[1, 2], help="Ray workers, or threads of local"
    )
    given = parser.parse_args()
    if given.n % given.part_size or given.n // given.part_size <= 2 * max(given.workers):
        parser.error("-n must be a multiple of --part-size, with more than two parts per worker")
    model = gd.load("default", device="cpu")
    cells = [(engine, n_workers) for n_workers in given.workers for engine in ENGINES]
    found: dict[tuple[str, int], list[list[float]]] = {cell: [] for cell in cells}
    manifests: set[str] = set()
    for number in range(given.rounds):
        for engine, n_workers in cells if number % 2 == 0 else cells[::-1]:
            row, manifest = measure(model, given.n, given.part_size, engine, n_workers)
            found[engine, n_workers].append(row)
            manifests.add(manifest)
            print(engine, n_workers, [round(one, 2) for one in row], flush=True)
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"\nbytes {'equal' if len(manifests) == 1 else 'differ'}; load {load}\n")
    print("| engine | cores | s to the first part | s per further part | CPU s per further part |")
    print("|---|---:|---:|---:|---:|")
    for (engine, n_workers), rows in found.items():
        spans = [f"{min(one):.2f} to {max(one):.2f}" for one in zip(*rows, strict=True)]
        print(f"| {engine} | {n_workers} | {' | '.join(spans)} |")
    print("\n| cores | overhead of Ray, wall time | CPU time |\n|---:|---:|---:|")
    for n_workers in given.workers:
        pairs = [*zip(found["ray", n_workers], found["local", n_workers], strict=True)]
        cost = [statistics.median(ray[k] / own[k] - 1 for ray, own in pairs) for k in (1, 2)]
        print(f"| {n_workers} | {' | '.join(f'{100 * one:.1f} %' for one in cost)} |")


if __name__ == "__main__":
    main()
