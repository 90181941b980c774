"""Tables: every table of the paper, with our number, the paper's and the real-vs-real floor.

tables.toml says what each table shows and requires; the function of the same name in table_rows.py
gives its rows. `make_results` builds all that the artefacts allow, and the verdicts on the claims.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gazediffusion.evaluation.features import IVT_THRESHOLD
from gazediffusion.generation.baselines import SMOOTHING_CELLS
from gazediffusion.reproduction.artefacts import Artefacts, Required
from gazediffusion.reproduction.binning import fewer_bins
from gazediffusion.reproduction.claims import evaluate_claims
from gazediffusion.reproduction.further_rows import FURTHER_ROWS
from gazediffusion.reproduction.measures import Comparison
from gazediffusion.reproduction.paper import read_data
from gazediffusion.reproduction.plan import Plan
from gazediffusion.reproduction.rows import Row
from gazediffusion.reproduction.table_rows import ROWS

FORMAT = "gazediffusion-reproduction"
FORMAT_VERSION = 3


@dataclass(frozen=True)
class Table:
    """What a table shows and requires, see tables.toml."""

    title: str
    section: str
    of: str
    columns: Mapping[str, str]
    note: str
    floor_below: bool = False
    evaluations: Sequence[str] = ()
    fgd: Sequence[str] = ()
    runs: Sequence[str] = ()
    levels: Sequence[str] = ()
    bounds: Sequence[str] = ()

    def required(self, plan: Plan) -> Required:
        """The artefacts that it is built from."""
        sets = plan.named(self.fgd)
        return {
            "evaluations": list(self.evaluations),
            "frechet": ["train", *sets] if sets else [],
            "histories": plan.named(self.runs),
            "levels": plan.named(self.levels),
            "bounds": plan.named(self.bounds),
        }

    def described(self, plan: Plan) -> dict[str, Any]:
        """What results.json says of it beside its rows."""
        values = {
            "reference": plan.reference,
            "whole": plan.whole[0],
            "steps": plan.position.sampling_steps,
            "eta": f"{plan.position.eta:g}",
            "objective": plan.position.objective,
            "threshold": f"{IVT_THRESHOLD:g}",
            "smoothing": f"{SMOOTHING_CELLS:g}",
            "fewer_bins": fewer_bins(),
        }
        kept = ("title", "section", "of", "columns", "note", "floor_below")
        shown = {key: value for key, value in asdict(self).items() if key in kept}
        return {**shown, "note": self.note.format(**values)}


TABLES = {name: Table(**values) for name, values in read_data("tables").items()}


def requirements(plan: Plan, names: Sequence[str]) -> Required:
    """What the tables of these names are built from."""
    parts = [TABLES[name].required(plan) for name in names]
    return {
        kind: list(dict.fromkeys(name for part in parts for name in part[kind]))
        for kind in ("evaluations", "frechet", "histories", "levels", "bounds")
    }


def make_results(made: Artefacts, only: Sequence[str] = ()) -> dict[str, Any]:
    """The tables of these names that can be built, and the verdicts, as plain values.

    only: all tables if it is empty.
    """
    names = [name for name in only or TABLES if made.has(TABLES[name].required(made.plan))]
    rows = rows_of(made, names)
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


def rows_of(made: Artefacts, names: Sequence[str]) -> dict[tuple[str, str, str], Row]:
    """The rows of tables beside the paper's numbers, with their bootstrap replicates, by key."""
    return {
        (name, row.row, row.column): row.beside_paper(name)
        for name in names
        for row in (ROWS | FURTHER_ROWS)[name](made)
    }


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
