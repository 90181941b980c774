from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

READ = """
import resource, sys
from gazediffusion.data.reading import read
n = sum(len(recording) for recording in read(sys.argv[1]))
print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def peak_of_reading(path: Path) -> int:
    """Peak memory in bytes of a process that reads a file."""
    run = subprocess.run(
        [sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True
    )
    n_samples, n_bytes = map(int, run.stdout.split())
    assert n_samples > 0
    return n_bytes


def write_trials(path: Path, n_trials: int) -> int:
    """Trials of 10,000 samples; the size of the file in bytes."""
    n = 10_000
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "participant": ["participant1"] * n_trials * n,
            "task": ["viewing"] * n_trials * n,
            "trial": np.repeat(np.arange(n_trials), n),
            "t_ms": np.tile(np.arange(n), n_trials),
            "x_px": rng.uniform(0, 1280, n_trials * n).round(1),
            "y_px": rng.uniform(0, 720, n_trials * n).round(1),
        }
    )
    frame.write_csv(path)
    return path.stat().st_size


@pytest.mark.slow
def test_memory_grows_with_the_numbers_and_not_with_the_text(tmp_path: Path) -> None:
    small, large = tmp_path / "small.csv", tmp_path / "large.csv"
    more = write_trials(large, 160) - write_trials(small, 80)
    assert more > 30e6
    # Three numbers of 8 bytes in a row of 40, and what is on its way; the text, copied and cut
    # into cells, would take 2.5 times its size.
    assert peak_of_reading(large) - peak_of_reading(small) < 1.6 * more
