"""Which score sees which oddity: known ones planted into held-out participants' windows.

    python runs/scores.py GAZECOM.safetensors BIOEYE.safetensors --model joint -n 200
    python runs/scores.py GAZECOM.safetensors BIOEYE.safetensors --model joint --fit OUT.json

The first prints Markdown tables: the AUC of each score between clean windows of held-out
participants and the same windows with an oddity. Scores: log-likelihood (low is odd), denoising
error (high), profile distance (high; mean and covariance of training participants), the lowest
contrast (mirrored, or without its task), and an isolation forest on the paper's nine features,
fitted on the training participants of each task. The likelihood takes --likelihoods windows a cell.
In brackets: 95 % intervals over participants.
Oddities that were recorded: windows with hand-labelled noise, and participants with many losses
(share of time between a trial's first and last segment of 8 s that lies in none). --fit writes the
calibration (`gazediffusion score` reads it as scores.json in the model's folder) and ends.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.stats import rankdata

import gazediffusion as gd
from gazediffusion.evaluation.features import kinematic_features
from gazediffusion.scoring.calibration import ALL_TASKS, Calibration, n_to_score
from gazediffusion.scoring.scorer import RawScores, ScoreConfig, Scorer

Gaze = NDArray[np.floating[Any]]
Floats = NDArray[np.float64]
SCORES = (
    "log-likelihood",
    "denoising error",
    "profile distance",
    "lowest contrast",
    "isolation forest",
)
N_BOOTSTRAP, N_FOREST, N_TREES, FINE_STEPS = 200, 1000, 200, 64
NOISE = gd.EVENT_CLASSES.index("noise") + 1
NOISY_SHARE, MANY_LOSSES = 0.05, 2 / 3


@dataclass(frozen=True, eq=False)
class Clean:
    """Windows of held-out participants of a file, dequantized, and what oddities need.

    whole: all of the file. gaze: (window, 2, time).
    """

    whole: gd.Windows
    windows: gd.Windows
    gaze: Gaze
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

    def set(self, gaze: Gaze, kept: NDArray[np.bool_] | None = None) -> gd.Windows:
        """Changed windows with the identity of the clean ones (kept)."""
        chosen = np.arange(len(self.windows)) if kept is None else np.flatnonzero(kept)
        identity = self.windows.identity
        return gd.Windows.from_array(
            gaze.astype(np.float32), self.windows.rate_hz, self.windows.screen,
            [str(one) for one in identity["participant"][chosen]],
            [str(one) for one in identity["task"][chosen]],
        )  # fmt: skip


Planted = tuple[str, str, Callable[[Clean], gd.Windows]]


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
        others = np.flatnonzero((who != who[k]) & (task == task[k]))
        others = others if len(others) else np.flatnonzero(who != who[k])
        others = others if len(others) else np.arange(len(gaze))
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
    same = clean.set(clean.gaze)
    return gd.Windows.from_array(
        same.cut(), same.rate_hz, same.screen,
        [str(one) for one in same.identity["participant"]], [other[task] for task in own],
    )  # fmt: skip


def from_baseline(clean: Clean, name: str) -> gd.Windows:
    """Windows of a baseline fitted on the file's training participants."""
    made = gd.fit_baseline(name, clean.whole).sample(len(clean.gaze), seed=1)
    return clean.set(made.cut())


def generated(clean: Clean, model: gd.Model) -> gd.Windows:
    """Windows of the model itself, of the same tasks."""
    gaze = clean.gaze.copy()
    tasks = clean.windows.identity["task"]
    grid = clean.whole.grid_px
    for number, task in enumerate(sorted(set(map(str, tasks)))):
        chosen = np.flatnonzero(tasks == task)
        made = model.sample(len(chosen), task=task if task in model.tasks else None, seed=number)
        gaze[chosen] = replace(made, grid_px=grid).dequantized(0).cut()
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


@dataclass(frozen=True, eq=False)
class Bench:
    """The scores; for each, more is odder."""

    cheap: Scorer
    costly: Scorer
    calibration: Calibration
    forests: dict[str, object]

    def __call__(self, windows: gd.Windows, n_likelihoods: int) -> tuple[Floats, RawScores]:
        """(score, window); the likelihood of n evenly spaced windows, NaN elsewhere."""
        raw = self.cheap.scores(windows)
        found = np.full((len(SCORES), len(windows)), np.nan)
        some = np.unique(
            np.linspace(0, len(windows) - 1, min(n_likelihoods, len(windows))).astype(int)
        )
        if len(some):
            found[0, some] = -self.costly.scores(windows.select(some)).log_likelihood
        found[1] = raw.denoising_error
        found[2] = self.calibration.distances(raw)
        found[3] = self._lowest_contrast(raw)
        features = features_of(windows.cut(), windows.rate_hz)
        for task, forest in self.forests.items():
            chosen = np.array([windows.tasks[k] == task for k in windows.task])
            if chosen.any():
                found[-1, chosen] = -forest.score_samples(features[chosen])  # type: ignore[attr-defined]
        missing = np.isnan(found[-1])
        if missing.any():  # a task that the file does not have
            forest = next(iter(self.forests.values()))
            found[-1, missing] = -forest.score_samples(features[missing])  # type: ignore[attr-defined]
        return found, raw

    def _lowest_contrast(self, raw: RawScores) -> Floats:
        """Minus the lowest contrast in standard deviations of training participants' windows."""
        n, names = raw.contrasts.shape[1], [self.calibration.group_of(one) for one in raw.tasks]
        means = np.array([self.calibration.groups[name].mean[-n:] for name in names])
        spread = np.sqrt(np.diag(self.calibration.covariances[ALL_TASKS])[-n:])
        return np.asarray(-((raw.contrasts - means) / spread).min(axis=1))


def scorers(model: gd.Model, batch_size: int | None = None) -> tuple[Scorer, Scorer]:
    """Without the likelihood, and with it."""
    costly = Scorer(model.run, ScoreConfig(), batch_size)
    return replace(costly, config=replace(costly.config, has_likelihood=False)), costly


def features_of(gaze: Gaze, rate_hz: float) -> Floats:
    """The paper's nine features, (window, feature)."""
    return np.stack(list(kinematic_features(gaze, rate_hz).values()), axis=1)


def forests_of(train: gd.Windows) -> dict[str, object]:
    """An isolation forest for each task."""
    from sklearn.ensemble import IsolationForest

    found: dict[str, object] = {}
    for number in np.unique(train.task):
        some = train.of_task(train.tasks[number]).subsample(N_FOREST).dequantized(0)
        features = features_of(some.cut(), some.rate_hz)
        found[train.tasks[number]] = IsolationForest(n_estimators=N_TREES, random_state=0).fit(
            features
        )
    return found


def auc(clean: Floats, odd: Floats) -> float:
    """The probability that an odd window has the higher score; ties count half."""
    clean, odd = clean[np.isfinite(clean)], odd[np.isfinite(odd)]
    if not len(clean) or not len(odd):
        return float("nan")
    ranks = rankdata(np.concatenate([clean, odd]))[len(clean) :]
    return float((ranks.sum() - len(odd) * (len(odd) + 1) / 2) / (len(clean) * len(odd)))


def cell(clean: Floats, odd: Floats, who: Sequence[str], whose: Sequence[str]) -> str:
    """AUC and its interval over participants, drawn alike for clean and odd windows."""
    value = auc(clean, odd)
    names = sorted({*who, *whose})
    of_clean, of_odd = (
        [np.flatnonzero(np.array(side) == name) for name in names] for side in (who, whose)
    )
    rng, draws = np.random.default_rng(0), []
    for _ in range(N_BOOTSTRAP):
        drawn = rng.integers(len(names), size=len(names))
        one = auc(
            clean[np.concatenate([of_clean[k] for k in drawn])],
            odd[np.concatenate([of_odd[k] for k in drawn])],
        )
        draws += [one] if np.isfinite(one) else []
    if not np.isfinite(value) or not draws:
        return ""
    low, high = np.quantile(draws, [0.025, 0.975])
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


def participants_of(windows: gd.Windows) -> list[str]:
    """Of each window."""
    return [str(one) for one in windows.identity["participant"]]


def row(*cells: object) -> str:
    """A line of a table."""
    return "| " + " | ".join(map(str, cells)) + " |"


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
    return {
        name: float(1 - seen[k] / span[k])
        for k, name in enumerate(windows.participants)
        if span[k] > 0
    }


def recorded(windows: gd.Windows) -> Iterator[tuple[str, NDArray[np.bool_], NDArray[np.bool_]]]:
    """Recorded oddities: name, odd windows, and those they are compared with."""
    if windows.labels is not None:
        share = (windows.cut_labels() == NOISE).mean(axis=1)
        yield f"{NOISY_SHARE:.0%} or more labelled noise", share >= NOISY_SHARE, share == 0
    shares = loss_shares(windows)
    of_window = np.array([shares[name] for name in participants_of(windows)])
    limit = np.quantile([shares[name] for name in set(participants_of(windows))], MANY_LOSSES)
    yield "participants with most losses", of_window > limit, of_window <= limit


