"""How long an evaluation takes, and how much memory: 1,136 against 1,136 windows.

    python benchmarks/evaluate.py [--windows 1136] [--many 100000]

Simulated windows of 8 s. Times measuring, then an evaluation without bootstrap and slow tests. With
--many, a synthetic set of that many windows is evaluated as well, and the peak memory printed.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from gazediffusion import EvaluationConfig, Windows, evaluate
from gazediffusion.data.simulation import SimulationConfig, simulate
from gazediffusion.data.windows import CLIP
from gazediffusion.evaluation.quantities import measure

LENGTH = 2000


def simulated(n: int, seed: int) -> Windows:
    """n windows of 8 s of simulated participants, blinks bridged by straight lines."""
    config = SimulationConfig(
        n_participants=8, minutes=max(1.0, n / 8 * 8 / 60 * 1.1), rate_hz=250, seed=seed,
        binocular=False,
    )  # fmt: skip
    pieces = []
    for one in simulate(config):
        gaze = config.screen.to_normalized(one.recording.gaze_px["right"])
        time_ms = one.recording.time_ms
        seen = np.isfinite(gaze).all(axis=0)
        gaze = np.stack([np.interp(time_ms, time_ms[seen], axis[seen]) for axis in gaze])
        n_whole = gaze.shape[1] // LENGTH
        pieces += list(np.split(gaze[:, : n_whole * LENGTH], n_whole, axis=1))
    gaze = np.clip(np.stack(pieces[:n]), -CLIP, CLIP).astype(np.float32)
    return Windows.from_array(gaze, 250.0, config.screen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=1136)
    parser.add_argument("--many", type=int, default=0)
    arguments = parser.parse_args()
    real, ours = (simulated(arguments.windows, seed) for seed in (0, 1))
    group = np.zeros(len(real), dtype=np.int64)
    measure(real.cut()[:4], 250.0, real.screen, ("position", "velocity"), group[:4])  # warm up
    begun = time.perf_counter()
    measure(real.cut(), 250.0, real.screen, ("position", "velocity"), group)
    print(f"measuring {len(real)} windows: {time.perf_counter() - begun:.1f} s")
    begun = time.perf_counter()
    evaluate(real, {"ours": ours}, None, EvaluationConfig(quick=True))
    seconds = time.perf_counter() - begun
    print(f"{len(real)} against {len(ours)} windows, floor included: {seconds:.1f} s")
    if arguments.many:
        copies = np.resize(np.arange(len(ours)), arguments.many)
        many = ours.select(copies)
        begun = time.perf_counter()
        evaluate(real, {"many": many}, None, EvaluationConfig(quick=True))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        seconds = time.perf_counter() - begun
        print(f"{arguments.many:,} synthetic windows: {seconds:.1f} s, peak {peak:.1f} GiB")


if __name__ == "__main__":
    main()
