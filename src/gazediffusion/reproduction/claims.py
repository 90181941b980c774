"""Claims: what the paper's abstract and headline results say, and whether it holds here.

Each function reads the tables, says the paper's number and ours in a sentence, and passes a
verdict by the rule that it states. A claim whose tables were not made is left out. Numbers on
other people's data cannot be equal; a rule therefore asks for the paper's own bound or, where the
people themselves differ by more, for what the floor allows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from gazediffusion.evaluation.quantities import EVENTS, FEATURES, TEMPORAL, VELOCITY
from gazediffusion.reproduction import paper
from gazediffusion.reproduction.cells import (
    MissingError,
    Tables,
    as_published,
    find,
    number,
    over,
    sd,
    show,
)
from gazediffusion.reproduction.plan import BASELINES, ETAS

Verdict = Literal["holds", "holds in part", "does not hold"]
HOLDS: Verdict = "holds"
IN_PART: Verdict = "holds in part"
FAILS: Verdict = "does not hold"
VERDICTS = (HOLDS, IN_PART, FAILS)

# How much farther than other people still counts as near, where the paper's own bound is missed.
_TIMES_FLOOR = 2.0

Claim = dict[str, str]


def judge(tables: Tables) -> list[Claim]:
    """Every claim whose numbers are there, as {"name", "claim", "ours", "rule", "verdict"}."""
    claims = []
    for name, one in CLAIMS.items():
        try:
            claims.append({"name": name, **one(tables)})
        except MissingError:
            continue
    return claims


def _claim(claim: str, ours: str, rule: str, verdict: Verdict) -> Claim:
    return {"claim": claim, "ours": ours, "rule": rule, "verdict": verdict}


def _verdict(holds: bool, in_part: bool) -> Verdict:
    return HOLDS if holds else IN_PART if in_part else FAILS


def _number(tables: Tables, table: str, row: str, key: str) -> float:
    return number(find(tables, table, row, key))


def mean_js_of_nine(tables: Tables) -> Claim:
    """Abstract: mean JS over nine features."""
    ours = find(tables, "features", "mean of nine", "js")
    floor = _number(tables, "features", "mean of nine", "js_floor")
    bound = paper.MEAN_JS_OF_NINE.mean + (paper.MEAN_JS_OF_NINE.sd or 0.0)
    value = number(ours)
    return _claim(
        f"Mean JS of {as_published(paper.MEAN_JS_OF_NINE)} over nine features.",
        f"{show(ours)}, {show(over(value, floor))} times the floor of {show(floor)}.",
        f"Holds up to {show(bound)} (mean + SD) or up to the floor; in part up to "
        f"{_TIMES_FLOOR:g} times the floor.",
        _verdict(value <= max(bound, floor), value <= _TIMES_FLOOR * floor),
    )


def highest_feature_js(tables: Tables) -> Claim:
    """Abstract: the highest feature-wise mean."""
    of = {name: _number(tables, "features", name, "js") for name in FEATURES}
    worst = max(of, key=lambda name: of[name])
    floor = _number(tables, "features", worst, "js_floor")
    bound = as_published(paper.HIGHEST_FEATURE_JS)
    return _claim(
        f"The highest feature-wise mean JS is below {bound}.",
        f"{show(of[worst])} ({FEATURES[worst][0]}; its floor is {show(floor)}).",
        f"Holds below {bound}; in part up to {_TIMES_FLOOR:g} times that feature's floor.",
        _verdict(of[worst] < paper.HIGHEST_FEATURE_JS, of[worst] <= _TIMES_FLOOR * floor),
    )


def fixation_duration(tables: Tables) -> Claim:
    """Abstract: fixation duration within 2 %."""
    return _event(tables, "fixation_duration_s")


def fixation_count(tables: Tables) -> Claim:
    """Section "Position-space model": fixation count is nearly identical."""
    return _event(tables, "fixation_count")


def saccade_peak_speed(tables: Tables) -> Claim:
    """Section "Position-space model": saccade peak speed within 1 %."""
    return _event(tables, "saccade_peak_speed")


def _event(tables: Tables, name: str) -> Claim:
    """A mean that comes within so many percent of real, as the paper rounds it."""
    generated, people = (
        _number(tables, "events", name, key) for key in ("above_real", "train_above_real")
    )
    bound = paper.EVENT_BOUNDS_PERCENT[name]
    title, published = EVENTS[name][0], paper.EVENTS[name]
    mean, real = (_number(tables, "events", name, key) for key in ("generated", "real"))
    return _claim(
        f"{title.capitalize()} within {bound:g} % of real data "
        f"({as_published(published.generated)} against {as_published(published.real)}).",
        f"{show(mean)} against {show(real)}: {generated:+.1f} %; the training people: "
        f"{people:+.1f} %.",
        f"Holds within {bound:g} % (rounded to whole percent); in part if nearer to the held-out "
        "people than the training people are.",
        _verdict(round(abs(generated)) <= bound, abs(generated) <= abs(people)),
    )


def fgd_below_baselines(tables: Tables) -> Claim:
    """Abstract: FGD more than an order of magnitude below the baselines."""
    of = {name: _number(tables, "fgd", name, "fgd") for name in BASELINES}
    best = min(of, key=lambda name: of[name])
    ours, floor = find(tables, "fgd", "diffusion", "fgd"), _number(tables, "fgd", "floor", "fgd")
    nearest = min(paper.FGD_BASELINES.values())
    times = of[best] / max(number(ours), 1e-12)
    return _claim(
        "FGD more than an order of magnitude below every baseline "
        f"({as_published(paper.FGD)} against {as_published(nearest)} and more).",
        f"{show(ours)} (floor {show(floor)}) against {show(of[best])} of the nearest baseline "
        f"({best}): {show(times)} times.",
        "Holds above 10 times; in part above once.",
        _verdict(times > 10.0, times > 1.0),
    )


def fgd_far_below_naive(tables: Tables) -> Claim:
    """Section "Position-space model": more than 99 % below the naive baselines."""
    ours = _number(tables, "fgd", "diffusion", "fgd")
    naive = {name: _number(tables, "fgd", name, "fgd") for name in ("uniform", "gaussian")}
    below = {name: 100.0 * (1.0 - ours / value) for name, value in naive.items()}
    bound = paper.FGD_BELOW_NAIVE_PERCENT
    said = " and ".join(f"{value:.1f} % below {name}" for name, value in below.items())
    return _claim(
        f"FGD more than {bound} % below the uniform and Gaussian baselines.",
        f"{said}.",
        f"Holds above {bound} % for both; in part above 90 %.",
        _verdict(min(below.values()) > bound, min(below.values()) > 90.0),
    )


def better_than_markov(tables: Tables) -> Claim:
    """Sections "Position-space model" and "Feature-level detail"."""
    features = [name for name in FEATURES if name != "path_length"]

    def is_better(row: str, kind: str) -> bool:
        values = (_number(tables, "markov", row, key) for key in (f"{kind}_model", kind))
        model, markov = values
        return model < markov

    won = [name for name in features if is_better(name, "ks") and is_better(name, "js")]
    said = []
    for kind in ("ks", "js"):
        model = _number(tables, "markov", "mean of eight", f"{kind}_model")
        markov = _number(tables, "markov", "mean of eight", kind)
        said.append(
            f"mean {kind.upper()} {show(model)} against {show(markov)} "
            f"({100.0 * (1.0 - model / markov):.1f} % less)"
        )
    less = paper.MARKOV_REDUCTION_PERCENT
    return _claim(
        "Better than the kinematic Markov baseline on every feature; mean KS "
        f"{less['ks']:g} % and mean JS {less['js']:g} % less.",
        f"Better in KS and JS on {len(won)} of {len(features)} features; {', '.join(said)}.",
        "Holds on every feature; in part if both means are lower.",
        _verdict(
            len(won) == len(features),
            all(is_better("mean of eight", kind) for kind in ("ks", "js")),
        ),
    )


def four_metrics(tables: Tables) -> Claim:
    """Section "Position-space model", on the four-metric framework."""
    said, n_better = [], 0
    for name, title in {"speed": "speed", "turning_angle": "turning angle"}.items():
        model = find(tables, "panel", name, "model")
        markov = _number(tables, "panel", name, "markov")
        n_better += number(model) < markov
        said.append(f"{title}: JS {show(model)} against {show(markov)}")
    return _claim(
        "Speed and, most clearly, turning angle are nearer to real gaze than those of the "
        "kinematic Markov baseline (shown as curves).",
        f"{'; '.join(said)}.",
        "Holds if both are nearer; in part if one is.",
        _verdict(n_better == 2, n_better == 1),
    )


def saccade_undercount(tables: Tables) -> Claim:
    """Abstract and discussion: about 15 % fewer saccades."""
    published = paper.EVENTS["saccade_count"]
    row = ("events", "saccade_count")
    gaps = {key: _number(tables, *row, f"above_{key}") for key in ("real", "train")}
    mean, real, train = (_number(tables, *row, key) for key in ("generated", "real", "train"))
    n_fewer = sum(gap <= -5.0 for gap in gaps.values())
    return _claim(
        f"Saccades are undercounted by about {paper.SACCADE_UNDERCOUNT_PERCENT} % "
        f"({as_published(published.generated)} against {as_published(published.real)} per window).",
        f"{show(mean)} per window: {gaps['real']:+.1f} % against the held-out people's "
        f"{show(real)}, {gaps['train']:+.1f} % against the training people's {show(train)}.",
        "Holds if at least 5 % fewer than both; in part if than one of them.",
        _verdict(n_fewer == 2, n_fewer == 1),
    )


def _seed_rows(tables: Tables) -> list[dict[str, Any]]:
    """The position seeds, of which there must be two or more."""
    rows = [
        row for row in tables.get("seeds", {}).get("rows", []) if row["name"].startswith("position")
    ]
    if len(rows) < 2:
        raise MissingError("seeds")
    return rows


def x_std_is_harder(tables: Tables) -> Claim:
    """Section "Position-space model": x-std is harder than y-std in all seeds."""
    rows = _seed_rows(tables)
    harder = [
        all(number(row[f"x_std_{kind}"]) > number(row[f"y_std_{kind}"]) for kind in ("ks", "js"))
        for row in rows
    ]
    x, y = (find(tables, "features", name, "ks") for name in ("x_std", "y_std"))
    floors = [show(find(tables, "features", name, "ks_floor")) for name in ("x_std", "y_std")]
    return _claim(
        "Horizontal spread (x-std) is harder than vertical (y-std) in every seed "
        f"(KS {as_published(paper.FEATURES['x_std'].ks.mean)} against "
        f"{as_published(paper.FEATURES['y_std'].ks.mean)}).",
        f"In {sum(harder)} of {len(rows)} seeds, in KS and JS; KS {show(x)} against {show(y)}, "
        f"floors {floors[0]} and {floors[1]}.",
        "Holds in every seed; in part in more than half of them.",
        _verdict(all(harder), sum(harder) > len(rows) / 2),
    )


def loss_does_not_rank(tables: Tables) -> Claim:
    """Section "Position-space model", on validation loss."""
    rows = _seed_rows(tables)

    def order(key: str) -> list[str]:
        return [row["name"] for row in sorted(rows, key=lambda row: number(row[key]))]

    by_loss = order("loss")
    same = [word for key, word in (("js_8", "mean JS"), ("fgd", "FGD")) if order(key) == by_loss]
    best = {key: order(key)[0] for key in ("loss", "js_8", "fgd")}
    return _claim(
        "Validation loss does not rank the seeds by the quality of what they generate.",
        f"Lowest loss: {best['loss']}; lowest mean JS: {best['js_8']}; lowest FGD: {best['fgd']}. "
        f"The order by loss is that by {' and by '.join(same) if same else 'neither'}.",
        "Holds if the order of the seeds by loss is neither that by mean JS nor that by FGD; in "
        "part if it is one of the two.",
        _verdict(not same, len(same) == 1),
    )


def little_overfitting(tables: Tables) -> Claim:
    """Section "Position-space model": minimal overfitting over the whole training."""
    rows = [
        row
        for row in tables.get("training", {}).get("rows", [])
        if row["name"].startswith("position-")
    ]
    if not rows:
        raise MissingError("training")
    late = [number(row["epoch"]) >= 0.75 * number(row["epochs"]) for row in rows]
    said = ", ".join(f"{row['name']} at {row['epoch']} of {row['epochs']}" for row in rows)
    return _claim(
        "Minimal overfitting: the validation loss is lowest near the end (epoch "
        f"{paper.REFERENCE_EPOCH} of {paper.N_EPOCHS}).",
        f"Lowest: {said}.",
        "Holds if in the last quarter for every seed; in part for some.",
        _verdict(all(late), any(late)),
    )


def network_size(tables: Tables) -> Claim:
    """Abstract: both models use one network of 19.35 M parameters."""
    sizes = [
        int(row["parameters"])
        for row in tables.get("training", {}).get("rows", [])
        if row.get("parameters") is not None
    ]
    if not sizes:
        raise MissingError("training")
    distinct = sorted(set(sizes))
    return _claim(
        f"Both models use the same network of {as_published(paper.N_PARAMETERS)} parameters.",
        f"{len(sizes)} networks of {' and '.join(map(show, distinct))} parameters.",
        "Holds if all have exactly as many as the paper's; in part if all have equally many.",
        _verdict(distinct == [paper.N_PARAMETERS], len(distinct) == 1),
    )


def averaged_weights(tables: Tables) -> Claim:
    """Section "Position-space model": EMA lowers the mean-speed KS by 43 %."""
    of = {
        (name, kind): _number(tables, "sampling", name, kind)
        for name in ("ema", "raw")
        for kind in ("ks", "js")
    }
    n_better = sum(of["ema", kind] < of["raw", kind] for kind in ("ks", "js"))
    ema, raw = (paper.WEIGHTS[name].ks.mean for name in ("ema", "raw"))
    return _claim(
        f"Averaged weights (EMA) are better than raw ones: mean-speed KS {show(raw)} to "
        f"{show(ema)}.",
        f"KS {show(of['raw', 'ks'])} to {show(of['ema', 'ks'])}, JS {show(of['raw', 'js'])} to "
        f"{show(of['ema', 'js'])}.",
        "Holds if KS and JS are both lower; in part if one is.",
        _verdict(n_better == 2, n_better == 1),
    )


def eta_zero_is_best(tables: Tables) -> Claim:
    """Section "Position-space model": deterministic sampling is preferred."""
    of = {
        kind: {eta: _number(tables, "sampling", f"eta {eta:g}", kind) for eta in ETAS}
        for kind in ("ks", "js")
    }
    best = {kind: min(values, key=lambda eta: values[eta]) for kind, values in of.items()}
    n_zero = sum(eta == 0.0 for eta in best.values())
    first, last = min(ETAS), max(ETAS)
    return _claim(
        "Deterministic sampling (eta = 0) is best: mean KS "
        f"{as_published(paper.ETAS[first].ks)} against {as_published(paper.ETAS[last].ks)} at "
        f"eta = {last:g}.",
        f"Mean KS {show(of['ks'][first])} against {show(of['ks'][last])}, mean JS "
        f"{show(of['js'][first])} against {show(of['js'][last])}; best eta by KS "
        f"{best['ks']:g}, by JS {best['js']:g}.",
        "Holds if eta = 0 is the lowest in mean KS and mean JS; in part if in one.",
        _verdict(n_zero == 2, n_zero == 1),
    )


def saturates_near_100_steps(tables: Tables) -> Claim:
    """Section "Position-space model": quality saturates near 100 DDIM steps."""
    few, chosen, many = 10, 100, 200
    said, n_saturated = [], 0
    for kind in ("ks", "js"):
        of = {n: _number(tables, "sampling", f"steps {n}", kind) for n in (few, chosen, many)}
        gain, more = of[few] - of[chosen], of[chosen] - of[many]
        n_saturated += gain > 0 and more <= 0.25 * gain
        values = ", ".join(show(of[n]) for n in of)
        said.append(f"{kind.upper()} of mean speed {values}")
    js = [as_published(paper.STEPS[n].js) for n in (few, chosen, many)]
    return _claim(
        f"Quality saturates near {chosen} steps (mean-speed JS at {few}, {chosen}, {many} steps: "
        f"{', '.join(js)}).",
        f"At {few}, {chosen}, {many} steps: {'; '.join(said)}.",
        f"Holds if going from {chosen} to {many} steps gains at most a quarter of what going from "
        f"{few} to {chosen} gained, in KS and JS; in part if in one.",
        _verdict(n_saturated == 2, n_saturated == 1),
    )


def eps_beats_x0(tables: Tables) -> Claim:
    """Section "Position-space model", ablation of the objective."""
    eps, x0 = (_number(tables, "objective", name, "fgd") for name in ("eps", "x0"))
    floor = _number(tables, "objective", "eps", "fgd_floor")
    published = [as_published(paper.OBJECTIVES[name].fgd) for name in ("eps", "x0")]
    return _claim(
        f"Predicting eps is far better than predicting x0: FGD {published[0]} against "
        f"{published[1]}.",
        f"FGD {show(eps)} against {show(x0)} (floor {show(floor)}).",
        "Holds if lower by 10 times or more; in part if lower.",
        _verdict(10.0 * eps <= x0, eps < x0),
    )


def tstr_share(tables: Tables) -> Claim:
    """Abstract: TSTR R2 as a share of TRTR's."""
    percent = find(tables, "downstream", "tstr / trtr", "r2")
    r2, floor = (find(tables, "downstream", name, "r2") for name in ("tstr", "floor"))
    trtr, tstr = (paper.DOWNSTREAM[name].r2 for name in ("trtr", "tstr"))
    bound = paper.TSTR_PERCENT_OF_TRTR - 100.0 * (tstr.sd or 0.0) / trtr.mean
    return _claim(
        f"Training on synthetic windows alone reaches R2 {as_published(tstr)}, "
        f"{paper.TSTR_PERCENT_OF_TRTR:g} % of that of real windows.",
        f"R2 {show(r2)}, {show(percent)} % of that of real windows; with the training people's "
        f"windows (floor) {show(floor)}.",
        f"Holds from {bound:.1f} % (the paper's less its SD); in part from 50 %.",
        _verdict(number(percent) >= bound, number(percent) >= 50.0),
    )


