"""The description of a model without torch equals that of the loaded model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gazediffusion.errors import GazeError
from gazediffusion.models.checkpoint import CONFIG, config_from
from gazediffusion.models.description import describe_model
from gazediffusion.models.pretrained import find_model, pretrained_models


@pytest.mark.parametrize("name", pretrained_models())
def test_a_packaged_model_is_described_as_its_configuration_states(name: str) -> None:
    found, folder = describe_model(name), find_model(name)
    config = config_from(without_hash(folder), folder)
    assert found.recipe == config.recipe.name
    assert found.tasks == config.conditioning.tasks
    assert tuple(found.screens.values()) == config.conditioning.task_screens
    assert found.screen == config.screen
    assert (found.length, found.rate_hz) == (config.length, config.rate_hz)
    assert found.seconds == config.length / config.rate_hz
    assert found.trained_on == config.data


def without_hash(folder: Path) -> dict[str, object]:
    values: dict[str, object] = json.loads((folder / CONFIG).read_text())
    values.pop("weights_sha256")
    return values


def test_a_configuration_of_an_earlier_version_is_described(tmp_path: Path) -> None:
    values = without_hash(find_model("joint"))
    expected = describe_model("joint")
    conditioning = values.pop("conditioning")
    assert isinstance(conditioning, dict)
    former = {"tasks": list(expected.tasks), "task_screens": conditioning["task_screens"]}
    (tmp_path / CONFIG).write_text(json.dumps({**values, **former}))
    assert describe_model(tmp_path) == expected


def test_a_folder_without_a_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GazeError, match="this is no run folder"):
        describe_model(tmp_path)
    (tmp_path / CONFIG).write_text("{}")
    with pytest.raises(GazeError, match="the configuration is damaged"):
        describe_model(tmp_path)
