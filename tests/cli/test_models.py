"""Commands about models: generate in the style of a recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gazediffusion import load, read
from gazediffusion.data.simulation import write_simulation
from gazediffusion.settings import SimulationConfig
from gazediffusion.storage import sha256_of
from tests.conftest import RunCommand


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated study of two participants; a file of one, a short one and one of lost gaze."""
    folder = tmp_path_factory.mktemp("study")
    config = SimulationConfig(n_participants=2, minutes=2.0, rate_hz=250)
    write_simulation(config, folder / "both", "parquet")
    rng, n = np.random.default_rng(0), 12 * 250
    places = np.repeat(rng.uniform(-1, 1, (n + 250) // 75), 75)
    moves = np.convolve(places, np.full(12, 1 / 12), "valid")[:n]
    rows = {
        "participant": ["01"] * n,
        "task": ["cinema"] * n,
        "t_ms": np.arange(n) * 4.0,
        "x_px": 640 + 100 * moves + rng.normal(0, 0.5, n),
        "y_px": 360 + rng.normal(0, 0.5, n),
    }
    table = pl.DataFrame(rows)
    table.write_csv(folder / "one.csv")
    table[:1000].write_csv(folder / "short.csv")
    table.with_columns(x_px=pl.lit(None, pl.Float64)).write_csv(folder / "empty.csv")
    return folder


SCREEN = "--screen 1280x720 --screen-cm 40x22.5 --distance-cm 45"


def test_a_set_in_the_style_of_a_recording_says_so(
    study: Path, tmp_path: Path, run: RunCommand
) -> None:
    path, given = tmp_path / "gaze.csv", study / "one.csv"
    words = f"generate --like {given} --task movies -n 2 --steps 2 {SCREEN} -o {path}"
    words += " --set candidates=2"
    assert run(*words.split())[0] == 0
    card = json.loads(path.with_suffix(".json").read_text())
    card = card.get("GazediffusionCard", card)
    assert card["sampling"]["task"] == "movies"
    like = card["sampling"]["like"]
    assert like["recordings"] == [{"name": "one.csv", "sha256": sha256_of(given)}]
    assert like["seconds"] == 12.0
    assert like["n_windows"] == 5
    assert card["sampling"]["candidates"] == 2
    assert "in the style of one participant: 12 s" in path.with_suffix(".md").read_text()
    # The same from Python, whatever the batch size; without it, other windows.
    model, screen = load("default"), card["screen"]
    recordings = read(given, screen=type(model.config.screen)(**screen))
    how: dict[str, Any] = {"task": "movies", "steps": 2, "batch_size": 1}
    alone = model.sample(2, like=recordings, candidates=2, **how)
    x = pl.read_csv(path)["x_screen"].to_numpy().reshape(2, -1)
    np.testing.assert_allclose(alone.to_numpy()[:, 0], x, atol=2e-3)
    free = model.sample(2, task="movies", steps=2)
    assert np.abs(free.to_numpy()[:, 0] - x).max() > 0.01
    assert alone.provenance["like"] == like


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--like {0}/both --task movies", "--like takes recordings of one participant"),
        ("--like {0}/one.csv " + SCREEN, "no task 'cinema', which --like was recorded in"),
        (
            "--like {0}/short.csv --task movies " + SCREEN,
            "a style needs 8 s of valid gaze in a row",
        ),
        ("--like {0}/empty.csv --task movies " + SCREEN, "empty.csv"),
        (
            "--set candidates=4",
            "compared with a recording; give --like",
        ),
        (
            "--like {0}/one.csv --task movies --set candidates=4 --at 0:640,360 " + SCREEN,
            "--set candidates cannot be chosen beside a scanpath",
        ),
        ("--like {0}/none.csv --task movies", "none.csv"),
    ],
)
def test_a_recording_that_gives_no_style_is_one_clear_line(
    study: Path, tmp_path: Path, run: RunCommand, words: str, problem: str
) -> None:
    code, _, error = run("generate", *words.format(study).split(), "-o", str(tmp_path / "g.csv"))
    assert code == 2
    assert problem in " ".join(error.split())
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == []
