"""Style: does gaze generated like a recording have the participant's statistics?

    python runs/style.py gazecom6.safetensors bioeye6.safetensors [-n 8] [--candidates 1]
        [--training] [-o style.json]
    python runs/style.py --pool style-42.json style-1.json style-2.json [--picture style.png]

Every participant has two recordings: the two sessions of reading, the two halves of other tasks, 16
s or more each. From one of them, at most 60 s, windows are generated in its style and compared with
the other recording; then the other way round. For every quantity: the rank correlation over
participants of the two recordings, that of generated gaze and the other recording, and their ratio
with 95 % intervals over participants; and the Wasserstein distance of generated gaze to the other
recording over that between the two, with as many generated windows as the recording has that do not
overlap (geometric mean over participants). The last table has the means of the rank correlations
over tasks, weighted by the number of participants, who are few in each task, and distances of all.
`--pool` prints it for several runs together, as of several splits with a model each. Then how often
a recording, and gaze generated like it, is assigned to its own participant's other recording, by
the nearest neighbour in the metric of the covariance within training participants. Participants are
those held out, or those of training. `--picture` draws each participant's means.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr, wasserstein_distance

import gazediffusion as gd
from gazediffusion.conditioning import Conditioning
from gazediffusion.conditioning.movements import QUANTITIES, Movements
from gazediffusion.conditioning.style import n_covered
from gazediffusion.data.subsampling import not_overlapping
from gazediffusion.evaluation.result import plain_values
from gazediffusion.files import read_json, write_json
from gazediffusion.plotting.style import BLUE, GREEN, GREY, ORANGE, house_style
from pictures import save_small

Floats = NDArray[np.float64]
UNITS = ("ms", "1/s", "deg", "deg/s", "deg", "deg/s")
LEAST_S, MOST_S = 16.0, 60.0
LEAST_RATIO = 0.01  # of two distances
N_BOOTSTRAP = 1000


@dataclass(frozen=True, eq=False)
class Pair:
    """Two recordings of a participant."""

    participant: str
    recordings: tuple[gd.Windows, gd.Windows]


@dataclass(frozen=True, eq=False)
class Measured:
    """Some gaze: the values of each quantity, and the means of the summary statistics."""

    movements: Movements
    statistics: Floats


# Windows of a recording, as many generated like it, and the participant's other recording.
Compared = tuple[Measured, Measured, Measured]


def pairs_of(windows: gd.Windows, task: str) -> Iterator[Pair]:
    """The participants of a task with two recordings that are long enough."""
    of_task = windows.of_task(task)
    for number, name in enumerate(windows.participants):
        own = of_task.select(of_task.participant == number)
        if len(own) < 2:
            continue
        if task == "reading":
            session = np.array([trial.split("-")[0] for trial in own.identity["trial"]])
            halves = [own.select(session == one) for one in ("1", "2")]
        else:
            first, stop = int(own.starts.min()), int(own.starts.max()) + own.length
            candidates = np.arange(first, stop, 250)
            before = np.array([n_samples(own, own.starts + own.length <= at) for at in candidates])
            after = np.array([n_samples(own, own.starts >= at) for at in candidates])
            middle = candidates[np.minimum(before, after).argmax()]
            halves = [own.select(own.starts + own.length <= middle)]
            halves.append(own.select(own.starts >= middle))
        if min(n_covered(one) if len(one) else 0 for one in halves) >= LEAST_S * own.rate_hz:
            yield Pair(name, (shortened(halves[0]), shortened(halves[1])))


def n_samples(windows: gd.Windows, chosen: NDArray[np.bool_]) -> int:
    """How many samples the chosen windows cover."""
    return n_covered(windows.select(chosen)) if chosen.any() else 0


def shortened(windows: gd.Windows) -> gd.Windows:
    """The first windows that cover a minute."""
    covered = [n_covered(windows.select(np.arange(k + 1))) for k in range(len(windows))]
    return windows.select(np.array(covered) <= MOST_S * windows.rate_hz)


def measured(windows: gd.Windows, conditioning: Conditioning) -> Measured:
    """What is compared of some windows."""
    raw = conditioning.measure(torch.from_numpy(windows.dequantized(seed=0).cut()), windows.rate_hz)
    assert raw is not None
    return Measured(Movements.of(windows), raw.mean(dim=0).numpy())


def rank_correlations(x: Floats, y: Floats) -> Floats:
    """Of every quantity, from (participant, quantity) each."""
    return np.array([spearmanr(a, b).statistic for a, b in zip(x.T, y.T, strict=True)])


def correlations(real: Floats, generated: Floats) -> Floats:
    """Own, generated and their ratio, (3, quantity), of (recording, participant, quantity)."""
    own = rank_correlations(real[0], real[1])
    made = (rank_correlations(generated[0], real[1]) + rank_correlations(generated[1], real[0])) / 2
    return np.stack([own, made, made / own])


def assigned(probes: Floats, gallery: Floats, metric: Floats) -> float:
    """How often the nearest of the gallery (participant, feature) is the probe's own."""
    apart = (probes[:, None] - gallery[None]) @ np.linalg.cholesky(np.linalg.inv(metric))
    return float(((apart**2).sum(axis=2).argmin(axis=1) == np.arange(len(probes))).mean())


