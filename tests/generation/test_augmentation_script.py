"""runs/augmentation.py: all tables by a tiny model; scores and features against what is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

import gazediffusion as gd
from gazediffusion.model import Model
from tests.conftest import SCREEN
from tests.test_documents import from_folder

augmentation = from_folder("runs", "augmentation")
TASKS = ("dots", "movies")
Examples, Pair = augmentation.Examples, augmentation.Pair


def windows_of(n_participants: int) -> gd.Windows:
    """Walks of 3.2 s at 20 Hz, two tasks, two sessions; every third participant is held out."""
    rng = np.random.default_rng(0)
    names = [f"S{k:02d}" for k in range(n_participants)]
    each = [
        (name, task, session) for name in names for task in ("dots", "movies") for session in "12"
    ]
    each = [one for one in each for _ in range(5)]
    gaze = np.cumsum(rng.normal(0, 0.02, (len(each), 2, 64)), axis=2)
    windows = gd.Windows.from_array(
        gaze, 20, SCREEN, [one[0] for one in each], [one[1] for one in each]
    )
    return replace(
        windows,
        segment_trial=tuple(f"{one[2]}-{k}" for k, one in enumerate(each)),
        validation=frozenset(names[::3]),
        labels=np.tile(1 + np.arange(64) // 16, len(each)).astype(np.uint8),
    )


def rows_of(printed: str) -> list[list[str]]:
    lines = [one for one in printed.splitlines() if one.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_question_has_a_table(
    steerable_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(augmentation, "N_TREES", 5)
    windows = windows_of(9)
    windows.save(tmp_path / "w.safetensors")
    arguments = [str(tmp_path / "w.safetensors"), "--model", str(steerable_folder), "-n", "4"]
    arguments += ["--draws", "2", "--who-task", "dots", "--participants", "1", "3"]
    # The tiny model has seen nobody in movies: its styles are of dots alone.
    monkeypatch.setattr(Model, "tasks", ("dots",))
    augmentation.main([*arguments, "--labels"])
    printed = capsys.readouterr().out
    rows = rows_of(printed)
    assert [row[0] for row in rows] == ["participants", "1", "3"] * 2 + ["participants", "3"] * 2
    assert {len(row) for row in rows} == {6}
    for row in rows:
        assert row[5] in ("helps", "yes", "no", "worse")
    titles = [one for one in printed.splitlines() if one.startswith("**")]
    assert [one.split("**")[1] for one in titles] == ["Which event", "Which task", "Who", "Who"]
    assert "3 with 5 windows" in titles[2]
    assert "9 with 5 windows" in titles[3]


def blobs(n: int, seed: int, shift: float = 0.0) -> Any:
    """n examples of each of three classes, a standard deviation around 0, 3 and 6."""
    rng = np.random.default_rng(seed)
    classes = np.repeat(np.arange(3), n)
    return Examples(rng.normal(3.0 * (classes[:, None] + shift), 1.0, (3 * n, 1)), classes)


def test_good_synthetic_examples_help_and_wrong_ones_do_not() -> None:
    test, few = blobs(500, 0), blobs(3, 1)
    real, both, alone = augmentation.scores_of(
        [Pair(few, blobs(200, 2))], test, augmentation.accuracy, 0
    )
    # The best rule has borders at 1.5 and 4.5: an accuracy of 1 - 4/3 * P(z > 1.5) = 0.911.
    assert both == pytest.approx(0.911, abs=0.04)
    assert alone == pytest.approx(0.911, abs=0.04)
    assert both > real - 0.01
    wrong = augmentation.scores_of(
        [Pair(few, blobs(200, 2, shift=1.0))], test, augmentation.accuracy, 0
    )
    # Borders at 4.5 and 7.5: all of the first class, and P(z > 1.5) of the others.
    assert wrong[2] == pytest.approx((1 + 2 * 0.067) / 3, abs=0.04)


def test_accuracy_is_balanced() -> None:
    rng = np.random.default_rng(0)
    true, said = rng.integers(0, 4, 200), rng.integers(0, 4, 200)
    expected = balanced_accuracy_score(true, said)
    assert augmentation.accuracy(true, said) == pytest.approx(expected)


def test_one_class_is_always_said() -> None:
    one = Examples(np.zeros((5, 1)), np.zeros(5, dtype=int))
    test = Examples(np.zeros((4, 1)), np.array([0, 0, 0, 1]))
    assert augmentation.trained_and_tested(one, test, augmentation.accuracy, 0) == 0.5


def test_a_row_says_whether_it_helps() -> None:
    rng = np.random.default_rng(0)
    real = rng.uniform(0.4, 0.6, 20)
    for gain, verdict in ((0.1, "yes"), (-0.1, "worse"), (0.0, "no")):
        noise = rng.normal(0, 0.01, 20)
        found = np.stack([real, real + gain + noise - noise.mean(), real], axis=1)
        row = augmentation.row_of(5, found)
        assert row.endswith(f"| {verdict} |")
        assert f"| {gain:+.3f} [" in row or f"| {-gain:+.3f} [" in row
        assert row.startswith(f"| 5 | {real.mean():.2f} [")


def test_draws_are_nested() -> None:
    names = list("abcdefgh")
    few, many = (augmentation.drawn(names, n, 3) for n in (2, 5))
    assert many[:2] == few
    assert len(set(many)) == 5
    assert augmentation.drawn(names, 5, 4) != many


def test_a_ramp_has_its_speed_at_every_scale_and_is_straight() -> None:
    ramp = np.arange(200) * 0.04  # 10 deg/s at 250 Hz
    features = augmentation.event_features(np.stack([ramp, 0 * ramp])[None], 250.0)
    speed, straight = features[0, 40:160, ::2], features[0, 40:160, 1::2]
    np.testing.assert_allclose(np.exp(speed) - 0.1, 10.0, rtol=1e-6)
    np.testing.assert_allclose(straight, 1.0, rtol=1e-4)
    back = np.abs(np.arange(201) - 100) * 0.04
    turned = augmentation.event_features(np.stack([back, back])[None], 250.0)
    np.testing.assert_allclose(turned[0, 100, 1::2], 0.0, atol=1e-6)


def test_examples_of_events_have_the_labels_of_their_samples() -> None:
    fast = np.zeros((6, 2, 500), np.float32)
    fast[:, 0, 250:300] = np.linspace(0, 0.5, 50)
    fast[:, 0, 300:] = 0.5
    labels = np.tile(np.repeat([1, 2, 0, 1], [250, 50, 100, 100]), 6).astype(np.uint8)
    windows = replace(gd.Windows.from_array(fast, 250, SCREEN), labels=labels)
    found = augmentation.event_examples(windows, 6, 0)
    assert set(found.classes.tolist()) == {1, 2}
    assert found.features[found.classes == 2, 0].min() > np.log(20)
    slow = found.features[found.classes == 1, 0]
    assert np.median(slow) == pytest.approx(np.log(0.1))
    none = replace(windows, labels=None)
    assert len(augmentation.event_examples(none, 6, 0).classes) == 0
