"""Augmentation: do synthetic windows in the participants' style help with few participants?

    python runs/augmentation.py gazecom6.safetensors bioeye6.safetensors [--model default] [-n 40]
        [--draws 10] [--participants 1 3 5 10 20] [--labels]

Three questions, each answered by a classifier that is trained on real windows of few participants,
on these and synthetic windows in their style, and on the synthetic windows alone:

events  Which event is a sample part of? Trained on the hand labels of training participants of the
        first file, tested on its held-out participants: F1, mean over classes. With --labels, which
        needs a model with labels; synthetic windows have the model's own.
task    Which task is a window of? Trained on training participants of all files, so many of each
        task, tested on the held-out participants: balanced accuracy over tasks that have 10
        held-out windows or more.
who     Whose is a window of reading? Trained on session 1, tested on session 2 of the same
        participants: balanced accuracy. Held-out participants, whom the model has not seen; then
        all participants with two sessions, most of whom it was trained on.

Participants are drawn --draws times; of a participant and task there are all real windows (for
events at most -n, evenly spaced) and -n synthetic ones. Windows of tasks and participants are
described by the paper's nine features and the model's summary statistics. Tables: mean and range of
95 % of the draws; difference to real windows alone, with a 95 % bootstrap interval of its mean over
draws.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.metrics import f1_score

import gazediffusion as gd
from gazediffusion.evaluation.features import kinematic_features

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Key = tuple[int, str, str]  # file, participant, task
SETS = ("real", "real + synthetic", "synthetic")
FEWEST_TESTED = 10  # windows of a task
FEWEST_WHO = 5  # windows of a participant in each session
N_TREES = 200
N_BOOTSTRAP = 1000
SAMPLES_EACH = 50  # of a window, for events
SCALES = (1, 2, 4, 8, 16, 32)  # half widths in samples of the features of events


@dataclass(frozen=True, eq=False)
class Examples:
    """Features (example, feature) and classes (example,)."""

    features: Floats
    classes: Ints

    @classmethod
    def joined(cls, parts: Sequence[Examples]) -> Examples:
        """The examples of all parts."""
        return cls(
            np.concatenate([one.features for one in parts]),
            np.concatenate([one.classes for one in parts]),
        )


@dataclass(frozen=True, eq=False)
class Pair:
    """Real and synthetic examples of one participant (and task)."""

    real: Examples
    synthetic: Examples


Score = Callable[[Ints, Ints], float]


def trained_and_tested(train: Examples, test: Examples, score: Score, seed: int) -> float:
    """The score on the test examples; a single class is what the classifier then always says."""
    known = np.unique(train.classes)
    if len(known) == 1:
        return score(test.classes, np.full_like(test.classes, known[0]))
    trees = ExtraTreesClassifier(
        N_TREES, min_samples_leaf=2, class_weight="balanced", n_jobs=-1, random_state=seed
    )
    trees.fit(train.features, train.classes)
    return score(test.classes, trees.predict(test.features))


def scores_of(pairs: Sequence[Pair], test: Examples, score: Score, seed: int) -> list[float]:
    """The score of each of `SETS` with these participants."""
    real = Examples.joined([one.real for one in pairs])
    synthetic = Examples.joined([one.synthetic for one in pairs])
    sets = (real, Examples.joined([real, synthetic]), synthetic)
    return [trained_and_tested(one, test, score, seed) for one in sets]


def f1_of_classes(true: Ints, predicted: Ints) -> float:
    """F1, mean over the classes that are there."""
    labels = np.unique(true)
    return float(f1_score(true, predicted, labels=labels, average="macro", zero_division=0))


def accuracy(true: Ints, predicted: Ints) -> float:
    """Share of right answers, mean over the classes."""
    return float(np.mean([(predicted[true == one] == one).mean() for one in np.unique(true)]))


def interval_of_mean(values: Floats) -> tuple[float, float]:
    """95 % bootstrap interval of the mean of (draw,)."""
    rng = np.random.default_rng(0)
    drawn = values[rng.integers(0, len(values), (N_BOOTSTRAP, len(values)))].mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)


def row_of(n: int, found: Floats) -> str:
    """A row of the table, of scores (draw, set)."""
    low, high = np.percentile(found, [2.5, 97.5], axis=0)
    cells = [
        f"{mean:.2f} [{a:.2f}, {b:.2f}]"
        for mean, a, b in zip(found.mean(axis=0), low, high, strict=True)
    ]
    gain = found[:, 1] - found[:, 0]
    a, b = interval_of_mean(gain)
    verdict = "yes" if a > 0 else "worse" if b < 0 else "no"
    return f"| {n} | {' | '.join(cells)} | {gain.mean():+.3f} [{a:+.3f}, {b:+.3f}] | {verdict} |"


def table_of(title: str, rows: Sequence[str]) -> str:
    """A Markdown table of a question."""
    head = f"| participants | {' | '.join(SETS)} | difference | helps |"
    return "\n".join([f"\n{title}\n", head, "|---:|---:|---:|---:|---:|---|", *rows])


class Shown:
    """Progress on standard error."""

    def __init__(self) -> None:
        self.begun = time.monotonic()

    def __call__(self, what: str, done: int, total: int) -> None:
        """`done` of `total` are done."""
        seconds = time.monotonic() - self.begun
        end = "\n" if done == total else ""
        print(f"\r{seconds:5.0f} s  {what} {done}/{total}", end=end, file=sys.stderr, flush=True)


class Measurement:
    """Windows of all files, synthetic ones in the style of each participant, and their features."""

    def __init__(self, model: gd.Model, files: Sequence[gd.Windows], n: int, labels: bool) -> None:
        self.model, self.files, self.n, self.labels = model, files, n, labels
        self.generated: dict[tuple[Key, str], gd.Windows] = {}

    def real(self, key: Key, session: str = "") -> gd.Windows:
        """Windows of a participant in a task, and in a session where one is named."""
        file, participant, task = key
        found = self.files[file].identity
        is_own = (found["participant"] == participant) & (found["task"] == task)
        if session:
            is_own &= np.array([trial.split("-")[0] == session for trial in found["trial"]])
        return self.files[file].select(is_own).alone()

    def synthetic(self, key: Key, session: str = "") -> gd.Windows:
        """Windows in the style of those of `real`; generated once."""
        if (key, session) not in self.generated:
            more: dict[str, Any] = {"labels": True} if self.labels and key[0] == 0 else {}
            seed = len(self.generated)
            self.generated[key, session] = self.model.sample(
                self.n, like=self.real(key, session), task=key[2], seed=seed, **more
            )
        return self.generated[key, session]

    def features(self, windows: gd.Windows) -> Floats:
        """The paper's nine features and the summary statistics, (window, feature)."""
        gaze = windows.dequantized(seed=0).cut()
        nine = np.stack(list(kinematic_features(gaze, windows.rate_hz).values()), axis=1)
        measured = self.model.config.conditioning.measure(torch.from_numpy(gaze), windows.rate_hz)
        assert measured is not None
        both = np.concatenate([nine, measured.double().numpy()], axis=1)
        return np.asarray(np.nan_to_num(both))

    def pair(self, key: Key, number: int, session: str = "") -> Pair:
        """Real and synthetic windows of a class."""

        def examples(windows: gd.Windows) -> Examples:
            return Examples(self.features(windows), np.full(len(windows), number))

        return Pair(examples(self.real(key, session)), examples(self.synthetic(key, session)))

    def keys(self, windows: gd.Windows, file: int) -> list[Key]:
        """Participants and tasks of some windows of a file that the model has the task of."""
        found = windows.identity
        pairs = sorted(set(zip(found["participant"], found["task"], strict=True)))
        return [(file, name, task) for name, task in pairs if task in self.model.tasks]


