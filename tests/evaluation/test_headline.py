"""The headline: its numbers by their definitions, its intervals, the reference without fault."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from gazediffusion import seeds
from gazediffusion.data.windows import Windows
from gazediffusion.evaluation.evaluation import Evaluation, EvaluationConfig, evaluate
from gazediffusion.evaluation.features import (
    degree_events,
    ivt_statistics,
    kinematic_features,
    main_sequence_fit,
)
from gazediffusion.evaluation.headline import (
    COUNTS,
    Counted,
    Headline,
    percentages,
    summarised_ratios,
)
from gazediffusion.evaluation.sets import SECOND_DRAW, GazeSet
from gazediffusion.seeds import Stream
from tests.conftest import SCREEN
from tests.gaze import as_synthetic, simulated_windows, with_noise

QUICK = EvaluationConfig(quick=True)
PERCENTAGES = tuple(f"{name}_percent" for name in COUNTS)


@pytest.fixture(scope="module")
def windows() -> Windows:
    return simulated_windows()


@pytest.fixture(scope="module")
def noisy(windows: Windows) -> Windows:
    return with_noise(windows.train, 0.002)


@pytest.fixture(scope="module")
def quick(windows: Windows, noisy: Windows) -> Evaluation:
    return evaluate(windows.held_out, {"noisy": noisy}, windows.train, QUICK)


def test_the_second_draw_is_evaluated_as_a_synthetic_set_would_be(
    windows: Windows, quick: Evaluation
) -> None:
    n = quick.results["about"]["n_common"]
    draw = seeds.rng(0, Stream.EVALUATION, "second draw")
    chosen = draw.permutation(len(windows.train))[:n]
    gaze = windows.train.dequantized(seed=1).cut(chosen)
    again = Windows.from_array(gaze, windows.rate_hz, windows.screen)
    expected = evaluate(windows.held_out, {"again": again}, windows.train, QUICK)
    assert quick.headlines[SECOND_DRAW] == expected.headlines["again"]
    assert quick.headlines[SECOND_DRAW].ratio.value == pytest.approx(1.0, abs=0.3)


def test_percentages_are_against_all_windows_of_the_training_participants(
    windows: Windows, noisy: Windows, quick: Evaluation
) -> None:
    def counted(one: Windows) -> list[float]:
        gaze = one.dequantized(seed=0).cut()
        events = ivt_statistics(gaze, one.rate_hz)
        moved = degree_events(gaze, one.screen, one.rate_hz, 2000)
        fit = main_sequence_fit(moved.saccade_amplitude_deg, moved.saccade_peak_deg_s)
        path = kinematic_features(gaze)["path_length"]
        return [events.saccade_count.mean(), events.fixation_count.mean(), path.mean(), fit.slope]

    ours, theirs = counted(noisy), counted(windows.train)
    for name, a, b in zip(PERCENTAGES, ours, theirs, strict=True):
        assert getattr(quick.headlines["noisy"], name).value == 100 * (a / b - 1)


@pytest.fixture(scope="module")
def full(windows: Windows) -> Evaluation:
    """With intervals, of so few windows that the slow tests are not computable."""
    few = windows.select(np.arange(0, len(windows), 6))
    sets = {"real again": as_synthetic(few.train), "noisy": with_noise(few.train, 0.01)}
    return evaluate(few.held_out, sets, few.train, EvaluationConfig(n_bootstrap=60))


def test_intervals_hold_their_value_and_separate_a_defect_from_none(full: Evaluation) -> None:
    for name, one in full.headlines.items():
        for cell in (one.ratio, one.worst_ratio, *(getattr(one, key) for key in PERCENTAGES)):
            assert cell.value is not None
            assert cell.interval is not None, name
            low, high = (float(edge or 0.0) for edge in cell.interval)
            assert low <= cell.value <= high
    ours = full.headlines["real again"].ratio.interval
    theirs = full.headlines["noisy"].ratio.interval
    assert ours is not None
    assert theirs is not None
    assert float(ours[1] or 0) < float(theirs[0] or 0)


def test_a_reference_of_equal_participants_gives_a_narrow_interval_of_ratios() -> None:
    ratios = {"a": 0.9, "b": 1.1, "c": 2.0}
    rng = np.random.default_rng(0)

    def width(spread: float) -> float:
        drawn = {key: value * np.exp(rng.normal(0, spread, 500)) for key, value in ratios.items()}
        found = summarised_ratios(ratios, drawn, dict.fromkeys(ratios, ""))
        low, high = found["ratio"]["interval"]
        return float(np.log(high / low))

    assert width(0.01) < 0.1 * width(0.3)


def test_replicates_are_centred_on_the_value_in_logarithms() -> None:
    drawn = {"a": 3.0 * np.exp(np.linspace(-1, 1, 401))}
    found = summarised_ratios({"a": 2.0}, drawn, {"a": "title"})
    expected = 2.0 * np.exp([-0.95, 0.95])
    np.testing.assert_allclose(found["ratio"]["interval"], expected)
    assert found["n_above"]["value"] == 1
    assert found["n_above"]["interval"] == [0, 1]
    assert found["worst"] == "title"


def test_a_set_without_any_ratio_has_no_headline_ratio() -> None:
    found = Headline(n_windows=10, **summarised_ratios({}, {}, {}))
    assert found.ratio.value is None
    assert found.n_distances == 0


def test_drawing_every_group_once_gives_the_slope_of_the_fit(windows: Windows) -> None:
    counted = Counted.of(GazeSet.of("real", windows.held_out))
    slope = counted.slope(np.ones((1, counted.n_groups)))
    assert slope[0] == pytest.approx(counted.values["main_sequence"])
    assert counted.means["path_length"].mean()[0] == pytest.approx(counted.values["path_length"])


def test_a_count_of_zero_has_no_percentage() -> None:
    assert percentages({"saccade_count": 1.0}, {"saccade_count": 0.0}) == {}


def test_adding_sets_changes_no_other_headline(windows: Windows, quick: Evaluation) -> None:
    sets = {"noisy": with_noise(windows.train, 0.002), "other": as_synthetic(windows.train)}
    both = evaluate(windows.held_out, sets, windows.train, QUICK)
    for name in ("noisy", SECOND_DRAW):
        assert both.headlines[name] == quick.headlines[name]


def test_without_a_reference_percentages_are_against_the_real_windows(windows: Windows) -> None:
    few = windows.held_out.select(np.arange(40))
    found = evaluate(few, {"same": as_synthetic(few)}, None, EvaluationConfig(n_bootstrap=10))
    head = found.headlines["same"]
    assert SECOND_DRAW not in found.headlines
    assert head.path_length_percent.value == pytest.approx(0)
    assert head.ratio.interval is not None


def shares(windows: Windows, tasks: list[str]) -> Windows:
    return replace(
        windows,
        tasks=("reading", "dots", "films"),
        segment_task=np.array(
            [("reading", "dots", "films").index(one) for one in tasks], dtype=np.int32
        ),
    )


@pytest.mark.parametrize(
    ("tasks", "problem"),
    [
        (["reading"] * 3 + ["dots"], None),
        (["reading"], "tasks do not match .*ours: reading 100%"),
        (["films"], "tasks do not match"),
    ],
)
def test_tasks_that_do_not_match_are_warned_of(
    windows: Windows, tasks: list[str], problem: str | None
) -> None:
    n_segments = len(windows.segment_starts)
    real = shares(windows, [("reading", "reading", "dots")[k % 3] for k in range(n_segments)])
    gaze = as_synthetic(windows.train)
    names = [tasks[k % len(tasks)] for k in range(len(gaze))]
    ours = Windows.from_array(gaze.cut(), gaze.rate_hz, gaze.screen, tasks=names)
    found = evaluate(real.held_out, {"ours": ours}, real.train, QUICK).warnings
    assert bool(found) == (problem is not None)
    assert re.search(problem or "", "".join(found))


def test_few_windows_are_warned_of(windows: Windows) -> None:
    few = as_synthetic(windows.train.select(np.arange(60)))
    found = evaluate(windows.held_out, {"few": few}, windows.train, QUICK)
    assert found.warnings == ["few has 60 windows; below 100 chance dominates distances"]
    assert "warning: few has 60 windows" in found.headline()


def test_windows_of_several_screens_are_measured_in_their_own_degrees(windows: Windows) -> None:
    other = replace(SCREEN, distance_cm=2 * (SCREEN.distance_cm or 0))
    gaze = as_synthetic(windows.train).cut()
    near, far = gaze[::2], gaze[1::2]
    mixed = Windows.from_array(
        np.concatenate([near, far]), 250.0, [SCREEN] * len(near) + [other] * len(far)
    )
    found = degree_events(mixed.cut(), [mixed.screens[k] for k in mixed.screen_index], 250.0, 9999)
    alone = [degree_events(part, screen, 250.0, 9999) for part, screen in
             ((near, SCREEN), (far, other))]  # fmt: skip
    expected = np.concatenate([one.saccade_amplitude_deg for one in alone])
    np.testing.assert_array_equal(found.saccade_amplitude_deg, expected)
    results = evaluate(windows.held_out, {"mixed": mixed}, windows.train, QUICK).results
    row = next(one for one in results["quantities"] if one["name"] == "saccade_amplitude_deg")
    assert row["mean"]["mixed"] < row["mean"]["train"]
