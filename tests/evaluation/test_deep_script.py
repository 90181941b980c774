"""runs/deep.py: the whole table of a model, a baseline and a file, without polars."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gazediffusion as gd
from tests.conftest import SCREEN
from tests.evaluation.test_trials import RATE_HZ, walks
from tests.test_documents import ROOT


def windows_file(path: Path, n: int, seed: int, held_out: frozenset[str]) -> None:
    from dataclasses import replace

    windows = gd.Windows.from_array(
        walks(n, seed), RATE_HZ, SCREEN, [f"p{k * 8 // n}" for k in range(n)], "walk"
    )
    config = {"validation_fraction": 0.3, "same_participant": []}
    replace(windows, validation=held_out, provenance={"config": config}).save(path)


@pytest.mark.slow
def test_the_table_has_every_set_and_split(tmp_path: Path) -> None:
    real, other = tmp_path / "walks.safetensors", tmp_path / "other.safetensors"
    windows_file(real, 400, 0, frozenset({"p0", "p1"}))
    windows_file(other, 160, 1, frozenset())
    words = (
        f"{real} --synthetic gaussian file={other} -n 150 --seeds 1 --steps 2 "
        f"--batch-size 8 --seconds 0.25 --split-seed 1 --no-occlusion --widths 4 "
        f"-o {tmp_path / 'deep.json'}"
    )
    script = (
        "import sys; sys.modules.update({'polars': None, 'pymovements': None})\n"
        f"sys.path.insert(0, {str(ROOT / 'runs')!r}); import deep; deep.main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", script, *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    table = done.stdout.partition("## AUC")[2].strip().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]
    assert rows[0] == ["set", "0.248 s", "0.248 s below 30 Hz"]
    assert [row[0] for row in rows[2:]] == [
        "walks: two groups of participants (floor)",
        "walks: planted: jitter of 1 median step",
        "walks: planted: all speeds times 1.25",
        "walks: gaussian",
        "walks: file",
    ]
    assert all("[" in cell for row in rows[2:] for cell in row[1:])
    assert "AUC by task: 0.248 s" in done.stdout
    assert (tmp_path / "deep.json").is_file()
    assert "generating gaussian" in done.stderr
