"""Style: does gaze generated like a recording have the participant's statistics?

    python runs/style.py gazecom6.safetensors bioeye6.safetensors [-n 8] [--training]

Every participant has two recordings: the two sessions of reading, the two halves of other tasks,
16 s or more each. From one of them, at most 60 s, windows are generated in its style and compared
with the other recording; then the other way round. For every quantity: the rank correlation over
participants of the two recordings, that of generated gaze and the other recording, and their ratio
with 95 % intervals over participants; and the median Wasserstein distance of generated gaze to the
other recording over that between the two. The last table has the means of the rank correlations
over tasks, weighted by the number of participants, who are few in each task. Then how often a
recording, and gaze generated like it, is assigned to its own participant's other recording, by the
nearest neighbour in the metric of the covariance within training participants. Participants are
those held out, or those of training.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr, wasserstein_distance

import gazediffusion as gd
from gazediffusion.conditioning import Conditioning
from gazediffusion.conditioning.style import n_covered

Floats = NDArray[np.float64]
QUANTITIES = (
    "fixation duration",
    "saccade rate",
    "amplitude",
    "peak velocity",
    "spread",
    "drift speed",
)
LEAST_S, MOST_S = 16.0, 60.0
SMOOTHING_S = 0.04  # drift is that of gaze averaged over so much
N_BOOTSTRAP = 1000


@dataclass(frozen=True, eq=False)
class Pair:
    """Two recordings of a participant."""

    participant: str
    recordings: tuple[gd.Windows, gd.Windows]


@dataclass(frozen=True, eq=False)
class Measured:
    """Some gaze: the values of each quantity, and the means of the summary statistics."""

    values: tuple[Floats, ...]
    statistics: Floats

    @property
    def means(self) -> Floats:
        """The mean of each quantity, (quantity,)."""
        return np.array([one.mean() for one in self.values])


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
    durations, rates, amplitudes, peaks, drifts = [], [], [], [], []
    n_smooth = round(SMOOTHING_S * windows.rate_hz)
    kernel = np.full(n_smooth, 1 / n_smooth)
    degrees = windows.to_numpy("deg").astype(np.float64)
    for k, gaze in enumerate(degrees):
        events = windows.events(k)
        saccades = [one for one in events if one.event == "saccade"]
        rates.append(len(saccades) / windows.length * windows.rate_hz)
        amplitudes += [one.amplitude_deg for one in saccades]
        peaks += [one.peak_velocity_deg_s for one in saccades]
        for one in events:
            if one.event != "fixation":
                continue
            durations.append(one.offset_ms - one.onset_ms)
            first, last = (round(t * windows.rate_hz / 1000) for t in (one.onset_ms, one.offset_ms))
            if last - first > 2 * n_smooth:
                smooth = [np.convolve(axis[first:last], kernel, "valid") for axis in gaze]
                drifts.append(np.hypot(*np.diff(smooth)).mean() * windows.rate_hz)
    spread = np.hypot(*degrees.std(axis=2).T)
    found = (durations, rates, amplitudes, peaks, spread, drifts)
    raw = conditioning.measure(torch.from_numpy(windows.dequantized(seed=0).cut()), windows.rate_hz)
    assert raw is not None
    return Measured(tuple(np.array(one, dtype=float) for one in found), raw.mean(dim=0).numpy())


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


def distances(real: list[list[Measured]], generated: list[list[Measured]]) -> Floats:
    """The median distance of generated to the other recording over the recordings', (quantity,)."""
    found = []
    for k in range(len(QUANTITIES)):
        rows = [
            (
                wasserstein_distance(made.values[k], other.values[k]),
                wasserstein_distance(given.values[k], other.values[k]),
            )
            for one in (0, 1)
            for given, made, other in zip(real[one], generated[one], real[1 - one], strict=True)
        ]
        made, own = np.median(rows, axis=0)
        found.append(made / own)
    return np.array(found)


def drawn_correlations(x: Floats, y: Floats, rng: np.random.Generator) -> Floats:
    """`correlations` of participants drawn with replacement, (draw, 3, quantity)."""
    n = x.shape[1]
    chosen = (rng.integers(0, n, n) for _ in range(N_BOOTSTRAP))
    with np.errstate(all="ignore"):
        return np.array([correlations(x[:, k], y[:, k]) for k in chosen])


