"""Claims: what the paper says, and whether it holds here.

claims.toml has each claim's sentences; its rule is a function here. Numbers on other recordings
cannot be equal, and histogram distances at another number of windows or bins cannot be compared. A
rule therefore asks for a ratio to the floor, for an order, or for the paper's own bound where that
does not depend on the number of windows. It is applied to the numbers and to every bootstrap
replicate of them; a verdict that fewer than `SUPPORT` of the replicates share is "undecided". A
claim whose rows are not there is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from gazediffusion.evaluation.quantities import EVENTS, FEATURES, TEMPORAL, VELOCITY
from gazediffusion.evaluation.report import as_text
from gazediffusion.reproduction.plan import BASELINES, ETAS
from gazediffusion.reproduction.tables import (
    EIGHT,
    KINDS,
    NUMBERS,
    PROTOCOL,
    TEXT,
    Key,
    MissingError,
    Published,
    Row,
    Rows,
    in_words,
    read_data,
)

Verdict = Literal["holds", "holds in part", "does not hold", "undecided"]
HOLDS: Verdict = "holds"
IN_PART: Verdict = "holds in part"
FAILS: Verdict = "does not hold"
UNDECIDED: Verdict = "undecided"
VERDICTS = (HOLDS, IN_PART, FAILS, UNDECIDED)

# The largest ratio to the floor that still counts as near.
NEAR = 2.0
# The 95 % interval of an SD of three seeds, as factors of it (chi-squared, 2 degrees of freedom).
SD_FACTORS = (0.5207, 6.2847)
_TEMPORAL = {name: VELOCITY[name] for name in TEMPORAL}

Finding = tuple[Verdict, dict[str, Any]]
Titles = Mapping[str, tuple[str, str]]
Rule = Callable[..., Finding]
RULES: dict[str, Rule] = {}
# The share of bootstrap replicates that must have the verdict of the numbers.
SUPPORT = 0.95

_DATA = read_data("claims")
_EVENT = _DATA.pop("event")
CLAIMS: dict[str, dict[str, Any]] = {
    name: {**_EVENT, **claim} if claim.pop("like", None) else claim for name, claim in _DATA.items()
}


def evaluate_claims(rows: Mapping[Key, Row]) -> list[dict[str, Any]]:
    """Every claim whose rows are there.

    name; claim: what the paper says; ours: our numbers in a sentence; rule and verdict; support:
    the share of bootstrap replicates with each verdict; numbers: the rows that were read, by key.
    is_reversed: whether the distances agree with the paper and their ratios to the floor do not.
    """
    found = []
    for name, claim in CLAIMS.items():
        read = Rows(rows)
        try:
            (verdict, values), listed = _apply(name, claim, read)
        except MissingError:
            continue
        support = _support(name, claim, read)
        if support and support.get(verdict, 0.0) < SUPPORT:
            verdict = UNDECIDED
        words = {**listed, **values, "text": TEXT, "protocol": PROTOCOL, "near": NEAR}
        said = [in_words(claim[key], words) for key in ("paper", "ours", "rule")]
        numbers = [
            {"table": table, "row": row, "column": column, "ours": one.ours}
            for (table, row, column), one in read.read.items()
        ]
        texts = dict(zip(("claim", "ours", "rule"), said, strict=True))
        found.append(
            {
                "name": name,
                **texts,
                "verdict": verdict,
                "support": support,
                "is_reversed": bool(values.get("is_reversed")) and verdict != UNDECIDED,
                "numbers": numbers,
            }
        )
    return found


def _apply(name: str, claim: Mapping[str, Any], rows: Rows) -> tuple[Finding, dict[str, Row]]:
    """The finding of a claim's rule, and the rows that the claim lists."""
    listed = {word: rows.find(*key) for word, key in claim.get("rows", {}).items()}
    return RULES[name](rows, **listed), listed


