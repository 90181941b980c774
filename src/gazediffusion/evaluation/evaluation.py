"""Evaluate synthetic gaze against real gaze, with the real-vs-real floor.

The real side is windows of held-out participants, or a summary of real gaze inside the package.
Every distance between a synthetic set and the held-out participants stands beside two floors: the
same distance for the training participants, and between two halves of the training participants'
recordings. A ratio of 1.0 means that a synthetic set is as close to held-out participants as the
training participants are. Every set but the real one is cut to the same number of windows, because
histogram distances shrink with n.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion import __version__, seeds
from gazediffusion.data.windows import Windows, evenly_spaced
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.deep_test import Progress
from gazediffusion.evaluation.features import FINE_HZ, PAPER_HZ, ivt_threshold
from gazediffusion.evaluation.headline import (
    FAMILIES,
    Counted,
    differences_of,
    distance_rows,
    means_of,
    percentages,
    ratio,
    ratio_entries,
    ratios_of,
    summarised_ratios,
    titles_of,
)
from gazediffusion.evaluation.metrics import (
    BINS,
    Distance,
    bins_of,
    distances,
    distances_with_intervals,
    draw_weights,
    drawn_means,
    histograms,
)
from gazediffusion.evaluation.quantities import (
    FEATURES,
    SCALARS,
    Measured,
    Quantity,
    curves_of,
    main_sequence_of,
    plugin_quantities,
)
from gazediffusion.evaluation.real_gaze import (
    AMPLITUDE,
    DEFAULT,
    SHOWN_CURVES,
    UNLABELLED,
    Numbers,
    RealGaze,
    Sketch,
    find_summary,
    summary_of_task,
)
from gazediffusion.evaluation.result import ALL, FORMAT, Evaluation, Results, installed_versions
from gazediffusion.evaluation.sets import (
    MIN_WINDOWS,
    SECOND_DRAW,
    GazeSet,
    GazeSets,
    arrange,
    at_rate_of,
    require_comparable,
    stream,
    synthetic_sets,
    whole_windows,
)
from gazediffusion.evaluation.two_sample import TESTS, FeatureMap, compute_tests
from gazediffusion.plugins import find_plugins
from gazediffusion.screen import Screen
from gazediffusion.seeds import Stream
from gazediffusion.settings import EvaluationConfig

__all__ = ["Evaluation", "EvaluationConfig", "evaluate", "evaluate_windows", "shown_windows"]
Gaze = Windows | NDArray[np.floating[Any]]
FEW_WINDOWS = 100
NEEDS_RECORDINGS = "needs recordings, not a summary of them; give `real`"
# Total variation distance between the shares of tasks, from 0 to 1, above which they differ much.
MAX_TASK_DIFFERENCE = 0.2
Floats = NDArray[np.float64]
_PACKAGES = ("numpy", "scipy", "torch", "scikit-learn")


def evaluate(
    real: Gaze | str | None = None,
    synthetic: Mapping[str, Gaze] | Gaze | None = None,
    reference: Gaze | None = None,
    config: EvaluationConfig | None = None,
    *,
    rate_hz: float | None = None,
    screen: Screen | None = None,
    participants: Sequence[str] | None = None,
    reference_participants: Sequence[str] | None = None,
    feature_model: FeatureMap | None = None,
    progress: Progress = lambda name: None,
) -> Evaluation:
    """How close synthetic gaze is to real gaze, against how close real gaze is to real gaze.

    real: windows of held-out participants; or a summary inside the package, as "gazecom" or
        "bioeye/reading"; or None, for the packaged summary of each window's own task.
    synthetic: one set, or sets by name. reference: windows of the training participants, for the
        floor; without them the floor is between two halves of the real windows.
    Synthetic gaze of a higher rate than the real is low-passed and brought to the real one's.
    Sets are `Windows`, or arrays (window, 2, time) of positions normalized to [-1, 1], which need
    `rate_hz` and `screen`. participants, reference_participants: of each real and reference window
    of an array; without names every window counts as a participant of its own.
    feature_model: maps windows to features, for the Frechet Gaze Distance.
    progress: called with the name of each part of the work.

    >>> import numpy as np
    >>> import gazediffusion as gd
    >>> rng = np.random.default_rng(0)
    >>> real, training, ours = rng.normal(0, 0.01, (3, 120, 2, 600)).cumsum(axis=-1).clip(-1, 1)
    >>> result = gd.evaluate(
    ...     real, {"ours": ours}, training, gd.EvaluationConfig(quick=True),
    ...     rate_hz=250, screen=gd.Screen(1280, 720, 40, 22.5, 45),
    ... )
    >>> 0.5 < result.ratio < 2
    True
    """
    config = config or EvaluationConfig()
    if synthetic is None:
        raise GazeError("there is no synthetic set to evaluate", remedy="give `synthetic`")
    given = synthetic if isinstance(synthetic, Mapping) else {"synthetic": synthetic}
    if isinstance(real, Windows):
        rate_hz = real.rate_hz if rate_hz is None else rate_hz
        screen = real.screens[0] if screen is None and len(real.screens) == 1 else screen
    sets = {name: _windows(one, name, rate_hz, screen) for name, one in given.items()}
    if real is None or isinstance(real, str):
        refuse_without_recordings(config, reference, feature_model)
        return _against_summaries(real, sets, config, progress)
    held_out = _windows(real, "real", rate_hz, screen, participants)
    training = None
    if reference is not None:
        training = _windows(reference, "reference", rate_hz, screen, reference_participants)
    sets = {name: at_rate_of(held_out, name, one) for name, one in sets.items()}
    results = evaluate_windows(held_out, sets, training, config, feature_model, progress)
    return Evaluation({ALL: results}, shown_windows(held_out, sets))


def refuse_without_recordings(config: EvaluationConfig, reference: Any, feature_model: Any) -> None:
    """Refuse what a summary of real gaze does not do."""
    given = {"deep": config.deep, "reference": reference, "feature_model": feature_model}
    asked = [f"`{name}`" for name, one in given.items() if one is not None]
    if asked:
        needs = "needs" if len(asked) == 1 else "need"
        raise GazeError(f"{' and '.join(asked)} {needs} recordings", remedy="give them as `real`")


def evaluate_windows(
    real: Windows,
    synthetic: Mapping[str, Windows],
    reference: Windows | None,
    config: EvaluationConfig,
    feature_model: FeatureMap | None,
    progress: Progress,
) -> Results:
    """The plain results of one part, with its warnings."""
    require_comparable(real, synthetic, reference)
    results = compare(real, synthetic, reference, config, feature_model, progress)
    results["about"]["warnings"] += _few_windows(results)
    if "not_computable" in (deep := results["tests"].get("deep", {})):
        results["about"]["warnings"].append(deep["not_computable"])
    base = real if reference is None else reference
    for name, windows in synthetic.items():
        results["about"]["warnings"] += _other_tasks(name, windows, base)
    results["about"]["warnings"] += _reading_warnings({"the real windows": real, **synthetic})
    return results


def _windows(
    given: Gaze,
    name: str,
    rate_hz: float | None,
    screen: Screen | None,
    participants: Sequence[str] | None = None,
) -> Windows:
    """Windows as they are, those generated with losses without them, or of an array."""
    if isinstance(given, Windows):
        return whole_windows(given) if "losses" in given.provenance.get("card", {}) else given
    if rate_hz is None or screen is None:
        missing = "`rate_hz`" if rate_hz is None else "`screen`"
        raise GazeError(f"{name} is an array, and {missing} is not known", remedy=f"give {missing}")
    array = np.asarray(given, dtype=np.float32)
    if name in ("real", "reference") and participants is None:
        participants = [str(number) for number in range(len(array))]
    return Windows.from_array(array, rate_hz, screen, participants or "synthetic")


def _against_summaries(
    real: str | None, synthetic: dict[str, Windows], config: EvaluationConfig, progress: Progress
) -> Evaluation:
    if not synthetic:
        raise GazeError("there is no synthetic set to evaluate")
    warnings = _reading_warnings(synthetic)
    summary = find_summary(real or DEFAULT)
    synthetic = {name: at_rate_of(summary, name, one) for name, one in synthetic.items()}
    if real is None:
        parts, left_out = _compare_by_task(synthetic, config, progress)
        warnings += left_out
    else:
        parts = {summary.task or ALL: compare_with(summary, synthetic, config, progress)}
    for results in parts.values():
        results["about"]["warnings"] += [*warnings, *_few_windows(results)]
    return Evaluation(parts, shown_windows(None, synthetic))


def _compare_by_task(
    synthetic: Mapping[str, Windows], config: EvaluationConfig, progress: Progress
) -> tuple[dict[str, Results], list[str]]:
    """Compare each window with the summary of its own task: results by task, and warnings.

    Windows without a known task are compared with the default summary. Windows of a task that no
    summary holds, or too few of a task, are left out and named in a warning.
    """
    parts: dict[str, Results] = {}
    warnings: list[str] = []
    for task, sets in _by_task(synthetic).items():
        summary = find_summary(DEFAULT) if task == ALL else summary_of_task(task)
        if summary is None:
            warnings.append(f"no summary holds the task {task!r}: {_counted_words(sets)} left out")
            continue
        few = {name: one for name, one in sets.items() if len(one) < MIN_WINDOWS}
        if few:
            warnings.append(
                f"the summary {summary.name} needs {MIN_WINDOWS} windows: "
                f"{_counted_words(few)} left out"
            )
        kept = {name: one for name, one in sets.items() if name not in few}
        if kept:
            if task == ALL:
                warnings.append(
                    f"the task of {_counted_words(kept)} is not known: compared with {DEFAULT}"
                )
            parts[task] = compare_with(summary, kept, config, progress)
    if not parts:
        raise GazeError(
            "nothing can be compared with the packaged summaries: " + "; ".join(warnings),
            remedy="generate more windows, or give `real`",
        )
    return parts, warnings


def _by_task(synthetic: Mapping[str, Windows]) -> dict[str, dict[str, Windows]]:
    """Windows by task and set; those of no known task under ALL."""
    found: dict[str, dict[str, Windows]] = {}
    for name, windows in synthetic.items():
        if len(windows) == 0:
            raise GazeError(f"{name} holds no windows")
        labels = np.array(
            [ALL if task in UNLABELLED else task for task in windows.tasks], dtype=object
        )
        of_window = labels[windows.task]
        for task in dict.fromkeys(of_window.tolist()):
            found.setdefault(task, {})[name] = windows.select(of_window == task)
    return found


def _counted_words(sets: Mapping[str, Windows]) -> str:
    return ", ".join(f"{len(windows)} windows of {name}" for name, windows in sets.items())


def shown_windows(real: Windows | None, synthetic: Mapping[str, Windows]) -> dict[str, Windows]:
    """Four windows of each set for the gallery of the report."""
    sets = ({} if real is None else {"real, held out": real}) | dict(synthetic)
    return {name: one.select(evenly_spaced(len(one), 4)) for name, one in sets.items()}


def _reading_warnings(sets: Mapping[str, Windows]) -> list[str]:
    """What reading had to say of the sets, and the windows that it left out."""
    found = []
    for name, windows in sets.items():
        found += [f"{name}: {one}" for one in windows.provenance.get("warnings", ())]
        left_out = windows.provenance.get("left_out")
        if left_out:
            n, total, reasons = left_out["n"], left_out["of"], left_out["reasons"]
            found.append(f"{n} of {total} windows of {name!r} were left out: {reasons}")
    return found


def _few_windows(results: Results) -> list[str]:
    sets = results["sets"]
    sizes = {"the real set": sets["real"], "the reference": sets["train"], **sets["synthetic"]}
    return [
        f"{name} has {found['n_windows']} windows; below {FEW_WINDOWS} chance dominates distances"
        for name, found in sizes.items()
        if found and found["n_windows"] < FEW_WINDOWS
    ]


def _other_tasks(name: str, windows: Windows, real: Windows) -> list[str]:
    """A warning where the tasks of a set are not those of the real windows."""
    shares = {who: _task_shares(one) for who, one in ((name, windows), ("real gaze", real))}
    if any(set(one) & set(UNLABELLED) for one in shares.values()):
        return []
    ours, theirs = shares.values()
    apart = sum(abs(ours.get(t, 0.0) - theirs.get(t, 0.0)) for t in {*ours, *theirs}) / 2
    if apart <= MAX_TASK_DIFFERENCE and set(ours) <= set(theirs):
        return []
    words = "; ".join(
        f"{who}: {', '.join(f'{task} {share:.0%}' for task, share in one.items())}"
        for who, one in shares.items()
    )
    return [f"the tasks do not match ({words}), and distances between tasks count as errors"]


def _task_shares(windows: Windows) -> dict[str, float]:
    """The share of each task that windows have."""
    counts = np.bincount(windows.task, minlength=len(windows.tasks)) / len(windows)
    return {task: float(one) for task, one in zip(windows.tasks, counts, strict=True) if one}


def compare(
    real: Windows,
    synthetic: Mapping[str, Windows],
    train: Windows | None,
    config: EvaluationConfig,
    feature_model: FeatureMap | None = None,
    progress: Progress = lambda name: None,
) -> Results:
    """Compare synthetic sets with the held-out participants' windows; all as plain values.

    train: the training participants' windows; without them the floor is between two halves of the
    real participants' recordings. feature_model: maps windows to features for the Frechet Gaze
    Distance. progress: called with the name of each part.
    """
    plugins = find_plugins("metrics")
    sets = arrange(real, synthetic, train, config.seed)
    for one in sets.all:
        progress(f"measuring {one.name}")
        measured = one.measure(config.protocols)
        measured.quantities.update(plugin_quantities(one, plugins))
        sets.measured[one.name] = measured
    progress("distances")
    work = _Comparison(sets, config, _weights(sets, config))
    described = {
        "real": sets.real.described,
        "train": sets.train.described if sets.train else None,
        "synthetic": {one.name: one.described for one in sets.synthetic},
    }
    notes = [*(note for one in sets.shown for note in one.notes), *rate_notes(real.rate_hz)]
    if sets.train is None:
        notes.append(
            "no reference windows were given: the floor is between two halves of the real "
            "participants' recordings, lower than the floor between participants"
        )
    shown = {one.name: sets.measured[one.name] for one in sets.shown}
    quantities, scalars = work.quantities(), [work.scalar(name) for name in SCALARS]
    results = assemble(config, sets.n_common, described, notes, quantities, scalars, shown)
    if plugins:
        packages = {name: one.package for name, one in plugins.items()}
        results["about"]["plugins"] = packages
    results["differences"] = differences_of(work.mean_js, results["means"])
    results["tests"] = compute_tests(sets, config, feature_model, progress)
    progress("headline")
    results["headline"] = work.headlines(results, real if train is None else train)
    return results


def assemble(
    config: EvaluationConfig,
    n_common: int,
    sets: Results,
    notes: Sequence[str],
    quantities: list[Results],
    scalars: list[Results],
    measured: Mapping[str, Measured],
    summary: str = "",
) -> Results:
    """The results of a comparison, all but its headline, differences and tests.

    n_common: windows per set. sets: what is known of each. measured: the sets of the figures.
    summary: the name of the summary that stands for the real windows.
    """
    names = list(sets["synthetic"])
    return {
        "format": FORMAT,
        "format_version": 1,
        "about": {
            "gazediffusion_version": __version__,
            "protocols": list(config.protocols),
            "quick": config.quick,
            "seed": config.seed,
            "n_bootstrap": config.n_replicates,
            "bins": dict(BINS),
            "n_common": n_common,
            "versions": installed_versions(*_PACKAGES),
            "compared": _compared(sets, n_common, summary),
            "warnings": [],
            "notes": list(notes),
        },
        "sets": sets,
        "headline": {},
        "quantities": quantities,
        "scalars": scalars,
        "curves": curves_of(measured),
        "main_sequence": main_sequence_of(measured),
        "ratios": ratios_of(quantities, scalars, names),
        "means": means_of(quantities, names),
        "differences": [],
        "tests": {},
    }


def _compared(sets: Results, n: int, summary: str) -> str:
    """One sentence: who is compared with whom, how many windows and participants, which floor."""
    real, train = sets["real"], sets["train"]
    brought = [
        f"{name} {' and '.join(one['resampled'])}"
        for name, one in sets["synthetic"].items()
        if one["resampled"]
    ]
    rate = f" at {real['rate_hz']:g} Hz ({', '.join(brought)})," if brought else ""
    text = (
        f"Each synthetic set is compared with {f'the summary {summary}: ' if summary else ''}"
        f"{real['n_windows']:,} windows of {real['n_participants']} held-out participants"
        f"{rate or (',' if summary else '')} with {n:,} windows per set; "
    )
    if train is None:
        return text + "the floor is the distance between two halves of these recordings."
    return text + (
        f"the floor is the same distance for {n:,} of the {train['n_windows']:,} windows of "
        f"{train['n_participants']} training participants."
    )


def rate_notes(rate_hz: float) -> list[str]:
    """What differs from an evaluation at the paper's rate."""
    notes = []
    if rate_hz != PAPER_HZ:
        notes.append(
            f"at {rate_hz:g} Hz the I-VT threshold of 5 normalized units per second is "
            f"{ivt_threshold(rate_hz):.3g} per sample; lag-one autocorrelations are of "
            f"{1000 / rate_hz:.3g} ms, spectra reach {rate_hz / 2:g} Hz, and no number is "
            "comparable with one at another rate"
        )
    if rate_hz < FINE_HZ:
        notes.append(
            f"below {FINE_HZ:g} Hz velocity in degrees is taken over three samples: peak "
            "velocities of short saccades are underestimated in all sets, and microsaccades are "
            "left out"
        )
    return notes


