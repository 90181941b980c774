"""Augmentation: do synthetic windows in the participants' style help with few participants?

    python experiments/augmentation.py gazecom.safetensors bioeye.safetensors    # an hour, one H200

Two questions, each answered by a classifier that is trained on real windows of few participants,
on these and synthetic windows in their style, and on the synthetic windows alone. Tables:

task    Which task is a window of? Trained on training participants of all files, so many of each
        task, tested on the held-out participants: balanced accuracy over tasks that have 10
        held-out windows or more.
who     Whose is a window of reading? Trained on session 1, tested on session 2 of the same
        participants: balanced accuracy. Held-out participants, whom the model has not seen; then
        all participants with two sessions, most of whom it was trained on.

Participants are drawn --draws times; of a participant and task there are all real windows and -n
synthetic ones, described by the paper's nine features and the model's summary statistics. Cells:
mean and range of 95 % of the draws; difference to real windows alone, with a 95 % bootstrap
interval of its mean over draws. Whether synthetic windows help a detector of events:
experiments/labels.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier

import gazediffusion as gd
from gazediffusion.evaluation.features import kinematic_features
from report import Floats, Result, options, tiny_windows, with_interval

Ints = NDArray[np.int64]
Key = tuple[int, str, str]  # file, participant, task
SETS = ("real", "real + synthetic", "synthetic")
FEWEST_TESTED = 10  # windows of a task
FEWEST_WHO = 5  # windows of a participant in each session
N_TREES = 200


@dataclass(frozen=True, eq=False)
class Examples:
    """Features (example, feature) and classes (example,)."""

    features: Floats
    classes: Ints

    @classmethod
    def joined(cls, parts: Sequence[Examples]) -> Examples:
        """The examples of all parts."""
        features, classes = ([getattr(one, name) for one in parts] for name in vars(parts[0]))
        return cls(np.concatenate(features), np.concatenate(classes))


Pair = tuple[Examples, Examples]  # real and synthetic examples of one class


def trained_and_tested(train: Examples, test: Examples, seed: int) -> float:
    """The score on the test examples; a single class is what the classifier then always says."""
    known = np.unique(train.classes)
    if len(known) == 1:
        return accuracy(test.classes, np.full_like(test.classes, known[0]))
    trees = ExtraTreesClassifier(
        N_TREES, min_samples_leaf=2, class_weight="balanced", n_jobs=-1, random_state=seed
    )
    trees.fit(train.features, train.classes)
    return accuracy(test.classes, trees.predict(test.features))


def accuracy(true: Ints, predicted: Ints) -> float:
    """Share of right answers, mean over the classes."""
    return float(np.mean([(predicted[true == one] == one).mean() for one in np.unique(true)]))


def drawn(names: Sequence[Any], n: int, seed: int) -> list[Any]:
    """n of the names at random; more are added to fewer, so that sizes are nested."""
    order = np.random.default_rng(seed).permutation(len(names))[:n]
    return [names[k] for k in order]


@dataclass
class Question:
    """One table: a row for each number of participants.

    pairs: examples of each class and participant. chosen: of each draw, groups of their keys, of
    which the first n are taken. test: the examples of a draw's first n.
    """

    name: str
    pairs: dict[Any, Pair]
    chosen: Sequence[Sequence[Sequence[Any]]]
    test: Callable[[Sequence[Any]], Examples]
    about: dict[str, Any] = field(default_factory=dict)

    def ask(self, result: Result, sizes: Sequence[int]) -> None:
        """Add the rows of these numbers of participants."""
        for n in sizes:
            found = np.array([self._scores(groups, n, k) for k, groups in enumerate(self.chosen)])
            gain = found[:, 1] - found[:, 0]
            rng = np.random.default_rng(0)
            again = gain[rng.integers(0, len(gain), (1000, len(gain)))].mean(axis=1)
            cells = {name: with_interval(float(one.mean()), one)
                     for name, one in zip(SETS, found.T, strict=True)}  # fmt: skip
            difference = with_interval(float(gain.mean()), again)
            row = {**self.about, "participants": n, **cells, "difference": difference}
            result.add(self.name, row)

    def _scores(self, groups: Sequence[Sequence[Any]], n: int, seed: int) -> list[float]:
        keys = [key for group in groups for key in group[:n]]
        real, made = (Examples.joined([self.pairs[key][k] for key in keys]) for k in (0, 1))
        test = self.test(keys)
        sets = (real, Examples.joined([real, made]), made)
        return [trained_and_tested(one, test, seed) for one in sets]


class Measurement:
    """Windows of all files, synthetic ones in the style of each participant, and their features."""

    def __init__(self, model: gd.Model, files: Sequence[gd.Windows], n: int) -> None:
        self.model, self.files, self.n = model, files, n
        self.generated: dict[tuple[Key, str], gd.Windows] = {}

    def real(self, key: Key, session: str = "") -> gd.Windows:
        """Windows of a participant in a task, and in a session where one is named."""
        file, participant, task = key
        found = self.files[file].identity
        is_own = (found["participant"] == participant) & (found["task"] == task)
        if session:
            is_own &= np.array([trial.split("-")[0] == session for trial in found["trial"]])
        return self.files[file].select(is_own)

    def synthetic(self, key: Key, session: str = "") -> gd.Windows:
        """Windows in the style of those of `real`; generated once."""
        if (key, session) not in self.generated:
            seed, like = len(self.generated), self.real(key, session)
            made = self.model.sample(self.n, like=like, task=key[2], seed=seed)
            self.generated[key, session] = made
        return self.generated[key, session]

    def features(self, windows: gd.Windows) -> Floats:
        """The paper's nine features and the summary statistics, (window, feature)."""
        gaze = windows.dequantized(seed=0).cut()
        nine = np.stack(list(kinematic_features(gaze, windows.rate_hz).values()), axis=1)
        measured = self.model.config.conditioning.measure(torch.from_numpy(gaze), windows.rate_hz)
        assert measured is not None
        both = np.concatenate([nine, measured.double().numpy()], axis=1)
        return np.asarray(np.nan_to_num(both))

    def examples(self, windows: gd.Windows, number: int) -> Examples:
        """Windows of a class."""
        return Examples(self.features(windows), np.full(len(windows), number))

    def pair(self, key: Key, number: int, session: str = "") -> Pair:
        """Real and synthetic windows of a class."""
        sides = self.real(key, session), self.synthetic(key, session)
        real, made = (self.examples(one, number) for one in sides)
        return real, made

    def keys(self, windows: gd.Windows, file: int) -> list[Key]:
        """Participants and tasks of some windows of a file that the model has the task of."""
        found = windows.identity
        pairs = sorted(set(zip(found["participant"], found["task"], strict=True)))
        return [(file, str(name), str(task)) for name, task in pairs if task in self.model.tasks]


