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
from gazediffusion.reproduction.rows import Row, Rows
from gazediffusion.reproduction.tables import TABLES, make_results
from tests.reproduction.made import PLAN, artefacts, features, history


@pytest.fixture(scope="module")
def made() -> Artefacts:
    return artefacts()


@pytest.fixture(scope="module")
def results(made: Artefacts) -> dict[str, Any]:
    return make_results(made)


@pytest.fixture(scope="module")
def rows(results: dict[str, Any]) -> Rows:
    return Rows.from_json(results["rows"])


def quantity(evaluation: Any, family: str, name: str) -> Any:
    return next(
        row for row in evaluation["quantities"] if (row["family"], row["name"]) == (family, name)
    )


def is_over_seeds(row: Row, values: list[float]) -> bool:
    """Whether our number is the mean of these, with their SD."""
    assert row.ours == pytest.approx(np.mean(values))
    assert row.sd == pytest.approx(np.std(values, ddof=1))
    return len(row.seeds) == len(values)


def distance(
    made: Artefacts, evaluation: str, family: str, name: str, kind: str = "js"
) -> tuple[dict[str, float], float, dict[str, float]]:
    """Values by set, the floor, ratios by set."""
    found = quantity(made.evaluations[evaluation], family, name)["distances"][kind]
    cells = found["synthetic"].items()
    values, ratios = ({one: cell[key] for one, cell in cells} for key in ("value", "ratio"))
    return values, found["floor"], ratios


def test_results_are_plain_values_with_every_table(results: dict[str, Any]) -> None:
    assert results["format"] == "gazediffusion-reproduction"
    assert list(results["tables"]) == list(TABLES)
    assert json.loads(json.dumps(results, allow_nan=False)) == results
    assert results["about"]["seeds"] == {"position": [42, 123, 2024], "velocity": [0, 1]}
    assert results["about"]["task"] == "natural movies"


def test_rows_have_one_key_each_and_columns_of_their_table(
    results: dict[str, Any], rows: Rows
) -> None:
    assert len(rows.of) == len(results["rows"])
    for name, table in results["tables"].items():
        found = {row.column for row in rows.table(name)}
        assert found <= set(table["columns"])
        # The simulated screen has no size, so there are no degrees.
        with_numbers = {row.column for row in rows.table(name) if row.ours is not None}
        assert set(table["columns"]) - with_numbers <= {"ratio_degrees"}
        assert all(row.label for row in rows.table(name))
        assert "{" not in table["note"]


def test_distances_say_how_many_windows_and_which_seeds(made: Artefacts, rows: Rows) -> None:
    n = made.evaluations["position"]["about"]["n_common"]
    assert (rows.find("features", "x_std", "js").n, rows.find("markov", "x_std", "js").n) == (n, n)
    assert rows.find("features", "x_std", "js").seeds == [42, 123, 2024]
    assert rows.find("event-distances", "saccade_count", "js").seeds == [42]
    assert rows.find("fgd", "uniform", "fgd").seeds == ()
    assert rows.find("velocity", "v_x", "js").seeds == [0, 1]
    assert rows.find("sampling", "raw", "js").seeds == [2024]


def test_features_stand_beside_paper_and_floor(made: Artefacts, rows: Rows) -> None:
    for kind in ("ks", "js"):
        values, floor, ratios = distance(made, "position", "features", "x_std", kind)
        row = rows.find("features", "x_std", kind)
        assert is_over_seeds(row, [values[name] for name in PLAN.position_sets])
        assert row.floor == floor
        assert row.ratio == pytest.approx(np.mean([ratios[name] for name in PLAN.position_sets]))
    assert (row.paper, row.paper_sd) == (0.0206, 0.0030)
    means = made.evaluations["position"]["means"]
    for n, word in ((8, "mean of eight"), (9, "mean of nine")):
        row, found = rows.find("features", word, "js"), means[f"js_{n}"]
        assert is_over_seeds(row, [found["synthetic"][name] for name in PLAN.position_sets])
        assert row.floor == pytest.approx(found["floor"])