def scalar_row(name: str, rows: Results) -> Results:
    """A row of a temporal distance."""
    about = {"name": name, "title": SCALARS[name], "family": "temporal", "unit": ""}
    return {**about, **rows["l1"]}


def _weights(sets: GazeSets, config: EvaluationConfig) -> dict[str, Floats]:
    """How often each group is drawn (replicate, group), by set; the real ones' are shared."""
    n = config.n_replicates
    if n == 0:
        return {}
    rng = seeds.rng(config.seed, Stream.EVALUATION, "intervals")
    drawn = {one.name: draw_weights(one.group.max() + 1, n, rng) for one in
             [sets.real, *sets.synthetic]}  # fmt: skip
    for one in filter(None, (sets.train, sets.second_draw)):
        own = stream(config.seed, f"{one.name}, drawn")
        drawn[one.name] = draw_weights(one.group.max() + 1, n, own)
    return drawn


@dataclass
class _Comparison:
    """The distances of measured sets.

    mean_js: replicates of each set's mean JS of nine features. ratio_draws: replicates of each
    ratio to the floor, by set and name of the distance. perfect: ratios of the second draw.
    """

    sets: GazeSets
    config: EvaluationConfig
    weights: dict[str, Floats]
    mean_js: dict[str, Any] = field(default_factory=dict)
    ratio_draws: dict[str, dict[str, Floats]] = field(default_factory=dict)
    perfect: dict[str, float] = field(default_factory=dict)

    @property
    def _evaluated(self) -> list[GazeSet]:
        """The synthetic sets and the second draw."""
        return [*self.sets.synthetic, *filter(None, [self.sets.second_draw])]

    @property
    def _others(self) -> list[str]:
        """All that is compared with the held-out participants."""
        return [one.name for one in (*filter(None, [self.sets.train]), *self._evaluated)]

    @property
    def _keeps_draws(self) -> bool:
        return self.config.keep_draws and bool(self.weights)

    def quantities(self) -> list[Results]:
        """Every quantity's distances, floors and histograms, where the real sets have values."""
        rows = []
        for key in self.sets.measured["real"].quantities:
            found = {one: all_of.quantities.get(key) for one, all_of in self.sets.measured.items()}
            of = {one: quantity for one, quantity in found.items() if quantity is not None}
            known = ("real", "train", "half a", "half b")
            if len(of) == len(found) and all(len(of[k].values) for k in known if k in of):
                rows.append(self._quantity(of))
        return rows

    def _quantity(self, of: Mapping[str, Quantity]) -> Results:
        real, halves = of["real"], (of["half a"], of["half b"])
        below = (real, of["train"]) if self.sets.train else halves
        # All JS are in the same bins, the floor's: where most values lie in one bin, as velocities
        # do, JS depends on where exactly that bin ends.
        bins = bins_of(*below)
        found = {}
        for name in self._others:
            weights = (self.weights["real"], self.weights[name]) if self.weights else None
            found[name] = distances_with_intervals(real, of[name], bins, weights)
        if real.family == "features" and self.weights:
            for name in self.sets.names:
                drawn = found[name]["js"].replicates / len(FEATURES)
                self.mean_js[name] = self.mean_js.get(name, 0.0) + drawn
        headline = "js" if real.family in FAMILIES else None
        shown = {one.name: of[one.name] for one in self.sets.shown}
        known = {name: one for name, one in shown.items() if len(one.values)}
        row = {
            **real.described,
            "mean": {name: one.mean for name, one in shown.items()},
            "distances": self._compared(real.name, found, distances(*halves), headline),
            **histograms(known, bins, below),
        }
        if self._keeps_draws:
            row["mean_draws"] = {
                name: drawn_means(one, self.weights[name]) for name, one in known.items()
            }
        return row

    def scalar(self, name: str) -> Results:
        """A temporal distance: mean absolute difference of two sets' mean curves."""
        curves = {one: measured.curves[name] for one, measured in self.sets.measured.items()}
        drawn = {one: curves[one].mean(weights) for one, weights in self.weights.items()}

        def gap(a: str, b: str) -> Distance:
            value = float(np.abs(curves[a].mean() - curves[b].mean()).mean())
            if a not in drawn or b not in drawn:
                return Distance(value)
            return Distance(value, np.abs(drawn[a] - drawn[b]).mean(axis=1))

        found = {one: {"l1": gap("real", one)} for one in self._others}
        halves = {"l1": gap("half a", "half b").value}
        row = scalar_row(name, self._compared(name, found, halves, "l1"))
        if self._keeps_draws and name == "autocorrelation":
            row["curve_draws"] = drawn
        return row

    def _compared(
        self,
        name: str,
        found: Mapping[str, Mapping[str, Distance]],
        halves: Mapping[str, float],
        headline: str | None,
    ) -> Results:
        """Rows of distances by kind; what the headline needs of one kind is kept.

        found: by set and kind. Without a reference the floor is fixed.
        """
        floor = found.get("train") or {kind: Distance(one) for kind, one in halves.items()}
        for one in self._evaluated:
            if headline is None:
                break
            distance, below = found[one.name][headline], floor[headline]
            over = ratio(distance.value, below.value)
            if one.name == SECOND_DRAW and over is not None:
                self.perfect[name] = over
            if len(distance.replicates):
                drawn = below.replicates if len(below.replicates) else below.value
                with np.errstate(divide="ignore", invalid="ignore"):
                    replicates = distance.replicates / drawn
                self.ratio_draws.setdefault(one.name, {})[name] = replicates
        of_sets = {one: found[one] for one in self.sets.names}
        return distance_rows(of_sets, floor, halves, self._keeps_draws)

    def headlines(self, results: Results, base: Windows) -> Results:
        """The headline of each synthetic set and of the second draw, by name.

        base: the training participants' windows, or the real ones where there are none.
        """
        seed, n = self.config.seed, self.config.n_replicates
        reference = Counted.of(GazeSet.of("reference", base.dequantized(seed=0)))
        of_reference = reference.drawn(n, stream(seed, "reference, counts"))
        accuracy = results["tests"]["c2st"].get("synthetic", {})
        found = {}
        for one in self._evaluated:
            name = one.name
            counted = Counted.of(self.sets.uncut.get(name, one))
            drawn = counted.drawn(n, stream(seed, f"{name}, counts"))
            ratios = self.perfect if name == SECOND_DRAW else ratio_entries(results, name)
            found[name] = {
                **summarised_ratios(ratios, self.ratio_draws.get(name, {}), titles_of(results)),
                **percentages(counted.values, reference.values, drawn, of_reference),
                "n_windows": len(one.gaze),
            }
            if name in accuracy:
                words = {"value": "features_accuracy", "interval": "features_interval"}
                found[name]["c2st"] = {key: accuracy[name][word] for key, word in words.items()}
        return found


