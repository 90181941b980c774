"""The rows of the paper's tables: one small function for each, from the artefacts.

The position model's tables come first, then those of the velocity model; further_rows.py has those
of training and of what the paper did not measure. The paper's numbers are joined to the rows by
their key. The joint model is one more column, or one more row where rows are sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gazediffusion.evaluation.distances import BINS
from gazediffusion.evaluation.quantities import DIRECTIONS, EVENTS, FEATURES, TEMPORAL, VELOCITY
from gazediffusion.reproduction import paper
from gazediffusion.reproduction.artefacts import Artefacts
from gazediffusion.reproduction.binning import DEBIASED, FEWER, fewer_bins
from gazediffusion.reproduction.measures import (
    Comparison,
    Measure,
    frechet_measure,
    loss_of,
    seeds_of,
)
from gazediffusion.reproduction.plan import BASELINES, ETAS, STEPS
from gazediffusion.reproduction.rows import Row, percent_above

MARKOV = "kinematic-markov"
BASELINE_LABELS = {
    "kinematic-markov": "kinematic Markov",
    "positional-markov": "positional Markov",
    "uniform": "uniform (the paper's random)",
    "gaussian": "Gaussian",
}
EIGHT = [name for name in FEATURES if name != "path_length"]
KINDS = {"ks": "", "js": "nats"}

Rows = Iterator[Row]
Measures = dict[str, Measure]


def _list(name: str | None) -> list[str]:
    return [] if name is None else [name]


def _labelled(title: str, unit: str) -> str:
    return f"{title} ({unit})" if unit else title


def _distances(
    name: str, label: str, of: Measures, sets: Sequence[str], joint: str | None = None
) -> Rows:
    """KS and JS of one quantity."""
    for kind, unit in KINDS.items():
        yield Row(name, kind, label, unit=unit, **of[kind].of(sets, joint=joint))


def _joint(made: Artefacts, evaluation: str = "position") -> str | None:
    """The joint model's set in an evaluation."""
    return made.plan.joint_sets.get(evaluation)


def _position(made: Artefacts) -> Comparison:
    return Comparison(made.evaluations["position"])


def _measures(compared: Comparison, family: str, *names: str, column: str = "{}") -> Measures:
    """KS and JS of a quantity, or the means over several, by column."""
    return {
        column.format(kind): compared.distance(family, names[0], kind)
        if len(names) == 1
        else compared.mean(family, names, kind)
        for kind in KINDS
    }


def features(made: Artefacts) -> Rows:
    """KS and JS of the nine kinematic features, and their means."""
    compared, sets, joint = _position(made), made.plan.position_sets, _joint(made)
    for name, (title, _) in FEATURES.items():
        yield from _distances(name, title, _measures(compared, "features", name), sets, joint)
    for name, names in {"mean of eight": EIGHT, "mean of nine": list(FEATURES)}.items():
        yield from _distances(name, name, _measures(compared, "features", *names), sets, joint)


def bins(made: Artefacts) -> Rows:
    """The mean JS of features in our bins, in fewer, and less its bias."""
    compared, sets, joint = _position(made), made.plan.position_sets, _joint(made)
    ways = {
        "ours": ("features", f"{BINS['window']} bins"),
        "fewer": (FEWER, f"{fewer_bins()} bins"),
        "debiased": (DEBIASED, f"{BINS['window']} bins, less the bias"),
    }
    for name, (family, label) in ways.items():
        for column, names in {"js_8": EIGHT, "js_9": list(FEATURES)}.items():
            fields = compared.mean(family, names, "js").of(sets, joint=joint)
            yield Row(name, column, label, unit="nats", **fields)


def w1(made: Artefacts) -> Rows:
    """Wasserstein-1 distances of the nine features, each in its own unit."""
    compared, sets, joint = _position(made), made.plan.position_sets, _joint(made)
    for name, (title, unit) in FEATURES.items():
        fields = compared.distance("features", name, "w1").of(sets, joint=joint)
        yield Row(name, "w1", _labelled(title, unit), unit=unit, **fields)


def markov(made: Artefacts) -> Rows:
    """The kinematic Markov baseline by feature, beside the diffusion model."""
    compared, sets = _position(made), made.plan.position_sets
    of = {name: _measures(compared, "features", name) for name in EIGHT}
    of["mean of eight"] = _measures(compared, "features", *EIGHT)
    for name, measures in of.items():
        title, unit = FEATURES.get(name, (name, ""))
        of_sets = compared.set_means("features", name).values
        yield Row(name, "real", title, of_sets.get("real"), unit=unit)
        for kind, unit in KINDS.items():
            columns = {kind: [MARKOV], f"{kind}_model": sets, f"{kind}_joint": _list(_joint(made))}
            for column, of_column in columns.items():
                if of_column:
                    fields = measures[kind].of(of_column, with_floor=False)
                    yield Row(name, column, title, unit=unit, **fields)


