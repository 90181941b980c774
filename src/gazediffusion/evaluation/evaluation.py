"""Evaluation: how near synthetic gaze comes to people, against how near people come to people.

Every distance between a synthetic set and the real, held-out people stands beside two floors: the
same distance between the training people and the held-out people, and between two halves of the
training people's recordings. The headline is the ratio to the first: 1.0 means that a synthetic
window tells as much about unseen people as a real window of other people does. Every set but the
real one is cut to the same number of windows, because histogram distances shrink with n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import Windows
from gazediffusion.evaluation.comparison import (
    BINS,
    DISTANCES,
    FARTHEST,
    Distance,
    Draws,
    bins_of,
    distances,
    distances_with_intervals,
    draw_weights,
    even_counts,
)
from gazediffusion.evaluation.degree_events import main_sequence_fit
from gazediffusion.evaluation.gaze_sets import GazeSets, arrange, require_comparable
from gazediffusion.evaluation.metrics import js_from_counts
from gazediffusion.evaluation.quantities import (
    FEATURES,
    TEMPORAL,
    GroupMeans,
    Measured,
    Protocol,
    Temporal,
    measure,
)
from gazediffusion.evaluation.ratios import differences_of, means_of, ratio, ratios_of
from gazediffusion.evaluation.set_tests import FeatureMap, Progress, compute_tests
from gazediffusion.geometry import Screen
from gazediffusion.version import __version__

FORMAT = "gazediffusion-evaluation"
_MAX_POINTS = 500


@dataclass(frozen=True)
class EvaluationConfig:
    """What is computed. `quick` leaves out the bootstrap and the slow tests."""

    protocols: tuple[Protocol, ...] = ("position", "velocity")
    n_bootstrap: int = 200
    quick: bool = False
    seed: int = 0

    @property
    def n_replicates(self) -> int:
        """Bootstrap replicates in force."""
        return 0 if self.quick else self.n_bootstrap


def evaluate(
    real: Windows,
    synthetic: dict[str, Windows],
    train: Windows | None = None,
    config: EvaluationConfig | None = None,
    reference: FeatureMap | None = None,
    progress: Progress = lambda name: None,
) -> dict[str, Any]:
    """Compare synthetic sets with real, held-out windows; returns everything as plain values.

    train: the training people's windows; without them the floor is between two groups of the
        real people. reference: maps windows to features for the Frechet Gaze Distance.
    progress: hears the name of each part as it begins.
    """
    config = config or EvaluationConfig()
    require_comparable(real, synthetic, train)
    sets = arrange(real, synthetic, train, config.seed)
    results: dict[str, Any] = {
        "format": FORMAT,
        "format_version": 1,
        "about": about_of(config, sets.n_common, _notes(sets, train is None)),
        "sets": {
            "real": sets.real.described,
            "train": sets.train.described if sets.train else None,
            "synthetic": {one.name: one.described for one in sets.synthetic},
        },
    }
    screen, rate_hz = real.screen, real.rate_hz
    for one in sets.all:
        progress(f"measuring {one.name}")
        sets.measured[one.name] = measure(one.gaze, rate_hz, screen, config.protocols, one.group)
    progress("distances")
    draws = _draws(sets, config)
    quantities, replicates = _quantities(sets, config, draws)
    scalars = _scalars(sets, draws)
    means = means_of(quantities, sets.names)
    shown = {one.name: sets.measured[one.name] for one in sets.shown}
    results |= {
        "quantities": quantities,
        "scalars": scalars,
        "curves": curves_of(shown),
        "main_sequence": main_sequence_of(shown, screen),
        "ratios": ratios_of(quantities, scalars, sets.names),
        "means": means,
        "differences": differences_of(replicates, means),
        "tests": compute_tests(sets, rate_hz, config.seed, config.quick, reference, progress),
    }
    plain: dict[str, Any] = plain_values(results)
    return plain


def plain_values(value: Any) -> Any:
    """Numbers that do not exist, as of a set in which nothing moves, are None."""
    if isinstance(value, dict):
        return {key: plain_values(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_values(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _notes(sets: GazeSets, without_train: bool) -> list[str]:
    notes = [note for one in sets.shown for note in one.notes]
    if without_train:
        notes.append(
            "no training windows were given: the floor is between two halves of the real people's "
            "recordings, lower than the floor between people"
        )
    return notes


def about_of(config: EvaluationConfig, n_common: int, notes: list[str]) -> dict[str, Any]:
    """How an evaluation was made: settings, versions, the windows of each set, notes."""
    return {
        "gazediffusion_version": __version__,
        "protocols": list(config.protocols),
        "quick": config.quick,
        "seed": config.seed,
        "n_bootstrap": config.n_replicates,
        "bins": dict(BINS),
        "n_common": n_common,
        "versions": {name: _version(name) for name in ("numpy", "scipy", "torch", "pymovements")},
        "notes": notes,
    }


def _version(name: str) -> str | None:
    """Of an installed package; pymovements, say, is only needed for events in degrees."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _draws(sets: GazeSets, config: EvaluationConfig) -> dict[str, Draws]:
    """The bootstrap's draws for each synthetic set, those of the real people shared; or none."""
    n = config.n_replicates
    if n == 0:
        return {}
    rng = np.random.default_rng(config.seed + 1)
    people = draw_weights(sets.real.group.max() + 1, n, rng)
    return {
        one.name: Draws(people, draw_weights(one.group.max() + 1, n, rng)) for one in sets.synthetic
    }


