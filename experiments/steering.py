"""Steered gaze: scanpaths, targets, long recordings and the style of a participant.

    python experiments/steering.py gazecom.safetensors bioeye.safetensors    # 25 minutes, one H200
    python experiments/steering.py bioeye.safetensors --only length -n 96 --seconds 60

Held-out participants' own recordings steer the model, whose gaze is compared with them. Tables:

scanpaths  Their fixations with onsets and durations. scatter: median distance of the participants'
           own samples from their fixation's mean (deg). landing: median distance of a generated
           fixation's mean from the one asked for (deg). onset: median absolute difference (ms).
           made: share of fixations asked for that overlap a generated one by half. main sequence:
           its slope relative to the participants' (%). ratio: median ratio to the floor.
targets    Responses to a jumping target, of participants, and of the model given the same targets
           and targets it was never trained on. followed: share of jumps with a saccade towards the
           target within a second. latency: of the first one after 80 ms (ms). anticipations: share
           of jumps with one from -100 to 80 ms. gain: its amplitude over the target's distance.
           corrective: share of responses with a second saccade within 300 ms. error: distance from
           the target in the last 300 ms (deg). JS: of latencies, in 30 bins from 80 to 1000 ms.
length     Curves of long recordings, distance to those of the held-out participants over that of
           the training participants (ratio). displacement: log mean squared displacement at lags of
           0.1 to 30 s. spread: log SD of position within 1 to 30 s. autocorrelation: of speed, at
           lags of 0.1 to 30 s. saccade rate: in spans of 10 s, over its mean.
joints     AUC of a classifier of 2 s around the joints of generated windows, or at a window's end,
           against 2 s that lie 3 s later; 0.5 is chance.
style      Windows generated like one recording of a participant, compared with the participant's
           other recording. For every quantity the rank correlation over participants of the two
           recordings, that of generated gaze and the other recording, and their ratio; distance:
           Wasserstein distance to the other recording over that between the two recordings.

Intervals: 95 % over participants, of joints and of sets without participants over windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata, wasserstein_distance
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict

import gazediffusion as gd
from gazediffusion.conditioning.style import QUANTITIES, Movements, n_covered
from gazediffusion.data.events import fixation_positions, smoothed_saccades
from gazediffusion.data.recordings import true_segments
from gazediffusion.data.windows import not_overlapping
from gazediffusion.evaluation.features import degree_events, main_sequence_fit
from gazediffusion.evaluation.metrics import js_from_counts
from gazediffusion.generation.long_gaze import joint_samples, window_starts
from report import (
    Floats,
    Result,
    in_degrees,
    kept_to,
    options,
    over_groups,
    tiny_windows,
    with_interval,
)

Ints = NDArray[np.int64]


# Scanpaths.


def fixations_of(windows: gd.Windows) -> Floats:
    """Where the fixations of each window are, (window, 2, time), NaN between them."""
    positions = fixation_positions(windows)
    return np.stack([positions[:, start : start + windows.length] for start in windows.starts])


def landings(asked: Floats, got: Floats, rate_hz: float) -> list[Floats]:
    """Of each window's fixations: landing error, onset error, whether it is made (fixation, 3)."""
    result = []
    for want, have in zip(asked, got, strict=True):
        rows = []
        segments = true_segments(np.isfinite(have[0]))
        for first, stop in _stretches(want):
            overlap = np.minimum(segments[:, 1], stop) - np.maximum(segments[:, 0], first)
            best = int(overlap.argmax()) if len(overlap) else -1
            if best < 0 or overlap[best] < (stop - first) / 2:
                rows.append((np.nan, np.nan, 0.0))
                continue
            onset = segments[best, 0]
            late = abs(onset - first) * 1000 / rate_hz if first else np.nan
            rows.append((float(np.hypot(*(have[:, onset] - want[:, first]))), late, 1.0))
        result.append(np.array(rows).reshape(-1, 3))
    return result


