"""Which score sees which oddity: known ones planted into held-out participants' windows.

    python experiments/scores.py gazecom.safetensors bioeye.safetensors      # 50 minutes, two cores
    python experiments/scores.py ... --fit scores.json      # the percentiles that `score` reads
    python experiments/scores.py ... --roc docs/images/roc.png        # the picture of ROC curves

The table `auc` has the AUC of each score between clean windows of held-out participants and the
same windows with an oddity. Scores: log-likelihood (low is odd), denoising error (high), profile
distance (high; mean and covariance of training participants), the lowest contrast (mirrored, or
without its task), and an isolation forest on the paper's nine features, fitted on the training
participants of each task. The likelihood takes --likelihoods windows a cell. Recorded oddities:
windows with hand-labelled noise, and participants with many losses (share of time between a trial's
first and last segment of 8 s that lies in none). Intervals: 95 % over participants. `throughput`:
windows a second; values: spread and precision of the likelihood.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from gazediffusion.scoring.calibration import ALL_TASKS, Calibration
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.stats import rankdata
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_curve

import gazediffusion as gd
from gazediffusion.evaluation.features import kinematic_features
from gazediffusion.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, house_style
from gazediffusion.scoring.scorer import RawScores, Scorer
from gazediffusion.settings import Scoring
from report import Floats, Result, options, over_groups, save_small, tiny_windows

SCORES = (
    "log-likelihood",
    "denoising error",
    "profile distance",
    "lowest contrast",
    "isolation forest",
)
COLOURS = (BLUE, GREEN, ORANGE, PURPLE, GREY)
SHOWN = (
    ("jitter", "0.5 px"),
    ("wrong rate", "1.5 times"),
    ("stitched from two", ""),
    ("time reversed", ""),
    ("given another task", ""),
    ("interpolated blinks", "8"),
)
N_BOOTSTRAP, N_FOREST, N_TREES, FINE_STEPS = 200, 1000, 200, 64
NOISE = gd.EVENT_CLASSES.index("noise") + 1
NOISY_SHARE, MANY_LOSSES = 0.05, 2 / 3
Planted = tuple[str, str, Callable[["Clean"], gd.Windows]]


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


def reversed_time(clean: Clean) -> gd.Windows:
    """Played backwards."""
    return clean.set(np.ascontiguousarray(clean.gaze[:, :, ::-1]))


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


def jitter(clean: Clean, px: float) -> gd.Windows:
    """Independent noise on every sample."""
    return clean.set(clean.gaze + px * clean.px * clean.rng.normal(size=clean.gaze.shape))


def drift(clean: Clean, deg: float) -> gd.Windows:
    """A linear drift in a random direction over the window."""
    angle = clean.rng.uniform(0, 2 * np.pi, len(clean.gaze))
    way = np.stack([np.cos(angle), np.sin(angle)], axis=1)[:, :, None] * clean.deg
    return clean.set(clean.gaze + deg * way * np.linspace(-0.5, 0.5, clean.gaze.shape[2]))


def swapped_axes(clean: Clean) -> gd.Windows:
    """x and y exchanged, in pixels from the centre."""
    return clean.set(clean.gaze[:, ::-1] / clean.px[::-1] * clean.px)


def mirrored(clean: Clean, axis: int) -> gd.Windows:
    """One axis mirrored."""
    return clean.set(clean.gaze * np.where(np.arange(2) == axis, -1, 1)[:, None])


def stitched(clean: Clean) -> gd.Windows:
    """The second half from a window of another participant of the task, where there is one."""
    gaze, half = clean.gaze.copy(), clean.gaze.shape[2] // 2
    who, task = clean.windows.participant, clean.windows.task
    for k in range(len(gaze)):
        is_other = who != who[k]
        choices = (is_other & (task == task[k]), is_other, np.ones(len(gaze), dtype=bool))
        others = np.flatnonzero(next(one for one in choices if one.any()))
        gaze[k, :, half:] = clean.gaze[clean.rng.choice(others), :, half:]
    return clean.set(gaze)


def scaled(clean: Clean, factor: float) -> gd.Windows:
    """Normalized to a screen of another size."""
    return clean.set(clean.gaze * factor)


def interpolated(clean: Clean, n_blinks: int) -> gd.Windows:
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
    return clean.set(gaze)


def given_task(clean: Clean, model: gd.Model) -> gd.Windows:
    """The same gaze under the next task of another file, or of this one."""
    own = [str(one) for one in clean.windows.identity["task"]]
    here = sorted(set(own))
    foreign = [task for task in model.tasks if task not in here] or list(model.tasks)
    other = {task: foreign[-1] if len(here) > 2 else next(t for t in [*here, *foreign] if t != task)
             for task in here}  # fmt: skip
    return clean.set(clean.gaze, tasks=[other[task] for task in own])


def from_baseline(clean: Clean, name: str) -> gd.Windows:
    """Windows of a baseline fitted on the file's training participants."""
    return clean.set(gd.fit_baseline(name, clean.whole).sample(len(clean.gaze), seed=1).cut())


