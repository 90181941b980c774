"""What follows a saccade: peak velocity and overshoot of recorded and generated saccades.

    python runs/saccades.py gazecom6.safetensors --task movies [--model joint] [-n 600]
        [--quality default best] [-o docs/images/saccades.png]

Saccades: `data.events: detect_in_degrees`. Velocity is that along the saccade, by differences.
Overshoot: the fastest return within 44 ms after the peak, in deg/s; eyes wobble back after a
saccade, and trackers of the pupil exaggerate it (Hooge et al. 2015, Vision Research 112:55). Sets:
training participants, others of their windows (the floor), held-out participants, and windows
generated with the qualities, n of each. Prints medians of peaks, means of overshoots and shares of
overshoots above 50 deg/s by amplitude, with 95 % intervals over participants (generated: over
windows). Then how the mean overshoot differs between windows: its quantiles, the standard deviation
of its logarithm, and the correlation of both halves of a window's saccades. -o draws mean
velocities after the peak.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gazediffusion as gd
from gazediffusion.data.events import detect_in_degrees
from gazediffusion.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, house_style
from pictures import save_small

AMPLITUDES = ((1.0, 2.0), (2.0, 4.0), (4.0, 8.0), (8.0, 16.0))
BETWEEN = (2.0, 16.0)  # amplitudes of the table of windows
OVERSHOOT_MS, STRONG_DEG_S = (4.0, 44.0), 50.0
FEWEST, ADDED_DEG_S = 8, 5.0  # saccades of a window; before the logarithm
QUALITIES = ("fast", "default", "best")
N_BOOTSTRAP = 500
COLOURS = (BLUE, GREY, GREEN, ORANGE, PURPLE, "black")  # of real sets, then of qualities
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Saccades:
    """Saccades of a set: amplitude (saccade,) in degrees, velocity (saccade, step) in deg/s.

    velocity: along the saccade, from its fastest step on. window, group: (saccade,) number of its
    window, and of its participant, or window of generated gaze.
    """

    amplitude: Floats
    velocity: Floats
    window: Ints
    group: Ints
    step_ms: float

    @classmethod
    def of(cls, windows: gd.Windows) -> Saccades:
        """Those whose overshoot lies within their window."""
        degrees, rate_hz = windows.to_numpy("deg").astype(np.float64), windows.rate_hz
        steps = np.diff(degrees, axis=2) * rate_hz
        found = detect_in_degrees(np.hypot(*steps.transpose(1, 0, 2)), 1000 / rate_hz)
        n_after = round(OVERSHOOT_MS[1] / 1000 * rate_hz) + 1
        is_alone = len(np.unique(windows.participant)) == 1
        rows: list[tuple[float, Floats, int]] = []
        for begin, end in found.saccades.tolist():
            k, first = divmod(begin, windows.length)
            last = first + end - begin
            way = degrees[k, :, last] - degrees[k, :, first]
            amplitude = float(np.hypot(*way))
            peak = first + int(np.hypot(*steps[k, :, first:last]).argmax())
            if amplitude and peak + n_after <= steps.shape[2]:
                along = way / amplitude @ steps[k, :, peak : peak + n_after]
                rows.append((amplitude, along, k))
        amplitudes, velocity, window = (np.array(one) for one in zip(*rows, strict=True))
        group = window if is_alone else windows.participant[window]
        return cls(amplitudes, velocity, window, group, 1000 / rate_hz)

    def between(self, low: float, high: float) -> Saccades:
        """Those of some amplitudes."""
        chosen = (self.amplitude >= low) & (self.amplitude < high)
        values = self.amplitude[chosen], self.velocity[chosen]
        return Saccades(*values, self.window[chosen], self.group[chosen], self.step_ms)

    @property
    def overshoot(self) -> Floats:
        """The fastest return after the peak, (saccade,); 0 where there is none."""
        first = round(OVERSHOOT_MS[0] / self.step_ms)
        return np.asarray(np.maximum(-self.velocity[:, first:].min(axis=1), 0.0))

    def cells(self) -> list[str]:
        """Median of peaks, mean and share of overshoots, with intervals over groups."""
        peak, overshoot = self.velocity[:, 0], self.overshoot
        names = np.unique(self.group)
        members = [np.flatnonzero(self.group == one) for one in names]
        rng, draws = np.random.default_rng(0), []
        for _ in range(N_BOOTSTRAP):
            drawn = rng.integers(len(names), size=len(names))
            draws.append(measures(peak, overshoot, np.concatenate([members[k] for k in drawn])))
        low, high = np.quantile(draws, [0.025, 0.975], axis=0)
        found = measures(peak, overshoot, np.arange(len(peak)))
        digits = (0, 1, 3)
        return [
            f"{one:.{d}f} [{a:.{d}f}, {b:.{d}f}]"
            for one, a, b, d in zip(found, low, high, digits, strict=True)
        ]

    def between_windows(self) -> list[str]:
        """Quantiles, spread and consistency of the mean overshoot of windows, as cells."""
        values, windows = self.overshoot, np.unique(self.window)
        of_window = [values[self.window == k] for k in windows]
        many = [one for one in of_window if len(one) >= FEWEST]
        means = np.array([one.mean() for one in many])
        halves = np.array([[one[::2].mean(), one[1::2].mean()] for one in many])
        logs, log_halves = np.log(means + ADDED_DEG_S), np.log(halves + ADDED_DEG_S)
        quantiles = " ".join(f"{one:.0f}" for one in np.quantile(means, [0.1, 0.5, 0.9]))
        alike = np.corrcoef(log_halves.T)[0, 1]
        return [f"{len(many)}", quantiles, f"{logs.std():.2f}", f"{alike:.2f}"]


def measures(peak: Floats, overshoot: Floats, chosen: Ints) -> tuple[float, float, float]:
    """Median peak, mean overshoot, share of strong overshoots of some saccades."""
    some = overshoot[chosen]
    return float(np.median(peak[chosen])), float(some.mean()), float((some > STRONG_DEG_S).mean())


def draw(sets: dict[str, Saccades], path: Path) -> None:
    """Mean velocity after the peak, a panel for each amplitude."""
    import matplotlib.pyplot as plt

    with house_style():
        figure, axes = plt.subplots(1, len(AMPLITUDES), figsize=(11, 3.2), sharex=True)
        for axis, (low, high) in zip(axes, AMPLITUDES, strict=True):
            for (name, one), colour in zip(sets.items(), COLOURS, strict=False):
                mean = one.between(low, high).velocity.mean(axis=0)
                time = np.arange(len(mean)) * one.step_ms
                axis.plot(time, mean, color=colour, linewidth=1.3, label=name)
            axis.set(ylim=(-20, 80), title=f"{low:g} to {high:g} deg", xlabel="after the peak (ms)")
        axes[0].set_ylabel("mean velocity (deg/s)")
        handles: Any = axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=len(sets))
        save_small(figure, path)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("windows", type=Path)
    parser.add_argument("--model", default="joint")
    parser.add_argument("--task", default="movies")
    parser.add_argument("-n", type=int, default=600, help="windows of each set")
    parser.add_argument("--quality", nargs="+", choices=QUALITIES, default=["default", "best"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, help="a picture")
    given = parser.parse_args()
    whole = gd.Windows.load(given.windows).of_task(given.task).dequantized(0)
    model, n = gd.load(given.model), given.n
    train = whole.train.subsample(2 * n)
    sets = {
        "training": Saccades.of(train.select(np.arange(0, len(train), 2))),
        "training, others": Saccades.of(train.select(np.arange(1, len(train), 2))),
        "held out": Saccades.of(whole.held_out.subsample(n)),
    }
    for quality in given.quality:
        made = model.sample(n, task=given.task, seed=given.seed, quality=quality)
        sets[f"generated, {quality}"] = Saccades.of(made)
    print(
        "| amplitude (deg) | set | saccades | peak (deg/s) | overshoot (deg/s) | above 50 deg/s |"
    )
    print("|---|---|---:|---:|---:|---:|")
    for low, high in AMPLITUDES:
        for name, every in sets.items():
            some = every.between(low, high)
            cells = " | ".join(some.cells())
            print(f"| {low:g} to {high:g} | {name} | {len(some.amplitude):,} | {cells} |")
    print("\n| set | windows | overshoot, 10, 50, 90 % (deg/s) | sd of log | halves |")
    print("|---|---:|---:|---:|---:|")
    for name, every in sets.items():
        cells = " | ".join(every.between(*BETWEEN).between_windows())
        print(f"| {name} | {cells} |")
    if given.output is not None:
        draw(sets, given.output)


if __name__ == "__main__":
    main()
