"""Labels of generated gaze: plausible events, agreement with human labels, worth for training.

    python runs/labels.py GAZECOM.safetensors --model joint -n 300 [--draws 3] [--workers 5]
        [--few 1 3 5] [--candidates 2]

GAZECOM: windows with hand labels (`prepare`). The model was trained on the training participants;
all scores are on the held-out ones, who take no part in any training. Prints five tables in
Markdown:

    scores        of the network's labels of held-out gaze, against the hand labels
    confusion     share of the samples of a true class by found class
    plausibility  Wasserstein-1 distance (JS of transitions) of events to those of held-out hand
                  labels, over that of the training participants' (ratio; at 1 as close)
    agreement     a network trained on hand labels of training participants, scored against held-out
                  hand labels and against the labels of generated gaze
    worth         detectors trained on real, synthetic and both, tested on held-out hand labels

F1 of samples and of events; an event is found where one of its class overlaps it by more than half
of their union (Startsev et al. 2019). In brackets: 95 % intervals over participants (plausibility:
over participants and generated windows; worth: the range over draws of windows, participants and
seeds). All detectors are trained for the same number of steps, or on the same number of samples.
Generated gaze has the most probable labels. Draws are computed by processes beside each other;
their number changes no result.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import gazediffusion as gd
from gazediffusion.evaluation.detectors import Detector, ForestDetector, NetworkDetector
from gazediffusion.evaluation.event_scores import Matches, confusion, match_events, match_samples
from gazediffusion.evaluation.labelled_events import (
    EventStatistics,
    labelled_throughout,
    quantities,
)
from gazediffusion.evaluation.metrics import js_from_counts, ks_and_wasserstein1
from gazediffusion.generation.labelling import Labeller
from gazediffusion.parallel import in_order

RELABELLED = "held-out gaze, network's labels"
START = time.monotonic()
N_BOOTSTRAP = 200
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def say(line: str, start: float = START) -> None:
    """A line of progress, with the seconds since the beginning."""
    print(f"[{time.monotonic() - start:5.0f} s] {line}", flush=True)


def head(title: str, columns: Sequence[str]) -> None:
    """Title and head of a table whose first column is text."""
    print(f"\n### {title}\n\n| {' | '.join(columns)} |\n|---|{'---:|' * (len(columns) - 1)}")


def weights_of(n_groups: int, seed: int = 0) -> Floats:
    """How often each group counts in each replicate, (replicate, group)."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), N_BOOTSTRAP).astype(float)


def f1_of(matches: Matches, group: Ints) -> tuple[Floats, Floats]:
    """F1 (class,) and its bootstrap replicates over groups (replicate, class)."""
    by_group = matches.by_group(group)
    return by_group.f1(), by_group.f1(weights_of(len(by_group.hits)))


def cells_of(values: Floats, replicates: Floats, digits: str = ".3f") -> str:
    """The cells of all classes, with intervals."""
    pairs = zip(values, replicates.T, strict=True)
    return " | ".join(with_interval(*one, digits) for one in pairs)


def with_interval(value: float, replicates: Floats, digits: str) -> str:
    """A value with its 95 % interval; empty where there is none."""
    known = replicates[np.isfinite(replicates)]
    if not np.isfinite(value) or not len(known):
        return ""
    low, high = np.percentile(known, (2.5, 97.5))
    return f"{value:{digits}} [{low:{digits}}, {high:{digits}}]"


def ratio(distance: float, floor: float) -> float:
    """A distance over the floor; NaN where the floor is zero."""
    return distance / floor if floor > 0 else float("nan")