def augmentation(tables: Tables) -> Claim:
    """Section "Position-space model": AUG matches TRTR."""
    aug, trtr = (find(tables, "downstream", name, "r2") for name in ("aug", "trtr"))
    gap = number(aug) - number(trtr)
    return _claim(
        "Real and synthetic windows together match real ones alone to within "
        f"{paper.AUG_GAP_TO_TRTR:g} of R2.",
        f"R2 {show(number(aug))} against {show(trtr)}: {gap:+.3f}.",
        f"Holds if at most {paper.AUG_GAP_TO_TRTR:g} lower; in part if within the SD over folds.",
        _verdict(gap >= -paper.AUG_GAP_TO_TRTR, gap >= -sd(trtr)),
    )


def velocity_mean_js(tables: Tables) -> Claim:
    """Abstract: the velocity model's mean JS."""
    ours = find(tables, "velocity", "mean of five", "js")
    floor = _number(tables, "velocity", "mean of five", "js_floor")
    bound, value = paper.VELOCITY_MEAN_JS.mean, number(ours)
    return _claim(
        f"The velocity model's mean JS over five quantities is {as_published(bound)}.",
        f"{show(ours)}, {show(over(value, floor))} times the floor of {show(floor)}.",
        f"Holds up to {as_published(bound)} or up to the floor; in part up to {_TIMES_FLOOR:g} "
        "times the floor.",
        _verdict(value <= max(bound, floor), value <= _TIMES_FLOOR * floor),
    )


