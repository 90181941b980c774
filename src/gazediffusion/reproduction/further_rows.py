"""The rows of tables on training, and on what the paper did not measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from gazediffusion.reproduction import paper
from gazediffusion.reproduction.artefacts import Artefacts
from gazediffusion.reproduction.measures import Comparison, frechet_measure, seeds_of
from gazediffusion.reproduction.plan import BASELINES, LEVELS, Plan
from gazediffusion.reproduction.rows import Row, mean_and_sd
from gazediffusion.reproduction.table_rows import BASELINE_LABELS, EIGHT

FAMILIES = ("features", "events", "directions", "velocity", "temporal", "degrees")
TESTS = {
    "features_accuracy": "c2st",
    "share_of_copies": "memorisation",
}
KINDS = ("ks", "js")
Rows = Iterator[Row]


def training(made: Artefacts) -> Rows:
    """Each network: losses, epochs, wall time."""
    plan = made.plan
    for run, planned in plan.runs.items():
        history, seconds = made.histories[run], made.histories[run]["seconds"]
        ours = {
            "objective": history["objective"],
            "epochs": history["epochs"],
            "loss": history["best_validation_loss"],
            "epoch": history["best_epoch"],
            "training_loss": history["training_loss_at_best"],
            "minutes": None if seconds is None else seconds / 60.0,
            "device": history["gpu"] or history["device"],
            "parameters": history["n_parameters"],
        }
        theirs = _published_training(plan, run)
        n = made.about[plan.representation_of(run)]["n_real_windows"]
        counts: dict[str, Any] = {"n": n, "seeds": [planned.seed]}
        for column, value in ours.items():
            row = Row(run, column, run, value, paper=theirs.get(column), **counts)
            if column == "minutes":
                row = replace(row, unit="min", note="not recorded" if value is None else "")
            yield row
    runs, label = plan.position_sets, "position, mean of seeds"
    loss, sd = mean_and_sd(made.histories[run]["best_validation_loss"] for run in runs)
    mean = Row("position", "loss", label, loss, sd, seeds=seeds_of(runs))
    best, best_sd = paper.TEXT["best_validation_loss"]
    is_papers = plan.position.objective == "eps"
    yield replace(mean, paper=best, paper_sd=best_sd) if is_papers else mean


def _published_training(plan: Plan, run: str) -> dict[str, float]:
    """The paper's numbers of this run: of seed 123, of the reference or of the ablation."""
    target = plan.runs[run].recipe.objective
    numbers: dict[str, float] = {}
    if run in (plan.reference, plan.x0):
        numbers["loss"] = paper.NUMBERS["objective"][target]["loss"].mean
    elif run == "position-123" and target == "eps":
        numbers["loss"] = paper.NUMBERS["seeds"]["paper, seed 123"]["loss"].mean
    if run == plan.reference and target == "eps":
        numbers["epoch"] = paper.TEXT["reference_epoch"]
        numbers["training_loss"] = paper.TEXT["reference_training_loss"]
    return numbers


def levels(made: Artefacts) -> Rows:
    """What the networks recover of fixational motion at several noise levels."""
    for name in ("position", "velocity"):
        runs = made.plan.named([name])
        found = [made.levels[run] for run in runs]
        counts: dict[str, Any] = {"n": found[0]["n_windows"], "seeds": seeds_of(runs)}
        for at_level in zip(*(one["levels"] for one in found), strict=True):
            key, label = f"t {at_level[0]['t']}", f"t = {at_level[0]['t']}"
            yield Row(key, "sigma", label, at_level[0]["sigma"])
            for column, of in {"loss": "loss", "left": "unexplained_fixation"}.items():
                ours, sd = mean_and_sd(level[of] for level in at_level)
                yield Row(key, f"{name}_{column}", label, ours, sd, **counts)


def bound(made: Artefacts) -> Rows:
    """The variational bound of both models on held-out windows, and its parts."""
    for run in made.plan.named(["first"]):
        found = made.bounds[run]
        fields: dict[str, Any] = {"unit": "nats per dimension", "seeds": seeds_of([run])}
        fields["n"] = found["n_windows"]
        error = 1.96 * found["standard_error"]
        limits = [found["total"] - error, found["total"] + error]
        yield Row(run, "total", run, found["total"], interval=limits, **fields)
        for part in ("total_in_position", "prior", "diffusion", "reconstruction"):
            yield Row(run, part, run, found[part], **fields)


def weights(made: Artefacts) -> Rows:
    """What rounding the weights costs."""
    plan = made.plan
    frechet = frechet_measure(made, plan.evaluations["weights"])
    for run, name in zip(plan.whole, ("weights", "velocity-weights"), strict=True):
        compared = Comparison(made.evaluations[name])
        measures = {f"{kind}_8": compared.mean("features", EIGHT, kind) for kind in KINDS}
        measures["overall"] = compared.ratio(None)
        measures |= {"fgd": frechet} if name == "weights" else {}
        sets = {run: "full weights"}
        sets |= {plan.with_levels(run, n): f"largest weight = {n} steps" for n in LEVELS}
        for one, label in sets.items():
            for column, measure in measures.items():
                yield Row(one, column, f"{run}, {label}", **measure.of([one]))


def beyond(made: Artefacts) -> Rows:
    """What the paper did not measure: ratios to the floor, classifiers, memorisation."""
    plan, position = made.plan, Comparison(made.evaluations["position"])
    velocity = Comparison(made.evaluations["velocity"])
    beside = [plan.joint_sets["velocity"]] if plan.joint_sets else []
    for name, label, compared, sets in (
        ("position", "position model", position, plan.position_sets),
        *((one, "joint model", position, [one]) for one in plan.named(["joint"])),
        *((one, BASELINE_LABELS[one], position, [one]) for one in BASELINES),
        ("velocity", "velocity model", velocity, plan.velocity_sets),
        *((one, "joint model, as the velocity model", velocity, [one]) for one in beside),
    ):
        yield Row(name, "ratio_overall", label, **compared.ratio(None).of(sets))
        for family in FAMILIES:
            yield Row(name, f"ratio_{family}", label, **compared.ratio(family).of(sets))
        for key, test in TESTS.items():
            yield Row(name, key, label, **compared.test(test, key).of(sets))


FURTHER_ROWS: dict[str, Callable[[Artefacts], Rows]] = {
    rows.__name__: rows for rows in (training, levels, bound, weights, beyond)
}
