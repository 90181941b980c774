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
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion import EvaluationConfig, Windows, evaluate

Gaze = NDArray[np.float32]
DETECTED = 1.5
MARKS = ("<!-- sensitivity -->", "<!-- /sensitivity -->")


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
    step = np.where(is_dropped[:, None], 0, step)
    return np.concatenate([gaze[:, :, :1], gaze[:, :, :1] + np.cumsum(step, axis=2)], axis=2)


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
    step = step * np.minimum(1, 0.05 / np.maximum(speed, 1e-9))
    return np.concatenate([gaze[:, :, :1], gaze[:, :, :1] + np.cumsum(step, axis=2)], axis=2)


def wrong_rate(gaze: Gaze, rng: np.random.Generator) -> Gaze:
    """Slowed to 0.8 times its speed, as gaze of 312 Hz read as 250 Hz."""
    length = gaze.shape[2]
    places = np.arange(length) * 0.8
    left = places.astype(int)
    share = (places - left).astype(np.float32)
    right = np.minimum(left + 1, length - 1)
    return np.asarray(gaze[:, :, left] * (1 - share) + gaze[:, :, right] * share)


def shrunk(gaze: Gaze, rng: np.random.Generator) -> Gaze:
    """Positions scaled by two thirds."""
    return gaze * np.float32(2 / 3)


DEFECTS: dict[str, Callable[[Gaze, np.random.Generator], Gaze]] = {
    "none": lambda gaze, rng: gaze,
    "jitter": jitter,
    "dropped saccades": dropped_saccades,
    "time reversal": time_reversal,
    "smoothing": smoothing,
    "clipped peaks": clipped_peaks,
    "wrong rate": wrong_rate,
    "shrunk": shrunk,
}
COPIES = "copied windows"


def planted(base: Gaze, training: Gaze, windows: Windows) -> dict[str, Windows]:
    """The sets to evaluate, by defect; copies come from the reference half itself."""
    rng = np.random.default_rng(0)
    sets = {name: plant(base, rng) for name, plant in DEFECTS.items()}
    sets[COPIES] = training[rng.integers(0, len(training), len(base))]
    return {
        name: Windows.from_array(gaze.astype(np.float32), windows.rate_hz, windows.screen)
        for name, gaze in sets.items()
    }


def rows_of(results: dict[str, Any]) -> list[tuple[str, dict[str, float], float]]:
    """(metric, value by defect, the limit of the half without a defect) for every metric."""
    rows = []
    for row in results["quantities"]:
        for kind in ("js", "ks", "w1"):
            cells = row["distances"][kind]["synthetic"]
            values = {name: cell["value"] or np.inf for name, cell in cells.items()}
            interval = cells["none"]["interval"]
            high = interval[1] if interval else values["none"]
            rows.append((f"{row['family']}: {row['title']}, {kind.upper()}", values, high))
    for row in results["scalars"]:
        values = {name: cell["value"] for name, cell in row["synthetic"].items()}
        rows.append((f"temporal: {row['title']}", values, values["none"] * DETECTED))
    slopes = results["main_sequence"].get("sets", {})
    if "none" in slopes:
        for key in ("slope", "spread"):
            planted_in = [name for name in slopes if name not in ("real", "train")]
            gap = {name: abs(slopes[name][key] - slopes["real"][key]) for name in planted_in}
            # Four standard errors of a regression over so many saccades.
            error = slopes["none"]["spread"] / np.sqrt(slopes["none"]["n"])
            rows.append((f"degrees: main sequence, {key}", gap, gap["none"] + 4 * error))
    for test, key, margin, sign in (
        ("c2st", "features_accuracy", 0.05, 1),
        ("c2st", "snippets_accuracy", 0.05, 1),
        ("memorisation", "share_of_copies", 0.05, 1),
        ("coverage", "density", -0.1, -1),
        ("coverage", "coverage", -0.05, -1),
        ("tstr", "tstr_r2", -0.05, -1),
    ):
        found = results["tests"].get(test, {}).get("synthetic")
        if found and key in next(iter(found.values())):
            values = {name: sign * cell[key] for name, cell in found.items()}
            rows.append((f"{test}: {key}", values, values["none"] + abs(margin)))
    return rows


def main() -> None:
    """Evaluate the planted defects and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path)
    parser.add_argument("-n", type=int, default=500)
    parser.add_argument("--into", type=Path)
    arguments = parser.parse_args()
    windows = Windows.load(arguments.windows)
    whole = windows.train
    rng = np.random.default_rng(0)
    side = rng.permutation(len(whole.segment_starts))[whole.segment_of_window] % 2
    base, training = (whole.select(side == number) for number in (0, 1))
    chosen = np.sort(rng.permutation(len(base))[: arguments.n])
    sets = planted(base.dequantized(1).cut(chosen), training.dequantized(2).cut(), windows)
    results = evaluate(
        windows.held_out,
        sets,
        training,
        EvaluationConfig(n_bootstrap=100),
        progress=lambda name: print(name, file=sys.stderr),
    ).results
    lines = table_of(results)
    print("\n".join(lines))
    if arguments.into:
        insert(lines, arguments.into)


def table_of(results: dict[str, Any]) -> list[str]:
    """The Markdown table, and a last line that names the metrics that detect no defect."""
    names = [*list(DEFECTS)[1:], COPIES]
    lines = ["| metric | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    detected_by: dict[str, bool] = {}
    for title, values, high in rows_of(results):
        family = title.split(":")[0]
        is_value = family in ("c2st", "memorisation", "coverage", "tstr")
        cells, is_detected = [], False
        for name in names:
            value, clean = values.get(name, np.nan), values["none"]
            by_far = is_value or "main sequence" in title or value >= DETECTED * clean
            detected = bool(value > high and by_far)
            text = f"{abs(value):.2f}" if is_value else f"{value / clean:.1f}"
            cells.append(f"**{text}**" if detected else text)
            is_detected |= detected
        metric = title.removesuffix(", JS").removesuffix(", KS").removesuffix(", W1")
        detected_by[metric] = detected_by.get(metric, False) or is_detected
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    blind = [metric for metric, is_detected in detected_by.items() if not is_detected]
    nobody = "; ".join(blind) or "none, every metric detects at least one defect"
    return [*lines, "", f"No defect is detected, by JS, KS or W1, by: {nobody}."]


def insert(lines: list[str], page: Path) -> None:
    """Put the table between the page's marks, without the KS and W1 rows."""
    shown = [line for line in lines if ", KS |" not in line and ", W1 |" not in line]
    before, _, rest = page.read_text().partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    middle = "\n".join(shown)
    page.write_text(f"{before}{MARKS[0]}\n\n{middle}\n\n{MARKS[1]}{after}")


if __name__ == "__main__":
    main()