def drawn(names: Sequence[Any], n: int, seed: int) -> list[Any]:
    """n of the names at random; more are added to fewer, so that sizes are nested."""
    order = np.random.default_rng(seed).permutation(len(names))[:n]
    return [names[k] for k in order]


def ask_task(measured: Measurement, sizes: Sequence[int], draws: int, show: Shown) -> str:
    """The table of the question which task a window is of."""
    train: dict[str, list[Key]] = {}
    test: list[tuple[str, Floats]] = []
    for file, windows in enumerate(measured.files):
        for key in measured.keys(windows.train, file):
            train.setdefault(key[2], []).append(key)
        for task in windows.tasks:
            held_out = windows.held_out.of_task(task)
            if task in measured.model.tasks and len(held_out) >= FEWEST_TESTED:
                test.append((task, measured.features(held_out.alone())))
    tasks = [task for task, _ in test if task in train]
    tested = Examples.joined(
        [Examples(x, np.full(len(x), tasks.index(task))) for task, x in test if task in tasks]
    )
    chosen = {
        (draw, task): drawn(train[task], max(sizes), draw)
        for draw in range(draws)
        for task in tasks
    }
    needed = sorted({key for keys in chosen.values() for key in keys})
    pairs = {}
    for number, key in enumerate(needed, start=1):
        pairs[key] = measured.pair(key, tasks.index(key[2]))
        show("task: styles generated", number, len(needed))
    rows = []
    for done, n in enumerate(sizes, start=1):
        found = [
            scores_of(
                [pairs[key] for task in tasks for key in chosen[draw, task][:n]],
                tested,
                accuracy,
                draw,
            )
            for draw in range(draws)
        ]
        rows.append(row_of(n, np.array(found)))
        show("task: sizes", done, len(sizes))
    numbers = ", ".join(f"{task} {min(len(train[task]), max(sizes))}" for task in tasks)
    title = (
        f"**Which task** ({', '.join(tasks)}): balanced accuracy on {len(tested.classes)} windows "
        f"of held-out participants, chance {1 / len(tasks):.2f}. Participants of each task, as far "
        f"as there are ({numbers})."
    )
    return table_of(title, rows)


