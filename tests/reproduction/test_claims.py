"""Every rule can come out either way, and says so by the numbers it was given."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gazediffusion.evaluation.quantities import FEATURES, TEMPORAL, VELOCITY
from gazediffusion.reproduction.build import make_results
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
from tests.reproduction.made import artefacts

Tables = dict[tuple[str, str, str], Row]
SEEDS = ("position-42", "position-123", "position-2024")


def put(rows: Tables, table: str, row: str, **columns: Any) -> None:
    """Set our number of some columns, or (ours, {field: value})."""
    for column, value in columns.items():
        ours, fields = value if isinstance(value, tuple) else (value, {})
        found = rows[table, row, column]
        fixed = {"draws": None, "ratio_draws": None, **fields}
        rows[table, row, column] = replace(found, ours=ours, **fixed)


def js(ours: float, floor: float) -> Any:
    """A distance with its floor, and their ratio."""
    return ours, {"floor": floor, "ratio": ours / floor, "sd": None}


def with_sd(ours: float, sd: float) -> Any:
    return ours, {"sd": sd}


def above(real: float, floor: float) -> Any:
    return real, {"floor": floor}


def each(table: str, rows: Any, **cells: Any) -> Callable[[Tables], None]:
    """Put cells in every one of several rows."""

    def doctor(tables: Tables) -> None:
        for row in [rows] if isinstance(rows, str) else rows:
            put(tables, table, row, **cells)

    return doctor


def both(*doctors: Callable[[Tables], None]) -> Callable[[Tables], None]:
    def doctor(tables: Tables) -> None:
        for one in doctors:
            one(tables)

    return doctor


def of_axes(feature: str, ours: tuple[float, float], floor: tuple[float, float]) -> Any:
    """KS and JS of x and y, each with its floor."""
    return {
        f"{axis}_{feature}_{kind}": js(one, below)
        for axis, one, below in zip("xy", ours, floor, strict=True)
        for kind in ("ks", "js")
    }


def _seeds(key: str, values: tuple[float, ...]) -> Callable[[Tables], None]:
    return both(
        *(each("seeds", name, **{key: one}) for name, one in zip(SEEDS, values, strict=True))
    )


def _steps(**of: tuple[float, float, float]) -> Callable[[Tables], None]:
    return both(
        *(
            each("sampling", f"steps {n}", **{kind: values[place]})
            for kind, values in of.items()
            for place, n in enumerate((10, 100, 200))
        )
    )


GOOD_ETA = each("sampling", [f"eta {eta:g}" for eta in ETAS], ks=0.5, js=0.5)

CASES: dict[str, dict[str, Callable[[Tables], None]]] = {
    "size of the network": {
        FAILS: each("training", "position-42", parameters=7),
    },
    "mean JS over nine features": {
        HOLDS: each("features", "mean of nine", js=js(0.019, 0.02)),
        FAILS: each("features", "mean of nine", js=js(0.05, 0.02)),
    },
    "highest feature-wise JS": {
        HOLDS: each("features", FEATURES, js=js(0.02, 0.02)),
        FAILS: both(
            each("features", FEATURES, js=js(0.01, 0.01)),
            each("features", "x_std", js=js(0.031, 0.01)),
        ),
    },
    "fixation duration": {
        HOLDS: each("events", "fixation_duration_s", above_real=above(-2.4, 0.0)),
        FAILS: each("events", "fixation_duration_s", above_real=above(4.0, 3.0)),
    },
    "fixation count": {
        HOLDS: each("events", "fixation_count", above_real=above(2.0, 0.0)),
        FAILS: each("events", "fixation_count", above_real=above(-3.0, 2.0)),
    },
    "saccade peak speed": {
        HOLDS: each("events", "saccade_peak_speed", above_real=above(-1.0, 0.0)),
        FAILS: each("events", "saccade_peak_speed", above_real=above(-2.0, 0.0)),
    },
    "FGD far below the baselines": {
        HOLDS: both(each("fgd", BASELINES, fgd=101.0), each("fgd", "diffusion", fgd=10.0)),
        FAILS: each("fgd", "positional-markov", fgd=0.0),
    },
    "FGD far below the naive baselines": {
        HOLDS: both(each("fgd", BASELINES, fgd=101.0), each("fgd", "diffusion", fgd=1.0)),
        FAILS: both(each("fgd", BASELINES, fgd=9.0), each("fgd", "diffusion", fgd=1.0)),
    },
    "training on synthetic windows alone": {
        HOLDS: each("downstream", "tstr / trtr", r2=81.0),
        FAILS: each("downstream", "tstr / trtr", r2=49.0),
    },
    "augmentation matches real data": {
        HOLDS: both(
            each("downstream", "trtr", r2=with_sd(0.8, 0.0)),
            each("downstream", "aug", r2=0.795),
        ),
        FAILS: both(
            each("downstream", "trtr", r2=with_sd(0.8, 0.05)),
            each("downstream", "aug", r2=0.74),
        ),
    },
    "velocity model's mean JS": {
        HOLDS: each("velocity", "mean of five", js=js(0.006, 0.007)),
        FAILS: each("velocity", "mean of five", js=js(0.011, 0.005)),
    },
    "velocity model's highest JS": {
        HOLDS: each("velocity", VELOCITY, js=js(0.019, 0.02)),
        FAILS: each("velocity", VELOCITY, js=js(0.03, 0.01)),
    },
    "path length worse in velocity space": {
        HOLDS: both(
            each("velocity", "path_length", js=js(0.1, 0.02)),
            each("features", "path_length", js=js(0.2, 0.05)),
        ),
        # The larger distance at fewer windows is nearer to its floor.
        FAILS: both(
            each("velocity", "path_length", js=js(0.2, 0.2)),
            each("features", "path_length", js=js(0.1, 0.02)),
        ),
    },
    "local motion before integrated structure": {
        HOLDS: both(
            each("velocity", VELOCITY, js=js(0.1, 0.05)),
            each("velocity", "turning_angle", js=js(0.01, 0.01)),
            each("velocity", "path_length", js=js(0.2, 0.05)),
        ),
        FAILS: both(
            each("velocity", VELOCITY, js=js(0.1, 0.05)),
            each("velocity", "turning_angle", js=js(0.01, 0.001)),
            each("velocity", "path_length", js=js(0.2, 0.2)),
        ),
    },
    "saccade undercount": {
        HOLDS: each("events", "saccade_count", above_real=-15.0, above_train=-6.0),
        FAILS: each("events", "saccade_count", above_real=-4.0, above_train=4.0),
    },
    "x-std harder than y-std": {
        HOLDS: each("seeds", SEEDS, **of_axes("std", (0.2, 0.1), (0.1, 0.1))),
        FAILS: both(
            each("seeds", SEEDS, **of_axes("std", (0.2, 0.1), (0.1, 0.1))),
            each("seeds", "position-123", **of_axes("std", (0.1, 0.2), (0.1, 0.1))),
        ),
    },
    "x-range and y-range in no fixed order": {
        HOLDS: both(
            each("seeds", SEEDS, **of_axes("range", (0.2, 0.1), (0.1, 0.1))),
            each("seeds", "position-123", **of_axes("range", (0.1, 0.2), (0.1, 0.1))),
        ),
        FAILS: each("seeds", SEEDS, **of_axes("range", (0.2, 0.1), (0.1, 0.1))),
    },
    "fixation ratio: lowest KS, highest JS": {
        HOLDS: both(
            each("features", FEATURES, ks=0.2, js=0.02),
            each("features", "fixation_ratio", ks=0.1, js=0.03),
        ),
        FAILS: both(
            each("features", FEATURES, ks=0.2, js=0.02),
            each("features", "fixation_ratio", ks=0.3, js=0.01),
        ),
    },
    "y-std, y-range and displacement best": {
        HOLDS: both(
            each("features", FEATURES, js=js(0.2, 0.1)),
            each("features", ("y_std", "y_range", "displacement"), js=js(0.1, 0.1)),
        ),
        FAILS: both(
            each("features", FEATURES, js=js(0.2, 0.1)),
            each("features", ("y_std", "x_range", "x_std"), js=js(0.1, 0.1)),
        ),
    },
    "fixation dispersion": {
        HOLDS: each("events", "fixation_dispersion", above_real=46.0, above_train=24.0),
        FAILS: each("events", "fixation_dispersion", above_real=46.0, above_train=-4.0),
    },
    "FGD order at every seed": {
        HOLDS: both(each("fgd", BASELINES, fgd=10.0), each("seeds", SEEDS, fgd=9.0)),
        FAILS: both(each("fgd", BASELINES, fgd=10.0), each("seeds", SEEDS, fgd=11.0)),
    },
    "relative SDs of seeds": {
        HOLDS: both(
            each("features", "mean of eight", ks=with_sd(1.0, 0.09), js=with_sd(1.0, 0.24)),
            each("fgd", "diffusion", fgd=with_sd(1.0, 0.22)),
        ),
        FAILS: both(
            each("features", "mean of eight", ks=with_sd(1.0, 0.01), js=with_sd(1.0, 0.01)),
            each("fgd", "diffusion", fgd=with_sd(1.0, 0.01)),
        ),
    },
    "autocorrelation of speed decays within 50 ms": {
        HOLDS: each("speed", "decay", real=20.0, model=50.0, markov=10.0),
        FAILS: each("speed", "decay", real=60.0, model=52.0, markov=100.0),
    },
    "high-speed tail": {
        HOLDS: each("speed", "tail", real=0.2, model=0.19, markov=0.14),
        FAILS: each("speed", "tail", real=0.2, model=0.15, markov=0.19),
    },
    "validation loss does not rank seeds": {
        HOLDS: both(_seeds("loss", (1, 2, 3)), _seeds("js_8", (2, 1, 3)), _seeds("fgd", (3, 2, 1))),
        FAILS: both(_seeds("loss", (1, 2, 3)), _seeds("js_8", (1, 2, 3)), _seeds("fgd", (4, 5, 6))),
    },
    "little overfitting": {
        HOLDS: each("training", SEEDS, epoch=375, epochs=500),
        FAILS: each("training", SEEDS, epoch=374, epochs=500),
    },
    "better than the kinematic Markov": {
        HOLDS: each(
            "markov", [*EIGHT, "mean of eight"], ks=0.5, js=0.5, ks_model=0.1, js_model=0.1
        ),
        FAILS: each(
            "markov", [*EIGHT, "mean of eight"], ks=0.5, js=0.1, ks_model=0.1, js_model=0.2
        ),
    },
    "speed and turning angle nearer than the Markov": {
        HOLDS: each("panel", ("speed", "turning_angle"), model=0.1, markov=0.2),
        FAILS: each("panel", ("speed", "turning_angle"), model=0.3, markov=0.2),
    },
    "eps better than x0": {
        HOLDS: both(each("objective", "eps", fgd=1.0), each("objective", "x0", fgd=10.0)),
        FAILS: both(each("objective", "eps", fgd=1.0), each("objective", "x0", fgd=0.9)),
    },
    "averaged weights better than raw": {
        HOLDS: both(
            each("sampling", "raw", ks=0.2, js=0.2), each("sampling", "ema", ks=0.1, js=0.1)
        ),
        FAILS: both(
            each("sampling", "raw", ks=0.2, js=0.2), each("sampling", "ema", ks=0.2, js=0.3)
        ),
    },
    "eta = 0 is best": {
        HOLDS: both(GOOD_ETA, each("sampling", "eta 0", ks=0.4, js=0.4)),
        FAILS: both(GOOD_ETA, each("sampling", "eta 0.5", ks=0.4, js=0.4)),
    },
    "saturation near 100 steps": {
        HOLDS: _steps(ks=(0.2, 0.1, 0.08), js=(0.2, 0.1, 0.11)),
        FAILS: _steps(ks=(0.2, 0.1, 0.05), js=(0.1, 0.2, 0.2)),
    },
    "lag-one autocorrelations": {
        HOLDS: each("velocity", TEMPORAL, rho1=js(0.05, 0.001)),
        FAILS: each("velocity", TEMPORAL, rho1=js(0.07, 0.01)),
    },
    "spectra": {
        HOLDS: both(each("velocity", TEMPORAL, psd=9e-4), each("velocity", "speed", white=2e-3)),
        FAILS: both(each("velocity", TEMPORAL, psd=2e-3), each("velocity", "speed", white=2e-3)),
        # White noise meets the bound as well.
        UNDECIDED: both(
            each("velocity", TEMPORAL, psd=1e-4), each("velocity", "speed", white=1.9e-3)
        ),
    },
}


@pytest.fixture(scope="module")
def tables() -> Tables:
    return dict(Rows.from_json(make_results(artefacts())["rows"]).of)


@pytest.fixture(scope="module")
def with_draws() -> Tables:
    """The same rows with their bootstrap replicates."""
    return rows_of(artefacts(), list(TABLES))


def found(rows: Tables, name: str) -> dict[str, Any]:
    return next(one for one in evaluate_claims(rows) if one["name"] == name)


def test_every_claim_is_evaluated_and_can_come_out_either_way(tables: Tables) -> None:
    claims = evaluate_claims(tables)
    assert [claim["name"] for claim in claims] == list(CLAIMS)
    assert set(CASES) == set(CLAIMS) == set(RULES)
    natural = {claim["name"]: claim["verdict"] for claim in claims}
    for name, cases in CASES.items():
        reached = {*cases, natural[name]}
        assert {HOLDS, FAILS} <= reached, name


@pytest.mark.parametrize(
    ("name", "verdict"), [(name, verdict) for name, cases in CASES.items() for verdict in cases]
)
def test_the_verdict_follows_the_numbers(tables: Tables, name: str, verdict: str) -> None:
    doctored = dict(tables)
    CASES[name][verdict](doctored)
    assert found(doctored, name)["verdict"] == verdict


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
    doctored = dict(tables)
    name = "path length worse in velocity space"
    CASES[name][FAILS](doctored)
    assert found(doctored, name)["is_reversed"]
    CASES[name][HOLDS](doctored)
    assert not found(doctored, name)["is_reversed"]
