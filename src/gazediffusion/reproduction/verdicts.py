"""Verdicts on claims: a rule for each claim of claims.toml.

Numbers on other recordings cannot be equal. A rule therefore asks for the paper's own bound or,
where participants differ by more among themselves, for a ratio to the floor. It gives the verdict,
and the values that the claim's sentences name beside the rows listed there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from gazediffusion.document import as_text
from gazediffusion.evaluation.quantities import EVENTS, FEATURES, TEMPORAL, VELOCITY
from gazediffusion.reproduction import paper
from gazediffusion.reproduction.plan import BASELINES, ETAS
from gazediffusion.reproduction.rows import MissingError, Row, Rows

Verdict = Literal["holds", "holds in part", "does not hold"]
HOLDS: Verdict = "holds"
IN_PART: Verdict = "holds in part"
FAILS: Verdict = "does not hold"
VERDICTS = (HOLDS, IN_PART, FAILS)

# The largest ratio to the floor that still counts as near, where the paper's own bound is missed.
NEAR = 2.0

Finding = tuple[Verdict, dict[str, Any]]
Rule = Callable[..., Finding]
RULES: dict[str, Rule] = {}


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


def near(row: Row, bound: float) -> Verdict:
    """Holds up to a bound or up to the floor, in part up to `NEAR` times the floor."""
    ratio = float("inf") if row.ratio is None else row.ratio
    return verdict(row.number <= bound or ratio <= 1.0, ratio <= NEAR)


def highest(rows: Rows, table: str, names: Sequence[str], column: str) -> Row:
    """The row with the highest of our numbers."""
    return max((rows.find(table, name, column) for name in names), key=lambda row: row.number)


def position_seeds(rows: Rows, table: str, column: str, n: int) -> list[str]:
    """The position model's runs that a table has; MissingError if fewer than n."""
    found = [name for name in rows.names(table, column) if name.startswith("position-")]
    if len(found) < n:
        raise MissingError(table)
    return found


@rule("size of the network")
def _network_size(rows: Rows) -> Finding:
    runs = rows.names("training", "parameters")
    sizes = sorted({int(rows.number("training", run, "parameters")) for run in runs})
    if not sizes:
        raise MissingError("training")
    holds = verdict(sizes == [paper.PROTOCOL["n_parameters"]], len(sizes) == 1)
    return holds, {"n": len(runs), "sizes": " and ".join(map(as_text, sizes))}


@rule("mean JS over nine features", "velocity model's mean JS")
def _mean_js(rows: Rows, row: Row) -> Finding:
    bound = (row.paper or 0.0) + (row.paper_sd or 0.0)
    return near(row, bound), {"bound": bound}


@rule("highest feature-wise JS")
def _highest_feature_js(rows: Rows) -> Finding:
    row = highest(rows, "features", list(FEATURES), "js")
    is_near = row.ratio is not None and row.ratio <= NEAR
    holds = verdict(row.number < paper.TEXT["highest_feature_js"], is_near)
    return holds, {"row": row, "title": FEATURES[row.row][0]}


@rule("velocity model's highest JS")
def _velocity_highest_js(rows: Rows) -> Finding:
    row = highest(rows, "velocity", list(VELOCITY), "js")
    theirs = paper.Published.of(paper.TEXT["velocity_highest_js"])
    bound = theirs.mean + (theirs.sd or 0.0)
    title = VELOCITY[row.row][0]
    return near(row, bound), {"row": row, "title": title, "theirs": theirs, "bound": bound}


@rule("fixation duration", "fixation count", "saccade peak speed")
def _event_within(rows: Rows, above: Row, generated: Row, real: Row) -> Finding:
    bound = paper.TEXT["event_bounds_percent"][above.row]
    if above.floor is None:
        raise MissingError(f"events: {above.row}: floor")
    holds = verdict(round(abs(above.number)) <= bound, abs(above.number) <= abs(above.floor))
    return holds, {"bound": bound, "title": EVENTS[above.row][0].capitalize()}


@rule("FGD far below the baselines")
def _fgd_below_baselines(rows: Rows, model: Row) -> Finding:
    best = min((rows.find("fgd", name, "fgd") for name in BASELINES), key=lambda row: row.number)
    times = best.number / max(model.number, 1e-12)
    nearest = min(paper.NUMBERS["fgd"][name]["fgd"].mean for name in BASELINES)
    return verdict(times > 10.0, times > 1.0), {"best": best, "times": times, "nearest": nearest}


