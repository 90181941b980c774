"""A row of the benchmark: the figures of one generator, as JSON to submit and as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gazediffusion.errors import GazeError
from gazediffusion.evaluation.benchmark_definition import Definition, find_definition
from gazediffusion.evaluation.headline import NOT_COMPUTED
from gazediffusion.evaluation.metrics import Estimate
from gazediffusion.evaluation.result import plain_values
from gazediffusion.storage import read_json, written_whole

ROW_FORMAT = "gazediffusion-benchmark"
TRAINING = "real, training participants"
NOTHING = "\u2013"
_DIGITS = 5
# What of a `DeepConfig` decides the figures of the deep test.
DEEP_SETTINGS = (
    "seconds",
    "low_pass_hz",
    "n_windows",
    "n_seeds",
    "n_steps",
    "batch_size",
    "widths",
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
        values = {"format": ROW_FORMAT, **asdict(self)}
        plain: dict[str, Any] = plain_values(_without_nothing(values), digits=_DIGITS)
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
        nested = {
            key: {test: Estimate(**one) for test, one in values.get(key, {}).items()}
            for key in ("deep_auc", "deep_floor")
        }
        cells = {
            key: Estimate(**one)
            for key, one in values.items()
            if isinstance(one, dict) and "value" in one
        }
        return cls(**{**values, **cells, **nested})

    def of_real(self) -> BenchmarkRow:
        """The row of real windows in the same task and version."""
        return training_row(find_definition(self.task, self.benchmark_version))

    def figures(self) -> dict[str, str]:
        """The figures in words by title, and AUCs of networks trained for the set."""
        found = {title: _words(key, getattr(self, key), self) for title, key in COLUMNS.items()}
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
            **definition.training_row,
        }
    )


# Title and figure of each column of a table.
COLUMNS = {
    "ratio to the floor": "ratio",
    "above 1.5": "n_above",
    "worst": "worst_ratio",
    "precision": "precision",
    "coverage": "coverage",
    "saccades": "saccade_count_percent",
}


def _words(key: str, cell: Estimate, row: BenchmarkRow) -> str:
    if key == "worst_ratio" and cell.value is not None:
        return f"{cell.value:.2f} ({row.worst})" if row.worst else f"{cell.value:.2f}"
    return _number(key, cell)


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


def markdown_table(rows: Sequence[BenchmarkRow]) -> str:
    """Rows of one task and version as a Markdown table, the nearest to the floor first.

    Real windows come before all. Rows of several versions or tasks are refused.
    """
    kinds = {(row.task, row.benchmark_version, row.definition_sha256) for row in rows}
    if len(kinds) != 1:
        raise GazeError("rows of several tasks or definitions cannot stand in one table")
    cells = [[_linked(row), *row.figures().values()][: len(COLUMNS) + 1] for row in _ordered(rows)]
    seen = [row.trained_on or NOTHING for row in _ordered(rows)]
    lines = [[*one, data] for one, data in zip(cells, seen, strict=True)]
    return _table(["generator", *COLUMNS, "saw"], lines)


def deep_table(rows: Sequence[BenchmarkRow]) -> str:
    """AUC of networks trained for each set, as a Markdown table; empty where no row has it.

    Rows of several settings are refused: longer training recognises more.
    """
    tested = [row for row in _ordered(rows) if row.deep_auc]
    if not tested:
        return ""
    if len({json.dumps(plain_values(dict(row.deep_settings))) for row in tested}) != 1:
        raise GazeError("deep tests of several settings cannot stand in one table")
    tests = list(tested[0].deep_auc)
    floor = [_number("auc", tested[0].deep_floor[one]) for one in tests]
    lines = [[row.name, *(_number("auc", row.deep_auc[one]) for one in tests)] for row in tested]
    return _table(["deep test, AUC", *tests], [["floor, real participants", *floor], *lines])


def _ordered(rows: Sequence[BenchmarkRow]) -> list[BenchmarkRow]:
    """Real windows first, then the nearest to the floor."""
    return sorted(rows, key=lambda row: (row.name != TRAINING, row.ratio.value or float("inf")))


def _linked(row: BenchmarkRow) -> str:
    return f"[{row.name}]({row.link})" if row.link else row.name


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = "|".join(["---", *["---:"] * (len(columns) - 1)])
    shown = [[one.replace("|", "\\|") for one in row] for row in rows]
    lines = [" | ".join(columns), *(" | ".join(row) for row in shown)]
    return "\n".join([f"| {lines[0]} |", f"|{rule}|", *(f"| {line} |" for line in lines[1:])])


def _without_nothing(values: Mapping[str, Any]) -> dict[str, Any]:
    """Estimates as value and interval alone."""
    kept = {}
    for key, one in values.items():
        if isinstance(one, Mapping) and "value" in one and "sd" in one:
            kept[key] = {"value": one["value"], "interval": one["interval"]}
        else:
            kept[key] = _without_nothing(one) if isinstance(one, Mapping) else one
    return kept
