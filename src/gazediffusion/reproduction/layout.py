"""Laying out tables: what all of them share.

A table is {"title", "about", "columns": [{"key", "title"}], "rows": [{"name", "label", key: cell}]}
with cells as in cells.py. SDs are over seeds, with ddof=1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gazediffusion.evaluation.metrics import frechet_of
from gazediffusion.reproduction import paper
from gazediffusion.reproduction.artefacts import Artefacts
from gazediffusion.reproduction.cells import Cell, Table, of_paper, over, spread
from gazediffusion.reproduction.comparing import FLOOR, Comparison

BASELINE_TITLES = {
    "kinematic-markov": "kinematic Markov",
    "positional-markov": "positional Markov",
    "uniform": "uniform (the paper's random)",
    "gaussian": "Gaussian",
}
FLOOR_MEANS = (
    "Floor: the same number for the training people in place of the model, at the same n; a model "
    "at the floor is as near to the held-out people as other people are. Lower is better."
)

Row = dict[str, Any]


def lay_out(
    title: str, about: Sequence[str], columns: Mapping[str, str], rows: Iterable[Row]
) -> Table:
    """A table; `about` are the sentences of its caption, columns are key -> title."""
    return {
        "title": title,
        "about": " ".join(about),
        "columns": [{"key": key, "title": text} for key, text in columns.items()],
        "rows": list(rows),
    }


def beside(
    key: str,
    of: Callable[[str], float | None],
    sets: Sequence[str],
    published: paper.Published | None,
) -> dict[str, Cell]:
    """Our number over sets, the paper's, the floor, and ours over the floor."""
    floor = of(FLOOR)
    return {
        key: spread(map(of, sets)),
        f"{key}_paper": of_paper(published),
        f"{key}_floor": floor,
        f"{key}_ratio": spread(over(of(one), floor) for one in sets),
    }


def columns_of(key: str, title: str, with_ratio: bool = True) -> dict[str, str]:
    """The columns of what `beside` gives."""
    ratio = {f"{key}_ratio": f"{title}, ours / floor"} if with_ratio else {}
    return {
        key: f"{title}, ours",
        f"{key}_paper": f"{title}, paper",
        f"{key}_floor": f"{title}, floor",
        **ratio,
    }


def named(title: str, unit: str) -> str:
    """A quantity's label with its unit."""
    return f"{title} ({unit})" if unit else title


def of_position(made: Artefacts) -> Comparison:
    """The evaluation of the position model and the baselines."""
    return Comparison(made.evaluations["position"])


def fgd_of(made: Artefacts, one: str) -> float:
    """The Frechet Gaze Distance of a set, or of FLOOR, to the held-out people."""
    return frechet_of(made.features["real"], made.features["train" if one == FLOOR else one])


def fgd_said(made: Artefacts) -> str:
    """What a Frechet Gaze Distance is, with its numbers of windows."""
    return (
        "Frechet Gaze Distance of bottleneck features of the reference run "
        f"({made.plan.reference}), n = {len(made.features['train']):,} windows of each set against "
        f"{len(made.features['real']):,} real ones."
    )
