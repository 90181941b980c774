"""Labels of generated gaze: plausible events, agreement with human labels, worth for training.

    python experiments/labels.py gazecom.safetensors [-n 300] [--draws 12]   # 30 minutes, one H200

The windows file has hand labels. The model was trained on the training participants; all scores are
on the held-out ones, who take no part in any training. Tables:

scores        of the network's labels of held-out gaze against the hand labels; lowest: of the
              participant with the lowest F1
confusion     share of the samples of a true class by found class
plausibility  Wasserstein-1 distance (JS of transitions) of events to those of held-out hand labels,
              over that of the training participants' (ratio)
agreement     a network trained on hand labels of training participants, scored against held-out
              hand labels and against the labels of generated gaze
worth         detectors trained on real, synthetic and both, tested on held-out hand labels; mean
              and range over draws of windows, participants and seeds

F1 of samples and of events; an event is found where one of its class overlaps it by more than half
of their union (Startsev et al. 2019). Intervals: 95 % over participants (plausibility: also over
generated windows). All detectors are trained for the same number of steps, or on as many samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gazediffusion as gd
from gazediffusion.data.recordings import label_segments
from gazediffusion.evaluation.labels import (
    Detector,
    ForestDetector,
    NetworkDetector,
    confusion,
    match_events,
    match_samples,
)
from gazediffusion.evaluation.metrics import js_from_counts, ks_and_wasserstein1
from gazediffusion.generation.labelling import Labeller
from report import Floats, Result, options, over_groups, tiny_windows, with_interval

RELABELLED = "held-out gaze, network's labels"
SCORES = {"sample F1": match_samples, "event F1": match_events}
MOVING = ("saccade", "pursuit")  # classes with an amplitude
TRANSITIONS = "transitions (JS)"
N_BOOTSTRAP = 200
N_SAMPLES, N_TREES = 60_000, 50  # of a forest
Ints = NDArray[np.int64]
Labels = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Events:
    """Values of each quantity with the window of each, and transitions.

    values, window: name -> (value,). transitions: (window, class, class), how often an event of the
    first class is followed by one of the second. Events that the border of a window cuts have no
    duration and no amplitude; they count in rates and transitions.
    """

    values: dict[str, NDArray[np.float64]]
    window: dict[str, Ints]
    transitions: Floats

    @classmethod
    def of(cls, windows: gd.Windows) -> Events:
        """Those of windows with labels."""
        gaze_deg, labels = windows.to_numpy("deg").astype(np.float64), windows.cut_labels()
        ms, seconds, names = 1000 / windows.rate_hz, windows.length / windows.rate_hz, quantities()
        found: dict[str, list[tuple[int, float]]] = {name: [] for name in names}
        transitions = np.zeros((len(windows), len(gd.EVENT_CLASSES), len(gd.EVENT_CLASSES)))
        for k, (gaze, own) in enumerate(zip(gaze_deg, labels, strict=True)):
            events = label_segments(own)
            for number, name in enumerate(gd.EVENT_CLASSES, start=1):
                rate = np.count_nonzero(events[:, 2] == number) / seconds
                found[f"{name} rate (1/s)"].append((k, rate))
            follows = events[1:, 0] == events[:-1, 1]
            pair = events[:-1, 2][follows] - 1, events[1:, 2][follows] - 1
            np.add.at(transitions[k], pair, 1.0)
            is_whole = (events[:, 0] > 0) & (events[:, 1] < windows.length)
            for first, stop, number in events[is_whole].tolist():
                name = gd.EVENT_CLASSES[number - 1]
                found[f"{name} duration (ms)"].append((k, (stop - first) * ms))
                if name in MOVING:
                    way = gaze[:, stop - 1] - gaze[:, first]
                    found[f"{name} amplitude (deg)"].append((k, float(np.hypot(*way))))
        values = {name: np.array([value for _, value in rows]) for name, rows in found.items()}
        window = {name: np.array([k for k, _ in rows], dtype=int) for name, rows in found.items()}
        return cls(values, window, transitions)

    def drawn(self, name: str, windows: Ints) -> NDArray[np.float64]:
        """The values of a quantity of drawn windows, or the shares of transitions."""
        if name == TRANSITIONS:
            total = self.transitions[windows].sum(axis=0).ravel()
            return np.asarray(total / max(total.sum(), 1.0))
        times = np.bincount(windows, minlength=len(self.transitions))
        return np.repeat(self.values[name], times[self.window[name]])


def quantities() -> list[str]:
    """Names of all quantities but transitions."""
    durations = [f"{name} duration (ms)" for name in gd.EVENT_CLASSES]
    amplitudes = [f"{name} amplitude (deg)" for name in MOVING]
    return [*durations, *amplitudes, *(f"{name} rate (1/s)" for name in gd.EVENT_CLASSES)]


def score_tables(result: Result, held_out: gd.Windows, found: Labels) -> None:
    """The tables of the network's own labels."""
    true, who = held_out.cut_labels(), held_out.participant.astype(np.int64)
    about = {"windows": len(true), "participants": len(np.unique(who))}
    for name, match in SCORES.items():
        result.add("scores", {"score": name, **about, **f1_cells(true, found, who, match)})
        each = match(true, found).by_group(who).f1(np.eye(len(np.unique(who))))
        lowest = np.nan_to_num(each, nan=np.inf).min(axis=0)
        cells = dict(zip(gd.EVENT_CLASSES, lowest, strict=True))
        result.add("scores", {"score": f"{name}, lowest", **about, **cells})
    for name, row in zip(gd.EVENT_CLASSES, confusion(true, found), strict=True):
        result.add("confusion", {"true": name, **dict(zip(gd.EVENT_CLASSES, row, strict=True))})


