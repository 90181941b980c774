"""The rows of each table: one small function for each, from the artefacts.

The position model's tables come first, then those of the velocity model and of training, then
those of what the paper did not measure. The paper's numbers are joined to the rows by their key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from gazediffusion.evaluation.quantities import DIRECTIONS, EVENTS, FEATURES, TEMPORAL, VELOCITY
from gazediffusion.reproduction import paper
from gazediffusion.reproduction.artefacts import Artefacts
from gazediffusion.reproduction.measures import Comparison, Measure, frechet_measure, seeds_of
from gazediffusion.reproduction.plan import BASELINES, ETAS, LEVELS, STEPS, Plan
from gazediffusion.reproduction.rows import Row, mean_and_sd, percent_above

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
    "snippets_accuracy": "c2st",
    "share_of_copies": "memorisation",
}

Rows = Iterator[Row]
Measures = dict[str, Measure]


def _labelled(title: str, unit: str) -> str:
    return f"{title} ({unit})" if unit else title


def _distances(name: str, label: str, of: Measures, sets: Sequence[str]) -> Rows:
    """KS and JS of one quantity."""
    for kind, unit in KINDS.items():
        yield Row(name, kind, label, unit=unit, **of[kind].of(sets))


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
    compared, sets = _position(made), made.plan.position_sets
    for name, (title, _) in FEATURES.items():
        yield from _distances(name, title, _measures(compared, "features", name), sets)
    for name, names in {"mean of eight": EIGHT, "mean of nine": list(FEATURES)}.items():
        yield from _distances(name, name, _measures(compared, "features", *names), sets)


def w1(made: Artefacts) -> Rows:
    """Wasserstein-1 distances of the nine features, each in its own unit."""
    compared, sets = _position(made), made.plan.position_sets
    for name, (title, unit) in FEATURES.items():
        fields = compared.distance("features", name, "w1").of(sets)
        yield Row(name, "w1", _labelled(title, unit), unit=unit, **fields)


def markov(made: Artefacts) -> Rows:
    """The kinematic Markov baseline by feature, beside the diffusion model."""
    compared, sets = _position(made), made.plan.position_sets
    of = {name: _measures(compared, "features", name) for name in EIGHT}
    of["mean of eight"] = _measures(compared, "features", *EIGHT)
    for name, measures in of.items():
        title, unit = FEATURES.get(name, (name, ""))
        yield Row(name, "real", title, compared.set_means("features", name).get("real"), unit=unit)
        for kind, unit in KINDS.items():
            for column, of_column in {kind: [MARKOV], f"{kind}_model": sets}.items():
                fields = measures[kind].of(of_column, with_floor=False)
                yield Row(name, column, title, unit=unit, **fields)


def fgd(made: Artefacts) -> Rows:
    """Frechet Gaze Distance of the model and the baselines."""
    sets = made.plan.position_sets
    measure = frechet_measure(made, [*sets, *BASELINES])
    yield Row("diffusion", "fgd", "diffusion model", **measure.of(sets))
    for name in BASELINES:
        yield Row(name, "fgd", BASELINE_LABELS[name], **measure.of([name]))


def events(made: Artefacts) -> Rows:
    """Means of the I-VT statistics: participants, the reference run, the paper."""
    compared, plan = _position(made), made.plan
    for name, (title, unit) in EVENTS.items():
        of = compared.set_means("events", name)
        real, train, generated = (of.get(one) for one in ("real", "train", plan.reference))
        seed = {"n": compared.n, "seeds": [plan.reference_seed]}
        floor = percent_above(train, real)
        columns: dict[str, dict[str, Any]] = {
            "real": {"ours": real},
            "train": {"ours": train, "n": compared.n},
            "generated": {"ours": generated, **seed},
            "generated_seeds": Measure(of, n=compared.n).of(plan.position_sets),
            "above_train": {"ours": percent_above(generated, train), **seed},
            "above_real": {"ours": percent_above(generated, real), "floor": floor, **seed},
        }
        for column, fields in columns.items():
            of_column = "%" if column.startswith("above") else unit
            yield Row(name, column, _labelled(title, unit), unit=of_column, **fields)


def event_distances(made: Artefacts) -> Rows:
    """KS and JS of the I-VT statistics of the reference run."""
    compared, sets = _position(made), [made.plan.reference]
    for name, (title, _) in EVENTS.items():
        yield from _distances(name, title, _measures(compared, "events", name), sets)


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
        yield Row(name, "model", label, unit=unit, **measure.of(sets))
        yield Row(name, "markov", label, unit=unit, **measure.of([MARKOV], with_floor=False))


def sampling(made: Artefacts) -> Rows:
    """DDIM steps, eta and weights of the reference run."""
    compared, plan = Comparison(made.evaluations["sampling"]), made.plan
    speed = _measures(compared, "features", "mean_speed")
    eight = _measures(compared, "features", *EIGHT)
    other = f"trained to predict {plan.runs[plan.x0].recipe.objective}, mean of eight"
    for name, label, measures, one in (
        *((f"steps {n}", f"{n} DDIM steps, mean speed", speed, plan.with_steps(n)) for n in STEPS),
        *((f"eta {e:g}", f"eta = {e:.1f}, mean of eight", eight, plan.with_eta(e)) for e in ETAS),
        ("raw", "raw weights, mean speed", speed, plan.raw),
        ("ema", "averaged weights (EMA), mean speed", speed, plan.reference),
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
    for name in ("x_std", "y_std"):
        measures |= _measures(compared, "features", name, column=f"{name}_{{}}")
    for one in sets:
        loss = made.histories[one]["best_validation_loss"]
        yield Row(one, "loss", one, loss, seeds=seeds_of([one]))
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
        real, sd = (measure("trtr", one).values.get(sets[0]) for one in (key, f"{key}_sd"))
        yield Row("trtr", key, "TRTR (real → real)", real, sd, n=compared.n)
        for way, label in {"tstr": "synthetic", "aug": "real + synthetic"}.items():
            fields = measure(way, key).of(sets, with_floor=False)
            yield Row(way, key, f"{way.upper()} ({label} → real)", **fields)
        floor, sd = (measure("tstr", one).floor for one in (key, f"{key}_sd"))
        label = "TSTR with the training participants' windows (floor)"
        yield Row("floor", key, label, floor, sd, n=compared.n)
    on_real = measure("trtr", "r2").values.get(sets[0])
    # Where real windows do not predict either, there is no share of their R2.
    shares = {
        one: 100.0 * (value / on_real) if value is not None and on_real and on_real > 0 else None
        for one, value in measure("tstr", "r2").values.items()
    }
    fields = Measure(shares, n=compared.n).of(sets)
    yield Row("tstr / trtr", "r2", "TSTR / TRTR (%)", unit="%", **fields)


def velocity(made: Artefacts) -> Rows:
    """The velocity model: JS, lag-one autocorrelations and spectra."""
    compared, sets = Comparison(made.evaluations["velocity"]), made.plan.velocity_sets
    titles = {name: title for name, (title, _) in VELOCITY.items()}
    titles["path_length"] = "reconstructed path length"
    for name, title in titles.items():
        measure = compared.distance("velocity", name, "js")
        yield Row(name, "js", title, unit="nats", **measure.of(sets))
        for column in ("rho1", "psd") if name in TEMPORAL else ():
            yield Row(name, column, title, **compared.scalar(f"{column}_{name}").of(sets))
    fields = compared.mean("velocity", list(VELOCITY), "js").of(sets)
    yield Row("mean of five", "js", "mean of five (without path length)", unit="nats", **fields)


def training(made: Artefacts) -> Rows:
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
    best, best_sd = paper.TEXT["best_validation_loss"]
    is_papers = plan.position.objective == "eps"
    yield replace(mean, paper=best, paper_sd=best_sd) if is_papers else mean


def _published_training(plan: Plan, run: str) -> dict[str, float]:
    """The paper's numbers of this run: of seed 123, of the reference or of the ablation."""
    target = plan.runs[run].recipe.objective
    numbers: dict[str, float] = {}
    if run in (plan.reference, plan.x0):
        numbers["loss"] = paper.NUMBERS["objective"][target]["loss"].mean
    elif run == "position-123" and target == "eps":
        numbers["loss"] = paper.NUMBERS["seeds"]["paper, seed 123"]["loss"].mean
    if run == plan.reference and target == "eps":
        numbers["epoch"] = paper.TEXT["reference_epoch"]
        numbers["training_loss"] = paper.TEXT["reference_training_loss"]
    return numbers