def generated(clean: Clean, model: gd.Model) -> gd.Windows:
    """Windows of the model itself, of the same tasks."""
    gaze, tasks = clean.gaze.copy(), clean.windows.identity["task"]
    for number, task in enumerate(sorted(set(map(str, tasks)))):
        chosen = np.flatnonzero(tasks == task)
        made = model.sample(len(chosen), task=task if task in model.tasks else None, seed=number)
        gaze[chosen] = replace(made, grid_px=clean.whole.grid_px).dequantized(0).cut()
    return clean.set(gaze)


def oddities(model: gd.Model) -> Iterator[Planted]:
    """Name, strength and function of every oddity."""
    yield "time reversed", "", reversed_time
    for factor in (1.1, 1.25, 1.5, 2.0):
        yield "wrong rate", f"{factor:g} times", partial(wrong_rate, factor=factor)
    for px in (0.25, 0.5, 1.0, 2.0):
        yield "jitter", f"{px:g} px", partial(jitter, px=px)
    for deg in (0.5, 1.0, 2.0, 4.0):
        yield "drift", f"{deg:g} deg in a window", partial(drift, deg=deg)
    yield "axes swapped", "", swapped_axes
    yield "mirrored", "x", partial(mirrored, axis=0)
    yield "mirrored", "y", partial(mirrored, axis=1)
    yield "stitched from two", "", stitched
    if len(model.tasks) > 1:
        yield "given another task", "", partial(given_task, model=model)
    for factor in (0.5, 0.8, 1.25):
        yield "another screen", f"scale {factor:g}", partial(scaled, factor=factor)
    for n in (1, 3, 8):
        yield "interpolated blinks", f"{n}", partial(interpolated, n_blinks=n)
    for name in ("kinematic-markov", "positional-markov", "uniform", "gaussian"):
        yield "baseline", name, partial(from_baseline, name=name)
    yield "generated by the model", "", partial(generated, model=model)


def recorded(windows: gd.Windows) -> Iterator[tuple[str, NDArray[np.bool_], NDArray[np.bool_]]]:
    """Recorded oddities: name, odd windows, and those they are compared with."""
    if windows.labels is not None:
        share = (windows.cut_labels() == NOISE).mean(axis=1)
        yield f"{NOISY_SHARE:.0%} or more labelled noise", share >= NOISY_SHARE, share == 0
    shares, who = loss_shares(windows), windows.identity["participant"]
    of_window = np.array([shares.get(str(name), 0.0) for name in who])
    limit = np.quantile([shares.get(str(name), 0.0) for name in set(who)], MANY_LOSSES)
    yield "participants with most losses", of_window > limit, of_window <= limit


