"""Every table's numbers are those of the evaluations, recomputed here by hand.

Rows are found by key and put in words; the paper's own numbers agree with each other, so that none
was mistyped.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gazediffusion.evaluation.metrics import Estimate, frechet_of
from gazediffusion.evaluation.quantities import EVENTS, FEATURES, TEMPORAL, VELOCITY
from gazediffusion.evaluation.report import NOTHING, as_text
from gazediffusion.reproduction.build import make_results
from gazediffusion.reproduction.plan import BASELINES, ETAS, STEPS, TINY, Artefacts, Plan
from gazediffusion.reproduction.tables import (
    EIGHT,
    NUMBERS,
    TABLES,
    TEXT,
    MissingError,
    Published,
    Row,
    Rows,
    as_published,
    mean_and_sd,
)
from tests.reproduction.made import PLAN, artefacts, features, made_results


@pytest.fixture(scope="module")
def made() -> Artefacts:
    return artefacts()


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return made_results()


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


def test_training_says_what_was_not_recorded(made: Artefacts, rows: Rows) -> None:
    assert rows.names("training", "loss") == [*PLAN.runs, "position"]
    assert rows.of["training", "velocity-0", "minutes"].text() == "not recorded"
    assert rows.number("training", "position-123", "minutes") == pytest.approx(20.0)
    assert rows.find("training", "position-42", "loss").paper == 0.0059
    assert rows.find("training", "position-123", "loss").paper == 0.006147
    assert rows.of["training", "position-2024", "loss"].paper is None
    assert rows.find("training", "x0-42", "loss").paper == 0.0995
    losses = [made.histories[run]["best_validation_loss"] for run in PLAN.position_sets]
    mean = rows.find("training", "position", "loss")
    assert is_over_seeds(mean, losses)
    assert (mean.paper, mean.paper_sd) == (0.0060, 0.0001)


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
        ("evaluations", {"fgd", "objective", "training"}),
        ("frechet", set(TABLES) - {"fgd", "objective", "seeds"}),
        ("histories", set(TABLES) - {"objective", "seeds", "training", "velocity-seeds"}),
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
    built["histories"] = plan.runs
    for table in TABLES.values():
        for kind, names in table.required(plan).items():
            assert set(names) <= set(built[kind])


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        # Of the paper.
        (as_published(Published(0.0155, 0.0038)), "0.0155 ± 0.0038"),
        (as_published(Published(1.2195, 0.3671)), "1.2195 ± 0.3671"),
        (as_published(Published(1.31e-4, 0.02e-4)), "(1.31 ± 0.02)e-4"),
        (as_published(Published(6e-4, 2e-4)), "(6 ± 2)e-4"),
        (as_published(Published(2752.88)), "2,752.88"),
        (as_published(0.2095), "0.2095"),
        (as_published(0.0003), "0.0003"),
        (as_published(462), "462"),
        # Ours.
        (as_text(Estimate(0.01551, sd=0.00382)), "0.0155 ± 0.0038"),
        (as_text(Estimate(13.79, sd=2.97)), "13.8 ± 3.0"),
        (as_text(Estimate(1.314e-4, sd=2e-6)), "(1.31 ± 0.02)e-4"),
        (as_text(Estimate(1650.2, sd=1020.4)), "1,650 ± 1,020"),
    ],
)
def test_the_papers_numbers_keep_their_digits_and_ours_share_decimals(
    shown: str, text: str
) -> None:
    assert shown == text


def test_the_sd_over_seeds_divides_by_n_less_one() -> None:
    values = [1.0, 2.0, 4.0]
    expected = statistics.mean(values), statistics.stdev(values)
    assert mean_and_sd(values) == pytest.approx(expected)
    assert mean_and_sd([1.5]) == (1.5, None)
    assert mean_and_sd([1.5, None]) == mean_and_sd([]) == (None, None)


def test_a_row_takes_the_papers_number_of_its_key() -> None:
    row = Row("x_std", "js", "x std", 0.02).beside_paper("features")
    assert (row.table, row.paper, row.paper_sd) == ("features", 0.0206, 0.0030)
    assert Row("x_std", "js", ours=0.02).beside_paper("beyond").paper is None
    own = Row("position-42", "loss", ours=0.02, paper=0.0059).beside_paper("training")
    assert own.paper == 0.0059


def test_parts_of_a_row_are_words() -> None:
    row = Row(
        "a", "b", ours=0.01551, sd=0.00382, paper=0.016, paper_sd=0.004, floor=0.01, ratio=1.6
    )
    parts = ("ours", "paper", "floor", "ratio")
    said = ["0.0155 ± 0.0038", "0.016 ± 0.004", "0.0100", "1.60"]
    assert [row.text(part) for part in parts] == said
    single = Row("a", "b", ours=0.5, interval=[0.4, 0.6])
    assert (single.text(), single.text(with_interval=True)) == ("0.500", "0.500 [0.400, 0.600]")
    assert Row("a", "b", ours="NVIDIA H200").text() == "NVIDIA H200"
    assert Row("a", "b", note="not recorded").text() == "not recorded"
    assert Row("a", "b").text() == NOTHING


def test_rows_are_found_by_key_and_what_was_read_is_kept() -> None:
    of = [Row("a", "x", ours=2.0, table="one"), Row("a", "y", table="one", paper=1.0)]
    of += [Row("b", "x", ours="word", table="one")]
    rows = Rows({(row.table, row.row, row.column): row for row in of})
    assert rows.number("one", "a", "x") == 2.0
    assert list(rows.read) == [("one", "a", "x")]
    assert rows.names("one", "x") == ["a", "b"]
    assert len(rows.table("one")) == 3
    for key in (("two", "a", "x"), ("one", "c", "x"), ("one", "a", "y")):
        with pytest.raises(MissingError):
            rows.find(*key)
    with pytest.raises(MissingError):
        rows.number("one", "b", "x")


def papers(table: str, row: str, column: str) -> float:
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


def mean_of(table: str, names: Iterable[str], kind: str) -> float:
    return float(np.mean([papers(table, name, kind) for name in names]))


def agreeing() -> Iterator[tuple[str, float, float, float]]:
    """What is computed of the paper's numbers, what it says itself, and its rounding."""
    for kind, rounding in (("ks", 5e-4), ("js", 1e-3)):
        for table in ("features", "markov"):
            said = papers(table, "mean of eight", kind)
            yield f"mean {kind} of {table}", mean_of(table, EIGHT, kind), said, 6e-4
        said = papers("features", "mean of nine", kind)
        yield f"abstract, mean {kind}", mean_of("features", FEATURES, kind), said, rounding
        model, markov = (papers(one, "mean of eight", kind) for one in ("features", "markov"))
        said = TEXT["markov_reduction_percent"][kind]
        yield f"{kind} below Markov", 100 * (1 - model / markov), said, 0.15
    said = papers("velocity", "mean of five", "js")
    yield "abstract, velocity", mean_of("velocity", VELOCITY, "js"), said, 1e-4
    highest = max(papers("velocity", name, "js") for name in VELOCITY)
    yield "highest of velocity", highest, TEXT["velocity_highest_js"][0], 5e-4
    ways = ("trtr", "tstr", "aug", "tstr / trtr")
    trtr, tstr, aug, share = (papers("downstream", name, "r2") for name in ways)
    yield "TSTR over TRTR", 100 * tstr / trtr, share, 0.05
    yield "augmentation", trtr - aug, TEXT["aug_gap_to_trtr"], 5e-4
    sampling, reference = NUMBERS["sampling"], NUMBERS["seeds"]["paper, reference run"]
    yield "100 steps", sampling["steps 100"]["ks"].mean, sampling["ema"]["ks"].mean, 0.0
    yield "eta 0", sampling["eta 0"]["js"].mean, reference["js_8"].mean, 0.0
    for key, published in NUMBERS["objective"]["eps"].items():
        yield f"eps, {key}", reference[key].mean, published.mean, 0.0