def _support(name: str, claim: Mapping[str, Any], read: Rows) -> dict[str, float]:
    """The share of bootstrap replicates with each verdict; none where no row has replicates."""
    lengths = [len(row.draws) for row in read.read.values() if row.draws is not None]
    n = min(lengths, default=0)
    found = Counter(
        _apply(name, claim, Rows(read.of, number_of_draw=number))[0][0] for number in range(n)
    )
    return {verdict: count / n for verdict, count in found.most_common()}


# Rules


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of claims, which takes all rows and, by name, those that a claim lists."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def verdict(holds: bool, in_part: bool) -> Verdict:
    """The verdict of a rule with two conditions, the second weaker."""
    return HOLDS if holds else IN_PART if in_part else FAILS


def verdict_of(*conditions: bool) -> Verdict:
    """Holds if all conditions are met, in part if some are."""
    return verdict(all(conditions), any(conditions))


def ratio_of(row: Row) -> float:
    """The ratio to the floor; MissingError if there is none."""
    if row.ratio is None:
        raise MissingError(f"{row.table}: {row.row}: {row.column}: ratio")
    return row.ratio


def near(row: Row) -> Verdict:
    """Holds up to the floor, in part up to `NEAR` times the floor."""
    return verdict(ratio_of(row) <= 1.0, ratio_of(row) <= NEAR)


def highest(
    rows: Rows, table: str, titles: Titles, column: str, key: Callable[[Row], float]
) -> tuple[Row, dict[str, Any]]:
    """The row with the highest of our numbers, or of their ratios; and what is said of it."""
    row = max((rows.find(table, name, column) for name in titles), key=key)
    return row, {"row": row, "title": titles[row.row][0]}


def number_of(row: Row) -> float:
    """Our number."""
    return row.number


def position_seeds(rows: Rows, table: str, column: str, n: int) -> list[str]:
    """The position model's runs that a table has; MissingError if fewer than n."""
    found = [name for name in rows.names(table, column) if name.startswith("position-")]
    if len(found) < n:
        raise MissingError(table)
    return found


@rule("size of the network")
def _network_size(rows: Rows) -> Finding:
    runs = [run for run in rows.names("training", "parameters") if not run.startswith("joint")]
    sizes = sorted({int(rows.number("training", run, "parameters")) for run in runs})
    if not sizes:
        raise MissingError("training")
    holds = verdict(sizes == [PROTOCOL["n_parameters"]], len(sizes) == 1)
    return holds, {"n": len(runs), "sizes": " and ".join(map(as_text, sizes))}


@rule("mean JS over nine features", "velocity model's mean JS")
def _mean_js(rows: Rows, row: Row) -> Finding:
    return near(row), {}


@rule("highest feature-wise JS")
def _highest_feature_js(rows: Rows) -> Finding:
    row, values = highest(rows, "features", FEATURES, "js", ratio_of)
    return near(row), values


@rule("velocity model's highest JS")
def _velocity_highest_js(rows: Rows) -> Finding:
    row, values = highest(rows, "velocity", VELOCITY, "js", ratio_of)
    return near(row), {**values, "theirs": Published.of(TEXT["velocity_highest_js"])}


@rule("fixation ratio: lowest KS, highest JS")
def _fixation_ratio(rows: Rows) -> Finding:
    ks, js = ({name: rows.number("features", name, kind) for name in EIGHT} for kind in KINDS)
    lowest, highest_js = min(EIGHT, key=ks.__getitem__), max(EIGHT, key=js.__getitem__)
    holds = verdict_of(lowest == "fixation_ratio", highest_js == "fixation_ratio")
    return holds, {"lowest": FEATURES[lowest][0], "highest": FEATURES[highest_js][0]}


