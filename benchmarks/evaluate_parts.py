"""Evaluation of a set in parts: rate, and peak memory against the number of windows.

    python benchmarks/evaluate_parts.py -n 100 1000 10000 --one-pass 1000

Each number of windows is evaluated by a process of its own, part by part, and `--one-pass` windows
at once. The set is one part of simulated gaze under many names, against the packaged summary.
CPU seconds are of that process; those of loading the package are taken off.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

PROGRAM = """
import json, re, sys, time
from pathlib import Path
import gazediffusion as gd
from gazediffusion.evaluation.set_loading import load_set
from gazediffusion.evaluation.summary import find_summary

folder, n_sample, is_at_once, workers = json.loads(sys.argv[1])
config = gd.EvaluationConfig(quick=True)
begun, cpu = time.perf_counter(), time.process_time()
if is_at_once:
    windows = load_set(folder, "synthetic", find_summary("gazecom"))
    gd.evaluate("gazecom", {"set": windows}, config=config)
else:
    gd.evaluate_files(
        {"set": folder}, config=config, summary="gazecom", n_sample=n_sample, n_workers=workers
    )
# Not ru_maxrss, which begins at that of the parent.
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(json.dumps([time.perf_counter() - begun, time.process_time() - cpu, peak]))
"""


def write_part(folder: Path, n: int) -> None:
    """One part of n simulated windows of 8 s."""
    import gazediffusion as gd

    config = gd.SimulationConfig(
        n_participants=1, minutes=(8 * n + 60) / 60 * 3, rate_hz=250, trial_seconds=60
    )
    gd.write_simulation(config, folder / "simulated", "parquet")
    found = gd.prepare(
        gd.read(folder / "simulated"), gd.PrepareConfig(stride=2000, validation_fraction=0)
    )
    windows = gd.Windows.from_array(found.cut(range(n)), 250, found.screen)  # type: ignore[arg-type]
    windows.save(folder / "part.parquet")


def link_set(folder: Path, part: Path, n_parts: int, n_each: int) -> None:
    """A set in parts: the same part under many names."""
    folder.mkdir()
    card = {"format": "gazediffusion-synthetic", "synthetic": True, "rate_hz": 250.0}
    sizes = {"n_windows": n_parts * n_each, "window_samples": 2000}
    (folder / "card.json").write_text(json.dumps({**card, **sizes}))
    parts = []
    for number in range(n_parts):
        name = f"part-{number:06d}.parquet"
        os.link(part, folder / name)
        parts.append({"file": name, "first": number * n_each, "n": n_each})
    manifest = {"format": "gazediffusion-parts", **sizes, "parts": parts}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--one-pass", type=int, default=1000)
    parser.add_argument("--part-size", type=int, default=100)
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as parent:
        home = Path(parent)
        write_part(home, given.part_size)
        runs = [(n, False) for n in given.n] + [(given.one_pass, True)]
        for k, (n, is_at_once) in enumerate(runs):
            folder = home / f"{k}"
            n_parts = -(-n // given.part_size)
            link_set(folder, home / "part.parquet", n_parts, given.part_size)
            words = [str(folder), given.sample, is_at_once, given.workers]
            done = subprocess.run(
                [sys.executable, "-c", PROGRAM, json.dumps(words)],
                stdout=subprocess.PIPE, text=True, check=True,
            )  # fmt: skip
            wall, cpu, peak = json.loads(done.stdout)
            n = n_parts * given.part_size
            name = "one pass" if is_at_once else "in parts"
            rows.append(f"| {name} | {n:,} | {wall:.1f} | {cpu:.1f} | {n / cpu:.0f} | {peak:.0f} |")
            print(rows[-1], flush=True)
    print(f"\nload {os.getloadavg()}\n")
    print("| how | windows | s | CPU s | windows per CPU s | peak memory (MiB) |")
    print("\n".join(["|---|---:|---:|---:|---:|---:|", *rows]))


if __name__ == "__main__":
    main()