def tables(
    parts: dict[str, gd.Windows], model: gd.Model, bench: Callable[[gd.Windows], Bench],
    n: int, n_likelihoods: int,
) -> Iterator[str]:  # fmt: skip
    """The lines of both tables."""
    head = ["file", "oddity", "strength", "n", *SCORES]
    yield row(*head)
    yield "|---|---|---|---:|" + "---|" * len(SCORES)
    begun, later = time.perf_counter(), []
    planted = list(oddities(model))
    for name, whole in parts.items():
        clean = Clean.of(whole, n)
        scores = bench(whole)
        base, raw = scores(clean.set(clean.gaze), n_likelihoods)
        who = participants_of(clean.windows)
        later.append((name, whole, scores, base, raw))
        for number, (oddity, strength, plant) in enumerate(planted):
            seconds = time.perf_counter() - begun
            print(f"\r{name} {number + 1}/{len(planted)}, {seconds:.0f} s", end="", file=sys.stderr)
            windows = plant(clean)
            if len(windows) < 2:
                continue
            found, _ = scores(windows, n_likelihoods)
            whose = participants_of(windows)
            cells = [cell(base[k], found[k], who, whose) for k in range(len(SCORES))]
            yield row(name, oddity, strength, len(windows), *cells)
    print(file=sys.stderr)
    for name, whole, scores, _, _ in later:
        held_out = whole.held_out.dequantized(0)
        for oddity, is_odd, is_clean in recorded(held_out):
            if min(is_odd.sum(), is_clean.sum()) < 2:
                continue
            odd, rest = (held_out.select(one).subsample(2 * n) for one in (is_odd, is_clean))
            found, base = (scores(one, n_likelihoods)[0] for one in (odd, rest))
            sides = participants_of(rest), participants_of(odd)
            cells = [cell(base[k], found[k], *sides) for k in range(len(SCORES))]
            yield row(name, oddity, "recorded", len(odd), *cells)


def throughput(
    cheap: Scorer, costly: Scorer, windows: gd.Windows, n_likelihoods: int
) -> Iterator[str]:
    """Windows a second of both scorers, and the precision of the likelihood."""
    yield row("score", "evaluations", "windows", "windows per s")
    yield "|---|---:|---:|---:|"
    some = windows.held_out.subsample(n_likelihoods)
    for name, scorer, given in (
        ("denoising error", cheap, windows.held_out.subsample(500)),
        ("with log-likelihood", costly, some),
    ):
        scorer.scores(given)
        begun = time.perf_counter()
        raw = scorer.scores(given)
        rate = len(given) / (time.perf_counter() - begun)
        yield row(name, scorer.n_evaluations, len(given), f"{rate:.1f}")
    spread, error = raw.log_likelihood.std(), np.median(raw.standard_error)
    exact = replace(costly, config=replace(costly.config, n_steps=FINE_STEPS))
    off = np.abs(exact.scores(some).log_likelihood - raw.log_likelihood).max()
    yield ""
    yield (
        f"log-likelihood in nats per dimension: mean {raw.log_likelihood.mean():.4f}, standard "
        f"deviation over windows {spread:.4f}, median standard error {error:.4f}, largest "
        f"difference to {FINE_STEPS} steps {off:.4f}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables, or write the calibration."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--model", default="joint")
    parser.add_argument("-n", type=int, default=200, help="windows of each file and oddity")
    parser.add_argument("--likelihoods", type=int, default=48, help="of these, with a likelihood")
    parser.add_argument("--fit", type=Path, help="write the calibration here, and end")
    parser.add_argument("--throughput", action="store_true", help="only how fast and how precise")
    parser.add_argument("--windows", type=int, default=500, help="of a task, for the calibration")
    parser.add_argument("--batch-size", type=int)
    given = parser.parse_args(arguments)
    model = gd.load(given.model)
    parts = {path.stem: gd.Windows.load(path) for path in given.files}
    cheap, costly = scorers(model, given.batch_size)
    every, begun = list(parts.values()), time.perf_counter()
    if given.throughput:
        for line in throughput(cheap, costly, every[0], given.likelihoods):
            print(line, flush=True)
        return

    shown = 0.0
    total = n_to_score(every, given.windows)

    def show(done: float) -> None:
        nonlocal shown
        seconds = time.perf_counter() - begun
        if seconds - shown > 1 or done == total:
            shown = seconds
            left = seconds / done * (total - done)
            line = f"\rcalibrating {done:.0f}/{total}, {seconds:.0f} s, {left:.0f} s left "
            print(line, end="", file=sys.stderr)

    scorer = costly if given.fit else cheap
    calibration = Calibration.fit(scorer, every, given.windows, show)
    print(file=sys.stderr)
    if given.fit:
        calibration.save(given.fit)
        print(f"wrote {given.fit}: {given.fit.stat().st_size / 1000:.0f} kB")
        for name, group in calibration.groups.items():
            print(f"{name}: {group.n_windows} windows of {group.n_participants} participants")
        return

    def bench(whole: gd.Windows) -> Bench:
        return Bench(cheap, costly, calibration, forests_of(whole.train))

    for line in tables(parts, model, bench, given.n, given.likelihoods):
        print(line, flush=True)
    print()
    for line in throughput(cheap, costly, every[0], given.likelihoods):
        print(line, flush=True)


if __name__ == "__main__":
    main()
