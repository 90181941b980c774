"""Every rule can come out either way, and says so by the numbers it was given."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gazediffusion.evaluation.quantities import FEATURES, TEMPORAL, VELOCITY
from gazediffusion.reproduction.claims import (
    CLAIMS,
    FAILS,
    HOLDS,
    IN_PART,
    RULES,
    UNDECIDED,
    VERDICTS,
    evaluate_claims,
)
from gazediffusion.reproduction.plan import BASELINES, ETAS
from gazediffusion.reproduction.tables import EIGHT, TABLES, Row, Rows, rows_of
from tests.reproduction.made import artefacts, made_results

Tables = dict[tuple[str, str, str], Row]
SEEDS = ("position-42", "position-123", "position-2024")


# What several rows are called in `CASES`.
GROUPS: dict[str, Collection[str]] = {
    "BASELINES": BASELINES,
    "EIGHT": EIGHT,
    "ETAS": [f"eta {eta:g}" for eta in ETAS],
    "FEATURES": FEATURES,
    "SEEDS": SEEDS,
    "TEMPORAL": TEMPORAL,
    "VELOCITY": VELOCITY,
}
# Below each claim, a verdict and numbers that give it: table, rows and our numbers by column.
# a/b: a with the floor b and the ratio of both; a^b: a with the floor b; a±b: a with the SD b.
CASES = """
size of the network
    does not hold | training | position-42 | parameters=7
mean JS over nine features
    holds | features | mean of nine | js=0.019/0.02
    does not hold | features | mean of nine | js=0.05/0.02
highest feature-wise JS
    holds | features | FEATURES | js=0.02/0.02
    does not hold | features | FEATURES | js=0.01/0.01
    does not hold | features | x_std | js=0.031/0.01
fixation duration
    holds | events | fixation_duration_s | above_real=-2.4^0
    does not hold | events | fixation_duration_s | above_real=4^3
fixation count
    holds | events | fixation_count | above_real=2^0
    does not hold | events | fixation_count | above_real=-3^2
saccade peak speed
    holds | events | saccade_peak_speed | above_real=-1^0
    does not hold | events | saccade_peak_speed | above_real=-2^0
FGD far below the baselines
    holds | fgd | BASELINES | fgd=101
    holds | fgd | diffusion | fgd=10
    does not hold | fgd | positional-markov | fgd=0
FGD far below the naive baselines
    holds | fgd | BASELINES | fgd=101
    holds | fgd | diffusion | fgd=1
    does not hold | fgd | BASELINES | fgd=9
    does not hold | fgd | diffusion | fgd=1
training on synthetic windows alone
    holds | downstream | tstr / trtr | r2=81
    does not hold | downstream | tstr / trtr | r2=49
augmentation matches real data
    holds | downstream | trtr | r2=0.8±0
    holds | downstream | aug | r2=0.795
    does not hold | downstream | trtr | r2=0.8±0.05
    does not hold | downstream | aug | r2=0.74
velocity model's mean JS
    holds | velocity | mean of five | js=0.006/0.007
    does not hold | velocity | mean of five | js=0.011/0.005
velocity model's highest JS
    holds | velocity | VELOCITY | js=0.019/0.02
    does not hold | velocity | VELOCITY | js=0.03/0.01
path length worse in velocity space
    holds | velocity | path_length | js=0.1/0.02
    holds | features | path_length | js=0.2/0.05
    does not hold | velocity | path_length | js=0.2/0.2
    does not hold | features | path_length | js=0.1/0.02
local motion before integrated structure
    holds | velocity | VELOCITY | js=0.1/0.05
    holds | velocity | turning_angle | js=0.01/0.01
    holds | velocity | path_length | js=0.2/0.05
    does not hold | velocity | VELOCITY | js=0.1/0.05
    does not hold | velocity | turning_angle | js=0.01/0.001
    does not hold | velocity | path_length | js=0.2/0.2
saccade undercount
    holds | events | saccade_count | above_real=-15 above_train=-6
    does not hold | events | saccade_count | above_real=-4 above_train=4