@rule("y-std, y-range and displacement best")
def _best_features(rows: Rows) -> Finding:
    best = sorted(EIGHT, key=lambda name: rows.number("features", name, "js"))[:3]
    by_ratio = sorted(EIGHT, key=lambda name: ratio_of(rows.find("features", name, "js")))[:3]
    n_same = len({"y_std", "y_range", "displacement"} & set(best))
    listed, listed_by_ratio = (
        ", ".join(FEATURES[name][0] for name in found) for found in (best, by_ratio)
    )
    return verdict(n_same == 3, n_same == 2), {"best": listed, "by_ratio": listed_by_ratio}


@rule("fixation duration", "fixation count", "saccade peak speed")
def _event_within(rows: Rows, above: Row, generated: Row, real: Row) -> Finding:
    bound = TEXT["event_bounds_percent"][above.row]
    if above.floor is None:
        raise MissingError(f"events: {above.row}: floor")
    holds = verdict(round(abs(above.number)) <= bound, abs(above.number) <= abs(above.floor))
    return holds, {"bound": bound, "title": EVENTS[above.row][0].capitalize()}


@rule("FGD far below the baselines")
def _fgd_below_baselines(rows: Rows, model: Row) -> Finding:
    best = min((rows.find("fgd", name, "fgd") for name in BASELINES), key=lambda row: row.number)
    times = best.number / max(model.number, 1e-12)
    nearest = min(NUMBERS["fgd"][name]["fgd"].mean for name in BASELINES)
    return verdict(times > 10.0, times > 1.0), {"best": best, "times": times, "nearest": nearest}


@rule("FGD order at every seed")
def _fgd_order(rows: Rows) -> Finding:
    runs = position_seeds(rows, "seeds", "fgd", 2)
    nearest = min(rows.number("fgd", name, "fgd") for name in BASELINES)
    values = [rows.number("seeds", run, "fgd") for run in runs]
    n_below = sum(value < nearest for value in values)
    found = {"n_below": n_below, "n": len(runs), "largest": max(values), "nearest": nearest}
    return verdict(n_below == len(runs), n_below > len(runs) / 2), found


@rule("relative SDs of seeds")
def _relative_sds(rows: Rows) -> Finding:
    table = {"mean KS": ("features", "mean of eight", "ks"), "FGD": ("fgd", "diffusion", "fgd")}
    table["mean JS"] = ("features", "mean of eight", "js")
    theirs = TEXT["relative_sd_percent"]
    said, is_inside = [], []
    for name, key in table.items():
        row = rows.find(*key)
        if row.sd is None:
            raise MissingError(name)
        ours = 100.0 * row.sd / row.number
        low, high = (factor * ours for factor in SD_FACTORS)
        is_inside.append(low <= theirs[name] <= high)
        said.append(f"{name} {as_text(ours)} % [{as_text(low)}, {as_text(high)}]")
    return verdict_of(*is_inside), {"said": ", ".join(said)}


@rule("FGD far below the naive baselines")
def _fgd_far_below_naive(rows: Rows) -> Finding:
    ours, bound = rows.number("fgd", "diffusion", "fgd"), TEXT["fgd_below_naive_percent"]
    below = {
        name: 100.0 * (1.0 - ours / rows.number("fgd", name, "fgd"))
        for name in ("uniform", "gaussian")
    }
    said = " and ".join(f"{value:.1f} % below {name}" for name, value in below.items())
    return verdict(min(below.values()) > bound, min(below.values()) > 90.0), {"below": said}


@rule("training on synthetic windows alone")
def _tstr_share(rows: Rows, share: Row, tstr: Row, floor: Row) -> Finding:
    trtr = NUMBERS["downstream"]["trtr"]["r2"].mean
    bound = (share.paper or 0.0) - 100.0 * (tstr.paper_sd or 0.0) / trtr
    return verdict(share.number >= bound, share.number >= 50.0), {"bound": bound}


@rule("augmentation matches real data")
def _augmentation(rows: Rows, aug: Row, trtr: Row) -> Finding:
    gap = aug.number - trtr.number
    holds = verdict(gap >= -TEXT["aug_gap_to_trtr"], gap >= -(trtr.sd or 0.0))
    return holds, {"gap": gap}


