"""The claims of the paper's sections "Position-space model" and "Velocity-space model"."""

from __future__ import annotations

from collections.abc import Callable

from gazediffusion.document import as_text
from gazediffusion.evaluation.quantities import FEATURES, TEMPORAL
from gazediffusion.reproduction import paper
from gazediffusion.reproduction.plan import ETAS
from gazediffusion.reproduction.rows import MissingError, Rows, as_published
from gazediffusion.reproduction.verdicts import (
    Finding,
    event_within,
    highest,
    verdict,
    verdict_of,
)


def position_seeds(rows: Rows, table: str, column: str) -> list[str]:
    """The position model's runs that a table has."""
    return [name for name in rows.names(table, column) if name.startswith("position-")]


def fixation_count(rows: Rows) -> Finding:
    """Section "Position-space model": fixation count is nearly identical."""
    return event_within(rows, "fixation_count")


def saccade_peak_speed(rows: Rows) -> Finding:
    """Section "Position-space model": saccade peak speed within 1 %."""
    return event_within(rows, "saccade_peak_speed")


def x_std_is_harder(rows: Rows) -> Finding:
    """Section "Position-space model": x-std is harder than y-std in all seeds."""
    runs = position_seeds(rows, "seeds", "js_8")
    if len(runs) < 2:
        raise MissingError("seeds")
    harder = [
        all(
            rows.number("seeds", run, f"x_std_{kind}") > rows.number("seeds", run, f"y_std_{kind}")
            for kind in ("ks", "js")
        )
        for run in runs
    ]
    x, y = (rows.find("features", name, "ks") for name in ("x_std", "y_std"))
    return (
        "Horizontal spread (x-std) is harder than vertical (y-std) in every seed "
        f"(KS {as_published(x.paper or 0.0)} against {as_published(y.paper or 0.0)}).",
        f"In {sum(harder)} of {len(runs)} seeds, in KS and JS; KS {x.text()} against {y.text()}, "
        f"floors {x.text('floor')} and {y.text('floor')}.",
        "Holds in every seed; in part in more than half of them.",
        verdict(all(harder), sum(harder) > len(runs) / 2),
    )


def loss_does_not_rank(rows: Rows) -> Finding:
    """Section "Position-space model", on validation loss."""
    runs = position_seeds(rows, "seeds", "js_8")
    if len(runs) < 2:
        raise MissingError("seeds")
    order = {
        column: sorted(runs, key=lambda run: rows.number("seeds", run, column))
        for column in ("loss", "js_8", "fgd")
    }
    same = [
        word
        for column, word in (("js_8", "mean JS"), ("fgd", "FGD"))
        if order[column] == order["loss"]
    ]
    return (
        "Validation loss does not rank the seeds by the quality of what they generate.",
        f"Lowest loss: {order['loss'][0]}; lowest mean JS: {order['js_8'][0]}; lowest FGD: "
        f"{order['fgd'][0]}. The order by loss is that by "
        f"{' and by '.join(same) if same else 'neither'}.",
        "Holds if the order of the seeds by loss is neither that by mean JS nor that by FGD; in "
        "part if it is one of the two.",
        verdict(not same, len(same) == 1),
    )


def little_overfitting(rows: Rows) -> Finding:
    """Section "Position-space model": minimal overfitting over the whole training."""
    runs = position_seeds(rows, "training", "epoch")
    if not runs:
        raise MissingError("training")
    best, last = (
        [rows.number("training", run, one) for run in runs] for one in ("epoch", "epochs")
    )
    said = [f"{run} at {b:g} of {n:g}" for run, b, n in zip(runs, best, last, strict=True)]
    return (
        "Minimal overfitting: the validation loss is lowest near the end (epoch "
        f"{paper.REFERENCE_EPOCH} of {paper.N_EPOCHS}).",
        f"Lowest: {', '.join(said)}.",
        "Holds if in the last quarter for every seed; in part for some.",
        verdict_of([b >= 0.75 * n for b, n in zip(best, last, strict=True)]),
    )


