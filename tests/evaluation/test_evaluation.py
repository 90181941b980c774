"""The whole evaluation on simulated participants, with planted defects."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.evaluation import EvaluationConfig, evaluate
from gazediffusion.evaluation.metrics import js_from_counts
from gazediffusion.evaluation.sets import GazeSet, arrange
from tests.gaze import as_synthetic, simulated_windows, with_noise

QUICK = EvaluationConfig(quick=True)


@pytest.fixture(scope="module")
def windows() -> Windows:
    return simulated_windows()


@pytest.fixture(scope="module")
def results(windows: Windows) -> dict[str, Any]:
    """Real windows as synthetic, and the same with noise, with intervals and every test."""
    sets = {"real again": as_synthetic(windows.train), "noisy": with_noise(windows.train, 0.03)}
    config = EvaluationConfig(n_bootstrap=50)
    return evaluate(windows.held_out, sets, windows.train, config).results


def test_results_are_plain_values(results: dict[str, Any]) -> None:
    assert json.loads(json.dumps(results, allow_nan=False)) == results


def test_real_windows_evaluated_as_synthetic_are_at_the_floor(results: dict[str, Any]) -> None:
    assert results["ratios"]["overall"]["real again"] == pytest.approx(1.0, abs=0.25)
    for family, ratios in results["ratios"]["families"].items():
        assert ratios["real again"] < 2.0, family


def test_noise_is_far_above_the_floor(results: dict[str, Any]) -> None:
    overall = results["ratios"]["overall"]
    assert overall["noisy"] > 2 * overall["real again"]
    for family in ("features", "events", "directions", "velocity"):
        ratios = results["ratios"]["families"][family]
        assert ratios["noisy"] > 2 * ratios["real again"]


def test_every_quantity_has_floor_halves_value_interval_and_ratio(results: dict[str, Any]) -> None:
    families = {row["family"] for row in results["quantities"]}
    assert families == {"features", "events", "directions", "velocity", "degrees"}
    assert sum(row["family"] == "features" for row in results["quantities"]) == 9
    assert sum(row["family"] == "events" for row in results["quantities"]) == 7
    for row in results["quantities"]:
        for kind in ("js", "ks", "w1"):
            distance = row["distances"][kind]
            assert distance["floor"] >= 0
            assert distance["halves"] >= 0
            for cell in distance["synthetic"].values():
                if cell["value"] is None:  # W1 of a set that has no such value at all
                    assert kind == "w1"
                    continue
                assert cell["ratio"] == pytest.approx(cell["value"] / distance["floor"])
                low, high = cell["interval"]
                assert low <= high
    assert len(results["scalars"]) == 9
    for row in results["scalars"]:
        for cell in row["synthetic"].values():
            assert cell["interval"][0] <= cell["value"] <= cell["interval"][1]
            assert cell["ratio"] == pytest.approx(cell["value"] / row["floor"])


def test_a_ratio_of_js_is_of_two_histograms_in_the_same_bins(results: dict[str, Any]) -> None:
    for row in results["quantities"]:
        found, density = row["distances"]["js"], row["histogram"]
        real = np.array(density["real"])
        floor = float(js_from_counts(real, np.array(density["train"])))
        assert floor == pytest.approx(found["floor"])
        for name, cell in found["synthetic"].items():
            if name in density:
                of_set = float(js_from_counts(real, np.array(density[name])))
                assert cell["value"] == pytest.approx(of_set)
                assert cell["ratio"] == pytest.approx(of_set / floor)


def test_a_half_of_the_same_participants_is_nearer_than_other_participants(
    results: dict[str, Any],
) -> None:
    features = [row for row in results["quantities"] if row["family"] == "features"]
    floor = np.mean([row["distances"]["js"]["floor"] for row in features])
    halves = np.mean([row["distances"]["js"]["halves"] for row in features])
    assert halves < 1.1 * floor


def test_means_are_over_eight_and_nine_features(results: dict[str, Any]) -> None:
    rows = {row["name"]: row for row in results["quantities"] if row["family"] == "features"}
    values = {n: r["distances"]["js"]["synthetic"]["noisy"]["value"] for n, r in rows.items()}
    nine = np.mean(list(values.values()))
    eight = np.mean([value for name, value in values.items() if name != "path_length"])
    assert results["means"]["js_9"]["synthetic"]["noisy"] == pytest.approx(nine)
    means = results["means"]["js_8"]
    assert means["synthetic"]["noisy"] == pytest.approx(eight)
    assert means["ratio"]["noisy"] == pytest.approx(eight / means["floor"])


def test_two_different_generators_are_called_different(results: dict[str, Any]) -> None:
    (row,) = results["differences"]
    assert (row["a"], row["b"]) == ("real again", "noisy")
    assert row["is_different"] is True
    assert row["value"] < 0


def test_equal_generators_are_not_called_different(windows: Windows) -> None:
    few = windows.train.select(np.arange(45))  # too few for the slow tests
    sets = {"one": as_synthetic(few, 1), "two": as_synthetic(few, 2)}
    config = EvaluationConfig(n_bootstrap=50, protocols=("position",))
    rows = evaluate(windows.held_out, sets, windows.train, config).results["differences"]
    assert rows[0]["is_different"] is False


def test_the_main_sequence_of_real_windows_is_recovered(results: dict[str, Any]) -> None:
    sets = results["main_sequence"]["sets"]
    assert sets["real again"]["slope"] == pytest.approx(sets["real"]["slope"], abs=0.1)
    assert sets["real"]["n"] > 100


def test_the_accuracy_of_the_classifier_stands_in_the_headline(results: dict[str, Any]) -> None:
    assert results["tests"]["coverage"]["synthetic"]["real again"]["coverage"] > 0.5
    found = results["tests"]["c2st"]["synthetic"]["noisy"]
    assert found["features_accuracy"] > 0.9
    cell = {"value": found["features_accuracy"], "interval": found["features_interval"]}
    assert results["headline"]["noisy"]["c2st"] == cell
    assert "c2st" not in results["headline"]["real, second draw"]
    assert "`feature_model`" in results["tests"]["fgd"]["not_computable"]


def test_quick_leaves_out_intervals_and_slow_tests(windows: Windows) -> None:
    quick = evaluate(
        windows.held_out, {"a": as_synthetic(windows.train)}, windows.train, QUICK
    ).results
    assert quick["quantities"][0]["distances"]["js"]["synthetic"]["a"]["interval"] is None
    assert quick["tests"]["tstr"]["not_computable"] == "left out by `quick`"
    assert quick["differences"] == []
    assert quick["headline"]["a"]["ratio"]["interval"] is None
    assert "c2st" not in quick["headline"]["a"]


def test_one_protocol_leaves_the_other_out(windows: Windows) -> None:
    config = replace(QUICK, protocols=("velocity",))
    found = evaluate(
        windows.held_out, {"a": as_synthetic(windows.train)}, windows.train, config
    ).results
    assert {row["family"] for row in found["quantities"]} == {"velocity", "degrees"}


def test_without_a_reference_the_floor_is_between_halves(windows: Windows) -> None:
    found = evaluate(windows.held_out, {"a": as_synthetic(windows.train)}, None, QUICK).results
    assert found["sets"]["train"] is None
    assert any("no reference windows" in note for note in found["about"]["notes"])
    row = found["quantities"][0]["distances"]["js"]
    assert row["floor"] == row["halves"]


def test_identical_sets_have_no_distance(windows: Windows) -> None:
    plain = replace(windows.held_out.select(np.arange(100)), grid_px=None)
    same = Windows.from_array(plain.cut(), plain.rate_hz, plain.screen)
    found = evaluate(plain, {"same": same}, windows.train, QUICK).results
    assert found["about"]["n_common"] == len(plain)
    for row in found["quantities"]:
        assert row["distances"]["js"]["synthetic"]["same"]["value"] == pytest.approx(0, abs=1e-9)


def test_a_set_without_fixations_is_reported_as_farthest(windows: Windows) -> None:
    rng = np.random.default_rng(0)
    wild = rng.uniform(-1, 1, (50, 2, windows.length)).astype(np.float32)
    sets = {"wild": Windows.from_array(wild, windows.rate_hz, windows.screen)}
    found = evaluate(windows.held_out, sets, windows.train, QUICK).results
    rows = {row["name"]: row for row in found["quantities"] if row["family"] == "events"}
    cell = rows["fixation_duration_s"]["distances"]["js"]["synthetic"]["wild"]
    assert cell["value"] == pytest.approx(np.log(2))
    json.dumps(found, allow_nan=False)


def test_no_set_depends_on_which_others_there_are(windows: Windows) -> None:
    few = as_synthetic(windows.train.select(np.arange(40)))
    parts = {"few": few, "many": as_synthetic(windows.train)}
    alone = arrange(windows.held_out, {"few": few}, windows.train, seed=0)
    among = arrange(windows.held_out, parts, windows.train, seed=0)
    assert alone.train is not None
    assert among.train is not None
    assert len(windows.train) > alone.n_common == among.n_common == len(alone.train.gaze) == 40
    assert len(alone.real.gaze) == len(windows.held_out)
    np.testing.assert_array_equal(alone.train.gaze, among.train.gaze)
    np.testing.assert_array_equal(alone.synthetic[0].gaze, among.synthetic[0].gaze)
    for one, other in zip(alone.halves, among.halves, strict=True):
        np.testing.assert_array_equal(one.gaze, other.gaze)
    # The halves share no recording.
    first, second = ({window.tobytes() for window in half.gaze[:, 0, :1]} for half in among.halves)
    assert len(first & second) < 0.02 * len(first)


def test_participants_are_groups_and_synthetic_windows_blocks(windows: Windows) -> None:
    real = GazeSet.of("real", windows.held_out)
    assert real.group.max() + 1 == len(windows.validation)
    generated = GazeSet.of("ours", as_synthetic(windows.train), is_synthetic=True)
    assert generated.group.max() > 10


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"rate_hz": 125.0}, "at 125 Hz and the real gaze at 250 Hz: motion"),
        ({"length": 400}, "of 400 samples"),
        ({"gaze": np.nan}, "holds NaN"),
        ({}, "no synthetic set"),
    ],
)
def test_sets_that_cannot_be_compared_are_refused(
    windows: Windows, change: dict[str, Any], problem: str
) -> None:
    other = as_synthetic(windows.train)
    given = {key: other.gaze * one if key == "gaze" else one for key, one in change.items()}
    sets = {"other": replace(other, **given)} if given else {}
    with pytest.raises(GazeError, match=problem):
        evaluate(windows.held_out, sets, windows.train, QUICK)


def test_windows_generated_with_losses_are_compared_without_those_that_have_some(
    windows: Windows,
) -> None:
    lossy = as_synthetic(windows.train)
    lossy.gaze[:, lossy.starts[:7] + 100] = np.nan
    lossy = replace(lossy, provenance={"card": {"losses": {}}})
    lossy = lossy.select(np.arange(40))
    found = evaluate(windows.held_out, {"lossy": lossy}, config=QUICK).results
    (line,) = [one for one in found["about"]["warnings"] if "left out" in one]
    assert line == "7 of 40 windows of 'lossy' were left out: 7 with missing samples"
    assert found["sets"]["synthetic"]["lossy"]["n_windows"] == 33


@pytest.mark.slow
def test_gaze_that_does_not_move_is_evaluated_without_a_crash(
    windows: Windows, tmp_path: Path
) -> None:
    still = np.zeros((60, 2, windows.length), dtype=np.float32)
    sets = {"still": Windows.from_array(still, windows.rate_hz, windows.screen)}
    config = EvaluationConfig(n_bootstrap=2)
    some = windows.select(np.arange(0, len(windows), 4))
    found = evaluate(some.held_out, sets, some.train, config)
    json.dumps(found.parts, allow_nan=False)
    assert found.results["ratios"]["overall"]["still"] > 3
    assert found.save(tmp_path / "report")


def test_the_frechet_distance_has_floor_and_interval(windows: Windows) -> None:
    def features(gaze: Any) -> Any:
        return gaze.reshape(len(gaze), 2, 10, -1).mean(axis=3).reshape(len(gaze), -1)

    few = windows.train.select(np.arange(45))  # too few for the slow tests
    sets = {"real again": as_synthetic(few)}
    config = EvaluationConfig(n_bootstrap=2, protocols=("position",))
    found = evaluate(windows.held_out, sets, windows.train, config, feature_model=features).results
    fgd = found["tests"]["fgd"]
    assert fgd["floor"]["fgd"] > 0
    low, high = fgd["synthetic"]["real again"]["fgd_interval"]
    assert low <= fgd["synthetic"]["real again"]["fgd"] <= high


@pytest.mark.parametrize("name", ["few", "the real windows", "the reference windows"])
def test_fewer_than_25_windows_are_refused(windows: Windows, name: str) -> None:
    sets = {
        "the real windows": windows.held_out,
        "few": as_synthetic(windows.train),
        "the reference windows": windows.train,
    }
    sets[name] = sets[name].select(np.arange(24))
    real, few, reference = sets.values()
    with pytest.raises(GazeError, match=f"{name}: 24 windows, and an evaluation needs 25"):
        evaluate(real, {"few": few}, reference, QUICK)