@rule("path length worse in velocity space")
def _path_length(rows: Rows, velocity: Row, position: Row) -> Finding:
    is_worse = ratio_of(velocity) > ratio_of(position)
    is_reversed = velocity.number > position.number and not is_worse
    return verdict(is_worse, False), {"is_reversed": is_reversed}


@rule("local motion before integrated structure")
def _local_before_integrated(rows: Rows) -> Finding:
    found = {name: rows.find("velocity", name, "js") for name in (*VELOCITY, "path_length")}
    titles = {name: title for name, (title, _) in VELOCITY.items()} | {"path_length": "path length"}
    ratios, numbers = ({n: of(row) for n, row in found.items()} for of in (ratio_of, number_of))
    least, most = (pick(ratios, key=lambda name: ratios[name]) for pick in (min, max))
    holds = verdict_of(least == "turning_angle", most == "path_length")
    by_distance = max(numbers, key=lambda name: numbers[name]) == "path_length"
    values = {
        "smallest": found[least],
        "largest": found[most],
        "titles": (titles[least], titles[most]),
    }
    return holds, {**found, **values, "is_reversed": by_distance and most != "path_length"}


@rule("fixation dispersion")
def _dispersion(rows: Rows, above_real: Row, above_train: Row, **shown: Row) -> Finding:
    bound = 0.5 * TEXT["dispersion_percent"]
    least = min(above_real.number, above_train.number)
    return verdict(least >= bound, least > 0.0), {"bound": bound}


@rule("autocorrelation of speed decays within 50 ms")
def _decay(rows: Rows, **listed: Row) -> Finding:
    return verdict_of(*(row.number <= 50.0 for row in listed.values())), {}


@rule("high-speed tail")
def _tail(rows: Rows, real: Row, model: Row, markov: Row) -> Finding:
    above = [row.number / real.number - 1.0 for row in (model, markov)]
    holds = verdict_of(abs(above[0]) <= 0.1, above[1] <= -0.1)
    return holds, {"above": [100.0 * one for one in above]}


@rule("saccade undercount")
def _saccade_undercount(rows: Rows, above_real: Row, above_train: Row, **shown: Row) -> Finding:
    return verdict_of(above_real.number <= -5.0, above_train.number <= -5.0), {}


def _harder(rows: Rows, feature: str, of: Callable[[Row], float]) -> tuple[int, int]:
    """In how many of the seeds x is farther than y, in KS and in JS; and the number of seeds."""
    runs = position_seeds(rows, "seeds", f"x_{feature}_ks", 2)
    n_harder = 0
    for run in runs:
        pairs = [
            [of(rows.find("seeds", run, f"{axis}_{feature}_{kind}")) for axis in "xy"]
            for kind in KINDS
        ]
        n_harder += all(x > y for x, y in pairs)
    return n_harder, len(runs)


@rule("x-std harder than y-std")
def _x_std_is_harder(rows: Rows, x: Row, y: Row) -> Finding:
    n_harder, n = _harder(rows, "std", number_of)
    n_by_ratio, _ = _harder(rows, "std", ratio_of)
    is_reversed = n_harder > n / 2 and n_by_ratio == 0
    holds = verdict(n_by_ratio == n, n_harder == n)
    values = {"n_harder": n_harder, "n_by_ratio": n_by_ratio, "n": n}
    return holds, {**values, "is_reversed": is_reversed}


@rule("x-range and y-range in no fixed order")
def _ranges_in_no_order(rows: Rows) -> Finding:
    n_harder, n = _harder(rows, "range", number_of)
    return verdict(0 < n_harder < n, False), {"n_harder": n_harder, "n": n}


