"""runs/scale_arithmetic.py: the arithmetic of its table, and that writing alone is measured."""

from __future__ import annotations

import doctest
from dataclasses import fields

import numpy as np
import pytest

import gazediffusion as gd
from gazediffusion.generation.generator import DiffusionGenerator
from tests.test_documents import from_folder

scale = from_folder("runs", "scale_arithmetic")


def test_hours_and_shares_follow_from_the_rates() -> None:
    assert doctest.testmod(scale).failed == 0
    row = scale.table({"gpu": 0.5e-3}, scale.Writing(60_000.0, 1.5e-3), n=36_000_000)
    assert row.splitlines()[-1] == "| gpu | 0.500 | 5 | 2.000 | 20 | 75 % | 30.0 |"


def test_writing_is_measured_on_windows_that_are_at_hand(
    steerable_folder: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = gd.load(str(steerable_folder), device="cpu")
    sampling = model.sampling(3, batch_size=2, quality="fast")
    gaze = np.concatenate(list(sampling.pieces()))
    assert isinstance(sampling.generator, DiffusionGenerator)
    own = {one.name: getattr(sampling.generator, one.name) for one in fields(sampling.generator)}
    replayed = scale.Replayed(**own, gaze=gaze)
    assert [len(one) for one in replayed.pieces(0, 3, 0)] == [2, 1]
    assert np.array_equal(np.concatenate(list(replayed.pieces(0, 3, 0))), gaze)
    monkeypatch.setattr(gd, "load", lambda name, device: model)
    scale.main(["-n", "3", "--quality", "fast", "--rate", "a GPU=0.001"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("| a GPU | 1.000 | 278 | ")
    n_bytes = float(lines[0].split()[2].replace(",", ""))
    assert n_bytes > gaze.nbytes / 3 / 10