def which_task(of: Measurement, most: int, draws: int) -> Question:
    """Which task is a window of?"""
    train: dict[str, list[Key]] = {}
    held_out: dict[str, gd.Windows] = {}
    for file, windows in enumerate(of.files):
        for key in of.keys(windows.train, file):
            train.setdefault(key[2], []).append(key)
        for task in windows.tasks:
            some = windows.held_out.of_task(task)
            if task in of.model.tasks and len(some) >= FEWEST_TESTED:
                held_out[task] = some
    tasks = [task for task in held_out if task in train]
    parts = [of.examples(held_out[task], k) for k, task in enumerate(tasks)]
    test = Examples.joined(parts)
    chosen = [[drawn(train[task], most, draw) for task in tasks] for draw in range(draws)]
    needed = sorted({key for groups in chosen for group in groups for key in group})
    pairs = {key: of.pair(key, tasks.index(key[2])) for key in needed}
    about = {"tasks": ", ".join(tasks), "tested": len(test.classes)}
    return Question("task", pairs, chosen, lambda keys: test, about)


def who(of: Measurement, most: int, draws: int, task: str, is_held_out: bool) -> Question:
    """Whose is a window, across sessions?"""
    file = next(k for k, one in enumerate(of.files) if task in one.tasks)
    windows = of.files[file].held_out if is_held_out else of.files[file]
    found = windows.of_task(task).identity
    session = np.array([trial.split("-")[0] for trial in found["trial"]])
    names = [
        str(name)
        for name in sorted(set(found["participant"]))
        if min(((found["participant"] == name) & (session == one)).sum() for one in "12")
        >= FEWEST_WHO
    ]
    chosen = [[drawn(names, most, draw)] for draw in range(draws)]
    needed = sorted({name for groups in chosen for name in groups[0]})
    keys = {name: (file, name, task) for name in needed}
    pairs = {name: of.pair(keys[name], names.index(name), "1") for name in needed}
    tests = {name: of.examples(of.real(keys[name], "2"), names.index(name)) for name in needed}

    def test(chosen: Sequence[str]) -> Examples:
        return Examples.joined([tests[name] for name in chosen])

    about = {"of": "held-out participants" if is_held_out else "all participants"}
    return Question("who", pairs, chosen, test, {**about, "there are": len(names)})


def main() -> None:
    """Write a table for each question."""
    parser = options(__doc__, "augmentation")
    parser.add_argument("windows", type=Path, nargs="*")
    parser.add_argument("-n", type=int, default=40, help="windows of a participant and task")
    parser.add_argument("--draws", type=int, default=10, help="of participants")
    parser.add_argument("--participants", type=int, nargs="+", default=[1, 3, 5, 10, 20])
    parser.add_argument("--who-task", default="reading", help="with sessions 1 and 2 in its trials")
    given = parser.parse_args()
    model = gd.load(given.model, device=given.device)
    files = [gd.Windows.load(path) for path in given.windows]
    if given.tiny:
        global FEWEST_TESTED, FEWEST_WHO, N_TREES
        FEWEST_TESTED, FEWEST_WHO, N_TREES = 2, 1, 5
        given.n, given.draws, given.participants = 1, 1, [2]
        given.who_task = "movies"
        files = [tiny_windows(model, "movies")]
    result = Result.of(given, model, n=given.n)
    of, sizes = Measurement(model, files, given.n), sorted(given.participants)
    most = max(sizes)
    which_task(of, most, given.draws).ask(result, sizes)
    for is_held_out in (True, False):
        question = who(of, most, given.draws, given.who_task, is_held_out)
        n_names = len(question.pairs)
        question.ask(result, sorted({min(n, n_names) for n in sizes if n > 1}))
    result.save()


if __name__ == "__main__":
    main()