def who_candidates(windows: gd.Windows, task: str) -> list[str]:
    """Participants with enough windows of both sessions of a task."""
    found = windows.of_task(task).identity
    session = np.array([trial.split("-")[0] for trial in found["trial"]])
    return [
        name
        for name in sorted(set(found["participant"]))
        if min(((found["participant"] == name) & (session == one)).sum() for one in "12")
        >= FEWEST_WHO
    ]


def ask_who(
    measured: Measurement,
    sizes: Sequence[int],
    draws: int,
    show: Shown,
    task: str,
    held_out: bool,
) -> str:
    """The table of the question whose a window is, across sessions."""
    file = next(k for k, one in enumerate(measured.files) if task in one.tasks)
    windows = measured.files[file]
    names = who_candidates(windows.held_out if held_out else windows, task)
    sizes = sorted({min(n, len(names)) for n in sizes if n > 1})
    chosen = [drawn(names, max(sizes), draw) for draw in range(draws)]
    needed = sorted(set().union(*chosen))
    pairs, tests = {}, {}
    for number, name in enumerate(needed, start=1):
        key, label = (file, name, task), names.index(name)
        pairs[name] = measured.pair(key, label, "1")
        second = measured.features(measured.real(key, "2"))
        tests[name] = Examples(second, np.full(len(second), label))
        show("who: styles generated", number, len(needed))
    rows = []
    for done, n in enumerate(sizes, start=1):
        found = [
            scores_of(
                [pairs[name] for name in chosen[draw][:n]],
                Examples.joined([tests[name] for name in chosen[draw][:n]]),
                accuracy,
                draw,
            )
            for draw in range(draws)
        ]
        rows.append(row_of(n, np.array(found)))
        show("who: sizes", done, len(sizes))
    who = "held-out participants" if held_out else "all participants, most of them of training"
    title = (
        f"**Who** ({task}, session 1 to session 2; {who}, {len(names)} with {FEWEST_WHO} windows "
        "or more of each session): balanced accuracy, chance 1 / participants."
    )
    return table_of(title, rows)


def event_features(degrees: Floats, rate_hz: float) -> Floats:
    """Features of every sample of gaze (window, 2, time) in degrees: (window, time, feature).

    Of each half width: logarithm of the speed between its ends, in deg/s, and how straight the
    path between them is. At the ends of a window the nearest samples stand for those beyond.
    """
    n = degrees.shape[2]
    step = np.hypot(*np.moveaxis(np.diff(degrees, axis=2, prepend=degrees[:, :, :1]), 1, 0))
    path = np.cumsum(step, axis=1)
    columns = []
    for half in SCALES:
        first = np.maximum(np.arange(n) - half, 0)
        last = np.minimum(np.arange(n) + half, n - 1)
        seconds = (last - first) / rate_hz
        way = np.hypot(*np.moveaxis(degrees[:, :, last] - degrees[:, :, first], 1, 0))
        walked = path[:, last] - path[:, first]
        columns += [np.log(way / seconds + 0.1), way / (walked + 1e-6)]
    return np.stack(columns, axis=2)