def f1_cells(true: Labels, found: Labels, who: Ints, match: Callable[..., Any]) -> dict[str, Any]:
    """F1 of each class with its interval over groups."""
    by_group = match(true, found).by_group(who)
    n = len(np.unique(who))

    def measure(rows: Ints) -> Floats:
        return np.asarray(by_group.f1(np.bincount(rows, minlength=n)[None].astype(float))[0])

    cells = over_groups(np.arange(n), measure, N_BOOTSTRAP)
    return dict(zip(gd.EVENT_CLASSES, cells, strict=True))


def plausibility(
    result: Result, held_out: gd.Windows, train: gd.Windows, sets: dict[str, gd.Windows]
) -> None:
    """Ratios of distances of event statistics to the floor."""
    every = {"held-out": held_out, "training": train, **sets}
    found = {name: Events.of(one) for name, one in every.items()}
    rng = np.random.default_rng(0)
    draws = [{name: _drawn(one, rng) for name, one in every.items()} for _ in range(N_BOOTSTRAP)]
    for one in draws:
        one[RELABELLED] = one["held-out"]  # the same windows
    whole = {name: np.arange(len(one)) for name, one in every.items()}

    def distance(name: str, which: str, drawn: dict[str, Ints]) -> float:
        a, b = (found[one].drawn(name, drawn[one]) for one in (which, "held-out"))
        if name == TRANSITIONS:
            return float(js_from_counts(a, b)) if a.any() and b.any() else np.nan
        return ks_and_wasserstein1(a, b)[1] if len(a) and len(b) else np.nan

    def ratio(name: str, which: str, drawn: dict[str, Ints]) -> float:
        floor = distance(name, "training", drawn)
        return distance(name, which, drawn) / floor if floor > 0 else np.nan

    for name in (*quantities(), TRANSITIONS):
        row: dict[str, Any] = {"quantity": name}
        for which, events in found.items():
            values = events.values.get(name, np.empty(0))
            row[f"{which}, median"] = float(np.median(values)) if len(values) else None
        row["floor"] = distance(name, "training", whole)
        for which in sets:
            drawn = np.array([ratio(name, which, one) for one in draws])
            row[f"{which}, ratio"] = with_interval(ratio(name, which, whole), drawn)
        result.add("plausibility", row)


def _drawn(windows: gd.Windows, rng: np.random.Generator) -> Ints:
    """Windows of participants drawn with repetition; of synthetic sets windows themselves."""
    who = windows.participant
    if len(np.unique(who)) == 1:
        return rng.integers(0, len(windows), len(windows))
    of = [np.flatnonzero(who == one) for one in np.unique(who)]
    return np.concatenate([of[k] for k in rng.integers(0, len(of), len(of))])


def agreement(result: Result, detector: Detector, sets: dict[str, gd.Windows]) -> None:
    """A detector of hand labels against hand labels and against generated ones."""
    for name, one in sets.items():
        who = one.participant.astype(np.int64)
        group = who if len(np.unique(who)) > 1 else np.arange(len(one))
        labels = detector.labels(one)
        for score, match in SCORES.items():
            cells = f1_cells(one.cut_labels(), labels, group, match)
            result.add("agreement", {"labels": name, "score": score, **cells})