def loss_shares(windows: gd.Windows) -> dict[str, float]:
    """Share of each participant's time between long segments of a trial."""
    ends = np.append(windows.segment_starts[1:], windows.gaze.shape[1])
    size_ms = (ends - windows.segment_starts) * 1000.0 / windows.rate_hz
    trials: dict[tuple[int, str], list[int]] = {}
    for k, trial in enumerate(windows.segment_trial):
        key = (int(windows.segment_participant[k]), f"{windows.segment_task[k]} {trial}")
        trials.setdefault(key, []).append(k)
    seen, span = np.zeros(len(windows.participants)), np.zeros(len(windows.participants))
    for (who, _), segments in trials.items():
        onset = windows.segment_onset_ms[segments]
        seen[who] += size_ms[segments].sum()
        span[who] += (onset + size_ms[segments]).max() - onset.min()
    return {name: float(1 - seen[k] / span[k])
            for k, name in enumerate(windows.participants) if span[k] > 0}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Bench:
    """The scores of windows; for each, more is odder. forests: by task."""

    cheap: Scorer
    costly: Scorer
    calibration: Calibration
    forests: dict[str, IsolationForest]

    @classmethod
    def of(cls, cheap: Scorer, costly: Scorer, fitted: Calibration, train: gd.Windows) -> Bench:
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
        found[1:4] = raw.denoising_error, self.calibration.distances(raw), self._contrasts(raw)
        features, first = nine_features(windows), next(iter(self.forests))
        tasks = np.array([windows.tasks[k] for k in windows.task])
        for task in np.unique(tasks):  # the first forest stands for a task without one
            forest = self.forests[task if task in self.forests else first]
            found[-1, tasks == task] = -forest.score_samples(features[tasks == task])
        return found

    def _contrasts(self, raw: RawScores) -> Floats:
        """Minus the lowest contrast in standard deviations of training participants' windows."""
        n, names = raw.contrasts.shape[1], [self.calibration.group_of(one) for one in raw.tasks]
        means = np.array([self.calibration.groups[name].mean[-n:] for name in names])
        spread = np.sqrt(np.diag(self.calibration.covariances[ALL_TASKS])[-n:])
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


