"""Which metric sees which defect: known defects planted into real windows.

    python runs/sensitivity.py WINDOWS [-n 500] [--into docs/metrics.md]

Half of the training participants' segments get a defect and are evaluated as a synthetic set; the
other half is the reference, the held-out participants are real. The half without a defect is
evaluated too: its ratios are those by chance. A cell is the distance over the same distance of the
half without a defect; bold where the defect is detected, that is at least 1.5 times and beyond that
half's 95 % interval (for tests: beyond what is stated in the row). Prints a Markdown table; with
--into, its JS rows and tests replace what stands between the two sensitivity marks of a page.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion import EvaluationConfig, Windows, evaluate

Gaze = NDArray[np.float32]
DETECTED = 1.5
MARKS = ("<!-- sensitivity -->", "<!-- /sensitivity -->")
# Tests of whole sets: the number, by how much it must differ, and whether more of it is worse.
TESTS = (
    ("c2st", "features_accuracy", 0.05, 1),
    ("c2st", "snippets_accuracy", 0.05, 1),
    ("memorisation", "share_of_copies", 0.05, 1),
    ("coverage", "density", 0.1, -1),
    ("coverage", "coverage", 0.05, -1),
    ("tstr", "tstr_r2", 0.05, -1),
)


def none(gaze: Gaze, rng: np.random.Generator) -> Gaze:
    """Without a defect."""
    return gaze


def jitter(gaze: Gaze, rng: np.random.Generator) -> Gaze:
    """Independent noise of half a pixel of a 1280-pixel screen."""
    return gaze + rng.normal(0, 0.5 * 2 / 1280, gaze.shape).astype(np.float32)


def dropped_saccades(gaze: Gaze, rng: np.random.Generator) -> Gaze:
    """A third of the saccades removed."""
    step = np.diff(gaze, axis=2)
    fast = np.hypot(step[:, 0], step[:, 1]) > 0.02
    begins = fast & ~np.pad(fast, ((0, 0), (1, 0)))[:, :-1]
    number = np.cumsum(begins, axis=1, dtype=np.int64)
    dropped = rng.random((len(gaze), int(number.max()) + 1)) < 1 / 3
    is_dropped = fast & np.take_along_axis(dropped, number, axis=1)
    return integrated(gaze, np.where(is_dropped[:, None], 0, step))


def time_reversal(gaze: Gaze, rng: np.random.Generator) -> Gaze:
    """Played backwards."""
    return np.ascontiguousarray(gaze[:, :, ::-1])


def smoothing(gaze: Gaze, rng: np.random.Generator) -> Gaze:
    """A moving average over five samples, 20 ms."""
    padded = np.pad(gaze, ((0, 0), (0, 0), (2, 2)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 5, axis=2)
    return np.asarray(windows.mean(axis=3), dtype=np.float32)


def clipped_peaks(gaze: Gaze, rng: np.random.Generator) -> Gaze:
    """No step longer than 0.05: fast saccades are cut short."""
    step = np.diff(gaze, axis=2)
    speed = np.hypot(step[:, 0], step[:, 1])[:, None]
    return integrated(gaze, step * np.minimum(1, 0.05 / np.maximum(speed, 1e-9)))


def wrong_rate(gaze: Gaze, rng: np.random.Generator) -> Gaze:
    """Slowed to 0.8 times its speed, as gaze of 312 Hz read as 250 Hz."""
    places = np.arange(gaze.shape[2]) * 0.8
    left = places.astype(int)
    share = (places - left).astype(np.float32)
    right = np.minimum(left + 1, gaze.shape[2] - 1)
    return np.asarray(gaze[:, :, left] * (1 - share) + gaze[:, :, right] * share)


def shrunk(gaze: Gaze, rng: np.random.Generator) -> Gaze:
    """Positions scaled by two thirds."""
    return gaze * np.float32(2 / 3)


def integrated(gaze: Gaze, step: Gaze) -> Gaze:
    """Gaze (window, 2, time) from its first position and its steps."""
    first = gaze[:, :, :1]
    return np.concatenate([first, first + np.cumsum(step, axis=2)], axis=2)


DEFECTS = (
    *(none, jitter, dropped_saccades, time_reversal),
    *(smoothing, clipped_peaks, wrong_rate, shrunk),
)


def planted(base: Gaze, training: Gaze, windows: Windows) -> dict[str, Windows]:
    """The sets to evaluate, by defect; copies come from the reference half itself."""
    rng = np.random.default_rng(0)
    sets = {plant.__name__.replace("_", " "): plant(base, rng) for plant in DEFECTS}
    sets["copied windows"] = training[rng.integers(0, len(training), len(base))]
    return {
        name: Windows.from_array(gaze.astype(np.float32), windows.rate_hz, windows.screen)
        for name, gaze in sets.items()
    }


def metrics_of(results: dict[str, Any]) -> Iterator[tuple[str, dict[str, float], float]]:
    """(metric, value by defect, the limit of the half without a defect) for every metric."""
    for row in results["quantities"]:
        for kind in ("js", "ks", "w1"):
            cells = row["distances"][kind]["synthetic"]
            values = {name: cell["value"] or np.inf for name, cell in cells.items()}
            interval = cells["none"]["interval"]
            high = interval[1] if interval else values["none"]
            yield f"{row['family']}: {row['title']}, {kind.upper()}", values, high
    for row in results["scalars"]:
        values = {name: cell["value"] for name, cell in row["synthetic"].items()}
        yield f"temporal: {row['title']}", values, values["none"] * DETECTED
    slopes = results["main_sequence"].get("sets", {})
    for key in ("slope", "spread") if "none" in slopes else ():
        real = slopes["real"][key]
        values = {name: abs(slopes[name][key] - real) for name in slopes.keys() - {"real", "train"}}
        # Four standard errors of a regression over so many saccades.
        error = slopes["none"]["spread"] / np.sqrt(slopes["none"]["n"])
        yield f"degrees: main sequence, {key}", values, values["none"] + 4 * error
    for test, key, margin, sign in TESTS:
        found = results["tests"].get(test, {}).get("synthetic")
        if found and key in next(iter(found.values())):
            values = {name: sign * cell[key] for name, cell in found.items()}
            yield f"{test}: {key}", values, values["none"] + margin


def table_of(results: dict[str, Any]) -> list[str]:
    """The Markdown table, and a last line that names the metrics that detect no defect."""
    names = [name for name in results["sets"]["synthetic"] if name != "none"]
    lines = ["| metric | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    is_detected: dict[str, bool] = {}
    for title, values, high in metrics_of(results):
        is_value, clean = title.split(":")[0] in {test[0] for test in TESTS}, values["none"]
        is_free = is_value or "main sequence" in title
        metric = re.sub(", (JS|KS|W1)$", "", title)
        cells = []
        for value in (values.get(name, np.nan) for name in names):
            detected = value > high and (is_free or value >= DETECTED * clean)
            text = f"{abs(value):.2f}" if is_value else f"{value / clean:.1f}"
            cells.append(f"**{text}**" if detected else text)
            is_detected[metric] = is_detected.get(metric, False) or bool(detected)
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    blind = [metric for metric, detected in is_detected.items() if not detected]
    nobody = "; ".join(blind) or "none, every metric detects at least one defect"
    return [*lines, "", f"No defect is detected, by JS, KS or W1, by: {nobody}."]


def main() -> None:
    """Evaluate the planted defects and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path)
    parser.add_argument("-n", type=int, default=500)
    parser.add_argument("--into", type=Path)
    given = parser.parse_args()
    windows = Windows.load(given.windows)
    rng = np.random.default_rng(0)
    whole = windows.train
    side = rng.permutation(len(whole.segment_starts))[whole.segment_of_window] % 2
    base, training = (whole.select(side == number) for number in (0, 1))
    chosen = np.sort(rng.permutation(len(base))[: given.n])
    sets = planted(base.dequantized(1).cut(chosen), training.dequantized(2).cut(), windows)
    config = EvaluationConfig(n_bootstrap=100)
    lines = table_of(evaluate(windows.held_out, sets, training, config).results)
    print("\n".join(lines))
    if given.into:
        shown = [line for line in lines if ", KS |" not in line and ", W1 |" not in line]
        before, _, rest = given.into.read_text().partition(MARKS[0])
        after = rest.partition(MARKS[1])[2]
        given.into.write_text("\n".join([before + MARKS[0], "", *shown, "", MARKS[1] + after]))


if __name__ == "__main__":
    main()
