"""The claims of the paper's abstract: each reads rows and gives a statement and a verdict."""

from __future__ import annotations

from collections.abc import Callable

from gazediffusion.document import as_text
from gazediffusion.evaluation.quantities import FEATURES, VELOCITY
from gazediffusion.reproduction import paper
from gazediffusion.reproduction.plan import BASELINES
from gazediffusion.reproduction.rows import MissingError, Rows, as_published
from gazediffusion.reproduction.verdicts import (
    NEAR,
    Finding,
    event_within,
    highest,
    near,
    times_floor,
    verdict,
    verdict_of,
)


def network_size(rows: Rows) -> Finding:
    """Abstract: both models use one network of 19.35 M parameters."""
    runs = rows.names("training", "parameters")
    sizes = sorted({int(rows.number("training", run, "parameters")) for run in runs})
    if not sizes:
        raise MissingError("training")
    return (
        f"Both models use the same network of {as_published(paper.N_PARAMETERS)} parameters.",
        f"{len(runs)} networks of {' and '.join(map(as_text, sizes))} parameters.",
        "Holds if all have exactly as many as the paper's; in part if all have equally many.",
        verdict(sizes == [paper.N_PARAMETERS], len(sizes) == 1),
    )


def mean_js_of_nine(rows: Rows) -> Finding:
    """Abstract: mean JS over nine features."""
    row = rows.find("features", "mean of nine", "js")
    bound = (row.paper or 0.0) + (row.paper_sd or 0.0)
    return (
        f"Mean JS of {row.text('paper')} over nine features.",
        times_floor(row),
        f"Holds up to {as_text(bound)} (mean + SD) or up to the floor; in part up to {NEAR:g} "
        "times the floor.",
        near(row, bound),
    )


def highest_feature_js(rows: Rows) -> Finding:
    """Abstract: the highest feature-wise mean."""
    row, bound = highest(rows, "features", list(FEATURES), "js"), paper.HIGHEST_FEATURE_JS
    is_near = row.ratio is not None and row.ratio <= NEAR
    return (
        f"The highest feature-wise mean JS is below {as_published(bound)}.",
        f"{as_text(row.number)} ({FEATURES[row.row][0]}; its floor is {row.text('floor')}).",
        f"Holds below {as_published(bound)}; in part up to {NEAR:g} times that feature's floor.",
        verdict(row.number < bound, is_near),
    )


def fixation_duration(rows: Rows) -> Finding:
    """Abstract: fixation duration within 2 %."""
    return event_within(rows, "fixation_duration_s")


def fgd_below_baselines(rows: Rows) -> Finding:
    """Abstract: FGD more than an order of magnitude below the baselines."""
    best = min((rows.find("fgd", name, "fgd") for name in BASELINES), key=lambda row: row.number)
    ours = rows.find("fgd", "diffusion", "fgd")
    nearest = min(paper.NUMBERS["fgd"][name]["fgd"].mean for name in BASELINES)
    times = best.number / max(ours.number, 1e-12)
    return (
        "FGD more than an order of magnitude below every baseline "
        f"({ours.text('paper')} against {as_published(nearest)} and more).",
        f"{ours.text()} (floor {ours.text('floor')}) against {best.text()} of the nearest baseline "
        f"({best.row}): {as_text(times)} times.",
        "Holds above 10 times; in part above once.",
        verdict(times > 10.0, times > 1.0),
    )


def tstr_share(rows: Rows) -> Finding:
    """Abstract: TSTR R2 as a share of TRTR's."""
    share = rows.find("downstream", "tstr / trtr", "r2")
    tstr, floor = (rows.find("downstream", name, "r2") for name in ("tstr", "floor"))
    trtr = paper.NUMBERS["downstream"]["trtr"]["r2"].mean
    bound = (share.paper or 0.0) - 100.0 * (tstr.paper_sd or 0.0) / trtr
    return (
        f"Training on synthetic windows alone reaches R2 {tstr.text('paper')}, "
        f"{share.text('paper')} % of that of real windows.",
        f"R2 {tstr.text()}, {share.text()} % of that of real windows; with the training "
        f"participants' windows (floor) {floor.text()}.",
        f"Holds from {bound:.1f} % (the paper's less its SD); in part from 50 %.",
        verdict(share.number >= bound, share.number >= 50.0),
    )


