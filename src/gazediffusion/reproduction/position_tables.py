"""The position model's tables, as in the paper: features, events, baselines, ablations, uses."""

from __future__ import annotations

from collections.abc import Callable

from gazediffusion.evaluation.features import IVT_THRESHOLD
from gazediffusion.evaluation.quantities import DIRECTIONS, EVENTS, FEATURES
from gazediffusion.generation.baselines import SMOOTHING_CELLS
from gazediffusion.reproduction import paper
from gazediffusion.reproduction.artefacts import Artefacts
from gazediffusion.reproduction.cells import Cell, Table, of_paper, over, percent_above, spread
from gazediffusion.reproduction.comparing import FLOOR, Comparison, in_seeds
from gazediffusion.reproduction.layout import (
    BASELINE_TITLES,
    FLOOR_MEANS,
    Row,
    beside,
    columns_of,
    fgd_of,
    fgd_said,
    lay_out,
    named,
    of_position,
)
from gazediffusion.reproduction.plan import BASELINES, ETAS, STEPS, Plan

EIGHT = [name for name in FEATURES if name != "path_length"]


def features(made: Artefacts) -> Table:
    """KS and JS of the nine kinematic features, and their means."""
    compared, sets = of_position(made), made.plan.position_sets
    rows: list[Row] = [
        {
            "name": name,
            "label": title,
            **beside("ks", compared.distances("features", name, "ks"), sets, published.ks),
            **beside("js", compared.distances("features", name, "js"), sets, published.js),
        }
        for name, (title, _) in FEATURES.items()
        for published in [paper.FEATURES[name]]
    ]
    means = {
        8: paper.MEAN_OF_EIGHT,
        9: paper.Agreement(paper.MEAN_KS_OF_NINE, paper.MEAN_JS_OF_NINE),
    }
    for n, published in means.items():
        word = {8: "mean of eight", 9: "mean of nine"}[n]
        rows.append(
            {
                "name": word,
                "label": word,
                **beside("ks", compared.means("ks", n), sets, published.ks),
                **beside("js", compared.means("js", n), sets, published.js),
            }
        )
    return lay_out(
        "Kinematic features: KS and JS (position model)",
        [
            "Distances between generated and held-out people's windows; JS in nats. The mean of "
            'eight is the paper\'s row "Mean" (path length is mean speed times a constant); the '
            "paper's mean KS of nine is computed from its rows.",
            compared.said(len(sets)),
            FLOOR_MEANS,
        ],
        {**columns_of("ks", "KS"), **columns_of("js", "JS")},
        rows,
    )


def w1(made: Artefacts) -> Table:
    """Wasserstein-1 distances of the nine features, each in its own unit."""
    compared, sets = of_position(made), made.plan.position_sets
    return lay_out(
        "Kinematic features: Wasserstein-1 distance (position model)",
        [
            "Each row is in its feature's own unit, so rows cannot be compared with each other: "
            "lengths in halves of the screen, speeds in these per sample.",
            compared.said(len(sets)),
            FLOOR_MEANS,
        ],
        columns_of("w1", "W1"),
        (
            {
                "name": name,
                "label": named(title, unit),
                **beside("w1", compared.distances("features", name, "w1"), sets, paper.W1[name]),
            }
            for name, (title, unit) in FEATURES.items()
        ),
    )


def markov(made: Artefacts) -> Table:
    """The kinematic Markov baseline by feature, the diffusion model beside."""
    compared, sets = of_position(made), made.plan.position_sets

    def row(
        name: str,
        label: str,
        ks: Callable[[str], float | None],
        js: Callable[[str], float | None],
        published: paper.Agreement,
    ) -> Row:
        return {
            "name": name,
            "label": label,
            "real": compared.set_mean("features", name, "real"),
            "real_paper": paper.REAL_MEANS.get(name),
            "ks": ks("kinematic-markov"),
            "ks_paper": of_paper(published.ks),
            "ks_model": spread(map(ks, sets)),
            "js": js("kinematic-markov"),
            "js_paper": of_paper(published.js),
            "js_model": spread(map(js, sets)),
        }

    rows = [
        row(
            name,
            FEATURES[name][0],
            compared.distances("features", name, "ks"),
            compared.distances("features", name, "js"),
            paper.MARKOV[name],
        )
        for name in EIGHT
    ]
    means = (compared.means("ks", 8), compared.means("js", 8))
    rows.append(row("mean of eight", "mean of eight", *means, paper.MARKOV_MEAN_OF_EIGHT))
    return lay_out(
        "The kinematic Markov baseline",
        [
            "Real means are those of the held-out people. The baseline is fitted on the training "
            "people and drawn once, so it has no SD; the diffusion model stands beside it.",
            compared.said(len(sets)),
            f"Its transitions are smoothed by a Gaussian of {SMOOTHING_CELLS:g} cells, a choice "
            "the paper leaves open and on which the baseline depends much. The floor is in the "
            "table of the features. Lower is better.",
        ],
        {
            "real": "real mean, ours",
            "real_paper": "real mean, paper",
            "ks": "KS of Markov, ours",
            "ks_paper": "KS of Markov, paper",
            "ks_model": "KS of diffusion, ours",
            "js": "JS of Markov, ours",
            "js_paper": "JS of Markov, paper",
            "js_model": "JS of diffusion, ours",
        },
        rows,
    )


