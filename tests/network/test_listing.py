"""Models are listed without torch as their configurations state."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gazediffusion.errors import GazeError
from gazediffusion.network.checkpoint import CONFIG, config_from
from gazediffusion.network.pretrained import find_model, list_models, pretrained_models


@pytest.mark.parametrize("name", pretrained_models())
def test_a_packaged_model_is_described_as_its_configuration_states(name: str) -> None:
    found, folder = list_models()[name], find_model(name)
    config = config_from(without_hash(folder), folder)
    assert found.source == name
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


def test_a_folder_without_a_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GazeError, match="this is no run folder"):
        list_models([tmp_path])
    (tmp_path / CONFIG).write_text("{}")
    with pytest.raises(GazeError, match="the configuration is damaged"):
        list_models([tmp_path])
