"""Summarising real gaze: what a windows file comes to in numbers that may travel.

No number is of fewer than three people, also after taking the tasks' numbers from all tasks'. How a
summary is read and judged by: real_summary.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.comparison import bins_of
from gazediffusion.evaluation.evaluation import (
    curves_of,
    main_sequence_of,
    plain_values,
    scalar_curves,
)
from gazediffusion.evaluation.gaze_sets import GazeSet, GazeSets, arrange
from gazediffusion.evaluation.quantities import Measured, Protocol, Quantity, measure
from gazediffusion.evaluation.summary import (
    ALL,
    AMPLITUDE,
    SHOWN_CURVES,
    SUMMARY_FORMAT,
    Floats,
    Numbers,
    Sketch,
)
from gazediffusion.version import __version__

MIN_PEOPLE = 3
# Numbers of windows that floors are kept for, up to what the training people give.
_SIZES = (25, 50, 100, 200, 400, 800, 1600)
# A floor is the mean over several draws, of at most so many windows together.
_DRAWN_WINDOWS = 1600
_PROTOCOLS: tuple[Protocol, ...] = ("position", "velocity")


def summarise(
    windows: Windows, name: str, citation: str, n_draws: int = 8, seed: int = 0
) -> dict[str, Any]:
    """What a windows file comes to in numbers, for all tasks and for each, as plain values.

    n_draws: how many draws of the training people a floor at few windows is the mean of.
    """
    if reason := _too_few(windows):
        raise GazeError(f"a summary needs {MIN_PEOPLE} people in each group, not {reason}")
    left_out = _left_out(windows)
    parts = {ALL: windows}
    if len(windows.tasks) > 1:
        kept = [task for task in windows.tasks if task not in left_out]
        parts |= {task: windows.of_task(task) for task in kept}
    found = {key: _summarise_part(part, n_draws, seed) for key, part in parts.items()}
    summary = {
        "format": SUMMARY_FORMAT,
        "format_version": 1,
        "gazediffusion_version": __version__,
        "name": name,
        "citation": citation,
        "data_sha256": windows.provenance.get("data_sha256"),
        "seed": seed,
        "rate_hz": windows.rate_hz,
        "length": windows.length,
        "screen": asdict(windows.screen),
        "tasks": list(windows.tasks),
        "fewest_people": min(part["fewest_people"] for part in found.values()),
        "left_out": left_out,
        "parts": found,
    }
    rounded: dict[str, Any] = plain_values(_rounded(summary))
    return rounded


def _left_out(windows: Windows) -> dict[str, str]:
    """The tasks that have no part of their own, and why.

    What the parts leave of all tasks can be computed from them, so that must be of enough people
    as well: where it is not, the smallest tasks are left out until it is.
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
    """The numbers of people in words where one is too small, and nothing where both will do."""
    n_held_out, n_train = map(_n_people, (windows.held_out, windows.train))
    is_enough = min(n_held_out, n_train) >= MIN_PEOPLE
    return "" if is_enough else f"{n_held_out} held-out and {n_train} training people"


def _n_people(windows: Windows) -> int:
    return len(np.unique(windows.participant))


def _summarise_part(windows: Windows, n_draws: int, seed: int) -> dict[str, Any]:
    sets = arrange(windows.held_out, {}, windows.train, seed)
    assert sets.train is not None
    people = {"real": sets.real, "train": sets.train}
    measured = {name: _measure(one, windows) for name, one in people.items()}
    n_people = {
        key: min(_people_behind(measured[name].quantities[key], people[name]) for name in people)
        for key in measured["real"].quantities
    }
    kept = {
        key: tuple(one.quantities[key] for one in measured.values())
        for key, n in n_people.items()
        if n >= MIN_PEOPLE
    }
    edges = {key: _edges(*both) for key, both in kept.items()}
    sketches = {name: Sketch.of(one, edges) for name, one in measured.items()}
    sizes = [*(size for size in _SIZES if size < sets.n_common), sets.n_common]
    given = (sketches["real"], edges, n_draws, seed)
    floors = [_floors(sets, windows, size, *given) for size in sizes]
    # Some people of a small draw may have none of it, no microsaccade say.
    kept = {key: both for key, both in kept.items() if _is_known(floors, key)}

    def by_size(key: str) -> dict[str, Any]:
        return {
            word: {kind: [one[word][key][kind] for one in floors] for kind in floors[0][word][key]}
            for word in ("floor", "halves")
        }

    curves = curves_of(measured)
    fits = main_sequence_of(measured, windows.screen).get("sets", {})
    return {
        "sets": {
            "real": {
                "n_windows": len(windows.held_out),
                "n_participants": _n_people(windows.held_out),
            },
            "train": {"n_windows": len(windows.train), "n_participants": _n_people(windows.train)},
        },
        "fewest_people": min(n_people[key] for key in kept),
        "sizes": sizes,
        "quantities": {
            key: {
                "low": edges[key][0],
                "high": edges[key][-1],
                **{name: one.shares[key] for name, one in sketches.items()},
                "mean": {
                    name: np.mean(one.quantities[key].values) for name, one in measured.items()
                },
                "n": {name: len(one.quantities[key].values) for name, one in measured.items()},
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
            for name, _, _ in scalar_curves()
        },
        "speed_profile": curves["mean_speed_profile"]["sets"],
        "main_sequence": {
            name: {key: fit[key] for key in ("slope", "intercept", "spread", "n")}
            for name, fit in fits.items()
            if AMPLITUDE in kept
        },
    }


def _measure(one: GazeSet, windows: Windows) -> Measured:
    return measure(one.gaze, windows.rate_hz, windows.screen, _PROTOCOLS, one.group)


def _people_behind(quantity: Quantity, one: GazeSet) -> int:
    return len(np.unique(one.group[quantity.window]))


def _edges(real: Quantity, train: Quantity) -> Floats:
    """Edges (bin + 1,) over the range of the people, their ends as they will be read again."""
    edges = bins_of(real, train)
    return np.linspace(_rounded(edges[0]), _rounded(edges[-1]), len(edges))


def _floors(
    sets: GazeSets,
    windows: Windows,
    size: int,
    real: Sketch,
    edges: Mapping[str, Floats],
    n_draws: int,
    seed: int,
) -> dict[str, Numbers]:
    """Distances of training to held-out people, and between halves, at so many windows a set."""
    assert sets.training is not None
    rng = np.random.default_rng([seed, size])
    found: dict[str, list[Numbers]] = {"floor": [], "halves": []}
    for _ in range(min(n_draws, max(1, _DRAWN_WINDOWS // size))):
        train, first, second = (
            Sketch.of(_measure(one.cut(size, rng), windows), edges)
            for one in (sets.training, *sets.halves)
        )
        found["floor"].append(real.distances(train, edges))
        found["halves"].append(first.distances(second, edges))
    return {word: _mean_of(draws) for word, draws in found.items()}


def _is_known(floors: list[dict[str, Numbers]], key: str) -> bool:
    return bool(np.isfinite([one[word][key]["w1"] for one in floors for word in one]).all())


def _mean_of(draws: list[Numbers]) -> Numbers:
    return {
        key: {kind: float(np.mean([draw[key][kind] for draw in draws])) for kind in kinds}
        for key, kinds in draws[0].items()
    }


def _rounded(value: Any) -> Any:
    """Numbers to five digits, arrays as lists: a summary says no more than it knows."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | np.ndarray):
        return [_rounded(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value
