"""Prepare 24 million samples: seconds and memory, ours against pandas and a loop over windows.

    python benchmarks/prepare.py [--samples 24000000] [--csv]    # a minute

Both sides read the same Parquet table, drop lost samples with padding and impossible speeds, cut
position windows from valid runs and drop those off screen; they must find the same number of
windows. Each runs in a process of its own, so that its memory can be read. With --csv ours reads
the same table as text as well.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TRIAL = 15_000  # one minute at 250 Hz
LENGTH, STRIDE, WIDTH, HEIGHT = 2000, 250, 1280, 720


def write_table(path: Path, n_samples: int) -> None:
    """Simulated trials repeated under new names until the table is large enough."""
    import polars as pl

    from gazediffusion.data.simulation import simulate
    from gazediffusion.settings import SimulationConfig

    config = SimulationConfig(
        n_participants=6, minutes=10, rate_hz=250, trial_seconds=60, binocular=False
    )
    trials = []
    for simulated in simulate(config):
        recording = simulated.recording
        gaze = next(iter(recording.gaze_px.values()))[:, :TRIAL]
        if gaze.shape[1] == TRIAL:
            trials.append(gaze)
    n_trials = -(-n_samples // TRIAL)
    gaze = np.concatenate([trials[k % len(trials)] for k in range(n_trials)], axis=1)
    trial = np.repeat(np.arange(n_trials, dtype=np.int32), TRIAL)
    pl.DataFrame(
        {
            "participant": pl.Series(trial // 12).cast(pl.String),
            "task": pl.Series(["viewing"]).new_from_index(0, len(trial)),
            "trial": trial,
            "t_ms": np.tile(np.arange(TRIAL, dtype=np.int32) * 4, n_trials),
            "x_px": gaze[0],
            "y_px": gaze[1],
        }
    )[:n_samples].write_parquet(path)


def write_csv(table: Path) -> Path:
    """The same table as CSV."""
    import polars as pl

    path = table.with_suffix(".csv")
    pl.scan_parquet(table).sink_csv(path)
    return path


def with_gazediffusion(path: Path) -> int:
    from gazediffusion import Screen, prepare, read

    return len(prepare(read(path, screen=Screen(WIDTH, HEIGHT, 40, 22.5, 45))))


def with_pandas(path: Path) -> int:
    """The same in the way most laboratory scripts do it: pandas and a loop over windows."""
    import pandas as pd

    table = pd.read_parquet(path)
    limit_px = 1000 / (2 * np.degrees(np.arctan(20 / 45)) / WIDTH) * 0.004
    windows = []
    for _, trial in table.groupby(["participant", "task", "trial"], sort=False):
        lost = trial["x_px"].isna() | trial["y_px"].isna()
        for shift in range(1, 16):
            lost |= trial["x_px"].shift(-shift).isna() & (np.arange(len(trial)) < TRIAL - shift)
        for shift in range(1, 26):
            lost |= trial["x_px"].shift(shift).isna() & (np.arange(len(trial)) >= shift)
        step = np.hypot(trial["x_px"].diff(), trial["y_px"].diff())
        fast = step > limit_px
        lost |= fast | fast.shift(-1, fill_value=False)
        start = 0
        while start + LENGTH <= len(trial):
            window_lost = lost.iloc[start : start + LENGTH]
            if window_lost.any():
                # The next run begins after the first bad sample of this window.
                start += int(np.argmax(window_lost.to_numpy())) + 1
                continue
            x = trial["x_px"].iloc[start : start + LENGTH] / WIDTH * 2 - 1
            y = trial["y_px"].iloc[start : start + LENGTH] / HEIGHT * 2 - 1
            if ((x.abs() > 1.1) | (y.abs() > 1.1)).mean() < 0.30:
                windows.append(np.stack([x.clip(-1.2, 1.2), y.clip(-1.2, 1.2)]))
            start += STRIDE
    return len(windows)


def measure(side: str, path: Path) -> dict[str, float]:
    """Seconds, windows and peak memory of one side, in a process of its own."""
    run = subprocess.run(
        [sys.executable, __file__, "--side", side, "--table", str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    measured: dict[str, float] = json.loads(run.stdout)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=24_000_000)
    parser.add_argument("--csv", action="store_true")
    parser.add_argument("--side", choices=["gazediffusion", "pandas"])
    parser.add_argument("--table", type=Path)
    arguments = parser.parse_args()
    if arguments.side:
        begun = time.perf_counter()
        work = with_gazediffusion if arguments.side == "gazediffusion" else with_pandas
        n_windows = work(arguments.table)
        print(
            json.dumps(
                {
                    "seconds": time.perf_counter() - begun,
                    "windows": n_windows,
                    "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
                }
            )
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "recordings.parquet"
        write_table(table, arguments.samples)
        sides = {side: measure(side, table) for side in ("gazediffusion", "pandas")}
        if arguments.csv:
            sides["gazediffusion, CSV"] = measure("gazediffusion", write_csv(table))
    print(f"{arguments.samples:,} samples, position windows of 8 s at a stride of 1 s")
    for side, measured in sides.items():
        print(
            f"{side:18} {measured['seconds']:8.2f} s  {measured['gib']:6.2f} GiB peak  "
            f"{measured['windows']:,.0f} windows"
        )
    ratio = sides["pandas"]["seconds"] / sides["gazediffusion"]["seconds"]
    print(f"gazediffusion is {ratio:.1f} times faster")


if __name__ == "__main__":
    main()
