from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gazediffusion.errors import GazeError
from gazediffusion.network.recipes import RECIPES, Recipe, find_recipe

# Appendix table "Combined hyperparameter configuration", row by row.
TABLE = {
    "diffusion_steps": (1000, 1000),
    "beta_first": (1e-4, 1e-4),
    "beta_last": (2e-2, 2e-2),
    "learning_rate": (1e-4, 1e-4),
    "weight_decay": (1e-4, 1e-4),
    "batch_size": (8, 16),
    "epochs": (500, 500),
    "warmup_epochs": (10, 10),
    "gradient_clip": (1.0, 1.0),
    "mixed_precision": (True, False),
    "flip": (0.5, 0.0),
    "reversal": (0.3, 0.0),
    "weighting": ("standard", "min-snr"),
    "snr_gamma": (5.0, 5.0),
    "seeds": ((42, 123, 2024), (0, 1, 2)),
    "ema_decay": (0.9999, 0.999),
    "sampling_steps": (100, 50),
    "eta": (0.0, 0.0),
    "objective": ("eps", "eps"),
}


@pytest.mark.parametrize(("setting", "values"), TABLE.items(), ids=TABLE.keys())
def test_the_recipes_carry_the_table_of_the_paper(
    setting: str, values: tuple[object, object]
) -> None:
    ours = tuple(getattr(RECIPES[name], setting) for name in ("position", "velocity"))
    assert ours == values


def test_both_share_one_network() -> None:
    network = RECIPES["position"].network
    assert network == RECIPES["velocity"].network
    assert network.widths == (128, 256, 512)
    assert (network.embedding, network.heads, network.head_width) == (256, 4, 32)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_survives_json(name: str) -> None:
    recipe = RECIPES[name]
    assert Recipe.from_json(json.loads(json.dumps(recipe.to_json()))) == recipe


def test_an_unknown_recipe_is_refused_with_a_suggestion() -> None:
    with pytest.raises(GazeError, match="did you mean 'position'"):
        find_recipe("postion")


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(GazeError, match="`batch_size` must be 1 or more"):
        replace(RECIPES["position"], batch_size=0)
    with pytest.raises(GazeError, match="must not exceed the 1000 diffusion steps"):
        replace(RECIPES["position"], sampling_steps=2000)
