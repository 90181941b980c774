"""Prepare CSV: seconds and memory of `gazediffusion prepare`, for one file or for a folder.

    python benchmarks/prepare_csv.py                     # one file of 260 MB
    python benchmarks/prepare_csv.py --one-trial         # the same as one trial
    python benchmarks/prepare_csv.py --folder-gb 5       # 322 participants, as in GazeBase
    python benchmarks/prepare_csv.py --against OLD/src   # beside another version's source folder

The recordings are simulated, written to a temporary folder and deleted. Each version runs the
command in a process of its own, alternately, so that their times can be compared.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

N_PARTICIPANTS = 322
SCREEN = ["--screen", "1280x720", "--screen-cm", "40x22.5", "--distance-cm", "45"]


def simulated_px(rate_hz: float, seconds: float) -> list[np.ndarray]:
    """Trials (2, time) in pixels, NaN where the eye was lost."""
    from gazediffusion.data.simulation import SimulationConfig, simulate

    config = SimulationConfig(
        n_participants=4, minutes=1, rate_hz=rate_hz, trial_seconds=seconds, binocular=False
    )
    return [next(iter(one.recording.gaze_px.values())) for one in simulate(config)]


def write_file(path: Path, n_bytes: float, is_one_trial: bool) -> list[str]:
    """One table at 250 Hz: trials of 4 minutes, four for each participant, or all one trial."""
    import polars as pl

    gaze = np.concatenate(simulated_px(250, 60), axis=1)
    n_samples = gaze.shape[1]
    written, trial = 0, 0
    with open(path, "wb") as stream:
        while written < n_bytes:
            number = 0 if is_one_trial else trial
            frame = pl.DataFrame(
                {
                    "participant": pl.Series([str(number // 4)]).new_from_index(0, n_samples),
                    "task": pl.Series(["viewing"]).new_from_index(0, n_samples),
                    "trial": np.full(n_samples, number),
                    "t_ms": (trial * n_samples + np.arange(n_samples)) * 4,
                    "x_px": gaze[0],
                    "y_px": gaze[1],
                }
            )
            content = frame.write_csv(include_header=trial == 0, float_precision=1).encode()
            written += stream.write(content)
            trial += 1
    return [*SCREEN, "--val-fraction", "0"]  # one trial is one participant


def write_folder(folder: Path, n_bytes: float) -> list[str]:
    """Files as those of GazeBase: half a minute at 1000 Hz in degrees, several per participant."""
    import polars as pl

    from gazediffusion.geometry import Screen

    screen = Screen(1280, 720, 40, 22.5, 45)
    contents = []
    for gaze_px in simulated_px(1000, 30):
        x, y = screen.to_degrees(gaze_px)
        columns = {"n": np.arange(len(x)), "x": x, "y": y, "val": np.isnan(x).astype(int)}
        columns |= {"xT": 0.0 * x, "yT": 0.0 * x, "dP": 0.0 * x + 1234.5, "lab": 1}
        frame = pl.DataFrame(columns).fill_nan(None)
        contents.append(frame.write_csv(float_precision=3).encode())
    n_files = max(N_PARTICIPANTS, round(n_bytes / np.mean([len(one) for one in contents])))
    for number in range(n_files):
        who, task = number % N_PARTICIPANTS, number // N_PARTICIPANTS
        path = folder / f"S_1{who:03d}" / f"S_1{who:03d}_S1_TASK{task}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(contents[number % len(contents)])
    pattern = r"S_(?P<participant>\d+)_S1"
    return ["--columns", "t=n", "--unit", "deg", "--participant-pattern", pattern, *SCREEN]


def measure(source: Path, path: Path, options: list[str], output: Path) -> tuple[float, float]:
    """Seconds and peak memory in MiB of `gazediffusion prepare` with a version's source."""
    begun = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "gazediffusion", "prepare", str(path), "-o", str(output), *options],
        env={**os.environ, "PYTHONPATH": str(source)},
        stdout=subprocess.DEVNULL,
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"prepare with {source} ended with {process.returncode}")
    output.unlink()
    return time.perf_counter() - begun, usage.ru_maxrss / 2**10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=260)
    parser.add_argument("--one-trial", action="store_true")
    parser.add_argument("--folder-gb", type=float)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--repeats", type=int, default=1)
    arguments = parser.parse_args()
    sources = {"this version": Path(__file__).resolve().parents[1] / "src"}
    if arguments.against:
        sources["against"] = arguments.against.resolve()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.folder_gb:
            path = Path(folder) / "study"
            path.mkdir()
            options = write_folder(path, arguments.folder_gb * 1e9)
        else:
            path = Path(folder) / "study.csv"
            options = write_file(path, arguments.megabytes * 1e6, arguments.one_trial)
        files = [file for file in [path, *path.rglob("*")] if file.is_file()]
        n_bytes = sum(file.stat().st_size for file in files)
        print(f"{len(files):,} files, {n_bytes / 1e6:,.0f} MB")
        for _ in range(arguments.repeats):
            for name, source in sources.items():
                output = Path(folder) / "windows.safetensors"
                seconds, mib = measure(source, path, options, output)
                print(f"{name:14} {seconds:8.2f} s  {mib:8,.0f} MiB peak", flush=True)


if __name__ == "__main__":
    main()
