"""Labels of the model against hand labels, and what generated labels are worth for training.

    python experiments/labels.py gazecom.safetensors [-n 300] [--draws 12]   # 30 minutes, one H200

The windows file has hand labels. The model was trained on the training participants; all scores are
on the held-out ones, who take no part in any training. Tables:

scores        of the network's labels of held-out gaze against the hand labels; lowest: of the
              participant with the lowest F1
confusion     share of the samples of a true class by found class
worth         detectors trained on real, synthetic and both, tested on held-out hand labels; mean
              and range over draws of windows, participants and seeds

F1 of samples and of events; an event is found where one of its class overlaps it by more than half
of their union (Startsev et al. 2019). Intervals: 95 % over participants. All detectors are trained
for the same number of steps, or on as many samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gazediffusion as gd
from gazediffusion.evaluation.labels import (
    Detector,
    ForestDetector,
    NetworkDetector,
    confusion,
    match_events,
    match_samples,
)
from gazediffusion.generation.labelling import Labeller
from report import Floats, Result, options, over_groups, tiny_windows

SCORES = {"sample F1": match_samples, "event F1": match_events}
N_BOOTSTRAP = 200
N_SAMPLES, N_TREES = 60_000, 50  # of a forest
Ints = NDArray[np.int64]
Labels = NDArray[np.uint8]


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
        cells = dict(zip(gd.EVENT_CLASSES, row, strict=True))
        result.add("confusion", {"true": name, **cells})


def f1_cells(true: Labels, found: Labels, who: Ints, match: Callable[..., Any]) -> dict[str, Any]:
    """F1 of each class with its interval over groups."""
    by_group = match(true, found).by_group(who)
    n = len(np.unique(who))

    def measure(rows: Ints) -> Floats:
        return np.asarray(by_group.f1(np.bincount(rows, minlength=n)[None].astype(float))[0])

    cells = over_groups(np.arange(n), measure, N_BOOTSTRAP)
    return dict(zip(gd.EVENT_CLASSES, cells, strict=True))


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
    labels = Labeller(model.run, model.sampler().batch_size).labels(held_out.cut())
    synthetic = model.sample(2 * n, task=given.task, seed=given.seed, labels=True)
    score_tables(result, held_out, labels)

    def network(of: Sequence[gd.Windows], seed: int) -> Detector:
        return NetworkDetector.fit(of, seed, steps, device=str(model.device))

    def forest(of: Sequence[gd.Windows], seed: int) -> Detector:
        return ForestDetector.fit(of, seed, N_SAMPLES, N_TREES)

    fits = {"network": network, "forest": forest}
    worth(result, (train, synthetic, held_out), n, given.few, given.draws, fits)
    result.save()


if __name__ == "__main__":
    main()
