"""The manner of windows: what is measured, and what is drawn for new ones."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from gazediffusion.manner import FAST, NAMES, TRACKERS, Manners, measure
from gazediffusion.windows import Windows

from .runs import short_windows

RATE = 250.0


def walk(n: int, seed: int, step: float = 1e-3) -> torch.Tensor:
    """Gaze that drifts, with a jump to another place in the middle."""
    noise = torch.Generator().manual_seed(seed)
    gaze = torch.randn(n, 2, 400, generator=noise).cumsum(dim=-1) * step
    gaze[..., 200:] += torch.rand(n, 2, 1, generator=noise) * 0.4 + 0.2
    return gaze


def test_the_numbers_are_what_they_say() -> None:
    gaze = walk(8, seed=0)
    found = dict(zip(NAMES, measure(gaze, RATE).T, strict=True))
    speed = gaze.diff(dim=-1).norm(dim=1) * RATE
    torch.testing.assert_close(found["noise"], speed.median(dim=-1).values.log())
    torch.testing.assert_close(found["speed"], speed.mean(dim=-1).log())
    torch.testing.assert_close(found["fast samples"], (speed > FAST).sum(dim=-1).log1p())
    assert found["saccades"].tolist() == pytest.approx([np.log(2)] * 8)
    torch.testing.assert_close(found["spread in y"], gaze[:, 1].std(dim=-1).log())
    torch.testing.assert_close(found["place in x"], gaze[:, 0].mean(dim=-1))


def test_a_saccade_counts_once_wherever_it_begins() -> None:
    gaze = torch.zeros(3, 2, 64)
    gaze[0, 0, 1:] = 0.5  # the very first step
    gaze[1, 0, 20:] = 0.5
    gaze[2, 0, 20:] = 0.5
    gaze[2, 0, 40:] = 0.0
    counts = measure(gaze, RATE)[:, NAMES.index("saccades")].expm1()
    assert counts.tolist() == pytest.approx([1, 1, 2])


def test_roughness_tells_white_noise_from_smooth_motion() -> None:
    time = torch.arange(400) / RATE
    smooth = torch.stack([torch.sin(3 * time), torch.cos(3 * time)])[None]
    noisy = smooth + 0.01 * torch.randn(smooth.shape, generator=torch.Generator().manual_seed(0))
    place = NAMES.index("roughness")
    assert measure(noisy, RATE)[0, place] > measure(smooth, RATE)[0, place] + 1


def test_gaze_that_rests_has_finite_numbers() -> None:
    assert bool(torch.isfinite(measure(torch.zeros(2, 2, 64), RATE)).all())


def of_two_kinds() -> Windows:
    """Windows of one person, half of them quiet and left, half noisy and right."""
    quiet, noisy = walk(300, 1, 3e-4) - 0.4, walk(300, 2, 3e-3) + 0.4
    gaze = torch.cat([quiet, noisy]).clamp(-0.99, 0.99).numpy()
    made = Windows.of_array(gaze, RATE, short_windows().screen, "position")
    return replace(made, tasks=("both",))


def test_drawn_manners_are_distributed_as_the_training_windows() -> None:
    windows = of_two_kinds()
    manners = Manners.fit([windows], windows.tasks)
    real = manners.told(torch.from_numpy(windows.cut()), RATE).numpy()
    made = np.stack([manners.drawn(0, 5, k).numpy() for k in range(1500)])
    np.testing.assert_allclose(made.mean(axis=0), real.mean(axis=0), atol=0.12)
    np.testing.assert_allclose(made.std(axis=0), real.std(axis=0), atol=0.12)
    # Quiet windows lie left and noisy ones right: numbers go together as in the windows.
    noise, place = NAMES.index("noise"), NAMES.index("place in x")
    assert np.corrcoef(real[:, noise], real[:, place])[0, 1] > 0.9
    assert np.corrcoef(made[:, noise], made[:, place])[0, 1] > 0.85
    # Two kinds of windows are drawn, and hardly any between.
    assert np.mean(np.abs(made[:, noise]) < 0.5) < 0.1


def test_a_manner_depends_on_seed_and_window_alone() -> None:
    manners = Manners.fit([short_windows()], short_windows().tasks)
    first, again, other, later = (
        manners.drawn(0, seed, index) for seed, index in ((1, 3), (1, 3), (2, 3), (1, 4))
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first, later)


def test_what_is_kept_survives_json_and_names_no_window() -> None:
    windows = of_two_kinds()
    manners = Manners.fit([windows], windows.tasks)
    text = json.dumps(manners.to_json())
    assert Manners.from_json(json.loads(text)) == manners
    # Each Gaussian stands for a hundred windows.
    assert len(manners.tasks[0].shares) == 6
    assert np.shape(manners.tasks[0].real) == (25, len(NAMES))


def test_one_window_is_enough() -> None:
    windows = of_two_kinds().select(np.array([0]))
    manners = Manners.fit([windows], windows.tasks)
    assert bool(torch.isfinite(manners.drawn(0, 0, 0)).all())


def test_another_study_is_told_on_the_models_scale() -> None:
    here = Manners.fit([of_two_kinds()], ["both"])
    there = Manners.fit([short_windows()], short_windows().tasks)
    moved = here.scaled_as(there)
    gaze = torch.from_numpy(short_windows().cut())
    torch.testing.assert_close(moved.told(gaze, RATE), there.told(gaze, RATE))
    assert moved.tasks == here.tasks


def test_what_a_network_misses_is_told_on_top() -> None:
    """A network that answers timidly and too low is asked for more, and gives what is wanted."""
    manners = Manners.fit([of_two_kinds()], ["both"])
    noise = torch.Generator().manual_seed(0)
    told = torch.randn(400, len(NAMES), generator=noise)

    def answer(heard: torch.Tensor) -> torch.Tensor:
        return 0.9 * heard - 0.2 + 0.1 * torch.randn(heard.shape, generator=noise)

    assert torch.equal(manners.heard(0, told), told)  # before anything is known
    corrected = manners.corrected([told], [answer(told)])
    wanted = torch.randn(2000, len(NAMES), generator=noise)
    before, after = (
        (answer(one.heard(0, wanted)) - wanted)[:, len(TRACKERS) :] for one in (manners, corrected)
    )
    assert torch.equal(corrected.heard(0, wanted)[:, :2], wanted[:, :2])
    wanted = wanted[:, len(TRACKERS) :]
    assert float(before.mean().abs()) > 0.19
    assert float(after.mean().abs()) < 0.03
    assert float((after * wanted).mean().abs()) < 0.2 * float((before * wanted).mean().abs())
    assert corrected.drawn(0, 1, 2).tolist() == manners.drawn(0, 1, 2).tolist()
    assert Manners.from_json(json.loads(json.dumps(corrected.to_json()))) == corrected
