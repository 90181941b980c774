"""runs/labels.py: all tables, by a tiny model."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gazediffusion as gd
from gazediffusion.evaluation.labelled_events import EventStatistics
from tests.test_documents import from_folder

labels = from_folder("runs", "labels")


@pytest.mark.slow
def test_all_tables_are_printed(
    steerable_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = {"steps": 2, "n_samples": 200, "n_trees": 2}
    monkeypatch.setattr(labels, "Training", partial(labels.Training, **small))
    monkeypatch.setattr(labels, "N_BOOTSTRAP", 3)
    rng = np.random.default_rng(0)
    classes = np.repeat(rng.integers(1, 5, 1000), rng.integers(2, 9, 1000))[: 12 * 64]
    gaze = np.cumsum(rng.normal(0, 0.01, (12, 2, 64)), axis=2)
    who = [f"P{k % 4}" for k in range(12)]
    screen = gd.Screen(1280, 720, 40.0, 22.5, 45.0)
    given: dict[str, Any] = {"labels": classes.reshape(12, 64).astype(np.uint8), "tasks": "dots"}
    windows = gd.Windows.from_array(gaze, 20.0, screen, who, **given)
    replace(windows, validation=frozenset({"P3"})).save(tmp_path / "w.safetensors")
    folder = tmp_path / "run"
    shutil.copytree(steerable_folder, folder)
    asked = [str(tmp_path / "w.safetensors"), "--model", str(folder), "--task", "dots"]
    labels.main([*asked, "-n", "4", "--draws", "2", "--workers", "1", "--few", "1"])
    output = capsys.readouterr().out
    assert output.count("\n### ") == 6  # the last one after each draw
    tables = output.split("\n### ")[1:]
    for table in tables:
        rows = [line for line in table.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in rows}) == 1, rows
        assert len(rows) > 3
    worth = tables[-1]
    for name in ("network, synthetic", "forest, real and synthetic", "forest, real, 1 participant"):
        assert name in worth
    gap = "| generated less held-out, points |"
    assert gap in tables[3]
    apart = next(line for line in tables[3].splitlines() if line.startswith(gap))
    assert re.search(r"\| [+-]\d+\.\d \[[+-]\d+\.\d, [+-]\d+\.\d\] \|", apart)
    reference = next(line for line in worth.splitlines() if "forest, real, all" in line)
    assert "100.0 % [" in reference


def test_the_distance_to_itself_is_zero_and_a_planted_defect_is_seen() -> None:
    rng = np.random.default_rng(0)
    classes = np.repeat(rng.integers(1, 4, (6, 50)), 10, axis=1).astype(np.uint8)
    screen = gd.Screen(1280, 720, 40.0, 22.5, 45.0)
    windows = gd.Windows.from_array(rng.normal(0, 0.1, (6, 2, 500)), 250, screen, labels=classes)
    flickering = classes.copy()
    flickering[:, ::9] = 4
    defect = EventStatistics.of(replace(windows, labels=flickering.ravel()))
    own, every = EventStatistics.of(windows), np.arange(6)
    for name in ("fixation duration (ms)", "saccade rate (1/s)", "transitions (JS)"):
        assert labels.distance_of(own, own, every, every, name) == 0
        assert labels.distance_of(defect, own, every, every, name) > 0