@rule("validation loss does not rank seeds")
def _loss_does_not_rank(rows: Rows) -> Finding:
    runs = position_seeds(rows, "seeds", "js_8", 2)
    order = {
        column: sorted(runs, key=lambda run: rows.number("seeds", run, column))
        for column in ("loss", "js_8", "fgd")
    }
    words = {"js_8": "mean JS", "fgd": "FGD"}
    same = [word for column, word in words.items() if order[column] == order["loss"]]
    values = {**order, "same": " and by ".join(same) or "neither"}
    return verdict(not same, len(same) == 1), values


@rule("little overfitting")
def _little_overfitting(rows: Rows) -> Finding:
    epochs = {
        run: [rows.number("training", run, column) for column in ("epoch", "epochs")]
        for run in position_seeds(rows, "training", "epoch", 1)
    }
    said = [f"{run} at {best:g} of {last:g}" for run, (best, last) in epochs.items()]
    is_late = [best >= 0.75 * last for best, last in epochs.values()]
    return verdict_of(*is_late), {"lowest": ", ".join(said)}


@rule("better than the kinematic Markov")
def _better_than_markov(rows: Rows) -> Finding:
    pairs = {
        name: [
            [rows.number("markov", name, column) for column in (f"{kind}_model", kind)]
            for kind in KINDS
        ]
        for name in (*EIGHT, "mean of eight")
    }
    is_better = {name: all(ours < markov for ours, markov in of) for name, of in pairs.items()}
    in_mean = is_better.pop("mean of eight")
    means = ", ".join(
        f"mean {kind} {as_text(ours)} against {as_text(markov)} "
        f"({100.0 * (1.0 - ours / markov):.1f} % less)"
        for kind, (ours, markov) in zip(("KS", "JS"), pairs["mean of eight"], strict=True)
    )
    values = {"n_better": sum(is_better.values()), "n": len(EIGHT), "means": means}
    return verdict(all(is_better.values()), in_mean), values


@rule("speed and turning angle nearer than the Markov", "averaged weights better than raw")
def _first_of_pairs_is_lower(rows: Rows, a: Row, a_other: Row, b: Row, b_other: Row) -> Finding:
    return verdict_of(a.number < a_other.number, b.number < b_other.number), {}


@rule("eps better than x0")
def _eps_beats_x0(rows: Rows, eps: Row, x0: Row) -> Finding:
    return verdict(10.0 * eps.number <= x0.number, eps.number < x0.number), {}


def _sampling(rows: Rows, names: Sequence[str]) -> dict[str, list[Row]]:
    """Rows of the table of sampling by distance."""
    return {kind: [rows.find("sampling", name, kind) for name in names] for kind in ("ks", "js")}


@rule("eta = 0 is best")
def _eta_zero_is_best(rows: Rows) -> Finding:
    of = _sampling(rows, [f"eta {eta:g}" for eta in ETAS])
    best = [ETAS[int(np.argmin([row.number for row in found]))] for found in of.values()]
    return verdict_of(*(eta == 0.0 for eta in best)), {**of, "best": best}


@rule("saturation near 100 steps")
def _saturates_near_100_steps(rows: Rows) -> Finding:
    of = _sampling(rows, ["steps 10", "steps 100", "steps 200"])
    gains = [(a.number - b.number, b.number - c.number) for a, b, c in of.values()]
    return verdict_of(*(gain > 0 and more <= 0.25 * gain for gain, more in gains)), {**of}


@rule("lag-one autocorrelations")
def _lag_one(rows: Rows) -> Finding:
    row, values = highest(rows, "velocity", _TEMPORAL, "rho1", number_of)
    return verdict(row.number < TEXT["highest_rho1"], ratio_of(row) <= NEAR), values


@rule("spectra")
def _spectra(rows: Rows) -> Finding:
    row, values = highest(rows, "velocity", _TEMPORAL, "psd", number_of)
    white, bound = rows.number("velocity", "speed", "white"), 10.0 * TEXT["psd_order"]
    values |= {"white": white, "bound": bound}
    # A bound that white noise nearly meets says nothing of a spectrum.
    return (UNDECIDED if white < 2.0 * bound else verdict(row.number < bound, False)), values