def compare_with(
    summary: RealGaze,
    synthetic: Mapping[str, Windows],
    config: EvaluationConfig,
    progress: Progress = lambda name: None,
) -> Results:
    """Compare synthetic sets with a summary of real gaze; the results have the same form.

    Intervals and the tests of whole sets need recordings and are left out.
    """
    require_comparable(summary, synthetic)
    uncut = synthetic_sets(synthetic, config.seed, summary.screen)
    part = summary.part
    # At most as many windows as have a floor.
    n_common = min(part["sizes"][-1], *(len(one.gaze) for one in uncut))
    sets = [one.cut(n_common, stream(config.seed, one.name)) for one in uncut]
    measured = {}
    for one in sets:
        progress(f"measuring {one.name}")
        measured[one.name] = one.measure(config.protocols)
    progress("distances")
    keys = [key for key in measured[sets[0].name].quantities if key in part["quantities"]]
    edges = {key: summary.edges[key] for key in keys}
    sketches = {name: Sketch.of(one, edges) for name, one in measured.items()}
    apart = {name: summary.sketch.distances(one, edges) for name, one in sketches.items()}
    quantities = []
    for key in keys:
        of = {name: one.quantities[key] for name, one in measured.items()}
        row, width = part["quantities"][key], edges[key][1] - edges[key][0]
        shares = {who: np.asarray(row[who]) for who in ("real", "train")}
        shares |= {name: one.shares[key] for name, one in sketches.items() if key in one.shares}
        densities = {name: (share / width).tolist() for name, share in shares.items()}
        quantities.append(
            {
                **of[sets[0].name].described,
                "mean": {**row["mean"], **{name: one.mean for name, one in of.items()}},
                "distances": _cells(summary, apart, key, n_common),
                "histogram": {"edges": edges[key].tolist(), **densities},
            }
        )
    scalars = [scalar_row(name, _cells(summary, apart, name, n_common)) for name in SCALARS]
    described = {
        who: {
            "name": f"summary {summary.name}",
            **found,
            "sha256": summary.content["data_sha256"],
            "rate_hz": summary.rate_hz,
        }
        for who, found in part["sets"].items()
    }
    described["synthetic"] = {one.name: one.described for one in sets}
    notes = [
        *(note for one in sets for note in one.notes),
        f"real gaze is that of the summary {summary.name}; please cite: "
        f"{summary.content['citation']}",
        "all sets are counted in the bins of the real gaze: KS and W1 resolve no finer, and values "
        "beyond the bins count in the end bins",
        "intervals need recordings, and are left out",
        *(
            f"the metric {name} of a plug-in needs recordings, and is left out"
            for name in find_plugins("metrics")
        ),
    ]
    results = assemble(
        replace(config, n_bootstrap=0), n_common, described, notes, quantities, scalars, measured,
        summary.name,
    )  # fmt: skip
    _add_real_curves(results, summary)
    results["tests"] = {name: {"not_computable": NEEDS_RECORDINGS} for name in TESTS}
    for one in uncut:
        ratios = ratio_entries(results, one.name)
        results["headline"][one.name] = {
            **summarised_ratios(ratios, {}, titles_of(results)),
            **percentages(Counted.of(one).values, summary.counts),
            "n_windows": n_common,
        }
    return results