def event_examples(windows: gd.Windows, n_windows: int, seed: int) -> Examples:
    """Labelled samples of at most so many windows, SAMPLES_EACH of each."""
    labels = windows.cut_labels()
    is_labelled = (labels > 0).mean(axis=1) > 0.5
    chosen = windows.select(is_labelled).subsample(n_windows)
    labels = chosen.cut_labels()
    if not len(chosen):
        return Examples(np.empty((0, 2 * len(SCALES))), np.empty(0, dtype=np.int64))
    features = event_features(chosen.to_numpy("deg").astype(np.float64), chosen.rate_hz)
    rng = np.random.default_rng(seed)
    at = rng.integers(0, chosen.length, (len(chosen), SAMPLES_EACH))
    rows = np.arange(len(chosen))[:, None]
    classes = labels[rows, at].ravel().astype(np.int64)
    return Examples(features[rows, at].reshape(len(classes), -1)[classes > 0], classes[classes > 0])


def ask_events(measured: Measurement, sizes: Sequence[int], draws: int, show: Shown) -> str:
    """The table of the question which event a sample is part of."""
    windows = measured.files[0]
    by_name: dict[str, list[Key]] = {}
    for key in measured.keys(windows.train, 0):
        if len(event_examples(measured.real(key), 1, 0).classes):
            by_name.setdefault(key[1], []).append(key)
    names = sorted(by_name)
    chosen = [drawn(names, max(sizes), draw) for draw in range(draws)]
    needed = sorted(set().union(*chosen))
    pairs = {}
    for number, name in enumerate(needed, start=1):
        parts = [
            Pair(
                event_examples(measured.real(key), measured.n, number),
                event_examples(measured.synthetic(key), measured.n, number),
            )
            for key in by_name[name]
        ]
        pairs[name] = Pair(
            Examples.joined([one.real for one in parts]),
            Examples.joined([one.synthetic for one in parts]),
        )
        show("events: styles generated", number, len(needed))
    test = event_examples(windows.held_out, 400, 0)
    rows = []
    for done, n in enumerate(sizes, start=1):
        found = [
            scores_of([pairs[name] for name in chosen[draw][:n]], test, f1_of_classes, draw)
            for draw in range(draws)
        ]
        rows.append(row_of(n, np.array(found)))
        show("events: sizes", done, len(sizes))
    title = (
        f"**Which event** (hand labels of {len(names)} training participants): F1, mean over "
        f"{len(np.unique(test.classes))} classes, on {len(test.classes)} samples of held-out "
        "participants."
    )
    return table_of(title, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each question."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("windows", nargs="+")
    parser.add_argument("--model", default="default")
    parser.add_argument("-n", type=int, default=40, help="windows of a participant and task")
    parser.add_argument("--draws", type=int, default=10, help="of participants")
    parser.add_argument("--participants", type=int, nargs="+", default=[1, 3, 5, 10, 20])
    parser.add_argument("--who-task", default="reading", help="with sessions 1 and 2 in its trials")
    parser.add_argument("--labels", action="store_true", help="also ask which event a sample is of")
    given = parser.parse_args(arguments)
    model = gd.load(given.model)
    files = [gd.Windows.load(path) for path in given.windows]
    measured = Measurement(model, files, given.n, given.labels)
    sizes, draws, show = sorted(given.participants), given.draws, Shown()
    if given.labels:
        print(ask_events(measured, sizes, draws, show), flush=True)
    print(ask_task(measured, sizes, draws, show), flush=True)
    for held_out in (True, False):
        print(ask_who(measured, sizes, draws, show, given.who_task, held_out), flush=True)
    print(
        f"\n{model.name}, {given.n} windows, {draws} draws, {time.monotonic() - show.begun:.0f} s"
    )


if __name__ == "__main__":
    main()