def test_the_ratio_is_that_of_the_evaluation_whatever_the_pairs_own_bins_say(
    made: Artefacts,
) -> None:
    doctored = json.loads(json.dumps(made.evaluations["position"]))
    for one in doctored["quantities"]:
        for cell in one["distances"]["js"]["synthetic"].values():
            cell["ratio"] = 3.0
    results = make_results(
        replace(made, evaluations={**made.evaluations, "position": doctored}), ["features"]
    )
    js = [row for row in results["rows"] if row["column"] == "js"]
    assert [row["ratio"] for row in js] == pytest.approx([3.0] * 11)
    assert js[0]["ours"] / js[0]["floor"] != pytest.approx(3.0)


def test_the_ratio_of_a_mean_is_of_distances_in_the_floors_bins(
    made: Artefacts, rows: Rows
) -> None:
    parts = [distance(made, "velocity", "velocity", name) for name in VELOCITY]
    floor = np.mean([one[1] for one in parts])
    by_seed = [
        np.mean([ratios[name] * of_floor for _, of_floor, ratios in parts]) / floor
        for name in PLAN.velocity_sets
    ]
    row = rows.find("velocity", "mean of five", "js")
    assert row.ratio == pytest.approx(np.mean(by_seed))
    assert row.floor == pytest.approx(floor)


def test_w1_is_that_of_the_evaluation(made: Artefacts, rows: Rows) -> None:
    values, *_ = distance(made, "position", "features", "path_length", "w1")
    row = rows.find("w1", "path_length", "w1")
    assert is_over_seeds(row, [values[name] for name in PLAN.position_sets])
    assert (row.paper, row.paper_sd) == (1.2195, 0.3671)
    assert row.unit


def test_markov_has_the_baseline_and_the_model(made: Artefacts, rows: Rows) -> None:
    values, *_ = distance(made, "position", "features", "displacement")
    assert rows.number("markov", "displacement", "js") == values["kinematic-markov"]
    model = rows.find("markov", "displacement", "js_model")
    assert model.ours == rows.number("features", "displacement", "js")
    means = quantity(made.evaluations["position"], "features", "displacement")["mean"]
    real = rows.find("markov", "displacement", "real")
    assert (real.ours, real.paper) == (means["real"], 1.0730)
    assert rows.find("markov", "mean of eight", "ks").paper == 0.481
    assert "path_length" not in rows.names("markov", "ks")


def test_fgd_is_the_frechet_distance_of_features(made: Artefacts, rows: Rows) -> None:
    real = features()["real"]
    floor = frechet_of(real, features()["train"])
    values = [frechet_of(real, features()[name]) for name in PLAN.position_sets]
    row = rows.find("fgd", "diffusion", "fgd")
    assert is_over_seeds(row, values)
    assert row.floor == pytest.approx(floor)
    baseline = frechet_of(real, features()["uniform"])
    row = rows.find("fgd", "uniform", "fgd")
    assert row.ours == pytest.approx(baseline)
    assert row.ratio == pytest.approx(baseline / floor)
    assert row.paper == 2752.88


def test_the_joint_model_stands_beside_in_the_same_evaluation(made: Artefacts, rows: Rows) -> None:
    for table, evaluation, family, one in (
        ("features", "position", "features", "joint-0"),
        ("velocity", "velocity", "velocity", "velocity-joint"),
    ):
        row = next(row for row in rows.table(table) if row.column == "js")
        values, _, ratios = distance(made, evaluation, family, row.row, "js")
        assert (row.joint, row.joint_ratio) == (values[one], ratios[one])
    assert rows.find("fgd", "joint", "fgd").floor == rows.find("fgd", "diffusion", "fgd").floor


def test_intervals_draw_participants_and_seeds(made: Artefacts, rows: Rows) -> None:
    row = rows.find("features", "x_std", "js")
    cells = quantity(made.evaluations["position"], "features", "x_std")["distances"]["js"]
    of_seeds = [np.array(cells["synthetic"][one]["draws"]) for one in PLAN.position_sets]
    assert row.interval is not None
    low, high = (float(end or 0.0) for end in row.interval)
    assert low <= row.number <= high
    # Wider than that of the mean of these very seeds.
    fixed = np.percentile(np.mean(of_seeds, axis=0), [2.5, 97.5])
    assert high - low > 0.8 * float(fixed[1] - fixed[0])
    low, high = row.ratio_interval or ()
    assert low <= (row.ratio or 0.0) <= high
    assert "draws" not in row.to_json()