def _stretches(place: Floats) -> list[tuple[int, int]]:
    """The fixations [first, stop) of positions (2, time); neighbours differ in their position."""
    found = []
    for first, stop in true_segments(np.isfinite(place[0])).tolist():
        cuts = np.flatnonzero(np.diff(place[0, first:stop])) + 1
        found += list(pairwise([first, *(first + cuts).tolist(), stop]))
    return found


def slope(windows: gd.Windows) -> float:
    """Slope of the main sequence."""
    screens = [windows.screens[k] for k in windows.screen_index]
    events = degree_events(windows.cut(), screens, windows.rate_hz)
    return main_sequence_fit(events.saccade_amplitude_deg, events.saccade_peak_deg_s).slope


def scanpaths(
    result: Result, name: str, every: gd.Windows, task: str, model: gd.Model, n: int
) -> None:
    """The row of one task of a file."""
    held_out = every.held_out.subsample(n).dequantized(seed=0)
    asked, seed = fixations_of(held_out), result.seeds[0]
    made = kept_to(model, task, seed, len(held_out), fixations=asked)
    aim = in_degrees(held_out, asked)
    distance = np.linalg.norm(in_degrees(held_out, held_out.cut()) - aim, axis=1)
    found = landings(aim, in_degrees(held_out, fixations_of(made)), every.rate_hz)

    def measure(rows: Ints) -> Floats:
        of = np.concatenate([found[k] for k in rows])
        return np.array([np.nanmedian(distance[rows]), *np.nanmedian(of[:, :2], axis=0),
                         of[:, 2].mean()])  # fmt: skip

    columns = ("scatter (deg)", "landing (deg)", "onset (ms)", "made")
    cells = dict(zip(columns, over_groups(held_out.participant, measure), strict=True))
    about = {"n": len(held_out), "participants": len(np.unique(held_out.participant))}
    ratio = None
    if len(held_out) >= 20:  # `evaluate` needs as many
        reference = every.train.dequantized(seed=0)
        ratio = gd.evaluate(held_out, {"scanpaths": made}, reference).ratio
    relative = 100 * (slope(made) / slope(held_out) - 1)
    row = {"file": name, "task": task, **about, **cells, "main sequence (%)": relative}
    result.add("scanpaths", row | {"ratio": ratio})


# Targets.

FIRST_MS, LAST_MS, ANTICIPATION_MS, CORRECTION_MS, SETTLED_MS = 80.0, 1000.0, -100.0, 300.0, 300.0
EDGES = np.linspace(FIRST_MS, LAST_MS, 31)
RESPONSES = ("followed", "latency (ms)", "anticipations", "gain", "corrective", "error (deg)")


def responses(gaze_deg: Floats, target_deg: Floats, rate_hz: float) -> Iterator[list[float]]:
    """A row of `RESPONSES` for each jump in a window."""
    found = smoothed_saccades(gaze_deg, rate_hz)
    jumps = np.flatnonzero(np.any(np.diff(target_deg, axis=1) != 0, axis=0)) + 1
    ms = 1000 / rate_hz
    for jump, after in zip(jumps, [*jumps[1:], gaze_deg.shape[1]], strict=True):
        if not np.isfinite(target_deg[:, [jump - 1, jump]]).all() or jump * ms < -ANTICIPATION_MS:
            continue
        if (after - jump) * ms < LAST_MS / 2:
            continue
        start = (found[:, 0] - jump) * ms
        onset = gaze_deg[:, found[:, 0]]
        aim = target_deg[:, jump, None] - onset
        move = gaze_deg[:, np.minimum(found[:, 1], gaze_deg.shape[1] - 1)] - onset
        far, size = np.maximum(np.hypot(*aim), 1e-6), np.hypot(*move)
        is_towards = ((aim * move).sum(axis=0) / far > 0.5 * size) & (size > 0.3 * far)
        is_early = is_towards & (start >= ANTICIPATION_MS) & (start < FIRST_MS)
        last = min(LAST_MS, (after - jump) * ms)
        is_answer = is_towards & (start >= FIRST_MS) & (start <= last)
        settled = slice(max(jump, after - round(SETTLED_MS / ms)), after)
        error = float(np.median(np.hypot(*(gaze_deg - target_deg)[:, settled])))
        row = [0.0, np.nan, float(is_early.any()), np.nan, np.nan, error]
        if is_answer.any():
            k = int(np.flatnonzero(is_answer)[0])
            later = (found[:, 0] - found[k, 1]) * ms
            is_corrected = ((later > 0) & (later < CORRECTION_MS)).any()
            row[:2] = [1.0, start[k]]
            row[3:5] = [float(size[k] / far[k]), float(is_corrected)]
        yield row


