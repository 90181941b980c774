"""Which score sees which oddity: known ones planted into held-out participants' windows.

    python experiments/scores.py gazecom.safetensors bioeye.safetensors      # 50 minutes, two cores
    python experiments/scores.py ... --fit scores.json      # the percentiles that `score` reads

The table `auc` has the AUC of each score between clean windows of held-out participants and the
same windows with an oddity. Scores: log-likelihood (low is odd), denoising error (high), profile
distance (high; mean and covariance of training participants), the lowest contrast (mirrored, or
without its task), and an isolation forest on the paper's nine features, fitted on the training
participants of each task. The likelihood takes --likelihoods windows a cell. Intervals:
95 % over participants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.stats import rankdata
from sklearn.ensemble import IsolationForest

import gazediffusion as gd
from gazediffusion.evaluation.features import kinematic_features
from gazediffusion.generation.baselines import BASELINES
from gazediffusion.scoring.percentiles import ALL_TASKS, Percentiles
from gazediffusion.scoring.scorer import RawScores, Scorer
from gazediffusion.settings import Scoring
from report import Floats, Result, options, over_groups, tiny_windows

SCORES = (
    "log-likelihood",
    "denoising error",
    "profile distance",
    "lowest contrast",
    "isolation forest",
)
N_BOOTSTRAP, N_FOREST, N_TREES = 200, 1000, 200
Planted = tuple[str, str, Callable[["Clean"], Floats | gd.Windows]]


@dataclass(frozen=True, eq=False)
class Clean:
    """Windows of held-out participants of a file, dequantized, and what oddities need.

    whole: all of the file. gaze: (window, 2, time).
    """

    whole: gd.Windows
    windows: gd.Windows
    gaze: Floats
    rng: np.random.Generator

    @classmethod
    def of(cls, whole: gd.Windows, n: int) -> Clean:
        """n windows of a file's held-out participants."""
        some = whole.held_out.subsample(n).dequantized(0)
        return cls(whole, some, some.cut(), np.random.default_rng(0))

    @property
    def px(self) -> Floats:
        """Normalized units of a pixel, (2, 1)."""
        return 2.0 / self.windows.screen.size_px

    @property
    def deg(self) -> Floats:
        """Normalized units of a degree at the centre, (2, 1)."""
        screen = self.windows.screen
        two = screen.from_degrees(np.array([[-0.5, 0.5], [-0.5, 0.5]]))
        return np.asarray(np.diff(screen.to_normalized(two), axis=1))

    def set(
        self, gaze: Floats, kept: NDArray[np.bool_] | None = None, tasks: Sequence[str] = ()
    ) -> gd.Windows:
        """Changed windows (of those kept) with the identity of the clean ones, or other tasks."""
        chosen = np.arange(len(self.windows)) if kept is None else np.flatnonzero(kept)
        who, own = ([str(one) for one in self.windows.identity[key][chosen]]
                    for key in ("participant", "task"))  # fmt: skip
        rate_hz, screen = self.windows.rate_hz, self.windows.screen
        return gd.Windows.from_array(gaze.astype(np.float32), rate_hz, screen, who, tasks or own)


def wrong_rate(clean: Clean, factor: float) -> gd.Windows:
    """Played so many times as fast, by cubic splines; windows of short segments are left out."""
    windows = clean.windows
    needed = int(np.ceil((windows.length - 1) * factor)) + 1
    ends = np.append(windows.segment_starts[1:], windows.gaze.shape[1])[windows.segment_of_window]
    begins = windows.segment_starts[windows.segment_of_window]
    starts = np.minimum(windows.starts, ends - needed)
    kept = starts >= begins
    played = np.empty((int(kept.sum()), 2, windows.length))
    for k, start in enumerate(starts[kept]):
        course = CubicSpline(np.arange(needed), windows.gaze[:, start : start + needed], axis=1)
        played[k] = course(np.arange(windows.length) * factor)
    return clean.set(played, kept)


def drift(clean: Clean, deg: float) -> Floats:
    """A linear drift in a random direction over the window."""
    angle = clean.rng.uniform(0, 2 * np.pi, len(clean.gaze))
    way = np.stack([np.cos(angle), np.sin(angle)], axis=1)[:, :, None] * clean.deg
    return clean.gaze + deg * way * np.linspace(-0.5, 0.5, clean.gaze.shape[2])


def stitched(clean: Clean) -> Floats:
    """The second half from a window of another participant of the task, where there is one."""
    gaze, half = clean.gaze.copy(), clean.gaze.shape[2] // 2
    who, task = clean.windows.participant, clean.windows.task
    for k in range(len(gaze)):
        is_other = who != who[k]
        choices = (is_other & (task == task[k]), is_other, np.ones(len(gaze), dtype=bool))
        others = np.flatnonzero(next(one for one in choices if one.any()))
        gaze[k, :, half:] = clean.gaze[clean.rng.choice(others), :, half:]
    return gaze


