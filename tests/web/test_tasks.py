"""Tasks of recordings in a model's words."""

from __future__ import annotations

import numpy as np
import pytest

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.web.compare import (
    joined,
    model_tasks,
    recorded_counts,
    task_counts,
    with_model_tasks,
)
from tests.conftest import SCREEN

JOINT = gd.list_models([])["joint"].tasks
# As docs/joint.md renames them for training.
TRAINING_NAMES = {
    "natural_movies": "movies",
    "natural_movies_repeated": "movies",
    "hollywood_trailers": "trailers",
    "stop_motion_movies": "stop-motion",
    "static_images": "stills",
    "additional_shuffled_stills": "stills",
    "reading_text": "reading",
    "random_dot_saccades": "dots",
}


def test_every_name_of_the_training_data_is_matched() -> None:
    assert model_tasks(TRAINING_NAMES, JOINT) == TRAINING_NAMES
    assert model_tasks(JOINT, JOINT) == {task: task for task in JOINT}
    assert model_tasks(["Stop Motion", "MOVIES"], JOINT) == {
        "Stop Motion": "stop-motion",
        "MOVIES": "movies",
    }


def test_a_model_may_have_the_longer_name() -> None:
    assert model_tasks(["movies"], ["natural_movies"]) == {"movies": "natural_movies"}
    assert model_tasks(["free_viewing"], ["free viewing"]) == {"free_viewing": "free viewing"}


@pytest.mark.parametrize("name", ["unknown", "antisaccade", "synthetic", "viewing"])
def test_other_names_are_not_guessed(name: str) -> None:
    assert model_tasks([name], JOINT) == {name: None}


def test_synthetic_windows_have_the_recorded_shares_of_tasks() -> None:
    recorded = {"natural_movies": 60, "natural_movies_repeated": 15, "reading_text": 25}
    assert task_counts(recorded, JOINT, None, 32) == {"movies": 24, "reading": 8}
    assert task_counts({"a": 1, "dots": 1}, JOINT, "reading", 25) == {"reading": 13, "dots": 12}
    assert task_counts({"a": 3}, (), None, 30) == {None: 30}, "a model without tasks"


@pytest.mark.parametrize(
    ("recorded", "task", "words"),
    [
        ({"unknown": 3}, None, "has no task 'unknown' of the recording; choose `task`: movies, "),
        ({"reading": 3, "x": 1}, None, "'x'"),
        ({"x": 3}, "swimming", "no `task` 'swimming'"),
        ({"natural_movies": 3}, "reading", "task is 'movies', not reading; leave out `task`"),
    ],
)
def test_an_unknown_task_must_be_chosen_and_a_known_one_is_not_replaced(
    recorded: dict[str, int], task: str | None, words: str
) -> None:
    with pytest.raises(GazeError) as caught:
        task_counts(recorded, JOINT, task, 30)
    assert words in str(caught.value)


def windows_of(tasks: list[str]) -> gd.Windows:
    gaze = np.random.default_rng(0).normal(0, 0.1, (len(tasks), 2, 100))
    return gd.Windows.from_array(gaze, 250, SCREEN, tasks=tasks)


def test_recorded_windows_get_the_names_of_the_model() -> None:
    recorded = windows_of(["natural_movies", "natural_movies_repeated", "reading_text", "x"])
    renamed = with_model_tasks(recorded, JOINT, "dots")
    assert renamed.identity["task"].tolist() == ["movies", "movies", "reading", "dots"]
    assert recorded_counts(renamed) == {"movies": 2, "reading": 1, "dots": 1}


def test_windows_of_several_tasks_are_joined_with_their_tasks() -> None:
    parts = [windows_of(["movies", "movies"]), windows_of(["reading"])]
    both = joined(parts)
    assert both.identity["task"].tolist() == ["movies", "movies", "reading"]
    np.testing.assert_array_equal(both.cut(), np.concatenate([one.cut() for one in parts]))
