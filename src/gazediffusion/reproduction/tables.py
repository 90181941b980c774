"""Tables: every table of the paper, with our number, the paper's and the real-vs-real floor.

TABLES says for each table what it shows, what it needs and which function of table_rows.py gives
its rows. `make_results` builds all that the artefacts allow, and the verdicts on the claims.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gazediffusion.evaluation.features import IVT_THRESHOLD
from gazediffusion.generation.baselines import SMOOTHING_CELLS
from gazediffusion.reproduction import table_rows
from gazediffusion.reproduction.artefacts import Artefacts, Required
from gazediffusion.reproduction.claims import evaluate_claims
from gazediffusion.reproduction.measures import Comparison
from gazediffusion.reproduction.plan import BASELINES, EvaluationName, Plan
from gazediffusion.reproduction.rows import Row

FORMAT = "gazediffusion-reproduction"
FORMAT_VERSION = 2
POSITION, VELOCITY = "Position model", "Velocity model"
TRAINING, BEYOND = "Training and noise levels", "Beyond the paper"
_DISTANCES = {"ks": "KS", "js": "JS (nats)"}

Names = Callable[[Plan], list[str]]


def _none(plan: Plan) -> list[str]:
    return []


def _both_objectives(plan: Plan) -> list[str]:
    return [plan.reference, plan.x0]


@dataclass(frozen=True)
class Table:
    """What a table shows and needs.

    section: of the page. rows: gives them. of: what a row is. columns: key -> title.
    note: sentences below it; names in braces are those of `note_values`.
    evaluations, fgd, runs, levels: what it needs; fgd are sets whose bottleneck features are
        needed beside those of "real" and "train", runs those whose histories are.
    floor_below: the floor, the same for every row, is a row of its own at the end.
    """

    title: str
    section: str
    rows: Callable[[Artefacts], Iterable[Row]]
    of: str
    columns: Mapping[str, str]
    note: str
    evaluations: tuple[EvaluationName, ...] = ()
    fgd: Names = _none
    runs: Names = _none
    levels: bool = False
    floor_below: bool = False

    def can_be_built(self, made: Artefacts) -> bool:
        """Whether all that it needs is there."""
        sets = self.fgd(made.plan)
        features = [*sets, "real", "train"] if sets else []
        return (
            all(name in made.evaluations for name in self.evaluations)
            and all(name in made.features for name in features)
            and all(name in made.histories for name in self.runs(made.plan))
            and (bool(made.levels) or not self.levels)
        )

    def described(self, plan: Plan) -> dict[str, Any]:
        """What results.json says of it beside its rows."""
        return {
            "title": self.title,
            "section": self.section,
            "of": self.of,
            "columns": dict(self.columns),
            "note": self.note.format(**note_values(plan)),
            "floor_below": self.floor_below,
        }


def note_values(plan: Plan) -> dict[str, Any]:
    """The values that notes name in braces."""
    return {
        "reference": plan.reference,
        "steps": plan.position.sampling_steps,
        "eta": f"{plan.position.eta:g}",
        "objective": plan.position.objective,
        "threshold": f"{IVT_THRESHOLD:g}",
        "smoothing": f"{SMOOTHING_CELLS:g}",
    }


TABLES: dict[str, Table] = {
    "features": Table(
        "Kinematic features: KS and JS",
        POSITION,
        table_rows.features,
        "feature",
        _DISTANCES,
        "Distances between generated windows and those of the held-out participants. The mean of "
        'eight is the paper\'s row "Mean"; it leaves out path length, which is mean speed times a '
        "constant. The paper's mean KS of nine is computed from its rows.",
        evaluations=("position",),
    ),
    "w1": Table(
        "Kinematic features: Wasserstein-1 distance",
        POSITION,
        table_rows.w1,
        "feature",
        {"w1": "W1"},
        "Each row is in its feature's own unit. Rows cannot be compared with each other.",
        evaluations=("position",),
    ),
    "markov": Table(
        "The kinematic Markov baseline",
        POSITION,
        table_rows.markov,
        "feature",
        {
            "real": "real mean",
            "ks": "KS of Markov",
            "ks_model": "KS of diffusion",
            "js": "JS of Markov",
            "js_model": "JS of diffusion",
        },
        "Real means are those of the held-out participants. The baseline is fitted to the training "
        "participants and drawn once, so it has no SD. Its transitions are smoothed by a Gaussian "
        "of {smoothing} cells. The paper does not give this width, and the baseline depends on it. "
        'Floors are in the table "Kinematic features: KS and JS".',
        evaluations=("position",),
    ),
    "fgd": Table(
        "Frechet Gaze Distance",
        POSITION,
        table_rows.fgd,
        "set",
        {"fgd": "FGD"},
        "Frechet distance of bottleneck features of the reference run ({reference}). Baselines are "
        "drawn once. The scale is that of the reference network, which differs from the paper's: "
        "compare numbers within a column.",
        fgd=lambda plan: [*plan.position_sets, *BASELINES],
    ),
    "events": Table(
        "Fixations and saccades: means",
        POSITION,
        table_rows.events,
        "statistic",
        {
            "real": "held-out participants",
            "train": "training participants",
            "generated": "generated",
            "generated_seeds": "generated, all seeds",
            "above_train": "generated against training participants (%)",
            "above_real": "generated against held-out participants (%)",
        },
        "I-VT at {threshold} normalized units per sample. The generated mean is that of the "
        "reference run ({reference}), as in the paper. Floor: training against held-out "
        "participants.",
        evaluations=("position",),
    ),
    "event-distances": Table(
        "Fixations and saccades: KS and JS",
        POSITION,
        table_rows.event_distances,
        "statistic",
        _DISTANCES,
        "Distances of the reference run ({reference}), as in the paper. Events are pooled over "
        "windows. Counts are one per window.",
        evaluations=("position",),
    ),
    "panel": Table(
        "The four-metric framework",
        POSITION,
        table_rows.panel,
        "metric",
        {"model": "diffusion", "markov": "kinematic Markov"},
        "The paper shows these four as curves and gives no numbers. JS (nats) of all samples "
        "pooled.",
        evaluations=("position",),
    ),
    "sampling": Table(
        "Sampling: DDIM steps, eta, averaged weights",
        POSITION,
        table_rows.sampling,
        "setting, evaluated by",
        _DISTANCES,
        "Each row changes one setting of the reference run ({reference}: {steps} steps, eta {eta}, "
        "averaged weights, predicts {objective}). Steps and weights are evaluated by mean speed, "
        "eta by the mean of eight features, as in the paper. The last row is not in the paper.",
        evaluations=("sampling",),
    ),
    "objective": Table(
        "The objective: predicting eps or x0",
        POSITION,
        table_rows.objective,
        "objective",
        {"loss": "best validation loss", "fgd": "FGD"},
        "The losses are mean squared errors of different targets (noise and gaze). They cannot be "
        "compared with each other; the Frechet Gaze Distances can.",
        fgd=_both_objectives,
        runs=_both_objectives,
    ),
    "seeds": Table(
        "Seeds of the position model",
        POSITION,
        table_rows.seeds,
        "run",
        {
            "loss": "best validation loss",
            "js_8": "mean JS of eight",
            "ks_8": "mean KS of eight",
            "fgd": "FGD",
            "x_std_ks": "x std, KS",
            "y_std_ks": "y std, KS",
            "x_std_js": "x std, JS",
            "y_std_js": "y std, JS",
        },
        "One row per seed. Shown: whether the validation loss ranks the seeds, and whether x-std "
        "is farther from the held-out participants than y-std in each seed.",
        evaluations=("position",),
        fgd=lambda plan: plan.position_sets,
        runs=lambda plan: plan.position_sets,
        floor_below=True,
    ),
    "downstream": Table(
        "Downstream: training on synthetic windows, testing on real ones",
        POSITION,
        table_rows.downstream,
        "training set",
        {"r2": "R2", "mae": "MAE (fixations)"},
        "A small network predicts a window's number of fixations from the nine features. Higher R2 "
        "and lower MAE are better. The SD of TRTR is over folds of participants, that of the floor "
        "over the predictor's seeds. The floor trains on as many real windows of the training "
        "participants as there are synthetic ones.",
        evaluations=("position",),
    ),
    "velocity": Table(
        "Velocity: JS, lag-one autocorrelation, spectrum",
        VELOCITY,
        table_rows.velocity,
        "quantity",
        {"js": "JS (nats)", "rho1": "delta rho1", "psd": "D_PSD"},
        "JS of all samples pooled; path length has one value per window. delta rho1: difference of "
        "mean lag-one autocorrelations. D_PSD: mean over frequencies of the absolute difference of "
        "mean normalized spectra. The paper calls D_PSD an L1 distance. If its sum is normalized "
        "in another way, its scale differs from ours by a constant.",
        evaluations=("velocity",),
    ),
    "training": Table(
        "Training",
        TRAINING,
        table_rows.training,
        "run",
        {
            "objective": "predicts",
            "epochs": "epochs",
            "loss": "best validation loss",
            "epoch": "its epoch",
            "training_loss": "training loss at that epoch",
            "minutes": "wall time (min)",
            "device": "device",
            "parameters": "parameters",
        },
        "Losses are mean squared errors of averaged weights on the held-out windows. Those of "
        "different objectives or representations cannot be compared. The paper's epoch and "
        "training loss are those of its reference run, whose seed it does not give. A loss has no "
        "floor.",
        runs=lambda plan: list(plan.runs),
    ),
    "levels": Table(
        "Fixational motion left unexplained at each noise level",
        TRAINING,
        table_rows.levels,
        "noise step",
        {
            "sigma": "noise",
            "position_loss": "position: loss",
            "position_left": "position: left unexplained",
            "velocity_loss": "velocity: loss",
            "velocity_left": "velocity: left unexplained",
        },
        "Share of the mean squared sample-to-sample motion within fixations that the network does "
        "not recover from a window noised to step t: 0 is all recovered, 1 is nothing. Noise: its "
        "SD over the signal's scale. Loss: mean squared error of the predicted noise. Not in the "
        "paper. Nothing is generated, so there is no floor.",
        levels=True,
    ),
    "weights": Table(
        "Rounded weights",
        BEYOND,
        table_rows.weights,
        "set",
        {
            "js_8": "mean JS of eight",
            "ks_8": "mean KS of eight",
            "overall": "overall ratio to the floor",
            "fgd": "FGD",
        },
        "Weights are rounded so that the largest of a row is this many steps from zero. Packaged "
        "models are stored so. The overall ratio is the geometric mean over all families.",
        evaluations=("weights", "velocity-weights"),
        fgd=lambda plan: plan.evaluations["weights"],
    ),
    "beyond": Table(
        "Ratios to the floor, classifiers, copies",
        BEYOND,
        table_rows.beyond,
        "set",
        {
            "ratio_overall": "overall ratio",
            **{f"ratio_{family}": f"{family} ratio" for family in table_rows.FAMILIES},
            "features_accuracy": "C2ST, features",
            "snippets_accuracy": "C2ST, snippets",
            "share_of_copies": "copies",
        },
        "A family's ratio is the geometric mean over its quantities, the overall ratio that over "
        "families. C2ST: accuracy of a classifier of real and generated windows on participants "
        "that it was not trained on; 0.5 is chance. Copies: share of windows nearer to a training "
        "window than 1 % of the held-out participants' windows are; 0.01 is chance.",
        evaluations=("position", "velocity"),
    ),
}


def requirements(plan: Plan, names: Sequence[str]) -> Required:
    """What the tables of these names are built from."""
    needs = [TABLES[name] for name in names]
    sets = {name for one in needs for name in one.fgd(plan)}
    has_levels = any(one.levels for one in needs)
    return Required(
        evaluations=list(dict.fromkeys(name for one in needs for name in one.evaluations)),
        features=["real", "train", *sorted(sets)] if sets else [],
        histories=list(dict.fromkeys(name for one in needs for name in one.runs(plan))),
        levels=[*plan.position_sets, *plan.velocity_sets] if has_levels else [],
        shown=[plan.reference],
    )


def make_results(made: Artefacts, only: Sequence[str] = ()) -> dict[str, Any]:
    """The tables of these names that can be built, and the verdicts, as plain values.

    only: all tables if it is empty.
    """
    names = [name for name in only or TABLES if TABLES[name].can_be_built(made)]
    rows = {
        (name, row.row, row.column): row.beside_paper(name)
        for name in names
        for row in TABLES[name].rows(made)
    }
    results = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "about": _about(made),
        "tables": {name: TABLES[name].described(made.plan) for name in names},
        "rows": [row.to_json() for row in rows.values()],
        "claims": evaluate_claims(rows),
    }
    plain: dict[str, Any] = json.loads(json.dumps(results, allow_nan=False))
    return plain


def _about(made: Artefacts) -> dict[str, Any]:
    plan = made.plan
    return {
        **made.about,
        "plan": plan.name,
        "seeds": {"position": list(plan.position.seeds), "velocity": list(plan.velocity.seeds)},
        "reference": plan.reference,
        "n_compared": {name: one["about"]["n_common"] for name, one in made.evaluations.items()},
        "settings": plan.to_json(),
        "choices": {
            "js_bins": next((one["about"]["bins"] for one in made.evaluations.values()), None),
            "markov_smoothing_cells": SMOOTHING_CELLS,
            "fixation_threshold": IVT_THRESHOLD,
        },
        "median_step": _median_step(made),
    }


def _median_step(made: Artefacts) -> float | None:
    """The held-out participants' median motion per sample, normalized, from their log-speeds."""
    for evaluation in made.evaluations.values():
        row = Comparison(evaluation).quantity("velocity", "log_speed")
        if row is not None:
            edges, density = (np.array(row["histogram"][key]) for key in ("edges", "real"))
            share = np.cumsum(density) / density.sum()
            median = np.interp(0.5, [0.0, *share], edges)
            return float(np.exp(median)) / float(made.about["rate_hz"])
    return None