x-std harder than y-std
    holds | seeds | SEEDS | x_std_ks=0.2/0.1 x_std_js=0.2/0.1
    holds | seeds | SEEDS | y_std_ks=0.1/0.1 y_std_js=0.1/0.1
    does not hold | seeds | SEEDS | x_std_ks=0.2/0.1 x_std_js=0.2/0.1
    does not hold | seeds | SEEDS | y_std_ks=0.1/0.1 y_std_js=0.1/0.1
    does not hold | seeds | position-123 | x_std_ks=0.1/0.1 x_std_js=0.1/0.1
    does not hold | seeds | position-123 | y_std_ks=0.2/0.1 y_std_js=0.2/0.1
x-range and y-range in no fixed order
    holds | seeds | SEEDS | x_range_ks=0.2/0.1 x_range_js=0.2/0.1
    holds | seeds | SEEDS | y_range_ks=0.1/0.1 y_range_js=0.1/0.1
    holds | seeds | position-123 | x_range_ks=0.1/0.1 x_range_js=0.1/0.1
    holds | seeds | position-123 | y_range_ks=0.2/0.1 y_range_js=0.2/0.1
    does not hold | seeds | SEEDS | x_range_ks=0.2/0.1 x_range_js=0.2/0.1
    does not hold | seeds | SEEDS | y_range_ks=0.1/0.1 y_range_js=0.1/0.1
fixation ratio: lowest KS, highest JS
    holds | features | FEATURES | ks=0.2 js=0.02
    holds | features | fixation_ratio | ks=0.1 js=0.03
    does not hold | features | FEATURES | ks=0.2 js=0.02
    does not hold | features | fixation_ratio | ks=0.3 js=0.01
y-std, y-range and displacement best
    holds | features | FEATURES | js=0.2/0.1
    holds | features | y_std, y_range, displacement | js=0.1/0.1
    does not hold | features | FEATURES | js=0.2/0.1
    does not hold | features | y_std, x_range, x_std | js=0.1/0.1
fixation dispersion
    holds | events | fixation_dispersion | above_real=46 above_train=24
    does not hold | events | fixation_dispersion | above_real=46 above_train=-4
FGD order at every seed
    holds | fgd | BASELINES | fgd=10
    holds | seeds | SEEDS | fgd=9
    does not hold | fgd | BASELINES | fgd=10
    does not hold | seeds | SEEDS | fgd=11
relative SDs of seeds
    holds | features | mean of eight | ks=1±0.09 js=1±0.24
    holds | fgd | diffusion | fgd=1±0.22
    does not hold | features | mean of eight | ks=1±0.01 js=1±0.01
    does not hold | fgd | diffusion | fgd=1±0.01
autocorrelation of speed decays within 50 ms
    holds | speed | decay | real=20 model=50 markov=10
    does not hold | speed | decay | real=60 model=52 markov=100
high-speed tail
    holds | speed | tail | real=0.2 model=0.19 markov=0.14
    does not hold | speed | tail | real=0.2 model=0.15 markov=0.19
validation loss does not rank seeds
    holds | seeds | position-42 | loss=1 js_8=2 fgd=3
    holds | seeds | position-123 | loss=2 js_8=1 fgd=2
    holds | seeds | position-2024 | loss=3 js_8=3 fgd=1
    does not hold | seeds | position-42 | loss=1 js_8=1 fgd=4
    does not hold | seeds | position-123 | loss=2 js_8=2 fgd=5
    does not hold | seeds | position-2024 | loss=3 js_8=3 fgd=6
little overfitting
    holds | training | SEEDS | epoch=375 epochs=500
    does not hold | training | SEEDS | epoch=374 epochs=500
better than the kinematic Markov
    holds | markov | EIGHT, mean of eight | ks=0.5 js=0.5 ks_model=0.1 js_model=0.1
    does not hold | markov | EIGHT, mean of eight | ks=0.5 js=0.1 ks_model=0.1 js_model=0.2
speed and turning angle nearer than the Markov
    holds | panel | speed, turning_angle | model=0.1 markov=0.2
    does not hold | panel | speed, turning_angle | model=0.3 markov=0.2
