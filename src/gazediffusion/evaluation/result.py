"""The result of an evaluation: a typed object over plain values, by part (all tasks, or a task).

`Evaluation` gives the ratio to the floor, the headline, a tidy table and the report. Its parts are
plain values, as results.json holds them.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation import report
from gazediffusion.evaluation.deep_test import DeepTest
from gazediffusion.evaluation.headline import Headline, ratio_entries
from gazediffusion.evaluation.metrics import Estimate
from gazediffusion.storage import written_whole

if TYPE_CHECKING:
    import polars as pl

Results = dict[str, Any]
FORMAT = "gazediffusion-evaluation"
ALL = "all tasks"


def plain_values(value: Any, digits: int | None = None) -> Any:
    """What JSON can hold: arrays as lists, and None for NaN and infinity, which it lacks.

    An estimate is its value and interval, another dataclass its fields.

    digits: significant digits that numbers are rounded to; None keeps all.
    """
    if isinstance(value, Estimate):
        value = {"value": value.value, "interval": value.interval}
    elif is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        return {str(key): plain_values(one, digits) for key, one in value.items()}
    if hasattr(value, "tolist"):
        return plain_values(value.tolist(), digits)
    if isinstance(value, list | tuple):
        return [plain_values(one, digits) for one in value]
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        return None
    return value if digits is None else float(f"{value:.{digits}g}")


MADE_OF = "made_of.json"  # in a report: inputs by content, and settings


@dataclass(frozen=True, repr=False, eq=False)
class Evaluation:
    """How close synthetic sets are to real gaze, against the real-vs-real floor.

    parts: plain results by part: "all tasks", or the name of a task.
    shown: some windows of each set, for the gallery of the report.

    >>> import gazediffusion as gd
    >>> walks = np.random.default_rng(0).normal(0, 0.01, (40, 2, 2000)).cumsum(axis=-1).clip(-1, 1)
    >>> gaze = gd.Windows.from_array(walks, 250, gd.Screen(1680, 1050, 47.4, 29.7, 55))
    >>> config = gd.EvaluationConfig(quick=True)
    >>> result = gd.evaluate("bioeye/reading", {"random walk": gaze}, config=config)
    >>> result.ratio > 5  # far from the floor, which is 1
    True
    """

    parts: dict[str, Results]
    shown: dict[str, Windows] = field(default_factory=dict)
    RESULTS: ClassVar[str] = "results.json"  # the file by which a report folder is known

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", plain_values(self.parts))

    @property
    def results(self) -> Results:
        """The plain results of the only part, or of all tasks together."""
        if ALL in self.parts or len(self.parts) == 1:
            return self.parts.get(ALL) or next(iter(self.parts.values()))
        raise GazeError(
            f"this evaluation has {len(self.parts)} parts ({', '.join(self.parts)})",
            remedy="choose one with parts[name]",
        )

    @property
    def _whole(self) -> list[Results]:
        """The parts that hold all windows: all tasks together, or each task."""
        return [self.parts[ALL]] if ALL in self.parts else list(self.parts.values())

    @property
    def headlines(self) -> dict[str, Headline]:
        """The headline of each synthetic set and of the second draw of real gaze.

        With several parts the names are `part: set`.
        """
        return {
            name if len(self.parts) == 1 else f"{part}: {name}": Headline.of(row)
            for part, results in self.parts.items()
            for name, row in results["headline"].items()
        }

    @property
    def ratios(self) -> dict[str, float]:
        """Median ratio to the floor of each synthetic set, pooled over tasks.

        1.0: as close to held-out participants as the training participants are.
        """
        pooled: dict[str, list[float]] = {}
        for results in self._whole:
            for name in results["sets"]["synthetic"]:
                pooled.setdefault(name, []).extend(ratio_entries(results, name).values())
        return {name: float(np.median(values or [np.nan])) for name, values in pooled.items()}

    @property
    def ratio(self) -> float:
        """Median ratio to the floor of the only synthetic set."""
        ratios = self.ratios
        if len(ratios) != 1:
            raise GazeError(
                f"there are {len(ratios)} synthetic sets ({', '.join(ratios)})",
                remedy="choose one of ratios",
            )
        return next(iter(ratios.values()))

    @property
    def deep(self) -> dict[str, DeepTest]:
        """The deep two-sample test of the floor, the planted defect and each synthetic set.

        With several parts those of all tasks together; empty where it was not computed.
        """
        found = self._whole[0]["tests"].get("deep", {})
        return report.deep_sets(found) if "settings" in found else {}

    @property
    def warnings(self) -> list[str]:
        """What limits the results, such as few windows or tasks that do not match."""
        return report.warnings_of(self.parts)

    def __repr__(self) -> str:
        ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in self.ratios.items())
        parts = "" if len(self.parts) == 1 else f", parts: {', '.join(self.parts)}"
        n_warnings = f", {len(self.warnings)} warnings" if self.warnings else ""
        return f"Evaluation(ratio to the floor: {ratios}{parts}{n_warnings})"

    def table(self) -> pl.DataFrame:
        """Every distance of every set, tidy: a row for each part, set, quantity and distance.

        Distances: js (nats), ks, w1 (the quantity's unit), l1 (of curves).
        """
        import polars as pl

        schema = {
            **dict.fromkeys(("part", "set", "family", "quantity", "unit", "distance"), pl.String),
            **dict.fromkeys(("value", "low", "high", "floor", "halves", "ratio"), pl.Float64),
            "n_windows": pl.Int64,
        }
        rows = [row for part, results in self.parts.items() for row in _rows(part, results)]
        return pl.DataFrame(rows, schema=schema, orient="row")

    def headline(self) -> str:
        """The headline as a text table, with the sentence that says what is compared."""
        return report.headline_text(self.parts)

    def to_json(self, path: Path | str | None = None, *, overwrite: bool = False) -> str:
        """All results as JSON; written to a file where one is named.

        overwrite: replace a file that is there.
        """
        values = {"format": FORMAT, "format_version": 2, "parts": self.parts}
        text = json.dumps(plain_values(values), indent=1, ensure_ascii=False, allow_nan=False)
        return _written(text, path, overwrite)

    def to_markdown(self) -> str:
        """The report in Markdown, without figures."""
        return report.markdown_report(self.parts, {})

    def to_html(self, path: Path | str | None = None, *, overwrite: bool = False) -> str:
        """The report as one page with its figures; written to a file where one is named.

        overwrite: replace a file that is there.
        """
        with tempfile.TemporaryDirectory(prefix="gazediffusion-") as folder:
            figures = report.draw_figures(self.parts, Path(folder), self.shown)
            return _written(report.html_report(self.parts, figures), path, overwrite)

    def save(
        self,
        folder: Path | str,
        *,
        overwrite: bool = False,
        made_of: Mapping[str, Any] | None = None,
    ) -> list[Path]:
        """Write report.html, report.md, results.json and figures/ into a folder.

        overwrite: replace a report that is there. made_of: its inputs and settings, written beside.
        """
        folder = Path(folder)
        with written_whole(folder, overwrite, self.RESULTS) as temporary:
            temporary.mkdir()
            figures = report.draw_figures(self.parts, temporary / "figures", self.shown)
            texts = {
                "report.html": report.html_report(self.parts, figures),
                "report.md": report.markdown_report(self.parts, figures),
                self.RESULTS: self.to_json(),
            }
            if made_of is not None:
                texts[MADE_OF] = json.dumps(made_of, indent=2)
            for name, text in texts.items():
                (temporary / name).write_text(text, encoding="utf-8")
            pictures = [one.relative_to(temporary) for both in figures.values() for one in both]
        return [*(folder / name for name in texts), *(folder / picture for picture in pictures)]


def installed_versions(*names: str) -> dict[str, str]:
    """Versions of the libraries that are installed."""
    found = {}
    for name in names:
        with suppress(PackageNotFoundError):  # torch is for models alone
            found[name] = version(name)
    return found


def _written(text: str, path: Path | str | None, overwrite: bool) -> str:
    """The text, written to a file where one is named."""
    if path is not None:
        with written_whole(Path(path), overwrite) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return text


def _rows(part: str, results: Results) -> Iterator[tuple[Any, ...]]:
    """The rows of the tidy table."""
    found = [
        (row, kind, distance)
        for row in results["quantities"]
        for kind, distance in row["distances"].items()
    ]
    found += [(row, "l1", row) for row in results["scalars"]]
    for row, kind, distance in found:
        for name, cell in distance["synthetic"].items():
            low, high = cell["interval"] or (None, None)
            yield (
                part, name, row["family"], row["name"], row["unit"], kind, cell["value"], low, high,
                distance["floor"], distance["halves"], cell["ratio"], results["about"]["n_common"],
            )  # fmt: skip