@rule("FGD far below the naive baselines")
def _fgd_far_below_naive(rows: Rows) -> Finding:
    ours, bound = rows.number("fgd", "diffusion", "fgd"), paper.TEXT["fgd_below_naive_percent"]
    below = {
        name: 100.0 * (1.0 - ours / rows.number("fgd", name, "fgd"))
        for name in ("uniform", "gaussian")
    }
    said = " and ".join(f"{value:.1f} % below {name}" for name, value in below.items())
    return verdict(min(below.values()) > bound, min(below.values()) > 90.0), {"below": said}


@rule("training on synthetic windows alone")
def _tstr_share(rows: Rows, share: Row, tstr: Row, floor: Row) -> Finding:
    trtr = paper.NUMBERS["downstream"]["trtr"]["r2"].mean
    bound = (share.paper or 0.0) - 100.0 * (tstr.paper_sd or 0.0) / trtr
    return verdict(share.number >= bound, share.number >= 50.0), {"bound": bound}


@rule("augmentation matches real data")
def _augmentation(rows: Rows, aug: Row, trtr: Row) -> Finding:
    gap = aug.number - trtr.number
    holds = verdict(gap >= -paper.TEXT["aug_gap_to_trtr"], gap >= -(trtr.sd or 0.0))
    return holds, {"gap": gap}


@rule("path length worse in velocity space")
def _path_length(rows: Rows, velocity: Row, position: Row) -> Finding:
    gap = velocity.number - position.number
    return verdict(gap > (velocity.sd or 0.0) + (position.sd or 0.0), gap > 0), {}


@rule("local motion before integrated structure")
def _local_before_integrated(rows: Rows) -> Finding:
    found = {name: rows.find("velocity", name, "js") for name in (*VELOCITY, "path_length")}
    titles = {name: title for name, (title, _) in VELOCITY.items()} | {"path_length": "path length"}
    least, most = (pick(found, key=lambda name: found[name].number) for pick in (min, max))
    values = {"smallest": found[least], "largest": found[most]}
    holds = verdict_of(least == "turning_angle", most == "path_length")
    return holds, {**found, **values, "titles": (titles[least], titles[most])}


@rule("saccade undercount")
def _saccade_undercount(rows: Rows, above_real: Row, above_train: Row, **shown: Row) -> Finding:
    return verdict_of(above_real.number <= -5.0, above_train.number <= -5.0), {}


@rule("x-std harder than y-std")
def _x_std_is_harder(rows: Rows, x: Row, y: Row) -> Finding:
    def is_harder(run: str, kind: str) -> bool:
        of_x, of_y = (rows.number("seeds", run, f"{axis}_std_{kind}") for axis in "xy")
        return of_x > of_y

    runs = position_seeds(rows, "seeds", "js_8", 2)
    n_harder = sum(is_harder(run, "ks") and is_harder(run, "js") for run in runs)
    holds = verdict(n_harder == len(runs), n_harder > len(runs) / 2)
    return holds, {"n_harder": n_harder, "n": len(runs)}


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
    features = [name for name in FEATURES if name != "path_length"]
    pairs = {
        name: [
            (rows.number("markov", name, f"{kind}_model"), rows.number("markov", name, kind))
            for kind in ("ks", "js")
        ]
        for name in (*features, "mean of eight")
    }
    is_better = {name: all(ours < markov for ours, markov in of) for name, of in pairs.items()}
    in_mean = is_better.pop("mean of eight")
    means = ", ".join(
        f"mean {kind} {as_text(ours)} against {as_text(markov)} "
        f"({100.0 * (1.0 - ours / markov):.1f} % less)"
        for kind, (ours, markov) in zip(("KS", "JS"), pairs["mean of eight"], strict=True)
    )
    values = {"n_better": sum(is_better.values()), "n": len(features), "means": means}
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


@rule("lag-one autocorrelations and spectra")
def _velocity_temporal(rows: Rows) -> Finding:
    rho1, psd = (highest(rows, "velocity", TEMPORAL, column).number for column in ("rho1", "psd"))
    floors = [
        max(rows.find("velocity", name, column).floor or 0.0 for name in TEMPORAL)
        for column in ("rho1", "psd")
    ]
    bound = 10.0 * paper.TEXT["psd_order"]
    holds = verdict_of(rho1 < paper.TEXT["highest_rho1"], psd < bound)
    return holds, {"rho1": rho1, "psd": psd, "floors": floors, "bound": bound}