def velocity_mean_js(rows: Rows) -> Finding:
    """Abstract: the velocity model's mean JS."""
    row = rows.find("velocity", "mean of five", "js")
    return (
        f"The velocity model's mean JS over five quantities is {row.text('paper')}.",
        times_floor(row),
        f"Holds up to {row.text('paper')} or up to the floor; in part up to {NEAR:g} times the "
        "floor.",
        near(row, row.paper or 0.0),
    )


def velocity_highest_js(rows: Rows) -> Finding:
    """Abstract: the highest of the velocity model's JS."""
    row, theirs = highest(rows, "velocity", list(VELOCITY), "js"), paper.VELOCITY_HIGHEST_JS
    bound = theirs.mean + (theirs.sd or 0.0)
    return (
        f"The highest of these five is {as_published(theirs)}.",
        f"{as_text(row.number)} ({VELOCITY[row.row][0]}; its floor is {row.text('floor')}).",
        f"Holds up to {as_text(bound)} (mean + SD) or up to that quantity's floor; in part up to "
        f"{NEAR:g} times the floor.",
        near(row, bound),
    )


def path_length_by_representation(rows: Rows) -> Finding:
    """Abstract: path length is worse in velocity space than in position space."""
    velocity, position = (rows.find(one, "path_length", "js") for one in ("velocity", "features"))
    gap = velocity.number - position.number
    return (
        "Path length is reproduced worse in velocity space than in position space (JS "
        f"{velocity.text('paper')} against {position.text('paper')}).",
        f"JS {velocity.text()} against {position.text()}, floors {velocity.text('floor')} and "
        f"{position.text('floor')}.",
        "Holds if larger by more than both SDs together; in part if larger.",
        verdict(gap > (velocity.sd or 0.0) + (position.sd or 0.0), gap > 0),
    )


def local_before_integrated(rows: Rows) -> Finding:
    """Abstract's conclusion, for the velocity model: local statistics before integrated ones."""
    found = [rows.find("velocity", name, "js") for name in (*VELOCITY, "path_length")]
    smallest, largest = (pick(found, key=lambda row: row.number) for pick in (min, max))
    titles = {
        **{name: title for name, (title, _) in VELOCITY.items()},
        "path_length": "path length",
    }
    theirs = {row.row: as_published(row.paper or 0.0) for row in found}
    return (
        "Local motion is captured, integrated structure is not: of the velocity model's JS, that "
        f"of turning angle is the smallest ({theirs['turning_angle']}), that "
        f"of path length the largest ({theirs['path_length']}).",
        f"Smallest: {titles[smallest.row]} ({as_text(smallest.number)}); largest: "
        f"{titles[largest.row]} ({as_text(largest.number)}).",
        "Holds if both are so; in part if one is.",
        verdict_of([smallest.row == "turning_angle", largest.row == "path_length"]),
    )


def saccade_undercount(rows: Rows) -> Finding:
    """Abstract and discussion: about 15 % fewer saccades."""
    row = ("events", "saccade_count")
    above_real, above_train = (rows.number(*row, f"above_{one}") for one in ("real", "train"))
    generated, real, train = (rows.find(*row, one) for one in ("generated", "real", "train"))
    return (
        f"Saccades are undercounted by about {paper.SACCADE_UNDERCOUNT_PERCENT} % "
        f"({generated.text('paper')} against {real.text('paper')} per window).",
        f"{generated.text()} per window: {above_real:+.1f} % against the held-out participants' "
        f"{real.text()}, {above_train:+.1f} % against the training participants' {train.text()}.",
        "Holds if at least 5 % fewer than both; in part if than one of them.",
        verdict_of([above_real <= -5.0, above_train <= -5.0]),
    )


CLAIMS: dict[str, Callable[[Rows], Finding]] = {
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
}