def fgd(made: Artefacts) -> Rows:
    """Frechet Gaze Distance of the model and the baselines."""
    sets, joint = made.plan.position_sets, _list(_joint(made))
    measure = frechet_measure(made, [*sets, *BASELINES, *joint])
    yield Row("diffusion", "fgd", "diffusion model", **measure.of(sets))
    if joint:
        yield Row("joint", "fgd", "joint model", **measure.of(joint))
    for name in BASELINES:
        yield Row(name, "fgd", BASELINE_LABELS[name], **measure.of([name]))


def events(made: Artefacts) -> Rows:
    """Means of the I-VT statistics: participants, the reference run, the paper."""
    compared, plan = _position(made), made.plan
    for name, (title, unit) in EVENTS.items():
        of = compared.set_means("events", name)
        real, train = of.values.get("real"), of.values.get("train")
        above_train, above_real = (of.above(one) for one in ("train", "real"))
        floor = percent_above(train, real)
        columns: dict[str, dict[str, Any]] = {
            "real": {"ours": real},
            "train": {"ours": train, "n": compared.n},
            "generated": of.of([plan.reference]),
            "generated_seeds": of.of(plan.position_sets, joint=_joint(made)),
            "above_train": above_train.of([plan.reference], joint=_joint(made)),
            "above_real": {
                **above_real.of([plan.reference], joint=_joint(made)),
                "floor": floor,
            },
        }
        for column, fields in columns.items():
            of_column = "%" if column.startswith("above") else unit
            yield Row(name, column, _labelled(title, unit), unit=of_column, **fields)


def event_distances(made: Artefacts) -> Rows:
    """KS and JS of the I-VT statistics of the reference run."""
    compared, sets, joint = _position(made), [made.plan.reference], _joint(made)
    for name, (title, _) in EVENTS.items():
        yield from _distances(name, title, _measures(compared, "events", name), sets, joint)


def panel(made: Artefacts) -> Rows:
    """The four-metric framework: speed, its autocorrelation, direction, turning angle."""
    compared, sets = _position(made), made.plan.position_sets
    of = {
        name: (f"{title}, JS", compared.distance("directions", name, "js"), "nats")
        for name, (title, _) in DIRECTIONS.items()
    }
    title = "autocorrelation of speed, mean absolute difference to 400 ms"
    of["autocorrelation"] = (title, compared.scalar("autocorrelation"), "")
    for name in ("speed", "autocorrelation", "direction", "turning_angle"):
        label, measure, unit = of[name]
        yield Row(name, "model", label, unit=unit, **measure.of(sets, joint=_joint(made)))
        yield Row(name, "markov", label, unit=unit, **measure.of([MARKOV], with_floor=False))


def speed(made: Artefacts) -> Rows:
    """What the text says of speed: the decay of its autocorrelation, and its tail."""
    compared, plan = _position(made), made.plan
    of = {
        "decay": ("autocorrelation of speed falls below 1/e (ms)", compared.decay_ms(), "ms"),
        "tail": (
            "mean over windows of the highest speed (normalized units per sample)",
            compared.set_means("features", "max_speed"),
            "normalized units per sample",
        ),
    }
    columns = {"real": ["real"], "train": ["train"], "model": plan.position_sets}
    columns |= {"markov": [MARKOV], "joint": _list(_joint(made))}
    for name, (label, measure, unit) in of.items():
        for column, sets in columns.items():
            if sets:
                yield Row(name, column, label, unit=unit, **measure.of(sets))


def sampling(made: Artefacts) -> Rows:
    """DDIM steps, eta and weights of the reference run."""
    compared, plan = Comparison(made.evaluations["sampling"]), made.plan
    speed = _measures(compared, "features", "mean_speed")
    eight = _measures(compared, "features", *EIGHT)
    other = f"trained to predict {plan.runs[plan.x0].recipe.objective}, mean of eight"
    for name, label, measures, one in (
        *((f"steps {n}", f"{n} DDIM steps, mean speed", speed, plan.with_steps(n)) for n in STEPS),
        *((f"eta {e:g}", f"eta = {e:.1f}, mean of eight", eight, plan.with_eta(e)) for e in ETAS),
        ("raw", "raw weights of the last epoch, mean speed", speed, plan.raw),
        ("ema", "averaged weights (EMA) of the last epoch, mean speed", speed, plan.last),
        ("other", other, eight, plan.x0),
    ):
        yield from _distances(name, label, measures, [one])


