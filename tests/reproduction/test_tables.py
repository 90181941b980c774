"""Every table's numbers are those of the evaluations, recomputed here by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gazediffusion.evaluation.metrics import frechet_of
from gazediffusion.evaluation.quantities import VELOCITY
from gazediffusion.reproduction.artefacts import Artefacts
from gazediffusion.reproduction.plan import TINY, Plan
from gazediffusion.reproduction.tables import NEEDS, TABLES, make_results
from tests.reproduction.made import PLAN, artefacts, history


@pytest.fixture(scope="module")
def made() -> Artefacts:
    return artefacts()


@pytest.fixture(scope="module")
def results(made: Artefacts) -> dict[str, Any]:
    return make_results(made)


def row_of(results: dict[str, Any], table: str, name: str) -> dict[str, Any]:
    found = [row for row in results["tables"][table]["rows"] if row["name"] == name]
    assert len(found) == 1, (table, name)
    return dict(found[0])


def quantity(evaluation: Any, family: str, name: str) -> Any:
    return next(
        row for row in evaluation["quantities"] if (row["family"], row["name"]) == (family, name)
    )


def over_seeds(values: list[float]) -> Any:
    return {"mean": pytest.approx(np.mean(values)), "sd": pytest.approx(np.std(values, ddof=1))}


def js_of(made: Artefacts, evaluation: str, family: str, name: str, kind: str = "js") -> Any:
    return quantity(made.evaluations[evaluation], family, name)["distances"][kind]


def test_results_are_plain_values_with_every_table(results: dict[str, Any]) -> None:
    assert results["format"] == "gazediffusion-reproduction"
    assert list(results["tables"]) == list(TABLES) == list(NEEDS)
    assert json.loads(json.dumps(results, allow_nan=False)) == results
    assert results["about"]["seeds"] == {"position": [42, 123, 2024], "velocity": [0, 1]}
    assert results["about"]["task"] == "natural movies"


def test_every_table_has_columns_rows_and_a_caption_with_n_and_seeds(
    results: dict[str, Any],
) -> None:
    for name, table in results["tables"].items():
        keys = [column["key"] for column in table["columns"]]
        assert len(set(keys)) == len(keys)
        names = [row["name"] for row in table["rows"]]
        assert len(set(names)) == len(names), name
        for row in table["rows"]:
            assert set(row) - {"name", "label"} <= set(keys) | {
                f"{key}_ratio" for key in ("rho1", "psd")
            }
        for key in keys:
            assert any(row.get(key) is not None for row in table["rows"]) or key == "ratio_degrees"
        assert "n = " in table["about"], name
        assert "seed" in table["about"], name
        assert "loor" in table["about"], name


def test_features_stand_beside_paper_and_floor(made: Artefacts, results: dict[str, Any]) -> None:
    row = row_of(results, "features", "x_std")
    for kind in ("ks", "js"):
        distance = js_of(made, "position", "features", "x_std", kind)
        values = [distance["synthetic"][name]["value"] for name in PLAN.position_sets]
        assert row[kind] == over_seeds(values)
        assert row[f"{kind}_floor"] == distance["floor"]
        assert row[f"{kind}_ratio"] == over_seeds([one / distance["floor"] for one in values])
    assert row["js_paper"] == {"mean": 0.0206, "sd": 0.0030}
    means = made.evaluations["position"]["means"]
    for n, word in ((8, "mean of eight"), (9, "mean of nine")):
        found = means[f"js_{n}"]
        of_seeds = [found["synthetic"][name] for name in PLAN.position_sets]
        assert row_of(results, "features", word)["js"] == over_seeds(of_seeds)
        assert row_of(results, "features", word)["js_floor"] == found["floor"]


def test_w1_is_that_of_the_evaluation(made: Artefacts, results: dict[str, Any]) -> None:
    distance = js_of(made, "position", "features", "path_length", "w1")
    values = [distance["synthetic"][name]["value"] for name in PLAN.position_sets]
    row = row_of(results, "w1", "path_length")
    assert row["w1"] == over_seeds(values)
    assert row["w1_paper"] == {"mean": 1.2195, "sd": 0.3671}


def test_markov_has_the_baseline_and_the_model(made: Artefacts, results: dict[str, Any]) -> None:
    row = row_of(results, "markov", "displacement")
    distance = js_of(made, "position", "features", "displacement")
    assert row["js"] == distance["synthetic"]["kinematic-markov"]["value"]
    assert row["js_model"] == row_of(results, "features", "displacement")["js"]
    means = quantity(made.evaluations["position"], "features", "displacement")["mean"]
    assert row["real"] == means["real"]
    assert row["real_paper"] == 1.0730
    assert row_of(results, "markov", "mean of eight")["ks_paper"] == 0.481
    names = [row["name"] for row in results["tables"]["markov"]["rows"]]
    assert "path_length" not in names


def test_fgd_is_the_frechet_distance_of_features(made: Artefacts, results: dict[str, Any]) -> None:
    real = made.features["real"]
    floor = frechet_of(real, made.features["train"])
    values = [frechet_of(real, made.features[name]) for name in PLAN.position_sets]
    assert row_of(results, "fgd", "diffusion")["fgd"] == over_seeds(values)
    assert row_of(results, "fgd", "floor")["fgd"] == pytest.approx(floor)
    baseline = frechet_of(real, made.features["uniform"])
    row = row_of(results, "fgd", "uniform")
    assert row["fgd"] == pytest.approx(baseline)
    assert row["fgd_ratio"] == pytest.approx(baseline / floor)
    assert row["fgd_paper"] == 2752.88


def test_events_are_those_of_the_reference_run(made: Artefacts, results: dict[str, Any]) -> None:
    found = quantity(made.evaluations["position"], "events", "saccade_count")
    row = row_of(results, "events", "saccade_count")
    mean = found["mean"]
    assert row["generated"] == mean["position-123"]
    assert row["generated_seeds"] == over_seeds([mean[name] for name in PLAN.position_sets])
    assert row["above_train"] == pytest.approx(100 * (mean["position-123"] / mean["train"] - 1))
    assert row["above_real"] == pytest.approx(100 * (mean["position-123"] / mean["real"] - 1))
    assert row["train_above_real"] == pytest.approx(100 * (mean["train"] / mean["real"] - 1))
    assert row["paper_above_real"] == pytest.approx(-14.8, abs=0.05)
    apart = row_of(results, "event-distances", "saccade_count")
    assert apart["js"] == found["distances"]["js"]["synthetic"]["position-123"]["value"]
    assert apart["js_paper"] == 0.0703


def test_sampling_is_judged_as_in_the_paper(made: Artefacts, results: dict[str, Any]) -> None:
    evaluation = made.evaluations["sampling"]
    speed = quantity(evaluation, "features", "mean_speed")["distances"]["ks"]
    steps = row_of(results, "sampling", "steps 25")
    assert steps["ks"] == speed["synthetic"]["position-123-steps-25"]["value"]
    assert steps["ks_floor"] == speed["floor"]
    assert steps["ks_paper"] == 0.211
    chosen = row_of(results, "sampling", "steps 100")
    assert chosen["ks"] == speed["synthetic"]["position-123"]["value"]
    eta = row_of(results, "sampling", "eta 0.5")
    means = evaluation["means"]["ks_8"]
    assert eta["ks"] == means["synthetic"]["position-123-eta-0.5"]
    assert eta["ks_floor"] == means["floor"]
    raw = row_of(results, "sampling", "raw")
    assert raw["ks"] == speed["synthetic"]["position-123-raw"]["value"]
    assert raw["ks_paper"] == 0.277
    assert raw["js_paper"] is None


def test_objectives_are_told_apart_by_what_they_predict(
    made: Artefacts, results: dict[str, Any]
) -> None:
    rows = {row["name"]: row for row in results["tables"]["objective"]["rows"]}
    assert list(rows) == ["eps", "x0"]
    assert rows["eps"]["loss"] == made.histories["position-123"]["best_validation_loss"]
    assert rows["x0"]["loss"] == made.histories["x0-123"]["best_validation_loss"]
    assert rows["x0"]["fgd_paper"] == 16782.0
    assert "cannot be compared" in results["tables"]["objective"]["about"]
    swapped = replace(made, plan=replace(PLAN, position=replace(PLAN.position, objective="x0")))
    rows = {row["name"]: row for row in TABLES["objective"](swapped)["rows"]}
    assert rows["x0"]["loss"] == made.histories["position-123"]["best_validation_loss"]
    assert rows["eps"]["loss_paper"] == 0.0059


def test_downstream_has_folds_seeds_floor_and_share(
    made: Artefacts, results: dict[str, Any]
) -> None:
    tests = made.evaluations["position"]["tests"]["tstr"]
    first = tests["synthetic"]["position-42"]
    trtr = row_of(results, "downstream", "trtr")
    assert trtr["r2"] == {"mean": first["trtr_r2"], "sd": first["trtr_r2_sd"]}
    r2 = [tests["synthetic"][name]["tstr_r2"] for name in PLAN.position_sets]
    assert row_of(results, "downstream", "tstr")["r2"] == over_seeds(r2)
    assert row_of(results, "downstream", "floor")["r2"]["mean"] == tests["floor"]["tstr_r2"]
    share = row_of(results, "downstream", "tstr / trtr")
    assert share["r2"] == over_seeds([100 * one / 0.8 for one in r2])
    assert share["r2_paper"] == 82.7


def test_velocity_has_its_own_seeds_and_the_mean_of_five(
    made: Artefacts, results: dict[str, Any]
) -> None:
    evaluation = made.evaluations["velocity"]
    scalars = {row["name"]: row for row in evaluation["scalars"]}
    row = row_of(results, "velocity", "v_y")
    spectra = scalars["psd_v_y"]
    values = [spectra["synthetic"][name]["value"] for name in PLAN.velocity_sets]
    assert row["psd"] == over_seeds(values)
    assert row["psd_floor"] == spectra["floor"]
    assert row["rho1_paper"] == {"mean": 0.0568, "sd": 0.0092}
    means = [
        np.mean(
            [
                js_of(made, "velocity", "velocity", one)["synthetic"][name]["value"]
                for one in VELOCITY
            ]
        )
        for name in PLAN.velocity_sets
    ]
    five = row_of(results, "velocity", "mean of five")
    assert five["js"] == over_seeds([float(one) for one in means])
    assert five["js_paper"] == 0.0065
    assert row_of(results, "velocity", "turning_angle")["rho1"] is None


def test_the_panel_has_four_metrics(made: Artefacts, results: dict[str, Any]) -> None:
    rows = [row["name"] for row in results["tables"]["panel"]["rows"]]
    assert rows == ["speed", "autocorrelation", "direction", "turning_angle"]
    scalar = next(
        row for row in made.evaluations["position"]["scalars"] if row["name"] == "autocorrelation"
    )
    row = row_of(results, "panel", "autocorrelation")
    assert row["markov"] == scalar["synthetic"]["kinematic-markov"]["value"]
    assert row["floor"] == scalar["floor"]


def test_seeds_have_one_row_each_and_the_papers(made: Artefacts, results: dict[str, Any]) -> None:
    row = row_of(results, "seeds", "position-123")
    assert row["loss"] == made.histories["position-123"]["best_validation_loss"]
    assert row["js_8"] == made.evaluations["position"]["means"]["js_8"]["synthetic"]["position-123"]
    assert row_of(results, "seeds", "paper, seed 123")["loss"] == 0.006147


def test_training_says_what_was_not_recorded(made: Artefacts, results: dict[str, Any]) -> None:
    rows = results["tables"]["training"]["rows"]
    assert [row["name"] for row in rows] == [*PLAN.runs, "position"]
    assert row_of(results, "training", "velocity-0")["minutes"] == "not recorded"
    assert row_of(results, "training", "position-123")["minutes"] == pytest.approx(20.0)
    assert row_of(results, "training", "position-123")["loss_paper"] == 0.0059
    assert row_of(results, "training", "x0-123")["loss_paper"] == 0.0995
    losses = [made.histories[run]["best_validation_loss"] for run in PLAN.position_sets]
    assert row_of(results, "training", "position")["loss"] == over_seeds(losses)


def test_a_run_without_held_out_people_has_no_loss(made: Artefacts) -> None:
    run = {**history("position-42"), "best_validation_loss": None}
    without = replace(made, histories={**made.histories, "position-42": run})
    results = make_results(without)
    assert row_of(results, "training", "position-42")["loss"] is None
    assert row_of(results, "training", "position")["loss"] is None


def test_levels_are_over_the_runs_of_each_representation(results: dict[str, Any]) -> None:
    row = row_of(results, "levels", "t 10")
    assert row["sigma"] == pytest.approx(0.1)
    assert row["position_loss"] == over_seeds([0.05, 0.06, 0.07])
    assert row["velocity_left"] == over_seeds([0.9 - 0.07 * 4, 0.9 - 0.07 * 5])


def test_rounded_weights_stand_beside_full_ones(made: Artefacts, results: dict[str, Any]) -> None:
    evaluation = made.evaluations["weights"]
    row = row_of(results, "weights", "position-123-levels-15")
    assert row["ratio"] == evaluation["ratios"]["overall"]["position-123-levels-15"]
    assert row["js_8"] == evaluation["means"]["js_8"]["synthetic"]["position-123-levels-15"]
    assert row["fgd"] == pytest.approx(
        frechet_of(made.features["real"], made.features["position-123-levels-15"])
    )
    assert row_of(results, "weights", "velocity-0-levels-31")["fgd"] is None


def test_beyond_has_ratios_classifiers_and_copies(made: Artefacts, results: dict[str, Any]) -> None:
    evaluation = made.evaluations["velocity"]
    row = row_of(results, "beyond", "velocity")
    overall = evaluation["ratios"]["overall"]
    assert row["ratio_overall"] == over_seeds([overall[name] for name in PLAN.velocity_sets])
    c2st = evaluation["tests"]["c2st"]
    accuracy = [c2st["synthetic"][name]["snippets_accuracy"] for name in PLAN.velocity_sets]
    assert row["snippets_accuracy"] == over_seeds(accuracy)
    floor = row_of(results, "beyond", "velocity floor")
    assert floor["features_accuracy"] == c2st["floor"]["features_accuracy"]
    assert floor["ratio_overall"] == 1.0
    copies = row_of(results, "beyond", "position")["share_of_copies"]
    assert copies == over_seeds([0.0, 0.01, 0.02])


def test_tests_that_could_not_be_computed_leave_cells_empty(made: Artefacts) -> None:
    position = {
        **made.evaluations["position"],
        "tests": {name: {"not_computable": "too few"} for name in ("tstr", "c2st", "memorisation")},
    }
    without = replace(made, evaluations={**made.evaluations, "position": position})
    results = make_results(without)
    assert row_of(results, "downstream", "tstr")["r2"] is None
    assert row_of(results, "beyond", "uniform")["features_accuracy"] is None
    assert "training on synthetic windows alone" not in [one["name"] for one in results["claims"]]


def test_the_median_step_is_of_the_size_of_the_simulated_tremor(results: dict[str, Any]) -> None:
    assert 1e-4 < results["about"]["median_step"] < 1e-2


@pytest.mark.parametrize(
    ("part", "kept"),
    [
        ("evaluations", {"fgd", "objective", "training", "levels"}),
        ("features", set(TABLES) - {"fgd", "objective", "seeds", "weights"}),
        ("histories", set(TABLES) - {"objective", "seeds", "training"}),
        ("levels", set(TABLES) - {"levels"}),
    ],
)
def test_tables_whose_parts_are_absent_are_left_out(
    made: Artefacts, part: str, kept: set[str]
) -> None:
    results = make_results(replace(made, **{part: {}}))  # type: ignore[arg-type]
    assert set(results["tables"]) == kept


@pytest.mark.parametrize("plan", [PLAN, TINY], ids=lambda plan: plan.name)
def test_needs_name_what_the_plan_makes(plan: Plan) -> None:
    for needs in NEEDS.values():
        assert set(needs.evaluations) <= set(plan.evaluations)
        assert set(needs.fgd(plan)) <= set(plan.sets)
        assert set(needs.runs(plan)) <= set(plan.runs)


def test_each_table_is_made_from_its_needs_alone(made: Artefacts) -> None:
    for name, needs in NEEDS.items():
        sets = needs.fgd(PLAN)
        few = replace(
            made,
            evaluations={key: made.evaluations[key] for key in needs.evaluations},
            features={key: made.features[key] for key in (*sets, "real", "train")} if sets else {},
            histories={key: made.histories[key] for key in needs.runs(PLAN)},
            levels=made.levels if needs.levels else {},
        )
        assert name in make_results(few)["tables"]
