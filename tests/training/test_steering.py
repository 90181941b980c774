"""Steerable training: what windows are given, where errors count, and that it is learned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gazediffusion.conditioning.conditioning import N_CHANNELS
from gazediffusion.data.windows import Windows
from gazediffusion.network.checkpoint import RunConfig, load_run
from gazediffusion.network.recipes import RECIPES, Recipe
from gazediffusion.network.representations import JOINT_STD
from gazediffusion.network.tensors import load_tensors, save_tensors
from gazediffusion.network.unet import UNetConfig
from gazediffusion.training.batches import Batches, encode_labels
from gazediffusion.training.training import train_epochs
from tests.runs import short_windows

CPU = torch.device("cpu")
NETWORK = UNetConfig(
    channels=8, sequence_channels=N_CHANNELS, widths=(8, 16, 16), embedding=16, rotary=True
)
STEERABLE: Recipe = replace(
    RECIPES["steerable-tiny"], network=NETWORK, epochs=2, batch_size=6, sampling_steps=5
)


def labelled_windows() -> Windows:
    """Short windows, half of whose samples are labelled, with targets at a tenth of the screen."""
    windows = short_windows()
    n = windows.gaze.shape[1]
    labels = np.where(np.arange(n) < n // 2, 1 + np.arange(n) % 4, 0).astype(np.uint8)
    targets = np.round(windows.gaze, 1)
    targets[:, n // 2 :] = np.nan
    elapsed_ms = np.array([0.0, 12.0, 400.0])
    targets = targets.astype(np.float32)
    return replace(windows, labels=labels, targets=targets, segment_elapsed_ms=elapsed_ms)


def steerable_run(folder: Path) -> Path:
    """A trained run at 20 Hz, so that the overlap of long windows is shorter than a window."""
    windows = replace(labelled_windows(), rate_hz=20.0)
    list(train_epochs(windows, folder, STEERABLE, seed=0, device="cpu"))
    # So short a training leaves all classes about as probable. Larger weights make them differ.
    weights, header = load_tensors(folder / "best.safetensors")
    weights["head.2.weight"][STEERABLE.gaze_channels :] *= 5
    save_tensors(folder / "best.safetensors", weights, header)
    return folder


@pytest.fixture(scope="module")
def batches() -> Batches:
    windows = labelled_windows()
    config = RunConfig.of([windows], STEERABLE, 0, "fp32", "cpu")
    return Batches([windows.train], config, 0, CPU)


def test_labels_are_one_hot_channels_and_zero_where_there_is_none() -> None:
    channels = encode_labels(torch.tensor([[0, 1, 4]]))
    expected = [[0, 1, -1], [0, -1, -1], [0, -1, -1], [0, -1, 1]]
    np.testing.assert_allclose(channels[0], JOINT_STD * np.array(expected, dtype=float))


def test_errors_count_where_nothing_is_given(batches: Batches) -> None:
    for step in range(20):
        x0, _, eps, _, sequences, counts = batches.at(step)
        assert x0.shape == eps.shape == counts.shape == (6, 8, 64)
        assert sequences.shape == (6, N_CHANNELS, 64)
        known, mask = sequences[:, :4], sequences[:, 4]
        is_known = mask.bool()
        # Known channels are those of the window itself, and do not count.
        assert torch.equal(known[:, 0][is_known], x0[:, 0][is_known])
        assert not counts[:, 0][is_known].any()
        assert counts[:, 0][~is_known].all()
        # Where there is no label there is neither signal nor noise.
        unlabelled = counts[:, 4] == 0
        assert not x0[:, 4][unlabelled].any()
        assert not eps[:, 4][unlabelled].any()
        assert counts.flatten(1).any(dim=1).all()


def test_a_steerable_model_starts_as_the_model_it_is_initialised_from(tmp_path: Path) -> None:
    windows = labelled_windows()
    plain = replace(NETWORK, channels=4, sequence_channels=0)
    joint = replace(RECIPES["joint-tiny"], network=plain, epochs=1, batch_size=6)
    list(train_epochs(windows, tmp_path / "joint", joint, seed=0, device="cpu"))
    source = load_run(tmp_path / "joint")
    still = replace(STEERABLE, epochs=1, learning_rate=0.0)
    list(train_epochs(windows, tmp_path / "run", still, seed=0, device="cpu", initial=source))
    run = load_run(tmp_path / "run")
    x, t = torch.randn(2, 4, 64), torch.tensor([100.0, 700.0])
    condition = torch.randn(2, run.config.conditioning.width)
    padded = torch.nn.functional.pad(x, (0, 0, 0, 4))
    with torch.no_grad():
        expected = source.network(x, t, condition[:, : source.config.conditioning.width])
        found = run.network(padded, t, condition, torch.randn(2, N_CHANNELS, 64))
    torch.testing.assert_close(found[:, :4], expected)
    assert not found[:, 4:].any()