def fgd(made: Artefacts) -> Table:
    """Frechet Gaze Distance of the model, the baselines and the training people."""
    sets, floor = made.plan.position_sets, fgd_of(made, FLOOR)
    of_model = [fgd_of(made, one) for one in sets]
    rows: list[Row] = [
        {
            "name": "diffusion",
            "label": "diffusion model",
            "fgd": spread(of_model),
            "fgd_paper": of_paper(paper.FGD),
            "fgd_ratio": spread(over(one, floor) for one in of_model),
        }
    ]
    for name in BASELINES:
        value = fgd_of(made, name)
        rows.append(
            {
                "name": name,
                "label": BASELINE_TITLES[name],
                "fgd": value,
                "fgd_paper": paper.FGD_BASELINES[name],
                "fgd_ratio": over(value, floor),
            }
        )
    people: Row = {"name": FLOOR, "label": "floor (training people)"}
    rows.append({**people, "fgd": floor, "fgd_paper": None, "fgd_ratio": over(floor, floor)})
    return lay_out(
        "Frechet Gaze Distance",
        [
            fgd_said(made),
            f"The diffusion model: {in_seeds(len(sets))}; baselines are drawn once. Its scale is "
            "that of the reference network, which is another one in the paper: compare the ratios "
            "within a column, not the columns.",
            FLOOR_MEANS,
        ],
        {"fgd": "FGD, ours", "fgd_paper": "FGD, paper", "fgd_ratio": "FGD, ours / floor"},
        rows,
    )


def events(made: Artefacts) -> Table:
    """Means of the I-VT statistics: people, the reference run, the paper."""
    compared, plan = of_position(made), made.plan
    rows: list[Row] = []
    for name, (title, unit) in EVENTS.items():
        of = {
            one: compared.set_mean("events", name, one)
            for one in ("real", "train", *plan.position_sets)
        }
        published = paper.EVENTS[name]
        rows.append(
            {
                "name": name,
                "label": named(title, unit),
                "real": of["real"],
                "train": of["train"],
                "generated": of[plan.reference],
                "generated_seeds": spread(of[one] for one in plan.position_sets),
                "above_train": percent_above(of[plan.reference], of["train"]),
                "above_real": percent_above(of[plan.reference], of["real"]),
                "train_above_real": percent_above(of["train"], of["real"]),
                "real_paper": published.real,
                "generated_paper": published.generated,
                "paper_above_real": percent_above(published.generated, published.real),
            }
        )
    return lay_out(
        "Fixations and saccades: means",
        [
            f"I-VT at {IVT_THRESHOLD:g} normalized units per sample. The generated mean is that of "
            f"the reference run ({plan.reference}), as in the paper, and over all seeds.",
            compared.said(len(plan.position_sets)),
            "Floor: how far the training people are from the held-out people, in the column that "
            "says so; a model learns the former and is tested on the latter.",
        ],
        {
            "real": "held-out people",
            "train": "training people",
            "generated": "generated",
            "generated_seeds": "generated, all seeds",
            "above_train": "generated against training people (%)",
            "above_real": "generated against held-out people (%)",
            "train_above_real": "floor: training against held-out people (%)",
            "real_paper": "paper, real",
            "generated_paper": "paper, generated",
            "paper_above_real": "paper, generated against real (%)",
        },
        rows,
    )


def event_distances(made: Artefacts) -> Table:
    """KS and JS of the I-VT statistics, of the reference run."""
    compared, plan = of_position(made), made.plan
    sets = [plan.reference]
    return lay_out(
        "Fixations and saccades: KS and JS",
        [
            f"Distances of the reference run ({plan.reference}), as in the paper; JS in nats. "
            "Events are pooled over windows, counts are one per window.",
            compared.said(1),
            FLOOR_MEANS,
        ],
        {**columns_of("ks", "KS"), **columns_of("js", "JS")},
        (
            {
                "name": name,
                "label": title,
                **beside(
                    "ks",
                    compared.distances("events", name, "ks"),
                    sets,
                    paper.Published(paper.EVENTS[name].ks),
                ),
                **beside(
                    "js",
                    compared.distances("events", name, "js"),
                    sets,
                    paper.Published(paper.EVENTS[name].js),
                ),
            }
            for name, (title, _) in EVENTS.items()
        ),
    )


