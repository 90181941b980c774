"""Long gaze of a steerable model against whole recordings of held-out participants.

    python runs/length.py BIOEYE.safetensors --model RUN [--seconds 60] [-n 64] [--task reading]

Recordings are put together from the segments of the windows file at their elapsed time, NaN between
them. Generated recordings are given the gaps of training participants' recordings. Prints two
tables in Markdown. The first has the distance of curves, mean over recordings, to those of the
held-out participants, beside the training participants' (the floor) and their ratio:

    displacement      log mean squared displacement (deg^2) at lags of 0.1 to 30 s
    spread            log SD of position (deg) within spans of 1 to 30 s
    autocorrelation   of mean speed in spans of 0.1 s, at lags of 0.1 to 30 s
    saccade rate      saccades per second in successive spans of 10 s, over the recording's mean

A distance is the mean absolute difference over the points of a curve. The second table has the AUC
of a classifier (gradient boosting on speeds and positions in spans of 0.1 s) that tells snippets of
2 s around the joints of generated windows from those 3 s later, by folds of recordings; 0.5 is
chance. Whole seconds lie between the two, so that the rhythm of dots is the same in both. The same
for snippets at the end of the window before, shortly after its joint with the next. In brackets:
95 % intervals over participants, or recordings.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict

import gazediffusion as gd
from gazediffusion.data.events import smoothed_saccades
from gazediffusion.data.recordings import true_segments
from gazediffusion.generation.constraints import (
    joint_samples,
    window_starts,
)

LAGS_S = np.array([0.1, 0.2, 0.5, 1, 2, 4, 8, 12, 16, 20, 25, 30])
SPANS_S = np.array([1, 2, 4, 8, 16, 30])
BIN_S, RATE_SPAN_S, SNIPPET_S, LATER_S, N_BOOTSTRAP = 0.1, 10.0, 2.0, 3.0, 300
Floats = NDArray[np.floating]


def recordings(windows: gd.Windows) -> tuple[list[Floats], list[str]]:
    """Gaze (2, time) in degrees of each trial, NaN between segments, and its participant."""
    used, all_elapsed_ms = np.unique(windows.segment_of_window), windows.segment_elapsed_ms
    assert all_elapsed_ms is not None, "the windows file has no elapsed times: prepare it again"
    stops = np.append(windows.segment_starts[1:], windows.gaze.shape[1])
    trials: dict[tuple[str, str], list[int]] = {}
    for k in used.tolist():
        who = windows.participants[windows.segment_participant[k]]
        trials.setdefault((who, windows.segment_trial[k]), []).append(k)
    found, names = [], []
    for (who, _), segments in trials.items():
        elapsed_s = all_elapsed_ms[segments] / 1000
        first = np.rint(elapsed_s * windows.rate_hz).astype(int)
        lengths = [int(stops[k] - windows.segment_starts[k]) for k in segments]
        gaze = np.full((2, max(a + n for a, n in zip(first, lengths, strict=True))), np.nan)
        for k, a, n in zip(segments, first, lengths, strict=True):
            start = windows.segment_starts[k]
            screen = windows.screens[windows.segment_screen[k]]
            pixels = screen.to_pixels(windows.gaze[:, start : start + n])
            gaze[:, a : a + n] = screen.to_degrees(pixels)
        found.append(gaze)
        names.append(who)
    return found, names


def with_gaps(gaze: Floats, others: list[Floats]) -> list[Floats]:
    """Recordings (recording, 2, time), each as long as one of the others and with its gaps."""
    order = np.random.default_rng(0).permutation(len(others))
    found = []
    for number, one in enumerate(gaze):
        other = others[order[number % len(others)]]
        n_samples = min(one.shape[1], other.shape[1])
        found.append(np.where(np.isfinite(other[:, :n_samples]), one[:, :n_samples], np.nan))
    return found


def curves(gaze: Floats, rate_hz: float) -> dict[str, Floats]:
    """The curves of one recording (2, time), NaN where it is too short or has too many gaps."""
    speed = np.hypot(*np.diff(gaze, axis=1)) * rate_hz
    size = round(BIN_S * rate_hz)
    n_bins = len(speed) // size
    with np.errstate(invalid="ignore", divide="ignore"):
        binned = speed[: n_bins * size].reshape(n_bins, size).mean(axis=1)
        centred = binned - np.nanmean(binned)
        variance = np.nanmean(centred**2)
        moved = [_nanmean(np.sum((gaze[:, lag:] - gaze[:, :-lag]) ** 2, axis=0))
                 for lag in np.rint(LAGS_S * rate_hz).astype(int)]  # fmt: skip
        spread = [_spread(gaze, round(span * rate_hz)) for span in SPANS_S]
        lags = np.rint(LAGS_S / BIN_S).astype(int)
        related = [_nanmean(centred[lag:] * centred[:-lag]) / variance for lag in lags]
    return {
        "displacement": np.log(moved),
        "spread": np.log(spread),
        "autocorrelation": np.array(related),
        "saccade rate": _saccade_rate(gaze, rate_hz),
    }


def _nanmean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) >= 50 else np.nan


def _spread(gaze: Floats, span: int) -> float:
    n = gaze.shape[1] // span
    if not n:
        return np.nan
    parts = gaze[:, : n * span].reshape(2, n, span)
    enough = np.isfinite(parts[0]).mean(axis=1) > 0.8
    stds = np.nanstd(parts[:, enough], axis=2)
    return float(np.hypot(*stds).mean()) if enough.any() else np.nan


def _saccade_rate(gaze: Floats, rate_hz: float) -> Floats:
    """Saccades begun in each span of 10 s of the first minute, over their mean."""
    is_known = np.isfinite(gaze[0])
    begins = np.zeros(len(is_known), dtype=bool)
    for first, stop in true_segments(is_known):
        begins[first + smoothed_saccades(gaze[:, first:stop], rate_hz)[:, 0]] = True
    size = round(RATE_SPAN_S * rate_hz)
    rates = np.full(6, np.nan)
    for k in range(min(6, len(begins) // size)):
        inside = slice(k * size, (k + 1) * size)
        known = is_known[inside].sum()
        rates[k] = begins[inside].sum() / known * rate_hz if known > size / 2 else np.nan
    return rates / np.nanmean(rates) if np.isfinite(rates).any() else rates


def mean_curves(found: list[dict[str, Floats]]) -> dict[str, Floats]:
    """The mean over recordings of each curve, where at least three have a value."""
    result = {}
    for name in found[0]:
        rows = np.array([one[name] for one in found])
        enough = np.isfinite(rows).sum(axis=0) >= 3
        result[name] = np.where(enough, np.nansum(rows, axis=0), np.nan) / np.maximum(
            np.isfinite(rows).sum(axis=0), 1
        )
    return result


def compared(
    real: list[dict[str, Floats]], who: list[str], sets: dict[str, list[dict[str, Floats]]]
) -> list[str]:
    """Rows of the first table; participants are drawn for the intervals."""
    rng = np.random.default_rng(0)
    names = sorted(set(who))
    rows_of = {name: [k for k, one in enumerate(who) if one == name] for name in names}
    means = {name: mean_curves(found) for name, found in sets.items()}

    def ratios(chosen: list[int]) -> dict[str, tuple[float, float, float]]:
        there = mean_curves([real[k] for k in chosen])
        found = {}
        for name in there:
            model, floor = (
                float(np.nanmean(np.abs(means[one][name] - there[name]))) for one in means
            )
            found[name] = (model, floor, model / floor)
        return found

    whole = ratios(list(range(len(real))))
    draws = []
    for _ in range(N_BOOTSTRAP):
        drawn = rng.integers(0, len(names), len(names))
        draws.append(ratios([k for one in drawn for k in rows_of[names[one]]]))
    lines = ["| curve | model | training participants (floor) | ratio |", "|---|---:|---:|---|"]
    for name, (model, floor, ratio) in whole.items():
        low, high = np.nanpercentile([one[name][2] for one in draws], (2.5, 97.5))
        lines.append(
            f"| {name} | {model:.3g} | {floor:.3g} | {ratio:.2f} [{low:.2f}, {high:.2f}] |"
        )
    return lines


def places_of(
    model: gd.Model, task: str, n: int, n_samples: int, seed: int
) -> dict[str, NDArray[np.int64]]:
    """Samples (recording, place) of n generated recordings of a seed: joints and ends."""
    config = model.config
    length, rate_hz, course = config.length, config.rate_hz, config.conditioning.course
    starts = window_starts(n_samples, length, rate_hz)
    targets = course.draw([task] * n, 0, n_samples, rate_hz, seed).get("targets")
    ends = np.array(starts[:-1]) + length
    joints = [
        start
        + joint_samples(
            n, end - start, rate_hz, None if targets is None else targets[..., start:][..., :length]
        )
        for start, end in zip(starts[1:], ends, strict=True)
    ]
    return {"joints": np.stack(joints, axis=1), "ends": np.tile(ends, (n, 1))}


def places_auc(gaze: Floats, places: NDArray[np.int64], rate_hz: float) -> str:
    """AUC of snippets at places (recording, place) against later ones, gaze in degrees."""
    half, later = (round(seconds * rate_hz) for seconds in (SNIPPET_S / 2, LATER_S))
    places = places[:, (places + later + half < gaze.shape[2]).all(axis=0)]
    snippets, is_joint, group = [], [], []
    size = round(BIN_S * rate_hz)
    for number, one in enumerate(gaze):
        for own, label in ((places[number], 1), (places[number] + later, 0)):
            for place in own:
                part = one[:, place - half : place + half]
                steps = np.abs(np.diff(part, axis=1, prepend=part[:, :1]))
                binned = np.concatenate([
                    steps.reshape(2, -1, size).mean(axis=2), steps.reshape(2, -1, size).max(axis=2),
                    part.reshape(2, -1, size).std(axis=2),
                ])  # fmt: skip
                snippets.append(np.log(binned + 1e-4).ravel())
                is_joint.append(label)
                group.append(number)
    y, groups = np.array(is_joint), np.array(group)
    classifier = HistGradientBoostingClassifier(random_state=0, max_iter=100)
    folds = GroupKFold(5)
    p = cross_val_predict(
        classifier, np.array(snippets), y, groups=groups, cv=folds, method="predict_proba"
    )[:, 1]
    rng = np.random.default_rng(0)
    of = [np.flatnonzero(groups == one) for one in np.unique(groups)]
    draws = []
    for _ in range(N_BOOTSTRAP):
        rows = np.concatenate([of[k] for k in rng.integers(0, len(of), len(of))])
        draws.append(roc_auc_score(y[rows], p[rows]))
    low, high = np.percentile(draws, (2.5, 97.5))
    auc = roc_auc_score(y, p)
    return f"| {len(y)} | {y.sum()} | {auc:.3f} [{low:.3f}, {high:.3f}] |"


def main() -> None:
    """Print both tables for each task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--task", nargs="+")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("-n", type=int, default=64, help="generated recordings of each task")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    windows, model = gd.Windows.load(arguments.windows), gd.load(arguments.model)
    for task in arguments.task or windows.tasks:
        of_task = windows.of_task(task)
        rate_hz = windows.rate_hz
        real, who = recordings(of_task.held_out)
        train, _ = recordings(of_task.train)
        made = model.sample(arguments.n, seconds=arguments.seconds, task=task, seed=arguments.seed)
        gaze = made.to_numpy("deg").astype(np.float64)
        print(
            f"\n{task}: {len(real)} recordings of {len(set(who))} held-out participants, ", end=""
        )
        print(f"{len(train)} of training participants, {len(gaze)} of {arguments.seconds:g} s\n")
        of = {"model": with_gaps(gaze, train), "train": train, "real": real}
        found = {name: [curves(one, rate_hz) for one in some] for name, some in of.items()}
        real_curves = found.pop("real")
        print("\n".join(compared(real_curves, who, found)))
        print("\n| at | snippets | of these there | AUC |\n|---|---:|---:|---|")
        all_places = places_of(model, task, len(gaze), gaze.shape[2], arguments.seed)
        for name, places in all_places.items():
            print(f"| {name} {places_auc(gaze, places, rate_hz)}", flush=True)


if __name__ == "__main__":
    main()
