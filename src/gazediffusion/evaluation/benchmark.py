"""The benchmark: any generator's file against held-out participants, in figures that stay the same.

Every set has as many windows as the definition says, because histogram distances shrink with their
number. Figures: ratios to the floor (`headline`), precision and coverage (`feature_balls`), and
with real windows the AUC of networks trained for the set (`deep_test`). Intervals are over blocks
of the set's windows; the held-out participants are fixed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion import __version__
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.deep_test import DeepConfig, Progress, deep_tests
from gazediffusion.evaluation.headline import (
    NOT_COMPUTED,
    Counted,
    percentages,
    ratio,
    summarised_ratios,
)
from gazediffusion.evaluation.metrics import Estimate, draw_weights, interval_around
from gazediffusion.evaluation.quantities import Measured
from gazediffusion.evaluation.real_gaze import UNLABELLED, VERSION, Definition, find_definition
from gazediffusion.evaluation.result import plain_values
from gazediffusion.evaluation.sets import GazeSet, at_rate_of, stream, whole_windows
from gazediffusion.options import grouped
from gazediffusion.settings import Reading
from gazediffusion.storage import read_json, written_whole

Floats = NDArray[np.float64]
N_REPLICATES = 500
# The draw of windows and of replicates; a part of every definition, never chosen.
_SEED = 0
# The deep test of version 1, the same on every device. Of 300 windows 165 are trained on; so many
# of real participants are compared in the floor.
DEEP = DeepConfig((0.5, 8.0), n_windows=165, n_seeds=3, n_steps=400, batch_size=128)
ROW_FORMAT = "gazediffusion-benchmark"
TRAINING = "real, training participants"
NOTHING = "\u2013"
_DIGITS = 5
# What of a `DeepConfig` decides the figures of the deep test.
DEEP_SETTINGS = tuple(one.name for one in fields(DeepConfig) if one.name != "device")
# Title and figure of each column of a table.
COLUMNS = {
    "ratio to the floor": "ratio",
    "above 1.5": "n_above",
    "worst": "worst_ratio",
    "precision": "precision",
    "coverage": "coverage",
    "saccades": "saccade_count_percent",
}


def benchmark(
    synthetic: Windows | Path | str,
    task: str,
    *,
    name: str | None = None,
    trained_on: str = "",
    link: str = "",
    version: int | None = None,
    real: Windows | Path | str | None = None,
    deep: DeepConfig | None = None,
    progress: Progress = lambda name: None,
    **reading: Any,
) -> BenchmarkRow:
    """Evaluate a generator's windows against held-out participants, with the real-vs-real floor.

    synthetic: windows, a file as in `evaluate_files`, a run folder or a packaged model. Of more
        windows than the benchmark compares a fixed draw is taken; fewer are refused.
    task: reading, dots or movies; of windows with tasks those of this one.
    name, trained_on, link: how the row is named, which data the generator saw, where it is found.
    version: of the definitions; by default the newest.
    real: a windows file of recordings, for the deep two-sample test of networks trained for this
        set; deep: other settings than `DEEP`, which rows of one table share.
    reading: of recordings, as in `read`.

    >>> import gazediffusion as gd
    >>> walks = np.random.default_rng(0).normal(0, 0.01, (300, 2, 2000)).cumsum(axis=-1).clip(-1, 1)
    >>> windows = gd.Windows.from_array(walks, 250, gd.Screen(1680, 1050, 47.4, 29.7, 55))
    >>> benchmark(windows, "reading", name="random walks")
    BenchmarkRow(random walks, reading, version 1: ratio 10.5, above 1.5: 31, coverage 0.00)
    """
    definition = find_definition(task, VERSION if version is None else version)
    if deep is not None and real is None:
        raise GazeError("`deep` needs recordings", remedy="give them as `real`")
    windows = synthetic
    if not isinstance(windows, Windows):
        from gazediffusion.evaluation.reading import load_set

        name = name or Path(windows).stem
        progress(f"reading {windows}")
        (how,) = grouped([], reading, Reading)
        n, like = definition.n_windows, definition.real
        windows = load_set(windows, "synthetic", like, how, n, progress=progress)
    row = row_of(definition, windows, name or "synthetic", progress)
    row = replace(row, trained_on=trained_on, link=link)
    if real is None:
        return row
    recorded = real if isinstance(real, Windows) else Windows.load(real)
    return _with_deep_test(row, definition, windows, recorded, deep or DEEP, progress)


def row_of(
    definition: Definition, windows: Windows, name: str, progress: Progress = lambda name: None
) -> BenchmarkRow:
    """The row of windows under a definition."""
    chosen, warnings = _chosen(definition, windows, name)
    one = GazeSet.of(name, chosen, True, definition.real.screen)
    progress(f"measuring {name}")
    measured = one.measure()
    progress("distances")
    weights = draw_weights(int(one.group.max()) + 1, N_REPLICATES, stream(_SEED, "benchmark"))
    figures = figures_of(definition, measured, one, weights)
    return BenchmarkRow(
        name=name,
        task=definition.task,
        benchmark_version=definition.version,
        definition_sha256=definition.sha256,
        n_windows=len(chosen),
        n_given=len(windows),
        windows_sha256=_sha256(chosen),
        gazediffusion_version=__version__,
        warnings=warnings,
        **figures,
    )


def figures_of(
    definition: Definition, measured: Measured, one: GazeSet, weights: Floats | None = None
) -> dict[str, Any]:
    """Every figure of a row; weights (replicate, group): without them there are no intervals."""
    floors, values = definition.floors, definition.values(measured)
    ratios = {key: ratio(value, floors[key]) for key, value in values.items()}
    # A set in which a quantity does not exist is as far as can be.
    known = {key: np.inf if one is None else one for key, one in ratios.items()}
    counts, reference = Counted.of(one), definition.content["counts"]
    replicates, own, fixed = {}, {}, {}
    if weights is not None:
        n = len(weights)
        drawn = definition.replicates(measured, weights)
        # A quantity that some draw lacks does not vary.
        replicates = {key: np.full(n, one) for key, one in known.items()}
        replicates |= {key: rows / floors[key] for key, rows in drawn.items()}
        own = counts.drawn(n, stream(_SEED, "benchmark counts"))
        fixed = {key: np.full(n, value) for key, value in reference.items()}
    found = {
        **summarised_ratios(known, replicates, definition.titles),
        **percentages(counts.values, reference, own, fixed),
        **_covered(definition, measured, one, weights),
        "distances": {
            key: {"value": values[key], "floor": floors[key], "ratio": ratios[key]}
            for key in values
        },
    }
    found.pop("n_distances")
    figures: dict[str, Any] = Estimate.read(found)
    return figures


def _covered(
    definition: Definition, measured: Measured, one: GazeSet, weights: Floats | None
) -> dict[str, Any]:
    """Precision and coverage, with intervals over drawn groups of windows."""
    balls = definition.balls
    ball, found = balls.ball_of(measured), {}
    for key, share in (("precision", balls.precision), ("coverage", balls.coverage)):
        drawn = [
            share(np.repeat(ball, weight[one.group].astype(int)))
            for weight in (() if weights is None else weights)
        ]
        interval = interval_around(share(ball), np.array(drawn))
        ends = None if interval is None else np.clip(interval, 0.0, 1.0).tolist()
        found[key] = {"value": share(ball), "interval": ends}
    return found


def _chosen(definition: Definition, windows: Windows, name: str) -> tuple[Windows, list[str]]:
    """The windows that are compared, and warnings."""
    real, n, task = definition.real, definition.n_windows, definition.task
    warnings = []
    has_task = np.array([one not in UNLABELLED for one in windows.tasks])
    if task in windows.tasks:
        windows = windows.of_task(task)
    elif len(windows) and has_task[windows.task].any():
        raise GazeError(
            f"{name} holds no windows of the task {task!r} but of {', '.join(windows.tasks)}",
            remedy="give the `task` of its windows",
        )
    else:
        warnings.append(f"the task of the windows is not known: taken as {task}")
    windows = at_rate_of(real, name, whole_windows(windows))
    left_out = windows.provenance.get("left_out")
    if left_out:
        warnings.append(f"{left_out['n']} windows were left out: {left_out['reasons']}")
    if windows.length != real.length:
        raise GazeError(
            f"{name} has windows of {windows.length / windows.rate_hz:g} s, and the benchmark "
            f"compares {real.length / real.rate_hz:g} s",
            remedy="generate windows of that length",
        )
    if len(windows) < n:
        raise GazeError(
            f"{name} has {len(windows)} windows of the task {task!r}, and the benchmark compares "
            f"exactly {n}: distances of other numbers of windows are not comparable",
            remedy="generate more windows",
        )
    rows = np.sort(stream(_SEED, "benchmark windows").permutation(len(windows))[:n])
    return windows.select(rows) if len(windows) > n else windows, warnings


def _sha256(windows: Windows) -> str:
    return hashlib.sha256(np.ascontiguousarray(windows.cut()).tobytes()).hexdigest()


def _with_deep_test(
    row: BenchmarkRow,
    definition: Definition,
    windows: Windows,
    real: Windows,
    config: DeepConfig,
    progress: Progress,
) -> BenchmarkRow:
    """The row with the AUC of networks trained for its windows; nothing else of it changes."""
    if definition.task not in real.tasks:
        raise GazeError(f"`real` holds no windows of the task {definition.task!r}")
    recorded = real.of_task(definition.task)
    if not len(recorded.held_out) or not len(recorded.train):
        raise GazeError("`real` has no held-out participants", remedy="give a file of `prepare`")
    sides = GazeSet.of("train", recorded.train), GazeSet.of("real", recorded.held_out)
    chosen, _ = _chosen(definition, windows, row.name)
    one = GazeSet.of(row.name, chosen, True)
    one = replace(one, tasks=(definition.task,) * len(one.tasks))
    found = deep_tests(*sides, {row.name: one}, config, _SEED, progress, ("floor",))
    return replace(
        row,
        deep_auc=found["synthetic"][row.name].auc,
        deep_floor=found["floor"].auc,
        deep_real_sha256=real.provenance.get("data_sha256") or "",
        deep_windows_sha256=_sha256(chosen),
        deep_settings={key: found["settings"][key] for key in DEEP_SETTINGS},
    )


@dataclass(frozen=True, repr=False)
class BenchmarkRow:
    """The figures of one generator in one task; intervals are 95 %.

    ratio: median over the version's ratios to the floor, 1.0 is the best that is expected; n_above:
    how many of these exceed 1.5; worst, worst_ratio: the largest. precision: share of windows
    among real ones; coverage: share of real windows that are reached. deep_auc: of networks trained
    for this set, by test, and deep_floor between real participants; empty without real windows.
    deep_settings: of that test (`DeepConfig`); deep_windows_sha256: of the windows it had.
    Percentages are against the training participants. distances: value, floor and ratio by
    distance. windows_sha256: of the windows that were compared. trained_on: what the generator saw,
    in the submitter's words. `gd.benchmark` gives one:

    >>> import gazediffusion as gd
    >>> gaze = gd.load("default").sample(300, task="reading")  # doctest: +SKIP
    >>> gd.benchmark(gaze, "reading", name="ours").save("ours.json")  # doctest: +SKIP
    >>> BenchmarkRow.load("ours.json").ratio.value < 1.5  # doctest: +SKIP
    True
    """

    name: str
    task: str
    benchmark_version: int
    definition_sha256: str
    n_windows: int
    n_given: int
    windows_sha256: str
    gazediffusion_version: str
    ratio: Estimate
    n_above: Estimate
    worst: str
    worst_ratio: Estimate
    precision: Estimate
    coverage: Estimate
    saccade_count_percent: Estimate = NOT_COMPUTED
    fixation_count_percent: Estimate = NOT_COMPUTED
    path_length_percent: Estimate = NOT_COMPUTED
    main_sequence_percent: Estimate = NOT_COMPUTED
    distances: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    deep_auc: Mapping[str, Estimate] = field(default_factory=dict)
    deep_floor: Mapping[str, Estimate] = field(default_factory=dict)
    deep_real_sha256: str = ""
    deep_windows_sha256: str = ""
    deep_settings: Mapping[str, Any] = field(default_factory=dict)
    trained_on: str = ""
    link: str = ""
    warnings: Sequence[str] = ()

    def __repr__(self) -> str:
        ratio, above, coverage = (one.value for one in (self.ratio, self.n_above, self.coverage))
        return (
            f"BenchmarkRow({self.name}, {self.task}, version {self.benchmark_version}: ratio "
            f"{ratio:.3g}, above 1.5: {above}, coverage {coverage:.2f})"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values, as in the file to submit."""
        plain: dict[str, Any] = plain_values({"format": ROW_FORMAT, **vars(self)}, digits=_DIGITS)
        return plain

    def save(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Write the file to submit; overwrite: replace a file that is there."""
        with written_whole(Path(path), overwrite) as temporary:
            text = json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
            temporary.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path | str) -> BenchmarkRow:
        """Read a file of `save`."""
        found = read_json(Path(path))
        if not isinstance(found, dict) or found.pop("format", None) != ROW_FORMAT:
            raise GazeError("this is no row of the benchmark", path=Path(path))
        return cls.of(found)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> BenchmarkRow:
        """A row of plain values."""
        return cls(**Estimate.read(values))

    def of_real(self) -> BenchmarkRow:
        """The row of real windows in the same task and version."""
        return training_row(find_definition(self.task, self.benchmark_version))

    def figures(self) -> dict[str, str]:
        """The figures in words by title, and AUCs of networks trained for the set."""
        found = {title: _number(key, getattr(self, key)) for title, key in COLUMNS.items()}
        if self.worst_ratio.value is not None:
            name = f" ({self.worst})" if self.worst else ""
            found["worst"] = f"{self.worst_ratio.value:.2f}{name}"
        for test, one in self.deep_auc.items():
            floor = _number("deep_floor", self.deep_floor[test])
            found[f"deep test, {test}"] = f"{_number('deep_auc', one)}, floor {floor}"
        return found


def training_row(definition: Definition) -> BenchmarkRow:
    """The row of real windows of training participants; its intervals are over draws."""
    return BenchmarkRow.of(
        {
            "name": TRAINING,
            "task": definition.task,
            "benchmark_version": definition.version,
            "definition_sha256": definition.sha256,
            "n_windows": definition.n_windows,
            "n_given": definition.n_windows,
            "windows_sha256": "",
            "gazediffusion_version": definition.content["gazediffusion_version"],
            **definition.content["training_row"],
        }
    )


def _number(key: str, cell: Estimate) -> str:
    """A value and its interval: 1.02 [0.97, 1.08]."""
    if cell.value is None:
        return NOTHING
    written = {"n_above": "{:.0f}", "saccade_count_percent": "{:+.0f} %"}.get(key, "{:.2f}")
    found = written.format(cell.value)
    if not cell.interval:
        return found
    ends = (written.removesuffix(" %").format(one) for one in cell.interval if one is not None)
    return f"{found} [{', '.join(ends)}]"