def _quantities(
    sets: GazeSets, config: EvaluationConfig, draws: dict[str, Draws]
) -> tuple[list[dict[str, Any]], dict[str, NDArray[np.float64]]]:
    """Every quantity's distances, and the replicates of each set's mean JS of nine features."""
    n_replicates = config.n_replicates
    rows: list[dict[str, Any]] = []
    mean_js = {one.name: np.zeros(n_replicates) for one in sets.synthetic}
    for key, real in sets.measured["real"].quantities.items():
        of = {one.name: sets.measured[one.name].quantities[key] for one in sets.all}
        people = ("real", "train", "half a", "half b")
        if any(len(of[name].values) == 0 for name in people if name in of):
            continue
        halves = distances(of["half a"], of["half b"])
        floor = distances(real, of["train"]) if sets.train else halves
        # A ratio is of two JS in the same bins, the floor's: where most values lie in one bin, as
        # velocities do, JS depends on where exactly that bin ends.
        bins = bins_of(real, of["train"]) if sets.train else bins_of(of["half a"], of["half b"])
        counts = {
            one.name: even_counts(of[one.name].values, bins)
            for one in sets.shown
            if len(of[one.name].values)
        }
        row: dict[str, Any] = {
            "name": real.name,
            "title": real.title,
            "family": real.family,
            "unit": real.unit,
            "level": real.level,
            "mean": {
                one.name: float(np.mean(of[one.name].values)) if len(of[one.name].values) else None
                for one in sets.shown
            },
            "distances": {
                kind: {"floor": floor[kind], "halves": halves[kind], "synthetic": {}}
                for kind in DISTANCES
            },
            "histogram": _histogram(counts, bins),
        }
        for one in sets.synthetic:
            found = distances_with_intervals(
                real,
                of[one.name],
                sets.real.group,
                one.group,
                draws.get(one.name),
            )
            if real.family == "features" and n_replicates:
                mean_js[one.name] += found["js"].replicates / len(FEATURES)
            js = FARTHEST["js"]
            if one.name in counts:
                js = float(js_from_counts(counts["real"], counts[one.name]))
            for kind, distance in found.items():
                row["distances"][kind]["synthetic"][one.name] = {
                    "value": distance.value if np.isfinite(distance.value) else None,
                    "interval": distance.interval(),
                    "ratio": ratio(js if kind == "js" else distance.value, floor[kind]),
                }
        rows.append(row)
    return rows, mean_js if n_replicates and "position" in config.protocols else {}


def _histogram(
    counts: Mapping[str, NDArray[np.int64]], edges: NDArray[np.float64]
) -> dict[str, list[float]]:
    """Densities for the figures, from counts in the people's bins."""
    width = float(edges[1] - edges[0]) or 1.0
    densities = {name: (one / (one.sum() * width)).tolist() for name, one in counts.items()}
    return {"edges": edges.tolist(), **densities}


