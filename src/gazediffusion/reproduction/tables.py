"""Tables: every table of the paper, with our number, the paper's and the real-vs-real floor.

TABLES holds one function for each table by name, NEEDS what each is made from; `make_results`
makes all that can be made and judges the paper's claims by them, as plain values.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gazediffusion.evaluation.features import IVT_THRESHOLD
from gazediffusion.generation.baselines import SMOOTHING_CELLS
from gazediffusion.reproduction import further_tables, position_tables
from gazediffusion.reproduction.artefacts import Artefacts
from gazediffusion.reproduction.cells import Table
from gazediffusion.reproduction.claims import judge
from gazediffusion.reproduction.comparing import Comparison
from gazediffusion.reproduction.plan import BASELINES, EvaluationName, Plan

__all__ = ["FORMAT", "NEEDS", "TABLES", "Needs", "make_results"]

FORMAT = "gazediffusion-reproduction"


Names = Callable[[Plan], list[str]]


def _none(plan: Plan) -> list[str]:
    return []


def _of_both_objectives(plan: Plan) -> list[str]:
    return [plan.reference, plan.x0]


@dataclass(frozen=True)
class Needs:
    """What a table is made from.

    evaluations: their names. fgd: sets whose bottleneck features are needed, beside those of
    "real" and "train". runs: those whose histories are needed. levels: of any run.
    """

    evaluations: tuple[EvaluationName, ...] = ()
    fgd: Names = _none
    runs: Names = _none
    levels: bool = False

    def met_by(self, made: Artefacts) -> bool:
        """Whether all of it was made."""
        sets = self.fgd(made.plan)
        features = [*sets, "real", "train"] if sets else []
        return (
            all(name in made.evaluations for name in self.evaluations)
            and all(name in made.features for name in features)
            and all(name in made.histories for name in self.runs(made.plan))
            and (bool(made.levels) or not self.levels)
        )


TABLES: dict[str, Callable[[Artefacts], Table]] = {
    "features": position_tables.features,
    "w1": position_tables.w1,
    "markov": position_tables.markov,
    "fgd": position_tables.fgd,
    "events": position_tables.events,
    "event-distances": position_tables.event_distances,
    "panel": position_tables.panel,
    "sampling": position_tables.sampling,
    "objective": position_tables.objective,
    "seeds": position_tables.seeds,
    "downstream": position_tables.downstream,
    "velocity": further_tables.velocity,
    "training": further_tables.training,
    "levels": further_tables.levels,
    "weights": further_tables.weights,
    "beyond": further_tables.beyond,
}
_ON_POSITION = Needs(evaluations=("position",))
NEEDS: dict[str, Needs] = {
    "features": _ON_POSITION,
    "w1": _ON_POSITION,
    "markov": _ON_POSITION,
    "fgd": Needs(fgd=lambda plan: [*plan.position_sets, *BASELINES]),
    "events": _ON_POSITION,
    "event-distances": _ON_POSITION,
    "panel": _ON_POSITION,
    "sampling": Needs(evaluations=("sampling",)),
    "objective": Needs(fgd=_of_both_objectives, runs=_of_both_objectives),
    "seeds": Needs(
        evaluations=("position",),
        fgd=lambda plan: plan.position_sets,
        runs=lambda plan: plan.position_sets,
    ),
    "downstream": _ON_POSITION,
    "velocity": Needs(evaluations=("velocity",)),
    "training": Needs(runs=lambda plan: list(plan.runs)),
    "levels": Needs(levels=True),
    "weights": Needs(
        evaluations=("weights", "velocity-weights"), fgd=lambda plan: plan.evaluations["weights"]
    ),
    "beyond": Needs(evaluations=("position", "velocity")),
}


def make_results(artefacts: Artefacts) -> dict[str, Any]:
    """Every table that can be made, and what they say about the paper's claims, as plain values."""
    tables = {
        name: make(artefacts) for name, make in TABLES.items() if NEEDS[name].met_by(artefacts)
    }
    results = {
        "format": FORMAT,
        "about": _about(artefacts),
        "tables": tables,
        "claims": judge(tables),
    }
    plain: dict[str, Any] = json.loads(json.dumps(results, allow_nan=False))
    return plain


def _about(made: Artefacts) -> dict[str, Any]:
    plan = made.plan
    return {
        **made.about,
        "plan": plan.name,
        "seeds": {"position": plan.position.seeds, "velocity": plan.velocity.seeds},
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
    """The held-out people's median sample-to-sample motion, normalized, from their log-speeds."""
    for evaluation in made.evaluations.values():
        row = Comparison(evaluation).quantity("velocity", "log_speed")
        if row is not None:
            edges, density = (np.array(row["histogram"][key]) for key in ("edges", "real"))
            share = np.cumsum(density) / density.sum()
            median = np.interp(0.5, [0.0, *share], edges)
            return float(np.exp(median)) / float(made.about["rate_hz"])
    return None
