"""Deep two-sample test: can a network separate synthetic from real windows of other participants?

A residual network is trained on snippets of training participants and of synthetic windows and
tested on held-out participants and other synthetic windows. The result is the area under the ROC
curve (AUC) for several lengths of snippets, of gaze as it is and below 30 Hz: 0.5 is chance, 1
always recognised. Beside it: the same test between two groups of real participants (the floor) and
for a planted defect of known size, which a test that works must find.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import evenly_spaced
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.metrics import Estimate, central, draw_weights
from gazediffusion.evaluation.sets import GazeSet, participant_folds, stream
from gazediffusion.seeds import Stream, derived_seed

if TYPE_CHECKING:
    import torch

    from gazediffusion.evaluation.deep_network import Pair

Floats = NDArray[np.floating[Any]]
Bools = NDArray[np.bool_]
Sides = tuple[GazeSet, GazeSet]
Results = dict[str, Any]
Progress = Callable[[str], None]
WHAT = "the deep two-sample test"
ABOUT = (
    "AUC of a residual network that tells synthetic from real snippets, trained on training "
    "participants and tested on held-out participants and other synthetic windows. 0.5 is chance, "
    "1 always recognised; lower is better. Floor: two groups of real participants, which is 0.5 on "
    "average and scatters. Planted: half of the real windows with a defect of known size."
)
SCALE = 1.25  # of the planted defect: gaze scaled about its mean
REFERENCES = ("floor", "planted")
N_FOLDS = 5  # of participants; one stops the training, another one in each trial
MIN_PARTICIPANTS = 4  # of the training participants: two groups, each to train on and to stop at
MIN_TESTED = 2
MIN_WINDOWS = 20  # of a side in each part
# Shares of a synthetic set's blocks in the three parts.
_SHARES = {"train": 0.55, "stop": 0.15, "test": 0.3}
# So many windows stop the training, as a share of those trained on.
_STOPPING = 0.25
_N_REPLICATES = 500
_FITTED = 200  # windows that scales are fitted to


@dataclass(frozen=True)
class DeepConfig:
    """How the deep two-sample test is done; None is chosen by the device.

    seconds: lengths of snippets; a longer one than the windows is the whole window.
    low_pass_hz: the tests are also done below this frequency. n_windows: of a side at most, in
    training and in test. n_seeds: trials, each of another seed and fold of participants.
    n_steps, batch_size: of training at most; widths: of the network's blocks. device: auto, cpu
    or cuda.

    >>> import torch
    >>> DeepConfig(seconds=(2.0,)).on(torch.device("cpu")).n_steps
    300
    """

    seconds: tuple[float, ...] = (0.5, 2.0, 8.0)
    low_pass_hz: float = 30.0
    n_windows: int = 4000
    n_seeds: int | None = None
    n_steps: int | None = None
    batch_size: int | None = None
    widths: tuple[int, ...] = (32, 64, 96, 128)
    device: str = "auto"

    def __post_init__(self) -> None:
        if not self.seconds or min(self.seconds) <= 0 or not self.low_pass_hz > 0:
            raise GazeError("`seconds` and `low_pass_hz` must be above 0")
        counts = self.n_windows, self.n_seeds, self.n_steps, self.batch_size, *self.widths
        if not self.widths or min(one for one in counts if one is not None) < 1:
            raise GazeError(
                "`n_windows`, `n_seeds`, `n_steps`, `batch_size`, `widths` are 1 or more"
            )

    def on(self, device: torch.device) -> DeepConfig:
        """The same with every setting chosen: minutes on a GPU, tens of minutes on two cores."""
        is_gpu = device.type == "cuda"
        n_seeds, n_steps, batch_size = (3, 1000, 256) if is_gpu else (2, 300, 64)
        return replace(
            self,
            n_seeds=self.n_seeds or n_seeds,
            n_steps=self.n_steps or n_steps,
            batch_size=self.batch_size or batch_size,
            device=device.type,
        )

    def cells(self, n_samples: int, rate_hz: float) -> dict[str, tuple[int, float | None]]:
        """Name -> (samples of a snippet, low-pass in Hz) of each test of windows like these."""
        lengths = sorted({min(round(one * rate_hz), n_samples) for one in self.seconds})
        filters = [None, self.low_pass_hz] if self.low_pass_hz < rate_hz / 2 else [None]
        return {
            f"{length / rate_hz:g} s" + (f" below {hz:g} Hz" if hz else ""): (length, hz)
            for hz in filters
            for length in lengths
        }


@dataclass(frozen=True)
class DeepTest:
    """What the test finds of one set; AUCs have 95 % intervals over participants and seeds.

    auc: by test, as "8 s below 30 Hz". by_task: of windows of one task, by test and task.
    n_train, n_test: windows of a side.

    >>> from gazediffusion.evaluation.metrics import Estimate
    >>> test = DeepTest(auc={"2 s": Estimate(0.55, (0.50, 0.60))}, n_train=100, n_test=50)
    >>> test.auc["2 s"].value
    0.55
    """

    auc: dict[str, Estimate]
    by_task: dict[str, dict[str, Estimate]] = field(default_factory=dict)
    n_train: int = 0
    n_test: int = 0

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> DeepTest:
        """As it stands in results."""
        return cls(**Estimate.read(row))


def deep_tests(
    training: GazeSet,
    held_out: GazeSet,
    synthetic: Mapping[str, GazeSet],
    config: DeepConfig,
    seed: int = 0,
    progress: Progress = lambda name: None,
    references: Collection[str] = REFERENCES,
    on_set: Callable[[Results], None] = lambda so_far: None,
) -> Results:
    """The test of every synthetic set, the floor and the planted defect.

    training, held_out: real participants to train on and to test. references: which of REFERENCES
    are tested too. on_set: called with the results so far when a set is done.
    """
    from gazediffusion.device import choose_device

    device = choose_device(config.device)
    config = config.on(device)
    real = RealSets(training, held_out, config.n_windows, seed)
    planted = f"planted: all speeds times {SCALE:g}"
    trials: dict[str, Callable[[int], Trial]] = {
        name: partial(real.against, one) for name, one in synthetic.items()
    }
    if "floor" in references:
        trials["floor"] = real.between_participants
    if "planted" in references:
        trials[planted] = partial(real.with_defect, planted, lambda one: scaled(one, SCALE))
    cells = config.cells(training.gaze.shape[-1], training.rate_hz)
    # Refuse what cannot be done before hours of training.
    first = {name: of(0) for name, of in trials.items()}
    work = _Work(config, cells, seed, device, progress, len(trials))
    results: Results = {
        "settings": {**asdict(config), "seed": seed, "tests": list(cells)},
        "floor": None,
        "planted": {},
        "synthetic": {},
    }
    for name, of in trials.items():
        tested = [first[name] if k == 0 else of(k) for k in range(config.n_seeds or 1)]
        found = work.test(name, tested)
        if name == "floor":
            results["floor"] = found
        else:
            results["synthetic" if name in synthetic else "planted"][name] = found
        on_set(results)
    return results


class _Work:
    """The trainings of all sets, one after another, with progress."""

    def __init__(
        self,
        config: DeepConfig,
        cells: Mapping[str, tuple[int, float | None]],
        seed: int,
        device: torch.device,
        progress: Progress,
        n_sets: int,
    ) -> None:
        from gazediffusion.evaluation.deep_network import Fitting

        self.config, self.cells, self.seed, self.device = config, cells, seed, device
        self.progress = progress
        self.fitting = Fitting(config.widths, config.n_steps or 1, config.batch_size or 2)
        self.n_trainings = n_sets * len(cells) * (config.n_seeds or 1)
        self.n_done, self.n_steps = 0, 0
        self.begun = time.monotonic()

    def test(self, name: str, trials: Sequence[Trial]) -> DeepTest:
        """All trials of one set."""
        wins: dict[str, list[Wins]] = {cell: [] for cell in self.cells}
        by_task: dict[str, dict[str, list[Wins]]] = {cell: {} for cell in self.cells}
        for number, trial in enumerate(trials):
            for low_pass_hz in dict.fromkeys(hz for _, hz in self.cells.values()):
                encoded = _encoded(trial, low_pass_hz, self.device)
                for cell in (one for one, (_, hz) in self.cells.items() if hz == low_pass_hz):
                    logits = self._logits(name, cell, number, encoded)
                    wins[cell].append(Wins.of(trial.test, logits))
                    for task, rows in _tasks_of(trial.test).items():
                        of_task = Wins.of(trial.test, logits, rows)
                        by_task[cell].setdefault(task, []).append(of_task)
        sides = [max(int(trial.test[k].group.max()) for trial in trials) + 1 for k in (0, 1)]
        rng = stream(self.seed, f"{name}, deep intervals")
        first, second = (draw_weights(n, _N_REPLICATES, rng) for n in sides)
        drawn = Draws(first, second, len(trials), rng)
        return DeepTest(
            auc={cell: drawn.estimate(of) for cell, of in wins.items()},
            by_task={
                cell: {task: drawn.estimate(of) for task, of in tasks.items()}
                for cell, tasks in by_task.items()
            },
            n_train=len(trials[0].train[0].gaze),
            n_test=len(trials[0].test[0].gaze),
        )

    def _logits(
        self, name: str, cell: str, number: int, encoded: tuple[Pair, Pair, Pair]
    ) -> list[Floats]:
        """Logits (window, snippet) of the tested windows of both sides, by a trained network."""
        from gazediffusion.evaluation.deep_network import fit, n_crops_of, scores

        length, n_before = self.cells[cell][0], self.n_steps

        def on_step(step: int) -> None:
            self.n_steps = n_before + step
            self._show(f"{name}, {cell}, seed {number + 1} of {self.config.n_seeds}", step)

        train, stop, test = encoded
        key = derived_seed(self.seed, Stream.EVALUATION, "trial", number, cell)
        network = fit(train, stop, length, self.fitting, key, on_step)
        self.n_done += 1
        n_crops = n_crops_of(test[0].shape[-1], length)
        return [scores(network, one, length, n_crops).cpu().numpy() for one in test]

    def _show(self, which: str, step: int) -> None:
        """Which training, its steps a second, and the time left at most."""
        seconds = time.monotonic() - self.begun
        done = self.n_done + step / self.fitting.n_steps
        left = seconds / done * (self.n_trainings - done)
        self.progress(
            f"deep test: {which}, training {self.n_done + 1} of {self.n_trainings}, step {step}, "
            f"{self.n_steps / max(seconds, 1e-9):.0f} steps/s, "
            f"at most {left // 60:.0f}:{left % 60:02.0f} left"
        )


def _encoded(
    trial: Trial, low_pass_hz: float | None, device: torch.device
) -> tuple[Pair, Pair, Pair]:
    """Channels (window, 4, time) of both sides of a trial's parts, below a frequency if given.

    Scales are those of the training participants.
    """
    import torch

    from gazediffusion.evaluation.deep_network import low_passed
    from gazediffusion.network.representations import Joint

    training = trial.train[0]

    def given(gaze: Floats) -> torch.Tensor:
        found = torch.from_numpy(np.ascontiguousarray(gaze, dtype=np.float32)).to(device)
        return low_passed(found, low_pass_hz, training.rate_hz) if low_pass_hz else found

    fitted = given(training.gaze[evenly_spaced(len(training.gaze), _FITTED)])
    representation = Joint.of_gaze(fitted.cpu().numpy(), training.rate_hz)

    def pair(sides: Sides) -> Pair:
        first, second = (representation.encode(given(one.gaze)) for one in sides)
        return first, second

    return pair(trial.train), pair(trial.stop), pair(trial.test)


def _tasks_of(sides: Sides) -> dict[str, tuple[Bools, Bools]]:
    """The windows of each task that both sides have enough of."""
    tasks = [np.array(one.tasks, dtype=object) for one in sides]
    found = {}
    for task in sorted(set(tasks[0]) & set(tasks[1])):
        rows = tasks[0] == task, tasks[1] == task
        n_participants = len(np.unique(sides[0].group[rows[0]]))
        if min(row.sum() for row in rows) >= MIN_WINDOWS and n_participants >= MIN_TESTED:
            found[task] = rows
    return found


@dataclass(frozen=True, eq=False)
class Trial:
    """Two sides (first, second) of each part, of as many windows and the same shares of tasks.

    No participant (of synthetic windows: no block) is in two parts.
    """

    train: Sides
    stop: Sides
    test: Sides


@dataclass(frozen=True, eq=False)
class RealSets:
    """The first side of trials: training participants, held-out participants.

    The second side is a synthetic set; or other real participants, for the floor; or the same
    participants with a planted defect. n_windows: of a part at most.
    """

    training: GazeSet
    held_out: GazeSet
    n_windows: int
    seed: int

    def __post_init__(self) -> None:
        n_training, n_tested = (len(np.unique(one.group)) for one in (self.training, self.held_out))
        if n_training < MIN_PARTICIPANTS or n_tested < MIN_TESTED:
            raise GazeError(
                f"{WHAT} is not computable: {n_training} training and {n_tested} held-out "
                f"participants, at least {MIN_PARTICIPANTS} and {MIN_TESTED} are needed"
            )

    def against(self, synthetic: GazeSet, number: int) -> Trial:
        """Trial `number` of a synthetic set."""
        rng = stream(self.seed, f"synthetic, deep {number}")
        blocks = rng.permutation(np.unique(synthetic.group))
        stops = np.round(np.cumsum([0.0, *_SHARES.values()]) * len(blocks)).astype(int)
        other = {
            part: synthetic.select(np.isin(synthetic.group, blocks[first:stop]))
            for part, first, stop in zip(_SHARES, stops[:-1], stops[1:], strict=True)
        }
        return self._trial(number, self._real(number), other)

    def between_participants(self, number: int) -> Trial:
        """Trial `number` of the floor: two groups of participants, in training and in test."""
        rng = stream(self.seed, f"floor, deep {number}")
        halves, tested = self.training.halves(rng), self.held_out.halves(rng)
        first, second = (
            {**_without_fold(half, number), "test": test}
            for half, test in zip(halves, tested, strict=True)
        )
        return self._trial(number, first, second)

    def with_defect(self, name: str, defect: Callable[[GazeSet], GazeSet], number: int) -> Trial:
        """Trial `number` of half of the windows against the other half with a defect."""
        rng = stream(self.seed, f"{name}, deep {number}")
        first, second = {}, {}
        for part, one in self._real(number).items():
            is_first = rng.permutation(len(one.gaze)) % 2 == 0
            first[part], second[part] = one.select(is_first), defect(one.select(~is_first))
        return self._trial(number, first, second)

    def _real(self, number: int) -> dict[str, GazeSet]:
        return {**_without_fold(self.training, number), "test": self.held_out}

    def _trial(
        self, number: int, first: Mapping[str, GazeSet], second: Mapping[str, GazeSet]
    ) -> Trial:
        """Both sides cut to the same numbers of windows of each task."""
        most = {"train": self.n_windows, "stop": round(_STOPPING * self.n_windows)}
        found = {}
        for part in _SHARES:
            # Streams of their own, so that sets are tested against the same real windows.
            rngs = [stream(self.seed, f"deep {number}, {part} {side}") for side in (0, 1)]
            sides = first[part], second[part]
            found[part] = _matched(part, sides, most.get(part, self.n_windows), rngs)
        return Trial(**found)


def scaled(one: GazeSet, factor: float) -> GazeSet:
    """Each window about its mean times `factor`: so are all its speeds and amplitudes."""
    mean = one.gaze.mean(axis=-1, keepdims=True)
    return replace(one, gaze=mean + (one.gaze - mean) * np.float32(factor))


def _without_fold(one: GazeSet, number: int) -> dict[str, GazeSet]:
    """The windows without a fold of participants to train on, and those of this fold to stop at."""
    n_folds = min(N_FOLDS, len(np.unique(one.group)))
    is_left_out = participant_folds(one.group, n_folds) == number % n_folds
    return {"train": one.select(~is_left_out), "stop": one.select(is_left_out)}


def _matched(part: str, sides: Sides, most: int, rngs: Sequence[np.random.Generator]) -> Sides:
    """At most n windows of each side, equally many of both, of every task.

    Sets that share no task are cut to the same number alone.
    """
    first, second = sides
    shared = sorted(set(first.tasks) & set(second.tasks)) or [""]
    rows: list[dict[str, NDArray[Any]]] = []
    for side, rng in zip(sides, rngs, strict=True):
        order = rng.permutation(len(side.tasks))
        of_window = np.array(side.tasks if shared != [""] else [""] * len(order), dtype=object)
        rows.append({task: order[of_window[order] == task] for task in shared})
    n_task = {task: min(len(of[task]) for of in rows) for task in shared}
    share = min(1.0, most / max(sum(n_task.values()), 1))
    n_kept = {task: round(n * share) for task, n in n_task.items()}
    if sum(n_kept.values()) < MIN_WINDOWS:
        words = {"train": "to train on", "stop": "to stop at", "test": "to test"}[part]
        raise GazeError(
            f"{WHAT} is not computable: {sum(n_kept.values())} windows a side {words}, of "
            f"{len(first.gaze)} of {first.name} and {len(second.gaze)} of {second.name}; at least "
            f"{MIN_WINDOWS} are needed"
        )
    chosen = [np.sort(np.concatenate([of[task][:n] for task, n in n_kept.items()])) for of in rows]
    return first.select(chosen[0]), second.select(chosen[1])


@dataclass(frozen=True, eq=False)
class Wins:
    """Pairs of a first and a second side's snippet, by the groups of both, (group, group).

    The AUC is the share of pairs that a score puts in order. Counted by groups, so that a
    bootstrap draw of groups weights the counts. n_won: pairs in which the second side's score is
    higher, ties half. n_all: all pairs.
    """

    n_won: Floats
    n_all: Floats

    @classmethod
    def of(
        cls, sides: Sides, scores: Sequence[Floats], rows: tuple[Bools, Bools] | None = None
    ) -> Wins:
        """Of scores (window, snippet) of both sides, or of some windows of them."""
        groups = [one.group for one in sides]
        n_groups = [int(one.max()) + 1 for one in groups]
        if rows is not None:
            groups = [one[row] for one, row in zip(groups, rows, strict=True)]
            scores = [one[row] for one, row in zip(scores, rows, strict=True)]
        first, second = (np.repeat(g, s.shape[1]) for g, s in zip(groups, scores, strict=True))
        n_won = np.zeros((n_groups[0], n_groups[1]))
        order = np.argsort(second, kind="stable")
        edges = np.flatnonzero(np.diff(second[order], prepend=-1))
        labels, of_second = second[order][edges], scores[1].ravel()[order]
        for group in np.unique(first):
            own = scores[0].ravel()[first == group][:, None]
            won = (of_second > own).sum(axis=0) + 0.5 * (of_second == own).sum(axis=0)
            n_won[group, labels] = np.add.reduceat(won, edges)
        counts = [
            np.bincount(one, minlength=n) for one, n in zip((first, second), n_groups, strict=True)
        ]
        return cls(n_won, np.outer(*counts).astype(np.float64))

    @property
    def auc(self) -> float:
        """The area under the ROC curve."""
        return float(self.n_won.sum() / self.n_all.sum())


class Draws:
    """Participants, blocks of synthetic windows and trials, drawn with replacement."""

    def __init__(self, first: Floats, second: Floats, n_trials: int, rng: Any) -> None:
        self.first, self.second = first, second
        self.trial = rng.integers(0, n_trials, (len(first), n_trials))

    def estimate(self, trials: Sequence[Wins]) -> Estimate:
        """Mean AUC of the trials, with the central 95 % of its replicates."""
        drawn = np.stack([self._auc(one) for one in trials], axis=1)
        # Where a set has no window of a task in some trial, the others stand for it.
        picked = np.take_along_axis(drawn, self.trial % len(trials), axis=1)
        known = np.isfinite(picked)
        with np.errstate(invalid="ignore"):
            means = np.where(known, picked, 0.0).sum(axis=1) / known.sum(axis=1)
        value = float(np.mean([one.auc for one in trials]))
        return Estimate(value, central(means[np.isfinite(means)]))

    def _auc(self, one: Wins) -> Floats:
        """AUC of each replicate, NaN where no pair is drawn."""
        n_first, n_second = one.n_all.shape
        a, b = self.first[:, :n_first], self.second[:, :n_second]
        won, every = (
            np.einsum("rp,pq,rq->r", a, n, b, optimize=True) for n in (one.n_won, one.n_all)
        )
        with np.errstate(invalid="ignore"):
            return np.asarray(won / every)