def velocity_highest_js(tables: Tables) -> Claim:
    """Abstract: the highest of the velocity model's JS."""
    of = {name: _number(tables, "velocity", name, "js") for name in VELOCITY}
    worst = max(of, key=lambda name: of[name])
    floor = _number(tables, "velocity", worst, "js_floor")
    published = paper.VELOCITY_HIGHEST_JS
    bound = published.mean + (published.sd or 0.0)
    return _claim(
        f"The highest of these five is {as_published(published)}.",
        f"{show(of[worst])} ({VELOCITY[worst][0]}; its floor is {show(floor)}).",
        f"Holds up to {show(bound)} (mean + SD) or up to that quantity's floor; in part up to "
        f"{_TIMES_FLOOR:g} times the floor.",
        _verdict(of[worst] <= max(bound, floor), of[worst] <= _TIMES_FLOOR * floor),
    )


def velocity_temporal(tables: Tables) -> Claim:
    """Section "Velocity-space model": short-lag and spectral statistics."""
    rho1, psd = (
        max(_number(tables, "velocity", name, key) for name in TEMPORAL) for key in ("rho1", "psd")
    )
    floors = (
        max(_number(tables, "velocity", name, f"{key}_floor") for name in TEMPORAL)
        for key in ("rho1", "psd")
    )
    floor_rho1, floor_psd = map(show, floors)
    bound = 10.0 * paper.PSD_ORDER
    is_met = [rho1 < paper.HIGHEST_RHO1, psd < bound]
    return _claim(
        f"Lag-one autocorrelations of all four differ by less than {paper.HIGHEST_RHO1:g}, spectra "
        f"by the order of {paper.PSD_ORDER:.0e}.",
        f"By at most {show(rho1)} (floor {floor_rho1}); spectra by at most {show(psd)} (floor "
        f"{floor_psd}).",
        f"Holds below {paper.HIGHEST_RHO1:g} and {bound:.0e}; in part if one is.",
        _verdict(all(is_met), any(is_met)),
    )


