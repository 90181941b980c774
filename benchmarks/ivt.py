"""The time of the I-VT pass against a Python loop over samples, and of all the features.

    python benchmarks/ivt.py [--windows 1136 --loop-windows 40]

The loop is timed on a few windows and scaled to all, since its time is proportional to them. The
windows are made here: random targets held for a third of a second, smooth saccades, and noise.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gazediffusion.evaluation.features import (
    IVT_THRESHOLD,
    autocorrelation,
    ivt_statistics,
    kinematic_features,
    lag_one_autocorrelation,
    motion_quantities,
    normalized_spectra,
    velocity_quantities,
)
from gazediffusion.evaluation.metrics import (
    density_coverage,
    frechet_of,
    js,
    ks_and_wasserstein1,
)

RATE_HZ = 250.0
LENGTH = 2000


def made_windows(n: int, seed: int = 0) -> NDArray[np.float32]:
    """Windows (n, 2, LENGTH) with about 24 saccades of 28 ms each."""
    rng = np.random.default_rng(seed)
    target = np.cumsum(rng.random((n, LENGTH)) < 1 / 83, axis=1, dtype=np.int64)
    places = rng.uniform(-0.7, 0.7, (n, 2, int(target.max()) + 1))
    held = np.take_along_axis(places, target[:, None, :].repeat(2, axis=1), axis=2)
    shape = np.hanning(9)[1:-1] / np.hanning(9).sum()
    gaze = rng.normal(0, 5e-4, held.shape)
    for k, weight in enumerate(shape):
        gaze += weight * np.roll(held, k, axis=2)
    return gaze.astype(np.float32)


def variance(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / len(values)


def looped(gaze: NDArray[np.float32]) -> list[tuple[str, int, float, float, float]]:
    """The same events by a loop over samples: kind, window, seconds, size, peak speed."""
    events = []
    for window, (xs, ys) in enumerate(gaze.astype(np.float64).tolist()):
        start, was_fast, peak = 0, False, 0.0
        for i in range(1, len(xs) + 1):
            ended = i == len(xs)
            speed = 0.0 if ended else math.hypot(xs[i] - xs[i - 1], ys[i] - ys[i - 1])
            is_fast = not ended and speed > IVT_THRESHOLD
            if i > 1 and (ended or is_fast != was_fast):
                stop = i - 1
                seconds = (stop - start) / RATE_HZ
                if was_fast:
                    size = math.hypot(xs[stop] - xs[start], ys[stop] - ys[start])
                    events.append(("saccade", window, seconds, size, peak))
                elif seconds >= 0.06:
                    size = math.sqrt(variance(xs[start:i]) + variance(ys[start:i]))
                    events.append(("fixation", window, seconds, size, 0.0))
                start, peak = stop, 0.0
            was_fast, peak = is_fast, max(peak, speed)
    return events


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """The median time of some runs after a first one."""
    work()
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def all_features(gaze: NDArray[np.float32]) -> None:
    kinematic_features(gaze)
    ivt_statistics(gaze, RATE_HZ)
    autocorrelation(motion_quantities(gaze)["speed"], 250)
    quantities = velocity_quantities(gaze, RATE_HZ)
    for name in ("v_x", "v_y", "speed", "log_speed"):
        lag_one_autocorrelation(quantities[name])
        normalized_spectra(quantities[name], RATE_HZ)


def all_distances(real: NDArray[np.float32], synthetic: NDArray[np.float32]) -> None:
    tables = [kinematic_features(gaze) for gaze in (real, synthetic)]
    for name in tables[0]:
        pair = tables[0][name], tables[1][name]
        ks_and_wasserstein1(*pair), js(*pair)
    a, b = (np.stack(list(table.values()), axis=1) for table in tables)
    frechet_of(a, b)
    density_coverage(a, b)
    pools = [
        {**motion_quantities(gaze), **velocity_quantities(gaze, RATE_HZ)}
        for gaze in (real, synthetic)
    ]
    for name in pools[0]:
        a, b = (pool[name][~np.isnan(pool[name])] for pool in pools)
        js(a, b, bins=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=1136)
    parser.add_argument("--loop-windows", type=int, default=40)
    arguments = parser.parse_args()
    n, n_loop = arguments.windows, arguments.loop_windows
    gaze = made_windows(n)
    events = ivt_statistics(gaze, RATE_HZ)
    per_window = events.saccade_count.mean(), events.fixation_count.mean()
    print(f"{n} windows, {per_window[0]:.1f} saccades and {per_window[1]:.1f} fixations in each")
    fast = seconds(lambda: ivt_statistics(gaze, RATE_HZ))
    loop = seconds(lambda: looped(gaze[:n_loop]), repeats=3) * n / n_loop
    print(f"I-VT, ivt_statistics          {fast:8.3f} s")
    print(f"I-VT, loop over samples       {loop:8.3f} s (measured on {n_loop} windows, scaled)")
    print(f"ratio                         {loop / fast:8.1f}")
    print(f"all features of one set       {seconds(lambda: all_features(gaze), 3):8.3f} s")
    other = made_windows(n, seed=1)
    print(f"features and distances of two {seconds(lambda: all_distances(gaze, other), 1):8.3f} s")


if __name__ == "__main__":
    main()
