"""Tables of the velocity model and of training, and those of what the paper did not measure."""

from __future__ import annotations

from collections.abc import Sequence

from gazediffusion.evaluation.quantities import TEMPORAL, VELOCITY
from gazediffusion.reproduction import paper
from gazediffusion.reproduction.artefacts import Artefacts
from gazediffusion.reproduction.cells import Table, of_paper, spread
from gazediffusion.reproduction.comparing import FLOOR, Comparison, in_seeds
from gazediffusion.reproduction.layout import (
    BASELINE_TITLES,
    FLOOR_MEANS,
    Row,
    beside,
    columns_of,
    fgd_of,
    lay_out,
    of_position,
)
from gazediffusion.reproduction.plan import BASELINES, LEVELS, Plan

FAMILIES = ("features", "events", "directions", "velocity", "temporal", "degrees")


def velocity(made: Artefacts) -> Table:
    """The velocity model: JS, lag-one autocorrelations and spectra."""
    compared, sets = Comparison(made.evaluations["velocity"]), made.plan.velocity_sets
    titles = {name: title for name, (title, _) in VELOCITY.items()}
    titles["path_length"] = "reconstructed path length"
    rows: list[Row] = []
    for name, title in titles.items():
        published = paper.VELOCITY[name]
        row: Row = {"name": name, "label": title}
        row |= beside("js", compared.distances("velocity", name, "js"), sets, published.js)
        is_temporal = name in TEMPORAL
        for key, value in {"rho1": published.rho1, "psd": published.psd}.items():
            of = compared.scalars(f"{key}_{name}")
            row |= beside(key, of, sets if is_temporal else [], value)
        rows.append(row)

    def mean(of: str) -> float | None:
        cell = spread(compared.distance("velocity", name, "js", of) for name in VELOCITY)
        return cell["mean"] if isinstance(cell, dict) else None

    five = {"name": "mean of five", "label": "mean of five (without path length)"}
    rows.append({**five, **beside("js", mean, sets, paper.VELOCITY_MEAN_JS)})
    return lay_out(
        "The velocity model",
        [
            "JS in nats of all samples pooled (path length: one value per window); delta rho1: "
            "difference of mean lag-one autocorrelations; D_PSD: L1 distance of mean normalized "
            "spectra, here the mean over frequencies of the absolute difference. The paper says L1 "
            "and gives values of that size; if its sum is normalized in another way, its scale "
            "differs from ours by a constant.",
            compared.said(len(sets)),
            FLOOR_MEANS,
        ],
        {
            **columns_of("js", "JS"),
            **columns_of("rho1", "delta rho1", with_ratio=False),
            **columns_of("psd", "D_PSD", with_ratio=False),
        },
        rows,
    )


def training(made: Artefacts) -> Table:
    """One row for each network: losses, epochs, wall time."""
    plan = made.plan
    rows: list[Row] = []
    for run, planned in plan.runs.items():
        history = made.histories[run]
        is_reference = run == plan.reference and planned.recipe.objective == "eps"
        seconds = history["seconds"]
        rows.append(
            {
                "name": run,
                "label": run,
                "objective": history["objective"],
                "epochs": history["epochs"],
                "loss": history["best_validation_loss"],
                "loss_paper": _loss_paper(plan, run),
                "epoch": history["best_epoch"],
                "epoch_paper": paper.REFERENCE_EPOCH if is_reference else None,
                "training_loss": history["training_loss_at_best"],
                "training_loss_paper": paper.REFERENCE_TRAINING_LOSS if is_reference else None,
                "minutes": "not recorded" if seconds is None else seconds / 60.0,
                "device": history["gpu"] or history["device"],
                "parameters": history["n_parameters"],
            }
        )
    losses = [made.histories[run]["best_validation_loss"] for run in plan.position_sets]
    is_eps = plan.position.objective == "eps"
    published = of_paper(paper.BEST_VALIDATION_LOSS) if is_eps else None
    mean: Row = {"name": "position", "label": "position, mean of seeds"}
    rows.append({**mean, "loss": spread(losses), "loss_paper": published})
    n_held_out = made.about["position"]["n_real_windows"]
    return lay_out(
        "Training",
        [
            f"Losses are mean squared errors on n = {n_held_out:,} held-out windows (velocity: "
            f"{made.about['velocity']['n_real_windows']:,}), by averaged weights; those of "
            "different objectives or representations cannot be compared. One row per seed; the "
            f"last row: {in_seeds(len(losses))}. The paper's epoch and training loss are those of "
            "its reference run, whose seed it does not say. A loss has no floor.",
        ],
        {
            "objective": "predicts",
            "epochs": "epochs",
            "loss": "best validation loss, ours",
            "loss_paper": "best validation loss, paper",
            "epoch": "its epoch, ours",
            "epoch_paper": "its epoch, paper",
            "training_loss": "training loss there, ours",
            "training_loss_paper": "training loss there, paper",
            "minutes": "wall time (min)",
            "device": "device",
            "parameters": "parameters",
        },
        rows,
    )


def _loss_paper(plan: Plan, run: str) -> float | None:
    """The paper's loss of this very run: that of seed 123, of the reference, of the ablation."""
    target = plan.runs[run].recipe.objective
    if run in (plan.reference, plan.x0) and target in paper.OBJECTIVES:
        return paper.OBJECTIVES[target].validation_loss
    if run == "position-123" and target == "eps":
        return paper.SEEDS["seed 123"].validation_loss
    return None


