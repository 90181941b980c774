"""Labelling: probabilities of the network, labelled sets."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from torch import Tensor

import gazediffusion as gd
from gazediffusion.data.writers.npz import read_npz
from gazediffusion.diffusion.edm import Edm
from gazediffusion.errors import GazeError
from gazediffusion.generation.labelling import (
    NOISE,
    Labeller,
    most_probable_sequence,
    with_lost_labels,
)
from gazediffusion.model import Model
from gazediffusion.network.representations import JOINT_STD
from tests.conftest import RunCommand
from tests.runs import trained_run


@pytest.fixture(scope="module")
def model(steerable_folder: Path) -> Model:
    return gd.load(steerable_folder, device="cpu")


def test_the_denoised_channels_are_taken_for_probabilities(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Tensor] = []

    def denoise(self: Edm, network: Any, x: Tensor, sigma: Tensor, *condition: Tensor) -> Tensor:
        given.extend([x, sigma, *condition])
        far = condition[-1][:, 0].abs() > 0.5
        p = torch.full((len(x), 4, x.shape[2]), 0.05)
        p[:, 2] = torch.where(far, 0.85, 0.05)
        p[:, 0] = torch.where(far, 0.05, 0.85)
        return torch.cat([torch.zeros(len(x), 4, x.shape[2]), (2 * p - 1) * JOINT_STD], dim=1)

    monkeypatch.setattr(Edm, "denoise", denoise)
    gaze = np.zeros((2, 2, 64), dtype=np.float32)
    gaze[1, 0, 20:40] = 1.0
    p = Labeller(model.run).probabilities(gaze)
    assert p.shape == (2, 4, 64)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(p[1, 2, 20:40], 0.85, rtol=1e-4)
    labels = Labeller(model.run).labels(gaze)
    assert (labels[0] == 1).all()
    assert (labels[1] == np.where((np.arange(64) >= 20) & (np.arange(64) < 40), 3, 1)).all()
    # At the highest level without noise; once as it is and once mirrored, without a task.
    x, sigma, vector, _, _, _, mirrored, _ = given[:8]
    assert not x.any()
    assert (sigma == model.config.recipe.edm.sigma_max).all()
    augmentation = model.config.conditioning.columns("augmentation")
    assert not vector.any()
    assert (mirrored[:, augmentation][:, :2] == 1).all()
    assert mirrored.sum() == 2 * len(gaze)


def test_probabilities_depend_neither_on_the_batch_nor_on_a_seed(model: Model) -> None:
    gaze = model.sample(5, seed=3).cut()
    one, other = (Labeller(model.run, size).probabilities(gaze) for size in (2, 5))
    np.testing.assert_allclose(one, other, atol=1e-5)
    np.testing.assert_array_equal(one, Labeller(model.run, 2).probabilities(gaze))


def test_long_and_short_gaze_is_labelled_in_windows(model: Model) -> None:
    labeller = Labeller(model.run)
    gaze = model.sample(2, seconds=6, seed=1).cut()  # 120 samples in windows of 64
    p = labeller.probabilities(gaze)
    first, last = (labeller.probabilities(one) for one in (gaze[..., :64], gaze[..., -64:]))
    np.testing.assert_allclose(p[..., :34], first[..., :34], atol=1e-5)
    np.testing.assert_allclose(p[..., -22:], last[..., -22:], atol=1e-5)
    assert labeller.labels(gaze[..., :10]).shape == (2, 10)
    assert labeller.n_windows(120) == 3
    done: list[float] = []
    labeller.probabilities(gaze, done.append)
    assert done == [6]


def test_lost_samples_are_noise_and_do_not_spoil_the_others(model: Model) -> None:
    gaze = model.sample(1, seed=1).cut()
    gaze[0, 0, 10:20] = np.nan
    labels = Labeller(model.run).labels(gaze)
    assert (labels[0, 10:20] == NOISE).all()
    assert np.isfinite(Labeller(model.run).probabilities(gaze)).all()


def test_gaze_is_the_same_with_labels_and_the_labels_are_of_this_gaze(model: Model) -> None:
    plain = model.sample(3, seed=2)
    labelled = model.sample(3, seed=2, labels=True)
    np.testing.assert_array_equal(plain.gaze, labelled.gaze)
    assert plain.labels is None
    expected = Labeller.of_generated(model.sampler()).labels(plain.cut())
    np.testing.assert_array_equal(labelled.cut_labels(), expected)
    assert set(np.unique(labelled.cut_labels())) <= {1, 2, 3, 4}
    card = labelled.provenance["card"]
    assert card["labels"]["classes"] == list(gd.EVENT_CLASSES)
    assert card["labels"]["weights_sha256"] == model.run.weights_sha256
    assert "labels" not in plain.provenance["card"]


def test_shorter_and_slower_windows_keep_their_classes(model: Model) -> None:
    whole = model.sample(2, seed=2, labels=True).cut_labels()
    cut = model.sample(2, seed=2, labels=True, seconds=2)
    np.testing.assert_array_equal(cut.cut_labels(), whole[:, :40])
    slow = model.sample(2, seed=2, labels=True, rate_hz=10)
    assert slow.cut_labels().shape == (2, 32)
    np.testing.assert_array_equal(slow.cut_labels(), whole[:, ::2])


def test_added_losses_are_noise_and_so_is_what_the_lid_moves_by_a_degree() -> None:
    screen = gd.Screen(1280, 720, 40.0, 22.5, 45.0)
    gaze = np.zeros((1, 2, 50), dtype=np.float32)
    labels = np.ones((1, 50), dtype=np.uint8)
    before = gd.Windows.from_array(gaze, 250, screen, labels=labels)
    lossy = before.gaze.copy()
    lossy[:, 20:25] = np.nan
    lossy[1, 18:20] = 0.3  # some degrees
    lossy[1, 16:18] = 0.001
    found = with_lost_labels(replace(before, gaze=lossy), before)
    assert np.flatnonzero(found.cut_labels()[0] == NOISE).tolist() == list(range(18, 25))
    assert (before.cut_labels() == 1).all()


@pytest.mark.parametrize(
    "name", ["set.parquet", "set.csv", "set.npz", "set.safetensors", "asc", "bids"]
)
def test_every_format_gives_the_labels_back(model: Model, tmp_path: Path, name: str) -> None:
    expected = model.sample(3, seed=4, labels=True, task="movies")
    # Classes of every kind, also such that a card of a network without training would not show.
    path = tmp_path / name
    is_folder = name in ("asc", "bids")
    model.sample_to(
        path,
        3,
        seed=4,
        labels=True,
        task="movies",
        batch_size=2,
        format=name if is_folder else None,
    )
    if name.endswith(".safetensors"):
        found = gd.Windows.load(path).cut_labels()
    elif name.endswith(".npz"):
        found = read_npz(path).cut_labels()
    else:
        recordings = list(gd.read(path))
        assert len(recordings) == 3
        found = np.stack([one.labels for one in recordings if one.labels is not None])
    np.testing.assert_array_equal(found, expected.cut_labels())


@pytest.mark.parametrize("name", ["set.parquet", "set.csv", "set.npz", "asc", "bids"])
def test_windows_with_all_classes_come_back(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(0)
    screen = gd.Screen(1280, 720, 40.0, 22.5, 45.0)
    gaze = np.cumsum(rng.normal(0, 0.01, (2, 2, 300)), axis=2).astype(np.float32)
    labels = np.repeat(rng.integers(1, 5, (2, 30)), 10, axis=1).astype(np.uint8)
    labels[:, 40:50] = 0
    windows = gd.Windows.from_array(gaze, 60, screen, labels=labels)
    path = tmp_path / name
    windows.save(path, format=None if "." in name else name)
    if name.endswith("npz"):
        found = read_npz(path).cut_labels()
    else:
        found = np.stack([one.labels for one in gd.read(path) if one.labels is not None])
    np.testing.assert_array_equal(found, labels)


def test_events_of_asc_are_those_of_the_labels(tmp_path: Path) -> None:
    labels = np.repeat([[1, 2, 3, 4, 1]], 50, axis=1).astype(np.uint8)
    gaze = np.zeros((1, 2, 250), dtype=np.float32)
    gaze[0, 0] = np.linspace(-0.5, 0.5, 250)
    screen = gd.Screen(1280, 720, 40.0, 22.5, 45.0)
    gd.Windows.from_array(gaze, 250, screen, labels=labels).save(tmp_path / "asc", "asc")
    lines = next((tmp_path / "asc").glob("*.asc")).read_text().splitlines()
    ends = [line.split()[:4] for line in lines if line.startswith(("EFIX", "ESACC", "EBLINK"))]
    assert ends == [
        ["EFIX", "R", "0", "196"],
        ["ESACC", "R", "200", "396"],
        ["EFIX", "R", "400", "596"],  # the pursuit
        ["EFIX", "R", "800", "996"],
    ]
    messages = [line.split()[2:] for line in lines if " LABEL " in line]
    assert messages[2:4] == [["LABEL", "pursuit", "400", "596"], ["LABEL", "noise", "600", "796"]]


def test_trackers_own_events_are_no_labels(tmp_path: Path) -> None:
    gaze = np.zeros((1, 2, 250), dtype=np.float32)
    windows = gd.Windows.from_array(gaze, 250, gd.Screen(1280, 720, 40.0, 22.5, 45.0))
    for format in ("asc", "bids"):
        windows.save(tmp_path / format, format)
        assert all(one.labels is None for one in gd.read(tmp_path / format))


def test_frames_and_torch_datasets_have_the_classes() -> None:
    labels = np.array([[1, 2, 3, 4, 0]], dtype=np.uint8)
    windows = gd.Windows.from_array(np.zeros((1, 2, 5)), 250, gd.Screen(100, 100), labels=labels)
    words = ["fixation", "saccade", "pursuit", "noise", None]
    assert windows.to_frame()["event"].to_list() == words
    assert windows.to_torch()[0]["labels"].tolist() == [1, 2, 3, 4, 0]
    assert "labels" not in replace(windows, labels=None).to_torch()[0]
    assert "event" not in replace(windows, labels=None).to_frame().columns
    with pytest.raises(GazeError, match="shape"):
        gd.Windows.from_array(np.zeros((1, 2, 5)), 250, gd.Screen(100, 100), labels=labels[:, :4])


def test_a_model_without_labels_is_refused(tmp_path: Path, run: RunCommand) -> None:
    folder = trained_run(tmp_path / "run")
    with pytest.raises(GazeError, match=r"no labels.*default model"):
        gd.load(folder, device="cpu").sample(2, labels=True)
    code, _, error = run(
        "generate", "--model", folder, "-n", 2, "--labels", "-o", tmp_path / "a.csv"
    )
    assert code == 2
    assert "no labels" in error
    assert not (tmp_path / "a.csv").exists()


def test_the_command_writes_the_column_and_says_who_labelled(
    steerable_folder: Path, tmp_path: Path, run: RunCommand
) -> None:
    arguments = ("--model", steerable_folder, "-n", 3, "--seed", 4, "--task", "movies")
    for name in ("a", "b"):
        code, _, error = run("generate", *arguments, "--labels", "-o", tmp_path / f"{name}.parquet")
        assert code == 0, error
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    run("generate", *arguments, "-o", tmp_path / "plain.parquet")
    frame, plain = (pl.read_parquet(tmp_path / f"{one}.parquet") for one in ("a", "plain"))
    assert frame.drop("event").equals(plain)
    assert set(frame["event"]) <= set(gd.EVENT_CLASSES)
    assert "not by hand" in (tmp_path / "a.md").read_text()


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