def responses_of(windows: gd.Windows, targets: Floats) -> tuple[Floats, Ints]:
    """Responses (jump, 6) of windows to targets (window, 2, time), and each one's group."""
    n_groups = len(np.unique(windows.participant))
    who = windows.participant if n_groups > 1 else np.arange(len(windows))
    pairs = zip(in_degrees(windows, windows.cut()), in_degrees(windows, targets), strict=True)
    rows = [np.array(list(responses(*pair, windows.rate_hz))).reshape(-1, 6) for pair in pairs]
    return np.concatenate(rows), np.repeat(who, [len(one) for one in rows])


def new_targets(n: int, length: int, rate_hz: float, seed: int = 0) -> NDArray[np.float32]:
    """Targets never trained on, (n, 2, time): uniform places, intervals of 0.5 to 3 s."""
    rng = np.random.default_rng(seed)
    array = np.empty((n, 2, length), dtype=np.float32)
    for entry in array:
        at = 0
        while at < length:
            entry[:, at:] = rng.uniform(-0.75, 0.75, (2, 1))
            at += round(rng.uniform(0.5, 3.0) * rate_hz)
    return array


def targets(result: Result, every: gd.Windows, task: str, model: gd.Model, n: int) -> None:
    """The rows of both sides of participants and of the model."""
    held_out = every.held_out.subsample(n)
    given = held_out.cut_targets()
    sets = {"held-out participants": (held_out, given)}
    train = every.train.subsample(n)
    sets["training participants (floor)"] = train, train.cut_targets()
    new = new_targets(len(held_out), every.length, every.rate_hz)
    for name, array in {"model, the same targets": given, "model, new targets": new}.items():
        made = kept_to(model, task, result.seeds[0], len(held_out), targets=array)
        sets[name] = made, array
    found = {name: responses_of(*pair) for name, pair in sets.items()}

    def latencies(rows: Floats) -> Ints:
        return np.histogram(rows[np.isfinite(rows[:, 1]), 1], EDGES)[0].astype(np.int64)

    for name, (rows, group) in found.items():

        def measure(chosen: Ints, rows: Floats = rows) -> Floats:
            means, medians = (of(rows[chosen], axis=0) for of in (np.nanmean, np.nanmedian))
            return np.where(np.isin(np.arange(6), (0, 2, 4)), means, medians)

        cells = dict(zip(RESPONSES, over_groups(group, measure), strict=True))
        js = float(js_from_counts(latencies(rows), latencies(found["held-out participants"][0])))
        about = {"set": name, "jumps": len(rows), "groups": len(np.unique(group))}
        result.add("targets", {**about, **cells, "JS of latency": js})


# Long recordings.

LAGS_S = np.array([0.1, 0.2, 0.5, 1, 2, 4, 8, 12, 16, 20, 25, 30])
SPANS_S = np.array([1, 2, 4, 8, 16, 30])
BIN_S, RATE_SPAN_S, SNIPPET_S, LATER_S = 0.1, 10.0, 2.0, 3.0
Curves = dict[str, Floats]


