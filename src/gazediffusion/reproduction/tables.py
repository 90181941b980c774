"""The paper's tables: each number of ours beside the paper's and the real-vs-real floor.

paper.toml has the published numbers, tables.toml what each table shows and requires; the function
of the same name gives its rows. All rows are one tidy table, in which a number is found by its key
(table, row, column): results.json stores it, and claims and page need nothing else.
"""

from __future__ import annotations

import math
import re
import string
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import Windows
from gazediffusion.evaluation.features import IVT_THRESHOLD, kinematic_features
from gazediffusion.evaluation.headline import distance_rows
from gazediffusion.evaluation.metrics import (
    BINS,
    Distance,
    Estimate,
    bins_of,
    distances_with_intervals,
    draw_weights,
    histogram_counts,
)
from gazediffusion.evaluation.quantities import (
    DIRECTIONS,
    EVENTS,
    FEATURES,
    TEMPORAL,
    VELOCITY,
    Quantity,
    quantities_of,
)
from gazediffusion.evaluation.report import NOTHING, as_text
from gazediffusion.evaluation.sets import arrange
from gazediffusion.generation.baselines import SMOOTHING_CELLS
from gazediffusion.reproduction.plan import BASELINES, ETAS, STEPS, Artefacts, Plan, Required
from gazediffusion.seeds import Stream
from gazediffusion.seeds import rng as random_stream
from gazediffusion.settings import EvaluationConfig

FORMAT = "gazediffusion-reproduction"
FORMAT_VERSION = 4
# The parts of a row that a table shows, and their words there.
PARTS = {
    "ours": "ours",
    "paper": "paper",
    "floor": "floor",
    "ratio": "ratio",
    "joint": "joint",
    "joint_ratio": "joint ratio",
}
MARKOV = "kinematic-markov"
BASELINE_LABELS = {
    "kinematic-markov": "kinematic Markov",
    "positional-markov": "positional Markov",
    "uniform": "uniform (the paper's random)",
    "gaussian": "Gaussian",
}
EIGHT = [name for name in FEATURES if name != "path_length"]
KINDS = {"ks": "", "js": "nats"}
FAMILIES = ("features", "events", "directions", "velocity", "temporal", "degrees")
TESTS = {
    "features_accuracy": "c2st",
    "share_of_copies": "memorisation",
}
FEWER, DEBIASED = "features in fewer bins", "features debiased"
Draws = NDArray[np.float64]
Key = tuple[str, str, str]  # table, row, column


# Numbers of the paper, and numbers in words


@dataclass(frozen=True)
class Published:
    """A number of the paper, with its SD over three seeds where one is given."""

    mean: float
    sd: float | None = None

    @classmethod
    def of(cls, value: float | list[float]) -> Published:
        """A number, or a pair of a mean and its SD."""
        return cls(*value) if isinstance(value, list) else cls(value)


def read_data(name: str) -> dict[str, Any]:
    """A TOML file of this package."""
    return tomllib.loads((files(__package__) / f"{name}.toml").read_text(encoding="utf-8"))


_DATA = read_data("paper")
# Numbers of participants, windows and parameters; numbers that the text names.
PROTOCOL: dict[str, Any] = _DATA["protocol"]
TEXT: dict[str, Any] = _DATA["text"]
# label -> template of our value, the paper's for position and for velocity
HYPERPARAMETERS: dict[str, list[str]] = _DATA["hyperparameters"]
# table -> row -> column -> number
NUMBERS: dict[str, dict[str, dict[str, Published]]] = {
    name: {
        row: {column: Published.of(value) for column, value in cells.items()}
        for row, cells in rows.items()
    }
    for name, rows in _DATA["tables"].items()
}
for _row in NUMBERS["events"].values():
    _above = 100.0 * (_row["generated"].mean / _row["real"].mean - 1.0)
    _row["above_real"] = Published(float(f"{_above:.3g}"))
NUMBERS["event-distances"] = NUMBERS["events"]


