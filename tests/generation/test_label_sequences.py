"""Labels of probabilities: the most probable sequence, and as an annotator draws them."""

from __future__ import annotations

import shutil
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.generation.label_sequences import Annotator, most_probable_sequence
from gazediffusion.models.pretrained import LABELS
from tests.conftest import RunCommand

STRENGTHS = {"fixation": 0.0, "saccade": 1.2, "pursuit": 0.8, "noise": 1.4}
NONE = dict.fromkeys(STRENGTHS, 0.0)
ANNOTATOR = Annotator(STRENGTHS, NONE, {"n_windows": 3})


@pytest.mark.parametrize("cost", [0.0, 0.7, 3.0])
def test_the_sequence_is_the_best_of_all_sequences(cost: float) -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), (4, 6)).transpose(0, 2, 1)
    found = most_probable_sequence(p, cost)
    every = np.array(list(product(range(3), repeat=6)))
    changes = np.count_nonzero(np.diff(every, axis=1), axis=1)
    for window, own in zip(np.log(p), found, strict=True):
        scores = window[every, np.arange(6)].sum(axis=1) - cost * changes
        np.testing.assert_array_equal(own, every[scores.argmax()])


def test_a_single_uncertain_sample_makes_no_event() -> None:
    p = np.full((1, 4, 100), 0.02)
    p[:, 0] = 0.94
    p[0, :, 50] = [0.3, 0.66, 0.02, 0.02]
    assert not most_probable_sequence(p).any()
    p[0, :, 50:56] = np.array([0.02, 0.94, 0.02, 0.02])[:, None]
    assert np.flatnonzero(most_probable_sequence(p)[0]).tolist() == [50, 51, 52, 53, 54, 55]


def uncertain(n: int, odds: float = 0.4) -> NDArray[np.float64]:
    """Fixations that may be pursuit and saccades between them, (window, class, time)."""
    log_p = np.full((n, 4, 400), -6.0)
    log_p[:, 0], log_p[:, 2] = 0.0, -odds
    for onset in range(40, 400, 50):
        log_p[:, [0, 2], onset : onset + 10] = -4.0
        log_p[:, 1, onset : onset + 10] = 0.0
    p = np.exp(log_p)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def test_an_annotator_changes_uncertain_events_as_a_whole_by_the_gaussian_share() -> None:
    found = ANNOTATOR.draw(uncertain(200), seed=3)
    middles = found[:, 15:400:50]  # of nine fixations in each window
    share = np.mean(middles == 2)
    assert share == pytest.approx(0.309, abs=0.03)  # P(0.8 z > 0.4)
    within = found[:, 100:140]
    assert (within == within[:, :1]).all()
    assert (found[:, 45:400:50] == 1).mean() > 0.97  # saccades are certain


def test_an_annotator_moves_borders_by_a_gaussian_and_keeps_the_middles() -> None:
    p = uncertain(400)
    before = most_probable_sequence(p)
    for border in (1.5, 1000.0):
        found = Annotator(NONE, {**NONE, "saccade": border}, {}).draw(p, seed=0)
        assert (found[:, 45:400:50] == 1).all()  # the middles of saccades
        assert (found[:, 20:400:50] == 0).all()  # and of fixations
    found = Annotator(NONE, {**NONE, "saccade": 1.5}, {}).draw(p, seed=0)
    onset = (found[:, 15:65] == 1).argmax(axis=1) - 25  # of the first saccade
    assert (before[:, 15:65] == 1).argmax(axis=1).tolist() == [25] * 400
    assert onset.mean() == pytest.approx(0, abs=0.2)
    assert onset.std() == pytest.approx(1.5, rel=0.15)


def test_a_border_scatters_as_that_of_the_vaguer_class() -> None:
    p = np.full((400, 4, 240), 1e-6)
    for first, number in ((0, 0), (60, 1), (120, 3), (180, 2)):  # 60 samples of each class
        p[:, number, first : first + 60] = 1.0
    borders = {"fixation": 0.0, "saccade": 1.0, "pursuit": 3.0, "noise": 6.0}
    found = Annotator(NONE, borders, {}).draw(p, seed=0)
    at = [(found == number).argmax(axis=1) for number in (1, 3, 2)]
    assert [one.std() for one in at] == pytest.approx([1.0, 6.0, 6.0], rel=0.15)
    assert [one.mean() for one in at] == pytest.approx([60, 120, 180], abs=1.0)