def test_fewer_bins_and_the_bias_lower_the_divergence(rows: Rows) -> None:
    ours, fewer, debiased = (
        rows.find("bins", name, "js_9") for name in ("ours", "fewer", "debiased")
    )
    assert ours.number == pytest.approx(rows.number("features", "mean of nine", "js"))
    assert debiased.number < ours.number
    assert fewer.number < ours.number
    assert fewer.label == "24 bins"


def test_speed_decays_and_peaks_as_in_the_sets(made: Artefacts, rows: Rows) -> None:
    curve = made.evaluations["position"]["curves"]["speed_autocorrelation"]
    real = np.array(curve["sets"]["real"])
    lag = curve["x"][int(np.argmax(real < np.exp(-1)))]
    assert rows.number("speed", "decay", "real") == lag
    means = quantity(made.evaluations["position"], "features", "max_speed")["mean"]
    assert rows.number("speed", "tail", "markov") == means["kinematic-markov"]


def test_white_noise_has_the_distance_of_a_flat_spectrum(made: Artefacts, rows: Rows) -> None:
    real = np.array(made.evaluations["velocity"]["curves"]["speed_spectrum"]["sets"]["real"])
    assert real.sum() == pytest.approx(1.0, rel=1e-3)
    flat = np.abs(real - 1 / len(real)).mean()
    assert rows.number("velocity", "speed", "white") == pytest.approx(float(flat), rel=1e-3)


def test_events_are_those_of_the_reference_run(made: Artefacts, rows: Rows) -> None:
    found = quantity(made.evaluations["position"], "events", "saccade_count")
    mean, key = found["mean"], ("events", "saccade_count")
    generated = mean["position-42"]
    assert rows.number(*key, "generated") == generated
    all_seeds = [mean[name] for name in PLAN.position_sets]
    assert is_over_seeds(rows.find(*key, "generated_seeds"), all_seeds)
    above_train = pytest.approx(100 * (generated / mean["train"] - 1))
    assert rows.number(*key, "above_train") == above_train
    row = rows.find(*key, "above_real")
    assert row.ours == pytest.approx(100 * (generated / mean["real"] - 1))
    assert row.floor == pytest.approx(100 * (mean["train"] / mean["real"] - 1))
    assert row.paper == pytest.approx(-14.8, abs=0.05)
    apart = rows.find("event-distances", "saccade_count", "js")
    assert apart.ours == found["distances"]["js"]["synthetic"]["position-42"]["value"]
    assert apart.paper == 0.0703


def test_sampling_is_evaluated_as_in_the_paper(made: Artefacts, rows: Rows) -> None:
    evaluation = made.evaluations["sampling"]
    speed, floor, _ = distance(made, "sampling", "features", "mean_speed", "ks")
    steps = rows.find("sampling", "steps 25", "ks")
    assert (steps.ours, steps.floor) == (speed["position-42-steps-25"], floor)
    assert steps.paper == 0.211
    assert rows.number("sampling", "steps 100", "ks") == speed["position-42"]
    eta, means = rows.find("sampling", "eta 0.5", "ks"), evaluation["means"]["ks_8"]
    assert eta.ours == pytest.approx(means["synthetic"]["position-42-eta-0.5"])
    assert eta.floor == pytest.approx(means["floor"])
    raw = rows.find("sampling", "raw", "ks")
    assert (raw.ours, raw.paper) == (speed["position-2024-raw"], 0.277)
    assert rows.find("sampling", "raw", "js").paper is None


def test_objectives_are_named_by_what_they_predict(made: Artefacts, rows: Rows) -> None:
    assert rows.names("objective", "fgd") == ["eps", "x0"]
    loss = {run: made.histories[run]["best_validation_loss"] for run in made.histories}
    assert rows.number("objective", "eps", "loss") == loss["position-42"]
    assert rows.number("objective", "x0", "loss") == loss["x0-42"]
    assert rows.find("objective", "x0", "fgd").paper == 16782.0
    swapped = replace(made, plan=replace(PLAN, position=replace(PLAN.position, objective="x0")))
    rows = Rows.from_json(make_results(swapped, ["objective"])["rows"])
    assert rows.number("objective", "x0", "loss") == loss["position-42"]
    assert rows.find("objective", "eps", "loss").paper == 0.0059


