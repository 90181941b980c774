"""The manner of windows: what is measured, and what is drawn for new ones."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from gazediffusion.conditioning.manner import FAST, NAMES, TRACKERS, USUAL_SIZE, Manners, measure
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.seeds import evenly_spread
from tests.runs import short_windows

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
    velocity = gaze.diff(dim=-1) * RATE
    speed = velocity.norm(dim=1)
    torch.testing.assert_close(
        found["noise in y"], velocity[:, 1].abs().median(dim=-1).values.log()
    )
    torch.testing.assert_close(found["speed"], speed.mean(dim=-1).log())
    torch.testing.assert_close(found["fast samples"], (speed > FAST).sum(dim=-1).log1p())
    assert found["saccades"].tolist() == pytest.approx([np.log(2)] * 8)
    torch.testing.assert_close(found["spread in y"], gaze[:, 1].std(dim=-1).log())
    reach = gaze[:, 0].max(dim=-1).values - gaze[:, 0].min(dim=-1).values
    torch.testing.assert_close(found["reach in x"], reach.log())
    torch.testing.assert_close(found["place in x"], gaze[:, 0].mean(dim=-1))


def test_a_saccade_counts_once_wherever_it_begins() -> None:
    gaze = torch.zeros(3, 2, 64)
    gaze[0, 0, 1:] = 0.5  # the very first step
    gaze[1, 0, 20:] = 0.5
    gaze[2, 0, 20:] = 0.5
    gaze[2, 0, 40:] = 0.0
    counts = measure(gaze, RATE)[:, NAMES.index("saccades")].expm1()
    assert counts.tolist() == pytest.approx([1, 1, 2])


def lasting(*lengths: int, step: float = 0.03) -> torch.Tensor:
    """A window with a saccade of each of these numbers of samples, the last at its very end."""
    steps = torch.zeros(1, 2, 20 + sum(lengths) + 10 * len(lengths))
    begin = 10
    for number, length in enumerate(lengths):
        begin = steps.shape[-1] - length if number == len(lengths) - 1 else begin
        steps[0, 0, begin : begin + length] = step * (-1) ** number
        begin += length + 10
    return steps.cumsum(dim=-1)


def test_saccades_are_counted_by_how_long_they_last() -> None:
    gaze = lasting(1, 3, 6, 8, 9, 20)
    found = dict(zip(NAMES, measure(gaze, RATE)[0].expm1().tolist(), strict=True))
    assert found["saccades"] == pytest.approx(6)
    assert found["brief saccades"] == pytest.approx(1)
    counts = [found[f"saccades of {ms} ms"] for ms in (12, 20, 28, 36, 44, 52)]
    assert counts == pytest.approx([5, 4, 3, 2, 1, 1])
    # A window shorter than a long saccade has none.
    assert float(measure(torch.zeros(1, 2, 8), RATE)[0, NAMES.index("saccades of 52 ms")]) == 0


def test_the_size_of_long_saccades_is_theirs_alone() -> None:
    """Two of 12 samples, which go 0.36 and 0.48, beside short ones, which do not count."""
    place = NAMES.index("size of long saccades")
    first = lasting(3, 12, 5)
    gaze = torch.cat([first, lasting(4, 12, step=0.04) + first[..., -1:]], dim=-1)
    size = float(measure(gaze, RATE)[0, place].exp())
    assert size == pytest.approx((0.36 + 0.48 + USUAL_SIZE) / 3, rel=1e-4)
    assert float(measure(lasting(3, 5), RATE)[0, place].exp()) == pytest.approx(USUAL_SIZE)


def test_turns_tell_white_noise_from_smooth_motion() -> None:
    time = torch.arange(400) / RATE
    smooth = torch.stack([torch.sin(3 * time), torch.cos(3 * time)])[None]
    noisy = smooth + 0.3 * torch.randn(smooth.shape, generator=torch.Generator().manual_seed(0))
    for place in (NAMES.index("turns in x"), NAMES.index("turns in y")):
        odds = [float(measure(gaze, RATE)[0, place].exp()) for gaze in (noisy, smooth)]
        # Steps between independent places turn back two times of three.
        assert odds[0] == pytest.approx(2, abs=0.5)
        assert odds[1] < 0.05


def test_each_axis_has_its_own_noise() -> None:
    gaze = walk(8, seed=5)
    gaze[:, 1] *= 3
    found = dict(zip(NAMES, measure(gaze, RATE).T, strict=True))
    both = found["noise in y"] - found["noise in x"]
    assert float((both - np.log(3)).abs().max()) < 0.4
    assert bool((found["rest in x"] > found["rest in y"]).all())


def test_jitter_tells_the_lag_one_autocorrelation() -> None:
    gaze = walk(8, seed=3)
    velocity = (gaze.diff(dim=-1) * RATE).double()
    found = measure(gaze, RATE)[:, [NAMES.index("jitter in x"), NAMES.index("jitter in y")]]
    lag_one = (velocity[..., 1:] * velocity[..., :-1]).sum(-1) / velocity.square().sum(-1)
    # Up to the ends of the window and the mean velocity, which is nearly nothing.
    torch.testing.assert_close(found.exp().double(), 2 * (1 - lag_one), atol=0.01, rtol=0.01)


def test_gaze_in_whole_pixels_rests() -> None:
    pixel = 2 / 1280
    smooth = walk(4, seed=4)
    whole = (smooth / pixel).round() * pixel
    rest = [measure(gaze, RATE)[:, NAMES.index("rest in x")] for gaze in (smooth, whole)]
    assert float((rest[1] - rest[0]).min()) > 1


def test_gaze_that_rests_has_finite_numbers() -> None:
    assert bool(torch.isfinite(measure(torch.zeros(2, 2, 64), RATE)).all())


def of_two_kinds() -> Windows:
    """Windows of one person, half of them quiet and left, half noisy and right."""
    quiet, noisy = walk(300, 1, 3e-4) - 0.4, walk(300, 2, 3e-3) + 0.4
    gaze = torch.cat([quiet, noisy]).clamp(-0.99, 0.99).numpy()
    made = Windows.from_array(gaze, RATE, short_windows().screen)
    return replace(made, tasks=("both",))


def test_drawn_manners_are_distributed_as_the_training_windows() -> None:
    windows = of_two_kinds()
    manners = Manners.fit([windows], windows.tasks)
    real = manners.told(torch.from_numpy(windows.cut()), RATE).numpy()
    made = drawn(manners, 1500).numpy()
    np.testing.assert_allclose(made.mean(axis=0), real.mean(axis=0), atol=0.12)
    np.testing.assert_allclose(made.std(axis=0), real.std(axis=0), atol=0.12)
    # Quiet windows lie left and noisy ones right: numbers go together as in the windows.
    noise, place = NAMES.index("noise in x"), NAMES.index("place in x")
    assert np.corrcoef(real[:, noise], real[:, place])[0, 1] > 0.88
    assert np.corrcoef(made[:, noise], made[:, place])[0, 1] > 0.83
    # Two kinds of windows are drawn, and hardly any between.
    assert np.mean(np.abs(made[:, noise]) < 0.5) < 0.1


def drawn(manners: Manners, n: int, seed: int = 5) -> torch.Tensor:
    return manners.drawn([0] * n, evenly_spread(seed, 0, n, 1 + len(NAMES)))[0]


def test_a_manner_does_not_depend_on_the_windows_beside_it() -> None:
    manners = Manners.fit([short_windows()], short_windows().tasks)
    places = evenly_spread(1, 0, 4, 1 + len(NAMES))
    together, kinds = manners.drawn([1, 0, 0, 1], places)
    assert kinds == [0, 0, 0, 0]
    for row, task in enumerate([1, 0, 0, 1]):
        alone, _ = manners.drawn([task], places[row : row + 1])
        assert torch.equal(together[row : row + 1], alone)
    assert not torch.equal(together[1], together[2])


def test_few_draws_have_the_mean_of_many() -> None:
    """Drawn evenly: sixty-four windows are as near to the mean as thousands of independent ones."""
    manners = Manners.fit([of_two_kinds()], ["both"])
    whole = drawn(manners, 4096).mean(dim=0)
    few = torch.stack([drawn(manners, 64, seed).mean(dim=0) for seed in range(20)])
    assert float((few - whole).square().mean().sqrt()) < 0.4 / 64**0.5


def in_whole_pixels() -> Windows:
    """Windows of two recordings on a grid of a tenth of a pixel, the second in whole pixels."""
    fine, coarse = walk(150, 1, 5e-3), walk(150, 2, 5e-3)
    screen = short_windows().screen
    cell = torch.from_numpy(2 * 0.1 / screen.size_px).float()
    gaze = [(one / size).round() * size for one, size in ((fine, cell), (coarse, 10 * cell))]
    both = np.concatenate([one.clamp(-0.99, 0.99).numpy() for one in gaze])
    made = Windows.from_array(both, RATE, screen)
    return replace(made, tasks=("both",), grid_px=0.1)


def test_recordings_in_whole_pixels_are_a_kind_of_their_own() -> None:
    windows = in_whole_pixels()
    manners = Manners.fit([windows], windows.tasks)
    (kinds,) = manners.tasks
    assert [kind.share for kind in kinds] == [0.5, 0.5]
    cell = windows.grid_of_window[0, :, 0]
    np.testing.assert_allclose([kind.step for kind in kinds], [cell * 0, cell * 10], rtol=1e-3)
    np.testing.assert_allclose([kind.grid for kind in kinds], [cell, cell], rtol=1e-3)
    wanted, numbers = manners.drawn([0] * 400, evenly_spread(3, 0, 400, 1 + len(NAMES)))
    assert np.mean(numbers) == pytest.approx(0.5, abs=0.01)
    rest = wanted[:, NAMES.index("rest in x")]
    is_whole = torch.tensor(numbers) == 1
    assert float(rest[is_whole].mean()) > float(rest[~is_whole].mean()) + 1


def test_a_few_windows_are_no_kind() -> None:
    windows = in_whole_pixels()
    manners = Manners.fit([windows.select(np.arange(170))], windows.tasks)
    assert [kind.step for kind in manners.tasks[0]] == [(0.0, 0.0)]


def test_what_is_kept_survives_json_and_names_no_window() -> None:
    windows = of_two_kinds()
    manners = Manners.fit([windows], windows.tasks)
    text = json.dumps(manners.to_json())
    assert Manners.from_json(json.loads(text)) == manners
    # Each Gaussian stands for two hundred windows.
    assert len(manners.tasks[0][0].shares) == 3
    assert np.shape(manners.tasks[0][0].real) == (25, len(NAMES))


def test_one_window_is_enough() -> None:
    windows = of_two_kinds().select(np.array([0]))
    manners = Manners.fit([windows], windows.tasks)
    assert bool(torch.isfinite(drawn(manners, 1)).all())


def test_another_study_is_told_on_the_models_scale() -> None:
    here = Manners.fit([of_two_kinds()], ["both"])
    there = Manners.fit([short_windows()], short_windows().tasks)
    moved = here.scaled_as(there)
    gaze = torch.from_numpy(short_windows().cut())
    torch.testing.assert_close(moved.told(gaze, RATE), there.told(gaze, RATE))
    assert moved.tasks == here.tasks


def answers(heard: torch.Tensor, noise: torch.Generator) -> torch.Tensor:
    """Of a network that is timid, too low, and not quite sure."""
    return 0.8 * heard - 0.2 + 0.3 * torch.randn(heard.shape, generator=noise)


def test_what_a_network_misses_is_told_on_top() -> None:
    """What it then makes has the mean and the spread that is wanted."""
    manners = Manners.fit([of_two_kinds()], ["both"])
    noise = torch.Generator().manual_seed(0)
    zeros = [0] * 4000
    wanted = torch.randn(4000, len(NAMES), generator=noise)
    assert torch.equal(manners.heard(zeros, zeros, wanted), wanted)  # nothing is known yet
    before = answers(wanted, noise)
    corrected = manners.corrected([zeros], [wanted], [before])
    heard = corrected.heard(zeros, zeros, wanted)
    after = answers(heard, noise)
    assert float((before - wanted).mean().abs()) > 0.19
    assert float((after - wanted).mean().abs()) < 0.02
    others = slice(len(TRACKERS), None)
    spreads = [float((one.std(dim=0) - 1)[others].mean()) for one in (before, after)]
    assert spreads[0] < -0.1
    assert abs(spreads[1]) < 0.02
    # Of the tracker's numbers only the mean is told on top.
    asked = (heard - wanted)[:, : len(TRACKERS)]
    torch.testing.assert_close(asked, asked[:1].expand_as(asked))
    assert torch.equal(drawn(corrected, 9), drawn(manners, 9))
    assert corrected.uncorrected() == manners
    assert Manners.from_json(json.loads(json.dumps(corrected.to_json()))) == corrected


def test_corrected_once_more_stays_as_it_is() -> None:
    manners = Manners.fit([of_two_kinds()], ["both"])
    zeros = [0] * 4000
    wanted = torch.randn(4000, len(NAMES), generator=torch.Generator().manual_seed(1))
    told = []
    for _ in range(3):
        heard = manners.heard(zeros, zeros, wanted)
        told.append(heard)
        made = answers(heard, torch.Generator().manual_seed(2))
        manners = manners.corrected([zeros], [wanted], [made])
    assert float((told[1] - told[0]).abs().max()) > 0.2
    assert float((told[2] - told[1]).abs().max()) < 0.02


def test_what_a_network_does_not_heed_is_not_exaggerated() -> None:
    manners = Manners.fit([of_two_kinds()], ["both"])
    noise = torch.Generator().manual_seed(3)
    wanted = torch.randn(400, len(NAMES), generator=noise)
    deaf = torch.randn(400, len(NAMES), generator=noise) + 1
    (kind,) = manners.corrected([[0] * 400], [wanted], [deaf]).tasks[0]
    constant, share = np.array(kind.missed).T
    np.testing.assert_allclose(constant, 1, atol=0.2)
    assert np.abs(share).max() == 0


def test_what_is_asked_for_stays_among_people() -> None:
    """A network that makes the same whatever it hears is not driven on and on."""
    manners = Manners.fit([of_two_kinds()], ["both"])
    zeros = [0] * 400
    wanted = torch.randn(400, len(NAMES), generator=torch.Generator().manual_seed(4))
    asked = []
    for _ in range(6):
        manners = manners.corrected([zeros], [wanted], [torch.full_like(wanted, -1.0)])
        shift = (manners.heard(zeros, zeros, wanted) - wanted).mean(dim=0) / wanted.std(dim=0)
        asked.append((float(shift.min()), float(shift.max())))
    assert 0.8 < asked[0][0] < asked[0][1] < 1.2
    assert asked[-1] == pytest.approx((1.5, 1.5), abs=0.01)


def test_a_model_told_other_numbers_is_refused() -> None:
    values = Manners.fit([of_two_kinds()], ["both"]).to_json()
    with pytest.raises(GazeError, match="told 12 numbers of a window, and this version"):
        Manners.from_json({**values, "mean": values["mean"][:12]})
