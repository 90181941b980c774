"""Making what real_gaze.py reads: summaries and definitions of the benchmark, of a windows file.

No number is of fewer than three participants, also after subtracting the tasks' numbers from those
of all tasks. The words of the file are those of its format. Of a definition, the floor of the
distances is of all training participants; balls are fitted to half of them, and the other half
gives precision and coverage of the row of real windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from gazediffusion import __version__, seeds
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.benchmark import figures_of
from gazediffusion.evaluation.deep_test import Progress
from gazediffusion.evaluation.features import kinematic_features
from gazediffusion.evaluation.headline import FAMILIES, Counted
from gazediffusion.evaluation.metrics import Estimate, bins_of, central
from gazediffusion.evaluation.quantities import (
    FEATURES,
    SCALARS,
    Measured,
    Quantity,
    curves_of,
    main_sequence_of,
)
from gazediffusion.evaluation.real_gaze import (
    AMPLITUDE,
    DEFINITION_FORMAT,
    SHOWN_CURVES,
    SUMMARY_FORMAT,
    VERSION,
    Balls,
    Definition,
    Floats,
    Numbers,
    Sketch,
    nearest_centre,
)
from gazediffusion.evaluation.result import ALL, plain_values
from gazediffusion.evaluation.sets import MIN_WINDOWS, GazeSet, GazeSets, arrange, stream
from gazediffusion.seeds import Stream

MIN_PARTICIPANTS = 3
# Numbers of windows that floors are kept for, up to those of the training participants.
_SIZES = (MIN_WINDOWS, 50, 100, 200, 400, 800, 1600)
# A floor is the mean over several draws, of at most this many windows together.
_DRAWN_WINDOWS = 1600
DIGITS = 5  # significant digits of the numbers in a file
N_WINDOWS, N_BALLS, N_DRAWS = 300, 64, 40  # of a definition
# Features of balls: path length is mean speed again.
BALL_FEATURES = tuple(name for name in FEATURES if name != "path_length")
INSIDE = 0.95  # of the windows that a ball was fitted to
_N_INITIAL = 4
_SEED = 0
# Figures of what was fitted to half of the training participants.
_FITTED = ("precision", "coverage")


def summarise(windows: Windows, name: str, citation: str, n_draws: int = 8) -> dict[str, Any]:
    """A windows file as numbers, for all tasks and for each, as plain values.

    n_draws: how many draws of the training participants a floor at few windows is the mean of.
    """
    if reason := _too_few(windows):
        raise GazeError(
            f"a summary needs {MIN_PARTICIPANTS} participants on either side, not {reason}"
        )
    left_out = _left_out(windows)
    parts = {ALL: windows}
    if len(windows.tasks) > 1:
        kept = [task for task in windows.tasks if task not in left_out]
        parts |= {task: windows.of_task(task) for task in kept}
    found = {key: _summarise_part(part, n_draws) for key, part in parts.items()}
    summary = {
        "format": SUMMARY_FORMAT,
        "format_version": 1,
        "gazediffusion_version": __version__,
        "name": name,
        "citation": citation,
        "seed": _SEED,
        **_shape_of(windows),
        "tasks": list(windows.tasks),
        "fewest_people": min(part["fewest_people"] for part in found.values()),
        "left_out": left_out,
        "parts": found,
    }
    rounded: dict[str, Any] = plain_values(summary, digits=DIGITS)
    return rounded


def _shape_of(windows: Windows) -> dict[str, Any]:
    return {
        "data_sha256": windows.provenance.get("data_sha256"),
        "rate_hz": windows.rate_hz,
        "length": windows.length,
        "screen": asdict(windows.screen),
    }


def _left_out(windows: Windows) -> dict[str, str]:
    """The tasks that have no part of their own, and why.

    What the parts leave of all tasks can be computed from them, so that must be of enough
    participants as well: where it is not, the smallest tasks are left out until it is.
    """
    by_task = {task: windows.of_task(task) for task in windows.tasks}
    left_out = {task: reason for task, part in by_task.items() if (reason := _too_few(part))}
    kept = sorted(set(by_task) - set(left_out), key=lambda task: -len(by_task[task]))
    while left_out and kept:
        places = [windows.tasks.index(task) for task in left_out]
        reason = _too_few(windows.select(np.isin(windows.task, places)))
        if not reason:
            break
        left_out[kept.pop()] = f"without it, what is left out is of {reason}"
    return left_out


def _too_few(windows: Windows) -> str:
    """The numbers of participants in words where one is too small, and nothing otherwise."""
    n_held_out, n_train = map(_n_participants, (windows.held_out, windows.train))
    is_enough = min(n_held_out, n_train) >= MIN_PARTICIPANTS
    return "" if is_enough else f"{n_held_out} held-out and {n_train} training participants"


def _n_participants(windows: Windows) -> int:
    return len(np.unique(windows.participant))


def _sizes_of(windows: Windows) -> dict[str, dict[str, int]]:
    return {
        who: {"n_windows": len(one), "n_participants": _n_participants(one)}
        for who, one in (("real", windows.held_out), ("train", windows.train))
    }


def _summarise_part(windows: Windows, n_draws: int) -> dict[str, Any]:
    sets = arrange(windows.held_out, {}, windows.train, _SEED)
    assert sets.train is not None
    measured = {"real": sets.real.measure(), "train": sets.train.measure()}
    of = {
        key: {who: one.quantities[key] for who, one in measured.items()}
        for key in measured["real"].quantities
    }
    n_participants = {
        key: min(len(np.unique(one.group)) for one in both.values()) for key, both in of.items()
    }
    kept = [key for key, n in n_participants.items() if n >= MIN_PARTICIPANTS]
    edges = {key: _edges(*of[key].values()) for key in kept}
    sketches = {name: Sketch.of(one, edges) for name, one in measured.items()}
    sizes = [*(size for size in _SIZES if size < sets.n_common), sets.n_common]
    floors = [_floors(sets, size, sketches["real"], edges, n_draws) for size in sizes]
    # The participants of a small draw may have no value, for example no microsaccade.
    kept = [key for key in kept if _is_known(floors, key)]

    def by_size(key: str) -> dict[str, Any]:
        return {
            word: {kind: [one[word][key][kind] for one in floors] for kind in floors[0][word][key]}
            for word in ("floor", "halves")
        }

    fits = main_sequence_of(measured).get("sets", {}) if AMPLITUDE in kept else {}
    return {
        "sets": _sizes_of(windows),
        "fewest_people": min(n_participants[key] for key in kept),
        "sizes": sizes,
        "quantities": {
            key: {
                "low": edges[key][0],
                "high": edges[key][-1],
                **{name: one.shares[key] for name, one in sketches.items()},
                "mean": {name: one.mean for name, one in of[key].items()},
                "n": {name: len(one.values) for name, one in of[key].items()},
                **by_size(key),
            }
            for key in kept
        },
        "temporal": {
            name: {
                **{
                    who: one.curves[name]
                    for who, one in sketches.items()
                    if who == "real" or name in SHOWN_CURVES.values()
                },
                **by_size(name),
            }
            for name in SCALARS
        },
        "speed_profile": curves_of(measured)["mean_speed_profile"]["sets"],
        "main_sequence": {
            name: {key: fit[key] for key in ("slope", "intercept", "spread", "n")}
            for name, fit in fits.items()
        },
    }


def _edges(real: Quantity, train: Quantity) -> Floats:
    """Edges (bin + 1,) over the range of the real gaze, their ends rounded as in the file."""
    edges = bins_of(real, train)
    low, high = plain_values(edges[[0, -1]], digits=DIGITS)
    return np.linspace(low, high, len(edges))


def _floors(
    sets: GazeSets, size: int, real: Sketch, edges: Mapping[str, Floats], n_draws: int
) -> dict[str, Numbers]:
    """Distances of training to held-out participants, and between halves, at `size` windows."""
    assert sets.training is not None
    rng = seeds.rng(_SEED, Stream.EVALUATION, "floors", size)
    found: dict[str, list[Numbers]] = {"floor": [], "halves": []}
    for _ in range(min(n_draws, max(1, _DRAWN_WINDOWS // size))):
        train, first, second = (
            Sketch.of(one.cut(size, rng).measure(), edges) for one in (sets.training, *sets.halves)
        )
        found["floor"].append(real.distances(train, edges))
        found["halves"].append(first.distances(second, edges))
    return {
        word: {
            key: {kind: float(np.mean([draw[key][kind] for draw in draws])) for kind in kinds}
            for key, kinds in draws[0].items()
        }
        for word, draws in found.items()
    }


def _is_known(floors: list[dict[str, Numbers]], key: str) -> bool:
    return bool(np.isfinite([one[word][key]["w1"] for one in floors for word in one]).all())


def define(
    windows: Windows,
    task: str,
    citation: str,
    n_windows: int = N_WINDOWS,
    n_balls: int = N_BALLS,
    n_draws: int = N_DRAWS,
    progress: Progress = lambda name: None,
) -> dict[str, Any]:
    """The content of a definition: one task of a windows file as plain values.

    n_draws: of n_windows windows of the training participants that floors are the mean of.
    """
    of_task = windows.of_task(task)
    sides = {"real": of_task.held_out, "train": of_task.train}
    n_participants = min(map(_n_participants, sides.values()))
    if n_participants < 2 * MIN_PARTICIPANTS or len(sides["train"]) < 2 * n_windows:
        raise GazeError(f"too few participants or windows of the task {task!r} for a benchmark")
    sets = {who: GazeSet.of(who, one) for who, one in sides.items()}
    progress("measuring real gaze")
    measured = {who: one.measure() for who, one in sets.items()}
    fitted, held_back = sets["train"].halves(stream(_SEED, "benchmark halves"))
    content = {
        "format": DEFINITION_FORMAT,
        "benchmark_version": VERSION,
        "gazediffusion_version": __version__,
        "task": task,
        "n_windows": n_windows,
        "seed": _SEED,
        "real": {
            "name": "benchmark",
            "citation": citation,
            **_shape_of(of_task),
            "tasks": [task],
            "sets": _sizes_of(of_task),
        },
        "counts": Counted.of(sets["train"]).values,
        "distances": _distances(measured["real"], measured["train"]),
        "balls": vars(fit_balls(fitted, measured["real"], n_balls)),
        "training_row": {},
    }
    # What is drawn is compared with the numbers as they stand in the file.
    content = plain_values(content, digits=DIGITS)
    definition = Definition(content, "")
    drawn = []
    for number in range(n_draws):
        progress(f"floor: draw {number + 1} of {n_draws}")
        some = sets["train"].cut(n_windows, stream(_SEED, f"floor {number}"))
        drawn.append(definition.values(some.measure()))
    for key, row in definition.distances.items():
        row["floor"] = float(f"{np.mean([one[key] for one in drawn]):.{DIGITS}g}")
    content["training_row"] = _training_row(definition, sets["train"], held_back, n_draws, progress)
    found: dict[str, Any] = plain_values(content, digits=DIGITS)
    return found


def _distances(real: Measured, train: Measured) -> dict[str, dict[str, Any]]:
    """The distances of the headline: Jensen-Shannon divergences, and curves' differences.

    Speed, turning angle and path length are in two families and count once.
    """
    of_name = {one.name: key for key, one in real.quantities.items() if one.family in FAMILIES}
    both = {key: (real.quantities[key], train.quantities[key]) for key in of_name.values()}
    edges = {key: _edges(*of) for key, of in both.items()}
    sketch = Sketch.of(real, edges)
    rows: dict[str, dict[str, Any]] = {
        key: {
            "kind": "js",
            "title": both[key][0].title,
            "low": ends[0],
            "high": ends[-1],
            "real": sketch.shares[key],
            "floor": 1.0,
        }
        for key, ends in edges.items()
    }
    for name, title in SCALARS.items():
        rows[name] = {"kind": "l1", "title": title, "real": sketch.curves[name], "floor": 1.0}
    return rows


def _training_row(
    definition: Definition, train: GazeSet, held_back: GazeSet, n_draws: int, progress: Progress
) -> dict[str, Any]:
    """Figures of draws of real windows: their median and central 95 %.

    held_back: the participants whom the balls were not fitted to.
    """
    drawn = []
    for number in range(n_draws):
        progress(f"real windows: draw {number + 1} of {n_draws}")
        rng = stream(definition.content["seed"], f"training row {number}")
        both = []
        for real in (train.halves(rng)[0], held_back):
            one = real.cut(definition.n_windows, rng)
            both.append(figures_of(definition, one.measure(), one))
        drawn.append(both[0] | {key: both[1][key] for key in _FITTED})
    row: dict[str, Any] = {"worst": ""}
    for key, cell in drawn[0].items():
        if isinstance(cell, Estimate):
            values = [one[key].value for one in drawn]
            row[key] = {"value": np.median(values), "interval": central(values)}
    return row


def fit_balls(fitted: GazeSet, held_out: Measured, n_balls: int) -> Balls:
    """Balls around windows; centres of fewer than MIN_PARTICIPANTS are left out."""
    from sklearn.cluster import KMeans

    found = kinematic_features(fitted.gaze, fitted.rate_hz)
    features = np.stack([found[name] for name in BALL_FEATURES], axis=1)
    if len(features) < 2 * n_balls:
        raise GazeError(f"{n_balls} balls need {2 * n_balls} windows, not {len(features)}")
    mean, scale = features.mean(axis=0), features.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    points = (features - mean) / scale
    centre = KMeans(n_balls, n_init=_N_INITIAL, random_state=_SEED).fit(points).cluster_centers_
    while True:
        nearest, distance = nearest_centre(points, centre)
        of_ball = [np.flatnonzero(nearest == ball) for ball in range(len(centre))]
        is_kept = [len(np.unique(fitted.group[one])) >= MIN_PARTICIPANTS for one in of_ball]
        if all(is_kept):
            break
        centre = centre[is_kept]
    radius = np.array([np.quantile(distance[one], INSIDE) for one in of_ball])
    empty = Balls(BALL_FEATURES, mean, scale, centre, radius, np.zeros(len(centre)))
    ball = empty.ball_of(held_out)
    share = np.bincount(ball[ball >= 0], minlength=len(centre)) / len(ball)
    return Balls(BALL_FEATURES, mean, scale, centre, radius, share)