@pytest.mark.parametrize(
    ("computed", "said", "rounding"), [pytest.param(*of, id=name) for name, *of in agreeing()]
)
def test_the_papers_numbers_agree(computed: float, said: float, rounding: float) -> None:
    assert computed == pytest.approx(said, abs=rounding, rel=0)


@pytest.mark.parametrize("name", EIGHT)
def test_ks_and_js_of_markov_are_possible_in_nats(name: str) -> None:
    """JS >= ln 2 - H((1 - KS) / 2) for any two distributions with this KS, ln 2 at the most."""
    p, js = (1 - papers("markov", name, "ks")) / 2, papers("markov", name, "js")
    entropy = -p * math.log(p) - (1 - p) * math.log(1 - p)
    assert math.log(2) - entropy <= js + 5e-4
    assert js <= math.log(2)


def test_the_papers_numbers_keep_the_bounds_of_its_text() -> None:
    assert max(papers("features", name, "js") for name in FEATURES) < TEXT["highest_feature_js"]
    for name, bound in TEXT["event_bounds_percent"].items():
        assert round(abs(papers("events", name, "above_real"))) <= bound
    missing = -papers("events", "saccade_count", "above_real")
    assert round(missing) == TEXT["saccade_undercount_percent"]
    for name in TEMPORAL:
        assert papers("velocity", name, "rho1") < TEXT["highest_rho1"]
        assert TEXT["psd_order"] <= papers("velocity", name, "psd") < 10 * TEXT["psd_order"]