def training_sets(
    train: gd.Windows, synthetic: gd.Windows, n: int, few: Sequence[int], draw: int
) -> Iterator[tuple[str, list[gd.Windows]]]:
    """Names and windows of the training sets of a draw."""
    rng = np.random.default_rng(draw)

    def shuffled(windows: gd.Windows) -> gd.Windows:
        return windows.select(np.sort(rng.permutation(len(windows))[:n]))

    real, made = shuffled(train), shuffled(synthetic)
    yield "real, all participants", [real]
    yield "synthetic", [made]
    yield "real and synthetic", [real, made]
    for k in few:
        chosen = rng.permutation(np.unique(train.participant))[:k]
        own = shuffled(train.select(np.isin(train.participant, chosen)))
        yield f"real, {k} participants", [own]
        yield f"real, {k} participants, and synthetic", [own, made]


def worth(
    result: Result, sets: Sequence[gd.Windows], n: int, few: Sequence[int], draws: int,
    fits: dict[str, Callable[..., Detector]],
) -> None:  # fmt: skip
    """Detectors by training set, mean and range over draws. sets: train, synthetic, held-out."""
    train, synthetic, held_out = sets
    true = held_out.cut_labels()
    found: dict[tuple[str, str], list[Floats]] = {}
    for draw in range(draws):
        for name, windows in training_sets(train, synthetic, n, few, draw):
            for detector, fit in fits.items():
                labels = fit(windows, draw).labels(held_out)
                scores = [match(true, labels).f1() for match in SCORES.values()]
                found.setdefault((detector, name), []).append(np.array(scores))
            result.say(f"draw {draw + 1}: {name}")
    for (detector, name), of_draws in found.items():
        every = np.array(of_draws)  # (draw, score, class)
        row: dict[str, Any] = {"detector": detector, "trained on": name}
        for number, score in enumerate(SCORES):
            for place, event in enumerate(gd.EVENT_CLASSES):
                row[f"{score}, {event}"] = _range(every[:, number, place])
            row[f"{score}, mean"] = _range(np.nanmean(every[:, number], axis=1))
        result.add("worth", row)


def _range(values: Floats) -> list[float]:
    return [float(of(values)) for of in (np.mean, np.min, np.max)]


def main() -> None:
    """Write the tables."""
    parser = options(__doc__, "labels")
    parser.add_argument("windows", type=Path, nargs="?")
    parser.add_argument("--task", default="movies")
    parser.add_argument("-n", type=int, default=300, help="windows of each set")
    parser.add_argument("--draws", type=int, default=3, help="of training sets of detectors")
    few = "participants of training sets with few of them; none leaves these rows out"
    parser.add_argument("--few", type=int, nargs="*", default=[1, 3, 5], help=few)
    given = parser.parse_args()
    model = gd.load(given.model, device=given.device)
    n, steps = given.n, 400
    if given.tiny:
        n, steps, given.draws, given.few = 4, 4, 1, [1]
        windows = tiny_windows(model, given.task, 12, labels=True)
    else:
        windows = gd.Windows.load(given.windows).of_task(given.task).dequantized(0)
    # Every sample must have a label.
    windows = windows.select(np.flatnonzero((windows.cut_labels() > 0).all(axis=1)))
    result = Result.of(given, model, n=n)
    held_out, train = windows.held_out.subsample(n), windows.train
    labels = Labeller(model.run, model.generator().batch_size).labels(held_out.cut())
    synthetic = model.sample(2 * n, task=given.task, seed=given.seed, labels=True)
    score_tables(result, held_out, labels)
    first = synthetic.select(np.arange(n))
    relabelled = _with_labels(held_out, labels)
    sets = {"generated": first, RELABELLED: relabelled}
    plausibility(result, held_out, train.subsample(n), sets)

    def network(of: Sequence[gd.Windows], seed: int) -> Detector:
        return NetworkDetector.fit(of, seed, steps, device=str(model.device))

    def forest(of: Sequence[gd.Windows], seed: int) -> Detector:
        return ForestDetector.fit(of, seed, N_SAMPLES, N_TREES)

    by_hand = network([train.subsample(2 * n)], 0)
    agreement(result, by_hand, {"held-out hand labels": held_out, **sets})
    fits = {"network": network, "forest": forest}
    worth(result, (train, synthetic, held_out), n, given.few, given.draws, fits)
    result.save()


def _with_labels(windows: gd.Windows, labels: Labels) -> gd.Windows:
    """The windows with other labels, as windows of an array of their own."""
    identity = windows.identity
    screens = [windows.screens[k] for k in windows.screen_index]
    names = [[str(one) for one in identity[key]] for key in ("participant", "task")]
    other = gd.Windows.from_array(windows.cut(), windows.rate_hz, screens, *names, labels=labels)
    return replace(other, grid_px=windows.grid_px)


if __name__ == "__main__":
    main()