def fgd_far_below_naive(rows: Rows) -> Finding:
    """Section "Position-space model": more than 99 % below the naive baselines."""
    ours, bound = rows.number("fgd", "diffusion", "fgd"), paper.FGD_BELOW_NAIVE_PERCENT
    below = {
        name: 100.0 * (1.0 - ours / rows.number("fgd", name, "fgd"))
        for name in ("uniform", "gaussian")
    }
    said = " and ".join(f"{value:.1f} % below {name}" for name, value in below.items())
    return (
        f"FGD more than {bound} % below the uniform and Gaussian baselines.",
        f"{said}.",
        f"Holds above {bound} % for both; in part above 90 %.",
        verdict(min(below.values()) > bound, min(below.values()) > 90.0),
    )


def better_than_markov(rows: Rows) -> Finding:
    """Sections "Position-space model" and "Feature-level detail"."""
    features = [name for name in FEATURES if name != "path_length"]

    def pair(name: str, kind: str) -> tuple[float, float]:
        return rows.number("markov", name, f"{kind}_model"), rows.number("markov", name, kind)

    def is_better(name: str) -> bool:
        pairs = [pair(name, kind) for kind in ("ks", "js")]
        return all(model < markov for model, markov in pairs)

    n_better = sum(map(is_better, features))
    said = []
    for kind in ("ks", "js"):
        model, markov = pair("mean of eight", kind)
        less = 100.0 * (1.0 - model / markov)
        said.append(
            f"mean {kind.upper()} {as_text(model)} against {as_text(markov)} ({less:.1f} % less)"
        )
    percent = paper.MARKOV_REDUCTION_PERCENT
    return (
        "Better than the kinematic Markov baseline on every feature; mean KS "
        f"{percent['ks']:g} % and mean JS {percent['js']:g} % less.",
        f"Better in KS and JS on {n_better} of {len(features)} features; {', '.join(said)}.",
        "Holds on every feature; in part if both means are lower.",
        verdict(n_better == len(features), is_better("mean of eight")),
    )


def four_metrics(rows: Rows) -> Finding:
    """Section "Position-space model", on the four-metric framework."""
    said, is_nearer = [], []
    for name, title in {"speed": "speed", "turning_angle": "turning angle"}.items():
        model, markov = (rows.find("panel", name, one) for one in ("model", "markov"))
        is_nearer.append(model.number < markov.number)
        said.append(f"{title}: JS {model.text()} against {markov.text()}")
    return (
        "Speed and, most clearly, turning angle are nearer to real gaze than those of the "
        "kinematic Markov baseline (shown as curves).",
        f"{'; '.join(said)}.",
        "Holds if both are nearer; in part if one is.",
        verdict_of(is_nearer),
    )


def eps_beats_x0(rows: Rows) -> Finding:
    """Section "Position-space model", ablation of the objective."""
    eps, x0 = (rows.find("objective", name, "fgd") for name in ("eps", "x0"))
    return (
        f"Predicting eps is far better than predicting x0: FGD {eps.text('paper')} against "
        f"{x0.text('paper')}.",
        f"FGD {eps.text()} against {x0.text()} (floor {eps.text('floor')}).",
        "Holds if lower by 10 times or more; in part if lower.",
        verdict(10.0 * eps.number <= x0.number, eps.number < x0.number),
    )


def averaged_weights(rows: Rows) -> Finding:
    """Section "Position-space model": EMA lowers the mean-speed KS by 43 %."""
    ema, raw = (
        [rows.number("sampling", name, kind) for kind in ("ks", "js")] for name in ("ema", "raw")
    )
    before, after = (rows.find("sampling", name, "ks").text("paper") for name in ("raw", "ema"))
    return (
        f"Averaged weights (EMA) are better than raw ones: mean-speed KS {before} to {after}.",
        f"KS {as_text(raw[0])} to {as_text(ema[0])}, JS {as_text(raw[1])} to {as_text(ema[1])}.",
        "Holds if KS and JS are both lower; in part if one is.",
        verdict_of([one < other for one, other in zip(ema, raw, strict=True)]),
    )