def test_downstream_has_folds_seeds_floor_and_share(made: Artefacts, rows: Rows) -> None:
    tests = made.evaluations["position"]["tests"]["tstr"]
    first = tests["synthetic"]["position-42"]
    trtr = rows.find("downstream", "trtr", "r2")
    assert (trtr.ours, trtr.sd) == (first["trtr_r2"], first["trtr_r2_sd"])
    r2 = [tests["synthetic"][name]["tstr_r2"] for name in PLAN.position_sets]
    assert is_over_seeds(rows.find("downstream", "tstr", "r2"), r2)
    assert rows.number("downstream", "floor", "r2") == tests["floor"]["tstr_r2"]
    share = rows.find("downstream", "tstr / trtr", "r2")
    assert is_over_seeds(share, [100 * one / 0.8 for one in r2])
    assert share.paper == 82.7


def test_velocity_has_its_own_seeds_and_the_mean_of_five(made: Artefacts, rows: Rows) -> None:
    scalars = {row["name"]: row for row in made.evaluations["velocity"]["scalars"]}
    row, spectra = rows.find("velocity", "v_y", "psd"), scalars["psd_v_y"]
    values = [spectra["synthetic"][name]["value"] for name in PLAN.velocity_sets]
    assert is_over_seeds(row, values)
    assert row.floor == spectra["floor"]
    assert rows.find("velocity", "v_y", "rho1").paper == 0.0568
    of_set = [
        float(np.mean([distance(made, "velocity", "velocity", one)[0][name] for one in VELOCITY]))
        for name in PLAN.velocity_sets
    ]
    five = rows.find("velocity", "mean of five", "js")
    assert is_over_seeds(five, of_set)
    assert five.paper == 0.0065
    assert "turning_angle" not in rows.names("velocity", "rho1")


def test_the_panel_has_four_metrics(made: Artefacts, rows: Rows) -> None:
    metrics = ["speed", "autocorrelation", "direction", "turning_angle"]
    assert rows.names("panel", "model") == metrics
    scalars = made.evaluations["position"]["scalars"]
    scalar = next(row for row in scalars if row["name"] == "autocorrelation")
    markov = rows.number("panel", "autocorrelation", "markov")
    assert markov == scalar["synthetic"]["kinematic-markov"]["value"]
    assert rows.find("panel", "autocorrelation", "model").floor == scalar["floor"]


def test_seeds_have_one_row_each_and_the_papers(made: Artefacts, rows: Rows) -> None:
    loss = made.histories["position-123"]["best_validation_loss"]
    assert rows.number("seeds", "position-123", "loss") == loss
    means = made.evaluations["position"]["means"]["js_8"]
    js = rows.number("seeds", "position-123", "js_8")
    assert js == pytest.approx(means["synthetic"]["position-123"])
    assert "joint-0" in rows.names("seeds", "js_8")
    assert rows.of["seeds", "paper, seed 123", "loss"].paper == 0.006147


def test_training_says_what_was_not_recorded(made: Artefacts, rows: Rows) -> None:
    assert rows.names("training", "loss") == [*PLAN.runs, "position"]
    assert rows.of["training", "velocity-0", "minutes"].cell("ours") == "not recorded"
    assert rows.number("training", "position-123", "minutes") == pytest.approx(20.0)
    assert rows.find("training", "position-42", "loss").paper == 0.0059
    assert rows.find("training", "position-123", "loss").paper == 0.006147
    assert rows.of["training", "position-2024", "loss"].paper is None
    assert rows.find("training", "x0-42", "loss").paper == 0.0995
    losses = [made.histories[run]["best_validation_loss"] for run in PLAN.position_sets]
    mean = rows.find("training", "position", "loss")
    assert is_over_seeds(mean, losses)
    assert (mean.paper, mean.paper_sd) == (0.0060, 0.0001)


def test_a_run_without_held_out_participants_has_no_loss(made: Artefacts) -> None:
    run = {**history("position-42"), "best_validation_loss": None}
    without = replace(made, histories={**made.histories, "position-42": run})
    rows = Rows.from_json(make_results(without)["rows"])
    names = rows.names("training", "loss")
    assert not {"position-42", "position"} & set(names)


