"""Published numbers are computed again from the packaged weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gazediffusion.reproduction.building import SET_SEED, Builder, Silent
from gazediffusion.reproduction.evidence import PACKAGED, disagreements, features_of_first
from gazediffusion.reproduction.plan import PAPER
from gazediffusion.reproduction.rows import Row
from gazediffusion.storage import read_json
from tests.gaze import simulated_windows

PUBLISHED = Path(__file__).parents[2] / "docs" / "results" / "evidence.json"


@pytest.mark.slow
@pytest.mark.parametrize("run", PACKAGED)
def test_the_packaged_weights_give_the_windows_of_the_published_sets(
    run: str, tmp_path: Path
) -> None:
    plan = replace(PAPER, n_windows=1).with_seeds(PACKAGED)
    builder = Builder(plan, tmp_path, Silent(), "cpu", packaged=True)
    windows = simulated_windows(n_participants=3, minutes=0.2)
    windows.save(builder.path("windows", plan.representation_of(run)))
    made = builder._generate(run)
    published = read_json(PUBLISHED)
    assert published["seed"] == SET_SEED
    (features,) = features_of_first(made.cut(), made.rate_hz)
    assert features == pytest.approx(published["features"][run][0], rel=0.02)


def rows(ours: float, **fields: object) -> list[dict[str, object]]:
    row = Row("a", "js", ours=ours, floor=0.1, n=5, seeds=[42], table="features")
    return [replace(row, **fields).to_json()]  # type: ignore[arg-type]


def test_a_number_that_differs_is_named() -> None:
    assert disagreements(rows(1.0), rows(1.01)) == (1, [])
    n_compared, lines = disagreements(rows(1.0), rows(1.1))
    assert (n_compared, lines) == (1, ["features: a: js: 1 here, 1.1 published"])
    # A number far below its floor is compared on the scale of the floor.
    assert disagreements(rows(0.0010), rows(0.0011)) == (1, [])


@pytest.mark.parametrize("fields", [{"n": 6}, {"seeds": [42, 123]}, {"seeds": [0]}])
def test_numbers_of_other_runs_or_windows_are_not_compared(fields: dict[str, object]) -> None:
    assert disagreements(rows(1.0), rows(2.0, **fields)) == (0, [])