def _scalars(sets: GazeSets, draws: dict[str, Draws]) -> list[dict[str, Any]]:
    """Temporal distances: one number per pair of sets."""
    return [_scalar(sets, draws, name, title, curve) for name, title, curve in scalar_curves()]


Curve = Callable[[Temporal], GroupMeans]


def scalar_curves() -> Iterator[tuple[str, str, Curve]]:
    """Name, title and curve of each temporal distance."""
    for name in TEMPORAL:
        title = name.replace("_", " ")
        yield f"rho1_{name}", f"lag-one autocorrelation of {title}", _lag_one(name)
        yield f"psd_{name}", f"spectrum of {title} (L1 per frequency)", _spectrum(name)
    yield "autocorrelation", "speed autocorrelation to 400 ms", lambda t: t.autocorrelation


def _lag_one(name: str) -> Curve:
    return lambda temporal: temporal.lag_one[name]


def _spectrum(name: str) -> Curve:
    return lambda temporal: temporal.spectra[name]


def _scalar(
    sets: GazeSets, draws: dict[str, Draws], name: str, title: str, curve: Curve
) -> dict[str, Any]:
    """Mean absolute difference of two sets' mean curves, with the floor and intervals."""

    def of(one: str) -> GroupMeans:
        return curve(sets.measured[one].temporal)

    def gap(a: str, b: str) -> float:
        return float(np.abs(of(a).mean() - of(b).mean()).mean())

    halves = gap("half a", "half b")
    floor = gap("real", "train") if sets.train else halves
    cells = {}
    for one in sets.names:
        replicates = np.empty(0)
        if one in draws:
            drawn = of("real").mean(draws[one].real) - of(one).mean(draws[one].other)
            replicates = np.abs(drawn).mean(axis=1)
        value = gap("real", one)
        cells[one] = {
            "value": value if np.isfinite(value) else None,
            "interval": Distance(value, replicates).interval(),
            "ratio": ratio(value, floor),
        }
    return {
        "name": name,
        "title": title,
        "family": "temporal",
        "unit": "",
        "floor": floor,
        "halves": halves,
        "synthetic": cells,
    }


def curves_of(measured: Mapping[str, Measured]) -> dict[str, Any]:
    """The mean curves of some sets, by name, over the x they share."""
    temporal = {name: one.temporal for name, one in measured.items()}
    first = next(iter(temporal.values()))
    seconds = np.arange(len(first.speed_profile)) * float(first.lag_ms[1]) / 1000
    thin = slice(None, None, 10)
    return {
        "speed_autocorrelation": {
            "x": first.lag_ms.tolist(),
            "x_label": "lag (ms)",
            "y_label": "autocorrelation",
            "sets": {name: t.autocorrelation.mean().tolist() for name, t in temporal.items()},
        },
        "speed_spectrum": {
            "x": first.frequency_hz.tolist(),
            "x_label": "frequency (Hz)",
            "y_label": "share of power",
            "sets": {name: t.spectra["speed"].mean().tolist() for name, t in temporal.items()},
        },
        "mean_speed_profile": {
            "x": seconds[thin].tolist(),
            "x_label": "time (s)",
            "y_label": "mean speed (1/s)",
            "sets": {name: t.speed_profile[thin].tolist() for name, t in temporal.items()},
        },
    }


def main_sequence_of(measured: Mapping[str, Measured], screen: Screen) -> dict[str, Any]:
    """The main sequence of each set that has twenty saccades: the fit, and some of its points."""
    if not screen.has_degrees:
        return {"not_computable": "the screen's size and distance are not known (--screen-cm)"}
    rows = {}
    for name, one in measured.items():
        events = one.degrees
        if events is None or len(events.saccade_window) < 20:
            continue
        amplitude, peak = events.saccade_amplitude_deg, events.saccade_peak_deg_s
        fit = main_sequence_fit(amplitude, peak)
        step = max(1, len(amplitude) // _MAX_POINTS)
        rows[name] = {
            **vars(fit),
            "amplitude_deg": amplitude[::step][:_MAX_POINTS].tolist(),
            "peak_deg_s": peak[::step][:_MAX_POINTS].tolist(),
        }
    return {"sets": rows}