def recordings_of(windows: gd.Windows) -> tuple[list[Floats], list[str]]:
    """Gaze (2, time) in degrees of each trial, NaN between segments, and its participant."""
    all_elapsed_ms = windows.segment_elapsed_ms
    assert all_elapsed_ms is not None
    stops = np.append(windows.segment_starts[1:], windows.gaze.shape[1])
    trials: dict[tuple[str, str], list[int]] = {}
    for k in np.unique(windows.segment_of_window).tolist():
        who = windows.participants[windows.segment_participant[k]]
        trials.setdefault((who, windows.segment_trial[k]), []).append(k)
    found = []
    for segments in trials.values():
        first = np.rint(all_elapsed_ms[segments] / 1000 * windows.rate_hz).astype(int)
        starts = windows.segment_starts[segments]
        lengths = stops[segments] - starts
        gaze = np.full((2, int((first + lengths).max())), np.nan)
        for k, at, start, n in zip(segments, first, starts, lengths, strict=True):
            screen = windows.screens[windows.segment_screen[k]]
            pixels = screen.to_pixels(windows.gaze[:, start : start + n])
            gaze[:, at : at + n] = screen.to_degrees(pixels)
        found.append(gaze)
    return found, [who for who, _ in trials]


def with_gaps(gaze: Floats, others: list[Floats]) -> list[Floats]:
    """Recordings (recording, 2, time), each as long as one of the others and with its gaps."""
    order = np.random.default_rng(0).permutation(len(others))
    found = []
    for number, one in enumerate(gaze):
        other = others[order[number % len(others)]]
        n = min(one.shape[1], other.shape[1])
        found.append(np.where(np.isfinite(other[:, :n]), one[:, :n], np.nan))
    return found


def curves(gaze: Floats, rate_hz: float) -> Curves:
    """The curves of one recording (2, time), NaN where it is too short or has too many gaps."""
    speed = np.hypot(*np.diff(gaze, axis=1)) * rate_hz
    size = round(BIN_S * rate_hz)
    lags, spans = (np.rint(s * rate_hz).astype(int) for s in (LAGS_S, SPANS_S))
    with np.errstate(invalid="ignore", divide="ignore"):
        binned = speed[: len(speed) // size * size].reshape(-1, size).mean(axis=1)
        centred = binned - np.nanmean(binned)
        moved = [_mean(((gaze[:, lag:] - gaze[:, :-lag]) ** 2).sum(axis=0)) for lag in lags]
        related = [
            _mean(centred[lag:] * centred[:-lag]) / np.nanmean(centred**2)
            for lag in np.rint(LAGS_S / BIN_S).astype(int)
        ]
        return {
            "displacement": np.log(moved),
            "spread": np.log([_spread(gaze, span) for span in spans]),
            "autocorrelation": np.array(related),
            "saccade rate": _saccade_rate(gaze, rate_hz),
        }


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) >= 50 else np.nan