def interpolated(clean: Clean, n_blinks: int) -> Floats:
    """So many blinks of 150 to 300 ms replaced by straight lines."""
    gaze, rate_hz = clean.gaze.copy(), clean.windows.rate_hz
    length = gaze.shape[2]
    for window in gaze:
        for size in clean.rng.integers(int(0.15 * rate_hz), int(0.3 * rate_hz) + 1, n_blinks):
            size = min(max(int(size), 2), length - 2)
            first = int(clean.rng.integers(1, length - size))
            edges = window[:, [first - 1, first + size]]
            share = np.arange(1, size + 1) / (size + 1)
            window[:, first : first + size] = edges[:, :1] + (edges[:, 1:] - edges[:, :1]) * share
    return gaze


def given_task(clean: Clean, model: gd.Model) -> gd.Windows:
    """The same gaze under the next task of another file, or of this one."""
    own = [str(one) for one in clean.windows.identity["task"]]
    here = sorted(set(own))
    foreign = [task for task in model.tasks if task not in here] or list(model.tasks)
    other = {task: foreign[-1] if len(here) > 2 else next(t for t in [*here, *foreign] if t != task)
             for task in here}  # fmt: skip
    return clean.set(clean.gaze, tasks=[other[task] for task in own])


def oddities(model: gd.Model) -> Iterator[Planted]:
    """Name, strength and function of every oddity: clean windows -> changed gaze, or windows."""
    yield "time reversed", "", lambda clean: clean.gaze[:, :, ::-1]
    for factor in (1.1, 1.25, 1.5, 2.0):
        yield "wrong rate", f"{factor:g} times", partial(wrong_rate, factor=factor)
    for px in (0.25, 0.5, 1.0, 2.0):
        yield "jitter", f"{px:g} px", partial(jitter, px=px)
    for deg in (0.5, 1.0, 2.0, 4.0):
        yield "drift", f"{deg:g} deg in a window", partial(drift, deg=deg)
    yield "axes swapped", "", lambda clean: clean.gaze[:, ::-1] / clean.px[::-1] * clean.px
    for name, signs in {"x": (-1, 1), "y": (1, -1)}.items():
        yield "mirrored", name, partial(scaled, factor=np.array(signs)[:, None])
    yield "stitched from two", "", stitched
    if len(model.tasks) > 1:
        yield "given another task", "", partial(given_task, model=model)
    for factor in (0.5, 0.8, 1.25):
        yield "another screen", f"scale {factor:g}", partial(scaled, factor=factor)
    for n in (1, 3, 8):
        yield "interpolated blinks", f"{n}", partial(interpolated, n_blinks=n)
    for name in BASELINES:
        yield "baseline", name, partial(from_baseline, name=name)


def jitter(clean: Clean, px: float) -> Floats:
    """Independent noise on every sample."""
    return np.asarray(clean.gaze + px * clean.px * clean.rng.normal(size=clean.gaze.shape))


def scaled(clean: Clean, factor: Any) -> Floats:
    """Mirrored, or normalized to a screen of another size."""
    return np.asarray(clean.gaze * factor)


def from_baseline(clean: Clean, name: str) -> Floats:
    """Windows of a baseline fitted on the file's training participants."""
    return gd.fit_baseline(name, clean.whole).sample(len(clean.gaze), seed=1).cut()