def sampling(made: Artefacts) -> Table:
    """DDIM steps, eta and weights of the reference run."""
    compared, plan = Comparison(made.evaluations["sampling"]), made.plan
    mean_speed, eight = "mean speed", "mean of eight"

    def row(name: str, label: str, one: str, on: str, published: paper.Agreement | None) -> Row:
        cells: dict[str, Cell] = {}
        for kind in ("ks", "js"):
            of = (
                compared.distances("features", "mean_speed", kind)
                if on == mean_speed
                else compared.means(kind, 8)
            )
            theirs = None if published is None else getattr(published, kind)
            cells |= beside(kind, of, [one], theirs)
        return {"name": name, "label": label, "on": on, **cells}

    rows = [
        *(
            row(f"steps {n}", f"DDIM steps = {n}", plan.with_steps(n), mean_speed, paper.STEPS[n])
            for n in STEPS
        ),
        *(
            row(f"eta {eta:g}", f"eta = {eta:.1f}", plan.with_eta(eta), eight, paper.ETAS[eta])
            for eta in ETAS
        ),
        row("raw", "raw weights", plan.raw, mean_speed, paper.WEIGHTS["raw"]),
        row("ema", "averaged weights (EMA)", plan.reference, mean_speed, paper.WEIGHTS["ema"]),
        row("other", f"trained to predict {_other(plan)}", plan.x0, eight, None),
    ]
    return lay_out(
        "Sampling: DDIM steps, eta, averaged weights",
        [
            f"All are of the reference run ({plan.reference}: {plan.position.sampling_steps} "
            f"steps, eta {plan.position.eta:g}, averaged weights, predicts "
            f"{plan.position.objective}), one thing changed in each row. Steps and weights are "
            "judged by mean speed, eta by the mean of the eight features, as in the paper; JS in "
            "nats. The last row is not in the paper's table.",
            compared.said(1),
            FLOOR_MEANS,
        ],
        {"on": "judged by", **columns_of("ks", "KS"), **columns_of("js", "JS")},
        rows,
    )


def _other(plan: Plan) -> str:
    """The objective that the reference run does not have."""
    return plan.runs[plan.x0].recipe.objective


def objective(made: Artefacts) -> Table:
    """Predicting eps against predicting x0."""
    plan, floor = made.plan, fgd_of(made, FLOOR)
    rows: list[Row] = []
    for run in sorted([plan.reference, plan.x0], key=lambda run: plan.runs[run].recipe.objective):
        target, value = plan.runs[run].recipe.objective, fgd_of(made, run)
        published = paper.OBJECTIVES.get(target)
        rows.append(
            {
                "name": target,
                "label": f"predicts {target} ({run})",
                "loss": made.histories[run]["best_validation_loss"],
                "loss_paper": published and published.validation_loss,
                "fgd": value,
                "fgd_paper": published and published.fgd,
                "fgd_floor": floor,
                "fgd_ratio": over(value, floor),
            }
        )
    return lay_out(
        "The objective: predicting eps or x0",
        [
            "The two losses are mean squared errors of different targets (the noise, and the "
            "gaze), so they cannot be compared with each other; the Frechet Gaze Distances can.",
            fgd_said(made),
            "1 seed, no SD.",
            FLOOR_MEANS,
        ],
        {
            "loss": "best validation loss, ours",
            "loss_paper": "best validation loss, paper",
            **columns_of("fgd", "FGD"),
        },
        rows,
    )


