"""What a minute of gaze costs beside windows of 8 s.

    python benchmarks/long.py [-n 1 4 8 16] [--rounds 3] [--device cpu]

n recordings of a minute, generated together, beside the same seconds of gaze in windows: of n at a
time, as the minutes have them, and all at once. The windows of a recording are made one after
another. Prints medians of the rounds in seconds, and the ratios of the minutes to both.
"""

from __future__ import annotations

import argparse
from functools import partial

import gazediffusion as gd
from ivt import seconds

SECONDS, WINDOW_S = 60.0, 8.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-n", type=int, nargs="+", default=[1, 4, 8, 16], help="recordings")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--task", default="reading")
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    model = gd.load("default", device=given.device)
    print("| recordings | minutes, s | n windows at a time, s | ratio | all at once, s | ratio |")
    print("|---:|---:|---:|---:|---:|---:|")
    for n in given.n:
        sample = partial(model.sample, task=given.task)
        long = seconds(partial(sample, n, seconds=SECONDS), given.rounds)
        few = seconds(partial(sample, n), given.rounds) * SECONDS / WINDOW_S
        many = seconds(partial(sample, 8 * n), given.rounds) * SECONDS / WINDOW_S / 8
        print(
            f"| {n} | {long:.2f} | {few:.2f} | {long / few:.2f} | {many:.2f} | {long / many:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
