"""Summary statistics of windows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gazediffusion.conditioning.statistics import (
    FAST,
    PRIOR_AMPLITUDE,
    PRIOR_OVERSHOOT,
    STATISTICS,
    flipped,
    measure,
)
from gazediffusion.errors import GazeError

RATE = 250.0


def walk(n: int, seed: int, step: float = 1e-3) -> torch.Tensor:
    """Gaze that drifts, with a saccade in the middle."""
    noise = torch.Generator().manual_seed(seed)
    gaze = torch.randn(n, 2, 400, generator=noise).cumsum(dim=-1) * step
    gaze[..., 200:] += torch.rand(n, 2, 1, generator=noise) * 0.4 + 0.2
    return gaze


def test_statistics_are_what_their_names_say() -> None:
    gaze = walk(8, seed=0)
    found = dict(zip(STATISTICS, measure(gaze, RATE).T, strict=True))
    velocity = gaze.diff(dim=-1) * RATE
    speed = velocity.norm(dim=1)
    torch.testing.assert_close(
        found["median_speed_y"], velocity[:, 1].abs().median(dim=-1).values.log()
    )
    torch.testing.assert_close(found["mean_speed"], speed.mean(dim=-1).log())
    torch.testing.assert_close(found["fast_samples"], (speed > FAST).sum(dim=-1).log1p())
    assert found["saccades"].tolist() == pytest.approx([np.log(2)] * 8)
    torch.testing.assert_close(found["std_y"], gaze[:, 1].std(dim=-1).log())
    reach = gaze[:, 0].max(dim=-1).values - gaze[:, 0].min(dim=-1).values
    torch.testing.assert_close(found["range_x"], reach.log())
    torch.testing.assert_close(found["mean_x"], gaze[:, 0].mean(dim=-1))


def test_a_saccade_counts_once_wherever_it_begins() -> None:
    gaze = torch.zeros(3, 2, 64)
    gaze[0, 0, 1:] = 0.5  # the very first step
    gaze[1, 0, 20:] = 0.5
    gaze[2, 0, 20:] = 0.5
    gaze[2, 0, 40:] = 0.0
    counts = measure(gaze, RATE)[:, STATISTICS.index("saccades")].expm1()
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


def test_saccades_are_counted_by_duration() -> None:
    gaze = lasting(1, 3, 6, 8, 9, 20)
    found = dict(zip(STATISTICS, measure(gaze, RATE)[0].expm1().tolist(), strict=True))
    assert found["saccades"] == pytest.approx(6)
    assert found["short_saccades"] == pytest.approx(1)
    counts = [found[f"saccades_{ms}ms"] for ms in (12, 20, 28, 36, 44, 52)]
    assert counts == pytest.approx([5, 4, 3, 2, 1, 1])
    # A window shorter than a long saccade has none.
    assert float(measure(torch.zeros(1, 2, 8), RATE)[0, STATISTICS.index("saccades_52ms")]) == 0


def test_the_amplitude_is_of_long_saccades_alone() -> None:
    """Two of 12 samples, which go 0.36 and 0.48, beside short ones, which do not count."""
    column = STATISTICS.index("long_saccade_amplitude")
    first = lasting(3, 12, 5)
    gaze = torch.cat([first, lasting(4, 12, step=0.04) + first[..., -1:]], dim=-1)
    size = float(measure(gaze, RATE)[0, column].exp())
    assert size == pytest.approx((0.36 + 0.48 + PRIOR_AMPLITUDE) / 3, rel=1e-4)
    assert float(measure(lasting(3, 5), RATE)[0, column].exp()) == pytest.approx(PRIOR_AMPLITUDE)


def test_reversals_distinguish_white_noise_from_smooth_motion() -> None:
    time = torch.arange(400) / RATE
    smooth = torch.stack([torch.sin(3 * time), torch.cos(3 * time)])[None]
    noisy = smooth + 0.3 * torch.randn(smooth.shape, generator=torch.Generator().manual_seed(0))
    for column in (STATISTICS.index("reversal_share_x"), STATISTICS.index("reversal_share_y")):
        odds = [float(measure(gaze, RATE)[0, column].exp()) for gaze in (noisy, smooth)]
        # Steps between independent positions reverse two times of three.
        assert odds[0] == pytest.approx(2, abs=0.5)
        assert odds[1] < 0.05


def test_the_acceleration_ratio_is_two_times_one_minus_the_lag_one_autocorrelation() -> None:
    gaze = walk(8, seed=3)
    velocity = (gaze.diff(dim=-1) * RATE).double()
    found = measure(gaze, RATE)[
        :, [STATISTICS.index("acceleration_ratio_x"), STATISTICS.index("acceleration_ratio_y")]
    ]
    lag_one = (velocity[..., 1:] * velocity[..., :-1]).sum(-1) / velocity.square().sum(-1)
    # Up to the ends of the window and the mean velocity, which is nearly nothing.
    torch.testing.assert_close(found.exp().double(), 2 * (1 - lag_one), atol=0.01, rtol=0.01)


def test_constant_gaze_has_finite_statistics() -> None:
    assert bool(torch.isfinite(measure(torch.zeros(2, 2, 64), RATE)).all())


def test_flipping_an_axis_changes_its_mean_alone() -> None:
    gaze = walk(6, seed=7)
    flips = torch.tensor([[True, False], [False, True]] * 3)
    by_hand = torch.where(flips[:, :, None], -gaze, gaze)
    found = flipped(measure(gaze, RATE), STATISTICS, flips)
    torch.testing.assert_close(found, measure(by_hand, RATE), atol=1e-5, rtol=1e-5)
    without_means = tuple(name for name in STATISTICS if not name.startswith("mean_"))
    values = measure(gaze, RATE, without_means)
    assert torch.equal(flipped(values, without_means, flips), values)


def test_some_statistics_are_columns_of_all() -> None:
    gaze = walk(3, seed=8)
    chosen = ("saccades", "mean_y", "std_x")
    columns = [STATISTICS.index(name) for name in chosen]
    assert torch.equal(measure(gaze, RATE, chosen), measure(gaze, RATE)[:, columns])


def test_a_statistic_of_another_version_is_refused() -> None:
    with pytest.raises(GazeError, match="conditioned on 'pupil', which this version cannot"):
        measure(walk(1, seed=0), RATE, ("saccades", "pupil"))


def test_small_saccades_and_the_fixations_between_are_counted() -> None:
    """Two saccades slower than FAST, 0.5 s apart, and one of a single sample, which is noise."""
    gaze = torch.zeros(1, 2, 400)
    gaze[0, 0, 100:] += 0.01 * (torch.arange(300) + 1).clamp_max(5)
    gaze[0, 1, 225:] += 0.01 * (torch.arange(175) + 1).clamp_max(5)
    gaze[0, 0, 300:] += 0.01
    found = dict(zip(STATISTICS, measure(gaze, RATE)[0].expm1().tolist(), strict=True))
    assert found["saccades"] == 0
    assert found["moderate_saccades"] == pytest.approx(2)
    assert [found["fixations_200ms"], found["fixations_400ms"]] == pytest.approx([3, 2])
    short = measure(gaze[..., 60:], RATE)[0].expm1()  # the first fixation now lasts 160 ms
    columns = [STATISTICS.index(f"fixations_{ms}ms") for ms in (200, 400)]
    assert short[columns].tolist() == pytest.approx([2, 2])


def test_drift_is_the_speed_without_the_noise() -> None:
    """A slow motion keeps its drift under noise that multiplies its speed by ten."""
    column = STATISTICS.index("drift_speed")
    speed = 0.2
    gaze = torch.zeros(4, 2, 2000)
    gaze[:, 0] = torch.arange(2000) / RATE * speed
    noise = torch.randn(gaze.shape, generator=torch.Generator().manual_seed(0)) * 1e-3
    assert float(measure(gaze, RATE)[0, column].exp()) == pytest.approx(speed, rel=1e-3)
    assert measure(gaze + noise, RATE)[:, column].exp().tolist() == pytest.approx(
        [speed] * 4, rel=0.15
    )
    still = measure(noise, RATE)[:, column].exp()
    assert float(still.max()) < 0.25 * float((noise.diff(dim=-1) * RATE).norm(dim=1).median())


def with_overshoots(*returns: float, after: int = 6) -> torch.Tensor:
    """A window with oblique saccades, each followed by a step back of that speed."""
    steps = torch.zeros(1, 2, 40 + 40 * len(returns))
    along = torch.tensor([0.6, -0.8])[:, None]
    for number, back in enumerate(returns):
        first, sign = 20 + 40 * number, (-1) ** number
        ramp = torch.tensor([0.01, 0.02, 0.04, 0.02, 0.01])
        steps[0, :, first : first + 5] = sign * along * ramp
        steps[0, :, first + 2 + after] = -sign * along[:, 0] * back / RATE
    return torch.nn.functional.pad(steps, (1, 0)).cumsum(dim=-1)


def test_the_overshoot_is_the_mean_return_after_saccades() -> None:
    column = STATISTICS.index("overshoot")

    def of(gaze: torch.Tensor) -> float:
        return float(measure(gaze, RATE)[0, column].exp())

    returns = (1.5, 0.5, 0.0)
    expected = (sum(returns) + PRIOR_OVERSHOOT) / (len(returns) + 1)
    assert of(with_overshoots(*returns)) == pytest.approx(expected, rel=1e-4)
    # 44 ms after the peak and later a step back belongs to no overshoot.
    assert of(with_overshoots(1.5, after=11)) == pytest.approx(
        (1.5 + PRIOR_OVERSHOOT) / 2, rel=1e-4
    )
    assert of(with_overshoots(1.5, after=12)) == pytest.approx(PRIOR_OVERSHOOT / 2, rel=1e-4)
    assert of(torch.zeros(1, 2, 8)) == pytest.approx(PRIOR_OVERSHOOT)


def test_the_overshoot_does_not_depend_on_flips() -> None:
    gaze = with_overshoots(1.5, 0.5)
    values = [measure(gaze * sign, RATE)[0, -1] for sign in (1.0, -1.0)]
    assert float(values[0]) == float(values[1])