def scores(held_out: gd.Windows, found: NDArray[np.uint8]) -> None:
    """The tables of the network's own labels."""
    true, who = held_out.cut_labels(), held_out.participant.astype(np.int64)
    columns = ["score", "windows", "participants", *gd.EVENT_CLASSES]
    head("Labels of held-out gaze against hand labels", columns)
    size = f"{len(true)} | {len(np.unique(who))}"
    for name, match in (("sample F1", match_samples), ("event F1", match_events)):
        matches = match(true, found)
        print(f"| {name} | {size} | {cells_of(*f1_of(matches, who))} |")
        each = matches.by_group(who).f1(np.eye(len(np.unique(who))))
        worst = " | ".join(f"{v:.3f}" for v in np.nan_to_num(each, nan=np.inf).min(axis=0))
        print(f"| {name}, lowest participant | {size} | {worst} |")
    head("Where labels differ: share of each true class", ["true", *gd.EVENT_CLASSES])
    for name, row in zip(gd.EVENT_CLASSES, confusion(true, found), strict=True):
        print(f"| {name} | {' | '.join(f'{v:.3f}' for v in row)} |")


def drawn_by(windows: gd.Windows, rng: np.random.Generator) -> Ints:
    """Windows of participants drawn with repetition; of synthetic sets windows themselves."""
    who = windows.participant
    if len(np.unique(who)) == 1:
        return rng.integers(0, len(windows), len(windows))
    of = [np.flatnonzero(who == one) for one in np.unique(who)]
    return np.concatenate([of[k] for k in rng.integers(0, len(of), len(of))])


def distance_of(one: EventStatistics, other: EventStatistics, a: Ints, b: Ints, name: str) -> float:
    """W1 of a quantity of drawn windows, or JS of transitions."""
    if name == "transitions (JS)":
        shares = one.transition_shares(a), other.transition_shares(b)
        return float(js_from_counts(*shares)) if all(row.any() for row in shares) else float("nan")
    values = one.drawn(a, name), other.drawn(b, name)
    return ks_and_wasserstein1(*values)[1] if min(map(len, values)) else float("nan")


def plausibility(held_out: gd.Windows, train: gd.Windows, sets: dict[str, gd.Windows]) -> None:
    """Ratios of distances of event statistics to the floor."""
    every = {"held-out": held_out, "training (floor)": train, **sets}
    found = {name: EventStatistics.of(one) for name, one in every.items()}
    names = [*quantities(), "transitions (JS)"]
    columns = ["quantity", *(f"{one}, median" for one in every), "floor"]
    head("Events: medians, and ratio to the floor", [*columns, *(f"{one}, ratio" for one in sets)])
    rng = np.random.default_rng(0)
    draws = [{name: drawn_by(one, rng) for name, one in every.items()} for _ in range(N_BOOTSTRAP)]
    for one in draws:
        one[RELABELLED] = one["held-out"]  # the same windows
    whole = {name: np.arange(len(one)) for name, one in every.items()}

    def distance(name: str, which: str, drawn: dict[str, Ints]) -> float:
        pair = found[which], found["held-out"]
        return distance_of(*pair, drawn[which], drawn["held-out"], name)

    ratios: dict[str, list[float]] = {which: [] for which in sets}
    for name in names:
        medians = [
            f"{np.median(one.values[name]):.3g}" if name in one.values and len(one.values[name])
            else ""
            for one in found.values()
        ]  # fmt: skip
        floor = distance(name, "training (floor)", whole)
        cells = []
        for which in sets:
            value = ratio(distance(name, which, whole), floor)
            replicates = [
                ratio(distance(name, which, one), distance(name, "training (floor)", one))
                for one in draws
            ]
            cells.append(with_interval(value, np.array(replicates), ".2f"))
            ratios[which].append(value)
        print(f"| {name} | {' | '.join(medians)} | {floor:.4g} | {' | '.join(cells)} |")
    cells = [f"{np.median([v for v in one if v == v] or [0]):.2f}" for one in ratios.values()]
    print(f"| median of all | {' | ' * len(every)} | {' | '.join(cells)} |")