def test_without_strength_labels_are_the_most_probable_ones() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(4), (3, 80)).transpose(0, 2, 1)
    none = Annotator(NONE, NONE, {})
    np.testing.assert_array_equal(none.draw(p, seed=1), most_probable_sequence(p))
    assert (ANNOTATOR.draw(p, seed=1) != most_probable_sequence(p)).any()


def test_labels_of_a_window_depend_on_seed_and_number_alone() -> None:
    p = uncertain(6)
    whole = ANNOTATOR.draw(p, seed=5)
    np.testing.assert_array_equal(ANNOTATOR.draw(p[2:4], seed=5, first=2), whole[2:4])
    assert len({row.tobytes() for row in whole}) > 1
    assert (ANNOTATOR.draw(p, seed=6) != whole).any()


def test_generated_gaze_is_labelled_as_by_an_annotator_where_that_is_asked_for(
    annotated_run: Path,
) -> None:
    model = gd.load(annotated_run, device="cpu")
    clean, drawn = (model.sample(5, seed=2, labels=kind) for kind in (True, "annotator"))
    np.testing.assert_array_equal(clean.gaze, drawn.gaze)
    assert (clean.cut_labels() != drawn.cut_labels()).any()
    again = model.sample(5, seed=2, labels="annotator", batch_size=2)
    assert np.mean(again.cut_labels() == drawn.cut_labels()) > 0.99
    card = drawn.provenance["card"]["labels"]
    assert card["method"] == "drawn as by an annotator"
    assert card["annotator"]["strengths"] == ANNOTATOR.strengths
    assert card["annotator"]["borders_samples"] == NONE
    assert "annotator" not in clean.provenance["card"]["labels"]


def test_the_command_writes_the_labels_of_the_library(
    annotated_run: Path, tmp_path: Path, run: RunCommand
) -> None:
    model = gd.load(annotated_run, device="cpu")
    settings: dict[str, Any] = {"seed": 2, "task": "dots", "batch_size": 2}
    model.sample_to(tmp_path / "a.parquet", 5, labels="annotator", **settings)
    given = [*("--model", annotated_run, "-n", 5, "--seed", 2, "--task", "dots")]
    given += ["--batch-size", 2, "--annotator-labels", "-o", tmp_path / "b.parquet"]
    code, _, error = run("generate", *given)
    assert code == 0, error
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    expected = model.sample(5, labels="annotator", **settings).cut_labels()
    read = gd.read(tmp_path / "a.parquet")
    found = np.stack([one.labels for one in read if one.labels is not None])
    np.testing.assert_array_equal(found, expected)


@pytest.fixture(scope="module")
def annotated_run(steerable_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny run with an annotator whose offsets are as large as what the network tells."""
    folder = tmp_path_factory.mktemp("annotated") / "run"
    shutil.copytree(steerable_folder, folder)
    ANNOTATOR.save(folder / LABELS)
    return folder


def test_an_annotator_is_kept_in_the_folder_of_a_model(
    tmp_path: Path, steerable_folder: Path
) -> None:
    ANNOTATOR.save(tmp_path / LABELS)
    assert Annotator.load(tmp_path) == ANNOTATOR
    (tmp_path / LABELS).write_text('{"format": "other"}')
    with pytest.raises(GazeError, match="annotator is damaged"):
        Annotator.load(tmp_path)
    model = gd.load(steerable_folder, device="cpu")
    with pytest.raises(GazeError, match="none is fitted for the model run; take the most probable"):
        model.sample(2, labels="annotator")
    with pytest.raises(GazeError, match="`labels` must be true, false or annotator, not 'mine'"):
        model.augmenter(labels="mine")  # type: ignore[arg-type]