def draw_roc(
    benches: dict[str, tuple[Clean, Bench]], planted: Sequence[Planted], n: int, path: Path
) -> None:
    """ROC curves: a row for each file, a column for each of `SHOWN`."""
    import matplotlib.pyplot as plt

    shown = [one for which in SHOWN for one in planted if one[:2] == which]
    with house_style():
        plt.rcParams["font.size"] = 12  # readable at half the size
        size = len(benches), len(shown)
        look: dict[str, Any] = {"sharex": True, "sharey": True, "squeeze": False}
        figure, axes = plt.subplots(*size, figsize=(2.0 * size[1], 2.2 * size[0] + 0.6), **look)
        for row, (name, (clean, bench)) in zip(axes, benches.items(), strict=True):
            base = bench(clean.set(clean.gaze), n)
            for axis, (oddity, strength, plant) in zip(row, shown, strict=True):
                draw_curves(axis, base, bench(plant(clean), n))
                axis.set(aspect="equal", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
                axis.set_title(f"{oddity}\n{strength}" if row is axes[0] else "", fontsize=11)
            row[0].set_ylabel(f"{name}\nodd windows found")
        axes[-1, len(shown) // 2].set_xlabel("clean windows called odd", loc="left")
        handles = axes[0, 0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=len(SCORES))
        save_small(figure, path)


def draw_curves(axis: Any, clean: Floats, odd: Floats) -> None:
    """The ROC curve of each score; clean and odd are (score, window), NaN without a score."""
    axis.plot([0, 1], [0, 1], color="black", linewidth=0.6, linestyle=":")
    for name, colour, *sides in zip(SCORES, COLOURS, clean, odd, strict=True):
        of_clean, of_odd = (one[np.isfinite(one)] for one in sides)
        is_odd = np.repeat([0, 1], [len(of_clean), len(of_odd)])
        found = roc_curve(is_odd, np.concatenate([of_clean, of_odd]), drop_intermediate=False)
        axis.plot(*found[:2], color=colour, linewidth=1.5, label=name)


def throughput(
    result: Result, cheap: Scorer, costly: Scorer, some: gd.Windows, many: gd.Windows
) -> None:
    """Windows a second of both scorers, and the precision of the likelihood."""
    for name, scorer, windows in (
        ("denoising error", cheap, many),
        ("with log-likelihood", costly, some),
    ):
        scorer.scores(windows)
        begun = time.perf_counter()
        raw = scorer.scores(windows)
        rate = len(windows) / (time.perf_counter() - begun)
        about = {"score": name, "evaluations": scorer.n_evaluations, "windows": len(windows)}
        result.add("throughput", {**about, "windows per s": rate})
    exact = replace(costly, config=replace(costly.config, n_steps=FINE_STEPS)).scores(some)
    result.values |= {
        "log_likelihood_mean": raw.log_likelihood.mean(),
        "log_likelihood_sd": raw.log_likelihood.std(),
        "standard_error_median": np.median(raw.standard_error),
        "largest_difference_to_64_steps": np.abs(exact.log_likelihood - raw.log_likelihood).max(),
    }


def main() -> None:
    """Write the tables, the percentiles or the picture."""
    parser = options(__doc__, "scores")
    parser.add_argument("windows", type=Path, nargs="*")
    parser.add_argument("-n", type=int, default=200, help="windows of each file and oddity")
    parser.add_argument("--likelihoods", type=int, default=48, help="of these, with a likelihood")
    parser.add_argument("--each", type=int, default=250, help="of a task, for the percentiles")
    parser.add_argument("--fit", type=Path, help="write the percentiles here, and end")
    parser.add_argument("--roc", type=Path, help="draw the ROC curves here, and end")
    parser.add_argument("--batch-size", type=int)
    given = parser.parse_args()
    model = gd.load(given.model, device=given.device)
    files = {path.stem: gd.Windows.load(path) for path in given.windows}
    planted, config = list(oddities(model)), Scoring()
    if given.tiny:
        files = {"tiny": tiny_windows(model, "movies")}
        given.n, given.likelihoods, given.each = 4, 1, 4
        planted, config = planted[6:8], replace(config, n_steps=5, n_draws=1)
    result = Result.of(given, model, n=given.n)
    costly = Scorer(model.run, config, given.batch_size)
    cheap = replace(costly, config=replace(config, has_likelihood=False))
    if given.fit is not None:
        Calibration.fit(costly, list(files.values()), given.each).save(given.fit)
        print(f"wrote {given.fit}")
        return
    fitted = Calibration.fit(cheap, list(files.values()), given.each)
    benches = {name: (Clean.of(whole, given.n), Bench.of(cheap, costly, fitted, whole.train))
               for name, whole in files.items()}  # fmt: skip
    if given.roc is not None:
        draw_roc(benches, planted, given.likelihoods, given.roc)
        return
    for name, (clean, bench) in benches.items():
        base = bench(clean.set(clean.gaze), given.likelihoods)
        for oddity, strength, plant in planted:
            windows = plant(clean)
            if len(windows) >= 2:
                about = {"file": name, "oddity": oddity, "strength": strength}
                sides = base, bench(windows, given.likelihoods)
                add_row(result, about, (clean.windows, windows), sides)
    for name, (clean, bench) in benches.items():
        held_out = clean.whole.held_out.dequantized(0)
        for oddity, is_odd, is_clean in recorded(held_out):
            if min(is_odd.sum(), is_clean.sum()) >= 2:
                chosen = [held_out.select(one).subsample(2 * given.n) for one in (is_clean, is_odd)]
                sides = bench(chosen[0], given.likelihoods), bench(chosen[1], given.likelihoods)
                about = {"file": name, "oddity": oddity, "strength": "recorded"}
                add_row(result, about, chosen, sides)
    held_out = next(iter(files.values())).held_out
    some, many = (held_out.subsample(n) for n in (given.likelihoods, 2 * given.n))
    throughput(result, cheap, costly, some, many)
    result.save()


if __name__ == "__main__":
    main()