def eta_zero_is_best(rows: Rows) -> Finding:
    """Section "Position-space model": deterministic sampling is preferred."""
    of = {
        kind: {eta: rows.number("sampling", f"eta {eta:g}", kind) for eta in ETAS}
        for kind in ("ks", "js")
    }
    best = {kind: min(values, key=lambda eta: values[eta]) for kind, values in of.items()}
    first, last = min(ETAS), max(ETAS)
    theirs = [rows.find("sampling", f"eta {eta:g}", "ks").text("paper") for eta in (first, last)]
    ends = {kind: f"{as_text(one[first])} against {as_text(one[last])}" for kind, one in of.items()}
    return (
        f"Deterministic sampling (eta = 0) is best: mean KS {theirs[0]} against {theirs[1]} at "
        f"eta = {last:g}.",
        f"Mean KS {ends['ks']}, mean JS {ends['js']}; best eta by KS {best['ks']:g}, by JS "
        f"{best['js']:g}.",
        "Holds if eta = 0 is the lowest in mean KS and mean JS; in part if in one.",
        verdict_of([eta == 0.0 for eta in best.values()]),
    )


def saturates_near_100_steps(rows: Rows) -> Finding:
    """Section "Position-space model": quality saturates near 100 DDIM steps."""
    steps = few, chosen, many = 10, 100, 200
    said, is_saturated = [], []
    for kind in ("ks", "js"):
        at = [rows.number("sampling", f"steps {n}", kind) for n in steps]
        gain, more = at[0] - at[1], at[1] - at[2]
        is_saturated.append(gain > 0 and more <= 0.25 * gain)
        said.append(f"{kind.upper()} of mean speed {', '.join(map(as_text, at))}")
    js = [rows.find("sampling", f"steps {n}", "js").text("paper") for n in steps]
    return (
        f"Quality saturates near {chosen} steps (mean-speed JS at {few}, {chosen}, {many} steps: "
        f"{', '.join(js)}).",
        f"At {few}, {chosen}, {many} steps: {'; '.join(said)}.",
        f"Holds if going from {chosen} to {many} steps gains at most a quarter of what going from "
        f"{few} to {chosen} gained, in KS and JS; in part if in one.",
        verdict_of(is_saturated),
    )


def augmentation(rows: Rows) -> Finding:
    """Section "Position-space model": AUG matches TRTR."""
    aug, trtr = (rows.find("downstream", name, "r2") for name in ("aug", "trtr"))
    gap, bound = aug.number - trtr.number, paper.AUG_GAP_TO_TRTR
    return (
        f"Real and synthetic windows together match real ones alone to within {bound:g} of R2.",
        f"R2 {as_text(aug.number)} against {trtr.text()}: {gap:+.3f}.",
        f"Holds if at most {bound:g} lower; in part if within the SD over folds.",
        verdict(gap >= -bound, gap >= -(trtr.sd or 0.0)),
    )


def velocity_temporal(rows: Rows) -> Finding:
    """Section "Velocity-space model": short-lag and spectral statistics."""
    rho1, psd = (highest(rows, "velocity", TEMPORAL, column).number for column in ("rho1", "psd"))
    floors = [
        as_text(max(rows.find("velocity", name, column).floor or 0.0 for name in TEMPORAL))
        for column in ("rho1", "psd")
    ]
    bound = 10.0 * paper.PSD_ORDER
    return (
        f"Lag-one autocorrelations of all four differ by less than {paper.HIGHEST_RHO1:g}, spectra "
        f"by the order of {paper.PSD_ORDER:.0e}.",
        f"By at most {as_text(rho1)} (floor {floors[0]}); spectra by at most {as_text(psd)} (floor "
        f"{floors[1]}).",
        f"Holds below {paper.HIGHEST_RHO1:g} and {bound:.0e}; in part if one is.",
        verdict_of([rho1 < paper.HIGHEST_RHO1, psd < bound]),
    )


CLAIMS: dict[str, Callable[[Rows], Finding]] = {
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