class _Words(string.Formatter):
    """Numbers and rows as the tables show them, unless a template names another format."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, Row):
            return value.text(format_spec or "ours")
        if format_spec == "paper":
            return as_published(value)
        return format(value, format_spec) if format_spec else as_text(value)


def in_words(template: str, values: Mapping[str, Any]) -> str:
    """A template with its values: {row:floor} is a part of a row, {x} a number as in a table."""
    return _Words().vformat(template, (), values)


def as_published(mean: float | Published, sd: float | None = None) -> str:
    """A number of the paper with the digits it has there, no more and no less."""
    if isinstance(mean, Published):
        return as_published(mean.mean, mean.sd)
    if sd is None:
        return f"{mean:.10g}" if 0 < abs(mean) < 1e-3 else f"{mean:,.10g}"
    if abs(mean) >= 1e-3:
        return f"{mean:,.10g} ± {sd:.10g}"
    exponent = math.floor(math.log10(abs(mean)))
    digits, spread = (round(one / 10.0**exponent, 6) for one in (mean, sd))
    return f"({digits:g} ± {spread:g})e{exponent}"


# The tidy table


class MissingError(LookupError):
    """A number that is not among the results."""


@dataclass(frozen=True)
class Row:
    """One number of one table.

    table, row, column: its key. label: the row in words.
    ours: a number, a word, or None. It is the mean over `seeds` where there are several, with
        their SD (ddof = 1). interval: 95 % bootstrap interval over participants, and over seeds
        where there are several.
    paper, paper_sd: the published number. floor: the same distance between the training
        participants and the held-out participants. ratio: ours over the floor, as `evaluate`
        defines it (JS of both in the floor's bins), with its interval.
    joint, joint_ratio: the same of the joint model. n: windows of each set.
    note: what a reader must know of the number, or why there is none.
    draws, ratio_draws: bootstrap replicates of ours and of the ratio; not stored in results.json.
    """

    row: str
    column: str
    label: str = ""
    ours: float | str | None = None
    sd: float | None = None
    interval: Sequence[float | None] | None = None
    paper: float | None = None
    paper_sd: float | None = None
    floor: float | None = None
    ratio: float | None = None
    ratio_sd: float | None = None
    ratio_interval: Sequence[float] | None = None
    joint: float | None = None
    joint_ratio: float | None = None
    unit: str = ""
    n: int | None = None
    seeds: Sequence[int] = ()
    note: str = ""
    table: str = ""
    draws: Draws | None = field(default=None, repr=False, compare=False)
    ratio_draws: Draws | None = field(default=None, repr=False, compare=False)

    @property
    def number(self) -> float:
        """Our number; MissingError if there is none."""
        if self.ours is None or isinstance(self.ours, str):
            raise MissingError(f"{self.table}: {self.row}: {self.column}")
        return self.ours

    def text(self, part: str = "ours", with_interval: bool = False) -> str:
        """A part of `PARTS`, or an interval, in words; the paper's numbers keep their digits."""
        value = getattr(self, part)
        if part == "paper":
            return NOTHING if value is None else as_published(value, self.paper_sd)
        if part in ("interval", "ratio_interval"):
            return NOTHING if value is None else "[{}, {}]".format(*map(as_text, value))
        if part == "ratio":
            return as_text(Estimate(value, sd=self.ratio_sd))
        if part != "ours":
            return as_text(value)
        if value is None or isinstance(value, str):
            return value or self.note or NOTHING
        has_interval = with_interval and self.sd is None
        interval = self.interval if has_interval else None
        return as_text(Estimate(value, interval, sd=self.sd))

    def beside_paper(self, table: str) -> Row:
        """This row in its table, with the number that the paper gives for its key."""
        theirs = NUMBERS.get(table, {}).get(self.row, {}).get(self.column)
        if theirs is None:
            return replace(self, table=table)
        return replace(self, table=table, paper=theirs.mean, paper_sd=theirs.sd)

    def drawn(self, number: int) -> Row:
        """This row with one bootstrap replicate in place of its numbers."""
        if self.draws is None:
            return self
        ratio = self.ratio if self.ratio_draws is None else float(self.ratio_draws[number])
        return replace(self, ours=float(self.draws[number]), ratio=ratio)

    def to_json(self) -> dict[str, Any]:
        """The fields that say something, as plain values."""
        fields = asdict(replace(self, draws=None, ratio_draws=None))
        return {key: value for key, value in fields.items() if value not in (None, "", (), [])}


@dataclass
class Rows:
    """Rows by key. `read` are those that were looked up, in order.

    number_of_draw: a bootstrap replicate that stands for the numbers; None for the numbers.
    """

    of: Mapping[Key, Row]
    read: dict[Key, Row] = field(default_factory=dict)
    number_of_draw: int | None = None

    @classmethod
    def from_json(cls, rows: Iterable[Mapping[str, Any]]) -> Rows:
        """Read what `Row.to_json` wrote."""
        found = [Row(**row) for row in rows]
        return cls({(row.table, row.row, row.column): row for row in found})

    def find(self, table: str, row: str, column: str) -> Row:
        """The row of a key; MissingError if there is none or no number of ours in it."""
        found = self.of.get((table, row, column))
        if found is None or found.ours is None:
            raise MissingError(f"{table}: {row}: {column}")
        self.read[table, row, column] = found
        return found if self.number_of_draw is None else found.drawn(self.number_of_draw)

    def number(self, table: str, row: str, column: str) -> float:
        """Our number of a key."""
        return self.find(table, row, column).number

    def names(self, table: str, column: str) -> list[str]:
        """The names of a table's rows that have a number or a word of ours in a column."""
        return [
            row.row
            for row in self.of.values()
            if (row.table, row.column) == (table, column) and row.ours is not None
        ]

    def table(self, name: str) -> list[Row]:
        """All rows of a table."""
        return [row for row in self.of.values() if row.table == name]


def mean_and_sd(values: Iterable[float | None]) -> tuple[float | None, float | None]:
    """Mean and SD (ddof = 1) over seeds: no SD of one, nothing if one lacks."""
    found = list(values)
    if not found or any(one is None for one in found):
        return None, None
    numbers = np.array(found, dtype=np.float64)
    if len(numbers) == 1:
        return float(numbers[0]), None
    return float(numbers.mean()), float(numbers.std(ddof=1))


def centred(draws: Draws, value: float) -> Draws:
    """Replicates moved to have the value as their median, as intervals of `evaluate` are.

    Drawing with replacement makes histograms rougher and distances larger.
    """
    return np.asarray(draws - np.median(draws) + value)


def interval_of(draws: Draws, lowest: float | None = None) -> list[float]:
    """The central 95 % of replicates; not below `lowest`."""
    low, high = np.percentile(draws, [2.5, 97.5]).tolist()
    return [low if lowest is None else max(low, lowest), high]


def over(value: float | None, floor: float | None) -> float | None:
    """value / floor; None where either is nothing or the floor is zero."""
    return None if value is None or not floor else value / floor


def percent_above(value: float | None, other: float | None) -> float | None:
    """By how many percent a value is above another."""
    ratio = over(value, other)
    return None if ratio is None else 100.0 * (ratio - 1.0)


# Measures: an evaluation's numbers of every set

Values = Mapping[str, float | None]


@dataclass(frozen=True, eq=False)
class Measure:
    """One number of every set, with its floor and the ratios to it. n: windows of each set.

    draws: bootstrap replicates by set, (replicate,), paired over sets; floor_draws: of the floor.
    """

    values: Values
    floor: float | None = None
    ratios: Values = field(default_factory=dict)
    intervals: Mapping[str, Sequence[float | None] | None] = field(default_factory=dict)
    n: int | None = None
    draws: Mapping[str, Draws] = field(default_factory=dict)
    floor_draws: Draws | None = None

    def of(
        self, sets: Sequence[str], with_floor: bool = True, joint: str | None = None
    ) -> dict[str, Any]:
        """The fields of a row for some sets: one, or one for each seed. joint: the set beside."""
        ours, sd = mean_and_sd(self.values.get(one) for one in sets)
        ratio, ratio_sd = mean_and_sd(self.ratios.get(one) for one in sets)
        drawn = self.drawn(sets)
        fields: dict[str, Any] = {
            "ours": ours,
            "sd": sd,
            "interval": self.intervals.get(sets[0]) if len(sets) == 1 else None,
            "floor": self.floor if with_floor else None,
            "ratio": ratio,
            "ratio_sd": ratio_sd,
            "n": self.n,
            "seeds": seeds_of(sets),
        }
        if joint is not None:
            fields |= {"joint": self.values.get(joint), "joint_ratio": self.ratios.get(joint)}
        if drawn is not None and ours is not None:
            lowest = 0.0 if drawn.min() >= 0.0 else None
            fields["draws"] = centred(drawn, ours)
            fields["interval"] = fields["interval"] or interval_of(fields["draws"], lowest)
            if self.floor_draws is not None and ratio is not None and self.floor_draws.min() > 0:
                fields["ratio_draws"] = centred(drawn / self.floor_draws, ratio)
                fields["ratio_interval"] = interval_of(fields["ratio_draws"], lowest)
        return fields

    def above(self, other: str) -> Measure:
        """By how many percent each set's number is above that of another set."""
        base, drawn = self.values.get(other), self.draws.get(other)
        values = {one: percent_above(value, base) for one, value in self.values.items()}
        draws = {
            one: 100.0 * (found / drawn - 1.0) for one, found in self.draws.items()
        } if drawn is not None and drawn.min() > 0 else {}  # fmt: skip
        return Measure(values, n=self.n, draws=draws)

    def share_of(self, other: Measure) -> Measure:
        """Percentages of another measure of the same sets; none where that is not above zero."""
        values: dict[str, float | None] = {}
        draws: dict[str, Draws] = {}
        for one, value in self.values.items():
            base = other.values.get(one)
            values[one] = 100.0 * value / base if value is not None and base and base > 0 else None
            if one in self.draws and one in other.draws and other.draws[one].min() > 0:
                draws[one] = 100.0 * self.draws[one] / other.draws[one]
        return Measure(values, n=self.n, draws=draws)

    def drawn(self, sets: Sequence[str]) -> Draws | None:
        """Replicates of the mean over sets, which are drawn with replacement as well."""
        if not sets or any(one not in self.draws for one in sets):
            return None
        found = np.stack([self.draws[one] for one in sets], axis=1)
        if not np.isfinite(found).all():
            return None
        chosen = random_stream(0, Stream.REPRODUCTION, "sets").integers(0, len(sets), found.shape)
        return np.asarray(np.take_along_axis(found, chosen, axis=1).mean(axis=1))


def seeds_of(sets: Sequence[str]) -> list[int]:
    """The seeds of the networks that generated sets; baselines have none."""
    found = [re.match(r"(?:position|velocity|x0)-(\d+)", one) for one in sets]
    return [int(one[1]) for one in found if one]


@dataclass(frozen=True)
class Comparison:
    """The results of an evaluation, as `evaluation.evaluate` gives them in plain values."""

    evaluation: Mapping[str, Any]

    @property
    def n(self) -> int:
        """Windows of each set."""
        n: int = self.evaluation["about"]["n_common"]
        return n

    def quantity(self, family: str, name: str) -> Mapping[str, Any] | None:
        """A quantity's entry."""
        rows = self.evaluation["quantities"]
        return next((row for row in rows if (row["family"], row["name"]) == (family, name)), None)

    def distance(self, family: str, name: str | Sequence[str], kind: str) -> Measure:
        """The distance `kind` (ks, js, w1) of a quantity to the held-out participants.

        name: of several quantities it is their mean.
        """
        if not isinstance(name, str):
            return mean_of([self.distance(family, one, kind) for one in name])
        row = self.quantity(family, name)
        return self._measure(None if row is None else row["distances"][kind])

    def scalar(self, name: str) -> Measure:
        """A temporal distance."""
        rows = self.evaluation["scalars"]
        return self._measure(next((row for row in rows if row["name"] == name), None))

    def decay_ms(self) -> Measure:
        """The lag at which the mean autocorrelation of speed falls below 1/e, in each set."""
        curve = self.evaluation["curves"]["speed_autocorrelation"]
        row = next(row for row in self.evaluation["scalars"] if row["name"] == "autocorrelation")
        lag_ms = np.array(curve["x"], dtype=np.float64)

        def below(values: Any) -> float:
            is_below = np.array(values, dtype=np.float64) < np.exp(-1.0)
            return float(lag_ms[np.argmax(is_below)]) if is_below.any() else float(lag_ms[-1])

        draws = {
            one: np.array([below(one_curve) for one_curve in found])
            for one, found in row.get("curve_draws", {}).items()
        }
        values = {one: below(found) for one, found in curve["sets"].items()}
        return Measure(values, n=self.n, draws=draws)

    def set_means(self, family: str, name: str) -> Measure:
        """The mean of a quantity in each set, "real" and "train" among them."""
        row = self.quantity(family, name)
        if row is None:
            return Measure({})
        return Measure(row["mean"], n=self.n, draws=_arrays(row.get("mean_draws", {})))

    def test(self, name: str, key: str) -> Measure:
        """A number that a test of whole sets found."""
        test = self.evaluation["tests"].get(name, {})
        cells, floor = test.get("synthetic") or {}, (test.get("floor") or {}).get(key)
        draws = _arrays(by_set(cells, f"{key}_draws"))
        return Measure(by_set(cells, key), floor, n=self.n, draws=draws)

    def ratio(self, family: str | None) -> Measure:
        """Ratios to the floor in a family, or overall."""
        ratios = self.evaluation["ratios"]
        of_family = ratios["overall"] if family is None else ratios["families"].get(family, {})
        return Measure(of_family, n=self.n)

    def _measure(self, distance: Mapping[str, Any] | None) -> Measure:
        if distance is None:
            return Measure({})
        cells, of_floor = distance["synthetic"], distance.get("floor_draws")
        return Measure(
            by_set(cells, "value"),
            distance["floor"],
            by_set(cells, "ratio"),
            by_set(cells, "interval"),
            self.n,
            _arrays(by_set(cells, "draws")),
            None if of_floor is None else np.array(of_floor, dtype=np.float64),
        )


def mean_of(parts: Sequence[Measure]) -> Measure:
    """The mean over quantities.

    The ratio is that of the means of distances in the floor's bins, which an evaluation keeps as
    ratio times floor.
    """
    if any(part.floor is None for part in parts):
        return Measure({})
    with_draws = set.intersection(*(set(part.draws) for part in parts))
    of_floor = [part.floor_draws for part in parts if part.floor_draws is not None]
    floors = np.array([part.floor for part in parts])

    def mean(values: Sequence[float | None], weights: Any = None) -> float | None:
        is_whole = all(one is not None for one in values) and (weights is None or any(weights))
        return float(np.average(np.array(values), weights=weights)) if is_whole else None

    sets = parts[0].values
    return Measure(
        {one: mean([part.values[one] for part in parts]) for one in sets},
        float(floors.mean()),
        {one: mean([part.ratios[one] for part in parts], floors) for one in sets},
        n=parts[0].n,
        draws={one: np.mean([part.draws[one] for part in parts], axis=0) for one in with_draws},
        floor_draws=np.mean(of_floor, axis=0) if len(of_floor) == len(parts) else None,
    )


def by_set(cells: Mapping[str, Mapping[str, Any]], key: str) -> dict[str, Any]:
    """A number of the sets that have it."""
    return {one: cell[key] for one, cell in cells.items() if key in cell}


def _arrays(draws: Mapping[str, Sequence[float | None]]) -> dict[str, Draws]:
    """Replicates as arrays; sets that have none are left out."""
    return {one: np.array(values, dtype=np.float64) for one, values in draws.items() if len(values)}


def loss_of(history: Mapping[str, Any], n_draws: int) -> dict[str, Any]:
    """The fields of a row for a run's best validation loss.

    Its replicates add the deviation of a drawn epoch, of the last tenth, from their line: the loss
    goes up and down by so much from one epoch to the next.
    """
    best = history["best_validation_loss"]
    fields: dict[str, Any] = {"ours": best, "seeds": [history["seed"]]}
    last = np.array(history["validation_loss"], dtype=np.float64)
    last = last[-max(10, len(last) // 10) :]
    if best is not None and n_draws and len(last) >= 10 and np.isfinite(last).all():
        epoch = np.arange(len(last))
        deviations = last - np.polyval(np.polyfit(epoch, last, 1), epoch)
        drawn = random_stream(history["seed"], Stream.REPRODUCTION, "deviations").choice(
            deviations, n_draws
        )
        fields["draws"] = best + drawn
        fields["interval"] = interval_of(fields["draws"])
    return fields


def frechet_measure(made: Artefacts, sets: Sequence[str]) -> Measure:
    """The Frechet Gaze Distance of sets to the held-out participants."""
    found = {one: made.frechet[one] for one in ("train", *sets) if one in made.frechet}
    floor, n = (found["train"][key] for key in ("fgd", "n"))
    values, draws = by_set(found, "fgd"), _arrays(by_set(found, "draws"))
    ratios = {one: over(value, floor) for one, value in values.items()}
    return Measure(values, floor, ratios, n=n, draws=draws, floor_draws=draws.get("train"))


# The features' JS in other bins, and less its bias


def most_bins(js: float, n: int) -> int:
    """The most bins in which two equal distributions of n windows each have this JS on average."""
    return int(4.0 * n * js + 1.0)


def fewer_bins() -> int:
    """The number of bins that the paper's smallest JS of a feature allows."""
    smallest = min(row["js"].mean for row in NUMBERS["features"].values())
    return most_bins(smallest, PROTOCOL["n_held_out_windows"]["position"])


def bias(a: Quantity, b: Quantity, edges: np.ndarray) -> float:
    """The JS (nats) expected of two samples of this size if both had the same distribution."""
    counts = [histogram_counts(one.values, edges) for one in (a, b)]
    n_occupied = int(np.count_nonzero(counts[0] + counts[1]))
    return (n_occupied - 1) / 8.0 * (1.0 / len(a.values) + 1.0 / len(b.values))


def other_bins(
    real: Windows, synthetic: Mapping[str, Windows], train: Windows, config: EvaluationConfig
) -> list[dict[str, Any]]:
    """The features' JS in fewer bins, and in our bins less the bias, as an evaluation's rows."""
    sets = arrange(real, synthetic, train, config.seed)
    assert sets.train is not None
    shown = [sets.real, sets.train, *sets.synthetic]
    measured = {
        one.name: list(
            quantities_of(
                "features", FEATURES, kinematic_features(one.gaze, one.rate_hz), one.group
            )
        )
        for one in shown
    }
    rng = random_stream(config.seed, Stream.REPRODUCTION, "bins")
    weights = {
        one.name: draw_weights(one.group.max() + 1, config.n_replicates, rng) for one in shown
    }
    rows = []
    for family, n_bins in {FEWER: fewer_bins(), DEBIASED: BINS["window"]}.items():
        for number, (name, (title, unit)) in enumerate(FEATURES.items()):
            of = {one: quantities[number] for one, quantities in measured.items()}
            of_real = of.pop("real")
            edges = bins_of(of_real, of["train"], n_bins)
            js: dict[str, dict[str, Distance]] = {}
            for one, other in of.items():
                drawn = (weights["real"], weights[one])
                found = distances_with_intervals(of_real, other, edges, drawn)["js"]
                less = bias(of_real, other, edges) if family == DEBIASED else 0.0
                js[one] = {"js": Distance(found.value - less, found.replicates - less)}
            floor = js.pop("train")
            about = {"name": name, "title": title, "family": family, "unit": unit}
            rows.append({**about, "distances": distance_rows(js, floor, keep_draws=True)})
    return rows


# Rows of each table

RowsOf = Iterator[Row]
Measures = dict[str, Measure]


def _list(name: str | None) -> list[str]:
    return [] if name is None else [name]


def _labelled(title: str, unit: str) -> str:
    return f"{title} ({unit})" if unit else title


# The quantities of rows: title, and name or, of a mean, names.
_Named = Mapping[str, tuple[str, str | list[str]]]
_MEANS = {"mean of eight": EIGHT, "mean of nine": list(FEATURES)}
_NINE: _Named = {
    **{name: (title, name) for name, (title, _) in FEATURES.items()},
    **{name: (name, names) for name, names in _MEANS.items()},
}
_EIGHT: _Named = {name: _NINE[name] for name in (*EIGHT, "mean of eight")}


@dataclass(frozen=True)
class _Compared(Comparison):
    """An evaluation's rows of some sets, one or one for each seed, and the joint model's set."""

    sets: Sequence[str]
    joint: str | None

    @classmethod
    def of(cls, made: Artefacts, evaluation: str = "position") -> _Compared:
        """All seeds of a model."""
        plan = made.plan
        sets = plan.velocity_sets if evaluation == "velocity" else plan.position_sets
        return cls(made.evaluations[evaluation], sets, plan.joint_sets.get(evaluation))

    def row(self, name: str, column: str, label: str, measure: Measure, unit: str = "") -> Row:
        """One number of the sets, beside the joint model's."""
        return Row(name, column, label, unit=unit, **measure.of(self.sets, joint=self.joint))

    def measures(self, family: str, name: str | Sequence[str]) -> Measures:
        """KS and JS of a quantity, or the means over several."""
        return {kind: self.distance(family, name, kind) for kind in KINDS}

    def distances(self, family: str, named: _Named) -> RowsOf:
        """KS and JS of quantities."""
        for name, (label, of) in named.items():
            for kind, measure in self.measures(family, of).items():
                yield self.row(name, kind, label, measure, KINDS[kind])

    def by_seed(self, made: Artefacts, measures: Measures) -> RowsOf:
        """The loss of each run, and each measure of what it generated."""
        for one in [*self.sets, *_list(self.joint)]:
            if one in self.sets:
                n_draws = self.evaluation["about"]["n_bootstrap"]
                yield Row(one, "loss", one, **loss_of(made.histories[one], n_draws))
            for column, measure in measures.items():
                yield Row(one, column, one, **measure.of([one]))


def features(made: Artefacts) -> RowsOf:
    """KS and JS of the nine kinematic features, and their means."""
    yield from _Compared.of(made).distances("features", _NINE)


def bins(made: Artefacts) -> RowsOf:
    """The mean JS of features in our bins, in fewer, and less its bias."""
    of, ours = _Compared.of(made), f"{BINS['window']} bins"
    for name, family, label in (
        ("ours", "features", ours),
        ("fewer", FEWER, f"{fewer_bins()} bins"),
        ("debiased", DEBIASED, f"{ours}, less the bias"),
    ):
        for column, names in zip(("js_8", "js_9"), _MEANS.values(), strict=True):
            yield of.row(name, column, label, of.distance(family, names, "js"), "nats")


def w1(made: Artefacts) -> RowsOf:
    """Wasserstein-1 distances of the nine features, each in its own unit."""
    of = _Compared.of(made)
    for name, (title, unit) in FEATURES.items():
        measure = of.distance("features", name, "w1")
        yield of.row(name, "w1", _labelled(title, unit), measure, unit)


def markov(made: Artefacts) -> RowsOf:
    """The kinematic Markov baseline by feature, beside the diffusion model."""
    of = _Compared.of(made)
    columns = {"{}": [MARKOV], "{}_model": of.sets, "{}_joint": _list(of.joint)}
    for name, (title, names) in _EIGHT.items():
        real = of.set_means("features", name).values.get("real")
        yield Row(name, "real", title, real, unit=FEATURES.get(name, ("", ""))[1])
        for kind, measure in of.measures("features", names).items():
            for column, sets in columns.items():
                if sets:
                    fields = measure.of(sets, with_floor=False)
                    yield Row(name, column.format(kind), title, unit=KINDS[kind], **fields)


def fgd(made: Artefacts) -> RowsOf:
    """Frechet Gaze Distance of the model and the baselines."""
    sets, joint = made.plan.position_sets, made.plan.named(["joint"])
    measure = frechet_measure(made, [*sets, *BASELINES, *joint])
    yield Row("diffusion", "fgd", "diffusion model", **measure.of(sets))
    if joint:
        yield Row("joint", "fgd", "joint model", **measure.of(joint))
    for name in BASELINES:
        yield Row(name, "fgd", BASELINE_LABELS[name], **measure.of([name]))


def events(made: Artefacts) -> RowsOf:
    """Means of the I-VT statistics: participants, the reference run, the paper."""
    of, reference = _Compared.of(made), [made.plan.reference]
    for name, (title, unit) in EVENTS.items():
        means = of.set_means("events", name)
        real, train = (means.values.get(one) for one in ("real", "train"))
        above = {one: means.above(one).of(reference, joint=of.joint) for one in ("train", "real")}
        columns: dict[str, dict[str, Any]] = {
            "real": {"ours": real},
            "train": {"ours": train, "n": of.n},
            "generated": means.of(reference),
            "generated_seeds": means.of(of.sets, joint=of.joint),
            "above_train": above["train"],
            "above_real": {**above["real"], "floor": percent_above(train, real)},
        }
        for column, fields in columns.items():
            of_column = "%" if column.startswith("above") else unit
            yield Row(name, column, _labelled(title, unit), unit=of_column, **fields)


def event_distances(made: Artefacts) -> RowsOf:
    """KS and JS of the I-VT statistics of the reference run."""
    of = replace(_Compared.of(made), sets=[made.plan.reference])
    yield from of.distances("events", {name: (title, name) for name, (title, _) in EVENTS.items()})


def panel(made: Artefacts) -> RowsOf:
    """The four-metric framework: speed, its autocorrelation, direction, turning angle."""
    of = _Compared.of(made)
    metrics = {
        name: (f"{title}, JS", of.distance("directions", name, "js"), "nats")
        for name, (title, _) in DIRECTIONS.items()
    }
    title = "autocorrelation of speed, mean absolute difference to 400 ms"
    metrics["autocorrelation"] = (title, of.scalar("autocorrelation"), "")
    for name in ("speed", "autocorrelation", "direction", "turning_angle"):
        label, measure, unit = metrics[name]
        yield of.row(name, "model", label, measure, unit)
        yield Row(name, "markov", label, unit=unit, **measure.of([MARKOV], with_floor=False))


def speed(made: Artefacts) -> RowsOf:
    """What the text says of speed: the decay of its autocorrelation, and its tail."""
    of, unit = _Compared.of(made), "normalized units per sample"
    tail = f"mean over windows of the highest speed ({unit})"
    numbers = {
        "decay": ("autocorrelation of speed falls below 1/e (ms)", of.decay_ms(), "ms"),
        "tail": (tail, of.set_means("features", "max_speed"), unit),
    }
    columns = {"real": ["real"], "train": ["train"], "model": of.sets}
    columns |= {"markov": [MARKOV], "joint": _list(of.joint)}
    for name, (label, measure, unit) in numbers.items():
        for column, sets in columns.items():
            if sets:
                yield Row(name, column, label, unit=unit, **measure.of(sets))


def sampling(made: Artefacts) -> RowsOf:
    """DDIM steps, eta and weights of the reference run."""
    plan, of, eight = made.plan, _Compared.of(made, "sampling"), list(EIGHT)
    other = f"trained to predict {plan.runs[plan.x0].recipe.objective}"
    for name, label, one, is_mean in (
        *((f"steps {n}", f"{n} DDIM steps", plan.with_steps(n), False) for n in STEPS),
        *((f"eta {eta:g}", f"eta = {eta:.1f}", plan.with_eta(eta), True) for eta in ETAS),
        ("raw", "raw weights of the last epoch", plan.raw, False),
        ("ema", "averaged weights (EMA) of the last epoch", plan.last, False),
        ("other", other, plan.x0, True),
    ):
        words, names = ("mean of eight", eight) if is_mean else ("mean speed", "mean_speed")
        named: _Named = {name: (f"{label}, {words}", names)}
        yield from replace(of, sets=[one]).distances("features", named)


def objective(made: Artefacts) -> RowsOf:
    """Predicting eps against predicting x0."""
    plan = made.plan
    runs = {plan.runs[run].recipe.objective: run for run in (plan.reference, plan.x0)}
    measure = frechet_measure(made, list(runs.values()))
    for target, run in sorted(runs.items()):
        label, loss = f"predicts {target} ({run})", made.histories[run]["best_validation_loss"]
        yield Row(target, "loss", label, loss, seeds=seeds_of([run]))
        yield Row(target, "fgd", label, **measure.of([run]))


def seeds(made: Artefacts) -> RowsOf:
    """Each seed of the position model: its loss and the distances of what it generates."""
    of = _Compared.of(made)
    measures = {f"{kind}_8": one for kind, one in of.measures("features", EIGHT).items()}
    measures["fgd"] = frechet_measure(made, of.sets)
    for name in ("x_std", "y_std", "x_range", "y_range"):
        for kind, measure in of.measures("features", name).items():
            measures[f"{name}_{kind}"] = measure
    yield from of.by_seed(made, measures)
    for name, columns in NUMBERS["seeds"].items():
        yield from (Row(name, column, name) for column in columns)


def downstream(made: Artefacts) -> RowsOf:
    """Predicting the number of fixations: trained on real windows, on synthetic ones, on both."""
    of = _Compared.of(made)

    def measure(way: str, key: str) -> Measure:
        return of.test("tstr", f"{way}_{key}")

    for key in ("r2", "mae"):
        # The same for every set. Its SD is over folds of participants.
        sd = measure("trtr", f"{key}_sd").values.get(of.sets[0])
        real = {**measure("trtr", key).of(of.sets[:1]), "sd": sd, "seeds": ()}
        yield Row("trtr", key, "TRTR (real → real)", **real)
        for way, label in {"tstr": "synthetic", "aug": "real + synthetic"}.items():
            fields = measure(way, key).of(of.sets, with_floor=False, joint=of.joint)
            yield Row(way, key, f"{way.upper()} ({label} → real)", **fields)
        floor, sd = (measure("tstr", one).floor for one in (key, f"{key}_sd"))
        label = "TSTR with the training participants' windows (floor)"
        yield Row("floor", key, label, floor, sd, n=of.n)
    share = measure("tstr", "r2").share_of(measure("trtr", "r2"))
    yield of.row("tstr / trtr", "r2", "TSTR / TRTR (%)", share, "%")


def velocity(made: Artefacts) -> RowsOf:
    """The velocity model: JS, lag-one autocorrelations and spectra."""
    of = _Compared.of(made, "velocity")
    titles = {name: title for name, (title, _) in VELOCITY.items()}
    titles["path_length"] = "reconstructed path length"
    for name, title in titles.items():
        yield of.row(name, "js", title, of.distance("velocity", name, "js"), "nats")
        for column in ("rho1", "psd") if name in TEMPORAL else ():
            yield of.row(name, column, title, of.scalar(f"{column}_{name}"))
    spectrum = np.array(of.evaluation["curves"]["speed_spectrum"]["sets"]["real"])
    white = float(np.abs(spectrum - spectrum.mean()).mean())
    yield Row("speed", "white", titles["speed"], white, n=of.n)
    mean, label = of.distance("velocity", list(VELOCITY), "js"), "(without path length)"
    yield of.row("mean of five", "js", f"mean of five {label}", mean, "nats")


def velocity_seeds(made: Artefacts) -> RowsOf:
    """Each seed of the velocity model: its loss and the distances of what it generates."""
    of = _Compared.of(made, "velocity")
    measures = {"js_5": of.distance("velocity", list(VELOCITY), "js")}
    for name in (*VELOCITY, "path_length"):
        measures[f"{name}_js"] = of.distance("velocity", name, "js")
    yield from of.by_seed(made, measures)


def training(made: Artefacts) -> RowsOf:
    """Each network: losses, epochs, wall time."""
    plan = made.plan
    for run, planned in plan.runs.items():
        history, seconds = made.histories[run], made.histories[run]["seconds"]
        ours = {
            "objective": history["objective"],
            "epochs": history["epochs"],
            "loss": history["best_validation_loss"],
            "epoch": history["best_epoch"],
            "training_loss": history["training_loss_at_best"],
            "minutes": None if seconds is None else seconds / 60.0,
            "device": history["gpu"] or history["device"],
            "parameters": history["n_parameters"],
        }
        theirs = _published_training(plan, run)
        n = made.about[plan.representation_of(run)]["n_real_windows"]
        counts: dict[str, Any] = {"n": n, "seeds": [planned.seed]}
        for column, value in ours.items():
            row = Row(run, column, run, value, paper=theirs.get(column), **counts)
            if column == "minutes":
                row = replace(row, unit="min", note="not recorded" if value is None else "")
            yield row
    runs, label = plan.position_sets, "position, mean of seeds"
    loss, sd = mean_and_sd(made.histories[run]["best_validation_loss"] for run in runs)
    mean = Row("position", "loss", label, loss, sd, seeds=seeds_of(runs))
    best, best_sd = TEXT["best_validation_loss"]
    is_papers = plan.position.objective == "eps"
    yield replace(mean, paper=best, paper_sd=best_sd) if is_papers else mean


def _published_training(plan: Plan, run: str) -> dict[str, float]:
    """The paper's numbers of this run: of seed 123, of the reference or of the ablation."""
    target = plan.runs[run].recipe.objective
    numbers: dict[str, float] = {}
    if run in (plan.reference, plan.x0):
        numbers["loss"] = NUMBERS["objective"][target]["loss"].mean
    elif run == "position-123" and target == "eps":
        numbers["loss"] = NUMBERS["seeds"]["paper, seed 123"]["loss"].mean
    if run == plan.reference and target == "eps":
        numbers["epoch"] = TEXT["reference_epoch"]
        numbers["training_loss"] = TEXT["reference_training_loss"]
    return numbers


def beyond(made: Artefacts) -> RowsOf:
    """What the paper did not measure: ratios to the floor, classifiers, memorisation."""
    plan, position = made.plan, Comparison(made.evaluations["position"])
    velocity = Comparison(made.evaluations["velocity"])
    beside = [plan.joint_sets["velocity"]] if plan.joint_sets else []
    for name, label, compared, sets in (
        ("position", "position model", position, plan.position_sets),
        *((one, "joint model", position, [one]) for one in plan.named(["joint"])),
        *((one, BASELINE_LABELS[one], position, [one]) for one in BASELINES),
        ("velocity", "velocity model", velocity, plan.velocity_sets),
        *((one, "joint model, as the velocity model", velocity, [one]) for one in beside),
    ):
        yield Row(name, "ratio_overall", label, **compared.ratio(None).of(sets))
        for family in FAMILIES:
            yield Row(name, f"ratio_{family}", label, **compared.ratio(family).of(sets))
        for key, test in TESTS.items():
            yield Row(name, key, label, **compared.test(test, key).of(sets))


ROWS: dict[str, Callable[[Artefacts], RowsOf]] = {
    rows.__name__.replace("_", "-"): rows
    for rows in (
        *(features, bins, w1, markov, fgd, events, event_distances, panel, speed, sampling),
        *(objective, seeds, downstream, velocity, velocity_seeds, training, beyond),
    )
}


# Tables


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

    def required(self, plan: Plan) -> Required:
        """The artefacts that it is built from."""
        sets = plan.named(self.fgd)
        return {
            "evaluations": list(self.evaluations),
            "frechet": ["train", *sets] if sets else [],
            "histories": plan.named(self.runs),
        }

    def described(self, plan: Plan) -> dict[str, Any]:
        """What results.json says of it beside its rows."""
        values = {
            "reference": plan.reference,
            "whole": plan.position_sets[-1],
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
        for kind in ("evaluations", "frechet", "histories")
    }


def rows_of(made: Artefacts, names: Sequence[str]) -> dict[Key, Row]:
    """The rows of tables beside the paper's numbers, with their bootstrap replicates, by key."""
    return {
        (name, row.row, row.column): row.beside_paper(name)
        for name in names
        for row in ROWS[name](made)
    }