def print_table(title: str, found: Floats, draws: Floats, apart: Floats | None = None) -> None:
    """One row for each quantity: correlations with intervals, and distances where given."""
    low, high = np.nanpercentile(draws, [2.5, 97.5], axis=0)
    last = ("", "") if apart is None else (" distance |", "---:|")
    print(f"\n{title}\n\n| quantity | two recordings | generated | ratio |{last[0]}")
    print(f"|---|---:|---:|---:|{last[1]}")
    for k, name in enumerate(QUANTITIES):
        cells = [f"{found[i, k]:.2f} [{low[i, k]:.2f}, {high[i, k]:.2f}]" for i in range(3)]
        print(f"| {name} | {' | '.join(cells)} |{'' if apart is None else f' {apart[k]:.2f} |'}")


def means(both: list[list[Measured]]) -> Floats:
    """The mean of each quantity, (recording, participant, quantity)."""
    return np.array([[one.means for one in side] for side in both])


def report(title: str, real: list[list[Measured]], generated: list[list[Measured]]) -> None:
    """Print the table of a task."""
    x, y = means(real), means(generated)
    draws = drawn_correlations(x, y, np.random.default_rng(0))
    title = f"{title}, {x.shape[1]} participants"
    print_table(title, correlations(x, y), draws, distances(real, generated))


def report_all(pairs: list[tuple[Floats, Floats]]) -> None:
    """Print the means over tasks, from the means of quantities of real and generated gaze."""
    weights = np.array([x.shape[1] for x, _ in pairs], dtype=float)
    rng = np.random.default_rng(0)
    found = np.average([correlations(x, y)[:2] for x, y in pairs], axis=0, weights=weights)
    draws = np.array([drawn_correlations(x, y, rng)[:, :2] for x, y in pairs])
    drawn = np.average(np.nan_to_num(draws), axis=0, weights=weights)
    with_ratio = [
        np.concatenate([one, one[..., 1:, :] / one[..., :1, :]], -2) for one in (found, drawn)
    ]
    title = f"all tasks, {weights.sum():.0f} participants of a task"
    print_table(title, with_ratio[0], with_ratio[1])


def report_identification(
    real: list[list[Measured]], generated: list[list[Measured]], others: list[list[Measured]]
) -> None:
    """Print how often gaze is assigned to its participant's other recording.

    others: two recordings each of other participants, from which the classifier is fitted.
    """
    rows: dict[str, Callable[[Measured], Floats]] = {
        "six quantities": lambda one: np.log(one.means),
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


def main() -> None:
    """Print the tables of all tasks with enough participants."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", nargs="+")
    parser.add_argument("-n", type=int, default=8, help="windows generated like a recording")
    parser.add_argument("--model", default="default")
    parser.add_argument("--tasks", nargs="+", default=["reading", "dots", "movies"])
    parser.add_argument("--training", action="store_true", help="the training participants")
    given = parser.parse_args()
    model = gd.load(given.model)
    pairs_of_means: list[tuple[Floats, Floats]] = []
    for path in given.windows:
        whole = gd.Windows.load(path)
        windows = whole.train if given.training else whole.held_out
        for task in [one for one in windows.tasks if one in given.tasks]:
            real: list[list[Measured]] = [[], []]
            generated: list[list[Measured]] = [[], []]
            for number, pair in enumerate(pairs_of(windows, task)):
                for k, recording in enumerate(pair.recordings):
                    made = model.sample(given.n, like=recording, task=task, seed=2 * number + k)
                    real[k].append(measured(recording, model.config.conditioning))
                    generated[k].append(measured(made, model.config.conditioning))
            report(task, real, generated)
            pairs_of_means.append((means(real), means(generated)))
            if not given.training:
                pairs = list(pairs_of(whole.train, task))
                others = [
                    [measured(pair.recordings[k], model.config.conditioning) for pair in pairs]
                    for k in (0, 1)
                ]
                report_identification(real, generated, others)
    report_all(pairs_of_means)


if __name__ == "__main__":
    main()
