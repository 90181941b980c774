"""Windows that are chosen from two by the number of their events."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gazediffusion as gd
from gazediffusion.data.recordings import label_segments
from gazediffusion.errors import GazeError
from gazediffusion.generation.event_choice import EventChoice, count_events, fitted_weight
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.generation.labelling import Labeller
from gazediffusion.models.pretrained import EVENTS, find_model
from tests.conftest import RunCommand

SACCADE, PURSUIT = (gd.EVENT_CLASSES.index(name) for name in ("saccade", "pursuit"))


def generator(folder: Path, **settings: Any) -> DiffusionGenerator:
    run = gd.load(folder, device="cpu").run
    choice = EventChoice.load(folder)
    given = {"task": "dots", "candidates": 2, "choice": choice, **settings}
    return DiffusionGenerator(run, **given)


def gaze_of(made: DiffusionGenerator, n: int, first: int = 0) -> NDArray[np.float32]:
    return np.concatenate(list(made.pieces(first, first + n, 0)))


def test_events_are_counted_by_class() -> None:
    labels = np.random.default_rng(0).integers(1, 5, (7, 60)).astype(np.uint8)
    expected = [
        [np.count_nonzero(label_segments(own)[:, 2] == k) for k in range(1, 5)] for own in labels
    ]
    assert count_events(labels).tolist() == expected


@pytest.mark.parametrize("recorded", [2.0, 2.6, 3.0])
def test_the_fitted_weight_gives_the_mean_that_was_recorded(recorded: float) -> None:
    rng = np.random.default_rng(1)
    counts = np.zeros((2, 20_000, 4))
    counts[..., PURSUIT] = rng.poisson(rng.gamma(2.0, 1.2, 20_000), (2, 20_000))
    weight = fitted_weight(counts[0, :, PURSUIT], counts[1, :, PURSUIT], recorded)
    choice = EventChoice("dots", {"pursuit": weight}, {})
    is_second = choice.takes_second(counts[0], counts[1], 5, 0)
    chosen = np.where(is_second[:, None], counts[1], counts[0])
    assert chosen[:, PURSUIT].mean() == pytest.approx(recorded, abs=0.05)


def test_a_mean_out_of_reach_gives_the_largest_weight() -> None:
    counts = np.array([0.0, 1.0, 2.0])
    assert fitted_weight(counts, counts[::-1], 9.0) == 3.0
    assert fitted_weight(counts, counts[::-1], 0.0) == -3.0


def test_one_of_two_windows_of_the_same_conditions_is_taken_more_often_with_its_events(
    labelling_run: Path,
) -> None:
    made = generator(labelling_run)
    alone = replace(made, candidates=1, choice=None)
    pair = [gaze_of(replace(alone, replicate=k), 48) for k in range(2)]
    chosen = gaze_of(made, 48)
    apart = np.stack([np.abs(chosen - one).max(axis=(1, 2)) for one in pair])
    assert (apart.min(axis=0) < 1e-4).all()
    taken = apart.argmin(axis=0)
    assert 0 < taken.mean() < 1
    labeller = Labeller(made.run)
    counts = np.stack([count_events(labeller.labels(one))[:, SACCADE] for one in pair])
    gain = np.where(taken == 1, 1, -1) * (counts[1] - counts[0])
    assert gain.sum() > 0
    ours, others = made.as_windows(chosen, 0), alone.as_windows(pair[1], 0)
    np.testing.assert_array_equal(ours.segment_task, others.segment_task)


def test_windows_do_not_depend_on_batches_or_on_their_number(labelling_run: Path) -> None:
    whole = gaze_of(generator(labelling_run), 20)
    for batch_size in (1, 3, 16):
        made = generator(labelling_run, batch_size=batch_size)
        np.testing.assert_array_equal(gaze_of(made, 20), whole)
    np.testing.assert_array_equal(gaze_of(made, 5, first=9), whole[9:14])
    seen: list[float] = []
    list(made.pieces(0, 12, 0, seen.append))
    assert seen == sorted(seen)
    assert seen[-1] == 12
    short = gaze_of(generator(labelling_run, length=32), 3)
    np.testing.assert_array_equal(short, whole[:3, :, :32])


def test_the_library_and_the_command_choose_alike_and_the_card_says_so(
    labelling_run: Path, tmp_path: Path, run: RunCommand
) -> None:
    model = gd.load(labelling_run, device="cpu")
    settings: dict[str, Any] = {"seed": 2, "task": "dots", "candidates": 2}
    model.sample_to(tmp_path / "a.parquet", 5, labels=True, **settings)
    given = [*("--model", labelling_run, "-n", 5, "--seed", 2, "--task", "dots")]
    given += ["--candidates", 2, "--labels", "-o", tmp_path / "b.parquet"]
    code, _, error = run("generate", *given)
    assert code == 0, error
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    card = model.sample(2, labels=True, **settings).provenance["card"]
    assert card["sampling"]["candidates"] == 2
    assert card["sampling"]["choice"] == {"weights": {"saccade": 2.0}}
    assert "candidates" not in model.sample(2, labels=True).provenance["card"]["sampling"]


def test_what_cannot_be_chosen_by_events_is_refused(
    labelling_run: Path, steerable_folder: Path, tmp_path: Path
) -> None:
    model = gd.load(labelling_run, device="cpu")
    sample = partial(model.sampling, 2, labels=True)
    cases: list[tuple[str, dict[str, Any]]] = [
        ("must be 1 or 2, not 3", {"candidates": 3, "task": "dots"}),
        ("for the task dots alone; give `task` dots", {"candidates": 2}),
        ("of the model's length alone", {"candidates": 2, "task": "dots", "seconds": 20}),
        ("beside a scanpath", {"candidates": 2, "task": "dots", "start": (0.0, 0.0)}),
    ]
    for problem, settings in cases:
        with pytest.raises(GazeError, match=problem):
            sample(**settings)
    with pytest.raises(GazeError, match="give `like` or `labels`"):
        model.sampling(2, candidates=2, task="dots")
    bare = gd.load(steerable_folder, device="cpu")
    with pytest.raises(GazeError, match="no weights are fitted for the model run"):
        bare.sampling(2, labels=True, candidates=2, task="dots")
    for text in ('{"format": "other"}', json.dumps({"format": "gazediffusion-events"})):
        (tmp_path / EVENTS).write_text(text)
        with pytest.raises(GazeError, match="weights of events are damaged"):
            EventChoice.load(tmp_path)
    EventChoice("dots", {"blinking": 1.0}, {}).save(tmp_path / EVENTS)
    with pytest.raises(GazeError, match="no event class 'blinking'"):
        EventChoice.load(tmp_path)


def test_the_packaged_model_chooses_movies_with_more_pursuit() -> None:
    choice = EventChoice.load(find_model("default"))
    assert choice.task == "movies"
    assert choice.weights.keys() == {"pursuit"}
    assert choice.weights["pursuit"] > 0