eps better than x0
    holds | objective | eps | fgd=1
    holds | objective | x0 | fgd=10
    does not hold | objective | eps | fgd=1
    does not hold | objective | x0 | fgd=0.9
averaged weights better than raw
    holds | sampling | raw | ks=0.2 js=0.2
    holds | sampling | ema | ks=0.1 js=0.1
    does not hold | sampling | raw | ks=0.2 js=0.2
    does not hold | sampling | ema | ks=0.2 js=0.3
eta = 0 is best
    holds | sampling | ETAS | ks=0.5 js=0.5
    holds | sampling | eta 0 | ks=0.4 js=0.4
    does not hold | sampling | ETAS | ks=0.5 js=0.5
    does not hold | sampling | eta 0.5 | ks=0.4 js=0.4
saturation near 100 steps
    holds | sampling | steps 10 | ks=0.2 js=0.2
    holds | sampling | steps 100 | ks=0.1 js=0.1
    holds | sampling | steps 200 | ks=0.08 js=0.11
    does not hold | sampling | steps 10 | ks=0.2 js=0.1
    does not hold | sampling | steps 100 | ks=0.1 js=0.2
    does not hold | sampling | steps 200 | ks=0.05 js=0.2
lag-one autocorrelations
    holds | velocity | TEMPORAL | rho1=0.05/0.001
    does not hold | velocity | TEMPORAL | rho1=0.07/0.01
spectra
    holds | velocity | TEMPORAL | psd=0.0009
    holds | velocity | speed | white=0.002
    does not hold | velocity | TEMPORAL | psd=0.002
    does not hold | velocity | speed | white=0.002
    undecided | velocity | TEMPORAL | psd=0.0001
    undecided | velocity | speed | white=0.0019