def _cells(summary: RealGaze, apart: Mapping[str, Numbers], key: str, n: int) -> Results:
    """By kind of distance: floor, halves, and each set's value and ratio."""
    floors = summary.floors(key, n)
    found = {
        name: {kind: Distance(one) for kind, one in numbers[key].items()}
        for name, numbers in apart.items()
    }
    floor = {kind: Distance(one) for kind, one in floors["floor"].items()}
    return distance_rows(found, floor, floors["halves"])


def _add_real_curves(results: Results, summary: RealGaze) -> None:
    """Add the real curves and fits; of the main sequence only the ends of the line are known."""
    kept = {name: summary.part["temporal"][key] for name, key in SHOWN_CURVES.items()}
    kept["mean_speed_profile"] = summary.part["speed_profile"]
    for name, row in kept.items():
        real = {who: row[who] for who in ("real", "train")}
        results["curves"][name]["sets"] = real | results["curves"][name]["sets"]
    rows = {}
    for who, fit in summary.part["main_sequence"].items():
        ends = summary.edges[AMPLITUDE][[1, -1]]
        peaks = 10.0 ** (fit["intercept"] + fit["slope"] * np.log10(ends))
        rows[who] = {**fit, "amplitude_deg": ends.tolist(), "peak_deg_s": peaks.tolist()}
    if rows:
        results["main_sequence"] = {"sets": rows | results["main_sequence"].get("sets", {})}