@dataclass(frozen=True, eq=False)
class Bench:
    """The scores of windows; for each, more is odder. forests: by task."""

    cheap: Scorer
    costly: Scorer
    percentiles: Percentiles
    forests: dict[str, IsolationForest]

    @classmethod
    def of(cls, cheap: Scorer, costly: Scorer, fitted: Percentiles, train: gd.Windows) -> Bench:
        """With an isolation forest for each task of the training participants."""
        forests = {}
        for number in np.unique(train.task):
            task = train.tasks[number]
            some = train.of_task(task).subsample(N_FOREST).dequantized(0)
            forest = IsolationForest(n_estimators=N_TREES, random_state=0)
            forests[task] = forest.fit(nine_features(some))
        return cls(cheap, costly, fitted, forests)

    def __call__(self, windows: gd.Windows, n_likelihoods: int) -> Floats:
        """(score, window); the likelihood of n evenly spaced windows, NaN elsewhere."""
        raw = self.cheap.scores(windows)
        found = np.full((len(SCORES), len(windows)), np.nan)
        n = min(n_likelihoods, len(windows))
        some = np.unique(np.linspace(0, len(windows) - 1, n).astype(int))
        if len(some):
            found[0, some] = -self.costly.scores(windows.select(some)).log_likelihood
        found[1:4] = raw.denoising_error, self.percentiles.distances(raw), self._contrasts(raw)
        features, first = nine_features(windows), next(iter(self.forests))
        tasks = np.array([windows.tasks[k] for k in windows.task])
        for task in np.unique(tasks):  # the first forest stands for a task without one
            forest = self.forests[task if task in self.forests else first]
            found[-1, tasks == task] = -forest.score_samples(features[tasks == task])
        return found

    def _contrasts(self, raw: RawScores) -> Floats:
        """Minus the lowest contrast in standard deviations of training participants' windows."""
        n, names = raw.contrasts.shape[1], [self.percentiles.group_of(one) for one in raw.tasks]
        means = np.array([self.percentiles.groups[name].mean[-n:] for name in names])
        spread = np.sqrt(np.diag(self.percentiles.covariances[ALL_TASKS])[-n:])
        return np.asarray(-((raw.contrasts - means) / spread).min(axis=1))


def nine_features(windows: gd.Windows) -> Floats:
    """The paper's nine features, (window, feature)."""
    found = kinematic_features(windows.cut(), windows.rate_hz)
    return np.stack(list(found.values()), axis=1)


def auc(clean: Floats, odd: Floats) -> float:
    """The probability that an odd window has the higher score; ties count half."""
    clean, odd = clean[np.isfinite(clean)], odd[np.isfinite(odd)]
    if not len(clean) or not len(odd):
        return float("nan")
    ranks = rankdata(np.concatenate([clean, odd]))[len(clean) :]
    return float((ranks.sum() - len(odd) * (len(odd) + 1) / 2) / (len(clean) * len(odd)))


def add_row(
    result: Result, about: dict[str, Any], windows: Sequence[gd.Windows], of: Sequence[Floats]
) -> None:
    """AUC of each score, of clean and odd (score, window); participants are drawn alike."""
    who = np.concatenate([one.identity["participant"] for one in windows])
    is_odd = np.repeat([False, True], [len(one) for one in windows])
    both = np.concatenate(of, axis=1)

    def measure(rows: NDArray[np.int64]) -> Floats:
        odd, scores = is_odd[rows], both[:, rows]
        return np.array([auc(one[~odd], one[odd]) for one in scores])

    cells = dict(zip(SCORES, over_groups(who, measure, N_BOOTSTRAP), strict=True))
    result.add("auc", {**about, "n": len(windows[1]), **cells})


def main() -> None:
    """Write the tables, or the percentiles."""
    parser = options(__doc__, "scores")
    parser.add_argument("windows", type=Path, nargs="*")
    parser.add_argument("-n", type=int, default=200, help="windows of each file and oddity")
    parser.add_argument("--likelihoods", type=int, default=48, help="of these, with a likelihood")
    parser.add_argument("--each", type=int, default=250, help="of a task, for the percentiles")
    parser.add_argument("--fit", type=Path, help="write the percentiles here, and end")
    parser.add_argument("--batch-size", type=int)
    given = parser.parse_args()
    model = gd.load(given.model, device=given.device)
    files = {path.stem: gd.Windows.load(path) for path in given.windows}
    planted, config = list(oddities(model)), Scoring()
    if given.tiny:
        files = {"tiny": tiny_windows(model, "movies")}
        given.n, given.likelihoods, given.each = 2, 1, 2
        planted, config = planted[6:8], replace(config, n_steps=5, n_draws=1)
    result = Result.of(given, model, n=given.n)
    costly = Scorer(model.run, config, given.batch_size)
    cheap = replace(costly, config=replace(config, has_likelihood=False))
    if given.fit is not None:
        Percentiles.fit(costly, list(files.values()), given.each).save(given.fit)
        print(f"wrote {given.fit}")
        return
    fitted = Percentiles.fit(cheap, list(files.values()), given.each)
    benches = {name: (Clean.of(whole, given.n), Bench.of(cheap, costly, fitted, whole.train))
               for name, whole in files.items()}  # fmt: skip
    for name, (clean, bench) in benches.items():
        base = bench(clean.set(clean.gaze), given.likelihoods)
        for oddity, strength, plant in planted:
            made = plant(clean)
            windows = made if isinstance(made, gd.Windows) else clean.set(made)
            if len(windows) >= 2:
                about = {"file": name, "oddity": oddity, "strength": strength}
                sides = base, bench(windows, given.likelihoods)
                add_row(result, about, (clean.windows, windows), sides)
    result.save()


if __name__ == "__main__":
    main()