def objective(made: Artefacts) -> Rows:
    """Predicting eps against predicting x0."""
    plan = made.plan
    runs = {plan.runs[run].recipe.objective: run for run in (plan.reference, plan.x0)}
    measure = frechet_measure(made, list(runs.values()))
    for target, run in sorted(runs.items()):
        label, loss = f"predicts {target} ({run})", made.histories[run]["best_validation_loss"]
        yield Row(target, "loss", label, loss, seeds=seeds_of([run]))
        yield Row(target, "fgd", label, **measure.of([run]))


def seeds(made: Artefacts) -> Rows:
    """Each seed of the position model: its loss and the distances of what it generates."""
    compared, sets = _position(made), made.plan.position_sets
    measures = _measures(compared, "features", *EIGHT, column="{}_8")
    measures["fgd"] = frechet_measure(made, sets)
    for name in ("x_std", "y_std", "x_range", "y_range"):
        measures |= _measures(compared, "features", name, column=f"{name}_{{}}")
    for one in [*sets, *_list(_joint(made))]:
        if one in sets:
            yield Row(one, "loss", one, **loss_of(made.histories[one], compared.n_draws))
        for column, measure in measures.items():
            yield Row(one, column, one, **measure.of([one]))
    for name, columns in paper.NUMBERS["seeds"].items():
        yield from (Row(name, column, name) for column in columns)


def downstream(made: Artefacts) -> Rows:
    """Predicting the number of fixations: trained on real windows, on synthetic ones, on both."""
    compared, sets = _position(made), made.plan.position_sets

    def measure(way: str, key: str) -> Measure:
        return compared.test("tstr", f"{way}_{key}")

    for key in ("r2", "mae"):
        # The same for every set. Its SD is over folds of participants.
        sd = measure("trtr", f"{key}_sd").values.get(sets[0])
        real = {**measure("trtr", key).of(sets[:1]), "sd": sd, "seeds": ()}
        yield Row("trtr", key, "TRTR (real → real)", **real)
        for way, label in {"tstr": "synthetic", "aug": "real + synthetic"}.items():
            fields = measure(way, key).of(sets, with_floor=False, joint=_joint(made))
            yield Row(way, key, f"{way.upper()} ({label} → real)", **fields)
        floor, sd = (measure("tstr", one).floor for one in (key, f"{key}_sd"))
        label = "TSTR with the training participants' windows (floor)"
        yield Row("floor", key, label, floor, sd, n=compared.n)
    on_real = measure("trtr", "r2")
    fields = measure("tstr", "r2").share_of(on_real).of(sets, joint=_joint(made))
    yield Row("tstr / trtr", "r2", "TSTR / TRTR (%)", unit="%", **fields)


def velocity(made: Artefacts) -> Rows:
    """The velocity model: JS, lag-one autocorrelations and spectra."""
    compared, sets = Comparison(made.evaluations["velocity"]), made.plan.velocity_sets
    joint = _joint(made, "velocity")
    titles = {name: title for name, (title, _) in VELOCITY.items()}
    titles["path_length"] = "reconstructed path length"
    for name, title in titles.items():
        measure = compared.distance("velocity", name, "js")
        yield Row(name, "js", title, unit="nats", **measure.of(sets, joint=joint))
        for column in ("rho1", "psd") if name in TEMPORAL else ():
            fields = compared.scalar(f"{column}_{name}").of(sets, joint=joint)
            yield Row(name, column, title, **fields)
    spectrum = np.array(compared.evaluation["curves"]["speed_spectrum"]["sets"]["real"])
    white = float(np.abs(spectrum - spectrum.mean()).mean())
    yield Row("speed", "white", titles["speed"], white, n=compared.n)
    fields = compared.mean("velocity", list(VELOCITY), "js").of(sets, joint=joint)
    yield Row("mean of five", "js", "mean of five (without path length)", unit="nats", **fields)


def velocity_seeds(made: Artefacts) -> Rows:
    """Each seed of the velocity model: its loss and the distances of what it generates."""
    compared, sets = Comparison(made.evaluations["velocity"]), made.plan.velocity_sets
    measures = {"js_5": compared.mean("velocity", list(VELOCITY), "js")}
    for name in (*VELOCITY, "path_length"):
        measures[f"{name}_js"] = compared.distance("velocity", name, "js")
    for one in [*sets, *_list(_joint(made, "velocity"))]:
        if one in sets:
            yield Row(one, "loss", one, **loss_of(made.histories[one], compared.n_draws))
        for column, measure in measures.items():
            yield Row(one, column, one, **measure.of([one]))


ROWS: dict[str, Callable[[Artefacts], Rows]] = {
    rows.__name__.replace("_", "-"): rows
    for rows in (
        *(features, bins, w1, markov, fgd, events, event_distances, panel, speed, sampling),
        *(objective, seeds, downstream, velocity, velocity_seeds),
    )
}
