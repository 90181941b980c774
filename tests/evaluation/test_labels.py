"""Detectors learn known events; scores of labels are those of scikit-learn and of counting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix, f1_score

import gazediffusion as gd
from gazediffusion.data.recordings import label_segments
from gazediffusion.evaluation.labels import (
    N_FEATURES,
    SCALES_MS,
    Detector,
    ForestDetector,
    NetworkDetector,
    confusion,
    features,
    match_events,
    match_samples,
)

SCREEN = gd.Screen(1280, 720, 40.0, 22.5, 45.0)


def moving(n: int, seed: int = 0) -> gd.Windows:
    """Windows of 2 s: fixations, a saccade every 0.4 s, pursuit of 8 deg/s in the last 0.4 s."""
    rng = np.random.default_rng(seed)
    labels = np.ones((n, 500), dtype=np.uint8)
    step = np.zeros((n, 2, 500))
    for at in (100, 200, 300):
        labels[:, at : at + 10] = 2
        step[:, :, at : at + 10] = rng.choice([-0.3, 0.3], (n, 2, 1))
    labels[:, 400:] = 3
    step[:, :, 400:] = rng.choice([-8, 8], (n, 2, 1)) / 250
    gaze = np.cumsum(step, axis=2) + rng.normal(0, 0.01, step.shape)
    return gd.Windows.from_array(gaze, 250, SCREEN, unit="deg", labels=labels)


def test_features_of_a_straight_course_are_known() -> None:
    gaze = np.zeros((1, 2, 500))
    gaze[0, 0] = np.arange(500) * (10 / 250)  # 10 deg/s to the right
    found = features(gd.Windows.from_array(gaze, 250, SCREEN, unit="deg"))
    assert found.shape == (1, N_FEATURES, 500)
    middle = found[0, :, 250]
    for scale in range(len(SCALES_MS)):
        expected = [np.arcsinh(1), 0, np.arcsinh(1), 1]
        np.testing.assert_allclose(middle[4 * scale : 4 * scale + 4], expected, atol=0.01)
    np.testing.assert_allclose(middle[-5::2], 1, atol=0.07)  # net over path
    # The spread of an even course of 17 samples.
    assert 10 ** middle[-6] == pytest.approx(np.std(np.arange(17)) * 0.04, rel=0.02)


def test_mirrored_gaze_has_features_with_other_signs_of_velocity_alone() -> None:
    windows = moving(3)
    mirrored = replace(windows, gaze=windows.gaze * np.array([[-1], [1]], dtype=np.float32))
    one, other = features(windows), features(mirrored)
    is_x = np.isin(np.arange(N_FEATURES), 4 * np.arange(len(SCALES_MS)))
    # Degrees are measured from the middle between two pixels.
    np.testing.assert_allclose(other[:, ~is_x], one[:, ~is_x], atol=0.03)
    np.testing.assert_allclose(other[:, is_x], -one[:, is_x], atol=0.03)


@pytest.mark.parametrize("name", ["network", "forest"])
def test_known_events_are_learned(name: str) -> None:
    detector: Detector
    if name == "network":
        detector = NetworkDetector.fit([moving(16)], seed=0, steps=60, batch_size=4)
    else:
        detector = ForestDetector.fit([moving(8)], seed=0, n_samples=3000, n_trees=10)
    test = moving(6, seed=9)
    true, found = test.cut_labels(), detector.labels(test)
    assert found.shape == true.shape
    assert match_samples(true, found).f1()[:3].min() > 0.8
    assert match_events(true, found).f1()[:3].min() > 0.6


def test_wrong_labels_teach_wrong_events() -> None:
    windows = moving(8)
    rng = np.random.default_rng(0)
    assert windows.labels is not None
    spoiled = replace(windows, labels=rng.permutation(windows.labels))
    detector = ForestDetector.fit([spoiled], seed=0, n_samples=3000, n_trees=10)
    test = moving(6, seed=9)
    assert match_samples(test.cut_labels(), detector.labels(test)).f1()[1] < 0.5


def test_the_same_seed_gives_the_same_detector_and_samples_without_labels_are_left_out() -> None:
    windows, test = moving(4), moving(2, seed=5)
    assert windows.labels is not None
    half = replace(windows, labels=np.where(np.arange(2000) % 2, windows.labels, 0).astype("uint8"))
    for fit in (
        lambda: NetworkDetector.fit([half], seed=1, steps=5, batch_size=2),
        lambda: ForestDetector.fit([half], seed=1, n_samples=500, n_trees=3),
    ):
        np.testing.assert_array_equal(fit().labels(test), fit().labels(test))
    with pytest.raises(gd.GazeError, match="no labels"):
        ForestDetector.fit([replace(windows, labels=None)])


CLASSES = [1, 2, 3, 4]


def random_labels(seed: int, n: int = 20) -> NDArray[np.uint8]:
    """Labels (n, 300) of events of 1 to 30 samples."""
    rng = np.random.default_rng(seed)
    rows = [np.repeat(rng.integers(1, 5, 300), rng.integers(1, 31, 300))[:300] for _ in range(n)]
    return np.array(rows, dtype=np.uint8)


def test_f1_of_samples_is_that_of_scikit_learn() -> None:
    true, found = random_labels(0), random_labels(1)
    expected = f1_score(true.ravel(), found.ravel(), labels=CLASSES, average=None)
    np.testing.assert_allclose(match_samples(true, found).f1(), expected)
    table = confusion_matrix(true.ravel(), found.ravel(), labels=CLASSES, normalize="true")
    np.testing.assert_allclose(confusion(true, found), table)


def test_events_are_matched_as_by_a_loop_over_all_pairs() -> None:
    true = random_labels(0)
    found = true.copy()
    found[:, ::7] = random_labels(1)[:, ::7]
    matches = match_events(true, found)
    for window in range(len(true)):
        own, other = label_segments(true[window]).tolist(), label_segments(found[window]).tolist()
        for number in CLASSES:
            hits = 0
            for a, b, kind in own:
                for c, d, same in other:
                    common = len(set(range(a, b)) & set(range(c, d)))
                    every = len(set(range(a, b)) | set(range(c, d)))
                    hits += kind == same == number and common / every > 0.5
            assert matches.hits[window, number - 1] == hits
            assert matches.n_true[window, number - 1] == sum(one[2] == number for one in own)
    assert 0 < matches.hits.sum() < matches.n_true.sum()


def test_equal_labels_score_one_and_flicker_costs_events_more_than_samples() -> None:
    true = random_labels(2)
    for match in (match_samples, match_events):
        np.testing.assert_array_equal(match(true, true).f1(), 1.0)
    broken = true.copy()
    broken[:, ::11] = 1 + broken[:, ::11] % 4
    assert match_samples(true, broken).f1().min() > 0.85
    assert match_events(true, broken).f1().max() < 0.8


def test_an_overlap_of_just_half_is_no_hit() -> None:
    true, found = np.full((1, 8), 1, np.uint8), np.full((1, 8), 1, np.uint8)
    true[0, 2:6], found[0, 2:4] = 2, 2
    assert match_events(true, found).f1()[1] == 0
    found[0, 4] = 2
    assert match_events(true, found).f1()[1] == 1


def test_samples_without_a_true_label_do_not_count() -> None:
    true, found = random_labels(0), random_labels(1)
    true[:, 100:] = 0
    for match in (match_samples, match_events):
        whole, part = match(true, found), match(true[:, :100], found[:, :100])
        np.testing.assert_array_equal(whole.f1(), part.f1())
    assert np.isnan(match_samples(true * 0, found).f1()).all()


def test_groups_and_weights_add_up() -> None:
    true, found = random_labels(0), random_labels(1)
    matches = match_samples(true, found)
    group = np.repeat([5, 3], 10)
    both = matches.by_group(group)
    np.testing.assert_allclose(both.f1(), matches.f1())
    weights = np.array([[1.0, 0.0], [0.0, 2.0]])  # groups in the order of their numbers
    expected = [match_samples(true[k], found[k]).f1() for k in (slice(10, 20), slice(0, 10))]
    np.testing.assert_allclose(both.f1(weights), expected)
    assert both.f1(weights).shape == (2, 4)