def path_length_by_representation(tables: Tables) -> Claim:
    """Abstract: path length is worse in velocity space than in position space."""
    velocity = find(tables, "velocity", "path_length", "js")
    position = find(tables, "features", "path_length", "js")
    floors = [
        show(find(tables, table, "path_length", "js_floor")) for table in ("velocity", "features")
    ]
    gap = number(velocity) - number(position)
    published = paper.VELOCITY["path_length"].js, paper.FEATURES["path_length"].js
    return _claim(
        "Path length is reproduced worse in velocity space than in position space (JS "
        f"{as_published(published[0])} against {as_published(published[1])}).",
        f"JS {show(velocity)} against {show(position)}, floors {floors[0]} and {floors[1]}.",
        "Holds if larger by more than both SDs together; in part if larger.",
        _verdict(gap > sd(velocity) + sd(position), gap > 0),
    )


def local_before_integrated(tables: Tables) -> Claim:
    """Abstract's conclusion, for the velocity model: local statistics before integrated ones."""
    of = {name: _number(tables, "velocity", name, "js") for name in (*VELOCITY, "path_length")}
    smallest, largest = (pick(of, key=lambda name: of[name]) for pick in (min, max))
    theirs = paper.VELOCITY
    is_met = [smallest == "turning_angle", largest == "path_length"]
    titles = {
        **{name: title for name, (title, _) in VELOCITY.items()},
        "path_length": "path length",
    }
    return _claim(
        "Local motion is captured, integrated structure is not: of the velocity model's JS, that "
        f"of turning angle is the smallest ({as_published(theirs['turning_angle'].js.mean)}), that "
        f"of path length the largest ({as_published(theirs['path_length'].js.mean)}).",
        f"Smallest: {titles[smallest]} ({show(of[smallest])}); largest: {titles[largest]} "
        f"({show(of[largest])}).",
        "Holds if both are so; in part if one is.",
        _verdict(all(is_met), any(is_met)),
    )