def agreement(detector: Detector, held_out: gd.Windows, sets: dict[str, gd.Windows]) -> None:
    """A detector of hand labels against hand labels and against generated ones."""
    columns = ["labels", "score", *gd.EVENT_CLASSES]
    head("Agreement with a network trained on hand labels of training participants", columns)
    found: dict[tuple[str, str], tuple[Floats, Floats]] = {}
    for name, one in {"held-out hand labels": held_out, **sets}.items():
        who = one.participant.astype(np.int64)
        group = who if len(np.unique(who)) > 1 else np.arange(len(one))
        labels = detector.labels(one)
        for score, match in (("sample F1", match_samples), ("event F1", match_events)):
            found[name, score] = f1_of(match(one.cut_labels(), labels), group)
            print(f"| {name} | {score} | {cells_of(*found[name, score])} |")
    for name in sets:
        for score in ("sample F1", "event F1"):
            value, replicates = found[name, score]
            by_hand, by_hand_replicates = found["held-out hand labels", score]
            gaps = 100 * (value - by_hand), 100 * (replicates - by_hand_replicates)
            print(f"| {name} less held-out, points | {score} | {cells_of(*gaps, '+.1f')} |")


def of_participants(windows: gd.Windows, n: int, rng: np.random.Generator) -> gd.Windows:
    """The windows of n participants, drawn without repetition."""
    chosen = rng.permutation(np.unique(windows.participant))[:n]
    return windows.select(np.isin(windows.participant, chosen))


def shuffled(windows: gd.Windows, n: int, rng: np.random.Generator) -> gd.Windows:
    """At most n windows, drawn without repetition."""
    return windows.select(np.sort(rng.permutation(len(windows))[:n]))


@dataclass(frozen=True)
class Training:
    """How detectors are trained, and on which device.

    n: windows of a training set. n_participants: real ones of the rows with few.
    """

    n: int
    device: str
    n_participants: tuple[int, ...]
    steps: int = 400
    n_samples: int = 60_000
    n_trees: int = 50

    def network(self, sets: Sequence[gd.Windows], seed: int) -> Detector:
        """A network of convolutions."""
        return NetworkDetector.fit(sets, seed, self.steps, device=self.device)

    def forest(self, sets: Sequence[gd.Windows], seed: int) -> Detector:
        """A random forest."""
        return ForestDetector.fit(sets, seed, self.n_samples, self.n_trees)


@dataclass(frozen=True)
class Worth:
    """What all draws share: the sets, how detectors are trained, when the script was started."""

    train: gd.Windows
    synthetic: gd.Windows
    held_out: gd.Windows
    how: Training
    start: float


def draw_of(shared: Worth, draw: int) -> dict[tuple[str, str], Floats]:
    """F1 (score, class) by detector and training set, of one draw."""
    n, rng = shared.how.n, np.random.default_rng(draw)
    real = shuffled(shared.train, n, rng)
    chosen = np.sort(rng.permutation(len(shared.synthetic))[:n])
    made = shared.synthetic.select(chosen)
    sets: dict[str, list[gd.Windows]] = {
        "real, all participants": [real],
        "synthetic": [made],
        "real and synthetic": [real, made],
    }
    for k in shared.how.n_participants:
        few = shuffled(of_participants(shared.train, k, rng), n, rng)
        sets[f"real, {k} participants"] = [few]
        sets[f"real, {k} participants, and synthetic"] = [few, made]
    true, found = shared.held_out.cut_labels(), {}
    for name, windows in sets.items():
        for detector, fit in (("network", shared.how.network), ("forest", shared.how.forest)):
            labels = fit(windows, draw).labels(shared.held_out)
            both = [match(true, labels).f1() for match in (match_samples, match_events)]
            found[detector, name] = np.array(both)
        say(f"draw {draw + 1}: {name}", shared.start)
    return found


def worth(shared: Worth, n_draws: int, n_workers: int) -> None:
    """Detectors by training set, mean and range over draws; a table after each draw."""
    found: dict[tuple[str, str], list[Floats]] = {}
    draws = in_order(draw_of, shared, range(n_draws), n_workers=n_workers)
    for number, one in enumerate(draws, start=1):
        for key, scores in one.items():
            found.setdefault(key, []).append(scores)
        worth_table(found, number)