def downstream(made: Artefacts) -> Table:
    """Predicting the number of fixations: trained on real, on synthetic, on both."""
    compared, sets = of_position(made), made.plan.position_sets

    def scores(way: str) -> Row:
        return {
            key: spread(compared.test("tstr", f"{way}_{key}", one) for one in sets)
            for key in ("r2", "mae")
        }

    def of_one(way: str, one: str) -> Row:
        return {
            key: _with_sd(*(compared.test("tstr", f"{way}_{key}{end}", one) for end in ("", "_sd")))
            for key in ("r2", "mae")
        }

    labels = {
        "trtr": "TRTR (real → real)",
        "tstr": "TSTR (synthetic → real)",
        "aug": "AUG (real + synthetic → real)",
    }
    found = {"trtr": of_one("trtr", sets[0]), "tstr": scores("tstr"), "aug": scores("aug")}
    rows: list[Row] = [
        {
            "name": way,
            "label": labels[way],
            "r2": cells["r2"],
            "r2_paper": of_paper(paper.DOWNSTREAM[way].r2),
            "mae": cells["mae"],
            "mae_paper": of_paper(paper.DOWNSTREAM[way].mae),
        }
        for way, cells in found.items()
    ]
    people: Row = {"r2_paper": None, "mae_paper": None, **of_one("tstr", FLOOR)}
    rows.append({"name": FLOOR, "label": "floor (TSTR with the training people)", **people})
    on_real = compared.test("tstr", "trtr_r2", sets[0])

    def percent(one: str) -> float | None:
        ratio = over(compared.test("tstr", "tstr_r2", one), on_real)
        # Where even real windows predict nothing, there is nothing to have a share of.
        return None if ratio is None or (on_real or 0.0) <= 0 else 100.0 * ratio

    rows.append(
        {
            "name": "tstr / trtr",
            "label": "TSTR / TRTR (%)",
            "r2": spread(map(percent, sets)),
            "r2_paper": paper.TSTR_PERCENT_OF_TRTR,
            "mae": None,
            "mae_paper": None,
        }
    )
    return lay_out(
        "Downstream: training on synthetic, testing on real",
        [
            "A small network predicts a window's number of fixations from the nine features. "
            "Higher R2 and lower MAE (fixations) are better.",
            compared.said(len(sets)),
            "TRTR's SD is over folds by person, the floor's over the predictor's seeds. Floor: "
            "the predictor is trained on the training people's real windows, as many as there are "
            "synthetic ones.",
        ],
        {
            "r2": "R2, ours",
            "r2_paper": "R2, paper",
            "mae": "MAE, ours",
            "mae_paper": "MAE, paper",
        },
        rows,
    )


def _with_sd(mean: float | None, sd: float | None) -> Cell:
    return mean if mean is None or sd is None else {"mean": mean, "sd": sd}


def panel(made: Artefacts) -> Table:
    """The four-metric framework: speed, its autocorrelation, direction, turning angle."""
    compared, sets = of_position(made), made.plan.position_sets
    of = {
        name: (f"{title}, JS", compared.distances("directions", name, "js"))
        for name, (title, _) in DIRECTIONS.items()
    }
    autocorrelation = ("autocorrelation of speed, mean absolute difference to 400 ms",)
    of["autocorrelation"] = (*autocorrelation, compared.scalars("autocorrelation"))
    rows: list[Row] = []
    for name in ("speed", "autocorrelation", "direction", "turning_angle"):
        label, distance = of[name]
        row = beside("model", distance, sets, None)
        rows.append(
            {
                "name": name,
                "label": label,
                "model": row["model"],
                "markov": distance("kinematic-markov"),
                "floor": row["model_floor"],
                "ratio": row["model_ratio"],
            }
        )
    return lay_out(
        "The four-metric framework",
        [
            "The paper shows these four as curves and gives no numbers; JS in nats of all samples "
            "pooled.",
            compared.said(len(sets)),
            FLOOR_MEANS,
        ],
        {
            "model": "diffusion, ours",
            "markov": "kinematic Markov, ours",
            "floor": "floor",
            "ratio": "diffusion / floor",
        },
        rows,
    )


def seeds(made: Artefacts) -> Table:
    """The position model's seeds one by one: loss against the quality of what they generate."""
    compared, plan = of_position(made), made.plan
    floor: Row = {"loss": None, "fgd": fgd_of(made, FLOOR)}
    of: dict[str, Row] = {
        one: {"loss": made.histories[one]["best_validation_loss"], "fgd": fgd_of(made, one)}
        for one in plan.position_sets
    }
    rows: list[Row] = []
    for one, cells in {**of, FLOOR: floor}.items():
        spreads = {
            f"{name}_{kind}": compared.distance("features", name, kind, one)
            for name in ("x_std", "y_std")
            for kind in ("ks", "js")
        }
        label = "floor (training people)" if one == FLOOR else one
        eight = {f"{kind}_8": compared.means(kind, 8)(one) for kind in ("js", "ks")}
        rows.append({"name": one, "label": label, **cells, **eight, **spreads})
    for name, published in paper.SEEDS.items():
        rows.append(
            {
                "name": f"paper, {name}",
                "label": f"paper, {name}",
                "loss": published.validation_loss,
                "js_8": published.mean_js_of_eight,
                "ks_8": published.mean_ks_of_eight,
                "fgd": published.fgd,
            }
        )
    return lay_out(
        "The position model's seeds one by one",
        [
            "Does the validation loss say which seed generates best, and is x-std harder than "
            f"y-std in every seed? {len(plan.position_sets)} seeds, one row each, no SD.",
            compared.said(),
            FLOOR_MEANS,
        ],
        {
            "loss": "best validation loss",
            "js_8": "mean JS of eight",
            "ks_8": "mean KS of eight",
            "fgd": "FGD",
            "x_std_ks": "x std, KS",
            "y_std_ks": "y std, KS",
            "x_std_js": "x std, JS",
            "y_std_js": "y std, JS",
        },
        rows,
    )