CLAIMS: dict[str, Callable[[Tables], Claim]] = {
    "size of the network": network_size,
    "mean JS over nine features": mean_js_of_nine,
    "highest feature-wise JS": highest_feature_js,
    "fixation duration": fixation_duration,
    "FGD far below the baselines": fgd_below_baselines,
    "training on synthetic windows alone": tstr_share,
    "velocity model's mean JS": velocity_mean_js,
    "velocity model's highest JS": velocity_highest_js,
    "path length worse in velocity space": path_length_by_representation,
    "local motion before integrated structure": local_before_integrated,
    "saccade undercount": saccade_undercount,
    "fixation count": fixation_count,
    "saccade peak speed": saccade_peak_speed,
    "x-std harder than y-std": x_std_is_harder,
    "validation loss does not rank seeds": loss_does_not_rank,
    "little overfitting": little_overfitting,
    "FGD far below the naive baselines": fgd_far_below_naive,
    "better than the kinematic Markov": better_than_markov,
    "speed and turning angle nearer than the Markov": four_metrics,
    "eps better than x0": eps_beats_x0,
    "averaged weights better than raw": averaged_weights,
    "eta = 0 is best": eta_zero_is_best,
    "saturation near 100 steps": saturates_near_100_steps,
    "augmentation matches real data": augmentation,
    "lag-one autocorrelations and spectra": velocity_temporal,
}
