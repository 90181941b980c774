"""The paper's numbers agree with each other, so none was mistyped."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gazediffusion.evaluation.quantities import EVENTS, FEATURES, TEMPORAL, VELOCITY
from gazediffusion.reproduction.paper import NUMBERS, TEXT
from gazediffusion.reproduction.plan import BASELINES, ETAS, STEPS

EIGHT = [name for name in FEATURES if name != "path_length"]


def mean(table: str, row: str, column: str) -> float:
    return NUMBERS[table][row][column].mean


def test_every_quantity_of_ours_has_its_number() -> None:
    assert list(NUMBERS["features"]) == [*FEATURES, "mean of eight", "mean of nine"]
    assert list(NUMBERS["w1"]) == list(FEATURES)
    assert list(NUMBERS["markov"]) == [*EIGHT, "mean of eight"]
    assert list(NUMBERS["events"]) == list(EVENTS)
    assert list(NUMBERS["velocity"]) == [*VELOCITY, "path_length", "mean of five"]
    temporal = [name for name, row in NUMBERS["velocity"].items() if "rho1" in row]
    assert tuple(temporal) == TEMPORAL
    assert list(NUMBERS["fgd"]) == ["diffusion", *BASELINES]
    settings = [*(f"steps {n}" for n in STEPS), *(f"eta {eta:g}" for eta in ETAS), "raw", "ema"]
    assert list(NUMBERS["sampling"]) == settings


@pytest.mark.parametrize("table", ["features", "markov"])
@pytest.mark.parametrize("kind", ["ks", "js"])
def test_the_mean_row_is_the_mean_of_the_eight(table: str, kind: str) -> None:
    of_eight = np.mean([mean(table, name, kind) for name in EIGHT])
    assert of_eight == pytest.approx(mean(table, "mean of eight", kind), abs=6e-4)


def test_the_abstract_rounds_the_table() -> None:
    for kind, tolerance in (("ks", 5e-4), ("js", 1e-3)):
        nine = [mean("features", name, kind) for name in FEATURES]
        assert np.mean(nine) == pytest.approx(mean("features", "mean of nine", kind), abs=tolerance)
    assert max(mean("features", name, "js") for name in FEATURES) < TEXT["highest_feature_js"]
    five = [mean("velocity", name, "js") for name in VELOCITY]
    assert np.mean(five) == pytest.approx(mean("velocity", "mean of five", "js"), abs=1e-4)
    assert max(five) == pytest.approx(TEXT["velocity_highest_js"][0], abs=5e-4)
    trtr, tstr, aug, share = (
        mean("downstream", name, "r2") for name in ("trtr", "tstr", "aug", "tstr / trtr")
    )
    assert 100 * tstr / trtr == pytest.approx(share, abs=0.05)
    assert trtr - aug == pytest.approx(TEXT["aug_gap_to_trtr"], abs=5e-4)


@pytest.mark.parametrize("kind", ["ks", "js"])
def test_the_reduction_against_markov_is_that_of_the_means(kind: str) -> None:
    model, markov = (mean(table, "mean of eight", kind) for table in ("features", "markov"))
    published = TEXT["markov_reduction_percent"][kind]
    assert 100 * (1 - model / markov) == pytest.approx(published, abs=0.15)


def test_path_length_is_mean_speed_again() -> None:
    assert NUMBERS["features"]["path_length"] == NUMBERS["features"]["mean_speed"]
    w1 = 1999 * mean("w1", "mean_speed", "w1")
    assert mean("w1", "path_length", "w1") == pytest.approx(w1, rel=0.1)


@pytest.mark.parametrize("name", EIGHT)
def test_ks_and_js_of_markov_are_possible_in_nats(name: str) -> None:
    """JS >= ln 2 - H((1 - KS) / 2) for any two distributions with this KS, ln 2 at the most."""
    p, js = (1 - mean("markov", name, "ks")) / 2, mean("markov", name, "js")
    entropy = -p * math.log(p) - (1 - p) * math.log(1 - p)
    assert math.log(2) - entropy <= js + 5e-4
    assert js <= math.log(2)


def test_ks_and_js_of_markov_are_not_all_possible_in_bits() -> None:
    p = (1 - mean("markov", "fixation_ratio", "ks")) / 2
    js = mean("markov", "fixation_ratio", "js")
    assert js < 1 + p * math.log2(p) + (1 - p) * math.log2(1 - p)


def test_events_are_as_far_from_real_as_the_text_says() -> None:
    for name, bound in TEXT["event_bounds_percent"].items():
        assert round(abs(mean("events", name, "above_real"))) <= bound
    missing = -mean("events", "saccade_count", "above_real")
    assert round(missing) == TEXT["saccade_undercount_percent"]


def test_the_chosen_settings_are_the_reference_run_wherever_it_is_given() -> None:
    assert NUMBERS["sampling"]["steps 100"]["ks"] == NUMBERS["sampling"]["ema"]["ks"]
    reference = NUMBERS["seeds"]["paper, reference run"]
    assert NUMBERS["sampling"]["eta 0"]["js"] == reference["js_8"]
    assert NUMBERS["objective"]["eps"] == {key: reference[key] for key in ("loss", "fgd")}


def test_velocity_numbers_keep_the_bounds_of_the_text() -> None:
    for name in TEMPORAL:
        assert mean("velocity", name, "rho1") < TEXT["highest_rho1"]
        assert TEXT["psd_order"] <= mean("velocity", name, "psd") < 10 * TEXT["psd_order"]
