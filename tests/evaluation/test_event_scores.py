"""Scores of labels against scikit-learn and against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix, f1_score

from gazediffusion.data.recordings import label_segments
from gazediffusion.evaluation.labels import confusion, match_events, match_samples

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


def test_a_shift_of_all_labels_is_seen_by_events_of_short_duration_first() -> None:
    true = np.ones((1, 400), np.uint8)
    true[0, 50:60], true[0, 200:300] = 2, 3
    found = np.roll(true, 6, axis=1)
    f1 = match_events(true, found).f1()
    assert f1[1] == 0
    assert f1[2] == pytest.approx(1)