def within(real: Floats) -> Floats:
    """Covariance of the features within participants, from (recording, participant, feature)."""
    difference = (real[0] - real[1]) / np.sqrt(2)
    covariance = difference.T @ difference / len(difference)
    return np.asarray(covariance + 0.1 * np.diag(np.diag(covariance)))


def distances(compared: Sequence[Compared]) -> Floats:
    """Log of the distance of generated to the other recording over the recordings' own.

    (participant, quantity), the mean over both recordings. `LEAST_RATIO` is added to every ratio,
    as the saccade rates of few windows may be the same.
    """
    found = np.empty((2, len(compared) // 2, len(QUANTITIES)))
    for number, (given, made, other) in enumerate(compared):
        for k in range(len(QUANTITIES)):
            apart = [
                wasserstein_distance(one.movements.values[k], other.movements.values[k])
                for one in (made, given)
            ]
            found[number % 2, number // 2, k] = np.log(apart[0] / apart[1] + LEAST_RATIO)
    return np.asarray(found.mean(axis=0))


def drawn_correlations(x: Floats, y: Floats, rng: np.random.Generator) -> Floats:
    """`correlations` of participants drawn with replacement, (draw, 3, quantity)."""
    n = x.shape[1]
    chosen = (rng.integers(0, n, n) for _ in range(N_BOOTSTRAP))
    with np.errstate(all="ignore"):
        return np.array([correlations(x[:, k], y[:, k]) for k in chosen])


@dataclass(frozen=True, eq=False)
class OfTask:
    """The participants of one task.

    real, generated: means of quantities, (recording, participant, quantity). apart: `distances`.
    """

    task: str
    real: Floats
    generated: Floats
    apart: Floats

    @classmethod
    def load(cls, row: Mapping[str, Any]) -> OfTask:
        """Read what -o wrote."""
        return cls(row["task"], *(np.array(row[key]) for key in ("real", "generated", "apart")))


def print_table(title: str, found: Floats, draws: Floats, apart: Floats) -> None:
    """One row for each quantity: correlations and distances, with intervals."""
    rng, n = np.random.default_rng(1), len(apart)
    chosen = [apart[rng.integers(0, n, n)].mean(axis=0) for _ in range(N_BOOTSTRAP)]
    values = np.concatenate([found, np.exp(apart.mean(axis=0))[None]])
    drawn = np.concatenate([draws, np.exp(chosen)[:, None]], axis=1)
    low, high = np.nanpercentile(drawn, [2.5, 97.5], axis=0)
    print(f"\n{title}\n\n| quantity | two recordings | generated | ratio | distance |")
    print("|---|---:|---:|---:|---:|")
    for k, name in enumerate(QUANTITIES):
        cells = [f"{values[i, k]:.2f} [{low[i, k]:.2f}, {high[i, k]:.2f}]" for i in range(4)]
        print(f"| {name} | {' | '.join(cells)} |")
    overall = np.exp([apart.mean(), *np.percentile([np.mean(one) for one in chosen], [2.5, 97.5])])
    print("distance, all quantities: {:.2f} [{:.2f}, {:.2f}]".format(*overall))


def means(both: list[list[Measured]]) -> Floats:
    """The mean of each quantity, (recording, participant, quantity)."""
    return np.array([[one.movements.means for one in side] for side in both])


def report(of_task: OfTask) -> None:
    """Print the table of a task."""
    x, y = of_task.real, of_task.generated
    draws = drawn_correlations(x, y, np.random.default_rng(0))
    title = f"{of_task.task}, {x.shape[1]} participants"
    print_table(title, correlations(x, y), draws, of_task.apart)


def report_all(tasks: Sequence[OfTask]) -> None:
    """Print the means over tasks."""
    pairs = [(one.real, one.generated) for one in tasks]
    weights = np.array([x.shape[1] for x, _ in pairs], dtype=float)
    rng = np.random.default_rng(0)
    found = np.average([correlations(x, y)[:2] for x, y in pairs], axis=0, weights=weights)
    draws = np.array([drawn_correlations(x, y, rng)[:, :2] for x, y in pairs])
    drawn = np.average(np.nan_to_num(draws), axis=0, weights=weights)
    values, sampled = (
        np.concatenate([one, one[..., 1:, :] / one[..., :1, :]], -2) for one in (found, drawn)
    )
    title = f"all tasks, {weights.sum():.0f} participants of a task"
    print_table(title, values, sampled, np.concatenate([one.apart for one in tasks]))


def report_identification(
    real: list[list[Measured]], generated: list[list[Measured]], others: list[list[Measured]]
) -> None:
    """Print how often gaze is assigned to its participant's other recording.

    others: two recordings each of other participants, from which the classifier is fitted.
    """
    rows: dict[str, Callable[[Measured], Floats]] = {
        "six quantities": lambda one: np.log(one.movements.means),
        "summary statistics": lambda one: one.statistics,
    }
    for name, features in rows.items():
        x, y, z = (
            np.array([[features(one) for one in side] for side in both])
            for both in (real, generated, others)
        )
        metric = within(z)
        rates = [
            np.mean([assigned(probes[k], x[1 - k], metric) for k in (0, 1)]) for probes in (x, y)
        ]
        n = x.shape[1]
        print(f"{name}: recording {rates[0]:.0%}, generated {rates[1]:.0%}, chance {1 / n:.0%}")


def draw(tasks: Sequence[OfTask], path: Path) -> None:
    """Means of generated gaze over those of the participant's other recording, by quantity."""
    import matplotlib.pyplot as plt

    with house_style():
        figure, axes = plt.subplots(2, 3, figsize=(9, 6))
        names = list(dict.fromkeys(one.task for one in tasks))  # of several splits once
        colours = dict(zip(names, (BLUE, ORANGE, GREEN), strict=False))
        for k, (axis, name) in enumerate(zip(axes.flat, QUANTITIES, strict=True)):
            for task in names:
                own = [one for one in tasks if one.task == task]
                others = np.concatenate([one.real[::-1, :, k].ravel() for one in own])
                made = np.concatenate([one.generated[:, :, k].ravel() for one in own])
                colour = colours.get(task, "black")
                axis.scatter(others, made, s=14, color=colour, alpha=0.8, label=task)
            both = np.concatenate([[one.real[..., k], one.generated[..., k]] for one in tasks], -1)
            axis.axline((both.min(), both.min()), slope=1, color=GREY, linewidth=0.6)
            axis.set(title=f"{name} ({UNITS[k]})")
        figure.supxlabel("the participant's other recording")
        figure.supylabel("generated like one recording")
        axes[0, 0].legend(loc="upper left")
        save_small(figure, path)


def main() -> None:
    """Print the tables of all tasks with enough participants."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", nargs="*")
    parser.add_argument("-n", type=int, default=8, help="windows generated like a recording")
    parser.add_argument("--model", default="default")
    parser.add_argument("--candidates", type=int, help="of each window; the model's own by default")
    parser.add_argument("--tasks", nargs="+", default=["reading", "dots", "movies"])
    parser.add_argument("--training", action="store_true", help="the training participants")
    parser.add_argument("-o", "--output", type=Path, help="for --pool")
    parser.add_argument("--pool", type=Path, nargs="+", help="results of former runs")
    parser.add_argument("--picture", type=Path, help="draw the results of --pool")
    given = parser.parse_args()
    if given.pool:
        tasks = [OfTask.load(one) for path in given.pool for one in read_json(path)["tasks"]]
        report_all(tasks)
        if given.picture is not None:
            draw(tasks, given.picture)
        return
    if not given.windows:
        parser.error("name windows files, or results with --pool")
    model = gd.load(given.model)
    conditioning = model.config.conditioning
    tasks = []
    for path in given.windows:
        whole = gd.Windows.load(path)
        windows = whole.train if given.training else whole.held_out
        for task in [one for one in windows.tasks if one in given.tasks]:
            real: list[list[Measured]] = [[], []]
            generated: list[list[Measured]] = [[], []]
            compared: list[Compared] = []
            for number, pair in enumerate(pairs_of(windows, task)):
                both = [measured(one, conditioning) for one in pair.recordings]
                for k, recording in enumerate(pair.recordings):
                    made = model.sample(
                        given.n,
                        like=recording,
                        candidates=given.candidates,
                        task=task,
                        seed=2 * number + k,
                    )
                    real[k].append(both[k])
                    generated[k].append(measured(made, conditioning))
                    apart = recording.select(not_overlapping(recording.starts, recording.length))
                    as_many = made.select(np.arange(len(apart)))
                    alike = [measured(one, conditioning) for one in (apart, as_many)]
                    compared.append((alike[0], alike[1], both[1 - k]))
            found = OfTask(task, means(real), means(generated), distances(compared))
            tasks.append(found)
            report(found)
            if given.output is not None:
                rows = [vars(one) for one in tasks]
                write_json(given.output, plain_values({"model": given.model, "tasks": rows}))
            if not given.training:
                pairs = list(pairs_of(whole.train, task))
                others = [
                    [measured(pair.recordings[k], conditioning) for pair in pairs] for k in (0, 1)
                ]
                report_identification(real, generated, others)
    report_all(tasks)
    if given.output is not None:
        print(f"wrote {given.output}")


if __name__ == "__main__":
    main()