def test_levels_are_over_the_runs_of_each_representation(rows: Rows) -> None:
    assert rows.number("levels", "t 10", "sigma") == pytest.approx(0.1)
    assert is_over_seeds(rows.find("levels", "t 10", "position_loss"), [0.05, 0.06, 0.07])
    left = [0.9 - 0.07 * 4, 0.9 - 0.07 * 5]
    assert is_over_seeds(rows.find("levels", "t 10", "velocity_left"), left)


def test_rounded_weights_stand_beside_full_ones(made: Artefacts, rows: Rows) -> None:
    evaluation, name = made.evaluations["weights"], "position-2024-levels-15"
    assert rows.number("weights", name, "overall") == evaluation["ratios"]["overall"][name]
    means = evaluation["means"]["js_8"]["synthetic"]
    assert rows.number("weights", name, "js_8") == pytest.approx(means[name])
    fgd = frechet_of(features()["real"], features()[name])
    assert rows.number("weights", name, "fgd") == pytest.approx(fgd)
    assert "velocity-1-levels-31" not in rows.names("weights", "fgd")


def test_beyond_has_ratios_classifiers_and_copies(made: Artefacts, rows: Rows) -> None:
    evaluation, sets = made.evaluations["velocity"], PLAN.velocity_sets
    overall = evaluation["ratios"]["overall"]
    row = rows.find("beyond", "velocity", "ratio_overall")
    assert is_over_seeds(row, [overall[name] for name in sets])
    c2st = evaluation["tests"]["c2st"]
    row = rows.find("beyond", "velocity", "features_accuracy")
    assert is_over_seeds(row, [c2st["synthetic"][name]["features_accuracy"] for name in sets])
    assert row.floor == c2st["floor"]["features_accuracy"]
    assert is_over_seeds(rows.find("beyond", "position", "share_of_copies"), [0.0, 0.01, 0.02])


def test_tests_that_could_not_be_computed_leave_cells_empty(made: Artefacts) -> None:
    position = {
        **made.evaluations["position"],
        "tests": {name: {"not_computable": "too few"} for name in ("tstr", "c2st", "memorisation")},
    }
    without = replace(made, evaluations={**made.evaluations, "position": position})
    results = make_results(without)
    rows = Rows.from_json(results["rows"])
    assert rows.names("downstream", "r2") == []
    assert rows.names("beyond", "features_accuracy") == ["velocity", "velocity-joint"]
    assert "training on synthetic windows alone" not in [one["name"] for one in results["claims"]]


def test_the_median_step_is_of_the_size_of_the_simulated_tremor(results: dict[str, Any]) -> None:
    assert 1e-4 < results["about"]["median_step"] < 1e-2


@pytest.mark.parametrize(
    ("part", "kept"),
    [
        ("evaluations", {"fgd", "objective", "training", "levels", "bound"}),
        ("frechet", set(TABLES) - {"fgd", "objective", "seeds", "weights"}),
        ("histories", set(TABLES) - {"objective", "seeds", "training", "velocity-seeds"}),
        ("levels", set(TABLES) - {"levels"}),
        ("bounds", set(TABLES) - {"bound"}),
    ],
)
def test_tables_whose_parts_are_absent_are_left_out(
    made: Artefacts, part: str, kept: set[str]
) -> None:
    results = make_results(replace(made, **{part: {}}))  # type: ignore[arg-type]
    assert set(results["tables"]) == kept == {row["table"] for row in results["rows"]}


@pytest.mark.parametrize("plan", [PLAN, TINY], ids=lambda plan: plan.name)
def test_tables_need_what_the_plan_builds(plan: Plan) -> None:
    built = {"frechet": {*plan.sets, "train"}, "evaluations": plan.evaluations}
    built |= dict.fromkeys(("histories", "levels", "bounds"), plan.runs)
    for table in TABLES.values():
        for kind, names in table.required(plan).items():
            assert set(names) <= set(built[kind])


def test_each_table_is_built_from_its_needs_alone(made: Artefacts) -> None:
    for name, table in TABLES.items():
        few = {
            kind: {key: getattr(made, kind)[key] for key in names}
            for kind, names in table.required(PLAN).items()
        }
        assert name in make_results(replace(made, **few))["tables"]  # type: ignore[arg-type]