def levels(made: Artefacts) -> Rows:
    """What the networks recover of fixational motion at several noise levels."""
    for name in ("position", "velocity"):
        runs = made.plan.named([name])
        found = [made.levels[run] for run in runs]
        counts: dict[str, Any] = {"n": found[0]["n_windows"], "seeds": seeds_of(runs)}
        for at_level in zip(*(one["levels"] for one in found), strict=True):
            key, label = f"t {at_level[0]['t']}", f"t = {at_level[0]['t']}"
            yield Row(key, "sigma", label, at_level[0]["sigma"])
            for column, of in {"loss": "loss", "left": "unexplained_fixation"}.items():
                ours, sd = mean_and_sd(level[of] for level in at_level)
                yield Row(key, f"{name}_{column}", label, ours, sd, **counts)


def weights(made: Artefacts) -> Rows:
    """What rounding the weights costs."""
    plan = made.plan
    frechet = frechet_measure(made, plan.evaluations["weights"])
    for run, name in ((plan.reference, "weights"), (plan.velocity_sets[0], "velocity-weights")):
        compared = Comparison(made.evaluations[name])
        measures = _measures(compared, "features", *EIGHT, column="{}_8")
        measures["overall"] = compared.ratio(None)
        measures |= {"fgd": frechet} if run == plan.reference else {}
        sets = {run: "full weights"}
        sets |= {plan.with_levels(run, n): f"largest weight = {n} steps" for n in LEVELS}
        for one, label in sets.items():
            for column, measure in measures.items():
                yield Row(one, column, f"{run}, {label}", **measure.of([one]))


def beyond(made: Artefacts) -> Rows:
    """What the paper did not measure: ratios to the floor, classifiers, memorisation."""
    plan, position = made.plan, _position(made)
    velocity = Comparison(made.evaluations["velocity"])
    for name, label, compared, sets in (
        ("position", "position model", position, plan.position_sets),
        *((one, BASELINE_LABELS[one], position, [one]) for one in BASELINES),
        ("velocity", "velocity model", velocity, plan.velocity_sets),
    ):
        yield Row(name, "ratio_overall", label, **compared.ratio(None).of(sets))
        for family in FAMILIES:
            yield Row(name, f"ratio_{family}", label, **compared.ratio(family).of(sets))
        for key, test in TESTS.items():
            yield Row(name, key, label, **compared.test(test, key).of(sets))


ROWS: dict[str, Callable[[Artefacts], Rows]] = {
    rows.__name__.replace("_", "-"): rows
    for rows in (
        *(features, w1, markov, fgd, events, event_distances, panel, sampling, objective, seeds),
        *(downstream, velocity, training, levels, weights, beyond),
    )
}