"""


def put(rows: Tables, table: str, row: str, **columns: Any) -> None:
    """Set our number of some columns, or (ours, {field: value})."""
    for column, value in columns.items():
        ours, fields = value if isinstance(value, tuple) else (value, {})
        found = rows[table, row, column]
        fixed = {"draws": None, "ratio_draws": None, **fields}
        rows[table, row, column] = replace(found, ours=ours, **fixed)


def number(text: str) -> Any:
    """A number of `CASES` as `put` takes it."""
    ours, *others = map(float, re.split("[/^±]", text))
    if not others:
        return ours
    (other,) = others
    if "/" in text:
        return ours, {"floor": other, "ratio": ours / other, "sd": None}
    return ours, {"floor" if "^" in text else "sd": other}


def read_cases() -> dict[tuple[str, str], list[tuple[str, str, dict[str, Any]]]]:
    """Table, row and numbers by claim and verdict."""
    cases: dict[tuple[str, str], list[tuple[str, str, dict[str, Any]]]] = {}
    for line in CASES.strip().splitlines():
        if not line.startswith(" "):
            claim = line
            continue
        verdict, table, rows, said = line.strip().split(" | ")
        cells = {name: number(text) for name, text in (one.split("=") for one in said.split())}
        puts = cases.setdefault((claim, verdict), [])
        for row in rows.split(", "):
            puts += [(table, name, cells) for name in GROUPS.get(row, [row])]
    return cases


PUTS = read_cases()


def doctored_as(tables: Tables, name: str, verdict: str) -> Tables:
    """Tables with the numbers of a case."""
    doctored = dict(tables)
    for table, row, cells in PUTS[name, verdict]:
        put(doctored, table, row, **cells)
    return doctored


@pytest.fixture(scope="module")
def tables() -> Tables:
    return dict(Rows.from_json(made_results()["rows"]).of)


@pytest.fixture(scope="module")
def with_draws() -> Tables:
    """The same rows with their bootstrap replicates."""
    return rows_of(artefacts(), list(TABLES))


def found(rows: Tables, name: str) -> dict[str, Any]:
    return next(one for one in evaluate_claims(rows) if one["name"] == name)


def test_every_claim_is_evaluated_and_can_come_out_either_way(tables: Tables) -> None:
    claims = evaluate_claims(tables)
    assert [claim["name"] for claim in claims] == list(CLAIMS)
    assert {name for name, _ in PUTS} == set(CLAIMS) == set(RULES)
    natural = {claim["name"]: claim["verdict"] for claim in claims}
    for name in CLAIMS:
        reached = {natural[name], *(verdict for one, verdict in PUTS if one == name)}
        assert {HOLDS, FAILS} <= reached, name


@pytest.mark.parametrize(("name", "verdict"), PUTS)
def test_the_verdict_follows_the_numbers(tables: Tables, name: str, verdict: str) -> None:
    assert found(doctored_as(tables, name, verdict), name)["verdict"] == verdict


def test_claims_are_sentences_with_a_rule_and_the_numbers_that_were_read(tables: Tables) -> None:
    for claim in evaluate_claims(tables):
        assert claim["verdict"] in VERDICTS
        for key in ("claim", "ours", "rule"):
            assert claim[key].endswith("."), claim
        assert "nan" not in json.dumps(claim)
        assert "None" not in json.dumps(claim)
        assert claim["numbers"]
        for one in claim["numbers"]:
            assert tables[one["table"], one["row"], one["column"]].ours == one["ours"]


def test_the_ratio_to_the_floor_is_that_of_the_evaluation_not_the_quotient(tables: Tables) -> None:
    doctored = dict(tables)
    put(doctored, "features", "mean of nine", js=(0.05, {"floor": 0.01, "ratio": 1.9}))
    put(doctored, "features", "mean of nine", js=(0.05, {"ratio_sd": None}))
    claim = found(doctored, "mean JS over nine features")
    assert "1.90 times the floor" in claim["ours"]
    assert claim["verdict"] == IN_PART


def test_claims_without_their_table_are_left_out(tables: Tables) -> None:
    assert evaluate_claims({}) == []
    few = {key: row for key, row in tables.items() if key[0] == "features"}
    names = {claim["name"] for claim in evaluate_claims(few)}
    assert names == {
        "mean JS over nine features",
        "highest feature-wise JS",
        "fixation ratio: lowest KS, highest JS",
        "y-std, y-range and displacement best",
    }


def _drawn(ratio: float, draws: list[float]) -> Any:
    fields = {"ratio": ratio, "draws": np.full(len(draws), 0.05), "ratio_draws": np.array(draws)}
    return 0.05, fields


def test_a_verdict_that_few_replicates_share_is_undecided(with_draws: Tables) -> None:
    name, key = "mean JS over nine features", ("features", "mean of nine")
    doctored = dict(with_draws)
    put(doctored, *key, js=_drawn(0.9, [0.8] * 95 + [1.1] * 5))
    claim = found(doctored, name)
    assert (claim["verdict"], claim["support"]) == (HOLDS, {HOLDS: 0.95, IN_PART: 0.05})
    put(doctored, *key, js=_drawn(0.9, [0.8] * 90 + [1.1] * 6 + [2.1] * 4))
    claim = found(doctored, name)
    assert claim["verdict"] == UNDECIDED
    assert claim["support"] == {HOLDS: 0.9, IN_PART: 0.06, FAILS: 0.04}


def test_losses_within_the_spread_of_epochs_rank_nothing(with_draws: Tables) -> None:
    doctored = dict(with_draws)
    spread = np.random.default_rng(0).normal(0, 1e-5, (3, 20))
    for number, name in enumerate(SEEDS):
        loss = 0.00742 + 1e-6 * number
        put(doctored, "seeds", name, loss=(loss, {"draws": loss + spread[number]}))
        put(doctored, "seeds", name, js_8=0.01 * (1 + number), fgd=float(number))
    assert found(doctored, "validation loss does not rank seeds")["verdict"] == UNDECIDED


def test_a_conclusion_that_the_floor_reverses_is_marked(tables: Tables) -> None:
    name = "path length worse in velocity space"
    assert found(doctored_as(tables, name, FAILS), name)["is_reversed"]
    assert not found(doctored_as(tables, name, HOLDS), name)["is_reversed"]