def levels(made: Artefacts) -> Table:
    """What the networks recover of fixational motion at several noise levels."""
    sets = {"position": made.plan.position_sets, "velocity": made.plan.velocity_sets}
    of = {
        name: [made.levels[run] for run in runs if run in made.levels]
        for name, runs in sets.items()
    }
    every = [level for found in of.values() for one in found for level in one["levels"]]
    sigma = {level["t"]: level["sigma"] for level in every}
    rows: list[Row] = []
    for t in sorted(sigma):
        row: Row = {"name": f"t {t}", "label": f"t = {t}", "sigma": sigma[t]}
        for name, found in of.items():
            here = [level for one in found for level in one["levels"] if level["t"] == t]
            row[f"{name}_loss"] = spread(level["loss"] for level in here)
            row[f"{name}_left"] = spread(level["unexplained_fixation"] for level in here)
        rows.append(row)
    counted = [
        f"{name}: n = {found[0]['n_windows']:,} held-out windows, {in_seeds(len(found))}"
        for name, found in of.items()
        if found
    ]
    return lay_out(
        "What is left of fixational motion at each noise level",
        [
            "Share of the sample-to-sample motion within fixations (mean square) that the network "
            "does not recover from a window noised to step t: 0 is all recovered, 1 nothing. "
            "Noise: its SD over the signal's scale. Loss: mean squared error of the predicted "
            "noise. Not in the paper; there is no floor, since nothing is generated.",
            "; ".join(counted) + ".",
        ],
        {
            "sigma": "noise",
            "position_loss": "position: loss",
            "position_left": "position: left unexplained",
            "velocity_loss": "velocity: loss",
            "velocity_left": "velocity: left unexplained",
        },
        rows,
    )


def weights(made: Artefacts) -> Table:
    """What rounding the weights costs."""
    plan = made.plan
    parts = {
        plan.reference: Comparison(made.evaluations["weights"]),
        plan.velocity_sets[0]: Comparison(made.evaluations["velocity-weights"]),
    }
    rows: list[Row] = []
    for run, compared in parts.items():
        sets = {"full weights": run}
        sets |= {f"largest weight = {n} steps": plan.with_levels(run, n) for n in LEVELS}
        for label, one in {**sets, "floor (training people)": FLOOR}.items():
            rows.append(
                {
                    "name": f"{run} {FLOOR}" if one == FLOOR else one,
                    "label": f"{run}, {label}",
                    "js_8": compared.means("js", 8)(one),
                    "ks_8": compared.means("ks", 8)(one),
                    "ratio": 1.0 if one == FLOOR else compared.ratio(None, one),
                    "fgd": fgd_of(made, one) if run == plan.reference else None,
                }
            )
    said = [f"{run}: {compared.said(1)}" for run, compared in parts.items()]
    return lay_out(
        "Rounded weights",
        [
            "Weights rounded so that a row's largest is so many steps from zero, as tried for "
            "models small enough to travel with the package. Not in the paper.",
            *said,
            "The overall ratio is the geometric mean over all families of quantities.",
            FLOOR_MEANS,
        ],
        {
            "js_8": "mean JS of eight",
            "ks_8": "mean KS of eight",
            "ratio": "overall ratio to the floor",
            "fgd": "FGD",
        },
        rows,
    )


def beyond(made: Artefacts) -> Table:
    """What the paper did not measure: ratios to the floor, classifiers, memorisation."""
    plan, position = made.plan, of_position(made)
    velocity = Comparison(made.evaluations["velocity"])

    def row(name: str, label: str, compared: Comparison, sets: Sequence[str]) -> Row:
        is_floor = sets == [FLOOR]
        ratios = {
            f"ratio_{family or 'overall'}": 1.0
            if is_floor
            else spread(compared.ratio(family, one) for one in sets)
            for family in (None, *FAMILIES)
        }
        tests = {
            key: spread(compared.test(test, key, one) for one in sets)
            for test, key in (
                ("c2st", "features_accuracy"),
                ("c2st", "snippets_accuracy"),
                ("memorisation", "share_of_copies"),
            )
        }
        return {"name": name, "label": label, **ratios, **tests}

    rows = [
        row("position", "position model", position, plan.position_sets),
        *(row(one, BASELINE_TITLES[one], position, [one]) for one in BASELINES),
        row("position floor", "floor of the position windows", position, [FLOOR]),
        row("velocity", "velocity model", velocity, plan.velocity_sets),
        row("velocity floor", "floor of the velocity windows", velocity, [FLOOR]),
    ]
    return lay_out(
        "Beyond the paper: ratios to the floor, classifiers, copies",
        [
            "Ratio: distance to the held-out people over that of the training people, geometric "
            "mean over a family's quantities, and over families; 1 is as near as other people. "
            "C2ST: accuracy of a classifier that tells real from generated on people it has not "
            "seen, 0.5 is chance. Copies: share of windows nearer to a training window than 1 % of "
            "unseen people's are, 0.01 by chance.",
            f"Position: {position.said(len(plan.position_sets))}",
            f"Velocity: {velocity.said(len(plan.velocity_sets))}",
            FLOOR_MEANS,
        ],
        {
            "ratio_overall": "overall ratio",
            **{f"ratio_{family}": f"{family} ratio" for family in FAMILIES},
            "features_accuracy": "C2ST, features",
            "snippets_accuracy": "C2ST, snippets",
            "share_of_copies": "copies",
        },
        rows,
    )