def _spread(gaze: Floats, span: int) -> float:
    parts = gaze[:, : gaze.shape[1] // span * span].reshape(2, -1, span)
    is_known = np.isfinite(parts[0]).mean(axis=1) > 0.8
    if not is_known.any():
        return np.nan
    return float(np.hypot(*np.nanstd(parts[:, is_known], axis=2)).mean())


def _saccade_rate(gaze: Floats, rate_hz: float) -> Floats:
    """Saccades begun in each span of 10 s of the first minute, over their mean."""
    is_known = np.isfinite(gaze[0])
    begins = np.zeros(len(is_known), dtype=bool)
    for first, stop in true_segments(is_known):
        begins[first + smoothed_saccades(gaze[:, first:stop], rate_hz)[:, 0]] = True
    size, rates = round(RATE_SPAN_S * rate_hz), np.full(6, np.nan)
    for k in range(min(6, len(begins) // size)):
        inside = slice(k * size, (k + 1) * size)
        known = is_known[inside].sum()
        rates[k] = begins[inside].sum() / known * rate_hz if known > size / 2 else np.nan
    return rates / np.nanmean(rates) if np.isfinite(rates).any() else rates


def mean_curve(found: Sequence[Floats]) -> Floats:
    """The mean over recordings of a curve, where at least three have a value."""
    rows = np.array(found)
    n = np.isfinite(rows).sum(axis=0)
    return np.asarray(np.where(n >= 3, np.nansum(rows, axis=0), np.nan) / np.maximum(n, 1))


def length(
    result: Result, every: gd.Windows, task: str, model: gd.Model, n: int, seconds: float
) -> None:
    """The rows of curves and of joints of one task."""
    rate_hz, seed = every.rate_hz, result.seeds[0]
    made = model.sample(n, seconds=seconds, task=task, seed=seed)
    gaze = made.to_numpy("deg").astype(np.float64)
    if every.segment_elapsed_ms is not None:  # generated windows have none
        (real, names), (train, _) = recordings_of(every.held_out), recordings_of(every.train)
        sets = {"model": with_gaps(gaze, train), "training": train, "real": real}
        found = {name: [curves(one, rate_hz) for one in of] for name, of in sets.items()}
        for curve in found["real"][0]:
            of = {name: [one[curve] for one in some] for name, some in found.items()}
            means = {name: mean_curve(of[name]) for name in ("model", "training")}

            def measure(rows: Ints, of: Any = of, means: Any = means) -> Floats:
                there = mean_curve([of["real"][k] for k in rows])
                ours, floor = (float(np.nanmean(abs(one - there))) for one in means.values())
                return np.array([ours, floor, ours / floor])

            columns = ("model", "training participants (floor)", "ratio")
            cells = zip(columns, over_groups(np.array(names), measure), strict=True)
            about = {"task": task, "curve": curve, "recordings": len(real)}
            result.add("length", {**about, **dict(cells)})
    for name, places in places_of(model, task, n, gaze.shape[2], seed).items():
        n_snippets, auc = places_auc(gaze, places, rate_hz, min(n, 5))
        result.add("joints", {"task": task, "at": name, "snippets": n_snippets, "AUC": auc})


def places_of(model: gd.Model, task: str, n: int, n_samples: int, seed: int) -> dict[str, Ints]:
    """Samples (recording, place) of n generated recordings of a seed: joints and ends."""
    config = model.config
    size, rate_hz, course = config.length, config.rate_hz, config.conditioning.course
    starts = window_starts(n_samples, size, rate_hz)
    drawn = course.draw([task] * n, 0, n_samples, rate_hz, seed).get("targets")
    ends = np.array(starts[:-1]) + size
    joints = []
    for start, end in zip(starts[1:], ends, strict=True):
        given = None if drawn is None else drawn[..., start:][..., :size]
        joints.append(start + joint_samples(n, end - start, rate_hz, given))
    return {"joints": np.stack(joints, axis=1), "ends": np.tile(ends, (n, 1))}


def places_auc(gaze: Floats, places: Ints, rate_hz: float, n_folds: int) -> tuple[int, Any]:
    """AUC of snippets at places (recording, place) against later ones, gaze in degrees."""
    half, later, size = (round(s * rate_hz) for s in (SNIPPET_S / 2, LATER_S, BIN_S))
    places = places[:, (places + later + half < gaze.shape[2]).all(axis=0)]

    def described(one: Floats, place: int) -> Floats:
        part = one[:, place - half : place + half]
        steps = np.abs(np.diff(part, axis=1, prepend=part[:, :1])).reshape(2, -1, size)
        spread = part.reshape(2, -1, size).std(axis=2)
        return np.log(np.stack([steps.mean(axis=2), steps.max(axis=2), spread]) + 1e-4).ravel()

    x = [[described(one, at) for at in (*own, *(own + later))]
         for one, own in zip(gaze, places, strict=True)]  # fmt: skip
    y = np.tile(np.repeat([1, 0], places.shape[1]), len(gaze))
    group = np.repeat(np.arange(len(gaze)), 2 * places.shape[1])
    classifier = HistGradientBoostingClassifier(random_state=0, max_iter=100)
    how: dict[str, Any] = {"groups": group, "cv": GroupKFold(n_folds), "method": "predict_proba"}
    p = cross_val_predict(classifier, np.concatenate(x), y, **how)[:, 1]
    (auc,) = over_groups(group, lambda rows: np.array([roc_auc_score(y[rows], p[rows])]))
    return len(y), auc


# The style of a participant.

LEAST_S, MOST_S = 16.0, 60.0
LEAST_RATIO = 0.01  # of two distances
Recordings = tuple[gd.Windows, gd.Windows]


def pairs_of(of_task: gd.Windows, task: str, least_s: float = LEAST_S) -> Iterator[Recordings]:
    """Two recordings of each participant who has them: sessions of reading, halves otherwise."""
    for number in np.unique(of_task.participant):
        own = of_task.select(of_task.participant == number)
        if task == "reading":
            session = np.array([trial.split("-")[0] for trial in own.identity["trial"]])
            sides = [session == one for one in "12"]
        else:
            stops = own.starts + own.length
            middles = np.arange(int(own.starts.min()), int(stops.max()), 250)
            shorter = [min((stops <= at).sum(), (own.starts >= at).sum()) for at in middles]
            middle = middles[int(np.argmax(shorter))]
            sides = [stops <= middle, own.starts >= middle]
        if all(side.any() and _covered_s(own.select(side)) >= least_s for side in sides):
            first, second = (_shortened(own.select(side)) for side in sides)
            yield first, second


def _covered_s(windows: gd.Windows) -> float:
    return n_covered(windows) / windows.rate_hz


def _shortened(windows: gd.Windows) -> gd.Windows:
    """The first windows that cover a minute."""
    covered = [_covered_s(windows.select(np.arange(k + 1))) for k in range(len(windows))]
    return windows.select(np.array(covered) <= MOST_S)


def correlations(real: Floats, made: Floats) -> Floats:
    """Own, generated and their ratio, (3, quantity), of (recording, participant, quantity)."""

    def ranked(x: Floats, y: Floats) -> Floats:
        pairs = ((rankdata(a), rankdata(b)) for a, b in zip(x.T, y.T, strict=True))
        return np.array([np.corrcoef(*pair)[0, 1] for pair in pairs])

    own = ranked(real[0], real[1])
    like = (ranked(made[0], real[1]) + ranked(made[1], real[0])) / 2
    return np.stack([own, like, like / own])


def identified(probes: Floats, gallery: Floats, within: Floats) -> float:
    """How often the nearest of the gallery (participant, feature) is the probe's own."""
    apart = (probes[:, None] - gallery[None]) @ np.linalg.cholesky(np.linalg.inv(within))
    return float(((apart**2).sum(axis=2).argmin(axis=1) == np.arange(len(probes))).mean())


def style(
    result: Result, every: gd.Windows, task: str, model: gd.Model, n: int, tiny: bool
) -> None:
    """The rows of a task: a row for each quantity, and how often participants are identified."""
    conditioning, least_s = model.config.conditioning, 0.0 if tiny else LEAST_S
    pairs = list(pairs_of(every.held_out, task, least_s))
    if len(pairs) < (2 if tiny else 4):
        return

    def statistics(windows: gd.Windows) -> Floats:
        gaze = torch.from_numpy(windows.dequantized(seed=0).cut())
        found = conditioning.measure(gaze, windows.rate_hz)
        assert found is not None
        return np.asarray(found.mean(dim=0))

    measures: dict[str, Callable[[gd.Windows], Floats]] = {
        "six quantities": lambda one: np.log(Movements.of(one).means),
        "summary statistics": statistics,
    }
    made = []
    for number, pair in enumerate(pairs):
        of_pair = zip(pair, (2 * number, 2 * number + 1), strict=True)
        made.append(tuple(model.sample(n, like=a, task=task, seed=b) for a, b in of_pair))

    def of(
        sets: Sequence[tuple[gd.Windows, ...]], measure: Callable[[gd.Windows], Floats]
    ) -> Floats:
        """(recording, participant, feature)."""
        return np.array([[measure(one[k]) for one in sets] for k in (0, 1)])

    real, like = (of(sets, lambda one: Movements.of(one).means) for sets in (pairs, made))
    apart = np.array([_distances(pair, own) for pair, own in zip(pairs, made, strict=True)])
    names = ("two recordings", "generated", "ratio")
    rng = np.random.default_rng(0)
    chosen = [rng.integers(0, len(pairs), len(pairs)) for _ in range(300)]
    with np.errstate(all="ignore"):
        whole = correlations(real, like)
        drawn = np.array([correlations(real[:, k], like[:, k]) for k in chosen])
    for number, quantity in enumerate(QUANTITIES):
        cells = {name: with_interval(float(whole[k, number]), drawn[:, k, number])
                 for k, name in enumerate(names)}  # fmt: skip
        distances = np.exp([apart[k, number].mean() for k in chosen])
        cells["distance"] = with_interval(float(np.exp(apart[:, number].mean())), distances)
        about = {"task": task, "quantity": quantity, "participants": len(pairs)}
        result.add("style", {**about, **cells})
    others = list(pairs_of(every.train, task, least_s))
    for name, measure in measures.items():
        x, y, z = (of(sets, measure) for sets in (pairs, made, others))
        difference = (z[0] - z[1]) / np.sqrt(2)
        covariance = difference.T @ difference / len(difference)
        within = covariance + np.diag(0.1 * np.diag(covariance) + 1e-9)
        rates = [np.mean([identified(probes[k], x[1 - k], within) for k in (0, 1)])
                 for probes in (x, y)]  # fmt: skip
        shares = {"recording": float(rates[0]), "generated": float(rates[1])}
        about = {"task": task, "features": name, "participants": len(pairs)}
        result.add("identification", {**about, **shares, "chance": 1 / len(pairs)})


def _distances(pair: Recordings, made: tuple[gd.Windows, ...]) -> Floats:
    """Log distance of generated to the other recording over the recordings' own, (quantity,).

    As many generated windows count as the recording has that do not overlap.
    """
    found = np.empty((2, len(QUANTITIES)))
    for k, (recording, own) in enumerate(zip(pair, made, strict=True)):
        alone = recording.select(not_overlapping(recording.starts, recording.length))
        as_many = own.select(np.arange(min(len(alone), len(own))))
        real, like, other = (Movements.of(one).values for one in (alone, as_many, pair[1 - k]))
        for number in range(len(QUANTITIES)):
            apart = [wasserstein_distance(one[number], other[number]) for one in (like, real)]
            found[k, number] = np.log(apart[0] / max(apart[1], 1e-12) + LEAST_RATIO)
    return np.asarray(found.mean(axis=0))


def main() -> None:
    """Write the tables."""
    parts = ("scanpaths", "targets", "length", "style")
    parser = options(__doc__, "steering")
    parser.add_argument("windows", type=Path, nargs="*")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--tasks", nargs="+", help="default: all of the model")
    parser.add_argument("-n", type=int, default=96, help="windows, or long recordings, of a task")
    parser.add_argument("--like", type=int, default=32, help="windows generated like a recording")
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    model = gd.load(given.model, device=given.device)
    files = {path.stem: gd.Windows.load(path) for path in given.windows}
    if given.tiny:
        files = {"tiny": tiny_windows(model, "dots", 12)}
        given.n, given.like, given.seconds = 4, 1, 15.0
        windows = files["tiny"]
        jumps = new_targets(len(windows), windows.length, windows.rate_hz)
        files["tiny"] = replace(windows, targets=np.concatenate([*jumps], axis=1))
    result = Result.of(given, model, n=given.n)
    for name, windows in files.items():
        for task in windows.tasks:
            every = windows.of_task(task)
            few = len(np.unique(every.held_out.participant)) < 2 + (not given.tiny)
            if few or task not in (given.tasks or model.tasks):
                continue
            if "scanpaths" in given.only:
                scanpaths(result, name, every, task, model, given.n)
            if "targets" in given.only and every.targets is not None:
                targets(result, every, task, model, given.n)
            if "length" in given.only:
                length(result, every, task, model, given.n, given.seconds)
            if "style" in given.only:
                style(result, every, task, model, given.like, given.tiny)
    result.save()


if __name__ == "__main__":
    main()
