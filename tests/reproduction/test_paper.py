"""The paper's numbers agree with each other, so none was mistyped."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gazediffusion.evaluation.quantities import EVENTS, FEATURES, TEMPORAL, VELOCITY
from gazediffusion.reproduction import paper
from gazediffusion.reproduction.plan import BASELINES, ETAS, STEPS

EIGHT = [name for name in FEATURES if name != "path_length"]


def test_every_quantity_of_ours_has_its_number() -> None:
    assert list(paper.FEATURES) == list(FEATURES)
    assert list(paper.W1) == list(FEATURES)
    assert list(paper.MARKOV) == list(paper.REAL_MEANS) == EIGHT
    assert list(paper.EVENTS) == list(EVENTS)
    assert list(paper.VELOCITY) == [*VELOCITY, "path_length"]
    assert tuple(name for name, one in paper.VELOCITY.items() if one.rho1) == TEMPORAL
    assert tuple(paper.FGD_BASELINES) == BASELINES
    assert tuple(paper.STEPS) == STEPS
    assert tuple(paper.ETAS) == ETAS


@pytest.mark.parametrize(
    ("of", "mean"),
    [(paper.FEATURES, paper.MEAN_OF_EIGHT), (paper.MARKOV, paper.MARKOV_MEAN_OF_EIGHT)],
    ids=["model", "markov"],
)
def test_the_mean_row_is_the_mean_of_the_eight(
    of: dict[str, paper.Agreement], mean: paper.Agreement
) -> None:
    assert np.mean([of[name].ks.mean for name in EIGHT]) == pytest.approx(mean.ks.mean, abs=6e-4)
    js = [one.mean for name in EIGHT if (one := of[name].js)]
    assert mean.js is not None
    assert np.mean(js) == pytest.approx(mean.js.mean, abs=6e-4)


def test_the_abstract_rounds_the_table() -> None:
    js = [one.js.mean for one in paper.FEATURES.values() if one.js]
    assert np.mean(js) == pytest.approx(paper.MEAN_JS_OF_NINE.mean, abs=1e-3)
    assert max(js) < paper.HIGHEST_FEATURE_JS
    five = [paper.VELOCITY[name].js.mean for name in VELOCITY]
    assert np.mean(five) == pytest.approx(paper.VELOCITY_MEAN_JS.mean, abs=1e-4)
    assert max(five) == pytest.approx(paper.VELOCITY_HIGHEST_JS.mean, abs=5e-4)
    trtr, tstr = (paper.DOWNSTREAM[name].r2.mean for name in ("trtr", "tstr"))
    assert 100 * tstr / trtr == pytest.approx(paper.TSTR_PERCENT_OF_TRTR, abs=0.05)
    aug = paper.DOWNSTREAM["aug"].r2.mean
    assert trtr - aug == pytest.approx(paper.AUG_GAP_TO_TRTR, abs=5e-4)


@pytest.mark.parametrize("kind", ["ks", "js"])
def test_the_reduction_against_markov_is_that_of_the_means(kind: str) -> None:
    model, markov = (
        getattr(one, kind).mean for one in (paper.MEAN_OF_EIGHT, paper.MARKOV_MEAN_OF_EIGHT)
    )
    published = paper.MARKOV_REDUCTION_PERCENT[kind]
    assert 100 * (1 - model / markov) == pytest.approx(published, abs=0.15)


def test_path_length_is_mean_speed_again() -> None:
    assert paper.FEATURES["path_length"] == paper.FEATURES["mean_speed"]
    assert paper.W1["path_length"].mean == pytest.approx(
        1999 * paper.W1["mean_speed"].mean, rel=0.1
    )


@pytest.mark.parametrize("name", EIGHT)
def test_ks_and_js_of_markov_are_possible_in_nats(name: str) -> None:
    """JS >= ln 2 - H((1 - KS) / 2) for any two distributions with this KS, ln 2 at the most."""
    one = paper.MARKOV[name]
    assert one.js is not None
    p = (1 - one.ks.mean) / 2
    entropy = -p * math.log(p) - (1 - p) * math.log(1 - p)
    assert math.log(2) - entropy <= one.js.mean + 5e-4
    assert one.js.mean <= math.log(2)


def test_ks_and_js_of_markov_are_not_all_possible_in_bits() -> None:
    one = paper.MARKOV["fixation_ratio"]
    assert one.js is not None
    p = (1 - one.ks.mean) / 2
    assert one.js.mean < 1 + p * math.log2(p) + (1 - p) * math.log2(1 - p)


def test_events_are_as_far_from_real_as_the_text_says() -> None:
    for name, bound in paper.EVENT_BOUNDS_PERCENT.items():
        one = paper.EVENTS[name]
        assert round(abs(100 * (one.generated / one.real - 1))) <= bound
    count = paper.EVENTS["saccade_count"]
    missing = 100 * (1 - count.generated / count.real)
    assert round(missing) == paper.SACCADE_UNDERCOUNT_PERCENT


def test_the_chosen_settings_are_the_reference_run_wherever_it_is_told() -> None:
    assert paper.STEPS[100].ks == paper.WEIGHTS["ema"].ks
    assert paper.ETAS[0.0].js == paper.Published(paper.SEEDS["reference run"].mean_js_of_eight)
    assert paper.OBJECTIVES["eps"].fgd == paper.SEEDS["reference run"].fgd


def test_velocity_numbers_keep_the_bounds_of_the_text() -> None:
    for name in TEMPORAL:
        one = paper.VELOCITY[name]
        assert one.rho1 is not None
        assert one.rho1.mean < paper.HIGHEST_RHO1
        assert one.psd is not None
        assert paper.PSD_ORDER <= one.psd.mean < 10 * paper.PSD_ORDER