def worth_table(found: Mapping[tuple[str, str], list[Floats]], n_draws: int) -> None:
    """Scores by detector and training set, of so many draws."""
    columns = ["detector, trained on", *(f"sample {one}" for one in gd.EVENT_CLASSES)]
    columns += [*(f"event {one}" for one in gd.EVENT_CLASSES), "sample mean", "event mean"]
    head(
        f"Worth: F1 on held-out hand labels, {n_draws} draws",
        [*columns, "sample, of real", "event, of real"],
    )
    for (detector, name), draws in found.items():
        scores = np.array(draws)  # (draw, score, class)
        reference = np.nanmean(np.array(found[detector, "real, all participants"]), axis=2)
        means = np.nanmean(scores, axis=2)
        cells = [_range(one) for one in scores.reshape(len(scores), -1).T]
        cells += [_range(one) for one in means.T]
        share = means / np.maximum(reference.mean(axis=0), 1e-9)
        cells += [_range(one, 100, " %") for one in share.T]
        print(f"| {detector}, {name} | {' | '.join(cells)} |")


def _range(values: Floats, factor: float = 1.0, unit: str = "") -> str:
    value, digits = factor * np.mean(values), 1 if unit else 3
    low, high = factor * np.min(values), factor * np.max(values)
    return f"{value:.{digits}f}{unit} [{low:.{digits}f}, {high:.{digits}f}]"


def main(given: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path)
    parser.add_argument("--model", default="joint")
    parser.add_argument("--task", default="movies")
    parser.add_argument("-n", type=int, default=300, help="windows of each set")
    parser.add_argument("--draws", type=int, default=3, help="of training sets of detectors")
    parser.add_argument("--workers", type=int, help="of draws; default: all draws at once")
    few = "participants of training sets with few of them; none leaves these rows out"
    parser.add_argument("--few", type=int, nargs="*", default=[1, 3, 5], help=few)
    parser.add_argument("--quality", default="default")
    parser.add_argument("--candidates", type=int, help="2: windows are chosen by their events")
    arguments = parser.parse_args(given)
    windows = gd.Windows.load(arguments.windows).of_task(arguments.task).dequantized(0)
    windows = labelled_throughout(windows)
    n = arguments.n
    held_out, train = windows.held_out.subsample(n), windows.train
    say(f"labelled windows: {len(train)} training, {len(windows.held_out)} held out")
    model = gd.load(arguments.model)
    labeller = Labeller(model.run, model.generator().batch_size)
    labels = labeller.labels(held_out.cut())
    say("labelled the held-out gaze")
    # Each draw of training sets takes others of them.
    how_sampled = {"quality": arguments.quality, "candidates": arguments.candidates}
    sampled = partial(model.sampling, 2 * n, task=arguments.task, **how_sampled)
    most_probable = sampled(labels=True)
    synthetic = most_probable.windows(np.concatenate(list(most_probable.pieces())))
    say(f"generated {len(synthetic)} windows with labels")
    first = synthetic.select(np.arange(n))
    relabelled = _with_labels(held_out, labels)
    scores(held_out, labels)
    sets = {"generated": first, RELABELLED: relabelled}
    plausibility(held_out, train.subsample(n), sets)
    how = Training(n, str(model.device), tuple(arguments.few))
    agreement(how.network([train.subsample(2 * n)], 0), held_out, sets)
    n_workers = arguments.workers or min(arguments.draws, os.cpu_count() or 1)
    shared = Worth(train, synthetic, held_out, how, START)
    worth(shared, arguments.draws, n_workers)


def _with_labels(windows: gd.Windows, labels: NDArray[np.uint8]) -> gd.Windows:
    """The windows with other labels, as windows of an array of their own."""
    other = gd.Windows.from_array(
        windows.cut(),
        windows.rate_hz,
        [windows.screens[k] for k in windows.screen_index],
        [str(one) for one in windows.identity["participant"]],
        [str(one) for one in windows.identity["task"]],
        labels=labels,
    )
    return replace(other, grid_px=windows.grid_px)


if __name__ == "__main__":
    main()
